//! Windows, packets, overheads and orders of endpoints, and routes other than the machine's own.

use crate::classes::{compare_all, valued};
use common::{
    MEMORY, OfClasses, Script, network, priced, problem, request, run, schedule_of, serving,
};
use topocoll::contention::{
    AllToAll, MAX_VCS, Posted, Ranks, Routing, Scheduled, Settings, Share, Simulation, Sync,
    Traffic, simulate,
};
use topocoll::{Collective, Endpoint, Machine, Order, PerClass, Rank, RankClasses, Ties};

/// All messages of an all-to-all at once.
fn all(machine: &Machine, bytes: u64, settings: Settings) -> Simulation {
    run(&AllToAll::new(machine, bytes, MEMORY).unwrap(), machine, "fluid", settings)
}

fn adaptive() -> Settings {
    let mut settings = Settings::default();
    settings.routing = Routing::Adaptive;
    settings
}

/// A network of links of 1 byte in a nanosecond, and endpoints with these values.
fn with(text: &str, values: &[(&str, &str)]) -> Machine {
    let mut machine = network(text, 0.0);
    machine.timing.startup = PerClass::uniform(2e-6);
    for (name, value) in values {
        machine.endpoint.set(name, value).unwrap();
    }
    machine
}

/// Microseconds of an all-to-all of 1,000 bytes to 7 others that share nothing, as every message
/// takes 2 us of startup and 1 us of transmission.
#[test]
fn times_on_a_full_network_have_closed_forms() {
    for (values, expected) in [
        (&[][..], 3.0),
        (&[("window", "7")], 3.0),
        // One after the other, in pairs, and in two threes and one.
        (&[("window", "1")], 7.0 * 3.0),
        (&[("window", "2")], 4.0 * 3.0),
        (&[("window", "3")], 3.0 * 3.0),
        // The last of seven overheads of 5 us.
        (&[("message_overhead", "5us")], 7.0 * 5.0 + 3.0),
        (&[("message_overhead", "5us"), ("window", "1")], 7.0 * 8.0),
        // Of three overheads the second begins before the first message is delivered.
        (&[("message_overhead", "1us"), ("window", "6")], 7.0 + 3.0),
        // The first packet of each message, then 3 us for each packet of 500 bytes.
        (
            &[("packet_bytes", "500"), ("packet_overhead", "3us"), ("window", "1")],
            7.0 * (5.0 + 6.0),
        ),
        (&[("packet_bytes", "1000"), ("packet_overhead", "1ns")], 3.007),
        (&[("packet_bytes", "500")], 3.0),
        // Startups together, then one message after the other.
        (&[("interleave", "off")], 2.0 + 7.0),
    ] {
        let found = all(&with("full:8", values), 1000, Settings::default());
        let us = found.time as f64 * 1e-6;
        assert!((us - expected).abs() < 1e-6, "{values:?}: {us} us, not {expected}");
    }
}

/// A rank that sends packets of 64 bytes, each with 640 ns of overhead, sends 100 bytes in 1 us.
#[test]
fn packet_overheads_limit_the_rate_of_a_rank() {
    let values = [("packet_bytes", "64"), ("packet_overhead", "640ns")];
    let found = all(&with("full:8", &values), 64_000, Settings::default());
    let us = found.time as f64 * 1e-6;
    let expected = 7.0 * 64_000.0 / 100.0 + 2.0;
    assert!((us - expected).abs() < 7.0 * 0.64 + 1e-6 && us > expected, "{us} us, not {expected}");
}

