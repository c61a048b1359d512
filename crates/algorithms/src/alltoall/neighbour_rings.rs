//! Neighbour exchange along the rings and lines of a grid, in both directions of all dimensions at
//! once: the all-port, store-and-forward complete exchange (on tori Liu et al. 2006 reach the same
//! bound by other means), for any sides, wrapping or not, and 1 to 2n ports.
//!
//! A block's offset o is destination minus source, o_u along dimension u. The blocks are divided
//! into n parts, by the sum of their offsets mod n, and in phase q part p moves along dimension p +
//! q mod n: in each phase all parts move along different dimensions. All messages go to neighbours.
//!
//! # Rings
//! Along a side of N that wraps, in round t the blocks with o_u in t..=N/2 move up by one, and
//! those with N - o_u in t..N/2 down: so a block moves hop by hop in the shorter direction, in N/2
//! rounds. Those half a ring away go up or down by their place among those of their offset mod n
//! along the next dimension: equally many in each direction where 2n divides the sides.
//!
//! # Lines
//! Let a direction number the positions of a side that does not wrap 0 .. N-1. In round t the rank
//! at i sends its block for N - t, the farthest first, and from then on a block moves on in every
//! round. So x sends in round t the blocks (i, j) with i + j = N + x - t and i <= x < j, which are
//! at most min(t, N - t) of one line, and over N - 1 rounds floor(N^2/4): the bound of the middle
//! link.
//!
//! A rank never holds two blocks of which the offsets along such a side differ by N, and those along
//! others by nothing; so that on lines, too, the offset mod N may be the slot. Let y = N - 1 - x.
//! After round t the rank at x holds, of those that go up, its own with o = 1 .. y - t; those that
//! pass, with o - |y - t| = 2, 4, .., and o <= y + t, o <= y - t + 2x; and those that stay, with
//! o = 1 .. t - y. Of those that go down it holds the same with x for y. Two that pass, up and down,
//! have offsets whose sum is odd where N is even and even where it is odd; no sum of any other two
//! exceeds N - 1.
//!
//! Where sides differ, the rounds of the shorter line are in the middle of those of the longer, and
//! rings beside lines begin when these carry most, or, on a side twice as long, at once.
//!
//! Where one port remains for the two directions of a part along a line, first those at even
//! positions send up and those at odd ones down, and then the reverse. So pairs exchange, equally
//! many blocks in either direction, which is why slots suffice between the two as well.
//!
//! # Claims
//! With 2n ports a phase has as many steps as its longest ring or line has rounds, of one hop, and
//! there is no link contention. If n divides the sides every part has as many blocks of each pair
//! of positions along each dimension. So on tori of longest side N, 2n dividing all, all links of
//! that side carry P N/8 blocks in all, and on meshes P N/4, n and 2 dividing all: the bisection
//! bound, n times that of a phase. Checked for all tori and meshes of two sides from 5 to 24: at
//! most 1.2 of the bound on four ports, and the bound itself on tori where 4 divides both and on
//! meshes where 2 does. Where rings are combined with lines, or odd lines with even ones, it can be
//! more. With k < 2n ports each step becomes ceil(2n/k) steps.
//!
//! # The layout
//! A rank has a slot for each offset mod the sides, and a received block replaces one of its
//! offset. Slots are numbered tile by tile, a tile having the offsets of one residue along each
//! dimension, mod n or, where it does not wrap, the least common multiple of n and 2; so that a
//! message is a run or two a tile.
//!
//! # Leaders
//! With 2n ports on tori, `hop=2` takes about half of the steps, for some more volume: along even sides
//! of at least 8 blocks go by two hops between leaders. Upwards the ranks at even positions lead,
//! downwards those at odd ones. A phase of a side N has (N/2 - 1)/2 + 2 rounds, rounded down:
//! - first, others send one hop what has two hops or more to go; leaders what has one;
//! - leaders send two hops what has two or more to go, received by the next leaders;
//! - last, what has one hop to go.
//!
//! Blocks of half a side go up from odd positions and down from even ones. With `hop=4`, along sides of
//! at least 24 that are multiples of 4, every other leader does the same among the leaders, in about
//! N/8 + 3 rounds. Sides that a setting does not fit go by the longest hops that fit.
//!
//! The distance is the slot's digit along each dimension, and pairs of neighbours, a leader upwards and one
//! downwards, exchange equally many blocks, one direction for the other. Leaders of the second level hold
//! up to twice as many blocks, in slots behind the others. On one and two dimensions parts are of whole
//! blocks, by the parity of their distances; on more of bytes. The rules of leaders are our own, new to our
//! knowledge; `docs/src/proofs.md` derives their counts.
//!
//! # Parts of bytes
//! With `parts=bytes` each part has as many bytes of every block, and so parts are equal whatever the sides.

