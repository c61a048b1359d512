//! Every algorithm on every machine: one suite. Adding either adds tests without writing any.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::{MEMORY, machines_and_ports, serving};
use topocoll::export::Source;
use topocoll::{Measure, Method, bounds, claims, export, jsonl, plan, verify};

/// Ranks up to which every setting is replayed here; the sweep of the larger ones would take long.
const REPLAY_UP_TO: u32 = 512;

#[test]
fn every_schedule_delivers_as_claimed_and_beats_no_bound() {
    let mut schedules = 0;
    for machine in machines_and_ports() {
        for (algorithm, problem, setting) in serving(&machine, 3) {
            let place = format!(
                "{} {setting:?} on {} with {} ports",
                algorithm.name(),
                machine.name,
                machine.ports
            );
            let schedule = plan(&machine, &problem, algorithm.name(), &setting).unwrap();
            assert_eq!(schedule.origin.parameters, setting, "{place}: settings are complete");
            let replays = machine.ranks() <= REPLAY_UP_TO || !schedule.rule().cuts().is_empty();
            let method = if replays { Method::Replay } else { Method::Classes };
            let found = verify(&schedule, &machine, Some(method), MEMORY).unwrap();
            assert_eq!(found.violation, None, "{place}");
            let counts = found.counts;
            assert_eq!(counts.port_violations, 0, "{place}");

            let claims = claims(&machine, &problem, algorithm.name(), &setting).unwrap();
            assert_eq!((counts.steps, counts.bytes), (claims.steps, claims.bytes), "{place}");
            assert!(
                claims.hops.is_none_or(|hops| hops == counts.hops),
                "{place}: {} hops",
                counts.hops
            );
            assert!(
                claims.rearrangements.is_none_or(|times| u64::from(times) == counts.rearrangements),
                "{place}"
            );
            let copied = counts.rearranged_bytes + counts.packed_bytes;
            assert!(claims.copied_bytes.is_none_or(|bytes| bytes == copied), "{place}: {copied}");
            assert!(!claims.contention_free || counts.link_conflicts == 0, "{place}");
            assert!(
                counts.link_bytes >= claims.link_bytes_floor,
                "{place}: {} link bytes",
                counts.link_bytes
            );
            assert!(counts.hops >= claims.hops_floor, "{place}: {} hops", counts.hops);

            let blocks = counts.in_blocks(counts.bytes);
            for bound in bounds(&problem, &machine) {
                let holds = match (bound.measure, bound.condition.as_str()) {
                    (Measure::Steps, "") => counts.steps as f64 >= bound.value,
                    // Theorem 2.6: schedules of exactly the least volume.
                    (Measure::Steps, _) => {
                        blocks * f64::from(machine.ports) > f64::from(machine.ranks() - 1)
                            || counts.steps as f64 >= bound.value
                    }
                    (Measure::Blocks, "") => blocks >= bound.value,
                    // Theorem 2.5: schedules of exactly the fewest steps.
                    (Measure::Blocks, condition) => {
                        !condition.contains(&format!("exactly {} steps", counts.steps))
                            || blocks >= bound.value
                    }
                    (Measure::LinkBlocks, _) => counts.in_blocks(counts.link_bytes) >= bound.value,
                    (Measure::Hops, _) => counts.hops as f64 >= bound.value,
                };
                assert!(holds, "{place}: {bound:?}");
            }
            schedules += 1;
        }
    }
    assert!(schedules > 200, "only {schedules} schedules were checked");
}

#[test]
fn written_and_read_back_a_schedule_is_the_same() {
    for machine in machines_and_ports().into_iter().filter(|machine| machine.ranks() <= 64) {
        for (algorithm, problem, setting) in serving(&machine, 3) {
            let place = format!("{} {setting:?} on {}", algorithm.name(), machine.name);
            let schedule = plan(&machine, &problem, algorithm.name(), &setting).unwrap();
            let first = verify(&schedule, &machine, Some(Method::Replay), MEMORY).unwrap();
            let mut written = Vec::new();
            let source =
                Source { schedule: &schedule, machine: &machine, only: None, memory: MEMORY };
            export::jsonl::write(&source, &mut written).unwrap();
            let read = jsonl::read(written.as_slice(), &*machine.topology).unwrap();
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
            let source = Source { schedule: &read, machine: &machine, only: None, memory: MEMORY };
            export::jsonl::write(&source, &mut again).unwrap();
            assert!(written == again, "{place}: write, read, write is not the identity");
        }
    }
}
