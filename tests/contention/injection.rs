//! Injection limits and links of different rates in the contention models.

use common::{
    MEMORY, Script, network, priced, problem, request, routers, run, schedule_of, settings,
};
use proptest::prelude::*;
use std::sync::Arc;
use topocoll::contention::{Pattern, Scheduled, Settings, Simulation, Sync, simulate, steps_model};
use topocoll::{
    Capacity, Collective, Injection, LinkKind, ListedGraph, Machine, PerClass, Rank, Route,
    Schedule, Shape,
};

const MODELS: [&str; 3] = ["wormhole", "fluid", "flit"];

/// A machine without startups and hops, whose links take 1 ns a byte.
fn limited(text: &str, ports: u32, rank: f64, node: f64) -> Machine {
    let mut machine = network(text, 0.0);
    machine.set_ports(ports);
    machine.timing.per_byte = PerClass::uniform(1e-9);
    machine.timing.injection = Injection { rank, node };
    machine
}

/// Microseconds of messages (sender, receiver, bytes) that are posted at once.
fn microseconds(machine: &Machine, model: &str, messages: &[(u32, u32, u64)]) -> f64 {
    let traffic = Script::posted(machine, messages.to_vec());
    run(&traffic, machine, model, routers(8)).time as f64 * 1e-6
}

fn schedule(machine: &Machine, algorithm: &str, block: u64) -> Schedule {
    let problem = problem(machine, Collective::AllToAll, block);
    schedule_of(machine, &problem, algorithm, &Default::default()).unwrap()
}

/// Seven blocks of 1 MiB at 450 GB/s take 16.31 us, and the startup 3 us.
#[test]
fn the_ports_of_a_rank_share_its_injection() {
    let mut machine = limited("full:8", 7, 1.0 / 450e9, 0.0);
    machine.timing.startup = PerClass::uniform(3e-6);
    machine.timing.per_byte = PerClass::uniform(1.0 / 450e9);
    let schedule = schedule(&machine, "direct", 1 << 20);
    let traffic = Scheduled::new(&schedule, &machine);
    let steps = steps_model(&traffic, &machine, MEMORY).unwrap().time.total();
    assert!((steps * 1e6 - 19.31).abs() < 0.005, "{steps}");
    for model in ["fluid", "wormhole"] {
        for sync in [Sync::Free, Sync::Barrier] {
            let asked = request(&traffic, &machine, model, Settings::default(), sync);
            let found = simulate(&asked).unwrap().time as f64 * 1e-12;
            assert!((found / steps - 1.0).abs() < 1e-6, "{model} {sync:?}: {found}, not {steps}");
        }
    }
}

/// Where the messages of a step have one size and share no link, the steps model is exact.
#[test]
fn equal_messages_take_as_long_as_in_the_steps_model() {
    for (text, ports) in [("full:8", 1), ("full:8", 3), ("full:9", 8), ("full:5", 2)] {
        for (rank, node) in [(0.3e-9, 0.0), (0.5e-9, 1.25e-9), (3e-9, 0.0), (0.01e-9, 0.0)] {
            let machine = limited(text, ports, rank, node);
            let schedule = schedule(&machine, "direct", 6000);
            let traffic = Scheduled::new(&schedule, &machine);
            let steps = steps_model(&traffic, &machine, MEMORY).unwrap().time.total() * 1e12;
            for model in ["fluid", "wormhole"] {
                let asked = request(&traffic, &machine, model, Settings::default(), Sync::Barrier);
                let found = simulate(&asked).unwrap().time as f64;
                // A picosecond of rounding in each step.
                assert!((found - steps).abs() <= 16.0, "{text} {ports} {rank}: {found} {steps}");
            }
        }
    }
}

