//! What the busiest link carries at least in an all-to-all.
//!
//! Give every link a length, any length. A block is carried over links that are together as long as
//! its way, so on at least the distance of its ends; hence some link carries at least the sum of all
//! distances over the sum of all lengths. By the duality of linear programs the best lengths give
//! the least load that any routing reaches, minimal or not, blocks split or not (Shahrokhi and
//! Matula 1990).
//!
//! Where translations keep all links, links of a dimension may have one length, as the mean of
//! lengths that translations move onto each other is no worse. Then a few lengths are looked for,
//! exactly, by Kelley's cutting planes: shortest ways of some lengths say how far blocks go along
//! each dimension, which bounds all other lengths from above, and the best lengths by the bounds so
//! far come next, until they are as good as those bounds say.
//!
//! Where links are missing each has its own length. Cuts come first, lengths of 1 out of a part of the
//! machine and of 0 elsewhere: parts up to a place along a side, or half of one that wraps. Then all
//! links have a length, or those of a dimension alone; then what carries more by shortest ways is made
//! longer, again and again, for as long as there is time. `tests/correctness/lattices.rs` compares what is found
//! with linear programs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use microlp::{ComparisonOp, OptimizationDirection, Problem};

use super::{Lattice, NONE};
use crate::{MixedRadix, Rank};

/// Cutting planes at most; each is a vertex of few dimensions.
const PLANES: usize = 100;

/// Lengths are multiples of a fraction like this at most.
const FRACTIONS: u64 = 1 << 16;

/// Pairs of a rank and a link that are looked at: a second.
const WORK: usize = 12_000_000;

/// Times that lengths are changed at most.
const CHANGES: usize = 2000;

/// The least load of the busiest link: a fraction, of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LeastLoad {
    /// The sum of distances over all pairs.
    pub distances: u128,
    /// The sum of lengths over all links; 0 where there are none.
    pub lengths: u128,
}

impl LeastLoad {
    fn exceeds(self, other: Self) -> bool {
        self.distances * other.lengths > other.distances * self.lengths
    }

    /// The fraction.
    #[must_use]
    pub fn blocks(self) -> f64 {
        if self.lengths == 0 { 0.0 } else { self.distances as f64 / self.lengths as f64 }
    }
}

pub(super) fn least(lattice: &Lattice) -> LeastLoad {
    if lattice.is_whole() { by_dimensions(lattice) } else { by_links(lattice) }
}

/// The sum of all distances, and how many blocks each link carries, by ways that are shortest.
struct Travelled {
    load: LeastLoad,
    carried: Vec<u64>,
}

/// Sends a block from each rank, or where all are alike from the first, to all others.
fn travelled(lattice: &Lattice, lengths: &[u64]) -> Travelled {
    let (ranks, per_rank) = (lattice.nodes.len(), lattice.per_rank());
    let mut carried = vec![0; lattice.next.len()];
    let mut distances = 0;
    let sources = if lattice.is_whole() { 1 } else { ranks };
    let mut found: Vec<(u64, u32, usize)> = Vec::new();
    let mut order = Vec::new();
    let mut blocks = Vec::new();
    let mut open = BinaryHeap::new();
    for source in 0..sources {
        // Length, then links, so that links of no length are not taken for nothing.
        found.clear();
        found.resize(ranks, (u64::MAX, u32::MAX, usize::MAX));
        found[source] = (0, 0, usize::MAX);
        order.clear();
        open.push(Reverse((0, 0, source)));
        while let Some(Reverse((length, links, at))) = open.pop() {
            if (length, links) != (found[at].0, found[at].1) {
                continue;
            }
            order.push(at);
            let leaving = lattice.next.iter().enumerate().skip(at * per_rank).take(per_rank);
            for (link, &to) in leaving {
                if to == NONE {
                    continue;
                }
                let (length, links) = (length + lengths[link], links + 1);
                let known = &mut found[to as usize];
                if (length, links) < (known.0, known.1) {
                    *known = (length, links, link);
                    open.push(Reverse((length, links, to as usize)));
                }
            }
        }
        blocks.clear();
        blocks.resize(ranks, 1u64);
        for &at in order.iter().rev() {
            let (length, _, link) = found[at];
            distances += u128::from(length);
            if link != usize::MAX {
                carried[link] += blocks[at];
                blocks[link / per_rank] += blocks[at];
            }
        }
    }
    let there = lattice.next.iter().zip(lengths).filter(|(to, _)| **to != NONE);
    let lengths: u128 = there.map(|(_, &length)| u128::from(length)).sum();
    // Where all ranks are alike, each has as much of both.
    let load = LeastLoad { distances, lengths: lengths * sources as u128 / ranks as u128 };
    Travelled { load, carried }
}

