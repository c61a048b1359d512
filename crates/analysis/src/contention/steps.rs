//! The steps model of traffic that no rule describes: the counterpart of [`count`](crate::count).

use topocoll_topology::Machine;

use crate::AnalysisError;
use crate::count_step::Counter;
use crate::error::{by_all_threads, check_memory};
use crate::step_count::Counts;
use crate::time::Time;
use crate::traffic::Traffic;

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
    let counter = Counter::of_traffic(traffic, machine);
    check_memory("link counters", by_all_threads(counter.memory()), memory)?;
    let sums = counter.each_step(memory, |_, _| {})?;
    let largest_load = sums.largest_load;
    let counts = sums.charge(machine.ranks(), &machine.timing);
    let Counts { time, steps, messages, link_seconds, .. } = counts;
    Ok(StepsModel { time, steps, messages, link_seconds, largest_load })
}
