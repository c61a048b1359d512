//! Schedules of offsets: in each step the ranks of some residues make the same hops, with blocks that
//! need them.
//!
//! The offset of a block, its destination minus its source in every dimension, is a sum of one offset
//! of each of several *sets*. Each step moves blocks by one offset of one set, straight. A rank makes
//! each of the offsets of a set in one step, and then so do the blocks that it holds.
//!
//! # The layout
//! A slot has a digit for each set, of 2 n - 1 values for n offsets: n - 1 - i for a block that is to
//! move by offset i, n - 1 + i for one that has moved by it. Offset 0 has one value, n - 1, as such a block
//! does not move.

use smallvec::{SmallVec, smallvec};
use topocoll_schedule::{Axis, Block, RankClasses, Rule, Slot, SlotSet, Step};
use topocoll_topology::{Coordinates, Grid, Rank, Route};

use crate::layout::axes::push_axes;
use crate::{Claims, Request};

/// Multiples of some hops along a dimension.
#[derive(Clone, Copy)]
pub(crate) struct Multiples {
    pub(crate) dimension: usize,
    /// The hops of one.
    pub(crate) hops: u32,
    /// 0 to this number, excluded.
    pub(crate) count: u32,
}

/// Offsets: sums of multiples, numbered with the last ones fastest.
pub(crate) type OffsetSet = SmallVec<[Multiples; 3]>;

/// The number of offsets of a set.
pub(crate) fn count(set: &OffsetSet) -> u32 {
    set.iter().map(|multiples| multiples.count).product()
}

/// The residue of a rank: the sum of its coordinates, each modulo `moduli[u]`, modulo `modulus`.
#[derive(Clone)]
pub(crate) struct Residues {
    pub(crate) moduli: Coordinates,
    pub(crate) modulus: u32,
}

/// Hops along a dimension.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hops {
    pub(crate) dimension: usize,
    pub(crate) hops: i64,
}

/// The message of some ranks in a step.
#[derive(Clone)]
pub(crate) struct Move {
    /// The ranks: those of this residue.
    pub(crate) residues: Residues,
    pub(crate) residue: u32,
    /// In the order travelled.
    pub(crate) route: SmallVec<[Hops; 3]>,
    /// The set and the number of its offset.
    pub(crate) set: usize,
    pub(crate) offset: u32,
    /// By set, whether the message has blocks that have moved by its offsets.
    pub(crate) moved: SmallVec<[bool; 3]>,
    /// Of the other sets, 0 for all offsets, or 1 + p for those of numbers of parity p.
    pub(crate) parity: u32,
}

/// A schedule of moves.
pub(crate) struct OffsetMoves {
    grid: Grid,
    sets: SmallVec<[OffsetSet; 3]>,
    /// The moves of each step.
    steps: Vec<Vec<Move>>,
}

impl Move {
    fn is_made_by(&self, rank: Rank, grid: &Grid) -> bool {
        let moduli = self.residues.moduli.iter().enumerate();
        let sum = moduli.map(|(u, &modulus)| grid.radix().coordinate(rank, u) % modulus);
        sum.sum::<u32>() % self.residues.modulus == self.residue
    }

    fn shifted(&self, rank: Rank, grid: &Grid, sign: i64) -> Rank {
        let shift = |rank, at: &Hops| grid.radix().shifted(rank, at.dimension, sign * at.hops);
        self.route.iter().fold(rank, shift)
    }

    fn route(&self) -> Route {
        let mut route = Route::default();
        for &Hops { dimension, hops } in &self.route {
            route.push(dimension as u32, hops);
        }
        route
    }
}

impl OffsetMoves {
    /// The schedule of some steps, the moves of each without contention.
    pub(crate) fn new(grid: &Grid, sets: SmallVec<[OffsetSet; 3]>, steps: Vec<Vec<Move>>) -> Self {
        Self { grid: grid.clone(), sets, steps }
    }

