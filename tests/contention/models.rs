//! The contention models against each other, against bounds, and against other simulators.

use common::{MEMORY, Script, network, problem, request, routers, run, schedule_of};
use proptest::prelude::*;
use topocoll::contention::{
    Job, Pattern, Placed, Scheduled, Settings, Share, Simulation, Sync, Traffic, in_seconds,
    simulate, steps_model, write_links, write_trace,
};
use topocoll::spec::read_nodes;
use topocoll::{
    AnalysisError, Block, Collective, Machine, Message, MixedRadix, Origin, Part, PerClass,
    Problem, Rank, Recorder, Rendezvous, Route, Schedule, Shape, StepCount, conflicts, count,
    count_steps, machine,
};

fn schedule(machine: &Machine, algorithm: &str, block: u64) -> Schedule {
    schedule_of(
        machine,
        &problem(machine, Collective::AllToAll, block),
        algorithm,
        &Default::default(),
    )
    .unwrap()
}

/// Cycles of a single message in `BookSim` 2: 5 H + 7 + (L - 1).
#[test]
fn a_flit_takes_five_cycles_a_hop() {
    for text in [
        "torus:9",
        "torus:8x8",
        "torus:4x4x4",
        "mesh:3x4",
        "twisted-torus:3x6",
        "torus:4x4/1,2/0,0+0",
        "hypercube:4",
        "hyperx:3x4",
        "fat-tree:3,2",
        "dragonfly:2,4,2",
    ] {
        let machine = network(text, 50e-9);
        for to in 1..machine.ranks() {
            for flits in [1, 2, 7, 16] {
                let traffic = Script::posted(&machine, vec![(0, to, flits)]);
                let found = run(&traffic, &machine, "flit", routers(2));
                let mut route = Route::default();
                machine.topology.route(Rank(0), Rank(to), &mut route);
                let cycles = 5 * route.hops() + 7 + flits - 1;
                assert_eq!(found.time, cycles * found.cycle, "{text} to {to}, {flits} flits");
            }
        }
    }
}

/// On nodes of several ranks, messages between nodes take as long as between the nodes alone.
#[test]
fn flits_between_nodes_of_several_ranks_take_as_long_as_between_nodes() {
    for text in ["torus:4x4", "fat-tree:3,2", "twisted-torus:2x4"] {
        let (nodes, machine) = (network(text, 50e-9), network(&format!("{text}*3"), 50e-9));
        for to in 3..machine.ranks() {
            let cycles = |machine: &Machine, from, to| {
                let traffic = Script::posted(machine, vec![(from, to, 9)]);
                let found = run(&traffic, machine, "flit", routers(2));
                found.time / found.cycle
            };
            assert_eq!(cycles(&machine, 1, to), cycles(&nodes, 0, to / 3), "{text}*3 to {to}");
        }
    }
}

/// `BookSim` 2 on 8x8 (dim_order, 2 virtual channels of 8 flits, iSLIP): pattern, flits, average and
/// longest latency, and whether messages contend.
const BOOKSIM: [(&str, &str, u64, f64, f64, bool); 12] = [
    ("torus:8x8", "neighbor", 1, 17.0, 17.0, false),
    ("torus:8x8", "neighbor", 64, 80.0, 80.0, false),
    ("torus:8x8", "tornado", 1, 37.0, 37.0, false),
    ("torus:8x8", "tornado", 64, 364.5, 799.0, true),
    ("torus:8x8", "transpose", 1, 27.0, 47.0, false),
    ("torus:8x8", "transpose", 64, 162.6, 293.0, true),
    ("torus:8x8", "bitcomp", 1, 27.0, 37.0, false),
    ("torus:8x8", "bitcomp", 64, 151.0, 222.0, true),
    ("mesh:8x8", "neighbor", 1, 24.5, 77.0, false),
    ("mesh:8x8", "neighbor", 64, 87.5, 140.0, false),
    ("mesh:8x8", "transpose", 1, 33.25, 77.0, false),
    ("mesh:8x8", "transpose", 64, 219.5, 490.0, true),
];

