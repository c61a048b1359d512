use std::time::Duration;

use topocoll_topology::Rank;

/// Bytes of a memory that are numbered: offsets are added to once more.
pub(crate) const MOST_BYTES: u64 = u64::MAX / 4;

/// Why a rank's share of a schedule cannot be run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// No such rank.
    #[error("rank {rank}: there are ranks 0 to {}", i64::from(*ranks) - 1)]
    Rank {
        /// The rank asked for.
        rank: Rank,
        /// How many there are.
        ranks: u32,
    },
    /// A schedule that was read from a file of sizes.
    #[error(
        "the schedule has the sizes of messages, and not the blocks in them: nothing can be moved by it"
    )]
    NoBlocks,
    /// More slots and ranks than a plan numbers.
    #[error("{slots} slots of a rank and {ranks} ranks: together they are at most {most}")]
    Slots {
        /// Slots of one rank.
        slots: u64,
        /// Ranks.
        ranks: u32,
        /// The limit.
        most: u64,
    },
    /// More messages or steps than a plan numbers.
    #[error("{count} {what}: a plan numbers at most {most}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        count: u64,
        /// The limit.
        most: u64,
    },
    /// A layout or a message names a slot that is not there.
    #[error("rank {rank}, step {step}: slot {slot} of {slots}")]
    Slot {
        /// The rank planned for.
        rank: Rank,
        /// The step.
        step: u32,
        /// The slot named.
        slot: u64,
        /// How many there are.
        slots: u64,
    },
    /// A slot is sent or copied before anything is in it.
    #[error("rank {rank}, step {step}: slot {slot} is read, and holds nothing yet")]
    Empty {
        /// The rank planned for.
        rank: Rank,
        /// The step.
        step: u32,
        /// The slot.
        slot: u64,
    },
    /// A block that never arrives.
    #[error("rank {rank} never gets the block of rank {from}")]
    NotDelivered {
        /// The rank planned for.
        rank: Rank,
        /// Whose block.
        from: Rank,
    },
    /// A rank that is not in the subset.
    #[error("rank {rank} is not in the subset of {size} ranks")]
    NotInSubset {
        /// The rank.
        rank: Rank,
        /// Ranks of the subset.
        size: usize,
    },
    /// A subset of another number of ranks than the schedule's.
    #[error("a subset of {size} ranks for a schedule of {ranks} ranks")]
    SubsetSize {
        /// Ranks of the subset.
        size: usize,
        /// Ranks of the schedule.
        ranks: u32,
    },
    /// Sizes that are not one for each block.
    #[error("rank {rank}: {sizes} sizes for the {blocks} blocks of its {what}")]
    Sizes {
        /// The rank planned for.
        rank: Rank,
        /// Of which buffer.
        what: &'static str,
        /// Sizes given.
        sizes: usize,
        /// Blocks that there are.
        blocks: u32,
    },
    /// Sizes for a schedule that splits blocks.
    #[error(
        "rank {rank}: the schedule splits blocks at byte {cut}; blocks of several sizes travel whole"
    )]
    Split {
        /// The rank planned for.
        rank: Rank,
        /// Where.
        cut: u64,
    },
    /// Sizes for an exchange in place.
    #[error("rank {rank}: an exchange in place has blocks of one size")]
    InPlace {
        /// The rank planned for.
        rank: Rank,
    },
    /// Blocks of other ranks, whose sizes the rank does not know.
    #[error(
        "rank {rank}, step {step}: blocks of other ranks pass through; their sizes are unknown"
    )]
    Passes {
        /// The rank planned for.
        rank: Rank,
        /// The step in which one is received.
        step: u32,
    },
    /// Buffers too large to address.
    #[error("rank {rank}: its blocks together have more bytes than are numbered, {MOST_BYTES}")]
    Bytes {
        /// The rank planned for.
        rank: Rank,
    },
    /// A block that a rank keeps, of two sizes.
    #[error(
        "rank {rank}: its own block has {given} bytes among the blocks to send, and {wanted} among those to receive"
    )]
    OwnBlock {
        /// The rank planned for.
        rank: Rank,
        /// Its bytes in the input.
        given: u64,
        /// Its bytes in the output.
        wanted: u64,
    },
    /// A message that its sender does not send, or not with as many blocks.
    #[error("rank {rank}, step {step}: rank {peer} does not send the message that is received")]
    Unpaired {
        /// The rank planned for.
        rank: Rank,
        /// The step.
        step: u32,
        /// The sender.
        peer: Rank,
    },
}

