//! Cyclic exchange on a 2^d x 2^d mesh (Sundar et al. 1994, as told by Suh and Shin 2001, section
//! 1), and its common part with the torus scheme of Tseng, Gupta and Panda.
//!
//! In every phase a rank communicates in two steps with two others, one in the same row and one in
//! the same column; some pairs do the one first, some the other. No text at hand gives the
//! partners; these meet all the counts that Suh and Shin print (Table 2).
//!
//! On level k = 0 .. d-1 ranks 2^k apart in an aligned block of 2^(k+1) exchange all blocks whose
//! destination differs in bit k. All 2^k pairs of a block cross its middle link, so they take turns
//! by their class (c - r) mod 2^k, of which each row and each column of a block has one pair: in
//! phase p of two steps classes 2p, along rows first, and 2p + 1, along columns first. Level 0 is a
//! phase of a single class. A rank rests in the phases of the other classes.
//!
//! Claim: 2^d steps, 2^(3d-1) blocks, (2^(2d) + 2)/3 hops, 2^d - 1 rearrangements of P blocks, no
//! link contention.
//!
//! # The layout
//! A rank has 2d turns, two on each level, and in turn t exchanges the blocks whose digit t is 1. A
//! slot is those 2d bits, the first uppermost: whether a block moves in each turn of the ranks that
//! it passes. Two ranks that exchange agree in all lower bits of their coordinates, and so in the
//! order of all turns done. Before each turn but its first a rank rotates the bit just done to the
//! end, so that a message is the upper half of the buffer.

use topocoll_schedule::{Axis, Block, Problem, RankClasses, Rule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Rank, Route};

use crate::layout::square_grid::{Along, SquareGrid};
use crate::layout::translation::classes;
use crate::{Algorithm, Claims, Info, NotApplicable, Request, Solution, Values};

pub(crate) struct CyclicExchange;

/// The rule: on a mesh the cyclic exchange; on a torus it runs in each of four groups of ranks, by
/// the parities of row and column, and one more level of two steps exchanges between the groups.
pub(crate) struct Cyclic {
    pub(crate) square: SquareGrid,
}

/// A rank's messages in one of its turns.
struct Turn {
    step: u32,
    along: Along,
    /// Hops to the rank to which it sends, and to that from which it receives.
    to: i64,
    from: i64,
}

impl Cyclic {
    /// Whether it runs in groups, on a torus.
    fn groups(&self) -> bool {
        self.square.wraps()
    }

    /// Levels within a group.
    fn levels(&self) -> u32 {
        self.square.d - u32::from(self.groups())
    }

    /// Steps of all levels below `level`.
    fn steps_before(level: u32) -> u32 {
        if level == 0 { 0 } else { 1 << level }
    }

    /// The level of a step, and which of a rank's two turns on it can be there.
    fn turn_of(&self, step: u32) -> (u32, u32) {
        // Each level but the first begins with step 2^k and has even steps.
        (step.checked_ilog2().unwrap_or(0), step % 2)
    }

    /// The distance of a group's neighbours on a level, and the number of classes c - r.
    fn diagonals(&self, level: u32) -> (u32, u32) {
        let between = level == self.levels();
        let stride = if self.groups() && !between { 2 } else { 1 };
        (stride, if between { 1 } else { 1 << level })
    }

    /// Turn 2k or 2k + 1, of level k, of a rank.
    fn turn(&self, (r, c): (u32, u32), turn: u32) -> Turn {
        let (level, second) = (turn / 2, turn % 2);
        let (stride, classes) = self.diagonals(level);
        let class = (c / stride).wrapping_sub(r / stride) & (classes - 1);
        let step = Self::steps_before(level) + (class & !1) + second;
        let along = if class % 2 == second { Along::Row } else { Along::Column };
        let moving = if along == Along::Row { c } else { r };
        let apart = i64::from(stride * classes);
        if stride == 2 {
            // Two groups on a line go around it in opposite directions.
            let to = if moving % 2 == 0 { apart } else { -apart };
            return Turn { step, along, to, from: -to };
        }
        let to = if moving & classes == 0 { apart } else { -apart };
        Turn { step, along, to, from: to }
    }

    /// The rank `hops` further, counted around the side.
    fn moved(&self, rank: Rank, along: Along, hops: i64) -> Rank {
        let (r, c) = self.square.at(rank);
        let around = |x: u32| x.wrapping_add(hops as u32) & ((1 << self.square.d) - 1);
        self.square.rank(if along == Along::Row { (r, around(c)) } else { (around(r), c) })
    }

    /// The turns of ranks that it passes in which the block of a slot moves, before any rotation.
    fn turns_of(&self, slot: Slot) -> impl DoubleEndedIterator<Item = u32> {
        let count = 2 * self.square.d;
        (0..count).filter(move |turn| slot >> (count - 1 - turn) & 1 == 1)
    }

    /// The blocks of all slots, bit by bit: of each turn the weight of its bit.
    fn unfold(
        &self,
        rank: Rank,
        turns: impl Iterator<Item = (u32, usize)>,
        hops: impl Fn(Turn) -> i64,
        block: impl Fn(Rank) -> Block,
        out: &mut Vec<Option<Block>>,
    ) {
        let slots = self.square.ranks() as usize;
        // Slots of the bits so far, and their other ends.
        let mut ends = Vec::with_capacity(slots);
        ends.push((0, rank));
        for (number, weight) in turns {
            for i in 0..ends.len() {
                let (slot, end) = ends[i];
                let turn = self.turn(self.square.at(end), number);
                let along = turn.along;
                ends.push((slot + weight, self.moved(end, along, hops(turn))));
            }
        }
        out.clear();
        out.resize(slots, None);
        for (slot, end) in ends {
            out[slot] = Some(block(end));
        }
    }

