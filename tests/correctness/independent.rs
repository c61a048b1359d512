//! An independent program replays schedules that are written as JSON lines.

use std::io::{BufWriter, Write};
use std::process::Command;

use crate::common::{self, MEMORY, find, machines_and_ports, reach, schedule_of, serving};
use rayon::prelude::*;
use tempfile::NamedTempFile;
use topocoll::formats::Source;
use topocoll::{Algorithm, Counts, Parameters, Problem, count, formats, machine};

/// The results of the program for each file, in order.
fn replayed(files: &[NamedTempFile]) -> Vec<serde_json::Value> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/replay.py");
    let output = (Command::new("python3").arg(script).args(files.iter().map(NamedTempFile::path)))
        .output()
        .expect("python3 runs tests/replay.py; tests/run installs it");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn check(counts: &Counts, found: &serde_json::Value, place: &str) {
    assert_eq!(found["delivered"], true, "{place}: {found}");
    assert_eq!(found["port_violations"], 0, "{place}");
    let same = |name: &str, counted: f64| {
        let found = found[name].as_f64().unwrap();
        assert!(
            (found - counted).abs() <= 1e-9 * counted,
            "{place}: {name} {found}, counted {counted}"
        );
    };
    same("steps", counts.steps as f64);
    same("blocks", counts.in_blocks(counts.bytes));
    same("link_blocks", counts.in_blocks(counts.link_bytes));
    same("link_conflicts", counts.link_conflicts as f64);
    same("contention_free_steps", counts.contention_free_steps as f64);
}

/// The schedules that one run of the program replays.
const BATCH: usize = 16;

pub(crate) fn check_all(cases: &[(topocoll::Machine, Served)]) {
    cases.par_chunks(BATCH).for_each(|cases| {
        let (mut files, mut counted) = (Vec::new(), Vec::new());
        for (machine, (algorithm, problem, setting)) in cases {
            let schedule = schedule_of(machine, problem, &algorithm.info().name, setting).unwrap();
            let mut file = NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
            let mut out = BufWriter::new(&mut file);
            formats::jsonl::write(&Source::new(&schedule, machine, MEMORY), &mut out).unwrap();
            out.flush().unwrap();
            drop(out);
            files.push(file);
            counted.push(count(&schedule, machine, None, MEMORY).unwrap());
        }
        let found = replayed(&files);
        assert_eq!(found.len(), cases.len());
        for ((found, counts), (machine, (algorithm, _, setting))) in
            found.iter().zip(&counted).zip(cases)
        {
            let place = format!("{} {setting:?} on {}", algorithm.info().name, machine.name);
            check(counts, found, &place);
        }
    });
}

type Served = (&'static dyn Algorithm, Problem, Parameters);

/// The first or the last setting of every algorithm on each machine; both in a long run.
fn ends(machines: impl Iterator<Item = topocoll::Machine>) -> Vec<(topocoll::Machine, Served)> {
    let mut cases = Vec::new();
    for machine in machines {
        let served = serving(&machine, 3);
        for (i, case) in served.iter().enumerate() {
            let end = |other: Option<&Served>| {
                other.is_none_or(|(other, _, _)| other.info().name != case.0.info().name)
            };
            if end(served.get(i + 1)) || i == 0 || end(served.get(i - 1)) {
                cases.push((machine.clone(), case.clone()));
            }
        }
    }
    cases.into_iter().step_by(reach(2, 1)).collect()
}

#[test]
fn an_independent_replay_of_every_schedule_delivers() {
    check_all(&ends(
        machines_and_ports().into_iter().filter(|machine| machine.ranks() <= reach(48, 64)),
    ));
}

#[test]
fn an_independent_replay_on_every_shipped_machine_delivers() {
    let most = reach(96, 256);
    let larger = |machine: &topocoll::Machine| (65..=most).contains(&machine.ranks());
    check_all(&ends(topocoll::shipped().map(|(name, _)| machine(name).unwrap()).filter(larger)));
}

#[test]
fn an_independent_replay_of_a_thousand_ranks_delivers() {
    let cases = [("full:1000", "bruck"), ("torus:28x36", "suh-shin"), ("torus:8x8x12", "suh-shin")];
    cases[..reach(1, 3)].par_iter().for_each(|&(text, name)| {
        let machine = machine(text).unwrap();
        let problem = common::problem(&machine, topocoll::Collective::AllToAll, 2);
        check_all(&[(machine, (find(name).unwrap(), problem, Parameters::new()))]);
    });
}
