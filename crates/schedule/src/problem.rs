use std::fmt;
use std::str::FromStr;

use topocoll_topology::Rank;

use crate::ScheduleError;

/// The largest block, 2^40 bytes.
pub const MAX_BLOCK_BYTES: u64 = 1 << 40;

/// The operation of an exchange. Exhaustive, as every reader must support all of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Collective {
    /// Every rank has one block for every rank: MPI_Alltoall. The papers call it index operation,
    /// complete exchange or all-to-all personalized communication.
    AllToAll,
    /// Every rank has one block for all ranks: MPI_Allgather. The papers call it concatenation.
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

/// The identity of a block: the data that `from` has for `to`.
///
/// In an all-gather a rank has one block for all ranks, written with `to == from`. Schedules name
/// slots; only readers that verify or write files name blocks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Block {
    /// The rank that has it at the start.
    pub from: Rank,
    /// The rank that needs it at the end.
    pub to: Rank,
}

impl Block {
    /// The one block of `rank` in an all-gather.
    #[must_use]
    #[inline]
    pub fn of(rank: Rank) -> Self {
        Self { from: rank, to: rank }
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}->{}", self.from, self.to)
    }
}

/// The problem that an algorithm solves: an operation among ranks with ports, on blocks of one
/// size.
///
/// [`new`](Self::new) checks the numbers. Code that changes one must keep its rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Problem {
    /// The operation.
    pub operation: Collective,
    /// Ranks taking part, `n` in the papers.
    pub ranks: u32,
    /// Messages a rank may send, and receive, in one step, `k` in the papers.
    pub ports: u32,
    /// Bytes of one block, `b` or `m` in the papers.
    pub block_bytes: u64,
}

impl Problem {
    /// The problem with these numbers. More than `ranks - 1` ports are `ranks - 1`.
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

    /// The number of blocks that a rank has at the start.
    #[must_use]
    #[inline]
    pub fn blocks_at_start(&self) -> u32 {
        match self.operation {
            Collective::AllToAll => self.ranks,
            Collective::AllGather => 1,
        }
    }

    /// The block of `from` that `rank` needs at the end.
    #[must_use]
    #[inline]
    pub fn wanted(&self, from: Rank, rank: Rank) -> Block {
        match self.operation {
            Collective::AllToAll => Block { from, to: rank },
            Collective::AllGather => Block::of(from),
        }
    }
}
