//! Cyclic exchange on a 2^d x 2^d mesh (Sundar et al. 1994, as told by Suh and Shin 2001,
//! section 1), and what the torus scheme of Tseng, Gupta and Panda has in common with it.
//!
//! In every phase a rank communicates in two steps with two others, one in the same row and one in
//! the same column; some pairs do the one first, some the other. No text at hand gives the
//! partners; these meet all the counts that Suh and Shin print (Table 2).
//!
//! For k = 0 .. d-1 ranks 2^k apart in an aligned block of 2^(k+1) exchange all blocks whose
//! destination differs in bit k. All pairs of a block cross its middle link, so they take turns:
//! in step s = 0 .. 2^k - 1 the pairs along a row are those with (r + c) mod 2^k = s, the pairs
//! along a column those with (r + c + 1) mod 2^k = s; for k = 0 there are two steps, rows first.
//!
//! Claim: 2^d steps, 2^(3d-1) blocks, (2^(2d) + 2)/3 hops, 2^d - 1 rearrangements of P blocks, no
//! link shared.
//!
//! # The layout
//! A slot is a number of 2d bits, those of `src xor dst`. The bit to be exchanged comes first, so
//! that a message is the upper half of the buffer; then the other bit of its pair if that is to
//! come, the higher bits, and last those done, in the order in which they were. Before each but
//! its first message a rank rotates the bit just done to the end, and takes the bits of a new pair
//! in its own order. Ranks that exchange agree in all lower bits of their coordinates, and so in
//! the order of all that is done.

use topocoll_schedule::{
    Axis, Block, Parameters, Problem, RankClasses, Rule, Schedule, Slot, SlotSet, Step, Strided,
};
use topocoll_topology::{Coordinates, Rank, Route, Topology};

use crate::parameters::{check, origin};
use crate::squares::{Along, Square};
use crate::{Algorithm, Claims, NotApplicable};

pub(crate) struct CyclicExchange;

/// The rule: on a mesh the cyclic exchange; on a torus it runs in each of four groups of ranks, by
/// the parities of row and column, and two more steps exchange between the groups.
pub(crate) struct Cyclic {
    pub(crate) square: Square,
}

/// A bit of a block's way: `level` of the coordinate that changes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Bit {
    level: u32,
    along: Along,
}

impl Cyclic {
    /// Whether it runs in groups, on a torus.
    fn groups(&self) -> bool {
        self.square.wraps()
    }

    /// Levels inside a group.
    fn levels(&self) -> u32 {
        self.square.d - u32::from(self.groups())
    }

    /// Steps of all levels below `level`.
    fn steps_before(level: u32) -> u32 {
        if level == 0 { 0 } else { 1 << level }
    }

    /// The level of a step, and which of its steps this is; the last level is between groups.
    fn level(&self, step: u32) -> (u32, u32) {
        let inside = Self::steps_before(self.levels());
        if step >= inside {
            return (self.levels(), step - inside);
        }
        let level = if step < 2 { 0 } else { step.ilog2() };
        (level, step - Self::steps_before(level))
    }

    /// Row and column inside a group.
    fn in_group(&self, (r, c): (u32, u32)) -> (u32, u32) {
        let shift = u32::from(self.groups());
        (r >> shift, c >> shift)
    }

    /// The steps of a level in which a rank exchanges along its row and its column.
    fn turns(&self, at: (u32, u32), level: u32) -> (u32, u32) {
        if level == 0 || level == self.levels() {
            return (0, 1);
        }
        let (r, c) = self.in_group(at);
        let turns = 1 << level;
        ((r + c) % turns, (r + c + 1) % turns)
    }

    /// The bits of a level in the order in which a rank exchanges them.
    fn order(&self, at: (u32, u32), level: u32) -> [Bit; 2] {
        let (row, column) = self.turns(at, level);
        let bits = [Bit { level, along: Along::Row }, Bit { level, along: Along::Column }];
        if row < column { bits } else { [bits[1], bits[0]] }
    }

    /// The place of bits 0 .. 2d-1 in the layout at the end, the uppermost first.
    fn last_layout(&self, at: (u32, u32)) -> impl Iterator<Item = Bit> + '_ {
        let count = 2 * self.square.d;
        let bit = move |i: u32| self.order(at, i / 2)[i as usize % 2];
        (count.checked_sub(1)).into_iter().chain(0..count.saturating_sub(1)).map(bit)
    }

    /// The peers of a rank to which and from which it moves blocks with a bit, and the hops.
    fn peers(&self, at: (u32, u32), bit: Bit) -> (Rank, Rank, i64) {
        let (r, c) = at;
        let (moving, still) = if bit.along == Along::Row { (c, r) } else { (r, c) };
        let rank = |moved: u32| {
            self.square.rank(if bit.along == Along::Row { (still, moved) } else { (moved, still) })
        };
        if self.groups() && bit.level < self.levels() {
            // Groups that share a line go opposite ways around it.
            let hops = sign(moving) * (2 << bit.level);
            let side = 1i64 << self.square.d;
            let moved = |hops: i64| (i64::from(moving) + hops).rem_euclid(side) as u32;
            return (rank(moved(hops)), rank(moved(-hops)), hops);
        }
        let apart = if self.groups() { 1 } else { 1 << bit.level };
        let moved = moving ^ apart;
        (rank(moved), rank(moved), i64::from(moved) - i64::from(moving))
    }

    /// The rearrangement before a message along `bit`, the `nth` of its level: slots
    /// `(last, .., bit, ..)` become `(bit, .., last)`.
    fn rearrange(&self, bit: Bit, nth: u32, out: &mut Step) {
        let ranks = self.square.ranks() as i64;
        let axis = |count: i64, stride| Axis { count: count as u64, stride };
        let mut copy = |from: i64, to: i64, count: i64, strides: [i64; 4]| {
            let strided = |base: i64, outer, inner| {
                SlotSet::of(Strided {
                    base: base as u64,
                    outer: axis(2, outer),
                    inner: axis(count, inner),
                })
            };
            out.copy(strided(from, strides[0], strides[1]), strided(to, strides[2], strides[3]));
        };
        if nth == 1 || bit.along == Along::Row {
            // The bit stands second already.
            return copy(0, 0, ranks / 2, [ranks / 2, 1, 1, 2]);
        }
        // It stands behind the other of its pair, and they change places.
        for (other, own) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let from = other * ranks / 4 + own * ranks / 8;
            let to = own * ranks / 2 + other * ranks / 4;
            copy(from, to, ranks / 8, [ranks / 2, 1, 1, 2]);
        }
    }
}

