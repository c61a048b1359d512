//! Classes are true, and readers that rely on them get the results of readers that do not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{
    MEMORY, check_classes, check_kinds, drawn_symmetric, reach, schedule_of, serving, set_values,
    without_classes,
};
use proptest::prelude::*;
use topocoll::contention::Scheduled;
use topocoll::{
    Capacity, Clusters, Collective, Counts, Graph, Injection, LinkKind, ListedGraph, Machine,
    Method, Parameters, Ports, Problem, Progress, RankSample, Setting, Shape, Topology,
    check_counting_work, conflicts, count, count_while, counting_work, link_totals, machine,
    verify_watched,
};

fn shape() -> impl Strategy<Value = String> {
    let sides = || prop::collection::vec((1u32..7, any::<bool>()), 1..4);
    let grid = sides().prop_map(|sides| {
        let sides: Vec<_> = sides
            .iter()
            .map(|(side, wraps)| format!("{side}{}", if *wraps { "~" } else { "" }))
            .collect();
        format!("grid:{}", sides.join("x"))
    });
    let torus = prop::collection::vec(1u32..4, 1..4).prop_map(|sides| {
        let sides: Vec<_> = sides.iter().map(|side| (4 * side).to_string()).collect();
        format!("torus:{}", sides.join("x"))
    });
    let cluster = prop::collection::vec(1u32..6, 1..6).prop_map(|sizes| {
        let sizes: Vec<_> = sizes.iter().map(ToString::to_string).collect();
        format!("cluster:{}", sizes.join(","))
    });
    prop_oneof![(1u32..80).prop_map(|ranks| format!("full:{ranks}")), grid, torus, cluster]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn random_machines_are_served_correctly(text in shape(), ports in 1u32..5, block_bytes in 1u64..9, pick in any::<prop::sample::Index>(), seed in any::<u64>()) {
        let mut machine = machine(&text).unwrap();
        set_values(&mut machine, seed);
        machine.set_ports(ports);
        prop_assume!(machine.ranks() <= 256);
        let served = serving(&machine, block_bytes);
        prop_assume!(!served.is_empty());
        let (algorithm, problem, setting) = &served[pick.index(served.len())];
        let schedule = schedule_of(&machine, problem, &algorithm.info().name, setting).unwrap();
        check_classes(&schedule, &machine, &format!("{} {setting:?} on {text} with {ports} ports", algorithm.info().name));
    }
}

/// Ranks, nodes and links that are equivalent on a graph are counted as one.
#[test]
fn symmetry_of_graphs_changes_no_count() {
    let mut random = fastrand::Rng::with_seed(55);
    let (mut fewer, mut levelled) = (0, 0);
    for i in 0..reach(40, 300) {
        let mut machine = drawn_symmetric(&mut random);
        if machine.ranks() < 2 || machine.ranks() > 128 {
            continue;
        }
        if let Shape::Graph(graph) = machine.topology.network() {
            levelled += u32::from(graph.levels().is_some());
        }
        set_values(&mut machine, random.u64(..));
        if random.bool() {
            machine.timing.injection = Injection { rank: 1.5e-9, node: 2e-9 };
        }
        let served = serving(&machine, random.u64(1..9));
        for _ in 0..3 {
            let (algorithm, problem, setting) = &served[random.usize(0..served.len())];
            let name = &algorithm.info().name;
            let schedule = schedule_of(&machine, problem, name, setting).unwrap();
            let plain = without_classes(&schedule);
            let place = format!("machine {i}, {}: {name} {setting:?}", machine.name);
            let [counts, all] =
                [&schedule, &plain].map(|of| count(of, &machine, None, MEMORY).unwrap());
            assert_eq!(counts, all, "{place}");
            let most = random.u32(1..machine.ranks());
            let sample = if i % 2 == 0 { RankSample::Spread(most) } else { RankSample::Near(most) };
            let (_, some) =
                count_while(&plain, &machine, MEMORY, Some(sample), |_, _| true).unwrap();
            assert!(some.bytes <= all.bytes && some.link_bytes <= all.link_bytes, "{place}");
            let terms = |of: &Counts| [of.time.startup, of.time.transmission, of.time.propagation];
            let higher = terms(&some)
                .into_iter()
                .zip(terms(&all))
                .any(|(some, all)| some > all * (1.0 + 1e-12));
            assert!(!higher && some.messages <= all.messages, "{place}: {sample:?}");
            let [totals, all] = [&schedule, &plain].map(|of| link_totals(of, &machine));
            assert_eq!(totals, all, "{place}");
            let [work, all] = [&schedule, &plain].map(|of| counting_work(of, &machine, None));
            fewer += u32::from(work < all);
        }
    }
    assert!(fewer > reach(30, 200), "{fewer}");
    assert!(levelled > reach(4, 25), "{levelled}");
}

