use topocoll_schedule::{Block, Rule, Slot};
use topocoll_topology::Rank;

/// The first violation of a schedule, in order of step, rank and slot: a counterexample.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The initial layout misses a block, or has one twice or at the wrong rank.
    #[error(
        "initial layout: before the first step rank {rank} holds block {block} {times} times, expected once"
    )]
    Start {
        /// The rank.
        rank: Rank,
        /// The block.
        block: Block,
        /// The number of its slots that hold it.
        times: u32,
    },
    /// A slot number past the end of the buffer.
    #[error("step {step}: rank {rank} uses slot {slot}: the last slot is {}", slots - 1)]
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
    /// A message, or a copy, whose two ends list different slots or parts.
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
    /// A slot written twice in one step.
    #[error("step {step}: rank {rank} writes slot {slot} twice at once")]
    WrittenTwice {
        /// The step.
        step: u32,
        /// The rank.
        rank: Rank,
        /// The slot.
        slot: Slot,
    },
    /// An empty slot that is sent or copied.
    #[error("step {step}: rank {rank} sends slot {slot}, which is empty")]
    Empty {
        /// The step.
        step: u32,
        /// The rank.
        rank: Rank,
        /// The slot.
        slot: Slot,
    },
    /// A listed message whose sender, or receiver, breaks a rule for one of its blocks.
    #[error(
        "message {message} (line {} in JSON lines): step {step}, rank {rank}, block {block}: {rule}",
        u64::from(*message) + 2
    )]
    Listed {
        /// The number of the message, from 0.
        message: u32,
        /// The step.
        step: u32,
        /// The sender, or the receiver.
        rank: Rank,
        /// The block.
        block: Block,
        /// The rule, in words.
        rule: &'static str,
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
    /// A block with no slot in the final layout.
    #[error("delivery fails: after the last step rank {rank} has no slot for block {block}")]
    NoPlace {
        /// The rank.
        rank: Rank,
        /// The block.
        block: Block,
    },
    /// A slot that holds another block at the end, or none.
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
        /// The block of the final layout.
        expected: Block,
        /// The block it holds, if any.
        found: Option<Block>,
        /// The step that last wrote it, and the sender, if it was written.
        written: Option<(u32, Rank)>,
    },
    /// A block that is overwritten before it is passed on.
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
    /// A rank that is not equivalent to the representative of its class.
    #[error(
        "step {step}: rank {rank} is not equivalent to rank {representative}, which represents its class"
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

impl Violation {
    /// The same by block and message where `of` lists messages, whose slots have no names in their list.
    pub(crate) fn in_list(self, of: &dyn Rule) -> Self {
        let (step, rank, slot, sends, rule) = match self {
            Self::Empty { step, rank, slot } => {
                (step, rank, slot, true, "the sender does not hold it")
            }
            Self::WrittenTwice { step, rank, slot } => {
                (step, rank, slot, false, "it arrives twice in one step")
            }
            Self::Undelivered { rank, slot, found: None, written: Some((step, _)), .. } => {
                (step, rank, slot, false, "only some of its bytes have arrived at the end")
            }
            other => return other,
        };
        match of.listed(step, rank, slot, sends) {
            Some((message, block)) => Self::Listed { message, step, rank, block, rule },
            None => self,
        }
    }
}
