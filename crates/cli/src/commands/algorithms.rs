use serde::Serialize;
use topocoll::{
    ALGORITHMS, Algorithm, Machine, NotApplicable, PUBLISHED, Parameters, Price, Priced, Problem,
    Published, cheapest, published_price,
};

use super::exchange;
use crate::machine::{machine, problem};
use crate::render::{Blocks, VERSION, blocks, parameters, print, seconds, table};
use crate::{Outcome, args};

#[derive(Serialize)]
struct Report {
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
    algorithms: Vec<Entry>,
    published: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    kind: &'static str,
    operation: &'static str,
    summary: &'static str,
    source: &'static str,
    parameters: Vec<Parameter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    applies: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(flatten)]
    cost: Option<Cost>,
}

#[derive(Serialize)]
struct Parameter {
    name: &'static str,
    values: &'static str,
}

/// What it costs on the machine, at its best setting.
#[derive(Serialize)]
struct Cost {
    setting: Parameters,
    steps: u64,
    blocks: Blocks,
    time_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    priced: Option<&'static str>,
}

pub(crate) fn run(args: &args::Algorithms) -> anyhow::Result<Outcome> {
    let on = match &args.machine {
        Some(name) => {
            let machine = machine(name, &args.options)?;
            let problem = problem(&machine, &args.options)?;
            Some((machine, problem))
        }
        None => None,
    };
    let on = on.as_ref();
    let report = Report {
        version: VERSION,
        machine: on.map(|(machine, _)| machine.name.clone()),
        algorithms: ALGORITHMS.iter().map(|&algorithm| schedule(algorithm, on)).collect(),
        published: PUBLISHED.iter().map(|row| formula(row, on)).collect(),
    };
    print(args.options.json, &report, || text(&report, on))?;
    Ok(Outcome::Fine)
}

fn schedule(algorithm: &'static dyn Algorithm, on: Option<&(Machine, Problem)>) -> Entry {
    let mut entry = Entry {
        name: algorithm.name(),
        kind: "schedule",
        operation: algorithm.operation().name(),
        summary: algorithm.summary(),
        source: algorithm.source(),
        parameters: (algorithm.parameters().iter())
            .map(|p| Parameter { name: p.name, values: p.values })
            .collect(),
        applies: None,
        reason: None,
        cost: None,
    };
    entry.priced(on.map(|(machine, problem)| cheapest(machine, problem, algorithm)));
    entry
}

fn formula(row: &Published, on: Option<&(Machine, Problem)>) -> Entry {
    let mut entry = Entry {
        name: row.name,
        kind: "published formula",
        operation: row.operation.name(),
        summary: row.summary,
        source: row.source,
        parameters: Vec::new(),
        applies: None,
        reason: None,
        cost: None,
    };
    entry.priced(on.map(|(machine, problem)| {
        let counts = row.counts(problem, &*machine.topology)?;
        Ok((Parameters::new(), published_price(machine, problem, &counts)))
    }));
    entry
}

impl Entry {
    /// Notes what it costs on the machine, if one is named, or why it does not apply.
    fn priced(&mut self, price: Option<Result<(Parameters, Price), NotApplicable>>) {
        self.applies = price.as_ref().map(Result::is_ok);
        match price {
            Some(Ok((setting, price))) => {
                self.cost = Some(Cost {
                    setting,
                    steps: price.steps,
                    blocks: Blocks(price.blocks),
                    time_seconds: price.time.total(),
                    priced: (price.priced == Priced::AtLeast).then_some("at_least"),
                });
            }
            Some(Err(reason)) => self.reason = Some(reason.to_string()),
            None => {}
        }
    }
}

fn text(report: &Report, on: Option<&(Machine, Problem)>) -> String {
    let formulas = "published formulas, counts without a schedule to verify or run:\n";
    let mut text = match on {
        None => {
            format!("{}\n{formulas}{}", listed(&report.algorithms), listed(&report.published))
        }
        Some((machine, problem)) => {
            let schedules = costs(&report.algorithms);
            format!(
                "{}\n\n{schedules}\n{formulas}{}{}",
                exchange(machine, problem),
                costs(&report.published),
                refused(report),
            )
        }
    };
    let settable = report.algorithms.iter().filter(|entry| entry.reason.is_none());
    let mut settable =
        settable.flat_map(|entry| entry.parameters.iter().map(move |p| (entry.name, p))).peekable();
    if settable.peek().is_some() {
        text += "\nparameters, given as --set name=value:\n";
    }
    for (name, parameter) in settable {
        text += &format!("  {name}: {} = {}\n", parameter.name, parameter.values);
    }
    text
}

/// All entries, and what they do.
fn listed(entries: &[Entry]) -> String {
    let header = ["name", "operation", "what it does", "source"];
    let rows = entries.iter().map(|entry| {
        [entry.name, entry.operation, entry.summary, entry.source].map(str::to_owned).to_vec()
    });
    table(&header, header.len(), rows)
}

/// The entries that apply, and what they cost.
fn costs(entries: &[Entry]) -> String {
    let header = ["name", "best setting", "what it does", "source", "steps", "blocks", "time"];
    let rows: Vec<_> = (entries.iter())
        .filter_map(|entry| {
            let cost = entry.cost.as_ref()?;
            let floor = if cost.priced.is_some() { ">= " } else { "" };
            Some(vec![
                entry.name.to_owned(),
                parameters(&cost.setting),
                entry.summary.to_owned(),
                entry.source.to_owned(),
                cost.steps.to_string(),
                blocks(cost.blocks.0),
                format!("{floor}{}", seconds(cost.time_seconds)),
            ])
        })
        .collect();
    if rows.is_empty() { " none\n".to_owned() } else { table(&header, 4, rows) }
}

/// What does not apply, and why.
fn refused(report: &Report) -> String {
    let mut out = String::new();
    for entry in report.algorithms.iter().chain(&report.published) {
        if let Some(reason) = &entry.reason {
            let kind = if entry.kind == "schedule" { "" } else { " (published formula)" };
            out += &format!("  {}{kind}: {reason}\n", entry.name);
        }
    }
    if out.is_empty() { out } else { format!("\ndoes not apply:\n{out}") }
}
