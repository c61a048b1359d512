//! The settings, which grids they serve, and what they claim.

use topocoll_schedule::{Parameters, Problem, Schedule, Setting};
use topocoll_topology::{Grid, Shape, Topology};

use super::centred::Centred;
use super::line::Landing;
use super::windows::{self, Digit};
use super::{ColouredRings, Residual, Rings};
use crate::parameters::{check, integer, origin, word, words};
use crate::{Algorithm, Claims, NotApplicable, Parameter};

const LANDINGS: [&str; 4] = ["near", "distance", "windows", "centred"];
const RESIDUALS: [&str; 2] = ["axis", "direct"];

/// The longest side whose positions all differ.
const LONGEST: u32 = 1 << 16;
/// The longest side of which every source is listed for every place where its blocks land.
const LONGEST_LISTED: u32 = 1 << 8;
/// The longest side at all.
const LONGEST_REPEATED: u32 = 1 << 20;

impl ColouredRings {
    fn rings(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        given: &Parameters,
    ) -> Result<(Rings, Parameters), NotApplicable> {
        check(self, problem, given)?;
        let landing = word(self, given, "landing", &LANDINGS)?;
        let classes = integer(self, given, "classes", 1, 2)?.unwrap_or(2);
        let Shape::Grid(grid) = topology.shape() else {
            return Err(NotApplicable::Shape {
                needs: "a torus or mesh",
                topology: topology.short_form(),
            });
        };
        let long = grid.radix().long_dimensions().count() as u32;
        if long == 1 && classes == 1 {
            return Err(NotApplicable::Setting {
                algorithm: self.name(),
                name: "classes",
                value: classes.to_string(),
                rule: "2 where only one side is longer than 1".to_owned(),
            });
        }
        let colours = long * classes as u32;
        let too_long = |&u: &usize| {
            let side = grid.sides()[u];
            let repeats = grid.wrap()[u] && side % colours.max(1) == 0;
            side > if repeats { LONGEST_REPEATED } else { LONGEST }
        };
        let sides: Vec<String> = (0..grid.sides().len())
            .filter(too_long)
            .map(|u| format!("side {u} ({})", grid.sides()[u]))
            .collect();
        if !sides.is_empty() {
            let rule =
                "sides of at most 65536, or 1048576 where they wrap and the colours divide them";
            return Err(NotApplicable::Sides { rule, sides });
        }
        let (landing, left) =
            (LANDINGS[landing], RESIDUALS[word(self, given, "residual", &RESIDUALS)?]);
        let refused = |rule: &str| NotApplicable::Setting {
            algorithm: self.name(),
            name: "residual",
            value: left.to_owned(),
            rule: rule.to_owned(),
        };
        let (place, residual) = match (landing, left) {
            ("windows", "axis") => {
                (Landing::Windows, Residual::Windows(self.windows(grid, long, classes)?))
            }
            ("windows", _) => return Err(refused("axis where landing is windows")),
            ("centred", _) => {
                (Landing::Centred, Residual::Centred(self.centred(grid, long, classes, left)?))
            }
            (_, "direct") if long != 2 => {
                return Err(refused("axis where not two sides are longer than 1"));
            }
            _ => {
                let residual = if left == "axis" { Residual::Axis } else { Residual::Direct };
                (self.one_by_one(grid, landing, colours)?, residual)
            }
        };
        let rings = Rings::new(grid, classes as u32, place, residual);
        if rings.is_direct() && (rings.rounds_a_phase() == 0 || rings.direct_steps() == 0) {
            return Err(refused("axis where sides are so short that no rings are, or no offsets"));
        }
        Ok((rings, setting(classes, landing, left)))
    }

    /// Where blocks land one by one.
    fn one_by_one(
        &self,
        grid: &Grid,
        landing: &str,
        colours: u32,
    ) -> Result<Landing, NotApplicable> {
        if landing == "near" {
            return Ok(Landing::Near);
        }
        let sides = grid.sides();
        let uneven = |&u: &usize| sides[u] > 1 && grid.wrap()[u] && sides[u] % colours != 0;
        let named = |u: usize| format!("side {u} ({})", sides[u]);
        let uneven: Vec<usize> = (0..sides.len()).filter(uneven).collect();
        if uneven.is_empty() {
            let rule = "a side that wraps and that the colours do not divide, for landing=distance";
            let sides = (0..sides.len()).map(named).collect();
            return Err(NotApplicable::Sides { rule, sides });
        }
        let long: Vec<_> = uneven.into_iter().filter(|&u| sides[u] > LONGEST_LISTED).collect();
        if !long.is_empty() {
            let rule = "sides of at most 256 where they wrap and the colours do not divide them, for \
                        landing=distance";
            let sides = long.into_iter().map(named).collect();
            return Err(NotApplicable::Sides { rule, sides });
        }
        Ok(Landing::Distance)
    }

