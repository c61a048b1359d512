//! Matchings of links: on every network, for several messages on a link, and how near the bounds.

use std::collections::HashMap;

use common::{
    MEMORY, check_promises, claims, exchange, find, problem, reach, schedule_of, select, sweep,
    with_ports,
};
use rayon::prelude::*;
use topocoll::{
    Capacity, Collective, LinkKind, ListedGraph, Machine, Method, Parameters, Problem, Rank,
    Request, Route, Schedule, Setting, Step, best_bounds, count,
};

fn all_to_all(machine: &Machine) -> Problem {
    problem(machine, Collective::AllToAll, 3)
}

fn messages(link_messages: u64) -> Parameters {
    Parameters::from([("link_messages".to_owned(), Setting::Integer(link_messages))])
}

fn planned(machine: &Machine, link_messages: u64) -> Schedule {
    let problem = all_to_all(machine);
    schedule_of(machine, &problem, "link-matchings", &messages(link_messages)).unwrap()
}

/// Step by step, the messages on each link.
fn carried(schedule: &Schedule, machine: &Machine) -> Vec<HashMap<topocoll::LinkId, u32>> {
    let (mut does, mut own) = (Step::default(), Route::default());
    let of_step = |step| {
        let mut carried = HashMap::new();
        for from in (0..machine.ranks()).map(Rank) {
            schedule.rule().step(from, step, &mut does);
            for send in &does.sends {
                let route = send.route_from(from, &*machine.topology, &mut own);
                machine.topology.for_each_link(from, route, &mut |link| {
                    *carried.entry(link).or_default() += 1;
                });
            }
        }
        carried
    };
    (0..schedule.rule().steps()).map(of_step).collect()
}

/// Delivery, ports, claims and the messages on links, whose charge is exactly that claimed.
fn check(machine: &Machine, link_messages: u64) {
    let (problem, setting) = (all_to_all(machine), messages(link_messages));
    let algorithm = find("link-matchings").unwrap();
    check_promises(machine, algorithm, &problem, &setting, Method::Replay);
    let place = format!("{}, {} ports, {setting:?}", machine.name, machine.ports);
    let schedule = planned(machine, link_messages);
    let counts = count(&schedule, machine, None, MEMORY).unwrap();
    let claims = claims(machine, &problem, "link-matchings", &setting).unwrap();
    assert_eq!(counts.link_bytes, claims.link_bytes_floor, "{place}");
    assert_eq!(counts.link_conflicts == 0, claims.contention_free, "{place}");
    let kinds = machine.topology.link_kinds();
    for (link, messages) in carried(&schedule, machine).into_iter().flatten() {
        let kind = kinds.get(machine.topology.link_kind(link));
        let (times, over) = match kind.map(|kind| kind.capacity) {
            Some(Capacity::Relative { times, over }) => (u64::from(times), u64::from(over)),
            _ => (1, 1),
        };
        let most = (link_messages * times / over).max(1);
        assert!(u64::from(messages) <= most, "{place}: {messages} messages on link {link}");
    }
}

#[test]
fn every_network_is_served_as_claimed() {
    const NETWORKS: [&str; 21] = [
        "hypercube:4",
        "hyperx:3x4",
        "hyperx:4x2*2",
        "fat-tree:2,3",
        "fat-tree:3,2,3/2",
        "fat-tree:2,2,2*3",
        "dragonfly:1,2,1",
        "dragonfly:2,2,2,3*2",
        "twisted-torus:3x6",
        "torus:4x4/1,2/0,0+1",
        "torus:3x3/1,1*2",
        "torus:4x5",
        "torus:2x2x2*2",
        "mesh:4x4",
        "mesh:3x2*2,1,3,1,1,2",
        "grid:4~x3",
        "torus:1*3",
        "torus:2",
        "mesh:1",
        "torus:2/0",
        "hypercube:1*4",
    ];
    let networks = NETWORKS.iter().flat_map(|text| [1, 3].map(|ports| with_ports(text, ports)));
    let machines: Vec<_> = networks.chain(common::drawn_graphs()).collect();
    machines.par_iter().for_each(|machine| [1, 2, 4].into_iter().for_each(|n| check(machine, n)));
}

