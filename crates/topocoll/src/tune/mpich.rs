//! MPICH's selection tree: JSON whose keys are tested in file order.
//!
//! MPICH reads only complete trees of its own version, so this edits one: it replaces the
//! algorithms for blocks that are not in place, between the requested numbers of ranks. All other
//! tests stay. Each MPICH library holds its complete tree as text. Version 4.0 reads `comm_size<N`
//! after a test of blocks as `comm_size<=N`, so only the latter is written.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use topocoll_schedule::Collective::{self, AllGather, AllToAll};

use super::{Given, Own, Release, Rules, TuneError, Tuning, Turn};

pub(super) const USING: &str = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE={file} mpirun";

/// The usual `MPIR_CVAR_ALLTOALL_THROTTLE`: messages that a rank sends at a time.
const THROTTLE: u32 = 32;

#[rustfmt::skip]
pub(super) const OWN: [Own; 6] = [
    Own { operation: AllToAll, name: "scattered", key: "algorithm=MPIR_Alltoall_intra_scattered", schedule: |_| Some("direct"), under_way: THROTTLE },
    Own { operation: AllToAll, name: "pairwise", key: "algorithm=MPIR_Alltoall_intra_pairwise", schedule: pairs, under_way: 1 },
    Own { operation: AllToAll, name: "brucks", key: "algorithm=MPIR_Alltoall_intra_brucks", schedule: |_| Some("bruck"), under_way: 1 },
    Own { operation: AllGather, name: "brucks", key: "algorithm=MPIR_Allgather_intra_brucks", schedule: |_| Some("concat"), under_way: 1 },
    Own { operation: AllGather, name: "recursive doubling", key: "algorithm=MPIR_Allgather_intra_recursive_doubling", schedule: super::of_powers, under_way: 1 },
    Own { operation: AllGather, name: "ring", key: "algorithm=MPIR_Allgather_intra_ring", schedule: |_| Some("ring"), under_way: 1 },
];

fn pairs(ranks: u32) -> Option<&'static str> {
    Some(if ranks.is_power_of_two() { "pairwise-xor" } else { "direct" })
}

const DECISION: &str = "maint/tuning/coll/mpir/generic.json";

/// The rules of all are equal.
#[rustfmt::skip]
pub(super) const DECIDED: [Release; 5] = [
    Release { name: "5.0", tags: "v5.0.0 to v5.0.1", file: DECISION, ahead: None },
    Release { name: "4.3", tags: "v4.3.0 to v4.3.2", file: DECISION, ahead: None },
    Release { name: "4.2", tags: "v4.2.0 to v4.2.3", file: DECISION, ahead: None },
    Release { name: "4.1", tags: "v4.1 to v4.1.3", file: DECISION, ahead: None },
    Release { name: "4.0", tags: "v4.0 to v4.0.3", file: DECISION, ahead: None },
];

/// The algorithm that the tree built into the library chooses, for buffers that are not in place. Its
/// `comm_size<8` follows a test of the buffer, and is true of 8 ranks (src/mpi/coll/src/csel.c).
pub(super) fn decide(operation: Collective, ranks: u32, block_bytes: u64) -> &'static str {
    let all = block_bytes.saturating_mul(ranks.into());
    match operation {
        AllToAll if ranks > 8 && block_bytes <= 256 => "algorithm=MPIR_Alltoall_intra_brucks",
        AllToAll if block_bytes <= 32768 => "algorithm=MPIR_Alltoall_intra_scattered",
        AllToAll => "algorithm=MPIR_Alltoall_intra_pairwise",
        AllGather if ranks.is_power_of_two() && all < 524_288 => {
            "algorithm=MPIR_Allgather_intra_recursive_doubling"
        }
        AllGather if !ranks.is_power_of_two() && all < 81920 => {
            "algorithm=MPIR_Allgather_intra_brucks"
        }
        AllGather => "algorithm=MPIR_Allgather_intra_ring",
    }
}

pub(super) fn force(own: &Own, _requests: u32) -> Vec<(String, String)> {
    let name = format!("MPIR_CVAR_{}_INTRA_ALGORITHM", own.operation.name().to_uppercase());
    let (_, algorithm) = own.key.split_once("_intra_").expect("bug: an invalid key");
    vec![(name, algorithm.to_owned())]
}

/// Tests or an algorithm, each with its subtree.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Tree(IndexMap<String, Tree>);

pub(super) fn write(tuning: &Tuning, given: &Given<'_>) -> Result<String, TuneError> {
    if given.release.is_some() {
        return Err(TuneError::ReleaseOfBase { library: "mpich" });
    }
    let mut tree = full(given.base.ok_or(TuneError::NoBase)?)?;
    for i in 0..tuning.rules.first().map_or(0, |rules| rules.turns.len()) {
        change(&mut tree, &tuning.rules, i)?;
    }
    Ok(serde_json::to_string_pretty(&tree).expect("bug: a tree that is not JSON") + "\n")
}

