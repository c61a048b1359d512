//! A lower bound on the load of the busiest link in an all-to-all over any routes.
//!
//! Give every link any length. The route of a block is at least as long as the distance between its
//! ends. Hence some link carries, for each unit of its capacity, at least the sum of all distances
//! over the sum of capacity times length. By the duality of linear programs the best lengths give
//! the least load of any routing, minimal or not, blocks split or not (Shahrokhi and Matula 1990).
//!
//! All lengths give a true bound, which is calculated in integers. A search in floating point only
//! finds good ones:
//!
//! - A vertex with one neighbour has no choice of routes. It bounds its own links, and its ranks
//!   move to the neighbour. A fat tree or a dragonfly becomes a graph of its switches.
//! - Cuts: links that leave, or enter, a part have length 1, others 0. Parts are single vertices,
//!   the nearest vertices to each, and the vertices nearer to one end of a link than to the other.
//!   The last are the halves of a torus.
//! - All links have length 1.
//! - Up to about 100 vertices an interior-point method finds the best lengths ([`interior`]).
//! - Up to about 300 a first-order method finds good ones within a limit of work ([`first_order`]).
//!
//! Where all links have equally wide reverses, both directions have one length: the mean of a
//! solution and its reverse is no worse.

mod core;
mod cuts;
mod first_order;
mod interior;
mod lattice;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use topocoll_topology::{Graph, Grid, Lattice, LinkId, Topology as _};

use self::core::Core;

/// The most links.
const LINKS: usize = 1 << 20;

/// The most links of a grid: a second at most.
const GRID_LINKS: u64 = 1 << 16;

/// A lower bound on the load of the busiest link of a graph, in blocks, when every node sends a
/// block to every other over any routes, all links equal.
///
/// Computed once for a graph, in bounded time.
#[must_use]
pub fn least_load(graph: &Graph) -> f64 {
    of_graph(graph, &vec![(1, 1); graph.link_kinds().len()], &[])
}

/// A lower bound on the load of the busiest link of a graph, in blocks for each unit of capacity,
/// when every rank sends a block to every other, over any routes. `capacities` are fractions by kind
/// of links, `ranks` those on each node, or none for one on each.
pub(super) fn of_graph(graph: &Graph, capacities: &[(u32, u32)], ranks: &[u32]) -> f64 {
    graph.least_load(capacities, ranks, || prove(graph, capacities, ranks).load.blocks())
}

/// A lower bound as [`of_graph`], and lengths of all links, at most 2^24, that give it: some link
/// carries at least the sum of the distances of all blocks over the sum of all lengths times
/// capacities. Empty if no bound is known.
pub(super) fn prove(graph: &Graph, capacities: &[(u32, u32)], ranks: &[u32]) -> Proof {
    let equal = ranks.is_empty() && capacities.iter().all(|capacity| *capacity == (1, 1));
    let lattice = graph.lattice().filter(|_| equal);
    if lattice.is_some_and(Lattice::is_whole) {
        return lattice::least_load(graph);
    }
    let leaving = |from| graph.leaving(from).map(move |(link, to)| (link, from, to));
    let channel = |(link, from, to)| {
        let capacity = capacities[graph.link_kind(link)];
        Channel { from, to, capacity }
    };
    let links: Vec<Channel> = (0..graph.vertices()).flat_map(leaving).map(channel).collect();
    let ranks = if ranks.is_empty() { &vec![1; graph.ranks() as usize] } else { ranks };
    let mut best = Proof::NONE;
    if let Some(lattice) = lattice {
        lattice::raise_by_cuts(graph, lattice, &links, &mut best);
    }
    let flows = Flows { vertices: graph.vertices() as usize, ranks, links: &links };
    let Proof { load, lengths } = flows.least_load();
    best.raise(load, || lengths);
    best
}

/// The same bound of a grid, with capacities by dimension. 0 for a grid of more than 2^16 links.
pub(super) fn of_grid(grid: &Grid, capacities: &[(u32, u32)], ranks: &[u32]) -> f64 {
    if grid.links() > GRID_LINKS {
        return 0.0;
    }
    let links = (0..grid.link_numbers()).filter_map(|link| grid.link(LinkId(link)));
    let links: Vec<Channel> = links
        .map(|link| {
            let capacity = capacities[link.class as usize];
            Channel { from: link.from, to: link.to, capacity }
        })
        .collect();
    Flows { vertices: ranks.len(), ranks, links: &links }.least_load().load.blocks()
}

