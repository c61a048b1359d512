//! The settings, the grids to which they apply, and their claims.

use topocoll_schedule::Parameters;
use topocoll_topology::Grid;

use super::inside::{self, INSIDE};
use super::line::Landing;
use super::windows::{self, Digit};
use super::{ColouredRings, ColouredRule, Residual};
use crate::error::check_sides;
use crate::{Algorithm, Claims, Info, NotApplicable, Parameter, Request, Solution, Values};

/// The longest side whose positions all differ.
const LONGEST: u32 = 1 << 16;
/// The longest side of which every source is listed for every place where its blocks land.
const LONGEST_LISTED: u32 = 1 << 8;
/// The longest side at all.
const LONGEST_REPEATED: u32 = 1 << 20;

/// The rings of a setting.
fn rings(
    request: &Request<'_>,
    values: &Values<'_>,
    classes: u32,
) -> Result<ColouredRule, NotApplicable> {
    let grid = request.grid("a torus or mesh")?;
    let long = grid.radix().long_dimensions().count() as u32;
    if long == 1 && classes == 1 {
        return Err(values.refused("classes", "2, as only one side is longer than 1"));
    }
    let colours = long * classes;
    let rule = "sides of at most 65536, or 1048576 where they wrap and the colours divide them";
    check_sides(grid, rule, |u| {
        let side = grid.sides()[u];
        let repeats = grid.wrap()[u] && side % colours.max(1) == 0;
        side > if repeats { LONGEST_REPEATED } else { LONGEST }
    })?;
    let (landing, residual) = match values.word("landing") {
        "windows" => (Landing::Windows, Residual::Windows(windows(grid, values, (long, classes))?)),
        "distance" => (by_distance(grid, colours)?, Residual::Axis),
        _ => (Landing::Near, Residual::Axis),
    };
    Ok(ColouredRule::new(grid, classes, landing, residual))
}

/// Blocks land by distance, where that differs from the nearest rank of a colour.
fn by_distance(grid: &Grid, colours: u32) -> Result<Landing, NotApplicable> {
    let sides = grid.sides();
    let uneven = |u: usize| sides[u] > 1 && grid.wrap()[u] && sides[u] % colours != 0;
    let rule = "a side that wraps and that the colours do not divide, for landing=distance";
    let even = !(0..sides.len()).any(uneven);
    check_sides(grid, rule, |_| even)?;
    let rule = "sides of at most 256 where they wrap and the colours do not divide them, for \
                landing=distance";
    check_sides(grid, rule, |u| uneven(u) && sides[u] > LONGEST_LISTED)?;
    Ok(Landing::Distance)
}

/// The digits of windows of as many positions as there are colours.
fn windows(
    grid: &Grid,
    values: &Values<'_>,
    (long, classes): (u32, u32),
) -> Result<Vec<Digit>, NotApplicable> {
    let digits = windows::digits(long.max(1)).filter(|_| classes == 2 && long > 0);
    let digits = digits.ok_or_else(|| {
        let rule = "near, as classes is 1, or no product of twos and threes counts the sides \
                    longer than 1";
        values.refused("landing", rule)
    })?;
    let rule = "sides that are multiples of 2n, n of them longer than 1, for landing=windows";
    check_sides(grid, rule, |u| grid.sides()[u] > 1 && grid.sides()[u] % (2 * long) != 0)?;
    Ok(digits)
}

static INFO: Info = Info::new(
    "coloured-rings",
    "blocks combined along rings of one colour, in both directions, then sent the remaining few hops",
    "after Suh and Shin 2001, for any sides",
)
.with_internal(&[
    Parameter::number(
        "classes",
        "1 or 2 (classes of ranks on a line; 1 needs two sides longer than 1)",
    )
    .by_cost(),
    Parameter::words(
        "landing",
        &[
            ("near", "at the nearest rank of a colour"),
            ("distance", "as many hops as the distance says; less volume on uneven sides that wrap"),
            ("windows", "aligned windows of 2n; fewer steps"),
        ],
    )
    .by_cost(),
    Parameter::words("residual", &[("axis", "the remaining hops dimension by dimension")]),
    INSIDE,
]);

impl Algorithm for ColouredRings {
    fn info(&self) -> &Info {
        &INFO
    }

    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let setting = |(classes, landing): (u64, &str)| {
            Parameters::from([
                ("landing".to_owned(), landing.into()),
                ("classes".to_owned(), classes.into()),
            ])
        };
        let mut settings =
            vec![(1, "near"), (2, "near"), (1, "distance"), (2, "distance"), (2, "windows")];
        if let Ok(grid) = request.grid("a torus or mesh") {
            let long = grid.radix().long_dimensions().count();
            // On shorter sides no blocks go along rings, whatever the classes.
            let longest = grid.sides().iter().max().map_or(0, |&side| side as usize);
            settings.retain(|&(classes, landing)| match landing {
                "near" => longest > long || classes == 1,
                "distance" => longest >= 2 * long || classes == 1,
                _ => true,
            });
        }
        let inside = inside::candidates(request);
        Ok(settings.into_iter().map(setting).chain(inside).collect())
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let classes = values.number("classes", 1, 2)?.unwrap_or(2);
        if values.is_given(INSIDE.name) {
            return inside::solve(request, values, classes as u32);
        }
        let rings = rings(request, values, classes as u32)?;
        let cost = rings.cost();
        let n = rings.dimensions() as u32;
        let residual = if values.is("landing", "windows") { 1 } else { n };
        let phases = if rings.rounds_a_phase() > 0 { n + residual } else { residual };
        let claims = Claims {
            hops: Some(cost.hops),
            hops_floor: cost.hops,
            rearrangements: Some(phases.saturating_sub(1)),
            copied_bytes: Some(request.bytes(cost.rearranged + cost.packed)),
            contention_free: true,
            ..Claims::new(cost.steps, request.bytes(cost.blocks))
        };
        let solution = Solution::new(request, values, rings, claims).with("classes", classes);
        Ok(if values.is("landing", "windows") { solution.without("residual") } else { solution })
    }
}
