//! Message combining along coloured rings, for grids of any sides, wrapping or not.
//!
//! After Suh and Shin 2001, whose aligned groups need sides that are multiples of four (tori) or
//! even (meshes); the paper pads other sides with virtual nodes and leaves their hosting open. Here
//! nothing is padded, and blocks travel in both directions.
//!
//! # The idea
//! Colour the positions of every side by a word over m colours; ranks of one colour on a line form
//! a ring. The class of a rank is the sum of its colours mod m, and in ring phase p, of n, the
//! class q travels along dimension (q + p) mod n of the n longer than 1. So in a phase the ranks
//! that move along a line are those of one colour (m = n, `classes=1`) or of two that go in
//! opposite directions (m = 2n, `classes=2`). A hop leads to the next rank of the same colour, and
//! these hops cut the line into disjoint parts: *for any word there is no link contention*, no rank
//! receives twice, and colours and classes stay as they are. (For n = 2, m = 4 and sides that are
//! multiples of four these are the paper's groups and directions.)
//!
//! # The phases
//! - *n ring phases.* A block takes the shorter direction to the rank of its colour nearest to its
//!   destination: a scatter along the ring, in which a block of k hops moves in rounds 1 .. k.
//!   First every class goes in its own direction, then all go in the other. A line that does not
//!   wrap is a ring without its end, and blocks move the farthest first, at the bound of its middle
//!   link (`line/far_first.rs`); with one class a line it is closed over the idle links that lead
//!   back, as in section 4 of the paper, and one direction suffices.
//! - *n residual phases.* Along dimension 0, 1, .. blocks go the remaining few positions. On every
//!   line of a dimension the same messages are packed into the same few steps: in each at most one
//!   send and one receive a rank, and one message a link.
//!
//! Claims, for all sides: no link contention; one rearrangement between any two phases; every
//! message contiguous. Its counts follow from the lines alone: the largest message is a product
//! over dimensions of the line's own maxima, of colours that make the class. On a square torus of
//! side N, two classes a line: N/2 + 8 steps and (N/8 + 5/4) N^2 blocks where 8 divides N, N^3/8 of
//! them being the bisection's (checked for N up to 128, not proved). On meshes of even sides, one
//! class a line: the paper's counts for two dimensions, and fewer for more. To our knowledge no
//! one-port combining schedule for sides of every residue has been published.
//!
//! `docs/src/proofs.md` derives the other settings, hops by distance and aligned windows. On meshes of two
//! sides any exchange serves inside windows (`inside.rs`).
//!
//! # The layout
//! A slot is a number in the mixed radix of one digit per dimension, that of the phase first; so
//! every message is one range of that digit, and contiguous. The others are compact: their digits
//! number, in order,
//! - before the dimension's ring phase: destinations that stay, then those that travel up, and
//!   down, by distance;
//! - after it: pairs of landed source and destination, by offset that is left, then by source;
//! - after its residual phase: sources, by the offset they came, then as before; in windows, pairs
//!   still, by position in the window, or offset, then by source.
//!
//! These depend on the position in that dimension alone, not on the class, except the first, which
//! ranks that exchange in a ring phase share. Within a phase the leading digit has room to grow
//! (`line.rs`); a rearrangement makes it compact and brings the next one to the front.

mod counts;
mod inside;
mod kinds;
mod layout;
mod line;
mod settings;
mod windows;

use smallvec::SmallVec;
use topocoll_schedule::{Block, Kinds, RankClasses, Rule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Coordinates, Grid, Rank, Route};

use self::line::{Digits, Direction, Directions, Landing, LineExchange};
use self::windows::Digit;
use crate::layout::mixed_radix_layout::Ends;

pub(crate) struct ColouredRings;

