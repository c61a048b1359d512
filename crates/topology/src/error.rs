use crate::MAX_DIMENSIONS;

/// Why a topology cannot be built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// A fully connected machine of no ranks.
    #[error("0 ranks: a machine has at least one")]
    NoRanks,
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
    /// A cluster node without ranks.
    #[error("node {node} has 0 ranks: every node holds at least one")]
    EmptyNode {
        /// The first empty node.
        node: u64,
    },
    /// More ranks than are numbered.
    #[error("more than {} ranks: ranks are numbered in 32 bits", u32::MAX)]
    TooManyRanks,
}
