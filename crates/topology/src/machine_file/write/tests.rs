use std::sync::Arc;

use super::super::parse_file;
use super::*;
use crate::{ListedGraph, Ports, Timing, spec};

/// What tells two machines apart, but for their names and what is assumed.
fn all_of(machine: &Machine) -> String {
    let Machine { topology, given_ports, ports, timing, endpoint, .. } = machine;
    let mut routes = Vec::new();
    let links: Vec<_> = (0..topology.links())
        .map(|link| {
            let kind = topology.link_kinds().get(topology.link_kind(LinkId(link)));
            let class = topology.link_classes()[machine.class_of(LinkId(link))].clone();
            let ends = topology.link(LinkId(link)).map(|link| (link.from, link.to));
            let kind = kind.map(|kind| (kind.capacity, kind.latency));
            (ends, topology.link_name(LinkId(link)), class, kind)
        })
        .collect();
    if let Shape::Graph(graph) = topology.network() {
        for (from, to) in (0..graph.nodes).flat_map(|a| (0..graph.nodes).map(move |b| (a, b))) {
            graph.own_links(Rank(from), Rank(to), &mut routes);
        }
    }
    let timing = Timing { name: String::new(), ..timing.clone() };
    let sizes: Vec<_> = match topology.shape() {
        Shape::Clustered(nodes) => nodes.sizes().collect(),
        _ => vec![topology.ranks()],
    };
    format!("{sizes:?} {links:?} {routes:?} {given_ports:?} {ports:?} {timing:?} {endpoint:?}")
}

