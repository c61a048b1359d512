use topocoll_schedule::Schedule;
use topocoll_topology::{Machine, parallel};

/// Why a reader refuses a schedule, or cannot finish.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// It would not fit in memory.
    #[error("{what} would take {needed} bytes, but the limit is {memory}")]
    Memory {
        /// The use of the memory.
        what: &'static str,
        /// Bytes needed.
        needed: u128,
        /// Bytes allowed.
        memory: u128,
    },
    /// A schedule, or messages, of other ranks than the machine's.
    #[error("the schedule has {ranks} ranks, but the machine has {machine}")]
    Ranks {
        /// The ranks of the schedule.
        ranks: u32,
        /// The ranks of the machine.
        machine: u32,
    },
    /// More ranks than a replay can number blocks of.
    #[error("a full replay has at most {most} ranks, but the schedule has {ranks}")]
    Replayed {
        /// The ranks.
        ranks: u32,
        /// The limit.
        most: u32,
    },
    /// It would take too long. Some readers do it if asked explicitly.
    #[error("{what} would visit {needed} messages or slots, more than the limit of {limit}")]
    Work {
        /// The work.
        what: &'static str,
        /// Messages or slots visited.
        needed: u128,
        /// The limit.
        limit: u128,
    },
    /// Tracing the blocks of one rank, on a machine too large to replay, would take too long.
    #[error(
        "tracing the rank's blocks back would take {needed} steps, more than the limit of {limit}"
    )]
    Tracing {
        /// Steps back.
        needed: u128,
        /// The limit.
        limit: u128,
    },
    /// A schedule with a violation, whose blocks cannot be written.
    #[error("an invalid schedule cannot be written: {0}")]
    Broken(crate::Violation),
    /// Split blocks, which the method `classes` does not follow.
    #[error(
        "blocks are split at byte {cut}: the method `classes` follows whole blocks only; use `replay`"
    )]
    Split {
        /// The first byte offset at which blocks are split.
        cut: u64,
    },
    /// Groups that exchange at the same time, which the method `classes` does not follow.
    #[error(
        "the method `classes` follows an exchange of all ranks, and this is one within groups; use `replay`"
    )]
    Groups,
    /// A schedule that splits blocks, with a demand matrix.
    #[error("the schedule splits blocks at byte {cut}: with a demand matrix blocks travel whole")]
    SplitDemand {
        /// The first byte offset at which blocks are split.
        cut: u64,
    },
    /// A schedule that names no blocks, as from a file of sizes.
    #[error("the schedule has sizes of messages but no blocks")]
    NoBlocks,
    /// A listing too large to write.
    #[error("the listing would be {bytes} bytes, more than the limit of {limit}")]
    Listing {
        /// Bytes of the listing, an estimate.
        bytes: u128,
        /// The limit.
        limit: u128,
    },
    /// A machine or schedule that a format cannot express.
    #[error("this format does not support {what}")]
    Unwritten {
        /// What it is.
        what: &'static str,
    },
    /// Several routes for a pair of ranks, in a format with one.
    #[error(
        "step {step}: rank {from} sends to rank {to} by another route than before: this format has one route for each pair"
    )]
    TwoRoutes {
        /// The sender.
        from: topocoll_topology::Rank,
        /// The receiver.
        to: topocoll_topology::Rank,
        /// The step of the second route.
        step: u32,
    },
    /// The output cannot be written.
    #[error("cannot write: {reason}")]
    Write {
        /// The system's kind of error.
        kind: std::io::ErrorKind,
        /// Its words.
        reason: String,
    },
    /// An unknown parameter of a model.
    #[error("unknown parameter `{name}`: models have {}", known.join(", "))]
    Parameter {
        /// The name given.
        name: String,
        /// The known names.
        known: Vec<&'static str>,
    },
    /// A value out of range.
    #[error("{name}={value}: {rule}")]
    Setting {
        /// The parameter.
        name: &'static str,
        /// The value given.
        value: String,
        /// The rule for values.
        rule: &'static str,
    },
    /// A traffic pattern that is unknown, or does not fit the machine.
    #[error("traffic `{text}`: {rule}")]
    Pattern {
        /// The pattern.
        text: String,
        /// The rule.
        rule: String,
    },
    /// An invalid placement of ranks on nodes.
    #[error("placement: {what}")]
    Placement {
        /// The rank, the node, and the rule.
        what: String,
    },
    /// A model of routers on a machine without links.
    #[error(
        "the {model} model requires a grid or a graph between the nodes, which {topology} is not"
    )]
    NeedsLinks {
        /// The model.
        model: &'static str,
        /// The machine.
        topology: String,
    },
    /// Routes on a graph that require more virtual channels than its links have.
    #[error(
        "vcs={vcs}: the routes on {topology} require {required} virtual channels, or messages may deadlock"
    )]
    VirtualChannels {
        /// The machine.
        topology: String,
        /// The number required.
        required: u32,
        /// The number of a link.
        vcs: u32,
    },
    /// Classes of ranks where they do not give the exact result.
    #[error("the {model} model simulates every rank here: {rule}")]
    Classes {
        /// The model.
        model: &'static str,
        /// The reason.
        rule: &'static str,
    },
    /// A model that does not divide messages, with endpoints that do.
    #[error("the {model} model does not divide messages: {name} requires the flit or fluid model")]
    Packets {
        /// The model.
        model: &'static str,
        /// The value of the endpoint.
        name: &'static str,
    },
    /// A routing that a model does not have, or that could deadlock.
    #[error("{rule}")]
    Routing {
        /// The rule.
        rule: String,
    },
    /// Routers too large to simulate.
    #[error("{inputs} virtual channels into each router: the flit model has at most {most}")]
    Inputs {
        /// The virtual channels of all inputs together.
        inputs: u64,
        /// The limit.
        most: u64,
    },
    /// A time out of range.
    #[error("times are out of range: {what}")]
    Time {
        /// The time and the limit.
        what: String,
    },
    /// A rank waits for a message that is not sent.
    #[error(
        "rank {rank} never ends step {step}: it waits for a message that is not sent in that step"
    )]
    Unpaired {
        /// The rank.
        rank: u32,
        /// The step.
        step: u32,
    },
}

