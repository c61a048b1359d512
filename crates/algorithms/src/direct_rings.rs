//! Every block straight to its destination over full rings: the direct complete exchange of a
//! torus at the bisection bound, without a shared link.
//!
//! Hinrichs et al. 1994 announce N^3/8 phases on an N x N torus, all links busy in each. This is a
//! construction of that kind, to our knowledge a new one, for any number of dimensions and any
//! sides that wrap.
//!
//! # One ring
//! Let N = 2h. An edge {p, q} of the complete graph on Z_h is a *tour* of the ring:
//! p, q, p + h, q + h and back to p, in that order by +, and in the reverse order by -. Its four
//! messages by + (or -) use every link by + (or -) once, and the four ranks that send are those
//! that receive. Every message of 1 to h - 1 hops is of one tour. The h - 1 perfect matchings of
//! the complete graph, for even h, make h - 1 *rounds* each way, in each of which every rank
//! sends once; matching c pairs c + t with c - t mod h - 1, and c with h - 1. In one more round,
//! of matching 0, one end of each edge sends half around, p to p + h and p + h to p, and the other
//! keeps its own; which end does is exchanged in the round by -. For odd h a matching leaves a
//! vertex out, which sends half around by + and keeps its own by -; so h rounds each way do for
//! either. The tours of a round are numbered from 0 to h/2 - 1, or (h - 1)/2 for odd h.
//!
//! # Many rings
//! A rank's round along every dimension, and its way, say where a block of it goes: one block for
//! each. Let M be the number of tours in a round along the longest side. Step (ways, rounds, r)
//! has those ranks send whose tours, numbered along each dimension, add up to r mod M; and those
//! whose tours add up to r + 1 do likewise all ways reversed. Messages go along dimension 0 first.
//! The ranks that send are those that receive, and the tours of the lines on the way are those of
//! the source or of the destination, which are the same. On a line of dimension u the tours along
//! all other dimensions are fixed, so at most one tour along u is under way by +, and one by -: no
//! link is shared. With M at least 2 no rank sends, or receives, twice.
//!
//! Claim: `P M / 2` steps of a block each on P ranks, whose sides are even. On sides of which the
//! longest is N, a multiple of 4, that is P N/8, the bisection bound; on others (N + 2)/N of it.
//!
//! # Odd sides
//! A side of N = 2h - 1 is one of 2h without its last rank, q + h say. A tour over that goes on from
//! p + h to p, which is (N - 1)/2 hops; so the two ranks of an edge that lay half a ring apart have
//! their message by the way that is nearer now, and the rounds of matchings do: h - 1 each way of
//! h/2 tours for even h, and one in which every rank keeps its own; h of (h - 1)/2 for odd h, in
//! which the vertex left out keeps its own by + and has none by -.
//!
//! Claim: with E the product over sides of their rounds, both ways and that of own blocks,
//! `M floor(E / 2)` steps, less those in which nobody sends. On a torus of an odd side N, at least 7, that is (N + 1)/N of the bisection
//! bound, for N + 1 = 2h rounds of M = (N - 1)/4 tours or N of (N + 1)/4; less than 2 % over it from
//! 51 on. What is lost are the links along a dimension while blocks keep their place in it, a rank in
//! N of every line.
//!
//! # The layout
//! A rank has a slot for each way and round along each dimension, and what arrives lands in the
//! slot just sent. Rounds by - count from the end, so that a slot and the one with all ways reversed
//! add up to the last. Where sides are odd some are empty.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use topocoll_schedule::{
    Block, Parameters, Problem, RankClasses, Rule, Schedule, Slot, SlotSet, Step, Strided,
};
use topocoll_topology::{Coordinates, Grid, Rank, Route, Shape, Topology};

use crate::parameters::{check, origin};
use crate::rounds;
use crate::{Algorithm, Claims, NotApplicable};

pub(crate) struct DirectRings;

/// The fewest ranks on the longest side: shorter ones have one tour in a round.
const SHORTEST: u32 = 5;

/// Sums of hops that claims look at.
const WORK: u128 = 1 << 25;

/// The way around a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Up,
    Down,
}

/// A side, made even.
#[derive(Clone, Copy)]
struct Ring {
    dimension: usize,
    side: u32,
    /// h.
    half: u32,
}