fn one_shot(text: &str, pattern: &str, bytes: u64, model: &str, vcs: u32) -> (f64, f64) {
    let machine = network(text, 50e-9);
    let traffic = Pattern::new(&machine, pattern, bytes, 1, None, MEMORY).unwrap();
    let found = run(&traffic, &machine, model, routers(vcs));
    let latencies = found.latencies.unwrap();
    (latencies.average / found.cycle as f64, latencies.max as f64 / found.cycle as f64)
}

#[test]
fn flits_take_as_long_as_in_booksim() {
    for (text, pattern, flits, average, max, contends) in BOOKSIM {
        let found = one_shot(text, pattern, flits, "flit", 2);
        let within = if contends { 0.15 } else { 0.03 };
        for (found, expected) in [(found.0, average), (found.1, max)] {
            let off = (found - expected).abs() / expected;
            assert!(off <= within, "{text} {pattern} {flits}: {found}, not {expected}");
        }
    }
    // More virtual channels: no convoys, and at the end fair sharing.
    for (vcs, expected) in [(4, 562.0), (8, 289.0), (16, 289.0)] {
        let found = one_shot("torus:8x8", "tornado", 64, "flit", vcs).1;
        assert!((found - expected).abs() / expected <= 0.15, "{vcs}: {found}");
    }
}

/// `SimGrid` 3.32, CM02, 1 us a hop, 1e9 B/s: microseconds.
#[test]
fn flows_take_as_long_as_in_simgrid() {
    let near = |found: f64, expected: f64, what: &str| {
        assert!((found - expected).abs() / expected <= 0.02, "{what}: {found}, not {expected}");
    };
    let machine = network("torus:8x8", 1e-6);
    for (pattern, expected) in [("neighbor", 102.0), ("tornado", 306.0), ("bitcomp", 205.0)] {
        let traffic = Pattern::new(&machine, pattern, 100_000, 16, None, MEMORY).unwrap();
        let found = run(&traffic, &machine, "fluid", Settings::default());
        near(found.time as f64 * 1e-6, expected, pattern);
    }
    for (text, algorithm, expected) in [
        ("torus:8x8", "pairwise-xor", 407.0),
        ("torus:8x8", "direct", 463.0),
        ("torus:16x16", "pairwise-xor", 3151.0),
    ] {
        let machine = network(text, 1e-6);
        let schedule = schedule(&machine, algorithm, 1024);
        let traffic = Scheduled::new(&schedule, &machine);
        let found = run(&traffic, &machine, "fluid", Settings::default());
        near(found.time as f64 * 1e-6, expected, algorithm);
    }
    // Everything posted at once.
    let all = (0..64u32).flat_map(|from| (0..64).map(move |to| (from, to, 1024)));
    let messages = all.filter(|message| message.0 != message.1).collect();
    let found = run(&Script::posted(&machine, messages), &machine, "fluid", Settings::default());
    near(found.time as f64 * 1e-6, 84.0, "all at once");
}

#[test]
fn a_message_alone_takes_startup_transmission_and_hops() {
    for text in ["torus:8x8", "mesh:5x3x2", "grid:6~x4", "full:7", "cluster:2,3"] {
        let machine = machine(text).unwrap();
        for to in 1..machine.ranks() {
            let traffic = Script::posted(&machine, vec![(0, to, 1000)]);
            let mut route = Route::default();
            machine.topology.route(Rank(0), Rank(to), &mut route);
            for model in ["wormhole", "fluid"] {
                let found = run(&traffic, &machine, model, Settings::default());
                assert_eq!(found.time, 1_000_000 + 1_000_000 + 50_000 * route.hops(), "{text}");
            }
        }
    }
}

#[test]
fn messages_of_a_node_take_turns_at_its_port() {
    let mut machine = network("cluster:2,2,2", 0.0);
    machine.timing.per_byte = PerClass::uniform(1e-9);
    for (messages, times) in [
        (vec![(0, 2, 1000), (1, 4, 1000)], 2),
        (vec![(2, 0, 1000), (4, 1, 1000)], 2),
        (vec![(0, 2, 1000), (3, 4, 1000)], 1),
        (vec![(0, 2, 1000), (2, 1, 1000), (4, 5, 1000)], 1),
    ] {
        let traffic = Script::posted(&machine, messages);
        let found = run(&traffic, &machine, "wormhole", Settings::default());
        assert_eq!(found.time, times * 1_000_000, "{:?}", traffic.messages);
    }
}

