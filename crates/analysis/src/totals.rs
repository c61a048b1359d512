use rayon::prelude::*;
use topocoll_schedule::{Schedule, Step};
use topocoll_topology::{Grid, Machine, Rank, Route};

use crate::charges::Rates;
use crate::error::check_work;
use crate::loads::Loads;
use crate::{shift, symmetry};

/// The most calls of the rule for link totals.
const WORK_LIMIT: u128 = 50_000_000;

/// Totals of the links of a grid or graph over a whole schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LinkTotals {
    /// Bytes on the busiest link.
    pub max_link_bytes: u128,
}

/// Sums the bytes on every link over all steps, for one link of each class; `None` without numbered
/// links, and if there are too many classes and steps.
///
/// # Panics
/// A schedule of other ranks than the machine's.
#[must_use]
pub fn link_totals(schedule: &Schedule, machine: &Machine) -> Option<LinkTotals> {
    assert_eq!(
        schedule.problem.ranks,
        machine.ranks(),
        "a schedule of other ranks than the machine's"
    );
    let topology = &*machine.topology;
    let (rule, steps) = (schedule.rule(), schedule.rule().steps());
    let closed = shift::grid(&rule.classes(), topology);
    let classes = symmetry::common(&rule.classes(), topology);
    let shares = if closed.is_some() { 1 } else { classes.count() };
    if topology.link_numbers() == 0 {
        return None;
    }
    let work = u128::from(shares) * u128::from(steps);
    check_work("adding up what links carry", work, WORK_LIMIT).ok()?;
    if let Some(grid) = closed {
        return Some(by_shift(schedule, grid));
    }
    let part = steps.div_ceil(rayon::current_num_threads() as u32).max(1);
    let starts: Vec<u32> = (0..steps).step_by(part as usize).collect();
    let parts = starts.into_par_iter().map(|start| {
        let mut loads = Loads::new(&classes, topology);
        let (mut does, mut own) = (Step::default(), Route::default());
        for step in start..steps.min(start.saturating_add(part)) {
            for rank in (0..classes.count()).map(|class| classes.representative(class)) {
                rule.step(rank, step, &mut does);
                for send in &does.sends {
                    let route = send.route_from(rank, topology, &mut own);
                    loads.add(
                        topology,
                        rank,
                        route,
                        send.slots.bytes(schedule.problem.block_bytes),
                    );
                }
            }
        }
        loads
    });
    let mut loads = parts.reduce(|| Loads::new(&classes, topology), Loads::merged);
    let mut max_link_bytes = 0;
    loads.drain(&Rates::new(machine), |load| max_link_bytes = load.bytes.max(max_link_bytes));
    Some(LinkTotals { max_link_bytes })
}

fn by_shift(schedule: &Schedule, grid: &Grid) -> LinkTotals {
    let mut totals = shift::Totals::new(grid);
    let mut does = Step::default();
    for step in 0..schedule.rule().steps() {
        // Rank 0, so its peer is the shift.
        schedule.rule().step(Rank(0), step, &mut does);
        for send in &does.sends {
            totals.add(send.peer.0, send.slots.bytes(schedule.problem.block_bytes));
        }
    }
    LinkTotals { max_link_bytes: totals.max_link_bytes() }
}
