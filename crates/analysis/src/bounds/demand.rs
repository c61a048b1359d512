//! Bounds of an exchange whose block sizes are a demand matrix.

use rayon::prelude::*;
use topocoll_schedule::{Collective, Demand, Problem};
use topocoll_topology::{Grid, Groups, Machine, Rank, Shape, parallel};

use super::best::{BestBounds, Cuts, Limit};
use super::groups::{LINKS, around_nodes};
use super::startups;
use crate::AnalysisError;
use crate::error::check_work;

/// The most pairs of ranks whose sizes are read for bounds: some seconds.
const SIZES: u128 = 1 << 30;

/// The longest side of a grid whose parts are all looked at.
const SIDE: u32 = 256;

/// Checks that [`best_bounds`](crate::best_bounds) can read all sizes of a demand matrix.
///
/// # Errors
/// More than 2^30 pairs of ranks.
pub fn check_demand_work(problem: &Problem) -> Result<(), AnalysisError> {
    let pairs = u128::from(problem.ranks).pow(2);
    check_work("looking at the sizes of all pairs of ranks", pairs, SIZES)
}

/// Bounds for a demand matrix. The bytes a rank exchanges with others pass its ports. The bytes a
/// node exchanges with other nodes pass the ports of the node, and its links. The bytes of an all-to-all between
/// the parts of a grid pass the links between them, and those of all distances all links. In s steps of k ports a block reaches
/// at most (k + 1)^s ranks (Bruck et al. 1997, Propositions 2.1 to 2.4, for equal blocks).
pub(super) fn bounds(problem: &Problem, machine: &Machine, demand: &Demand) -> BestBounds {
    strongest(problem, machine, demand, crossing(problem, machine, demand))
}

/// The same for groups, each with these sizes, by the machine that a group forms without its links: messages may
/// leave a group's part. The nodes and links of the whole machine count if its sizes are not too many.
pub(super) fn bounds_of_groups(
    problem: &Problem,
    (own, machine): (&Machine, &Machine),
    groups: &Groups,
    demand: &Demand,
) -> BestBounds {
    let mut whole = *problem;
    whole.ranks = machine.ranks();
    let crossing = match check_demand_work(&whole) {
        Ok(()) => crossing(&whole, machine, &demand.on_groups(groups)),
        Err(_) => crossing(problem, own, demand),
    };
    strongest(problem, own, demand, crossing)
}

fn strongest(
    problem: &Problem,
    machine: &Machine,
    demand: &Demand,
    (crossing, cuts): (u128, Cuts),
) -> BestBounds {
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
    let limits = machine.injection();
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
        (cuts.seconds_per_byte, Limit::Links),
    ];
    let (transmission, limit) =
        limits.into_iter().rev().max_by(|a, b| a.0.total_cmp(&b.0)).expect("five");
    BestBounds {
        steps,
        blocks,
        link_blocks: blocks.max(cuts.link_blocks / problem.block_bytes as f64),
        seconds: steps as f64 * timing.startup.least() + transmission + barriers,
        transmission,
        limit,
        trade_off: None,
    }
}

/// The bytes that each node receives from other nodes, and sends to them; of an all-gather, those received.
fn node_bytes(problem: &Problem, machine: &Machine, demand: &Demand) -> Vec<[u128; 2]> {
    let topology = &*machine.topology;
    let of_node = |own: Vec<Rank>| {
        let outside = |sizes: &mut dyn Iterator<Item = u64>| -> u128 {
            let others =
                (0..).map(Rank).zip(sizes).filter(|(rank, _)| own.binary_search(rank).is_err());
            others.map(|(_, bytes)| u128::from(bytes)).sum()
        };
        match problem.operation {
            Collective::AllGather => [outside(&mut demand.column(own[0])), 0],
            Collective::AllToAll => {
                let ranks = || own.iter().copied();
                let received = ranks().map(|rank| outside(&mut demand.column(rank))).sum();
                [received, ranks().map(|rank| outside(&mut demand.row(rank))).sum()]
            }
        }
    };
    let nodes: Vec<_> = match topology.shape() {
        Shape::Clustered(clusters) => {
            (0..clusters.nodes()).map(|node| clusters.ranks_of(node).collect()).collect()
        }
        _ if topology.link_numbers() == 0 => Vec::new(),
        _ => (0..problem.ranks).map(|rank| vec![Rank(rank)]).collect(),
    };
    parallel::each(nodes).map(of_node).collect()
}

