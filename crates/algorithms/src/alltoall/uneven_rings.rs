//! Blocks in hops of about four ranks along rings of any length, then in short hops and last ones:
//! near the bisection bound of a torus of two even sides in few steps, without link contention.
//!
//! # Rings
//! Even ranks, those with an even sum of coordinates, move along dimension 1 and then along dimension
//! 0; odd ones the other way around. Moves of even length keep the parity, so the ranks that move on a
//! line are a ring of M = N/2 places, and all links are in use. A block makes k ring hops toward its
//! destination, without passing it; 0 or 1 hop is left. A block of N/2 hops goes upwards if its
//! distance along the other dimension is even.
//!
//! # Hops
//! A word of four colours goes around the ring. In step j of a round the places of colour j send to the
//! next place of the colour. Those two places after colour j send downwards, each to the previous
//! one of them. These hops fill the ring in both directions, and no place sends both ways. A block of
//! k = 4t + i ring hops, i < 4, moves in the first t of floor(M/8) rounds. The word is 0123, repeated,
//! with hops of 4. If 4 does not divide M, neighbouring colours are swapped at three or four places,
//! so that the word closes. A swap has a hop of 3 and one of 5. In even rounds the word begins four
//! places later, so that each of these hops cancels one of the round before.
//!
//! # Corrections
//! So after an odd number of rounds two neighbours per swap have each other's blocks, of which three in
//! four are of use to both. The two exchange the fourth of each group t, and all of the last group.
//!
//! # Short hops
//! Blocks of 1, 2 and 3 ring hops take six steps together. A place has a word of six bits: 000111,
//! 011001, 101010 and 110100, repeated, and then the first three of them, 4a + 3b = M, b < 4. In
//! step j the places with bit j send to the next of them, and those without it downwards to the
//! previous of those. A place sends by each distance once in each direction.
//!
//! # Claims
//! There is no link contention. With R = floor(M/8) on an N x N torus there are 8R + 20 steps, and 2
//! more for corrections unless 8 divides N; 4 fewer with `last=axis`, for N^2/4 blocks more. If N is a
//! multiple of 16, N^3/8 + N^2/2 blocks, as [`strided-rings`](super::strided_rings). All even squares
//! from 64 to 96 have at most 1.095 times the blocks of the bisection bound.
//! The source is an own construction, new to our knowledge.
//!
//! # The layout
//! A slot has a digit for each dimension: the offset mod N, but i is the number of a place's step of short
//! hops in the block's direction, or 0. A block is received into the slot just sent. In the last group,
//! which may have fewer than four, short hops move blocks to slots of their own.

mod line;

use smallvec::SmallVec;
use topocoll_schedule::{Block, Parameters, RankClasses, Rule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Grid, Rank, Route};

use self::line::{Direction, Line, Miss, SHORT_STEPS};
use crate::error::check_sides;
use crate::layout::axes::push_box;
use crate::layout::translation::{classes, shift};
use crate::{Algorithm, Claims, Info, NotApplicable, Parameter, Request, Solution, Values};

pub(crate) struct UnevenRings;

struct Rings {
    grid: Grid,
    lines: [Line; 2],
    /// Whether the last hops of both dimensions are of one message.
    together: bool,
}

/// What all ranks do in a step.
#[derive(Clone, Copy)]
enum Phase {
    Stage {
        stage: usize,
        part: Part,
    },
    /// The last hops along each dimension.
    Last([Option<Direction>; 2]),
}

/// A step of the rings in a stage.
#[derive(Clone, Copy)]
enum Part {
    Hop(u32),
    Correct(u32),
    Short(u32),
}

/// A message of a place along its ring: ring hops, and those of the one that it receives.
struct Moved {
    direction: [Direction; 2],
    hops: [u32; 2],
    sent: SlotSet,
    received: SlotSet,
}

impl Rings {
    fn most(&self, steps: impl Fn(&Line) -> u32) -> u32 {
        self.lines.iter().map(steps).max().unwrap_or(0)
    }

    /// Steps of a stage.
    fn stage_steps(&self) -> u32 {
        self.most(Line::hop_steps) + self.most(Line::correction_steps) + SHORT_STEPS
    }

    fn phase(&self, step: u32) -> Phase {
        let stage_steps = self.stage_steps();
        if let Some(step) = step.checked_sub(2 * stage_steps) {
            let ways = [None, Some(Direction::Up), Some(Direction::Down)];
            let numbers = match (self.together, step) {
                (true, _) => [(step + 1) % 3, (step + 1) / 3],
                (false, ..2) => [step + 1, 0],
                (false, _) => [0, step - 1],
            };
            return Phase::Last(numbers.map(|way| ways[way as usize]));
        }
        let (stage, step) = (step / stage_steps, step % stage_steps);
        let hops = self.most(Line::hop_steps);
        let corrections = hops + self.most(Line::correction_steps);
        let part = match step {
            _ if step < hops => Part::Hop(step),
            _ if step < corrections => Part::Correct(step - hops),
            _ => Part::Short(step - corrections),
        };
        Phase::Stage { stage: stage as usize, part }
    }

