use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use topocoll::exec::{
    BlockSizes, ExecError, Plan, PlannedSizes, ThreadedDriver, pattern, worthwhile_threads,
};
use topocoll::{
    Block, Collective, Demand, Error, Exchange, Parameters, Problem, Rank, Schedule, Sync,
};

use super::heading::{about_demand, assumed_by};
use super::plural;
use crate::bar::{PROGRESS, starting};
use crate::demand::schedule_of_sizes;
use crate::host::{check_threads, cores, memory};
use crate::machine::{Named, exchange, machine};
use crate::render::{Answer, Head, bytes, facts, print, seconds};
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
    sync: Sync,
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

/// Results of the exchanges.
struct Found {
    seconds: f64,
    plain_copy: f64,
    wrong: Option<(Rank, Block, u64)>,
}

pub(crate) fn run(args: &args::Run) -> anyhow::Result<Outcome> {
    let options = &args.common.options;
    let whole = machine(&args.common.machine, options)?;
    let exchange = exchange(&whole, options, &args.part)?;
    let mut machine = exchange.machine().clone();
    let (Named { schedule, name }, sizes) =
        schedule_of_sizes(&exchange, &mut machine, options, &args.subject, &args.sizes)?;
    anyhow::ensure!(
        schedule.groups().is_none(),
        "the schedule of the file is of groups: run --groups moves blocks by an --algorithm"
    );
    let demand = sizes.as_ref().map(|sizes| &sizes.demand);
    check_threads(args.threads.unwrap_or(1))?;
    let threads = |bytes| args.threads.unwrap_or_else(|| cores().min(worthwhile_threads(bytes)));
    starting("planning", 0);
    let made = planned(&exchange, &schedule, demand);
    let Planned { plans, sizes: block_sizes, buffers, bytes_moved } =
        made.map_err(|error| match error {
            Error::Exec(ExecError::Memory { .. }) => {
                let what = about_demand(&machine, &schedule.problem, sizes.as_ref());
                anyhow::Error::from(error).context(what)
            }
            other => other.into(),
        })?;
    let sync = args.sync.into();
    let mut driver = ThreadedDriver::new(plans.clone(), threads(buffers.1));
    driver.set_sync(sync);
    let gathers = schedule.problem.operation == Collective::AllGather;
    let found = measure(&mut driver, &plans, &block_sizes, (buffers, gathers), args.repeat)?;
    let exchange = match demand {
        Some(demand) => exchange.demand(demand)?,
        None => exchange,
    };
    starting("counting messages", 0);
    let counts = exchange.count(&schedule);
    let predicted = counts.map(|counts| counts.time.total());
    let report = Report {
        head: Head::new(&machine, &schedule.problem).in_groups(&args.part),
        demand: args.sizes.demand.clone(),
        algorithm: schedule.origin.algorithm.clone(),
        parameters: schedule.origin.parameters.clone(),
        driver: "threads",
        sync,
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
    print(options.json, &report, || {
        let about = about_demand(&machine, &schedule.problem, sizes.as_ref());
        let assumed = assumed_by(&machine, schedule.problem.both_ports(), options);
        text(&name, &about, &assumed, &report)
    })?;
    Ok(if report.verified { Outcome::Fine } else { Outcome::Failed })
}

/// Refuses an exchange that does not fit in memory.
fn fits(needed: u128, available: u128) -> Result<(), Error> {
    let refused = ExecError::Memory { needed, available };
    if needed > available { Err(refused.into()) } else { Ok(()) }
}

/// Refuses an exchange that does not fit, before allocation. Returns the bytes of buffers and
/// plans; each plan counts as a middle rank's of the largest group.
fn check_memory(
    exchange: &Exchange<'_>,
    schedule: &Schedule,
    demand: Option<&Demand>,
    (input, output): (u128, u128),
    available: u128,
) -> Result<u128, Error> {
    let problem = &schedule.problem;
    let ranks = sizes(exchange).map(u128::from).sum::<u128>();
    fits(input + output, available)?;
    let middle = Plan::new(schedule, Rank(problem.ranks / 2))?;
    let (beside, registers) = match demand {
        None => (0, ranks * middle.register_bytes(problem.block_bytes)),
        // Planning determines their registers later.
        Some(_) => (PlannedSizes::bytes_beside(&middle), 0),
    };
    let taken = input + output + ranks * (middle.plan_bytes() + beside) as u128;
    fits(taken + registers, available)?;
    Ok(taken)
}

/// The plans of all ranks that take part, the sizes of their blocks, the bytes of all inputs and all outputs, and
/// the bytes that an exchange sends.
struct Planned {
    plans: Vec<Arc<Plan>>,
    sizes: BlockSizes,
    buffers: (u128, u128),
    bytes_moved: u128,
}

fn planned(
    exchange: &Exchange<'_>,
    schedule: &Schedule,
    demand: Option<&Demand>,
) -> Result<Planned, Error> {
    let available = memory();
    if demand.is_some() {
        // At least two offsets for each pair, which are too many to be looked at, too.
        let pairs = sizes(exchange).map(|ranks| u128::from(ranks).pow(2));
        fits(16 * pairs.sum::<u128>(), available)?;
    }
    let buffers = buffers(exchange, &schedule.problem, demand);
    let taken = check_memory(exchange, schedule, demand, buffers, available)?;
    let plans = exchange.plans(schedule)?;
    let sizes = match demand {
        None => BlockSizes::Equal(schedule.problem.block_bytes),
        Some(demand) => BlockSizes::Planned(Arc::new(PlannedSizes::new(&plans, demand)?)),
    };
    let sum = |of: &dyn Fn(&Plan) -> u128| plans.iter().map(|plan| of(plan)).sum::<u128>();
    fits(taken + sum(&|plan| plan.register_bytes(sizes.clone())), available)?;
    let bytes_moved = sum(&|plan| plan.sent_bytes(sizes.clone()));
    Ok(Planned { plans, sizes, buffers, bytes_moved })
}

/// The ranks of every group; all ranks are one.
fn sizes(exchange: &Exchange<'_>) -> impl Iterator<Item = u32> {
    let groups = exchange.grouped();
    let whole = groups.is_none().then_some(exchange.problem().ranks);
    let each = groups.into_iter().flat_map(|of| of.sizes().cycle().take(of.count() as usize));
    whole.into_iter().chain(each)
}

/// Bytes of all inputs and all outputs.
fn buffers(exchange: &Exchange<'_>, problem: &Problem, demand: Option<&Demand>) -> (u128, u128) {
    let sums = sizes(exchange).map(u128::from).map(|ranks| match demand {
        None => {
            let block = u128::from(problem.block_bytes);
            let gathered = problem.operation == Collective::AllGather;
            (ranks * block * if gathered { 1 } else { ranks }, ranks * ranks * block)
        }
        Some(demand) => {
            let sum = |rank| demand.row(rank).map(u128::from).sum::<u128>();
            let input = (0..problem.ranks).map(Rank).map(sum).sum();
            (input, input * ranks / u128::from(problem.blocks_at_start()))
        }
    });
    sums.fold((0, 0), |all, own| (all.0 + own.0, all.1 + own.1))
}

fn measure(
    driver: &mut ThreadedDriver,
    plans: &[Arc<Plan>],
    sizes: &BlockSizes,
    ((input, output), gathers): ((u128, u128), bool),
    repeats: usize,
) -> Result<Found, Error> {
    let (mut input, mut output) = (vec![0; input as usize], vec![0; output as usize]);
    pattern::fill(plans, sizes.clone(), &mut input);
    let (mut times, mut copies, mut wrong) = (Vec::new(), Vec::new(), None);
    starting("exchanging", repeats as u64);
    for _ in 0..repeats {
        (PROGRESS.done)(1);
        // Both start with the output in the caches as a fill leaves it.
        output.fill(1);
        copies.push(match gathers {
            false => driver.plain_copy(&input, &mut output)?,
            true => (output.chunks_mut(input.len().max(1)))
                .map(|part| driver.plain_copy(&input[..part.len()], part))
                .sum::<Result<Duration, ExecError>>()?,
        });
        output.fill(0);
        times.push(driver.exchange(sizes.clone(), &input, &mut output)?.elapsed);
        wrong = wrong.or_else(|| pattern::first_wrong(plans, sizes.clone(), &output));
    }
    Ok(Found { seconds: median(&mut times), plain_copy: median(&mut copies), wrong })
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    let (low, high) = (times[(times.len() - 1) / 2], times[times.len() / 2]);
    (low + high).as_secs_f64() / 2.0
}

fn text(name: &str, about: &str, assumed: &str, report: &Report) -> Answer {
    let rate = |time: f64| format!("{:.2} GB/s", report.bytes_moved as f64 / time / 1e9);
    let time = seconds(report.time_seconds);
    let answer = match &report.wrong {
        None => Answer::new(format!("{name} takes {time}, and every byte of every rank is right.")),
        Some(wrong) => Answer::failed(format!("{name} is WRONG: {wrong}.")),
    };
    let mut rows = vec![
        ("sent by all ranks", bytes(u64::try_from(report.bytes_moved).unwrap_or(u64::MAX))),
        ("median time", format!("{time}, {} sent", rate(report.time_seconds))),
        ("plain copy of the result", seconds(report.plain_copy_seconds)),
    ];
    if let Some(predicted) = report.predicted_seconds {
        let there = format!("{} on the machine named, not on this computer", seconds(predicted));
        rows.push(("predicted", there));
    }
    answer
        .about(format!(
            "{about}; {} exchange{} on {} thread{} of this computer{}.",
            report.repeats,
            plural(report.repeats),
            report.threads,
            plural(report.threads),
            if report.sync == Sync::Barrier { ", with barriers between steps" } else { "" },
        ))
        .assuming(if report.predicted_seconds.is_some() { assumed } else { "" })
        .notes(facts(rows))
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
            let buffers = buffers(&exchange, &problem, None);
            let checked = check_memory(&exchange, &schedule, None, buffers, available);
            checked.err().map(|error| error.to_string())
        };
        let figures = "34359738368 bytes of memory, but the limit is 25769803776";
        assert_eq!(refused(1024, 24 << 30).as_deref(), Some(figures));
        assert_eq!(refused(128, 24 << 30), None);
        // The buffers fit, the plans do not.
        assert!(refused(128, 4 << 30).is_some_and(|error| !error.starts_with("4294967296 ")));
    }
}
