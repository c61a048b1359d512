use crate::MAX_BLOCK_BYTES;

/// Why a problem, a demand matrix or a recorded schedule is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// No such operation.
    #[error("unknown operation `{0}`: one of alltoall, allgather")]
    Operation(String),
    /// No ranks.
    #[error("0 ranks: an exchange has at least one rank")]
    NoRanks,
    /// No port.
    #[error("0 ports: a rank needs at least one to send and receive")]
    NoPorts,
    /// A block size out of range.
    #[error("block of {0} bytes: a block has between 1 and {MAX_BLOCK_BYTES}")]
    BlockBytes(u64),
    /// An unknown law of sizes, or no seed.
    #[error(
        "demand `{0}` is not one of uniform:SEED, power-law:SEED, sparse:SEED, experts:SEED, neighbours:SEED, zipf:EXPONENT,.."
    )]
    Demand(String),
    /// A value of routed tokens.
    #[error("demand zipf: {key} is `{value}`: {rule}")]
    Routed {
        /// Its key.
        key: String,
        /// The value, empty if it is missing.
        value: String,
        /// What it must be.
        rule: String,
    },
    /// A line of a file that is not valid, or contradicts the lines before it.
    #[error("line {line}: {message}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// The value, the rule and the place in the line.
        message: String,
    },
}
