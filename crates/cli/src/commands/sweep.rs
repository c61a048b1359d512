use std::io::Write;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use topocoll::contention::{ContentionModel, Estimate};
use topocoll::{
    Budget, COMMON, Catalogue, Choice, Exchange, Fastest, Line, Machine, NotSimulated, Parameters,
    Priced, Problem, Sweep,
};
use topocoll_report::names::Names;

use super::heading::{about_sizes, assumed_by, title_of};
use super::say_refused;
use super::within::{self, Left, two_digits};
use super::{front, of_operation, refused, request};
use crate::host::memory;
use crate::machine::{catalogue, exchange, machine};
use crate::render::{
    Answer, Axes, Blocks, Crossover, Curve, Field, Head, PartlyPriced, Plot, Rejected, Seconds,
    Stroke, Unsearched, bytes, check_files, print, seconds, table, write_file, write_picture,
};
use crate::values::{Settings, SweptSizes};
use crate::{Outcome, args};

/// Points without a time that the text names.
const SHOWN: usize = 6;

/// Most lines of a sweep.
const MAX_LINES: usize = 64;

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    block_sizes: Vec<u64>,
    lines: Vec<Drawn>,
    crossovers: Vec<Crossover>,
    #[serde(skip_serializing_if = "Option::is_none")]
    crossovers_with_published: Option<Vec<Crossover>>,
    rejected: Vec<Rejected>,
    subsets: Vec<PartlyPriced>,
    not_searched: Vec<Unsearched>,
    undecided: Vec<String>,
    split: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated: Option<ByModel>,
}

/// A sweep by simulation.
#[derive(Serialize)]
struct ByModel {
    model: &'static str,
    sync: &'static str,
    /// Seconds of one core; none is unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_seconds: Option<f64>,
    /// The fastest simulated point, from each block size at which it changes.
    fastest: Vec<Crossover>,
    /// Points that are missing from the lines.
    not_simulated: Vec<Missing>,
}

#[derive(Serialize)]
struct Missing {
    block_bytes: u64,
    algorithm: String,
    parameters: Parameters,
    #[serde(flatten)]
    left: Left,
}

#[derive(Serialize)]
struct Drawn {
    algorithm: String,
    kind: &'static str,
    given: Parameters,
    points: Vec<Point>,
}

#[derive(Serialize)]
struct Point {
    block_bytes: u64,
    parameters: Parameters,
    #[serde(flatten)]
    seconds: Seconds,
    steps: u64,
    blocks: Blocks,
    link_blocks: Blocks,
    bound_ratio: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    priced: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated_seconds: Option<f64>,
}

/// The schedules, and the formulas without a schedule if requested.
struct Found {
    sweep: Sweep,
    published: Option<(Vec<Line>, Vec<topocoll::Rejected>)>,
    simulated: Option<Simulated>,
}

/// Times by simulation.
struct Simulated {
    model: &'static ContentionModel,
    budget: Option<f64>,
    /// The option that simulates all points.
    raise: String,
    /// Line by line, each in the order of its block sizes.
    found: Vec<(Estimate, Result<f64, NotSimulated>)>,
}

/// A point with its time by the model.
#[derive(Clone, Copy)]
struct Timed<'f> {
    choice: &'f Choice,
    seconds: f64,
    /// Whether this is the least that it takes.
    floor: bool,
}

impl Found {
    /// The formulas that apply.
    fn formulas(&self) -> &[Line] {
        self.published.as_ref().map_or(&[], |(lines, _)| lines)
    }

    /// The formulas that do not apply.
    fn rejected(&self) -> &[topocoll::Rejected] {
        self.published.as_ref().map_or(&[], |(_, rejected)| rejected)
    }

    /// All lines, and whether each is a formula.
    fn lines(&self) -> impl Iterator<Item = (&Line, bool)> {
        let schedules = self.sweep.lines.iter().map(|line| (line, false));
        schedules.chain(self.formulas().iter().map(|line| (line, true)))
    }