#[test]
fn a_message_alone_takes_the_time_of_its_slowest_channel() {
    for text in ["torus:8x8", "mesh:5x3x2", "twisted-torus:2x4", "full:7", "cluster:2,3"] {
        for (rank, node, slower) in
            [(2e-9, 0.0, 2), (0.0, 3e-9, 3), (2e-9, 5e-9, 5), (0.5e-9, 0.0, 1)]
        {
            let mut machine = limited(text, 1, rank, node);
            machine.timing.per_hop = PerClass::uniform(50e-9);
            for to in 1..machine.ranks() {
                let traffic = Script::posted(&machine, vec![(0, to, 1000)]);
                let mut route = Route::default();
                machine.topology.route(Rank(0), Rank(to), &mut route);
                let inside = text == "cluster:2,3" && to < 2;
                let slower = if inside { (rank * 1e9).max(1.0) as u64 } else { slower };
                for model in ["wormhole", "fluid"] {
                    let found = run(&traffic, &machine, model, Settings::default());
                    let expected = 1_000_000 * slower + 50_000 * route.hops();
                    assert_eq!(found.time, expected, "{text} {rank} {node} to {to}, {model}");
                }
            }
        }
    }
}

/// A channel of p flits in q cycles passes flit k of a message in cycle k q / p, rounded down.
#[test]
fn flits_follow_each_other_at_the_rate_of_the_injection() {
    for (p, q) in [(1, 1), (1, 2), (2, 3), (1, 7), (3, 2)] {
        let machine = limited("torus:8x8", 1, q as f64 / p as f64 * 1e-9, 0.0);
        for (to, flits) in [(1, 1), (3, 2), (9, 7), (36, 64), (4, 600)] {
            let traffic = Script::posted(&machine, vec![(0, to, flits)]);
            let found = run(&traffic, &machine, "flit", routers(2));
            let mut route = Route::default();
            machine.topology.route(Rank(0), Rank(to), &mut route);
            let cycles = 5 * route.hops() + 7 + ((flits - 1) * q / p).max(flits - 1);
            assert_eq!(found.time, cycles * found.cycle, "{p}/{q} to {to}, {flits} flits");
            // The worm differs by the pipeline of the routers, and by the time of its last flit.
            let worm = run(&traffic, &machine, "wormhole", routers(2)).time / found.cycle;
            assert!(cycles.abs_diff(worm) <= 7 + q.div_ceil(p), "{p}/{q} to {to}: {worm}");
        }
    }
}

/// A flit every 200,000 cycles: no flit moves for longer than a deadlock lasts before it is reported.
#[test]
fn a_slow_injection_is_not_a_deadlock() {
    let machine = limited("torus:3", 1, 200e-6, 0.0);
    let found = run(&Script::posted(&machine, vec![(0, 1, 3)]), &machine, "flit", routers(2));
    assert_eq!((found.partial, found.time / found.cycle), (false, 5 + 7 + 400_000));
}

#[test]
fn a_hot_receiver_takes_all_messages_at_the_rate_of_its_injection() {
    let messages: Vec<_> = (1..8).map(|from| (from, 0, 1000)).collect();
    let back: Vec<_> = (1..8).map(|to| (0, to, 1000)).collect();
    for messages in [messages, back] {
        for model in ["wormhole", "fluid"] {
            let of =
                |rank, ports| microseconds(&limited("full:8", ports, rank, 0.0), model, &messages);
            assert!((of(1e-9, 7) - 7.0).abs() < 1e-5, "{model}");
            assert!((of(0.5e-9, 7) - 3.5).abs() < 1e-5, "{model}");
            assert!((of(0.1e-9, 7) - 1.0).abs() < 1e-5, "{model}");
        }
    }
    // The four neighbours of a node of a torus, each on its own link.
    let around = [(1, 4, 1000), (3, 4, 1000), (5, 4, 1000), (7, 4, 1000)];
    let away = around.map(|(from, to, bytes)| (to, from, bytes));
    for messages in [around, away] {
        for model in MODELS {
            for (rank, expected) in [(1e-9, 4.0), (0.5e-9, 2.0), (0.4e-9, 1.6), (0.25e-9, 1.0)] {
                let machine = limited("torus:3x3", 4, rank, 0.0);
                let found = microseconds(&machine, model, &messages);
                // A hop takes 5 ns, the pipeline of the routers 7 ns.
                assert!((found - expected).abs() < 0.015, "{model} {rank}: {found}");
            }
        }
    }
}

