//! The loads of a step on a grid whose ranks act by the kinds of their coordinates.
//!
//! All ranks of a *box*, a kind along each side, send along equal routes, and positions along a side
//! stay apart on their way. So lines along a dimension carry equal loads if equal boxes come to them:
//! one line of each group is loaded and counted. Time per step is proportional to boxes times groups
//! of lines, and to the positions along a line times its groups, not to ranks.

use topocoll_schedule::{Kinds, Rule};
use topocoll_topology::{Coordinates, Grid, Rank, Route};

use crate::charges::Rates;
use crate::loads::{Busiest, LineLoads};
use crate::step_count::StepCount;

/// The boxes of a step and the messages that they send.
#[derive(Default)]
pub(crate) struct Boxes {
    /// Of ranks.
    kinds: Kinds,
    members: Vec<Members>,
    segments: Vec<Segment>,
    /// Of lines along a dimension: kinds of positions along the others.
    lines: Kinds,
    line_members: Vec<Members>,
    /// By kind, whether such senders come to a line.
    comes: Vec<bool>,
    /// Of one line along each dimension.
    loads: Vec<LineLoads>,
}

/// Positions along a side in the order of their kinds.
#[derive(Default)]
struct Members {
    positions: Vec<u32>,
    /// Where those of each kind end.
    ends: Vec<u32>,
}

impl Members {
    fn sort(&mut self, kinds: &[u32], count: u32) {
        self.ends.clear();
        self.ends.resize(count as usize, 0);
        kinds.iter().for_each(|&kind| self.ends[kind as usize] += 1);
        let mut end = 0;
        for count in &mut self.ends {
            end += *count;
            *count = end - *count;
        }
        self.positions.resize(kinds.len(), 0);
        for (x, &kind) in (0..).zip(kinds) {
            let end = &mut self.ends[kind as usize];
            self.positions[*end as usize] = x;
            *end += 1;
        }
    }

    fn of(&self, kind: u32) -> &[u32] {
        let first = kind.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        &self.positions[first as usize..self.ends[kind as usize] as usize]
    }
}

/// A segment of the messages of a box, one from each of its ranks.
struct Segment {
    /// The kinds of the senders.
    kinds: Coordinates,
    /// How far they have come before it, upwards around each side.
    gone: Coordinates,
    dimension: usize,
    hops: i64,
    bytes: u128,
}

impl Boxes {
    /// Takes the kinds of a step if the rule has any, and visiting them is less work than visiting as
    /// many ranks.
    pub(crate) fn take(&mut self, rule: &dyn Rule, step: u32, grid: &Grid, ranks: u32) -> bool {
        let sides = grid.sides();
        // A schedule may be read on another machine than its own.
        if !rule.kinds(step, &mut self.kinds) || self.kinds.sides().ne(sides.iter().copied()) {
            return false;
        }
        if self.work() >= 4 * u128::from(ranks) {
            return false;
        }
        self.members.resize_with(sides.len(), Members::default);
        for (u, members) in self.members.iter_mut().enumerate() {
            members.sort(self.kinds.along(u), self.kinds.count(u));
        }
        self.segments.clear();
        true
    }

    /// The work of the step: each box is compared with each group of lines along a dimension.
    pub(crate) fn work(&self) -> u128 {
        let counts = || (0..self.kinds.sides().count()).map(|u| u128::from(self.kinds.count(u)));
        counts().product::<u128>() * counts().max().unwrap_or(1)
    }

    /// The next box in the order of kinds, from one of zeros.
    pub(crate) fn next(&self, of: &mut Coordinates) -> bool {
        next(of, &self.kinds)
    }

    /// The first rank of a box, and its ranks.
    pub(crate) fn ranks(&self, grid: &Grid, of: &[u32]) -> (Rank, u64) {
        first_of(grid, &self.members, of)
    }

    /// Adds a message of each rank of a box.
    pub(crate) fn add(&mut self, grid: &Grid, of: &Coordinates, route: &Route, bytes: u128) {
        let mut gone = Coordinates::from_elem(0, of.len());
        for segment in route.segments() {
            let dimension = segment.dimension as usize;
            let (kinds, gone_before, hops) = (of.clone(), gone.clone(), segment.hops);
            self.segments.push(Segment { kinds, gone: gone_before, dimension, hops, bytes });
            let side = i64::from(grid.sides()[dimension]);
            let moved = (i64::from(gone[dimension]) + hops % side + side) % side;
            gone[dimension] = moved as u32;
        }
    }

