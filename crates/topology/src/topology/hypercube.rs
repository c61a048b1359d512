//! Hypercubes.

use std::sync::Arc;

use crate::number::number;
use crate::{Graph, Topology, TopologyError};

/// The most dimensions of a hypercube.
const MOST: u32 = 20;

impl Graph {
    /// The hypercube of 2^`dimensions` nodes: a link each way joins nodes whose numbers differ in
    /// one bit. Dimension 0 is the most significant bit. Routes correct dimension 0 first.
    ///
    /// # Errors
    /// Fewer than 1 or more than 20 dimensions.
    pub fn hypercube(dimensions: u32) -> Result<Self, TopologyError> {
        if !(1..=MOST).contains(&dimensions) {
            let rule = format!("it has 1 to {MOST}");
            return Err(format!("a hypercube cannot have {dimensions} dimensions: {rule}").into());
        }
        let mut graph = Self::hyperx(&vec![2; dimensions as usize])?;
        graph.form = format!("hypercube:{dimensions}");
        Ok(graph)
    }
}

/// Reads the number of dimensions.
pub(crate) fn hypercube(rest: &str) -> Result<Arc<dyn Topology>, String> {
    let dimensions = number("number of dimensions", rest)?;
    Ok(Arc::new(Graph::hypercube(dimensions)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkId;

    #[test]
    fn dimension_0_is_the_most_significant_bit() {
        let cube = Graph::hypercube(5).unwrap();
        assert_eq!((cube.ranks(), cube.links(), cube.diameter()), (32, 5 * 32, 5));
        for link in (0..cube.links()).map(|link| cube.link(LinkId(link)).unwrap()) {
            assert_eq!(link.from ^ link.to, 16 >> link.class);
        }
        assert_eq!(cube.vertex_name(9), "(0,1,0,0,1)");
    }
}
