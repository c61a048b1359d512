//! The values of the parameters, and the rule of some values.

use std::collections::BTreeSet;

use smallvec::SmallVec;
use topocoll_schedule::Parameters;
use topocoll_topology::Grid;

use super::line::StridedLine;
use super::{Sharing, StridedRings, StridedRule, parts};
use crate::error::{check_sides, sides_error};
use crate::{Algorithm, Info, NotApplicable, Parameter, Request, Solution, Values};

/// The parameter of the distance between ranks of a ring.
pub(super) const STRIDE: Parameter = Parameter::number(
    "stride",
    "1, 2 or 3 (hops from one rank of a ring to the next); default the largest for the sides, at \
     most their number; 1 in parts",
);
/// The parameter of the longest hop.
pub(super) const FOLD: Parameter =
    Parameter::number("fold", "1 to 1024 (the longest hop that blocks repeat); default 8");

static INFO: Info = Info::new(
    "strided-rings",
    "blocks along full rings of stride 1 to 3, in both directions, then the few hops that are left",
    "own construction, in the manner of Hinrichs et al. 1994",
)
.with_internal(&[
    STRIDE,
    FOLD,
    Parameter::words(
        "landing",
        &[
            ("near", "at the rank of the ring nearest to the destination"),
            ("short", "never past the destination; less volume in more steps"),
        ],
    ),
    Parameter::words(
        "last",
        &[
            ("axis", "the last hops one dimension after the other"),
            ("all", "all dimensions in a message; less volume in more steps"),
        ],
    ),
    Parameter::words(
        "share",
        &[
            ("classes", "each class of ranks along one dimension at a time"),
            ("halves", "the same, after blocks of half a side went along all at once; sides of N or 2N"),
            (
                "parts",
                "parts of the blocks along all dimensions; two to four of them, as many ports, stride 1 or 2; on \
                 squares also one port, stride 1",
            ),
        ],
    ),
]);

/// The longest fold, as claims visit every step.
pub(super) const LONGEST_FOLD: u32 = 1024;

pub(super) const FOLD_UNLESS_SET: u32 = 8;

/// The stride unless it is set.
fn default_stride(grid: &Grid) -> u32 {
    let long = || grid.radix().long_dimensions();
    let fits = |stride: &u32| long().all(|u| StridedLine::fits(grid.sides()[u], *stride));
    (2..=3.min(long().count() as u32)).rev().find(fits).unwrap_or(1)
}

/// The rule of some values.
fn rings(request: &Request<'_>, values: &Values<'_>) -> Result<StridedRule, NotApplicable> {
    let grid = request.grid("a torus")?;
    let (sides, wrap) = (grid.sides(), grid.wrap());
    check_sides(grid, "sides that wrap", |u| sides[u] > 1 && !wrap[u])?;
    let long: SmallVec<[usize; 3]> = grid.radix().long_dimensions().collect();
    if long.is_empty() {
        return Err(request.requires("a torus of two ranks or more"));
    }
    let stride = match values.number(STRIDE.name, 1, 3)? {
        Some(stride) => stride as u32,
        None if values.is("share", "parts") => 1,
        None => default_stride(grid),
    };
    let rule = match stride {
        1 => "sides of 2 or of multiples of 4",
        2 => "sides of 4 or of multiples of 8, for stride 2",
        _ => "sides of 6 or of multiples of 12, for stride 3",
    };
    check_sides(grid, rule, |u| sides[u] > 1 && !StridedLine::fits(sides[u], stride))?;
    let fold = values.number(FOLD.name, 1, LONGEST_FOLD.into())?;
    let fold = fold.map_or(FOLD_UNLESS_SET, |fold| fold as u32);
    let near = values.is("landing", "near");
    let line = |&u: &usize| StridedLine::new(u, sides[u], stride, fold, near);
    let mut lines: SmallVec<[StridedLine; 3]> = long.iter().map(line).collect();
    let folds = lines.iter().map(StridedLine::fold).max().unwrap_or(fold);
    if values.is_given(FOLD.name) && folds > fold {
        return Err(values.refused(FOLD.name, format!("at least {folds}, twice the stride")));
    }
    for name in ["landing", "last"] {
        if stride == 1
            && values.is_given(name)
            && !values.is(name, "near")
            && !values.is(name, "axis")
        {
            return Err(values.refused(name, "of use, as no hops are left at stride 1"));
        }
    }
    let share = match values.word("share") {
        "classes" => Sharing::Classes,
        "halves" => Sharing::Halves,
        _ => Sharing::PartsInTurn,
    };
    let refused = |rule: &str| Err(values.refused("share", rule));
    match share {
        Sharing::Halves if !has_halves(&lines) => {
            return refused("classes, as sides are not N, or N and 2N, for a multiple N of 4");
        }
        Sharing::PartsInTurn if lines.len() != 2 || stride != 1 => {
            return refused("classes, as stride is not 1 or not two sides are longer than 1");
        }
        Sharing::PartsInTurn => {
            let vertices = lines[0].vertices();
            if vertices < 8 || vertices % 4 > 0 || lines[1].vertices() != vertices {
                return refused(
                    "classes, as there is one port and no fold of 8, 12, 16 or so on of both sides",
                );
            }
            lines[1] = lines[1].shifted();
        }
        _ => {}
    }
    let together = if values.is("last", "axis") { 1 } else { lines.len() };
    let rule = "sides on which the exchange takes at most 262144 steps";
    StridedRule::new(grid, lines, stride, share, together)
        .ok_or_else(|| sides_error(grid, rule, |u| sides[u] > 1))
}