/// A window as large as the ports changes nothing, and the smaller of both holds.
#[test]
fn windows_and_ports_both_hold() {
    for (text, ports) in [("torus:4x4", 3), ("full:9", 4), ("torus:2x3*2", 2), ("mesh:3x3", 2)] {
        let mut machine = priced(text, 300e-9, 7e-9);
        machine.set_ports(ports);
        for (algorithm, problem, setting) in serving(&machine, 300) {
            let name = &algorithm.info().name;
            let schedule = schedule_of(&machine, &problem, name, &setting).unwrap();
            let most = (0..schedule.rule().steps()).flat_map(|step| {
                let mut does = topocoll::Step::default();
                (0..machine.ranks())
                    .map(move |rank| (rank, step))
                    .map(|(rank, step)| {
                        schedule.rule().step(Rank(rank), step, &mut does);
                        does.sends.len()
                    })
                    .collect::<Vec<_>>()
            });
            let most = most.max().unwrap_or(0).max(1) as u32;
            for model in ["fluid", "wormhole"] {
                let time = |window| {
                    let mut machine = machine.clone();
                    machine.endpoint.window = window;
                    let traffic = Scheduled::new(&schedule, &machine);
                    let mut settings = Settings::default();
                    settings.vcs = MAX_VCS;
                    run(&traffic, &machine, model, settings).time
                };
                assert_eq!(time(None), time(Some(most)), "{name} {setting:?} on {text}, {model}");
                if most == 1 || model == "wormhole" {
                    continue;
                }
                assert!(time(Some(1)) >= time(None), "{name} {setting:?} on {text}");
            }
        }
    }
}

/// On a ring of 8 the order by distance, then upwards.
#[test]
fn orders_are_by_offset_or_distance() {
    let order = |text: &str, order, from: u32| {
        let mut machine = network(text, 0.0);
        machine.endpoint.order = order;
        let mut share = Share::default();
        AllToAll::new(&machine, 1, MEMORY).unwrap().share(Rank(from), 0, &mut share);
        share.sends.iter().map(|send: &Posted| send.to.0).collect::<Vec<_>>()
    };
    assert_eq!(order("torus:8", Order::Rotation, 6), [7, 0, 1, 2, 3, 4, 5]);
    assert_eq!(order("torus:8", Order::Schedule, 6), [7, 0, 1, 2, 3, 4, 5]);
    assert_eq!(order("torus:8", Order::FarthestFirst, 6), [2, 1, 3, 0, 4, 7, 5]);
    assert_eq!(order("torus:3x3", Order::Rotation, 4), [5, 3, 7, 8, 6, 1, 2, 0]);
    assert_eq!(order("mesh:3x2", Order::FarthestFirst, 0), [5, 3, 4, 1, 2]);
    assert_eq!(order("torus:2x2*2", Order::Rotation, 3), [2, 1, 0, 7, 6, 5, 4]);
    let [one, other] = [1, 2].map(|seed| order("full:9", Order::Random(seed), 3));
    assert_ne!(one, other);
    let mut sorted = one;
    sorted.sort_unstable();
    assert_eq!(sorted, [0, 1, 2, 4, 5, 6, 7, 8]);
}

const ENDPOINTS: [&[(&str, &str)]; 6] = [
    &[("window", "1")],
    &[("window", "3"), ("order", "farthest-first"), ("message_overhead", "150ns")],
    &[("interleave", "off")],
    &[("interleave", "off"), ("window", "2"), ("message_overhead", "10ns")],
    &[("packet_bytes", "100"), ("packet_overhead", "80ns")],
    &[("order", "random:3"), ("window", "2")],
];

#[test]
fn classes_and_every_rank_agree_with_endpoints_and_other_routes() {
    let mut folded = 0;
    for text in [
        "torus:4x4",
        "torus:6x3",
        "torus:4x2",
        "grid:4~x3",
        "mesh:3x3",
        "full:7",
        "torus:3x2*2",
        "cluster:3*2",
        "twisted-torus:2x4",
        "hypercube:3",
        "fat-tree:2,2",
        "dragonfly:1,2,1",
    ] {
        for values in ENDPOINTS.iter().copied().chain([&[][..]]) {
            for (settings, ties) in [
                (Settings::default(), Ties::Up),
                (Settings::default(), Ties::Balanced),
                (adaptive(), Ties::Up),
            ] {
                let mut machine = valued(text, 2, text.starts_with("torus:4"));
                values.iter().for_each(|(name, value)| machine.endpoint.set(name, value).unwrap());
                machine.set_ties(ties);
                let traffic = AllToAll::new(&machine, 1000, MEMORY).unwrap();
                let of = |traffic: &dyn Traffic, ranks| {
                    let mut asked = request(traffic, &machine, "fluid", settings, Sync::Free);
                    asked.ranks = ranks;
                    simulate(&asked).unwrap()
                };
                let by_classes = of(&traffic, None);
                let distinct = RankClasses::distinct(machine.ranks());
                let every = of(&OfClasses(&traffic, distinct), Some(Ranks::Every));
                let place = format!("{text}, {values:?}, {settings:?}, {ties:?}");
                folded += u32::from(by_classes.ranks == Ranks::Classes);
                let shown = |found: &Simulation| {
                    (
                        found.time,
                        found.latencies,
                        found.messages,
                        found.busiest,
                        found.link_utilisation,
                    )
                };
                assert_eq!(shown(&by_classes), shown(&every), "{place}");
            }
        }
    }
    assert!(folded > 120, "{folded}");
}

