//! Neighbour exchange along the rings of a torus, both ways and along all dimensions at once: the
//! all-port, store-and-forward complete exchange (Liu et al. 2006 reach the same bound by other
//! means), for any sides that wrap, any dimensions and 1 to 2n ports.
//!
//! A block's offset o is destination minus source, o_u along dimension u. In step t of a ring phase
//! along u the blocks with o_u in t..=N/2 move up by one, and those with N - o_u in t..N/2 down: so
//! a block moves hop by hop the nearer way, and N/2 steps end the phase. All messages go to
//! neighbours.
//!
//! The blocks are dealt to n parts, and in phase q part p moves along dimension p + q mod n: in
//! each phase all parts move along different dimensions. Each side is cut in n tiles; a block is of
//! part p where the numbers of its offset's tiles add up to p mod n. If n divides the sides every
//! part has P/(n N) blocks of each offset along each dimension. Those half a ring away go up or
//! down by where they are in their tile along the next dimension: as many each way where 2n divides
//! the sides.
//!
//! Claim: with 2n ports n floor(N/2) steps of one hop, and no link shared. On sides of N, 2n
//! dividing N, all links carry P N/8 blocks in all, P N/(8n) in each phase: the bisection bound.
//! Checked for all tori of two sides from 5 to 24: at most 1.2 of the bound on four ports, and the
//! bound itself where 4 divides both. With k < 2n ports each step becomes ceil(2n/k) steps.
//!
//! # The layout
//! A rank has a slot for each offset, and everything is in place: what arrives lands in the slots
//! just sent, for a block that moves keeps its offset. Slots are numbered tile by tile, so that a
//! message is a run or two a tile.

use topocoll_schedule::{
    Block, Parameters, Problem, RankClasses, Rule, Schedule, Slot, SlotSet, Step, Strided,
};
use topocoll_topology::{Coordinates, Grid, Rank, Route, Shape, Topology};

use crate::digits::Ends;
use crate::parameters::{check, origin};
use crate::{Algorithm, Claims, NotApplicable};

pub(crate) struct NeighbourRings;

/// n dimensions have n^n tiles.
const MOST_DIMENSIONS: usize = 5;

/// Its claims look at every step.
const LONGEST: u32 = 1 << 20;

/// Offsets of one tile along each dimension.
struct Tile {
    part: usize,
    first: Coordinates,
    sides: Coordinates,
    /// The slot of its first offset.
    base: Slot,
}

struct Rings {
    grid: Grid,
    ports: u32,
    /// The dimensions of more than one rank.
    moving: Vec<usize>,
    /// By part.
    tiles: Vec<Tile>,
    /// Hops half around the longest ring.
    hops: u32,
}

/// One message: the part and the direction.
#[derive(Clone, Copy)]
struct Message {
    part: usize,
    up: bool,
}

impl Rings {
    fn new(grid: Grid, ports: u32) -> Self {
        let sides = grid.sides();
        let moving: Vec<usize> = (0..sides.len()).filter(|&u| sides[u] > 1).collect();
        let n = moving.len().max(1);
        let mut tiles = Vec::new();
        for number in 0..n.pow(moving.len() as u32) {
            let mut rest = number;
            let mut digits = vec![0; sides.len()];
            for &u in &moving {
                digits[u] = rest % n;
                rest /= n;
            }
            let at = |u: usize, digit: usize| {
                let tiles = if sides[u] > 1 { n } else { 1 } as u64;
                (u64::from(sides[u]) * digit as u64 / tiles) as u32
            };
            let first: Coordinates = (0..sides.len()).map(|u| at(u, digits[u])).collect();
            let sides = (0..sides.len()).map(|u| at(u, digits[u] + 1) - first[u]).collect();
            tiles.push(Tile { part: digits.iter().sum::<usize>() % n, first, sides, base: 0 });
        }
        tiles.retain(|tile| tile.len() > 0);
        tiles.sort_by_key(|tile| tile.part);
        let mut base = 0;
        for tile in &mut tiles {
            tile.base = base;
            base += tile.len();
        }
        let hops = moving.iter().map(|&u| sides[u] / 2).max().unwrap_or(0);
        Self { grid, ports, moving, tiles, hops }
    }

    fn dimensions(&self) -> usize {
        self.moving.len()
    }

    /// Groups of messages that have ports at once.
    fn groups(&self) -> u32 {
        (2 * self.dimensions() as u32).div_ceil(self.ports)
    }