    /// The points of a line with a time, each with the position of its block size. `number` counts
    /// all lines; those of formulas are not simulated.
    fn points<'f>(
        &'f self,
        number: usize,
        line: &'f Line,
    ) -> impl Iterator<Item = (usize, Timed<'f>)> {
        let sizes = self.sweep.block_sizes.len();
        line.points.iter().enumerate().filter_map(move |(i, choice)| {
            let (seconds, floor) = match &self.simulated {
                Some(simulated) => (*simulated.found[number * sizes + i].1.as_ref().ok()?, false),
                None => (choice.price.time.total(), choice.price.priced == Priced::AtLeast),
            };
            Some((i, Timed { choice, seconds, floor }))
        })
    }

    /// The two fastest schedules at the i-th block size.
    fn best_two(&self, i: usize) -> [Option<Timed<'_>>; 2] {
        let lines = self.sweep.lines.iter().enumerate();
        two_of(lines.filter_map(|(number, line)| {
            Some(self.points(number, line).find(|&(size, _)| size == i)?.1)
        }))
    }

    /// The fastest simulated schedule, from each block size at which it changes; `None` where no
    /// point is simulated.
    fn winners(&self) -> Vec<(u64, Option<&Choice>)> {
        let mut winners: Vec<(u64, Option<&Choice>)> = Vec::new();
        let key = |choice: &Choice| (choice.algorithm.clone(), choice.parameters.clone());
        for (i, &bytes) in self.sweep.block_sizes.iter().enumerate() {
            let [best, _] = self.best_two(i).map(|best| best.map(|timed| timed.choice));
            if winners.last().is_none_or(|(_, last)| last.map(key) != best.map(key)) {
                winners.push((bytes, best));
            }
        }
        winners
    }

    /// The points without a time: the block size, the setting, the estimate and the reason.
    fn missing(&self) -> impl Iterator<Item = (u64, &Choice, &Estimate, &NotSimulated)> {
        let found = self.simulated.iter().flat_map(|simulated| &simulated.found);
        let lines = self.sweep.lines.iter();
        let points = lines.flat_map(|line| self.sweep.block_sizes.iter().zip(&line.points));
        points.zip(found).filter_map(|((&bytes, choice), (estimate, found))| {
            Some((bytes, choice, estimate, found.as_ref().err()?))
        })
    }
}

pub(crate) fn run(args: &args::Sweep) -> anyhow::Result<Outcome> {
    let options = &args.common.options;
    let model = request::model(args.model);
    if args.front {
        return front::run(args);
    }
    check_files(&files(args))?;
    let machine = machine(&args.common.machine, options)?;
    within::check(model, &machine)?;
    let catalogue = catalogue(&machine, options, &args.schedule)?;
    let mut budget = Budget::default();
    (budget.memory, budget.simulation) = (memory(), args.budget);
    budget.search = args.budget.unwrap_or(budget.search);
    let exchange = exchange(&machine, options, None)?.catalogue(&catalogue).budget(budget);
    let sizes = block_sizes(&args.blocks, args.points)?;
    let mut found = Found {
        sweep: exchange.sweep(&sizes, &asked(args, &catalogue)?)?,
        published: args.published.then(|| exchange.published(&sizes)),
        simulated: None,
    };
    say_refused(&args.schedule, &found.sweep.rejected);
    check_served(args, !found.sweep.lines.is_empty())?;
    if let Some(model) = model {
        found.simulated = Some(simulated(&exchange, &found.sweep, model)?);
    }
    let (machine, problem) = (exchange.machine(), exchange.problem());
    write_plot(args, || plot(machine, problem, &found))?;
    if let Some(path) = &args.csv {
        write_file(path, |file| write_csv(&found, file))?;
    }
    let report = report(machine, problem, &found);
    print(options.json, &report, || text(&exchange, &found, args, &catalogue))?;
    Ok(Outcome::Fine)
}

/// Simulates the points that fit the budget.
fn simulated(
    exchange: &Exchange<'_>,
    sweep: &Sweep,
    model: &'static ContentionModel,
) -> anyhow::Result<Simulated> {
    let simulations = within::named(exchange.sweep_simulations(sweep, model), model)?;
    let found = within::run(&simulations, model, "point")?;
    let estimates = simulations.estimates().map(|(estimate, _)| estimate);
    Ok(Simulated {
        model,
        budget: simulations.budget(),
        raise: within::raise(&simulations),
        found: estimates.zip(found).collect(),
    })
}

