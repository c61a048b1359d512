//! The bucket all-gather on grids: dimension by dimension, every rank forwards the last blocks
//! received along its line, with all blocks of earlier dimensions (Jain and Sabharwal 2010, in both
//! directions and along all dimensions at once).
//!
//! With two ports or more a line of N forwards in both directions. That takes floor(N/2) rounds
//! where it wraps, and blocks half a ring away are split between the directions; it takes N - 1
//! where it does not wrap. With one port it forwards in one direction in N - 1 rounds; a line that
//! does not wrap is walked as a ring 0, 2, 4 .. 5, 3, 1, whose hops of two share no link.
//!
//! Claim: no link contention. With one port the volume is P - 1 blocks, the injection bound, in as
//! many steps as the sides together have ranks less one each. With `dimensions=at-once` each block
//! is cut into as many parts as there are dimensions, and part p takes dimension p first: on a mesh
//! whose n sides are equal, with 2n ports, the volume is (P - 1) / n blocks, the bound of a
//! corner's n links, in as many steps as the diameter has hops. Where sides differ, a round lasts
//! as long as its largest part needs. With k < 2n ports a round is ceil(2n / k) steps.
//!
//! On tori `neighbour-gather` moves whole blocks at the same bound, for any sides.
//!
//! # The layout
//! A slot for each rank's block; along sides that wrap by its distance, along others by its place.

use topocoll_schedule::{
    Axis, Block, Collective, Parameters, Part, RankClasses, Rule, Slot, SlotSet, Step, Strided,
};
use topocoll_topology::{Coordinates, Grid, Rank, Route};

use crate::error::check_sides;
use crate::{Algorithm, Claims, Info, NotApplicable, Parameter, Request, Solution, Values};

pub(crate) struct Bucket;

/// Its claims look at every step.
const LONGEST: u32 = 1 << 20;

struct Buckets {
    grid: Grid,
    /// The dimensions of more than one rank.
    moving: Vec<usize>,
    /// Parts of a block, by the bytes at which they end.
    ends: Vec<u64>,
    /// Whether lines forward in one direction, as there is one port.
    one_way: bool,
    /// Messages of a round that have ports at once.
    together: u32,
    /// By phase its first round, and where the last ends.
    rounds: Vec<u32>,
}

/// The slots that a rank forwards in a round.
#[derive(Clone, Copy)]
struct Passing {
    part: usize,
    dimension: usize,
    /// Toward the higher coordinate.
    up: bool,
    /// Dimensions before this one, by part.
    phase: usize,
    /// The round of its phase, from 1.
    round: u32,
}

/// The slots of a box: all, or one half where both directions carry blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Share {
    All,
    Lower,
    Upper,
    None,
}

impl Buckets {
    fn new(grid: Grid, ports: u32, block_bytes: u64, at_once: bool) -> Self {
        let moving: Vec<usize> = grid.radix().long_dimensions().collect();
        let parts = if at_once { moving.len().max(1) } else { 1 };
        let end =
            |part: usize| (u128::from(block_bytes) * (part as u128 + 1) / parts as u128) as u64;
        let mut buckets = Self {
            grid,
            moving,
            ends: (0..parts).map(end).collect(),
            one_way: ports == 1 && parts == 1,
            together: ports,
            rounds: vec![0],
        };
        for phase in 0..buckets.moving.len() {
            let lines = (0..parts).map(|part| buckets.line(buckets.dimension(part, phase)));
            let first = buckets.rounds[phase];
            buckets.rounds.push(first + lines.max().unwrap_or(0));
        }
        buckets
    }

    /// The dimension that a part takes in a phase.
    fn dimension(&self, part: usize, phase: usize) -> usize {
        self.moving[(part + phase) % self.moving.len()]
    }

    /// Rounds along a line.
    fn line(&self, u: usize) -> u32 {
        let side = self.grid.sides()[u];
        if self.grid.wrap()[u] && !self.one_way { side / 2 } else { side - 1 }
    }

    fn messages(&self) -> u32 {
        if self.one_way { 1 } else { 2 * self.ends.len() as u32 }
    }

    /// Steps of a round.
    fn groups(&self) -> u32 {
        self.messages().div_ceil(self.together)
    }

