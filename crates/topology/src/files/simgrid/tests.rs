use std::path::Path;

use super::super::{read, read_in};
use super::*;
use crate::reading::Reading;
use crate::{Injection, LinkId, MAX_DIMENSIONS, Rank, Route, Shape, Topology};

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
    assert!(refused.contains("other hosts beside a cluster with a topology"), "{refused}");
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
    topology.for_each_link(Rank(from), &route, &mut |link| links.push(topology.link_name(link)));
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
    for (parameters, hosts) in
        [("3,4;2,3;4,2;2", 48), ("2,1;1,1;2,1;1", 4), ("1,1;1,1;3,1;2", 6), ("1,1;1,1;1,1;1", 1)]
    {
        let machine = graph("DRAGONFLY", parameters, hosts).unwrap();
        assert_eq!(longest(&*machine.topology), diameter(&*machine.topology), "{parameters}");
    }
    let refused = graph("DRAGONFLY", "5,1;2,1;4,1;2", 80).unwrap_err();
    assert!(refused.contains("5 groups of 4 blades a chassis"), "{refused}");
    let refused = graph("DRAGONFLY", "5,1;2,1;4;2", 80).unwrap_err();
    assert!(refused.contains("are not those of the topology"), "{refused}");
}

fn platform(inner: &str) -> Result<Machine, String> {
    asked(inner, &Reading::default())
}

fn asked(inner: &str, reading: &Reading) -> Result<Machine, String> {
    let text = format!("<platform version=\"4.1\">{inner}</platform>");
    read_in(Path::new("some"), &text, reading).map_err(|error| error.message)
}

/// The bytes a second and seconds of each link of a route.
fn speeds(machine: &Machine, from: u32, to: u32) -> Vec<(f64, f64)> {
    let mut route = Route::default();
    machine.topology.route(Rank(from), Rank(to), &mut route);
    let mut links = Vec::new();
    machine.topology.for_each_link(Rank(from), &route, &mut |link: LinkId| {
        let of = (1.0 / machine.seconds_per_byte(link)).round();
        links.push((of, (machine.latency(link) * 1e9).round()));
    });
    links
}

const FLAT: &str = "prefix='n' suffix='' speed='1Gf' bw='125MBps' lat='50us'";

#[test]
fn a_flat_cluster_is_a_switch_with_or_without_a_backbone() {
    let plain = platform(&format!("<cluster id='c' radical='0-15' {FLAT}/>")).unwrap();
    assert_eq!((plain.ranks(), plain.topology.links()), (16, 32));
    assert_eq!(passed(&*plain.topology, 0, 5), ["n0 -> c", "c -> n5"]);
    assert_eq!(speeds(&plain, 0, 5), [(125e6, 50_000.0); 2]);
    assert_eq!(plain.topology.link_classes(), ["host"]);
    // All messages share the backbone.
    let backbone = "bb_bw='2GBps' bb_lat='1us'";
    let shared = platform(&format!("<cluster id='c' radical='0-15' {FLAT} {backbone}/>")).unwrap();
    assert_eq!((shared.ranks(), shared.topology.links()), (16, 33));
    assert_eq!(passed(&*shared.topology, 0, 5), ["n0 -> c", "c -> c out", "c out -> n5"]);
    assert_eq!(speeds(&shared, 0, 5)[1], (2e9, 1000.0));
    // Each message has the whole backbone: it takes time, and does not limit.
    let each =
        format!("<cluster id='c' radical='0-3' {FLAT} {backbone} bb_sharing_policy='FATPIPE'/>");
    let speed = speeds(&platform(&each).unwrap(), 0, 1)[1];
    assert!(speed.0 > 2e9 && speed.1 == 1000.0, "{speed:?}");
    let slow = each.replace("2GBps", "2MBps");
    assert!(platform(&slow).unwrap_err().contains("from `n0` to `n1` is FATPIPE"));
    // Both directions share the link of a host: a message takes two, and what a host sends and receives
    // takes one and the same.
    let half = format!("<cluster id='c' radical='0-3' {FLAT} sharing_policy='SHARED'/>");
    let half = platform(&half).unwrap();
    let link = "before c_link_1 -> behind c_link_1".to_owned();
    for (from, to) in [(0, 1), (1, 0), (1, 3)] {
        assert!(passed(&*half.topology, from, to).contains(&link), "{from} {to}");
    }
    let junctions = speeds(&half, 0, 1).iter().filter(|link| link.0 > 125e6).count();
    assert_eq!((speeds(&half, 0, 1).len(), junctions), (6, 4));
}

