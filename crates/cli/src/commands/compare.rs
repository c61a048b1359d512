use std::path::Path;

use serde::Serialize;
use topocoll::text::printable;
use topocoll::{
    Collective, Error, Exchange, Machine, Measured, Parameters, PerClass, Scaling, Time, files,
};
use topocoll_report::words::about_sizes;

use super::heading::assumed_by;
use crate::args::Options;
use crate::bar::{PROGRESS, starting};
use crate::error::say;
use crate::machine::{exchange, machine, parameters, ranked};
use crate::render::{Answer, Field, Head, bandwidth, bytes, duration, print, seconds, table};
use crate::{Outcome, args};

/// The most bytes of a file of measured times.
const MOST: u64 = 1 << 26;

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    benchmark: &'static str,
    test: String,
    /// What the benchmark's sizes are.
    size: &'static str,
    column: &'static str,
    rows: Vec<Row>,
    fit: Fit,
}

#[derive(Serialize)]
struct Row {
    size_bytes: u64,
    block_bytes: u64,
    measured_seconds: f64,
    predicted_seconds: f64,
    /// Measured over predicted.
    ratio: f64,
    algorithm: String,
    parameters: Parameters,
}

/// The values of the machine that fit the measured times best, by link class.
#[derive(Serialize)]
struct Fit {
    startup_factor: Option<f64>,
    per_byte_factor: Option<f64>,
    startup_seconds: Vec<f64>,
    per_byte_seconds: Vec<f64>,
    error: f64,
}

pub(crate) fn run(args: &args::Compare) -> anyhow::Result<Outcome> {
    let options = &args.common.options;
    let machine = machine(&args.common.machine, options)?;
    let (measured, operation) = read(&args.file, options.op, machine.ranks())?;
    let given = Options { op: Some(operation), ..options.clone() };
    let exchange = exchange(&machine, &given, None)?;
    let algorithm = args.algorithm.as_deref();
    let predicted = predicted(&exchange, &measured, algorithm, &parameters(&args.set)?)?;
    let times: Vec<_> = (predicted.iter().zip(&measured.rows))
        .map(|((_, _, time), (.., seconds))| (*time, *seconds))
        .collect();
    let Scaling { startup, per_byte, error, .. } = Scaling::fit(&times);
    let scaled = |values: &PerClass, factor: Option<f64>| {
        values.values().iter().map(|value| value * factor.unwrap_or(1.0)).collect()
    };
    let report = Report {
        head: Head::of_sizes(exchange.machine(), exchange.problem()),
        benchmark: measured.benchmark,
        test: measured.test.clone(),
        size: measured.size,
        column: measured.column,
        fit: Fit {
            startup_factor: startup,
            per_byte_factor: per_byte,
            startup_seconds: scaled(&machine.timing.startup, startup),
            per_byte_seconds: scaled(&machine.timing.per_byte, per_byte),
            error,
        },
        rows: (measured.rows.iter().zip(predicted))
            .map(|(&(size_bytes, block_bytes, measured_seconds), (algorithm, parameters, time))| {
                let predicted_seconds = time.total();
                let ratio = measured_seconds / predicted_seconds;
                Row {
                    size_bytes,
                    block_bytes,
                    measured_seconds,
                    predicted_seconds,
                    ratio,
                    algorithm,
                    parameters,
                }
            })
            .collect(),
    };
    print(options.json, &report, || {
        let sizes = |row: Option<&Row>| row.map_or(String::new(), |row| bytes(row.block_bytes));
        let sizes = format!("{} to {}", sizes(report.rows.first()), sizes(report.rows.last()));
        let about = about_sizes(&machine, exchange.problem(), &sizes);
        let assumed = assumed_by(&machine, exchange.problem().both_ports(), options);
        text(&report, &machine, &about).assuming(assumed)
    })?;
    Ok(Outcome::Fine)
}

