//! Machines that people own are decided: equal ranks are counted once on trees and graphs, too.

use std::sync::Arc;

use common::{problem, reach};
use topocoll::{Collective, Exchange, LinkKind, ListedGraph, Machine, Sync, machine};

fn read(name: &str) -> Machine {
    let path = format!("{}/inputs/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = if name.ends_with(".csv") { format!("graph:{path}") } else { path };
    machine(&text).unwrap()
}

/// Links from each node to those of some permutations, and back.
fn random(nodes: u32, permutations: u32) -> Machine {
    let mut seeded = fastrand::Rng::with_seed(512);
    let mut links = Vec::new();
    for _ in 0..permutations {
        let mut others: Vec<u32> = (0..nodes).collect();
        seeded.shuffle(&mut others);
        let apart = (0..nodes).zip(others).filter(|(from, to)| from != to);
        links.extend(apart.flat_map(|(a, b)| [(a, b), (b, a)]));
    }
    let links = links.into_iter().map(|(from, to)| (from, to, LinkKind::of_class(0)));
    let listed = ListedGraph {
        nodes,
        classes: vec!["link".to_owned()],
        links: links.collect(),
        ..ListedGraph::default()
    };
    Machine::of(Arc::new(listed.with_shortest_routes().unwrap()))
}

/// Every radix has a floor that is its volume, and a search that may halve the time may take longer than others.
#[test]
fn random_graphs_are_decided() {
    for nodes in [400, 700, 1024].into_iter().take(reach(1, 3)) {
        let machine = random(nodes, 3);
        let problem = problem(&machine, Collective::AllToAll, 1024);
        let exchange = Exchange::new(&machine, &problem).unwrap().sync(Sync::Barrier);
        let selection = exchange.select().unwrap();
        assert_eq!(selection.undecided(), [], "{nodes} nodes");
        assert_eq!(selection.choices[0].algorithm, "link-matchings", "{nodes} nodes");
        let bound = selection.bound.seconds;
        let time = selection.choices[0].price.time.total();
        assert!(time < 1.3 * bound, "{nodes} nodes: {time} s, the bound is {bound} s");
    }
}

#[test]
fn trees_stars_and_dragonflies_are_decided() {
    let named = |text: &str| (machine(text).unwrap(), text.to_owned());
    let of_file = |name: &str| (read(name), name.to_owned());
    // The last ones take minutes in a build without optimization.
    let machines = [
        of_file("star500.csv"),
        named("fat-tree:64,2"),
        named("dragonfly:2,4,2"),
        named("fat-tree:8,3"),
        of_file("tree-32x128.toml"),
        named("fat-tree:8,4"),
        named("bluegene-q-midplane-16"),
        named("hyperx:32x32x32"),
        named("fat-tree:128,2"),
        named("fat-tree:32,3"),
    ];
    for (machine, place) in &machines[..reach(3, machines.len())] {
        let problem = problem(machine, Collective::AllToAll, 1024);
        let selection = Exchange::new(machine, &problem).unwrap().select().unwrap();
        assert_eq!(selection.undecided(), [], "{place}");
    }
}