    /// The slots of the digits of a dimension before or after its stage. With that of N / 2, if it is among
    /// them, only the slots of blocks that go in the direction.
    fn push(
        &self,
        u: usize,
        digits: &[Strided],
        half: Option<(Direction, bool)>,
        stage: usize,
        out: &mut SlotSet,
    ) {
        let other = &self.lines[1 - u];
        // The other dimension is the second one in the first stage, and the first one in the second.
        let used = other.used(stage == 1);
        let any = Strided::contiguous(used.start.into(), used.len() as u64);
        for &digits in digits {
            self.push_box(u, digits, any, out);
        }
        if let Some((direction, after)) = half {
            let others = other.of_parity(stage == 1, direction == Direction::Down);
            self.push_box(u, self.lines[u].half(after), others, out);
        }
    }

    /// The slots of digits of dimension u and of the other.
    fn push_box(&self, u: usize, digits: Strided, others: Strided, out: &mut SlotSet) {
        let weights = [u64::from(self.lines[1].digits()), 1];
        let mut axes: SmallVec<[_; 4]> = SmallVec::new();
        let mut base = 0;
        for (weight, digits) in [(weights[u], digits), (weights[1 - u], others)] {
            base += digits.base * weight;
            for mut axis in [digits.outer, digits.inner] {
                axis.stride *= weight as i64;
                axes.push(axis);
            }
        }
        push_box(base, &axes, out);
    }

    /// The message of a place along a dimension in a step of a stage.
    fn moved(&self, u: usize, stage: usize, part: Part, place: u32) -> Option<Moved> {
        let line = &self.lines[u];
        let [mut sent, mut received] = [SlotSet::default(), SlotSet::default()];
        match part {
            Part::Hop(step) => {
                if step >= line.hop_steps() {
                    return None;
                }
                let direction = line.hops_in(step, place)?;
                let (round, _) = line.round(step);
                let digits = line.at_least(8 * round, direction);
                self.push(u, &digits, Some((direction, false)), stage, &mut sent);
                let hops = line.hop(round, direction, place);
                Some(Moved { direction: [direction; 2], hops, received: sent.clone(), sent })
            }
            Part::Correct(step) => {
                let mut to = None;
                for &direction in line.corrected(step) {
                    let Some(miss) = line.miss(place, direction) else { continue };
                    let track = match miss {
                        Miss::Short => 0,
                        Miss::Over => line.longest_track(place, direction),
                    };
                    let digits: SmallVec<[Strided; 1]> =
                        line.along(track, direction, true).into_iter().collect();
                    self.push(u, &digits, None, stage, &mut sent);
                    if let Some(digits) = line.whole_last(direction) {
                        self.push(u, &digits, Some((direction, false)), stage, &mut sent);
                    }
                    to = Some(if miss == Miss::Short { direction } else { direction.other() });
                }
                let to = to?;
                let direction = [to, to.other()];
                Some(Moved { direction, hops: [1; 2], received: sent.clone(), sent })
            }
            Part::Short(step) => {
                let direction = line.short_direction(step, place);
                let hops = line.short(step, place);
                let track = line.along(line.track(step, place), direction, false);
                for (hops, after, slots) in
                    [(hops[0], false, &mut sent), (hops[1], true, &mut received)]
                {
                    self.push(u, track.as_slice(), None, stage, slots);
                    let (digits, half) = line.of_last(hops, direction, after);
                    self.push(u, &digits, half.then_some((direction, after)), stage, slots);
                }
                Some(Moved { direction: [direction; 2], hops, sent, received })
            }
        }
    }

    /// The slots of last hops in some directions.
    fn last(&self, ways: [Option<Direction>; 2]) -> SlotSet {
        let mut slots = SlotSet::default();
        if !self.together {
            for (u, way) in ways.into_iter().enumerate() {
                let Some(way) = way else { continue };
                let line = &self.lines[u];
                let half = line.half_is_odd().then_some((way, true));
                self.push(u, &line.odd(way, false), half, 1, &mut slots);
            }
            return slots;
        }
        let digits = |u: usize| -> SmallVec<[Strided; 2]> {
            let line = &self.lines[u];
            match ways[u] {
                None => std::iter::once(line.of_parity(true, false)).collect(),
                // Blocks of N / 2 hops go downwards if the other distance is odd.
                Some(way) => {
                    let half = (way == Direction::Down) == ways[1 - u].is_some();
                    line.odd(way, half && line.half_is_odd())
                }
            }
        };
        for rows in digits(0) {
            for columns in digits(1) {
                self.push_box(0, rows, columns, &mut slots);
            }
        }
        slots
    }

    fn at(&self, rank: Rank) -> [u32; 2] {
        [0, 1].map(|u| self.grid.radix().coordinate(rank, self.lines[u].dimension))
    }

    fn shifted(&self, rank: Rank, u: usize, hops: i64) -> Rank {
        self.grid.radix().shifted(rank, self.lines[u].dimension, hops)
    }

