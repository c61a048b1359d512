//! Blocks along rings of equal stride, straight or in hops of one length, then the few hops that are
//! left: near the bisection bound of a torus in few steps, without link contention.
//!
//! # Rings
//! The ranks of a line whose positions agree mod g are a ring. The class of a rank is the sum of its
//! coordinates mod g, which moves of multiples of g keep. In stage k, of max(g, n), the class q moves
//! along dimension (q + k) mod max(g, n) of the n that there are, so that every line has one class
//! at a time. With g >= n the links of all dimensions are full.
//!
//! # One ring
//! Let a ring have L ranks, and V be an even divisor of L/2 (the *fold* is V g). A block e ring ranks
//! away goes floor(|e|/V) hops of V, then the remainder.
//! - In round t, of L/(2V), step j has the ranks whose place is j mod V hop upwards, and those V/2
//!   further on downwards, with the blocks that have t hops or more. Such hops fill the ring in
//!   both directions.
//! - A remainder upwards from place x mod V to y goes in the step of the edge {x, y}: the messages
//!   from all places x mod V to the next y, and from y to the next x, fill the ring. The edges of the
//!   complete graph on Z_V make V - 1 perfect matchings of V/2 edges; in each step one edge of a
//!   matching goes upwards and the next one downwards, and these have no rank in common.
//! - Blocks of L/2 ranks make as many hops of V in the direction of their place: upwards if it is
//!   below V/2. So the last round has V/2 steps.
//! - With V = 2 a matching has one edge, which goes upwards in a step and downwards in another. At
//!   g = 3 along two dimensions these take no steps of their own: while a class hops along one
//!   dimension, the next class goes upwards along the other, and the third class downwards.
//!
//! With `share=halves` (equal sides) they go before all stages, along all dimensions at
//! once: let c be the sum of coordinates mod N/2; in step t the classes 2f and 2f + 1 go N/2 hops
//! along dimension (t + f) mod max(N/4, n), upwards and downwards. With sides of N and 2N, class c alone
//! goes along dimension (t + c) mod max(N/2, n): along sides of N upwards if c is even, else downwards, and
//! along sides of 2N the other way where the position mod N is N/2 or more.
//!
//! # The last hops
//! With `landing=near` a block goes to the rank of its ring that is nearest to its destination; 0 or
//! 1 hop is left at g = 2, at most one in either direction at g = 3. With `landing=short` it goes no
//! farther than its destination, so that fewer blocks go around and what is left depends on the
//! direction. Then every rank makes the same moves: 1 up, 1 down, or two, where even ranks go up
//! while odd ones go down. Moves of several dimensions in one message, in the order of dimensions, share
//! no link if those of each dimension share none; `last` says whether all dimensions go together.
//!
//! # Parts
//! With `share=parts` and a port for each of two to four dimensions, parts of the blocks move along all dimensions at
//! once, at stride 1 or 2: see [`parts`].
//!
//! # Claims
//! There is no link contention. On an N x N torus with N a multiple of 16, at g = 2, a fold of 8, short,
//! together: N/2 + 16 steps and N^3/8 + N^2/2 blocks; at a fold of N/2, N a multiple of 8, the same
//! blocks in N^2/16 + 8 steps; near, together, at N/2: N^2/16 + 3 steps and N^3/8 + 3 N^2/4 blocks.
//! At g = 3 with N a multiple of 12, a fold of 6, near, together: N/2 + 8 steps, all links full in the
//! first N/2.
//! Direct exchange at the bisection bound along such tours is [`direct-rings`](super::direct_rings);
//! schedules of these counts are new, to our knowledge.
//!
//! # The layout
//! A slot has a digit for each dimension, of as many values as its side has ranks, and in each: the
//! matching of the remainder (0 if there is none), the direction, the hops of V, and what is left. A
//! block is received into the slot just sent.

mod last;
mod line;
mod matchings;
mod mixed;
mod parts;
mod settings;

use std::ops::Range;

