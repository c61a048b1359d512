//! Bounds of drawn graphs, against linear programs.

use microlp::{ComparisonOp, OptimizationDirection, Problem};

use super::core::{Core, Link};
use super::*;

/// A graph of its own vectors.
#[derive(Debug)]
struct Drawn {
    vertices: usize,
    ranks: Vec<u32>,
    links: Vec<Channel>,
}

impl Drawn {
    fn new(vertices: usize, ranks: &[u32]) -> Self {
        Self { vertices, ranks: ranks.to_vec(), links: Vec::new() }
    }

    fn one_way(&mut self, from: usize, to: usize, capacity: (u32, u32)) {
        self.links.push(Channel { from: from as u32, to: to as u32, capacity });
    }

    fn join(&mut self, a: usize, b: usize, capacity: (u32, u32)) {
        self.one_way(a, b, capacity);
        self.one_way(b, a, capacity);
    }

    fn flows(&self) -> Flows<'_> {
        Flows { vertices: self.vertices, ranks: &self.ranks, links: &self.links }
    }

    fn least_load(&self) -> LeastLoad {
        self.flows().least_load().load
    }

    fn graph(&self, best: &mut Proof) -> Option<Core> {
        Core::new(&self.flows(), best)
    }

    /// By a linear program over the flow of each node on each link.
    fn exact(&self) -> f64 {
        let mut program = Problem::new(OptimizationDirection::Minimize);
        let any = (0.0, f64::INFINITY);
        let most = program.add_var(1.0, any);
        let mut carried = vec![Vec::new(); self.links.len()];
        let ranks = |at: usize| self.ranks.get(at).copied().map_or(0.0, f64::from);
        let all: f64 = (0..self.vertices).map(ranks).sum();
        for source in 0..self.ranks.len() {
            let flows: Vec<_> = self.links.iter().map(|_| program.add_var(0.0, any)).collect();
            for at in 0..self.vertices {
                let mut terms = Vec::new();
                for (link, &flow) in self.links.iter().zip(&flows) {
                    let sign = f64::from(u8::from(link.to as usize == at))
                        - f64::from(u8::from(link.from as usize == at));
                    if sign != 0.0 {
                        terms.push((flow, sign));
                    }
                }
                let stays = ranks(at) - if at == source { all } else { 0.0 };
                program.add_constraint(&terms[..], ComparisonOp::Eq, ranks(source) * stays);
            }
            carried.iter_mut().zip(&flows).for_each(|(carried, &flow)| carried.push((flow, 1.0)));
        }
        for (mut terms, link) in carried.into_iter().zip(&self.links) {
            terms.push((most, -f64::from(link.capacity.0) / f64::from(link.capacity.1)));
            program.add_constraint(&terms[..], ComparisonOp::Le, 0.0);
        }
        program.solve().unwrap().into_solution().unwrap().objective()
    }
}

/// A connected graph, with switches, unequal capacities and ranks, and parallel links; some
/// with links of one direction only.
fn random(rng: &mut fastrand::Rng, most: usize) -> Drawn {
    let nodes = rng.usize(2..=most);
    let vertices = nodes + if rng.bool() { rng.usize(0..=nodes / 2) } else { 0 };
    let equal = rng.bool();
    let ranks = (0..nodes).map(|_| if equal { 1 } else { rng.u32(1..9) }).collect::<Vec<_>>();
    let mut graph = Drawn::new(vertices, &ranks);
    let (wide, both) = (rng.bool(), rng.u8(0..4) > 0);
    for vertex in 1..vertices + rng.usize(0..=2 * vertices) {
        let (a, b) = match vertex < vertices {
            true => (rng.usize(0..vertex), vertex),
            false => (rng.usize(0..vertices), rng.usize(0..vertices)),
        };
        let capacity = if wide { (rng.u32(1..9), rng.u32(1..5)) } else { (1, 1) };
        if a != b && (both || vertex < vertices) {
            graph.join(a, b, capacity);
        } else if a != b {
            graph.one_way(a, b, capacity);
        }
    }
    graph
}

#[test]
fn the_bound_of_a_random_graph_is_nearly_exact() {
    let mut rng = fastrand::Rng::with_seed(28);
    for case in 0..100 {
        let graph = random(&mut rng, 24);
        let (found, exact) = (graph.least_load().blocks(), graph.exact());
        let place = format!("{case}: {found}, and {exact} exactly: {graph:?}");
        assert!(found <= exact * (1.0 + 1e-9), "{place}");
        assert!(found >= exact * (1.0 - 1e-6), "{place}");
    }
}

/// The bound by one search alone.
fn by(search: impl Fn(&Core, &mut dyn FnMut(&[f64])), drawn: &Drawn) -> Option<f64> {
    let mut best = Proof::NONE;
    let graph = drawn.graph(&mut best)?;
    search(&graph, &mut |lengths| graph.look(lengths, &mut best));
    Some(best.load.blocks())
}

