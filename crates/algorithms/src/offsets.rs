//! Shortest routes of offsets on tori all of whose ranks are equivalent, twisted or not.

use std::collections::VecDeque;

use smallvec::SmallVec;
use topocoll_topology::{Graph, MixedRadix, Rank, Topology};

/// The most routes of an offset that are examined.
pub(crate) const ROUTES: usize = 16;

/// Signed hops along each dimension.
pub(crate) type SignedHops = SmallVec<[i32; 6]>;

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

/// The shortest routes of an offset on a torus, at most [`ROUTES`]: along sides of which it goes half, both directions.
pub(crate) fn on_torus(radix: &MixedRadix, offset: Rank) -> Vec<SignedHops> {
    let along = |u: usize| {
        let (at, side) = (radix.coordinate(offset, u), radix.sides()[u]);
        if 2 * u64::from(at) > side.into() { -((side - at) as i32) } else { at as i32 }
    };
    with_ties(radix, (0..radix.dimensions()).map(along).collect())
}

/// A shortest route on a torus, and those that go in the other direction along sides of which it goes half.
pub(crate) fn with_ties(radix: &MixedRadix, nearest: SignedHops) -> Vec<SignedHops> {
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
