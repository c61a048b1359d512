//! Every block straight to its destination over full rings: the direct complete exchange of a torus
//! at the bisection bound, without link contention.
//!
//! Hinrichs et al. 1994 announce N^3/8 phases on an N x N torus, all links busy in each. Before them Hayashi
//! and Horie (US patent 5,826,033, priority 1991) have a table of a P/8 phases for tori of P ranks in any
//! number of dimensions, of longest side a. A2AT (Yazaki, Takaue, Ajima, Shimizu and Ishihata, ISPA 2012) orders
//! single messages on tori and meshes so that all links are used and no barriers are needed (read: abstracts).
//! This is a construction of that kind, to our knowledge a new one, for any number of dimensions and any
//! sides that wrap.
//!
//! # One ring
//! Let N = 2h. An edge {p, q} of the complete graph on Z_h is a *tour* of the ring: p, q, p + h,
//! q + h and back to p, in that order by +, and in the reverse order by -. Its four messages by +
//! (or by -) use every link by + (or by -) once, and its four senders are its receivers. Every
//! message of 1 to h - 1 hops is of one tour. The h - 1 perfect matchings of the complete graph,
//! for even h, make h - 1 *rounds* in each direction, in each of which every rank sends once;
//! matching c pairs c + t with c - t mod h - 1, and c with h - 1. In one more round, of matching 0,
//! one end of each edge sends half around, p to p + h and p + h to p, and the other keeps its own;
//! which end does is exchanged in the round by -. For odd h a matching leaves a vertex out, which
//! sends half around by + and keeps its own by -; so h rounds in each direction suffice for either.
//! The tours of a round are numbered from 0 to h/2 - 1, or (h - 1)/2 for odd h.
//!
//! # Many rings
//! Rings along all dimensions run at once, and a step takes one tour of each line. Claim: `P M / 2`
//! steps of a block each on P ranks, whose sides are even, for M tours in a round along the longest
//! side. On sides of which the longest is N, a multiple of 4, that is P N/8, the bisection bound; on
//! others (N + 2)/N of it. `docs/src/proofs.md` has the derivation, and those of paired rounds and of
//! odd sides.
//!
//! # The layout
//! A rank has a slot for each direction and round along each dimension, and a block is received
//! into the slot just sent. Rounds by - count from the end, so that a slot and the one with all
//! directions reversed add up to the last. Where sides are odd some are empty.

mod counts;
mod ring;

use topocoll_schedule::{Block, Rule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Coordinates, Grid, Rank, Route};

use self::ring::Ring;
use crate::error::{check_sides, sides_error};
use crate::{Algorithm, Claims, Info, NotApplicable, Request, Solution, Values};

pub(crate) struct DirectRings;

/// The fewest ranks on the longest side: shorter ones have one tour in a round.
const SHORTEST: u32 = 5;

struct DirectRule {
    grid: Grid,
    /// The sides of more than one rank.
    rings: Vec<Ring>,
    /// M.
    tours: u32,
    /// Slots of the first dimension alone that share their steps with one of the second alone.
    merged: u32,
    steps: u32,
}

impl DirectRule {
    /// None where there are too many steps.
    fn new(grid: &Grid) -> Option<Self> {
        let sides = grid.sides();
        let long = grid.radix().long_dimensions();
        let mut rings: Vec<Ring> = long.map(|u| Ring::new(u, sides[u])).collect();
        let n = rings.len() as u32;
        if !rings.iter().any(|ring| ring.stays()) {
            for ring in &mut rings {
                ring.paired = !ring.is_odd() && ring.half % 2 == 1 && ring.half / 2 >= n + 2;
            }
        }
        // One tour in a round and its reverse would meet.
        let tours = rings.iter().map(|ring| ring.tours()).max().unwrap_or(0).max(2);
        let merged = match &rings[..] {
            [a, b] if a.stays() && b.stays() && tours >= 4 => a.rounds().min(b.rounds()),
            _ => 0,
        };
        let mut rings = Self { grid: grid.clone(), rings, tours, merged, steps: 0 };
        let slots: u128 = rings.rings.iter().map(|ring| u128::from(ring.turns())).product();
        if slots > u128::from(u64::MAX) {
            return None;
        }
        let steps = u128::from(rings.slots() / 2 - u64::from(merged)) * u128::from(tours);
        let (all, short) = rings.slots_after(0);
        rings.steps = u32::try_from(steps + u128::from((all - short) / 2)).ok()?;
        Some(rings)
    }