mod cut;
mod leaders;
mod ring;
mod settings;

use topocoll_schedule::{Block, RankClasses, Rule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Coordinates, Grid, Rank, Route};

use self::cut::Cut;
use crate::Claims;
use crate::layout::mixed_radix_layout::Ends;
use crate::layout::translation::classes;

pub(crate) struct NeighbourRings;

/// Of the offsets along all dimensions.
const MOST_TILES: u64 = 4096;

/// The longest sides, wrapping and not: its claims look at every step, on lines at some positions.
const LONGEST: u32 = 1 << 20;
const LONGEST_LINE: u32 = 1 << 16;

/// Offsets of one residue along each dimension.
struct Tile {
    part: usize,
    /// The residues.
    first: Coordinates,
    /// The numbers of offsets.
    sides: Coordinates,
    /// The slot of its first offset.
    base: Slot,
}

/// A dimension of more than one rank.
#[derive(Clone, Copy)]
struct Moving {
    dimension: usize,
    side: u32,
    wraps: bool,
    /// From one offset of a tile to the next.
    apart: u32,
    /// Rounds of a phase before its first.
    before: u32,
}

impl Moving {
    /// The round of its own in which it is, if it has one.
    fn round(self, hop: u32) -> Option<u32> {
        let round = hop.checked_sub(self.before)?;
        let rounds = if self.wraps { self.side / 2 } else { self.side - 1 };
        (1..=rounds).contains(&round).then_some(round)
    }

    /// The last of the rounds of a phase that it needs.
    fn last(self) -> u32 {
        self.before + if self.wraps { self.side / 2 } else { self.side - 1 }
    }

    /// The offsets of the blocks that a rank on a line sends in a round, the first and the last of
    /// every other; none if it sends none. Positions are by direction.
    fn passing(self, x: u32, round: u32) -> Option<(u32, u32)> {
        let (low, high) = ((x + 1).saturating_sub(round), x.min(self.side - round - 1));
        let offset = |i| self.side + x - round - 2 * i;
        (low <= high).then(|| (offset(high), offset(low)))
    }

    /// Positions by direction of which one sends most in a round, among all or those of one parity,
    /// whatever the parts: a rank further on with the same residues sends at least as much, up to
    /// the maximum.
    fn largest(self, round: u32) -> impl Iterator<Item = u32> {
        let ends = [round - 1, self.side - 1 - round];
        let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        let near = [low.saturating_sub(self.apart)..low + self.apart, high..high + self.apart];
        near.into_iter().flatten().filter(move |&x| x + 1 < self.side)
    }
}

struct NeighbourRule {
    grid: Grid,
    ports: u32,
    /// The dimensions of more than one rank.
    moving: Vec<Moving>,
    /// By part, unless blocks are cut.
    tiles: Vec<Tile>,
    /// The bytes of each part of a block; empty where parts are of whole blocks.
    cut: Cut,
    /// Rounds of a phase.
    rounds: u32,
}

/// A message of every rank: the part, and the direction.
#[derive(Clone, Copy)]
struct PartMessage {
    part: usize,
    direction: SendDirection,
}

/// The direction in which ranks send.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SendDirection {
    Up,
    Down,
    /// Those at even positions up, those at odd ones down: so that pairs exchange.
    EvenUp,
    /// The other way around.
    OddUp,
}