#[test]
fn both_searches_come_to_the_same_bound() {
    let mut rng = fastrand::Rng::with_seed(7);
    for case in 0..20 {
        let graph = random(&mut rng, 24);
        let Some(exact) = by(interior::search, &graph) else { continue };
        let found = by(first_order::search, &graph).unwrap();
        assert!((found / exact - 1.0).abs() < 1e-3, "{case}: {found} and {exact}: {graph:?}");
    }
}

/// A torus without its first link.
fn torus(sides: &[usize]) -> Drawn {
    let nodes = sides.iter().product();
    let mut graph = Drawn::new(nodes, &vec![1; nodes]);
    let mut stride = 1;
    for side in sides {
        for node in 0..nodes {
            let at = node / stride % side;
            graph.join(node, node - at * stride + (at + 1) % side * stride, (1, 1));
        }
        stride *= side;
    }
    graph.links.drain(..2);
    graph
}

/// Groups of switches that are connected to each other, one link between any two groups, two
/// nodes on each switch.
fn dragonfly(switches: usize, global: (u32, u32)) -> Drawn {
    let (each, groups) = (switches / 2, switches * switches / 2 + 1);
    let nodes = 2 * groups * switches;
    let mut graph = Drawn::new(nodes + nodes / 2, &vec![1; nodes]);
    for node in 0..nodes {
        graph.join(node, nodes + node / 2, (1, 1));
    }
    let switch = |group, at: usize| nodes + group * switches + at;
    for group in 0..groups {
        for a in 0..switches {
            (0..a).for_each(|b| graph.join(switch(group, a), switch(group, b), (1, 1)));
        }
        for other in group + 1..groups {
            let (there, back) = (other - group - 1, groups - 1 - (other - group));
            graph.join(switch(group, there / each), switch(other, back / each), global);
        }
    }
    graph
}

/// Leaf switches of four nodes, each with a link to each of four spine switches.
fn fat_tree(leaves: usize, taper: u32) -> Drawn {
    let nodes = 4 * leaves;
    let mut graph = Drawn::new(nodes + leaves + 4, &vec![1; nodes]);
    for leaf in 0..leaves {
        (0..4).for_each(|node| graph.join(4 * leaf + node, nodes + leaf, (1, 1)));
        (0..4).for_each(|spine| graph.join(nodes + leaf, nodes + leaves + spine, (1, taper)));
    }
    graph
}

#[test]
fn machines_with_switches_reach_their_narrowest_cut() {
    // The link of a node; the links of a leaf; those of a group.
    for (graph, exact) in [
        (fat_tree(4, 1), 15.0),
        (fat_tree(4, 2), 4.0 * 12.0 / 2.0),
        (fat_tree(64, 4), 4.0 * 252.0),
        (dragonfly(4, (1, 1)), 71.0),
        (dragonfly(4, (1, 2)), 8.0 * 64.0 / 4.0),
        (dragonfly(8, (1, 4)), 16.0 * 16.0 * 4.0),
    ] {
        assert_eq!(graph.least_load().blocks(), exact);
    }
}

#[test]
fn large_graphs_are_bounded_by_halves_or_hops() {
    // Half of a side that wraps, across a failed link.
    for sides in [&[4, 4, 4][..], &[16, 16], &[8, 8, 8], &[16, 16, 16]] {
        let nodes: usize = sides.iter().product();
        let across = 2 * nodes / sides[0] - 1;
        let exact = (nodes * nodes / 4) as f64 / across as f64;
        assert_eq!(torus(sides).least_load().blocks(), exact, "{sides:?}");
    }
    // Each node next to all others within 300: no link is far from the mean.
    let mut ring = Drawn::new(1200, &[1; 1200]);
    for node in 0..1200 {
        (1..=20).for_each(|step| ring.join(node, (node + step * step) % 1200, (1, 1)));
    }
    let graph = ring.graph(&mut { Proof::NONE }).unwrap();
    assert!(!interior::is_quick(&graph) && !first_order::is_useful(&graph));
    let hops = graph.load(graph.hops(), &vec![1; graph.classes]);
    assert!(!hops.exceeds(ring.least_load()));
}

#[test]
fn hops_are_distances_over_links_of_length_one() {
    let mut rng = fastrand::Rng::with_seed(3);
    for nodes in [5, 24, 64, 65, 130] {
        let drawn = random(&mut rng, nodes);
        if let Some(graph) = drawn.graph(&mut { Proof::NONE }) {
            assert_eq!(graph.hops(), graph.distances(&vec![1; graph.classes]), "{drawn:?}");
        }
    }
}

#[test]
fn routes_of_the_fewest_links_carry_all_blocks() {
    let mut rng = fastrand::Rng::with_seed(4);
    for _ in 0..20 {
        let drawn = random(&mut rng, 24);
        let mut alone = Proof::NONE;
        let Some(graph) = drawn.graph(&mut alone) else { continue };
        let mut flows = vec![0.0; graph.links.len()];
        for &source in &graph.sources {
            graph.spread(source, &mut flows);
            for at in (0..graph.ranks.len()).filter(|&at| at != source) {
                let sum = |end: fn(&Link) -> usize| -> f64 {
                    let links = graph.links.iter().zip(&flows);
                    links.filter(|(link, _)| end(link) == at).map(|(_, flow)| flow).sum()
                };
                let stays = sum(|link| link.to) - sum(|link| link.from);
                assert!((stays - graph.demand(source, at)).abs() < 1e-6, "{drawn:?}");
            }
        }
        let most = graph.shortest_routes().max(alone.load.blocks());
        assert!(most >= drawn.exact() * (1.0 - 1e-9), "{drawn:?}");
    }
}

