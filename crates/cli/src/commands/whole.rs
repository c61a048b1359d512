//! The bounds of a machine with faults, computed without its faults.

use serde::Serialize;
use topocoll::{Machine, Problem, best_bounds};

use super::plural;
use crate::render::{Blocks, Bounds, blocks, seconds};

/// The bounds of the machine without faults and with all its ranks.
#[derive(Serialize)]
pub(super) struct Whole {
    topology: String,
    ranks: u32,
    #[serde(flatten)]
    bounds: Bounds,
}

impl Whole {
    /// `None` for a machine without faults.
    pub(super) fn of(machine: &Machine, problem: &Problem) -> Option<Self> {
        let whole = machine.unbroken()?;
        let mut problem = *problem;
        problem.ranks = whole.ranks();
        let bounds = best_bounds(&problem, &whole, None).into();
        Some(Self { topology: whole.topology.short_form(), ranks: whole.ranks(), bounds })
    }

    /// The loss in the bounds, and the loss of a schedule that carries `carried` blocks, if given.
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
            "Without faults, {topology} with {ranks} rank{} carries at least {} blocks over its busiest link and \
             takes at least {}. With its faults it carries at least {} ({}){schedule}.\n",
            plural(*ranks as usize),
            blocks(*whole),
            seconds(*time_seconds),
            blocks(bound),
            times(bound),
        )
    }
}
