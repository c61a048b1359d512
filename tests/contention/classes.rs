//! One rank of each class gives the result of every rank, to the picosecond.

use std::sync::Arc;

use common::{
    MEMORY, OfClasses, drawn_symmetric, machines_and_ports, priced, schedule_of, serving,
    set_values, without_classes,
};
use topocoll::contention::{
    AllToAll, ContentionModel, MODELS, Ranks, Request, Routing, Scheduled, Share, Simulation, Sync,
    Traffic, simulate,
};
use topocoll::{
    AnalysisError, Collective, Injection, LinkId, LinkKind, ListedGraph, Machine, PerClass,
    Problem, RankClasses, Schedule, machine,
};

fn model(name: &str) -> &'static ContentionModel {
    MODELS.iter().find(|model| model.name == name).unwrap()
}

fn simulated(
    schedule: &Schedule,
    machine: &Machine,
    (model, sync): (&str, Sync),
    ranks: Option<Ranks>,
) -> Result<Simulation, AnalysisError> {
    let traffic = Scheduled::new(schedule, machine);
    let mut request = Request::new(&traffic, machine, self::model(model), MEMORY);
    (request.sync, request.ranks) = (sync, ranks);
    simulate(&request)
}

/// Compares the results of the classes of traffic with those of its equal without classes: all but the chain,
/// which names other ranks, and the uses of links, which classes do not have. Returns whether ranks are
/// equivalent.
fn compare(
    [traffic, plain]: [&dyn Traffic; 2],
    machine: &Machine,
    (sync, routing): (Sync, Routing),
    place: &str,
) -> bool {
    let of = |traffic, ranks| {
        let mut request = Request::new(traffic, machine, model("fluid"), MEMORY);
        (request.sync, request.ranks, request.settings.routing) = (sync, ranks, routing);
        simulate(&request).unwrap()
    };
    // Neither the simulation nor the survey before it knows classes.
    let [by_classes, every] = [of(traffic, None), of(plain, Some(Ranks::Every))];
    let ends = [&by_classes, &every].map(|found| found.chain.last().map(|last| last.link.at));
    assert_eq!(ends[0], ends[1], "{place}");
    check_chain(&by_classes, plain, machine, (routing, place));
    let folded = by_classes.ranks == Ranks::Classes;
    let mut expected = every;
    expected.chain.clone_from(&by_classes.chain);
    expected.chain_length = by_classes.chain_length;
    (expected.ranks, expected.classes) = (by_classes.ranks, by_classes.classes);
    if folded {
        expected.links.clear();
    }
    assert_eq!(by_classes, expected, "{place}");
    folded
}

/// Every event of a chain is of a message that is sent, and every link waited for is on its route.
fn check_chain(
    found: &Simulation,
    traffic: &dyn Traffic,
    machine: &Machine,
    (routing, place): (Routing, &str),
) {
    let mut share = Share::default();
    for link in found.chain.iter().map(|named| named.link) {
        traffic.share(link.from, link.step, &mut share);
        let sent: Vec<_> = share.sends.iter().filter(|send| send.to == link.to).collect();
        assert!(!sent.is_empty(), "{place}: {link:?}");
        let Some((channel, from, to)) = link.waited else { continue };
        assert_eq!((from, to), (link.from, link.to), "{place}");
        let mut passes = channel >= machine.topology.link_numbers() || routing == Routing::Adaptive;
        for send in sent {
            let over = &mut |link: LinkId| passes |= link.0 == channel;
            machine.topology.for_each_link(from, &send.route, over);
        }
        assert!(passes, "{place}: {link:?}");
    }
}

fn compare_schedule(schedule: &Schedule, machine: &Machine, sync: Sync, place: &str) -> bool {
    let plain = without_classes(schedule);
    let [traffic, plain] = [schedule, &plain].map(|schedule| Scheduled::new(schedule, machine));
    compare([&traffic, &plain], machine, (sync, Routing::DimensionOrder), place)
}

