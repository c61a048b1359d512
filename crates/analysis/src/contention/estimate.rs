//! The cost of a simulation, in closed form.

use topocoll_schedule::{RankClasses, Schedule};
use topocoll_topology::{Machine, Shape};

use super::models::{ContentionModel, check_model};
use super::settings::Settings;
use super::simulate::equivalent;
use crate::AnalysisError;
use crate::error::check_ranks;
use crate::symmetry::{self, Equivalent};
use crate::visit::Source;

/// The cost of simulating a schedule with one rank of each class where that is exact.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Estimate {
    /// The ranks to simulate.
    pub ranks: u32,
    /// The messages that these ranks send: at most one for each port in each step.
    pub messages: u128,
    /// Seconds of one core: the order of magnitude, as cores and schedules differ.
    pub seconds: f64,
}

/// Estimates the cost of simulating a schedule without barriers, and visits no message.
///
/// `bytes` is the volume C2 in bytes, the sum over steps of the largest message; only the flit model
/// depends on it. Routes count with the mean number of links between two nodes of a grid, or on a
/// graph with the most. The messages are an upper bound if no rank sends more of them in a step than
/// the schedule has ports.
///
/// # Errors
/// A machine that the model does not support, or a schedule of other ranks.
pub fn estimate(
    schedule: &Schedule,
    machine: &Machine,
    model: &ContentionModel,
    settings: &Settings,
    bytes: u128,
) -> Result<Estimate, AnalysisError> {
    check_ranks(schedule.problem.ranks, machine)?;
    check_model(model, machine, settings)?;
    let topology = &*machine.topology;
    let rule = schedule.rule();
    let classes = match model.folds {
        true => equivalent(Source::Schedule(schedule), &rule.classes(), machine, settings).classes,
        false => Equivalent::every(topology).classes,
    };
    let ports = u128::from(schedule.problem.ports);
    let (ranks, steps) = (classes.count(), u128::from(rule.steps()));
    let messages = u128::from(ranks) * steps * ports;
    let parts = match model.cost.flits {
        false => messages as f64,
        true => {
            let flit = u128::from(settings.flit_bytes);
            // Each packet has whole flits.
            let flits = match machine.endpoint.packet_bytes.map(u128::from) {
                None => bytes / flit,
                Some(size) => bytes / size * size.div_ceil(flit) + bytes % size / flit,
            };
            let flits = flits + steps;
            f64::from(ranks) * ports as f64 * flits as f64
        }
    };
    let links = mean_links(machine, &classes);
    let seconds = parts * (model.cost.each + model.cost.link * links);
    Ok(Estimate { ranks, messages, seconds })
}

/// Links that a message takes on average, the injection and the ejection included. Equivalent links
/// are one.
fn mean_links(machine: &Machine, classes: &RankClasses) -> f64 {
    let topology = &*machine.topology;
    let between = match topology.network() {
        Shape::Grid(grid) => {
            let (nodes, _) = symmetry::of_nodes(classes, topology);
            let sides = grid.sides().iter().zip(grid.wrap()).zip(nodes.periods());
            let hops = sides.map(|((&side, &wraps), &period)| {
                let mean = f64::from(side) / if wraps { 4.0 } else { 3.0 };
                mean.min(period.into())
            });
            hops.sum()
        }
        Shape::Graph(graph) => f64::from(graph.diameter()),
        Shape::Complete | Shape::Clustered(_) => 0.0,
    };
    2.0 + between
}
