//! Samples of the ranks, for floors of what all of them load.

use topocoll_topology::{MixedRadix, Rank, Shape, Topology};

/// Which ranks a floor is counted over, and the most of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RankSample {
    /// Runs of eight, evenly apart.
    Spread(u32),
    /// Ranks whose messages share links: those on lines of a grid that cross at its last node, elsewhere the
    /// first ranks.
    Near(u32),
}

/// Some numbers below `all`, at most `most`: runs of up to eight, evenly apart. Few are not opposite each other:
/// in a step in which the ranks of one run have near partners, those of another have far ones.
pub(crate) fn spread(all: u32, most: u32) -> impl Iterator<Item = u32> {
    let runs = (most / 8).max(most.clamp(1, 3));
    let length = (most / runs).min(8);
    let parts = u64::from(runs.max(3));
    let first = move |run: u32| (u64::from(run) * u64::from(all) / parts) as u32;
    (0..runs).flat_map(move |run| first(run)..(first(run) + length).min(first(run + 1)))
}

/// The nodes of a grid, perhaps broken, on the lines along all sides that cross at its last node.
pub(crate) fn crossing(topology: &dyn Topology) -> Option<impl Iterator<Item = u32>> {
    let (radix, lattice): (&MixedRadix, _) = match topology.network() {
        Shape::Grid(grid) => (grid.radix(), None),
        Shape::Graph(graph) => (graph.lattice()?.radix(), graph.lattice()),
        Shape::Complete | Shape::Clustered(_) => return None,
    };
    let place = move |node: u32| lattice.map_or(Rank(node), |of| of.place(Rank(node)));
    let nodes = topology.nodes();
    let last = place(nodes - 1);
    let apart = move |node: &u32| {
        let differs = |&u: &usize| radix.coordinate(place(*node), u) != radix.coordinate(last, u);
        (0..radix.dimensions()).filter(differs).count() < 2
    };
    Some((0..nodes).filter(apart))
}
