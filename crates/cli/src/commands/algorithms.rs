use serde::Serialize;
use topocoll::{Algorithm, Catalogue, Exchange, NotApplicable, Parameters, Price, Priced};

use super::title;
use crate::machine::{exchange, machine};
use crate::render::{Blocks, VERSION, blocks, parameters, print, seconds, table};
use crate::{Outcome, args};

#[derive(Serialize)]
struct Report {
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
    algorithms: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    name: String,
    kind: &'static str,
    operation: &'static str,
    summary: String,
    source: String,
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
    values: String,
}

/// Its cost on the machine at its best setting.
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
    let machine = args.machine.as_ref().map(|name| machine(name, &args.options)).transpose()?;
    let on = machine.as_ref().map(|machine| exchange(machine, &args.options, None)).transpose()?;
    let on = on.as_ref();
    let catalogue = Catalogue::standard();
    let report = Report {
        version: VERSION,
        machine: machine.as_ref().map(|machine| machine.name.clone()),
        algorithms: catalogue.iter().map(|algorithm| entry(algorithm, on)).collect(),
    };
    print(args.options.json, &report, || text(&report, on))?;
    Ok(Outcome::Fine)
}

fn entry(algorithm: &dyn Algorithm, on: Option<&Exchange<'_>>) -> Entry {
    let info = algorithm.info();
    let mut entry = Entry {
        name: info.name.clone().into_owned(),
        kind: "schedule",
        operation: info.operation.name(),
        summary: info.summary.clone().into_owned(),
        source: info.source.clone().into_owned(),
        parameters: (info.parameters.iter())
            .map(|p| Parameter { name: p.name, values: p.to_string() })
            .collect(),
        applies: None,
        reason: None,
        cost: None,
    };
    entry.priced(on.map(|exchange| exchange.cheapest(&info.name)));
    entry
}

impl Entry {
    /// Adds its cost on the named machine, or the reason that it does not apply.
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

fn text(report: &Report, on: Option<&Exchange<'_>>) -> String {
    let mut text = match on {
        None => listed(&report.algorithms),
        Some(exchange) => format!(
            "{}\n\n{}{}",
            title(exchange.machine(), exchange.problem()),
            costs(&report.algorithms),
            refused(report),
        ),
    };
    let settable = report.algorithms.iter().filter(|entry| entry.reason.is_none());
    let mut settable = settable
        .flat_map(|entry| entry.parameters.iter().map(move |p| (&entry.name, p)))
        .peekable();
    if settable.peek().is_some() {
        text += "\nparameters, given as --set name=value:\n";
    }
    for (name, parameter) in settable {
        text += &format!("  {name}: {} = {}\n", parameter.name, parameter.values);
    }
    text
}

/// All entries and their descriptions.
fn listed(entries: &[Entry]) -> String {
    let header = ["name", "operation", "what it does", "source"];
    let rows = entries.iter().map(|entry| {
        [&entry.name, entry.operation, &entry.summary, &entry.source].map(str::to_owned).to_vec()
    });
    table(&header, header.len(), rows)
}

/// The entries that apply, and their costs.
fn costs(entries: &[Entry]) -> String {
    let header = ["name", "best setting", "what it does", "source", "steps", "blocks", "time"];
    let rows: Vec<_> = (entries.iter())
        .filter_map(|entry| {
            let cost = entry.cost.as_ref()?;
            let floor = if cost.priced.is_some() { ">= " } else { "" };
            Some(vec![
                entry.name.clone(),
                parameters(&cost.setting),
                entry.summary.clone(),
                entry.source.clone(),
                cost.steps.to_string(),
                blocks(cost.blocks.0),
                format!("{floor}{}", seconds(cost.time_seconds)),
            ])
        })
        .collect();
    if rows.is_empty() { " none\n".to_owned() } else { table(&header, 4, rows) }
}

/// The entries that do not apply, and the reasons.
fn refused(report: &Report) -> String {
    let mut out = String::new();
    for entry in &report.algorithms {
        if let Some(reason) = &entry.reason {
            out += &format!("  {}: {reason}\n", entry.name);
        }
    }
    if out.is_empty() { out } else { format!("\ndoes not apply:\n{out}") }
}
