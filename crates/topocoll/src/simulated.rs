use topocoll_analysis::contention::{ContentionModel, Request, Scheduled, in_seconds, simulate};
use topocoll_analysis::{Progress, count};
use topocoll_schedule::Problem;
use topocoll_topology::Machine;

use crate::{Error, Selection, plan};

/// Machines of more ranks are not simulated to select: seconds.
pub const SIMULATE_UP_TO: u32 = 256;

/// Refuses what [`simulate_choices`] would, before there are choices.
///
/// # Errors
/// More ranks than [`SIMULATE_UP_TO`].
pub fn check_simulation(ranks: u32) -> Result<(), Error> {
    if ranks > SIMULATE_UP_TO {
        return Err(Error::TooLargeToSimulate { ranks, most: SIMULATE_UP_TO });
    }
    Ok(())
}

/// Seconds of every choice of a selection by a model in which messages meet, each rank going on by
/// itself; in the order of [`Selection::choices`]. Progress is in messages of all of them.
///
/// # Errors
/// A machine of more than [`SIMULATE_UP_TO`] ranks; of a choice what [`simulate`] refuses.
pub fn simulate_choices(
    machine: &Machine,
    problem: &Problem,
    selection: &Selection,
    model: &'static ContentionModel,
    memory: u128,
    progress: &Progress<'_>,
) -> Result<Vec<f64>, Error> {
    check_simulation(problem.ranks)?;
    let schedules = (selection.choices.iter())
        .map(|choice| plan(machine, problem, choice.algorithm, &choice.parameters))
        .collect::<Result<Vec<_>, _>>()?;
    let mut messages = 0;
    for schedule in &schedules {
        messages += count(schedule, machine, None, memory)?.messages;
    }
    (progress.starting)(u64::try_from(messages).unwrap_or(u64::MAX));
    let seconds = schedules.iter().map(|schedule| {
        let traffic = Scheduled::new(schedule, machine);
        let mut request = Request::new(&traffic, machine, model, memory);
        request.control.progress = Progress { starting: &|_| (), ..*progress };
        Ok(in_seconds(simulate(&request)?.time))
    });
    seconds.collect()
}