/// The way around the ring of a rank at `x`.
fn sign(x: u32) -> i64 {
    if x % 2 == 0 { 1 } else { -1 }
}

impl Rule for Cyclic {
    fn steps(&self) -> u32 {
        Self::steps_before(self.levels()) + if self.groups() { 2 } else { 0 }
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let at = self.square.at(rank);
        let (level, s) = self.level(step);
        let (row, column) = self.turns(at, level);
        let along = match s {
            _ if s == row => Along::Row,
            _ if s == column => Along::Column,
            _ => return,
        };
        let bit = Bit { level, along };
        let nth = u32::from(self.order(at, level)[1] == bit);
        if level + nth > 0 {
            self.rearrange(bit, nth, out);
        }
        let half = self.square.ranks() / 2;
        let slots = SlotSet::of(Strided::contiguous(half, half));
        let (to, from, hops) = self.peers(at, bit);
        out.receive(from, slots.clone());
        out.send(to, slots, Route::straight(self.square.dimension(along) as u32, hops));
    }

    fn slots(&self) -> u64 {
        self.square.ranks()
    }

    fn start(&self, rank: Rank, slot: Slot) -> Option<Block> {
        // Levels upwards, rows first, the uppermost bit first.
        let count = 2 * self.square.d;
        let bits = (0..count).map(|i| Bit {
            level: i / 2,
            along: if i % 2 == 0 { Along::Row } else { Along::Column },
        });
        let at = self.square.at(rank);
        let to =
            bits.enumerate().fold(at, |at, (i, bit)| match slot >> (count - 1 - i as u32) & 1 {
                0 => at,
                _ => self.square.at(self.peers(at, bit).0),
            });
        Some(Block { from: rank, to: self.square.rank(to) })
    }

    fn finish(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let at = self.square.at(rank);
        let count = 2 * self.square.d;
        let bits: Coordinates = self
            .last_layout(at)
            .map(|b| 2 * b.level + u32::from(b.along == Along::Column))
            .collect();
        let set = |i: u32| {
            bits.iter()
                .position(|&b| b == i)
                .is_some_and(|place| slot >> (count - 1 - place as u32) & 1 == 1)
        };
        // Back from the last bit: between groups first, which fixes the ways around the rings.
        let from = (0..count).rev().filter(|&i| set(i)).fold(at, |at, i| {
            let along = if i % 2 == 0 { Along::Row } else { Along::Column };
            self.square.at(self.peers(at, Bit { level: i / 2, along }).1)
        });
        Some(Block { from: self.square.rank(from), to: rank })
    }

    fn classes(&self) -> RankClasses {
        if !self.groups() {
            return RankClasses::distinct(self.square.grid.radix().ranks());
        }
        let mut periods = Coordinates::from_elem(1, self.square.grid.sides().len());
        for along in [Along::Row, Along::Column] {
            periods[self.square.dimension(along)] = (1 << self.levels()).max(2);
        }
        RankClasses::translations(self.square.grid.radix().clone(), periods)
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

impl CyclicExchange {
    fn rule(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        given: &Parameters,
    ) -> Result<Cyclic, NotApplicable> {
        check(self, problem, given)?;
        Ok(Cyclic { square: Square::of(topology, Some(false))? })
    }
}

impl Algorithm for CyclicExchange {
    fn name(&self) -> &'static str {
        "cyclic-exchange"
    }

    fn summary(&self) -> &'static str {
        "pairs at growing powers of two along rows and columns, those that would share links in turn"
    }

    fn source(&self) -> &'static str {
        "Sundar et al. 1994, as told by Suh and Shin 2001"
    }

    fn plan(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        given: &Parameters,
    ) -> Result<Schedule, NotApplicable> {
        let rule = self.rule(problem, topology, given)?;
        Ok(Schedule::new(*problem, origin(self, Parameters::new()), rule))
    }

    fn claims(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        given: &Parameters,
    ) -> Result<Claims, NotApplicable> {
        Ok(self.rule(problem, topology, given)?.claims(problem))
    }
}