    /// The rearrangement that rotates the uppermost bit to the end: slots `(bit, rest)` become
    /// `(rest, bit)`.
    fn rotate(&self, out: &mut Step) {
        let half = self.square.ranks() / 2;
        let axis = |count, stride: u64| Axis { count, stride: stride as i64 };
        let strided = |outer, inner| {
            SlotSet::of(Strided { base: 0, outer: axis(2, outer), inner: axis(half, inner) })
        };
        out.copy(strided(half, 1), strided(1, 2));
    }
}

impl Rule for Cyclic {
    fn steps(&self) -> u32 {
        Self::steps_before(self.levels()) + if self.groups() { 2 } else { 0 }
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let (level, second) = self.turn_of(step);
        let number = 2 * level + second;
        let turn = self.turn(self.square.at(rank), number);
        if turn.step != step {
            return;
        }
        if number > 0 {
            self.rotate(out);
        }
        let half = self.square.ranks() / 2;
        let slots = SlotSet::of(Strided::contiguous(half, half));
        let dimension = self.square.dimension(turn.along) as u32;
        out.receive(self.moved(rank, turn.along, turn.from), slots.clone());
        let to = self.moved(rank, turn.along, turn.to);
        out.send(to, slots, Route::straight(dimension, turn.to));
    }

    /// Two diagonals of each aligned block of classes.
    fn active(&self, step: u32, classes: &RankClasses, each: &mut dyn FnMut(Rank)) {
        let (level, second) = self.turn_of(step);
        let (stride, diagonals) = self.diagonals(level);
        if classes.radix() != self.square.grid.radix() || diagonals == 1 {
            return classes.representatives().for_each(each);
        }
        let first = step - Self::steps_before(level) - second;
        let counted = |along| classes.periods()[self.square.dimension(along)];
        for r in 0..counted(Along::Column) {
            for diagonal in [first, first + 1] {
                let start = (r / stride + diagonal) % diagonals;
                let columns =
                    (stride * start..counted(Along::Row)).step_by((stride * diagonals) as usize);
                columns.flat_map(|c| c..c + stride).for_each(|c| each(self.square.rank((r, c))));
            }
        }
    }

    fn slots(&self) -> u64 {
        self.square.ranks()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let to = self.turns_of(slot).fold(rank, |at, turn| {
            let turn = self.turn(self.square.at(at), turn);
            self.moved(at, turn.along, turn.to)
        });
        Some(Block { from: rank, to })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        // All bits but the last have been rotated to the end, so the last is uppermost.
        let slot = slot << 1 | slot >> (2 * self.square.d - 1);
        let from = self.turns_of(slot).rev().fold(rank, |at, turn| {
            let turn = self.turn(self.square.at(at), turn);
            self.moved(at, turn.along, turn.from)
        });
        Some(Block { from, to: rank })
    }

    fn initial_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        let uppermost = 2 * self.square.d - 1;
        let turns = (0..=uppermost).map(|turn| (turn, 1 << (uppermost - turn)));
        self.unfold(rank, turns, |turn| turn.to, |to| Block { from: rank, to }, out);
    }

    fn final_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        let uppermost = 2 * self.square.d - 1;
        let turns = (0..uppermost).rev().map(|turn| (turn, 1 << (uppermost - 1 - turn)));
        let turns = std::iter::once((uppermost, 1 << uppermost)).chain(turns);
        self.unfold(rank, turns, |turn| turn.from, |from| Block { from, to: rank }, out);
    }

    fn classes(&self) -> RankClasses {
        if !self.groups() {
            return RankClasses::distinct(self.square.grid.radix().ranks());
        }
        let period = (1 << self.levels()).max(2);
        let periods =
            [Along::Row, Along::Column].map(|along| (self.square.dimension(along), period));
        classes(&self.square.grid, periods)
    }
}

impl Cyclic {
    /// Counts of the closed form.
    pub(crate) fn claims(&self, problem: &Problem) -> Claims {
        let steps = u64::from(self.steps());
        // The distances of each level, 2^k in its 2^k steps: (4^levels + 2)/3 in all.
        let at_level = |k: u32| if k == 0 { 2 } else { 1u128 << (2 * k) };
        let inside: u128 = (0..self.levels()).map(at_level).sum();
        let hops = if self.groups() { 2 * inside + 2 } else { inside };
        let blocks = |blocks: u64| u128::from(blocks) * u128::from(problem.block_bytes);
        let half = blocks(self.square.ranks() / 2);
        Claims {
            hops: Some(hops),
            hops_floor: hops,
            rearrangements: Some(steps as u32 - 1),
            copied_bytes: Some(u128::from(steps - 1) * blocks(self.square.ranks())),
            contention_free: true,
            ..Claims::new(steps, u128::from(steps) * half)
        }
    }
}

static INFO: Info = Info::new(
    "cyclic-exchange",
    "pairs at growing powers of two along rows and columns, pairs with common links in turn",
    "Sundar et al. 1994, as told by Suh and Shin 2001",
);

impl Algorithm for CyclicExchange {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let rule = Cyclic { square: SquareGrid::of(request, Some(false))? };
        let claims = rule.claims(&request.problem);
        Ok(Solution::new(request, values, rule, claims))
    }
}
