use topocoll_analysis::contention::{
    ContentionModel, Control, Request, Scheduled, Settings, Sync, in_seconds, simulate,
};
use topocoll_schedule::Problem;
use topocoll_topology::Machine;

use crate::{Error, Selection, plan};

/// Machines of more ranks are not simulated to select: seconds.
pub const SIMULATE_UP_TO: u32 = 256;

/// Seconds of every choice of a selection by a model in which messages meet, each rank going on by
/// itself; in the order of [`Selection::choices`], one simulated when the next is asked for.
///
/// # Errors
/// A machine of more than [`SIMULATE_UP_TO`] ranks; of a choice what [`simulate`] refuses.
pub fn simulate_choices(
    machine: &Machine,
    problem: &Problem,
    selection: &Selection,
    model: &'static ContentionModel,
    memory: u128,
) -> Result<impl ExactSizeIterator<Item = Result<f64, Error>>, Error> {
    if problem.ranks > SIMULATE_UP_TO {
        return Err(Error::TooLargeToSimulate { ranks: problem.ranks, most: SIMULATE_UP_TO });
    }
    Ok(selection.choices.iter().map(move |choice| {
        let schedule = plan(machine, problem, choice.algorithm, &choice.parameters)?;
        let found = simulate(&Request {
            traffic: &Scheduled::new(&schedule, machine),
            machine,
            model,
            settings: Settings::default(),
            sync: Sync::Free,
            memory,
            records: false,
            control: Control { starting: &|_| (), stop: &|| false, delivered: &|_| () },
        })?;
        Ok(in_seconds(found.time))
    }))
}
