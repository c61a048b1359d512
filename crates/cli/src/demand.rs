//! The demand matrix that a command line names.

use anyhow::Context;
use topocoll::text::value;
use topocoll::{Demand, Drawn, Error, Exchange, Law, Machine, Problem, Routed, check_demand_work};

use crate::args::{Options, Sizes, Subject};
use crate::machine::{self, open, schedule, written};

/// A demand matrix and its name.
pub(crate) struct Named {
    /// Of a trace the mean.
    pub(crate) demand: Demand,
    /// The matrices of a trace of several.
    pub(crate) trace: Vec<Demand>,
    pub(crate) name: String,
}

/// Most sizes of a trace.
const MOST_SIZES: u64 = 1 << 25;

/// The demand matrix of an exchange, if the command line names one, or a trace where `traced`. Its bounds can
/// be computed.
pub(crate) fn sizes(
    exchange: &Exchange<'_>,
    options: &Options,
    sizes: &Sizes,
    traced: bool,
) -> anyhow::Result<Option<Named>> {
    let Some(text) = &sizes.demand else { return Ok(None) };
    check_demand_work(exchange.problem()).map_err(Error::from).context("--demand")?;
    read(exchange.problem(), text, options, traced).map(Some)
}

/// The schedule of the ranks that take part, whose machine has the ports of a file's schedule then, and the demand
/// matrix that an algorithm plans for, if there is one.
pub(crate) fn schedule_of_sizes(
    exchange: &Exchange<'_>,
    machine: &mut Machine,
    options: &Options,
    subject: &Subject,
    sizes: &Sizes,
) -> anyhow::Result<(machine::Named, Option<Named>)> {
    let read = |problem: &_| {
        let read = |text: &String| read(problem, text, options, false);
        sizes.demand.as_ref().map(read).transpose()
    };
    if subject.schedule.is_some() {
        let found = schedule(exchange, machine, options, subject)?;
        let grouped = sizes.demand.is_some() && found.schedule.groups().is_some();
        anyhow::ensure!(
            !grouped,
            "--demand: sizes of all ranks, and the schedule of the file is of groups"
        );
        let sizes = read(&found.schedule.problem)?;
        return Ok((found, sizes));
    }
    let sizes = read(exchange.problem())?;
    let found = match &sizes {
        Some(sizes) => written(&exchange.clone().demand(&sizes.demand)?, subject)?,
        None => written(exchange, subject)?,
    };
    Ok((found, sizes))
}

fn read(problem: &Problem, text: &str, options: &Options, traced: bool) -> anyhow::Result<Named> {
    let one = |demand, name| Ok(Named { demand, trace: Vec::new(), name });
    let law = text.split(':').next();
    if Law::ALL.iter().any(|(name, _)| Some(*name) == law) {
        let drawn: Drawn = text.parse().map_err(Error::from)?;
        let demand = Demand::drawn(problem, drawn).map_err(Error::from);
        let demand = demand.with_context(|| format!("--demand {text}"))?;
        let mean = crate::render::bytes(problem.block_bytes);
        return one(demand, format!("{mean} ({drawn})"));
    }
    if law == Some("zipf") {
        anyhow::ensure!(
            options.block.is_none(),
            "--block is the mean of drawn sizes; `zipf` has tokens of its own size"
        );
        let routed: Routed = text.parse().map_err(Error::from)?;
        let demand = Demand::routed(problem, &routed).map_err(Error::from).context("--demand")?;
        return one(demand, routed.to_string());
    }
    anyhow::ensure!(
        options.block.is_none(),
        "--block is the mean of drawn sizes; `{text}` lists its own sizes"
    );
    let file = open(text.as_ref())
        .context("--demand is a file, or uniform:SEED, power-law:SEED, sparse:SEED, experts:SEED, neighbours:SEED or zipf:EXPONENT,..")?;
    let pairs = u64::from(problem.ranks) * u64::from(problem.blocks_at_start());
    let most = if traced { (MOST_SIZES / pairs).max(1) } else { 1 };
    let trace = Demand::read_trace(problem, file, most as usize).map_err(Error::from);
    let mut trace = trace.with_context(|| text.to_owned())?;
    let name = format!("`{}`", value(text));
    if trace.len() == 1 {
        return one(trace.remove(0), name);
    }
    let name = format!("{name} (mean of {} matrices)", trace.len());
    Ok(Named { demand: Demand::mean_of(&trace), trace, name })
}
