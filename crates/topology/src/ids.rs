use std::fmt;

/// One process of the machine, numbered densely from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Rank(pub u32);

/// One of a rank's ports, numbered densely from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Port(pub u32);

/// The number of a directed link of a grid or graph.
///
/// The links that leave a node or switch have consecutive numbers. On a side that does not wrap, the numbers
/// of links that would leave the grid are unused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u64);

/// A directed link of a grid or graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Link {
    /// The node or switch that it leaves. Nodes come first, switches after them.
    pub from: u32,
    /// The node or switch that it enters.
    pub to: u32,
    /// Its class on the network; on grids and lattices the dimension that it runs along.
    pub class: u32,
    /// On grids and lattices +1 toward the higher coordinate, else -1; 0 on other graphs.
    pub direction: i64,
}

impl Rank {
    /// The rank as an index into a slice with one entry per rank.
    #[must_use]
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
