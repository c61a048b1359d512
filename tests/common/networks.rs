//! Random networks.

use std::sync::Arc;

use topocoll::{
    Capacity, Clusters, Graph, LinkId, LinkKind, ListedGraph, Machine, PerClass, Ports, Topology,
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

/// The network of a machine of one rank on each node as a list of links, by files' rules; if `shuffles`, with
/// its nodes, its switches and its links in another order.
pub fn as_listed(machine: &Machine, random: &mut fastrand::Rng, shuffles: bool) -> Machine {
    let topology = &*machine.topology;
    let links = (0..topology.link_numbers()).filter_map(|link| topology.link(LinkId(link)));
    let mut links: Vec<(u32, u32, LinkKind)> =
        links.map(|link| (link.from, link.to, LinkKind::of_class(0))).collect();
    let vertices = links.iter().map(|link| link.0.max(link.1) + 1).max().unwrap_or(1);
    let nodes = Topology::ranks(topology);
    let mut place: Vec<u32> = (0..vertices).collect();
    if shuffles {
        random.shuffle(&mut place[..nodes as usize]);
        random.shuffle(&mut place[nodes as usize..]);
        random.shuffle(&mut links);
    }
    let placed = |vertex: u32| place[vertex as usize];
    let listed = ListedGraph {
        form: format!("graph:{}{}", machine.name, if shuffles { " shuffled" } else { "" }),
        nodes,
        switches: vertices - nodes,
        classes: vec!["link".to_owned()],
        links: links.into_iter().map(|(a, b, kind)| (placed(a), placed(b), kind)).collect(),
        ..ListedGraph::default()
    };
    Machine::of(Arc::new(listed.with_shortest_routes().unwrap()))
}

/// A tree of equal leaves, equal groups of leaves and a top, each with one switch or several, whose nodes
/// may be joined to their neighbours on the leaf. One in three has a broken part, or nodes in another order.
fn tree(random: &mut fastrand::Rng) -> Graph {
    let [size, leaves, groups] = [random.u32(1..5), random.u32(1..4), random.u32(1..4)];
    let most = random.u32(1..3);
    let [cables, spines, tops] = [(); 3].map(|()| random.u32(1..=most));
    let nodes = size * leaves * groups;
    let (first_spine, first_top) = (nodes + leaves * groups, nodes + (leaves + spines) * groups);
    let kind = |class: u32, random: &mut fastrand::Rng| LinkKind {
        capacity: Capacity::Relative { times: random.u32(1..3), over: 1 },
        ..LinkKind::of_class(class)
    };
    let kinds = [0, 1, 1, 0].map(|class| kind(class, random));
    let mut links = Vec::new();
    for node in 0..nodes {
        links.push((node, nodes + node / size, kinds[0]));
        if size > 2 && kinds[0] == kinds[3] {
            links.push((node, node / size * size + (node + 1) % size, kinds[3]));
        }
    }
    for leaf in 0..leaves * groups {
        for spine in (0..spines).flat_map(|spine| (0..cables).map(move |_| spine)) {
            links.push((nodes + leaf, first_spine + leaf / leaves * spines + spine, kinds[1]));
        }
    }
    for spine in 0..spines * groups {
        links.extend((0..tops).map(|top| (first_spine + spine, first_top + top, kinds[2])));
    }
    match random.u32(0..6) {
        0 => links.push((0, nodes - 1, kind(0, random))),
        1 => {
            let mut order: Vec<u32> = (0..nodes).collect();
            random.shuffle(&mut order);
            let node = |at: u32| order.get(at as usize).copied().unwrap_or(at);
            links = links.into_iter().map(|(a, b, kind)| (node(a), node(b), kind)).collect();
        }
        _ => {}
    }
    let both = links.into_iter().filter(|(from, to, _)| from != to);
    let links = both.flat_map(|(from, to, kind)| [(from, to, kind), (to, from, kind)]).collect();
    let listed = ListedGraph {
        form: format!("a tree of {groups} x {leaves} x {size} nodes"),
        nodes,
        switches: first_top - nodes + tops,
        classes: vec!["near".to_owned(), "far".to_owned()],
        links,
        ..ListedGraph::default()
    };
    listed.with_shortest_routes().unwrap()
}

/// Trees with and without symmetry, and other graphs that have some, with one or several ranks on a node.
pub fn drawn_symmetric(random: &mut fastrand::Rng) -> Machine {
    let shape = match random.u32(0..4) {
        0 => {
            ["dragonfly:2,1,3", "dragonfly:2,2,3", "dragonfly:1,2,4"][random.usize(0..3)].to_owned()
        }
        1 => ["hyperx:4x4", "hyperx:3x5", "hyperx:2x3x4", "fat-tree:4,2", "fat-tree:2,4,2"]
            [random.usize(0..5)]
        .to_owned(),
        _ => String::new(),
    };
    let size = [1, 1, 2, 3][random.usize(0..4)];
    let graph = match &*shape {
        "" => {
            let graph = Arc::new(tree(random));
            let nodes = topocoll::Topology::ranks(&*graph);
            match size {
                1 => Machine::of(graph),
                size => Machine::of(Arc::new(Clusters::on(graph, &[(nodes, size)]).unwrap())),
            }
        }
        shape if size == 1 => topocoll::machine(shape).unwrap(),
        shape => topocoll::machine(&format!("{shape}*{size}")).unwrap(),
    };
    let mut machine = graph;
    let rank = random.u32(1..4);
    machine.set_ports(Ports { rank, node: if random.bool() { random.u32(1..7) } else { rank } });
    machine
}
