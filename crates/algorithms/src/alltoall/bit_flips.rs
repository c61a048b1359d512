//! Flips of the two bits of both coordinates, on a mesh of 4x4: in few steps, without link contention.
//!
//! A block has to flip some bits of its rank's coordinates, the high and the low bit of each. Ranks
//! whose coordinates have an even sum, the even ranks, send along the row where the odd ranks send
//! along the column: so on a line only ranks two apart send, and their messages share no link.
//! - High bits: every rank sends what has to flip it along its first dimension (even ranks: the
//!   row), then along its second.
//! - Low bits: what has to flip only that of the row's coordinate leaves even ranks while that of the
//!   column's leaves odd ranks, then the reverse, then what has to flip both.
//!
//! With `steps=7` some blocks flip both bits of a dimension at once, 3 hops: along the second
//! dimension all that have to, along the first those that need not flip the high bit of the second.
//! Such a step leaves an even rank for an odd one, and no other high bit of its blocks is left.
//! Own construction; schedules of these counts are new, to our knowledge.
//!
//! Claims: 5 steps and 8 + 8 + 4 + 4 + 4 = 28 blocks, or 7 steps and 6 + 2 + 4 + 4 + 4 + 4 + 1 = 25.
//!
//! # The layout
//! A slot numbers the flips of its block as the source sees them: the high and the low bit of its
//! first dimension, then of its second. It stays the block's, as a step receives into the slots that
//! it sends; the source is even if the rank is and the low bits flip 0 or 2 times, and so on.

use topocoll_schedule::{Block, Parameters, Part, Rule, Slot, SlotSet, Step};
use topocoll_topology::{Rank, Route};

use crate::error::check_sides;
use crate::layout::square_grid::SquareGrid;
use crate::{Algorithm, Claims, Info, NotApplicable, Parameter, Request, Solution, Values};

/// The parameter of the number of steps.
const STEPS: Parameter = Parameter::number("steps", "5 (default) or 7, of less volume");

/// Hops of each step.
const HOPS: [&[u32]; 2] = [&[2, 2, 1, 1, 2], &[2, 3, 2, 3, 1, 1, 2]];

/// Blocks of each step.
const BLOCKS: [&[u32]; 2] = [&[8, 8, 4, 4, 4], &[6, 2, 4, 4, 4, 4, 1]];

pub(crate) struct BitFlips;

struct Flips {
    square: SquareGrid,
    /// Whether blocks may flip both bits of a dimension at once.
    both: bool,
}

/// The flips of a block, as its source sees them.
#[derive(Clone, Copy)]
struct Bits {
    /// High and low bit of the first dimension.
    first: [bool; 2],
    second: [bool; 2],
}

/// What a rank does: the bits that it flips along its first dimension, and along its second.
struct Flip {
    first: u32,
    second: u32,
}

impl Bits {
    fn of(slot: Slot) -> Self {
        let bit = |i: u32| slot >> i & 1 == 1;
        Self { first: [bit(3), bit(2)], second: [bit(1), bit(0)] }
    }

    /// The flips along both dimensions, as numbers.
    fn numbers(self) -> [u32; 2] {
        [self.first, self.second].map(|[high, low]| 2 * u32::from(high) + u32::from(low))
    }

    /// Whether both bits of the first dimension flip at once, or of the second.
    fn at_once(self) -> [bool; 2] {
        [self.first == [true; 2] && !self.second[0], self.second == [true; 2]]
    }

    /// Whether a block moves in a step.
    fn moves(self, both: bool, step: u32) -> bool {
        let at_once = if both { self.at_once() } else { [false; 2] };
        match (both, step) {
            (false, 0) => self.first[0],
            (false, 1) => self.second[0],
            (true, 0) => self.first[0] && !at_once[0],
            (true, 1) => at_once[0],
            (true, 2) => self.second[0] && !at_once[1],
            (true, 3) => at_once[1],
            _ => {
                let mut left = [self.first[1] && !at_once[0], self.second[1] && !at_once[1]];
                // At a rank of the other kind the first dimension is the source's second.
                if at_once[0] || at_once[1] {
                    left.reverse();
                }
                left == match step - high_steps(both) {
                    0 => [true, false],
                    1 => [false, true],
                    _ => [true, true],
                }
            }
        }
    }
}

