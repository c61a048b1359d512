//! One side: its slots, and the hops by which they move.

use std::ops::Range;

use topocoll_schedule::{Axis, Strided};

pub(super) use crate::layout::translation::Direction;
use Direction::{Down, Up};

use super::matchings::Matchings;

/// A side of N ranks. The ranks of a class on it are a ring of N / g.
#[derive(Clone, Copy, Debug)]
pub(super) struct StridedLine {
    pub(super) dimension: usize,
    /// N.
    pub(super) side: u32,
    /// g, the hops from one rank of a ring to the next.
    stride: u32,
    /// V, the ring ranks that a hop of V g passes.
    vertices: u32,
    /// Whether blocks land at the nearest rank of their ring, and else never past their destination.
    near: bool,
    /// 1 if in every step other vertices than those of another line send, else 0.
    shift: u32,
}

/// What a ring does in a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// Ranks of vertex `first` hop up, and those half a hop on hop down, with blocks of at least
    /// `round` hops.
    Hop { round: u32, first: u32 },
    /// An edge of a matching upwards, and the next one downwards.
    Match { matching: u32, edge: u32 },
}

/// A slot, in its parts. The last and fastest is the residual.
struct Digits {
    /// The number of the matching in which the block moves, plus 1; or 0.
    turn: u32,
    direction: Direction,
    /// Hops of V g, of blocks other than those of N / 2.
    hops: u32,
    residual: u32,
}

impl StridedLine {
    /// None if V would be odd, or no divisor of the ring.
    pub(super) fn new(dimension: usize, side: u32, stride: u32, fold: u32, near: bool) -> Self {
        // A ring of two has one hop, of N / 2.
        let ring = side / stride;
        let mut vertices = 1;
        if ring > 2 {
            let most = (fold / stride).min(ring / 2);
            let fits = |v: &u32| v % 2 == 0 && (ring / 2) % v == 0;
            vertices = (2..=most).rev().find(fits).unwrap_or(2);
        }
        Self { dimension, side, stride, vertices, near, shift: 0 }
    }

    /// The same, with other vertices sending in every step.
    pub(super) fn shifted(self) -> Self {
        Self { shift: 1, ..self }
    }

    /// Whether a side has such rings.
    pub(super) fn fits(side: u32, stride: u32) -> bool {
        side == 2 * stride || side % (4 * stride) == 0
    }

    /// V g, the longest hop but N / 2.
    pub(super) fn fold(&self) -> u32 {
        self.vertices * self.stride
    }

    /// Positions after which ranks do the same.
    pub(super) fn period(&self) -> u32 {
        if self.vertices == 1 { self.side } else { self.fold() }
    }

    /// K, the hops of V g that make N / 2.
    pub(super) fn rounds(&self) -> u32 {
        self.side / 2 / self.fold()
    }

    /// V.
    pub(super) fn vertices(&self) -> u32 {
        self.vertices
    }

    fn matchings(&self) -> Matchings {
        Matchings::new(self.vertices)
    }

    fn vertex(&self, place: u32) -> u32 {
        place / self.stride % self.vertices
    }

    /// Vertices in the order of hops: a part that shares the ranks' port begins elsewhere.
    fn hop_vertex(&self, place: u32) -> u32 {
        (self.vertex(place) + self.vertices - self.shift * self.vertices / 4) % self.vertices
    }

    /// Of the vertices, half go N / 2 upwards.
    fn half_vertices(&self) -> u32 {
        (self.vertices / 2).max(1)
    }

    /// The direction in which the blocks of N / 2 go.
    fn half_direction(&self, place: u32) -> Direction {
        if self.hop_vertex(place) < self.half_vertices() { Up } else { Down }
    }

    /// Steps of hops of V g but the last round, which only blocks of N / 2 need.
    pub(super) fn hop_steps(&self) -> u32 {
        (self.rounds() - 1) * self.vertices
    }

    /// Steps of the last round.
    pub(super) fn half_steps(&self) -> u32 {
        self.half_vertices()
    }

    /// Steps of matchings.
    pub(super) fn match_steps(&self) -> u32 {
        (self.vertices - 1) * self.half_vertices().max(2)
    }

    /// A step of hops, the last round among them if there are so many.
    pub(super) fn hop(&self, step: u32) -> Part {
        Part::Hop { round: step / self.vertices + 1, first: step % self.vertices }
    }

    /// The step of hops whose messages have as many blocks as those of the matching, with two vertices and
    /// blocks that land at the nearest rank of their ring.
    pub(super) fn middle_hop(&self) -> u32 {
        self.rounds() - 1
    }

