use crate::{Clusters, Grid, Lattice};

/// The structure of a machine that algorithms may rely on: facts to match on, not types.
///
/// Exhaustive, so that the compiler points at every reader when a variant is added.
#[derive(Clone, Copy, Debug)]
pub enum Shape<'a> {
    /// A direct link between any two ranks, all links equal.
    Complete,
    /// Ranks on a grid, each side wrapping or not.
    Grid(&'a Grid),
    /// Ranks on a twisted torus, or on a grid with failed nodes or links.
    Lattice(&'a Lattice),
    /// Nodes that hold several ranks, the nodes fully connected.
    Clustered(&'a Clusters),
}