/// Rank 2 gets the two messages of its second step before that of its first.
#[test]
fn early_messages_wait_for_their_step() {
    let machine = network("mesh:8", 5e-9);
    let early = vec![(0, 0, 2, 100_000, 0), (1, 3, 2, 10, 0), (1, 4, 2, 10, 0), (2, 2, 3, 10, 0)];
    let slow = Script::posted(&machine, vec![(0, 2, 100_000)]);
    for model in ["wormhole", "fluid", "flit"] {
        let script = Script { machine: &machine, messages: early.clone() };
        let found = run(&script, &machine, model, routers(2));
        assert!(!found.partial && found.messages == 4, "{model}: {found:?}");
        assert!(found.time > run(&slow, &machine, model, routers(2)).time, "{model}");
    }
}

/// A message of the first step is sent long after another has led to one of the second.
#[test]
fn a_late_message_does_not_delay_earlier_ones() {
    let machine = network("mesh:8", 5e-9);
    let messages = vec![(0, 0, 1, 100, 1_000_000), (0, 2, 3, 100, 0), (1, 3, 4, 100, 0)];
    let script = Script { machine: &machine, messages };
    // A flit of a byte takes a nanosecond, and a router's output is allocated one before the first.
    for (model, held) in [("wormhole", 100_000), ("flit", 101_000)] {
        let mut asked = request(&script, &machine, model, routers(2), Sync::Free);
        asked.records = true;
        let found = simulate(&asked).unwrap();
        assert!(!found.partial && found.messages == 3, "{model}: {found:?}");
        let interval = |from| {
            let mut of_rank = found.intervals.iter().filter(move |it| it.from == Rank(from));
            of_rank.next().unwrap()
        };
        let late = interval(0).start;
        assert!(late >= 1_000_000, "{model}: {late}");
        assert!(found.intervals.iter().all(|it| it.end - it.start == held), "{model}: {found:?}");
        let (first, second) = (interval(2), interval(3));
        assert!(first.end <= second.start && second.end < late, "{model}: {:?}", found.intervals);
    }
}

/// Without contention all models agree with the closed form.
#[test]
fn models_agree_without_contention() {
    for text in ["torus:8x8", "torus:4x4x4", "torus:12x8", "mesh:6x6", "tpu-v4-4x4x4"] {
        let mut machine = machine(text).unwrap();
        machine.timing.per_block = 5e-9;
        machine.endpoint.message_overhead = 4e-7;
        let schedule = schedule(&machine, "suh-shin", 512);
        // The steps of the smallest messages have no rendezvous.
        let mut above = u64::MAX;
        let least = |_, step: &StepCount| above = above.min(step.largest_message as u64);
        count_steps(&schedule, &machine, None, MEMORY, least).unwrap();
        machine.timing.rendezvous = Rendezvous { above, time: 3e-6 };
        let in_step = count(&schedule, &machine, None, MEMORY).unwrap();
        assert!(in_step.rendezvous_steps < in_step.steps, "{text}");
        let traffic = Scheduled::new(&schedule, &machine);
        let closed = |model, records| {
            let mut asked = request(&traffic, &machine, model, Settings::default(), Sync::Barrier);
            asked.records = records;
            simulate(&asked).unwrap()
        };
        let wormhole = closed("wormhole", false);
        assert_eq!(wormhole.closed_steps as usize, wormhole.steps.len(), "{text}");
        let apart = in_seconds(wormhole.time) / in_step.time.total() - 1.0;
        assert!(apart.abs() < 1e-6, "{text}: {apart}");
        for model in ["wormhole", "fluid"] {
            let found = closed(model, true);
            assert_eq!(found.closed_steps, 0);
            assert_eq!(found.time, wormhole.time, "{text} {model}");
            assert_eq!(found.messages, wormhole.messages);
            assert_eq!(found.latencies, wormhole.latencies);
            assert_eq!(found.network_time, wormhole.network_time);
            let busy = |run: &Simulation| run.link_utilisation.unwrap();
            assert!((busy(&found) / busy(&wormhole) - 1.0).abs() < 1e-9);
        }
    }
}

