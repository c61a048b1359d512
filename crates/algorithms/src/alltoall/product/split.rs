//! Factors that are not lines: an offset along a side is an even one and 0 or 1. The even ones of two sides go
//! first, and then the odd ones with the third side, if there is one.
//!
//! - *Even hops as rings*: ranks of an even sum of coordinates move along the second of the two dimensions
//!   while the others move along the first; then the reverse. Such moves keep the sum even or odd. So along
//!   a line one of two interleaved rings moves, by an exchange of single blocks on a ring.
//! - *Even hops of two sides of 8*: 15 offsets in 16 steps, by a table for the sums of coordinates mod 4.
//! - *Odd hops with a line*: each message of an exchange of single blocks along the line goes once for each
//!   choice of odd hops, which it makes first. All ranks make the same ones. So those of a line leave for equal
//!   places of different lines, and share no link after it. A rank sends to the line's own place while it is
//!   idle on the line, or else all ranks do in a step of their own.
//!
//! # Claims
//! There is no contention. With exchanges of S steps on lines and rings, on P ranks:
//! - `split=rings`, sides N and N, with rings of N/2: 2 S steps of 2P/N blocks, and 3 of P/4: 11 steps and 235
//!   blocks on 10x10. With a third side A, the last are S + 3 S' steps of P/4A: S' is S, or one more if no rank
//!   is idle. On other sides a step costs the larger of its two kinds of messages.
//! - `split=two`, sides 8, 8 and A: 16 steps of P/16 blocks, then as above. 48 steps and 1024 blocks on 8x8x8, 31
//!   and 496 on 8x8x4.
//!
//! To our knowledge these are new.

use smallvec::{SmallVec, smallvec};
use topocoll_schedule::{Held, Period, PeriodWriter, RankClasses, Slot, Step};
use topocoll_topology::{Coordinates, Grid, MixedRadix, Rank, Route, Topology};

use super::LONGEST;
use super::along::least_volume;
use crate::alltoall::tabled::lines;
use crate::{Claims, NotApplicable, Parameter, Request, Solution, Values};

/// The parameter of sides whose even and odd hops are in different factors.
pub(super) const SPLIT: Parameter = Parameter::words(
    "split",
    &[
        ("none", "each dimension in one factor"),
        ("rings", "even hops of two sides in turn, then odd ones, with the third if there is one"),
        ("two", "even hops of two sides of 8 by a table, odd ones with the third"),
    ],
);

/// The messages that bring the blocks of even offsets to their places on sides of 8.
const EVEN_HOPS: &str = include_str!("even_hops_8.txt");

/// The most blocks in the layouts of all classes.
const MOST_BLOCKS: u64 = 1 << 20;

/// An exchange of single blocks straight along a line.
struct Line {
    /// Places this far from each other have equal messages.
    period: u32,
    /// By step and place, the hops of the message; 0 for that of a rank to itself.
    steps: Vec<Vec<Option<i64>>>,
}

impl Line {
    /// The line of one rank.
    fn point() -> Self {
        Self { period: 1, steps: vec![vec![Some(0)]] }
    }

    /// The exchange of the least volume, and a message of each rank to itself: while it is idle, or in one more
    /// step.
    fn new(request: &Request<'_>, side: u32, wrap: bool) -> Self {
        let grid = Grid::new(&[side], &[wrap]).expect("bug: invalid sides");
        let found = request.part(&grid, 1, 1).and_then(|line| least_volume(&line, &grid, true));
        let schedule = found.expect("bug: no exchange along a line").schedule;
        let (rule, classes) = (schedule.rule(), schedule.rule().classes());
        let does = |place, step| {
            let mut does = Step::default();
            rule.step(Rank(place), step, &mut does);
            does
        };
        let hops = |place, step| {
            let send = &does(place, step).sends.pop()?;
            Some(send.route_from(Rank(place), &grid, &mut Route::default()).segments()[0].hops)
        };
        let row = |step| (0..side).map(|place| hops(place, step)).collect();
        let mut steps: Vec<Vec<Option<i64>>> = (0..rule.steps()).map(row).collect();
        let idle = |place| (0..rule.steps()).find(|&step| does(place, step).is_idle());
        match (0..side).map(idle).collect::<Option<Vec<u32>>>() {
            Some(idle) => (0..).zip(idle).for_each(|(x, step)| steps[step as usize][x] = Some(0)),
            None => steps.push(vec![Some(0); side as usize]),
        }
        let is_known = classes.radix().sides() == [side];
        Self { period: if is_known { classes.periods()[0] } else { side }, steps }
    }
}

