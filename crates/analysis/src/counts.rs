use hashbrown::HashMap;
use topocoll_schedule::{Demand, Schedule, Step};
use topocoll_topology::Machine;

use crate::count_step::Counter;
use crate::error::{by_all_threads, check_memory, check_ranks, check_work};
use crate::sample::RankSample;
use crate::step_count::{Counts, StepCount};
use crate::traffic::Traffic;
use crate::{AnalysisError, all_to_all_v};

/// About the most work of [`count`].
///
/// Without a demand matrix it is a number of route segments: steps, times representatives of the
/// classes, times ports, as far as ranks use them, times dimensions. With one it is a number of slots and steps.
///
/// # Panics
/// A schedule of other ranks than the machine's.
#[must_use]
pub fn counting_work(schedule: &Schedule, machine: &Machine, demand: Option<&Demand>) -> u128 {
    if demand.is_some() {
        return all_to_all_v::counting_work(schedule);
    }
    read(schedule, machine, |counter, _| counter.work()).unwrap_or_else(|error| panic!("{error}"))
}

/// The most segments that [`check_counting_work`] allows: minutes.
const COUNT_LIMIT: u128 = 2_000_000_000;

/// Checks that counting a schedule with equal blocks takes minutes at most.
///
/// # Errors
/// [`AnalysisError::Work`], or a schedule of other ranks than the machine's.
pub fn check_counting_work(schedule: &Schedule, machine: &Machine) -> Result<(), AnalysisError> {
    let work = read(schedule, machine, |counter, _| {
        let work = counter.work();
        let by_kinds = || counter.work_by_kinds(COUNT_LIMIT).unwrap_or(work);
        if work > COUNT_LIMIT { by_kinds() } else { work }
    })?;
    check_work("counting", work, COUNT_LIMIT)
}

/// Checks that a step and all link counters fit in `memory` bytes.
pub(crate) fn check_counting_memory(
    schedule: &Schedule,
    machine: &Machine,
    memory: u128,
) -> Result<(), AnalysisError> {
    read(schedule, machine, |counter, _| counter.fits(counter.kept(), memory))?
}

