//! SimGrid platforms that consist of one TORUS, FAT_TREE or DRAGONFLY cluster.
//!
//! A link has the cluster's bandwidth and latency; startup, rearrangement and barriers take no time.
//! The first dimension of a torus is the fastest, and so our last. At exactly half a ring the
//! direction of a SimGrid route depends on the position; ours is +. Other platforms are refused:
//! the routes of their zones list links, whose ends are not given.

use std::sync::Arc;

use super::shown;
use super::xml::{Element, elements};
use crate::error::SpecError;
use crate::number::number;
use crate::topology::dragonfly::Dragonfly;
use crate::topology::fat_tree::FatTree;
use crate::units;
use crate::{
    Barrier, Capacity, Graph, Grid, Injection, LinkKind, MAX_DIMENSIONS, Machine, PerClass, Timing,
    Topology,
};

pub(super) fn read(name: &str, text: &str) -> Result<Machine, SpecError> {
    let mut machine = None;
    elements(text, |element, _| {
        match element.name.as_str() {
        "cluster" if machine.is_some() => Err(element
            .wrong("a second <cluster>: only platforms of one cluster are supported".to_owned())),
        "cluster" => {
            machine = Some(read_cluster(name, element).map_err(|message| element.wrong(message))?);
            Ok(())
        }
        "host" | "link" | "router" | "route" | "zoneRoute" | "ASroute" => {
            Err(element.wrong(format!(
                "<{}> is not supported: a platform must be one <cluster> with a topology of {KINDS}",
                element.name
            )))
        }
        _ => Ok(()),
    }
    })?;
    let none =
        || format!("no <cluster> with a topology of {KINDS}: no other platform is supported");
    Ok(machine.ok_or_else(none)?)
}

const KINDS: &str = "TORUS, FAT_TREE or DRAGONFLY";

fn read_cluster(name: &str, cluster: &Element) -> Result<Machine, String> {
    let given = |name: &str| cluster.get(name).ok_or_else(|| format!("no {name}"));
    let parameters = || given("topo_parameters");
    let network: Arc<dyn Topology> = match cluster.get("topology").unwrap_or("FLAT") {
        "TORUS" => Arc::new(torus(parameters()?)?),
        "FAT_TREE" => Arc::new(fat_tree(parameters()?)?),
        "DRAGONFLY" => Arc::new(dragonfly(parameters()?)?),
        other => return Err(format!("topology {other} is not supported: use {KINDS}")),
    };
    match cluster.get("sharing_policy").unwrap_or("SPLITDUPLEX") {
        "SPLITDUPLEX" => {}
        other => {
            return Err(format!(
                "sharing_policy {other} is not supported: use SPLITDUPLEX, a link in each direction"
            ));
        }
    }
    if cluster.get("limiter_link").is_some() {
        return Err("limiter_link is not supported: only links limit the bandwidth".to_owned());
    }
    let hosts = hosts(given("radical")?)?;
    if hosts != u64::from(network.ranks()) {
        let (form, has) = (network.short_form(), network.ranks());
        return Err(format!("radical names {hosts} hosts, but {form} has {has}"));
    }
    let timing = Timing {
        name: name.to_owned(),
        startup: PerClass::uniform(0.0),
        per_byte: PerClass::uniform(1.0 / bandwidth(given("bw")?)?),
        per_hop: PerClass::uniform(seconds(given("lat")?)?),
        rearrangement_per_byte: 0.0,
        barrier: Barrier::default(),
        gather: false,
        injection: Injection::default(),
    };
    Ok(Machine { name: name.to_owned(), timing, ..Machine::of(network) })
}

fn torus(parameters: &str) -> Result<Grid, String> {
    let mut sides = Vec::new();
    for side in parameters.split(',').take(MAX_DIMENSIONS + 1) {
        let side = side.trim();
        sides.push(side.parse().map_err(|_| format!("side `{side}` is not a whole number"))?);
    }
    sides.reverse();
    Ok(Grid::torus(&sides)?)
}