/// Equal leaves under one switch for each group, and one above, joined by one link or several.
fn levelled(random: &mut fastrand::Rng) -> Arc<Graph> {
    let counts = [random.u32(1..4), random.u32(1..4), random.u32(1..6)];
    let mut links = Vec::new();
    let (mut first, mut vertices) = (0, counts.iter().product::<u32>());
    let nodes = vertices;
    for count in counts.into_iter().rev() {
        let cables = [random.u32(1..6), random.u32(1..6)];
        let kinds = [0, 1].map(|class| LinkKind {
            capacity: Capacity::Relative { times: random.u32(1..3), over: 1 },
            ..LinkKind::of_class(class)
        });
        for vertex in 0..vertices {
            let ends = [first + vertex, first + vertices + vertex / count];
            links.extend((0..cables[0]).map(|_| (ends[0], ends[1], kinds[0])));
            links.extend((0..cables[1]).map(|_| (ends[1], ends[0], kinds[1])));
        }
        first += vertices;
        vertices /= count;
    }
    let listed = ListedGraph {
        form: format!("graph:{counts:?}"),
        nodes,
        switches: first + vertices - nodes,
        classes: vec!["up".to_owned(), "down".to_owned()],
        links,
        ..ListedGraph::default()
    };
    Arc::new(listed.with_shortest_routes().unwrap())
}

/// A fat tree of several spines, whose messages take links by their destinations.
fn fat_tree(random: &mut fastrand::Rng) -> Arc<dyn Topology> {
    let mut up_to = |most| random.u32(1..=most);
    let text = match up_to(2) {
        1 => format!("fat-tree:{},{}", 1 + up_to(3), up_to(3)),
        _ => {
            let (uplinks, spines) = (up_to(4), [1, 1, 2][up_to(3) as usize - 1]);
            let uplinks = uplinks * spines;
            format!(
                "fat-tree:leaves={},nodes={},uplinks={uplinks},spines={spines}",
                up_to(4),
                up_to(6)
            )
        }
    };
    machine(&text).unwrap().topology
}

#[test]
fn shifts_on_trees_change_no_count() {
    let mut random = fastrand::Rng::with_seed(58);
    let (mut trees, mut levels) = ([0; 2], [0; 2]);
    for i in 0..reach(60, 600) {
        let network: Arc<dyn Topology> = match i % 2 {
            0 => levelled(&mut random),
            _ => fat_tree(&mut random),
        };
        let (size, nodes) = (random.u32(1..5), network.ranks());
        let ranks = nodes * size;
        if ranks < 2 {
            continue;
        }
        let Shape::Graph(graph) = network.shape() else { unreachable!() };
        trees[i % 2] += 1;
        levels[i % 2] += u32::from(graph.levels().is_some());
        let mut machine = match size {
            1 => Machine::of(network),
            size => Machine::of(Arc::new(Clusters::on(network, &[(nodes, size)]).unwrap())),
        };
        set_values(&mut machine, random.u64(..));
        let rank = random.u32(1..4);
        machine.set_ports(Ports { rank, node: rank * size });
        let problem =
            Problem::new(Collective::AllToAll, ranks, machine.ports, random.u64(1..9)).unwrap();
        let radix = Parameters::from([("radix".to_owned(), u64::from(random.u32(2..9)).into())]);
        for (name, setting) in [
            ("direct", Parameters::new()),
            ("bruck", radix),
            ("direct-spread", Parameters::new()),
            ("pairwise-xor", Parameters::new()),
        ] {
            let Ok(schedule) = schedule_of(&machine, &problem, name, &setting) else { continue };
            let place = format!("machine {i}, {name} {setting:?}, {}", machine.name);
            check_classes(&schedule, &machine, &place);
            let plain = without_classes(&schedule);
            let [totals, all] = [&schedule, &plain].map(|of| link_totals(of, &machine));
            assert_eq!(totals, all, "{place}");
        }
    }
    for (trees, levels) in trees.into_iter().zip(levels) {
        assert!(2 * levels > trees, "{levels} of {trees}");
    }
}