/// The period of a split as it is written.
struct Walk<'g> {
    radix: &'g MixedRadix,
    /// The dimensions of even and odd hops.
    split: [usize; 2],
    classes: RankClasses,
    writer: PeriodWriter,
}

impl Walk<'_> {
    /// A step in which ranks make some hops, with all blocks that need these along their dimensions, in `unit`s.
    fn step(&mut self, unit: u32, hops: impl Fn(Rank) -> Option<SmallVec<[(usize, i64); 4]>>) {
        let radix = self.radix;
        let mut is_idle = true;
        for class in 0..self.classes.count() {
            let Some(hops) = hops(self.classes.representative(class)) else { continue };
            let (mut to, mut route) = (Rank(0), Route::default());
            for &(u, hops) in &hops {
                to = radix.shifted(to, u, hops);
                route.push(u as u32, hops);
            }
            if to == Rank(0) {
                continue;
            }
            let units = |rank, u| radix.coordinate(rank, u) / unit;
            let goes = |held: &Held| hops.iter().all(|&(u, _)| units(held.to, u) == units(to, u));
            let slots = self.writer.held(class).filter(|(_, held)| goes(held));
            let slots: Vec<Slot> = slots.map(|(slot, _)| slot).collect();
            self.writer.send(class, to, route, &slots);
            is_idle = false;
        }
        if !is_idle {
            self.writer.end_step();
        }
    }

    /// Even hops along both dimensions, as rings.
    fn rings(&mut self, rings: &[Line; 2]) {
        let (radix, split) = (self.radix, self.split);
        for stage in 0..2 {
            for step in 0..rings[0].steps.len().max(rings[1].steps.len()) {
                self.step(2, |rank| {
                    let at = split.map(|u| radix.coordinate(rank, u));
                    let own = (stage + 1 + (at[0] + at[1]) as usize) % 2;
                    let sum = (at[own] + at[1 - own] % 2) % radix.sides()[split[own]];
                    let hops = rings[own].steps.get(step)?[sum as usize / 2]?;
                    Some(smallvec![(split[own], 2 * hops)])
                });
            }
        }
    }

    /// Even hops along both dimensions of 8, by the table.
    fn table(&mut self) {
        let (radix, split) = (self.radix, self.split);
        for line in lines(EVEN_HOPS) {
            let words: Vec<&str> = line.collect();
            self.step(2, |rank| {
                let sum: u32 = split.iter().map(|&u| radix.coordinate(rank, u)).sum();
                let word = Some(words[sum as usize % 4]).filter(|&word| word != ".")?;
                let hops = |word: &str| {
                    let (place, hops) = word.split_at(1);
                    (split[usize::from(place == "1")], hops.parse().expect("bug: a table of hops"))
                };
                Some(word.split(',').map(hops).chain(split.map(|u| (u, 0))).collect())
            });
        }
    }

    /// Odd hops along both dimensions, and then those of a line.
    fn odd(&mut self, last: Option<usize>, line: &Line) {
        let (radix, [a, b]) = (self.radix, self.split);
        for [first, second] in [[0, 0], [0, 1], [1, 0], [1, 1]] {
            for row in &line.steps {
                self.step(1, |rank| {
                    let hops = row[last.map_or(0, |u| radix.coordinate(rank, u)) as usize]?;
                    let own = last.map(|u| (u, hops));
                    Some([(a, first), (b, second)].into_iter().chain(own).collect())
                });
            }
        }
    }
}

