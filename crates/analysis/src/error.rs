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
    /// It would take longer than anyone waits, unless asked for explicitly.
    #[error(
        "{what} would visit {needed} messages or slots, more than the {limit} that are visited unasked"
    )]
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
    /// The classes method follows whole blocks only.
    #[error(
        "blocks are split at byte {cut}: the method `classes` follows whole blocks, `replay` follows parts too"
    )]
    Split {
        /// The first byte offset at which blocks are split.
        cut: u64,
    },
    /// A listing too large to write.
    #[error("the listing would be {bytes} bytes, more than the {limit} that are written")]
    Listing {
        /// Bytes of the listing, estimated.
        bytes: u128,
        /// The limit.
        limit: u128,
    },
    /// The output cannot be written.
    #[error("cannot write: {0}")]
    Write(String),
}
