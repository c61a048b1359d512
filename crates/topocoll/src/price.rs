//! What a setting of an algorithm costs on a machine: counted, or bounded from below.

use topocoll_algorithms::{Algorithm, Claims};
use topocoll_analysis::{Time, best_bounds, count, counting_work};
use topocoll_schedule::{Parameters, Problem};
use topocoll_topology::Machine;

/// Bytes of link counters that pricing may take.
const MEMORY: u128 = 1 << 30;

/// How a price was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Priced {
    /// Counted, every step and link.
    Exactly,
    /// By a closed form that the cost is not below: the machine is too large to count.
    AtLeast,
}

/// The cost of one setting.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Price {
    /// How it was found.
    pub priced: Priced,
    /// Predicted seconds.
    pub time: Time,
    /// C1.
    pub steps: u64,
    /// C2 in blocks.
    pub blocks: f64,
    /// C2 in blocks, shared links charged in full.
    pub link_blocks: f64,
    /// Most messages on one link in one step; 0 if not counted.
    pub max_link_sharing: u64,
}

impl Price {
    /// Seconds that do not depend on the block size, and seconds per byte of block.
    #[must_use]
    pub fn line(&self, block_bytes: u64) -> (f64, f64) {
        let Time { startup, transmission, propagation, rearrangement, barrier } = self.time;
        (startup + propagation + barrier, (transmission + rearrangement) / block_bytes as f64)
    }
}

/// The price of a setting: counted if it has at most `work` segments to look at.
pub(crate) fn price(
    algorithm: &dyn Algorithm,
    machine: &Machine,
    problem: &Problem,
    setting: &Parameters,
    claims: &Claims,
    work: u128,
) -> Price {
    let schedule =
        algorithm.plan(problem, &*machine.topology, setting).expect("bug: claims where no plan is");
    if counting_work(&schedule, machine) <= work
        && let Ok(counts) = count(&schedule, machine, MEMORY)
    {
        return Price {
            priced: Priced::Exactly,
            time: counts.time,
            steps: counts.steps,
            blocks: counts.in_blocks(counts.bytes),
            link_blocks: counts.in_blocks(counts.link_bytes),
            max_link_sharing: counts.max_link_sharing,
        };
    }
    at_least(machine, problem, claims)
}

fn at_least(machine: &Machine, problem: &Problem, claims: &Claims) -> Price {
    let timing = &machine.timing;
    let link_blocks = (claims.link_bytes_floor as f64 / problem.block_bytes as f64)
        .max(best_bounds(problem, machine).blocks);
    let barrier = timing.barrier.seconds(problem.ranks);
    Price {
        priced: Priced::AtLeast,
        time: Time {
            startup: claims.steps as f64 * timing.startup.least(),
            transmission: link_blocks * problem.block_bytes as f64 * timing.per_byte.least(),
            propagation: claims.hops_floor as f64 * timing.per_hop.least(),
            rearrangement: 0.0,
            barrier: barrier * claims.steps.saturating_sub(1) as f64,
        },
        steps: claims.steps,
        blocks: claims.bytes as f64 / problem.block_bytes as f64,
        link_blocks,
        max_link_sharing: 0,
    }
}