#[test]
fn clusters_are_joined_by_the_links_between_their_zones() {
    let clusters = format!(
        "<cluster id='a' radical='0-1' {FLAT} bb_bw='1GBps' bb_lat='0'/>\
         <cluster id='b' radical='2-3' {FLAT} router_id='r'/>\
         <cluster id='c' radical='4-5' {FLAT}/>\
         <link id='l' bandwidth='500MBps' latency='1ms'/>\
         <zoneRoute src='a' dst='b' gw_src='na_router' gw_dst='r'><link_ctn id='l'/></zoneRoute>\
         <zoneRoute src='a' dst='c' gw_src='na_router' gw_dst='nc_router'><link_ctn id='l'/></zoneRoute>\
         <zoneRoute src='b' dst='c' gw_src='r' gw_dst='nc_router'><link_ctn id='l'/></zoneRoute>"
    );
    for (zone, route) in [("zone", "zoneRoute"), ("AS", "ASroute")] {
        let inner = clusters.replace("zoneRoute", route);
        let machine = platform(&format!("<{zone} id='0' routing='Full'>{inner}</{zone}>")).unwrap();
        let names = [
            "n0 -> a",
            "a -> a out",
            "a out -> before l",
            "before l -> behind l",
            "behind l -> b",
            "b -> n2",
        ];
        assert_eq!(passed(&*machine.topology, 0, 2), names);
        let speeds: Vec<f64> = speeds(&machine, 2, 0).iter().map(|link| link.0).collect();
        assert_eq!([speeds[0], speeds[2], speeds[4], speeds[5]], [125e6, 500e6, 1e9, 125e6]);
        // Between any two clusters, both ways, over the one link.
        for (from, to) in [(0, 2), (2, 0), (4, 1), (5, 3), (3, 4)] {
            let all = passed(&*machine.topology, from, to);
            assert!(all.contains(&"before l -> behind l".to_owned()), "{from} {to}");
        }
        assert_eq!(passed(&*machine.topology, 2, 3).len(), 2);
    }
    // A link each way between two clusters is one between their switches.
    let two = format!(
        "<cluster id='a' radical='0-1' {FLAT}/><cluster id='b' radical='2-3' {FLAT}/>\
         <link id='l' bandwidth='500MBps' latency='1ms' sharing_policy='SPLITDUPLEX'/>\
         <zoneRoute src='a' dst='b' gw_src='na_router' gw_dst='nb_router'><link_ctn id='l' direction='UP'/></zoneRoute>"
    );
    let two = platform(&two).unwrap();
    assert_eq!(passed(&*two.topology, 0, 2), ["n0 -> a", "a -> b", "b -> n2"]);
    assert_eq!((two.topology.links(), two.topology.link_classes().len()), (10, 2));
}

#[test]
fn cabinets_and_links_of_hosts_lead_to_the_switch_of_their_zone() {
    let inner = "<zone id='z' routing='Cluster'>\
        <cabinet id='c' prefix='a' suffix='' speed='1Gf' bw='1GBps' lat='1us' radical='1-2'/>\
        <cabinet id='c' prefix='b' suffix='' speed='1Gf' bw='2GBps' lat='2us' radical='1'/>\
        <host id='d'/><link id='up' bandwidth='3GBps' latency='3us'/><link id='down' bandwidth='4GBps'/>\
        <host_link id='d' up='up' down='down'/>\
        <backbone id='bb' bandwidth='5GBps' latency='5us'/><router id='r'/></zone>";
    let machine = platform(inner).unwrap();
    assert_eq!((machine.ranks(), machine.topology.links()), (4, 9));
    assert_eq!(speeds(&machine, 0, 2), [(1e9, 1000.0), (5e9, 5000.0), (2e9, 2000.0)]);
    assert_eq!(speeds(&machine, 3, 2)[0], (3e9, 3000.0));
    assert_eq!(speeds(&machine, 2, 3)[2], (4e9, 0.0));
}