use smallvec::SmallVec;
use topocoll_schedule::{Axis, Block, RankClasses, Rule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Coordinates, Grid, Rank, Route};

use self::last::Group;
use self::line::{Direction, Part, StridedLine};
use crate::layout::axes::push_box;
use crate::layout::mixed_radix_layout::Ends;
use crate::layout::translation::{classes, shift};
use crate::{Claims, Request};

pub(crate) struct StridedRings;

/// The most steps, as claims visit every step.
const MOST_STEPS: u32 = 1 << 18;

struct StridedRule {
    grid: Grid,
    /// The sides of more than one rank.
    lines: SmallVec<[StridedLine; 3]>,
    /// g.
    stride: u32,
    share: Sharing,
    /// Dimensions whose last hops are of one message.
    groups: SmallVec<[Group; 3]>,
    /// The first step of each stage, and of the last hops.
    stages: SmallVec<[u32; 4]>,
    steps: u32,
}

/// How the dimensions are shared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sharing {
    /// Each class of ranks moves along one at a time.
    Classes,
    /// The same, but blocks of half a side went along all of them before.
    Halves,
    /// Half of the blocks move along each of two, with one message of a rank at a time.
    PartsInTurn,
}

/// What all ranks do in a step.
enum Activity<'a> {
    /// Blocks of half a side, all dimensions at once.
    Halves {
        step: u32,
    },
    Stage {
        stage: u32,
        step: u32,
    },
    /// The moves of a group, by number; 0 stays.
    Last {
        group: &'a Group,
        moves: SmallVec<[u32; 3]>,
    },
}

impl StridedRule {
    /// The last hops are along `together` dimensions in a message. None where there are too many steps.
    fn new(
        grid: &Grid,
        lines: SmallVec<[StridedLine; 3]>,
        stride: u32,
        share: Sharing,
        together: usize,
    ) -> Option<Self> {
        let groups = last::groups(lines.len(), together);
        let stages = SmallVec::new();
        let grid = grid.clone();
        let mut rings = Self { grid, lines, stride, share, groups, stages, steps: 0 };
        let mut steps =
            u64::from(if share == Sharing::Halves { rings.turns_of_halves() } else { 0 });
        for stage in 0..rings.turns() {
            rings.stages.push(u32::try_from(steps).ok()?);
            steps += u64::from(rings.stage_steps(stage));
        }
        rings.stages.push(u32::try_from(steps).ok()?);
        for group in &rings.groups {
            steps = steps.checked_add(rings.steps_of_group(group)?)?;
        }
        rings.steps = u32::try_from(steps).ok().filter(|&steps| steps <= MOST_STEPS)?;
        Some(rings)
    }

    /// Stages, max(g, n).
    fn turns(&self) -> u32 {
        self.stride.max(self.lines.len() as u32)
    }

    /// The shortest side.
    fn shortest(&self) -> u32 {
        self.lines.iter().map(|line| line.side).min().unwrap_or(1)
    }

    /// The longest side.
    fn longest(&self) -> u32 {
        self.lines.iter().map(|line| line.side).max().unwrap_or(1)
    }

    /// Steps of the blocks of half a side, where these go together.
    fn turns_of_halves(&self) -> u32 {
        (self.longest() / 4).max(self.lines.len() as u32)
    }

    /// Classes that send these blocks along one dimension in a step: two, or one if sides are unequal.
    fn classes_together(&self) -> u32 {
        if self.shortest() == self.longest() { 2 } else { 1 }
    }

    /// Steps of hops in a stage.
    fn hop_steps(&self, stage: u32) -> u32 {
        let hops = |line: &StridedLine| {
            line.hop_steps() + if self.share == Sharing::Halves { 0 } else { line.half_steps() }
        };
        self.lines_in(stage).map(hops).max().unwrap_or(0)
    }

    /// Steps of a stage.
    fn stage_steps(&self, stage: u32) -> u32 {
        if self.is_mixed() {
            return self.mixed_steps();
        }
        self.hop_steps(stage)
            + self.lines_in(stage).map(StridedLine::match_steps).max().unwrap_or(0)
    }

