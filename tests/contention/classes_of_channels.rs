//! Classes of virtual channels on graphs: no cycle of dependencies, everything delivered, and as fast as a
//! grid with its datelines.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use topocoll::contention::{
    AllToAll, ChannelClasses, Dateline, Scheduled, Share, Sync, Traffic, simulate,
};
use topocoll::{
    Collective, Graph, Grid, LinkKind, ListedGraph, Machine, Parameters, PerClass, Rank, Shape,
};

use common::{MEMORY, network, problem, reach, request, routers, run, schedule_of};

/// The links and classes that messages take one after the other. Checks that every class is one of
/// those counted.
fn dependencies(
    traffic: &dyn Traffic,
    machine: &Machine,
    classes: &ChannelClasses,
) -> BTreeMap<(u64, u32), BTreeSet<(u64, u32)>> {
    let mut found: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    let mut share = Share::default();
    for step in 0..traffic.steps() {
        for node in (0..traffic.nodes()).map(Rank) {
            traffic.share(node, step, &mut share);
            for send in &share.sends {
                let mut last = None;
                classes.along(machine, node, &send.route, |link, class| {
                    assert!(class < classes.count());
                    found.entry((link.0, class)).or_default();
                    if let Some(last) = last {
                        found.entry(last).or_default().insert((link.0, class));
                    }
                    last = Some((link.0, class));
                });
            }
        }
    }
    found
}

/// Whether what nothing leads to can be taken away until nothing is left (Kahn 1962).
fn has_no_cycle<V: Ord + Copy>(edges: &BTreeMap<V, BTreeSet<V>>) -> bool {
    let mut into: BTreeMap<V, usize> = edges.keys().map(|&vertex| (vertex, 0)).collect();
    for to in edges.values().flatten() {
        *into.get_mut(to).unwrap() += 1;
    }
    let mut open: Vec<V> = into.iter().filter(|(_, n)| **n == 0).map(|(&v, _)| v).collect();
    let mut taken = 0;
    while let Some(vertex) = open.pop() {
        taken += 1;
        for to in &edges[&vertex] {
            let left = into.get_mut(to).unwrap();
            *left -= 1;
            if *left == 0 {
                open.push(*to);
            }
        }
    }
    taken == edges.len()
}

/// The classes that an all-to-all requires; checks that no dependencies of theirs form a cycle.
fn required(machine: &Machine) -> u32 {
    let traffic = AllToAll::new(machine, 64, MEMORY).unwrap();
    let of = |vcs| ChannelClasses::of(&traffic, machine, vcs);
    let classes = (1..=16).find_map(|vcs| of(vcs).ok()).unwrap();
    let found = dependencies(&traffic, machine, &classes);
    assert!(has_no_cycle(&found), "{}", machine.topology.short_form());
    assert!(found.keys().any(|&(_, class)| class + 1 == classes.count()));
    classes.count()
}

/// Without startups, with the routes of listed links or of a lattice.
fn of_graph(graph: Graph) -> Machine {
    let mut machine = Machine::of(Arc::new(graph));
    machine.timing.startup = PerClass::uniform(0.0);
    machine.set_ports(3);
    machine
}

/// A ring with chords: connected, and with cycles of many lengths.
fn ring_with_chords(nodes: u32, chords: &[(u32, u32)]) -> Machine {
    let ring = (0..nodes).map(|from| (from, (from + 1) % nodes));
    let chords = chords.iter().map(|&(from, to)| (from % nodes, to % nodes));
    let pairs = ring.chain(chords.filter(|(from, to)| from != to));
    let kind = LinkKind::of_class(0);
    let links = pairs.flat_map(|(from, to)| [(from, to, kind), (to, from, kind)]);
    let listed = ListedGraph {
        form: "a ring with chords".to_owned(),
        nodes,
        classes: vec!["link".to_owned()],
        links: links.collect(),
        ..ListedGraph::default()
    };
    of_graph(listed.with_shortest_routes().unwrap())
}

#[test]
fn cycles_are_found() {
    let ring = |last: u32| {
        let edge = |i| (i, BTreeSet::from([i + 1]));
        let mut edges: BTreeMap<_, _> = (0..4).map(edge).collect();
        edges.insert(4, if last == 5 { BTreeSet::new() } else { BTreeSet::from([last]) });
        edges
    };
    assert!(has_no_cycle(&ring(5)));
    assert!(!has_no_cycle(&ring(0)) && !has_no_cycle(&ring(2)));
}

