//! Adaptive routing in the flit model: no deadlock, shortest routes, and errors.

use common::{MEMORY, Script, network, request, routers, run, settings};
use topocoll::contention::{Dateline, Pattern, Routing, Settings, Simulation, Sync, simulate};
use topocoll::{AnalysisError, Machine, Rank, Route, machine};

fn adaptive(mut settings: Settings) -> Settings {
    settings.routing = Routing::Adaptive;
    settings
}

/// Messages between random ranks, more than the network can carry; every `given`th keeps its route.
fn crowd(
    machine: &Machine,
    seed: u32,
    (least, most): (u32, u32),
    settings: Settings,
    given: u32,
) -> Simulation {
    let ranks = machine.ranks();
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut below = |bound: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((u64::from(state) * u64::from(bound)) >> 32) as u32
    };
    let messages = (0..30 * ranks).map(|i| {
        let from = i % ranks;
        let to = (from + 1 + below(ranks - 1)) % ranks;
        (0, from, to, u64::from(least + below(most - least + 1)), u64::from(below(100)))
    });
    let script = Script { machine, messages: messages.collect() };
    let mixed = script.edited(|_, share| {
        for (place, send) in (0..).zip(&mut share.sends) {
            send.free = given == 0 || place % given > 0;
        }
    });
    run(&mixed, machine, "flit", settings)
}

#[test]
fn heavy_traffic_never_deadlocks() {
    let grids = ["mesh:4x4", "mesh:3x3x2", "torus:4x4", "torus:5x3", "torus:2x3x2", "grid:5~x4"];
    for (grid, seed) in grids.into_iter().flat_map(|grid| (0..6).map(move |seed| (grid, seed))) {
        let mut machine = network(grid, 5e-9);
        if seed % 2 == 0 {
            machine.endpoint.packet_bytes = Some(7);
        }
        let least = if grid.starts_with("mesh") { 2 } else { 3 };
        for vcs in least..=6 {
            let buffer = [1, 2, 3, 5, 8, 2][seed as usize];
            let asked = adaptive(settings(vcs, buffer, 1, Some(1 + seed)));
            for (bytes, given) in [(3, 0), (40, 0), (40, 3)] {
                let found = crowd(&machine, seed, (1, bytes), asked, given);
                let place = format!("{grid}, seed {seed}, {vcs} channels, {bytes}, {given}");
                assert!(!found.partial, "{place}: {:?}", found.deadlock);
                assert_eq!(found.messages, u64::from(30 * machine.ranks()), "{place}");
            }
        }
    }
}

/// Packets of two flits and more in buffers of two and more: one waits in the middle of two buffers,
/// behind another that does so too.
#[test]
fn packets_that_follow_each_other_never_deadlock() {
    for (grid, seed) in ["mesh:2x2", "mesh:3x3"].iter().flat_map(|g| (0..40).map(move |s| (g, s))) {
        let machine = network(grid, 5e-9);
        for (buffer, flits) in [(2, 2), (2, 3), (3, 3), (3, 4), (4, 5)] {
            let asked = adaptive(settings(2 + seed % 2, buffer, 1, Some(1 + seed % 5)));
            let found = crowd(&machine, seed, (flits, flits), asked, 0);
            assert!(!found.partial, "{grid}, seed {seed}, {buffer}, {flits}: {:?}", found.deadlock);
        }
    }
}

/// Messages go more than half around, in escape channels that change at the dateline.
#[test]
fn far_routes_in_dimension_order_do_not_deadlock() {
    let machine = network("torus:5x4", 5e-9);
    let all = (0..200u32).map(|i| (i % 20, (i * 7 + 3) % 20, 30)).filter(|m| m.0 != m.1);
    let traffic = Script::posted(&machine, all.collect()).edited(|_, share| {
        for (place, send) in share.sends.iter_mut().enumerate() {
            let far = send.route.segments().iter().map(|segment| {
                let side = if segment.dimension == 0 { 5 } else { 4 };
                (segment.dimension, segment.hops - side * segment.hops.signum())
            });
            let far: Vec<_> = far.collect();
            send.free = place % 2 == 0;
            if !send.free {
                send.route = Route::default();
                far.into_iter().for_each(|(dimension, hops)| send.route.push(dimension, hops));
            }
        }
    });
    for vcs in 3..6 {
        let found = run(&traffic, &machine, "flit", adaptive(settings(vcs, 2, 1, None)));
        assert!(!found.partial, "{:?}", found.deadlock);
    }
}