/// The rule: lines, and the order in which classes use them.
struct ColouredRule {
    grid: Grid,
    /// The dimensions longer than 1; what follows numbers these from 0.
    long: SmallVec<[usize; 6]>,
    lines: Vec<LineExchange>,
    /// m.
    colours: u32,
    /// Rounds of a ring phase in a class's own direction, and in the other.
    rounds: [u32; 2],
    residual: Residual,
    slots: u64,
}

/// The residual exchange.
enum Residual {
    /// Dimension by dimension.
    Axis,
    /// By the digits of positions in aligned windows.
    Windows(Vec<Digit>),
}

/// The class of a rank.
#[derive(Clone, Copy)]
struct Class {
    /// q mod n: the dimension of its first phase.
    first_dimension: usize,
    /// Its own direction.
    own: Direction,
}

/// A phase of the exchange.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Ring(usize),
    Residual(usize),
}

impl ColouredRule {
    fn new(grid: &Grid, classes: u32, landing: Landing, residual: Residual) -> Self {
        let long: SmallVec<[usize; 6]> = grid.radix().long_dimensions().collect();
        let colours = (long.len() as u32 * classes).max(1);
        let lines: Vec<LineExchange> = (long.iter())
            .map(|&u| {
                let directions = match (grid.wrap()[u], classes) {
                    (true, _) => Directions::Nearer,
                    (false, 1) => Directions::Once,
                    (false, _) => Directions::Both,
                };
                let side = grid.sides()[u];
                let by_distance = directions == Directions::Nearer && side % colours != 0;
                let landing = match landing {
                    Landing::Distance if !by_distance => Landing::Near,
                    landing => landing,
                };
                LineExchange::new(side, colours, directions, landing)
            })
            .collect();
        let grid = grid.clone();
        let rounds = [0; 2];
        let mut rings = Self { grid, long, lines, colours, rounds, residual, slots: 0 };
        for own in rings.own_directions() {
            for line in &rings.lines {
                for (half, direction) in [own, own.other()].into_iter().enumerate() {
                    rings.rounds[half] = rings.rounds[half].max(line.rounds(direction, own));
                }
            }
        }
        rings.slots = rings.slots_needed();
        rings
    }

    fn dimensions(&self) -> usize {
        self.lines.len()
    }

    /// The possible directions of classes.
    fn own_directions(&self) -> impl Iterator<Item = Direction> + use<> {
        let two = self.colours as usize == 2 * self.dimensions();
        [Direction::Up, Direction::Down].into_iter().take(if two { 2 } else { 1 })
    }

    fn slots_needed(&self) -> u64 {
        let held = |line: &LineExchange| {
            let landed = (0..line.period()).map(|x| line.landed(x)).max();
            landed.map_or(0, |landed| landed.max(line.side().into()))
        };
        let others = |u: usize| -> u64 {
            (0..self.dimensions()).filter(|&v| v != u).map(|v| held(&self.lines[v])).product()
        };
        let needed = (0..self.dimensions()).map(|u| self.lines[u].digits() * others(u)).max();
        needed.unwrap_or(1)
    }

    fn class(&self, at: &[u32]) -> Class {
        let n = self.dimensions();
        let sum: u32 = self.lines.iter().zip(at).map(|(line, &x)| line.colour(x)).sum();
        let q = (sum % self.colours) as usize;
        let own = if q < n { Direction::Up } else { Direction::Down };
        Class { first_dimension: q % n, own }
    }

    /// The coordinates of `rank` in the dimensions longer than 1.
    fn at(&self, rank: Rank) -> Coordinates {
        self.long.iter().map(|&u| self.grid.radix().coordinate(rank, u)).collect()
    }

    fn moved(&self, rank: Rank, u: usize, to: u32) -> Rank {
        let from = self.grid.radix().coordinate(rank, self.long[u]);
        self.grid.radix().shifted(rank, self.long[u], i64::from(to) - i64::from(from))
    }

    fn rounds_a_phase(&self) -> u32 {
        self.rounds[0] + self.rounds[1]
    }

