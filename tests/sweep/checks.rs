//! The checks that every case of the sweep passes through. A new check is a line of [`CHECKS`].

use std::io::Write as _;
use std::ops::ControlFlow;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use common::{
    Case, Forger, MEMORY, body, certificate_of, check_bounds, check_certificate, check_claims,
    check_classes, check_in_place, check_moves, check_plans, find, problem, target,
};
use tempfile::NamedTempFile;
use topocoll::formats::{self, FORMATS, Format, Reader, Source, Writer};
use topocoll::{
    AnalysisError, Collective, Counts, Exchange, Machine, Method, Parameters, Price, Rank,
    Schedule, Step, count, verify,
};

/// A promise of every schedule.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    /// The most ranks of the machines on which it is checked.
    pub(crate) ranks: u32,
    /// Of the cases, one in this number is checked.
    pub(crate) one_in: u64,
    pub(crate) passes: fn(&Case<'_>, &Counts),
}

#[rustfmt::skip]
pub(crate) const CHECKS: &[Check] = &[
    Check { name: "claims equal counts", ranks: u32::MAX, one_in: 1, passes: check_claims },
    Check { name: "no bound is beaten", ranks: u32::MAX, one_in: 1, passes: check_bounds },
    Check { name: "a complete setting has its price", ranks: 96, one_in: 1, passes: check_price },
    Check { name: "classes change no count", ranks: 96, one_in: 1, passes: |case, _| check_classes(case.schedule(), case.machine, &case.place) },
    Check { name: "the certificate holds", ranks: 48, one_in: 1, passes: check_certificate },
    Check { name: "a forged certificate is true or refused", ranks: 12, one_in: 1, passes: check_forgeries },
    Check { name: "every format is read back", ranks: 48, one_in: 1, passes: check_formats },
    Check { name: "another program replays it", ranks: 96, one_in: 4, passes: check_replay },
    Check { name: "bytes move", ranks: 256, one_in: 1, passes: |case, _| check_moves(case.schedule(), 3, 5) },
    Check { name: "bytes move in place", ranks: 64, one_in: 1, passes: |case, _| check_in_place(case.schedule(), 3, 5) },
    Check { name: "steps in a row are those asked for one by one", ranks: 64, one_in: 2, passes: |case, _| check_rows(case) },
    Check { name: "layouts in runs change no plan", ranks: 512, one_in: 2, passes: |case, _| check_plans(case.schedule()) },
];

/// The parameters of an origin solve to the same origin, and cost what was counted.
fn check_price(case: &Case<'_>, counts: &Counts) {
    let (origin, place) = (&case.schedule().origin, &case.place);
    let exchange = Exchange::new(case.machine, &case.problem).unwrap();
    let priced = exchange.priced(&origin.algorithm, &origin.parameters).unwrap().unwrap();
    assert_eq!(priced.parameters, origin.parameters, "{place}");
    let Price { time, steps, .. } = priced.price;
    assert_eq!((steps, time), (counts.steps, counts.time), "{place}");
}

/// What a rank does in a row of steps is what it does in each of them.
fn check_rows(case: &Case<'_>) {
    let (rule, mut does) = (case.schedule().rule(), Step::default());
    for rank in (0..case.problem.ranks).map(Rank) {
        let mut next = 0;
        let mut check = |step: u32, in_row: Option<&Step>| {
            for idle in next..step {
                rule.step(rank, idle, &mut does);
                assert!(does.is_idle(), "{}: rank {rank}, step {idle}", case.place);
            }
            if let Some(in_row) = in_row {
                rule.step(rank, step, &mut does);
                let is_equal = *in_row == does && !does.is_idle();
                assert!(is_equal, "{}: rank {rank}, step {step}", case.place);
            }
            next = step + 1;
        };
        rule.each_step(rank, &mut |step, in_row| {
            check(step, Some(in_row));
            ControlFlow::Continue(())
        });
        check(rule.steps(), None);
    }
}

fn check_forgeries(case: &Case<'_>, _: &Counts) {
    let certificate = certificate_of(case.schedule(), case.machine);
    let mut forger = Forger::new(crate::walk::hash(&case.place));
    forger.forge(body(&certificate), 8);
}

