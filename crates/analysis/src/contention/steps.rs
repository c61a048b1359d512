//! The steps model of traffic that no rule describes: the counterpart of [`count`](crate::count).

use topocoll_topology::{Machine, Rank, Route, Segment, Shape, Topology};

use super::traffic::{Share, Traffic};
use crate::counts::Time;
use crate::loads::Loads;
use crate::{AnalysisError, symmetry};

/// What the steps model says: steps apart by barriers, a shared link's whole load charged.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct StepsModel {
    /// Where the time goes.
    pub time: Time,
    /// Steps in which a message moves.
    pub steps: u64,
    /// Messages.
    pub messages: u128,
    /// Seconds that links are busy, summed over links.
    pub link_seconds: f64,
    /// The most bytes that one link carries in a step.
    pub largest_load: u128,
}

/// Prices traffic by the steps model, node by node.
///
/// # Errors
/// Link counters beyond `memory` bytes.
pub fn steps_model(
    traffic: &dyn Traffic,
    machine: &Machine,
    memory: u128,
) -> Result<StepsModel, AnalysisError> {
    let (topology, timing) = (&*machine.topology, &machine.timing);
    let classes = symmetry::common(&traffic.classes(), topology);
    let needed = Loads::memory(&classes);
    if needed > memory {
        return Err(AnalysisError::Memory { what: "link counters", needed, memory });
    }
    let mut loads = Loads::new(&classes);
    let mut share = Share::default();
    let mut out = StepsModel::default();
    for step in 0..traffic.steps() {
        let (mut startup, mut transmission, mut propagation) = (0f64, 0f64, 0f64);
        let (mut copied, mut packed, mut messages) = (0u128, 0u64, 0u128);
        for node in (0..classes.count()).map(|class| classes.representative(class)) {
            traffic.share(node, step, &mut share);
            copied = copied.max(share.copied);
            messages += share.sends.len() as u128;
            for send in &share.sends {
                packed = packed.max(send.packed);
                let class = class_of(topology, node, send.to, &send.route);
                startup = startup.max(timing.startup.of(class));
                transmission = transmission.max(send.bytes as f64 * timing.per_byte.of(class));
                let hops = |s: &Segment| s.hops.unsigned_abs() as f64;
                let seconds = |s: &Segment| hops(s) * timing.per_hop.of(s.dimension as usize);
                propagation = propagation.max(send.route.segments().iter().map(seconds).sum());
                if let Shape::Grid(grid) = topology.shape() {
                    loads.add(grid, node, &send.route, send.bytes.into());
                }
            }
        }
        let alike = f64::from(traffic.nodes() / classes.count());
        if matches!(topology.shape(), Shape::Grid(_)) {
            loads.drain(|u, _, _, _, bytes| {
                let seconds = bytes as f64 * timing.per_byte.of(u);
                out.link_seconds += alike * seconds;
                out.largest_load = out.largest_load.max(bytes);
                transmission = transmission.max(seconds);
            });
        }
        out.steps += u64::from(messages > 0);
        out.messages += messages * alike as u128;
        out.time.startup += startup;
        out.time.transmission += transmission;
        out.time.propagation += propagation;
        out.time.rearrangement +=
            (copied + u128::from(packed)) as f64 * timing.rearrangement_per_byte;
    }
    out.time.barrier = timing.barrier.seconds(machine.ranks()) * out.steps.saturating_sub(1) as f64;
    Ok(out)
}

fn class_of(topology: &dyn Topology, from: Rank, to: Rank, route: &Route) -> usize {
    match topology.shape() {
        Shape::Grid(_) => route.segments().first().map_or(0, |s| s.dimension as usize),
        _ => topology.link_class(from, to),
    }
}