    fn ring_steps(&self) -> u32 {
        self.rounds_a_phase() * self.dimensions() as u32
    }

    /// The phase of a step, and which of the phase's steps it is.
    fn phase(&self, step: u32) -> (Phase, u32) {
        if step < self.ring_steps() {
            let phase = Phase::Ring((step / self.rounds_a_phase()) as usize);
            return (phase, step % self.rounds_a_phase());
        }
        let mut rest = step - self.ring_steps();
        let mut u = 0;
        while matches!(self.residual, Residual::Axis) && rest >= self.lines[u].residual_steps() {
            rest -= self.lines[u].residual_steps();
            u += 1;
        }
        (Phase::Residual(u), rest)
    }

    /// The round of a step of a ring phase and its direction, for a class's own direction.
    fn round(&self, in_phase: u32, own: Direction) -> (u32, Direction) {
        match in_phase.checked_sub(self.rounds[0]) {
            None => (in_phase + 1, own),
            Some(round) => (round + 1, own.other()),
        }
    }

    /// The phase before another, if there is one.
    fn phase_before(&self, phase: Phase) -> Option<Phase> {
        match phase {
            Phase::Ring(p) => p.checked_sub(1).map(Phase::Ring),
            Phase::Residual(0) if self.rounds_a_phase() > 0 => {
                Some(Phase::Ring(self.dimensions() - 1))
            }
            Phase::Residual(u) => u.checked_sub(1).map(Phase::Residual),
        }
    }

    fn first_phase(&self) -> Phase {
        if self.rounds_a_phase() > 0 { Phase::Ring(0) } else { Phase::Residual(0) }
    }

    /// The dimension along which a class travels in a phase.
    fn dimension(&self, class: Class, phase: Phase) -> usize {
        match phase {
            Phase::Ring(p) => (class.first_dimension + p) % self.dimensions(),
            Phase::Residual(u) => u,
        }
    }

    /// Compact digits of dimension v in a phase along another.
    fn compact(&self, class: Class, phase: Phase, v: usize, x: u32) -> u64 {
        let n = self.dimensions();
        let landed = match phase {
            Phase::Ring(p) => (v + n - class.first_dimension) % n < p,
            Phase::Residual(u) => v > u,
        };
        if landed { self.lines[v].landed(x) } else { self.lines[v].side().into() }
    }

    /// Slots of each value of the leading digit.
    fn others(&self, class: Class, phase: Phase, at: &[u32]) -> u64 {
        let u = self.dimension(class, phase);
        let others = (0..self.dimensions()).filter(|&v| v != u);
        others.map(|v| self.compact(class, phase, v, at[v])).product()
    }

    /// The block of `slot` in a layout: of the leading digit by `leading`, of each other dimension
    /// by `compact`, both of which give the coordinate of the block's other end.
    fn other_end(
        &self,
        rank: Rank,
        slot: Slot,
        (class, phase): (Class, Phase),
        leading: impl Fn(usize, u64) -> Option<u32>,
        compact: impl Fn(usize, u64) -> u32,
    ) -> Option<Rank> {
        let n = self.dimensions();
        let at = self.at(rank);
        let u = self.dimension(class, phase);
        let others = self.others(class, phase, &at);
        let mut end = self.moved(rank, u, leading(u, slot / others)?);
        let mut rest = slot % others;
        for v in (1..n).rev().map(|i| (u + i) % n) {
            let radix = self.compact(class, phase, v, at[v]);
            end = self.moved(end, v, compact(v, rest % radix));
            rest /= radix;
        }
        Some(end)
    }

