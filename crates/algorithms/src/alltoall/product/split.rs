//! Factors that are not lines: an offset along a side is a sum of an even one and of 0 or 1, and the two
//! are in different factors.
//!
//! # Sums
//! If every offset of the machine is one sum of an element of U and one of V, then an exchange in which
//! each rank sends to the offsets U, with bundles for blocks, and one with V after it are an exchange of
//! all. Their messages are straight.
//! - *Odd hops with a line*: V is 0 or 1 along some dimensions, and the offsets of a line. Each message of
//!   an exchange along the line goes once for each choice of such hops, which it makes first. As all ranks make
//!   the same ones, those on a line leave for equal places of different lines, and share no link
//!   after it. Where hops are chosen, the line's own place is a destination too: a rank sends there while
//!   it is idle on the line, or else all ranks do in a step of their own. On a side of 4 the hops may be
//!   0 or 2; ranks of even coordinates go up and the others down.
//! - *Even hops of two sides of 8*: 15 offsets in 16 steps, by a table for the sums of coordinates mod 4.
//! - *Even hops as rings*: ranks of an even sum of coordinates move along the second of two dimensions
//!   while the others move along the first; then the reverse. Such moves keep the sum even or odd. So
//!   along a line one of two interleaved rings moves, and any exchange of a ring will do. With three
//!   dimensions there are three stages, and the first class is one dimension ahead of the other.
//!
//! # Claims
//! There is no contention. With exchanges of S steps of single blocks on lines and rings, on P ranks:
//! - `split=one`, sides A, 4 and B: S + S' steps for A, and P/2A blocks in each; and as many for B. S' is S, or
//!   one more if no rank is idle. 14 steps and 112 blocks on 4x4x4.
//! - `split=two`, sides N, N and A: 16 steps of P/16 blocks for N of 8, or 3 of P/4 for 4; then S + 3 S'
//!   steps of P/4A. 48 steps and 1024 blocks on 8x8x8, 31 and 496 on 8x8x4, 18 and 108 on 4x4x4.
//! - `split=rings`, sides N and N, with rings of N/2: 2 S steps of 2P/N, and 3 of P/4: 11 steps and 235
//!   blocks on 10x10. With a third side A, the last are S + 3 S' steps of P/4A: 38 and 1280 on 8x8x8. On
//!   other sides a step costs the larger of its two kinds of messages.
//! - `split=axes`: as `rings`, but the last are 2 steps of P/2, or one and then S + S' of P/2A: 10 steps
//!   and 260 blocks on 10x10.
//! - `split=all`: 3 S steps of 2P/N, and 7 of P/8: 19 steps and 3275 blocks on 10x10x10.
//!
//! To our knowledge these are new.

use smallvec::{SmallVec, smallvec};
use topocoll_schedule::{Problem, Step};
use topocoll_topology::{Coordinates, Grid, Rank, Route};

use super::along::least_volume;
use super::{ALONG, LONGEST};
use crate::factor::offset_moves::{
    Hops, Move, Multiples, OffsetMoves, OffsetSet, Residues, read_table,
};
use crate::{NotApplicable, Parameter, Request, Solution, Values};

/// The parameter of sides whose even and odd hops are in different factors.
pub(super) const SPLIT: Parameter = Parameter::words(
    "split",
    &[
        ("none", "each dimension in one factor"),
        ("one", "a side of 4: one hop with the dimension before it, two with that after it"),
        ("two", "even hops of two sides of 4 or 8 by a table, odd ones with the third"),
        ("rings", "even hops of two sides in turn, then odd ones, with the third if there is one"),
        ("axes", "the same, with the odd hops of the first side before the others"),
        ("all", "even hops of three sides in turn, then odd ones"),
    ],
);

/// The messages that bring the blocks of even offsets to their places on sides of 8.
const EVEN_HOPS: &str = include_str!("even_hops_8.txt");

/// The most steps of an exchange along a line.
const MOST_STEPS: u32 = 1 << 10;

/// An exchange of single blocks along a line.
#[derive(Clone)]
struct Line {
    side: u32,
    /// Places this far from each other have equal messages.
    period: u32,
    /// By step and place, the hops of the message, or 0.
    steps: Vec<Vec<i64>>,
}

