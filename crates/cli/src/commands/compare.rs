//! Measured times of a benchmark, held against predicted ones.

use std::path::Path;

use serde::Serialize;
use topocoll::text::printable;
use topocoll::{
    Collective, Error, Exchange, Machine, Measured, Parameters, Problem, Scaling, Setting, Time,
    measured_file,
};
use topocoll_report::words::about_sizes;

use super::heading::assumed_by;
use crate::bar::{PROGRESS, starting};
use crate::error::say;
use crate::machine::{machine, parameters, ranked, read_text};
use crate::render::{
    Answer, Field, Head, bandwidth, bytes, check_files, duration, print, seconds, table,
    write_or_print,
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
    rows: &'a [Row],
    fit: Fit,
}

/// A measured time, and that of an algorithm with a setting.
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
    #[serde(skip)]
    time: Time,
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

/// Measured times, what is predicted, and the fit.
pub(super) struct Compared {
    measured: Measured,
    problem: Problem,
    rows: Vec<Row>,
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
    let Compared { measured, problem, rows, fit } = &found;
    let fitted = scaled(&machine, fit).timing;
    let report = Report {
        head: Head::of_sizes(&machine, problem),
        benchmark: measured.benchmark,
        test: &measured.test,
        size: measured.size,
        column: measured.column,
        rows,
        fit: Fit {
            startup_factor: fit.startup,
            per_byte_factor: fit.per_byte,
            startup_seconds: fitted.startup.values().to_vec(),
            per_byte_seconds: fitted.per_byte.values().to_vec(),
            error: fit.error,
        },
    };
    print(options.json, &report, || {
        let sizes = [rows.first(), rows.last()];
        let sizes = sizes.map(|row| row.map_or(String::new(), |row| bytes(row.block_bytes)));
        let about = about_sizes(&machine, problem, &sizes.join(" to "));
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
    let text = read_text(path, MOST, "measured times")?;
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
    let predict = |&(size_bytes, block_bytes, measured_seconds): &(u64, u64, f64)| {
        let exchange = exchange.clone().block_bytes(block_bytes)?;
        let (algorithm, parameters, time) = predicted(&exchange, algorithm, &given)?;
        let predicted_seconds = time.total();
        let ratio = measured_seconds / predicted_seconds;
        (PROGRESS.done)(1);
        Ok(Row {
            size_bytes,
            block_bytes,
            measured_seconds,
            predicted_seconds,
            ratio,
            algorithm,
            parameters,
            time,
        })
    };
    let rows = measured.rows.iter().map(predict).collect::<anyhow::Result<Vec<_>>>()?;
    let times: Vec<_> = rows.iter().map(|row| (row.time, row.measured_seconds)).collect();
    let fit = Scaling::fit(&times);
    Ok(Compared { measured, problem, rows, fit })
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

/// The machine with the values of a fit.
fn scaled(machine: &Machine, fit: &Scaling) -> Machine {
    let mut machine = machine.clone();
    let [startup, per_byte] = [fit.startup, fit.per_byte].map(|factor| factor.unwrap_or(1.0));
    let timing = &mut machine.timing;
    timing.startup = timing.startup.map(|value| value * startup);
    timing.per_byte = timing.per_byte.map(|value| value * per_byte);
    timing.injection.rank *= per_byte;
    timing.injection.node *= per_byte;
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
    let (path, benchmark, error) = (path.display(), measured.benchmark, fit.error * 100.0);
    let source = format!("fitted to {path} ({benchmark}), error {error:.0} %");
    let sources = ["startup", "per_byte", "injection"].map(|key| (key, &*source));
    write_or_print(out, &measured_file(scaled(machine, fit), sources)?)?;
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
            Field::Setting(Some(row.algorithm.clone()), row.parameters.clone()),
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