/// Checks that an algorithm serves the exchange.
pub(super) fn check_served(args: &args::Sweep, served: bool) -> anyhow::Result<()> {
    anyhow::ensure!(
        served,
        "no algorithm serves this exchange: `topocoll algorithms {}` says why",
        args.common.machine
    );
    Ok(())
}

/// The requested files.
pub(super) fn files(args: &args::Sweep) -> [(&'static str, Option<&Path>); 2] {
    [("--svg", &args.svg), ("--csv", &args.csv)].map(|(option, path)| (option, path.as_deref()))
}

/// Writes a plot into the requested file.
pub(super) fn write_plot(args: &args::Sweep, plot: impl FnOnce() -> Plot) -> anyhow::Result<()> {
    let Some(path) = &args.svg else { return Ok(()) };
    write_picture(path, &plot()).context("--svg")
}

/// The block sizes: listed, in powers of two, or `points` in equal ratios.
fn block_sizes(asked: &SweptSizes, points: Option<u32>) -> anyhow::Result<Vec<u64>> {
    let (from, to) = match asked {
        SweptSizes::FromTo(from, to) => (*from, *to),
        SweptSizes::List(list) => {
            anyhow::ensure!(points.is_none(), "--points divides a range, but --blocks is a list");
            return Ok(list.clone());
        }
    };
    let mut sizes: Vec<u64> = match points {
        None => std::iter::successors(Some(from), |size| Some(size * 2))
            .take_while(|&size| size < to)
            .collect(),
        Some(points) => {
            let ratio = to as f64 / from as f64;
            let size = |i| (from as f64 * ratio.powf(f64::from(i) / f64::from(points - 1))).round();
            (0..points - 1).map(|i| size(i) as u64).filter(|&size| size < to).collect()
        }
    };
    sizes.push(to);
    sizes.dedup();
    Ok(sizes)
}

/// The requested lines: each algorithm with each combination of the values set for
/// parameters that it has.
pub(super) fn asked(
    args: &args::Sweep,
    catalogue: &Catalogue,
) -> anyhow::Result<Vec<(String, Parameters)>> {
    let has = |name: &str, key: &str| {
        COMMON.iter().any(|common| common.name == key)
            || catalogue.find(name).is_ok_and(|algorithm| algorithm.info().parameter(key).is_some())
    };
    let mut asked: Vec<(String, Parameters)> = Vec::new();
    for (i, name) in args.algorithm.iter().enumerate() {
        anyhow::ensure!(!args.algorithm[..i].contains(name), "--algorithm {name} is given twice");
        asked.push((name.clone(), Parameters::new()));
    }
    for (i, (key, Settings(values))) in args.set.iter().enumerate() {
        let twice = args.set[..i].iter().any(|(other, _)| other == key);
        anyhow::ensure!(!twice, "parameter `{key}` is set twice");
        // A parameter that no algorithm has goes to all algorithms, which refuse it.
        let nobodys = asked.iter().all(|(name, _)| !has(name, key));
        let mut product = Vec::new();
        for (name, setting) in asked {
            let here = if nobodys || has(&name, key) { &values[..] } else { &[] };
            product.extend(here.iter().map(|value| {
                let mut setting = setting.clone();
                setting.insert(key.clone(), value.clone());
                (name.clone(), setting)
            }));
            if here.is_empty() {
                product.push((name, setting));
            }
        }
        asked = product;
        anyhow::ensure!(asked.len() <= MAX_LINES, "more than {MAX_LINES} lines are requested");
    }
    Ok(asked)
}

pub(super) fn kind(published: bool) -> &'static str {
    if published { "published formula" } else { "schedule" }
}

/// An algorithm with a setting, marked if it is a published formula.
pub(super) fn named(algorithm: &str, setting: &Parameters, published: bool) -> String {
    match published {
        true => format!("{algorithm} (published formula)"),
        false => crate::render::named(algorithm, setting),
    }
}