/// Rounds that differ in the node of a router only, on the dragonfly that the rule is for and on another, and shifts.
#[test]
fn equal_nodes_of_routers_change_no_count() {
    let mut random = fastrand::Rng::with_seed(57);
    for _ in 0..reach(60, 600) {
        let [nodes, routers, global] = [4, 4, 3].map(|most| random.u32(1..=most));
        let groups = random.u32(1..=routers * global + 1);
        let numbers = format!("{nodes},{routers},{global},{groups}");
        let mut own = machine(&format!("dragonfly:{numbers}")).unwrap();
        let apart = format!("dragonfly:1,{},{global},{groups}", routers * nodes);
        let mut other = machine(&apart).unwrap();
        let ports = random.u32(1..4);
        let ports = Ports { rank: ports, node: ports };
        let block_bytes = random.u64(1..9);
        for machine in [&mut own, &mut other] {
            set_values(machine, random.u64(..));
            machine.set_ports(ports);
        }
        if own.ranks() < 2 {
            continue;
        }
        let problem = Problem::new(Collective::AllToAll, own.ranks(), ports, block_bytes).unwrap();
        let radix = u64::from(random.u32(2..=own.ranks().min(8)));
        let radix = Parameters::from([("radix".to_owned(), radix.into())]);
        let none = Parameters::new();
        for (name, setting) in [("direct-spread", &none), ("direct", &none), ("bruck", &radix)] {
            let schedule = schedule_of(&own, &problem, name, setting).unwrap();
            let plain = without_classes(&schedule);
            for machine in [&own, &other] {
                let [counts, all] =
                    [&schedule, &plain].map(|of| count(of, machine, None, MEMORY).unwrap());
                assert_eq!(counts, all, "{name} of {numbers} on {}", machine.name);
            }
        }
    }
}