impl Line {
    /// The line of one rank.
    fn point() -> Self {
        Self { side: 1, period: 1, steps: Vec::new() }
    }

    /// The messages of an exchange; `None` if they are not single blocks straight to their
    /// destinations, one at a time.
    fn of(solution: &Solution, grid: &Grid) -> Option<Self> {
        let (rule, side) = (solution.schedule.rule(), grid.sides()[0]);
        if rule.steps() > MOST_STEPS || !rule.cuts().is_empty() {
            return None;
        }
        let mut steps = vec![vec![0; side as usize]; rule.steps() as usize];
        let (mut does, mut own) = (Step::default(), Route::default());
        for place in (0..side).map(Rank) {
            let mut sent = 0;
            for (step, row) in (0..).zip(&mut steps) {
                rule.step(place, step, &mut does);
                let send = match &does.sends[..] {
                    [] if does.copies.is_empty() => continue,
                    [send] if does.copies.is_empty() && send.slots.len() == 1 => send,
                    _ => return None,
                };
                let (slot, _) = send.slots.slots().next()?;
                let straight = rule.initial_block(place, slot)?.to == send.peer;
                let &[segment] = send.route_from(place, grid, &mut own).segments() else {
                    return None;
                };
                if !straight {
                    return None;
                }
                (row[place.index()], sent) = (segment.hops, sent + 1);
            }
            if sent != side - 1 {
                return None;
            }
        }
        let repeats = |&period: &u32| {
            let shifted =
                |row: &Vec<i64>| (0..row.len()).all(|x| row[x] == row[x % period as usize]);
            side % period == 0 && steps.iter().all(shifted)
        };
        let period = (1..=side).find(repeats)?;
        Some(Self { side, period, steps })
    }

    /// By place below the period, the first step in which it is idle; `None` if one never is.
    fn idle(&self) -> Option<Vec<usize>> {
        let idle = |row: &Vec<i64>, place: u32| {
            let to = |(x, &hops): (i64, &i64)| (x + hops).rem_euclid(self.side.into());
            let received = (0..).zip(row).filter(|(_, hops)| **hops != 0).map(to);
            row[place as usize] == 0 && received.into_iter().all(|to| to != i64::from(place))
        };
        let first = |place| self.steps.iter().position(|row| idle(row, place));
        (0..self.period).map(first).collect()
    }
}

/// The sets of offsets of a schedule and its steps so far.
struct Sums<'g> {
    grid: &'g Grid,
    sets: SmallVec<[OffsetSet; 3]>,
    steps: Vec<Vec<Move>>,
}

impl<'g> Sums<'g> {
    fn new(grid: &'g Grid, sets: impl IntoIterator<Item = OffsetSet>) -> Self {
        Self { grid, sets: sets.into_iter().collect(), steps: Vec::new() }
    }

    /// Residues modulo `modulus` of sums of coordinates modulo `moduli`.
    fn residues(&self, moduli: &[(usize, u32)], modulus: u32) -> Residues {
        let mut all: Coordinates = self.grid.sides().iter().map(|_| 1).collect();
        moduli.iter().for_each(|&(u, modulus)| all[u] = modulus);
        Residues { moduli: all, modulus }
    }

    /// A move by an offset of a set, after those of the sets before it.
    fn one(
        &self,
        (residues, residue): (Residues, u32),
        route: SmallVec<[Hops; 3]>,
        (set, offset): (usize, u32),
    ) -> Move {
        let moved = (0..self.sets.len()).map(|other| other < set).collect();
        Move { residues, residue, route, set, offset, moved, parity: 0 }
    }

