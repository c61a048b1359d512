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
//! A side of N = 2h - 1 is one of 2h without its last rank: links beside it are one, and tours over
//! it lose a message or two.
//!
//! # The layout
//! A rank has a slot for each way and round along each dimension, and what arrives lands in the
//! slot just sent. Where sides are odd some are empty.

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

impl Way {
    fn reversed(self) -> Self {
        if self == Self::Up { Self::Down } else { Self::Up }
    }
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

    /// Rounds each way.
    fn rounds(self) -> u32 {
        self.half
    }

    /// Tours of a round.
    fn tours(self) -> u32 {
        self.half.div_ceil(2)
    }

    /// The vertices that sums run over, which one more joins if h is even.
    fn cycle(self) -> u32 {
        self.half - 1 + self.half % 2
    }

    /// The matching of a round: the last round has that of the first.
    fn matching(self, round: u32) -> u32 {
        round % self.cycle()
    }

    /// The tour of a position in a round.
    fn tour(self, at: u32, round: u32) -> u32 {
        let (vertex, cycle, c) = (at % self.half, self.cycle(), self.matching(round));
        if vertex == cycle {
            return 0;
        }
        ((vertex + cycle - c) % cycle).min((c + cycle - vertex) % cycle)
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

    /// Where the message of a position goes in a round; none if one of them is missing.
    fn to(self, at: u32, round: u32, way: Way) -> Option<u32> {
        let vertex = at % self.half;
        let hops = match self.other(at, round) {
            Some(other) if way == Way::Up => (other + self.half - vertex) % self.half,
            Some(other) => 2 * self.half - (vertex + self.half - other) % self.half,
            None if self.goes(at, round, way) => self.half,
            None => 0,
        };
        Some((at + hops) % (2 * self.half)).filter(|&to| to < self.side)
    }

    /// Where the message to a position comes from.
    fn from(self, at: u32, round: u32, way: Way) -> Option<u32> {
        let edge = self.other(at, round).is_some();
        self.to(at, round, if edge { way.reversed() } else { way })
    }

    /// Hops between two positions, the sign giving the way.
    fn hops(self, from: u32, to: u32, way: Way) -> i64 {
        match way {
            Way::Up => i64::from((to + self.side - from) % self.side),
            Way::Down => -i64::from((from + self.side - to) % self.side),
        }
    }

    /// The most hops of a tour's messages, by tour; none where it has no message.
    fn farthest(self, round: u32, way: Way, tours: u32) -> Vec<Option<u64>> {
        let mut farthest = vec![None; tours as usize];
        for at in 0..self.side {
            if let Some(to) = self.to(at, round, way) {
                let hops = self.hops(at, to, way).unsigned_abs();
                let most: &mut Option<u64> = &mut farthest[self.tour(at, round) as usize];
                *most = Some(most.map_or(hops, |most| most.max(hops)));
            }
        }
        farthest
    }
}

/// What a step does: a round along each dimension, the ways of those who go first, and the sum of
/// their tours.
struct Turn {
    rounds: Coordinates,
    /// Bit u for - along the u-th dimension.
    down: u32,
    sum: u32,
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
    fn turn(&self, step: u32) -> Turn {
        let mut rest = step;
        let mut digit = |radix: u32| {
            let digit = rest % radix;
            rest /= radix;
            digit
        };
        let sum = digit(self.tours);
        let rounds = self.rings.iter().map(|ring| digit(ring.rounds())).collect();
        // The first dimension's way is + for one of the two that share the step.
        Turn { rounds, down: rest << 1, sum }
    }

    fn at(&self, rank: Rank, u: usize) -> u32 {
        self.grid.radix().coordinate(rank, self.rings[u].dimension)
    }

    /// The rank at one end of each dimension's message, if none is missing.
    fn other_end(&self, rank: Rank, end: impl Fn(usize) -> Option<u32>) -> Option<Rank> {
        (0..self.rings.len()).try_fold(rank, |rank, u| {
            let hops = i64::from(end(u)?) - i64::from(self.at(rank, u));
            Some(self.grid.radix().shifted(rank, self.rings[u].dimension, hops))
        })
    }

