use serde::Serialize;
use std::time::Duration;
use topocoll::exec::{
    ExecError, Plan, ThreadedDriver, UnequalPlan, pattern, plan_all, unequal_all,
    worthwhile_threads,
};
use topocoll::{Block, Collective, Demand, Error, Machine, Parameters, Problem, Rank, Schedule};

use super::{plural, title_of_sizes};
use crate::demand::{Named, schedule_of_sizes};
use crate::host::{check_threads, cores, memory};
use crate::machine::{exchange, machine};
use crate::render::{Head, bytes, facts, parameters, print, seconds};
use crate::{Outcome, args};

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    #[serde(skip_serializing_if = "Option::is_none")]
    demand: Option<String>,
    algorithm: String,
    parameters: Parameters,
    driver: &'static str,
    threads: usize,
    repeats: usize,
    verified: bool,
    time_seconds: f64,
    bytes_moved: u128,
    plain_copy_seconds: f64,
    /// None for a machine too large to count on.
    predicted_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wrong: Option<String>,
}

/// What the exchanges showed.
struct Found {
    seconds: f64,
    plain_copy: f64,
    wrong: Option<(Rank, Block, u64)>,
}

pub(crate) fn run(args: &args::Run) -> anyhow::Result<Outcome> {
    let options = &args.common.options;
    let whole = machine(&args.common.machine, options)?;
    let exchange = exchange(&whole, options, args.ranks.as_ref())?;
    let mut machine = exchange.machine().clone();
    let (schedule, sizes) =
        schedule_of_sizes(&mut machine, options, &args.subject, args.demand.as_deref())?;
    let demand = sizes.as_ref().map(|sizes| &sizes.demand);
    check_threads(args.threads.unwrap_or(1))?;
    let threads = |bytes| args.threads.unwrap_or_else(|| cores().min(worthwhile_threads(bytes)));
    let driver = match demand {
        None => equal_driver(&schedule, threads),
        Some(demand) => unequal_driver(&schedule, demand, threads),
    };
    let (mut driver, bytes_moved) = driver.map_err(|error| match error {
        Error::Exec(ExecError::Memory { .. }) => {
            let what = title_of_sizes(&machine, &schedule.problem, sizes.as_ref());
            anyhow::Error::from(error).context(what)
        }
        other => other.into(),
    })?;
    let found = measure(&mut driver, &schedule, demand, args.repeat)?;
    let exchange = match demand {
        Some(demand) => exchange.demand(demand)?,
        None => exchange,
    };
    let counts = exchange.count(&schedule);
    let predicted = counts.map(|counts| counts.time.total());
    let report = Report {
        head: Head::new(&machine, &schedule.problem),
        demand: args.demand.clone(),
        algorithm: schedule.origin.algorithm.clone(),
        parameters: schedule.origin.parameters.clone(),
        driver: "threads",
        threads: driver.threads(),
        repeats: args.repeat,
        verified: found.wrong.is_none(),
        time_seconds: found.seconds,
        bytes_moved,
        plain_copy_seconds: found.plain_copy,
        predicted_seconds: predicted.ok(),
        wrong: found.wrong.map(|(rank, block, at)| {
            format!("rank {rank} holds a wrong byte {at} of block {block}")
        }),
    };
    print(options.json, &report, || text(&machine, &schedule, sizes.as_ref(), &report))?;
    Ok(if report.verified { Outcome::Fine } else { Outcome::Failed })
}

/// Refuses what would not fit.
fn fits(needed: u128, available: u128) -> Result<(), Error> {
    let refused = ExecError::Memory { needed, available };
    if needed > available { Err(refused.into()) } else { Ok(()) }
}

/// Refuses what would not fit, before any memory is taken: the buffers, and one rank's plan and
/// workspace for all.
fn check_memory(schedule: &Schedule, available: u128) -> Result<(), Error> {
    let ranks = u128::from(schedule.problem.ranks);
    let (input, output) = equal_buffers(&schedule.problem);
    fits(input + output, available)?;
    let plan = middle(schedule)?;
    let registers = plan.register_bytes(schedule.problem.block_bytes);
    let plans = ranks * (plan.plan_bytes() as u128 + registers);
    fits(input + output + plans, available)
}

/// A rank in the middle is like most.
fn middle(schedule: &Schedule) -> Result<Plan, Error> {
    Ok(Plan::new(schedule, Rank(schedule.problem.ranks / 2))?)
}

/// The driver, and the bytes that an exchange sends.
fn equal_driver(
    schedule: &Schedule,
    threads: impl Fn(u128) -> usize,
) -> Result<(ThreadedDriver, u128), Error> {
    check_memory(schedule, memory())?;
    let plans = plan_all(schedule)?;
    let block = schedule.problem.block_bytes;
    let sent = plans.iter().map(|plan| plan.sent_bytes(block)).sum();
    let (_, output) = equal_buffers(&schedule.problem);
    Ok((ThreadedDriver::new(plans, threads(output)), sent))
}