/// The number of levels and, for each level from the hosts up, the entities below a switch, the switches
/// above an entity, and the parallel links between the two.
fn fat_tree(parameters: &str) -> Result<Graph, String> {
    let [levels, down, up, cables] = lists(parameters, [1, 0, 0, 0])?;
    let levels = levels[0] as usize;
    if [&down, &up, &cables].iter().any(|list| list.len() != levels) {
        return Err(format!("topo_parameters `{parameters}` do not have {levels} values a list"));
    }
    let tree = FatTree { down, up, cables, first: Vec::new() };
    let classes = vec!["link".to_owned()];
    Ok(tree.graph("network".to_owned(), classes, |_| LinkKind::of_class(0))?)
}

/// Groups and their links, chassis of a group and theirs, blades of a chassis and theirs, nodes of a blade.
fn dragonfly(parameters: &str) -> Result<Graph, String> {
    let numbers = lists(parameters, [2, 2, 2, 1])?.concat();
    let [groups, blue, chassis, black, blades, green, nodes] = numbers[..] else {
        unreachable!("bug: other lists")
    };
    if groups > 1 && groups > blades {
        return Err(format!(
            "{groups} groups of {blades} blades a chassis: router j of a chassis leads to group j, so \
             there are at least as many blades as groups"
        ));
    }
    let kinds = [1, green, black, blue].map(|times| {
        let capacity = Capacity::Relative { times, over: 1 };
        LinkKind { capacity, ..LinkKind::of_class(0) }
    });
    let fly = Dragonfly { groups, chassis, blades, nodes, global: None };
    Ok(fly.graph("network".to_owned(), vec!["link".to_owned()], kinds)?)
}

/// The lists of `4,2;3,1;2,1;2`, each of a given length unless that is 0.
fn lists(parameters: &str, lengths: [usize; 4]) -> Result<[Vec<u32>; 4], String> {
    let wrong = || format!("topo_parameters `{}` are not those of the topology", shown(parameters));
    let lists: Vec<&str> = parameters.split(';').take(lengths.len() + 1).collect();
    if lists.len() != lengths.len() {
        return Err(wrong());
    }
    let mut out = [const { Vec::new() }; 4];
    for ((list, length), numbers) in lists.iter().zip(lengths).zip(&mut out) {
        for text in list.split(',').take(MAX_DIMENSIONS + 1) {
            numbers.push(number("a value of topo_parameters", text.trim())?);
        }
        if numbers.len() > MAX_DIMENSIONS || length > 0 && numbers.len() != length {
            return Err(wrong());
        }
    }
    Ok(out)
}

/// The hosts of a list such as `0-127,130`.
fn hosts(radical: &str) -> Result<u64, String> {
    let number = |text: &str| text.trim().parse::<u32>().map(u64::from);
    radical.split(',').try_fold(0, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (number(first), number(last)) {
            (Ok(first), Ok(last)) if first <= last => Ok(sum + last - first + 1),
            _ => Err(format!("radical `{}` is not a list such as 0-255", shown(range))),
        }
    })
}

/// A number and its unit.
fn split(text: &str) -> Result<(f64, &str), String> {
    let (number, unit) = units::split(text);
    let number = number.filter(|number| number.is_finite());
    Ok((
        number.ok_or_else(|| format!("`{}` is not a number with a unit", shown(text.trim())))?,
        unit,
    ))
}

/// Bytes a second, as SimGrid writes them: `1GBps`, `125MiBps`, `10Gbps` (bits), bytes without.
fn bandwidth(text: &str) -> Result<f64, String> {
    let (number, unit) = split(text)?;
    let each = match unit {
        "" => Some(1.0),
        unit if unit.ends_with("ps") => units::bytes_per_second(unit),
        _ => None,
    };
    match each.map(|each| number * each) {
        Some(bandwidth) if bandwidth > 1e-6 && bandwidth.is_finite() => Ok(bandwidth),
        _ => Err(format!("bw `{}` is not a bandwidth such as 1GBps or 10Gbps", shown(text))),
    }
}

