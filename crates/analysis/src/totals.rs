use rayon::prelude::*;
use topocoll_schedule::Schedule;
use topocoll_topology::{Machine, parallel};

use crate::charges::Rates;
use crate::error::check_work;
use crate::loads::Loads;
use crate::shift;
use crate::visit::{Does, Source, Visitor};

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
    if topology.link_numbers() == 0 {
        return None;
    }
    let visitor = Visitor::new(Source::Schedule(schedule), machine, &schedule.rule().classes());
    let steps = schedule.rule().steps();
    let work = u128::from(visitor.ranks.classes.count()) * u128::from(steps);
    check_work("adding up what links carry", work, WORK_LIMIT).ok()?;
    if let Some(cyclic) = visitor.cyclic {
        let (mut totals, mut does) = (shift::Totals::new(cyclic.over), Does::default());
        for step in 0..steps {
            visitor.each_shift(&cyclic, step, &mut does, &mut |_, _, shift| totals.add(shift));
        }
        return Some(LinkTotals { max_link_bytes: totals.max_link_bytes() });
    }
    let part = steps.div_ceil(parallel::threads() as u32).max(1);
    let starts: Vec<u32> = (0..steps).step_by(part as usize).collect();
    let none = || visitor.loads();
    let parts = parallel::each(starts).map(|start| {
        let (mut loads, mut does) = (none(), Does::default());
        for step in start..steps.min(start.saturating_add(part)) {
            visitor.each_message(step, &mut does, &mut |rank, sent, route_links| {
                loads.add(topology, rank, &route_links, sent.bytes);
            });
        }
        loads
    });
    let mut loads = parts.reduce(none, Loads::merged);
    let mut max_link_bytes = 0;
    loads.drain(&Rates::new(machine), |load| max_link_bytes = load.bytes.max(max_link_bytes));
    Some(LinkTotals { max_link_bytes })
}
