//! Parts of the blocks along all n dimensions at once, by n ports.
//!
//! # Parts
//! In stage k of n, part c of the blocks moves along dimension (c + k) mod n. So in every step of a stage each part
//! has a dimension and a port of its own.
//!
//! # Sides
//! At stride 1 a side has the rings and steps of [`StridedLine`](super::line::Line), all its ranks in one ring. At stride
//! 2 there are two classes of ranks: those whose coordinates have an even sum, and those of an odd one. In step j of
//! N/2 - 1 the even class hops 2 upwards and the odd one 2 downwards if j is even, else the other way
//! around. The hops of one class fill one direction of all lines. A message has the blocks that go at least
//! `2 (floor(j/2) + 1)` hops in its direction. Blocks of N/2 hops go in the direction of step 0.
//!
//! # The last hops
//! With `last=axis` every stage ends with one hop, upwards and with `landing=short` also downwards, along the
//! dimension of the part. With `last=all` steps follow in which every rank sends a message for each of some moves in
//! {0, 1, -1}^n, by n ports at most, no two of which use one direction of one dimension.
//!
//! # Claims
//! There is no link contention. On n sides of N, a multiple of 4, P ranks, stride 2:
//!
//! - near, axis: `n N/2` steps, `P N/8 + P/2` blocks;
//! - short, axis: `n (N/2 + 1)` steps, `P N/8 + P/4`;
//! - short, all: two dimensions `N + 2` steps, `P N/8 + P/8`; three `3 N/2 + 7`, `P N/8 + P/16`.
//!
//! At stride 1 and a fold of 4, N a multiple of 8: `n (N/2 + 4)` steps, `P N/8`, the bisection bound. On sides that
//! differ the longest one is N. Own construction, new to our knowledge.
//!
//! # The layout
//! A slot has a digit for each dimension: at stride 1 that of [`StridedLine`](super::line::Line), at stride 2 the offset
//! from source to destination. A block is received into the slot just sent.

mod corners;
mod settings;
mod shares;
mod side;

use smallvec::SmallVec;
use topocoll_schedule::{Block, RankClasses, Rule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Coordinates, Grid, Rank, Route};

use self::corners::{Corner, Group};
pub(super) use self::settings::{settings, solve};
use self::shares::Shares;
use self::side::{Side, SideTurn};
use super::MOST_STEPS;
use crate::layout::mixed_radix_layout::Ends;
use crate::layout::translation::{classes, shift};
use crate::{Claims, Request};

/// The most dimensions, as moves of all of them are searched for groups.
const MOST_SIDES: usize = 4;

struct PartsRule {
    grid: Grid,
    /// The sides of more than one rank.
    sides: SmallVec<[Side; 3]>,
    shares: Shares,
    /// Steps of hops in a stage.
    hop_steps: u32,
    /// Steps of a stage after them.
    last_steps: u32,
    /// Steps after all stages.
    groups: Vec<Group>,
}

/// What all ranks do in a step.
enum PartsStep<'p> {
    Stage(usize, SideTurn),
    Last(&'p Group),
}

impl PartsRule {
    /// None where there are too many steps.
    fn new(grid: &Grid, sides: SmallVec<[Side; 3]>, axis: bool, shares: Shares) -> Option<Self> {
        let hop_steps = sides.iter().map(Side::hop_steps).max()?;
        let last_steps = sides.iter().map(|side| side.last_steps(axis)).max()?;
        let groups = if axis { Vec::new() } else { corners::groups(&sides) };
        let stages = (u64::from(hop_steps) + u64::from(last_steps)) * sides.len() as u64;
        let fits = stages + groups.len() as u64 <= MOST_STEPS.into();
        let grid = grid.clone();
        fits.then_some(Self { grid, sides, shares, hop_steps, last_steps, groups })
    }

