//! Formulas without a schedule: algorithms whose costs are printed in papers, but whose schedules
//! are in no available text.
//!
//! `sweep --published` prices them beside schedules; they are not verified, run or selected. A row
//! has only printed counts. For `direct-torus`, only the order is printed: the constant is the
//! bisection's lower bound, as its summary says.

use topocoll_algorithms::NotApplicable;
use topocoll_analysis::Time;
use topocoll_schedule::{Collective, Parameters, Problem};
use topocoll_topology::{Grid, Machine, Shape, Topology};

use crate::{Choice, Exchange, Line, Price, Priced, Rejected};

/// Every formula without a schedule, in the order in which lists show them.
pub const PUBLISHED: &[Published] = &[SUH_YALAMANCHILI, DIRECT_TORUS, DIRECT_MESH];

/// An algorithm known by its counts alone.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// The name in lists, different from those of schedules.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// The paper, and where its formulas are printed.
    pub source: &'static str,
    /// The operation it performs.
    pub operation: Collective,
    formula: fn(&Grid) -> Result<PublishedCounts, NotApplicable>,
}

/// The counts of a formula, in blocks of any size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PublishedCounts {
    /// Steps in which a message moves, C1.
    pub steps: u64,
    /// Sum over steps of the largest message, C2.
    pub blocks: u128,
    /// Sum over steps of the largest hop count, where printed.
    pub hops: Option<u128>,
    /// Blocks that one rank rearranges, where printed.
    pub rearranged_blocks: Option<u128>,
}

impl Published {
    /// The counts on a topology.
    ///
    /// # Errors
    /// The formula does not apply to this problem on this topology.
    pub fn counts(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
    ) -> Result<PublishedCounts, NotApplicable> {
        if problem.operation != self.operation {
            return Err(NotApplicable::Operation {
                performs: self.operation,
                asked: problem.operation,
            });
        }
        match topology.shape() {
            Shape::Grid(grid) => (self.formula)(grid),
            _ => Err(shape("a torus or mesh", topology)),
        }
    }
}

impl Exchange<'_> {
    /// The formulas that apply, over block sizes, and the reasons of the others.
    #[must_use]
    pub fn published(&self, block_sizes: &[u64]) -> (Vec<Line>, Vec<Rejected>) {
        let (mut lines, mut rejected) = (Vec::new(), Vec::new());
        for row in PUBLISHED {
            let counts = match row.counts(self.problem(), &*self.machine().topology) {
                Ok(counts) => counts,
                Err(reason) => {
                    rejected.push(Rejected::new(row.name, &reason));
                    continue;
                }
            };
            let points = block_sizes.iter().map(|&bytes| {
                let exchange = self.sized(bytes);
                let price = counts.price(exchange.machine(), exchange.problem());
                Choice::new(row.name, Parameters::new(), price).over(&exchange.bounds())
            });
            let (algorithm, points) = (row.name.to_owned(), points.collect());
            lines.push(Line { algorithm, given: Parameters::new(), points });
        }
        (lines, rejected)
    }
}

impl PublishedCounts {
    /// The cost of the counts by the steps model.
    ///
    /// If the machine's values differ by link class, the least are used, because a formula does not
    /// give the links of a step.
    #[must_use]
    pub fn price(&self, machine: &Machine, problem: &Problem) -> Price {
        let timing = &machine.timing;
        let blocks = self.blocks as f64;
        let bytes = |blocks: f64| blocks * problem.block_bytes as f64;
        let rearranged = self.rearranged_blocks.unwrap_or(0) * u128::from(problem.block_bytes);
        let [rearrangement, block_copies] = timing.copies(rearranged, problem.block_bytes);
        let barriers = self.steps.saturating_sub(1) as f64;
        Price {
            priced: Priced::Published,
            time: Time {
                startup: self.steps as f64 * timing.startup.least(),
                transmission: bytes(blocks) * timing.per_byte.least(),
                propagation: self.hops.unwrap_or(0) as f64 * timing.per_hop.least(),
                rearrangement,
                block_copies,
                barrier: timing.barrier.seconds(problem.ranks) * barriers,
                ..Time::default()
            },
            steps: self.steps,
            blocks,
            link_blocks: blocks,
            link_contention: 0,
        }
    }
}

