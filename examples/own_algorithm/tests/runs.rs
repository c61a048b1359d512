//! The example runs, and other programs read what it writes.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::process::Command;

use topocoll::formats::{Target, jsonl};
use topocoll::{Exchange, machine};

#[test]
fn the_schedule_it_writes_is_read_and_delivers() {
    let output = Command::new(env!("CARGO_BIN_EXE_own_algorithm")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.starts_with("choice Some("), "{said}");
    let machine = machine("torus:8x8").unwrap();
    let schedule = jsonl::read(&mut &output.stdout[..], &Target::new(&machine, 1 << 30)).unwrap();
    assert_eq!(schedule.origin.algorithm, "threes");
    let exchange = Exchange::new(&machine, &schedule.problem).unwrap();
    assert_eq!(exchange.verify(&schedule, None).unwrap().violation, None);
}