/// Each of the six permutations of three nodes is drawn equally often.
#[test]
fn every_permutation_is_equally_likely() {
    let machine = machine("full:3").unwrap();
    let mut drawn = std::collections::BTreeMap::<Vec<u32>, u32>::new();
    for seed in 0..600 {
        let pattern =
            Pattern::new(&machine, &format!("random:{seed}"), 1, 1, None, MEMORY).unwrap();
        let to = (0..3).map(|node| {
            let mut share = Share::default();
            pattern.share(Rank(node), 0, &mut share);
            share.sends[0].to.0
        });
        *drawn.entry(to.collect()).or_default() += 1;
    }
    assert!(drawn.len() == 6 && drawn.values().all(|times| (70..130).contains(times)), "{drawn:?}");
}

/// Cycles of flit and wormhole models, as means over permutations of long messages.
#[test]
fn worms_and_flits_agree_on_long_messages() {
    let (mut worms, mut flits) = (0.0, 0.0);
    for seed in 0..20 {
        let pattern = format!("random:{seed}");
        worms += one_shot("torus:8x8", &pattern, 1024, "wormhole", 2).0;
        flits += one_shot("torus:8x8", &pattern, 1024, "flit", 2).0;
    }
    assert!((worms / flits - 1.0).abs() < 0.05, "{} against {}", worms / 20.0, flits / 20.0);
}

/// The seconds in which the busiest link carries its bytes, in picoseconds.
fn bandwidth_bound(found: &Simulation) -> u64 {
    found.links.iter().map(|link| link.bytes as u64).max().unwrap() * 1000
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_model_beats_the_bandwidth_of_a_link(
        text in prop::sample::select(vec!["torus:8x8", "mesh:4x6", "grid:6~x5", "torus:4x4x4", "torus:2x7"]),
        seed in 0u64..1000,
        bytes in 1u64..600,
        vcs in 1u32..5,
        buffer_flits in 1u32..40,
    ) {
        let machine = network(text, 5e-9);
        let traffic = Pattern::new(&machine, &format!("random:{seed}"), bytes, 1, None, MEMORY).unwrap();
        let mut settings = Settings::default();
        (settings.vcs, settings.buffer_flits, settings.flit_bytes) = (vcs, buffer_flits, 1);
        for model in ["wormhole", "fluid", "flit"] {
            let found = run(&traffic, &machine, model, settings);
            // A single virtual channel may deadlock on a ring; a deadlock is reported.
            prop_assert_eq!(found.partial, !found.deadlock.is_empty());
            prop_assert!(vcs == 1 || !found.partial, "{} {:?}", model, found.deadlock);
            if !found.partial {
                prop_assert!(found.time >= bandwidth_bound(&found), "{}", model);
            }
        }
    }

    /// Without propagation: the fluid model forwards nothing before a message is complete.
    #[test]
    fn worms_are_no_faster_than_flows(
        text in prop::sample::select(vec!["torus:8x8", "mesh:4x6", "torus:4x4x4", "torus:9"]),
        seed in 0u64..1000,
        bytes in 1u64..3000,
        vcs in 2u32..9,
    ) {
        let machine = network(text, 0.0);
        let traffic = Pattern::new(&machine, &format!("random:{seed}"), bytes, 16, None, MEMORY).unwrap();
        let mut settings = Settings::default();
        settings.vcs = vcs;
        let worms = run(&traffic, &machine, "wormhole", settings);
        let flows = run(&traffic, &machine, "fluid", settings);
        // Rates such as thirds are rounded to the picosecond.
        prop_assert!(worms.time + 100 >= flows.time, "{} < {}", worms.time, flows.time);
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    let machine = machine("torus:6x6").unwrap();
    let schedule = schedule(&machine, "direct", 300);
    let traffic = Scheduled::new(&schedule, &machine);
    for model in ["wormhole", "flit", "fluid"] {
        for sync in [Sync::Barrier, Sync::Free] {
            let with = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| {
                    let mut asked = request(&traffic, &machine, model, Settings::default(), sync);
                    asked.records = true;
                    let found = simulate(&asked).unwrap();
                    let mut trace = Vec::new();
                    write_trace(&machine, &found.intervals, &mut trace).unwrap();
                    (found, trace)
                })
            };
            let (one, many) = (with(1), with(4));
            assert_eq!(one, many, "{model} {sync:?}");
            let trace: serde_json::Value = serde_json::from_slice(&one.1).unwrap();
            let hops: u64 = one.0.links.iter().map(|link| link.messages).sum();
            let events = trace["traceEvents"].as_array().unwrap();
            assert_eq!(events.iter().filter(|event| event["ph"] == "X").count() as u64, hops);
            let mut lines = Vec::new();
            write_links(&machine, &one.0.links, &mut lines).unwrap();
            let lines = String::from_utf8(lines).unwrap();
            let lines: Vec<Vec<&str>> =
                lines.lines().map(|line| line.split(',').collect()).collect();
            assert_eq!(lines[0][5..], ["bytes", "messages", "busy_seconds", "waited_seconds"]);
            assert_eq!(lines.len() - 1, one.0.links.len());
            for (line, link) in lines[1..].iter().zip(&one.0.links) {
                assert_eq!(line[5..7], [link.bytes.to_string(), link.messages.to_string()]);
                let busy = link.bytes as f64 * machine.timing.per_byte.of(0);
                let waited = in_seconds(link.waited);
                assert_eq!(
                    line[7..].iter().map(|x| x.parse().unwrap()).collect::<Vec<f64>>(),
                    [busy, waited]
                );
            }
        }
    }
}

