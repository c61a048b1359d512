use std::io::Write;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use topocoll::{Choice, Fastest, Line, Machine, Parameters, Priced, Problem, Sweep, find, sweep};

use super::{exchange_of, front};
use crate::machine::{machine, problem};
use crate::render::{
    Axes, Blocks, Curve, Field, Format, Head, Plot, Seconds, Stroke, bytes, check_files,
    parameters, print, seconds, table, write_file, write_picture,
};
use crate::values::{BlockSizes, Settings};
use crate::{Outcome, args};

/// The most lines of a sweep.
const MAX_LINES: usize = 64;

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    block_sizes: Vec<u64>,
    lines: Vec<Drawn>,
    crossovers: Vec<Crossover>,
    crossovers_with_published: Vec<Crossover>,
    rejected: Vec<Rejected>,
    subsets: Vec<PartlyPriced>,
    undecided: Vec<&'static str>,
    split: Vec<&'static str>,
}

#[derive(Serialize)]
struct Drawn {
    algorithm: &'static str,
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
}

#[derive(Serialize)]
struct Crossover {
    block_bytes: u64,
    algorithm: &'static str,
    kind: &'static str,
    parameters: Parameters,
}

/// What does not serve.
#[derive(Serialize)]
pub(super) struct Rejected {
    algorithm: &'static str,
    kind: &'static str,
    reason: String,
}

impl From<&topocoll::Rejected> for Rejected {
    fn from(rejected: &topocoll::Rejected) -> Self {
        let topocoll::Rejected { algorithm, published, ref reason, .. } = *rejected;
        Self { algorithm, kind: kind(published), reason: reason.clone() }
    }
}

/// An algorithm of which only some settings were priced.
#[derive(Serialize)]
pub(super) struct PartlyPriced {
    algorithm: &'static str,
    settings_priced: usize,
    settings: usize,
}

impl From<&topocoll::PartlyPriced> for PartlyPriced {
    fn from(subset: &topocoll::PartlyPriced) -> Self {
        let topocoll::PartlyPriced { algorithm, priced, settings, .. } = *subset;
        Self { algorithm, settings_priced: priced, settings }
    }
}

pub(crate) fn run(args: &args::Sweep) -> anyhow::Result<Outcome> {
    let options = &args.common.options;
    if args.front {
        return front::run(args);
    }
    anyhow::ensure!(options.block.is_none(), "--block is one size: a sweep takes --blocks");
    check_files(&files(args))?;
    let machine = machine(&args.common.machine, options)?;
    let problem = problem(&machine, options)?;
    let sizes = block_sizes(&args.blocks, args.points)?;
    let found = sweep(&machine, &problem, &sizes, &asked(args)?)?;
    check_served(args, !found.lines.is_empty())?;
    write_plots(args, || plot(&machine, &problem, &found))?;
    if let Some(path) = &args.csv {
        write_file(path, |file| write_csv(&found, file))?;
    }
    let report = report(&machine, &problem, &found);
    print(options.json, &report, || text(&machine, &problem, &found))?;
    Ok(Outcome::Fine)
}

/// Something was found.
pub(super) fn check_served(args: &args::Sweep, served: bool) -> anyhow::Result<()> {
    anyhow::ensure!(
        served,
        "no algorithm serves this exchange: `topocoll algorithms {}` says why",
        args.common.machine
    );
    Ok(())
}

