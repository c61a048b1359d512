//! The schedule of one rank, where all ranks are equivalent: on tori, twisted or not.
//!
//! A block of offset o has a number of hops along each dimension, which it takes in any order. All ranks do the same, so
//! every link of a direction carries the hops of all offsets in that direction. Each offset takes a shortest route
//! such that these sums are about equal. Then steps are filled: blocks with the most hops left go first, each in the
//! direction in which most is left to carry.
//!
//! No schedule of messages to neighbours has fewer steps than the longest route has links. On all tori of two sides up
//! to 16 and three sides up to 6, of more than 64 ranks, this one has as many, on five twisted tori at most one more,
//! and a volume of at most 1.04 of the bound and 2 blocks (`tests/correctness/store_and_forward.rs`).

use std::cmp::Reverse;

use topocoll_schedule::{Held, Largest, Period, PeriodWriter, RankClasses, Slot};
use topocoll_topology::{Coordinates, MixedRadix, Rank, Route};

use crate::offsets::{self, SignedHops, Torus};

/// How often each offset gets another route.
const ROUNDS: usize = 6;

/// The most ranks: a step looks at every block of a rank.
pub(super) const MOST_EQUIVALENT: (u32, &str) = (1 << 14, "at most 16384 ranks");

/// Estimated seconds of filling steps.
pub(super) fn seconds(ranks: u32, diameter: u32) -> f64 {
    const SECONDS_OF_BLOCK: f64 = 1.5e-7;
    SECONDS_OF_BLOCK * f64::from(ranks) * f64::from(diameter)
}

/// What a link of each direction carries: by dimension, up and down.
type Carried = Vec<u64>;

fn directions(hops: &SignedHops) -> impl Iterator<Item = (usize, u64)> {
    offsets::directions(hops.iter().copied())
}

fn sign(direction: usize) -> i64 {
    if direction % 2 == 0 { 1 } else { -1 }
}

fn left(hops: &SignedHops) -> u32 {
    hops.iter().map(|hops| hops.unsigned_abs()).sum()
}

/// A route for the block of each offset.
pub(super) struct Offsets {
    radix: MixedRadix,
    /// By direction, the neighbour of rank 0.
    neighbours: Vec<Rank>,
    /// By offset.
    hops: Vec<SignedHops>,
    carried: Carried,
}

impl Offsets {
    pub(super) fn new(torus: &Torus<'_>) -> Self {
        let (hops, carried) = balanced(&torus.routes());
        let neighbour = |direction| torus.neighbour(direction / 2, sign(direction));
        let neighbours = (0..carried.len()).map(neighbour).collect();
        Self { radix: torus.radix().clone(), neighbours, hops, carried }
    }

    /// Links of the longest route; at least 1.
    pub(super) fn longest(&self) -> u32 {
        self.hops.iter().map(left).max().unwrap_or(0).max(1)
    }

    pub(super) fn most_carried(&self) -> u32 {
        self.carried.iter().max().map_or(0, |&most| most as u32)
    }

    /// The steps, with at most `most` blocks on each link.
    pub(super) fn period(&self, most: u32) -> (Period, Vec<Largest>) {
        let periods = Coordinates::from_elem(1, self.radix.dimensions());
        let classes = RankClasses::translations(self.radix.clone(), periods);
        let all = |_| (0..self.radix.ranks()).map(Rank).collect();
        let mut writer = PeriodWriter::new(classes.clone(), all);
        let (mut ahead, mut carried) = (self.hops.clone(), self.carried.clone());
        let mut sent: Vec<Vec<Slot>> = vec![Vec::new(); self.neighbours.len()];
        loop {
            let offset = |(slot, held): (Slot, Held)| {
                (classes.displacement(held.from, held.to).index(), slot)
            };
            let moving = writer.held(0).map(offset).filter(|&(offset, _)| left(&ahead[offset]) > 0);
            let busiest = |offset: usize| {
                directions(&ahead[offset]).map(|(direction, _)| carried[direction]).max()
            };
            let mut blocks: Vec<_> = moving
                .map(|(offset, slot)| {
                    (Reverse(left(&ahead[offset])), Reverse(busiest(offset)), offset, slot)
                })
                .collect();
            if blocks.is_empty() {
                break;
            }
            blocks.sort_unstable();
            for (.., offset, slot) in blocks {
                let open = directions(&ahead[offset])
                    .filter(|&(direction, _)| sent[direction].len() < most as usize);
                let next =
                    open.max_by_key(|&(direction, hops)| (carried[direction], hops, direction));
                if let Some((direction, _)) = next {
                    sent[direction].push(slot);
                    carried[direction] -= 1;
                    ahead[offset][direction / 2] -= sign(direction) as i32;
                }
            }
            for (direction, slots) in
                sent.iter_mut().enumerate().filter(|(_, slots)| !slots.is_empty())
            {
                slots.sort_unstable();
                let route = Route::straight(direction as u32 / 2, sign(direction));
                writer.send(0, self.neighbours[direction], route, slots);
                slots.clear();
            }
            writer.end_step();
        }
        writer.finish()
    }
}

/// Routes whose sums of squares of what links carry is small: each offset takes in turn the best one.
fn balanced(routes: &[Vec<SignedHops>]) -> (Vec<SignedHops>, Carried) {
    let dimensions = routes[0][0].len();
    let mut carried = vec![0u64; 2 * dimensions];
    let mut taken: Vec<usize> = vec![0; routes.len()];
    for round in 0..ROUNDS {
        for (routes, taken) in routes.iter().zip(&mut taken) {
            if round > 0 {
                directions(&routes[*taken])
                    .for_each(|(direction, hops)| carried[direction] -= hops);
            }
            let more = |route: &SignedHops| {
                let squares =
                    |(direction, hops): (usize, u64)| hops * (2 * carried[direction] + hops);
                directions(route).map(squares).sum::<u64>()
            };
            *taken = (0..routes.len()).min_by_key(|&route| more(&routes[route])).unwrap_or(0);
            directions(&routes[*taken]).for_each(|(direction, hops)| carried[direction] += hops);
        }
    }
    let hops = routes.iter().zip(taken).map(|(routes, taken)| routes[taken].clone());
    (hops.collect(), carried)
}
