//! The demand matrix that a command line names.

use anyhow::Context;
use topocoll::text::value;
use topocoll::{Demand, Drawn, Error, Law, Machine, Problem};

use crate::args::{Options, Subject};
use crate::machine::{self, exchange, open, schedule, written};

/// A demand matrix and its name.
pub(crate) struct Named {
    pub(crate) demand: Demand,
    pub(crate) name: String,
}

/// The demand matrix of a problem, if the command line names one.
pub(crate) fn sizes(
    problem: &Problem,
    options: &Options,
    text: Option<&str>,
) -> anyhow::Result<Option<Named>> {
    text.map(|text| read(problem, text, options.block.is_some())).transpose()
}

/// The schedule, and the demand matrix that an algorithm plans for, if there is one.
pub(crate) fn schedule_of_sizes(
    machine: &mut Machine,
    options: &Options,
    subject: &Subject,
    text: Option<&str>,
) -> anyhow::Result<(machine::Named, Option<Named>)> {
    if text.is_none() || subject.schedule.is_some() {
        let found = schedule(machine, options, subject)?;
        let sizes = sizes(&found.schedule.problem, options, text)?;
        return Ok((found, sizes));
    }
    let exchange = exchange(machine, options, &crate::args::Part::WHOLE)?;
    let sizes = sizes(exchange.problem(), options, text)?.expect("bug: no demand");
    let found = written(&exchange.demand(&sizes.demand)?, subject)?;
    Ok((found, Some(sizes)))
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
        "--block is the mean of drawn sizes; `{text}` lists its own sizes"
    );
    let file = open(text.as_ref())
        .context("--demand is a file, or uniform:SEED, power-law:SEED, sparse:SEED, experts:SEED or neighbours:SEED")?;
    let demand = Demand::read(problem, file).map_err(Error::from);
    Ok(Named {
        demand: demand.with_context(|| text.to_owned())?,
        name: format!("`{}`", value(text)),
    })
}
