//! The residual exchange in windows around a rank, in place.
//!
//! Where 2n divides every side, n being 2 or 3, blocks may land 1 - n to n positions from their
//! destination along each dimension, as many at each. Those n away go first: in round p the rank of
//! class q goes along dimension (q + p) mod n, so that the ranks that move along a line lie n
//! apart. For any distance d below, d divides 2n; there are 2n rounds, one for every dimension and
//! direction, and in round p ranks whose coordinates sum to s mod d use the (s + p)-th. No hop of d
//! changes s, so that each block sees every dimension in both directions, and the ranks that move
//! along a line in one direction lie d apart.
//!
//! Straight to the destination, the rest has one step for each vector of offsets, at most n - 1
//! along each dimension. Ranks go its negative whose coordinates along the dimensions of two hops
//! have an odd sum, which no leg changes. So each rank is where one message turns, and on a line
//! along such a dimension those at every other position go in one direction and the rest in the
//! other: no link contention.
//!
//! A slot numbers, dimension by dimension, the offset and then the source on the ring, and a step
//! receives into the slots that it sends.

use smallvec::SmallVec;
use topocoll_schedule::{SlotSet, Step};
use topocoll_topology::{Rank, Route};

use super::Rings;
use super::counts::Cost;
use super::layout::push_box;

/// The residual exchange in windows around a rank.
#[derive(Clone, Copy)]
pub(super) struct Centred {
    /// n.
    pub(super) dimensions: u32,
    /// Whether those nearer than n go straight to the destination.
    pub(super) straight: bool,
}

/// A rank's move in a step.
struct Moves {
    /// Hops along each dimension.
    hops: SmallVec<[i32; 3]>,
    /// Whether hops of 0 select offset 0 and those gone before; else they select any.
    exact: bool,
}

impl Centred {
    /// Offsets nearer than n.
    fn nearer(self) -> u32 {
        2 * self.dimensions - 1
    }

    pub(super) fn steps(self) -> u32 {
        let n = self.dimensions;
        let rest = if self.straight { self.nearer().pow(n) - 1 } else { 2 * n * (n - 1) };
        n + rest
    }

    /// The vector of offsets of a step in which blocks go straight.
    fn vector(self, step: u32) -> SmallVec<[i32; 3]> {
        // The middle number is that of the vector of none.
        let n = self.dimensions;
        let number = step - n;
        let number = number + u32::from(number >= self.nearer().pow(n) / 2);
        let offset = |u| (number / self.nearer().pow(u) % self.nearer()) as i32 - (n as i32 - 1);
        (0..n).map(offset).collect()
    }

    /// The move of the rank at these coordinates in a step.
    fn moves(self, at: &[u32], step: u32) -> Moves {
        let n = self.dimensions;
        if self.straight && step >= n {
            let mut hops = self.vector(step);
            let of_two = hops.iter().zip(at).filter(|(hops, _)| hops.abs() == 2);
            if of_two.map(|(_, x)| x % 2).sum::<u32>() % 2 == 1 {
                hops.iter_mut().for_each(|hops| *hops = -*hops);
            }
            return Moves { hops, exact: true };
        }
        let (distance, turns, round) = match step.checked_sub(n) {
            None => (n, n, step),
            Some(rest) => (n - 1 - rest / (2 * n), 2 * n, rest % (2 * n)),
        };
        let turn = (at.iter().sum::<u32>() % distance + round) % turns;
        let hops = if turn < n { distance as i32 } else { -(distance as i32) };
        Moves { hops: (0..n).map(|u| if turn % n == u { hops } else { 0 }).collect(), exact: false }
    }
}

impl Rings {
    /// A step of the exchange in windows around a rank.
    pub(super) fn centred_step(
        &self,
        rank: Rank,
        at: &[u32],
        (centred, step): (Centred, u32),
        out: &mut Step,
    ) {
        let moves = centred.moves(at, step);
        let slots = self.slots_around(centred, &moves);
        let moved = |sign: i64| {
            moves.hops.iter().enumerate().fold(rank, |rank, (u, &hops)| {
                self.grid.radix().shifted(rank, self.long[u], sign * i64::from(hops))
            })
        };
        let mut route = Route::default();
        for (u, &hops) in moves.hops.iter().enumerate() {
            route.push(self.long[u] as u32, hops.into());
        }
        out.receive(moved(-1), slots.clone());
        out.send(moved(1), slots, route);
    }

    /// The slots of the blocks that move so.
    fn slots_around(&self, centred: Centred, moves: &Moves) -> SlotSet {
        let n = centred.dimensions as i32;
        // Ranges of offsets along each dimension.
        let ranges = |hops: i32| -> SmallVec<[(i32, i32); 2]> {
            match hops {
                0 if moves.exact => [(0, 0), (n, n)].into(),
                0 => [(1 - n, n)].into_iter().collect(),
                _ => [(hops, hops)].into_iter().collect(),
            }
        };
        let ranges: SmallVec<[_; 3]> = moves.hops.iter().map(|&hops| ranges(hops)).collect();
        let boxes: usize = ranges.iter().map(SmallVec::len).product();
        let mut slots = SlotSet::default();
        for number in 0..boxes {
            let (mut rest, mut base, mut stride) = (number, 0, 1);
            let mut axes: SmallVec<[(u64, u64); 3]> = SmallVec::new();
            for (line, ranges) in self.lines.iter().zip(&ranges).rev() {
                let (first, last) = ranges[rest % ranges.len()];
                rest /= ranges.len();
                let ring = u64::from(line.side() / self.colours);
                base += (first + n - 1) as u64 * ring * stride;
                axes.push(((last - first + 1) as u64 * ring, stride));
                stride *= u64::from(line.side());
            }
            push_box(base, axes.into_iter().rev(), &mut slots);
        }
        slots
    }

    /// The counts of the exchange in windows around a rank.
    pub(super) fn add_centred(&self, centred: Centred, cost: &mut Cost) {
        let ranks: u128 = self.lines.iter().map(|line| u128::from(line.side())).product();
        let window = u128::from(self.colours);
        // All ranks send equally much, but not along the same dimension.
        for step in 0..centred.steps() {
            let Moves { hops, exact } = centred.moves(&[0; 3], step);
            let kept = hops.iter().map(|&hops| match hops {
                0 if exact => 2,
                0 => window,
                _ => 1,
            });
            let blocks = kept.product::<u128>() * ranks / window.pow(centred.dimensions);
            let slots = self.slots_around(centred, &Moves { hops: hops.clone(), exact });
            let by_all = !exact && hops.iter().all(|hops| hops.abs() <= 1);
            let contiguous = (exact || by_all) && slots.is_contiguous(1);
            cost.steps += 1;
            cost.blocks += blocks;
            cost.hops += hops.iter().map(|hops| u128::from(hops.unsigned_abs())).sum::<u128>();
            cost.packed += if contiguous { 0 } else { blocks };
        }
    }
}
