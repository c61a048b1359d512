//! A family of broken schedules. Each is a correct one with one message altered: dropped, doubled,
//! misrouted, early, late, swapped, of other blocks, in the wrong direction, a byte off. Each is caught,
//! and three independent checkers agree: the verifier, the conflict report and the certificate checker.

use std::collections::BTreeMap;

use common::{MEMORY, find, schedule_of, target};
use serde_json::{Value, json};
use topocoll::contention::Scheduled;
use topocoll::formats::{Source, jsonl};
use topocoll::{
    Counts, Machine, Method, Parameters, Problem, Rank, Route, Schedule, Shape, Step, conflicts,
    count, machine, verify, write_certificate,
};
use topocoll_certificate::check;

/// Schedules in which every rank is busy in every step, so that no message may move.
const SOUND: [(&str, &str); 8] = [
    ("torus:4x4", "suh-shin"),
    ("torus:12", "suh-shin"),
    ("mesh:2x2", "suh-shin"),
    ("full:5", "direct"),
    ("full:7", "bruck"),
    ("full:5", "ring"),
    ("hypercube:2", "direct"),
    ("twisted-torus:2x3", "direct"),
];

/// Alters the message of a line; returns whether it could.
type Mutation = fn(&mut Vec<Value>, usize, &Machine) -> bool;

#[rustfmt::skip]
const MUTATIONS: [(&str, Mutation); 11] = [
    ("dropped", |lines, at, _| { lines.remove(at); true }),
    ("doubled", |lines, at, _| { lines.insert(at, lines[at].clone()); true }),
    ("misrouted", |lines, at, machine| {
        let (from, to) = (lines[at]["from"].as_u64().unwrap(), lines[at]["to"].as_u64().unwrap());
        let ranks = u64::from(machine.ranks());
        let other = (1..ranks).map(|by| (to + by) % ranks).find(|&other| other != from);
        lines[at]["to"] = json!(other.unwrap());
        own_route(&mut lines[at]);
        true
    }),
    ("backwards", |lines, at, _| {
        let (from, to) = (lines[at]["from"].clone(), lines[at]["to"].clone());
        (lines[at]["from"], lines[at]["to"]) = (to, from);
        own_route(&mut lines[at]);
        true
    }),
    ("early", |lines, at, _| {
        let step = lines[at]["step"].as_u64().unwrap();
        lines[at]["step"] = json!(step.saturating_sub(1));
        step > 0
    }),
    ("late", |lines, at, _| { lines[at]["step"] = json!(lines[at]["step"].as_u64().unwrap() + 1); true }),
    ("swapped", |lines, at, _| {
        let other = (at + 1) % lines.len();
        let (a, b) = (lines[at]["blocks"].clone(), lines[other]["blocks"].clone());
        (lines[at]["blocks"], lines[other]["blocks"]) = (b.clone(), a.clone());
        a != b
    }),
    ("another block", |lines, at, machine| {
        let ranks = u64::from(machine.ranks());
        let block = lines[at]["blocks"][0].as_array_mut().unwrap();
        let last = block.len() - 3;
        block[last] = json!((block[last].as_u64().unwrap() + 1) % ranks);
        true
    }),
    ("the wrong way", |lines, at, machine| {
        let Shape::Grid(grid) = machine.topology.shape() else { return false };
        let Some(segment) = lines[at]["route"].get_mut(0) else { return false };
        let u = segment[0].as_u64().unwrap() as usize;
        let (hops, side) = (segment[1].as_i64().unwrap(), i64::from(grid.sides()[u]));
        segment[1] = json!(hops - hops.signum() * side);
        // Half around a ring both directions are right.
        machine.name.starts_with("torus") && 2 * hops.abs() != side
    }),
    ("a byte less at the end", |lines, at, _| shorten(&mut lines[at], 1, -1)),
    ("a byte less at the beginning", |lines, at, _| shorten(&mut lines[at], 2, 1)),
];

/// Leaves the route of a message to the machine.
fn own_route(line: &mut Value) {
    for field in ["route", "links"] {
        line.as_object_mut().unwrap().remove(field);
    }
}

/// Moves an end of the byte range of the first block.
fn shorten(line: &mut Value, from_back: usize, by: i64) -> bool {
    let block = line["blocks"][0].as_array_mut().unwrap();
    let end = block.len() - from_back;
    block[end] = json!(block[end].as_i64().unwrap() + by);
    true
}

