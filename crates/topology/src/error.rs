use crate::{MAX_DIMENSIONS, Rank};

/// Why a topology or a subset of its ranks cannot be built, or a topology timed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// A fully connected machine of no ranks.
    #[error("0 ranks: a machine has at least one")]
    NoRanks,
    /// A subset without ranks.
    #[error("0 ranks: a subset has at least one")]
    EmptySubset,
    /// A rank that the machine does not have.
    #[error("rank {rank}: there are ranks 0 to {}", i64::from(*ranks) - 1)]
    NoSuchRank {
        /// The rank.
        rank: Rank,
        /// Ranks of the machine.
        ranks: u32,
    },
    /// A rank that is in a subset twice.
    #[error("rank {rank} is listed at positions {} and {}, counted from 0", positions.0, positions.1)]
    ListedTwice {
        /// The rank.
        rank: Rank,
        /// Its first two positions.
        positions: (u32, u32),
    },
    /// A grid of too few or too many dimensions.
    #[error("{0} dimensions: a grid has between 1 and {MAX_DIMENSIONS}")]
    Dimensions(usize),
    /// A grid with an empty side.
    #[error("side 0 along dimension {dimension}: every side has at least one position")]
    ZeroSide {
        /// The dimension of the side.
        dimension: usize,
    },
    /// A cluster without nodes.
    #[error("0 nodes: a cluster has at least one")]
    NoNodes,
    /// Ranks for more or fewer nodes than the network has.
    #[error("{nodes} nodes with ranks: the network has {on_network} nodes")]
    Nodes {
        /// Nodes with ranks.
        nodes: u32,
        /// Nodes of the network.
        on_network: u32,
    },
    /// A cluster node without ranks.
    #[error("node {node} has 0 ranks: every node holds at least one")]
    EmptyNode {
        /// The first empty node.
        node: u64,
    },
    /// A side that cannot be twisted by this shift.
    #[error(
        "side {dimension} of length {side} shifts by {shift}: only sides shorter than the longest ({longest}) shift, and by less than that"
    )]
    Twist {
        /// The dimension of the side.
        dimension: usize,
        /// Its length.
        side: u32,
        /// The shift after one turn around it.
        shift: u32,
        /// The length of the longest side.
        longest: u32,
    },
    /// A lattice with too many nodes to keep all links and routes.
    #[error("{nodes} nodes: {what} has at most {most}")]
    TooManyNodes {
        /// The kind of machine.
        what: &'static str,
        /// Its nodes.
        nodes: u32,
        /// The limit.
        most: u32,
    },
    /// A machine of which all nodes are absent.
    #[error("all {0} nodes are absent: a machine has at least one node")]
    AllAbsent(u32),
    /// Nodes that have no route to the others.
    #[error("not connected: {part} cannot reach the other {others} nodes; {cut}")]
    Cut {
        /// The nodes of the smaller part, the first of them named.
        part: String,
        /// The number of other nodes.
        others: u32,
        /// The failed nodes and links between them.
        cut: String,
    },
    /// A network that is too large.
    #[error("{size} {what}: a machine has at most {most}")]
    Size {
        /// What there is too much of.
        what: &'static str,
        /// How much.
        size: u64,
        /// The limit.
        most: u64,
    },
    /// Numbers that no network of a family has.
    #[error("a {family} cannot have {what}: {rule}")]
    Family {
        /// The family.
        family: &'static str,
        /// The number, and what it counts.
        what: String,
        /// The rule.
        rule: String,
    },
    /// A link of a graph that cannot be.
    #[error("link {from} -> {to}: {rule}")]
    Link {
        /// The vertex that it leaves.
        from: u32,
        /// The vertex that it enters.
        to: u32,
        /// The rule.
        rule: &'static str,
    },
    /// A node of a graph that has no route to another.
    #[error("not connected: node {from} cannot reach node {to}")]
    Unreachable {
        /// The node.
        from: String,
        /// The other.
        to: String,
    },
    /// Timing values for each link class of another machine.
    #[error(
        "timing `{timing}` has values for its link classes ({}), but {topology} has other classes ({})",
        theirs.join(", "),
        ours.join(", ")
    )]
    LinkClasses {
        /// The timing's name.
        timing: String,
        /// The classes it has values for.
        theirs: Vec<String>,
        /// The topology's short form.
        topology: String,
        /// Its classes.
        ours: Vec<String>,
    },
    /// More ranks than are numbered.
    #[error("more than {} ranks: ranks are numbered in 32 bits", u32::MAX)]
    TooManyRanks,
}