/// Why an exchange stops.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecError {
    /// Memory of the wrong size.
    #[error("rank {rank}: the {buffer} buffer has {bytes} bytes, and the exchange needs {needed}")]
    Buffer {
        /// The rank.
        rank: Rank,
        /// Which one.
        buffer: &'static str,
        /// Bytes given.
        bytes: u128,
        /// Bytes needed.
        needed: u128,
    },
    /// Blocks of another size than the exchange's.
    #[error("rank {rank}: the {buffer}'s blocks have {bytes} bytes, and the exchange's {needed}")]
    Block {
        /// The rank.
        rank: Rank,
        /// Of which buffer.
        buffer: &'static str,
        /// A block's bytes.
        bytes: u64,
        /// Those of the exchange.
        needed: u64,
    },
    /// An array that is not an array of blocks.
    #[error("shape {shape:?} with strides {strides:?}: blocks need {rule}")]
    Layout {
        /// Its shape.
        shape: Vec<usize>,
        /// Its strides, in elements.
        strides: Vec<isize>,
        /// The rule that they break.
        rule: &'static str,
    },
    /// A view that does not fit its buffer.
    #[error("the {buffer} view spans {span} bytes of a buffer of {bytes}; it needs {rule}")]
    View {
        /// Of which buffer.
        buffer: &'static str,
        /// Bytes up to its last element's end.
        span: usize,
        /// The buffer's.
        bytes: usize,
        /// The rule that it breaks.
        rule: &'static str,
    },
    /// Memory of equal blocks for blocks of several sizes.
    #[error(
        "rank {rank}: the {buffer} buffer has blocks of {bytes} bytes each, and the exchange has blocks of several sizes"
    )]
    EqualBlocks {
        /// The rank.
        rank: Rank,
        /// Which one.
        buffer: &'static str,
        /// Bytes of a block of it.
        bytes: u64,
    },
    /// Memories too large to address.
    #[error("rank {rank}: its {buffer} has {bytes} bytes, and {MOST_BYTES} are numbered")]
    TooLarge {
        /// The rank.
        rank: Rank,
        /// Which memory.
        buffer: &'static str,
        /// Bytes needed.
        bytes: u128,
    },
    /// Sizes of blocks that were planned for other messages.
    #[error("rank {rank}: its block sizes were planned for another plan")]
    OtherPlan {
        /// The rank.
        rank: Rank,
    },
    /// A fault of a rank in a step.
    #[error("rank {rank}, step {step}: {fault}")]
    InStep {
        /// The rank.
        rank: Rank,
        /// The step.
        step: u32,
        /// The fault.
        fault: StepFault,
    },
    /// Threads that the system does not start.
    #[error("cannot start {threads} more threads: {reason}")]
    Threads {
        /// How many, beside the caller's.
        threads: usize,
        /// The system's reason.
        reason: String,
    },
    /// More memory than is available.
    #[error("{needed} bytes of memory, but the limit is {available}")]
    Memory {
        /// Bytes needed.
        needed: u128,
        /// Bytes available.
        available: u128,
    },
}

/// What goes wrong in a step.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepFault {
    /// A message of another length than the schedule says.
    #[error("{bytes} bytes to or from rank {peer}, and the message has {expected}")]
    Length {
        /// The other end.
        peer: Rank,
        /// Bytes that moved.
        bytes: u64,
        /// Bytes of the message.
        expected: u64,
    },
    /// An error of the transport.
    #[error("rank {peer}: {reason}")]
    Transport {
        /// The other end.
        peer: Rank,
        /// Its reason.
        reason: String,
    },
    /// A message that no receive matches.
    #[error("a message of tag {tag} from rank {peer}, which sends none")]
    Unexpected {
        /// Its sender.
        peer: Rank,
        /// Its tag.
        tag: u32,
    },
    /// A rank that has failed in this exchange, or gone on to a later one.
    #[error("rank {peer} has left the exchange")]
    Left {
        /// The rank that it waits for.
        peer: Rank,
    },
    /// The transport's own barrier before the step did not end, or not in time.
    #[error("the barrier before it: {reason}")]
    Barrier {
        /// The transport's reason.
        reason: String,
    },
    /// The deadline passed.
    #[error("nothing from rank {peer} within {} s", within.as_secs_f64())]
    Deadline {
        /// A rank that it waits for.
        peer: Rank,
        /// The time given.
        within: Duration,
    },
    /// All ranks wait; this is the lowest.
    #[error("waits for rank {peer}, and no rank can go on")]
    Stalled {
        /// The rank that it waits for.
        peer: Rank,
    },
    /// A token of no outstanding message.
    #[error("token {token} is not outstanding")]
    Token {
        /// The token.
        token: u64,
    },
    /// The exchange was cancelled, or stopped by an error before.
    #[error("the exchange was stopped")]
    Stopped,
}
