use rayon::prelude::*;
use topocoll_schedule::{Schedule, Step};
use topocoll_topology::{Machine, Route, parallel};

use crate::charges::Rates;
use crate::error::check_work;
use crate::loads::Loads;
use crate::shift::{self, Cyclic};
use crate::symmetry;

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
    let closed = Cyclic::new(&rule.classes(), topology);
    let classes = symmetry::common(&rule.classes(), topology);
    let shares = closed.map_or(classes.count(), |cyclic| cyclic.representatives().count() as u32);
    if topology.link_numbers() == 0 {
        return None;
    }
    let work = u128::from(shares) * u128::from(steps);
    check_work("adding up what links carry", work, WORK_LIMIT).ok()?;
    if let Some(cyclic) = closed {
        return Some(by_shift(schedule, cyclic));
    }
    let part = steps.div_ceil(parallel::threads() as u32).max(1);
    let starts: Vec<u32> = (0..steps).step_by(part as usize).collect();
    let parts = parallel::each(starts).map(|start| {
        let mut loads = Loads::new(&classes, topology);
        let (mut does, mut own) = (Step::default(), Route::default());
        for step in start..steps.min(start.saturating_add(part)) {
            rule.active(step, &classes, &mut |rank| {
                rule.step(rank, step, &mut does);
                for send in &does.sends {
                    let route = send.route_from(rank, topology, &mut own);
                    let bytes = send.slots.bytes(schedule.problem.block_bytes);
                    loads.add(topology, rank, route, bytes);
                }
            });
        }
        loads
    });
    let mut loads = parts.reduce(|| Loads::new(&classes, topology), Loads::merged);
    let mut max_link_bytes = 0;
    loads.drain(&Rates::new(machine), |load| max_link_bytes = load.bytes.max(max_link_bytes));
    Some(LinkTotals { max_link_bytes })
}

fn by_shift(schedule: &Schedule, cyclic: Cyclic<'_>) -> LinkTotals {
    let mut totals = shift::Totals::new(cyclic.grid);
    let mut does = Step::default();
    for step in 0..schedule.rule().steps() {
        for rank in cyclic.representatives() {
            schedule.rule().step(rank, step, &mut does);
            for send in &does.sends {
                let bytes = send.slots.bytes(schedule.problem.block_bytes);
                cyclic.shifts(send.peer, bytes).for_each(|shift| totals.add(shift));
            }
        }
    }
    LinkTotals { max_link_bytes: totals.max_link_bytes() }
}
