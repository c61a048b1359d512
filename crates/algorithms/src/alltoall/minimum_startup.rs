//! Exchange with startups logarithmic in the side, on a 2^d x 2^d torus or mesh: in the manner of
//! Suh and Yalamanchili 1998, as told by Suh and Shin 2001, section 5. Their pattern is in no text
//! at hand; this algorithm meets their startups, with less volume than theirs while d is small.
//!
//! # The idea
//! Ranks 2^k apart that exchange all cross the middle of their block. All pairs can do so at once
//! without link contention only if few ranks of each line hold the blocks of all: *holders of level
//! n*, whose row and column agree in the n lowest bits, one in each run of 2^n ranks along a row
//! and along a column. Bottom up, and down again:
//!
//! 1. For k = 0 .. u-1, holders of level k *exchange* along columns all blocks whose destination
//!    differs in bit k of the row; then those that are not holders of level k+1 *gather*: they send
//!    all their blocks to the rank 2^k off in their row, which is one.
//! 2. For k = u .. d-1, two steps of *exchange* along rows and along columns.
//! 3. For k = u-1 .. 0, holders of level k+1 *scatter*: they send to the rank 2^k off in their row
//!    the blocks whose destination differs from theirs in bit k of the column.
//!
//! A rank takes part in the two steps of step 2 as follows. At k = n all holders of level n send
//! along rows, then along columns. At k = n + 1 two of them would contend for the links of a row,
//! so half of them take columns first. At k = n + 2 four would, and on a torus, where k = d-1 is
//! half a ring, two of these go in the other direction around. So a mesh needs u = d - 2 and a
//! torus u = d - 3; and level u, where half as few holders do, is exchanged before the last
//! gathering.
//!
//! # The claim
//! There is no link contention and no rearrangement; messages that are not contiguous are packed.
//!
//! | per | claim, with v = 2^u, P ranks | printed |
//! |---|---|---|
//! | steps | `2d + u` | torus `3d - 3` (d >= 3), mesh `3d - 2` (d >= 2): the same |
//! | blocks, torus | `P/2 (10 v - 5)`; at d <= 3 `d P` | `P/2 (9 v + d^2 - 5d + 3)` |
//! | blocks, mesh | `P/2 (8 v - 5)`; at d <= 2 `d P` | `P/2 (7 v + d^2 - 3d - 1)` |
//! | hops | `2^(d+1) + v - 3` | torus `26 v - 3d - 3`, mesh `18 v - 3d - 4`: no less |
//!
//! Blocks are fewer than printed for d = 4 .. 7 on a torus and 3 .. 6 on a mesh, as many at the least
//! d and at d = 8 and 7, then more: by 10/9 and 8/7 at most. The printed forms begin at d = 3 and d = 2.
//!
//! # The layout
//! A block stays in its slot but where it is gathered or scattered. With s the rank that it comes
//! from and t that to which it goes, a slot is a number of bits, the upper first:
//!
//! ```text
//! o: u bits   low bits of s.column xor t.row       from where it was gathered; 0 before
//! i: u bits   low bits of t.column xor t.row       to where it is scattered; 0 after
//! c: d-u bits upper bits of s.column xor t.column
//! r: d bits   s.row xor t.row
//! ```
//!
//! So holders of level n have the slots with o < 2^n. Exchanged are those with one bit of c or r set,
//! the same at both ends; gathered are o < 2^k to o + 2^k, scattered are 2^k <= i < 2^(k+1) to
//! i - 2^k.

use topocoll_schedule::{Block, RankClasses, Rule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Rank, Route};

use crate::layout::square_grid::{Along, SquareGrid};
use crate::layout::translation::classes;
use crate::{Algorithm, Claims, Info, NotApplicable, Request, Solution, Values};

pub(crate) struct MinimumStartup;

struct FewStartups {
    square: SquareGrid,
    /// u.
    up: u32,
    does: Vec<Does>,
}

/// The kind of a step, at distance 2^k.
#[derive(Clone, Copy)]
enum Does {
    /// Holders of `level` exchange; those that take rows first do so in the first of two steps.
    Exchange { k: u32, level: u32, second: bool },
    /// Holders of level k send all their blocks to those of level k + 1.
    Gather { k: u32 },
    /// Holders of level k + 1 send to those of level k their blocks.
    Scatter { k: u32 },
}

impl FewStartups {
    fn new(square: SquareGrid) -> Self {
        let d = square.d;
        let up = d.saturating_sub(if square.wraps() { 3 } else { 2 });
        let mut does = Vec::new();
        let both = |k, level| [false, true].map(|second| Does::Exchange { k, level, second });
        for k in 0..up {
            if k + 1 == up {
                does.extend(both(up, k));
            }
            does.extend([Does::Exchange { k, level: k, second: true }, Does::Gather { k }]);
        }
        for k in (up + u32::from(up > 0))..d {
            does.extend(both(k, up));
        }
        does.extend((0..up).rev().map(|k| Does::Scatter { k }));
        Self { square, up, does }
    }

    /// Slots of one value of i.
    fn rest(&self) -> u64 {
        self.square.ranks() >> self.up
    }

