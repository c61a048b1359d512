//! The routes of all blocks. Each link carries about as many blocks as any other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use topocoll_schedule::Block;
use topocoll_topology::{Graph, Rank, coprime};

use crate::hops::{ends, entering};

/// How often each block gets another route.
const ROUNDS: usize = 6;

/// Groups of the blocks to one rank; of few blocks fewer.
const GROUPS: u32 = 8;

/// A link of the mean load is this much longer than one without blocks, in 1024ths of it.
const STEEPNESS: u64 = 256;

/// Estimated seconds of finding all routes.
pub(super) fn seconds(ranks: u32, links: f64) -> f64 {
    const SECONDS_OF_LINK: f64 = 1.6e-8;
    let groups = ranks.div_ceil(size_of_group(ranks));
    SECONDS_OF_LINK * ROUNDS as f64 * f64::from(ranks) * f64::from(groups) * links
}

/// The blocks to one rank that are routed together, at most.
fn size_of_group(ranks: u32) -> u32 {
    (ranks / GROUPS).max(8)
}

/// The links of every block to another rank, source by source.
pub(super) struct Routes {
    ranks: usize,
    /// By link, the ranks at its ends.
    ends: Vec<[Rank; 2]>,
    routes: Vec<Vec<u32>>,
}

impl Routes {
    /// Blocks are routed anew several times, those to one rank in groups, each over the shortest route
    /// by lengths that grow with the loads of links.
    pub(super) fn new(graph: &Graph) -> Self {
        let ranks = graph.vertices() as usize;
        let ends = ends(graph);
        let entering = entering(&ends, graph.vertices());
        let mut routes = vec![Vec::new(); ranks * ranks];
        let mut loads = vec![0u64; ends.len()];
        let group = size_of_group(graph.vertices()) as usize;
        for round in 0..ROUNDS {
            for place in 0..ranks {
                // Ranks far from each other one after the other, in another order each round.
                let to = scattered(place, ranks, round);
                let sources: Vec<usize> = (0..ranks)
                    .map(|place| scattered(place, ranks, round + to))
                    .filter(|&from| from != to)
                    .collect();
                for group in sources.chunks(group) {
                    let old = group.iter().flat_map(|from| &routes[from * ranks + to]);
                    old.for_each(|&link| loads[link as usize] -= 1);
                    let onward = nearest(&entering, &ends, &loads, to);
                    for from in group {
                        let route = &mut routes[from * ranks + to];
                        route.clear();
                        let mut at = *from;
                        while at != to {
                            let link = onward[at];
                            route.push(link);
                            loads[link as usize] += 1;
                            at = ends[link as usize][1].index();
                        }
                    }
                }
            }
        }
        Self { ranks, ends, routes }
    }

    pub(super) fn links(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn ends(&self) -> &[[Rank; 2]] {
        &self.ends
    }

    /// The number of routes; that of a rank's own block is empty.
    pub(super) fn count(&self) -> usize {
        self.routes.len()
    }

    pub(super) fn of(&self, block: u32) -> &[u32] {
        &self.routes[block as usize]
    }

    pub(super) fn block(&self, block: u32) -> Block {
        let (from, to) = (block as usize / self.ranks, block as usize % self.ranks);
        Block { from: Rank(from as u32), to: Rank(to as u32) }
    }

    /// The blocks that take each link.
    pub(super) fn loads(&self) -> Vec<u32> {
        let mut loads = vec![0; self.links()];
        self.routes.iter().flatten().for_each(|&link| loads[link as usize] += 1);
        loads
    }

    pub(super) fn most_loaded(&self) -> u32 {
        self.loads().into_iter().max().unwrap_or(0)
    }

    /// Links of the longest route; at least 1.
    pub(super) fn longest(&self) -> u32 {
        self.routes.iter().map(|route| route.len() as u32).max().unwrap_or(0).max(1)
    }
}

/// The `place`-th of all numbers below `ranks`, in an order that depends on `round`.
fn scattered(place: usize, ranks: usize, round: usize) -> usize {
    // Steps of about the golden section, coprime to the number of ranks.
    let least = (ranks * 89).div_ceil(144) + round;
    let stride = coprime(least as u64, ranks as u64) as usize;
    (place * stride + round) % ranks
}

/// By rank, the first link of its shortest route to a rank. Links are longer the more blocks they carry:
/// by the eighth power of their load over the mean.
fn nearest(entering: &[Vec<u32>], ends: &[[Rank; 2]], loads: &[u64], to: usize) -> Vec<u32> {
    let mean = loads.iter().sum::<u64>() / loads.len().max(1) as u64 + 1;
    let lengths: Vec<u64> = loads
        .iter()
        .map(|&load| {
            // In 64ths, at most 32 times the mean.
            let over = u128::from((64 * load / mean).min(2048));
            1024 + ((u128::from(STEEPNESS) * over.pow(8)) >> 48) as u64
        })
        .collect();
    let mut distances = vec![u64::MAX; entering.len()];
    let mut onward = vec![u32::MAX; entering.len()];
    let mut open = BinaryHeap::from([(Reverse(0), to)]);
    distances[to] = 0;
    while let Some((Reverse(distance), at)) = open.pop() {
        if distance > distances[at] {
            continue;
        }
        for &link in &entering[at] {
            let from = ends[link as usize][0].index();
            let longer = distance + lengths[link as usize];
            if longer < distances[from] {
                (distances[from], onward[from]) = (longer, link);
                open.push((Reverse(longer), from));
            }
        }
    }
    onward
}