#[test]
fn routes_of_hosts_are_those_that_are_listed() {
    let hosts = |routing: &str, routes: &str| {
        let links: String = (1..5)
            .map(|l| format!("<link id='{l}' bandwidth='{l}MBps' latency='{l}us'/>"))
            .collect();
        let hosts: String = ('a'..'e').map(|name| format!("<host id='{name}'/>")).collect();
        platform(&format!("<zone id='z' routing='{routing}'>{hosts}{links}{routes}</zone>"))
    };
    let route = |ends: &str, links: &str| {
        let (from, to) = ends.split_at(1);
        let links: String = links.chars().map(|link| format!("<link_ctn id='{link}'/>")).collect();
        format!("<route src='{from}' dst='{to}'>{links}</route>")
    };
    let all = [("ab", "1"), ("ac", "12"), ("ad", "143"), ("bc", "2"), ("bd", "23"), ("cd", "3")];
    let listed: String = all.iter().map(|(ends, links)| route(ends, links)).collect();
    let machine = hosts("Full", &listed).unwrap();
    for (ends, links) in all {
        let ends: Vec<u32> = ends.bytes().map(|name| u32::from(name - b'a')).collect();
        let links: Vec<f64> = links.bytes().map(|link| f64::from(link - b'0') * 1e6).collect();
        let taken = |from: u32, to: u32| -> Vec<f64> {
            let speeds = speeds(&machine, from, to);
            speeds.into_iter().map(|link| link.0).filter(|of| *of < 5e6).collect()
        };
        assert_eq!(taken(ends[0], ends[1]), links);
        let back: Vec<f64> = links.into_iter().rev().collect();
        assert_eq!(taken(ends[1], ends[0]), back);
    }
    let refused = hosts("Full", &listed.replace(&route("cd", "3"), "")).unwrap_err();
    assert_eq!(refused, "no route from `c` to `d`");
    // Routes of neighbours are composed: a - b - c - d, and a - c.
    for routing in ["Floyd", "Dijkstra"] {
        let routes: String = [("ab", "1"), ("bc", "2"), ("cd", "3"), ("ac", "4")]
            .map(|(ends, links)| route(ends, links))
            .concat();
        let machine = hosts(routing, &routes).unwrap();
        let taken: Vec<f64> = speeds(&machine, 0, 3).iter().map(|link| link.0).collect();
        assert_eq!(taken.into_iter().filter(|of| *of < 5e6).collect::<Vec<_>>(), [4e6, 3e6]);
    }
}

#[test]
fn limiters_are_injection_and_cores_are_ranks_if_asked() {
    let torus = "topology='TORUS' topo_parameters='4,4' limiter_link='150MBps'";
    let torus =
        format!("<cluster id='c' radical='0-15' {FLAT} core='2' loopback_bw='1GBps' {torus}/>");
    let machine = platform(&torus).unwrap();
    assert_eq!(machine.topology.short_form(), "torus:4x4@simgrid");
    assert_eq!(machine.timing.injection, Injection { rank: 1.0 / 150e6, node: 0.0 });
    assert!(machine.assumed.unwrap().contains("no effect: core, loopback_bw, speed"));
    let cores = Reading { cores: true, ..Reading::default() };
    let machine = asked(&torus, &cores).unwrap();
    assert_eq!(machine.topology.short_form(), "torus:4x4@simgrid*2");
    assert_eq!(machine.timing.injection, Injection { rank: 0.0, node: 1.0 / 150e6 });
    assert_eq!((machine.timing.per_byte.of(0), machine.timing.per_byte.of(1)), (1e-9, 1.0 / 125e6));
    let flat = format!("<cluster id='c' radical='0-1' {FLAT} core='3'/>");
    let machine = asked(&flat, &cores).unwrap();
    assert_eq!(
        (machine.ranks(), machine.topology.nodes(), machine.timing.startup.of(0)),
        (6, 2, 15e-6)
    );
    assert!(asked(&flat.replace("core='3'", ""), &cores).unwrap_err().contains("one core"));
    let two = flat.clone()
        + &flat.replace("'c'", "'d'").replace("0-1", "2-3").replace("core=", "limiter_link=");
    assert!(platform(&two).unwrap_err().contains("limiter_link is not equal on all hosts"));
}