#[test]
fn classes_of_schedules_are_simulated_as_every_rank_is_with_endpoints() {
    for values in &ENDPOINTS[..5] {
        for (text, ports) in [("torus:4x3", 3), ("torus:2x2*2", 2), ("full:6", 3)] {
            let mut machine = valued(text, ports, false);
            let own = values.iter().filter(|(name, _)| *name != "order");
            own.for_each(|(name, value)| machine.endpoint.set(name, value).unwrap());
            let counts = compare_all(&machine, 700);
            assert!(counts[1] > 0);
        }
    }
}

/// A message to the opposite corner of a square takes both ways, each half.
#[test]
fn adaptive_messages_are_split_over_shortest_routes() {
    let machine = network("torus:8x8", 0.0);
    let time = |to: u32, settings| {
        let traffic = Script::posted(&machine, vec![(0, to, 48_000)]);
        run(&traffic, &machine, "fluid", settings).time
    };
    let us = 1_000_000;
    assert_eq!(time(9, Settings::default()), 48 * us);
    assert_eq!(time(9, adaptive()), 24 * us);
    assert_eq!(time(1, adaptive()), 48 * us);
    // Two ways along each of two dimensions at half a ring: four first links, two routes over each.
    assert_eq!(time(36, adaptive()), 12 * us);
    // A schedule's own routes are kept.
    let schedule = schedule_of(
        &machine,
        &problem(&machine, Collective::AllToAll, 64),
        "neighbour-rings",
        &Default::default(),
    );
    let schedule = schedule.unwrap();
    let traffic = Scheduled::new(&schedule, &machine);
    let times = [Settings::default(), adaptive()].map(|s| run(&traffic, &machine, "fluid", s).time);
    assert_eq!(times[0], times[1]);
}

/// All messages at once use every link of a torus all the time, if ties are balanced or messages are
/// split: the time is that of the bandwidth bound. With ties upwards, three of four links of a ring of
/// four wait.
#[test]
fn ties_decide_the_rate_of_small_tori() {
    for (text, up, balanced) in
        [("torus:4", 3.0, 2.0), ("torus:4x4x4", 48.0, 32.0), ("torus:8x4x4", 160.0, 128.0)]
    {
        let mut machine = network(text, 0.0);
        let blocks = |machine: &Machine, settings| all(machine, 1000, settings).time as f64 * 1e-6;
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-6;
        assert!(near(blocks(&machine, Settings::default()), up), "{text}");
        assert!(near(blocks(&machine, adaptive()), balanced), "{text}");
        assert!(machine.set_ties(Ties::Balanced));
        assert!(near(blocks(&machine, Settings::default()), balanced), "{text}");
    }
}

#[test]
fn a_twist_raises_the_rate_of_adaptive_messages() {
    let time = |text| all(&network(text, 0.0), 48_000, adaptive()).time as f64;
    let gain = time("torus:4x4x8") / time("twisted-torus:4x4x8");
    assert!((gain - 128.0 / (220.0 / 3.0)).abs() < 0.01, "{gain}");
}

#[test]
fn models_refuse_what_they_do_not_have() {
    let machine = with("torus:4x4", &[("packet_bytes", "64")]);
    let traffic = AllToAll::new(&machine, 1, MEMORY).unwrap();
    let asked = request(&traffic, &machine, "wormhole", Settings::default(), Sync::Free);
    let refused = simulate(&asked).unwrap_err().to_string();
    assert!(refused.contains("wormhole") && refused.contains("packet_bytes"), "{refused}");
    let large = network("torus:4096x4096", 0.0);
    assert!(AllToAll::new(&large, 1, 1 << 20).is_err());
    assert_eq!(machine.endpoint.order, Endpoint::default().order);
}
