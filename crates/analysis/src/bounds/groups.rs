//! Lower bounds for every schedule of groups of a machine's ranks, or of one: a subset.
//!
//! Messages may leave a group's part of the network, and groups share links. So links are bounded by cuts of
//! the whole network: whatever the routes, blocks between ranks on different sides cross.

use std::sync::Arc;

use topocoll_schedule::{Collective, Demand, Problem};
use topocoll_topology::{
    Clusters, FullyConnected, Grid, Groups, LinkId, Machine, PerClass, Rank, Shape, Subset,
};

use super::best::{BestBounds, Cuts, strongest};
use super::best_bounds;
use super::demand::bounds_of_groups;
use super::lengths;
use super::links::loads;

/// The most numbers of links that are looked at one by one: a small part of a second.
pub(super) const LINKS: u64 = 1 << 20;

/// The most pairs of places, or of parts and groups, that are looked at along a side: part of a second.
const PAIRS: usize = 1 << 24;

/// The strongest bounds that hold for every schedule of groups that exchange at the same time, each among its
/// own ranks, and a lower bound on the time of the last, as [`best_bounds`] for all ranks. The problem is that
/// of the largest group, and a demand matrix that of every group.
///
/// # Panics
/// Groups of another machine, or of other ranks than the problem's.
#[must_use]
pub fn best_bounds_of_groups(
    problem: &Problem,
    machine: &Machine,
    groups: &Groups,
    demand: Option<&Demand>,
) -> BestBounds {
    let largest = groups.group(groups.largest());
    assert_eq!(problem.ranks as usize, largest.ranks().len(), "groups of another problem");
    if largest.is_whole() {
        return best_bounds(problem, machine, demand);
    }
    let own = without_links(machine, &largest);
    match demand {
        Some(demand) => bounds_of_groups(problem, (&own, machine), groups, demand),
        None => strongest(problem, &own, cuts(problem, machine, groups)),
    }
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

/// The loads of the links of the whole network, and of the injection of its nodes.
fn cuts(problem: &Problem, machine: &Machine, groups: &Groups) -> Cuts {
    let (topology, network) = (&*machine.topology, machine.topology.network());
    let ends = Ends::of(problem, machine, groups);
    let mut cuts = match network {
        Shape::Grid(grid) => across_dimensions(problem, machine, grid, groups),
        _ => Cuts::default(),
    };
    if matches!(topology.shape(), Shape::Clustered(_)) {
        let most = ends.blocks.iter().flatten().copied().max().unwrap_or(0) as f64;
        let of_ports = most / f64::from(problem.node_ports) * machine.least_per_byte_of_nodes();
        let of_nodes = most * machine.timing.injection.node;
        cuts.raise(Cuts { seconds_per_byte: of_ports, of_nodes, ..Cuts::default() });
    }
    if topology.link_numbers() > LINKS {
        return cuts;
    }
    cuts.raise(around_nodes(machine, |node| ends.at(node)));
    if let (Collective::AllToAll, Some(subset)) = (problem.operation, groups.only()) {
        let mut ranks = vec![0; topology.nodes() as usize];
        subset.ranks().iter().for_each(|&rank| ranks[topology.node_of(rank) as usize] += 1);
        let [link_blocks, seconds_per_byte] = loads(machine, |capacities| match network {
            Shape::Grid(grid) => lengths::of_grid(grid, capacities, &ranks),
            Shape::Graph(graph) => lengths::of_graph(graph, capacities, &ranks),
            Shape::Complete | Shape::Clustered(_) => 0.0,
        });
        cuts.raise(Cuts { link_blocks, seconds_per_byte, ..Cuts::default() });
    }
    cuts
}

impl Cuts {
    pub(super) fn raise(&mut self, to: Self) {
        self.link_blocks = self.link_blocks.max(to.link_blocks);
        self.seconds_per_byte = self.seconds_per_byte.max(to.seconds_per_byte);
        self.of_nodes = self.of_nodes.max(to.of_nodes);
    }
}

/// The blocks that cross into a part with `inside` of `all` ranks of a group; 0 if either side has none.
fn crossing(operation: Collective, inside: u64, all: u64) -> u64 {
    match operation {
        Collective::AllToAll => inside * (all - inside),
        Collective::AllGather if inside > 0 => all - inside,
        Collective::AllGather => 0,
    }
}

/// The blocks that enter and leave each node.
struct Ends {
    /// By node; one if all nodes are equivalent.
    blocks: Vec<[u64; 2]>,
}

impl Ends {
    fn of(problem: &Problem, machine: &Machine, groups: &Groups) -> Self {
        let topology = &*machine.topology;
        let equivalent = groups.pattern().is_some() && !topology.shape().is_placed();
        let mut blocks = vec![[0; 2]; if equivalent { 1 } else { topology.nodes() as usize }];
        let mut met: Vec<u32> = match topology.shape() {
            _ if !equivalent => (0..groups.count()).collect(),
            Shape::Clustered(clusters) => {
                (0..clusters.size(0)).filter_map(|rank| Some(groups.place(Rank(rank))?.0)).collect()
            }
            _ => vec![0],
        };
        met.sort_unstable();
        met.dedup();
        for group in met {
            let mut nodes: Vec<u32> =
                groups.group(group).ranks().iter().map(|&rank| topology.node_of(rank)).collect();
            nodes.sort_unstable();
            let all = nodes.len() as u64;
            for there in nodes.chunk_by(|a, b| a == b) {
                let inside = there.len() as u64;
                if let Some([enter, leave]) = blocks.get_mut(there[0] as usize) {
                    *enter += crossing(problem.operation, inside, all);
                    *leave += crossing(problem.operation, all - inside, all);
                }
            }
        }
        Self { blocks }
    }

    fn at(&self, node: usize) -> [u64; 2] {
        *self.blocks.get(node).unwrap_or(&self.blocks[0])
    }
}

/// The loads of the links that lead to one node, and of those that leave it, where `at` gives the blocks that
/// enter and leave each.
pub(super) fn around_nodes(machine: &Machine, at: impl Fn(usize) -> [u64; 2]) -> Cuts {
    let topology = &*machine.topology;
    // By node, in all its links: the capacity and the bytes per second, in and out.
    let mut able = vec![[[0.0; 2]; 2]; topology.nodes() as usize];
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
    for (node, able) in able.into_iter().enumerate() {
        for (blocks, [capacity, speed]) in at(node).into_iter().zip(able) {
            let over = |able: f64| if able > 0.0 { blocks as f64 / able } else { 0.0 };
            cuts.raise(Cuts {
                link_blocks: over(capacity),
                seconds_per_byte: over(speed),
                ..Cuts::default()
            });
        }
    }
    cuts
}

/// The ranks of equivalent groups along one side.
struct Spread {
    groups: u64,
    /// Places with ranks, ascending.
    places: Vec<u32>,
    /// The ranks before each place, around twice.
    before: Vec<u64>,
}

impl Spread {
    fn new(groups: u64, mut places: Vec<u32>) -> Self {
        places.sort_unstable();
        let there: Vec<u64> =
            places.chunk_by(|a, b| a == b).map(|there| there.len() as u64).collect();
        let mut before = vec![0];
        for ranks in there.iter().chain(&there) {
            before.push(before[before.len() - 1] + ranks);
        }
        places.dedup();
        Self { groups, places, before }
    }

    fn all(&self) -> u64 {
        self.before[self.places.len()]
    }

    /// The ranks from a place to before another, around the side.
    fn between(&self, from: u32, to: u32) -> u64 {
        let [from_there, to_there] =
            [from, to].map(|end| self.before[self.places.partition_point(|&place| place < end)]);
        if from < to { to_there - from_there } else { self.all() - from_there + to_there }
    }

    /// Parts of the side, from a place to before another, that have half of the ranks, one or all but one.
    fn parts(&self, wraps: bool) -> impl Iterator<Item = [u32; 2]> {
        let count = self.places.len();
        let first = if wraps { count } else { 1 };
        (0..first).flat_map(move |first| {
            let ends = &self.before[first + 1..first + count];
            let half = ends.partition_point(|end| 2 * (end - self.before[first]) < self.all());
            let tried = [half.checked_sub(1), Some(half), Some(0), count.checked_sub(2)];
            let tried = tried.into_iter().flatten().filter(move |&end| end + 1 < count);
            tried.map(move |end| [self.places[first], self.places[(first + 1 + end) % count]])
        })
    }

    /// The sum of the distances of all pairs of ranks of a group.
    fn distances(&self, around: Option<u32>) -> u64 {
        let ranks = |i: usize| self.before[i + 1] - self.before[i];
        let far = |a: u32, b: u32| {
            let straight = a.abs_diff(b);
            u64::from(around.map_or(straight, |side| straight.min(side - straight)))
        };
        let at = |i: usize| (self.places[i], ranks(i));
        let pairs = (0..self.places.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
        pairs.map(|(i, j)| (at(i), at(j))).map(|((a, m), (b, n))| 2 * m * n * far(a, b)).sum()
    }
}

/// The ranks of all groups along a side.
fn spreads(machine: &Machine, grid: &Grid, groups: &Groups, u: usize) -> Vec<Spread> {
    let places = |group: u32| -> Vec<u32> {
        let at = |&rank| grid.radix().coordinate(Rank(machine.topology.node_of(rank)), u);
        groups.group(group).ranks().iter().map(at).collect()
    };
    match groups.pattern() {
        None => (0..groups.count()).map(|group| Spread::new(1, places(group))).collect(),
        // Groups differ along this side only by where they begin.
        Some(pattern) => {
            let along: Vec<u32> =
                pattern.sides().map(|(side, along)| side / along.inside).collect();
            let step: u32 = along[u + 1..].iter().product();
            let times = u64::from(groups.count() / along[u]);
            (0..along[u]).map(|group| Spread::new(times, places(group * step))).collect()
        }
    }
}

/// The loads of the links across places of each side, and of all links along it.
fn across_dimensions(problem: &Problem, machine: &Machine, grid: &Grid, groups: &Groups) -> Cuts {
    let mut cuts = Cuts::default();
    for (u, (&side, &wraps)) in grid.sides().iter().zip(grid.wrap()).enumerate() {
        let spreads = spreads(machine, grid, groups, u);
        let lines = f64::from(grid.radix().ranks() / side);
        let mut least = 0.0f64;
        let parts: usize = spreads.iter().map(|of| of.places.len()).sum();
        if parts * spreads.len() <= PAIRS {
            let ways = lines * if wraps { 2.0 } else { 1.0 };
            for [from, to] in spreads.iter().flat_map(|of| of.parts(wraps)) {
                let (mut enter, mut leave) = (0, 0);
                for of in &spreads {
                    // On a side that does not wrap a part begins at its end.
                    let inside = of.between(if wraps { from } else { 0 }, to);
                    enter += of.groups * crossing(problem.operation, inside, of.all());
                    leave += of.groups * crossing(problem.operation, of.all() - inside, of.all());
                }
                least = least.max(enter.max(leave) as f64 / ways);
            }
        }
        let pairs: usize = spreads.iter().map(|of| of.places.len().pow(2)).sum();
        if problem.operation == Collective::AllToAll && side > 1 && pairs <= PAIRS {
            let distances =
                spreads.iter().map(|of| of.groups * of.distances(wraps.then_some(side)));
            let links = 2.0 * lines * f64::from(if wraps { side } else { side - 1 });
            least = least.max(distances.sum::<u64>() as f64 / links);
        }
        let per_byte = machine.timing.per_byte.of(machine.first_class() + u);
        cuts.raise(Cuts {
            link_blocks: least,
            seconds_per_byte: least * per_byte,
            ..Cuts::default()
        });
    }
    cuts
}