    /// Counts the loads of all lines.
    pub(crate) fn count(&mut self, grid: &Grid, rates: &Rates<'_>, out: &mut StepCount) {
        self.segments.sort_unstable_by_key(|segment| (segment.dimension, segment.hops < 0));
        let segments = std::mem::take(&mut self.segments);
        let alike =
            |a: &Segment, b: &Segment| (a.dimension, a.hops < 0) == (b.dimension, b.hops < 0);
        for parallel in segments.chunk_by(alike) {
            self.group_lines(grid, parallel);
            self.count_lines(grid, rates, parallel, out);
        }
        self.segments = segments;
    }

    /// Groups the lines along the dimension of these segments by the boxes that come to them.
    fn group_lines(&mut self, grid: &Grid, parallel: &[Segment]) {
        let sides = grid.sides();
        self.lines.reset(sides);
        self.line_members.resize_with(sides.len(), Members::default);
        for v in 0..sides.len() {
            if v != parallel[0].dimension {
                // Distances gone, each once.
                for (i, Segment { gone, .. }) in parallel.iter().enumerate() {
                    if parallel[..i].iter().any(|other| other.gone[v] == gone[v]) {
                        continue;
                    }
                    let gone = gone[v];
                    let kinds = self.kinds.along(v);
                    let comes = &mut self.comes;
                    comes.clear();
                    comes.resize(self.kinds.count(v) as usize, false);
                    for segment in parallel.iter().filter(|segment| segment.gone[v] == gone) {
                        comes[segment.kinds[v] as usize] = true;
                    }
                    self.lines.split(v, |y| {
                        let kind = kinds[back(y, gone, sides[v]) as usize];
                        if comes[kind as usize] { 1 + u64::from(kind) } else { 0 }
                    });
                }
            }
            self.line_members[v].sort(self.lines.along(v), self.lines.count(v));
        }
    }

    fn count_lines(
        &mut self,
        grid: &Grid,
        rates: &Rates<'_>,
        parallel: &[Segment],
        out: &mut StepCount,
    ) {
        let Segment { dimension: u, hops, .. } = parallel[0];
        let side = grid.sides()[u];
        self.loads.resize_with(grid.sides().len(), LineLoads::default);
        let line = &mut self.loads[u];
        let mut group = Coordinates::from_elem(0, grid.sides().len());
        loop {
            let (first, positions) = first_of(grid, &self.line_members, &group);
            let comes = |segment: &&Segment| {
                (0..group.len()).filter(|&v| v != u).all(|v| {
                    let y = grid.radix().coordinate(first, v);
                    let from = back(y, segment.gone[v], grid.sides()[v]);
                    self.kinds.along(v)[from as usize] == segment.kinds[v]
                })
            };
            for segment in parallel.iter().filter(comes) {
                let bytes = segment.bytes as i128;
                let length = segment.hops.unsigned_abs();
                // Links are numbered by the nodes they leave: downwards from one above the end.
                let lowest = if hops > 0 { 0 } else { 1 - (length % u64::from(side)) as i64 };
                let lowest = lowest + i64::from(segment.gone[u]) + i64::from(side);
                line.open(side as usize, bytes);
                for &x in self.members[u].of(segment.kinds[u]) {
                    let first = (i64::from(x) + lowest) % i64::from(side);
                    line.add_range((0, 1, side as usize), first as usize, length, (1, bytes));
                }
            }
            let mut most = Busiest::default();
            line.drain(side, 1, |_, count, messages, bytes| {
                most.add(messages, (bytes, None), count.into());
            });
            if most.messages > 0 {
                let lines = u128::from(positions / u64::from(side));
                let shared = lines * u128::from(most.shared);
                out.load(rates, rates.first_class() + u, most.messages, most.bytes, shared);
            }
            if !next(&mut group, &self.lines) {
                return;
            }
        }
    }
}

/// The position from which one goes `gone` upwards around a side to y.
fn back(y: u32, gone: u32, side: u32) -> u32 {
    if y >= gone { y - gone } else { y + (side - gone) }
}

/// Moves on to the next kind along each side, or to all first ones and returns false.
fn next(of: &mut Coordinates, kinds: &Kinds) -> bool {
    for u in (0..of.len()).rev() {
        of[u] += 1;
        if of[u] < kinds.count(u) {
            return true;
        }
        of[u] = 0;
    }
    false
}