fn written(format: &Format, case: &Case<'_>, schedule: &Schedule) -> Result<String, AnalysisError> {
    let Writer::File(write) = format.writer else { return Ok(String::new()) };
    let mut out = Vec::new();
    write(&Source::new(schedule, case.machine, MEMORY), &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

/// What is written and read costs the same and has the same messages, and the same blocks if it names them.
fn check_formats(case: &Case<'_>, counts: &Counts) {
    let place = &case.place;
    let lines = written(&FORMATS[0], case, case.schedule()).unwrap();
    for format in FORMATS {
        let text = match written(format, case, case.schedule()) {
            Ok(text) => text,
            // MSCCL has no all-gather and no parts of blocks.
            Err(error) => {
                let gathers = case.problem.operation == Collective::AllGather;
                let refused = gathers || !case.schedule().rule().cuts().is_empty();
                assert!(format.name == "msccl" && refused, "{place}: {error}");
                continue;
            }
        };
        let back = match format.reader {
            Reader::File(read) => read(&mut text.as_bytes(), &target(case.machine)).unwrap(),
            Reader::Folder(_) if case.machine.ranks() <= 9 => {
                let folder = tempfile::tempdir().unwrap();
                let Writer::Folder(write) = format.writer else { panic!("{}", format.name) };
                let source = Source::new(case.schedule(), case.machine, MEMORY);
                match write(&source, folder.path(), &|_| ()) {
                    // SimGrid has only one route for each pair.
                    Err(AnalysisError::TwoRoutes { .. }) => continue,
                    written => written.unwrap(),
                }
                formats::read(folder.path(), &target(case.machine)).unwrap()
            }
            _ => continue,
        };
        // Comma-separated values have sizes and no blocks.
        if format.name == "csv" {
            assert!(text == written(format, case, &back).unwrap(), "{place}: {}", format.name);
        } else {
            assert!(
                lines == written(&FORMATS[0], case, &back).unwrap(),
                "{place}: {}",
                format.name
            );
            let found = verify(&back, case.machine, Some(Method::Replay), MEMORY).unwrap();
            assert_eq!(found.violation, None, "{place}: {}", format.name);
            let of = |counts: &Counts| {
                let Counts { steps, bytes, link_bytes, hops, messages, link_conflicts, .. } =
                    *counts;
                (steps, bytes, link_bytes, hops, messages, link_conflicts)
            };
            assert_eq!(of(&found.counts), of(counts), "{place}: {}", format.name);
        }
    }
}

/// A schedule as JSON lines, with the counts that the other program must find.
type Written = (NamedTempFile, Counts, String);

/// Schedules that wait until one run of the other program replays them.
static WAITING: Mutex<Vec<Written>> = Mutex::new(Vec::new());

/// The schedules that one run replays.
const BATCH: usize = 32;

/// Leaves the schedule to a program that shares no code with this library.
fn check_replay(case: &Case<'_>, counts: &Counts) {
    let mut file = NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let text = written(&FORMATS[0], case, case.schedule()).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.push((file, *counts, case.place.clone()));
    if waiting.len() == BATCH {
        let batch = std::mem::take(&mut *waiting);
        drop(waiting);
        replay(&batch);
    }
}

/// Replays the schedule of an all-to-all at once.
pub(crate) fn replay_one(machine: &Machine, algorithm: &str) {
    let problem = problem(machine, Collective::AllToAll, 2);
    let algorithm = find(algorithm).unwrap();
    let case = Case::solve(machine, algorithm, &problem, &Parameters::new()).unwrap();
    let counts = count(case.schedule(), machine, None, MEMORY).unwrap();
    check_replay(&case, &counts);
    finish();
}

/// Replays the schedules that still wait.
pub(crate) fn finish() {
    let batch = std::mem::take(&mut *WAITING.lock().unwrap_or_else(PoisonError::into_inner));
    replay(&batch);
}

fn replay(batch: &[Written]) {
    if batch.is_empty() {
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/replay.py");
    let files = batch.iter().map(|(file, ..)| file.path());
    let output = (Command::new("python3").arg(script).args(files).output())
        .expect("python3 runs tests/replay.py; tests/run installs it");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let found = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let found: Vec<serde_json::Value> = found.collect();
    assert_eq!(found.len(), batch.len());
    for (found, (_, counts, place)) in found.iter().zip(batch) {
        assert_eq!(found["delivered"], true, "{place}: {found}");
        for (name, counted) in [
            ("steps", counts.steps as f64),
            ("blocks", counts.in_blocks(counts.bytes)),
            ("link_blocks", counts.in_blocks(counts.link_bytes)),
            ("link_conflicts", counts.link_conflicts as f64),
            ("contention_free_steps", counts.contention_free_steps as f64),
            ("port_violations", counts.port_violations as f64),
        ] {
            let found = found[name].as_f64().unwrap();
            let equal = (found - counted).abs() <= 1e-9 * counted;
            assert!(equal, "{place}: {name} {found}, counted {counted}");
        }
    }
}
