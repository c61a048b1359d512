use serde::Serialize;
use std::time::Duration;
use topocoll::exec::{Crew, ExecError, Plan, pattern, plan_all};
use topocoll::{
    Block, Collective, Machine, Parameters, Rank, Schedule, check_counting_work, count,
};

use super::exchange;
use crate::machine::{machine, memory, schedule};
use crate::render::{Head, bytes, facts, parameters, print, seconds};
use crate::{Outcome, args};

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    algorithm: String,
    parameters: Parameters,
    driver: &'static str,
    threads: usize,
    repeats: usize,
    verified: bool,
    time_seconds: f64,
    bytes_moved: u64,
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
    let mut machine = machine(&args.common.machine, options)?;
    let schedule = schedule(&mut machine, options, &args.subject)?;
    check_memory(&schedule, memory())?;
    let plans = plan_all(&schedule).map_err(topocoll::Error::from)?;
    let bytes_moved = plans.iter().map(|plan| plan.sent_bytes(schedule.problem.block_bytes)).sum();
    let threads = args
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    let mut crew = Crew::new(plans, threads);
    let found = measure(&mut crew, &schedule, args.repeat)?;
    let predicted = check_counting_work(&schedule, &machine)
        .and_then(|()| count(&schedule, &machine, memory()))
        .map(|counts| counts.time.total());
    let report = Report {
        head: Head::new(&machine, &schedule.problem),
        algorithm: schedule.origin.algorithm.clone(),
        parameters: schedule.origin.parameters.clone(),
        driver: "threads",
        threads: crew.threads(),
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
    print(options.json, &report, || text(&machine, &schedule, &report))?;
    Ok(if report.verified { Outcome::Fine } else { Outcome::Failed })
}

/// Refuses what would not fit, before any memory is taken: the buffers, and one rank's plan and
/// workspace for all.
fn check_memory(schedule: &Schedule, available: u128) -> anyhow::Result<()> {
    let ranks = u128::from(schedule.problem.ranks);
    let (block, blocks) = (schedule.problem.block_bytes, schedule.problem.blocks_at_start());
    let buffers = ranks * (ranks + u128::from(blocks)) * u128::from(block);
    let check = |needed: u128| {
        let refused = ExecError::Memory { needed, available };
        if needed > available { Err(topocoll::Error::from(refused)) } else { Ok(()) }
    };
    check(buffers)?;
    // A rank in the middle is like most.
    let rank = Rank(schedule.problem.ranks / 2);
    let plan = Plan::new(schedule, rank).map_err(topocoll::Error::from)?;
    check(buffers + ranks * (plan.plan_bytes() as u128 + plan.register_bytes(block)))?;
    Ok(())
}

fn measure(crew: &mut Crew, schedule: &Schedule, repeats: usize) -> anyhow::Result<Found> {
    let problem = &schedule.problem;
    let block = problem.block_bytes as usize;
    let mut input = vec![0; problem.ranks as usize * problem.blocks_at_start() as usize * block];
    let mut output = vec![0; problem.ranks as usize * problem.ranks as usize * block];
    pattern::fill(problem, &mut input);
    let (mut times, mut copies, mut wrong) = (Vec::new(), Vec::new(), None);
    for _ in 0..repeats {
        // Both find the output as warm as a fill leaves it.
        output.fill(1);
        copies.push(match problem.operation {
            Collective::AllToAll => crew.plain_copy(&input, &mut output),
            Collective::AllGather => (output.chunks_mut(input.len()))
                .map(|part| crew.plain_copy(&input, part))
                .sum::<Duration>(),
        });
        output.fill(0);
        let timed = crew
            .exchange(problem.block_bytes, &input, &mut output)
            .map_err(topocoll::Error::from)?;
        times.push(timed.elapsed);
        wrong = wrong.or_else(|| pattern::first_wrong(problem, &output));
    }
    Ok(Found { seconds: median(&mut times), plain_copy: median(&mut copies), wrong })
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    let (low, high) = (times[(times.len() - 1) / 2], times[times.len() / 2]);
    (low + high).as_secs_f64() / 2.0
}

fn text(machine: &Machine, schedule: &Schedule, report: &Report) -> String {
    let rate = |time: f64| format!("{:.2} GB/s", report.bytes_moved as f64 / time / 1e9);
    let verdict = report.wrong.clone().unwrap_or_else(|| "every byte of every rank".to_owned());
    let mut rows = vec![
        ("verified", verdict),
        ("sent", format!("{} by {} ranks", bytes(report.bytes_moved), schedule.problem.ranks)),
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
        exchange(machine, &schedule.problem),
        report.algorithm,
        parameters(&report.parameters),
        report.repeats,
        if report.repeats == 1 { "" } else { "s" },
        report.threads,
        if report.threads == 1 { "" } else { "s" },
        facts(rows.iter().map(|(name, value)| (*name, value.clone()))),
    )
}

#[cfg(test)]
mod tests {
    use topocoll::Problem;

    use super::*;

    #[test]
    fn what_fits_in_no_memory_is_refused_with_the_figure() {
        let refused = |block_bytes, available| {
            let machine = topocoll::machine("full:4096").unwrap();
            let problem = Problem::new(Collective::AllToAll, 4096, 1, block_bytes).unwrap();
            let schedule =
                topocoll::plan(&machine, &problem, "pairwise-xor", &Parameters::new()).unwrap();
            check_memory(&schedule, available).err().map(|error| error.to_string())
        };
        let figures = "34359738368 bytes of memory, and 25769803776 may be used";
        assert_eq!(refused(1024, 24 << 30).as_deref(), Some(figures));
        assert_eq!(refused(128, 24 << 30), None);
        // The buffers fit, the plans do not.
        assert!(refused(128, 4 << 30).is_some_and(|error| !error.starts_with("4294967296 ")));
    }
}
