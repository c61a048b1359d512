//! The steps model of traffic that no rule describes: the counterpart of [`count`](crate::count).

use rayon::prelude::*;
use topocoll_schedule::RankClasses;
use topocoll_topology::{Machine, Segment};

use super::clock::slowest;
use super::traffic::{Share, Traffic};
use crate::counts::Time;
use crate::error::{by_all_threads, check_memory};
use crate::loads::Loads;
use crate::{AnalysisError, symmetry};

/// What the steps model says: steps apart by barriers, a shared link's whole load charged.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
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

/// Steps counted together; those of a batch stand in memory at once.
const BATCH: u32 = 512;

/// Prices traffic by the steps model, node by node.
///
/// # Errors
/// Link counters beyond `memory` bytes.
pub fn steps_model(
    traffic: &dyn Traffic,
    machine: &Machine,
    memory: u128,
) -> Result<StepsModel, AnalysisError> {
    let timing = &machine.timing;
    let classes = symmetry::common(&traffic.classes(), &*machine.topology);
    let needed = by_all_threads(Loads::memory(&classes, &*machine.topology));
    check_memory("link counters", needed, memory)?;
    let mut out = StepsModel::default();
    for batch in (0..traffic.steps()).step_by(BATCH as usize) {
        let batch = batch..traffic.steps().min(batch.saturating_add(BATCH));
        let least = batch.len().div_ceil(rayon::current_num_threads());
        let counted: Vec<StepsModel> = (batch.into_par_iter())
            .with_min_len(least)
            .map_init(
                || (Loads::new(&classes, &*machine.topology), Share::default()),
                |(loads, share), step| one_step(traffic, machine, &classes, step, loads, share),
            )
            .collect();
        for step in counted {
            out.add(&step);
        }
    }
    out.time.barrier = timing.barrier.seconds(machine.ranks()) * out.steps.saturating_sub(1) as f64;
    Ok(out)
}

impl StepsModel {
    fn add(&mut self, step: &Self) {
        self.time.startup += step.time.startup;
        self.time.transmission += step.time.transmission;
        self.time.propagation += step.time.propagation;
        self.time.rearrangement += step.time.rearrangement;
        self.steps += step.steps;
        self.messages += step.messages;
        self.link_seconds += step.link_seconds;
        self.largest_load = self.largest_load.max(step.largest_load);
    }
}

fn one_step(
    traffic: &dyn Traffic,
    machine: &Machine,
    classes: &RankClasses,
    step: u32,
    loads: &mut Loads,
    share: &mut Share,
) -> StepsModel {
    let (topology, timing) = (&*machine.topology, &machine.timing);
    let mut out = StepsModel::default();
    let (mut startup, mut transmission, mut propagation) = (0f64, 0f64, 0f64);
    let (mut copied, mut packed) = (0u128, 0u64);
    let alike = traffic.nodes() / classes.count();
    for node in (0..classes.count()).map(|class| classes.representative(class)) {
        traffic.share(node, step, share);
        copied = copied.max(share.copied);
        out.messages += share.sends.len() as u128 * u128::from(alike);
        for send in &share.sends {
            packed = packed.max(send.packed);
            let of = |values| slowest(values, topology, node, send.to, &send.route);
            startup = startup.max(of(&timing.startup));
            transmission = transmission.max(send.bytes as f64 * of(&timing.per_byte));
            let hops = |s: &Segment| s.hops.unsigned_abs() as f64;
            let seconds = |s: &Segment| hops(s) * timing.per_hop.of(s.dimension as usize);
            propagation = propagation.max(send.route.segments().iter().map(seconds).sum());
            loads.add(topology, node, &send.route, send.bytes.into());
        }
    }
    loads.drain(|u, _, _, _, bytes| {
        let seconds = bytes as f64 * timing.per_byte.of(u);
        out.link_seconds += f64::from(alike) * seconds;
        out.largest_load = out.largest_load.max(bytes);
        transmission = transmission.max(seconds);
    });
    out.steps = u64::from(out.messages > 0);
    let rearrangement = (copied + u128::from(packed)) as f64 * timing.rearrangement_per_byte;
    out.time = Time { startup, transmission, propagation, rearrangement, barrier: 0.0 };
    out
}
