use std::sync::Arc;

use crate::number::number;
use crate::{Shape, Topology, TopologyError};

/// Every rank joined to every other (Bruck et al. 1997, section 1.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FullyConnected {
    ranks: u32,
}

impl FullyConnected {
    /// The complete graph on `ranks` ranks.
    ///
    /// # Errors
    /// No ranks.
    pub fn new(ranks: u32) -> Result<Self, TopologyError> {
        match ranks {
            0 => Err("0 ranks: a machine has at least one".to_owned().into()),
            ranks => Ok(Self { ranks }),
        }
    }
}

impl Topology for FullyConnected {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Complete
    }

    fn short_form(&self) -> String {
        format!("full:{}", self.ranks)
    }

    fn link_classes(&self) -> Vec<String> {
        vec!["link".to_owned()]
    }
}

/// `64`.
pub(crate) fn full(rest: &str) -> Result<Arc<dyn Topology>, String> {
    let ranks = number("number of ranks", rest)?;
    Ok(Arc::new(FullyConnected::new(ranks)?))
}