/// Three messages of rank 0 have a third of its injection each, so rank 4 has two thirds of the
/// ejection of rank 1.
#[test]
fn flows_share_injection_max_min_fairly() {
    let machine = limited("full:5", 4, 1e-9, 0.0);
    let messages = vec![(0, 1, 1000), (0, 2, 1000), (0, 3, 1000), (4, 1, 1000)];
    let traffic = Script::posted(&machine, messages);
    let found = run(&traffic, &machine, "fluid", Settings::default());
    let latencies = found.latencies.unwrap();
    assert_eq!((latencies.max, latencies.average), (3_000_000, (3.0 * 3e6 + 1.5e6) / 4.0));
    let channels: Vec<_> = found.chain.iter().filter_map(|link| link.channel.as_deref()).collect();
    assert_eq!(channels, ["the injection of rank 0"]);
}

/// Flits of a byte inside a node: q / p nanoseconds each, and the last takes one.
#[test]
fn flits_inside_a_node_pass_at_the_rate_of_their_class() {
    for (p, q) in [(1u64, 1u64), (4, 1), (2, 3), (1, 7)] {
        let mut machine = limited("torus:2x2*3", 1, 0.0, 0.0);
        machine.timing.per_byte = PerClass::each(&[q as f64 / p as f64 * 1e-9, 1e-9, 1e-9]);
        for flits in [1, 2, 100, 1001] {
            let traffic = Script::posted(&machine, vec![(3, 5, flits)]);
            let found = run(&traffic, &machine, "flit", routers(2));
            assert_eq!(found.time / found.cycle, (flits - 1) * q / p + 1, "{p}/{q}, {flits}");
            assert!(found.links.iter().all(|link| link.messages == 0));
        }
    }
}

/// Rank 0 receives from its node and from another one, and its ejection takes a flit in a cycle.
#[test]
fn messages_inside_a_node_and_into_it_take_turns() {
    for (rank, expected) in [(1e-9, 2.0), (2e-9, 4.0), (0.5e-9, 1.0)] {
        for (machine, far) in [("torus:2x2*3", 4), ("fat-tree:2,2*3", 7)] {
            let mut machine = limited(machine, 2, rank, 0.0);
            machine.timing.per_byte = PerClass::uniform(1e-9);
            for messages in [[(1, 0, 1000), (far, 0, 1000)], [(0, 1, 1000), (0, far, 1000)]] {
                let traffic = Script::posted(&machine, messages.to_vec());
                for model in MODELS {
                    let found = run(&traffic, &machine, model, routers(8));
                    let latencies = found.latencies.unwrap();
                    // Both end at about the same time.
                    for time in [latencies.max as f64, latencies.average] {
                        let time = time * 1e-6;
                        assert!((time - expected).abs() < 0.05, "{model} {rank}: {time}");
                    }
                }
            }
        }
    }
}

#[test]
fn only_inter_node_messages_use_the_injection_of_their_node() {
    // Ranks 0 to 2 on one node, 3 to 5 on another; the ports of a node suffice for all.
    let of = |rank, node, model: &str, messages: &[(u32, u32, u64)]| {
        microseconds(&limited("cluster:3,3", 5, rank, node), model, messages)
    };
    let out = [(0, 3, 1000), (1, 4, 1000), (2, 5, 1000)];
    let inside = [(0, 1, 1000), (1, 2, 1000), (2, 0, 1000)];
    let several = [(0, 1, 1000), (0, 2, 1000), (0, 3, 1000)];
    for model in ["wormhole", "fluid"] {
        for (rank, node, messages, expected) in [
            (0.0, 1e-9, out, 3.0),
            (0.0, 0.5e-9, out, 1.5),
            (0.0, 2e-9, inside, 1.0),
            (1e-9, 2e-9, inside, 1.0),
            (2e-9, 0.0, inside, 2.0),
            (1e-9, 0.0, several, 3.0),
            (0.0, 1e-9, several, 1.0),
            (1e-9, 1e-9, several, 3.0),
            (0.5e-9, 1e-9, several, 1.5),
            (1e-9, 1e-9, out, 3.0),
        ] {
            let found = of(rank, node, model, &messages);
            assert!((found - expected).abs() < 1e-5, "{model} {rank} {node}: {found}, {expected}");
        }
    }
}