/// Charged volume over its bound: steps, messages on a link, and the ratio at most.
#[test]
fn steps_and_volume_come_close_to_the_bounds() {
    for (text, ports, link_messages, steps, most) in [
        ("hypercube:6", 6, 1, 33, 1.04),
        ("hypercube:6", 6, 4, 11, 1.07),
        ("hypercube:6", 1, 1, 63, 1.0),
        ("hyperx:8x8", 14, 1, 9, 1.13),
        ("dragonfly:2,4,2", 4, 1, 84, 1.19),
        ("dragonfly:2,4,2", 4, 4, 20, 1.10),
        ("fat-tree:8,2", 1, 1, 63, 1.0),
        // Inter-switch links of half the bandwidth: the charge is the load of both.
        ("fat-tree:4,2,2", 4, 2, 12, 1.0),
        ("twisted-torus:4x4x8", 6, 1, 77, 1.06),
        ("twisted-torus:4x4x8", 6, 2, 38, 1.04),
        ("torus:4x4x4/0,0,0+0", 6, 1, 34, 1.03),
        ("torus:4x4x4/0,0,0+0", 6, 4, 11, 1.03),
        ("torus:8x8/1,1/0,0+0/4,4+1", 4, 1, 74, 1.02),
        ("mesh:8x8/3,3/4,4/0,0+1", 4, 1, 177, 1.11),
    ] {
        let machine = with_ports(text, ports);
        let schedule = planned(&machine, link_messages);
        let counts = count(&schedule, &machine, None, MEMORY).unwrap();
        let bound = best_bounds(&all_to_all(&machine), &machine, None).link_blocks;
        let ratio = counts.in_blocks(counts.link_bytes) / bound;
        assert!(counts.steps <= steps, "{text}, {link_messages}: {} steps", counts.steps);
        assert!(ratio <= most, "{text}, {link_messages}: {ratio:.3} of the bound");
    }
}

/// Of more than 512 ranks the first fit stays.
#[test]
fn many_ranks_are_served_as_claimed() {
    let machines = [("hyperx:23x23", 1.1), ("twisted-torus:8x8x16", 1.5), ("dragonfly:4,8,4", 1.5)];
    for (text, most) in &machines[..reach(1, machines.len())] {
        let machine = with_ports(text, 1);
        check(&machine, 1);
        let bound = best_bounds(&all_to_all(&machine), &machine, None).link_blocks;
        let steps = f64::from(planned(&machine, 1).rule().steps());
        assert!(steps < most * bound, "{text}: {steps} steps, the bound is {bound}");
    }
}

/// More messages on a link than make ports the limit change nothing: 63 blocks leave a port.
#[test]
fn no_more_messages_share_a_link_than_are_of_use() {
    let machine = with_ports("fat-tree:8,2", 1);
    let counts = count(&planned(&machine, 1024), &machine, None, MEMORY).unwrap();
    assert_eq!((counts.steps, counts.link_conflicts), (63, 0));
}

/// Two switches of two nodes each, joined by a number of links of some bandwidths.
fn pair(across: &[Capacity]) -> Machine {
    let link = |from, to, capacity| (from, to, LinkKind { capacity, ..LinkKind::of_class(0) });
    let mut links = Vec::new();
    for (node, switch) in [(0, 4), (1, 4), (2, 5), (3, 5)] {
        let fast = Capacity::Relative { times: 4, over: 1 };
        links.extend([link(node, switch, fast), link(switch, node, fast)]);
    }
    links.extend(across.iter().flat_map(|&of| [link(4, 5, of), link(5, 4, of)]));
    let listed = ListedGraph {
        form: "a pair of switches".to_owned(),
        nodes: 4,
        switches: 2,
        classes: vec!["link".to_owned()],
        links,
        ..ListedGraph::default()
    };
    let mut machine = Machine::of(std::sync::Arc::new(listed.with_shortest_routes().unwrap()));
    machine.set_ports(3);
    machine
}

/// Four messages cross in each direction.
#[test]
fn parallel_and_faster_links_carry_more() {
    let steps = |across: &[Capacity], link_messages| {
        let (machine, equal) = (pair(across), across.iter().all(|link| *link == across[0]));
        let schedule = planned(&machine, link_messages);
        for carried in carried(&schedule, &machine) {
            let of_link = |link: topocoll::LinkId| carried.get(&link).copied().unwrap_or(0);
            let links = (0..machine.topology.links()).map(topocoll::LinkId);
            let across: Vec<_> = links
                .filter(|&link| machine.topology.link(link).is_some_and(|link| link.from == 4))
                .filter(|&link| machine.topology.link(link).is_some_and(|link| link.to == 5))
                .map(of_link)
                .collect();
            let most = across.iter().max().unwrap();
            assert!(!equal || most - across.iter().min().unwrap() <= 1, "{across:?}");
        }
        schedule.rule().steps()
    };
    let class = Capacity::CLASS;
    let fast = Capacity::Relative { times: 5, over: 2 };
    assert_eq!(steps(&[class], 1), 4);
    assert_eq!(steps(&[class], 2), 2);
    assert_eq!(steps(&[class; 2], 1), 2);
    assert_eq!(steps(&[class; 4], 1), 1);
    assert_eq!(steps(&[fast], 1), 2);
    assert_eq!(steps(&[fast], 2), 1);
    // Bandwidths in bytes per second are compared with the slowest.
    let [slow, fast] = [10e9, 30e9].map(Capacity::BytesPerSecond);
    assert_eq!(steps(&[slow], 1), 4);
    assert_eq!(steps(&[slow, fast], 1), 1);
    let problem = all_to_all(&pair(&[fast]));
    let request = |machine: &Machine| claims(machine, &problem, "link-matchings", &messages(4));
    assert_eq!(request(&pair(&[slow, fast])).unwrap().link_bytes_floor, 3);
}

