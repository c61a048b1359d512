//! The first link of the shortest route between any two nodes.

use std::collections::VecDeque;

use crate::graph::{Links, Routes};
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
            let hops = hops_to(links, to as u32);
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

/// Hops from each node to one. Every link has one in the opposite direction.
fn hops_to(links: &Links, to: u32) -> Vec<u32> {
    let mut hops = vec![u32::MAX; links.vertices() as usize];
    hops[to as usize] = 0;
    let mut queue = VecDeque::from([to]);
    while let Some(at) = queue.pop_front() {
        for &there in links.ends(links.leaving(at)) {
            if hops[there as usize] == u32::MAX {
                hops[there as usize] = hops[at as usize] + 1;
                queue.push_back(there);
            }
        }
    }
    hops
}
