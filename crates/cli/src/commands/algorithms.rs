use serde::Serialize;
use topocoll::{
    Algorithm, Budget, COMMON, Catalogue, Exchange, NotApplicable, Parameters, Price, Priced,
    Request,
};

use super::heading::{about, assumed_by};
use crate::args::Options;
use crate::machine::{exchange, machine};
use crate::render::{Answer, Blocks, Field, Table, VERSION, blocks, print, seconds, table};
use crate::{Outcome, args};

#[derive(Serialize)]
struct Report {
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
    algorithms: Vec<Entry>,
    /// Those of every algorithm.
    parameters: Vec<Parameter>,
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

fn listed_parameters(parameters: &[topocoll::Parameter]) -> Vec<Parameter> {
    parameters.iter().map(|p| Parameter { name: p.name, values: p.to_string() }).collect()
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
    let on = machine
        .as_ref()
        .map(|machine| exchange(machine, &args.options, &args::Part::WHOLE))
        .transpose()?;
    let on = on.as_ref();
    let catalogue = Catalogue::standard();
    let report = Report {
        version: VERSION,
        machine: machine.as_ref().map(|machine| machine.name.clone()),
        algorithms: catalogue.iter().map(|algorithm| entry(algorithm, on)).collect(),
        parameters: listed_parameters(&COMMON),
    };
    print(args.options.json, &report, || text(&report, on.map(|on| (on, &args.options))))?;
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
        parameters: listed_parameters(info.parameters),
        applies: None,
        reason: None,
        cost: None,
    };
    entry.priced(on.map(|exchange| {
        let (problem, machine) = (exchange.problem(), exchange.machine());
        let request = Request::new(problem, &*machine.topology);
        let candidates = request.candidates(algorithm)?;
        let search = candidates.first().and_then(|first| request.search(algorithm, first));
        if let Some(search) = search.filter(|search| search.seconds > Budget::default().search) {
            let milliseconds = (search.seconds * 1e3).ceil() as u64;
            return Err(NotApplicable::Search { milliseconds });
        }
        exchange.cheapest(&info.name)
    }));
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

fn text(report: &Report, on: Option<(&Exchange<'_>, &Options)>) -> Answer {
    let answer = match on {
        None => Answer::default().table(&listed(&report.algorithms)),
        Some((exchange, options)) => {
            let (machine, problem) = (exchange.machine(), exchange.problem());
            let operation = problem.operation.name();
            let all = report.algorithms.iter().filter(|entry| entry.operation == operation);
            let apply = all.clone().filter(|entry| entry.cost.is_some()).count();
            Answer::new(format!("{apply} of {} {operation} algorithms apply.", all.clone().count()))
                .about(about(machine, problem) + ".")
                .assuming(assumed_by(machine, problem.both_ports(), options))
                .table(&costs(&report.algorithms))
                .list("Does not apply:", refused(all))
        }
    };
    let mut text = String::new();
    let settable = report.algorithms.iter().filter(|entry| entry.reason.is_none());
    let settable =
        settable.flat_map(|entry| entry.parameters.iter().map(move |p| (&*entry.name, p)));
    let common = report.parameters.iter().map(|p| ("every algorithm", p));
    for (name, parameter) in common.chain(settable) {
        text += &format!("  {name}: {} = {}\n", parameter.name, parameter.values);
    }
    answer.list("Parameters, given as --set name=value:", text)
}

/// All entries and their descriptions.
fn listed(entries: &[Entry]) -> Table {
    let header = ["name", "operation", "what it does", "source"];
    let rows = entries.iter().map(|entry| {
        vec![
            entry.name.clone().into(),
            entry.operation.to_owned().into(),
            Field::Prose(entry.summary.clone()),
            Field::Prose(entry.source.clone()),
        ]
    });
    table(&header, header.len(), rows)
}

/// The entries that apply, and their costs.
fn costs(entries: &[Entry]) -> Table {
    let header = ["name", "best setting", "steps", "volume", "time", "what it does"];
    let rows = (entries.iter()).filter_map(|entry| {
        let cost = entry.cost.as_ref()?;
        let floor = if cost.priced.is_some() { ">= " } else { "" };
        Some(vec![
            entry.name.clone().into(),
            Field::Setting(None, cost.setting.clone()),
            cost.steps.to_string().into(),
            blocks(cost.blocks.0).into(),
            format!("{floor}{}", seconds(cost.time_seconds)).into(),
            Field::Prose(entry.summary.clone()),
        ])
    });
    table(&header, 2, rows)
}

/// The entries that do not apply, by reason.
fn refused<'e>(entries: impl Iterator<Item = &'e Entry>) -> String {
    super::refused(entries.filter_map(|entry| Some((&*entry.name, entry.reason.as_deref()?))))
}