fn report(machine: &Machine, problem: &Problem, found: &Found) -> Report {
    let simulates = found.simulated.is_some();
    let point = |(i, Timed { choice, seconds, .. }): (usize, Timed<'_>)| Point {
        block_bytes: found.sweep.block_sizes[i],
        parameters: choice.parameters.clone(),
        seconds: choice.price.time.into(),
        steps: choice.price.steps,
        blocks: Blocks(choice.price.blocks),
        link_blocks: Blocks(choice.price.link_blocks),
        bound_ratio: choice.bound_ratio,
        priced: (choice.price.priced == Priced::AtLeast).then_some("at_least"),
        simulated_seconds: simulates.then_some(seconds),
    };
    let by_model = |simulated: &Simulated| ByModel {
        model: simulated.model.name,
        sync: "free",
        budget_seconds: simulated.budget,
        fastest: (found.winners().into_iter())
            .filter_map(|(block_bytes, choice)| {
                let Choice { algorithm, parameters, .. } = choice?.clone();
                Some(Crossover {
                    block_bytes,
                    to_bytes: None,
                    algorithm,
                    kind: None,
                    parameters,
                    changes_free_running: Vec::new(),
                })
            })
            .collect(),
        not_simulated: (found.missing())
            .map(|(block_bytes, choice, estimate, reason)| Missing {
                block_bytes,
                algorithm: choice.algorithm.clone(),
                parameters: choice.parameters.clone(),
                left: Left::new(estimate, reason),
            })
            .collect(),
    };
    let crossovers = |list: Vec<Fastest>| {
        list.into_iter()
            .map(|fastest| Crossover {
                block_bytes: fastest.block_bytes,
                to_bytes: fastest.to_bytes,
                algorithm: fastest.algorithm,
                kind: Some(kind(fastest.published)),
                parameters: fastest.parameters,
                changes_free_running: fastest.changes,
            })
            .collect()
    };
    let sweep = &found.sweep;
    let schedules = sweep.rejected.iter().map(|row| Rejected::of_kind(row, kind(false)));
    let formulas = found.rejected().iter().map(|row| Rejected::of_kind(row, kind(true)));
    Report {
        head: Head::of_sizes(machine, problem),
        block_sizes: found.sweep.block_sizes.clone(),
        lines: (found.lines().enumerate())
            .map(|(number, (line, published))| Drawn {
                algorithm: line.algorithm.clone(),
                kind: kind(published),
                given: line.given.clone(),
                points: found.points(number, line).map(point).collect(),
            })
            .collect(),
        crossovers: crossovers(sweep.crossovers.clone()),
        crossovers_with_published: (found.published.as_ref())
            .map(|(lines, _)| crossovers(sweep.crossovers_with(lines))),
        rejected: schedules.chain(formulas).collect(),
        subsets: sweep.partly_priced.iter().map(PartlyPriced::from).collect(),
        not_searched: sweep.unsearched.iter().map(Unsearched::from).collect(),
        undecided: sweep.undecided.clone(),
        split: sweep.split.clone(),
        simulated: found.simulated.as_ref().map(by_model),
    }
}

/// `1 B to 1 MiB`.
fn range(found: &Found) -> String {
    let sizes = &found.sweep.block_sizes;
    match sizes.len() {
        1 => bytes(sizes[0]),
        many => format!("{} to {}", bytes(sizes[0]), bytes(sizes[many - 1])),
    }
}