fn by_dimensions(lattice: &Lattice) -> LeastLoad {
    let per_rank = lattice.per_rank();
    let moving: Vec<usize> = (0..per_rank / 2).filter(|&u| lattice.next[2 * u] != NONE).collect();
    let ways = ways_around(lattice.radix());
    let mut best = LeastLoad { distances: 0, lengths: 1 };
    let mut weights = vec![1; moving.len()];
    let mut planes: Vec<Vec<f64>> = Vec::new();
    while !moving.is_empty() && planes.len() < PLANES {
        let mut by_dimension = vec![0; per_rank / 2];
        moving.iter().zip(&weights).for_each(|(&u, &weight)| by_dimension[u] = weight);
        let along = match &ways {
            Some(ways) => hops_along(lattice.radix(), ways, &by_dimension),
            None => {
                let lengths = (0..lattice.next.len()).map(|link| by_dimension[link % per_rank / 2]);
                let Travelled { carried, .. } = travelled(lattice, &lengths.collect::<Vec<_>>());
                let mut along = vec![0; per_rank / 2];
                carried.iter().enumerate().for_each(|(i, more)| along[i % per_rank / 2] += more);
                along
            }
        };
        let product = |(weight, hops): (&u64, &u64)| u128::from(*weight) * u128::from(*hops);
        let load = LeastLoad {
            distances: by_dimension.iter().zip(&along).map(product).sum(),
            lengths: weights.iter().map(|&weight| 2 * u128::from(weight)).sum(),
        };
        if load.exceeds(best) {
            best = load;
        }
        // A link along u carries the blocks of a source along u, half of them each way.
        planes.push(moving.iter().map(|&u| along[u] as f64 / 2.0).collect());
        let Some((bound, next)) = best_weights(&planes) else { break };
        if bound <= best.blocks() * (1.0 + 1e-9) || next == weights {
            break;
        }
        weights = next;
    }
    best
}

/// Times around the twisted sides, and how far all of them move along the longest sides.
struct Around {
    times: Vec<(usize, i64)>,
    shift: i64,
}

/// The ways around the twisted sides, up or down, of which one is shortest to any rank; `None` where
/// there are too many to try.
fn ways_around(radix: &MixedRadix) -> Option<Vec<Around>> {
    /// Ways that are tried for each rank at most.
    const MOST: usize = 64;
    let longest = i64::from(*radix.sides().iter().max()?);
    let mut ways = vec![Around { times: Vec::new(), shift: 0 }];
    for (u, &shift) in radix.shifts().iter().enumerate().filter(|(_, shift)| **shift > 0) {
        // Going around this many times leads back. From a coordinate c of 0 to side - 1, r times more
        // and period - r times fewer lead to the same place, c + r side or (period - r) side - c hops
        // away: the former is no longer only if 2 r < period, the latter only if 2 r > period - 2.
        let period = (1..=longest).find(|times| times * i64::from(shift) % longest == 0)?;
        let more = ways.iter().flat_map(|way| {
            (-(period + 1) / 2..=(period - 1) / 2).map(move |times| Around {
                times: way.times.iter().copied().chain([(u, times)]).collect(),
                shift: way.shift + times * i64::from(shift),
            })
        });
        ways = more.take(MOST + 1).collect();
    }
    (ways.len() <= MOST).then_some(ways)
}

