//! Results of the models on file, to the picosecond. A time, a wait or a chain that differs is a change of
//! the model. `SIMULATIONS=overwrite` writes the new results.

use std::fmt::Write;

use common::{Script, priced, request, schedule_of, serving, settings};
use sha2::{Digest, Sha256};
use topocoll::contention::{Dateline, Request, Scheduled, Settings, Simulation, Sync, simulate};
use topocoll::{AnalysisError, Machine};

/// Machines, their ports, and the settings of models.
fn scenes() -> Vec<(&'static str, u32, Settings)> {
    let mut crossing = settings(4, 3, 8, Some(3));
    crossing.dateline = Some(Dateline::Crossing);
    vec![
        ("mesh:5", 1, settings(1, 1, 4, None)),
        ("mesh:6", 2, settings(2, 4, 8, Some(1))),
        ("mesh:3x4", 1, settings(2, 8, 1, Some(2))),
        ("mesh:4x4", 3, settings(3, 2, 16, None)),
        ("torus:7", 1, settings(2, 4, 4, None)),
        ("torus:8", 2, crossing),
        ("torus:4x4", 1, settings(2, 2, 8, Some(2))),
        ("torus:2x3x2", 2, settings(4, 8, 16, Some(4))),
        ("torus:6x6", 1, crossing),
        ("grid:5~x3", 1, settings(2, 16, 4, None)),
        ("torus:4x4", 1, settings(1, 2, 4, None)),
        ("twisted-torus:2x4", 1, settings(2, 4, 8, None)),
        ("full:6", 2, settings(2, 8, 16, None)),
        ("cluster:2,3,1", 1, settings(2, 8, 16, None)),
        ("cluster:4*3", 2, settings(2, 8, 16, None)),
        ("torus:3x2*2", 1, settings(2, 4, 8, None)),
        ("fat-tree:2,2*2", 2, settings(2, 2, 8, None)),
        ("dragonfly:1,2,2", 1, settings(3, 8, 4, Some(2))),
    ]
}

/// Messages drawn from a seed, some long, most posted at much the same time, in three steps.
fn drawn(machine: &Machine, mut seed: u64) -> Script<'_> {
    let mut below = |bound: u32| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 33) % u64::from(bound)) as u32
    };
    let ranks = machine.ranks();
    let messages = (0..6 * ranks).map(|_| {
        let (from, by) = (below(ranks), 1 + below(ranks - 1));
        let bytes = if below(4) == 0 { 400 } else { 90 };
        (below(3), from, (from + by) % ranks, below(bytes).into(), below(40).into())
    });
    Script { machine, messages: messages.collect() }
}

/// The main figures, and a digest of all figures.
fn line(text: &mut String, scene: &str, found: &Simulation) {
    let waited: u64 = found.links.iter().map(|link| link.waited).sum();
    let digest: String = Sha256::digest(format!("{found:?}"))
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let (time, messages, chain) = (found.time, found.messages, found.chain_length);
    let deadlock = found.deadlock.len();
    writeln!(
        text,
        "{scene}: {time} ps, {messages} messages, {waited} ps waited, chain of {chain}, \
         {deadlock} in a circle, {digest}"
    )
    .unwrap();
}

fn is_as_before(model: &str) {
    let mut text = String::new();
    let mut add = |scene: String, asked: &Request<'_>| match simulate(asked) {
        Ok(found) => line(&mut text, &scene, &found),
        // The flit model requires links.
        Err(AnalysisError::NeedsLinks { .. }) => {}
        Err(error) => panic!("{scene}: {error}"),
    };
    for (number, (name, ports, settings)) in (0..).zip(scenes()) {
        let mut machine = priced(name, 70e-9, 5e-9);
        machine.set_ports(ports);
        for (sync, records) in [(Sync::Free, true), (Sync::Barrier, false)] {
            let script = drawn(&machine, number);
            let mut asked = request(&script, &machine, model, settings, sync);
            asked.records = records;
            add(format!("{number}, {name}, {sync:?}"), &asked);
            // A schedule with contention in some steps, or in none.
            let (algorithm, problem, setting) =
                serving(&machine, 24).swap_remove(number as usize % 3);
            let schedule =
                schedule_of(&machine, &problem, &algorithm.info().name, &setting).unwrap();
            let traffic = Scheduled::new(&schedule, &machine);
            let mut asked = request(&traffic, &machine, model, settings, sync);
            asked.records = records;
            add(format!("{number}, {}, {sync:?}", algorithm.info().name), &asked);
        }
    }
    let file = format!("{}/simulations/{model}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var("SIMULATIONS").is_ok_and(|value| value == "overwrite") {
        std::fs::write(&file, &text).unwrap();
    }
    let before = std::fs::read_to_string(&file).unwrap();
    for (found, before) in text.lines().zip(before.lines()) {
        assert_eq!(found, before, "{file}");
    }
    assert_eq!(text.lines().count(), before.lines().count(), "{file}");
}

#[test]
fn wormhole_results_are_those_on_file() {
    is_as_before("wormhole");
}

#[test]
fn flit_results_are_those_on_file() {
    is_as_before("flit");
}

#[test]
fn fluid_results_are_those_on_file() {
    is_as_before("fluid");
}