    /// The other end of the block in a slot, before all steps or after them.
    fn end(&self, rank: Rank, slot: Slot, after: bool) -> Option<Rank> {
        let columns = u64::from(self.lines[1].digits());
        let row = self.lines[0].value(u32::try_from(slot / columns).ok()?, after)?;
        let offsets = [row, self.lines[1].value((slot % columns) as u32, after)?];
        let at = self.at(rank);
        let ends = [0, 1].map(|u: usize| {
            let line = &self.lines[u];
            let half = if offsets[1 - u] % 2 == 0 { Direction::Up } else { Direction::Down };
            let end = match after {
                false => line.to(at[u], offsets[u], half),
                true => line.from(at[u], offsets[u], half),
            };
            end * self.grid.radix().stride(line.dimension)
        });
        Some(Rank(ends[0] + ends[1]))
    }

    /// Each message that ranks send in a step, by place, and its hops.
    fn messages(&self, step: u32, each: &mut dyn FnMut(&SlotSet, u64)) {
        match self.phase(step) {
            Phase::Stage { stage, part } => {
                for (u, line) in self.lines.iter().enumerate() {
                    for place in line.places() {
                        if let Some(moved) = self.moved(u, stage, part, place) {
                            each(&moved.sent, 2 * u64::from(moved.hops[0]));
                        }
                    }
                }
            }
            Phase::Last(ways) => {
                let hops = ways.iter().flatten().count() as u64;
                each(&self.last(ways), hops);
            }
        }
    }

    fn claims(&self, request: &Request<'_>) -> Claims {
        let bytes = request.problem.block_bytes;
        Claims::of_messages(bytes, self.steps(), |step, each| self.messages(step, each))
    }
}

impl Rule for Rings {
    fn steps(&self) -> u32 {
        2 * self.stage_steps() + if self.together { 8 } else { 4 }
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let at = self.at(rank);
        match self.phase(step) {
            Phase::Stage { stage, part } => {
                let u = ((at[0] + at[1]) as usize + 1 + stage) % 2;
                let Some(moved) = self.moved(u, stage, part, at[u] / 2) else { return };
                let [to, from] =
                    [0, 1].map(|end: usize| 2 * moved.direction[end].signed(moved.hops[end]));
                // Messages of corrections come from where they go.
                out.receive(self.shifted(rank, u, -from), moved.received);
                let route = Route::straight(self.lines[u].dimension as u32, to);
                out.send(self.shifted(rank, u, to), moved.sent, route);
            }
            Phase::Last(ways) => {
                let slots = self.last(ways);
                let hops = self
                    .lines
                    .iter()
                    .zip(ways)
                    .map(|(line, way)| (line.dimension, way.map_or(0, |way| way.signed(1))));
                shift(&self.grid, rank, hops, slots, out);
            }
        }
    }

    fn slots(&self) -> u64 {
        self.lines.iter().map(|line| u64::from(line.digits())).product()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.end(rank, slot, false).map(|to| Block { from: rank, to })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.end(rank, slot, true).map(|from| Block { from, to: rank })
    }

    fn classes(&self) -> RankClasses {
        classes(&self.grid, self.lines.iter().map(|line| (line.dimension, line.period())))
    }
}

static INFO: Info = Info::new(
    "uneven-rings",
    "blocks in hops of about four along rings of any length, then the few that are left",
    "own construction",
)
.taking(&[Parameter::words(
    "last",
    &[
        ("all", "the last hops along both dimensions in a message"),
        ("axis", "one dimension after the other; more volume in four steps less"),
    ],
)]);

/// The rule of a request.
fn rings(request: &Request<'_>, together: bool) -> Result<Rings, NotApplicable> {
    let grid = request.grid("a torus")?;
    let (sides, wrap) = (grid.sides(), grid.wrap());
    check_sides(grid, "sides that wrap", |u| sides[u] > 1 && !wrap[u])?;
    let long: SmallVec<[usize; 3]> = grid.radix().long_dimensions().collect();
    let [first, second] = long[..] else {
        return Err(request.requires("a torus of two sides longer than 1"));
    };
    let rule = "even sides from 12 to 1024, other than 22";
    check_sides(grid, rule, |u| sides[u] > 1 && !Line::fits(sides[u]))?;
    let lines = [first, second].map(|u| Line::new(u, sides[u]));
    Ok(Rings { grid: grid.clone(), lines, together })
}

impl Algorithm for UnevenRings {
    fn info(&self) -> &Info {
        &INFO
    }

    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let rings = rings(request, true)?;
        let all = |rule: fn(u32) -> bool| rings.lines.iter().all(|line| rule(line.side));
        if all(|side| side <= 16) || all(|side| side % 16 == 0) {
            return Err(NotApplicable::Unranked {
                why: "other algorithms are better for such sides",
            });
        }
        Ok(self.info().combinations())
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let rings = rings(request, values.is("last", "all"))?;
        let claims = rings.claims(request);
        Ok(Solution::new(request, values, rings, claims))
    }
}