/// Steps in which high bits flip.
fn high_steps(both: bool) -> u32 {
    if both { 4 } else { 2 }
}

/// What the ranks flip in a step.
fn flip(both: bool, step: u32) -> Flip {
    let (first, second) = match (both, step) {
        (false, 0) | (true, 0) => (2, 0),
        (true, 1) => (3, 0),
        (false, 1) | (true, 2) => (0, 2),
        (true, 3) => (0, 3),
        _ => match step - high_steps(both) {
            0 => (1, 0),
            1 => (0, 1),
            _ => (1, 1),
        },
    };
    Flip { first, second }
}

impl Flips {
    /// The rank with bits flipped along the first dimension of even or odd ranks, and the second.
    fn flipped(&self, rank: Rank, even: bool, [first, second]: [u32; 2]) -> Rank {
        let (r, c) = self.square.at(rank);
        let (row, column) = if even { (second, first) } else { (first, second) };
        self.square.rank((r ^ row, c ^ column))
    }

    fn is_even(&self, rank: Rank) -> bool {
        let (r, c) = self.square.at(rank);
        (r + c) % 2 == 0
    }
}

impl Rule for Flips {
    fn steps(&self) -> u32 {
        high_steps(self.both) + 3
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let even = self.is_even(rank);
        let Flip { first, second } = flip(self.both, step);
        let to = self.flipped(rank, even, [first, second]);
        // An odd number of flips of low bits comes from a rank of the other kind.
        let from = self.flipped(rank, even == ((first + second) % 2 == 0), [first, second]);
        let mut slots = SlotSet::default();
        for slot in (0..self.slots()).filter(|&slot| Bits::of(slot).moves(self.both, step)) {
            slots.push_slot(slot, Part::Whole);
        }
        out.receive(from, slots.clone());
        out.send(to, slots, Route::default());
    }

    fn slots(&self) -> u64 {
        16
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let to = self.flipped(rank, self.is_even(rank), Bits::of(slot).numbers());
        Some(Block { from: rank, to })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let bits = Bits::of(slot);
        let even = self.is_even(rank) == (bits.first[1] == bits.second[1]);
        Some(Block { from: self.flipped(rank, even, bits.numbers()), to: rank })
    }
}

static INFO: Info = Info::new(
    "bit-flips",
    "both bits of the coordinates on a mesh of 4x4, even ranks along rows while odd ones along columns",
    "own construction",
)
.taking(&[STEPS]);

impl Algorithm for BitFlips {
    fn info(&self) -> &Info {
        &INFO
    }

    fn candidates(&self, _: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let more = (STEPS.name.to_owned(), 7u64.into());
        Ok(vec![Parameters::new(), Parameters::from([more])])
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let square = SquareGrid::of(request, Some(false))?;
        let sides = square.grid.sides();
        check_sides(&square.grid, "two sides of 4", |u| sides[u] > 1 && sides[u] != 4)?;
        let steps = values.number(STEPS.name, 5, 7)?.unwrap_or(5);
        if steps == 6 {
            return Err(values.refused(STEPS.name, "5 or 7"));
        }
        let both = usize::from(steps == 7);
        let sum = |of: [&[u32]; 2]| u128::from(of[both].iter().sum::<u32>());
        let claims = Claims {
            hops: Some(sum(HOPS)),
            hops_floor: sum(HOPS),
            rearrangements: Some(0),
            contention_free: true,
            ..Claims::new(steps, request.bytes(sum(BLOCKS)))
        };
        let rule = Flips { square, both: both == 1 };
        Ok(Solution::new(request, values, rule, claims).with(STEPS.name, steps))
    }
}