/// Two dimensions to split, and the one that is left.
type Choice = ([usize; 2], Option<usize>);

/// The dimensions that a word may split.
fn choices(grid: &Grid, by_table: bool) -> Vec<Choice> {
    let (sides, wrap) = (grid.sides(), grid.wrap());
    let long: SmallVec<[usize; 4]> = grid.radix().long_dimensions().collect();
    let fits = |&([a, b], last): &Choice| {
        let is_even =
            |u: usize| wrap[u] && sides[u] % 2 == 0 && (4..=2 * LONGEST).contains(&sides[u]);
        let is_known = !by_table || last.is_some() && sides[a] == 8 && sides[b] == 8;
        is_even(a) && is_even(b) && is_known && last.is_none_or(|u| sides[u] <= LONGEST)
    };
    let all: &[Choice] = match long[..] {
        [a, b] => &[([a, b], None)],
        [a, b, c] => &[([a, b], Some(c)), ([a, c], Some(b)), ([b, c], Some(a))],
        _ => &[],
    };
    all.iter().copied().filter(fits).collect()
}

/// The words that apply to a machine.
pub(super) fn candidates(request: &Request<'_>, grid: &Grid) -> Vec<&'static str> {
    let fits = |word: &&str| !choices(grid, *word == "two").is_empty();
    ["two", "rings"].into_iter().filter(|_| request.problem.ports == 1).filter(fits).collect()
}

/// The schedule of a word on some dimensions.
fn period(
    request: &Request<'_>,
    grid: &Grid,
    by_table: bool,
    (split, last): Choice,
) -> Result<(Claims, Period), NotApplicable> {
    let (sides, ranks) = (grid.sides(), grid.ranks());
    let rings = (!by_table).then(|| split.map(|u| Line::new(request, sides[u] / 2, true)));
    let after = last.map_or_else(Line::point, |u| Line::new(request, sides[u], grid.wrap()[u]));
    let mut periods: Coordinates = sides.iter().map(|_| 1).collect();
    (0..2).for_each(|i| periods[split[i]] = rings.as_ref().map_or(4, |rings| 2 * rings[i].period));
    last.iter().for_each(|&u| periods[u] = after.period);
    let classes = RankClasses::translations(grid.radix().clone(), periods);
    if u64::from(classes.count()) * u64::from(ranks) > MOST_BLOCKS {
        return Err(NotApplicable::Ranks { rule: "at most 2^20 blocks of different ranks", ranks });
    }
    let writer = PeriodWriter::new(classes.clone(), |_| (0..ranks).map(Rank).collect());
    let mut walk = Walk { radix: grid.radix(), split, classes, writer };
    match &rings {
        Some(rings) => walk.rings(rings),
        None => walk.table(),
    }
    walk.odd(last, &after);
    let (period, largest) = walk.writer.finish();
    Ok((Claims::of_period(request.problem.block_bytes, &largest), period))
}

/// The schedule of a word other than `none`: of several choices of dimensions that of the least
/// volume, and of these one with the fewest steps.
pub(super) fn solve(
    request: &Request<'_>,
    values: &Values<'_>,
    grid: &Grid,
) -> Result<Solution, NotApplicable> {
    let by_table = values.is(SPLIT.name, "two");
    let periods = choices(grid, by_table).into_iter();
    let periods = periods.map(|choice| period(request, grid, by_table, choice));
    let periods = periods.collect::<Result<Vec<_>, _>>()?.into_iter();
    let required = match by_table {
        true => "none, as two sides of 8 that wrap are required, and a third of at most 16",
        false => "none, as two even sides from 4 to 32 that wrap are required, a third at most 16",
    };
    let best = periods.min_by_key(|(claims, _)| (claims.bytes, claims.steps));
    let (claims, period) = best.ok_or_else(|| values.refused(SPLIT.name, required))?;
    Ok(Solution::new(request, values, period, claims))
}
