//! `sweep --front`: startups against volume.

use std::io::Write;

use anyhow::Context;
use serde::Serialize;
use topocoll::{Budget, Catalogue, Choice, Exchange, Front, Machine, Parameters, Priced, Problem};
use topocoll_report::names::Names;

use super::heading::{about, assumed_by, title};
use super::sweep::{
    asked, check_served, files, kind, not_searched, partly, spaced, why, write_plot,
};
use crate::bar::PROGRESS;
use crate::machine::{catalogue, exchange, machine};
use crate::render::{
    Answer, Axes, Blocks, Bounds, Curve, Field, Head, PartlyPriced, Plot, Rejected, Stroke,
    Unsearched, blocks, check_files, print, seconds, table, write_file,
};
use crate::{Outcome, args};

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    front: Vec<Point>,
    undecided: Vec<Point>,
    beaten: usize,
    bound: Bounds,
    rejected: Vec<Rejected>,
    subsets: Vec<PartlyPriced>,
    not_searched: Vec<Unsearched>,
}

#[derive(Serialize)]
struct Point {
    algorithm: String,
    kind: &'static str,
    parameters: Parameters,
    steps: u64,
    blocks: Blocks,
    link_blocks: Blocks,
    time_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tradeoff_ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priced: Option<&'static str>,
}

pub(super) fn run(args: &args::Sweep) -> anyhow::Result<Outcome> {
    let options = &args.common.options;
    check_files(&files(args))?;
    let machine = machine(&args.common.machine, options)?;
    let catalogue = catalogue(&machine, options, &args.schedule)?;
    let mut budget = Budget::default();
    budget.search = args.budget.unwrap_or(budget.search);
    budget.progress = PROGRESS;
    let exchange =
        exchange(&machine, options, &args::Part::WHOLE)?.catalogue(&catalogue).budget(budget);
    let (machine, problem) = (exchange.machine(), exchange.problem());
    let found = exchange.front(&asked(args, &catalogue)?)?;
    check_served(args, !found.points.is_empty())?;
    write_plot(args, || plot(machine, problem, &found))?;
    if let Some(path) = &args.csv {
        write_file(path, |file| write_csv(&found, file))?;
    }
    let report = report(machine, problem, &found);
    print(options.json, &report, || text(&exchange, &found, args, &catalogue))?;
    Ok(Outcome::Fine)
}

fn report(machine: &Machine, problem: &Problem, found: &Front) -> Report {
    let point = |choice: &Choice| Point {
        algorithm: choice.algorithm.clone(),
        kind: kind(false),
        parameters: choice.parameters.clone(),
        steps: choice.price.steps,
        blocks: Blocks(choice.price.blocks),
        link_blocks: Blocks(choice.price.link_blocks),
        time_seconds: choice.price.time.total(),
        tradeoff_ratio: choice.tradeoff_ratio,
        priced: (choice.price.priced == Priced::AtLeast).then_some("at_least"),
    };
    Report {
        head: Head::new(machine, problem),
        front: found.points.iter().map(point).collect(),
        undecided: found.undecided.iter().map(point).collect(),
        beaten: found.beaten.len(),
        bound: found.bound.into(),
        rejected: (found.rejected.iter()).map(|row| Rejected::of_kind(row, kind(false))).collect(),
        subsets: found.partly_priced.iter().map(PartlyPriced::from).collect(),
        not_searched: found.unsearched.iter().map(Unsearched::from).collect(),
    }
}

fn text(
    exchange: &Exchange<'_>,
    found: &Front,
    args: &args::Sweep,
    catalogue: &Catalogue,
) -> Answer {
    let choices = found.points.iter().map(|choice| (&*choice.algorithm, &choice.parameters));
    let names = Names::new(catalogue, choices);
    let (machine, problem) = (exchange.machine(), exchange.problem());
    let header =
        ["algorithm", "setting", "steps", "charged volume", "of the least", "volume", "time"];
    let rows = found.points.iter().map(|choice| {
        let price = &choice.price;
        let least = found.bound.link_blocks_in(price.steps).unwrap_or(found.bound.link_blocks);
        let over = match least > 0.0 {
            true => format!("{:.2}x", price.link_blocks / least),
            false => "-".to_owned(),
        };
        vec![
            choice.algorithm.clone().into(),
            Field::Setting(None, names.setting(&choice.algorithm, &choice.parameters)),
            price.steps.to_string().into(),
            blocks(price.link_blocks).into(),
            over.into(),
            blocks(price.blocks).into(),
            seconds(price.time.total()).into(),
        ]
    });
    let ends = match (found.points.first(), found.points.last()) {
        (Some(first), Some(last)) => format!(
            "From {} steps ({}) to a charged volume of {} blocks ({}).",
            first.price.steps,
            names.of(first),
            blocks(last.price.link_blocks),
            names.of(last)
        ),
        _ => "No point of the front is known.".to_owned(),
    };
    Answer::new(ends)
        .about(about(machine, problem) + ".")
        .assuming(assumed_by(machine, problem.both_ports(), &args.common.options))
        .table(&table(&header, 2, rows))
        .notes(
            others(found)
                + &format!(
                    "Lower bounds: {} steps, a charged volume of {} blocks.\n",
                    found.bound.steps,
                    blocks(found.bound.link_blocks),
                ),
        )
        .notes(partly(&found.partly_priced) + &not_searched(&found.unsearched))
        .list("Does not apply:", why(args, exchange, &found.rejected, &[]))
}