fn text(
    exchange: &Exchange<'_>,
    found: &Found,
    args: &args::Sweep,
    catalogue: &Catalogue,
) -> Answer {
    let (machine, problem) = (exchange.machine(), exchange.problem());
    let best: Vec<_> = (0..found.sweep.block_sizes.len()).map(|i| found.best_two(i)).collect();
    let choices = best.iter().flatten().flatten().map(|timed| timed.choice);
    let choices = choices.chain(found.missing().take(SHOWN).map(|(_, choice, ..)| choice));
    let choices = choices.map(|choice| (&*choice.algorithm, &choice.parameters));
    let winners = found.sweep.crossovers.iter().filter(|_| found.simulated.is_none());
    let winners = winners.map(|won| (&*won.algorithm, &won.parameters));
    let names = Names::new(catalogue, choices.chain(winners));
    let model = found.simulated.as_ref().map(|simulated| simulated.model.name);
    let formulas = !found.formulas().is_empty();
    let mut header =
        vec!["block", "fastest", "runner-up", "time", "of the bound", "runner-up time"];
    if let Some(model) = model {
        (header[3], header[4]) = (model, "steps model");
    }
    if formulas {
        header.insert(3, "published formula");
        header.push("formula time");
    }
    let rows = best.iter().enumerate().map(|(i, &[first, second])| {
        let name = |timed: Option<Timed<'_>>| match timed {
            Some(Timed { choice, .. }) => {
                let setting = names.setting(&choice.algorithm, &choice.parameters);
                Field::Setting(Some(choice.algorithm.clone()), setting)
            }
            None => "-".to_owned().into(),
        };
        let ratio = first.map_or("-".to_owned(), |Timed { choice, .. }| match model {
            Some(_) => seconds(choice.price.time.total()),
            None => format!("{:.2}x", choice.bound_ratio),
        });
        let size = bytes(found.sweep.block_sizes[i]);
        let [quickest, other] = [time(first), time(second)].map(Field::from);
        let mut row = vec![size.into(), name(first), name(second), quickest, ratio.into(), other];
        if formulas {
            let [formula, _] = two_of(found.formulas().iter().map(|line| {
                let choice = &line.points[i];
                Timed { choice, seconds: choice.price.time.total(), floor: false }
            }));
            row.insert(3, name(formula));
            row.push(time(formula).into());
        }
        row
    });
    let table = table(&header, if formulas { 4 } else { 3 }, rows);
    let mut winners = match &found.simulated {
        Some(simulated) => by_simulation(simulated, found, &names),
        None => fastest("Fastest", found.sweep.block_sizes[0], &found.sweep.crossovers, &names),
    };
    if winners.is_empty() {
        winners = "The fastest schedule of each block size:".to_owned();
    }
    let mut answer = Answer::new(winners);
    if formulas {
        let crossovers = found.sweep.crossovers_with(found.formulas());
        answer = answer.about(fastest(
            "With published formulas",
            found.sweep.block_sizes[0],
            &crossovers,
            &names,
        ));
    }
    answer
        .about(about_sizes(machine, problem, &range(found)) + ".")
        .assuming(assumed_by(machine, problem.both_ports(), &args.common.options))
        .table(&table)
        .notes(notes(found))
        .list(&heading(found), missing(found, &names))
        .list("Does not apply:", why(args, exchange, &found.sweep.rejected, found.rejected()))
}

/// `X from 1 B, Y from 1 KiB to 4 KiB, undecided from 4097 B, Z from 1 MiB`: names from a block size on,
/// some of them to a last one.
pub(super) fn by_size(least: u64, parts: &[(u64, Option<u64>, String)]) -> String {
    let mut out = Vec::new();
    if let Some(&(first, ..)) = parts.first().filter(|&&(first, ..)| first > least) {
        out.push(format!("undecided to {}", bytes(first - 1)));
    }
    for (from, to, name) in parts {
        match to {
            None => out.push(format!("{name} from {}", bytes(*from))),
            Some(to) => {
                out.push(format!("{name} from {} to {}", bytes(*from), bytes(*to)));
                out.push(format!("undecided from {}", bytes(to + 1)));
            }
        }
    }
    out.join(", ")
}

/// The two fastest of some points.
fn two_of<'f>(points: impl Iterator<Item = Timed<'f>>) -> [Option<Timed<'f>>; 2] {
    let mut points: Vec<_> = points.collect();
    points.sort_by(|a, b| a.floor.cmp(&b.floor).then(a.seconds.total_cmp(&b.seconds)));
    [points.first().copied(), points.get(1).copied()]
}

/// The time of a point.
fn time(timed: Option<Timed<'_>>) -> String {
    let Some(Timed { seconds: time, floor, .. }) = timed else { return "-".to_owned() };
    format!("{}{}", if floor { ">= " } else { "" }, seconds(time))
}