/// The same for blocks of unequal sizes; their workspace is known when they have been planned for.
fn unequal_driver(
    schedule: &Schedule,
    demand: &Demand,
    threads: impl Fn(u128) -> usize,
) -> Result<(ThreadedDriver, u128), Error> {
    let (ranks, available) = (u128::from(schedule.problem.ranks), memory());
    // Two offsets for each pair at the least, before the sizes of that many are drawn.
    fits(16 * ranks * ranks, available)?;
    let plan = middle(schedule)?;
    let plans = ranks * (plan.plan_bytes() + UnequalPlan::bytes_beside(&plan)) as u128;
    let (input, output) = unequal_buffers(&schedule.problem, demand);
    fits(input + output + plans, available)?;
    let plans_of_all = unequal_all(&plan_all(schedule)?, demand)?;
    let held: u128 = plans_of_all.iter().map(|plan| u128::from(plan.held_bytes())).sum();
    fits(input + output + plans + held, available)?;
    let sent = plans_of_all.iter().map(|plan| plan.sent_bytes()).sum();
    Ok((ThreadedDriver::unequal(plans_of_all, threads(output)), sent))
}

/// Bytes of all inputs and all outputs.
fn equal_buffers(problem: &Problem) -> (u128, u128) {
    let all = u128::from(problem.ranks) * u128::from(problem.block_bytes);
    (all * u128::from(problem.blocks_at_start()), all * u128::from(problem.ranks))
}

/// The same of blocks of unequal sizes.
fn unequal_buffers(problem: &Problem, demand: &Demand) -> (u128, u128) {
    let sum = |rank| demand.row(rank).map(u128::from).sum::<u128>();
    let input = (0..problem.ranks).map(Rank).map(sum).sum();
    match problem.operation {
        Collective::AllToAll => (input, input),
        Collective::AllGather => (input, input * u128::from(problem.ranks)),
    }
}

fn measure(
    driver: &mut ThreadedDriver,
    schedule: &Schedule,
    demand: Option<&Demand>,
    repeats: usize,
) -> Result<Found, Error> {
    let problem = &schedule.problem;
    let (input, output) = match demand {
        Some(demand) => unequal_buffers(problem, demand),
        None => equal_buffers(problem),
    };
    let (mut input, mut output) = (vec![0; input as usize], vec![0; output as usize]);
    match demand {
        Some(demand) => pattern::fill_unequal(problem, demand, &mut input),
        None => pattern::fill(problem, &mut input),
    }
    let (mut times, mut copies, mut wrong) = (Vec::new(), Vec::new(), None);
    for _ in 0..repeats {
        // Both find the output as warm as a fill leaves it.
        output.fill(1);
        copies.push(match problem.operation {
            Collective::AllToAll => driver.plain_copy(&input, &mut output)?,
            Collective::AllGather => (output.chunks_mut(input.len().max(1)))
                .map(|part| driver.plain_copy(&input, part))
                .sum::<Result<Duration, ExecError>>()?,
        });
        output.fill(0);
        let timed = match demand {
            Some(_) => driver.exchange_again(&input, &mut output)?,
            None => driver.exchange(problem.block_bytes, &input, &mut output)?,
        };
        times.push(timed.elapsed);
        wrong = wrong.or_else(|| match demand {
            Some(demand) => pattern::first_wrong_unequal(problem, demand, &output),
            None => pattern::first_wrong(problem, &output),
        });
    }
    Ok(Found { seconds: median(&mut times), plain_copy: median(&mut copies), wrong })
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    let (low, high) = (times[(times.len() - 1) / 2], times[times.len() / 2]);
    (low + high).as_secs_f64() / 2.0
}

fn text(machine: &Machine, schedule: &Schedule, sizes: Option<&Named>, report: &Report) -> String {
    let rate = |time: f64| format!("{:.2} GB/s", report.bytes_moved as f64 / time / 1e9);
    let verdict = report.wrong.clone().unwrap_or_else(|| "every byte of every rank".to_owned());
    let mut rows = vec![
        ("verified", verdict),
        (
            "sent",
            format!(
                "{} by {} ranks",
                bytes(u64::try_from(report.bytes_moved).unwrap_or(u64::MAX)),
                schedule.problem.ranks
            ),
        ),
        ("median time", format!("{}, {}", seconds(report.time_seconds), rate(report.time_seconds))),
        ("plain copy of the result", seconds(report.plain_copy_seconds)),
    ];
    if let Some(predicted) = report.predicted_seconds {
        rows.push((
            "predicted",
            format!("{} by timing {}", seconds(predicted), machine.timing.name),
        ));
    }
    format!(
        "{}\n{} ({}), {} exchange{} on {} thread{} of this computer\n\n{}",
        title_of_sizes(machine, &schedule.problem, sizes),
        report.algorithm,
        parameters(&report.parameters),
        report.repeats,
        plural(report.repeats),
        report.threads,
        plural(report.threads),
        facts(rows.iter().map(|(name, value)| (*name, value.clone()))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_in_no_memory_is_refused_with_the_figure() {
        let refused = |block_bytes, available| {
            let machine = topocoll::machine("full:4096").unwrap();
            let problem = Problem::new(Collective::AllToAll, 4096, 1, block_bytes).unwrap();
            let exchange = topocoll::Exchange::new(&machine, &problem).unwrap();
            let schedule = exchange.schedule("pairwise-xor", &Parameters::new()).unwrap();
            check_memory(&schedule, available).err().map(|error| error.to_string())
        };
        let figures = "34359738368 bytes of memory, and 25769803776 may be used";
        assert_eq!(refused(1024, 24 << 30).as_deref(), Some(figures));
        assert_eq!(refused(128, 24 << 30), None);
        // The buffers fit, the plans do not.
        assert!(refused(128, 4 << 30).is_some_and(|error| !error.starts_with("4294967296 ")));
    }
}