/// The settings that are not on the front, or not known to be.
fn others(found: &Front) -> String {
    let mut out = match found.beaten.len() {
        0 => String::new(),
        1 => "1 other setting has no fewer steps and no less charged volume than one of these.\n"
            .into(),
        many => format!(
            "{many} other settings have no fewer steps and no less charged volume than one of these.\n"
        ),
    };
    let mut names: Vec<&str> = found.undecided.iter().map(|choice| &*choice.algorithm).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        out +=
            &format!("{name} is too large here to be priced exactly, and might be on the front.\n");
    }
    out
}

fn write_csv(found: &Front, file: impl Write) -> anyhow::Result<()> {
    let mut csv = csv::Writer::from_writer(file);
    csv.write_record([
        "algorithm",
        "parameters",
        "kind",
        "priced",
        "on_front",
        "steps",
        "blocks",
        "link_blocks",
        "time_seconds",
    ])?;
    let points = found.points.iter().map(|choice| (choice, "yes"));
    let undecided = found.undecided.iter().map(|choice| (choice, "perhaps"));
    let beaten = found.beaten.iter().map(|choice| (choice, "no"));
    for (choice, on_front) in points.chain(undecided).chain(beaten) {
        let price = &choice.price;
        csv.write_record([
            choice.algorithm.clone(),
            spaced(&choice.parameters),
            kind(false).to_owned(),
            price.priced.name().to_owned(),
            on_front.to_owned(),
            price.steps.to_string(),
            price.blocks.to_string(),
            price.link_blocks.to_string(),
            format!("{:e}", price.time.total()),
        ])?;
    }
    csv.flush().context("cannot write all rows")
}

/// The front, and the settings of each algorithm.
fn plot(machine: &Machine, problem: &Problem, found: &Front) -> Plot {
    let at = |choice: &Choice| (choice.price.steps as f64, choice.price.link_blocks);
    let mut curves =
        vec![Curve { label: "front".to_owned(), stroke: Stroke::Solid, points: Vec::new() }];
    curves[0].points = (found.points.iter())
        .filter(|choice| choice.price.priced == Priced::Exactly)
        .map(at)
        .collect();
    curves.retain(|front| !front.points.is_empty());
    let mut all: Vec<&Choice> = found.points.iter().chain(&found.beaten).collect();
    all.sort_by(|a, b| at(a).0.total_cmp(&at(b).0).then(at(a).1.total_cmp(&at(b).1)));
    let mut seen: Vec<String> = Vec::new();
    for choice in &all {
        let named = |choice: &Choice| {
            let name = &choice.algorithm;
            let floor = choice.price.priced == Priced::AtLeast;
            if floor { format!("{name}, at least") } else { name.clone() }
        };
        let label = named(choice);
        if seen.contains(&label) {
            continue;
        }
        let points = all.iter().filter(|other| named(other) == label).map(|other| at(other));
        let points = points.collect();
        seen.push(label.clone());
        curves.push(Curve { label, stroke: Stroke::Dashed, points });
    }
    let points: Vec<_> =
        (found.least_volumes().into_iter()).map(|(steps, least)| (steps as f64, least)).collect();
    if points.len() > 1 && points.iter().all(|point| point.1 > 0.0) {
        curves.push(Curve { label: "lower bound".to_owned(), stroke: Stroke::Limit, points });
    }
    Plot {
        axes: Axes::VolumeOverStartups,
        caption: [
            title(machine, problem),
            format!(
                "shared links charged in full, topocoll {}; dashed: all settings of an algorithm",
                env!("CARGO_PKG_VERSION")
            ),
        ],
        curves,
    }
}
