//! Exchange with startups logarithmic in the side, on a 2^d x 2^d torus or mesh: in the manner of
//! Suh and Yalamanchili 1998, as told by Suh and Shin 2001, section 5. Their pattern is in no text at
//! hand; what follows meets their startups, and for small d their volume.
//!
//! # The idea
//! Ranks 2^k apart that exchange all cross the middle of their block. So many can do so at once
//! without sharing a link only if few ranks of each line hold what all have: those with r = c mod
//! some power of two, which meet each row and each column equally often.
//!
//! 1. *Up*, k = 0 .. u-1: ranks with r - c = 2^k mod 2^(k+1) hand all they have to the rank 2^k off
//!    in their column. Then ranks with r = c mod 2^u hold everything.
//! 2. *Exchange*, k = d-1 .. 0, two steps: along rows all blocks whose destination differs in bit k
//!    of the column, then along columns those that differ in bit k of the row. For k < u only ranks
//!    with r = c mod 2^(k+1) hold blocks before, and those with r = c mod 2^k after: the holders
//!    send along rows, they and who received send along columns.
//!
//! A mesh needs u = d - 2: at k = d-1 two holders of a row would share a middle link, so half of
//! them take columns first. A torus needs u = d - 3: at k = d-1, half a ring apart, two more go the
//! other way around. On lower levels there are fewer.
//!
//! Claim: u + 2d steps, no link shared: 3d - 3 on a torus (d >= 3) and 3d - 2 on a mesh (d >= 2), as
//! printed. With P ranks, 5/2 (2^u - 1) P blocks for what is handed up and spread again, 2^u P for
//! each level k >= u; a mesh 9/8 2^(3d) - 5/2 2^(2d), a torus 11/16 2^(3d) - 5/2 2^(2d). That is
//! what is printed for d <= 4 on a mesh and d <= 5 on a torus, and more beyond (by 3 % and 2.5 % at
//! the next d). Hops: 2^u - 1 + 2 (2^d - 1), fewer than printed.
//!
//! # The layout
//! A slot has the u bits o, the upper ones, in which the row of the rank that handed the block up
//! differs from its holder's, and the 2d bits of `src xor dst`. On level k < u a block moves along
//! columns if its row bit k and bit k of o differ; after it the row and column bits and the kind of
//! the holder tell bit k of o, which a rearrangement removes.

use topocoll_schedule::{
    Block, Parameters, Problem, RankClasses, Rule, Schedule, Slot, SlotSet, Step, Strided,
};
use topocoll_topology::{Rank, Route, Topology};

use crate::parameters::{check, origin};
use crate::squares::{Along, Square};
use crate::{Algorithm, Claims, NotApplicable};

pub(crate) struct MinimumStartup;

struct FewStartups {
    square: Square,
    /// u.
    up: u32,
}

impl FewStartups {
    fn new(square: Square) -> Self {
        let up = square.d.saturating_sub(if square.wraps() { 3 } else { 2 });
        Self { square, up }
    }

    /// Slots of level k < u whose bits (o, row, column) are as given; o above k is 0.
    fn level_set(&self, k: u32, [o, row, column]: [u64; 3]) -> Strided {
        let (ranks, weight) = (self.square.ranks(), 1u64 << (2 * k));
        let base = (o << k) * ranks + (2 * row + column) * weight;
        let runs = (1 << k) * ranks / (4 * weight);
        Strided::runs(base, runs, 4 * weight, weight)
    }

    /// Slots with bit k of the coordinate that changes, under `origins` values of o.
    fn set(&self, along: Along, k: u32, origins: u64) -> SlotSet {
        let weight = 1 << (2 * k + u32::from(along == Along::Column));
        let runs = origins * self.square.ranks() / (2 * weight);
        SlotSet::of(Strided::runs(weight, runs, 2 * weight, weight))
    }

    /// Whether the holders of level k, before it, are this far from the diagonal or nearer.
    fn holds(&self, (r, c): (u32, u32), k: u32) -> bool {
        r.wrapping_sub(c) % (1 << k.min(self.up)) == 0
    }

    /// On a level k >= u, 2^(k-u) ranks of a row hold blocks that cross the same links: which of
    /// them a rank is.
    fn turn(&self, (r, c): (u32, u32), k: u32) -> u32 {
        (r.wrapping_sub(c) >> self.up) % (1 << k.saturating_sub(self.up))
    }