impl Ring {
    fn new(dimension: usize, side: u32) -> Self {
        Self { dimension, side, half: side.div_ceil(2) }
    }

    fn is_odd(self) -> bool {
        self.side % 2 == 1
    }

    /// Rounds each way.
    fn rounds(self) -> u32 {
        if self.is_odd() { self.cycle() } else { self.half }
    }

    /// Rounds of both ways, and that in which all keep their own.
    fn turns(self) -> u32 {
        2 * self.rounds() + u32::from(self.is_odd() && self.half % 2 == 0)
    }

    /// A turn's round and way; none if all keep their own.
    fn turn(self, number: u32) -> Option<(u32, Way)> {
        let back = self.turns() - 1 - number;
        match number.cmp(&back) {
            Ordering::Less => Some((number, Way::Up)),
            Ordering::Equal => None,
            Ordering::Greater => Some((back, Way::Down)),
        }
    }

    /// Tours of a round.
    fn tours(self) -> u32 {
        if self.is_odd() { self.half / 2 } else { self.half.div_ceil(2) }
    }

    /// The vertices that sums run over, which one more joins if h is even.
    fn cycle(self) -> u32 {
        self.half - 1 + self.half % 2
    }

    /// The matching of a round: the last round has that of the first.
    fn matching(self, round: u32) -> u32 {
        round % self.cycle()
    }

    /// The tour of a position in a turn.
    fn tour(self, at: u32, turn: u32) -> u32 {
        let Some((round, _)) = self.turn(turn) else { return 0 };
        let (vertex, cycle, c) = (at % self.half, self.cycle(), self.matching(round));
        if vertex == cycle {
            return 0;
        }
        let tour = ((vertex + cycle - c) % cycle).min((c + cycle - vertex) % cycle);
        // A vertex left out of a matching makes no tour on odd sides.
        if self.is_odd() && self.half % 2 == 1 { tour.saturating_sub(1) } else { tour }
    }

    /// The vertex at the other end of a position's edge; none if it is left out, or in the last of
    /// an even number of rounds.
    fn other(self, at: u32, round: u32) -> Option<u32> {
        let (vertex, cycle) = (at % self.half, self.cycle());
        if round == cycle {
            return None;
        }
        match (2 * round + cycle - vertex % cycle) % cycle {
            _ if vertex == cycle => Some(round),
            other if other != vertex => Some(other),
            _ => Some(cycle).filter(|_| self.half % 2 == 0),
        }
    }

    /// Whether a position without another end goes half around.
    fn goes(self, at: u32, round: u32, way: Way) -> bool {
        // Of each edge of matching 0 one end does by +, and the other by -.
        let vertex = at % self.half;
        let up = round < self.cycle() || vertex > self.cycle() / 2 || vertex == self.cycle();
        up == (way == Way::Up)
    }

    /// Where the message of a position goes in a turn; none if it has none.
    fn to(self, at: u32, turn: u32) -> Option<u32> {
        let Some((round, way)) = self.turn(turn) else { return Some(at) };
        let vertex = at % self.half;
        let hops = match self.other(at, round) {
            Some(other) if way == Way::Up => (other + self.half - vertex) % self.half,
            Some(other) => 2 * self.half - (vertex + self.half - other) % self.half,
            None if self.is_odd() => return Some(at).filter(|_| way == Way::Up),
            None if self.goes(at, round, way) => self.half,
            None => 0,
        };
        let to = (at + hops) % (2 * self.half);
        // Over the rank that is not there.
        if to < self.side { Some(to) } else { self.to(to, turn) }
    }

    /// Where the message to a position comes from.
    fn from(self, at: u32, turn: u32) -> Option<u32> {
        let edge = self.turn(turn).is_some_and(|(round, _)| self.other(at, round).is_some());
        self.to(at, if edge { self.turns() - 1 - turn } else { turn })
    }

    /// Hops between two positions in a turn, the sign giving the way.
    fn hops(self, from: u32, to: u32, turn: u32) -> i64 {
        match self.turn(turn) {
            Some((_, Way::Down)) => -i64::from((from + self.side - to) % self.side),
            _ => i64::from((to + self.side - from) % self.side),
        }
    }