    /// The blocks of all slots in a layout, by the same.
    fn other_ends(
        &self,
        at: &[u32],
        (class, phase): (Class, Phase),
        leading: impl Fn(usize, u64) -> Option<u32>,
        compact: impl Fn(usize, u64) -> u32,
        block: impl Fn(Rank) -> Block,
        out: &mut Vec<Option<Block>>,
    ) {
        let n = self.dimensions();
        let stride = |v: usize| self.grid.radix().stride(self.long[v]);
        let u = self.dimension(class, phase);
        let mut ends = Ends::new(self.others(class, phase, at));
        for v in (1..n).rev().map(|i| (u + i) % n) {
            let values = self.compact(class, phase, v, at[v]) as u32;
            ends.prepend(values, |e| compact(v, e.into()) * stride(v));
        }
        let others = ends.iter();
        out.clear();
        for digit in 0..self.slots.div_ceil(others.len() as u64) {
            match leading(u, digit) {
                Some(x) => {
                    out.extend(others.clone().map(|end| Some(block(Rank(end.0 + x * stride(u))))));
                }
                None => out.resize(out.len() + others.len(), None),
            }
        }
        out.resize(self.slots as usize, None);
    }
}

impl ColouredRule {
    /// A step of the residual exchange along one dimension.
    fn axis_step(
        &self,
        rank: Rank,
        (u, x): (usize, u32),
        (step, others): (u32, u64),
        out: &mut Step,
    ) {
        let exchange = self.lines[u].exchange(x, step);
        let shifted = |hops: i32| self.grid.radix().shifted(rank, self.long[u], hops.into());
        if let Some((offset, digits)) = exchange.receive {
            out.receive(shifted(-offset), run(digits, others));
        }
        if let Some((offset, digits)) = exchange.send {
            let route = Route::straight(self.long[u] as u32, offset.into());
            out.send(shifted(offset), run(digits, others), route);
        }
    }

    /// The block in a slot at the end, where each dimension's digit numbers pairs by the window and
    /// then by the source on the ring.
    fn window_finish(
        &self,
        rank: Rank,
        (at, digits): (&[u32], &[Digit]),
        slot: Slot,
    ) -> Option<Block> {
        let (mut from, mut rest) = (rank, slot);
        for (v, line) in self.lines.iter().enumerate().rev() {
            let side = u64::from(line.side());
            from = self.moved(from, v, self.window_source(v, (at[v], digits), rest % side));
            rest /= side;
        }
        (rest == 0).then_some(Block { from, to: rank })
    }

    /// The blocks in all slots at the end, likewise.
    fn window_final_layout(
        &self,
        rank: Rank,
        (at, digits): (&[u32], &[Digit]),
        out: &mut Vec<Option<Block>>,
    ) {
        let mut ends = Ends::new(self.grid.radix().ranks().into());
        for (v, line) in self.lines.iter().enumerate().rev() {
            let stride = self.grid.radix().stride(self.long[v]);
            let source = |c: u32| self.window_source(v, (at[v], digits), c.into());
            ends.prepend(line.side(), |c| source(c) * stride);
        }
        out.clear();
        out.extend(ends.iter().map(|from| Some(Block { from, to: rank })));
        out.resize(self.slots as usize, None);
    }

    /// The position in dimension v from which a block came that is at x, by its digit.
    fn window_source(&self, v: usize, (x, digits): (u32, &[Digit]), compact: u64) -> u32 {
        let line = &self.lines[v];
        let ring = u64::from(line.side() / self.colours);
        let (place, behind) = ((compact / ring) as u32, (compact % ring) as u32);
        line.source_behind(windows::landed(digits, x, place, self.colours), behind)
    }
}

fn run(digits: Digits, others: u64) -> SlotSet {
    SlotSet::of(Strided::contiguous(digits.first * others, digits.count * others))
}

