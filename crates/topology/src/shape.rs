use crate::{Clusters, Graph, Grid};

/// The structure of a machine that algorithms may rely on: facts to match on, not types.
///
/// Exhaustive, so that the compiler points at every reader when a variant is added.
#[derive(Clone, Copy, Debug)]
pub enum Shape<'a> {
    /// A direct link between any two ranks, all links equal.
    Complete,
    /// Ranks on a grid, each side wrapping or not.
    Grid(&'a Grid),
    /// Ranks on a listed network, such as a fat tree, a twisted torus or a grid with failed links.
    Graph(&'a Graph),
    /// Nodes that hold several ranks, on a network.
    Clustered(&'a Clusters),
}