/// The fastest simulated points, and how many points may be faster.
fn by_simulation(simulated: &Simulated, found: &Found, names: &Names<'_>) -> String {
    let parts = found.winners().into_iter().map(|(from, choice)| {
        let name = choice.map_or("nothing simulated".to_owned(), |choice| names.of(choice));
        format!("{name} from {}", bytes(from))
    });
    let parts: Vec<_> = parts.collect();
    let open = found.missing().filter(|(.., reason)| within::is_open(reason)).count();
    let open = match open {
        0 => String::new(),
        1 => "; 1 point is not simulated, and may be faster".to_owned(),
        many => format!("; {many} points are not simulated, and may be faster"),
    };
    let model = simulated.model.name;
    format!("Fastest by the {model} model: {}{open}.\n", parts.join(", "))
}

/// The heading of the points without a time.
fn heading(found: &Found) -> String {
    found
        .simulated
        .as_ref()
        .map_or(String::new(), |simulated| within::heading(simulated.budget, &simulated.raise))
}

/// The points without a time, with their estimates.
fn missing(found: &Found, names: &Names<'_>) -> String {
    let mut out = String::new();
    for (size, choice, estimate, reason) in found.missing().take(SHOWN) {
        let about = within::about(estimate, reason);
        out += &format!("  {} at {}: {about}\n", names.of(choice), bytes(size));
    }
    let rest = found.missing().count().saturating_sub(SHOWN);
    if rest > 0 {
        out += &format!("  and {rest} more, which --json lists\n");
    }
    out
}

fn fastest(what: &str, least: u64, list: &[Fastest], names: &Names<'_>) -> String {
    if list.is_empty() {
        return String::new();
    }
    let parts: Vec<_> = (list.iter())
        .map(|fastest| {
            let setting = names.setting(&fastest.algorithm, &fastest.parameters);
            let name = named(&fastest.algorithm, &setting, fastest.published);
            (fastest.block_bytes, fastest.to_bytes, name)
        })
        .collect();
    format!("{what}: {}.\n", by_size(least, &parts))
}

fn notes(found: &Found) -> String {
    let mut out = String::new();
    for name in &found.sweep.split {
        out += &format!(
            "{name} splits blocks: it is priced at every size, and its crossovers are exact to the bytes of a part.\n"
        );
    }
    for name in &found.sweep.undecided {
        out += &format!("{name} is too large here to be priced exactly, and might be better.\n");
    }
    out + &partly(&found.sweep.partly_priced) + &not_searched(&found.sweep.unsearched)
}

/// Searches that exceed the budget.
pub(super) fn not_searched(unsearched: &[topocoll::Unsearched]) -> String {
    let line = |one: &topocoll::Unsearched| {
        let (name, budget) = (&one.algorithm, two_digits(one.seconds, f64::ceil));
        format!(
            "{name} may be faster, and searching exceeds the budget: --budget {budget}s searches.\n"
        )
    };
    unsearched.iter().map(line).collect()
}

/// Settings that were not priced.
pub(super) fn partly(partly_priced: &[topocoll::PartlyPriced]) -> String {
    let mut out = String::new();
    for topocoll::PartlyPriced { algorithm, priced, settings: all, .. } in partly_priced {
        out += &format!(
            "Of the {all} settings of {algorithm}, {priced} were priced: those that trade steps for blocks best.\n"
        );
    }
    out
}

/// With `--why`, or where all lines are named, the algorithms of the operation that do not apply.
pub(super) fn why(
    args: &args::Sweep,
    exchange: &Exchange<'_>,
    rejected: &[topocoll::Rejected],
    formulas: &[topocoll::Rejected],
) -> String {
    if !args.why && args.algorithm.is_empty() {
        return String::new();
    }
    let rejected =
        of_operation(exchange, rejected).map(|row| (row.algorithm.clone(), &*row.reason));
    let formulas =
        formulas.iter().map(|row| (named(&row.algorithm, &Parameters::new(), true), &*row.reason));
    let all: Vec<_> = rejected.chain(formulas).collect();
    refused(all.iter().map(|(name, reason)| (&**name, *reason)))
}