/// The distances over the lengths of all links, calculated on the graph itself.
fn by_lengths(drawn: &Drawn, lengths: &[u64]) -> f64 {
    let ranks = |at: usize| drawn.ranks.get(at).copied().map_or(0.0, f64::from);
    let mut travelled = 0.0;
    for from in 0..drawn.vertices {
        let mut far = vec![f64::INFINITY; drawn.vertices];
        far[from] = 0.0;
        for _ in 0..drawn.vertices {
            for (link, &length) in drawn.links.iter().zip(lengths) {
                let through = far[link.from as usize] + length as f64;
                let known = &mut far[link.to as usize];
                *known = known.min(through);
            }
        }
        let blocks = |to: usize| ranks(from) * ranks(to);
        travelled += (0..far.len())
            .filter(|&to| far[to].is_finite())
            .map(|to| far[to] * blocks(to))
            .sum::<f64>();
    }
    let capacity = |link: &Channel| f64::from(link.capacity.0) / f64::from(link.capacity.1);
    let all: f64 =
        drawn.links.iter().zip(lengths).map(|(link, &length)| capacity(link) * length as f64).sum();
    travelled / all
}

#[test]
fn lengths_give_the_bound() {
    let mut rng = fastrand::Rng::with_seed(6);
    for case in 0..100 {
        let drawn = random(&mut rng, 24);
        let Proof { load, lengths } = drawn.flows().least_load();
        let (found, bound) = (by_lengths(&drawn, &lengths), load.blocks());
        // Around a part that is not connected, distances are longer than the cut says.
        assert!(found >= bound * (1.0 - 1e-9), "{case}: {found} and {bound}: {drawn:?}");
        let exact = drawn.exact();
        assert!(found <= exact * (1.0 + 1e-9), "{case}: {found} and {exact}: {drawn:?}");
    }
    for graph in [torus(&[4, 4, 4]), torus(&[16, 16]), dragonfly(4, (1, 2)), fat_tree(4, 2)] {
        let Proof { load, lengths } = graph.flows().least_load();
        assert_eq!(by_lengths(&graph, &lengths), load.blocks());
    }
}

#[test]
fn fractions_compare_exactly() {
    let mut rng = fastrand::Rng::with_seed(5);
    let wide = u128::MAX;
    for _ in 0..1000 {
        let bits = rng.u32(1..60);
        let mut draw = |least| rng.u128(least..1 << bits);
        let (a, b, c, d) = (draw(0), draw(1), draw(0), draw(1));
        let load = |distances, lengths| LeastLoad { distances, lengths };
        assert_eq!(load(a, b).exceeds(load(c, d)), a * d > c * b, "{a}/{b} {c}/{d}");
    }
    let load = |distances, lengths| LeastLoad { distances, lengths };
    assert!(load(wide, wide - 1).exceeds(load(wide - 1, wide)));
    assert!(load(wide - 1, wide - 2).exceeds(load(wide, wide - 1)));
    assert!(!load(wide, wide).exceeds(load(1, 1)));
}

#[test]
fn bounds_of_extreme_graphs_are_true() {
    // Coprime denominators: capacities are rounded up, never down.
    let mut graph = Drawn::new(4, &[1; 4]);
    for (node, capacity) in [(1, 65_521), (7, 65_519), (9, 65_497), (3, 65_479)].iter().enumerate()
    {
        graph.join(node, (node + 1) % 4, *capacity);
    }
    let (found, exact) = (graph.least_load().blocks(), graph.exact());
    assert!(found <= exact * (1.0 + 1e-12) && found > exact * (1.0 - 1e-3));
    // As many ranks as there are numbers, and the narrowest links.
    for capacity in [(1, u32::MAX), (u32::MAX, 1)] {
        let mut graph = Drawn::new(3, &[u32::MAX; 3]);
        (0..3).for_each(|node| graph.join(node, (node + 1) % 3, capacity));
        // From each node to the other two, over two links each way.
        let ranks = f64::from(u32::MAX);
        let exact = ranks * ranks / f64::from(capacity.0) * f64::from(capacity.1);
        let found = graph.least_load().blocks();
        assert!(found <= exact * (1.0 + 1e-9), "{found} is above {exact}");
    }
    // Nothing to bound, and nothing that could be sent.
    let mut apart = Drawn::new(4, &[1; 4]);
    assert_eq!(apart.least_load(), LeastLoad::NONE);
    apart.one_way(0, 1, (1, 1));
    apart.join(2, 3, (1, 1));
    apart.join(0, 0, (1, 1));
    apart.join(0, 2, (0, 1));
    assert_eq!(apart.least_load(), LeastLoad::NONE);
    assert_eq!(Drawn::new(0, &[]).least_load(), LeastLoad::NONE);
}
