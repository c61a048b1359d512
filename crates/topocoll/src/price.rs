//! What a setting of an algorithm costs on a machine: counted, bounded from below, or as printed.

use topocoll_algorithms::{Algorithm, Claims, PublishedCounts};
use topocoll_analysis::{Counts, Measure, Time, best_bounds, bounds, count, counting_work};
use topocoll_schedule::{Parameters, Problem};
use topocoll_topology::{Machine, PerClass};

/// Bytes of link counters that pricing may take.
pub(crate) const MEMORY: u128 = 1 << 30;

/// How a price was found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Priced {
    /// Counted, every step and link, or by claims that leave nothing to count.
    Exactly,
    /// By a closed form that the cost is not below: the machine is too large to count.
    AtLeast,
    /// By the counts that a paper prints of a schedule that is not written here.
    Published,
}

impl Priced {
    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exactly => "exactly",
            Self::AtLeast => "at_least",
            Self::Published => "published",
        }
    }
}

/// The cost of one setting.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
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
    /// The price that a schedule was counted to have.
    pub(crate) fn counted(counts: &Counts) -> Self {
        Self {
            priced: Priced::Exactly,
            time: counts.time,
            steps: counts.steps,
            blocks: counts.in_blocks(counts.bytes),
            link_blocks: counts.in_blocks(counts.link_bytes),
            max_link_sharing: counts.max_link_sharing,
        }
    }

    /// Seconds that do not depend on the block size, and seconds per byte of block.
    #[must_use]
    pub fn line(&self, block_bytes: u64) -> (f64, f64) {
        let Time { startup, transmission, propagation, rearrangement, barrier } = self.time;
        (startup + propagation + barrier, (transmission + rearrangement) / block_bytes as f64)
    }

    /// This price, found at blocks of `from` bytes, at blocks of `to` bytes: that of a schedule
    /// whose messages are as many whole blocks at either size.
    #[must_use]
    pub fn scaled(mut self, from: u64, to: u64) -> Self {
        let factor = to as f64 / from as f64;
        self.time.transmission *= factor;
        self.time.rearrangement *= factor;
        self
    }
}

/// Of what has a price, the quickest that is priced exactly, or if nothing is the least floor; of
/// equals the first.
pub(crate) fn least<T>(
    priced: impl IntoIterator<Item = T>,
    price: impl Fn(&T) -> &Price,
) -> Option<T> {
    priced.into_iter().min_by(|a, b| {
        let (a, b) = (price(a), price(b));
        let floor = |price: &Price| price.priced == Priced::AtLeast;
        floor(a).cmp(&floor(b)).then(a.time.total().total_cmp(&b.time.total()))
    })
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
        return Price::counted(&counts);
    }
    claimed(machine, problem, claims).unwrap_or_else(|| at_least(machine, problem, claims))
}

/// The price by claims, where they tell all that it is made of: no link is shared, and all links
/// are alike.
fn claimed(machine: &Machine, problem: &Problem, claims: &Claims) -> Option<Price> {
    let (timing, hops) = (&machine.timing, claims.hops?);
    // Packing is charged like a rearrangement, unless the machine gathers by itself.
    let copied = claims.copied_bytes.filter(|_| !timing.gather)?;
    let alike = [&timing.startup, &timing.per_byte, &timing.per_hop].map(PerClass::is_uniform);
    if !claims.contention_free || alike.contains(&false) {
        return None;
    }
    let blocks = claims.bytes as f64 / problem.block_bytes as f64;
    let barriers = claims.steps.saturating_sub(1) as f64;
    Some(Price {
        priced: Priced::Exactly,
        time: Time {
            startup: claims.steps as f64 * timing.startup.least(),
            transmission: claims.bytes as f64 * timing.per_byte.least(),
            propagation: hops as f64 * timing.per_hop.least(),
            rearrangement: copied as f64 * timing.rearrangement_per_byte,
            barrier: timing.barrier.seconds(problem.ranks) * barriers,
        },
        steps: claims.steps,
        blocks,
        link_blocks: blocks,
        max_link_sharing: u64::from(claims.steps > 0),
    })
}

fn at_least(machine: &Machine, problem: &Problem, claims: &Claims) -> Price {
    let timing = &machine.timing;
    let link_blocks = (claims.link_bytes_floor as f64 / problem.block_bytes as f64)
        .max(best_bounds(problem, machine).blocks);
    let barrier = timing.barrier.seconds(problem.ranks);
    let hops = (bounds(problem, machine).iter())
        .filter(|bound| bound.measure == Measure::Hops && bound.condition.is_empty())
        .fold(claims.hops_floor as f64, |hops, bound| hops.max(bound.value));
    Price {
        priced: Priced::AtLeast,
        time: Time {
            startup: claims.steps as f64 * timing.startup.least(),
            transmission: link_blocks * problem.block_bytes as f64 * timing.per_byte.least(),
            propagation: hops * timing.per_hop.least(),
            rearrangement: 0.0,
            barrier: barrier * claims.steps.saturating_sub(1) as f64,
        },
        steps: claims.steps,
        blocks: claims.bytes as f64 / problem.block_bytes as f64,
        link_blocks,
        max_link_sharing: 0,
    }
}

/// What a published formula's counts cost by the steps model's terms.
///
/// Where the machine's values differ by link class the least of them are taken, as a formula does
/// not say which links a step uses.
#[must_use]
pub fn published_price(machine: &Machine, problem: &Problem, counts: &PublishedCounts) -> Price {
    let timing = &machine.timing;
    let blocks = counts.blocks as f64;
    let bytes = |blocks: f64| blocks * problem.block_bytes as f64;
    let rearranged = counts.rearranged_blocks.unwrap_or(0) as f64;
    let barriers = counts.steps.saturating_sub(1) as f64;
    Price {
        priced: Priced::Published,
        time: Time {
            startup: counts.steps as f64 * timing.startup.least(),
            transmission: bytes(blocks) * timing.per_byte.least(),
            propagation: counts.hops.unwrap_or(0) as f64 * timing.per_hop.least(),
            rearrangement: bytes(rearranged) * timing.rearrangement_per_byte,
            barrier: timing.barrier.seconds(problem.ranks) * barriers,
        },
        steps: counts.steps,
        blocks,
        link_blocks: blocks,
        max_link_sharing: 0,
    }
}