    fn exchange(&self, rank: Rank, k: u32, second: bool, out: &mut Step) {
        let at = self.square.at(rank);
        // Two take rows and columns in turn; two more, on a torus, go the other way around.
        let turn = self.turn(at, k);
        let along = if second == (turn % 2 == 0) { Along::Column } else { Along::Row };
        let apart = 1u32 << k;
        let (r, c) = at;
        let peer = match along {
            Along::Row => (r, c ^ apart),
            Along::Column => (r ^ apart, c),
        };
        let moving = if along == Along::Row { c } else { r };
        let mut hops = i64::from(moving ^ apart) - i64::from(moving);
        if k + 1 == self.square.d && self.square.wraps() {
            // Half a ring: both ways lead there.
            hops = if turn < 2 { i64::from(apart) } else { -i64::from(apart) };
        }
        let route = Route::straight(self.square.dimension(along) as u32, hops);
        let to = self.square.rank(peer);
        if k >= self.up {
            if self.holds(at, self.up) {
                let slots = self.set(along, k, 1 << self.up);
                out.receive(to, slots.clone());
                out.send(to, slots, route);
            }
            return;
        }
        match along {
            Along::Row if self.holds(at, k + 1) => {
                out.send(to, self.set(along, k, 2 << k), route);
            }
            Along::Row if self.holds(peer, k + 1) => {
                out.receive(to, self.set(along, k, 2 << k));
            }
            Along::Column if self.holds(at, k) => {
                // Ranks of the diagonal kept column bit 0, the others received column bit 1.
                let kept = u64::from(!self.holds(at, k + 1));
                let differing = |column| {
                    let mut set = SlotSet::of(self.level_set(k, [0, 1, column]));
                    set.push(self.level_set(k, [1, 0, column]));
                    set
                };
                out.receive(to, differing(1 - kept));
                out.send(to, differing(kept), route);
            }
            _ => {}
        }
    }

    /// Removes bit k of o, which is 1 for these row and column bits.
    fn rearrange(&self, at: (u32, u32), k: u32, out: &mut Step) {
        let off = u64::from(!self.holds(at, k + 1));
        for row in 0..2 {
            let column = row ^ off ^ 1;
            out.copy(
                SlotSet::of(self.level_set(k, [1, row, column])),
                SlotSet::of(self.level_set(k, [0, row, column])),
            );
        }
    }
}

impl Rule for FewStartups {
    fn steps(&self) -> u32 {
        self.up + 2 * self.square.d
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let at = self.square.at(rank);
        if step >= self.up {
            let (k, second) = (self.square.d - 1 - (step - self.up) / 2, (step - self.up) % 2 == 1);
            if !second && k + 1 < self.up && self.holds(at, k + 1) {
                self.rearrange(at, k + 1, out);
            }
            return self.exchange(rank, k, second, out);
        }
        let apart = 1u32 << step;
        let (r, c) = at;
        let peer = (r ^ apart, c);
        let all = SlotSet::of(Strided::contiguous(0, self.square.ranks() << step));
        let above = SlotSet::of(Strided::contiguous(
            self.square.ranks() << step,
            self.square.ranks() << step,
        ));
        if !self.holds(at, step) {
            return;
        }
        let dimension = self.square.dimension(Along::Column) as u32;
        let hops = i64::from(peer.0) - i64::from(r);
        match self.holds(at, step + 1) {
            true => out.receive(self.square.rank(peer), above),
            false => out.send(self.square.rank(peer), all, Route::straight(dimension, hops)),
        }
    }

    fn slots(&self) -> u64 {
        self.square.ranks() << self.up
    }

    fn start(&self, rank: Rank, slot: Slot) -> Option<Block> {
        (slot < self.square.ranks()).then(|| Block { from: rank, to: self.other_end(rank, slot) })
    }

    fn finish(&self, rank: Rank, slot: Slot) -> Option<Block> {
        // On level 0 no rearrangement follows: bit 0 of o is as row, column and kind tell.
        let at = self.square.at(rank);
        let (o, bits) = (slot / self.square.ranks(), slot % self.square.ranks());
        let (row, column) = self.square.bits(bits);
        let off = u32::from(self.up > 0 && !self.holds(at, 1));
        let expected = if self.up > 0 { (row ^ column ^ off) & 1 } else { 0 };
        (o == u64::from(expected)).then(|| Block { from: self.other_end(rank, bits), to: rank })
    }

    fn classes(&self) -> RankClasses {
        RankClasses::distinct(self.square.grid.radix().ranks())
    }
}

impl FewStartups {
    fn other_end(&self, rank: Rank, bits: Slot) -> Rank {
        let ((r, c), (row, column)) = (self.square.at(rank), self.square.bits(bits));
        self.square.rank((r ^ row, c ^ column))
    }
}

impl MinimumStartup {
    fn rule(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        given: &Parameters,
    ) -> Result<FewStartups, NotApplicable> {
        check(self, problem, given)?;
        Ok(FewStartups::new(Square::of(topology, None)?))
    }
}

impl Algorithm for MinimumStartup {
    fn name(&self) -> &'static str {
        "minimum-startup"
    }

    fn summary(&self) -> &'static str {
        "blocks handed to few ranks of each line, exchanged there without sharing links, spread again"
    }

    fn source(&self) -> &'static str {
        "in the manner of Suh and Yalamanchili 1998, as told by Suh and Shin 2001"
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
        let rule = self.rule(problem, topology, given)?;
        let (d, up, ranks) = (rule.square.d, rule.up, u128::from(problem.ranks));
        let held = ranks << up;
        let blocks = 5 * (held - ranks) / 2 + u128::from(d - up) * held;
        let hops = (1u128 << up) - 1 + 2 * ((1 << d) - 1);
        Ok(Claims {
            hops: Some(hops),
            hops_floor: hops,
            rearrangements: Some(up.saturating_sub(1)),
            contention_free: true,
            ..Claims::new(rule.steps().into(), blocks * u128::from(problem.block_bytes))
        })
    }
}