impl Rule for ColouredRule {
    fn steps(&self) -> u32 {
        let residual = match &self.residual {
            Residual::Axis => self.lines.iter().map(LineExchange::residual_steps).sum(),
            Residual::Windows(digits) => self.window_steps(digits),
        };
        self.ring_steps() + residual
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let at = self.at(rank);
        let class = self.class(&at);
        let (phase, in_phase) = self.phase(step);
        if in_phase == 0
            && let Some(before) = self.phase_before(phase)
        {
            self.rearrange(class, &at, (before, phase), out);
        }
        let u = self.dimension(class, phase);
        let (line, x) = (&self.lines[u], at[u]);
        let others = self.others(class, phase, &at);
        let dimension = self.long[u] as u32;
        match phase {
            Phase::Ring(_) => {
                let (round, direction) = self.round(in_phase, class.own);
                if let Some(from) = line.before(x, direction) {
                    let digits = line.received(x, round, direction, class.own);
                    out.receive(self.moved(rank, u, from), run(digits, others));
                }
                if let Some((to, hops)) = line.next(x, direction) {
                    let digits = line.sent(x, round, direction, class.own);
                    let route = Route::straight(dimension, hops);
                    out.send(self.moved(rank, u, to), run(digits, others), route);
                }
            }
            Phase::Residual(_) => match &self.residual {
                Residual::Axis => self.axis_step(rank, (u, x), (in_phase, others), out),
                Residual::Windows(digits) => self.window_step(rank, &at, (digits, in_phase), out),
            },
        }
    }

    fn slots(&self) -> u64 {
        self.slots
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        if self.dimensions() == 0 {
            return Some(Block { from: rank, to: rank });
        }
        let at = self.at(rank);
        let class = self.class(&at);
        let destination = |v: usize, e| self.lines[v].destination(at[v], e, class.own);
        let leading = |u: usize, digit| {
            let e = self.lines[u].start_digit(at[u], digit, class.own)?;
            Some(destination(u, e))
        };
        let to = self.other_end(rank, slot, (class, self.first_phase()), leading, destination)?;
        Some(Block { from: rank, to })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        if self.dimensions() == 0 {
            return Some(Block { from: rank, to: rank });
        }
        let at = self.at(rank);
        if let Residual::Windows(digits) = &self.residual {
            return self.window_finish(rank, (&at, digits), slot);
        }
        let last = Phase::Residual(self.dimensions() - 1);
        let leading = |u: usize, digit| self.lines[u].source_at(at[u], digit);
        let source = |v: usize, e| self.lines[v].source(at[v], e);
        let from = self.other_end(rank, slot, (self.class(&at), last), leading, source)?;
        Some(Block { from, to: rank })
    }

    fn initial_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        if self.dimensions() == 0 {
            return *out = vec![self.initial_block(rank, 0)];
        }
        let at = self.at(rank);
        let class = self.class(&at);
        let destination = |v: usize, e| self.lines[v].destination(at[v], e, class.own);
        let leading = |u: usize, digit| {
            let e = self.lines[u].start_digit(at[u], digit, class.own)?;
            Some(destination(u, e))
        };
        let block = |to| Block { from: rank, to };
        self.other_ends(&at, (class, self.first_phase()), leading, destination, block, out);
    }

    fn final_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        if self.dimensions() == 0 {
            return *out = vec![self.final_block(rank, 0)];
        }
        let at = self.at(rank);
        if let Residual::Windows(digits) = &self.residual {
            return self.window_final_layout(rank, (&at, digits), out);
        }
        let last = Phase::Residual(self.dimensions() - 1);
        let leading = |u: usize, digit| self.lines[u].source_at(at[u], digit);
        let source = |v: usize, e| self.lines[v].source(at[v], e);
        let block = |from| Block { from, to: rank };
        self.other_ends(&at, (self.class(&at), last), leading, source, block, out);
    }

    fn classes(&self) -> RankClasses {
        let mut periods = Coordinates::from_slice(self.grid.sides());
        for (&u, line) in self.long.iter().zip(&self.lines) {
            periods[u] = line.period();
        }
        RankClasses::translations(self.grid.radix().clone(), periods)
    }

    fn kinds(&self, step: u32, kinds: &mut Kinds) -> bool {
        self.kinds_of(step, kinds);
        true
    }
}
