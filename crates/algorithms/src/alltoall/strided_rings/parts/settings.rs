//! The values of the parameters with `share=parts` on several ports.

use smallvec::SmallVec;
use topocoll_topology::Grid;

use super::super::line::StridedLine;
use super::super::settings::{FOLD, FOLD_UNLESS_SET, LONGEST_FOLD, STRIDE};
use super::shares::Shares;
use super::side::{EvenSide, Side};
use super::{MOST_SIDES, PartsRule};
use crate::error::{check_sides, sides_error};
use crate::{NotApplicable, Request, Solution, Values};

/// Words of a setting.
pub(in super::super) type Words = &'static [(&'static str, &'static str)];

/// The settings to price on a number of ports: stride, fold and words.
pub(in super::super) fn settings(grid: &Grid, ports: u32) -> Vec<(u32, Option<u32>, Words)> {
    let sides = || grid.radix().long_dimensions().map(|u| grid.sides()[u]);
    let n = sides().count();
    if !(2..=MOST_SIDES).contains(&n) || (ports as usize) < n {
        return Vec::new();
    }
    let mut settings: Vec<(u32, Option<u32>, Words)> = vec![
        (2, None, &[("share", "parts"), ("landing", "near"), ("last", "axis")]),
        (2, None, &[("share", "parts"), ("landing", "short"), ("last", "all")]),
    ];
    if n > 2 {
        settings.push((2, None, &[("share", "parts"), ("landing", "short"), ("last", "axis")]));
    }
    // With folds of 2 stride 2 takes as many steps, and less volume.
    let fours = |side: u32| (4..=LONGEST_FOLD).step_by(2).find(|v| side / 2 % v == 0);
    let mut folds: SmallVec<[u32; 4]> = sides().filter(|&n| n > 4).filter_map(fours).collect();
    folds.sort_unstable();
    folds.dedup();
    settings.extend(folds.into_iter().map(|fold| (1, Some(fold), &[("share", "parts")] as Words)));
    settings
}

/// The schedule of some values, on several ports.
pub(in super::super) fn solve(
    request: &Request<'_>,
    values: &Values<'_>,
) -> Result<Solution, NotApplicable> {
    let grid = request.grid("a torus")?;
    let (lengths, wrap) = (grid.sides(), grid.wrap());
    check_sides(grid, "sides that wrap", |u| lengths[u] > 1 && !wrap[u])?;
    let long: SmallVec<[usize; 3]> = grid.radix().long_dimensions().collect();
    let n = long.len();
    if !(2..=MOST_SIDES).contains(&n) {
        return Err(values.refused("share", "classes, as not two to four sides are longer than 1"));
    }
    if (request.problem.ports as usize) < n {
        return Err(values.refused("share", format!("classes, as there are fewer than {n} ports")));
    }
    let stride = values.number(STRIDE.name, 1, 3)?.unwrap_or(1);
    if stride > 2 {
        return Err(values.refused(STRIDE.name, "1 or 2 in parts"));
    }
    let rule = "sides of 2 or of multiples of 4";
    check_sides(grid, rule, |u| lengths[u] > 1 && !StridedLine::fits(lengths[u], 1))?;
    let [near, axis] = [values.is("landing", "near"), values.is("last", "axis")];
    let mut fold = values.number(FOLD.name, 1, LONGEST_FOLD.into())?.map(|fold| fold as u32);
    let sides: SmallVec<[Side; 3]> = if stride == 1 {
        for (name, unused) in [("landing", !near), ("last", !axis)] {
            if values.is_given(name) && unused {
                return Err(values.refused(name, "of use, as no hops are left at stride 1"));
            }
        }
        let given = fold.unwrap_or(FOLD_UNLESS_SET);
        let line = |&u: &usize| StridedLine::new(u, lengths[u], 1, given, true);
        let lines: SmallVec<[StridedLine; 3]> = long.iter().map(line).collect();
        let used = lines.iter().map(StridedLine::fold).max().unwrap_or(given);
        if fold.is_some_and(|fold| used > fold) {
            return Err(values.refused(FOLD.name, format!("at least {used}, twice the stride")));
        }
        fold = (used != FOLD_UNLESS_SET).then_some(used);
        lines.into_iter().map(Side::One).collect()
    } else {
        if fold.is_some() {
            return Err(values.refused(FOLD.name, "of use, as parts of stride 2 hop 2"));
        }
        let side = |&u: &usize| EvenSide { dimension: u, side: lengths[u], near };
        long.iter().map(side).map(Side::Two).collect()
    };
    let weight = |u| grid.radix().stride(u);
    let shares = Shares::new(&sides, weight, request.problem.block_bytes, request.demand.is_none());
    let rule = "sides on which the exchange takes at most 262144 steps";
    let parts = PartsRule::new(grid, sides, stride == 1 || axis, shares)
        .ok_or_else(|| sides_error(grid, rule, |u| lengths[u] > 1))?;
    let claims = parts.claims(request);
    let mut solution = Solution::new(request, values, parts, claims);
    if stride == 2 {
        return Ok(solution.with(STRIDE.name, stride));
    }
    if let Some(fold) = fold {
        solution = solution.with(FOLD.name, u64::from(fold));
    }
    Ok(solution.without("landing").without("last"))
}
