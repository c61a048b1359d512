//! One walk over machines, algorithms and settings. Each schedule is solved once and handed to every check.
//!
//! A case is in the walk always or never: the hash of its name decides. A quarter of the cases is walked;
//! `TOPOCOLL_SWEEP` walks them all, and whole families of machines:
//!
//! - `TOPOCOLL_SWEEP=60`: for 60 minutes, in a seeded order;
//! - `TOPOCOLL_SWEEP=3/100`: the third of 100 parts;
//! - `TOPOCOLL_SWEEP=all`.
//!
//! A failure prints the command that repeats its case, by `TOPOCOLL_CASE`.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod checks;
mod machines;
mod walk;

use walk::{Cases, walk};

#[test]
fn every_schedule_keeps_its_promises() {
    walk("machines", machines::chosen(), Cases::Chosen, 1000);
}

#[test]
fn whole_families_keep_their_promises() {
    for (family, machines) in machines::families() {
        walk(family, machines, Cases::OfFamily, 30);
    }
}

#[test]
#[ignore = "half a minute of processor time"]
fn another_program_replays_a_thousand_ranks() {
    for (text, algorithm) in
        [("full:1000", "bruck"), ("torus:28x36", "suh-shin"), ("torus:8x8x12", "suh-shin")]
    {
        checks::replay_one(&topocoll::machine(text).unwrap(), algorithm);
    }
}