    /// The steps of a set of multiples of 0 and 1 along some dimensions, with a line's exchange along
    /// another one, if there is one.
    fn with_line(&mut self, set: usize, along: Option<usize>, line: &Line) {
        let is_prefix = |one: &&Multiples| Some(one.dimension) != along;
        let prefixes: OffsetSet = self.sets[set].iter().filter(is_prefix).copied().collect();
        let modulus = along.map(|u| (u, line.period));
        let place = |x| (self.residues(modulus.as_slice(), line.period), x);
        let idle = line.idle();
        let mut steps = Vec::new();
        for number in 0..1u32 << prefixes.len() {
            let chosen =
                (0..prefixes.len()).filter(|i| number >> (prefixes.len() - 1 - i) & 1 == 1);
            let prefix: SmallVec<[Hops; 3]> = chosen
                .map(|i| {
                    let Multiples { dimension, hops, .. } = prefixes[i];
                    let mirrored = 2 * hops == self.grid.sides()[dimension];
                    Hops { dimension, hops: hops.into(), mirrored }
                })
                .collect();
            let to = |hops: i64| {
                let mut route = prefix.clone();
                let straight = |dimension| Hops { dimension, hops, mirrored: false };
                route.extend(along.filter(|_| hops != 0).map(straight));
                let offset = number * line.side + hops.rem_euclid(line.side.into()) as u32;
                (route, (set, offset))
            };
            for (step, row) in line.steps.iter().enumerate() {
                let own = |x: u32| {
                    number > 0 && idle.as_ref().is_some_and(|idle| idle[x as usize] == step)
                };
                let sends = (0..line.period).filter(|&x| row[x as usize] != 0 || own(x));
                let moves = sends.map(|x| {
                    let (route, offset) = to(row[x as usize]);
                    self.one(place(x), route, offset)
                });
                steps.push(moves.collect());
            }
            if number > 0 && idle.is_none() {
                let (route, offset) = to(0);
                steps.push(vec![self.one((self.residues(&[], 1), 0), route, offset)]);
            }
        }
        self.steps.extend(steps);
    }

    /// The steps of the first set, that of even hops on two sides of 8.
    fn by_table(&mut self, pair: [usize; 2]) {
        let residues = self.residues(&pair.map(|u| (u, 4)), 4);
        for row in read_table(EVEN_HOPS) {
            let sent = (0..).zip(row).filter(|(_, route)| !route.is_empty());
            let moves = sent.map(|(residue, mut route)| {
                let mut offset = 0;
                for at in &mut route {
                    let multiple = at.hops.rem_euclid(8) as u32 / 2;
                    offset += if at.dimension == 0 { 4 * multiple } else { multiple };
                    at.dimension = pair[at.dimension];
                }
                self.one((residues.clone(), residue), route, (0, offset))
            });
            let moves = moves.collect();
            self.steps.push(moves);
        }
    }

    /// The steps of the first sets, each of even hops of a dimension.
    fn by_rings(&mut self, dimensions: &[usize], rings: &[Line]) {
        let n = rings.len();
        for stage in 0..n {
            // Even sums go along the second dimension first, odd ones along the first.
            let sets = [(stage + 1) % n, stage];
            let steps = sets.iter().map(|&set| rings[set].steps.len()).max().unwrap_or(0);
            for step in 0..steps {
                let mut moves = Vec::new();
                for (class, set) in sets.into_iter().enumerate() {
                    let Some(row) = rings[set].steps.get(step) else { continue };
                    let modulus = 2 * rings[set].period;
                    let of = |other| (dimensions[other], if other == set { modulus } else { 2 });
                    let moduli: SmallVec<[(usize, u32); 3]> = (0..n).map(of).collect();
                    let residues = self.residues(&moduli, modulus);
                    let sends = (0..rings[set].period).zip(row).filter(|(_, hops)| **hops != 0);
                    for (x, &hops) in sends {
                        let offset = hops.rem_euclid(rings[set].side.into()) as u32;
                        let dimension = dimensions[set];
                        let at = Hops { dimension, hops: 2 * hops, mirrored: false };
                        let ranks = (residues.clone(), 2 * x + class as u32);
                        let mut one = self.one(ranks, smallvec![at], (set, offset));
                        for other in 0..n {
                            one.moved[other] = (other + n + class - 1) % n < stage;
                        }
                        moves.push(one);
                    }
                }
                self.steps.push(moves);
            }
        }
    }

    fn rule(self) -> OffsetMoves {
        OffsetMoves::new(self.grid, self.sets, self.steps)
    }
}