/// One graph, asked for different ports and messages.
#[test]
fn a_graph_keeps_its_plans_apart() {
    let mut machine = with_ports("hypercube:4", 1);
    let mut steps = |ports, link_messages| {
        machine.set_ports(ports);
        let found = count(&planned(&machine, link_messages), &machine, None, MEMORY).unwrap();
        assert_eq!(found.port_violations, 0);
        found.steps
    };
    let first = [(1, 1), (4, 1), (4, 2), (15, 8)].map(|(ports, n)| steps(ports, n));
    assert!(first.is_sorted_by(|a, b| a > b), "{first:?}");
    assert_eq!([(15, 8), (4, 2), (4, 1), (1, 1)].map(|(ports, n)| steps(ports, n)), {
        let mut last = first;
        last.reverse();
        last
    });
}

#[test]
fn rankings_price_what_is_of_use() {
    let settings = |text, ports| {
        let machine = with_ports(text, ports);
        let problem = all_to_all(&machine);
        let request = Request::new(&problem, &*machine.topology);
        let found = request.candidates(find("link-matchings").unwrap());
        found.map(|found| found.iter().map(|one| one["link_messages"].to_string()).collect())
    };
    let priced = |text, ports| -> Vec<String> { settings(text, ports).unwrap() };
    assert_eq!(priced("hypercube:6", 1), ["1"]);
    // 32 messages on a link, 63 from 4 ports, from 6 and from 63.
    assert_eq!(priced("hypercube:6", 4), ["1", "2"]);
    assert_eq!(priced("hypercube:6", 6), ["1", "2", "3"]);
    assert_eq!(priced("hypercube:6", 63), ["1", "2", "32"]);
    let refused = |text, ports| -> String { settings(text, ports).unwrap_err().to_string() };
    assert_eq!(priced("torus:4x4", 1), ["1"]);
    assert_eq!(priced("mesh:4x4*2", 1), ["1"]);
    assert_eq!(refused("torus:241x17", 1), "requires at most 4096 ranks; there are 4097 ranks");
    let needs = "requires a grid, a graph, or nodes on one";
    assert_eq!(refused("full:16", 1), format!("{needs}, which full:16 is not"));
    assert_eq!(refused("cluster:4*4", 1), format!("{needs}, which cluster:4*4 is not"));
}

#[test]
fn what_is_named_is_planned() {
    let machine = with_ports("torus:4x4", 4);
    let problem = all_to_all(&machine);
    let selection = select(&machine, &problem);
    // It saves nothing here.
    let rejected = selection.rejected.iter().find(|one| one.algorithm == "link-matchings");
    assert!(rejected.unwrap().reason.contains("is not searched for"), "{rejected:?}");
    let choice = exchange(&machine, &problem).priced("link-matchings", &messages(1)).unwrap();
    let price = choice.unwrap().price;
    // 8 messages on every link, in as many steps as the best packing found.
    assert!((8..=9).contains(&price.steps), "{}", price.steps);
    let asked = [("link-matchings".to_owned(), messages(4))];
    let swept = sweep(&machine, &problem, &[1, 1024], &asked).unwrap();
    assert_eq!(swept.lines[0].points[1].parameters, messages(4));
    let refused = exchange(&machine, &problem).schedule("link-matchings", &messages(1025));
    assert_eq!(
        refused.unwrap_err().to_string(),
        "link-matchings: link_messages is `1025`, not a whole number from 1 to 1024"
    );
    assert!(exchange(&machine, &problem).schedule("link-matchings", &messages(0)).is_err());
}

/// The figures of docs/src/performance.md.
#[test]
#[ignore = "takes a minute"]
fn machines_of_512_ranks_are_planned_in_less_than_a_minute() {
    for (text, ports, link_messages, most) in [
        ("hypercube:9", 9, 1, 1.05),
        ("hypercube:9", 9, 4, 1.04),
        ("torus:8x8x8", 6, 1, 1.09),
        ("hyperx:8x8x8", 21, 1, 1.03),
        ("fat-tree:8,3", 1, 1, 1.0),
        ("dragonfly:4,8,4,16", 4, 1, 1.07),
    ] {
        let machine = with_ports(text, ports);
        let begin = std::time::Instant::now();
        let schedule = planned(&machine, link_messages);
        let seconds = begin.elapsed().as_secs_f64();
        let counts = count(&schedule, &machine, None, MEMORY).unwrap();
        let bound = best_bounds(&all_to_all(&machine), &machine, None).link_blocks;
        let ratio = counts.in_blocks(counts.link_bytes) / bound;
        println!("{text}, {ports} ports, {link_messages}: {seconds:.1} s, {ratio:.3}");
        assert!(seconds < 60.0 && ratio <= most, "{text}: {seconds:.1} s, {ratio:.3}");
        check(&machine, link_messages);
    }
}