/// To the picosecond, with everything else that a simulation finds.
#[test]
fn injection_faster_than_all_links_changes_nothing() {
    for (text, ports, algorithm) in [
        ("torus:4x4", 1, "direct"),
        ("mesh:3x5", 3, "direct"),
        ("twisted-torus:2x4", 2, "direct"),
        ("full:6", 5, "direct"),
        ("cluster:2,3,1", 1, "clustered-matchings"),
    ] {
        let mut machine = priced(text, 70e-9, 5e-9);
        machine.set_ports(ports);
        let schedule = schedule(&machine, algorithm, 96);
        let posted = Pattern::new(&machine, "random:5", 300, 16, None, MEMORY);
        for model in MODELS {
            let find = |machine: &Machine| -> Vec<Result<Simulation, _>> {
                let scheduled = Scheduled::new(&schedule, machine);
                let mut asked =
                    request(&scheduled, machine, model, settings(2, 8, 16, None), Sync::Free);
                let mut found = vec![simulate(&asked)];
                asked.sync = Sync::Barrier;
                asked.records = true;
                found.push(simulate(&asked));
                if let Ok(posted) = &posted {
                    asked.traffic = posted;
                    found.push(simulate(&asked));
                }
                found
            };
            let mut fast = machine.clone();
            // The fastest links take 2 ns a byte.
            let all_ports = 2e-9 / f64::from(machine.ranks());
            fast.timing.injection = Injection { rank: all_ports, node: all_ports };
            assert_eq!(find(&fast), find(&machine), "{text} {model}");
        }
    }
}

/// Messages of a rank that is limited to half the rate of a link fill half of it.
#[test]
fn links_are_busy_for_the_time_of_their_bytes() {
    for model in MODELS {
        let machine = limited("torus:4", 1, 2e-9, 0.0);
        let messages = (0..4).map(|from| (from, (from + 1) % 4, 10_000)).collect();
        let found = run(&Script::posted(&machine, messages), &machine, model, routers(2));
        // One of the two links of each node, half of the time.
        let busy = found.link_utilisation.unwrap();
        assert!((busy / 0.25 - 1.0).abs() < 1e-3, "{model}: {busy}");
    }
}

/// A ring of slow links beside a ring of fast ones.
#[test]
fn slow_links_delay_only_the_messages_that_take_them() {
    let mut machine = limited("torus:4x4", 2, 0.0, 0.0);
    machine.timing.per_byte = PerClass::each(&[3e-9, 1e-9]);
    for model in MODELS {
        let of = |messages: &[(u32, u32, u64)]| microseconds(&machine, model, messages);
        for (to, expected) in [(1, 1.0), (4, 3.0), (5, 3.0)] {
            let found = of(&[(0, to, 1000)]);
            assert!((found - expected).abs() < 0.02, "{model} to {to}: {found}");
        }
        // Both leave (0,1) along dimension 1, after a slow link each.
        let found = of(&[(13, 2, 1000), (5, 2, 1000)]);
        assert!((found - 3.0).abs() < 0.02, "{model}: {found}");
        // Both take the slow link from (1,0).
        let found = of(&[(4, 0, 1000), (4, 1, 1000)]);
        assert!((found - 6.0).abs() < 0.02, "{model}: {found}");
    }
}

