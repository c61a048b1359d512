//! What a machine would do that lacks nodes or links, if it did not.

use serde::Serialize;
use topocoll::{Machine, Problem, best_bounds};

use super::plural;
use crate::render::{Blocks, Bounds, blocks, seconds};

/// The bounds of the whole machine, all its ranks taking part.
#[derive(Serialize)]
pub(super) struct Whole {
    topology: String,
    ranks: u32,
    #[serde(flatten)]
    bounds: Bounds,
}

impl Whole {
    /// None of a machine that lacks nothing.
    pub(super) fn of(machine: &Machine, problem: &Problem) -> Option<Self> {
        let whole = machine.unbroken()?;
        let mut problem = *problem;
        problem.ranks = whole.ranks();
        let bounds = best_bounds(&problem, &whole).into();
        Some(Self { topology: whole.topology.short_form(), ranks: whole.ranks(), bounds })
    }

    /// What is lost: of the bounds, and of a schedule that carries so many blocks, if there is one.
    pub(super) fn text(&self, bounds: Bounds, carried: Option<f64>) -> String {
        let Self {
            topology,
            ranks,
            bounds: Bounds { link_blocks: Blocks(whole), time_seconds, .. },
        } = self;
        let Blocks(bound) = bounds.link_blocks;
        let times = |value: f64| format!("{:.2} times", value / whole.max(f64::MIN_POSITIVE));
        let schedule = carried.map_or(String::new(), |carried| {
            format!(", and this schedule {} ({})", blocks(carried), times(carried))
        });
        format!(
            "Whole, {topology} with {ranks} rank{} carries at least {} blocks over its busiest links and ends \
             in no less than {}: without what it lacks at least {} ({}){schedule}.\n",
            plural(*ranks as usize),
            blocks(*whole),
            seconds(*time_seconds),
            blocks(bound),
            times(bound),
        )
    }
}