/// The dimensions of a split: those of even and odd hops, or a line and one of them; and the line
/// after them.
struct Dimensions {
    split: SmallVec<[usize; 3]>,
    last: Option<usize>,
}

/// The dimensions that a word may split, and what it requires.
fn dimensions(grid: &Grid, word: &str) -> (Vec<Dimensions>, &'static str) {
    let (sides, wrap) = (grid.sides(), grid.wrap());
    let long: SmallVec<[usize; 3]> = grid.radix().long_dimensions().collect();
    let short = |u: usize| sides[u] <= LONGEST;
    let three = long.len() == 3;
    let even = |u: usize| sides[u] % 2 == 0 && (4..=2 * LONGEST).contains(&sides[u]) && wrap[u];
    let chosen = |a: usize, b: usize| {
        let last = long.iter().copied().find(|&u| u != a && u != b);
        Dimensions { split: smallvec![a, b], last }
    };
    let pairs = || {
        let places = 0..long.len();
        let all = places.clone().flat_map(move |i| (i + 1..places.end).map(move |j| (i, j)));
        all.map(|(i, j)| (long[i], long[j]))
    };
    let lasts = |one: &Dimensions| one.last.is_none_or(short);
    match word {
        "one" => {
            let rule = "none, as three sides of at most 16 are required, one of 4 that wraps";
            let split = long.iter().copied().find(|&u| sides[u] == 4 && wrap[u]);
            let before = split.and_then(|split| long.iter().copied().find(|&u| u != split));
            let found = split.zip(before).filter(|_| three && long.iter().all(|&u| short(u)));
            (found.map(|(split, before)| chosen(before, split)).into_iter().collect(), rule)
        }
        "two" => {
            let rule = "none, as three sides are required, two of 4 or two of 8 that wrap, the third \
                        at most 16";
            let fits = |&(a, b): &(usize, usize)| {
                sides[a] == sides[b] && matches!(sides[a], 4 | 8) && wrap[a] && wrap[b]
            };
            let found = pairs().filter(|_| three).filter(fits).map(|(a, b)| chosen(a, b));
            (found.filter(lasts).take(1).collect(), rule)
        }
        "all" => {
            let rule = "none, as three even sides from 4 to 32 that wrap are required";
            let all = Dimensions { split: long.clone(), last: None };
            let fits = three && long.iter().all(|&u| even(u));
            (fits.then_some(all).into_iter().collect(), rule)
        }
        _ => {
            let rule = "none, as two or three sides are required, two even ones from 4 to 32 that \
                        wrap, the third at most 16";
            let fits = |&(a, b): &(usize, usize)| long.len() <= 3 && even(a) && even(b);
            let found = pairs().filter(fits).map(|(a, b)| chosen(a, b));
            (found.filter(lasts).collect(), rule)
        }
    }
}

/// The words that apply to a machine.
pub(super) fn candidates(request: &Request<'_>, grid: &Grid) -> Vec<&'static str> {
    let words = ["one", "two", "rings", "axes", "all"];
    let fits = |word: &&str| request.problem.ports == 1 && !dimensions(grid, word).0.is_empty();
    words.into_iter().filter(fits).collect()
}

/// Exchanges along lines, each searched for once.
struct Lines<'r> {
    request: &'r Request<'r>,
    values: &'r Values<'r>,
    found: Vec<(u32, bool, Line)>,
}

impl Lines<'_> {
    fn get(&mut self, side: u32, wrap: bool) -> Result<Line, NotApplicable> {
        if let Some((.., line)) = self.found.iter().find(|known| (known.0, known.1) == (side, wrap))
        {
            return Ok(line.clone());
        }
        let grid = Grid::new(&[side], &[wrap]).expect("bug: invalid sides");
        let Problem { operation, block_bytes, .. } = self.request.problem;
        let problem = Problem::new(operation, side, 1, block_bytes)
            .expect("bug: an invalid problem of a line");
        let request = Request::new(&problem, &grid);
        let solution = match self.values.solve_named(ALONG.name, &request)? {
            Some(solution) if solution.claims.contention_free => Some(solution),
            Some(_) => None,
            None => least_volume(&request, &grid, |solution| {
                let blocks = request.bytes(solution.claims.steps);
                solution.claims.bytes == blocks && solution.schedule.rule().cuts().is_empty()
            }),
        };
        let line = solution.and_then(|solution| Line::of(&solution, &grid)).ok_or_else(|| {
            let rule =
                "an exchange along each line of single blocks, straight and without contention";
            match self.values.is_given(ALONG.name) {
                true => self.values.refused(ALONG.name, rule),
                false => NotApplicable::Ranks { rule, ranks: self.request.problem.ranks },
            }
        })?;
        self.found.push((side, wrap, line.clone()));
        Ok(line)
    }

    /// The exchange along a dimension.
    fn along(&mut self, grid: &Grid, u: usize) -> Result<Line, NotApplicable> {
        self.get(grid.sides()[u], grid.wrap()[u])
    }
}

