//! Virtual channels: deadlocks without them, and the order of messages with them.

use common::{Script, network, routers, run};
use topocoll::contention::{Dateline, Posted, Share, Traffic};
use topocoll::{Machine, Rank, Route};

#[test]
fn one_channel_on_a_ring_deadlocks_and_is_reported() {
    let machine = network("torus:8", 5e-9);
    let messages = (0..8).map(|from| (from, (from + 3) % 8, 10_000)).collect();
    let traffic = Script::posted(&machine, messages);
    for model in ["wormhole", "flit"] {
        let found = run(&traffic, &machine, model, routers(1));
        assert!(found.partial && found.deadlock.len() > 1, "{model}");
        // Each waits for a link that the next one has taken.
        let next = found.deadlock.iter().skip(1).chain(&found.deadlock[..1]);
        for (held, next) in found.deadlock.iter().zip(next) {
            let (mut route, mut taken) = (Route::default(), Vec::new());
            let torus = &machine.topology;
            torus.route(next.from, next.to, &mut route);
            torus.for_each_link(next.from, &route, &mut |link| taken.push(torus.link_name(link)));
            assert!(taken.contains(&held.waits_for), "{model}: {held:?} {taken:?}");
        }
        assert!(!run(&traffic, &machine, model, routers(2)).partial, "{model}");
    }
}

/// All messages of an all-to-all at once, on routes that take links in an order without cycles.
#[test]
fn networks_with_an_order_of_links_do_not_deadlock() {
    for text in ["hypercube:4", "hyperx:3x4", "fat-tree:3,2", "fat-tree:2,3,2"] {
        let mut machine = network(text, 5e-9);
        machine.set_ports(16);
        let ranks = machine.ranks();
        let pairs = (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to)));
        let messages = pairs.filter(|(from, to)| from != to).map(|(from, to)| (from, to, 10_000));
        let traffic = Script::posted(&machine, messages.collect());
        for model in ["wormhole", "flit"] {
            assert!(!run(&traffic, &machine, model, routers(1)).partial, "{text}, {model}");
        }
    }
}

/// Routes around most of a ring, which channels chosen on entry would not keep from a deadlock.
#[test]
fn long_routes_around_a_ring_do_not_deadlock() {
    struct Around(Machine);
    impl Traffic for Around {
        fn nodes(&self) -> u32 {
            8
        }
        fn steps(&self) -> u32 {
            1
        }
        fn share(&self, node: Rank, _step: u32, out: &mut Share) {
            let (to, route) = (Rank((node.0 + 6) % 8), Route::straight(0, 6));
            out.sends = vec![Posted { to, bytes: 10_000, route, ..Posted::default() }];
            out.receives = 1;
        }
    }
    let traffic = Around(network("torus:8", 5e-9));
    for model in ["wormhole", "flit"] {
        assert!(!run(&traffic, &traffic.0, model, routers(2)).partial);
        let mut entry = routers(2);
        entry.dateline = Some(Dateline::Entry);
        assert!(run(&traffic, &traffic.0, model, entry).partial, "{model}");
    }
}

/// A link around a ring has three virtual channels. The first two are for messages that have not
/// crossed the dateline, or, where that is known on entry, for those that cross it; the third is for
/// all others. With two channels a short message passes a long one.
#[test]
fn two_of_three_channels_are_on_one_side_of_the_dateline() {
    let machine = network("torus:8", 50e-9);
    let shorter = |dateline, from: u32, vcs| {
        let node = |hops| (from + hops) % 8;
        let messages = vec![(0, from, node(3), 640, 0), (0, node(1), node(3), 1, 100)];
        let script = Script { machine: &machine, messages };
        let mut settings = routers(vcs);
        settings.dateline = Some(dateline);
        let latencies = run(&script, &machine, "flit", settings).latencies.unwrap();
        latencies.average * 2.0 - latencies.max as f64
    };
    for (dateline, two, one) in [(Dateline::Crossing, 0, 6), (Dateline::Entry, 6, 0)] {
        let of = |from, vcs| shorter(dateline, from, vcs);
        assert_eq!(of(two, 3), of(two, 4), "{dateline:?}");
        assert!(of(two, 2) > 2.0 * of(two, 3), "{dateline:?}");
        assert_eq!(of(one, 3), of(one, 2), "{dateline:?}");
        assert!(of(one, 2) > 2.0 * of(one, 4), "{dateline:?}");
    }
}