/// Whether blocks of half a side can go along all dimensions at once.
fn has_halves(lines: &[StridedLine]) -> bool {
    let shortest = lines.iter().map(|line| line.side).min().unwrap_or(1);
    shortest % 4 == 0
        && lines.iter().all(|line| line.side % shortest == 0 && line.side / shortest <= 2)
}

/// Whether that can save steps.
fn halves_save(lines: &[StridedLine], stride: u32) -> bool {
    let longest = lines.iter().map(|line| line.side).max().unwrap_or(1);
    if !has_halves(lines) || lines.iter().all(|line| line.side == longest) {
        return has_halves(lines);
    }
    let n = lines.len();
    // The steps of a stage that only these blocks need.
    let of_stage = |stage: usize| {
        let classes = stage..stage + stride as usize;
        classes.map(|class| lines[class % n].half_steps()).max().unwrap_or(0)
    };
    (0..n).map(of_stage).sum::<u32>() > (longest / 4).max(n as u32)
}

impl Algorithm for StridedRings {
    fn info(&self) -> &Info {
        &INFO
    }

    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let grid = request.grid("a torus")?;
        let sides = || grid.radix().long_dimensions().map(|u| grid.sides()[u]);
        let n = sides().count() as u32;
        let mut settings = Vec::new();
        let mut setting = |numbers: &[(Parameter, u32)], words: &[(&str, &str)]| {
            let stride = if words.contains(&("share", "parts")) { 1 } else { default_stride(grid) };
            let unless_set = [(STRIDE, stride), (FOLD, FOLD_UNLESS_SET)];
            let numbers = numbers.iter().filter(|number| !unless_set.contains(number));
            let numbers = numbers.map(|(named, number)| (named.name, u64::from(*number).into()));
            let words = words.iter().map(|&(name, word)| (name, word.into()));
            let named = numbers.chain(words).map(|(name, value)| (name.to_owned(), value));
            settings.push(named.collect());
        };
        for stride in (1..=3).filter(|&stride| sides().all(|side| StridedLine::fits(side, stride)))
        {
            // More than four vertices take more steps for the same volume.
            let fours = |side: u32| (4..).step_by(2).find(|v| side / stride / 2 % v == 0);
            let folds = sides().filter(|&side| side > 4 * stride).filter_map(fours);
            let folds: BTreeSet<u32> = folds.chain([2]).map(|v| v * stride).collect();
            for fold in folds.into_iter().filter(|&fold| fold <= LONGEST_FOLD) {
                // On long sides, and where stages use all dimensions, halves together save nothing.
                let alone = stride >= n || sides().any(|side| side > 4 * fold);
                for share in ["classes", "halves"].into_iter().take(if alone { 1 } else { 2 }) {
                    let (one, own) = ((STRIDE, stride), (FOLD, fold));
                    let line = |(u, side)| StridedLine::new(u, side, stride, fold, true);
                    let lines: SmallVec<[StridedLine; 3]> = sides().enumerate().map(line).collect();
                    if share == "halves" && !halves_save(&lines, stride) {
                        continue;
                    }
                    if stride == 1 {
                        setting(&[one, own], &[("share", share)]);
                        continue;
                    }
                    for landing in ["near", "short"] {
                        for last in ["axis", "all"].into_iter().take(n.min(2) as usize) {
                            let words = [("share", share), ("landing", landing), ("last", last)];
                            setting(&[one, own], &words);
                        }
                    }
                }
            }
        }
        if n == 2 && request.problem.ports == 1 {
            let fits = |fold: &u32| sides().all(|side| side % (2 * fold) == 0);
            if let Some(fold) = (8..=LONGEST_FOLD).step_by(4).find(fits) {
                setting(&[(STRIDE, 1), (FOLD, fold)], &[("share", "parts")]);
            }
        }
        for (stride, fold, words) in parts::settings(grid, request.problem.ports) {
            let fold = fold.map(|fold| (FOLD, fold));
            let numbers: SmallVec<[(Parameter, u32); 2]> =
                [(STRIDE, stride)].into_iter().chain(fold).collect();
            setting(&numbers, words);
        }
        Ok(settings)
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        if values.is("share", "parts") && request.problem.ports > 1 {
            return parts::solve(request, values);
        }
        let rings = rings(request, values)?;
        let stride = rings.stride;
        let fold = rings.lines.iter().map(StridedLine::fold).max().unwrap_or(1);
        let claims = rings.claims(request);
        let unless_set = match values.is("share", "parts") {
            true => 1,
            false => default_stride(request.grid("a torus")?),
        };
        let mut solution = Solution::new(request, values, rings, claims);
        if stride != unless_set {
            solution = solution.with(STRIDE.name, u64::from(stride));
        }
        if fold != FOLD_UNLESS_SET {
            solution = solution.with(FOLD.name, u64::from(fold));
        }
        Ok(if stride == 1 { solution.without("landing").without("last") } else { solution })
    }
}
