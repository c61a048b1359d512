use std::fmt;
use std::str::FromStr;

use topocoll_topology::Rank;

use crate::ScheduleError;

/// The largest block, 2^40 bytes.
pub const MAX_BLOCK_BYTES: u64 = 1 << 40;

/// What an exchange achieves. Exhaustive: every reader has to know what it reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Collective {
    /// Every rank has one block for every rank: the papers' index operation, complete exchange or
    /// all-to-all personalized communication; MPI's alltoall.
    AllToAll,
    /// Every rank has one block that every rank is to hold: the papers' concatenation; MPI's
    /// allgather.
    AllGather,
}

impl Collective {
    /// The name on the command line and in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AllToAll => "alltoall",
            Self::AllGather => "allgather",
        }
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Collective {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::AllToAll, Self::AllGather]
            .into_iter()
            .find(|operation| operation.name() == text)
            .ok_or_else(|| ScheduleError::Operation(text.to_owned()))
    }
}

/// Identity of data: the block that `from` has for `to`.
///
/// In an all-gather the one block of a rank is for everybody; it is written with `to == from`.
/// Only verifiers and exporters speak of blocks; schedules speak of slots.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Block {
    /// The rank that has it at the start.
    pub from: Rank,
    /// The rank that is to have it at the end.
    pub to: Rank,
}

impl Block {
    /// The one block of `rank` in an all-gather.
    #[must_use]
    pub fn of(rank: Rank) -> Self {
        Self { from: rank, to: rank }
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}->{}", self.from, self.to)
    }
}

/// What is asked of an algorithm: an operation among ranks with ports, on blocks of one size.
///
/// [`new`](Self::new) checks the numbers; whoever changes one keeps its rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Problem {
    /// The exchange.
    pub operation: Collective,
    /// Ranks taking part, `n` in the papers.
    pub ranks: u32,
    /// Messages a rank may send, and receive, in one step, `k` in the papers.
    pub ports: u32,
    /// Bytes of one block, `b` or `m` in the papers.
    pub block_bytes: u64,
}

impl Problem {
    /// A problem, after checking its numbers.
    ///
    /// # Errors
    /// No ranks or ports, or a block of no bytes or more than [`MAX_BLOCK_BYTES`].
    pub fn new(
        operation: Collective,
        ranks: u32,
        ports: u32,
        block_bytes: u64,
    ) -> Result<Self, ScheduleError> {
        if ranks == 0 {
            return Err(ScheduleError::NoRanks);
        }
        if ports == 0 {
            return Err(ScheduleError::NoPorts);
        }
        if block_bytes == 0 || block_bytes > MAX_BLOCK_BYTES {
            return Err(ScheduleError::BlockBytes(block_bytes));
        }
        Ok(Self { operation, ranks, ports: ports.min(ranks - 1).max(1), block_bytes })
    }

    /// The blocks that `rank` has at the start.
    #[must_use]
    pub fn blocks_at_start(&self) -> u32 {
        match self.operation {
            Collective::AllToAll => self.ranks,
            Collective::AllGather => 1,
        }
    }

    /// The block of `from` that `rank` is to have at the end.
    #[must_use]
    pub fn wanted(&self, from: Rank, rank: Rank) -> Block {
        match self.operation {
            Collective::AllToAll => Block { from, to: rank },
            Collective::AllGather => Block::of(from),
        }
    }
}