/// The virtual channels that an all-to-all requires, as the book has them.
#[test]
fn dependencies_of_an_all_to_all_have_no_cycle() {
    for (text, most) in [
        ("fat-tree:3,3", 1),
        ("fat-tree:2,3,2", 1),
        ("hypercube:5", 1),
        ("hyperx:3x4", 1),
        ("dragonfly:2,4,2", 2),
        ("dragonfly:1,3,2,5", 2),
        ("dragonfly:2,4,2*2", 2),
        ("torus:8/0+0", 1),
        ("torus:4x4/0,0+0", 2),
        ("torus:8x8/3,4", 2),
        ("torus:8x8/line:0,3+0", 2),
        ("torus:16x16/0,0+0/5,5+1", 2),
        ("torus:4x4x4/0,0,0+0", 2),
        ("torus:4x4x4/0,0,0", 2),
        ("torus:4x4x4/line:0,0,0+0", 2),
        ("torus:8x4x4/line:0,0,0+0", 2),
        ("torus:8x8x4/0,0,0+0/3,1,2", 2),
        ("torus:8x8x8/optical-switch:0,1,2+0", 2),
        ("mesh:6x6/2,2/2,3", 2),
        ("torus:4x4x4/0,0,0+0*2", 2),
        ("twisted-torus:4x4x8", 2),
        ("twisted-torus:4x8/0,0+0", 2),
    ] {
        let machine = network(text, 5e-9);
        let found = required(&machine);
        assert_eq!(found, most, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn dependencies_on_random_graphs_have_no_cycle(
        nodes in 3u32..24,
        chords in proptest::collection::vec((0u32..24, 0u32..24), 0..20),
    ) {
        required(&ring_with_chords(nodes, &chords));
    }

    /// Up to five failures, where they do not cut the torus.
    #[test]
    fn dependencies_on_broken_tori_have_no_cycle(
        links in proptest::collection::vec((0u32..5, 0u32..4, 0u32..3, 0u32..3), 1..6),
    ) {
        let names = links.iter().map(|(x, y, z, u)| format!("/{x},{y},{z}+{u}"));
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        names.dedup();
        required(&network(&format!("torus:5x4x3{}", names.concat()), 5e-9));
    }

    /// As few virtual channels as the routes require, with the least buffers.
    #[test]
    fn everything_is_delivered_with_the_classes_required(
        nodes in 3u32..12,
        chords in proptest::collection::vec((0u32..12, 0u32..12), 0..6),
        buffer in 1u32..4,
    ) {
        let machine = ring_with_chords(nodes, &chords);
        let traffic = AllToAll::new(&machine, 300, MEMORY).unwrap();
        let mut settings = routers(required(&machine));
        settings.buffer_flits = buffer;
        for model in ["wormhole", "flit"] {
            let found = run(&traffic, &machine, model, settings);
            prop_assert!(!found.partial && found.deadlock.is_empty(), "{}", model);
            prop_assert_eq!(found.messages, u64::from(nodes) * u64::from(nodes - 1));
        }
    }
}

/// Long messages of all pairs at once, which deadlock on rings without classes.
#[test]
fn everything_is_delivered_on_broken_tori() {
    for text in ["torus:4x4/0,0+0", "torus:8x8/3,4", "torus:4x4x4/line:0,0,0+0"] {
        let machine = network(text, 5e-9);
        let traffic = AllToAll::new(&machine, 200, MEMORY).unwrap();
        for vcs in [required(&machine), 5] {
            for model in ["wormhole", "flit"] {
                let found = run(&traffic, &machine, model, routers(vcs));
                assert!(!found.partial && found.deadlock.is_empty(), "{text} {model} {vcs}");
            }
        }
    }
}

#[test]
fn too_few_virtual_channels_are_refused_with_the_number_required() {
    let machine = network("torus:8x8/3,4", 5e-9);
    let traffic = AllToAll::new(&machine, 64, MEMORY).unwrap();
    for model in ["wormhole", "flit"] {
        let found = simulate(&request(&traffic, &machine, model, routers(1), Sync::Free));
        let told = "vcs=1: the routes on torus:8x8/3,4 require 2 virtual channels, or messages may deadlock";
        assert_eq!(found.unwrap_err().to_string(), told);
    }
    // The fluid model has no channels.
    assert!(simulate(&request(&traffic, &machine, "fluid", routers(1), Sync::Free)).is_ok());
}

/// The routes of a schedule, not those of the machine.
#[test]
fn routes_of_schedules_have_classes() {
    let mut machine = network("torus:4x4/0,0+0", 5e-9);
    machine.set_ports(4);
    for name in ["link-matchings", "store-and-forward", "direct"] {
        let asked = problem(&machine, Collective::AllToAll, 64);
        let schedule = schedule_of(&machine, &asked, name, &Parameters::new()).unwrap();
        let traffic = Scheduled::new(&schedule, &machine);
        let classes = ChannelClasses::of(&traffic, &machine, 16).unwrap();
        assert!(has_no_cycle(&dependencies(&traffic, &machine, &classes)), "{name}");
        assert!(!run(&traffic, &machine, "flit", routers(classes.count())).partial, "{name}");
    }
}

/// A torus as a graph has the routes of the grid, and classes in place of datelines.
#[test]
fn a_torus_as_a_graph_takes_about_the_time_of_the_grid() {
    for sides in [&[8][..], &[4, 4], &[8, 8], &[4, 4, 4]].into_iter().take(reach(2, 4)) {
        let grid = Grid::torus(sides).unwrap();
        let graph = of_graph(Graph::of_grid(&grid, &[]).unwrap());
        let mut machine = graph.clone();
        machine.topology = Arc::new(grid);
        assert!(matches!(graph.topology.shape(), Shape::Graph(_)));
        for vcs in [2, 4] {
            let time = |machine: &Machine, dateline| {
                let traffic = AllToAll::new(machine, 400, MEMORY).unwrap();
                let mut settings = routers(vcs);
                settings.dateline = dateline;
                run(&traffic, machine, "flit", settings).time as f64
            };
            let ratio = time(&graph, None) / time(&machine, Some(Dateline::Crossing));
            assert!((ratio - 1.0).abs() < 0.03, "{sides:?}, {vcs} channels: {ratio}");
        }
    }
}
