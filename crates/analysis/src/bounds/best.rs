//! The strongest bounds together.

use topocoll_schedule::Problem;
use topocoll_topology::{Machine, Shape};

use super::crossing::{bisection, injection, least_links, node_ports};
use super::links::{distances, gathered};
use super::tradeoff::{TradeOff, least};
use super::{Measure, bounds, steps_between};

/// What bytes pass in any schedule, and what therefore limits its bandwidth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Limit {
    /// The ports of a rank.
    Ports,
    /// The ports of a node of several ranks.
    NodePorts,
    /// The links of a node.
    NodeLinks,
    /// The links across the middle of a grid.
    Bisection,
    /// All links, or the links of a cut.
    Links,
    /// The injection bandwidth of a rank.
    RankInjection,
    /// The injection bandwidth of a node.
    NodeInjection,
}

impl Limit {
    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ports => "ports of a rank",
            Self::NodePorts => "ports of a node",
            Self::NodeLinks => "links of a node",
            Self::Bisection => "bisection",
            Self::Links => "links",
            Self::RankInjection => "injection of a rank",
            Self::NodeInjection => "injection of a node",
        }
    }
}

/// The strongest bounds that hold for every schedule.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct BestBounds {
    /// Steps, C1.
    pub steps: u64,
    /// Volume, C2: the sum over steps of the largest message, in blocks.
    pub blocks: f64,
    /// Charged volume: the sum over steps of the largest message or link load, in blocks.
    pub link_blocks: f64,
    /// Seconds by the steps model.
    pub seconds: f64,
    /// Seconds of transmission, of the bytes that pass what limits the bandwidth.
    pub transmission: f64,
    /// What limits the bandwidth.
    pub limit: Limit,
    /// The trade-off of steps and volume; `None` where none is known: of an all-gather or a demand
    /// matrix.
    pub trade_off: Option<TradeOff>,
}

impl BestBounds {
    /// The least charged volume, in blocks, of a schedule of at most this number of steps that
    /// exceeds no ports; `None` where no trade-off is known, or if no such schedule exists.
    #[must_use]
    pub fn link_blocks_in(&self, steps: u64) -> Option<f64> {
        Some(self.trade_off?.blocks(steps)?.max(self.link_blocks))
    }
}

/// Loads of links that are known beside the bounds of a machine.
#[derive(Clone, Copy, Default)]
pub(super) struct Cuts {
    /// In blocks over the capacity of a link's class.
    pub(super) link_blocks: f64,
    /// In seconds for each byte of a block.
    pub(super) seconds_per_byte: f64,
    /// In seconds for each byte of a block, of the injection of a node.
    pub(super) of_nodes: f64,
}

/// The strongest of [`bounds`] and these loads.
pub(super) fn strongest(problem: &Problem, machine: &Machine, cuts: Cuts) -> BestBounds {
    let all = bounds(problem, machine);
    let unconditional = |measure: Measure| {
        all.iter().filter(move |bound| bound.measure == measure && bound.condition.is_empty())
    };
    let most = |measure| unconditional(measure).map(|bound| bound.value).fold(0.0, f64::max);
    let steps = most(Measure::Steps) as u64;
    let blocks = most(Measure::Blocks);
    let link_blocks = most(Measure::LinkBlocks).max(blocks).max(cuts.link_blocks);

    let timing = &machine.timing;
    let block_bytes = problem.block_bytes as f64;
    let injected = f64::from(problem.ranks - 1) / f64::from(problem.ports);
    let fastest = machine.least_per_byte();
    let (mut volume, mut limit) = (block_bytes * injected * fastest, Limit::Ports);
    let mut raise = |seconds: f64, by: Limit| {
        if seconds > volume {
            (volume, limit) = (seconds, by);
        }
    };
    let mut propagation = 0.0;
    let first = machine.first_class();
    let between = block_bytes * machine.least_per_byte_of_nodes();
    raise(node_ports(problem, machine).unwrap_or(0.0) * between, Limit::NodePorts);
    raise(least_links(problem, machine).unwrap_or(0.0) * between, Limit::NodeLinks);
    raise(block_bytes * cuts.seconds_per_byte, Limit::Links);
    raise(block_bytes * cuts.of_nodes, Limit::NodeInjection);
    match machine.topology.network() {
        Shape::Complete | Shape::Clustered(_) => {}
        Shape::Grid(grid) => {
            for u in 0..grid.sides().len() {
                let blocks = bisection(problem, machine, u).unwrap_or(0.0);
                raise(blocks * block_bytes * timing.per_byte.of(first + u), Limit::Bisection);
                propagation += f64::from(grid.diameter_along(u)) * timing.per_hop.of(first + u);
            }
        }
        Shape::Graph(graph) => {
            let least = distances(problem, machine).or_else(|| gathered(problem, machine));
            if let Some([_, seconds_per_byte]) = least {
                raise(seconds_per_byte * block_bytes, Limit::Links);
            }
            let latencies = machine.topology.link_kinds().iter().map(|kind| {
                kind.latency.unwrap_or_else(|| timing.per_hop.of(first + kind.class as usize))
            });
            let shortest = latencies.fold(f64::INFINITY, f64::min);
            propagation = f64::from(graph.farthest().unwrap_or(0)) * shortest.min(f64::MAX);
        }
    }
    for ((seconds, _), by) in
        injection(problem, machine).into_iter().zip([Limit::RankInjection, Limit::NodeInjection])
    {
        raise(seconds, by);
    }
    let barrier = timing.barrier.seconds(problem.ranks);
    // Steps between nodes start longer than others.
    let longer = machine.least_startup_between() - timing.startup.least();
    let fewest = steps_between(problem, machine);
    let at = |steps: u64, between: u64, volume: f64| {
        let steps = steps.max(between);
        steps as f64 * timing.startup.least()
            + between as f64 * longer
            + volume
            + propagation
            + barrier * steps.saturating_sub(1) as f64
    };
    let trade_off = TradeOff::of(problem);
    let mut seconds = at(steps, fewest, volume);
    let mut trade = |of: TradeOff, first: u64, per_move: f64, at: &dyn Fn(u64, f64) -> f64| {
        let moves = |steps| of.moves(steps).expect("bug: fewer steps than any schedule") as f64;
        let volume = |steps| volume.max(moves(steps) * per_move);
        seconds = seconds.max(least((first, of.last().max(first)), volume, at));
    };
    let limits = machine.injection();
    if let Some(of) = trade_off {
        let per_byte = (fastest / f64::from(problem.ports)).max(limits.rank);
        trade(of, steps, block_bytes * per_byte, &|steps, volume| at(steps, fewest, volume));
    }
    if let Some((of, blocks)) = TradeOff::between(problem, machine) {
        let per_byte = machine.least_per_byte_of_nodes() / f64::from(problem.node_ports);
        let per_move = blocks * block_bytes * per_byte.max(limits.node);
        trade(of, fewest, per_move, &|between, volume| at(steps, between, volume));
    }
    let transmission = volume;
    BestBounds { steps, blocks, link_blocks, seconds, transmission, limit, trade_off }
}
