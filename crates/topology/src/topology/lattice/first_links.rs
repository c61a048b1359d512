//! The first link of the shortest route between any two nodes.

use crate::topology::graph::{Links, Routes};
use crate::{MixedRadix, Rank};

/// By destination and node, the first link of the route: its place among those that leave the node.
/// Where translations keep all links, the table has one destination.
#[derive(Debug)]
pub(super) struct FirstLinks {
    nodes: usize,
    first: Vec<u8>,
    diameter: u32,
    /// Where translations keep all links.
    radix: Option<MixedRadix>,
}

impl FirstLinks {
    /// `radix` is given where its translations keep all links.
    pub(super) fn new(links: &Links, radix: Option<&MixedRadix>) -> Self {
        let nodes = links.vertices() as usize;
        let destinations = if radix.is_some() { 1 } else { nodes };
        let mut first = Vec::with_capacity(destinations * nodes);
        let mut diameter = 0;
        for to in 0..destinations {
            // Every link has one in the opposite direction.
            let hops = links.hops_from(to as u32);
            diameter = hops.iter().copied().max().unwrap_or(0).max(diameter);
            first.extend((0..nodes).map(|from| {
                let neighbours = links.ends(links.leaving(from as u32));
                let nearer = |&at: &u32| hops[at as usize] + 1 == hops[from];
                neighbours.iter().position(nearer).unwrap_or(0) as u8
            }));
        }
        Self { nodes, first, diameter, radix: radix.cloned() }
    }
}

impl Routes for FirstLinks {
    fn next(&self, _links: &Links, at: u32, _from: u32, to: u32) -> usize {
        let Some(radix) = &self.radix else {
            return self.first[to as usize * self.nodes + at as usize].into();
        };
        let back = |rank, u| radix.shifted(rank, u, -i64::from(radix.coordinate(Rank(to), u)));
        self.first[(0..radix.dimensions()).fold(Rank(at), back).index()].into()
    }

    fn diameter(&self) -> u32 {
        self.diameter
    }
}
