use topocoll_schedule::{Block, Slot};
use topocoll_topology::Rank;

/// The first thing found wrong with a schedule, in step, rank, slot order: a counterexample.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The layout at the start leaves out a block, or lists one twice or at the wrong rank.
    #[error(
        "layout fails: before the first step rank {rank} holds block {block} {times} times, expected once"
    )]
    Start {
        /// The rank.
        rank: Rank,
        /// The block.
        block: Block,
        /// How often its slots hold it.
        times: u32,
    },
    /// A slot number past the end of the buffer.
    #[error("step {step}: rank {rank} uses slot {slot}, and slots end at {}", slots - 1)]
    OutOfRange {
        /// The step.
        step: u32,
        /// The rank.
        rank: Rank,
        /// The slot.
        slot: i128,
        /// Slots of a buffer.
        slots: u64,
    },
    /// A receive without its send.
    #[error("step {step}: rank {to} receives from rank {from}, which does not send to it")]
    NoSend {
        /// The step.
        step: u32,
        /// The supposed sender.
        from: Rank,
        /// The receiver.
        to: Rank,
    },
    /// A send without its receive.
    #[error("step {step}: rank {from} sends to rank {to}, which does not receive it")]
    NoReceive {
        /// The step.
        step: u32,
        /// The sender.
        from: Rank,
        /// The supposed receiver.
        to: Rank,
    },
    /// A message, or a copy, whose two ends list different amounts.
    #[error(
        "step {step}: the message from rank {from} to rank {to} leaves with other slots or bytes than it arrives with"
    )]
    Sizes {
        /// The step.
        step: u32,
        /// The sender.
        from: Rank,
        /// The receiver; the sender itself for a local copy.
        to: Rank,
    },
    /// A slot written twice at once.
    #[error("step {step}: rank {rank} writes slot {slot} twice at once")]
    WrittenTwice {
        /// The step.
        step: u32,
        /// The rank.
        rank: Rank,
        /// The slot.
        slot: Slot,
    },
    /// A slot that is sent or copied while it holds nothing.
    #[error("step {step}: rank {rank} sends slot {slot}, which holds nothing")]
    Empty {
        /// The step.
        step: u32,
        /// The rank.
        rank: Rank,
        /// The slot.
        slot: Slot,
    },
    /// A route that does not lead to the receiver.
    #[error("step {step}: the route from rank {from} does not lead to rank {to}")]
    Misrouted {
        /// The step.
        step: u32,
        /// The sender.
        from: Rank,
        /// The receiver.
        to: Rank,
    },
    /// No slot is to hold a block at the end.
    #[error("delivery fails: after the last step rank {rank} has no slot for block {block}")]
    NoPlace {
        /// The rank.
        rank: Rank,
        /// The block.
        block: Block,
    },
    /// A slot that holds something else at the end.
    #[error(
        "delivery fails: rank {rank}, slot {slot} holds {}, expected block {expected}{}",
        found.map_or("nothing".to_owned(), |block| format!("block {block}")),
        written.map_or(String::new(), |(step, from)| format!("; last written in step {step} by rank {from}"))
    )]
    Undelivered {
        /// The rank.
        rank: Rank,
        /// The slot.
        slot: Slot,
        /// What it should hold.
        expected: Block,
        /// What it holds.
        found: Option<Block>,
        /// The step and rank that last wrote it, if anyone did.
        written: Option<(u32, Rank)>,
    },
    /// A block lost on the way: its slot is overwritten while the block waits in it.
    #[error(
        "step {step}: rank {rank} overwrites slot {slot} while it still holds the block that rank {from} sent out in slot {start}"
    )]
    Overwritten {
        /// The step.
        step: u32,
        /// The rank.
        rank: Rank,
        /// The slot.
        slot: Slot,
        /// The block's source.
        from: Rank,
        /// The slot it started in.
        start: Slot,
    },
    /// A rank that does not act as its class does.
    #[error(
        "step {step}: rank {rank} does not act as rank {representative}, which stands for its class"
    )]
    ClassBroken {
        /// The step.
        step: u32,
        /// The rank.
        rank: Rank,
        /// The representative of its class.
        representative: Rank,
    },
}