impl SendDirection {
    /// Whether the rank at a position sends up.
    fn sends_up(self, at: u32) -> bool {
        self == Self::Up || self == if at % 2 == 0 { Self::EvenUp } else { Self::OddUp }
    }

    /// Whether it receives from below.
    fn receives_up(self, at: u32) -> bool {
        let pairs = matches!(self, Self::EvenUp | Self::OddUp);
        self.sends_up(at) != pairs
    }
}

impl NeighbourRule {
    /// The exchange of whole blocks, or of parts of blocks of a size. None where there are too many tiles.
    fn new(grid: Grid, ports: u32, block_bytes: Option<u64>) -> Option<Self> {
        let sides = grid.sides();
        let long = || grid.radix().long_dimensions();
        let parts = long().count().max(1) as u32;
        let cut = Cut::new(block_bytes, parts);
        let line = long().filter(|&u| !grid.wrap()[u]).map(|u| sides[u]).max();
        let moving: Vec<Moving> = long()
            .map(|dimension| {
                let (side, wraps) = (sides[dimension], grid.wrap()[dimension]);
                let before = match line {
                    Some(line) if !wraps => (line - side) / 2,
                    Some(line) if side < 2 * line => line / 2 - 1,
                    _ => 0,
                };
                let of_parts = if cut.is_cut() { 1 } else { parts };
                let apart = if wraps || of_parts % 2 == 0 { of_parts } else { 2 * of_parts };
                Moving { dimension, side, wraps, apart, before }
            })
            .collect();
        let tiles = moving.iter().try_fold(1u64, |tiles, moving| {
            let tiles = tiles * u64::from(moving.apart.min(moving.side));
            (tiles <= MOST_TILES).then_some(tiles)
        })?;
        let mut tiles: Vec<Tile> = (0..tiles)
            .map(|number| {
                let mut rest = number;
                let mut first = Coordinates::from_elem(0, sides.len());
                let mut counts = Coordinates::from_elem(1, sides.len());
                for &Moving { dimension, side, apart, .. } in &moving {
                    let residues = u64::from(apart.min(side));
                    first[dimension] = (rest % residues) as u32;
                    counts[dimension] = (side - first[dimension]).div_ceil(apart);
                    rest /= residues;
                }
                let part = (first.iter().sum::<u32>() % parts) as usize;
                Tile { part, first, sides: counts, base: 0 }
            })
            .collect();
        tiles.sort_by_key(|tile| tile.part);
        let mut base = 0;
        for tile in &mut tiles {
            tile.base = base;
            base += tile.len();
        }
        let rounds = moving.iter().map(|moving| moving.last()).max().unwrap_or(0);
        Some(Self { grid, ports, moving, tiles, cut, rounds })
    }

    fn dimensions(&self) -> usize {
        self.moving.len()
    }

    /// Groups of messages that have ports at once.
    fn groups(&self) -> u32 {
        (2 * self.dimensions() as u32).div_ceil(self.ports)
    }