    /// The messages of a step, each with its dimension and hop around the ring.
    fn messages(&self, step: u32) -> impl Iterator<Item = (Message, usize, u32)> + '_ {
        let (run, hop) = (step / self.hops, step % self.hops + 1);
        let (q, group) = ((run / self.groups()) as usize, run % self.groups());
        let all = 2 * self.dimensions();
        let first = (group * self.ports) as usize;
        (first..all.min(first + self.ports as usize)).map(move |number| {
            let (part, up) = (number / 2, number % 2 == 0);
            (Message { part, up }, self.moving[(part + q) % self.dimensions()], hop)
        })
    }

    /// Calls `each` with the slots of a message along u in step `hop` of its ring phase.
    fn runs(&self, message: Message, u: usize, hop: u32, mut each: impl FnMut(Strided)) {
        let side = self.grid.sides()[u];
        // What moves at least `hop` and less than half a ring.
        let (first, end) = if message.up {
            (hop, side.div_ceil(2))
        } else {
            (side / 2 + 1, (side + 1).saturating_sub(hop))
        };
        let next = self.next(u);
        for tile in self.tiles.iter().filter(|tile| tile.part == message.part) {
            tile.within(u, first, end, &mut each);
        }
        if side % 2 == 0 && hop <= side / 2 {
            for tile in self.tiles.iter().filter(|tile| tile.part == message.part) {
                tile.half_way(u, side / 2, next, message.up, &mut each);
            }
        }
    }

    /// The dimension after u of those that move.
    fn next(&self, u: usize) -> usize {
        let place = self.moving.iter().position(|&moving| moving == u).expect("bug: it moves");
        self.moving[(place + 1) % self.dimensions()]
    }

    fn blocks(&self, message: Message, u: usize, hop: u32) -> u64 {
        let mut blocks = 0;
        self.runs(message, u, hop, |run| blocks += run.len());
        blocks
    }

    fn slots_of(&self, message: Message, u: usize, hop: u32) -> SlotSet {
        let mut slots = SlotSet::default();
        self.runs(message, u, hop, |run| slots.push(run));
        slots
    }

    /// The rank at the offset of a slot from `rank`, or against it.
    fn across(&self, rank: Rank, slot: Slot, sign: i64) -> Rank {
        let tile = &self.tiles[self.tiles.partition_point(|tile| tile.base <= slot) - 1];
        let mut rest = slot - tile.base;
        let mut at = rank;
        for u in (0..self.grid.sides().len()).rev() {
            let side = u64::from(tile.sides[u]);
            let offset = i64::from(tile.first[u]) + (rest % side) as i64;
            rest /= side;
            at = self.grid.radix().shifted(at, u, sign * offset);
        }
        at
    }
}

impl Rings {
    /// Overwrites `out` with the blocks of all slots, by the rank across.
    fn layout(
        &self,
        rank: Rank,
        sign: i64,
        out: &mut Vec<Option<Block>>,
        block: impl Fn(Rank) -> Block,
    ) {
        let radix = self.grid.radix();
        out.clear();
        let mut ends = Ends::new(self.tiles.iter().map(Tile::len).max().unwrap_or(0));
        for tile in &self.tiles {
            ends.restart(0);
            for u in (0..tile.sides.len()).rev() {
                let (at, side) = (i64::from(radix.coordinate(rank, u)), self.grid.sides()[u]);
                let first = i64::from(tile.first[u]);
                ends.prepend(tile.sides[u], |value| {
                    let to = at + sign * (first + i64::from(value));
                    to.rem_euclid(side.into()) as u32 * radix.stride(u)
                });
            }
            out.extend(ends.iter().map(|end| Some(block(end))));
        }
    }
}

impl Tile {
    fn len(&self) -> u64 {
        self.sides.iter().map(|&side| u64::from(side)).product()
    }

    /// Slots from one position along u to the next.
    fn stride(&self, u: usize) -> u64 {
        self.sides[u + 1..].iter().map(|&side| u64::from(side)).product()
    }

    /// The slots with o_u in `first..end`.
    fn within(&self, u: usize, first: u32, end: u32, each: &mut impl FnMut(Strided)) {
        let low = first.max(self.first[u]) - self.first[u];
        let high = end.min(self.first[u] + self.sides[u]).saturating_sub(self.first[u]);
        if low < high {
            let (stride, side) = (self.stride(u), u64::from(self.sides[u]));
            let block = stride * side;
            let base = self.base + u64::from(low) * stride;
            each(Strided::runs(base, self.len() / block, block, u64::from(high - low) * stride));
        }
    }