/// The rank at the first position of a kind along each side, and the number of all such.
fn first_of(grid: &Grid, members: &[Members], of: &[u32]) -> (Rank, u64) {
    let along = (0..).zip(members.iter().zip(of));
    along.fold((Rank(0), 1), |(rank, count), (u, (members, &kind))| {
        let positions = members.of(kind);
        let rank = Rank(rank.0 + positions[0] * grid.radix().stride(u));
        (rank, count * positions.len() as u64)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use topocoll_schedule::{
        Block, Collective, Origin, Parameters, Problem, RankClasses, Schedule, Slot, SlotSet, Step,
        Strided,
    };
    use topocoll_topology::{Machine, Topology};

    use super::*;
    use crate::count_step::Counter;
    use crate::visit::Weights;

    /// Ranks send by the kinds of their coordinates, which are random in every step.
    struct Random {
        grid: Grid,
        told: bool,
    }

    impl Random {
        fn kinds_of(&self, step: u32, kinds: &mut Kinds) {
            kinds.reset(self.grid.sides());
            for u in 0..self.grid.sides().len() {
                let seed = u64::from(step) << 8 | u as u64;
                let most = 1 + fastrand::Rng::with_seed(seed).u64(0..3);
                kinds.split(u, |x| fastrand::Rng::with_seed(seed << 8 | u64::from(x)).u64(0..most));
            }
        }
    }

    impl Rule for Random {
        fn steps(&self) -> u32 {
            60
        }

        fn step(&self, rank: Rank, step: u32, out: &mut Step) {
            out.clear();
            let mut kinds = Kinds::default();
            self.kinds_of(step, &mut kinds);
            let at = self.grid.radix().coordinates(rank);
            let seed = (0..at.len()).fold(step.into(), |seed: u64, u| {
                seed << 4 | u64::from(kinds.along(u)[at[u] as usize])
            });
            let mut random = fastrand::Rng::with_seed(seed);
            for _ in 0..random.u32(0..3) {
                let (mut route, mut to) = (Route::default(), rank);
                for u in 0..at.len() {
                    // On a side that does not wrap, all positions of a kind have room for it.
                    let alike = |x: &usize| kinds.along(u)[*x] == kinds.along(u)[at[u] as usize];
                    let side = self.grid.sides()[u] as usize;
                    let low = (0..side).find(alike).unwrap() as i64;
                    let high = (0..side).rfind(alike).unwrap() as i64;
                    let most = side as i64 - 1;
                    let hops = match self.grid.wrap()[u] {
                        true => random.i64(-2 * most..=2 * most),
                        false => random.i64(-low..=most - high),
                    };
                    if random.u8(0..3) > 0 {
                        route.push(u as u32, hops);
                        to = self.grid.radix().shifted(to, u, hops);
                    }
                }
                let slots = Strided::runs(0, random.u64(1..3), 4, random.u64(1..4));
                if !route.is_empty() {
                    out.send(to, SlotSet::of(slots), route);
                }
            }
            let copied = SlotSet::of(Strided::contiguous(0, random.u64(1..5)));
            out.copy(copied.clone(), copied);
        }

        fn slots(&self) -> u64 {
            8
        }

        fn initial_block(&self, _: Rank, _: Slot) -> Option<Block> {
            None
        }

        fn final_block(&self, _: Rank, _: Slot) -> Option<Block> {
            None
        }

        fn classes(&self) -> RankClasses {
            RankClasses::distinct(self.grid.ranks())
        }

        fn kinds(&self, step: u32, kinds: &mut Kinds) -> bool {
            self.kinds_of(step, kinds);
            self.told
        }
    }

    #[test]
    fn counts_by_kinds_are_those_of_every_rank() {
        let shapes = [
            (&[8, 9][..], &[true, true][..]),
            (&[8, 9], &[true, false]),
            (&[7, 12], &[false, false]),
            (&[5, 1, 14], &[true, false, true]),
            (&[6, 5, 7], &[true, true, false]),
            (&[3, 4, 5, 6], &[false, true, true, true]),
        ];
        let mut by_kinds = 0;
        for (sides, wrap) in shapes {
            let grid = Grid::new(sides, wrap).unwrap();
            let machine = Machine::of(Arc::new(grid.clone()));
            let problem = Problem::new(Collective::AllToAll, grid.ranks(), 1, 3).unwrap();
            let [told, plain] = [true, false].map(|told| {
                let origin = Origin { algorithm: String::new(), parameters: Parameters::new() };
                Schedule::new(problem, origin, Random { grid: grid.clone(), told })
            });
            let [told, plain] = [&told, &plain].map(|of| Counter::new(of, &machine).unwrap());
            let mut scratch = [told.scratch(), plain.scratch()];
            for step in 0..60 {
                let Some(counts) = told.step_by_kinds(step, &mut scratch[0]) else { continue };
                by_kinds += 1;
                let expected = plain.step(step, &mut scratch[1], Weights::Equal);
                assert_eq!(counts, expected, "{sides:?}, step {step}");
            }
        }
        assert!(by_kinds > 200, "{by_kinds}");
    }
}
