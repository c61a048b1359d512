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

use topocoll_schedule::Collective::{self, AllGather, AllToAll};
use topocoll_topology::text::printable;

use super::{Given, Own, Release, Rules, TuneError, Tuning, neighbor};

pub(super) const USING: &str =
    "mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename {file}";

/// A linear all-gather, and version 5.0's sparbit, have no schedule here; the library's rules choose neither.
#[rustfmt::skip]
pub(super) const OWN: [Own; 10] = [
    Own { operation: AllToAll, name: "linear_sync", key: "4", schedule: |_| Some("direct"), under_way: u32::MAX },
    Own { operation: AllToAll, name: "linear", key: "1", schedule: |_| Some("direct"), under_way: u32::MAX },
    Own { operation: AllToAll, name: "pairwise", key: "2", schedule: |_| Some("direct"), under_way: 1 },
    Own { operation: AllToAll, name: "bruck", key: "3", schedule: |_| Some("bruck"), under_way: 1 },
    Own { operation: AllToAll, name: "two_proc", key: "5", schedule: |ranks| (ranks == 2).then_some("direct"), under_way: 1 },
    Own { operation: AllGather, name: "bruck", key: "2", schedule: |_| Some("concat"), under_way: 1 },
    Own { operation: AllGather, name: "recursive doubling", key: "3", schedule: super::of_powers, under_way: 1 },
    Own { operation: AllGather, name: "ring", key: "4", schedule: |_| Some("ring"), under_way: 1 },
    Own { operation: AllGather, name: "neighbor", key: "5", schedule: |ranks| ranks.is_multiple_of(2).then_some(neighbor::NAME), under_way: 1 },
    Own { operation: AllGather, name: "two_proc", key: "6", schedule: |ranks| (ranks == 2).then_some("concat"), under_way: 1 },
];

const DECISION: &str = "ompi/mca/coll/tuned/coll_tuned_decision_fixed.c";

/// The rules of both are equal.
#[rustfmt::skip]
pub(super) const DECIDED: [Release; 2] = [
    Release { name: "4.1", tags: "v4.1.0 to v4.1.8", file: DECISION, ahead: None },
    Release { name: "5.0", tags: "v5.0.0 to v5.0.10", file: DECISION, ahead: Some((AllGather, "han")) },
];

/// From a number of ranks on: from a block size on, the number of an algorithm.
type Decisions = [(u32, &'static [(u64, &'static str)])];

#[rustfmt::skip]
const ALL_TO_ALL: &Decisions = &[
    (2, &[(0, "2"), (2, "5"), (4, "2"), (16, "5"), (64, "2"), (256, "5"), (4096, "2"), (32768, "4"), (262144, "5"), (1048576, "2")]),
    (3, &[(0, "4"), (8192, "1"), (16384, "4"), (65536, "1"), (524288, "2"), (1048576, "1")]),
    (8, &[(0, "4"), (262144, "1")]),
    (16, &[(0, "4"), (4, "3"), (512, "4"), (8192, "1"), (32768, "4"), (262144, "1"), (524288, "4")]),
    (32, &[(0, "3"), (512, "1"), (524288, "4")]),
    (64, &[(0, "3"), (1024, "1"), (2048, "4"), (4096, "1"), (262144, "2")]),
    (128, &[(0, "3"), (1024, "4"), (2048, "1"), (262144, "2")]),
    (256, &[(0, "3"), (1024, "4"), (8192, "1"), (32768, "2")]),
    (512, &[(0, "3"), (512, "4"), (8192, "1"), (16384, "4"), (131072, "1"), (262144, "2")]),
    (1024, &[(0, "3"), (512, "4"), (1024, "1"), (2048, "4"), (16384, "1"), (262144, "4")]),
    (2048, &[(0, "3"), (1024, "4"), (4096, "1"), (8192, "4"), (131072, "1")]),
    (4096, &[(0, "3"), (2048, "4"), (8192, "1"), (16384, "4"), (32768, "1"), (65536, "4")]),
];

#[rustfmt::skip]
const ALL_GATHER: &Decisions = &[
    (2, &[(0, "6")]),
    (3, &[(0, "3")]),
    (32, &[(0, "3"), (1024, "5"), (65536, "4")]),
    (64, &[(0, "3"), (512, "5"), (65536, "4")]),
    (128, &[(0, "3"), (512, "5"), (131072, "4"), (524288, "5"), (1048576, "4")]),
    (256, &[(0, "3"), (32, "2"), (128, "3"), (1024, "5"), (131072, "4"), (524288, "5"), (1048576, "4")]),
    (512, &[(0, "3"), (64, "2"), (256, "3"), (2048, "5")]),
    (1024, &[(0, "3"), (4, "2"), (8, "3"), (16, "2"), (32, "3"), (256, "2"), (512, "3"), (4096, "5")]),
    (2048, &[(0, "2"), (32, "3"), (128, "2"), (512, "3"), (4096, "5")]),
    (4096, &[(0, "3"), (2, "2"), (8, "3"), (16, "2"), (512, "3"), (4096, "5")]),
];

/// The number of the algorithm that the fixed rules choose. The library uses Bruck's in place of recursive
/// doubling, and the ring in place of the neighbor exchange, where these do not apply.
pub(super) fn decide(operation: Collective, ranks: u32, block_bytes: u64) -> &'static str {
    let decisions = match operation {
        AllToAll => ALL_TO_ALL,
        AllGather => ALL_GATHER,
    };
    let of_ranks = decisions.iter().rev().find(|(from, _)| *from <= ranks.max(2));
    let (_, sizes) = of_ranks.expect("bug: rules begin at 2 ranks");
    let of_size = sizes.iter().rev().find(|(from, _)| *from <= block_bytes);
    match of_size.expect("bug: rules begin at 0").1 {
        "3" if operation == AllGather && !ranks.is_power_of_two() => "2",
        "5" if operation == AllGather && !ranks.is_multiple_of(2) => "4",
        key => key,
    }
}

/// The parameter that limits the requests of linear_sync. A file has no place for it before version 5.0.7.
const LIMIT: &str = "coll_tuned_alltoall_algorithm_max_requests";

pub(super) fn force(own: &Own, requests: u32) -> Vec<(String, String)> {
    let algorithm = format!("OMPI_MCA_coll_tuned_{}_algorithm", own.operation);
    let mut variables = vec![
        ("OMPI_MCA_coll_tuned_use_dynamic_rules".to_owned(), "1".to_owned()),
        (algorithm, own.key.to_owned()),
    ];
    if requests > 0 {
        variables.push((format!("OMPI_MCA_{LIMIT}"), requests.to_string()));
    }
    variables
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
                let requests = match turn.requests {
                    0 => String::new(),
                    most => format!(", {most} requests ({LIMIT} {most})"),
                };
                let (from, name) = (turn.block_bytes, turn.own.name);
                line(format!("{rule:<16} # blocks from {from} B: {name}{requests}"));
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