    /// The slots with o_u = `half` that go up, or down: the lower and the upper half along `next`.
    ///
    /// Where that is odd, tiles whose number is even have the larger half go up.
    fn half_way(&self, u: usize, half: u32, next: usize, up: bool, each: &mut impl FnMut(Strided)) {
        if !(self.first[u]..self.first[u] + self.sides[u]).contains(&half) {
            return;
        }
        let base = self.base + u64::from(half - self.first[u]) * self.stride(u);
        if next == u {
            // On a ring by itself there is one block, which goes up.
            if up {
                each(Strided::contiguous(base, 1));
            }
            return;
        }
        let side = self.sides[next];
        let middle = (side + u32::from(self.first[next] == 0)) / 2;
        let (low, high) = if up { (0, middle) } else { (middle, side) };
        if low == high {
            return;
        }
        let base = base + u64::from(low) * self.stride(next);
        let length = u64::from(high - low) * self.stride(next);
        let block = self.stride(u) * u64::from(self.sides[u]);
        if next > u {
            // Rows of u; in each a run along `next` and what comes after it.
            each(Strided::runs(base, self.len() / block, block, length));
        } else {
            // u is the last to move and `next` the first: one of each of its rows.
            each(Strided::runs(base, length / block, block, self.stride(u)));
        }
    }
}

impl Rule for Rings {
    fn steps(&self) -> u32 {
        self.dimensions() as u32 * self.groups() * self.hops
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        for (message, u, hop) in self.messages(step) {
            let slots = self.slots_of(message, u, hop);
            let way = if message.up { 1 } else { -1 };
            out.receive(self.grid.radix().shifted(rank, u, -way), slots.clone());
            let to = self.grid.radix().shifted(rank, u, way);
            out.send(to, slots, Route::straight(u as u32, way));
        }
    }

    fn slots(&self) -> u64 {
        self.grid.radix().ranks().into()
    }

    fn start(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: rank, to: self.across(rank, slot, 1) })
    }

    fn finish(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: self.across(rank, slot, -1), to: rank })
    }

    fn starts(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        self.layout(rank, 1, out, |to| Block { from: rank, to });
    }

    fn finishes(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        self.layout(rank, -1, out, |from| Block { from, to: rank });
    }

    fn classes(&self) -> RankClasses {
        let radix = self.grid.radix();
        let periods = Coordinates::from_elem(1, radix.dimensions());
        RankClasses::translations(radix.clone(), periods)
    }
}

impl NeighbourRings {
    fn rule(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        given: &Parameters,
    ) -> Result<Rings, NotApplicable> {
        check(self, problem, given)?;
        let refuse = |needs| NotApplicable::Shape { needs, topology: topology.short_form() };
        let Shape::Grid(grid) = topology.shape() else { return Err(refuse("a torus")) };
        let moves = |u: &usize| grid.sides()[*u] > 1;
        let breaks = |rule, breaks: &dyn Fn(usize) -> bool| {
            let sides: Vec<String> = (0..grid.sides().len())
                .filter(moves)
                .filter(|&u| breaks(u))
                .map(|u| format!("side {u} ({})", grid.sides()[u]))
                .collect();
            if sides.is_empty() { Ok(()) } else { Err(NotApplicable::Sides { rule, sides }) }
        };
        breaks("sides that wrap", &|u| !grid.wrap()[u])?;
        breaks("sides of at most 2^20", &|u| grid.sides()[u] > LONGEST)?;
        if (0..grid.sides().len()).filter(moves).count() > MOST_DIMENSIONS {
            return Err(refuse("a torus of at most five sides"));
        }
        Ok(Rings::new(grid.clone(), problem.ports))
    }
}

impl Algorithm for NeighbourRings {
    fn name(&self) -> &'static str {
        "neighbour-rings"
    }

    fn summary(&self) -> &'static str {
        "every block hop by hop along rings, both ways and along all dimensions at once"
    }

    fn source(&self) -> &'static str {
        "after Liu et al. 2006, for any ports"
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
        let (mut steps, mut blocks) = (0, 0u128);
        for step in 0..rule.steps() {
            let most =
                (rule.messages(step)).map(|(message, u, hop)| rule.blocks(message, u, hop)).max();
            steps += u64::from(most.unwrap_or(0) > 0);
            blocks += u128::from(most.unwrap_or(0));
        }
        Ok(Claims {
            hops: Some(steps.into()),
            hops_floor: steps.into(),
            rearrangements: Some(0),
            contention_free: true,
            ..Claims::new(steps, blocks * u128::from(problem.block_bytes))
        })
    }
}
