//! Shortest routes of offsets on tori all of whose ranks are equivalent, twisted or not.

use std::collections::VecDeque;

use smallvec::SmallVec;
use topocoll_topology::{Graph, Grid, MixedRadix, Rank, Shape, Topology};

/// The most routes of an offset that are examined.
const ROUTES: usize = 16;

/// Signed hops along each dimension.
pub(crate) type SignedHops = SmallVec<[i32; 6]>;

/// The number of each direction in which a route goes, by dimension up and down, with its hops there.
pub(crate) fn directions(route: impl Iterator<Item = i32>) -> impl Iterator<Item = (usize, u64)> {
    let moving = route.enumerate().filter(|&(_, hops)| hops != 0);
    moving.map(|(u, hops)| (2 * u + usize::from(hops < 0), hops.unsigned_abs().into()))
}

/// A torus on which all ranks are equivalent.
pub(crate) enum Torus<'t> {
    Plain(&'t Grid),
    Twisted(&'t Graph, &'t MixedRadix),
}

impl<'t> Torus<'t> {
    /// If the network is a torus, twisted or not, and nothing of it has failed.
    pub(crate) fn of(topology: &'t dyn Topology) -> Option<Self> {
        match topology.shape() {
            Shape::Grid(grid) => {
                let mut sides = grid.wrap().iter().zip(grid.sides());
                sides.all(|(wraps, side)| *wraps || *side == 1).then_some(Self::Plain(grid))
            }
            Shape::Graph(graph) if graph.lattice().is_some() => {
                Some(Self::Twisted(graph, graph.translations()?))
            }
            _ => None,
        }
    }

    /// The numbering of its ranks.
    pub(crate) fn radix(&self) -> &'t MixedRadix {
        match *self {
            Self::Plain(grid) => grid.radix(),
            Self::Twisted(_, radix) => radix,
        }
    }

    /// By offset, its shortest routes, at most [`ROUTES`].
    pub(crate) fn routes(&self) -> Vec<Vec<SignedHops>> {
        match *self {
            Self::Plain(grid) => {
                let at = |offset, u| grid.radix().coordinate(Rank(offset), u);
                let nearest = |offset| {
                    (0..grid.sides().len()).map(move |u| grid.nearest(u, 0, at(offset, u)) as i32)
                };
                let routes = |offset| on_torus(grid.radix(), nearest(offset).collect());
                (0..grid.ranks()).map(routes).collect()
            }
            Self::Twisted(lattice, _) => on_twisted(lattice),
        }
    }

    /// The neighbour of rank 0 in a direction.
    pub(crate) fn neighbour(&self, u: usize, hops: i64) -> Rank {
        match *self {
            Self::Plain(grid) => grid.radix().shifted(Rank(0), u, hops),
            Self::Twisted(lattice, _) => {
                lattice.neighbour(Rank(0), u, hops).expect("bug: a torus without a link")
            }
        }
    }
}

/// Shortest routes from rank 0 of a twisted torus to every rank, at most [`ROUTES`] to each.
pub(crate) fn on_twisted(lattice: &Graph) -> Vec<Vec<SignedHops>> {
    let ranks = lattice.ranks() as usize;
    let dimensions = lattice.link_classes().len();
    let mut hops = vec![u32::MAX; ranks];
    let mut routes: Vec<Vec<SignedHops>> = vec![Vec::new(); ranks];
    hops[0] = 0;
    routes[0].push(SmallVec::from_elem(0, dimensions));
    let mut open = VecDeque::from([Rank(0)]);
    while let Some(at) = open.pop_front() {
        let own = routes[at.index()].clone();
        for u in 0..dimensions {
            for direction in [1, -1] {
                let Some(to) = lattice.neighbour(at, u, direction) else { continue };
                if hops[to.index()] == u32::MAX {
                    hops[to.index()] = hops[at.index()] + 1;
                    open.push_back(to);
                }
                if hops[to.index()] == hops[at.index()] + 1 {
                    for route in &own {
                        let mut route = route.clone();
                        route[u] += direction as i32;
                        let known = &mut routes[to.index()];
                        if known.len() < ROUTES && !known.contains(&route) {
                            known.push(route);
                        }
                    }
                }
            }
        }
    }
    routes
}

/// A shortest route on a torus, and those that go in the other direction along sides of which it goes half.
pub(crate) fn on_torus(radix: &MixedRadix, nearest: SignedHops) -> Vec<SignedHops> {
    let mut routes = vec![nearest];
    for (u, &side) in radix.sides().iter().enumerate() {
        if routes[0][u].unsigned_abs() * 2 != side {
            continue;
        }
        for i in 0..routes.len().min(ROUTES - routes.len()) {
            let mut other = routes[i].clone();
            other[u] = -other[u];
            routes.push(other);
        }
    }
    routes
}
