//! Two dimensions, one port: the ranks of even sum of coordinates send along one dimension first, the
//! others along the other.
//!
//! # The first phase
//! Let N = 2h be the side and s the sum of coordinates. Ranks of even s send their blocks along the second
//! dimension in messages of N blocks, one for each offset, and ranks of odd s along the first. Let V be
//! h/2. An edge {x, y} of the complete graph on Z_V is a tour of the places s = 2x, 2y, 2x + h and 2y + h
//! of a line. Its messages are of even offsets or, a link short of the next place, of odd ones. A short
//! message ends at a rank that sends along the other dimension. There the tour of the same edge starts
//! on the places one lower, 2x - 1 and so on, or one higher. Two edges A and B of a matching
//! make two steps:
//! - A up and short, B down; along the first dimension, on places one lower, A down and short, B up;
//! - A up, B down and short; along the first dimension, on places one higher, B up and short, A down.
//!
//! Offsets of h and h - 1 are tours of a single vertex, in V + V/2 steps: those of the first kind for
//! A = x and B = x + V/2, those of the second kind for A = x and B = x + 1, with A down on places one
//! lower, and both with x below V/2; then, for the other x, steps of short messages alone, of A = x and
//! B = x + 1.
//!
//! # The second phase
//! Every rank has as many blocks for each dimension, which a stage in two parts takes, of N^2/8 steps.
//!
//! # Claims
//! N^2/16 + N/8 steps of N blocks, then N^2/8 of N/2: 3 N^2/16 + N/8 steps, N^3/8 + N^2/8 blocks.
//!
//! # The layout
//! A slot is a turn and, faster, a digit of the second phase. A turn is a step of the first phase in which
//! the rank sends, or that of the blocks that stay. A block is received into the slot just sent. First come
//! the turns whose messages arrive along the second dimension, so each half of the slots has one dimension
//! in the second phase.

use smallvec::SmallVec;
use topocoll_schedule::{Block, RankClasses, Rule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Grid, Rank, Route};

use super::line::{Direction, Line, Part};
use super::matchings::Matchings;
use crate::layout::translation::classes;
use crate::{Claims, Request};

/// The longest side, as the steps of all classes of ranks are listed.
pub(super) const LONGEST: u32 = 128;

/// A message of the first phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sent {
    /// Which of the two dimensions.
    along: usize,
    /// The hops, with sign.
    hops: i32,
    /// The number of the turn.
    turn: u32,
}

/// A turn of a class of ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Turn {
    /// The dimension and hops of the message.
    to: (usize, i32),
    /// Those of the message that arrives in the same step.
    from: (usize, i32),
}

pub(super) struct Sources {
    grid: Grid,
    lines: [Line; 2],
    /// What each class sends in each step of the first phase, step by step.
    sent: Vec<Option<Sent>>,
    /// What each turn of each class is, class by class.
    turns: Vec<Turn>,
    /// Steps of the first phase.
    first: u32,
}

/// A tour of the first phase: its edge or single vertex, and what takes part.
struct Tour {
    ends: [u32; 2],
    /// The place of vertex 0.
    place: i64,
    along: usize,
    direction: Direction,
    /// Whether messages are a link short.
    short: bool,
}

impl Sources {
    /// On two equal sides, multiples of 8, from 16 to [`LONGEST`].
    pub(super) fn new(grid: &Grid) -> Self {
        let long: SmallVec<[usize; 3]> = grid.radix().long_dimensions().collect();
        let side = grid.sides()[long[0]];
        let line = |u: usize| Line::new(u, side, 1, side / 2, true);
        let lines = [line(long[0]), line(long[1]).shifted()];
        let mut sources =
            Self { grid: grid.clone(), lines, sent: Vec::new(), turns: Vec::new(), first: 0 };
        for tours in tours(side) {
            sources.add(&tours);
        }
        sources.number();
        sources
    }

    /// N.
    fn side(&self) -> u32 {
        self.lines[0].side
    }

    /// Classes of ranks, N/2.
    fn classes_of_ranks(&self) -> u32 {
        self.side() / 2
    }

    fn class(&self, at: [u32; 2]) -> u32 {
        (at[0] + at[1]) % self.classes_of_ranks()
    }