    fn passing(&self, step: u32) -> impl Iterator<Item = Passing> + '_ {
        let (round, group) = (step / self.groups(), step % self.groups());
        let phase = self.rounds.partition_point(|&first| first <= round) - 1;
        let first = group * self.together;
        (first..self.messages().min(first.saturating_add(self.together))).map(move |number| {
            let part = (number / 2) as usize;
            let dimension = self.dimension(part, phase);
            let round = round - self.rounds[phase] + 1;
            Passing { part, dimension, up: number % 2 == 0, phase, round }
        })
    }

    /// The part of a line's box that moves in a round, whatever the rank's place.
    fn share(&self, passing: Passing) -> Share {
        let (u, side) = (passing.dimension, self.grid.sides()[passing.dimension]);
        if passing.round > self.line(u) {
            return Share::None;
        }
        if self.one_way || !self.grid.wrap()[u] || 2 * passing.round < side {
            return Share::All;
        }
        match (passing.up, self.carried(passing) > 1) {
            (true, true) => Share::Lower,
            (false, true) => Share::Upper,
            (true, false) => Share::All,
            (false, false) => Share::None,
        }
    }

    /// Blocks that the phases before have brought to each place of a line.
    fn carried(&self, passing: Passing) -> u64 {
        let before = 0..passing.phase;
        before.map(|q| u64::from(self.grid.sides()[self.dimension(passing.part, q)])).product()
    }

    /// Blocks of a message, where there is one.
    fn blocks(&self, passing: Passing) -> u64 {
        let carried = self.carried(passing);
        match self.share(passing) {
            Share::All => carried,
            Share::Lower => carried.div_ceil(2),
            Share::Upper => carried / 2,
            Share::None => 0,
        }
    }

    fn part(&self, part: usize) -> Part {
        match self.ends.len() {
            1 => Part::Whole,
            _ => {
                let first = if part == 0 { 0 } else { self.ends[part - 1] };
                Part::Bytes { first, end: self.ends[part] }
            }
        }
    }

    /// The slots of a rank's box that lie at a place along the line of a message.
    fn slots_at(&self, rank: Rank, passing: Passing, place: u32) -> SlotSet {
        let radix = self.grid.radix();
        let (mut base, mut outer, mut inner) = (0, Axis::POINT, Axis { count: 1, stride: 1 });
        let done = |u| (0..passing.phase).any(|q| self.dimension(passing.part, q) == u);
        let mut adjacent = false;
        for &u in &self.moving {
            let (side, stride) = (u64::from(self.grid.sides()[u]), u64::from(radix.stride(u)));
            if u == passing.dimension {
                base += u64::from(place) * stride;
            } else if !done(u) && !self.grid.wrap()[u] {
                base += u64::from(radix.coordinate(rank, u)) * stride;
            }
            if done(u) {
                // Those done follow each other around, so they are one run of dimensions or two.
                outer = if adjacent || inner.count == 1 { outer } else { inner };
                let before = if adjacent { inner.count } else { 1 };
                inner = Axis { count: before * side, stride: stride as i64 };
            }
            adjacent = done(u);
        }
        let all = Strided { base, outer, inner };
        let mut slots = SlotSet::default();
        let half = all.len().div_ceil(2);
        let taken = match self.share(passing) {
            Share::All => 0..all.len(),
            Share::Lower => 0..half,
            Share::Upper => half..all.len(),
            Share::None => 0..0,
        };
        push_range(&mut slots, all, taken, self.part(passing.part));
        slots
    }

    /// The place along a line `hops` below, or above; none beyond an end.
    fn place(&self, rank: Rank, passing: Passing, hops: u32) -> Option<u32> {
        let (u, side) = (passing.dimension, self.grid.sides()[passing.dimension]);
        if self.grid.wrap()[u] {
            // Source less rank, around the ring.
            return Some(if passing.up { (side - hops) % side } else { hops % side });
        }
        let at = self.grid.radix().coordinate(rank, u);
        if self.one_way {
            return Some(unfolded((folded(at, side) + (side - hops)) % side, side));
        }
        if passing.up { at.checked_sub(hops) } else { Some(at + hops).filter(|&at| at < side) }
    }

    /// The hops to the next rank of a line, or from the one before; none beyond an end.
    fn hops(&self, rank: Rank, passing: Passing, next: bool) -> Option<i64> {
        let (u, side) = (passing.dimension, self.grid.sides()[passing.dimension]);
        let up = if passing.up { 1 } else { -1 };
        let hop = if next { up } else { -up };
        let at = self.grid.radix().coordinate(rank, u);
        if self.grid.wrap()[u] {
            return Some(hop);
        }
        if self.one_way {
            let turn = if next { 1 } else { side - 1 };
            let to = unfolded((folded(at, side) + turn) % side, side);
            return Some(i64::from(to) - i64::from(at));
        }
        (0..i64::from(side)).contains(&(i64::from(at) + hop)).then_some(hop)
    }
}

/// Where a place of a line stands in the ring 0, 2, 4 .. 5, 3, 1.
fn folded(place: u32, side: u32) -> u32 {
    if place % 2 == 0 { place / 2 } else { side - place.div_ceil(2) }
}

/// The place that stands there.
fn unfolded(at: u32, side: u32) -> u32 {
    if at <= (side - 1) / 2 { 2 * at } else { 2 * (side - at) - 1 }
}