/// The error for a failure to write.
pub(crate) fn failed(error: impl Into<std::io::Error>) -> AnalysisError {
    let error = error.into();
    AnalysisError::Write { kind: error.kind(), reason: error.to_string() }
}

/// Checks that `needed` work is at most `limit`.
///
/// # Errors
/// [`AnalysisError::Work`] with `what`.
pub fn check_work(what: &'static str, needed: u128, limit: u128) -> Result<(), AnalysisError> {
    if needed > limit {
        return Err(AnalysisError::Work { what, needed, limit });
    }
    Ok(())
}

/// Bytes of all threads, of which each takes `bytes`.
pub(crate) fn by_all_threads(bytes: u128) -> u128 {
    bytes * parallel::threads() as u128
}

/// Checks that `needed` bytes are at most `memory`.
///
/// # Errors
/// [`AnalysisError::Memory`] with `what`.
pub fn check_memory(what: &'static str, needed: u128, memory: u128) -> Result<(), AnalysisError> {
    if needed > memory {
        return Err(AnalysisError::Memory { what, needed, memory });
    }
    Ok(())
}

/// Checks that a machine has `ranks` ranks.
///
/// # Errors
/// [`AnalysisError::Ranks`].
pub fn check_ranks(ranks: u32, machine: &Machine) -> Result<(), AnalysisError> {
    match machine.ranks() {
        machine if machine != ranks => Err(AnalysisError::Ranks { ranks, machine }),
        _ => Ok(()),
    }
}

/// Refuses a schedule of groups, for a format of exchanges of all ranks.
pub(crate) fn check_of_all(schedule: &Schedule) -> Result<(), AnalysisError> {
    let what = "groups that exchange at the same time";
    if schedule.groups().is_none() { Ok(()) } else { Err(AnalysisError::Unwritten { what }) }
}

/// Refuses a schedule that names no blocks, as its delivery cannot be verified.
pub(crate) fn check_named(schedule: &Schedule) -> Result<(), AnalysisError> {
    if schedule.rule().names_blocks() { Ok(()) } else { Err(AnalysisError::NoBlocks) }
}