/// The hops along each dimension from rank 0 to all others, by ways that are shortest by the lengths
/// of dimensions; of equal ones by those of the fewest links.
fn hops_along(radix: &MixedRadix, ways: &[Around], lengths: &[u64]) -> Vec<u64> {
    let sides: Vec<i64> = radix.sides().iter().map(|&side| side.into()).collect();
    let longest = sides.iter().copied().max().unwrap_or(1);
    let mut along = vec![0; sides.len()];
    let (mut hops, mut best) = (vec![0; sides.len()], vec![0; sides.len()]);
    for rank in 0..radix.ranks() {
        let at = radix.coordinates(Rank(rank));
        let mut least = (u64::MAX, u64::MAX);
        for Around { times, shift } in ways {
            for (u, &side) in sides.iter().enumerate() {
                let moved = if side == longest { i64::from(at[u]) - shift } else { at[u].into() };
                let moved = moved.rem_euclid(side);
                hops[u] = moved.min(side - moved) as u64;
            }
            for &(u, times) in times {
                hops[u] = (i64::from(at[u]) + times * sides[u]).unsigned_abs();
            }
            let length = hops.iter().zip(lengths).map(|(hops, length)| hops * length).sum();
            let key = (length, hops.iter().sum());
            if key < least {
                least = key;
                best.copy_from_slice(&hops);
            }
        }
        along.iter_mut().zip(&best).for_each(|(sum, hops)| *sum += hops);
    }
    along
}

/// The weights, which are never all 0, at which the least of the planes is greatest, and its value
/// there for weights of 1 in all.
fn best_weights(planes: &[Vec<f64>]) -> Option<(f64, Vec<u64>)> {
    let mut problem = Problem::new(OptimizationDirection::Maximize);
    let value = problem.add_var(1.0, (0.0, f64::INFINITY));
    let weights: Vec<_> = planes[0].iter().map(|_| problem.add_var(0.0, (0.0, 1.0))).collect();
    let all: Vec<_> = weights.iter().map(|&weight| (weight, 1.0)).collect();
    problem.add_constraint(&all[..], ComparisonOp::Eq, 1.0);
    for plane in planes {
        let below = weights.iter().zip(plane).map(|(&weight, &slope)| (weight, -slope));
        let terms: Vec<_> = below.chain([(value, 1.0)]).collect();
        problem.add_constraint(&terms[..], ComparisonOp::Le, 0.0);
    }
    let solution = problem.solve().ok()?.into_solution().ok()?;
    let found: Vec<f64> = weights.iter().map(|&weight| solution.var_value(weight)).collect();
    Some((solution.var_value(value), fractions(&found)))
}

/// Whole numbers in the proportion of weights of 1 in all: exactly, where these have a small common
/// denominator.
fn fractions(weights: &[f64]) -> Vec<u64> {
    let times = |n: u64| weights.iter().map(move |weight| weight * n as f64);
    let whole = |n: &u64| times(*n).all(|value| (value - value.round()).abs() < 1e-6);
    let denominator = (1..=256).find(whole).unwrap_or(FRACTIONS);
    times(denominator).map(|value| value.round() as u64).collect()
}

fn by_links(lattice: &Lattice) -> LeastLoad {
    let per_rank = lattice.per_rank();
    let dimension = |link: usize| link % per_rank / 2;
    let mut best = LeastLoad { distances: 0, lengths: 1 };
    for cut in cuts(lattice).filter(|cut| cut.lengths > 0) {
        if cut.exceeds(best) {
            best = cut;
        }
    }
    let mut lengths: Vec<f64> = vec![1.0; lattice.next.len()];
    // Lengths that changes begin with are the best of those of dimensions, whatever cuts give.
    let mut begun = LeastLoad { distances: 0, lengths: 1 };
    let mut look = |lengths: &[u64]| {
        let found = travelled(lattice, lengths);
        let better = found.load.lengths > 0 && found.load.exceeds(begun);
        if better {
            begun = found.load;
        }
        (better, found.carried)
    };
    look(&vec![1; lattice.next.len()]);
    for u in 0..per_rank / 2 {
        let own = |link: usize| u64::from(dimension(link) == u);
        let (better, _) = look(&(0..lattice.next.len()).map(own).collect::<Vec<_>>());
        if better {
            let start = |link: usize| if dimension(link) == u { 1.0 } else { 0.1 };
            lengths = (0..lattice.next.len()).map(start).collect();
        }
    }
    let changes = WORK / (lattice.nodes.len() * lattice.next.len());
    for change in 0..changes.min(CHANGES) {
        let longest = lengths.iter().copied().fold(0.0, f64::max);
        let whole = |length: &f64| (length / longest * FRACTIONS as f64).round() as u64;
        let (_, carried) = look(&lengths.iter().map(whole).collect::<Vec<_>>());
        let most = carried.iter().copied().max().unwrap_or(0).max(1);
        let pace = 2.0 / (1.0 + change as f64).sqrt();
        for (length, &blocks) in lengths.iter_mut().zip(&carried) {
            *length *= (pace * (blocks as f64 / most as f64 - 1.0)).exp();
        }
    }
    if begun.exceeds(best) { begun } else { best }
}

