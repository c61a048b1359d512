//! Bounds of an exchange whose block sizes are a demand matrix.

use rayon::prelude::*;
use topocoll_schedule::{Collective, Demand, Problem};
use topocoll_topology::{Machine, Rank, Shape, parallel};

use super::best::{BestBounds, Limit};
use super::startups;
use crate::AnalysisError;
use crate::error::check_work;

/// The most pairs of ranks whose sizes are read for bounds: some seconds.
const SIZES: u128 = 1 << 30;

/// Checks that [`best_bounds`](crate::best_bounds) can read all sizes of a demand matrix.
///
/// # Errors
/// More than 2^30 pairs of ranks.
pub fn check_demand_work(problem: &Problem) -> Result<(), AnalysisError> {
    let pairs = u128::from(problem.ranks).pow(2);
    check_work("looking at the sizes of all pairs of ranks", pairs, SIZES)
}

/// Bounds for a demand matrix. The bytes a rank exchanges with others pass its ports. The bytes a
/// node exchanges with other nodes pass the ports of the node. In s steps of k ports a block reaches
/// at most (k + 1)^s ranks (Bruck et al. 1997, Propositions 2.1 to 2.4, for equal blocks).
pub(super) fn bounds(problem: &Problem, machine: &Machine, demand: &Demand) -> BestBounds {
    let ports = u64::from(problem.ports);
    // The number of other ranks with bytes, and the bytes: received, and in an all-to-all sent.
    let of_rank = |rank: u32| {
        let others = |sizes: Vec<u64>| {
            let others = sizes.into_iter().enumerate().filter(|&(other, _)| other != rank as usize);
            others
                .filter(|&(_, bytes)| bytes > 0)
                .fold((0, 0u128), |(count, sum), (_, bytes)| (count + 1, sum + u128::from(bytes)))
        };
        let received = others(demand.column(Rank(rank)).collect());
        let sent = match problem.operation {
            Collective::AllToAll => others(demand.row(Rank(rank)).collect()),
            Collective::AllGather => (0, 0),
        };
        (received.0.max(sent.0), received.1.max(sent.1))
    };
    let most = parallel::each(0..problem.ranks).map(of_rank);
    let (others, bytes) = most.reduce(|| (0, 0), |a, b| (a.0.max(b.0), a.1.max(b.1)));
    let (limits, crossing) = (machine.injection(), node_bytes(problem, machine, demand));
    let injected = [bytes as f64 * limits.rank, crossing as f64 * limits.node];
    let (steps, bytes) = (startups(others + 1, ports), bytes.div_ceil(ports.into()));
    let timing = &machine.timing;
    let crossing = crossing.div_ceil(problem.node_ports.into());
    let barriers = timing.barrier.seconds(problem.ranks) * steps.saturating_sub(1) as f64;
    let blocks = bytes.max(crossing) as f64 / problem.block_bytes as f64;
    let limits = [
        (bytes as f64 * machine.least_per_byte(), Limit::Ports),
        (crossing as f64 * machine.least_per_byte_of_nodes(), Limit::NodePorts),
        (injected[0], Limit::RankInjection),
        (injected[1], Limit::NodeInjection),
    ];
    let (transmission, limit) =
        limits.into_iter().rev().max_by(|a, b| a.0.total_cmp(&b.0)).expect("four");
    BestBounds {
        steps,
        blocks,
        link_blocks: blocks,
        seconds: steps as f64 * timing.startup.least() + transmission + barriers,
        transmission,
        limit,
        trade_off: None,
    }
}

/// The most bytes that a node sends to, or receives from, other nodes.
fn node_bytes(problem: &Problem, machine: &Machine, demand: &Demand) -> u128 {
    let Shape::Clustered(clusters) = machine.topology.shape() else { return 0 };
    let of_node = |node: u32| {
        let first = clusters.first_rank(node).0;
        let own = first..first + clusters.size(node);
        let outside = |sizes: &mut dyn Iterator<Item = u64>| -> u128 {
            let others = (0..).zip(sizes).filter(|(rank, _)| !own.contains(rank));
            others.map(|(_, bytes)| u128::from(bytes)).sum()
        };
        match problem.operation {
            Collective::AllGather => outside(&mut demand.column(Rank(first))),
            Collective::AllToAll => {
                let ranks = || own.clone().map(Rank);
                let sent = ranks().map(|rank| outside(&mut demand.row(rank))).sum::<u128>();
                let received = ranks().map(|rank| outside(&mut demand.column(rank))).sum();
                sent.max(received)
            }
        }
    };
    parallel::each(0..clusters.nodes()).map(of_node).max().unwrap_or(0)
}
