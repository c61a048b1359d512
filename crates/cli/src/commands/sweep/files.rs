//! The files of `sweep`: every point, and a plot.

use std::io::Write;

use anyhow::Context;
use topocoll::{Line, Machine, Problem};

use super::answer::range;
use super::{Found, Timed, kind, named, spaced};
use crate::commands::heading::{about_sizes, title_of};
use crate::render::{Axes, Curve, Plot, Stroke};

pub(super) fn write_csv(found: &Found, file: impl Write) -> anyhow::Result<()> {
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

pub(super) fn plot(machine: &Machine, problem: &Problem, found: &Found) -> Plot {
    let formulas = !found.formulas().is_empty();
    let dashed = if formulas { "; dashed: a published formula, no schedule" } else { "" };
    let model = found.simulated.as_ref().map(|simulated| simulated.model.name);
    let curve = |(number, (line, published)): (usize, (&Line, bool))| {
        let points: Vec<_> = found.points(number, line).collect();
        let floor = points.iter().any(|(_, timed)| timed.floor);
        let name = named(&line.algorithm, &line.given, published);
        Curve {
            label: if floor { format!("{name}, at least") } else { name },
            stroke: match published {
                true => Stroke::Dashed,
                false if floor => Stroke::AtLeast,
                false => Stroke::Solid,
            },
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