    /// The messages of a step, each with its dimension, numbered among those that move, and the round
    /// along it.
    fn messages(&self, step: u32) -> impl Iterator<Item = (PartMessage, usize, u32)> + '_ {
        let (group, round) = (step % self.groups(), step / self.groups());
        let (q, hop) = ((round / self.rounds) as usize, round % self.rounds + 1);
        let all = 2 * self.dimensions();
        let first = (group * self.ports) as usize;
        let numbers = first..all.min(first + self.ports as usize);
        numbers.clone().filter_map(move |number| {
            let (part, second) = (number / 2, number % 2 == 1);
            let place = (part + q) % self.dimensions();
            let moving = self.moving[place];
            let at_once = numbers.contains(&(number ^ 1));
            let direction = match (second, moving.wraps || at_once) {
                (false, true) => SendDirection::Up,
                (true, true) => SendDirection::Down,
                (false, false) => SendDirection::EvenUp,
                (true, false) => SendDirection::OddUp,
            };
            Some((PartMessage { part, direction }, place, moving.round(hop)?))
        })
    }

    /// Calls `each` with the slots of a part that a rank sends along a dimension in a round, up or
    /// down. On a line the rank is at x by that direction.
    fn runs(
        &self,
        (part, up): (usize, bool),
        (place, round): (usize, u32),
        x: u32,
        mut each: impl FnMut(Strided),
    ) {
        let moving @ Moving { side, apart, .. } = self.moving[place];
        let u = moving.dimension;
        let of_part = move |tile: &&Tile| self.cut.is_cut() || tile.part == part;
        let tiles = || self.tiles.iter().filter(of_part);
        if !moving.wraps {
            let Some((first, last)) = moving.passing(x, round) else { return };
            let (first, last) = if up { (first, last) } else { (side - last, side - first) };
            for tile in tiles().filter(|tile| tile.first[u] % 2 == first % 2) {
                tile.within(u, apart, (first, last + 1), &mut each);
            }
            return;
        }
        // Blocks that move at least `round` and less than half a ring.
        let range = if up {
            (round, side.div_ceil(2))
        } else {
            (side / 2 + 1, (side + 1).saturating_sub(round))
        };
        for tile in tiles() {
            tile.within(u, apart, range, &mut each);
        }
        if side % 2 == 0 {
            let next = self.moving[(place + 1) % self.dimensions()].dimension;
            for tile in tiles().filter(|tile| side / 2 % apart == tile.first[u]) {
                tile.half_way(u, side / 2 / apart, next, up, &mut each);
            }
        }
    }

    /// The bytes of the largest message of a kind.
    fn bytes(&self, message: PartMessage, at: (usize, u32), block_bytes: u64) -> u128 {
        let bytes = self.cut.part(message.part).bytes(block_bytes);
        u128::from(self.blocks(message, at)) * u128::from(bytes)
    }

    /// The blocks of the largest message of a kind.
    fn blocks(&self, message: PartMessage, (place, round): (usize, u32)) -> u64 {
        let moving = self.moving[place];
        let of = |up, x| {
            let mut blocks = 0;
            self.runs((message.part, up), (place, round), x, |run| blocks += run.len());
            blocks
        };
        let largest = |up: bool| {
            if moving.wraps {
                return of(up, 0);
            }
            let at = |x: u32| if up { x } else { moving.side - 1 - x };
            let sends = moving.largest(round).filter(|&x| message.direction.sends_up(at(x)) == up);
            sends.map(|x| of(up, x)).max().unwrap_or(0)
        };
        match message.direction {
            SendDirection::Up => largest(true),
            SendDirection::Down => largest(false),
            SendDirection::EvenUp | SendDirection::OddUp => largest(true).max(largest(false)),
        }
    }

    fn claims(&self, block_bytes: u64) -> Claims {
        let (mut steps, mut bytes) = (0, 0u128);
        for step in 0..self.steps() {
            let messages = self.messages(step);
            let of = |(message, u, round)| self.bytes(message, (u, round), block_bytes);
            let most = messages.map(of).max().unwrap_or(0);
            steps += u64::from(most > 0);
            bytes += most;
        }
        Claims {
            hops: Some(steps.into()),
            hops_floor: steps.into(),
            rearrangements: Some(0),
            contention_free: true,
            ..Claims::new(steps, bytes)
        }
    }

    fn slots_of(&self, sent: (usize, bool), (place, round): (usize, u32), x: u32) -> SlotSet {
        let (mut slots, part) = (SlotSet::default(), self.cut.part(sent.0));
        self.runs(sent, (place, round), x, |run| slots.push_part(run, part));
        slots
    }

    /// The rank at the offset of a slot from `rank`, or against it.
    fn across(&self, rank: Rank, slot: Slot, sign: i64) -> Rank {
        let tile = &self.tiles[self.tiles.partition_point(|tile| tile.base <= slot) - 1];
        let mut rest = slot - tile.base;
        self.moving.iter().rev().fold(rank, |at, moving| {
            let numbers = u64::from(tile.sides[moving.dimension]);
            let offset = tile.first[moving.dimension] + (rest % numbers) as u32 * moving.apart;
            rest /= numbers;
            self.grid.radix().shifted(at, moving.dimension, sign * i64::from(offset))
        })
    }

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
            for &Moving { dimension: u, side, apart, .. } in self.moving.iter().rev() {
                let (at, first) = (i64::from(radix.coordinate(rank, u)), i64::from(tile.first[u]));
                ends.prepend(tile.sides[u], |value| {
                    let to = at + sign * (first + i64::from(value) * i64::from(apart));
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

    /// The slots with o_u in a range, its end not among them.
    fn within(&self, u: usize, apart: u32, range: (u32, u32), each: &mut impl FnMut(Strided)) {
        let before =
            |offset: u32| offset.saturating_sub(self.first[u]).div_ceil(apart).min(self.sides[u]);
        let (low, high) = (before(range.0), before(range.1));
        if low < high {
            let (stride, side) = (self.stride(u), u64::from(self.sides[u]));
            let block = stride * side;
            let base = self.base + u64::from(low) * stride;
            each(Strided::runs(base, self.len() / block, block, u64::from(high - low) * stride));
        }
    }

    /// The slots half a ring away, the offset numbered `half` along u, that go up, or down: the lower
    /// and the upper half along `next`.
    ///
    /// Where that is odd, tiles of an even residue have the larger half go up.
    fn half_way(&self, u: usize, half: u32, next: usize, up: bool, each: &mut impl FnMut(Strided)) {
        let base = self.base + u64::from(half) * self.stride(u);
        if next == u {
            // On a ring by itself there is one block, which goes up.
            if up {
                each(Strided::contiguous(base, 1));
            }
            return;
        }
        let side = self.sides[next];
        let middle = (side + u32::from(self.first[next] % 2 == 0)) / 2;
        let (low, high) = if up { (0, middle) } else { (middle, side) };
        if low == high {
            return;
        }
        let base = base + u64::from(low) * self.stride(next);
        let length = u64::from(high - low) * self.stride(next);
        let block = self.stride(u) * u64::from(self.sides[u]);
        if next > u {
            // Rows of u; in each a run along `next` and the dimensions after it.
            each(Strided::runs(base, self.len() / block, block, length));
        } else {
            // u is the last to move and `next` the first: one of each of its rows.
            each(Strided::runs(base, length / block, block, self.stride(u)));
        }
    }
}

impl Rule for NeighbourRule {
    fn steps(&self) -> u32 {
        self.dimensions() as u32 * self.groups() * self.rounds
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        for (message, place, round) in self.messages(step) {
            let Moving { dimension: u, side, wraps, .. } = self.moving[place];
            let at = self.grid.radix().coordinate(rank, u);
            let x = |up| if up { at } else { side - 1 - at };
            let slots = |up, x| self.slots_of((message.part, up), (place, round), x);
            let sign = |up| if up { 1 } else { -1 };
            let shifted = |hops| self.grid.radix().shifted(rank, u, hops);
            let (sends, receives) =
                (message.direction.sends_up(at), message.direction.receives_up(at));
            if wraps || x(receives) > 0 {
                out.receive(shifted(-sign(receives)), slots(receives, x(receives).wrapping_sub(1)));
            }
            let route = Route::straight(u as u32, sign(sends));
            out.send(shifted(sign(sends)), slots(sends, x(sends)), route);
        }
    }

    fn slots(&self) -> u64 {
        self.grid.radix().ranks().into()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: rank, to: self.across(rank, slot, 1) })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: self.across(rank, slot, -1), to: rank })
    }

    fn initial_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        self.layout(rank, 1, out, |to| Block { from: rank, to });
    }

    fn final_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        self.layout(rank, -1, out, |from| Block { from, to: rank });
    }

    fn classes(&self) -> RankClasses {
        let lines = self.moving.iter().filter(|moving| !moving.wraps);
        classes(&self.grid, lines.map(|line| (line.dimension, line.side)))
    }

    fn cuts(&self) -> &[u64] {
        self.cut.inside()
    }
}
