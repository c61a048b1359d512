//! The sizes of blocks that a command line names.

use anyhow::Context;
use topocoll::text::value;
use topocoll::{Demand, Drawn, Error, Law, Machine, Problem, Schedule};

use crate::args::{Options, Subject};
use crate::machine::{algorithm, exchange, open, parameters, schedule};

/// Unequal sizes and what they are called.
pub(crate) struct Named {
    pub(crate) demand: Demand,
    pub(crate) name: String,
}

/// The sizes that are named of a problem's blocks.
pub(crate) fn sizes(
    problem: &Problem,
    options: &Options,
    text: Option<&str>,
) -> anyhow::Result<Option<Named>> {
    text.map(|text| read(problem, text, options.block.is_some())).transpose()
}

/// The schedule, and where sizes are named these, for which an algorithm plans.
pub(crate) fn schedule_of_sizes(
    machine: &mut Machine,
    options: &Options,
    subject: &Subject,
    text: Option<&str>,
) -> anyhow::Result<(Schedule, Option<Named>)> {
    if text.is_none() || subject.schedule.is_some() {
        let schedule = schedule(machine, options, subject)?;
        let sizes = sizes(&schedule.problem, options, text)?;
        return Ok((schedule, sizes));
    }
    let exchange = exchange(machine, options, None)?;
    let named = sizes(exchange.problem(), options, text)?.expect("they are named");
    let (name, given) = (algorithm(subject), parameters(subject)?);
    let schedule = exchange.demand(&named.demand)?.schedule(name, &given)?;
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