    /// How blocks go on in windows around a rank.
    fn centred(
        &self,
        grid: &Grid,
        long: u32,
        classes: u64,
        left: &str,
    ) -> Result<Centred, NotApplicable> {
        if classes != 2 || !(2..=3).contains(&long) {
            return Err(NotApplicable::Setting {
                algorithm: self.name(),
                name: "landing",
                value: "centred".to_owned(),
                rule: "near where classes is 1, or not two or three sides are longer than 1"
                    .to_owned(),
            });
        }
        let sides = odd_sides(grid, 2 * long, |u| grid.wrap()[u]);
        if !sides.is_empty() {
            let rule = "sides that wrap and are multiples of 2n, n of them longer than 1, for \
                        landing=centred";
            return Err(NotApplicable::Sides { rule, sides });
        }
        Ok(Centred { dimensions: long, straight: left == "direct" })
    }

    /// The digits of windows of as many positions as there are colours.
    fn windows(&self, grid: &Grid, long: u32, classes: u64) -> Result<Vec<Digit>, NotApplicable> {
        let digits = windows::digits(long.max(1)).filter(|_| classes == 2 && long > 0);
        let digits = digits.ok_or_else(|| NotApplicable::Setting {
            algorithm: self.name(),
            name: "landing",
            value: "windows".to_owned(),
            rule: "near where classes is 1, or no product of twos and threes counts the sides \
                   longer than 1"
                .to_owned(),
        })?;
        let sides = odd_sides(grid, 2 * long, |_| true);
        if !sides.is_empty() {
            let rule =
                "sides that are multiples of 2n, n of them longer than 1, for landing=windows";
            return Err(NotApplicable::Sides { rule, sides });
        }
        Ok(digits)
    }
}

/// The sides longer than 1 that are no multiples of a number, or are not as asked.
fn odd_sides(grid: &Grid, multiple: u32, asked: impl Fn(usize) -> bool) -> Vec<String> {
    grid.radix()
        .long_dimensions()
        .filter(|&u| grid.sides()[u] % multiple != 0 || !asked(u))
        .map(|u| format!("side {u} ({})", grid.sides()[u]))
        .collect()
}

impl Algorithm for ColouredRings {
    fn name(&self) -> &'static str {
        "coloured-rings"
    }

    fn summary(&self) -> &'static str {
        "blocks combined along rings of one colour, both ways, then sent the few hops that are left"
    }

    fn source(&self) -> &'static str {
        "after Suh and Shin 2001, for any sides"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter {
                name: "classes",
                values: "1 or 2 (classes of ranks on a line; 1 needs two sides longer than 1; default 2)",
                by_cost: true,
            },
            Parameter {
                name: "landing",
                values: "near (at the nearest rank of a colour; default), distance (as many hops as the distance says; less volume on uneven sides that wrap), windows (aligned ones of 2n; fewer steps) or centred (windows of 2n around a rank; between the two)",
                by_cost: true,
            },
            Parameter {
                name: "residual",
                values: "axis (dimension by dimension; default) or direct (less volume in more steps; on two sides, or centred; not with windows)",
                by_cost: true,
            },
        ]
    }

    fn settings(&self, problem: &Problem, topology: &dyn Topology) -> Vec<Parameters> {
        [
            setting(1, "near", "axis"),
            setting(2, "near", "axis"),
            setting(1, "distance", "axis"),
            setting(2, "distance", "axis"),
            setting(2, "windows", "axis"),
            setting(2, "centred", "axis"),
            setting(2, "centred", "direct"),
            setting(1, "near", "direct"),
            setting(2, "near", "direct"),
            setting(1, "distance", "direct"),
            setting(2, "distance", "direct"),
        ]
        .into_iter()
        .filter(|given| self.rings(problem, topology, given).is_ok())
        .collect()
    }

    fn plan(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        given: &Parameters,
    ) -> Result<Schedule, NotApplicable> {
        let (rings, setting) = self.rings(problem, topology, given)?;
        Ok(Schedule::new(*problem, origin(self, setting), rings))
    }

    fn claims(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        given: &Parameters,
    ) -> Result<Claims, NotApplicable> {
        let (rings, _) = self.rings(problem, topology, given)?;
        let cost = rings.cost();
        let n = rings.dimensions() as u32;
        let residual = if matches!(rings.residual, Residual::Axis) { n } else { 1 };
        let phases = if rings.rounds_a_phase() > 0 { n + residual } else { residual };
        let block_bytes = u128::from(problem.block_bytes);
        Ok(Claims {
            hops: Some(cost.hops),
            hops_floor: cost.hops,
            rearrangements: Some(phases.saturating_sub(1)),
            copied_bytes: Some((cost.rearranged + cost.packed) * block_bytes),
            contention_free: true,
            ..Claims::new(cost.steps, cost.blocks * block_bytes)
        })
    }
}

fn setting(classes: u64, landing: &str, residual: &str) -> Parameters {
    let mut setting = match landing {
        "windows" => words([("landing", landing)]),
        _ => words([("landing", landing), ("residual", residual)]),
    };
    setting.insert("classes".to_owned(), Setting::Integer(classes));
    setting
}