    /// Whether rounds of a ring may have a tour more than M.
    fn decides(&self, ring: &Ring) -> bool {
        ring.paired && ring.tours() == self.tours
    }

    /// The turns from dimension u on: all, and those that have M tours.
    fn slots_after(&self, u: usize) -> (u64, u64) {
        self.rings[u..].iter().fold((1, 1), |(all, short), ring| {
            let longer = if self.decides(ring) { 2 * ring.longer() } else { 0 };
            (all * u64::from(ring.turns()), short * u64::from(ring.turns() - longer))
        })
    }

    /// The slot of a number among those of M + 1 tours.
    fn longer_slot(&self, number: u64) -> Slot {
        let (mut slot, mut rest, mut found) = (0, number, false);
        for (u, ring) in self.rings.iter().enumerate() {
            let (all, short) = self.slots_after(u + 1);
            let longer = if self.decides(ring) { u64::from(ring.longer()) } else { 0 };
            let turns = u64::from(ring.turns());
            let middle = if found { all } else { all - short };
            let ends = longer * all;
            let turn = if rest < ends {
                (found, rest) = (true, rest);
                let turn = rest / all;
                rest %= all;
                turn
            } else if rest - ends < (turns - 2 * longer) * middle {
                rest -= ends;
                let turn = longer + rest / middle;
                rest %= middle;
                turn
            } else {
                rest -= ends + (turns - 2 * longer) * middle;
                found = true;
                let turn = turns - longer + rest / all;
                rest %= all;
                turn
            };
            slot = slot * turns + turn;
        }
        slot
    }

    /// The slot of a step, the sum of tours, and how many tours there are.
    fn slot_of(&self, step: u32) -> (Slot, u32, u32) {
        let short = self.slots() / 2 - u64::from(self.merged);
        let Some(longer) = u64::from(step).checked_sub(short * u64::from(self.tours)) else {
            let (slot, sum) = (u64::from(step / self.tours), step % self.tours);
            let turns = self.turns(slot);
            let longer = (self.rings.iter().zip(&turns))
                .any(|(ring, &turn)| self.decides(ring) && ring.is_longer(turn));
            // Shared slots of the second dimension alone are left out.
            let shared = self.merged > 0 && turns[0] == self.rings[0].rounds();
            let slot = if shared { slot + u64::from(self.merged) } else { slot };
            return (slot, sum, self.tours + u32::from(longer));
        };
        (self.longer_slot(longer), self.tours, self.tours + 1)
    }

    /// A rank's message in a step, if it has one.
    fn sent(&self, rank: Rank, step: u32) -> Option<Slot> {
        let (slot, sum, tours) = self.slot_of(step);
        let turns = self.turns(slot);
        let sum_of = |turns: &[u32], tour: fn(Ring, u32, u32, u32) -> u32| -> u32 {
            let tour = |(u, (ring, &turn)): (usize, (&Ring, &u32))| {
                tour(*ring, self.at(rank, u), turn, tours)
            };
            self.rings.iter().zip(turns).enumerate().map(tour).sum()
        };
        let reversed = self.slots() - 1 - slot;
        let is = |label: u32, more: u32| label % tours == (sum + more) % tours;
        if self.merged > turns[0] && self.rings[1].turn(turns[1]).is_none() {
            let second = u64::from(self.rings[0].rounds()) * u64::from(self.rings[1].turns())
                + u64::from(turns[0]);
            let slots = [slot, reversed, second, self.slots() - 1 - second];
            let sum = sum_of(&[turns[0]; 2], Ring::tour);
            return (0..).zip(slots).find(|&(more, _)| is(sum, more)).map(|(_, slot)| slot);
        }
        if is(sum_of(&turns, Ring::tour), 0) {
            return Some(slot);
        }
        is(sum_of(&self.turns(reversed), Ring::tour_reversed), 1).then_some(reversed)
    }