    fn phase(&self, step: u32) -> PartsStep<'_> {
        let steps = self.hop_steps + self.last_steps;
        let stages = steps * self.sides.len() as u32;
        if let Some(number) = step.checked_sub(stages) {
            return PartsStep::Last(&self.groups[number as usize]);
        }
        let turn = match (step % steps).checked_sub(self.hop_steps) {
            None => SideTurn::Hop(step % steps),
            Some(step) => SideTurn::Last(step),
        };
        PartsStep::Stage((step / steps) as usize, turn)
    }

    /// The dimension of a part in a stage.
    fn along(&self, part: usize, stage: usize) -> usize {
        (part + stage) % self.sides.len()
    }

    /// The coordinates in the dimensions longer than 1.
    fn at(&self, rank: Rank) -> Coordinates {
        self.sides.iter().map(|side| self.grid.radix().coordinate(rank, side.dimension())).collect()
    }

    fn shifted(&self, rank: Rank, u: usize, hops: i64) -> Rank {
        self.grid.radix().shifted(rank, self.sides[u].dimension(), hops)
    }

    /// The slots whose blocks make the last hops of a corner.
    fn corner_slots(&self, corner: Corner) -> SlotSet {
        let left = |(u, side): (usize, &Side)| side.left(corner.hop(u));
        let digits: SmallVec<[Strided; 3]> = self.sides.iter().enumerate().map(left).collect();
        self.shares.whole(&digits)
    }

    /// The messages of a step: slots and hops of one rank for each kind.
    fn kinds(&self, step: u32, each: &mut dyn FnMut(&SlotSet, u64)) {
        match self.phase(step) {
            PartsStep::Stage(stage, turn) => {
                for part in 0..self.sides.len() {
                    let u = self.along(part, stage);
                    for message in self.sides[u].kinds(turn) {
                        let slots = self.shares.slots(part, u, &message.digits);
                        each(&slots, message.to.unsigned_abs());
                    }
                }
            }
            PartsStep::Last(group) => {
                for &corner in group {
                    each(&self.corner_slots(corner), corner.hops().into());
                }
            }
        }
    }

    fn claims(&self, request: &Request<'_>) -> Claims {
        let bytes = request.problem.block_bytes;
        Claims::of_messages(bytes, self.steps(), |step, each| self.kinds(step, each))
    }

    /// The other end of a block, by digits.
    fn end(&self, rank: Rank, slot: Slot, end: impl Fn(&Side, u32, u32) -> u32) -> Rank {
        let ends = self.sides.iter().map(|side| {
            let weight = self.grid.radix().stride(side.dimension());
            let digit = slot / u64::from(weight) % u64::from(side.ranks());
            end(side, self.grid.radix().coordinate(rank, side.dimension()), digit as u32) * weight
        });
        Rank(ends.sum())
    }

    fn ends(&self, rank: Rank, end: impl Fn(&Side, u32, u32) -> u32) -> Ends {
        let mut ends = Ends::new(self.slots());
        for side in self.sides.iter().rev() {
            let at = self.grid.radix().coordinate(rank, side.dimension());
            let weight = self.grid.radix().stride(side.dimension());
            ends.prepend(side.ranks(), |digit| end(side, at, digit) * weight);
        }
        ends
    }
}

impl Rule for PartsRule {
    fn steps(&self) -> u32 {
        (self.hop_steps + self.last_steps) * self.sides.len() as u32 + self.groups.len() as u32
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        match self.phase(step) {
            PartsStep::Stage(stage, turn) => {
                let at = self.at(rank);
                let even = at.iter().sum::<u32>() % 2 == 0;
                for part in 0..self.sides.len() {
                    let u = self.along(part, stage);
                    let side = &self.sides[u];
                    let Some(message) = side.message(turn, at[u], even) else { continue };
                    let slots = self.shares.slots(part, u, &message.digits);
                    out.receive(self.shifted(rank, u, message.from), slots.clone());
                    let route = Route::straight(side.dimension() as u32, message.to);
                    out.send(self.shifted(rank, u, message.to), slots, route);
                }
            }
            PartsStep::Last(group) => {
                for &corner in group {
                    let slots = self.corner_slots(corner);
                    let sides = self.sides.iter().enumerate();
                    let hops = sides.map(|(u, side)| (side.dimension(), corner.hop(u)));
                    shift(&self.grid, rank, hops, slots, out);
                }
            }
        }
    }

    fn slots(&self) -> u64 {
        self.grid.radix().ranks().into()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: rank, to: self.end(rank, slot, Side::to) })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: self.end(rank, slot, Side::from), to: rank })
    }

    fn initial_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        out.clear();
        out.extend(self.ends(rank, Side::to).iter().map(|to| Some(Block { from: rank, to })));
    }

    fn final_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        out.clear();
        out.extend(self.ends(rank, Side::from).iter().map(|from| Some(Block { from, to: rank })));
    }

    fn classes(&self) -> RankClasses {
        classes(&self.grid, self.sides.iter().map(|side| (side.dimension(), side.period())))
    }

    fn cuts(&self) -> &[u64] {
        self.shares.cuts()
    }
}
