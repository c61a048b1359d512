//! Selects the active mutant of a program that contains all mutants.
//!
//! `MUTANT=number` activates one; `MUTANT=reached:FILE` activates none, and appends a line to the
//! file with the number of each mutant that is reached.

use std::fs::File;
use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Every mutant's number is below this.
const MOST: usize = 1 << 14;

/// Values of `ALIVE`: before the environment is read, while reached mutants are recorded, and for
/// the unchanged program.
const UNKNOWN: u32 = u32::MAX;
const REACHED: u32 = u32::MAX - 1;
const NONE: u32 = u32::MAX - 2;

static ALIVE: AtomicU32 = AtomicU32::new(UNKNOWN);
static SEEN: [AtomicBool; MOST] = [const { AtomicBool::new(false) }; MOST];
static LIST: OnceLock<File> = OnceLock::new();

/// Whether a mutant is active.
#[inline]
pub fn on(mutant: u32) -> bool {
    let alive = ALIVE.load(Relaxed);
    // A program reaches most mutants many times, so this test is fast.
    let first = || !SEEN[mutant as usize].load(Relaxed);
    alive == mutant || alive >= REACHED && first() && looked_up(mutant)
}

#[cold]
fn looked_up(mutant: u32) -> bool {
    if ALIVE.load(Relaxed) == UNKNOWN {
        let said = std::env::var("MUTANT").unwrap_or_default();
        let alive = match said.strip_prefix("reached:") {
            Some(file) => {
                let file = File::options().append(true).create(true).open(file);
                LIST.get_or_init(|| file.expect("the list can be written"));
                REACHED
            }
            None if said.is_empty() => NONE,
            None => said.parse().expect("MUTANT is a number or reached:FILE"),
        };
        ALIVE.store(alive, Relaxed);
        return on(mutant);
    }
    if !SEEN[mutant as usize].swap(true, Relaxed) {
        let mut list = LIST.get().expect("opened above");
        // One write, because other processes write to this file too.
        list.write_all(format!("{mutant}\n").as_bytes()).expect("the list can be written");
    }
    false
}