/// The files that are asked for.
pub(super) fn files(args: &args::Sweep) -> [(&'static str, Option<&Path>); 3] {
    [("--svg", &args.svg), ("--png", &args.png), ("--csv", &args.csv)]
        .map(|(option, path)| (option, path.as_deref()))
}

/// Writes a plot into the files that are asked for.
pub(super) fn write_plots(args: &args::Sweep, plot: impl FnOnce() -> Plot) -> anyhow::Result<()> {
    let files = [(&args.svg, Format::Svg), (&args.png, Format::Png)];
    if files.iter().all(|(path, _)| path.is_none()) {
        return Ok(());
    }
    let plot = plot();
    for (path, format) in files {
        if let Some(path) = path {
            write_picture(path, format, &plot).context("--svg and --png")?;
        }
    }
    Ok(())
}

/// The block sizes: listed, in powers of two, or so many in equal ratios.
fn block_sizes(asked: &BlockSizes, points: Option<u32>) -> anyhow::Result<Vec<u64>> {
    let (from, to) = match asked {
        BlockSizes::FromTo(from, to) => (*from, *to),
        BlockSizes::List(list) => {
            anyhow::ensure!(points.is_none(), "--points divides a range, and --blocks is a list");
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

/// What the command line asks for: each algorithm with each combination of the values set for
/// parameters that it has.
pub(super) fn asked(args: &args::Sweep) -> anyhow::Result<Vec<(String, Parameters)>> {
    let has = |name: &str, key: &str| {
        let known = find(name).map_or(&[][..], |algorithm| algorithm.parameters());
        known.iter().any(|parameter| parameter.name == key)
    };
    let mut asked: Vec<(String, Parameters)> = Vec::new();
    for (i, name) in args.algorithm.iter().enumerate() {
        anyhow::ensure!(!args.algorithm[..i].contains(name), "--algorithm {name} is there twice");
        asked.push((name.clone(), Parameters::new()));
    }
    for (i, (key, Settings(values))) in args.set.iter().enumerate() {
        let twice = args.set[..i].iter().any(|(other, _)| other == key);
        anyhow::ensure!(!twice, "parameter `{key}` is set twice");
        // One that none has is given to all, who refuse it.
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
        anyhow::ensure!(asked.len() <= MAX_LINES, "more than {MAX_LINES} lines are asked for");
    }
    Ok(asked)
}

pub(super) fn kind(published: bool) -> &'static str {
    if published { "published formula" } else { "schedule" }
}

/// An algorithm with a setting, and what it is if no schedule.
pub(super) fn named(algorithm: &str, setting: &Parameters, published: bool) -> String {
    match (published, setting.is_empty()) {
        (true, _) => format!("{algorithm} (published formula)"),
        (false, true) => algorithm.to_owned(),
        (false, false) => format!("{algorithm} ({})", parameters(setting)),
    }
}

fn report(machine: &Machine, problem: &Problem, found: &Sweep) -> Report {
    let point = |(&block_bytes, choice): (&u64, &Choice)| Point {
        block_bytes,
        parameters: choice.parameters.clone(),
        seconds: choice.price.time.into(),
        steps: choice.price.steps,
        blocks: Blocks(choice.price.blocks),
        link_blocks: Blocks(choice.price.link_blocks),
        bound_ratio: choice.bound_ratio,
        priced: (choice.price.priced == Priced::AtLeast).then_some("at_least"),
    };
    let crossovers = |list: &[Fastest]| {
        list.iter()
            .map(|fastest| Crossover {
                block_bytes: fastest.block_bytes,
                algorithm: fastest.algorithm,
                kind: kind(fastest.published),
                parameters: fastest.parameters.clone(),
            })
            .collect()
    };
    Report {
        head: Head::of_sizes(machine, problem),
        block_sizes: found.block_sizes.clone(),
        lines: (found.lines.iter())
            .map(|line| Drawn {
                algorithm: line.algorithm,
                kind: kind(line.published),
                given: line.given.clone(),
                points: found.block_sizes.iter().zip(&line.points).map(point).collect(),
            })
            .collect(),
        crossovers: crossovers(&found.crossovers),
        crossovers_with_published: crossovers(&found.crossovers_with_published),
        rejected: found.rejected.iter().map(Rejected::from).collect(),
        subsets: found.subsets.iter().map(PartlyPriced::from).collect(),
        undecided: found.undecided.clone(),
        split: found.split.clone(),
    }
}

/// `1 B to 1 MiB`.
fn range(found: &Sweep) -> String {
    let sizes = &found.block_sizes;
    match sizes.len() {
        1 => bytes(sizes[0]),
        many => format!("{} to {}", bytes(sizes[0]), bytes(sizes[many - 1])),
    }
}

fn text(machine: &Machine, problem: &Problem, found: &Sweep) -> String {
    let mut out = format!("{}\n\n", exchange_of(machine, problem, &range(found)));
    let formulas = found.lines.iter().any(|line| line.published);
    let mut header = vec!["block", "fastest", "runner-up", "time", "x bound", "runner-up time"];
    if formulas {
        header.insert(3, "published formula");
        header.push("formula time");
    }
    let rows = (0..found.block_sizes.len()).map(|i| {
        let [first, second] = best_two(found, i, false);
        let name = |choice: Option<&Choice>| match choice {
            Some(choice) => Field::Setting(choice.algorithm, choice.parameters.clone()),
            None => "-".to_owned().into(),
        };
        let ratio = first.map_or("-".to_owned(), |choice| format!("{:.2}", choice.bound_ratio));
        let size = bytes(found.block_sizes[i]);
        let [quickest, other] = [time(first), time(second)].map(Field::from);
        let mut row = vec![size.into(), name(first), name(second), quickest, ratio.into(), other];
        if formulas {
            let [formula, _] = best_two(found, i, true);
            row.insert(3, name(formula));
            row.push(time(formula).into());
        }
        row
    });
    out += &table(&header, if formulas { 4 } else { 3 }, rows);
    out += "\n";
    out += &fastest("Fastest", &found.crossovers);
    if formulas {
        out += &fastest("With published formulas", &found.crossovers_with_published);
    }
    out += &notes(found);
    out
}

/// The two fastest lines of a kind at the i-th block size.
fn best_two(found: &Sweep, i: usize, published: bool) -> [Option<&Choice>; 2] {
    let of_kind = |line: &&Line| line.published == published;
    let mut choices: Vec<_> =
        found.lines.iter().filter(of_kind).map(|line| &line.points[i]).collect();
    choices.sort_by(|a, b| {
        let key = |choice: &Choice| (choice.price.priced == Priced::AtLeast, choice.price.time);
        let (a, b) = (key(a), key(b));
        a.0.cmp(&b.0).then(a.1.total().total_cmp(&b.1.total()))
    });
    [choices.first().copied(), choices.get(1).copied()]
}

/// The predicted time of a choice.
fn time(choice: Option<&Choice>) -> String {
    let Some(Choice { price, .. }) = choice else { return "-".to_owned() };
    let floor = if price.priced == Priced::AtLeast { ">= " } else { "" };
    format!("{floor}{}", seconds(price.time.total()))
}

fn fastest(what: &str, list: &[Fastest]) -> String {
    if list.is_empty() {
        return String::new();
    }
    let parts: Vec<_> = (list.iter())
        .map(|fastest| {
            let name = named(fastest.algorithm, &fastest.parameters, fastest.published);
            format!("{name} from {}", bytes(fastest.block_bytes))
        })
        .collect();
    format!("{what}: {}.\n", parts.join(", "))
}

fn notes(found: &Sweep) -> String {
    let mut out = String::new();
    for name in &found.split {
        out += &format!(
            "{name} splits blocks: it is priced at every size, and crosses others to within the bytes of a part.\n"
        );
    }
    for name in &found.undecided {
        out += &format!("{name} is too large here to be priced exactly, and might be better.\n");
    }
    out + &left_out(&found.subsets, &found.rejected)
}

/// What was not priced, and what does not serve.
pub(super) fn left_out(
    subsets: &[topocoll::PartlyPriced],
    rejected: &[topocoll::Rejected],
) -> String {
    let mut out = String::new();
    for topocoll::PartlyPriced { algorithm, priced, settings: all, .. } in subsets {
        out += &format!(
            "Of the {all} settings of {algorithm}, {priced} were priced: those that trade steps for blocks best.\n"
        );
    }
    if !rejected.is_empty() {
        out += "\ndoes not apply:\n";
        for rejected in rejected {
            let name = named(rejected.algorithm, &Parameters::new(), rejected.published);
            out += &format!("  {name}: {}\n", rejected.reason);
        }
    }
    out
}

/// A setting as a column has it.
pub(super) fn spaced(setting: &Parameters) -> String {
    let setting: Vec<_> = setting.iter().map(|(key, value)| format!("{key}={value}")).collect();
    setting.join(" ")
}

fn write_csv(found: &Sweep, file: impl Write) -> anyhow::Result<()> {
    let mut csv = csv::Writer::from_writer(file);
    csv.write_record([
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
    ])?;
    for (i, block_bytes) in found.block_sizes.iter().enumerate() {
        for line in &found.lines {
            let choice = &line.points[i];
            let (price, time) = (&choice.price, choice.price.time);
            let mut row = vec![
                block_bytes.to_string(),
                choice.algorithm.to_owned(),
                spaced(&choice.parameters),
                kind(line.published).to_owned(),
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
            csv.write_record(row)?;
        }
    }
    csv.flush().context("cannot write all rows")
}

fn plot(machine: &Machine, problem: &Problem, found: &Sweep) -> Plot {
    let formulas = found.lines.iter().any(|line| line.published);
    let dashed = if formulas { "; dashed: a published formula, no schedule" } else { "" };
    let curve = |line: &Line| {
        let floor = line.points.iter().any(|choice| choice.price.priced == Priced::AtLeast);
        let name = named(line.algorithm, &line.given, line.published);
        Curve {
            label: if floor { format!("{name}, at least") } else { name },
            stroke: if line.published { Stroke::Dashed } else { Stroke::Solid },
            points: (found.block_sizes.iter().zip(&line.points))
                .map(|(&bytes, choice)| (bytes as f64, choice.price.time.total()))
                .collect(),
        }
    };
    let bounds = found.block_sizes.iter().zip(&found.bounds);
    let points: Vec<_> = bounds.map(|(&bytes, bound)| (bytes as f64, bound.seconds)).collect();
    // On a logarithmic axis there is no bound of no time.
    let limit = points.iter().all(|point| point.1 > 0.0).then(|| Curve {
        label: "lower bound".to_owned(),
        stroke: Stroke::Limit,
        points,
    });
    Plot {
        axes: Axes::TimeOverSize,
        caption: [
            exchange_of(machine, problem, &range(found)),
            format!("predicted by the steps model, topocoll {}{dashed}", env!("CARGO_PKG_VERSION")),
        ],
        curves: found.lines.iter().map(curve).chain(limit).collect(),
    }
}