    /// A step of matchings.
    pub(super) fn matched(&self, step: u32) -> Part {
        let edges = self.half_vertices().max(2);
        Part::Match { matching: step / edges, edge: step % edges }
    }

    /// The direction in which the ranks of a place send in a step, if they do. The place is the
    /// position, or what takes its part.
    pub(super) fn direction(&self, part: Part, place: u32) -> Option<Direction> {
        let half = self.vertices / 2;
        match part {
            Part::Hop { first, .. } => match self.hop_vertex(place) {
                vertex if vertex == first => Some(Up),
                vertex => (vertex == (first + half) % self.vertices).then_some(Down),
            },
            // With one edge, it goes upwards and then downwards.
            Part::Match { edge, .. } if half == 1 => Some(if edge == 0 { Up } else { Down }),
            Part::Match { matching, edge } => {
                let own = self.matchings().edge(self.vertex(place), matching);
                match (own + self.vertices - edge - 2 * self.shift) % half {
                    0 => Some(Up),
                    1 => Some(Down),
                    _ => None,
                }
            }
        }
    }

    /// Directions in use in a step, each with the most hops of a message.
    pub(super) fn most_hops(&self, part: Part) -> impl Iterator<Item = (Direction, u32)> + use<> {
        let half = self.vertices / 2;
        let [up, down] = match part {
            Part::Hop { .. } => [Some(self.fold()), (half > 0).then_some(self.fold())],
            Part::Match { matching, edge } => {
                let most = |edge: u32| {
                    let end = self.matchings().end(edge % half, matching);
                    let passed = end.abs_diff(self.matchings().other(end, matching));
                    self.stride * passed.max(self.vertices - passed)
                };
                let edge = edge + 2 * self.shift;
                match half {
                    1 => [(edge == 0).then(|| most(0)), (edge == 1).then(|| most(0))],
                    _ => [Some(most(edge)), Some(most(edge + 1))],
                }
            }
        };
        up.map(|hops| (Up, hops)).into_iter().chain(down.map(|hops| (Down, hops)))
    }

    /// The signed hops of a rank's message, and those from which its own message comes.
    pub(super) fn hops(&self, part: Part, direction: Direction, at: u32) -> (i64, i64) {
        match part {
            Part::Hop { .. } => {
                let hops = direction.signed(self.fold());
                (hops, -hops)
            }
            Part::Match { matching, .. } => {
                let vertex = self.vertex(at);
                let above = self.above(vertex, self.matchings().other(vertex, matching));
                let [to, from] = match direction {
                    Up => [above, self.vertices - above],
                    Down => [self.vertices - above, above],
                };
                (direction.signed(to * self.stride), -direction.signed(from * self.stride))
            }
        }
    }

    /// Vertices from one up to another, around.
    fn above(&self, vertex: u32, other: u32) -> u32 {
        (other + self.vertices - vertex) % self.vertices
    }

    /// The first slot of a direction in a turn.
    fn first(&self, turn: u32, direction: Direction) -> u64 {
        let number = 2 * turn + u32::from(direction == Down);
        u64::from(number) * u64::from(self.rounds() * self.stride)
    }

    /// The slots of a message in a step, among some turns.
    pub(super) fn sent(&self, part: Part, direction: Direction, turns: &Range<u32>) -> Strided {
        let run = u64::from(self.rounds() * self.stride);
        match part {
            Part::Hop { round, .. } => {
                let left = u64::from(round.min(self.rounds()) * self.stride);
                let base = self.first(turns.start, direction) + left;
                Strided::runs(base, turns.len() as u64, 2 * run, run - left)
            }
            Part::Match { matching, .. } => {
                let there = turns.contains(&(matching + 1));
                let base = self.first(matching + 1, direction);
                Strided::contiguous(base, if there { run } else { 0 })
            }
        }
    }

    /// The slots of some turns.
    pub(super) fn of_turns(&self, turns: &Range<u32>) -> Strided {
        let run = 2 * u64::from(self.rounds() * self.stride);
        Strided::contiguous(self.first(turns.start, Up), turns.len() as u64 * run)
    }

    /// Whether a message also has the blocks of N / 2: those of half of the vertices go in each
    /// direction.
    pub(super) fn has_half(&self, part: Part) -> bool {
        matches!(part, Part::Hop { first, .. } if first < self.half_vertices())
    }

    /// The slots of the blocks of N / 2 that go in a direction.
    pub(super) fn half(&self, direction: Direction) -> Strided {
        Strided::contiguous(
            self.first(0, direction),
            if self.near { self.stride.into() } else { 1 },
        )
    }

