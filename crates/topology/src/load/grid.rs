//! The bound on the load of the busiest link of a grid on which some ranks take part.

use super::{Channel, Flows, LeastLoad};
use crate::{Grid, LinkId, Topology as _};

/// The most links: a second at most.
const LINKS: u64 = 1 << 16;

impl Grid {
    /// A lower bound on the load of the busiest link, in blocks for each unit of capacity, when
    /// every rank sends a block to every other, over any routes. `capacities` are fractions by
    /// dimension, `ranks` those on each node. 0 for a grid of more than 2^16 links.
    ///
    /// # Panics
    /// Another number of dimensions or nodes than there are.
    #[must_use]
    pub fn least_load_of(&self, capacities: &[(u32, u32)], ranks: &[u32]) -> LeastLoad {
        assert_eq!(capacities.len(), self.sides().len(), "capacities of other dimensions");
        assert_eq!(ranks.len(), self.ranks() as usize, "ranks of other nodes");
        if self.links() > LINKS {
            return LeastLoad::NONE;
        }
        let links = (0..self.link_numbers()).filter_map(|link| self.link(LinkId(link)));
        let channel = |link: crate::Link| Channel {
            from: link.from,
            to: link.to,
            capacity: capacities[link.class as usize],
        };
        let links: Vec<Channel> = links.map(channel).collect();
        Flows { vertices: ranks.len(), ranks, links: &links }.least_load().load
    }
}