pub(crate) fn compare_all(machine: &Machine, block: u64) -> [u32; 2] {
    let mut counts = [0; 2];
    for (algorithm, problem, setting) in serving(machine, block) {
        let name = &algorithm.info().name;
        let schedule = schedule_of(machine, &problem, name, &setting).unwrap();
        for sync in [Sync::Free, Sync::Barrier] {
            let place = format!("{name} {setting:?} on {}, {sync:?}", machine.name);
            counts[usize::from(compare_schedule(&schedule, machine, sync, &place))] += 1;
        }
    }
    counts
}

/// Values that differ between link classes, and limits of ranks and nodes.
pub(crate) fn valued(text: &str, ports: u32, limits: bool) -> Machine {
    let mut machine = priced(text, 300e-9, 7e-9);
    machine.set_ports(ports);
    if limits {
        machine.timing.injection = Injection { rank: 1.5e-9, node: 1e-9 };
    }
    machine
}

#[test]
fn classes_are_simulated_as_every_rank_is() {
    let mut folded = [0; 2];
    let small = machines_and_ports().into_iter().filter(|machine| machine.ranks() <= 32);
    for machine in small {
        let counts = compare_all(&machine, 300);
        (folded[0], folded[1]) = (folded[0] + counts[0], folded[1] + counts[1]);
    }
    for (text, ports, limits) in [
        ("torus:4x4", 4, true),
        ("torus:6", 2, false),
        ("grid:4~x3", 2, true),
        ("torus:2x4*3", 2, true),
        ("torus:3x2*2", 1, false),
        ("twisted-torus:2x4", 1, true),
        ("twisted-torus:2x4*2", 2, true),
        ("full:9", 3, true),
        ("cluster:4*3", 2, true),
    ] {
        let counts = compare_all(&valued(text, ports, limits), 4000);
        (folded[0], folded[1]) = (folded[0] + counts[0], folded[1] + counts[1]);
    }
    assert!(folded[1] > folded[0] / 4, "{folded:?}");
}

#[test]
#[ignore = "minutes"]
fn classes_are_simulated_as_every_rank_is_up_to_512_ranks() {
    for machine in machines_and_ports().into_iter().filter(|machine| machine.ranks() <= 512) {
        compare_all(&machine, 300);
    }
    for text in ["torus:16x16", "torus:8x8x8", "torus:20x20", "mesh:16x16", "torus:8x8*4"] {
        compare_all(&valued(text, 1, false), 4096);
    }
}

/// Compares some exchanges on trees and other graphs with symmetry. Returns how many have equivalent ranks.
fn compare_drawn(machines: u32, ranks: u32) -> u32 {
    let mut random = fastrand::Rng::with_seed(57);
    let mut folded = 0;
    for i in 0..machines {
        let mut machine = drawn_symmetric(&mut random);
        if !(2..=ranks).contains(&machine.ranks()) {
            continue;
        }
        set_values(&mut machine, random.u64(..));
        if random.bool() {
            machine.timing.injection = Injection { rank: 1.5e-9, node: 2e-9 };
        }
        machine.endpoint.window = (i % 4 == 0).then_some(2);
        machine.endpoint.interleave = i % 5 > 0;
        let block = random.u64(1..3000);
        let served = serving(&machine, block);
        for sync in [Sync::Free, Sync::Free, Sync::Barrier] {
            let (algorithm, problem, setting) = &served[random.usize(0..served.len())];
            let name = &algorithm.info().name;
            let schedule = schedule_of(&machine, problem, name, setting).unwrap();
            let place = format!("machine {i}, {}: {name} {setting:?}, {sync:?}", machine.name);
            folded += u32::from(compare_schedule(&schedule, &machine, sync, &place));
        }
        let all = AllToAll::new(&machine, block, MEMORY).unwrap();
        let plain = OfClasses(&all, RankClasses::distinct(machine.ranks()));
        let both: [&dyn Traffic; 2] = [&all, &plain];
        for routing in [Routing::DimensionOrder, Routing::Adaptive] {
            let place = format!("machine {i}, {}: {routing:?}", machine.name);
            folded += u32::from(compare(both, &machine, (Sync::Free, routing), &place));
        }
    }
    folded
}

#[test]
fn symmetry_of_graphs_changes_no_simulation() {
    let folded = compare_drawn(60, 48);
    assert!(folded > 60, "{folded}");
}