/// The most visits of links while hops are counted a step further.
const HOPS: usize = 1 << 24;

/// The relative error of a sum in floating point.
const ROUNDING: f64 = 1e-9;

/// A lower bound on the load of the busiest link, a fraction of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LeastLoad {
    /// The sum of distances over all blocks.
    pub(super) distances: u128,
    /// The sum of lengths, times capacities, over all links.
    pub(super) lengths: u128,
}

impl LeastLoad {
    /// What is known without any lengths.
    pub(super) const NONE: Self = Self { distances: 0, lengths: 1 };

    /// Whether this fraction is the larger. Both have a denominator above 0.
    pub(super) fn exceeds(self, other: Self) -> bool {
        let whole = (self.distances / self.lengths).cmp(&(other.distances / other.lengths));
        let rest = |of: Self| of.distances % of.lengths;
        match (whole, rest(self), rest(other)) {
            (Ordering::Equal, 0, _) => false,
            (Ordering::Equal, _, 0) => true,
            // Of two fractions below 1, the one with the smaller reciprocal is larger.
            (Ordering::Equal, mine, theirs) => Self { distances: other.lengths, lengths: theirs }
                .exceeds(Self { distances: self.lengths, lengths: mine }),
            (whole, ..) => whole == Ordering::Greater,
        }
    }

    /// The fraction.
    pub(super) fn blocks(self) -> f64 {
        self.distances as f64 / self.lengths as f64
    }
}

/// A lower bound, and lengths of links that give it.
#[derive(Clone, Debug)]
pub(super) struct Proof {
    pub(super) load: LeastLoad,
    /// Empty for lengths of 0.
    pub(super) lengths: Vec<u64>,
}

impl Proof {
    /// What is known without any lengths.
    pub(super) const NONE: Self = Self { load: LeastLoad::NONE, lengths: Vec::new() };

    /// Takes another bound if it is larger.
    pub(super) fn raise(&mut self, to: LeastLoad, lengths: impl FnOnce() -> Vec<u64>) {
        if to.lengths > 0 && to.exceeds(self.load) {
            *self = Self { load: to, lengths: lengths() };
        }
    }
}

/// A link from one vertex to another, and its capacity as a fraction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Channel {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) capacity: (u32, u32),
}

/// An all-to-all between the ranks of a graph's nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flows<'a> {
    pub(super) vertices: usize,
    /// On each node. Nodes are the first vertices, switches follow.
    pub(super) ranks: &'a [u32],
    /// In any order. Parallel links are separate.
    pub(super) links: &'a [Channel],
}

impl Flows<'_> {
    /// The least load, in blocks for each unit of capacity, by lengths of the links listed.
    ///
    /// Vertices that node 0 cannot reach, or that cannot reach it, are left out. More than 2^20
    /// links are not bounded.
    pub(super) fn least_load(&self) -> Proof {
        if self.links.len() > LINKS {
            return Proof::NONE;
        }
        let mut alone = Proof::NONE;
        let Some(core) = Core::new(self, &mut alone) else { return alone };
        let mut best = Proof { load: alone.load, lengths: Vec::new() };
        search(&core, &mut best);
        if best.load == alone.load {
            return alone;
        }
        let length = |link: &Channel| core.find(link).map_or(0, |link| best.lengths[link]);
        Proof { load: best.load, lengths: self.links.iter().map(length).collect() }
    }
}

/// Bounds by all lengths that are tried.
fn search(core: &Core, best: &mut Proof) {
    cuts::raise(core, best);
    if core.sources.len().div_ceil(64) * core.links.len() <= HOPS {
        let lengths = vec![1; core.classes];
        best.raise(core.load(core.hops(), &lengths), || core.by_link(&lengths));
    }
    let quick = interior::is_quick(core);
    if quick || first_order::is_useful(core) {
        // Where a routing reaches the bound, no lengths are better.
        if core.shortest_routes() <= best.load.blocks() * (1.0 + ROUNDING) {
            return;
        }
        let search = if quick { interior::search } else { first_order::search };
        search(core, &mut |lengths| core.look(lengths, best));
    }
}
