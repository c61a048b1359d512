//! Schedules written as JSON lines are replayed by a program that shares no line with ours.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use std::io::Write;
use std::process::{Command, Stdio};

use common::{MEMORY, machines_and_ports, serving};
use rayon::prelude::*;
use topocoll::formats::Source;
use topocoll::{Algorithm, Parameters, Problem, Schedule, count, formats, machine, plan};

fn replayed(schedule: &Schedule, machine: &topocoll::Machine) -> serde_json::Value {
    let mut written = Vec::new();
    let source = Source::new(schedule, machine, MEMORY);
    formats::jsonl::write(&source, &mut written).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/replay.py");
    let mut python =
        (Command::new("python3").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn())
            .expect("python3 runs tests/replay.py; tests/run installs it");
    // The program reads to the end before it prints.
    python.stdin.take().unwrap().write_all(&written).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn check(schedule: &Schedule, machine: &topocoll::Machine, place: &str) {
    let counts = count(schedule, machine, MEMORY).unwrap();
    let found = replayed(schedule, machine);
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

fn check_all(cases: Vec<(topocoll::Machine, Served)>) {
    cases.into_par_iter().for_each(|(machine, (algorithm, problem, setting))| {
        let schedule = plan(&machine, &problem, algorithm.name(), &setting).unwrap();
        let place = format!("{} {setting:?} on {}", algorithm.name(), machine.name);
        check(&schedule, &machine, &place);
    });
}

type Served = (&'static dyn Algorithm, Problem, Parameters);

/// The first and the last setting of every algorithm on each machine.
fn ends(machines: impl Iterator<Item = topocoll::Machine>) -> Vec<(topocoll::Machine, Served)> {
    let mut cases = Vec::new();
    for machine in machines {
        let served = serving(&machine, 3);
        for (i, case) in served.iter().enumerate() {
            let end = |other: Option<&Served>| {
                other.is_none_or(|(other, _, _)| other.name() != case.0.name())
            };
            if end(served.get(i + 1)) || i == 0 || end(served.get(i - 1)) {
                cases.push((machine.clone(), case.clone()));
            }
        }
    }
    cases
}

#[test]
fn every_schedule_delivers_elsewhere_too() {
    check_all(ends(machines_and_ports().into_iter().filter(|machine| machine.ranks() <= 64)));
}

#[test]
fn every_shipped_machine_delivers_elsewhere_too() {
    let larger = |machine: &topocoll::Machine| (65..=256).contains(&machine.ranks());
    check_all(ends(topocoll::shipped().map(|(name, _)| machine(name).unwrap()).filter(larger)));
}

#[test]
fn a_thousand_ranks_deliver_elsewhere_too() {
    let cases = [("torus:28x36", "suh-shin"), ("torus:8x8x12", "suh-shin"), ("full:1000", "bruck")];
    cases.into_par_iter().for_each(|(text, name)| {
        let machine = machine(text).unwrap();
        let problem = common::problem(&machine, topocoll::Collective::AllToAll, 2);
        let schedule = plan(&machine, &problem, name, &Default::default()).unwrap();
        check(&schedule, &machine, &format!("{name} on {text}"));
    });
}
