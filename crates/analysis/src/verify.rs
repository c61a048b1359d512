use topocoll_schedule::Schedule;
use topocoll_topology::Machine;

use crate::counts::{check_counting_memory, check_ranks};
use crate::{
    AnalysisError, Counts, Progress, Violation, check_counting_work, count, paths, replay,
};

/// Up to this number of ranks every block is replayed unless a method is asked for.
pub const REPLAY_UP_TO: u32 = 4096;

/// Ranks that are replayed in the time that one class takes: between 3 and 40 for the algorithms and
/// machines measured.
const RANKS_OF_A_CLASS: u64 = 16;

/// How a schedule is verified.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Method {
    /// Every block of every rank is followed.
    Replay,
    /// Every block of one rank of each class is followed, and a few members of each class are
    /// compared with it. An argument by symmetry: it rests on the rule's classes being true. In an
    /// all-to-all a block is one thing that travels: a schedule that delivers it and leaves copies
    /// elsewhere may be refused.
    Classes,
}

impl Method {
    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Classes => "classes",
        }
    }

    /// The method that takes less time of those that fit in `memory` bytes, by an estimate of both:
    /// replay visits every rank, classes one rank of each class, which takes as long as 16 ranks.
    ///
    /// Replay up to [`REPLAY_UP_TO`] ranks, and where blocks are split.
    #[must_use]
    pub fn cheaper(schedule: &Schedule, memory: u128) -> Self {
        let (ranks, rule) = (schedule.problem.ranks, schedule.rule());
        // Split blocks are followed by replay alone.
        if ranks <= REPLAY_UP_TO || !rule.cuts().is_empty() {
            return Self::Replay;
        }
        let dearer = RANKS_OF_A_CLASS * u64::from(rule.classes().count()) > u64::from(ranks);
        let prefers = dearer || paths::check_fits(schedule, memory).is_err();
        if prefers && replay::check_fits(schedule, memory).is_ok() {
            Self::Replay
        } else {
            Self::Classes
        }
    }
}

/// What was found about a schedule.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Verification {
    /// How it was verified.
    pub method: Method,
    /// Number of classes followed, by the classes method.
    pub classes: u32,
    /// What is wrong, if anything: without it, every block is delivered.
    pub violation: Option<Violation>,
    /// Everything counted.
    pub counts: Counts,
    /// By replay of an all-to-all, how many blocks ranks send again after they have passed them on.
    /// Counted is each block, or part of one, of each message, if its sender sent any of these bytes
    /// from the same slot before and received nothing there since. The caller's data is not moved
    /// out of a buffer by sending it, so this is allowed; a program whose blocks move cannot run such
    /// a schedule. `None` by classes, for an all-gather, and where replay breaks off.
    pub resent_blocks: Option<u64>,
}

/// Proves or refutes that a schedule delivers, knowing nothing of the algorithm that wrote it, and
/// counts what it costs on the machine.
///
/// Without a method, the cheaper one ([`Method::cheaper`]). Replay takes time
/// in proportion to the blocks moved and 9 bytes per slot of all ranks; classes take time in
/// proportion to the boxes of slots that travel together, times steps.
///
/// # Errors
/// A schedule that names no blocks, or of other ranks than the machine's; not enough memory, of which
/// `memory` bytes may be used; without a method also too much work.
pub fn verify(
    schedule: &Schedule,
    machine: &Machine,
    method: Option<Method>,
    memory: u128,
) -> Result<Verification, AnalysisError> {
    verify_watched(schedule, machine, method, memory, &Progress::UNHEARD)
}

/// Verifies as [`verify()`], and tells how far it is.
///
/// # Errors
/// As [`verify()`].
pub fn verify_watched(
    schedule: &Schedule,
    machine: &Machine,
    method: Option<Method>,
    memory: u128,
    progress: &Progress<'_>,
) -> Result<Verification, AnalysisError> {
    check_named(schedule)?;
    check_ranks(schedule.problem.ranks, machine)?;
    let chosen = method.unwrap_or_else(|| Method::cheaper(schedule, memory));
    if method.is_none() {
        match chosen {
            Method::Classes => paths::check_following(schedule, memory)?,
            Method::Replay if schedule.problem.ranks > REPLAY_UP_TO => {
                replay::check_replaying(schedule)?;
            }
            Method::Replay => {}
        }
        check_counting_work(schedule, machine)?;
    }
    check_counting_memory(schedule, machine, memory)?;
    let (outcome, resent_blocks) = match chosen {
        Method::Replay => replay::run(schedule, machine, memory, progress)?,
        Method::Classes => (paths::run(schedule, machine, memory, progress)?, None),
    };
    Ok(Verification {
        method: chosen,
        classes: schedule.rule().classes().count(),
        violation: outcome.err(),
        counts: count(schedule, machine, None, memory)?,
        resent_blocks,
    })
}

/// Refuses a schedule of sizes: nobody can say what it delivers.
pub(crate) fn check_named(schedule: &Schedule) -> Result<(), AnalysisError> {
    if schedule.rule().names_blocks() { Ok(()) } else { Err(AnalysisError::NoBlocks) }
}
