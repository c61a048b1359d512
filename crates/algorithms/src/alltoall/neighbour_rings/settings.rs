//! The parameters, and which values apply.

use topocoll_schedule::Parameters;

use super::leaders::Leaders;
use super::ring::Ring;
use super::{LONGEST, LONGEST_LINE, NeighbourRings, NeighbourRule};
use crate::error::check_sides;
use crate::{Algorithm, Info, NotApplicable, Parameter, Request, Solution, Values};

const HOP: Parameter = Parameter::number(
    "hop",
    "the most hops between leaders: 1 (no leaders), 2 or 4, on tori with two ports a dimension; 1 by default",
);
const PARTS: Parameter = Parameter::words(
    "parts",
    &[
        ("blocks", "each dimension is the first of some blocks"),
        ("bytes", "of a part of every block; always where three dimensions or more have leaders"),
    ],
);

static INFO: Info = Info::new(
    "neighbour-rings",
    "every block hop by hop along rings and lines, in both directions of all dimensions at once",
    "after Liu et al. 2006, for any ports; leaders are our own",
)
.with_internal(&[HOP, PARTS]);

/// The longest sides with leaders: claims look at every step and several positions.
const LONGEST_LED: u32 = 1 << 16;

/// The sizes of blocks, if they are cut for n dimensions.
fn cut(
    request: &Request<'_>,
    values: &Values<'_>,
    (hop, n): (u32, u32),
) -> Result<Option<u64>, NotApplicable> {
    let (given, block_bytes) = (values.is_given(PARTS.name), request.problem.block_bytes);
    let cut = if given { values.is(PARTS.name, "bytes") } else { hop > 1 && n > 2 };
    let refused = |rule: String| Err(values.refused(PARTS.name, rule));
    match cut {
        false if hop > 1 && n > 2 => refused(format!("bytes, as {n} dimensions have leaders")),
        true if n < 2 => refused("blocks, as fewer than two sides are longer than 1".to_owned()),
        true if block_bytes < n.into() => {
            let rule = format!("as {block_bytes} bytes make no {n} parts");
            match given {
                true => refused(format!("blocks, {rule}")),
                false => Err(values.refused(HOP.name, format!("1, {rule}"))),
            }
        }
        cut => Ok(cut.then_some(block_bytes)),
    }
}

/// The rule of an exchange with leaders.
fn leaders(
    request: &Request<'_>,
    values: &Values<'_>,
    (hop, n): (u32, u32),
) -> Result<Leaders, NotApplicable> {
    let grid = request.grid("a torus or mesh")?;
    let sides = || grid.radix().long_dimensions().map(|u| grid.sides()[u]);
    let ports = request.problem.ports;
    let refused = |rule: String| Err(values.refused(HOP.name, rule));
    if let Some(u) = grid.radix().long_dimensions().find(|&u| !grid.wrap()[u]) {
        return refused(format!("1, as side {u} ({}) does not wrap", grid.sides()[u]));
    }
    if ports < 2 * n {
        let are = if ports == 1 { "is" } else { "are" };
        let needs = format!("require {} ports and there {are} {ports}", 2 * n);
        return refused(format!("1, as {n} dimensions {needs}"));
    }
    if let Some(side) = sides().find(|&side| side > LONGEST_LED) {
        return refused(format!("1, as side {side} is longer than {LONGEST_LED}"));
    }
    let levels = hop.ilog2();
    if sides().all(|side| Ring::levels_of(side) < levels) {
        return refused(match levels {
            1 => "1, as no side is even and at least 8".to_owned(),
            _ => "at most 2, as no side is a multiple of 4 and at least 24".to_owned(),
        });
    }
    Ok(Leaders::new(grid, levels, cut(request, values, (hop, n))?))
}

impl Algorithm for NeighbourRings {
    fn info(&self) -> &Info {
        &INFO
    }

    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let grid = request.grid("a torus or mesh")?;
        let sides = || grid.radix().long_dimensions().map(|u| grid.sides()[u]);
        let n = sides().count() as u32;
        let mut settings = vec![Parameters::new()];
        if n == 0 || request.problem.ports < 2 * n {
            return Ok(settings);
        }
        let bytes = (PARTS.name.to_owned(), "bytes".into());
        // Otherwise parts of whole blocks are equal.
        if n > 1 && sides().any(|side| side % (2 * n) > 0) {
            settings.push([bytes.clone()].into());
        }
        if grid.radix().long_dimensions().any(|u| !grid.wrap()[u]) {
            return Ok(settings);
        }
        let most = sides().map(Ring::levels_of).max().unwrap_or(0);
        for levels in 1..=most {
            let hop = (HOP.name.to_owned(), (1u64 << levels).into());
            if n == 2 && sides().any(|side| side % 2 > 0) {
                settings.push([hop.clone(), bytes.clone()].into());
            }
            settings.push([hop].into());
        }
        Ok(settings)
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let grid = request.grid("a torus or mesh")?;
        check_sides(grid, "sides of at most 65536, or 1048576 where they wrap", |u| {
            grid.sides()[u] > if grid.wrap()[u] { LONGEST } else { LONGEST_LINE }
        })?;
        let hop = values.number(HOP.name, 1, 4)?.unwrap_or(1) as u32;
        if !hop.is_power_of_two() {
            return Err(values.refused(HOP.name, "1, 2 or 4"));
        }
        let n = grid.radix().long_dimensions().count() as u32;
        let unless_set = if hop > 1 && n > 2 { "bytes" } else { "blocks" };
        let mut solution = if hop == 1 {
            let cut = cut(request, values, (hop, n))?;
            let rule =
                NeighbourRule::new(grid.clone(), request.problem.ports, cut).ok_or_else(|| {
                    request.requires(
                        "a torus or mesh of few sides, with at most 4096 tiles of offsets",
                    )
                })?;
            let claims = rule.claims(request.problem.block_bytes);
            Solution::new(request, values, rule, claims)
        } else {
            let rule = leaders(request, values, (hop, n))?;
            let claims = rule.claims(request.problem.block_bytes);
            Solution::new(request, values, rule, claims).with(HOP.name, u64::from(hop))
        };
        if !values.is_given(PARTS.name) || values.is(PARTS.name, unless_set) {
            solution = solution.without(PARTS.name);
        }
        Ok(solution)
    }
}
