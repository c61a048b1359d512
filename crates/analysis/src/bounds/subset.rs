//! Lower bounds for every schedule of a subset of a machine's ranks.
//!
//! Messages may leave the subset's part of the network. So links are bounded by cuts of the whole
//! network: whatever the routes, blocks between ranks on different sides cross.

use std::sync::Arc;

use topocoll_schedule::{Collective, Problem};
use topocoll_topology::{Clusters, FullyConnected, Grid, LinkId, Machine, PerClass, Rank};
use topocoll_topology::{Shape, Subset};

use super::best::{BestBounds, Cuts, strongest};
use super::best_bounds;
use super::lengths;
use super::links::loads;

/// The most numbers of links that are looked at one by one.
const LINKS: u64 = 1 << 22;

/// The strongest bounds that hold for every schedule of a subset of a machine's ranks, and a lower
/// bound on its time, as [`best_bounds`] for all ranks. The problem is the subset's.
///
/// # Panics
/// A subset of other ranks than the machine's, or of another number than the problem's.
#[must_use]
pub fn best_bounds_of_subset(problem: &Problem, machine: &Machine, subset: &Subset) -> BestBounds {
    assert_eq!(problem.ranks as usize, subset.ranks().len(), "a subset of another problem");
    if subset.is_whole() {
        return best_bounds(problem, machine, None);
    }
    strongest(problem, &without_links(machine, subset), cuts(problem, machine, subset))
}

/// The ranks of a subset and their nodes, without the links between them.
fn without_links(machine: &Machine, subset: &Subset) -> Machine {
    let mut own = machine.subset(subset);
    own.timing.per_byte = PerClass::uniform(machine.least_per_byte());
    own.topology = match own.topology.shape() {
        Shape::Clustered(clusters) => {
            let groups: Vec<_> = clusters.groups().map(|(_, nodes, size)| (nodes, size)).collect();
            let between = [machine.timing.per_byte.of(0), machine.least_per_byte_of_nodes()];
            own.timing.per_byte = PerClass::each(&between);
            Arc::new(Clusters::new(&groups).expect("bug: invalid nodes"))
        }
        _ => Arc::new(FullyConnected::new(own.ranks()).expect("bug: invalid ranks")),
    };
    own
}

/// The loads of the links of the whole network.
fn cuts(problem: &Problem, machine: &Machine, subset: &Subset) -> Cuts {
    let (topology, network) = (&*machine.topology, machine.topology.network());
    let mut cuts = match network {
        Shape::Grid(grid) => across_dimensions(problem, machine, grid, subset),
        _ => Cuts::default(),
    };
    if topology.link_numbers() > LINKS {
        return cuts;
    }
    let mut ranks = vec![0; topology.nodes() as usize];
    subset.ranks().iter().for_each(|&rank| ranks[topology.node_of(rank) as usize] += 1);
    cuts.raise(around_nodes(problem, machine, &ranks));
    if problem.operation == Collective::AllToAll {
        let [link_blocks, seconds_per_byte] = loads(machine, |capacities| match network {
            Shape::Grid(grid) => lengths::of_grid(grid, capacities, &ranks),
            Shape::Graph(graph) => lengths::of_graph(graph, capacities, &ranks),
            Shape::Complete | Shape::Clustered(_) => 0.0,
        });
        cuts.raise(Cuts { link_blocks, seconds_per_byte });
    }
    cuts
}

impl Cuts {
    fn raise(&mut self, to: Self) {
        self.link_blocks = self.link_blocks.max(to.link_blocks);
        self.seconds_per_byte = self.seconds_per_byte.max(to.seconds_per_byte);
    }
}

/// The blocks that cross into a part with `inside` of the ranks; 0 if either side has none.
fn crossing(problem: &Problem, inside: u64) -> u64 {
    let outside = u64::from(problem.ranks) - inside;
    match problem.operation {
        Collective::AllToAll => inside * outside,
        Collective::AllGather if inside > 0 => outside,
        Collective::AllGather => 0,
    }
}

/// The loads of the links that lead to one node, and of those that leave it.
fn around_nodes(problem: &Problem, machine: &Machine, ranks: &[u32]) -> Cuts {
    // By node, in all its links: the capacity and the bytes per second, in and out.
    let mut able = vec![[[0.0; 2]; 2]; ranks.len()];
    let topology = &*machine.topology;
    for id in (0..topology.link_numbers()).map(LinkId) {
        let Some(link) = topology.link(id) else { continue };
        let per_byte = machine.timing.per_byte.of(machine.class_of(id));
        let kind = topology.link_kinds().get(topology.link_kind(id));
        let (times, over) = kind.map_or((1, 1), |kind| kind.capacity.relative(per_byte));
        let capacity = f64::from(times) / f64::from(over);
        for (end, way) in [(link.to, 0), (link.from, 1)] {
            if let Some(able) = able.get_mut(end as usize) {
                able[way][0] += capacity;
                able[way][1] += capacity / per_byte;
            }
        }
    }
    let mut cuts = Cuts::default();
    for (&ranks, able) in ranks.iter().zip(able).filter(|(ranks, _)| **ranks > 0) {
        let inside = u64::from(ranks);
        let blocks = [inside, u64::from(problem.ranks) - inside].map(|n| crossing(problem, n));
        for (blocks, [capacity, speed]) in blocks.into_iter().zip(able) {
            let over = |able: f64| if able > 0.0 { blocks as f64 / able } else { 0.0 };
            cuts.raise(Cuts { link_blocks: over(capacity), seconds_per_byte: over(speed) });
        }
    }
    cuts
}

/// The loads of the links across one place of a side that does not wrap, or two of one that does.
fn across_dimensions(problem: &Problem, machine: &Machine, grid: &Grid, subset: &Subset) -> Cuts {
    let (all, mut cuts) = (u64::from(problem.ranks), Cuts::default());
    for (u, (&side, &wraps)) in grid.sides().iter().zip(grid.wrap()).enumerate() {
        let at = |&rank| grid.radix().coordinate(Rank(machine.topology.node_of(rank)), u);
        let mut places: Vec<u32> = subset.ranks().iter().map(at).collect();
        places.sort_unstable();
        // The ranks before each place that has any, around twice.
        let there: Vec<u64> = places.chunk_by(|a, b| a == b).map(|at| at.len() as u64).collect();
        let mut before = vec![0];
        for ranks in there.iter().chain(&there) {
            before.push(before[before.len() - 1] + ranks);
        }
        let mut most = 0;
        for first in 0..if wraps { there.len() } else { 1 } {
            let ends = &before[first + 1..first + there.len()];
            let inside = |end: &u64| end - before[first];
            // Both parts nearest to half of the ranks, and for an all-gather the first and the last.
            let half = ends.partition_point(|end| 2 * inside(end) < all);
            let tried = [ends.get(half), half.checked_sub(1).and_then(|at| ends.get(at))];
            for inside in tried.into_iter().chain([ends.first(), ends.last()]).flatten().map(inside)
            {
                most = most.max(crossing(problem, inside)).max(crossing(problem, all - inside));
            }
        }
        let lines = f64::from(grid.radix().ranks() / side);
        let link_blocks = most as f64 / (lines * if wraps { 2.0 } else { 1.0 });
        let per_byte = machine.timing.per_byte.of(machine.first_class() + u);
        cuts.raise(Cuts { link_blocks, seconds_per_byte: link_blocks * per_byte });
    }
    cuts
}