#[test]
fn a_stopped_simulation_keeps_its_results_so_far() {
    let machine = machine("torus:8x8").unwrap();
    let schedule = schedule(&machine, "direct", 1024);
    let traffic = Scheduled::new(&schedule, &machine);
    let mut asked = request(&traffic, &machine, "flit", Settings::default(), Sync::Free);
    let looks = std::sync::atomic::AtomicU32::new(0);
    let stop = || looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 1;
    asked.control.stop = &stop;
    let found = simulate(&asked).unwrap();
    assert!(found.partial && found.deadlock.is_empty());
    assert!(found.messages > 0 && found.messages < 4032, "{}", found.messages);
}

#[test]
fn jobs_on_parts_of_a_machine_share_its_links() {
    let whole = machine("torus:4x4").unwrap();
    let part = machine("full:8").unwrap();
    let job = |nodes: &str| Job {
        schedule: schedule(&part, "direct", 64),
        nodes: read_nodes(nodes).unwrap(),
    };
    let even = "0\n2\n4 # a comment\n6\n8\n10\n12\n14\n";
    let odd = "1\n3\n5\n7\n9\n11\n13\n15";
    let alone = Placed::new(&whole, vec![job(even)]).unwrap();
    let both = Placed::new(&whole, vec![job(even), job(odd)]).unwrap();
    let time = |traffic: &Placed<'_>| run(traffic, &whole, "wormhole", Settings::default()).time;
    assert!(time(&both) > time(&alone));
    let steps = part.ranks() - 1;
    assert_eq!((alone.steps(), both.steps(), both.jobs().len()), (steps, steps, 2));
    let worst = |traffic: &Placed<'_>| conflicts(traffic, &whole, Some(9), MEMORY).unwrap();
    let mixed = worst(&both).worst.into_iter().any(|conflict| {
        let jobs: Vec<_> = conflict.listed.iter().map(|m| both.on(m.from).unwrap().0).collect();
        jobs.contains(&0) && jobs.contains(&1)
    });
    assert!(mixed, "no conflict between the two jobs is named");

    let refused = |nodes: &str| Placed::new(&whole, vec![job(nodes)]).err().unwrap().to_string();
    assert!(refused("0\n1\n2\n3\n4\n5\n6\n16").contains("rank 7 of schedule 0 on node 16"));
    assert!(refused("0\n1\n2\n3\n4\n5\n6\n0").contains("which has rank 0"));
    assert!(refused("0").contains("1 nodes for the 8 ranks"));
    assert!(read_nodes("0\nx").unwrap_err().contains("line 2: `x`"));
}

