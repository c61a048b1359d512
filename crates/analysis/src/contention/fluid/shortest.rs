//! The shortest routes between two nodes, over which adaptive routing splits a message.
//!
//! On a grid these are the routes that correct one dimension after the other, in every order, and both
//! ways at exactly half a ring. On a graph they are all routes of the fewest links. Of more than
//! [`MOST`] routes, that number are taken at equal distances in the order of their links.

use std::collections::VecDeque;

use hashbrown::HashMap;
use topocoll_topology::{Graph, Grid, LinkId, Machine, Rank, Route, Shape, Topology};

/// The most routes of a message.
pub(super) const MOST: usize = 64;

/// No route.
const FAR: u16 = u16::MAX;

pub(super) struct Shortest<'a> {
    topology: &'a dyn Topology,
    /// Of a graph: by vertex, the vertices that its links come from.
    before: Vec<Vec<u32>>,
    /// Of a graph: by destination that was asked for, the links to it from each vertex.
    distances: Vec<Vec<u16>>,
    routes: Vec<Route>,
}

/// Bytes for a machine.
pub(super) fn memory(machine: &Machine) -> u128 {
    match machine.topology.network() {
        Shape::Graph(graph) => {
            let (nodes, vertices) = (machine.topology.nodes(), graph.vertices());
            let distances = u128::from(nodes) * u128::from(vertices) * size_of::<u16>() as u128;
            distances + 64 * u128::from(nodes + vertices) + 8 * u128::from(graph.links())
        }
        Shape::Grid(_) | Shape::Complete | Shape::Clustered(_) => 0,
    }
}

impl<'a> Shortest<'a> {
    pub(super) fn new(machine: &'a Machine) -> Self {
        let topology = &*machine.topology;
        let mut before = Vec::new();
        if let Shape::Graph(graph) = topology.network() {
            before.resize(graph.vertices() as usize, Vec::new());
            for at in 0..graph.vertices() {
                graph.leaving(at).for_each(|(_, to)| before[to as usize].push(at));
            }
        }
        let distances =
            vec![Vec::new(); if before.is_empty() { 0 } else { topology.nodes() as usize }];
        Self { topology, before, distances, routes: Vec::new() }
    }

    /// The routes between two ranks; one empty route without numbered links or inside a node.
    pub(super) fn between(&mut self, from: Rank, to: Rank) -> &[Route] {
        let [from, to] = [from, to].map(|rank| Rank(self.topology.node_of(rank)));
        self.routes.clear();
        match self.topology.network() {
            _ if from == to => self.routes.push(Route::default()),
            Shape::Grid(grid) => of_grid(grid, from, to, &mut self.routes),
            Shape::Graph(graph) => {
                if self.distances[to.index()].is_empty() {
                    self.distances[to.index()] = distances(&self.before, to);
                }
                of_graph(graph, &self.distances[to.index()], [from, to], &mut self.routes);
            }
            Shape::Complete | Shape::Clustered(_) => self.routes.push(Route::default()),
        }
        &self.routes
    }
}

fn of_grid(grid: &Grid, from: Rank, to: Rank, routes: &mut Vec<Route>) {
    let mut hops = Vec::new();
    for (u, &side) in grid.sides().iter().enumerate() {
        let [a, b] = [from, to].map(|rank| i64::from(grid.radix().coordinate(rank, u)));
        let (side, up) = (i64::from(side), b - a);
        match grid.wrap()[u] {
            _ if up == 0 => {}
            false => hops.push((u as u32, [up, up])),
            true => {
                let up = up.rem_euclid(side);
                let ways = match (2 * up).cmp(&side) {
                    std::cmp::Ordering::Less => [up, up],
                    std::cmp::Ordering::Equal => [up, -up],
                    std::cmp::Ordering::Greater => [up - side, up - side],
                };
                hops.push((u as u32, ways));
            }
        }
    }
    let ties: Vec<usize> = (0..hops.len()).filter(|&i| hops[i].1[0] != hops[i].1[1]).collect();
    let orders = (1..=hops.len() as u128).product::<u128>();
    let all = orders << ties.len();
    for number in spread(all) {
        // The last bits choose the ways, the rest the order.
        let (mut order, ways) = (number >> ties.len(), number & ((1 << ties.len()) - 1));
        let mut left: Vec<usize> = (0..hops.len()).collect();
        let mut route = Route::default();
        for choices in (1..=left.len() as u128).rev() {
            let place = left.remove((order % choices) as usize);
            order /= choices;
            let tie = ties.iter().position(|&other| other == place);
            let down = tie.is_some_and(|tie| ways >> tie & 1 == 1);
            let (dimension, ways) = hops[place];
            route.push(dimension, ways[usize::from(down)]);
        }
        routes.push(route);
    }
}

