use topocoll_schedule::Schedule;
use topocoll_topology::Machine;

use crate::counts::{check_counting_memory, check_ranks};
use crate::{
    AnalysisError, Counts, Progress, Violation, check_counting_work, count, paths, replay,
};

/// Up to so many ranks every block is replayed unless asked otherwise.
pub const REPLAY_UP_TO: u32 = 4096;

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
}

/// Proves or refutes that a schedule delivers, knowing nothing of the algorithm that wrote it, and
/// counts what it costs on the machine.
///
/// Without a method, full replay up to [`REPLAY_UP_TO`] ranks, classes beyond. Replay takes time
/// in proportion to the blocks moved and 8 bytes per slot of all ranks; classes take time in
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
    // Split blocks are followed by replay alone.
    let replays = schedule.problem.ranks <= REPLAY_UP_TO || !schedule.rule().cuts().is_empty();
    let chosen = method.unwrap_or(if replays { Method::Replay } else { Method::Classes });
    if method.is_none() {
        if chosen == Method::Classes {
            paths::check_following(schedule, memory)?;
        }
        check_counting_work(schedule, machine)?;
    }
    check_counting_memory(schedule, machine, memory)?;
    let outcome = match chosen {
        Method::Replay => replay::run(schedule, machine, memory, progress)?,
        Method::Classes => paths::run(schedule, machine, memory, progress)?,
    };
    Ok(Verification {
        method: chosen,
        classes: schedule.rule().classes().count(),
        violation: outcome.err(),
        counts: count(schedule, machine, memory)?,
    })
}

/// Refuses a schedule of sizes: nobody can say what it delivers.
pub(crate) fn check_named(schedule: &Schedule) -> Result<(), AnalysisError> {
    if schedule.rule().names_blocks() { Ok(()) } else { Err(AnalysisError::NoBlocks) }
}
