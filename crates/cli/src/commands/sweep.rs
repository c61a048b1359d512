mod answer;
mod files;

use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use topocoll::contention::{ContentionModel, Estimate};
use topocoll::{
    Budget, COMMON, Catalogue, Choice, Exchange, Fastest, Line, Machine, NotSimulated, Parameters,
    Priced, Problem, Sweep,
};

use self::answer::text;
pub(super) use self::answer::{not_searched, partly, why};
use self::files::{plot, write_csv};
use super::say_refused;
use super::within::{self, Left};
use super::{front, request};
use crate::bar::PROGRESS;
use crate::host::memory;
use crate::machine::{catalogue, exchange, machine};
use crate::render::{
    Bandwidth, Blocks, Crossover, Head, PartlyPriced, Plot, Rejected, Seconds, Unsearched,
    check_files, print, write_file, write_picture,
};
use crate::values::{Settings, SweptSizes};
use crate::{Outcome, args};

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
    #[serde(flatten)]
    bandwidth: Bandwidth,
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
    /// The bandwidth of an exchange at a block size that takes this time.
    fn bandwidth(&self, problem: &Problem, size: usize, seconds: f64) -> Bandwidth {
        let mut sized = *problem;
        sized.block_bytes = self.sweep.block_sizes[size];
        Bandwidth::new(&sized, seconds)
    }

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
    let machine = request::placed(machine(&args.common.machine, options)?, &args.placing)?;
    within::check(model, &machine)?;
    let catalogue = catalogue(&machine, options, &args.schedule)?;
    let mut budget = Budget::default();
    (budget.memory, budget.simulation) = (memory(), args.budget);
    budget.search = args.budget.unwrap_or(budget.search);
    budget.progress = PROGRESS;
    let exchange =
        exchange(&machine, options, &args::Part::WHOLE)?.catalogue(&catalogue).budget(budget);
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

/// The two fastest of some points.
fn two_of<'f>(points: impl Iterator<Item = Timed<'f>>) -> [Option<Timed<'f>>; 2] {
    let mut points: Vec<_> = points.collect();
    points.sort_by(|a, b| a.floor.cmp(&b.floor).then(a.seconds.total_cmp(&b.seconds)));
    [points.first().copied(), points.get(1).copied()]
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
        bandwidth: found.bandwidth(problem, i, seconds),
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

/// A setting in one CSV column.
pub(super) fn spaced(setting: &Parameters) -> String {
    let setting: Vec<_> = setting.iter().map(|(key, value)| format!("{key}={value}")).collect();
    setting.join(" ")
}