fn reads_back(machine: &Machine) -> String {
    let text = write_file(machine).unwrap_or_else(|error| panic!("{}: {error}", machine.name));
    let again = parse_file("again", &text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
    assert_eq!(all_of(&again), all_of(machine), "{text}");
    text
}

#[test]
fn short_forms_read_back() {
    for form in [
        "full:8",
        "torus:4x4/1,1",
        "mesh:2x2*4,1,1,2",
        "cluster:2*4,2",
        "hypercube:3",
        "fat-tree:4,2,3/2*2",
        "dragonfly:2,4,2",
        "twisted-torus:4x8",
    ] {
        let mut machine = Machine::of(spec::parse_short_form(form).unwrap());
        let text = reads_back(&machine);
        assert!(text.contains(&format!("shape = {{ value = \"{form}\"")), "{text}");
        machine.timing.barrier = Barrier { fixed: -1.5e-6, per_doubling: 1e-6 };
        machine.timing.gather = true;
        machine.timing.injection = Injection { rank: 1.0 / 3e9, node: 0.0 };
        machine.timing.per_block = 12e-9;
        machine.timing.rendezvous = Rendezvous { above: 32 << 10, time: 6.4e-6 };
        machine.timing.contention = Contention { alone: 1.0, several: f64::INFINITY };
        machine.endpoint.set("window", "3").unwrap();
        machine.endpoint.set("order", "random:7").unwrap();
        machine.set_ties(Ties::Balanced);
        machine.set_ports(Ports { rank: 2, node: u32::MAX });
        reads_back(&machine);
    }
}

/// Random networks of any values and names.
#[test]
fn networks_read_back() {
    let mut random = fastrand::Rng::with_seed(57);
    let names = ["a", "a", "", "b c", "\u{1b}", "\"", "'''", "\u{1f980}", "\\", "x,y", "1"];
    for _ in 0..400 {
        let (nodes, switches) = (random.u32(1..7), random.u32(0..4));
        let (vertices, classes) = (nodes + switches, random.u32(1..4));
        let kind = |random: &mut fastrand::Rng| LinkKind {
            capacity: match random.u8(..4) {
                0 => Capacity::CLASS,
                1 => {
                    Capacity::Relative { times: random.u32(1..9), over: random.u32(1..9) }.lowest()
                }
                2 => Capacity::BytesPerSecond(random.f64() * 1e12 + 1.0),
                _ => Capacity::BytesPerSecond(f64::from(random.u32(1..100)) * 1e9),
            },
            latency: random.bool().then(|| random.f64() * 1e-5),
            ..LinkKind::of_class(random.u32(..classes))
        };
        let one_way = random.u8(..4) == 0;
        let mut links = Vec::new();
        for to in 1..vertices {
            let (from, kind) = (random.u32(..to), kind(&mut random));
            links.extend([(from, to, kind), (to, from, kind)]);
        }
        for _ in 0..random.u32(..6) {
            let (from, to) = (random.u32(..vertices), random.u32(..vertices));
            let kind = kind(&mut random);
            if from != to {
                links.push((from, to, kind));
                links.extend((!one_way).then_some((to, from, kind)));
            }
        }
        links.sort_by_key(|(from, to, kind)| (*from, *to, kind.key()));
        let listed = ListedGraph {
            form: "network".to_owned(),
            nodes,
            switches,
            names: (0..vertices).map(|_| names[random.usize(..names.len())].to_owned()).collect(),
            classes: (0..classes).map(|class| format!("class {class}")).collect(),
            links,
        };
        let graph = listed.with_shortest_routes().unwrap();
        let names = super::names(&graph);
        let is_used = |class| graph.links.kinds().iter().any(|kind| kind.class == class);
        let all_used = (0..classes).all(is_used);
        let mut topology: Arc<dyn Topology> = Arc::new(Graph { names, ..graph });
        if random.bool() {
            let groups = [(nodes, random.u32(2..4))];
            topology = Arc::new(crate::Clusters::on(topology, &groups).unwrap());
        }
        let machine = Machine::of(topology);
        match all_used {
            true => drop(reads_back(&machine)),
            false => drop(parse_file("again", &write_file(&machine).unwrap()).unwrap()),
        }
    }
}

/// Links as their ends and the seconds of a byte.
type Routes = Vec<Vec<(u32, u32, f64)>>;

/// By pair of nodes the seconds of a byte on each link of the route, and its loads by pairs of vertices.
fn routes(machine: &Machine) -> (Routes, BTreeMap<(u32, u32), Vec<u32>>) {
    let Shape::Graph(graph) = machine.topology.network() else { panic!("a graph") };
    let (mut routes, mut loads) = (Vec::new(), vec![0; graph.links.count()]);
    for (from, to) in (0..graph.nodes).flat_map(|a| (0..graph.nodes).map(move |b| (a, b))) {
        let mut links = Vec::new();
        graph.own_links(Rank(from), Rank(to), &mut links);
        let mut link = |link: LinkId| {
            loads[link.0 as usize] += from * graph.nodes + to;
            let ends = graph.link(link).unwrap();
            (ends.from, ends.to, machine.seconds_per_byte(link))
        };
        routes.push(links.into_iter().map(&mut link).collect());
    }
    let mut by_ends = BTreeMap::<_, Vec<_>>::new();
    for (link, load) in loads.into_iter().enumerate() {
        let ends = (graph.links.from(link), graph.links.to(link));
        by_ends.entry(ends).or_default().push(load);
    }
    by_ends.values_mut().for_each(|loads| loads.sort_unstable());
    (routes, by_ends)
}

#[test]
fn routes_of_their_own_are_a_table() {
    let platform = |topology: &str, parameters: &str, hosts: u32| {
        let text = format!(
            "<platform><cluster topology='{topology}' radical='0-{}' bw='1GBps' lat='1us' \
             topo_parameters='{parameters}'/></platform>",
            hosts - 1
        );
        crate::files::read("platform", &text).unwrap()
    };
    for machine in [
        platform("FAT_TREE", "2;4,2;1,2;1,1", 8),
        platform("FAT_TREE", "2;4,4;1,2;1,2", 16),
        platform("DRAGONFLY", "3,4;2,3;4,2;2", 48),
    ] {
        let text = write_file(&machine).unwrap();
        let again = parse_file("again", &text).unwrap();
        assert_eq!(routes(&again), routes(&machine), "{text}");
        assert_eq!(again.timing.per_hop, machine.timing.per_hop);
    }
    let large = write_file(&platform("FAT_TREE", "1;4000;1;1", 4000)).unwrap_err().message;
    assert!(large.contains("longer than 1048576 bytes"), "{large}");
    let text = write_file(&platform("FAT_TREE", "2;4,4;1,2;1,2", 16)).unwrap();
    let refused = parse_file("again", &text.replacen("#1", "#2", 1)).unwrap_err().message;
    assert!(refused.contains("link 2 of 2 from"), "{refused}");
}

#[test]
fn values_of_implementations_are_refused_with_their_rule() {
    let file = |line: &str| {
        let text = write_file(&Machine::of(spec::parse_short_form("torus:4x4").unwrap())).unwrap();
        parse_file("wrong", &text.replace("[timing]\n", &format!("[timing]\n{line}\n")))
    };
    for (line, rule) in [
        (
            "contention = { value = 0.5, source = \"x\" }",
            "contention is 0.5, not an exponent from 1",
        ),
        ("contention = { value = [1, 2, 3], source = \"x\" }", "contention is [1, 2, 3], not an"),
        ("per_block = { value = 12, source = \"x\" }", "per_block is integer, not text such as"),
        ("rendezvous = { above = \"32KiB\", source = \"x\" }", "missing field `time`"),
        ("rendezvous = { above = \"x\", time = \"1us\", source = \"x\" }", "not a size such as"),
    ] {
        let refused = file(line).unwrap_err();
        assert!(refused.message.contains(rule) && refused.span.is_some(), "{line}: {refused:?}");
    }
    let read = file("contention = { value = [1, inf], source = \"x\" }").unwrap().timing.contention;
    assert_eq!(read, Contention { alone: 1.0, several: f64::INFINITY });
}