/// Suh and Shin 2001, Table 2, the rows of their reference 13.
const SUH_YALAMANCHILI: Published = Published {
    name: "suh-yalamanchili",
    summary: "blocks combined in a number of steps logarithmic in the side",
    source: "Suh and Yalamanchili 1998; counts of Suh and Shin 2001, Table 2 (reference 13)",
    operation: Collective::AllToAll,
    formula: |grid| {
        let rule = "two equal sides that are powers of two, at least 8 on a torus and 4 on a mesh";
        let wraps = alike(grid, "a torus or mesh")?;
        let side =
            square(grid, rule, |side| side.is_power_of_two() && side >= if wraps { 8 } else { 4 })?;
        let d = i128::from(side.ilog2());
        let two = |exponent: i128| 1i128 << exponent;
        // Positive from the least d on.
        let (steps, blocks, hops) = if wraps {
            (
                3 * d - 3,
                9 * two(3 * d - 4) + (d * d - 5 * d + 3) * two(2 * d - 1),
                13 * two(d - 2) - 3 * d - 3,
            )
        } else {
            (
                3 * d - 2,
                7 * two(3 * d - 3) + (d * d - 3 * d - 1) * two(2 * d - 1),
                9 * two(d - 1) - 3 * d - 4,
            )
        };
        let blocks = blocks as u128;
        Ok(PublishedCounts {
            steps: steps as u64,
            blocks,
            hops: Some(hops as u128),
            rearranged_blocks: Some(blocks),
        })
    },
};

/// Suh and Shin 2001, section 1: Tseng and Gupta's order of startups.
const DIRECT_TORUS: Published = Published {
    name: "direct-torus",
    summary: "every block straight to its destination: O(a1^2 a2 .. an) steps printed, the bisection's least constant 1/8 taken",
    source: "Tseng and Gupta 1996; order of Suh and Shin 2001, section 1 (reference 18)",
    operation: Collective::AllToAll,
    formula: |grid| {
        if !alike(grid, "a torus")? {
            return Err(shape("a torus", grid));
        }
        let ranks = u128::from(grid.ranks());
        let longest = grid.sides().iter().copied().max().map_or(1, u128::from);
        // Half the crossings of the longest side's middle in each direction: a1^2 a2 .. an / 8 for
        // an even side. If a1 is below 8, the ranks - 1 blocks that leave through one port are
        // more.
        let crossing = longest * longest / 4 * (ranks / longest);
        let steps = crossing.div_ceil(2).max(ranks - 1);
        Ok(single_blocks(steps))
    },
};

/// Suh and Shin 2001, section 1: Scott's bound, assumed to be reached.
const DIRECT_MESH: Published = Published {
    name: "direct-mesh",
    summary: "every block straight to its destination in a^3/4 steps on an a x a mesh, printed as the least there can be",
    source: "Scott 1991; count of Suh and Shin 2001, section 1 (reference 11)",
    operation: Collective::AllToAll,
    formula: |grid| {
        if alike(grid, "a mesh")? {
            return Err(shape("a mesh", grid));
        }
        let rule = "two equal even sides of at least 4";
        let side = square(grid, rule, |side| side % 2 == 0 && side >= 4)?;
        Ok(single_blocks(u128::from(side).pow(3) / 4))
    },
};

/// Direct steps of one block each.
fn single_blocks(steps: u128) -> PublishedCounts {
    PublishedCounts { steps: steps as u64, blocks: steps, hops: None, rearranged_blocks: None }
}

