use serde::Serialize;
use topocoll::{Fit, Network};

use super::mpi_program::said;
use crate::render::{Answer, VERSION, facts, print, seconds, write_or_print};
use crate::{Outcome, args};

#[derive(Serialize)]
struct Report {
    version: u32,
    shape: String,
    ports: u32,
    message_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rank_injection_seconds_per_byte: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_injection_seconds_per_byte: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inside: Option<Values>,
    #[serde(skip_serializing_if = "Option::is_none")]
    between: Option<Values>,
}

#[derive(Serialize)]
struct Values {
    startup_seconds: f64,
    per_byte_seconds: f64,
    rearrangement_seconds_per_byte: f64,
    per_block_seconds: f64,
    fit_error: f64,
}

pub(crate) fn run(args: &args::Calibrate) -> anyhow::Result<Outcome> {
    let network: Network = said(&args.mpi_program, &[&args.rounds.to_string()], &[])?;
    let command = format!("topocoll calibrate --mpi --launch '{}'", args.mpi_program.launch());
    let file = network.machine_file(&format!("{command} --rounds {}", args.rounds))?;
    if args.out.is_some() || !args.json {
        write_or_print(args.out.as_deref(), &file)?;
    }
    if args.out.is_none() && !args.json {
        return Ok(Outcome::Fine);
    }
    let values = |fit: &Fit| Values {
        startup_seconds: fit.startup,
        per_byte_seconds: fit.per_byte,
        rearrangement_seconds_per_byte: fit.rearrangement,
        per_block_seconds: fit.per_block,
        fit_error: fit.error,
    };
    let [rank, node] = network.injection.map(|limit| (limit > 0.0).then_some(limit));
    let report = Report {
        version: VERSION,
        shape: network.short_form(),
        ports: network.ports,
        message_seconds: network.message,
        rank_injection_seconds_per_byte: rank,
        node_injection_seconds_per_byte: node,
        inside: network.inside.as_ref().map(values),
        between: network.between.as_ref().map(values),
    };
    print(args.json, &report, || text(&report))?;
    Ok(Outcome::Fine)
}

fn text(report: &Report) -> Answer {
    let per_byte = |value: f64| format!("{:.4} ns a byte", value * 1e9);
    let mut answer = Answer::new(format!(
        "{}: {} concurrent messages without slowdown.",
        report.shape, report.ports
    ));
    let places = [("intra-node", &report.inside), ("inter-node", &report.between)];
    for (place, values) in places {
        let Some(values) = values else { continue };
        answer = answer.list(
            place,
            facts([
                ("startup", seconds(values.startup_seconds)),
                ("transmission", per_byte(values.per_byte_seconds)),
                ("rearrangement", per_byte(values.rearrangement_seconds_per_byte)),
                ("every copied block", seconds(values.per_block_seconds)),
                ("error of the fit", format!("{:.0} %", values.fit_error * 100.0)),
            ]),
        );
    }
    let limits = [
        ("rank", report.rank_injection_seconds_per_byte),
        ("node", report.node_injection_seconds_per_byte),
    ];
    for (of, limit) in limits {
        let Some(limit) = limit else { continue };
        answer = answer.notes(format!("The injection of a {of} takes {}.", per_byte(limit)));
    }
    answer.notes(format!(
        "One of many concurrent messages takes {}.",
        seconds(report.message_seconds)
    ))
}