/// The measured table of a file for some ranks, and its operation. A note names the other tables.
pub(super) fn read(
    path: &Path,
    asked: Option<Collective>,
    ranks: u32,
) -> anyhow::Result<(Measured, Collective)> {
    let name = path.display().to_string();
    let text = files::text_of(path, MOST, "measured times")
        .map_err(|reason| Error::Unreadable { path: name.clone(), reason })?;
    let (measured, others) = Measured::read(&text, asked, ranks).map_err(|error| Error::File {
        path: name,
        text,
        error,
    })?;
    if !others.is_empty() {
        say(&format!("note: not compared: {}", printable(&others.join(", "))));
    }
    let operation = measured.operation().or(asked).unwrap_or(Collective::AllToAll);
    Ok((measured, operation))
}

/// By row, an algorithm, or the choice of `select`, its setting and its time. Waits for links, which only
/// simulations without barriers find, count as transmission.
pub(super) fn predicted(
    exchange: &Exchange<'_>,
    measured: &Measured,
    algorithm: Option<&str>,
    given: &Parameters,
) -> anyhow::Result<Vec<(String, Parameters, Time)>> {
    starting("predicting block sizes", measured.rows.len() as u64);
    let predicted = measured.rows.iter().map(|(_, block_bytes, _)| {
        let exchange = exchange.clone().block_bytes(*block_bytes)?;
        let found = match algorithm {
            Some(name) => {
                let schedule = exchange.solve(name, given)?.schedule;
                let time = exchange.count(&schedule)?.time;
                (name.to_owned(), schedule.origin.parameters, time)
            }
            None => {
                let selection = ranked(&exchange, None)?;
                let Some(best) = selection.best() else {
                    anyhow::bail!("no algorithm serves blocks of {block_bytes} bytes");
                };
                let mut time = best.price.time;
                time.transmission += best.ranked_seconds() - time.total();
                (best.algorithm.clone(), best.parameters.clone(), time)
            }
        };
        (PROGRESS.done)(1);
        Ok(found)
    });
    predicted.collect()
}

fn text(report: &Report, machine: &Machine, about: &str) -> Answer {
    let Report { rows, fit, benchmark, test, size, column, .. } = report;
    let mut ratios: Vec<_> = rows.iter().map(|row| row.ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let times = |ratio: f64| format!("{ratio:.2}x");
    let span = match rows.len() {
        1 => times(ratios[0]),
        several => format!(
            "{} (median of {several}; {} to {})",
            times(ratios[several / 2]),
            times(ratios[0]),
            times(ratios[several - 1])
        ),
    };
    let rows = rows.iter().map(|row| {
        vec![
            bytes(row.size_bytes).into(),
            bytes(row.block_bytes).into(),
            seconds(row.measured_seconds).into(),
            seconds(row.predicted_seconds).into(),
            times(row.ratio).into(),
            Field::Setting(Some(row.algorithm.clone()), row.parameters.clone()),
        ]
    });
    let each = |values: &[f64], show: fn(f64) -> String, factor: Option<f64>| {
        let values = values.iter().map(|value| show(*value)).collect::<Vec<_>>().join(", ");
        factor.map_or(format!("{values} (unchanged)"), |factor| {
            format!("{values} ({})", times(factor))
        })
    };
    let by_class = match machine.topology.link_classes() {
        classes if fit.startup_seconds.len().max(fit.per_byte_seconds.len()) > 1 => {
            format!(" Values are of the classes {}.", classes.join(", "))
        }
        _ => String::new(),
    };
    Answer::new(format!("The measured times are {span} of the predicted."))
        .about(format!(
            "{about}. {benchmark}: {}sizes are {size}, times are {column}.",
            if test.is_empty() { String::new() } else { format!("{test}, ") }
        ))
        .table(&table(&["size", "block", "measured", "predicted", "ratio", "algorithm"], 0, rows))
        .notes(format!(
            "Fitted, by least squares of relative errors: startup {}, bandwidth {}; error {:.0} %.{by_class}",
            each(&fit.startup_seconds, duration, fit.startup_factor),
            each(&fit.per_byte_seconds, bandwidth, fit.per_byte_factor.map(|factor| 1.0 / factor)),
            fit.error * 100.0,
        ))
}