/// Steps between the same nodes, nodes that all do the same, and ranks that carry nothing.
#[test]
fn rounds_of_equal_nodes_change_no_count() {
    let mut random = fastrand::Rng::with_seed(56);
    let networks = ["full:5", "full:8", "torus:4x3", "mesh:3x3", "torus:2x4", "fat-tree:2,3"];
    let networks = networks.into_iter().chain(["dragonfly:1,2,4", "hyperx:2x4", "full:1"]);
    let (mut fewer, mut all) = (0, 0);
    for network in networks.cycle().take(reach(18, 240)) {
        let (size, block_bytes) = (random.u32(2..6), random.u64(1..9));
        let text = network.replace("full:", "cluster:");
        let mut machine = machine(&format!("{text}*{size}")).unwrap();
        let nodes = machine.topology.nodes();
        set_values(&mut machine, random.u64(..));
        let rank = random.u32(1..4);
        let node = if random.bool() { random.u32(1..7) } else { rank };
        machine.set_ports(Ports { rank, node });
        if random.bool() {
            machine.timing.injection = Injection { rank: 1.5e-9, node: 2e-9 };
        }
        let ports = machine.ports;
        let problem =
            Problem::new(Collective::AllToAll, machine.ranks(), ports, block_bytes).unwrap();
        let word = |name: &str, word: &str| (name.to_owned(), Setting::from(word));
        let number = |name: &str, number: u32| (name.to_owned(), u64::from(number).into());
        let lanes = random.u32(1..=size);
        let mut settings = vec![
            ("direct-spread", vec![]),
            ("pairwise-xor", vec![]),
            ("clustered-matchings", vec![]),
            ("node-aware", vec![number("lanes", lanes)]),
            (
                "node-aware",
                vec![
                    word("between", "bruck"),
                    number("between.radix", nodes),
                    number("lanes", lanes),
                ],
            ),
        ];
        for between in ["direct", "one-factor", "pairwise-xor"] {
            let setting = vec![word("between", between), number("lanes", lanes)];
            settings.push(("node-aware", setting));
        }
        let spread = vec![word("between", "direct-spread"), number("lanes", lanes)];
        let by_digits = spread.iter().cloned().chain([number("radix", 2)]).collect();
        settings.extend([("node-aware", spread), ("node-aware", by_digits)]);
        let turns = vec![word("between", "bruck"), number("between.radix", 2)];
        let turns = turns.into_iter().chain(["lanes", "turns"].map(|name| number(name, size)));
        settings.push(("node-aware", turns.collect()));
        for inside in ["early", "paired"] {
            for rounds in ["factors", "permutations"] {
                let setting = vec![word("inside", inside), word("rounds", rounds)];
                settings.push(("clustered-factor", setting));
            }
        }
        for (name, setting) in settings {
            let setting = setting.into_iter().collect();
            let place = format!("{name} {setting:?} on {} {ports:?}", machine.name);
            match schedule_of(&machine, &problem, name, &setting) {
                Ok(schedule) => {
                    check_classes(&schedule, &machine, &place);
                    let [work, plain] = [&schedule, &without_classes(&schedule)]
                        .map(|of| counting_work(of, &machine, None));
                    fewer += usize::from(work < plain);
                    all += 1;
                }
                Err(reason) => {
                    let refused = name == "node-aware" && setting.contains_key("between");
                    let straight = ["direct-spread", "pairwise-xor"].contains(&name);
                    assert!(refused || straight, "{place}: {reason}");
                }
            }
        }
    }
    assert!(all > reach(150, 1800) && 4 * fewer > 3 * all, "{fewer} of {all}");
}

#[test]
fn kinds_change_no_count() {
    let shapes = [
        "torus:13x11",
        "mesh:14x9",
        "torus:9x5x3",
        "torus:21x18",
        "grid:23~x10",
        "torus:11x2x9",
        "mesh:14x15",
    ];
    for (seed, text) in (0..reach(3, 7)).zip(shapes) {
        let mut machine = machine(text).unwrap();
        set_values(&mut machine, seed);
        for (algorithm, problem, setting) in serving(&machine, 5) {
            let name = &algorithm.info().name;
            if *name != "coloured-rings" || problem.operation != Collective::AllToAll {
                continue;
            }
            let schedule = schedule_of(&machine, &problem, name, &setting).unwrap();
            let place = format!("{setting:?} on {text}");
            assert_eq!(
                check_kinds(&schedule, &machine, &place),
                schedule.rule().steps(),
                "{place}"
            );
            // On its own machine, and read on one of other sides.
            let others =
                ["torus:11x13", "torus:18x21"].map(|text| topocoll::machine(text).unwrap());
            for on in others.iter().chain([&machine]).filter(|on| on.ranks() == machine.ranks()) {
                let [counts, plain] = [&schedule, &without_classes(&schedule)]
                    .map(|of| count(of, on, None, MEMORY).unwrap());
                assert_eq!(counts, plain, "{place}, counted on {}", on.name);
            }
        }
    }
}

#[test]
fn idle_ranks_change_no_count() {
    for (text, algorithm) in [
        ("mesh:4x4", "cyclic-exchange"),
        ("mesh:8x1x8", "cyclic-exchange"),
        ("mesh:16x16", "cyclic-exchange"),
        ("torus:4x4", "tseng-gupta-panda"),
        ("torus:8x8", "tseng-gupta-panda"),
        ("torus:16x16", "tseng-gupta-panda"),
    ] {
        let machine = machine(text).unwrap();
        let problem = Problem::new(Collective::AllToAll, machine.ranks(), 1, 5).unwrap();
        let schedule = schedule_of(&machine, &problem, algorithm, &Default::default()).unwrap();
        check_classes(&schedule, &machine, &format!("{algorithm} on {text}"));
    }
}