    /// The most hops of a tour's messages, by tour; none where it has no message.
    fn farthest(self, turn: u32, tours: u32) -> Vec<Option<u64>> {
        let mut farthest = vec![None; tours as usize];
        for at in 0..self.side {
            if let Some(to) = self.to(at, turn) {
                let hops = self.hops(at, to, turn).unsigned_abs();
                let most: &mut Option<u64> = &mut farthest[self.tour(at, turn) as usize];
                *most = Some(most.map_or(hops, |most| most.max(hops)));
            }
        }
        farthest
    }
}

struct Rings {
    grid: Grid,
    /// The sides of more than one rank.
    rings: Vec<Ring>,
    /// M.
    tours: u32,
    steps: u32,
}

impl Rings {
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

    /// Steps in which nobody sends: along the longest sides all stay where they are, and others have
    /// fewer tours.
    fn empty_steps(&self) -> u64 {
        let stays = |ring: &Ring| ring.turns() % 2 == 1;
        let subsets = 0..1u32 << self.rings.len();
        let empty = subsets.map(|moving| {
            let moves = |u: &usize| moving >> u & 1 == 1;
            if moving == 0 || (0..self.rings.len()).any(|u| !moves(&u) && !stays(&self.rings[u])) {
                return 0;
            }
            let rings = || (0..self.rings.len()).filter(moves).map(|u| self.rings[u]);
            let up: u64 = rings().map(|ring| u64::from(ring.rounds())).product();
            let turns = up << moving.count_ones() >> 1;
            // Sums of tours, and one less for those who go reversed; unless these go - alone, and
            // those whose tours are all 0 keep their own.
            let sums = rings().map(|ring| ring.tours() - 1).sum::<u32>() + 1;
            let own = rings().all(|ring| !ring.is_odd() && ring.half % 2 == 1);
            let alike = if own { up } else { 0 };
            let empty = |sums| u64::from(self.tours.saturating_sub(sums));
            alike * empty(sums) + (turns - alike) * empty(sums + 1)
        });
        empty.sum()
    }

    /// The sum over steps of the most hops, if that is little work: turns that are alike are looked
    /// at once.
    fn hops(&self) -> Option<u128> {
        let mut all = 0;
        // Slots of the first half go + along the first dimension in which they do not stay.
        for first in 0..self.rings.len() {
            let mut kinds: Vec<Vec<(Farthest, u128)>> = Vec::new();
            for (u, ring) in self.rings.iter().enumerate() {
                let turns = match u.cmp(&first) {
                    Ordering::Less => ring.rounds()..ring.turns() - ring.rounds(),
                    Ordering::Equal => 0..ring.rounds(),
                    Ordering::Greater => 0..ring.turns(),
                };
                if u128::from(ring.side) * u128::from(ring.rounds()) > WORK {
                    return None;
                }
                let mut alike: BTreeMap<Farthest, u128> = BTreeMap::new();
                for turn in turns {
                    let both = [turn, ring.turns() - 1 - turn];
                    let both = both.map(|turn| ring.farthest(turn, self.tours));
                    *alike.entry(both).or_default() += 1;
                }
                kinds.push(alike.into_iter().collect());
            }
            all += self.hops_of(kinds)?;
        }
        Some(all)
    }

    /// The same for all combinations of turns, one along each dimension.
    fn hops_of(&self, kinds: Vec<Vec<(Farthest, u128)>>) -> Option<u128> {
        let tours = self.tours as usize;
        let combinations: u128 = kinds.iter().map(|kinds| kinds.len() as u128).product();
        if combinations * (tours * tours) as u128 > WORK {
            return None;
        }
        let mut kinds = kinds.into_iter();
        let mut sums = kinds.next()?;
        for kinds in kinds {
            let pairs = sums.iter().flat_map(|before| kinds.iter().map(move |kind| (before, kind)));
            sums = pairs
                .map(|(([first, second], times), ([own, reversed], more))| {
                    let both = most_by_sum(first, own);
                    let alike = first == second && own == reversed;
                    let other = if alike { both.clone() } else { most_by_sum(second, reversed) };
                    ([both, other], times * more)
                })
                .collect();
        }
        let of_step = |[first, second]: &Farthest, r: usize| {
            first[r].max(second[(r + 1) % tours]).unwrap_or(0)
        };
        let of_all = |(both, times): &(Farthest, u128)| {
            times * (0..tours).map(|r| u128::from(of_step(both, r))).sum::<u128>()
        };
        Some(sums.iter().map(of_all).sum())
    }
}

