use std::fmt;
use std::str::FromStr;

use topocoll_topology::{Ports, Rank, Shape, Topology};

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

    /// The name, or the name with hyphens: `all-to-all`, `all-gather`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "alltoall" | "all-to-all" => Ok(Self::AllToAll),
            "allgather" | "all-gather" => Ok(Self::AllGather),
            _ => Err(ScheduleError::Operation(text.to_owned())),
        }
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
    /// Messages a node of several ranks may send to, and receive from, other nodes in one step.
    pub node_ports: u32,
    /// Bytes of one block, `b` or `m` in the papers.
    pub block_bytes: u64,
}

impl Problem {
    /// The problem with these numbers; one number of ports is that of a rank and of a node. More
    /// than `ranks - 1` ports of a rank are `ranks - 1`, and more than `ranks^2 / 4` of a node, the
    /// most messages between two halves of the ranks, are that.
    ///
    /// # Errors
    /// No ranks or ports, or a block of no bytes or more than [`MAX_BLOCK_BYTES`].
    pub fn new(
        operation: Collective,
        ranks: u32,
        ports: impl Into<Ports>,
        block_bytes: u64,
    ) -> Result<Self, ScheduleError> {
        if ranks == 0 {
            return Err(ScheduleError::NoRanks);
        }
        let Ports { rank, node } = ports.into();
        if rank == 0 || node == 0 {
            return Err(ScheduleError::NoPorts);
        }
        if block_bytes == 0 || block_bytes > MAX_BLOCK_BYTES {
            return Err(ScheduleError::BlockBytes(block_bytes));
        }
        let most = u64::from(ranks).pow(2) / 4;
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let (ports, node_ports) = (rank.min(ranks - 1).max(1), node.min(most).max(1));
        Ok(Self { operation, ranks, ports, node_ports, block_bytes })
    }

    /// The ports of a rank and of a node.
    #[must_use]
    pub fn both_ports(&self) -> Ports {
        Ports { rank: self.ports, node: self.node_ports }
    }

    /// Bytes per second and rank of an exchange that takes this many seconds: the algorithm bandwidth
    /// `n x block / time` of n ranks and the bus bandwidth `(n - 1) x block / time`, as nccl-tests define them.
    #[must_use]
    pub fn bandwidth(&self, seconds: f64) -> [f64; 2] {
        let rate = |blocks: u32| f64::from(blocks) * self.block_bytes as f64 / seconds;
        [rate(self.ranks), rate(self.ranks.saturating_sub(1))]
    }

    /// The ports of a node, where nodes hold several ranks and have other ports than these.
    #[must_use]
    pub fn own_node_ports(&self, topology: &dyn Topology) -> Option<u32> {
        let several = matches!(topology.shape(), Shape::Clustered(_)) && topology.nodes() > 1;
        (several && self.node_ports != self.ports).then_some(self.node_ports)
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