    /// Along which line a class or part moves in a step of a stage, and how.
    fn part(&self, mover: u32, stage: u32, step: u32) -> Option<(usize, Part)> {
        if self.is_mixed() {
            return self.mixed_part(mover, stage, step);
        }
        let (u, line) = self.line(mover, stage)?;
        let part = match step.checked_sub(self.hop_steps(stage)) {
            None => {
                let halves = if self.share == Sharing::Halves { 0 } else { line.half_steps() };
                (step < line.hop_steps() + halves).then(|| line.hop(step))
            }
            Some(step) => (step < line.match_steps()).then(|| line.matched(step)),
        };
        Some((u, part?))
    }

    /// Whether ranks send all their blocks along one dimension at a time.
    fn is_whole(&self) -> bool {
        matches!(self.share, Sharing::Classes | Sharing::Halves)
    }

    /// Classes of ranks, or parts of blocks.
    fn movers(&self) -> u32 {
        if self.is_whole() { self.stride } else { 2 }
    }

    /// The lines that are used in a stage.
    fn lines_in(&self, stage: u32) -> impl Iterator<Item = &StridedLine> {
        (0..self.movers()).filter_map(move |mover| self.line(mover, stage).map(|(_, line)| line))
    }

    /// The line along which a class or part moves in a stage.
    fn line(&self, mover: u32, stage: u32) -> Option<(usize, &StridedLine)> {
        let u = ((mover + stage) % self.turns()) as usize;
        self.lines.get(u).map(|line| (u, line))
    }

    /// The line and hops of a rank's blocks of half a side, where these go together.
    fn half_of(&self, at: &[u32], step: u32) -> Option<(usize, i64)> {
        let classes = self.shortest() / 2;
        let class = at.iter().sum::<u32>() % classes;
        let turn = step + class / self.classes_together();
        let u = (turn % self.turns_of_halves()) as usize;
        let half = self.lines.get(u)?.side / 2;
        let up = (class + at[u] % half / classes) % 2 == 0;
        Some((u, if up { i64::from(half) } else { -i64::from(half) }))
    }

