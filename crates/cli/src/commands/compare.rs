//! Measured times of a benchmark, held against predicted ones.

use std::io::Write as _;
use std::path::Path;

use serde::Serialize;
use topocoll::text::printable;
use topocoll::{
    Collective, Error, Exchange, Machine, Measured, Parameters, PerClass, Problem, Scaling,
    Setting, Time, files, spec,
};
use topocoll_report::words::about_sizes;

use super::heading::assumed_by;
use crate::bar::{PROGRESS, starting};
use crate::error::say;
use crate::machine::{machine, parameters, ranked};
use crate::render::{
    Answer, Field, Head, bandwidth, bytes, check_files, duration, print, print_text, seconds,
    table, write_file,
};
use crate::{Outcome, args};

/// The most bytes of a file of measured times.
const MOST: u64 = 1 << 26;

#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    head: Head,
    benchmark: &'static str,
    test: &'a str,
    /// What the benchmark's sizes are.
    size: &'static str,
    column: &'static str,
    rows: Vec<Row<'a>>,
    fit: Fit,
}

#[derive(Serialize)]
struct Row<'a> {
    size_bytes: u64,
    block_bytes: u64,
    measured_seconds: f64,
    predicted_seconds: f64,
    /// Measured over predicted.
    ratio: f64,
    algorithm: &'a str,
    parameters: &'a Parameters,
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

/// Measured times, by row an algorithm, its setting and its time, and the fit.
pub(super) struct Compared {
    measured: Measured,
    problem: Problem,
    predicted: Vec<(String, Parameters, Time)>,
    fit: Scaling,
}

pub(crate) fn run(args: &args::Compare) -> anyhow::Result<Outcome> {
    check_files(&[("--out", args.out.as_deref())])?;
    let options = &args.common.options;
    let machine = machine(&args.common.machine, options)?;
    let algorithm = args.algorithm.as_deref();
    let found = compared(&machine, &args.file, options.op, algorithm, &args.set)?;
    if args.out.is_some() {
        write_fitted(&machine, &found, &args.file, args.out.as_deref())?;
    }
    let Compared { measured, problem, predicted, fit } = &found;
    let fitted = scaled(&machine, fit).timing;
    let rows = measured.rows.iter().zip(predicted);
    let report = Report {
        head: Head::of_sizes(&machine, problem),
        benchmark: measured.benchmark,
        test: &measured.test,
        size: measured.size,
        column: measured.column,
        rows: rows
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
        fit: Fit {
            startup_factor: fit.startup,
            per_byte_factor: fit.per_byte,
            startup_seconds: fitted.startup.values().to_vec(),
            per_byte_seconds: fitted.per_byte.values().to_vec(),
            error: fit.error,
        },
    };
    print(options.json, &report, || {
        let sizes = [measured.rows.first(), measured.rows.last()];
        let sizes = sizes.map(|row| row.map_or(String::new(), |row| bytes(row.1))).join(" to ");
        let about = about_sizes(&machine, problem, &sizes);
        text(&report, &machine, &about, &assumed_by(&machine, problem.both_ports(), options))
    })?;
    Ok(Outcome::Fine)
}

/// Holds the table of a file against the times of an algorithm, or at each size of the choice of `select`.
pub(super) fn compared(
    machine: &Machine,
    path: &Path,
    asked: Option<Collective>,
    algorithm: Option<&str>,
    set: &[(String, Setting)],
) -> anyhow::Result<Compared> {
    let name = path.display().to_string();
    let text = files::text_of(path, MOST, "measured times")
        .map_err(|reason| Error::Unreadable { path: name.clone(), reason })?;
    let (measured, others) = Measured::read(&text, asked, machine.ranks())
        .map_err(|error| Error::File { path: name, text, error })?;
    if !others.is_empty() {
        say(&format!("note: not compared: {}", printable(&others.join(", "))));
    }
    let operation = measured.operation().or(asked).unwrap_or(Collective::AllToAll);
    let problem =
        Problem::new(operation, machine.ranks(), machine.ports, 1).map_err(Error::from)?;
    let (exchange, given) = (Exchange::new(machine, &problem)?, parameters(set)?);
    starting("predicting block sizes", measured.rows.len() as u64);
    let predict = |row: &(u64, u64, f64)| {
        let predicted = predicted(&exchange.clone().block_bytes(row.1)?, algorithm, &given);
        (PROGRESS.done)(1);
        predicted
    };
    let predicted = measured.rows.iter().map(predict).collect::<anyhow::Result<Vec<_>>>()?;
    let times = predicted.iter().zip(&measured.rows).map(|((.., time), row)| (*time, row.2));
    let fit = Scaling::fit(&times.collect::<Vec<_>>());
    Ok(Compared { measured, problem, predicted, fit })
}

