//! The machines of the sweep.

use common::{BETWEEN_RANKS, drawn_graphs, machines_and_ports, set_values, with_ports};
use topocoll::units::parse_ports;
use topocoll::{Machine, machine};

use crate::walk::hash;

/// Nodes of several ranks on networks of every kind.
const MORE: [&str; 12] = [
    "full:6",
    "cluster:2,3,1",
    "cluster:4*2",
    "torus:4x6",
    "torus:4x4*2",
    "grid:3x4~*1",
    "mesh:4x2*2,1,1,3,1,2,1,1",
    "torus:4x4/1,1/0,2+1",
    "torus:4x6@2x2,2x3~",
    "grid:8~x2@2x4,2*2",
    "fat-tree:2,3,3/2*2",
    "dragonfly:1,2,1*3",
];

/// Ports of a rank, and others of its node.
const OWN_NODE_PORTS: [(&str, &str); 14] = [
    ("cluster:2x4", "all"),
    ("cluster:3x4", "2,9"),
    ("cluster:2,3,1", "1,3"),
    ("cluster:2,3,1", "all"),
    ("cluster:4*2", "1,2"),
    ("cluster:5x4", "4,1"),
    ("cluster:5x4", "2,5"),
    ("cluster:6x3", "all,4"),
    ("cluster:9x8", "1,all"),
    ("torus:4x4*2", "3,8"),
    ("torus:4x4*2", "1,all"),
    ("mesh:4x2*2,1,1,3,1,2,1,1", "2,3"),
    ("fat-tree:2,3,3/2*2", "all,2"),
    ("dragonfly:1,2,1*3", "2,6"),
];

/// Every machine file, shapes with corners, networks with failures, and random graphs.
pub(crate) fn chosen() -> Vec<Box<dyn FnOnce() -> Machine + Send>> {
    let mut machines = machines_and_ports();
    // Large networks of nodes of several ranks have few equivalent ranks. Small ones are walked.
    machines.retain(|machine| {
        let of_one_rank = machine.topology.nodes() == machine.ranks();
        machine.ranks() <= 256 || of_one_rank || machine.topology.link_numbers() == 0
    });
    machines.extend(MORE.map(|text| with_ports(text, 1)));
    for text in BETWEEN_RANKS {
        machines.extend([1, 2, 5].map(|ports| with_ports(text, ports)));
    }
    for (text, ports) in OWN_NODE_PORTS {
        machines.push(with_ports(text, parse_ports(ports).unwrap()));
    }
    // With as many ports as links everywhere except at a corner, which is then the bottleneck.
    for (text, ports) in [("mesh:3x3", 4), ("mesh:1x5", 2), ("grid:3~x2", 3)] {
        machines.push(with_ports(text, ports));
    }
    // Half of them with other values for each class of links.
    for machine in &mut machines {
        let seed = hash(&machine.name);
        if seed % 2 == 0 {
            set_values(machine, seed);
        }
    }
    machines.extend(drawn_graphs());
    machines.into_iter().map(|machine| Box::new(|| machine) as _).collect()
}

type Named = (&'static str, Vec<Box<dyn FnOnce() -> Machine + Send>>);

/// Whole families, from short forms and ports.
pub(crate) fn families() -> Vec<Named> {
    let mut three_sides = Vec::new();
    for a in 1..=8u32 {
        for b in a..=512 / a {
            for c in b..=512 / (a * b) {
                three_sides.push((format!("torus:{a}x{b}x{c}"), 1));
                three_sides.push((format!("mesh:{a}x{b}x{c}"), 1));
            }
        }
    }
    let complete = (1..=1024).flat_map(|n| (1..=8).map(move |k| (format!("full:{n}"), k)));
    let mut clusters = Vec::new();
    for ranks in 1..=32 {
        partitions(ranks, ranks, &mut Vec::new(), &mut |sizes| {
            let sizes: Vec<_> = sizes.iter().map(ToString::to_string).collect();
            clusters.push((format!("cluster:{}", sizes.join(",")), 1));
        });
    }
    [
        ("grids of two sides up to 24", of_two_sides(1..=24)),
        ("grids of two sides up to 64", of_two_sides(25..=64)),
        ("grids of three sides up to 512 ranks", three_sides),
        ("complete graphs up to 1024 ranks with up to 8 ports", complete.collect()),
        ("clusters up to 32 ranks", clusters),
    ]
    .map(|(family, machines)| {
        let of_ports = |(text, ports): (String, u32)| -> Box<dyn FnOnce() -> Machine + Send> {
            Box::new(move || {
                let mut machine = machine(&text).unwrap();
                machine.set_ports(ports);
                machine
            })
        };
        (family, machines.into_iter().map(of_ports).collect())
    })
    .into()
}

/// Grids of two sides, of which each wraps or does not.
fn of_two_sides(sides: std::ops::RangeInclusive<u32>) -> Vec<(String, u32)> {
    let pairs = (1..=*sides.end()).flat_map(|a| (1..=*sides.end()).map(move |b| (a, b)));
    let grids = pairs.filter(|(a, b)| sides.contains(a.max(b))).flat_map(|(a, b)| {
        [("", ""), ("", "~"), ("~", ""), ("~", "~")]
            .map(|(first, second)| (format!("grid:{a}{first}x{b}{second}"), 1))
    });
    grids.collect()
}

/// Calls `each` with every partition of `ranks` into sizes, each at most the one before.
fn partitions(ranks: u32, largest: u32, sizes: &mut Vec<u32>, each: &mut impl FnMut(&[u32])) {
    if ranks == 0 {
        return each(sizes);
    }
    for size in 1..=largest.min(ranks) {
        sizes.push(size);
        partitions(ranks - size, size, sizes, each);
        sizes.pop();
    }
}