    fn phase(&self, step: u32) -> Activity<'_> {
        let stage = self.stages.partition_point(|&first| first <= step);
        if stage == 0 {
            return Activity::Halves { step };
        }
        if let Some(&end) = self.stages.last().filter(|&&end| end <= step)
            && let Some((group, moves)) = self.last_moves(u64::from(step - end))
        {
            return Activity::Last { group, moves };
        }
        Activity::Stage { stage: stage as u32 - 1, step: step - self.stages[stage - 1] }
    }

    /// The ranks from one value of a dimension's digit to the next: also those of slots.
    fn weight(&self, u: usize) -> u32 {
        self.grid.radix().stride(self.lines[u].dimension)
    }

    /// The slots with given digits along some dimensions, and any along others.
    fn slots_of(&self, given: &[(usize, Strided)], out: &mut SlotSet) {
        if given.iter().any(|(_, digits)| digits.is_empty()) {
            return;
        }
        let mut axes: SmallVec<[Axis; 8]> = SmallVec::new();
        let mut base = 0;
        for (u, line) in self.lines.iter().enumerate() {
            let weight = self.weight(u);
            let any = Strided::contiguous(0, line.side.into());
            let digits = given.iter().find(|(v, _)| *v == u).map_or(any, |(_, digits)| *digits);
            base += digits.base * u64::from(weight);
            for axis in [digits.outer, digits.inner] {
                axes.push(Axis { count: axis.count, stride: axis.stride * i64::from(weight) });
            }
        }
        push_box(base, &axes, out);
    }

    /// The slots of a message of a class or part along a ring.
    fn ring_slots(&self, mover: u32, u: usize, part: Part, direction: Direction) -> SlotSet {
        let line = &self.lines[u];
        let mut slots = SlotSet::default();
        let mut push = |turns: &Range<u32>, others: &[(usize, Strided)]| {
            let mut push = |digits: Strided| {
                let given: SmallVec<[(usize, Strided); 2]> =
                    others.iter().copied().chain([(u, digits)]).collect();
                self.slots_of(&given, &mut slots);
            };
            push(line.sent(part, direction, turns));
            if line.has_half(part) && self.share != Sharing::Halves && turns.start == 0 {
                push(line.half(direction));
            }
        };
        if self.is_whole() {
            push(&line.turns(), &[]);
        } else {
            // A part has blocks of the first half of the slots along both dimensions or of the second
            // along both, and the other part the others.
            for half in 0..2 {
                let other = &self.lines[1 - u];
                let others = other.of_turns(&other.turns_of_half((half + mover) % 2));
                push(&line.turns_of_half(half), &[(1 - u, others)]);
            }
        }
        slots
    }

    /// The place of a rank on a line.
    fn place(&self, at: &[u32], u: usize) -> u32 {
        if self.share == Sharing::PartsInTurn { at.iter().sum() } else { at[u] }
    }

    /// The coordinates in the dimensions longer than 1.
    fn at(&self, rank: Rank) -> Coordinates {
        self.lines.iter().map(|line| self.grid.radix().coordinate(rank, line.dimension)).collect()
    }

    fn shifted(&self, rank: Rank, u: usize, hops: i64) -> Rank {
        self.grid.radix().shifted(rank, self.lines[u].dimension, hops)
    }

    /// Adds a message along a dimension by some hops, and the one that comes by others.
    fn message(&self, rank: Rank, u: usize, [to, from]: [i64; 2], slots: SlotSet, out: &mut Step) {
        out.receive(self.shifted(rank, u, from), slots.clone());
        let route = Route::straight(self.lines[u].dimension as u32, to);
        out.send(self.shifted(rank, u, to), slots, route);
    }

    /// The digit of a slot along a dimension.
    fn digit(&self, slot: Slot, u: usize) -> u32 {
        (slot / u64::from(self.weight(u)) % u64::from(self.lines[u].side)) as u32
    }

    /// The other end of a block, by digits.
    fn end(&self, rank: Rank, slot: Slot, end: impl Fn(&StridedLine, u32, u32) -> u32) -> Rank {
        let ends = self.lines.iter().enumerate().map(|(u, line)| {
            let at = self.grid.radix().coordinate(rank, line.dimension);
            end(line, at, self.digit(slot, u)) * self.weight(u)
        });
        Rank(ends.sum())
    }

    /// The same where places are sums of coordinates, forward or back.
    fn end_in_turn(&self, rank: Rank, slot: Slot, forward: bool) -> Rank {
        let half = |u: usize| u32::from(self.digit(slot, u) >= self.lines[u].side / 2);
        let part = (half(0) + half(1)) as usize % 2;
        let order = if forward { [part, 1 - part] } else { [1 - part, part] };
        order.into_iter().fold(rank, |rank, u| {
            let (place, digit) = (self.place(&self.at(rank), u), self.digit(slot, u));
            let line = &self.lines[u];
            let hops =
                if forward { line.hops_to(place, digit) } else { -line.hops_from(place, digit) };
            self.shifted(rank, u, hops)
        })
    }

    fn ends(&self, rank: Rank, end: impl Fn(&StridedLine, u32, u32) -> u32) -> Ends {
        let mut ends = Ends::new(self.slots());
        for (u, line) in self.lines.iter().enumerate().rev() {
            let at = self.grid.radix().coordinate(rank, line.dimension);
            ends.prepend(line.side, |digit| end(line, at, digit) * self.weight(u));
        }
        ends
    }

    /// The messages of a step: slots, hops and route of one rank for each kind.
    fn kinds(&self, step: u32, each: &mut dyn FnMut(&SlotSet, u64)) {
        match self.phase(step) {
            Activity::Halves { step } => {
                let mut at = Coordinates::from_elem(0, self.lines.len());
                for class in (0..self.shortest() / 2).step_by(self.classes_together() as usize) {
                    at[0] = class;
                    if let Some((u, hops)) = self.half_of(&at, step) {
                        let mut slots = SlotSet::default();
                        self.slots_of(&[(u, self.lines[u].half_at(0))], &mut slots);
                        each(&slots, hops.unsigned_abs());
                    }
                }
            }
            Activity::Stage { stage, step } => {
                for mover in 0..self.movers() {
                    let Some((u, part)) = self.part(mover, stage, step) else { continue };
                    for (direction, hops) in self.lines[u].most_hops(part) {
                        each(&self.ring_slots(mover, u, part, direction), hops.into());
                    }
                }
            }
            Activity::Last { group, moves } => {
                let at = Coordinates::from_elem(0, self.lines.len());
                let (hops, slots) = self.last_message(group, &moves, &at);
                each(&slots, hops.iter().map(|hops| hops.unsigned_abs()).sum());
            }
        }
    }

    fn claims(&self, request: &Request<'_>) -> Claims {
        let bytes = request.problem.block_bytes;
        Claims::of_messages(bytes, self.steps(), |step, each| self.kinds(step, each))
    }
}