/// Three nodes on a switch, whose link to node 1 has half the capacity and a latency of its own.
#[test]
fn links_of_a_graph_have_their_capacity_and_latency() {
    let half = LinkKind {
        capacity: Capacity::Relative { times: 1, over: 2 },
        latency: Some(70e-9),
        ..LinkKind::of_class(0)
    };
    let links = (0..3).flat_map(|node| {
        let down = if node == 1 { half } else { LinkKind::of_class(0) };
        [(node, 3, LinkKind::of_class(0)), (3, node, down)]
    });
    let graph = ListedGraph {
        form: "switch".to_owned(),
        nodes: 3,
        switches: 1,
        classes: vec!["link".to_owned()],
        links: links.collect(),
        ..ListedGraph::default()
    };
    let mut machine = Machine::of(Arc::new(graph.with_shortest_routes().unwrap()));
    machine.set_ports(2);
    machine.timing.startup = PerClass::uniform(0.0);
    machine.timing.per_byte = PerClass::uniform(1e-9);
    machine.timing.per_hop = PerClass::uniform(10e-9);
    // Hops of the flit model take flit times.
    let with = |model| if model == "flit" { routers(2) } else { Settings::default() };
    for model in MODELS {
        for (messages, time) in [
            (vec![(0, 2, 1000)], 1_020_000),
            (vec![(0, 1, 1000)], 2_080_000),
            (vec![(0, 1, 1000), (2, 1, 1000)], 4_080_000),
            // Both use half of the link from node 0.
            (vec![(0, 1, 1000), (0, 2, 500)], 2_080_000),
        ] {
            let traffic = Script::posted(&machine, messages.clone());
            let found = run(&traffic, &machine, model, with(model));
            // Worms that share a link have half of its rate while their headers cross it.
            let exact = model == "fluid" || messages.len() == 1 && model == "wormhole";
            let within = if exact { 0 } else { 80_000 };
            assert!(found.time.abs_diff(time) <= within, "{model} {messages:?}: {}", found.time);
        }
        let traffic = Script::posted(&machine, vec![(0, 1, 1000)]);
        let found = run(&traffic, &machine, model, with(model));
        let busy = found.link_utilisation.unwrap();
        let expected = 3.0 / 6.0 / (found.time as f64 * 1e-6);
        assert!((busy / expected - 1.0).abs() < 1e-9, "{model}: {busy}");
    }
}

/// The most picoseconds that any link, rank or node needs for its bytes.
fn least_time(machine: &Machine, traffic: &Script<'_>, found: &Simulation) -> f64 {
    let Injection { rank, node } = machine.timing.injection;
    let of = |rank: u32| match machine.topology.shape() {
        Shape::Clustered(clusters) => clusters.node_of(Rank(rank)),
        _ => rank,
    };
    let mut sums = vec![[0u64; 4]; machine.ranks() as usize];
    for &(_, from, to, bytes, _) in &traffic.messages {
        sums[from as usize][0] += bytes;
        sums[to as usize][1] += bytes;
        if of(from) != of(to) {
            sums[of(from) as usize][2] += bytes;
            sums[of(to) as usize][3] += bytes;
        }
    }
    let injected = sums.iter().flat_map(|&[sent, received, out, into]| {
        [sent.max(received) as f64 * rank, out.max(into) as f64 * node]
    });
    let links = found.links.iter().map(|link| link.bytes as f64 * 1e-9);
    1e12 * injected.chain(links).fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_model_beats_the_injection(
        text in prop::sample::select(vec![
            "torus:4x4", "mesh:3x4", "torus:2x3x2", "twisted-torus:2x4", "full:9", "cluster:3,1,4", "cluster:3*3",
            "torus:2x3*3", "mesh:3*4", "fat-tree:2,2*2", "hyperx:2x3*2",
        ]),
        ports in 1u32..6,
        messages in prop::collection::vec((0u32..64, 1u32..64, 1u64..400, 0u64..300), 1..60),
        rank in 0.0f64..4.0,
        node in 0.0f64..4.0,
    ) {
        let limit = |value: f64| if value < 1.0 { 0.0 } else { value.powi(2) * 0.2e-9 };
        let (rank, node) = (limit(rank), limit(node));
        let machine = limited(text, ports, rank, node);
        let ranks = machine.ranks();
        let messages = messages.into_iter().map(|(from, by, bytes, cycle)| {
            let from = from % ranks;
            (0, from, (from + 1 + by % (ranks - 1)) % ranks, bytes, cycle)
        });
        let traffic = Script { machine: &machine, messages: messages.collect() };
        for model in MODELS {
            let asked = request(&traffic, &machine, model, routers(4), Sync::Free);
            let Ok(found) = simulate(&asked) else { prop_assert!(model == "flit"); continue };
            prop_assert!(!found.partial || text.starts_with("twisted"), "{}", model);
            if !found.partial {
                // Flows are rounded to the picosecond. A flit, here a byte, takes a channel at the beginning of its
                // time there, and a message inside a node ends one cycle after its last flit does so.
                let flit = if model == "flit" { 1e12 * rank.max(node) } else { 0.0 };
                let least = least_time(&machine, &traffic, &found) - 100.0 - flit;
                prop_assert!(found.time as f64 >= least, "{}: {} {}", model, found.time, least);
            }
        }
    }
}