#[test]
fn platforms_that_are_wrong_are_refused_by_name() {
    let link = "<link id='l' bandwidth='1GBps' latency='1us'/>";
    let two = format!("<host id='a'/><host id='b'/>{link}");
    let deep: String = (0..300).map(|z| format!("<zone id='{z}'>")).collect();
    for (inner, rule) in [
        (String::new(), "no <host>, <cluster> or <cabinet>"),
        ("<actor host='a'/>".to_owned(), "no <host>"),
        ("<peer id='a'/>".to_owned(), "<peer> is not supported"),
        ("<zone id='z' routing='Vivaldi'/>".to_owned(), "routing Vivaldi is not supported"),
        ("<host id='a'/><host id='a'/>".to_owned(), "`a` is declared twice"),
        (format!("{link}{link}"), "link `l` is declared twice"),
        ("<host/>".to_owned(), "no id"),
        (link.replace("1GBps", "NaN"), "`NaN` is not a number with a unit"),
        (link.replace("1GBps", "0"), "bandwidth"),
        (link.replace("1us", "-1us"), "negative"),
        (link.replace("id=", "sharing_policy='WIFI' id="), "sharing_policy WIFI is not supported"),
        (two.clone(), "not connected: node b cannot reach node a"),
        (format!("{two}<route src='a' dst='c'><link_ctn id='l'/></route>"), "`c` is not declared"),
        (
            format!("{two}<route src='a' dst='b'><link_ctn id='k'/></route>"),
            "link `k` is not declared",
        ),
        (format!("{two}<route src='a'><link_ctn id='l'/></route>"), "no dst"),
        (
            format!("{two}<route src='a' dst='b'><link_ctn id='l'/><link_ctn id='l'/></route>"),
            "passes before l twice",
        ),
        (
            format!(
                "{two}<route src='a' dst='b'><link_ctn id='l'/></route><route src='b' dst='a'><link_ctn id='l'/></route>"
            ),
            "a second route from `b` to `a`",
        ),
        (format!("{two}<route src='a' dst='b' symmetrical='maybe'/>"), "symmetrical is `maybe`"),
        ("<link_ctn id='l'/>".to_owned(), "a link of no route"),
        (
            format!("{two}<host_link id='a' up='l' down='l'/>"),
            "hosts around a switch are in a zone",
        ),
        (
            format!(
                "{two}<zone id='z'><host id='c'/></zone><zoneRoute src='a' dst='z' gw_src='a' gw_dst='b'/>"
            ),
            "`b` is not a host or router of `z`",
        ),
        (
            format!("{two}<zone id='z'><host id='c'/></zone><route src='a' dst='c'/>"),
            "`c` is not in the zone of the route",
        ),
        (format!("<cluster id='c' {FLAT} radical='0-4294967295'/>"), "more than 1048576 hosts"),
        (format!("<cluster id='c' {FLAT} radical='9-3'/>"), "radical `9-3`"),
        (
            format!("<cluster id='c' {FLAT} radical='0-3' topology='RING'/>"),
            "topology RING is not supported",
        ),
        (deep, "more than 256 nested elements"),
        ("<host id='a'".to_owned(), ""),
    ] {
        let refused = platform(&inner).map(|machine| machine.ranks()).unwrap_err();
        assert!(refused.contains(rule), "{inner:.80}: {refused}");
    }
    // A gateway that leads out of its zone and back is no end.
    let through = format!(
        "<cluster id='a' radical='0' {FLAT} bb_bw='1GBps'/><cluster id='b' radical='1' {FLAT}/>\
         <host id='h'/>{link}\
         <zoneRoute src='a' dst='b' gw_src='na_router' gw_dst='nb_router'><link_ctn id='l'/></zoneRoute>\
         <zoneRoute src='h' dst='a' gw_src='h' gw_dst='na_router'/>"
    );
    let refused = platform(&format!("<zone id='z' routing='Floyd'>{through}</zone>")).unwrap_err();
    assert!(refused.contains("no link goes on from"), "{refused}");
}