/// Alone, a message takes 5 H + 7 + L - 1 cycles on any shortest route.
#[test]
fn a_message_alone_takes_a_shortest_route() {
    for text in ["mesh:4x3", "torus:4x4", "torus:5x2", "grid:4~x3", "torus:2x1x3", "torus:4x4*2"] {
        let machine = network(text, 50e-9);
        for to in 1..machine.ranks() {
            for flits in [1, 2, 16] {
                let traffic = Script::posted(&machine, vec![(0, to, flits)]);
                let traffic = traffic.edited(|_, share| {
                    share.sends.iter_mut().for_each(|send| send.free = true);
                });
                let found = run(&traffic, &machine, "flit", adaptive(routers(4)));
                let mut route = Route::default();
                machine.topology.route(Rank(0), Rank(to), &mut route);
                let cycles =
                    if route.is_empty() { flits } else { 5 * route.hops() + 7 + flits - 1 };
                assert_eq!(found.time, cycles * found.cycle, "{text} to {to}, {flits} flits");
                let hops: u64 = found.links.iter().map(|link| link.messages).sum();
                assert_eq!(hops, route.hops(), "{text} to {to}");
            }
        }
    }
}

/// Rank 0 is at (0,0), rank 5 at (1,1): two routes. Other messages hold the first link of one.
#[test]
fn packets_leave_dimension_order_where_their_link_is_taken() {
    let mut machine = network("mesh:4x4", 5e-9);
    machine.set_ports(3);
    machine.endpoint.packet_bytes = Some(16);
    let links = |routing| {
        let messages = vec![(0, 4, 4000), (0, 4, 4000), (0, 5, 4000)];
        let traffic = Script::posted(&machine, messages).edited(|_, share| {
            share.sends.iter_mut().for_each(|send| send.free = true);
        });
        let mut settings = routers(2);
        settings.routing = routing;
        let found = run(&traffic, &machine, "flit", settings);
        assert_eq!(found.messages, 3);
        // Out of rank 0 along dimensions 0 and 1.
        [0, 2].map(|link| found.links[link].bytes)
    };
    assert_eq!(links(Routing::DimensionOrder), [12_000, 0]);
    let [first, second] = links(Routing::Adaptive);
    assert!(first + second == 12_000 && second > 1000, "{first} {second}");
}

#[test]
fn adaptive_routing_that_could_deadlock_is_refused() {
    let refused = |text: &str, model, settings| {
        let machine = machine(text).unwrap();
        let traffic = Pattern::new(&machine, "random:1", 64, 16, None, MEMORY).unwrap();
        let asked = request(&traffic, &machine, model, settings, Sync::Free);
        match simulate(&asked) {
            Err(error @ AnalysisError::Routing { .. }) => error.to_string(),
            other => panic!("{text}: {other:?}"),
        }
    };
    let vcs = |vcs| adaptive(settings(vcs, 8, 16, None));
    let few = refused("mesh:4x4", "flit", vcs(1));
    assert_eq!(few, "vcs=1: adaptive routing requires at least 2 virtual channels on a mesh");
    for text in ["torus:4x4", "grid:5~x3"] {
        let few = refused(text, "flit", vcs(2));
        assert!(few.contains("vcs=2: adaptive routing requires at least 3"), "{few}");
    }
    let graph = refused("fat-tree:2,2", "flit", vcs(4));
    assert!(graph.contains("requires a grid") && graph.contains("fat-tree:2,2"), "{graph}");
    let mut dateline = vcs(4);
    dateline.dateline = Some(Dateline::Entry);
    assert!(refused("torus:4x4", "flit", dateline).contains("dateline"));
    let worms = refused("torus:4x4", "wormhole", vcs(4));
    assert!(worms.starts_with("the wormhole model has no adaptive routing: "), "{worms}");

    let machine = machine("mesh:4x4").unwrap();
    let turned = |free| {
        Script::posted(&machine, vec![(0, 5, 64)]).edited(move |_, share| {
            for send in &mut share.sends {
                send.route = Route::default();
                send.route.push(1, 1);
                send.route.push(0, 1);
                send.free = free;
            }
        })
    };
    let of = |free| {
        let traffic = turned(free);
        simulate(&request(&traffic, &machine, "flit", vcs(2), Sync::Free)).map(|_| ())
    };
    assert_eq!(of(true), Ok(()));
    assert!(matches!(of(false), Err(AnalysisError::Routing { .. })));
}
