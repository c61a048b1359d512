//! Packets of the flit model.

use common::{Script, network, request, routers, run};
use topocoll::contention::{Sync, Traffic, simulate};
use topocoll::{Machine, Rank, Route};

/// The cycles of a run.
fn cycles(traffic: &dyn Traffic, machine: &Machine) -> u64 {
    let found = run(traffic, machine, "flit", routers(2));
    assert!(!found.partial);
    found.time / found.cycle
}

/// Packets of 3 flits and more follow each other without a gap: 5 H + 7 + L - 1 cycles for L flits of all
/// packets.
#[test]
fn packets_of_a_message_alone_follow_each_other() {
    for text in ["torus:4x4", "mesh:5", "fat-tree:3,2"] {
        for (packet, bytes) in [(8, 64), (8, 61), (3, 30), (5, 4), (4, 5), (100, 1000)] {
            let mut machine = network(text, 50e-9);
            machine.endpoint.packet_bytes = Some(packet);
            for to in 1..machine.ranks() {
                let traffic = Script::posted(&machine, vec![(0, to, bytes)]);
                let mut route = Route::default();
                machine.topology.route(Rank(0), Rank(to), &mut route);
                let expected = 5 * route.hops() + 7 + bytes - 1;
                assert_eq!(cycles(&traffic, &machine), expected, "{text} to {to}, {packet}");
            }
        }
    }
}

/// A flit carries bytes of one packet only.
#[test]
fn each_packet_has_whole_flits() {
    let mut machine = network("mesh:2", 50e-9);
    machine.endpoint.packet_bytes = Some(33);
    let mut asked = routers(2);
    asked.flit_bytes = 8;
    // 33 bytes are 5 flits: two packets, and one of 4 bytes.
    let found = run(&Script::posted(&machine, vec![(0, 1, 70)]), &machine, "flit", asked);
    assert_eq!(found.time / found.cycle, 5 + 7 + 11 - 1);
    let bytes: u128 = found.links.iter().map(|link| link.bytes).sum();
    let messages: u64 = found.links.iter().map(|link| link.messages).sum();
    assert_eq!((bytes, messages), (70, 1));
}

/// The receivers of packets in the order in which they leave rank 0, whose port holds two messages.
fn order(interleave: bool) -> Vec<u32> {
    let mut machine = network("mesh:4", 5e-9);
    (machine.endpoint.packet_bytes, machine.endpoint.interleave) = (Some(4), interleave);
    let traffic = Script::posted(&machine, vec![(0, 2, 18), (0, 3, 12)]);
    let mut asked = request(&traffic, &machine, "flit", routers(2), Sync::Free);
    asked.records = true;
    let mut found = simulate(&asked).unwrap().intervals;
    // The link from rank 0 upwards.
    found.retain(|interval| interval.link.0 == 0);
    found.sort_by_key(|interval| interval.start);
    assert_eq!(found.iter().map(|interval| interval.bytes).sum::<u64>(), 30);
    found.iter().map(|interval| interval.to.0).collect()
}

#[test]
fn packets_of_messages_take_turns_or_one_message_follows_the_other() {
    assert_eq!(order(true), [2, 3, 2, 3, 2, 3, 2, 2]);
    assert_eq!(order(false), [2, 2, 2, 2, 2, 3, 3, 3]);
}

/// Packets of 4 flits leave every 4 cycles, or with an overhead of more by that, rounded up.
#[test]
fn overheads_limit_the_rate_of_packets() {
    let time = |text: &str, overhead: f64, messages: &[(u32, u32, u64)]| {
        let mut machine = network(text, 50e-9);
        machine.endpoint.packet_bytes = Some(4);
        let cycle = machine.timing.per_byte.of(0);
        machine.endpoint.packet_overhead = overhead * cycle;
        cycles(&Script::posted(&machine, messages.to_vec()), &machine)
    };
    let alone = 5 + 7 + 4 - 1;
    for (overhead, pause) in [(0.0, 4), (1.0, 4), (4.0, 4), (7.0, 7), (20.0, 20), (30.0, 30)] {
        // The first packet is ready after its overhead.
        let expected = overhead as u64 + alone + 9 * pause;
        assert_eq!(time("mesh:2", overhead, &[(0, 1, 40)]), expected, "{overhead}");
    }
    assert_eq!(time("mesh:2", 19.5, &[(0, 1, 40)]), 20 + alone + 9 * 20);
    // Inside a node a flit takes a cycle, and the packet in front is ready after its overhead.
    assert_eq!(time("mesh:2*2", 20.0, &[(0, 1, 40)]), 20 + 9 * 20 + 4);
    // Two messages of a rank have one sender: 20 packets, whatever their order.
    let both = time("mesh:3", 20.0, &[(1, 0, 40), (1, 2, 40)]);
    assert!((20 * 20..=20 * 20 + alone + 20).contains(&both), "{both}");
}

/// Without packets and overheads, the values of an endpoint have no effect.
#[test]
fn one_packet_is_the_message() {
    let mut machine = network("torus:4x4", 50e-9);
    let all = (0..16u32).flat_map(|from| (0..16).map(move |to| (from, to, 60)));
    let all: Vec<_> = all.filter(|message| message.0 != message.1).collect();
    let before = cycles(&Script::posted(&machine, all.clone()), &machine);
    machine.endpoint.packet_bytes = Some(60);
    assert_eq!(cycles(&Script::posted(&machine, all.clone()), &machine), before);
    machine.endpoint.interleave = false;
    assert_eq!(cycles(&Script::posted(&machine, all), &machine), before);
}