/// What must leave parts of a lattice over the links that leave them: up to each place along a side,
/// or half of one that wraps from each place on.
fn cuts(lattice: &Lattice) -> impl Iterator<Item = LeastLoad> + '_ {
    let (ranks, per_rank) = (lattice.nodes.len(), lattice.per_rank());
    let sides = lattice.radix.sides().iter().enumerate();
    let parts = sides.flat_map(move |(u, &side)| {
        let part = move |place| match lattice.wrap[u] {
            true => (u, place, side / 2),
            false => (u, 0, place),
        };
        (0..side).map(part)
    });
    parts.map(move |(u, first, length)| {
        let side = lattice.radix.sides()[u];
        let inside = |rank: u32| {
            let at = lattice.radix.coordinate(Rank(lattice.nodes[rank as usize]), u);
            (at + side - first) % side < length
        };
        let members = (0..ranks as u32).filter(|&rank| inside(rank));
        let (mut blocks, mut links) = (0, 0);
        for rank in members {
            blocks += 1;
            let next = &lattice.next[rank as usize * per_rank..][..per_rank];
            links += next.iter().filter(|&&to| to != NONE && !inside(to)).count() as u128;
        }
        LeastLoad { distances: blocks * (ranks as u128 - blocks), lengths: links }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By coordinates, the sum of all distances and the links travelled are those of shortest ways.
    #[test]
    fn hops_along_dimensions_are_those_of_shortest_ways() {
        for (sides, shifts) in [
            (&[4u32, 8][..], &[4u32, 0][..]),
            (&[3, 6], &[2, 0]),
            (&[3, 8], &[2, 0]),
            (&[3, 10], &[4, 0]),
            (&[4, 4, 8], &[4, 4, 0]),
            (&[2, 6, 6], &[3, 0, 0]),
            (&[5, 3, 9], &[3, 6, 0]),
            (&[4, 6], &[0, 0]),
        ] {
            let lattice = Lattice::twisted_torus(sides, shifts).unwrap();
            let ways = ways_around(lattice.radix()).unwrap();
            for weights in [[1, 1, 1], [3, 1, 2], [0, 1, 5], [7, 0, 0], [1, 9, 0]] {
                let per_rank = lattice.per_rank();
                let lengths = (0..lattice.next.len()).map(|link| weights[link % per_rank / 2]);
                let Travelled { load, carried } = travelled(&lattice, &lengths.collect::<Vec<_>>());
                let along = hops_along(lattice.radix(), &ways, &weights[..sides.len()]);
                let distances = along.iter().zip(weights).map(|(hops, weight)| hops * weight);
                let place = format!("{sides:?} {shifts:?} {weights:?}");
                assert_eq!(u128::from(distances.sum::<u64>()), load.distances, "{place}");
                assert_eq!(along.iter().sum::<u64>(), carried.iter().sum(), "{place}");
            }
        }
        // A shift by one leads elsewhere each time around.
        assert!(ways_around(Lattice::twisted_torus(&[2, 128], &[1, 0]).unwrap().radix()).is_none());
    }
}
