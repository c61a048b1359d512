//! Random networks.

use std::sync::Arc;

use topocoll::{Capacity, Clusters, Graph, LinkKind, ListedGraph, Machine, PerClass, Ports};

/// A connected graph with switches, one-way and parallel links, and unequal links.
fn random(random: &mut fastrand::Rng) -> Graph {
    let (nodes, switches) = (random.u32(2..9), random.u32(0..4));
    let vertices = nodes + switches;
    let kind = |random: &mut fastrand::Rng| {
        let [times, over] =
            *[[1, 1], [1, 1], [1, 2], [2, 1], [2, 3]].get(random.usize(0..5)).unwrap();
        LinkKind {
            capacity: Capacity::Relative { times, over },
            latency: random.bool().then_some(2e-7),
            ..LinkKind::of_class(random.u32(0..2))
        }
    };
    let mut links = Vec::new();
    for vertex in 1..vertices {
        let other = random.u32(0..vertex);
        for (from, to) in [(vertex, other), (other, vertex)] {
            links.push((from, to, kind(random)));
        }
    }
    for _ in 0..random.u32(0..3 * vertices) {
        let (from, to) = (random.u32(0..vertices), random.u32(0..vertices));
        if from != to {
            links.push((from, to, kind(random)));
        }
    }
    let listed = ListedGraph {
        form: format!("a graph of {nodes} nodes"),
        nodes,
        switches,
        classes: vec!["near".to_owned(), "far".to_owned()],
        links,
        ..ListedGraph::default()
    };
    listed.with_shortest_routes().unwrap()
}

/// Random graphs with one or several ranks on each node.
pub fn drawn_graphs() -> Vec<Machine> {
    let mut seeded = fastrand::Rng::with_seed(28);
    let machine = |i: u32| {
        let graph = Arc::new(random(&mut seeded));
        let nodes = topocoll::Topology::ranks(&*graph);
        let sizes: Vec<(u32, u32)> = match i % 3 {
            0 => vec![(nodes, 2)],
            _ => (0..nodes).map(|_| (1, seeded.u32(1..4))).collect(),
        };
        let mut machine = match i % 4 {
            3 => Machine::of(Arc::new(Clusters::on(graph, &sizes).unwrap())),
            _ => Machine::of(graph),
        };
        machine.timing.per_byte = match i % 4 {
            3 => PerClass::each(&[0.2e-9, 1e-9, 2e-9]),
            _ => PerClass::each(&[1e-9, 2e-9]),
        };
        let rank = seeded.u32(1..4);
        let node = if i % 8 == 3 { seeded.u32(1..7) } else { rank };
        machine.set_ports(Ports { rank, node });
        machine
    };
    (0..20).map(machine).collect()
}