    /// An exchange of holders of `level`, at distance 2^k: the dimension, the hops and the slots.
    fn exchange(
        &self,
        (r, c): (u32, u32),
        k: u32,
        level: u32,
        second: bool,
    ) -> (Along, i64, SlotSet) {
        // The rank's number among the 2^(k-level) holders that would contend for links.
        let turn = (r ^ c) >> level & ((1 << (k - level)) - 1);
        let along = if (turn % 2 == 1) == second { Along::Row } else { Along::Column };
        let moving = if along == Along::Row { c } else { r };
        let mut hops = hops(moving, k);
        if k + 1 == self.square.d && self.square.wraps() {
            // Half a ring: both directions lead there.
            hops = if turn < 2 { hops.abs() } else { -hops.abs() };
        }
        let weight = match along {
            Along::Row => 1 << (self.square.d + k - self.up),
            Along::Column => 1 << k,
        };
        let runs = (self.square.ranks() << level) / (2 * weight);
        (along, hops, SlotSet::of(Strided::runs(weight, runs, 2 * weight, weight)))
    }

    /// The slots that are scattered at distance 2^k, and those in which they land.
    fn scattered(&self, k: u32) -> [SlotSet; 2] {
        let (runs, length) = (1 << self.up, self.rest() << k);
        [length, 0].map(|base| SlotSet::of(Strided::runs(base, runs, self.square.ranks(), length)))
    }

    /// The bits o, i, column and row of a slot.
    fn bits(&self, slot: Slot) -> [u32; 4] {
        let (d, up) = (self.square.d, self.up);
        let field = |from: u32, bits: u32| (slot >> from & ((1 << bits) - 1)) as u32;
        [field(2 * d, up), field(2 * d - up, up), field(d, d - up) << up, field(0, d)]
    }
}

/// Hops to where bit k of a coordinate is the other.
fn hops(coordinate: u32, k: u32) -> i64 {
    if coordinate >> k & 1 == 0 { 1 << k } else { -(1 << k) }
}

impl Rule for FewStartups {
    fn steps(&self) -> u32 {
        self.does.len() as u32
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let at @ (r, c) = self.square.at(rank);
        let holds = |level: u32| (r ^ c) % (1 << level) == 0;
        let does = self.does[step as usize];
        let (Does::Exchange { level, .. } | Does::Gather { k: level } | Does::Scatter { k: level }) =
            does;
        if !holds(level) {
            return;
        }
        let (along, hops, sent, received) = match does {
            Does::Exchange { k, level, second } => {
                let (along, hops, slots) = self.exchange(at, k, level, second);
                (along, hops, Some(slots.clone()), Some(slots))
            }
            Does::Gather { k } => {
                let held = self.square.ranks() << k;
                let [from, to] = [0, held].map(|base| SlotSet::of(Strided::contiguous(base, held)));
                let holder = holds(k + 1);
                (Along::Row, hops(c, k), (!holder).then_some(from), holder.then_some(to))
            }
            Does::Scatter { k } => {
                let [from, to] = self.scattered(k);
                let holder = holds(k + 1);
                (Along::Row, hops(c, k), holder.then_some(from), (!holder).then_some(to))
            }
        };
        let dimension = self.square.dimension(along);
        let peer = self.square.grid.radix().shifted(rank, dimension, hops);
        if let Some(slots) = received {
            out.receive(peer, slots);
        }
        if let Some(slots) = sent {
            out.send(peer, slots, Route::straight(dimension as u32, hops));
        }
    }

    fn slots(&self) -> u64 {
        self.square.ranks() << self.up
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let (r, c) = self.square.at(rank);
        let [o, i, column, row] = self.bits(slot);
        let to = r ^ row;
        let low = (1 << self.up) - 1;
        // Above bit u the columns differ as told; below, the destination's differs from its row.
        let to = self.square.rank((to, (c ^ column) & !low | (to ^ i) & low));
        (o == 0).then_some(Block { from: rank, to })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let (r, c) = self.square.at(rank);
        let [o, i, column, row] = self.bits(slot);
        let low = (1 << self.up) - 1;
        let from = self.square.rank((r ^ row, (c ^ column) & !low | (r ^ o) & low));
        (i == 0).then_some(Block { from, to: rank })
    }

    fn classes(&self) -> RankClasses {
        // On a torus all go in the same direction at half a ring; below, partners are in the same
        // aligned block.
        let side = 1 << self.square.d;
        let period = if self.square.wraps() { side / 2 } else { side };
        let periods =
            [Along::Row, Along::Column].map(|along| (self.square.dimension(along), period));
        classes(&self.square.grid, periods)
    }
}

static INFO: Info = Info::new(
    "minimum-startup",
    "blocks gathered at few ranks of each line, exchanged there without link contention, scattered",
    "in the manner of Suh and Yalamanchili 1998, as told by Suh and Shin 2001",
);

impl Algorithm for MinimumStartup {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let rule = FewStartups::new(SquareGrid::of(request, None)?);
        let (d, up) = (rule.square.d, rule.up);
        // In units of P/2. Up and down again 1 + 2 + 2 for 2^k, k < u; two steps for each level
        // from u on, at the least level by as few holders as do.
        let v = 1u128 << up;
        let halves = 5 * (v - 1) + 2 * (1 << up.saturating_sub(1)) + 2 * v * u128::from(d - up - 1);
        let blocks = halves * u128::from(request.problem.ranks / 2);
        let hops = (2 << d) + v - 3;
        let claims = Claims {
            hops: Some(hops),
            hops_floor: hops,
            rearrangements: Some(0),
            contention_free: true,
            ..Claims::new(rule.steps().into(), request.bytes(blocks))
        };
        Ok(Solution::new(request, values, rule, claims))
    }
}
