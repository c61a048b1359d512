//! The sizes of blocks that a command line names.

use anyhow::Context;
use topocoll::text::value;
use topocoll::{Demand, Drawn, Error, Law, Machine, Problem, Schedule, plan_unequal};

use crate::args::{Options, Subject};
use crate::host::memory;
use crate::machine::{algorithm, open, parameters, problem, schedule};

/// Unequal sizes and what they are called.
pub(crate) struct Named {
    pub(crate) demand: Demand,
    pub(crate) name: String,
}

/// The problem, and where sizes are named these; its blocks are then their mean.
pub(crate) fn problem_of_sizes(
    machine: &Machine,
    options: &Options,
    text: Option<&str>,
) -> anyhow::Result<(Problem, Option<Named>)> {
    let mut problem = problem(machine, options)?;
    let Some(text) = text else { return Ok((problem, None)) };
    let named = read(&problem, text, options.block.is_some())?;
    problem.block_bytes = named.demand.mean();
    Ok((problem, Some(named)))
}

/// The schedule, and where sizes are named these, for which an algorithm plans.
pub(crate) fn schedule_of_sizes(
    machine: &mut Machine,
    options: &Options,
    subject: &Subject,
    text: Option<&str>,
) -> anyhow::Result<(Schedule, Option<Named>)> {
    if subject.schedule.is_some() {
        let schedule = schedule(machine, options, subject)?;
        let named = text.map(|text| read(&schedule.problem, text, options.block.is_some()));
        return Ok((schedule, named.transpose()?));
    }
    let (problem, named) = problem_of_sizes(machine, options, text)?;
    let Some(named) = named else { return Ok((schedule(machine, options, subject)?, None)) };
    let (name, given) = (algorithm(subject), parameters(subject)?);
    let schedule = plan_unequal(machine, &problem, &named.demand, name, &given, memory())?;
    Ok((schedule, Some(named)))
}

fn read(problem: &Problem, text: &str, block_given: bool) -> anyhow::Result<Named> {
    let law = text.split(':').next();
    if Law::ALL.iter().any(|(name, _)| Some(*name) == law) {
        let drawn: Drawn = text.parse().map_err(Error::from)?;
        let demand = Demand::drawn(problem, drawn).map_err(Error::from);
        let demand = demand.with_context(|| format!("--demand {text}"))?;
        let mean = crate::render::bytes(problem.block_bytes);
        return Ok(Named { demand, name: format!("{mean} ({drawn})") });
    }
    anyhow::ensure!(
        !block_given,
        "--block is the mean of sizes that are drawn: `{text}` lists its own"
    );
    let file = open(text.as_ref())
        .context("--demand is a file, or uniform:SEED, power-law:SEED, sparse:SEED, experts:SEED or neighbours:SEED")?;
    let demand = Demand::read(problem, file).map_err(Error::from);
    Ok(Named {
        demand: demand.with_context(|| text.to_owned())?,
        name: format!("`{}`", value(text)),
    })
}