impl Rule for StridedRule {
    fn steps(&self) -> u32 {
        self.steps
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let at = self.at(rank);
        match self.phase(step) {
            Activity::Halves { step } => {
                let Some((u, hops)) = self.half_of(&at, step) else { return };
                let mut slots = SlotSet::default();
                self.slots_of(&[(u, self.lines[u].half_at(at[u]))], &mut slots);
                self.message(rank, u, [hops; 2], slots, out);
            }
            Activity::Stage { stage, step } => {
                let class = at.iter().sum::<u32>() % self.stride;
                let movers = if self.is_whole() { class..class + 1 } else { 0..2 };
                for mover in movers {
                    let Some((u, part)) = self.part(mover, stage, step) else { continue };
                    let (line, place) = (&self.lines[u], self.place(&at, u));
                    let Some(direction) = line.direction(part, place) else { continue };
                    let (to, from) = line.hops(part, direction, place);
                    self.message(
                        rank,
                        u,
                        [to, from],
                        self.ring_slots(mover, u, part, direction),
                        out,
                    );
                }
            }
            Activity::Last { group, moves } => {
                let (hops, slots) = self.last_message(group, &moves, &at);
                let hops = group.iter().zip(hops).map(|(&u, hops)| (self.lines[u].dimension, hops));
                shift(&self.grid, rank, hops, slots, out);
            }
        }
    }

    fn slots(&self) -> u64 {
        self.grid.radix().ranks().into()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let to = match self.share {
            Sharing::PartsInTurn => self.end_in_turn(rank, slot, true),
            _ => self.end(rank, slot, StridedLine::to),
        };
        Some(Block { from: rank, to })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let from = match self.share {
            Sharing::PartsInTurn => self.end_in_turn(rank, slot, false),
            _ => self.end(rank, slot, StridedLine::from),
        };
        Some(Block { from, to: rank })
    }

    fn initial_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        out.clear();
        if self.share == Sharing::PartsInTurn {
            return out.extend((0..self.slots()).map(|slot| self.initial_block(rank, slot)));
        }
        out.extend(
            self.ends(rank, StridedLine::to).iter().map(|to| Some(Block { from: rank, to })),
        );
    }

    fn final_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        out.clear();
        if self.share == Sharing::PartsInTurn {
            return out.extend((0..self.slots()).map(|slot| self.final_block(rank, slot)));
        }
        out.extend(
            self.ends(rank, StridedLine::from).iter().map(|from| Some(Block { from, to: rank })),
        );
    }

    fn classes(&self) -> RankClasses {
        // Half of an even side is a multiple of the other periods.
        let halves = self.share == Sharing::Halves;
        let period = |line: &StridedLine| if halves { line.side / 2 } else { line.period() };
        classes(&self.grid, self.lines.iter().map(|line| (line.dimension, period(line))))
    }
}