    /// The slots of a move before it or after it.
    fn slots_of(&self, one: &Move, after: bool) -> SlotSet {
        let mut axes: SmallVec<[Axis; 4]> = SmallVec::new();
        let (mut base, mut weight) = (0, self.slots());
        for (i, set) in self.sets.iter().enumerate() {
            let own = u64::from(count(set));
            weight /= 2 * own - 1;
            let value = |offset: u64, moved: bool| match moved {
                true => own - 1 + offset,
                false => own - 1 - offset,
            };
            if i == one.set {
                base += value(one.offset.into(), after) * weight;
                continue;
            }
            let (first, step) = match one.parity {
                0 => (0, 1),
                parity => (u64::from(parity - 1), 2),
            };
            let stride = (step * weight) as i64;
            base += value(first, one.moved[i]) * weight;
            let stride = if one.moved[i] { stride } else { -stride };
            axes.push(Axis { count: (own - first).div_ceil(step), stride });
        }
        let mut out = SlotSet::default();
        push_axes(base, &axes, &mut out);
        out
    }

    /// Claims of no contention.
    pub(crate) fn claims(&self, request: &Request<'_>) -> Claims {
        let (mut blocks, mut hops) = (0u64, 0u64);
        for moves in &self.steps {
            let length = |one: &Move| one.route.iter().map(|at| at.hops.unsigned_abs()).sum();
            blocks += moves.iter().map(|one| self.slots_of(one, false).len()).max().unwrap_or(0);
            hops += moves.iter().map(length).max().unwrap_or(0);
        }
        Claims {
            hops: Some(hops.into()),
            hops_floor: hops.into(),
            rearrangements: Some(0),
            contention_free: true,
            ..Claims::new(self.steps.len() as u64, request.bytes(blocks))
        }
    }

    /// The rank at the other end of the block of a slot, before all steps or after them.
    fn end(&self, rank: Rank, slot: Slot, after: bool) -> Option<Rank> {
        let (mut rest, mut end) = (slot, rank);
        for set in self.sets.iter().rev() {
            let own = u64::from(count(set));
            let value = rest % (2 * own - 1);
            rest /= 2 * own - 1;
            let mut offset =
                if after { value.checked_sub(own - 1)? } else { (own - 1).checked_sub(value)? };
            for multiples in set.iter().rev() {
                let hops = offset % u64::from(multiples.count) * u64::from(multiples.hops);
                offset /= u64::from(multiples.count);
                let hops = if after { -(hops as i64) } else { hops as i64 };
                end = self.grid.radix().shifted(end, multiples.dimension, hops);
            }
        }
        Some(end)
    }
}

impl Rule for OffsetMoves {
    fn steps(&self) -> u32 {
        self.steps.len() as u32
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        for one in &self.steps[step as usize] {
            if one.is_made_by(rank, &self.grid) {
                let to = one.shifted(rank, &self.grid, 1);
                out.send(to, self.slots_of(one, false), one.route());
            }
            let from = one.shifted(rank, &self.grid, -1);
            if one.is_made_by(from, &self.grid) {
                out.receive(from, self.slots_of(one, true));
            }
        }
    }

    fn slots(&self) -> u64 {
        self.sets.iter().map(|set| 2 * u64::from(count(set)) - 1).product()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: rank, to: self.end(rank, slot, false)? })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: self.end(rank, slot, true)?, to: rank })
    }

    fn classes(&self) -> RankClasses {
        let mut periods: Coordinates = self.grid.sides().iter().map(|_| 1).collect();
        for one in self.steps.iter().flatten() {
            for (period, &modulus) in periods.iter_mut().zip(&one.residues.moduli) {
                *period = least_common_multiple(*period, modulus);
            }
        }
        RankClasses::translations(self.grid.radix().clone(), periods)
    }
}

fn least_common_multiple(a: u32, b: u32) -> u32 {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

/// The hops of a table by step and residue: lines of words as `1-4,0+2`, dimension and hops, or a
/// point for none. Lines that begin with `#` are ignored.
pub(crate) fn read_table(text: &str) -> Vec<Vec<SmallVec<[Hops; 3]>>> {
    let hops = |word: &str| -> Hops {
        let (dimension, hops) = word.split_at(1);
        let Some((dimension, hops)) = dimension.parse().ok().zip(hops.parse().ok()) else {
            panic!("bug: `{word}` in a table");
        };
        Hops { dimension, hops }
    };
    let route = |word: &str| match word {
        "." => smallvec![],
        word => word.split(',').map(hops).collect(),
    };
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split_whitespace().map(route).collect()).collect()
}
