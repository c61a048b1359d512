//! The dynamic rules of Open MPI's tuned component, for versions 4.0 to 5.0: integers separated by
//! white space, comments from `#` to the end of a line.
//!
//! ```text
//! collectives
//!   collective, communicator sizes           all-gather 0, all-to-all 3
//!     size, rules                            from this size on, up to the next
//!       message size, algorithm, 0, 0        from this size on, up to the next; the first is 0
//! ```
//!
//! A message size is the sum of all blocks of a rank. Algorithm 0 is the library's own choice; all
//! other sizes of communicators get it. Version 5.0 reads this form too. From 5.0.7 on a file may have a
//! header, and a fifth number, of requests; earlier ones ignore a file with a header, without a warning.

use std::fmt::Write;

use topocoll_schedule::Collective::{AllGather, AllToAll};
use topocoll_topology::text::printable;

use super::{Given, Own, Rules, TuneError, Tuning};

pub(super) const USING: &str =
    "mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename {file}";

/// Two more all-gathers and two more all-to-alls of the library have no schedule here, or send the
/// same messages as a listed one.
#[rustfmt::skip]
pub(super) const OWN: [Own; 6] = [
    Own { operation: AllToAll, name: "linear", key: "1", schedule: |_| Some("direct"), at_once: true },
    Own { operation: AllToAll, name: "pairwise", key: "2", schedule: |_| Some("direct"), at_once: false },
    Own { operation: AllToAll, name: "bruck", key: "3", schedule: |_| Some("bruck"), at_once: false },
    Own { operation: AllGather, name: "bruck", key: "2", schedule: |_| Some("concat"), at_once: false },
    Own { operation: AllGather, name: "recursive doubling", key: "3", schedule: super::of_powers, at_once: false },
    Own { operation: AllGather, name: "ring", key: "4", schedule: |_| Some("ring"), at_once: false },
];

pub(super) fn force(own: &Own) -> Vec<(String, String)> {
    let algorithm = format!("OMPI_MCA_coll_tuned_{}_algorithm", own.operation);
    vec![
        ("OMPI_MCA_coll_tuned_use_dynamic_rules".to_owned(), "1".to_owned()),
        (algorithm, own.key.to_owned()),
    ]
}

/// Versions that read these files.
const RELEASES: [&str; 3] = ["4.0", "4.1", "5.0"];
const USUAL: &str = "4.1";

pub(super) fn write(tuning: &Tuning, given: &Given<'_>) -> Result<String, TuneError> {
    let library = "openmpi";
    if given.base.is_some() {
        return Err(TuneError::NeedlessBase { library });
    }
    let release = given.release.unwrap_or(USUAL);
    if !RELEASES.contains(&release) {
        let known = RELEASES.join(", ");
        return Err(TuneError::Release { library, release: release.to_owned(), known });
    }
    let mut out = String::new();
    let mut line = |text: String| writeln!(out, "{text}").expect("bug: writing to text failed");
    line(format!("# Open MPI {release}: {}", printable(&tuning.origin)));
    let operations = tuning.rules.first().map_or(0, |rules| rules.turns.len());
    line(format!("{operations:<16} # collectives"));
    let sizes = sizes(&tuning.rules);
    for i in 0..operations {
        let operation = tuning.rules[0].turns[i].0;
        let id = match operation {
            AllGather => 0,
            AllToAll => 3,
        };
        line(format!("{id:<16} # {operation}"));
        line(format!("{:<16} # communicator sizes", sizes.len()));
        for &(ranks, rules) in &sizes {
            let Some(rules) = rules else {
                let which = match ranks {
                    0 => "fewer",
                    _ if sizes.last().is_some_and(|last| last.0 == ranks) => "more",
                    _ => "other",
                };
                let theirs = format!("{ranks} 1 0 0 0 0");
                line(format!("{theirs:<16} # {which} ranks: the library's choice"));
                continue;
            };
            let turns = &rules.turns[i].1;
            line(format!("{:<16} # {ranks} ranks", format!("{ranks} {}", turns.len())));
            for (i, turn) in turns.iter().enumerate() {
                let from = if i == 0 { 0 } else { all(turn.block_bytes, rules.ranks)? };
                let rule = format!("{from} {} 0 0", turn.own.key);
                line(format!("{rule:<16} # blocks from {} B: {}", turn.block_bytes, turn.own.name));
            }
        }
    }
    Ok(out)
}

/// The rules from a number of ranks on; `None` leaves the choice to the library.
fn sizes(rules: &[Rules]) -> Vec<(u64, Option<&Rules>)> {
    let mut sizes = vec![(0, None)];
    for rules in rules {
        let ranks = u64::from(rules.ranks);
        sizes.pop_if(|(from, _)| *from == ranks);
        sizes.extend([(ranks, Some(rules)), (ranks + 1, None)]);
    }
    sizes
}

/// Bytes of all blocks of a rank.
fn all(block_bytes: u64, ranks: u32) -> Result<u64, TuneError> {
    let bytes = block_bytes.checked_mul(u64::from(ranks)).filter(|&bytes| bytes <= i32::MAX as u64);
    bytes.ok_or(TuneError::Size { library: "openmpi", ranks, block_bytes })
}
