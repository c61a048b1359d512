//! Which mutant of a program that holds all of them is alive.
//!
//! `MUTANT=number` makes one so; `MUTANT=reached:FILE` makes none, and appends to the file a line
//! with the number of each whose place is come to.

use std::fs::File;
use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Mutants are numbered below this.
const MOST: usize = 1 << 14;

/// What `ALIVE` says while the environment was not looked at, when places are written down, and
/// when the program is as it was.
const UNKNOWN: u32 = u32::MAX;
const REACHED: u32 = u32::MAX - 1;
const NONE: u32 = u32::MAX - 2;

static ALIVE: AtomicU32 = AtomicU32::new(UNKNOWN);
static SEEN: [AtomicU64; MOST / 64] = [const { AtomicU64::new(0) }; MOST / 64];
static LIST: OnceLock<File> = OnceLock::new();

/// Whether a mutant is alive.
#[inline]
pub fn on(mutant: u32) -> bool {
    let alive = ALIVE.load(Relaxed);
    alive == mutant || alive >= REACHED && looked_up(mutant)
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
    let (seen, bit) = (&SEEN[mutant as usize / 64], 1 << (mutant % 64));
    // Most places are come to again and again: reading alone is quick.
    if seen.load(Relaxed) & bit == 0 && seen.fetch_or(bit, Relaxed) & bit == 0 {
        let mut list = LIST.get().expect("opened above");
        // One write, as other processes write there too.
        list.write_all(format!("{mutant}\n").as_bytes()).expect("the list can be written");
    }
    false
}
