//! Offered and accepted loads, and runs that are stopped.

use std::sync::atomic::{AtomicU32, Ordering};

use common::{MEMORY, network, request, routers, run, settings};
use proptest::prelude::*;
use topocoll::contention::{
    AllToAll, Load, MODELS, Pattern, Scheduled, Simulation, Sync, simulate,
};
use topocoll::{Collective, Exchange, Machine, Problem, Shape};

fn open_loop(machine: &Machine, pattern: &str, cycles: u64, flits: u64, vcs: u32) -> Simulation {
    let traffic = Pattern::new(machine, pattern, flits, 1, Some(cycles), MEMORY).unwrap();
    run(&traffic, machine, "flit", routers(vcs))
}

/// A network that accepts a quarter of what is offered is saturated however long it is offered, and says
/// how much it accepts.
#[test]
fn a_torus_is_saturated_by_all_that_nodes_can_send() {
    let machine = network("torus:10x10", 50e-9);
    for cycles in [100, 500, 1500, 3000] {
        let load = open_loop(&machine, "uniform:1.0", cycles, 5, 3).load.unwrap();
        assert!(load.saturated && load.offered > 0.95, "{cycles}: {load:?}");
        assert!(load.accepted < 0.35, "{cycles}: {load:?}");
        if cycles > 1000 {
            assert!((load.accepted - 0.25).abs() < 0.02, "{cycles}: {load:?}");
        }
    }
    for cycles in [20, 100, 500, 1500, 3000] {
        let found = open_loop(&machine, "uniform:0.3", cycles, 5, 3);
        let Load { offered, accepted, saturated, .. } = found.load.unwrap();
        assert!(!saturated, "{cycles}: {found:?}");
        assert!(cycles < 500 || (accepted / offered - 1.0).abs() < 0.05, "{cycles}: {found:?}");
        let average = found.latencies.unwrap().average / found.cycle as f64;
        assert!(average < 53.0, "{cycles}: {average}");
    }
    // Messages that are not sent at a rate have no load.
    let traffic = Pattern::new(&machine, "tornado", 5, 1, None, MEMORY).unwrap();
    assert_eq!(run(&traffic, &machine, "flit", routers(3)).load, None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Below a tenth of what links across the middle carry, all is accepted; above all of it, no network
    /// accepts it.
    #[test]
    fn loads_above_the_bisection_saturate_and_small_loads_do_not(
        sides in proptest::collection::vec(4u32..9, 1..3),
        wraps in prop::bool::ANY,
        (vcs, flits) in (2u32..6, 1u64..8),
        cycles in 600u64..1500,
        part in 0.02f64..0.1,
    ) {
        let sides: Vec<_> = sides.iter().map(u32::to_string).collect();
        let text = format!("{}:{}", if wraps { "torus" } else { "mesh" }, sides.join("x"));
        let machine = network(&text, 50e-9);
        let Shape::Grid(grid) = machine.topology.shape() else { unreachable!() };
        // Flits of all nodes over the links across the middle of a side.
        let across = grid.sides().iter().map(|&side| {
            let (low, high) = (f64::from(side / 2), f64::from(side - side / 2));
            let nodes = f64::from(machine.ranks());
            low / f64::from(side) * high / f64::from(side) * nodes * nodes / (nodes - 1.0)
                / if wraps { 2.0 * nodes / f64::from(side) } else { nodes / f64::from(side) }
        });
        let most = 1.0 / across.fold(0.0, f64::max);
        let load = |rate: f64| {
            open_loop(&machine, &format!("uniform:{rate}"), cycles, flits, vcs).load.unwrap()
        };
        let below = load(part * most.min(1.0));
        prop_assert!(!below.saturated, "{text} {vcs} {flits}: {below:?}");
        if most < 0.8 {
            let above = load(1.0);
            prop_assert!(above.saturated, "{text} {vcs} {flits}: {above:?} {most}");
            prop_assert!(above.accepted < 1.1 * most, "{text} {vcs} {flits}: {above:?} {most}");
        }
    }

    /// A run that is stopped has lasted as long as it ran; its links were busy for a part of that time,
    /// and have carried no more than in the whole run.
    #[test]
    fn a_stopped_run_counts_the_time_and_the_bytes_so_far(
        text in prop_oneof![
            Just("torus:4x4"), Just("mesh:5x3"), Just("fat-tree:2,3"), Just("twisted-torus:4+2x8"),
        ],
        model in 0..MODELS.len(),
        block in prop_oneof![Just(64u64), Just(5000), Just(200_000)],
        (barrier, at_once) in (prop::bool::ANY, prop::bool::ANY),
        looks in 1u32..40,
    ) {
        let mut machine = topocoll::machine(text).unwrap();
        machine.timing.startup = topocoll::PerClass::uniform(1e-7);
        if at_once {
            machine.set_ports(4);
        }
        let problem = Problem::new(Collective::AllToAll, machine.ranks(), machine.ports, block);
        let exchange = Exchange::new(&machine, &problem.unwrap()).unwrap();
        let schedule = exchange.schedule("direct", &topocoll::Parameters::new()).unwrap();
        let settings = settings(4, 8, 64, Some(2));
        let (steps, all) =
            (Scheduled::new(&schedule, &machine), AllToAll::new(&machine, block, MEMORY).unwrap());
        let traffic: &dyn topocoll::contention::Traffic = if at_once { &all } else { &steps };
        let sync = if barrier { Sync::Barrier } else { Sync::Free };
        let mut asked = request(traffic, &machine, MODELS[model].name, settings, sync);
        asked.records = true;
        let whole = simulate(&asked).unwrap();
        prop_assert!(!whole.partial && whole.link_utilisation.unwrap() <= 1.0);
        let looked = AtomicU32::new(0);
        let stop = || looked.fetch_add(1, Ordering::Relaxed) >= looks;
        asked.control.stop = &stop;
        let part = simulate(&asked).unwrap();
        let place = format!("{text} {} {block} {barrier} {at_once} {looks}", MODELS[model].name);
        if !part.partial {
            prop_assert_eq!((part.time, part.messages), (whole.time, whole.messages), "{}", place);
            return Ok(());
        }
        prop_assert!(part.messages < whole.messages && part.deadlock.is_empty(), "{place}");
        prop_assert!(part.time > 0 && part.time <= whole.time, "{place}: {part:?}");
        prop_assert_eq!(part.load, None);
        let busy = part.link_utilisation.unwrap();
        prop_assert!((0.0..=1.0).contains(&busy), "{place}: {busy}");
        for (part, whole) in part.links.iter().zip(&whole.links) {
            prop_assert!(part.bytes <= whole.bytes, "{place}");
        }
        let moved = part.links.iter().any(|used| used.bytes > 0);
        prop_assert!(moved || part.messages == 0, "{place}");
    }
}