/// Appends the slots of a set that stand at these positions in its order.
fn push_range(slots: &mut SlotSet, all: Strided, taken: std::ops::Range<u64>, part: Part) {
    let row = all.inner.count;
    let rows = |first: u64, count: u64| Strided {
        base: all.nth(first * row),
        outer: Axis { count, stride: all.outer.stride },
        inner: all.inner,
    };
    let piece = |first: u64, count: u64| Strided {
        base: all.nth(first),
        outer: Axis::POINT,
        inner: Axis { count, stride: all.inner.stride },
    };
    let mut at = taken.start;
    while at < taken.end {
        let left = taken.end - at;
        let whole = if at % row == 0 { left / row } else { 0 };
        let (run, count) = match whole {
            0 => {
                let count = left.min(row - at % row);
                (piece(at, count), count)
            }
            _ => (rows(at / row, whole), whole * row),
        };
        slots.push_part(run, part);
        at += count;
    }
}

impl Rule for Buckets {
    fn steps(&self) -> u32 {
        self.rounds.last().map_or(0, |rounds| rounds * self.groups())
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let radix = self.grid.radix();
        for passing in self.passing(step) {
            if self.share(passing) == Share::None {
                continue;
            }
            let u = passing.dimension;
            if let (Some(hops), Some(place)) =
                (self.hops(rank, passing, true), self.place(rank, passing, passing.round - 1))
            {
                let slots = self.slots_at(rank, passing, place);
                out.send(radix.shifted(rank, u, hops), slots, Route::straight(u as u32, hops));
            }
            if let (Some(hops), Some(place)) =
                (self.hops(rank, passing, false), self.place(rank, passing, passing.round))
            {
                let slots = self.slots_at(rank, passing, place);
                out.receive(radix.shifted(rank, u, hops), slots);
            }
        }
    }

    fn slots(&self) -> u64 {
        self.grid.radix().ranks().into()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.final_block(rank, slot).filter(|block| block.from == rank)
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let radix = self.grid.radix();
        let at = Rank(slot as u32);
        let from = (0..radix.dimensions())
            .filter(|&u| self.grid.wrap()[u])
            .fold(at, |from, u| radix.shifted(from, u, radix.coordinate(rank, u).into()));
        Some(Block::of(from))
    }

    fn classes(&self) -> RankClasses {
        let radix = self.grid.radix();
        let period = |u: usize| if self.grid.wrap()[u] { 1 } else { radix.sides()[u] };
        let periods: Coordinates = (0..radix.dimensions()).map(period).collect();
        RankClasses::translations(radix.clone(), periods)
    }

    fn cuts(&self) -> &[u64] {
        &self.ends[..self.ends.len() - 1]
    }
}

impl Buckets {
    fn claims(&self, block_bytes: u64) -> Claims {
        let (mut steps, mut bytes, mut hops) = (0, 0u128, 0u128);
        for step in 0..self.steps() {
            let (mut most, mut far) = (0, 0);
            for passing in self.passing(step) {
                let blocks = u128::from(self.blocks(passing));
                most = most.max(blocks * u128::from(self.part(passing.part).bytes(block_bytes)));
                let (u, side) = (passing.dimension, self.grid.sides()[passing.dimension]);
                let two = self.one_way && !self.grid.wrap()[u] && side > 2;
                far = far.max(if blocks == 0 { 0 } else { 1 + u128::from(two) });
            }
            steps += u64::from(most > 0);
            bytes += most;
            hops += far;
        }
        Claims {
            hops: Some(hops),
            hops_floor: hops,
            rearrangements: Some(0),
            contention_free: true,
            ..Claims::new(steps, bytes)
        }
    }
}

static INFO: Info = Info::new(
    "bucket",
    "every rank forwards the blocks received last, one dimension after another",
    "after Jain and Sabharwal 2010",
)
.performing(Collective::AllGather)
.taking(&[Parameter::words(
    "dimensions",
    &[
        ("in-turn", "whole blocks"),
        ("at-once", "each dimension is the first of a part of every block"),
    ],
)]);

impl Algorithm for Bucket {
    fn info(&self) -> &Info {
        &INFO
    }

    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let grid = request.grid("a torus or mesh")?;
        let long = grid.radix().long_dimensions().count();
        let mut settings = self.info().combinations();
        settings.truncate(if request.problem.ports > 1 && long > 1 { 2 } else { 1 });
        Ok(settings)
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let problem = &request.problem;
        let grid = request.grid("a torus or mesh")?;
        check_sides(grid, "sides of at most 2^20", |u| grid.sides()[u] > LONGEST)?;
        let parts = grid.radix().long_dimensions().count() as u64;
        let at_once = values.is("dimensions", "at-once");
        if at_once && problem.block_bytes < parts {
            let rule = format!("in-turn: {} bytes make no {parts} parts", problem.block_bytes);
            return Err(values.refused("dimensions", rule));
        }
        let rule = Buckets::new(grid.clone(), problem.ports, problem.block_bytes, at_once);
        let claims = rule.claims(problem.block_bytes);
        Ok(Solution::new(request, values, rule, claims))
    }
}