/// Whether all sides longer than 1 wrap; false if none wraps.
fn alike(grid: &Grid, needs: &'static str) -> Result<bool, NotApplicable> {
    let wraps = grid.radix().long_dimensions().all(|u| grid.wrap()[u]);
    if wraps || grid.radix().long_dimensions().all(|u| !grid.wrap()[u]) {
        return Ok(wraps);
    }
    Err(shape(needs, grid))
}

/// The side of a grid of two equal sides that follow `rule`.
fn square(
    grid: &Grid,
    rule: &'static str,
    keeps: impl Fn(u32) -> bool,
) -> Result<u32, NotApplicable> {
    let sides: Vec<_> = grid.radix().long_dimensions().map(|u| grid.sides()[u]).collect();
    match sides[..] {
        [a, b] if a == b && keeps(a) => Ok(a),
        _ => {
            let side = |u: usize| format!("side {u} ({})", grid.sides()[u]);
            Err(NotApplicable::Sides { rule, sides: (0..grid.sides().len()).map(side).collect() })
        }
    }
}

fn shape(needs: &'static str, topology: &dyn Topology) -> NotApplicable {
    NotApplicable::Shape { needs, topology: topology.short_form() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(row: &Published, grid: &Grid) -> Result<PublishedCounts, NotApplicable> {
        let problem = Problem::new(Collective::AllToAll, grid.ranks(), 1, 64).unwrap();
        row.counts(&problem, grid)
    }

    /// Steps, blocks and hops of Table 2, worked out by hand.
    #[test]
    fn minimum_startup_is_as_printed() {
        let torus = |side| counts(&SUH_YALAMANCHILI, &Grid::torus(&[side, side]).unwrap());
        let mesh = |side| counts(&SUH_YALAMANCHILI, &Grid::mesh(&[side, side]).unwrap());
        for (found, steps, blocks, hops) in [
            (torus(8), 6, 9 * 32 - 3 * 32, 14),
            (torus(16), 9, 9 * 256 - 128, 37),
            (torus(64), 15, 9 * 16_384 + 9 * 2048, 187),
            (mesh(4), 4, 7 * 8 - 3 * 8, 8),
            (mesh(16), 10, 7 * 512 + 3 * 128, 56),
        ] {
            let found = found.unwrap();
            assert_eq!((found.steps, found.blocks, found.hops), (steps, blocks, Some(hops)));
            assert_eq!(found.rearranged_blocks, Some(blocks));
        }
        for refused in [torus(4), torus(12), mesh(2), mesh(6)] {
            assert!(matches!(refused, Err(NotApplicable::Sides { .. })));
        }
    }

    #[test]
    fn direct_exchanges_take_what_the_bisection_asks() {
        let torus = |sides: &[u32]| counts(&DIRECT_TORUS, &Grid::torus(sides).unwrap());
        assert_eq!(torus(&[16, 16]).unwrap().blocks, 512);
        assert_eq!(torus(&[8, 4, 4]).unwrap().blocks, 128);
        assert_eq!(torus(&[4, 4]).unwrap().steps, 15);
        assert_eq!(torus(&[9, 9]).unwrap().steps, 90);
        let mesh = Grid::mesh(&[16, 16]).unwrap();
        assert_eq!(counts(&DIRECT_MESH, &mesh).unwrap().steps, 1024);
        assert!(counts(&DIRECT_TORUS, &mesh).is_err());
        assert!(counts(&DIRECT_MESH, &Grid::mesh(&[5, 5]).unwrap()).is_err());
    }

    #[test]
    fn the_largest_grids_do_not_overflow() {
        let side = 1 << 15;
        for grid in [Grid::torus(&[side, side]), Grid::mesh(&[side, side])] {
            let found = counts(&SUH_YALAMANCHILI, &grid.unwrap()).unwrap();
            assert!(found.blocks > 1 << 40);
        }
        assert!(counts(&DIRECT_TORUS, &Grid::torus(&[u32::MAX]).unwrap()).is_ok());
    }
}
