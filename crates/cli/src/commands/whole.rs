//! What a machine would do that lacks nodes or links, if it did not.

use serde::Serialize;
use topocoll::{BestBounds, Machine, Problem, best_bounds};

use super::plural;
use crate::render::{Blocks, blocks, seconds};

/// The bounds of the whole machine, all its ranks taking part.
#[derive(Serialize)]
pub(super) struct Whole {
    topology: String,
    ranks: u32,
    steps: u64,
    blocks: Blocks,
    time_seconds: f64,
}

impl Whole {
    /// None of a machine that lacks nothing.
    pub(super) fn of(machine: &Machine, problem: &Problem) -> Option<Self> {
        let whole = machine.unbroken()?;
        let mut problem = *problem;
        problem.ranks = whole.ranks();
        let BestBounds { steps, blocks, seconds, .. } = best_bounds(&problem, &whole);
        let (topology, ranks) = (whole.topology.short_form(), whole.ranks());
        Some(Self { topology, ranks, steps, blocks: Blocks(blocks), time_seconds: seconds })
    }

    /// What is lost: of the bounds, and of a schedule that carries so many blocks, if there is one.
    pub(super) fn text(&self, bound: f64, carried: Option<f64>) -> String {
        let Self { topology, ranks, blocks: Blocks(whole), .. } = self;
        let times = |value: f64| format!("{:.2} times", value / whole.max(f64::MIN_POSITIVE));
        let schedule = carried.map_or(String::new(), |carried| {
            format!(", and this schedule {} ({})", blocks(carried), times(carried))
        });
        format!(
            "Whole, {topology} with {ranks} rank{} carries at least {} blocks over its busiest links and ends \
             in no less than {}: without what it lacks at least {} ({}){schedule}.\n",
            plural(*ranks as usize),
            blocks(*whole),
            seconds(self.time_seconds),
            blocks(bound),
            times(bound),
        )
    }
}
