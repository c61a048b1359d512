//! The parameters, and which values apply.

use topocoll_schedule::Parameters;

use super::leaders::Leaders;
use super::ring::Ring;
use super::{LONGEST, LONGEST_LINE, NeighbourRings, Rings};
use crate::error::check_sides;
use crate::{Algorithm, Info, NotApplicable, Parameter, Request, Solution, Values};

const HOP: Parameter = Parameter::number(
    "hop",
    "the most hops between leaders: 1 (no leaders), 2 or 4, on tori with two ports a dimension; 1 by default",
);
const LED: Parameter = Parameter::number(
    "led",
    "phases with hops of that many, the first ones; the others have half as many; all phases by default",
);
const PARTS: Parameter = Parameter::words(
    "parts",
    &[
        (
            "blocks",
            "each dimension is the first of some blocks; default unless three dimensions have leaders",
        ),
        (
            "bytes",
            "each dimension is the first of a part of every block; on tori with two ports a dimension",
        ),
    ],
);

static INFO: Info = Info::new(
    "neighbour-rings",
    "every block hop by hop along rings and lines, in both directions of all dimensions at once",
    "after Liu et al. 2006, for any ports; leaders are our own",
)
.taking(&[HOP, LED, PARTS]);

/// The longest sides with leaders or parts of bytes: claims look at every step and several positions.
const LONGEST_LED: u32 = 1 << 16;

/// The rule of some values other than blocks hop by hop.
fn leaders(
    request: &Request<'_>,
    values: &Values<'_>,
    hop: u32,
) -> Result<(Leaders, u32), NotApplicable> {
    let grid = request.grid("a torus or mesh")?;
    let sides = || grid.radix().long_dimensions().map(|u| grid.sides()[u]);
    let n = sides().count() as u32;
    let (ports, block_bytes) = (request.problem.ports, request.problem.block_bytes);
    let refused = |rule: String| match hop {
        1 => Err(values.refused(PARTS.name, format!("blocks, as {rule}"))),
        _ => Err(values.refused(HOP.name, format!("1, as {rule}"))),
    };
    if let Some(u) = grid.radix().long_dimensions().find(|&u| !grid.wrap()[u]) {
        return refused(format!("side {u} ({}) does not wrap", grid.sides()[u]));
    }
    if ports < 2 * n {
        let are = if ports == 1 { "is" } else { "are" };
        return refused(format!("{n} dimensions require {} ports and there {are} {ports}", 2 * n));
    }
    if let Some(side) = sides().find(|&side| side > LONGEST_LED) {
        return refused(format!("side {side} is longer than {LONGEST_LED}"));
    }
    let levels = hop.ilog2();
    if hop > 1 && sides().all(|side| Ring::levels_of(side) < levels) {
        let rule = if hop == 2 {
            "1, as no side is even and at least 8"
        } else {
            "at most 2, as no side is a multiple of 4 and at least 24"
        };
        return Err(values.refused(HOP.name, rule));
    }
    let led = match values.number(LED.name, 1, n.max(1).into())? {
        Some(_) if hop == 1 => return Err(values.refused(LED.name, "of use, as hop is 1")),
        led => led.map_or(n, |led| led as u32),
    };
    let given = values.is_given(PARTS.name);
    let cut = if given { values.is(PARTS.name, "bytes") } else { n > 2 };
    match cut {
        false if n > 2 => {
            let rule = format!("bytes, as {n} dimensions have leaders");
            return Err(values.refused(PARTS.name, rule));
        }
        true if n < 2 => {
            let rule = "blocks, as fewer than two sides are longer than 1";
            return Err(values.refused(PARTS.name, rule));
        }
        true if block_bytes < n.into() => {
            let rule = format!("as {block_bytes} bytes make no {n} parts");
            return Err(match given {
                true => values.refused(PARTS.name, format!("blocks, {rule}")),
                false => values.refused(HOP.name, format!("1, {rule}")),
            });
        }
        _ => {}
    }
    let levels = (0..n).map(|phase| if phase < led { levels } else { levels.saturating_sub(1) });
    Ok((Leaders::new(grid, levels.collect(), cut.then_some(block_bytes)), led))
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
        let wraps = grid.radix().long_dimensions().all(|u| grid.wrap()[u]);
        if n == 0 || !wraps || request.problem.ports < 2 * n {
            return Ok(settings);
        }
        let bytes = (PARTS.name.to_owned(), "bytes".into());
        // Otherwise parts of whole blocks are equal.
        if n > 1 && sides().any(|side| side % (2 * n) > 0) {
            settings.push([bytes.clone()].into());
        }
        let most = sides().map(Ring::levels_of).max().unwrap_or(0);
        for levels in 1..=most {
            for led in (1..=n).rev() {
                let hop = (HOP.name.to_owned(), (1u64 << levels).into());
                let mut setting = Parameters::from([hop]);
                if led < n {
                    setting.insert(LED.name.to_owned(), u64::from(led).into());
                }
                if n == 2 && sides().any(|side| side % 2 > 0) {
                    settings.push(setting.clone().into_iter().chain([bytes.clone()]).collect());
                }
                settings.push(setting);
            }
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
        if hop == 1 && values.is(PARTS.name, "blocks") {
            if values.is_given(LED.name) {
                return Err(values.refused(LED.name, "of use, as hop is 1"));
            }
            let rule = Rings::new(grid.clone(), request.problem.ports).ok_or_else(|| {
                request.requires("a torus or mesh of few sides, with at most 4096 tiles of offsets")
            })?;
            let claims = rule.claims(request);
            return Ok(Solution::new(request, values, rule, claims).without(PARTS.name));
        }
        let (rule, led) = leaders(request, values, hop)?;
        let n = grid.radix().long_dimensions().count() as u32;
        let claims = rule.claims(request.problem.block_bytes);
        let bytes = rule.is_cut();
        let mut solution = Solution::new(request, values, rule, claims).without(PARTS.name);
        if hop > 1 {
            solution = solution.with(HOP.name, u64::from(hop));
        }
        if led < n {
            solution = solution.with(LED.name, u64::from(led));
        }
        let unless_set = hop > 1 && n > 2;
        Ok(if bytes && !unless_set { solution.with(PARTS.name, "bytes") } else { solution })
    }
}