fn incomplete(reason: String) -> TuneError {
    TuneError::Base { reason }
}

/// The operations of every version; MPICH ends with an internal error where one is missing.
#[rustfmt::skip]
pub(super) const COLLECTIVES: [&str; 17] = [
    "allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "alltoallw", "barrier", "bcast",
    "exscan", "gather", "gatherv", "reduce", "reduce_scatter", "reduce_scatter_block", "scan",
    "scatter", "scatterv",
];

/// The complete tree in a file: the whole file, or a text between zero bytes of a library. A
/// library also has other trees, for its devices.
fn full(base: &[u8]) -> Result<Tree, TuneError> {
    const BEGINS: &[u8] = b"{\"collective=";
    let lacking = |tree: &Tree| {
        let there = |name: &&&str| tree.0.contains_key(&format!("collective={name}"));
        COLLECTIVES.iter().find(|name| !there(name))
    };
    if let Ok(tree) = serde_json::from_slice(base) {
        return match lacking(&tree) {
            None => Ok(tree),
            Some(name) => Err(incomplete(format!("it is not complete: no `collective={name}`"))),
        };
    }
    let texts = base.split(|&byte| byte == 0).filter(|text| text.starts_with(BEGINS));
    let mut trees = texts.filter_map(|text| serde_json::from_slice::<Tree>(text).ok());
    let selects = |tree: &Tree| {
        [AllToAll, AllGather].iter().all(|&operation| tests(&mut tree.clone(), operation).is_ok())
    };
    trees
        .find(|tree| lacking(tree).is_none() && selects(tree))
        .ok_or_else(|| incomplete("neither a selection tree nor a library with one".to_owned()))
}

/// The subtree that selects an operation's algorithms for one communicator, not in place.
fn tests(tree: &mut Tree, operation: Collective) -> Result<&mut Tree, TuneError> {
    let collective = format!("collective={operation}");
    let mut at = tree;
    for key in [&*collective, "comm_type=intra"] {
        at =
            at.0.get_mut(key)
                .ok_or_else(|| incomplete(format!("`{collective}` has no `{key}`")))?;
    }
    if at.0.contains_key("is_sendbuf_inplace=no") {
        at = &mut at.0["is_sendbuf_inplace=no"];
    }
    if !at.0.keys().all(|key| key.starts_with("comm_size")) {
        return Err(incomplete(format!("`{collective}` does not select by `comm_size`")));
    }
    Ok(at)
}

/// Puts the rules of the i-th operation into the tree.
fn change(tree: &mut Tree, rules: &[Rules], i: usize) -> Result<(), TuneError> {
    let at = tests(tree, rules[0].turns[i].0)?;
    let before = std::mem::replace(at, Tree(IndexMap::new()));
    for Rules { ranks, turns } in rules {
        let (operation, turns) = &turns[i];
        let fewer = format!("comm_size<={}", ranks - 1);
        if !at.0.contains_key(&fewer) {
            at.0.insert(fewer, before.clone());
        }
        at.0.insert(format!("comm_size<={ranks}"), ours(&before, *operation, *ranks, turns)?);
    }
    at.0.insert("comm_size=any".to_owned(), before);
    Ok(())
}

/// The algorithms for communicators of `ranks`.
fn ours(
    before: &Tree,
    operation: Collective,
    ranks: u32,
    turns: &[Turn],
) -> Result<Tree, TuneError> {
    // The library's message size for this operation.
    let (size, each) = match operation {
        AllToAll => ("avg_msg_size", 1),
        AllGather => ("total_msg_size", u64::from(ranks)),
    };
    let mut ours = IndexMap::new();
    for (i, turn) in turns.iter().enumerate() {
        let algorithm = before.find(turn.own.key);
        let algorithm =
            algorithm.ok_or_else(|| incomplete(format!("it has no `{}`", turn.own.key)))?;
        let test = match turns.get(i + 1) {
            Some(next) => {
                let limit =
                    next.block_bytes.checked_mul(each).filter(|&limit| limit <= i32::MAX as u64);
                let block_bytes = next.block_bytes;
                format!(
                    "{size}<{}",
                    limit.ok_or(TuneError::Size { library: "mpich", ranks, block_bytes })?
                )
            }
            None => format!("{size}=any"),
        };
        ours.insert(test, Tree([(turn.own.key.to_owned(), algorithm.clone())].into()));
    }
    Ok(Tree(ours))
}

impl Tree {
    /// The value of a key at any depth.
    fn find(&self, key: &str) -> Option<&Tree> {
        self.0.get(key).or_else(|| self.0.values().find_map(|tree| tree.find(key)))
    }
}