fn multiples(dimension: usize, hops: u32, count: u32) -> Multiples {
    Multiples { dimension, hops, count }
}

/// The schedule of a word on some dimensions.
fn rule(
    grid: &Grid,
    word: &str,
    Dimensions { split, last }: &Dimensions,
    lines: &mut Lines<'_>,
) -> Result<OffsetMoves, NotApplicable> {
    let (sides, last) = (grid.sides(), *last);
    let after = match last {
        Some(u) => lines.along(grid, u)?,
        None => Line::point(),
    };
    let with_last = |mut set: OffsetSet| {
        set.extend(last.map(|u| multiples(u, 1, sides[u])));
        set
    };
    let odd = || with_last(split.iter().map(|&u| multiples(u, 1, 2)).collect());
    let even = |u: usize| multiples(u, 2, sides[u] / 2);
    let sums = match word {
        "one" => {
            let (before, split) = (split[0], split[1]);
            let first = smallvec![multiples(split, 1, 2), multiples(before, 1, sides[before])];
            let mut sums = Sums::new(grid, [first, with_last(smallvec![multiples(split, 2, 2)])]);
            sums.with_line(0, Some(before), &lines.along(grid, before)?);
            sums.with_line(1, last, &after);
            sums
        }
        "two" => {
            let mut sums = Sums::new(grid, [split.iter().map(|&u| even(u)).collect(), odd()]);
            match sides[split[0]] {
                4 => sums.with_line(0, None, &Line::point()),
                _ => sums.by_table([split[0], split[1]]),
            }
            sums.with_line(1, last, &after);
            sums
        }
        _ => {
            let rings: Result<SmallVec<[Line; 3]>, _> =
                split.iter().map(|&u| lines.get(sides[u] / 2, true)).collect();
            let odd: SmallVec<[OffsetSet; 2]> = match word {
                "axes" => smallvec![
                    smallvec![multiples(split[0], 1, 2)],
                    with_last(smallvec![multiples(split[1], 1, 2)])
                ],
                _ => smallvec![odd()],
            };
            let before_last = split.len() + odd.len() - 1;
            let even = split.iter().map(|&u| smallvec![even(u)]);
            let mut sums = Sums::new(grid, even.chain(odd));
            sums.by_rings(split, &rings?);
            for set in split.len()..before_last {
                sums.with_line(set, None, &Line::point());
            }
            sums.with_line(before_last, last, &after);
            sums
        }
    };
    Ok(sums.rule())
}

/// The schedule of a word other than `none`: of several choices of dimensions that of the least
/// volume, and of these one with the fewest steps.
pub(super) fn solve(
    request: &Request<'_>,
    values: &Values<'_>,
    grid: &Grid,
) -> Result<Solution, NotApplicable> {
    let word = values.word(SPLIT.name);
    let (choices, required) = dimensions(grid, word);
    let mut lines = Lines { request, values, found: Vec::new() };
    let mut best: Option<Solution> = None;
    for choice in &choices {
        let rule = rule(grid, word, choice, &mut lines)?;
        let claims = rule.claims(request);
        let cost = |of: &Solution| (of.claims.bytes, of.claims.steps);
        let solution = Solution::new(request, values, rule, claims);
        if best.as_ref().is_none_or(|best| cost(&solution) < cost(best)) {
            best = Some(solution);
        }
    }
    best.ok_or_else(|| values.refused(SPLIT.name, required))
}
