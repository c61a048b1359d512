//! The steps model of traffic that no rule describes: the counterpart of [`count`](crate::count).

use topocoll_schedule::RankClasses;
use topocoll_topology::Machine;

use super::traffic::{Share, Traffic};
use crate::charges::Rates;
use crate::counts::{Counts, StepCount, Sums, Time};
use crate::error::{by_all_threads, check_injection, check_memory};
use crate::loads::Loads;
use crate::{AnalysisError, symmetry};

/// The result of the steps model: barriers between steps, and a shared link charged its whole load.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct StepsModel {
    /// The predicted time, term by term.
    pub time: Time,
    /// Steps in which a message moves.
    pub steps: u64,
    /// Messages.
    pub messages: u128,
    /// Seconds that links are busy, summed over links.
    pub link_seconds: f64,
    /// The most bytes on one link in a step.
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
    check_injection("the steps model of messages on chosen nodes", machine)?;
    let classes = symmetry::common(&traffic.classes(), &*machine.topology);
    let needed = by_all_threads(Loads::memory(&classes, &*machine.topology));
    check_memory("link counters", needed, memory)?;
    let rates = Rates::new(&machine.timing);
    let sums = Sums::of(
        traffic.steps(),
        || (Loads::new(&classes, &*machine.topology), Share::default()),
        |step, (loads, share)| one_step(traffic, machine, &rates, &classes, step, loads, share),
    );
    let largest_load = sums.largest_load;
    let counts = sums.charge(machine.ranks(), &machine.timing);
    let Counts { time, steps, messages, link_seconds, .. } = counts;
    Ok(StepsModel { time, steps, messages, link_seconds, largest_load })
}

fn one_step(
    traffic: &dyn Traffic,
    machine: &Machine,
    rates: &Rates<'_>,
    classes: &RankClasses,
    step: u32,
    loads: &mut Loads,
    share: &mut Share,
) -> StepCount {
    let topology = &*machine.topology;
    let mut out = StepCount::default();
    let alike = u64::from(traffic.nodes() / classes.count());
    for node in (0..classes.count()).map(|class| classes.representative(class)) {
        traffic.share(node, step, share);
        out.copied = out.copied.max(share.copied);
        out.messages += share.sends.len() as u128 * u128::from(alike);
        for send in &share.sends {
            let bytes = u128::from(send.bytes);
            out.largest_message = out.largest_message.max(bytes);
            out.packed = out.packed.max(send.packed.into());
            out.hops = out.hops.max(send.route.hops());
            // Numbered links are charged by their loads.
            if send.route.segments().is_empty() {
                out.charges.link(rates, topology.link_class(node, send.to), bytes);
            }
            out.charges.route(rates, send.route.segments(), alike, bytes);
            loads.add(topology, node, &send.route, bytes);
        }
    }
    let mut busiest = Vec::new();
    loads.take(&mut busiest);
    out.load_busiest(rates, &busiest, alike);
    out
}