/// The most bytes that a node of several ranks receives or sends, and the loads in bytes of the links around
/// nodes, across places of each side of a grid, and along it.
fn crossing(problem: &Problem, machine: &Machine, demand: &Demand) -> (u128, Cuts) {
    let topology = &*machine.topology;
    let ends = node_bytes(problem, machine, demand);
    let most = match topology.shape() {
        Shape::Clustered(_) => ends.iter().flatten().copied().max().unwrap_or(0),
        _ => 0,
    };
    let mut cuts = Cuts::default();
    if topology.link_numbers() > 0 && topology.link_numbers() <= LINKS {
        cuts.raise(around_nodes(machine, |node| ends[node].map(|bytes| bytes as u64)));
        cuts.raise(across_sides(problem, machine, demand));
    }
    (most, cuts)
}

fn across_sides(problem: &Problem, machine: &Machine, demand: &Demand) -> Cuts {
    let (topology, mut cuts) = (&*machine.topology, Cuts::default());
    let Shape::Grid(grid) = topology.network() else { return cuts };
    if problem.operation != Collective::AllToAll {
        return cuts;
    }
    for (u, &side) in grid.sides().iter().enumerate().filter(|&(_, &side)| side <= SIDE) {
        let place =
            |rank: u32| grid.radix().coordinate(Rank(topology.node_of(Rank(rank))), u) as usize;
        let sums = |rank| {
            let mut sums = vec![0; side as usize];
            let sizes = (0..).zip(demand.row(Rank(rank)));
            sizes.for_each(|(to, bytes)| sums[place(to)] += u128::from(bytes));
            sums
        };
        let mut bytes = vec![vec![0; side as usize]; side as usize];
        let rows: Vec<Vec<u128>> = parallel::each(0..problem.ranks).map(sums).collect();
        for (rank, sums) in (0..).zip(rows) {
            bytes[place(rank)].iter_mut().zip(sums).for_each(|(sum, more)| *sum += more);
        }
        let link_bytes = along(grid, u, &bytes);
        let per_byte = machine.timing.per_byte.of(machine.first_class() + u);
        let seconds_per_byte = link_bytes * per_byte;
        cuts.raise(Cuts { link_blocks: link_bytes, seconds_per_byte, ..Cuts::default() });
    }
    cuts
}

/// The least bytes on the busiest link along a dimension, by the bytes from each place of it to each other: those
/// that enter or leave a part, and those of all distances.
fn along(grid: &Grid, u: usize, bytes: &[Vec<u128>]) -> f64 {
    let (side, wraps) = (bytes.len(), grid.wrap()[u]);
    let lines = f64::from(grid.radix().ranks()) / side as f64;
    let ways = lines * if wraps { 2.0 } else { 1.0 };
    let mut least = 0.0f64;
    // On a side that does not wrap a part begins at its end.
    for first in 0..if wraps { side } else { 1 } {
        let (mut inside, mut enter, mut leave) = (vec![false; side], 0u128, 0u128);
        for place in (first..first + side - 1).map(|place| place % side) {
            for other in (0..side).filter(|&other| other != place) {
                let (out, into) = (bytes[place][other], bytes[other][place]);
                if inside[other] {
                    (enter, leave) = (enter - out, leave - into);
                } else {
                    (enter, leave) = (enter + into, leave + out);
                }
            }
            inside[place] = true;
            least = least.max(enter.max(leave) as f64 / ways);
        }
    }
    let far = |a: usize, b: usize| {
        let straight = a.abs_diff(b);
        (if wraps { straight.min(side - straight) } else { straight }) as f64
    };
    let pairs = (0..side).flat_map(|a| (0..side).map(move |b| (a, b)));
    let distances: f64 = pairs.map(|(a, b)| bytes[a][b] as f64 * far(a, b)).sum();
    let links = 2.0 * lines * (if wraps { side } else { side - 1 }) as f64;
    if side > 1 { least.max(distances / links) } else { least }
}
