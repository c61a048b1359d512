//! Random graphs: every schedule delivers, and an independent program counts what it costs.

use std::sync::Arc;

use crate::common::{check_promises, serving};
use crate::independent::check_all;
use topocoll::{
    Capacity, Clusters, Graph, LinkKind, ListedGraph, Machine, Method, PerClass, Rank, Route,
    Shape, Topology as _, machine,
};

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
pub(crate) fn machines() -> Vec<Machine> {
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
        machine.set_ports(seeded.u32(1..4));
        machine
    };
    (0..20).map(machine).collect()
}

/// Routes follow the next links that are listed for each vertex and destination.
#[test]
fn routes_take_the_links_that_lead_onward() {
    let path = format!("{}/tests/machines/fat-tree.xml", env!("CARGO_MANIFEST_DIR"));
    let (cables, forms) =
        (machine(&path).unwrap(), ["hypercube:5", "hyperx:4x3x2", "fat-tree:3,3"]);
    let forms =
        forms.into_iter().chain(["dragonfly:2,4,2", "twisted-torus:3+2x5", "torus:4x4/1,1"]);
    let families = forms.map(|form| machine(form).unwrap());
    let mut walked = 0;
    for machine in machines().into_iter().chain(families).chain([cables]) {
        let Shape::Graph(graph) = machine.topology.network() else { panic!("{}", machine.name) };
        let nodes = graph.ranks();
        let (mut route, mut onward) = (Route::default(), Vec::new());
        for (from, to) in (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))) {
            graph.route(Rank(from), Rank(to), &mut route);
            let mut at = from;
            graph.for_each_link(Rank(from), &route, &mut |link| {
                onward.clear();
                assert!(graph.onward(at, Rank(to), &mut onward), "{}", machine.name);
                let port = onward[(from + to) as usize % onward.len()];
                assert_eq!(graph.leaving(at).nth(port).unwrap().0, link, "{}", machine.name);
                at = graph.link(link).unwrap().to;
                walked += 1;
            });
        }
    }
    assert!(walked > 10_000, "{walked} links");
}

#[test]
fn every_schedule_on_random_graphs_keeps_its_promises() {
    for machine in machines() {
        for (algorithm, problem, setting) in serving(&machine, 4) {
            check_promises(&machine, algorithm, &problem, &setting, Method::Replay);
        }
    }
}

#[test]
fn an_independent_replay_counts_the_same_on_random_graphs() {
    let cases = machines().into_iter().flat_map(|machine| {
        let served = serving(&machine, 4);
        served.into_iter().map(move |case| (machine.clone(), case))
    });
    check_all(&cases.collect::<Vec<_>>());
}