/// Steps in which kinds of coordinates, or the ranks that are not idle, are few.
#[test]
fn conflicts_of_a_million_nodes_are_named_by_default() {
    let cases = [
        ("torus:1021x1019", "coloured-rings", 0),
        ("mesh:1024x1024", "binary-exchange", 31_469_568),
        ("torus:1024x1024", "tseng-gupta-panda", 0),
        ("mesh:1024x1024", "cyclic-exchange", 0),
    ];
    for &(text, algorithm, contended) in &cases[..reach(2, 4)] {
        let machine = machine(text).unwrap();
        let problem = Problem::new(Collective::AllToAll, machine.ranks(), 1, 1024).unwrap();
        let schedule = schedule_of(&machine, &problem, algorithm, &Default::default()).unwrap();
        let found = conflicts(&Scheduled::new(&schedule, &machine), &machine, None, MEMORY);
        assert_eq!(found.unwrap().conflicts, contended, "{algorithm}");
    }
}

/// No two ranks are equivalent, but a step has few kinds of them.
#[test]
fn kinds_make_counting_less_work() {
    let machine = machine("torus:1021x1019").unwrap();
    let problem = Problem::new(Collective::AllToAll, machine.ranks(), 1, 1024).unwrap();
    let one_class = BTreeMap::from([("classes".to_owned(), 1.into())]);
    let schedule = schedule_of(&machine, &problem, "coloured-rings", &one_class).unwrap();
    assert_eq!(schedule.rule().classes().count(), machine.ranks());
    assert_eq!(check_counting_work(&schedule, &machine), Ok(()));
    let counts = count(&schedule, &machine, None, MEMORY).unwrap();
    assert_eq!((counts.steps, counts.messages), (1026, 1_063_286_756));
}

#[test]
fn progress_ends_at_its_total() {
    for (name, operation, method) in [
        ("torus:8x8", Collective::AllToAll, Method::Classes),
        ("torus:8x8", Collective::AllGather, Method::Classes),
        ("torus:8x8", Collective::AllToAll, Method::Replay),
    ] {
        let machine = machine(name).unwrap();
        let problem = Problem::new(operation, machine.ranks(), machine.ports, 64).unwrap();
        for algorithm in ["direct", "coloured-rings", "ring", "bucket"] {
            let Ok(schedule) = schedule_of(&machine, &problem, algorithm, &Default::default())
            else {
                continue;
            };
            let (all, done) = (AtomicU64::new(0), AtomicU64::new(0));
            let progress = Progress {
                starting: &|_, length| {
                    let before = all.swap(length, Ordering::Relaxed);
                    assert_eq!(done.swap(0, Ordering::Relaxed), before, "{algorithm}");
                },
                done: &|more| _ = done.fetch_add(more, Ordering::Relaxed),
            };
            let found = verify_watched(&schedule, &machine, Some(method), MEMORY, &progress);
            assert_eq!(found.unwrap().violation, None);
            assert!(all.load(Ordering::Relaxed) > 0);
            assert_eq!(done.into_inner(), all.into_inner(), "{algorithm} by {}", method.name());
        }
    }
}

#[test]
fn a_billion_ranks_are_counted_by_their_period() {
    let machine = machine("torus:32768x32768").unwrap();
    let problem = Problem::new(Collective::AllToAll, machine.ranks(), 1, 1 << 20).unwrap();
    let schedule = schedule_of(&machine, &problem, "suh-shin", &Default::default()).unwrap();
    let counts = count(&schedule, &machine, None, MEMORY).unwrap();
    let (ranks, side) = (1u128 << 30, 32768u128);
    assert_eq!((counts.steps, counts.bytes), (16386, (ranks * (side + 4) / 4) << 20));
    assert_eq!((counts.hops, counts.link_conflicts), (2 * (side - 1), 0));
}