/// Links to a node from each vertex.
fn distances(before: &[Vec<u32>], to: Rank) -> Vec<u16> {
    let mut links = vec![FAR; before.len()];
    links[to.index()] = 0;
    let mut open = VecDeque::from([to.0]);
    while let Some(at) = open.pop_front() {
        for &before in &before[at as usize] {
            if links[before as usize] == FAR {
                links[before as usize] = links[at as usize] + 1;
                open.push_back(before);
            }
        }
    }
    links
}

fn of_graph(graph: &Graph, distances: &[u16], [from, to]: [Rank; 2], routes: &mut Vec<Route>) {
    // Routes from each vertex that is nearer, counted from the destination on.
    let mut counts = HashMap::<u32, u128>::new();
    counts.insert(to.0, 1);
    let onward = |at: u32| {
        let nearer = distances[at as usize] - 1;
        graph.leaving(at).filter(move |(_, next)| distances[*next as usize] == nearer)
    };
    let mut layers = vec![vec![from.0]];
    for _ in 1..distances[from.index()] {
        let last = layers.last().expect("bug: no layer").iter();
        let mut layer: Vec<u32> = last.flat_map(|&at| onward(at).map(|(_, next)| next)).collect();
        layer.sort_unstable();
        layer.dedup();
        layers.push(layer);
    }
    for &at in layers.iter().rev().flatten() {
        let count = onward(at).map(|(_, next)| counts[&next]).fold(0, u128::saturating_add);
        counts.insert(at, count);
    }
    for mut number in spread(counts[&from.0]) {
        let (mut at, mut links) = (from.0, Vec::<LinkId>::new());
        while at != to.0 {
            for (link, next) in onward(at) {
                let count = counts[&next];
                if number < count {
                    links.push(link);
                    at = next;
                    break;
                }
                number -= count;
            }
        }
        routes.push(graph.route_over(from, &links).expect("bug: links that do not meet"));
    }
}

/// At most [`MOST`] numbers below `all`, at equal distances.
fn spread(all: u128) -> impl Iterator<Item = u128> {
    let count = all.min(MOST as u128);
    let (each, rest) = (all / count, all % count);
    (0..count).map(move |i| i * each + i * rest / count)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use topocoll_topology::spec;

    use super::*;

    fn found(text: &str, from: u32, to: u32) -> Vec<Route> {
        let machine = Machine::of(spec::parse_short_form(text).unwrap());
        Shortest::new(&machine).between(Rank(from), Rank(to)).to_vec()
    }

    /// By the distance to every node, and the number of routes that hand counting gives.
    #[test]
    fn routes_are_different_and_shortest() {
        for (text, to, hops, count) in [
            ("torus:8x8", 1, 1, 1),
            ("torus:8x8", 9, 2, 2),
            ("torus:8x8", 4, 4, 2),
            ("torus:8x8", 36, 8, 8),
            ("torus:4x4x4", 42, 6, 48),
            ("mesh:3x3x3", 26, 6, 6),
            ("torus:3x3x3x3x3x3", 364, 6, 64),
            ("hypercube:4", 15, 4, 24),
            ("fat-tree:4,2", 5, 4, 4),
            ("twisted-torus:4x8", 1, 1, 1),
            ("full:5", 3, 0, 1),
            ("torus:2x2*3", 2, 0, 1),
        ] {
            let routes = found(text, 0, to);
            assert_eq!(routes.len(), count, "{text} {to}");
            assert!(routes.iter().all(|route| route.hops() == hops), "{text} {to}: {routes:?}");
            let topology = spec::parse_short_form(text).unwrap();
            let ends = routes
                .iter()
                .all(|route| topology.follow(Rank(0), route) == Ok(topology.node_of(Rank(to))));
            assert!(ends || hops == 0, "{text} {to}");
            let different: HashSet<_> = routes.iter().map(|route| format!("{route:?}")).collect();
            assert_eq!(different.len(), count, "{text} {to}");
        }
        assert_eq!(found("hypercube:8", 0, 255).len(), MOST);
    }

    #[test]
    fn chosen_routes_are_spread_evenly() {
        assert_eq!(spread(3).collect::<Vec<_>>(), [0, 1, 2]);
        let some: Vec<_> = spread(640).collect();
        assert_eq!((some.len(), some[1], some[63]), (64, 10, 630));
        assert!(spread(u128::MAX).count() == MOST);
    }
}