/// The most hops by the sum of tours, of those who go first and of those who go reversed.
type Farthest = [Vec<Option<u64>>; 2];

/// The largest sums of a value of each, by the sum of their places around.
fn most_by_sum(a: &[Option<u64>], b: &[Option<u64>]) -> Vec<Option<u64>> {
    let places = a.len();
    let mut most: Vec<Option<u64>> = vec![None; places];
    for (i, a) in a.iter().enumerate() {
        for (j, b) in b.iter().enumerate() {
            let sum = a.zip(*b).map(|(a, b)| a + b);
            most[(i + j) % places] = most[(i + j) % places].max(sum);
        }
    }
    most
}

impl Rule for Rings {
    fn steps(&self) -> u32 {
        self.steps
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let (slot, sum) = (u64::from(step / self.tours), step % self.tours);
        let turns = self.turns(slot);
        let tours = self.rings.iter().zip(&turns).enumerate();
        let tours: u32 = tours.map(|(u, (ring, &turn))| ring.tour(self.at(rank, u), turn)).sum();
        let slot = match (tours + self.tours - sum) % self.tours {
            0 => slot,
            1 => self.slots() - 1 - slot,
            _ => return,
        };
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

    fn start(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let to = self.end_of(rank, &self.turns(slot), Ring::to)?;
        Some(Block { from: rank, to })
    }

    fn finish(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let from = self.end_of(rank, &self.turns(slot), Ring::from)?;
        Some(Block { from, to: rank })
    }

    fn classes(&self) -> RankClasses {
        RankClasses::distinct(self.grid.radix().ranks())
    }
}

impl DirectRings {
    fn rule(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        given: &Parameters,
    ) -> Result<Rings, NotApplicable> {
        check(self, problem, given)?;
        let Shape::Grid(grid) = topology.shape() else {
            return Err(NotApplicable::Shape { needs: "a torus", topology: topology.short_form() });
        };
        let sides = grid.sides();
        let named = |which: &dyn Fn(usize) -> bool| -> Vec<String> {
            let which = (0..sides.len()).filter(|&u| which(u));
            which.map(|u| format!("side {u} ({})", sides[u])).collect()
        };
        let lines = named(&|u| sides[u] > 1 && !grid.wrap()[u]);
        if !lines.is_empty() {
            return Err(NotApplicable::Sides { rule: "sides that wrap", sides: lines });
        }
        if sides.iter().all(|&side| side < SHORTEST) {
            let rule = "a side of at least 5";
            return Err(NotApplicable::Sides { rule, sides: named(&|_| true) });
        }
        let rings: Vec<Ring> =
            (0..sides.len()).filter(|&u| sides[u] > 1).map(|u| Ring::new(u, sides[u])).collect();
        // One tour in a round and its reverse would meet.
        let tours = rings.iter().map(|ring| ring.tours()).max().unwrap_or(0).max(2);
        let slots: u128 = rings.iter().map(|ring| u128::from(ring.turns())).product();
        let steps = u32::try_from(slots / 2 * u128::from(tours));
        let steps = steps.map_err(|_| NotApplicable::Sides {
            rule: "sides on which all blocks, one at a time, take at most 2^32 - 1 steps",
            sides: named(&|u| sides[u] > 1),
        })?;
        Ok(Rings { grid: grid.clone(), rings, tours, steps })
    }
}

impl Algorithm for DirectRings {
    fn name(&self) -> &'static str {
        "direct-rings"
    }

    fn summary(&self) -> &'static str {
        "every block straight to its destination, all rings of a torus full both ways in every step"
    }

    fn source(&self) -> &'static str {
        "in the manner of Hinrichs et al. 1994, for any torus"
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
        let steps = u64::from(rule.steps) - rule.empty_steps();
        let hops = rule.hops();
        Ok(Claims {
            hops,
            hops_floor: hops.unwrap_or_else(|| rounds::hops_of_a_rank(&rule.grid)),
            rearrangements: Some(0),
            copied_bytes: Some(0),
            contention_free: true,
            ..Claims::new(steps, u128::from(steps) * u128::from(problem.block_bytes))
        })
    }
}