/// A schedule whose rank at some coordinates sits at others.
fn moved<'a>(
    machine: &'a Machine,
    schedule: &Schedule,
    sides: &[u32],
    to: impl Fn(&mut [u32]),
) -> Placed<'a> {
    let Shape::Grid(grid) = machine.topology.shape() else { panic!("a grid") };
    let own = MixedRadix::new(sides).unwrap();
    let node = |rank| {
        let mut at = own.coordinates(rank);
        to(&mut at);
        grid.radix().rank(&at)
    };
    let nodes = (0..own.ranks()).map(Rank).map(node).collect();
    Placed::new(machine, vec![Job { schedule: schedule.clone(), nodes }]).unwrap()
}

/// How a rank's coordinates move.
type Move<'m> = dyn Fn(&mut [u32]) + 'm;

/// Routes are moved, mirrored and turned with the ranks, and a machine that is equal as seen from the
/// new nodes takes equal time.
#[test]
fn a_placement_keeps_the_routes_that_it_maps_onto_routes() {
    for (text, algorithm) in [
        ("torus:8x8", "direct-rings"),
        ("torus:8x8", "suh-shin"),
        ("torus:8x8", "direct"),
        ("torus:5x5", "coloured-rings"),
        ("torus:4x4x4", "neighbour-rings"),
        ("torus:5x5x5", "direct-rings"),
    ] {
        let machine = machine(text).unwrap();
        let schedule = schedule(&machine, algorithm, 1000);
        let alone = Scheduled::new(&schedule, &machine);
        let Shape::Grid(grid) = machine.topology.shape() else { panic!("a grid") };
        let sides = grid.sides();
        let expected = count(&schedule, &machine, None, MEMORY).unwrap().time;
        let flows = run(&alone, &machine, "fluid", Settings::default()).time;
        let side = sides[0];
        let moves: [(&str, &Move<'_>); 5] = [
            ("in place", &|_| ()),
            ("one along a side", &|at| at[1] = (at[1] + 1) % side),
            ("along all sides", &|at| (1..).zip(at).for_each(|(by, x)| *x = (*x + by) % side)),
            ("mirrored", &|at| at[0] = side - 1 - at[0]),
            ("turned", &|at| at.reverse()),
        ];
        for (name, to) in moves {
            let placed = moved(&machine, &schedule, sides, to);
            let place = format!("{algorithm} on {text}, {name}");
            let routes = placed.routes();
            assert_eq!((routes.kept, routes.name()), (routes.given, "schedule"), "{place}");
            // Without a given route, half a ring goes upwards, and dimension 0 comes first.
            if routes.given > 0 || !["mirrored", "turned"].contains(&name) {
                let found = steps_model(&placed, &machine, MEMORY).unwrap();
                assert_eq!(found.time, expected, "{place}");
                let found = run(&placed, &machine, "fluid", Settings::default()).time;
                assert_eq!(found, flows, "{place}");
            }
        }
    }
}

/// Nodes of a subset are in the order of its ranks, and no dateline is near: no tie is broken
/// differently.
#[test]
fn a_subset_of_a_mesh_takes_equal_time_at_every_place() {
    let large = machine("mesh:7x7").unwrap();
    let schedule = schedule(&machine("mesh:4x4").unwrap(), "direct", 1000);
    for model in ["wormhole", "flit", "fluid"] {
        let time = |down: u32, right: u32| {
            let to = |at: &mut [u32]| (at[0], at[1]) = (at[0] + down, at[1] + right);
            let placed = moved(&large, &schedule, &[4, 4], to);
            run(&placed, &large, model, Settings::default()).time
        };
        assert_eq!([time(3, 0), time(0, 2), time(3, 3)], [time(0, 0); 3], "{model}");
    }
}

/// Other messages take the machine's own routes, and their number is reported.
#[test]
fn a_placement_counts_the_routes_that_it_does_not_keep() {
    let large = machine("torus:8x8").unwrap();
    let of = |text: &str, algorithm: &str| schedule(&machine(text).unwrap(), algorithm, 1000);
    let own = of("torus:8x8", "direct-rings");
    let scattered = moved(&large, &own, &[8, 8], |at| at[1] = at[1] * 3 % 8);
    let routes = scattered.routes();
    assert!(routes.kept < routes.given && routes.given == 64 * 63, "{routes:?}");
    let found = steps_model(&scattered, &large, MEMORY).unwrap();
    assert!(found.time.total() > count(&own, &large, None, MEMORY).unwrap().time.total());
    // A subset of the machine is a mesh: a message around a ring takes the machine's route.
    let corner = |at: &mut [u32]| at.iter_mut().for_each(|x| *x += 2);
    let of_part = |text: &str, algorithm: &str| {
        let routes = moved(&large, &of(text, algorithm), &[6, 6], corner).routes();
        (routes.name(), routes.given > 0)
    };
    assert_eq!(of_part("mesh:6x6", "suh-shin"), ("schedule", true));
    assert_eq!(of_part("torus:6x6", "direct-rings"), ("mixed", true));
    assert_eq!(of_part("torus:6x6", "direct"), ("schedule", false));
    // One hop along dimension 0 is two along dimension 1.
    let mut recorder = Recorder::new(Problem::new(Collective::AllToAll, 2, 1, 8).unwrap());
    let (from, to) = (Rank(0), Rank(1));
    let blocks = vec![(Block { from, to }, Part::Whole)];
    let route = Some(Route::straight(0, 1));
    recorder.push(&Message { step: 0, from, to, route, blocks });
    let origin = Origin { algorithm: "by hand".to_owned(), parameters: Default::default() };
    let schedule = Schedule::new(
        Problem::new(Collective::AllToAll, 2, 1, 8).unwrap(),
        origin,
        recorder.finish(),
    );
    let job = Job { schedule, nodes: vec![Rank(0), Rank(2)] };
    let placed = Placed::new(&large, vec![job]).unwrap();
    let routes = placed.routes();
    assert_eq!((routes.given, routes.kept, routes.name()), (1, 0, "machine"));
    let mut share = Share::default();
    placed.share(Rank(0), 0, &mut share);
    assert_eq!(share.sends[0].route, Route::straight(1, 2));
}

#[test]
fn impossible_simulations_are_refused_before_they_begin() {
    let refused = |text: &str, model: &str, bytes: u64, settings: Settings, memory: u128| {
        let machine = machine(text).unwrap();
        let block = bytes.min(topocoll::MAX_BLOCK_BYTES);
        let problem = Problem::new(Collective::AllToAll, machine.ranks(), 1, block).unwrap();
        let schedule = schedule_of(&machine, &problem, "direct", &Default::default()).unwrap();
        let traffic = Scheduled::new(&schedule, &machine);
        let mut asked = request(&traffic, &machine, model, settings, Sync::Free);
        asked.memory = memory;
        simulate(&asked).unwrap_err()
    };
    let default = Settings::default();
    let overflow = refused("torus:64x64", "wormhole", 1 << 40, default, MEMORY);
    assert!(matches!(overflow, AnalysisError::Time { .. }), "{overflow}");
    let memory = refused("torus:8x8", "wormhole", 64, default, 10_000);
    assert!(matches!(memory, AnalysisError::Memory { needed: 10_001.., .. }), "{memory}");
    let recorded = {
        let machine = machine("torus:1024x1024").unwrap();
        let schedule = schedule(&machine, "suh-shin", 1);
        let traffic = Scheduled::new(&schedule, &machine);
        let mut asked = request(&traffic, &machine, "wormhole", default, Sync::Barrier);
        asked.records = true;
        simulate(&asked).unwrap_err()
    };
    assert!(matches!(recorded, AnalysisError::Memory { .. }), "{recorded}");
    let full = refused("full:8", "flit", 64, default, MEMORY);
    assert!(full.to_string().contains("requires a grid or a graph between the nodes"), "{full}");
    let mut most = default;
    most.vcs = 16;
    let many = refused("torus:2x2x2x2x2", "flit", 64, most, MEMORY);
    assert!(matches!(many, AnalysisError::Inputs { inputs: 176, .. }), "{many}");
    let work = refused("torus:1024x1024", "wormhole", 64, default, MEMORY);
    assert!(matches!(work, AnalysisError::Work { .. }), "{work}");

    // Listing conflicts takes seconds up to 2^25 shares of steps.
    let large = machine("mesh:128x64").unwrap();
    let long = schedule(&large, "pairwise-xor", 1);
    let asked =
        |schedule| conflicts(&Scheduled::new(schedule, &large), &large, None, 0).unwrap_err();
    let long = asked(&long);
    assert!(matches!(long, AnalysisError::Work { needed: 67_100_672, .. }), "{long}");

    // Of shifts one rank is visited.
    let shifts = asked(&schedule(&large, "direct", 1));
    assert!(matches!(shifts, AnalysisError::Memory { .. }), "{shifts}");

    // Every rank of a mesh is visited in every step, and every thread counts all links.
    let machine = machine("mesh:64x64").unwrap();
    let schedule = schedule(&machine, "pairwise-xor", 1);
    let traffic = Scheduled::new(&schedule, &machine);
    let needed = |memory| match conflicts(&traffic, &machine, None, memory) {
        Err(AnalysisError::Memory { needed, .. }) => needed,
        other => panic!("{other:?}"),
    };
    let links = 4 * 4096 * rayon::current_num_threads() as u128;
    assert_eq!((needed(0), needed(24 * links - 1)), (24 * links, 24 * links));

    let machine = network("torus:4", 0.0);
    for text in [
        "tornad",
        "random",
        "random:x",
        "uniform:0",
        "uniform:2",
        "uniform:0.1",
        "tornado:0",
        "bitcomp:2",
        "tornado:x",
        "neighbor:0.1",
    ] {
        let error = Pattern::new(&machine, text, 64, 16, None, MEMORY).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
    }
    assert!(Pattern::new(&machine, "tornado", 64, 16, Some(9), MEMORY).is_err());
    assert!(Pattern::new(&network("full:4", 0.0), "tornado", 64, 16, None, MEMORY).is_err());
    assert!(Pattern::new(&network("torus:4x2", 0.0), "transpose", 64, 16, None, MEMORY).is_err());
}

#[test]
fn a_message_without_a_sender_is_reported() {
    struct Lonely;
    impl Traffic for Lonely {
        fn nodes(&self) -> u32 {
            4
        }
        fn steps(&self) -> u32 {
            2
        }
        fn share(&self, node: Rank, step: u32, out: &mut Share) {
            *out = Share { receives: u32::from(node.0 == 2 && step == 1), ..Share::default() };
        }
    }
    let machine = network("torus:4", 0.0);
    let asked = request(&Lonely, &machine, "wormhole", Settings::default(), Sync::Free);
    assert_eq!(simulate(&asked).unwrap_err(), AnalysisError::Unpaired { rank: 2, step: 1 });
}

/// Two flows of a microsecond share a link, each at half its rate, and each is a microsecond late.
#[test]
fn flows_wait_for_the_link_that_they_share() {
    let machine = network("mesh:3", 0.0);
    let traffic = Script::posted(&machine, vec![(0, 2, 1000), (1, 2, 1000)]);
    let found = run(&traffic, &machine, "fluid", Settings::default());
    assert_eq!((found.time, found.partial), (2_000_000, false));
    let waited: Vec<_> = found.links.iter().map(|link| link.waited).filter(|&w| w > 0).collect();
    assert_eq!(waited, [2_000_000]);
    let channels: Vec<_> = found.chain.iter().filter_map(|link| link.channel.as_deref()).collect();
    assert_eq!(channels, ["(1)+0"]);
}