    /// Adds a step of some tours.
    fn add(&mut self, tours: &[Tour]) {
        let classes = self.classes_of_ranks();
        let start = self.sent.len();
        self.sent.resize(start + classes as usize, None);
        self.first += 1;
        let vertices = classes / 2;
        for tour in tours {
            let [x, y] = tour.ends;
            // A single vertex meets itself after a whole turn.
            let above = |x: u32, y: u32| match (y + vertices - x) % vertices {
                0 => vertices,
                passed => passed,
            };
            for &(x, y) in &[(x, y), (y, x)][usize::from(x == y)..] {
                let passed =
                    if tour.direction == Direction::Up { above(x, y) } else { above(y, x) };
                let place = (2 * i64::from(x) + tour.place).rem_euclid(classes.into());
                let hops = tour.direction.signed(2 * passed - u32::from(tour.short)) as i32;
                self.sent[start + place as usize] = Some(Sent { along: tour.along, hops, turn: 0 });
            }
        }
    }

    /// Numbers the turns of every class.
    fn number(&mut self) {
        let (classes, side) = (self.classes_of_ranks(), self.side());
        self.turns = vec![Turn::default(); (classes * side) as usize];
        // Blocks that stay arrived along the first dimension of their source.
        let mut numbers: Vec<[u32; 2]> =
            (0..classes).map(|class| [1 - class % 2, side / 2 + class % 2]).collect();
        for step in self.sent.chunks_mut(classes as usize) {
            let sent: Vec<Option<Sent>> = step.to_vec();
            for (class, message) in (0..).zip(&sent) {
                let Some(message) = message else { continue };
                let to = (class + message.hops).rem_euclid(classes as i32) as usize;
                // Who receives also sends.
                let Some(own) = &mut step[to] else { continue };
                let number = &mut numbers[to][1 - message.along];
                own.turn = *number;
                self.turns[to * side as usize + *number as usize] =
                    Turn { to: (own.along, own.hops), from: (message.along, message.hops) };
                *number += 1;
            }
        }
    }

    /// What a class sends in a step of the first phase.
    fn sent(&self, class: u32, step: u32) -> Option<Sent> {
        self.sent[(step * self.classes_of_ranks() + class) as usize]
    }

    fn turn(&self, class: u32, slot: Slot) -> Turn {
        let turn = (slot / u64::from(self.side())) as u32;
        self.turns[(class * self.side() + turn) as usize]
    }

    /// The dimension along which a rank sends first.
    fn first_dimension(&self, rank: Rank) -> usize {
        1 - (self.class(self.at(rank)) % 2) as usize
    }

    /// The slots of a turn.
    fn slots_of_turn(&self, turn: u32) -> SlotSet {
        let side = u64::from(self.side());
        SlotSet::of(Strided::contiguous(u64::from(turn) * side, side))
    }

    /// The dimension in the second phase of a slot.
    fn second(&self, slot: Slot) -> usize {
        // What arrived along the second dimension goes along the first.
        usize::from(slot >= self.slots() / 2)
    }

    /// The slots of a message along a dimension in the second phase.
    fn second_slots(&self, u: usize, part: Part, direction: Direction) -> SlotSet {
        let (line, side) = (&self.lines[u], u64::from(self.side()));
        let mut slots = SlotSet::default();
        let mut push = |digits: Strided| {
            if !digits.is_empty() {
                let base = u as u64 * self.slots() / 2 + digits.base;
                slots.push(Strided::runs(base, side / 2, side, digits.len()));
            }
        };
        push(line.sent(part, direction, &line.turns()));
        if line.has_half(part) {
            push(line.half(direction));
        }
        slots
    }

    /// What rings do in a step of the second phase.
    fn part(&self, step: u32) -> Part {
        let line = &self.lines[0];
        match step.checked_sub(line.half_steps()) {
            None => line.hop(step),
            Some(step) => line.matched(step),
        }
    }

    fn at(&self, rank: Rank) -> [u32; 2] {
        [0, 1].map(|u| self.grid.radix().coordinate(rank, self.lines[u].dimension))
    }

    fn shifted(&self, rank: Rank, u: usize, hops: i64) -> Rank {
        self.grid.radix().shifted(rank, self.lines[u].dimension, hops)
    }

    /// Adds a message along a dimension by some hops, and the one that comes along another.
    fn message(
        &self,
        rank: Rank,
        to: (usize, i64),
        from: (usize, i64),
        slots: SlotSet,
        out: &mut Step,
    ) {
        out.receive(self.shifted(rank, from.0, -from.1), slots.clone());
        let route = Route::straight(self.lines[to.0].dimension as u32, to.1);
        out.send(self.shifted(rank, to.0, to.1), slots, route);
    }

