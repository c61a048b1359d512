use serde::Serialize;
use topocoll::{ALGORITHMS, Algorithm, Machine, Parameters, Problem};

use super::exchange;
use crate::machine::{machine, problem};
use crate::render::{print, table};
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
    name: &'static str,
    operation: &'static str,
    summary: &'static str,
    source: &'static str,
    parameters: Vec<Parameter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    applies: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize)]
struct Parameter {
    name: &'static str,
    values: &'static str,
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
    let algorithms: Vec<Entry> =
        ALGORITHMS.iter().map(|&algorithm| entry(algorithm, on.as_ref())).collect();
    let report = Report {
        version: 1,
        machine: on.as_ref().map(|(machine, _)| machine.name.clone()),
        algorithms,
    };
    print(args.options.json, &report, || text(&report, on.as_ref()))?;
    Ok(Outcome::Fine)
}

fn entry(algorithm: &dyn Algorithm, on: Option<&(Machine, Problem)>) -> Entry {
    let parameters = algorithm
        .parameters()
        .iter()
        .map(|p| Parameter { name: p.name, values: p.values })
        .collect();
    let outcome = on.map(|(machine, problem)| {
        algorithm.claims(problem, &*machine.topology, &Parameters::new())
    });
    Entry {
        name: algorithm.name(),
        operation: algorithm.operation().name(),
        summary: algorithm.summary(),
        source: algorithm.source(),
        parameters,
        applies: outcome.as_ref().map(Result::is_ok),
        reason: outcome.and_then(Result::err).map(|reason| reason.to_string()),
    }
}

fn text(report: &Report, on: Option<&(Machine, Problem)>) -> String {
    let mut header = vec!["name", "operation", "what it does", "source"];
    if on.is_some() {
        header.push("applies");
    }
    let rows = report.algorithms.iter().map(|entry| {
        let mut row =
            [entry.name, entry.operation, entry.summary, entry.source].map(str::to_owned).to_vec();
        if on.is_some() {
            row.push(
                entry.reason.as_ref().map_or("yes".to_owned(), |reason| format!("no: {reason}")),
            );
        }
        row
    });
    let mut text = on
        .map_or(String::new(), |(machine, problem)| format!("{}\n\n", exchange(machine, problem)));
    text += &table(&header, header.len(), rows);
    let settable = || {
        report
            .algorithms
            .iter()
            .flat_map(|entry| entry.parameters.iter().map(move |p| (entry.name, p)))
    };
    if settable().next().is_some() {
        text += "\nparameters, given as --set name=value:\n";
        for (name, parameter) in settable() {
            text += &format!("  {name}: {} = {}\n", parameter.name, parameter.values);
        }
    }
    text
}
