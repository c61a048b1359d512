/// Why a schedule cannot be read as asked.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// It would not fit in memory.
    #[error("{what} would take {needed} bytes, and {memory} may be used")]
    Memory {
        /// What takes the memory.
        what: &'static str,
        /// Bytes needed.
        needed: u128,
        /// Bytes allowed.
        memory: u128,
    },
    /// A schedule, or messages, of another machine.
    #[error("what is asked about has {ranks} ranks, and the machine has {machine}")]
    Ranks {
        /// The ranks of the schedule.
        ranks: u32,
        /// Those of the machine.
        machine: u32,
    },
    /// More ranks than have blocks of their own numbers.
    #[error("a full replay numbers the blocks of at most {most} ranks, and there are {ranks}")]
    Replayed {
        /// The ranks.
        ranks: u32,
        /// The limit.
        most: u32,
    },
    /// It would take longer than anyone waits; some readers can be asked for it all the same.
    #[error("{what} would visit {needed} messages or slots, more than the limit of {limit}")]
    Work {
        /// What takes the time.
        what: &'static str,
        /// Messages or slots visited.
        needed: u128,
        /// The limit.
        limit: u128,
    },
    /// The blocks of one rank of a machine too large to replay take too long to trace back.
    #[error(
        "tracing where the rank's blocks come from would take {needed} steps back, more than the {limit} that are taken"
    )]
    Tracing {
        /// Steps back.
        needed: u128,
        /// The limit.
        limit: u128,
    },
    /// A schedule that cannot be written block by block, as nobody knows which those are.
    #[error("a schedule that breaks its own rules is not written: {0}")]
    Broken(crate::Violation),
    /// The classes method follows whole blocks only.
    #[error(
        "blocks are split at byte {cut}: the method `classes` follows whole blocks, `replay` follows parts too"
    )]
    Split {
        /// The first byte offset at which blocks are split.
        cut: u64,
    },
    /// A schedule that splits blocks, with a demand matrix.
    #[error("the schedule splits blocks at byte {cut}: with a demand matrix blocks travel whole")]
    SplitDemand {
        /// The first byte offset at which blocks are split.
        cut: u64,
    },
    /// A schedule that was read from a file of sizes.
    #[error("the schedule has the sizes of messages, and not the blocks in them")]
    NoBlocks,
    /// A listing too large to write.
    #[error("the listing would be {bytes} bytes, more than the {limit} that are written")]
    Listing {
        /// Bytes of the listing, estimated.
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
    /// A format that has one route for each pair.
    #[error(
        "step {step}: rank {from} sends to rank {to} by another route than before, and this format has one route for each pair"
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
    #[error("cannot write: {0}")]
    Write(String),
    /// A name that no model's parameter has.
    #[error("no parameter `{name}`: models have {}", known.join(", "))]
    Parameter {
        /// The name given.
        name: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// A value out of range.
    #[error("{name}={value}: {rule}")]
    Setting {
        /// The parameter.
        name: &'static str,
        /// The value given.
        value: String,
        /// What it may be.
        rule: &'static str,
    },
    /// A traffic pattern that there is not, or not here.
    #[error("traffic `{text}`: {rule}")]
    Pattern {
        /// What was asked for.
        text: String,
        /// What there is.
        rule: String,
    },
    /// Ranks that cannot sit where they are put.
    #[error("placement: {what}")]
    Placement {
        /// The rank, the node, and why.
        what: String,
    },
    /// A model of links on a machine that has none to share.
    #[error(
        "the {model} model requires a torus or mesh without twists and faults, which {topology} is not"
    )]
    NeedsGrid {
        /// The model.
        model: &'static str,
        /// The machine.
        topology: String,
    },
    /// Routers too large to simulate.
    #[error("{inputs} virtual channels into each router: the flit model has at most {most}")]
    Inputs {
        /// Those of all inputs together.
        inputs: u64,
        /// The limit.
        most: u64,
    },
    /// A time out of range.
    #[error("times are out of range: {what}")]
    Time {
        /// Which, and the limit.
        what: String,
    },
    /// A rank waits for a message that nobody sends.
    #[error(
        "rank {rank} never ends step {step}: a message it is to receive is not sent in that step"
    )]
    Unpaired {
        /// The rank.
        rank: u32,
        /// The step.
        step: u32,
    },
}

/// The error of a failure to write.
pub(crate) fn failed(error: impl std::fmt::Display) -> AnalysisError {
    AnalysisError::Write(error.to_string())
}

/// Refuses what would take longer than anyone waits, before it begins.
///
/// # Errors
/// [`AnalysisError::Work`], of what.
pub fn check_work(what: &'static str, needed: u128, limit: u128) -> Result<(), AnalysisError> {
    if needed > limit {
        return Err(AnalysisError::Work { what, needed, limit });
    }
    Ok(())
}

/// Bytes that all threads take of which each takes so many.
pub(crate) fn by_all_threads(bytes: u128) -> u128 {
    bytes * rayon::current_num_threads() as u128
}

/// Refuses what would take more bytes than may be used, before they are taken.
///
/// # Errors
/// [`AnalysisError::Memory`], of what.
pub fn check_memory(what: &'static str, needed: u128, memory: u128) -> Result<(), AnalysisError> {
    if needed > memory {
        return Err(AnalysisError::Memory { what, needed, memory });
    }
    Ok(())
}