#[test]
#[ignore = "half a minute"]
fn symmetry_of_graphs_changes_no_simulation_of_many() {
    let folded = compare_drawn(300, 64);
    assert!(folded > 300, "{folded}");
}

/// Two nodes over three switches. A swap keeps the routes of both, over the second switch, but not the order of
/// the others, of which one is slower. So parts of messages over all shortest routes are not equivalent.
#[test]
fn parts_of_a_message_follow_the_order_of_links() {
    let ends = [[(0, 2), (0, 3), (0, 4)], [(1, 4), (1, 3), (1, 2)]];
    let link = |(node, switch): (u32, u32)| {
        let kind = LinkKind::of_class(u32::from(switch == 4));
        [(node, switch, kind), (switch, node, kind)]
    };
    let listed = ListedGraph {
        nodes: 2,
        switches: 3,
        classes: vec!["fast".to_owned(), "slow".to_owned()],
        links: ends.into_iter().flatten().flat_map(link).collect(),
        ..ListedGraph::default()
    };
    let mut machine = Machine::of(Arc::new(listed.with_shortest_routes().unwrap()));
    machine.timing.per_byte = PerClass::each(&[1e-9, 1e-6]);
    let all = AllToAll::new(&machine, 1, MEMORY).unwrap();
    let plain = OfClasses(&all, RankClasses::distinct(machine.ranks()));
    let both: [&dyn Traffic; 2] = [&all, &plain];
    for (routing, folds) in [(Routing::DimensionOrder, true), (Routing::Adaptive, false)] {
        let found = compare(both, &machine, (Sync::Free, routing), "two nodes");
        assert_eq!(found, folds, "{routing:?}");
    }
}

#[test]
fn equivalent_ranks_are_simulated_once() {
    let torus = machine("torus:16x16").unwrap();
    let [schedule, xor] = ["direct", "pairwise-xor"].map(|name| {
        let problem = Problem::new(Collective::AllToAll, 256, 1, 64).unwrap();
        schedule_of(&torus, &problem, name, &Default::default()).unwrap()
    });
    let ranks = |schedule, model, ranks| {
        simulated(schedule, &torus, (model, Sync::Free), ranks).map(|found| found.ranks)
    };
    assert_eq!(ranks(&schedule, "fluid", None), Ok(Ranks::Classes));
    assert_eq!(ranks(&schedule, "fluid", Some(Ranks::Every)), Ok(Ranks::Every));
    assert_eq!(ranks(&xor, "fluid", Some(Ranks::Classes)), Ok(Ranks::Every));
    assert_eq!(ranks(&schedule, "wormhole", None), Ok(Ranks::Every));
    for model in ["wormhole", "flit"] {
        let refused = ranks(&schedule, model, Some(Ranks::Classes)).unwrap_err().to_string();
        assert!(refused.contains(model) && refused.contains("dateline"), "{refused}");
    }
    let dragonfly = machine("dragonfly:2,3,2").unwrap();
    for (model, expected) in [("fluid", 6), ("wormhole", dragonfly.ranks())] {
        let problem = Problem::new(Collective::AllToAll, dragonfly.ranks(), 1, 64).unwrap();
        let schedule = schedule_of(&dragonfly, &problem, "direct", &Default::default()).unwrap();
        let found = simulated(&schedule, &dragonfly, (model, Sync::Free), None).unwrap();
        assert_eq!(found.classes, expected, "{model}");
    }
}

/// More ranks than any list of them could hold: the links of a period are simulated.
#[test]
fn a_billion_ranks_are_simulated_by_their_period() {
    let torus = machine("torus:32768x32768").unwrap();
    let problem = Problem::new(Collective::AllToAll, torus.ranks(), 1, 64).unwrap();
    let schedule = schedule_of(&torus, &problem, "suh-shin", &Default::default()).unwrap();
    let found = simulated(&schedule, &torus, ("fluid", Sync::Free), None).unwrap();
    let predicted = topocoll::count(&schedule, &torus, None, MEMORY).unwrap().time.total();
    let seconds = topocoll::contention::in_seconds(found.time);
    assert!((seconds / predicted - 1.0).abs() < 1e-6, "{seconds} s, {predicted} s");
}
