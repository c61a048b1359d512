//! The settings, the grids to which they apply, and their claims.

use topocoll_schedule::Parameters;
use topocoll_topology::Grid;

use super::centred::Centred;
use super::inside::{self, INSIDE};
use super::line::Landing;
use super::windows::{self, Digit};
use super::{ColouredRings, Residual, Rings};
use crate::error::check_sides;
use crate::{Algorithm, Claims, Info, NotApplicable, Parameter, Request, Solution, Values};

/// The longest side whose positions all differ.
const LONGEST: u32 = 1 << 16;
/// The longest side of which every source is listed for every place where its blocks land.
const LONGEST_LISTED: u32 = 1 << 8;
/// The longest side at all.
const LONGEST_REPEATED: u32 = 1 << 20;

/// The rings of a setting.
fn rings(request: &Request<'_>, values: &Values<'_>, classes: u32) -> Result<Rings, NotApplicable> {
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
    let refused = |rule: &str| values.refused("residual", rule);
    let (place, residual) = match (values.word("landing"), values.word("residual")) {
        ("windows", "axis") => {
            (Landing::Windows, Residual::Windows(windows(grid, values, (long, classes))?))
        }
        ("windows", _) => return Err(refused("axis, as landing is windows")),
        ("centred", _) => {
            (Landing::Centred, Residual::Centred(centred(grid, values, (long, classes))?))
        }
        (_, "direct") if long != 2 => {
            return Err(refused("axis, as not exactly two sides are longer than 1"));
        }
        (landing, left) => {
            let residual = if left == "axis" { Residual::Axis } else { Residual::Direct };
            (one_by_one(grid, landing, colours)?, residual)
        }
    };
    let rings = Rings::new(grid, classes, place, residual);
    if rings.is_direct() && (rings.rounds_a_phase() == 0 || rings.direct_steps() == 0) {
        return Err(refused("axis, as the sides are too short for rings or offsets"));
    }
    Ok(rings)
}

/// Where blocks land one by one.
fn one_by_one(grid: &Grid, landing: &str, colours: u32) -> Result<Landing, NotApplicable> {
    if landing == "near" {
        return Ok(Landing::Near);
    }
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

/// How blocks go on in windows around a rank.
fn centred(
    grid: &Grid,
    values: &Values<'_>,
    (long, classes): (u32, u32),
) -> Result<Centred, NotApplicable> {
    if classes != 2 || !(2..=3).contains(&long) {
        let rule = "near, as classes is 1, or not two or three sides are longer than 1";
        return Err(values.refused("landing", rule));
    }
    let rule = "sides that wrap and are multiples of 2n, n of them longer than 1, for \
                landing=centred";
    check_sides(grid, rule, |u| is_odd(grid, u, 2 * long) || is_open(grid, u))?;
    Ok(Centred { dimensions: long, straight: values.is("residual", "direct") })
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
    check_sides(grid, rule, |u| is_odd(grid, u, 2 * long))?;
    Ok(digits)
}

/// Whether a side longer than 1 is not a multiple of a number.
fn is_odd(grid: &Grid, u: usize, multiple: u32) -> bool {
    grid.sides()[u] > 1 && grid.sides()[u] % multiple != 0
}

/// Whether a side longer than 1 does not wrap.
fn is_open(grid: &Grid, u: usize) -> bool {
    grid.sides()[u] > 1 && !grid.wrap()[u]
}

static INFO: Info = Info::new(
    "coloured-rings",
    "blocks combined along rings of one colour, in both directions, then sent the remaining few hops",
    "after Suh and Shin 2001, for any sides",
)
.taking(&[
    Parameter::number(
        "classes",
        "1 or 2 (classes of ranks on a line; 1 needs two sides longer than 1)",
    )
    .by_cost(),
    Parameter::words(
        "landing",
        &[
            ("near", "at the nearest rank of a colour"),
            (
                "distance",
                "as many hops as the distance says; less volume on uneven sides that wrap",
            ),
            ("windows", "aligned windows of 2n; fewer steps"),
            ("centred", "windows of 2n around a rank; between near and windows"),
        ],
    )
    .by_cost(),
    Parameter::words(
        "residual",
        &[
            ("axis", "dimension by dimension"),
            ("direct", "less volume in more steps; on two sides, or centred; not with windows"),
        ],
    )
    .by_cost(),
    INSIDE,
]);

impl Algorithm for ColouredRings {
    fn info(&self) -> &Info {
        &INFO
    }

    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let setting = |(classes, landing, residual): (u64, &str, &str)| {
            let mut setting = Parameters::from([
                ("landing".to_owned(), landing.into()),
                ("classes".to_owned(), classes.into()),
            ]);
            if landing != "windows" {
                setting.insert("residual".to_owned(), residual.into());
            }
            setting
        };
        let settings = [
            (1, "near", "axis"),
            (2, "near", "axis"),
            (1, "distance", "axis"),
            (2, "distance", "axis"),
            (2, "windows", "axis"),
            (2, "centred", "axis"),
            (2, "centred", "direct"),
            (1, "near", "direct"),
            (2, "near", "direct"),
            (1, "distance", "direct"),
            (2, "distance", "direct"),
        ];
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
        let residual = if matches!(rings.residual, Residual::Axis) { n } else { 1 };
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