/// A setting in one CSV column.
pub(super) fn spaced(setting: &Parameters) -> String {
    let setting: Vec<_> = setting.iter().map(|(key, value)| format!("{key}={value}")).collect();
    setting.join(" ")
}

fn write_csv(found: &Found, file: impl Write) -> anyhow::Result<()> {
    let mut csv = csv::Writer::from_writer(file);
    let columns = [
        "block_bytes",
        "algorithm",
        "parameters",
        "kind",
        "priced",
        "time_seconds",
        "startup_seconds",
        "transmission_seconds",
        "propagation_seconds",
        "rearrangement_seconds",
        "barrier_seconds",
        "steps",
        "blocks",
        "link_blocks",
        "bound_ratio",
    ];
    let simulated = found.simulated.as_ref();
    let added = simulated.map_or(&[][..], |_| &["model", "simulated_seconds"]);
    csv.write_record(columns.iter().chain(added))?;
    for (i, block_bytes) in found.sweep.block_sizes.iter().enumerate() {
        for (number, (line, published)) in found.lines().enumerate() {
            let point = found.points(number, line).find(|&(size, _)| size == i);
            let Some((_, Timed { choice, seconds, .. })) = point else { continue };
            let (price, time) = (&choice.price, choice.price.time);
            let mut row = vec![
                block_bytes.to_string(),
                choice.algorithm.clone(),
                spaced(&choice.parameters),
                kind(published).to_owned(),
                price.priced.name().to_owned(),
            ];
            let terms = [
                time.total(),
                time.startup,
                time.transmission,
                time.propagation,
                time.rearrangement,
                time.barrier,
            ];
            row.extend(terms.map(|term| format!("{term:e}")));
            row.push(price.steps.to_string());
            let rest = [price.blocks, price.link_blocks, choice.bound_ratio];
            row.extend(rest.map(|number| number.to_string()));
            if let Some(simulated) = simulated {
                row.extend([simulated.model.name.to_owned(), format!("{seconds:e}")]);
            }
            csv.write_record(row)?;
        }
    }
    csv.flush().context("cannot write all rows")
}

fn plot(machine: &Machine, problem: &Problem, found: &Found) -> Plot {
    let formulas = !found.formulas().is_empty();
    let dashed = if formulas { "; dashed: a published formula, no schedule" } else { "" };
    let model = found.simulated.as_ref().map(|simulated| simulated.model.name);
    let curve = |(number, (line, published)): (usize, (&Line, bool))| {
        let points: Vec<_> = found.points(number, line).collect();
        let floor = points.iter().any(|(_, timed)| timed.floor);
        let name = named(&line.algorithm, &line.given, published);
        Curve {
            label: if floor { format!("{name}, at least") } else { name },
            stroke: if published { Stroke::Dashed } else { Stroke::Solid },
            points: (points.iter())
                .map(|&(i, timed)| (found.sweep.block_sizes[i] as f64, timed.seconds))
                .collect(),
        }
    };
    let program = concat!("topocoll ", env!("CARGO_PKG_VERSION"));
    let bounds = found.sweep.block_sizes.iter().zip(&found.sweep.bounds);
    let points: Vec<_> = bounds.map(|(&bytes, bound)| (bytes as f64, bound.seconds)).collect();
    // A logarithmic axis cannot show a bound of zero time, and the bounds are of the steps model.
    let shown = model.is_none() && points.iter().all(|point| point.1 > 0.0);
    let limit =
        shown.then(|| Curve { label: "lower bound".to_owned(), stroke: Stroke::Limit, points });
    Plot {
        axes: Axes::TimeOverSize,
        caption: [
            title_of(machine, &about_sizes(machine, problem, &range(found))),
            match model {
                Some(model) => format!("simulated by the {model} model, {program}"),
                None => format!("predicted by the steps model, {program}{dashed}"),
            },
        ],
        curves: (found.lines().enumerate().map(curve).chain(limit))
            .filter(|curve| !curve.points.is_empty())
            .collect(),
    }
}