fn sound(form: &str, algorithm: &str) -> (Machine, Schedule) {
    let machine = machine(form).unwrap();
    let operation = find(algorithm).unwrap().info().operation;
    let problem = Problem::new(operation, machine.ranks(), machine.ports, 4).unwrap();
    let schedule = schedule_of(&machine, &problem, algorithm, &Parameters::new()).unwrap();
    (machine, schedule)
}

fn lines(machine: &Machine, schedule: &Schedule) -> Vec<Value> {
    let mut written = Vec::new();
    let source = Source::new(schedule, machine, MEMORY);
    jsonl::write(&source, &mut written).unwrap();
    String::from_utf8(written).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn read(machine: &Machine, header: &Value, messages: &[Value]) -> Option<Schedule> {
    let mut messages = messages.to_vec();
    messages.sort_by_key(|message| message["step"].as_u64());
    let all: String =
        [header].into_iter().chain(&messages).map(|line| format!("{line}\n")).collect();
    jsonl::read(&mut all.as_bytes(), &target(machine)).ok()
}

fn essential(counts: &Counts) -> [u128; 6] {
    let Counts { steps, messages, bytes, link_bytes, hops, link_conflicts, .. } = *counts;
    [steps.into(), messages, bytes, link_bytes, hops, link_conflicts]
}

/// Links with several messages in one step, counted link by link.
fn conflicting(schedule: &Schedule, machine: &Machine) -> u128 {
    let topology = &*machine.topology;
    let (mut does, mut own, mut loads) = (Step::default(), Route::default(), BTreeMap::new());
    for step in 0..schedule.rule().steps() {
        for rank in (0..machine.ranks()).map(Rank) {
            schedule.rule().step(rank, step, &mut does);
            for send in &does.sends {
                let route = send.route_from(rank, topology, &mut own);
                topology.for_each_link(rank, route, &mut |link| {
                    *loads.entry((step, link.0)).or_insert(0u32) += 1;
                });
            }
        }
    }
    loads.values().filter(|&&messages| messages > 1).count() as u128
}

/// Whether a certificate of these counts proves the schedule.
fn certified(schedule: &Schedule, machine: &Machine, counts: &Counts) -> bool {
    let mut text = Vec::new();
    write_certificate(schedule, machine, counts, &mut text).is_ok() && check(&text).is_ok()
}

#[test]
fn every_altered_message_is_caught_and_all_checkers_agree() {
    for (form, algorithm) in SOUND {
        let (machine, schedule) = sound(form, algorithm);
        let mut all = lines(&machine, &schedule);
        let header = all.remove(0);
        let whole = count(&read(&machine, &header, &all).unwrap(), &machine, None, MEMORY).unwrap();
        for (name, mutate) in MUTATIONS {
            let mut caught = 0;
            for at in 0..all.len() {
                let mut messages = all.clone();
                if !mutate(&mut messages, at, &machine) {
                    continue;
                }
                caught += 1;
                let place = format!("{name}: {} of {algorithm} on {form}", all[at]);
                let Some(mutant) = read(&machine, &header, &messages) else { continue };
                let found = verify(&mutant, &machine, Some(Method::Replay), MEMORY).unwrap();
                let same = essential(&found.counts) == essential(&whole);
                let ports = found.counts.port_violations > 0;
                assert!(found.violation.is_some() || ports || !same, "{place}");
                // The certificate checker agrees with the verifier.
                let delivers = found.violation.is_none();
                assert_eq!(certified(&mutant, &machine, &found.counts), delivers, "{place}");
                assert!(same && !ports || !certified(&mutant, &machine, &whole), "{place}");
                if delivers {
                    let traffic = Scheduled::new(&mutant, &machine);
                    let report = conflicts(&traffic, &machine, Some(3), MEMORY).unwrap();
                    let slowly = conflicting(&mutant, &machine);
                    assert_eq!(report.conflicts, slowly, "{place}");
                    assert_eq!(found.counts.link_conflicts, slowly, "{place}");
                }
            }
            let one_way = name == "the wrong way" && form != "torus:12";
            assert!(caught > 0 || one_way, "{name} alters nothing of {algorithm} on {form}");
        }
    }
}