    fn at(&self, rank: Rank, u: usize) -> u32 {
        self.grid.radix().coordinate(rank, self.rings[u].dimension)
    }

    /// The turn along each dimension of a slot.
    fn turns(&self, slot: Slot) -> Coordinates {
        let mut turns = Coordinates::from_elem(0, self.rings.len());
        let mut rest = slot;
        for (turn, ring) in turns.iter_mut().zip(&self.rings).rev() {
            *turn = (rest % u64::from(ring.turns())) as u32;
            rest /= u64::from(ring.turns());
        }
        turns
    }

    /// The other end of a slot's block, if there is one.
    fn end_of(
        &self,
        rank: Rank,
        turns: &[u32],
        end: impl Fn(Ring, u32, u32) -> Option<u32>,
    ) -> Option<Rank> {
        (self.rings.iter().zip(turns).enumerate()).try_fold(rank, |rank, (u, (&ring, &turn))| {
            let at = self.at(rank, u);
            let hops = i64::from(end(ring, at, turn)?) - i64::from(at);
            Some(self.grid.radix().shifted(rank, ring.dimension, hops))
        })
    }
}

impl Rule for DirectRule {
    fn steps(&self) -> u32 {
        self.steps
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let Some(slot) = self.sent(rank, step) else { return };
        let turns = self.turns(slot);
        let slots = || SlotSet::of(Strided::contiguous(slot, 1));
        if let Some(from) = self.end_of(rank, &turns, Ring::from).filter(|&from| from != rank) {
            out.receive(from, slots());
        }
        if let Some(to) = self.end_of(rank, &turns, Ring::to).filter(|&to| to != rank) {
            let mut route = Route::default();
            for (u, (ring, &turn)) in self.rings.iter().zip(&turns).enumerate() {
                let hops = ring.hops(self.at(rank, u), self.at(to, u), turn);
                route.push(ring.dimension as u32, hops);
            }
            out.send(to, slots(), route);
        }
    }

    fn slots(&self) -> u64 {
        self.rings.iter().map(|ring| u64::from(ring.turns())).product()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let to = self.end_of(rank, &self.turns(slot), Ring::to)?;
        Some(Block { from: rank, to })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let from = self.end_of(rank, &self.turns(slot), Ring::from)?;
        Some(Block { from, to: rank })
    }
}

static INFO: Info = Info::new(
    "direct-rings",
    "every block straight to its destination, all rings of a torus full in both directions in every step",
    "in the manner of Hinrichs et al. 1994, for any torus",
);

impl Algorithm for DirectRings {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let grid = request.grid("a torus")?;
        let (sides, wrap) = (grid.sides(), grid.wrap());
        check_sides(grid, "sides that wrap", |u| sides[u] > 1 && !wrap[u])?;
        let short = sides.iter().all(|&side| side < SHORTEST);
        check_sides(grid, "a side of at least 5", |_| short)?;
        let rule = match DirectRule::new(grid) {
            Some(rule) => rule,
            None => {
                let rule = "sides on which all blocks, one at a time, take at most 2^32 - 1 steps";
                return Err(sides_error(grid, rule, |u| sides[u] > 1));
            }
        };
        let steps = u64::from(rule.steps) - rule.empty_steps();
        let hops = rule.hops();
        let claims = Claims {
            hops,
            hops_floor: hops.unwrap_or_else(|| rule.hops_floor()),
            rearrangements: Some(0),
            copied_bytes: Some(0),
            contention_free: true,
            ..Claims::new(steps, request.bytes(steps))
        };
        Ok(Solution::new(request, values, rule, claims))
    }
}