/// Waits for links, which only simulations without barriers find, count as transmission.
fn predicted(
    exchange: &Exchange<'_>,
    algorithm: Option<&str>,
    given: &Parameters,
) -> anyhow::Result<(String, Parameters, Time)> {
    if let Some(name) = algorithm {
        let schedule = exchange.solve(name, given)?.schedule;
        let time = exchange.count(&schedule)?.time;
        return Ok((name.to_owned(), schedule.origin.parameters, time));
    }
    let selection = ranked(exchange, None)?;
    let Some(best) = selection.best() else { anyhow::bail!("no algorithm serves this exchange") };
    let mut time = best.price.time;
    time.transmission += best.ranked_seconds() - time.total();
    Ok((best.algorithm.clone(), best.parameters.clone(), time))
}

/// The machine with the values of a fit, to four digits.
fn scaled(machine: &Machine, fit: &Scaling) -> Machine {
    let mut machine = machine.clone();
    let times = |values: &PerClass, factor: f64| {
        PerClass::each(&values.values().iter().map(|value| value * factor).collect::<Vec<_>>())
    };
    let rounded = |value: f64| format!("{value:.3e}").parse().unwrap_or(value);
    let (timing, factor) = (&mut machine.timing, 1.0 / rounded(1.0 / fit.per_byte.unwrap_or(1.0)));
    timing.startup = times(&timing.startup, rounded(fit.startup.unwrap_or(1.0)));
    timing.per_byte = times(&timing.per_byte, factor);
    timing.injection.rank *= factor;
    timing.injection.node *= factor;
    machine
}

/// Writes the machine file of a machine with the values of a fit.
pub(super) fn write_fitted(
    machine: &Machine,
    found: &Compared,
    path: &Path,
    out: Option<&Path>,
) -> anyhow::Result<Outcome> {
    anyhow::ensure!(!of_links(machine), "--out: the bandwidth of each link stays as it is listed");
    let Compared { measured, fit, .. } = found;
    let mut machine = scaled(machine, fit);
    let source = format!(
        "fitted to {} ({}), error {:.0} %",
        path.display(),
        measured.benchmark,
        fit.error * 100.0
    );
    for key in ["startup", "per_byte", "injection"] {
        machine.sources.retain(|(known, _)| known != key);
        machine.sources.push((key.to_owned(), printable(&source)));
    }
    let file = spec::write_file(&machine).map_err(Error::ShortForm)?;
    match out {
        Some(path) => write_file(path, |out| Ok(out.write_all(file.as_bytes())?))?,
        None => print_text(&file)?,
    }
    Ok(Outcome::Fine)
}

/// Whether links have bandwidths of their own.
fn of_links(machine: &Machine) -> bool {
    let classes = machine.topology.link_classes().len();
    (0..classes).any(|class| machine.values_of_links(class)[0].is_some())
}

fn text(report: &Report<'_>, machine: &Machine, about: &str, assumed: &str) -> Answer {
    let Report { rows, fit, benchmark, test, size, column, .. } = report;
    let times = |ratio: f64| format!("{ratio:.2}x");
    let mut ratios: Vec<_> = rows.iter().map(|row| row.ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let [least, median, most] =
        [0, ratios.len() / 2, ratios.len() - 1].map(|place| times(ratios[place]));
    let rows = rows.iter().map(|row| {
        vec![
            bytes(row.size_bytes).into(),
            bytes(row.block_bytes).into(),
            seconds(row.measured_seconds).into(),
            seconds(row.predicted_seconds).into(),
            times(row.ratio).into(),
            Field::Setting(Some(row.algorithm.to_owned()), row.parameters.clone()),
        ]
    });
    let each = |values: &[f64], show: fn(f64) -> String, factor: Option<f64>| {
        let values = values.iter().map(|value| show(*value)).collect::<Vec<_>>().join(", ");
        format!("{values} ({})", factor.map_or("unchanged".to_owned(), times))
    };
    let factor = fit.per_byte_factor.map(|factor| 1.0 / factor);
    let bandwidths = match factor.filter(|_| of_links(machine)) {
        Some(factor) => format!("{} that of the links", times(factor)),
        None => each(&fit.per_byte_seconds, bandwidth, factor),
    };
    let by_class = match fit.startup_seconds.len().max(fit.per_byte_seconds.len()) {
        1 => String::new(),
        _ => format!(" Values are of {}.", machine.topology.link_classes().join(", ")),
    };
    let test = if test.is_empty() { String::new() } else { format!("{test}, ") };
    Answer::new(format!("Measured times are {least} to {most} (median {median}) the predicted ones."))
        .about(format!(
            "{about}. {benchmark}: {test}sizes are {size}, times are the column {column}."
        ))
        .assuming(assumed)
        .table(&table(&["size", "block", "measured", "predicted", "ratio", "algorithm"], 0, rows))
        .notes(format!(
            "Fitted, by least squares of relative errors: startup {}, bandwidth {bandwidths}; error {:.0} %.{by_class}",
            each(&fit.startup_seconds, duration, fit.startup_factor),
            fit.error * 100.0,
        ))
}
