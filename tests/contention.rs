//! The contention models against each other, against bounds, and against other simulators.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use topocoll::contention::{
    Control, MODELS, Pattern, Picoseconds, Request, Scheduled, Settings, Simulation, Sync, Traffic,
    simulate,
};
use topocoll::{Collective, Machine, PerClass, Problem, Schedule, machine, plan};

const MEMORY: u128 = 4 << 30;

fn run(
    traffic: &dyn Traffic,
    machine: &Machine,
    model: &str,
    settings: Settings,
    sync: Sync,
) -> Simulation {
    let request = Request {
        traffic,
        machine,
        model: MODELS.iter().find(|known| known.name == model).unwrap(),
        settings,
        sync,
        memory: MEMORY,
        records: false,
        control: Control { stop: &|| false, delivered: &|_| () },
    };
    simulate(&request).unwrap()
}

/// A machine timed in cycles of one byte: no startup.
fn cycles(text: &str) -> Machine {
    let mut machine = machine(text).unwrap();
    machine.timing.startup = PerClass::uniform(0.0);
    machine
}

fn flits(vcs: u32) -> Settings {
    Settings { vcs, flit_bytes: 1, buffer_flits: 8, hop_cycles: Some(5), dateline: None }
}

fn one_shot(text: &str, pattern: &str, bytes: u64, model: &str, vcs: u32) -> (f64, f64) {
    let machine = cycles(text);
    let traffic = Pattern::new(&machine, pattern, bytes, 1, None).unwrap();
    let found = run(&traffic, &machine, model, flits(vcs), Sync::Free);
    let latencies = found.latencies.unwrap();
    let cycle = found.cycle as f64;
    (latencies.average / cycle, latencies.max as f64 / cycle)
}

#[test]
fn print_tables() {
    for (machine, pattern, l1, l64) in [
        ("torus:8x8", "neighbor", (17., 17.), (80., 80.)),
        ("torus:8x8", "tornado", (37., 37.), (364.5, 799.)),
        ("torus:8x8", "transpose", (27., 47.), (162.6, 293.)),
        ("torus:8x8", "bitcomp", (27., 37.), (151., 222.)),
        ("mesh:8x8", "neighbor", (24.5, 77.), (87.5, 140.)),
        ("mesh:8x8", "transpose", (33.25, 77.), (219.5, 490.)),
    ] {
        for model in ["flit", "wormhole", "fluid"] {
            println!(
                "{machine} {pattern} {model}: L1 {:?} {l1:?}  L64 {:?} {l64:?}",
                one_shot(machine, pattern, 1, model, 2),
                one_shot(machine, pattern, 64, model, 2)
            );
        }
    }
    for vcs in [2, 4, 8, 16] {
        println!(
            "tornado {vcs}: {:?} {:?}",
            one_shot("torus:8x8", "tornado", 64, "flit", vcs),
            one_shot("torus:8x8", "tornado", 64, "wormhole", vcs)
        );
    }
}

#[test]
fn print_alltoall() {
    for (text, algorithm, model, sync) in [
        ("torus:8x8", "direct", "wormhole", Sync::Free),
        ("torus:8x8", "direct", "wormhole", Sync::Barrier),
        ("torus:8x8", "direct", "flit", Sync::Free),
        ("torus:8x8", "direct", "flit", Sync::Barrier),
        ("torus:8x8", "direct", "fluid", Sync::Free),
        ("torus:8x8", "pairwise-xor", "fluid", Sync::Free),
        ("torus:8x8", "bruck", "fluid", Sync::Free),
        ("torus:8x8", "suh-shin", "fluid", Sync::Free),
        ("torus:8x8", "suh-shin", "wormhole", Sync::Free),
        ("torus:8x8", "suh-shin", "wormhole", Sync::Barrier),
        ("torus:16x16", "direct", "wormhole", Sync::Free),
        ("torus:16x16", "direct", "fluid", Sync::Free),
        ("torus:16x16", "pairwise-xor", "fluid", Sync::Free),
        ("torus:32x32", "pairwise-xor", "wormhole", Sync::Free),
    ] {
        let mut machine = machine(text).unwrap();
        machine.timing.startup = PerClass::uniform(0.0);
        machine.timing.per_hop = PerClass::uniform(1e-6);
        let problem = Problem::new(Collective::AllToAll, machine.ranks(), 1, 1024).unwrap();
        let schedule = plan(&machine, &problem, algorithm, &Default::default()).unwrap();
        let traffic = Scheduled::new(&schedule, &machine);
        let start = std::time::Instant::now();
        let found = run(&traffic, &machine, model, Settings::default(), sync);
        println!(
            "{text} {algorithm} {model} {sync:?}: {:.3} us, {} messages, partial {} chain {} took {:?}",
            found.time as f64 * 1e-6,
            found.messages,
            found.partial,
            found.chain_length,
            start.elapsed()
        );
    }
}