/// Reads the counter of a schedule; of one on a view, that of the schedule for the grid that the view
/// shows.
///
/// # Errors
/// A schedule of other ranks than the machine's.
fn read<T>(
    schedule: &Schedule,
    machine: &Machine,
    read: impl FnOnce(Counter<'_>, &Schedule) -> T,
) -> Result<T, AnalysisError> {
    check_ranks(schedule.problem.ranks, machine)?;
    let seen = schedule.seen(machine);
    let (schedule, machine) = seen.as_ref().map_or((schedule, machine), |(of, on)| (of, on));
    Ok(read(Counter::new(schedule, machine)?, schedule))
}

/// Counts a schedule on a machine: every step, every link, one rank of each class that is not idle.
///
/// Blocks have the problem's size, or the sizes of a demand matrix, which is followed message by
/// message on every rank. A shared link is charged its whole load. Time is proportional to
/// [`counting_work`] times the ports used; on grids memory is proportional to the classes.
///
/// With a demand matrix a message of no bytes is not sent. A message of several slots that are not
/// consecutive is charged as packed, even if only one of them has bytes. The exchange of the sizes
/// is not part of the cost.
///
/// # Errors
/// More than `memory` bytes, or a schedule of other ranks than the machine's. With a demand matrix
/// also a schedule that names no blocks or splits them, or work beyond a limit of some seconds.
pub fn count(
    schedule: &Schedule,
    machine: &Machine,
    demand: Option<&Demand>,
    memory: u128,
) -> Result<Counts, AnalysisError> {
    count_steps(schedule, machine, demand, memory, |_, _| {})
}

/// Counts as [`count`] does and calls `each` with every step, in order.
///
/// # Errors
/// As [`count`].
pub fn count_steps(
    schedule: &Schedule,
    machine: &Machine,
    demand: Option<&Demand>,
    memory: u128,
    mut each: impl FnMut(u32, &StepCount),
) -> Result<Counts, AnalysisError> {
    if let Some(demand) = demand {
        return all_to_all_v::count(schedule, machine, demand, memory, each);
    }
    read(schedule, machine, |counter, schedule| {
        counter.fits(counter.kept(), memory)?;
        let machine = counter.visitor.machine;
        let sums = counter.each_step(false, |step, count, _| {
            each(step, count);
            true
        });
        Ok(sums.close(schedule, machine))
    })?
}

/// Counts as [`count`] does some steps of a schedule of equal blocks, far apart from each other: until `go_on`,
/// which gets what was counted every 64 steps or more often, returns false. Returns also the number of those
/// steps. Of a sample of the ranks every amount is at most what [`count`] gives.
///
/// # Errors
/// As [`count`].
pub fn count_while(
    schedule: &Schedule,
    machine: &Machine,
    memory: u128,
    sample: Option<RankSample>,
    mut go_on: impl FnMut(u32, &Counts) -> bool,
) -> Result<(u32, Counts), AnalysisError> {
    read(schedule, machine, |counter, schedule| {
        counter.fits(counter.kept(), memory)?;
        let counter = match sample {
            Some(sample) => counter.of_some(sample),
            None => counter,
        };
        let (machine, mut steps) = (counter.visitor.machine, 0u32);
        let often = schedule.rule().steps().div_ceil(64).min(64);
        let sums = counter.each_step(true, |_, _, sums| {
            steps += 1;
            !steps.is_multiple_of(often) || go_on(steps, &sums.close(schedule, machine))
        });
        Ok((steps, sums.close(schedule, machine)))
    })?
}

/// Cases of a step, a rank or node, and a direction that exceed the port model, where `counts` are those of the
/// schedule. Groups take turns at ports that they share: of groups the cases of each by itself.
pub(crate) fn exceeded_ports(
    schedule: &Schedule,
    machine: &Machine,
    counts: &Counts,
) -> Result<u64, AnalysisError> {
    let shared = schedule.groups().filter(|_| counts.port_violations > 0);
    let Some(groups) = shared else { return Ok(counts.port_violations) };
    read(schedule, machine, |counter, schedule| {
        let machine = counter.visitor.machine;
        let cases = |group| {
            let alone = Counter::of_sizes(schedule, machine)?.only(groups.group(group).ranks());
            let sums = alone.each_step(false, |_, _, _| true);
            Ok(sums.close(schedule, machine).port_violations)
        };
        match groups.pattern() {
            // Translations map the groups onto each other.
            Some(_) => Ok(u64::from(groups.count()) * cases(0)?),
            None => (0..groups.count()).map(cases).sum(),
        }
    })?
}

/// The bytes of the largest messages of a schedule's steps, each with the number of those steps, in any order. Takes
/// time in proportion to steps times the classes of ranks.
#[must_use]
pub fn largest_messages(schedule: &Schedule) -> Vec<(u128, u64)> {
    let (rule, block_bytes) = (schedule.rule(), schedule.problem.block_bytes);
    let (classes, mut does) = (rule.classes(), Step::default());
    let (mut of_class, mut steps) = (HashMap::new(), HashMap::new());
    for step in 0..rule.steps() {
        let mut read = || {
            let mut largest = 0;
            rule.active(step, &classes, &mut |rank| {
                rule.step(rank, step, &mut does);
                let sent = does.sends.iter().map(|send| send.slots.bytes(block_bytes));
                largest = sent.fold(largest, u128::max);
            });
            largest
        };
        let largest = match rule.class_of_step(step) {
            Some(class) => *of_class.entry(class).or_insert_with(read),
            None => read(),
        };
        *steps.entry(largest).or_default() += 1;
    }
    steps.into_iter().collect()
}

/// Counts traffic by the steps model: barriers between steps, and a shared link charged its whole load.
///
/// # Errors
/// Link counters beyond `memory` bytes.
pub fn steps_model(
    traffic: &dyn Traffic,
    machine: &Machine,
    memory: u128,
) -> Result<Counts, AnalysisError> {
    let counter = Counter::of_traffic(traffic, machine);
    let needed = by_all_threads(counter.memory()) + counter.kept();
    check_memory("link counters", needed, memory)?;
    let sums = counter.each_step(false, |_, _, _| true);
    Ok(sums.charge(machine, traffic.block_bytes(), machine.ranks()))
}
