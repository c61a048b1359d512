use topocoll_schedule::Schedule;
use topocoll_topology::Machine;

use crate::counts::{check_counting_memory, exceeded_ports};
use crate::error::{check_named, check_ranks};
use crate::{
    AnalysisError, Counts, Progress, Violation, check_counting_work, count_steps, paths, replay,
};

/// The most ranks for which [`verify()`] replays every block unless given a method.
pub const REPLAY_UP_TO: u32 = 4096;

/// The number of ranks that are replayed in the time of one class: measured between 3 and 40.
const RANKS_OF_A_CLASS: u64 = 16;

/// A method of verification.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Method {
    /// Follows every block of every rank.
    Replay,
    /// Follows every block of one rank of each class, and compares a few members of each class with
    /// that rank. The proof relies on the classes that the rule names. An all-to-all schedule that
    /// delivers a block and leaves copies of it elsewhere may be refused. Of a schedule
    /// [on a view](Schedule::on_view), follows the one for the grid that the view shows.
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

    /// The faster method that fits in `memory` bytes, by an estimate: replay visits every rank,
    /// classes one rank of each class, which takes as long as 16 ranks.
    ///
    /// It is replay up to [`REPLAY_UP_TO`] ranks, and where blocks are split or ranks exchange in groups.
    #[must_use]
    pub fn cheaper(schedule: &Schedule, memory: u128) -> Self {
        let (ranks, rule) = (schedule.problem.ranks, schedule.rule());
        // Only replay follows split blocks, and groups.
        if ranks <= REPLAY_UP_TO || !rule.cuts().is_empty() || schedule.groups().is_some() {
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

/// The result of a verification.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Verification {
    /// How it was verified.
    pub method: Method,
    /// Number of classes followed, by the classes method.
    pub classes: u32,
    /// The first violation found; `None` proves that every block is delivered.
    pub violation: Option<Violation>,
    /// The counts.
    pub counts: Counts,
    /// Cases that exceed the port model: those that are counted, or of a schedule of groups, which take turns at ports
    /// that they share, those of each group by itself.
    pub exceeded: u64,
    /// By replay of an all-to-all, the number of blocks that ranks send again after sending them
    /// once. A block, or part of one, in a message counts if its sender sent any of these bytes
    /// from the same slot before, and received nothing there since. Sending does not remove data
    /// from a buffer, so this is allowed, but a program whose blocks move cannot run such a
    /// schedule. `None` by classes, for an all-gather, and after a violation.
    pub resent_blocks: Option<u64>,
}

/// Proves or refutes that a schedule delivers every block, independently of its algorithm, and
/// counts it on the machine.
///
/// The default method is [`Method::cheaper`]. Replay takes time proportional to the blocks moved,
/// and 9 bytes per slot of all ranks. Classes take time proportional to the boxes of slots that
/// travel together, times steps.
///
/// # Errors
/// A schedule that names no blocks, or of other ranks than the machine's; more than `memory` bytes;
/// with the default method also work of more than minutes.
pub fn verify(
    schedule: &Schedule,
    machine: &Machine,
    method: Option<Method>,
    memory: u128,
) -> Result<Verification, AnalysisError> {
    verify_watched(schedule, machine, method, memory, &Progress::UNHEARD)
}

/// Verifies as [`verify()`] does and reports progress.
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
    let seen = schedule.seen(machine);
    let own = seen.as_ref().map_or(schedule, |(seen, _)| seen);
    let chosen = method.unwrap_or_else(|| Method::cheaper(own, memory));
    if let (Method::Classes, Some((schedule, machine))) = (chosen, &seen) {
        return verify_watched(schedule, machine, method, memory, progress);
    }
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
    (progress.starting)("counting steps", schedule.rule().steps().into());
    let counts = count_steps(schedule, machine, None, memory, |_, _| (progress.done)(1))?;
    Ok(Verification {
        method: chosen,
        classes: schedule.rule().classes().count(),
        violation: outcome.err(),
        exceeded: exceeded_ports(schedule, machine, &counts)?,
        counts,
        resent_blocks,
    })
}
