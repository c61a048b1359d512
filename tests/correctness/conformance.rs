//! Every algorithm on every machine: one suite. A new machine or algorithm is tested without a new test.

use crate::common::{
    MEMORY, check_promises, machines_and_ports, reach, schedule_of, serving, target,
};
use rayon::prelude::*;
use topocoll::formats::{Source, jsonl};
use topocoll::{Machine, Method, formats, verify};

/// Up to this number of ranks every setting is replayed here. Beyond it only settings without
/// equivalent ranks are, and a third of all settings outside of long runs: all would take long.
const REPLAY_UP_TO: u32 = 256;

#[test]
fn every_schedule_delivers_as_claimed_and_beats_no_bound() {
    // Large networks of nodes of several ranks have few equivalent ranks. Small ones are checked.
    let quick = |machine: &Machine| {
        let clustered = machine.topology.nodes() < machine.ranks();
        machine.ranks() <= REPLAY_UP_TO || !clustered || machine.topology.link_numbers() == 0
    };
    let machines = machines_and_ports().into_par_iter().filter(quick);
    let schedules = machines.map(|machine| {
        let mut served = serving(&machine, 3);
        if machine.ranks() > REPLAY_UP_TO {
            served = served.into_iter().step_by(reach(3, 1)).collect();
        }
        for (algorithm, problem, setting) in &served {
            let schedule = schedule_of(&machine, problem, &algorithm.info().name, setting).unwrap();
            let distinct = schedule.rule().classes().count() == machine.ranks();
            let replays = machine.ranks() <= REPLAY_UP_TO || distinct;
            let method = if replays { Method::Replay } else { Method::Classes };
            check_promises(&machine, *algorithm, problem, setting, method);
        }
        served.len()
    });
    let schedules: usize = schedules.sum();
    assert!(schedules > 200, "only {schedules} schedules were checked");
}

#[test]
fn a_schedule_written_and_read_back_is_equal() {
    let small = machines_and_ports().into_par_iter().filter(|machine| machine.ranks() <= 64);
    small.for_each(|machine| {
        for (algorithm, problem, setting) in serving(&machine, 3) {
            let place = format!("{} {setting:?} on {}", algorithm.info().name, machine.name);
            let schedule =
                schedule_of(&machine, &problem, &algorithm.info().name, &setting).unwrap();
            let first = verify(&schedule, &machine, Some(Method::Replay), MEMORY).unwrap();
            let mut written = Vec::new();
            let source = Source::new(&schedule, &machine, MEMORY);
            formats::jsonl::write(&source, &mut written).unwrap();
            let read = jsonl::read(&mut written.as_slice(), &target(&machine)).unwrap();
            let second = verify(&read, &machine, Some(Method::Replay), MEMORY).unwrap();
            assert_eq!(second.violation, None, "{place}");
            let (a, b) = (first.counts, second.counts);
            assert_eq!(
                (a.steps, a.bytes, a.link_bytes, a.hops),
                (b.steps, b.bytes, b.link_bytes, b.hops),
                "{place}"
            );
            assert_eq!((a.messages, a.link_conflicts), (b.messages, b.link_conflicts), "{place}");
            let mut again = Vec::new();
            let source = Source::new(&read, &machine, MEMORY);
            formats::jsonl::write(&source, &mut again).unwrap();
            assert!(written == again, "{place}: write, read, write is not the identity");
        }
    });
}
