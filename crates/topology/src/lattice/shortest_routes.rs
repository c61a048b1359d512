//! The first link of the shortest route between any two ranks.

use std::collections::VecDeque;

use super::NONE;
use crate::{MixedRadix, Rank};

/// By destination and rank, the first link of the route: its index among those that leave the rank.
/// Where translations keep all links, the table has one destination.
#[derive(Debug)]
pub(super) struct ShortestRoutes {
    ranks: usize,
    first: Vec<u8>,
    diameter: u32,
    /// Where translations keep all links.
    radix: Option<MixedRadix>,
}

impl ShortestRoutes {
    /// `next` lists by rank where each of its `per_rank` links leads. `radix` is given where its
    /// translations keep all links.
    pub(super) fn new(next: &[u32], per_rank: usize, radix: Option<&MixedRadix>) -> Self {
        let ranks = next.len() / per_rank;
        let destinations = if radix.is_some() { 1 } else { ranks };
        let mut first = Vec::with_capacity(destinations * ranks);
        let mut diameter = 0;
        for to in 0..destinations {
            let hops = hops_to(next, per_rank, to as u32);
            diameter = hops.iter().copied().max().unwrap_or(0).max(diameter);
            first.extend((0..ranks).map(|from| {
                let neighbours = &next[from * per_rank..(from + 1) * per_rank];
                let nearer = |&at: &u32| at != NONE && hops[at as usize] + 1 == hops[from];
                neighbours.iter().position(nearer).unwrap_or(0) as u8
            }));
        }
        Self { ranks, first, diameter, radix: radix.cloned() }
    }

    pub(super) fn diameter(&self) -> u32 {
        self.diameter
    }

    /// The index of the link on which a message to another rank leaves `from`.
    pub(super) fn first(&self, from: Rank, to: Rank) -> usize {
        let Some(radix) = &self.radix else {
            return self.first[to.index() * self.ranks + from.index()].into();
        };
        let back = |rank, u| radix.shifted(rank, u, -i64::from(radix.coordinate(to, u)));
        self.first[(0..radix.dimensions()).fold(from, back).index()].into()
    }
}

/// Hops from each rank to one. Every link has one in the opposite direction.
fn hops_to(next: &[u32], per_rank: usize, to: u32) -> Vec<u32> {
    let mut hops = vec![u32::MAX; next.len() / per_rank];
    hops[to as usize] = 0;
    let mut queue = VecDeque::from([to]);
    while let Some(at) = queue.pop_front() {
        for &there in &next[at as usize * per_rank..][..per_rank] {
            if there != NONE && hops[there as usize] == u32::MAX {
                hops[there as usize] = hops[at as usize] + 1;
                queue.push_back(there);
            }
        }
    }
    hops
}