    /// The slots of a rank's blocks of N / 2.
    pub(super) fn half_at(&self, at: u32) -> Strided {
        self.half(self.half_direction(at))
    }

    /// Slots of a residual, in one direction or both.
    fn residual(&self, value: u32, direction: Option<Direction>) -> Strided {
        let (stride, rounds) = (self.stride, u64::from(self.rounds()));
        let axis = |count, stride: u32| Axis { count, stride: stride.into() };
        let Some(direction) = direction else {
            let ring = u64::from(self.side / stride);
            return Strided { base: value.into(), outer: Axis::POINT, inner: axis(ring, stride) };
        };
        Strided {
            base: self.first(0, direction) + u64::from(value),
            outer: axis(self.vertices.into(), 2 * self.rounds() * stride),
            inner: axis(rounds, stride),
        }
    }

    /// Moves of the residual exchange.
    pub(super) fn moves(&self) -> u32 {
        if self.near { self.stride - 1 } else { 2 * (self.stride - 1) }
    }

    /// The hops and slots of a move of the residual exchange; of move 0 those of what stays.
    pub(super) fn moved(&self, number: u32, at: u32) -> (i64, Strided) {
        if number == 0 {
            return (0, self.residual(0, None));
        }
        if self.near {
            return (self.nearest(number), self.residual(number, None));
        }
        let direction = match number {
            1 => Up,
            2 => Down,
            // Even ranks go two up while odd ones go two down, and then the other way.
            _ if number % 2 == at % 2 => Down,
            _ => Up,
        };
        let hops = number.div_ceil(2);
        (direction.signed(hops), self.residual(hops, Some(direction)))
    }

    /// A residual, from the nearest rank of the ring.
    fn nearest(&self, residual: u32) -> i64 {
        let down = if 2 * residual > self.stride { self.stride } else { 0 };
        i64::from(residual) - i64::from(down)
    }

    fn digits(&self, slot: u32) -> Digits {
        let run = self.rounds() * self.stride;
        Digits {
            turn: slot / run / 2,
            direction: if slot / run % 2 == 0 { Up } else { Down },
            hops: slot / self.stride % self.rounds(),
            residual: slot % self.stride,
        }
    }

    /// Whether a slot of a place has blocks of N / 2.
    fn is_half(&self, digits: &Digits, place: u32) -> bool {
        let first = digits.turn == 0 && digits.hops == 0 && (self.near || digits.residual == 0);
        first && digits.direction == self.half_direction(place)
    }

    /// The hops along the ring of the block in a slot, to or from a place.
    fn ring_hops(&self, digits: &Digits, place: u32, ahead: bool) -> i64 {
        if self.is_half(digits, place) {
            return i64::from(self.side / 2);
        }
        let passed = match digits.turn.checked_sub(1) {
            None => 0,
            Some(matching) => {
                let vertex = self.vertex(place);
                let above = self.above(vertex, self.matchings().other(vertex, matching));
                if (digits.direction == Up) == ahead { above } else { self.vertices - above }
            }
        };
        digits.direction.signed((digits.hops * self.vertices + passed) * self.stride)
    }

    /// The same by the slot, where none are left after it.
    pub(super) fn hops_to(&self, place: u32, slot: u32) -> i64 {
        self.ring_hops(&self.digits(slot), place, true)
    }

    /// The same, from where the block comes.
    pub(super) fn hops_from(&self, place: u32, slot: u32) -> i64 {
        self.ring_hops(&self.digits(slot), place, false)
    }

    /// The turns of the first half of the slots, or of the second.
    pub(super) fn turns_of_half(&self, half: u32) -> Range<u32> {
        let turns = self.vertices / 2;
        half * turns..(half + 1) * turns
    }

    pub(super) fn turns(&self) -> Range<u32> {
        0..self.vertices
    }

    fn last_hops(&self, digits: &Digits) -> i64 {
        if self.near {
            self.nearest(digits.residual)
        } else {
            digits.direction.signed(digits.residual)
        }
    }

    fn around(&self, at: u32, hops: i64) -> u32 {
        (i64::from(at) + hops).rem_euclid(self.side.into()) as u32
    }

    /// Where the block in a slot of a position goes.
    pub(super) fn to(&self, at: u32, slot: u32) -> u32 {
        let digits = self.digits(slot);
        self.around(at, self.ring_hops(&digits, at, true) + self.last_hops(&digits))
    }

    /// Where the block in a slot of a position came from.
    pub(super) fn from(&self, at: u32, slot: u32) -> u32 {
        let digits = self.digits(slot);
        let landed = self.around(at, -self.last_hops(&digits));
        self.around(landed, -self.ring_hops(&digits, landed, false))
    }
}
