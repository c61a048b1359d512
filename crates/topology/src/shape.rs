use crate::{Clusters, Grid, Lattice};

/// The structure of a machine that algorithms may rely on: facts to match on, not types.
///
/// Exhaustive, so that the compiler points at every reader when there is one more.
#[derive(Clone, Copy, Debug)]
pub enum Shape<'a> {
    /// Any two ranks are joined directly and alike.
    Complete,
    /// Ranks on a grid, each side wrapping or not.
    Grid(&'a Grid),
    /// Ranks on a grid that is twisted, or lacks nodes or links.
    Lattice(&'a Lattice),
    /// Nodes that hold several ranks, the nodes fully connected.
    Clustered(&'a Clusters),
}