    /// The slot of a way and a round along each dimension.
    fn slot(&self, rounds: &[u32], down: u32) -> Slot {
        (self.rings.iter().zip(rounds).enumerate()).fold(0, |slot, (u, (ring, round))| {
            let digit = (down >> u & 1) * ring.rounds() + round;
            slot * u64::from(2 * ring.half) + u64::from(digit)
        })
    }

    /// The other end of a slot's block.
    fn end_of(
        &self,
        rank: Rank,
        slot: Slot,
        end: impl Fn(Ring, u32, u32, Way) -> Option<u32>,
    ) -> Option<Rank> {
        let mut digits = Coordinates::from_elem(0, self.rings.len());
        let mut rest = slot;
        for (digit, ring) in digits.iter_mut().zip(&self.rings).rev() {
            *digit = (rest % u64::from(2 * ring.half)) as u32;
            rest /= u64::from(2 * ring.half);
        }
        self.other_end(rank, |u| {
            let ring = self.rings[u];
            let way = if digits[u] < ring.rounds() { Way::Up } else { Way::Down };
            end(ring, self.at(rank, u), digits[u] % ring.rounds(), way)
        })
    }

    /// The sum over steps of the most hops, if that is little work: rounds that are alike are looked
    /// at once.
    fn hops(&self) -> Option<u128> {
        let mut kinds: Vec<Vec<(Farthest, u128)>> = Vec::new();
        for (u, ring) in self.rings.iter().enumerate() {
            if u128::from(ring.side) * u128::from(ring.rounds()) > WORK {
                return None;
            }
            let mut alike: BTreeMap<Farthest, u128> = BTreeMap::new();
            for round in 0..ring.rounds() {
                let [up, down] =
                    [Way::Up, Way::Down].map(|way| ring.farthest(round, way, self.tours));
                // Who goes first along a later dimension goes either way.
                if u > 0 {
                    *alike.entry([down.clone(), up.clone()]).or_default() += 1;
                }
                *alike.entry([up, down]).or_default() += 1;
            }
            kinds.push(alike.into_iter().collect());
        }
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
        let Turn { rounds, down, sum } = self.turn(step);
        let tours: u32 =
            (0..self.rings.len()).map(|u| self.rings[u].tour(self.at(rank, u), rounds[u])).sum();
        let down = match (tours + self.tours - sum) % self.tours {
            0 => down,
            1 => !down,
            _ => return,
        };
        let way = |u: usize| if down >> u & 1 == 0 { Way::Up } else { Way::Down };
        let slot = || SlotSet::of(Strided::contiguous(self.slot(&rounds, down), 1));
        let from =
            self.other_end(rank, |u| self.rings[u].from(self.at(rank, u), rounds[u], way(u)));
        let to = self.other_end(rank, |u| self.rings[u].to(self.at(rank, u), rounds[u], way(u)));
        if let Some(from) = from.filter(|&from| from != rank) {
            out.receive(from, slot());
        }
        if let Some(to) = to.filter(|&to| to != rank) {
            let mut route = Route::default();
            for (u, ring) in self.rings.iter().enumerate() {
                let hops = ring.hops(self.at(rank, u), self.at(to, u), way(u));
                route.push(ring.dimension as u32, hops);
            }
            out.send(to, slot(), route);
        }
    }

    fn slots(&self) -> u64 {
        self.rings.iter().map(|ring| u64::from(2 * ring.half)).product()
    }

    fn start(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let to = self.end_of(rank, slot, Ring::to)?;
        Some(Block { from: rank, to })
    }

    fn finish(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let from = self.end_of(rank, slot, Ring::from)?;
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
        let tours = rings.iter().map(|ring| ring.tours()).max().expect("a side of at least 5");
        // Half the ranks of even sides, times the tours.
        let slots: u128 = rings.iter().map(|ring| u128::from(ring.half) * 2).product();
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
        let steps = u64::from(rule.steps);
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