/// Seconds, as SimGrid writes them: `1us`, seconds without a unit.
fn seconds(text: &str) -> Result<f64, String> {
    let (_, unit) = split(text)?;
    let seconds = if unit.is_empty() { format!("{}s", text.trim()) } else { text.to_owned() };
    units::parse_seconds(&seconds).map_err(|reason| format!("lat: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rank, Route, Shape};

    #[test]
    fn a_platform_is_one_torus_of_at_most_the_sides_of_a_grid() {
        let cluster = |sides: usize| {
            let ones = vec!["1"; sides].join(",");
            format!(
                "<cluster topology=\"TORUS\" radical=\"0\" bw=\"1GBps\" lat=\"1us\" topo_parameters=\"{ones}\"/>"
            )
        };
        let platform = |text: &str| {
            let text = format!("<platform>{text}</platform>");
            read("some", &text).map(|machine| machine.ranks()).map_err(|error| error.message)
        };
        let most = MAX_DIMENSIONS;
        assert_eq!(platform(&cluster(most)), Ok(1));
        let refused = platform(&cluster(most + 1)).unwrap_err();
        assert!(refused.contains(&format!("a grid has between 1 and {most}")), "{refused}");
        let refused = platform(&cluster(1).repeat(2)).unwrap_err();
        assert!(refused.contains("a second <cluster>"), "{refused}");
    }

    fn graph(topology: &str, parameters: &str, hosts: u32) -> Result<Machine, String> {
        let text = format!(
            "<platform><cluster topology=\"{topology}\" radical=\"0-{}\" bw=\"1GBps\" lat=\"1us\" \
             topo_parameters=\"{parameters}\"/></platform>",
            hosts - 1
        );
        read("some", &text).map_err(|error| error.message)
    }

    /// The vertices of a route, and the number of each link among parallel ones.
    fn passed(topology: &dyn Topology, from: u32, to: u32) -> Vec<String> {
        let mut route = Route::default();
        topology.route(Rank(from), Rank(to), &mut route);
        assert_eq!(topology.follow(Rank(from), &route), Ok(to));
        let mut links = Vec::new();
        topology
            .for_each_link(Rank(from), &route, &mut |link| links.push(topology.link_name(link)));
        links
    }

    fn longest(topology: &dyn Topology) -> u32 {
        let ranks = topology.ranks();
        let pairs = (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to)));
        pairs.map(|(from, to)| passed(topology, from, to).len() as u32).max().unwrap_or(0)
    }

    fn diameter(topology: &dyn Topology) -> u32 {
        let Shape::Graph(graph) = topology.shape() else { panic!("a graph") };
        graph.diameter()
    }

    #[test]
    fn a_fat_tree_has_d_mod_k_routes_over_parallel_links() {
        // 4 hosts on each of 4 leaf switches, 2 spines, 2 links from each leaf to each spine.
        let machine = graph("FAT_TREE", "2;4,4;1,2;1,2", 16).unwrap();
        let tree = &*machine.topology;
        assert_eq!((tree.ranks(), tree.links()), (16, 2 * (16 + 4 * 2 * 2)));
        // To host 6: port 6 mod 4 of a leaf switch leads to spine 2 mod 2 over its link 1.
        assert_eq!(
            passed(tree, 0, 6),
            [
                "0 -> level 0 switch 0",
                "level 0 switch 0 -> level 1 switch 0 #1",
                "level 1 switch 0 -> level 0 switch 1 #0",
                "level 0 switch 1 -> 6"
            ]
        );
        assert_eq!(
            passed(tree, 3, 9)[1..3],
            ["level 0 switch 0 -> level 1 switch 1 #0", "level 1 switch 1 -> level 0 switch 2 #1"]
        );
        assert_eq!((longest(tree), diameter(tree)), (4, 4));
        for (parameters, hosts) in
            [("3;2,3,2;2,1,2;1,2,1", 12), ("1;5;1;1", 5), ("2;3,1;1,2;1,1", 3), ("1;1;1;1", 1)]
        {
            let machine = graph("FAT_TREE", parameters, hosts).unwrap();
            assert_eq!(longest(&*machine.topology), diameter(&*machine.topology), "{parameters}");
        }
        for (parameters, rule) in [
            ("2;4,4;1,2", "are not those of the topology"),
            ("2;4;1,2;1,2", "do not have 2 values a list"),
            ("2;4,0;1,2;1,2", "value of topo_parameters is `0`"),
            ("2;4,5;1,2;1,2", "radical names 16 hosts, but network has 20"),
            ("2;2000,2000;1,1;1,1", "4000000 nodes: the limit is 1048576"),
            ("2;4,4;1,4000000000;1,4000000000", "the limit is"),
        ] {
            let refused = graph("FAT_TREE", parameters, 16).unwrap_err();
            assert!(refused.contains(rule), "{parameters}: {refused}");
        }
    }

    #[test]
    fn a_dragonfly_takes_green_links_then_black_ones_then_a_blue_one() {
        // 3 groups of 2 chassis of 4 blades of 2 hosts.
        let machine = graph("DRAGONFLY", "3,4;2,3;4,2;2", 48).unwrap();
        let fly = &*machine.topology;
        assert_eq!(fly.links(), 2 * 48 + 24 * (3 + 1) + 3 * 2);
        // From group 0 chassis 1 blade 0 to group 2 chassis 1 blade 3.
        assert_eq!(
            passed(fly, 8, 47),
            [
                "8 -> group 0 chassis 1 blade 0",
                "group 0 chassis 1 blade 0 -> group 0 chassis 1 blade 2",
                "group 0 chassis 1 blade 2 -> group 0 chassis 0 blade 2",
                "group 0 chassis 0 blade 2 -> group 2 chassis 0 blade 0",
                "group 2 chassis 0 blade 0 -> group 2 chassis 0 blade 3",
                "group 2 chassis 0 blade 3 -> group 2 chassis 1 blade 3",
                "group 2 chassis 1 blade 3 -> 47"
            ]
        );
        let mut route = Route::default();
        fly.route(Rank(8), Rank(47), &mut route);
        let mut seconds = Vec::new();
        fly.for_each_link(Rank(8), &route, &mut |link| {
            seconds.push(machine.seconds_per_byte(link));
        });
        let times = [1.0, 2.0, 3.0, 4.0, 2.0, 3.0, 1.0];
        assert_eq!(seconds, times.map(|times| 1e-9 * 1.0 / times));
        for (parameters, hosts) in [
            ("3,4;2,3;4,2;2", 48),
            ("2,1;1,1;2,1;1", 4),
            ("1,1;1,1;3,1;2", 6),
            ("1,1;1,1;1,1;1", 1),
        ] {
            let machine = graph("DRAGONFLY", parameters, hosts).unwrap();
            assert_eq!(longest(&*machine.topology), diameter(&*machine.topology), "{parameters}");
        }
        let refused = graph("DRAGONFLY", "5,1;2,1;4,1;2", 80).unwrap_err();
        assert!(refused.contains("5 groups of 4 blades a chassis"), "{refused}");
        let refused = graph("DRAGONFLY", "5,1;2,1;4;2", 80).unwrap_err();
        assert!(refused.contains("are not those of the topology"), "{refused}");
    }

    #[test]
    fn quantities_are_those_of_simgrid() {
        let bandwidths =
            [("1GBps", 1e9), ("10Gbps", 1.25e9), ("125MiBps", 131_072_000.0), ("1e9", 1e9)];
        for (text, expected) in bandwidths {
            assert_eq!(bandwidth(text), Ok(expected), "{text}");
        }
        for (text, expected) in [("1us", 1e-6), ("0.5ms", 5e-4), ("0", 0.0), ("2", 2.0)] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        for text in ["", "fast", "1GB", "0Bps", "-1GBps", "1e999GBps", "0.000001Bps"] {
            assert!(bandwidth(text).is_err(), "{text}");
        }
        assert_eq!(hosts("0-127,130"), Ok(129));
        assert!(hosts("5-2").is_err() && hosts("0-").is_err());
    }
}