    pub(super) fn claims(&self, request: &Request<'_>) -> Claims {
        let side = u128::from(self.side());
        let farthest = |step: &[Option<Sent>]| {
            step.iter().flatten().map(|sent| sent.hops.unsigned_abs()).max()
        };
        let first: u32 =
            self.sent.chunks(self.classes_of_ranks() as usize).filter_map(farthest).sum();
        let second = (0..self.steps() - self.first).map(|step| {
            let most = |line: &Line| line.most_hops(self.part(step)).map(|(_, hops)| hops).max();
            self.lines.iter().filter_map(most).max().unwrap_or(0)
        });
        let hops = u128::from(first) + second.map(u128::from).sum::<u128>();
        let scattered = u128::from(self.steps() - self.first) * side / 2;
        Claims {
            hops: Some(hops),
            hops_floor: hops,
            rearrangements: Some(0),
            copied_bytes: Some(request.bytes(scattered)),
            contention_free: true,
            ..Claims::new(
                self.steps().into(),
                request.bytes(u128::from(self.first) * side + scattered),
            )
        }
    }
}

/// The tours of each step of the first phase.
fn tours(side: u32) -> impl Iterator<Item = [Tour; 4]> {
    use Direction::{Down, Up};
    let vertices = side / 4;
    let half = vertices / 2;
    let step = |kind: usize, up: [u32; 2], down: [u32; 2]| {
        let tour =
            |ends, place, along, direction, short| Tour { ends, place, along, direction, short };
        match kind {
            0 => [
                tour(up, 0, 1, Up, true),
                tour(down, 0, 1, Down, false),
                tour(up, -1, 0, Down, true),
                tour(down, -1, 0, Up, false),
            ],
            1 => [
                tour(up, 0, 1, Up, false),
                tour(down, 0, 1, Down, true),
                tour(down, 1, 0, Up, true),
                tour(up, if up[0] == up[1] { -1 } else { 1 }, 0, Down, false),
            ],
            _ => [
                tour(up, 0, 1, Up, true),
                tour(down, 0, 1, Down, true),
                tour(down, 1, 0, Up, true),
                tour(up, -1, 0, Down, true),
            ],
        }
    };
    let matchings = Matchings::new(vertices);
    let edge = move |matching: u32, edge: u32| {
        let end = matchings.end(edge % half, matching);
        [end, matchings.other(end, matching)]
    };
    let edges = (0..(vertices - 1) * half).flat_map(move |number| {
        let (matching, first) = (number / half, number % half);
        let [up, down] = [edge(matching, first), edge(matching, first + 1)];
        [step(0, up, down), step(1, up, down)]
    });
    let single = move |kind: usize, x: u32, y: u32| step(kind, [x; 2], [y % vertices; 2]);
    let singles = (0..half).map(move |x| single(0, x, x + half));
    let singles =
        singles.chain((0..vertices).map(move |x| single(if x < half { 1 } else { 2 }, x, x + 1)));
    edges.chain(singles)
}

impl Rule for Sources {
    fn steps(&self) -> u32 {
        self.first + self.lines[0].half_steps() + self.lines[0].match_steps()
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let at = self.at(rank);
        if step < self.first {
            let class = self.class(at);
            let Some(sent) = self.sent(class, step) else { return };
            let Turn { to, from } = self.turns[(class * self.side() + sent.turn) as usize];
            let [to, from] = [to, from].map(|(u, hops)| (u, i64::from(hops)));
            return self.message(rank, to, from, self.slots_of_turn(sent.turn), out);
        }
        let (part, place) = (self.part(step - self.first), at[0] + at[1]);
        for (u, line) in self.lines.iter().enumerate() {
            let Some(direction) = line.direction(part, place) else { continue };
            let (to, from) = line.hops(part, direction, place);
            self.message(rank, (u, to), (u, -from), self.second_slots(u, part, direction), out);
        }
    }

    fn slots(&self) -> u64 {
        self.grid.radix().ranks().into()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let (u, hops) = self.turn(self.class(self.at(rank)), slot).to;
        let middle = self.shifted(rank, u, hops.into());
        let at = self.at(middle);
        let u = 1 - self.first_dimension(rank);
        let digit = (slot % u64::from(self.side())) as u32;
        let to = self.shifted(middle, u, self.lines[u].hops_to(at[0] + at[1], digit));
        Some(Block { from: rank, to })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let (u, at) = (self.second(slot), self.at(rank));
        let digit = (slot % u64::from(self.side())) as u32;
        let middle = self.shifted(rank, u, -self.lines[u].hops_from(at[0] + at[1], digit));
        let (u, hops) = self.turn(self.class(self.at(middle)), slot).from;
        Some(Block { from: self.shifted(middle, u, -i64::from(hops)), to: rank })
    }

    fn classes(&self) -> RankClasses {
        classes(&self.grid, self.lines.iter().map(|line| (line.dimension, line.side / 2)))
    }
}
