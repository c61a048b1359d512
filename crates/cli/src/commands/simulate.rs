use serde::Serialize;
use topocoll::contention::Scheduled;
use topocoll::{
    Counts, Machine, Parameters, Schedule, Shape, StepCount, check_counting_work, count_steps,
    link_totals,
};

use super::network::Messages;
use super::{conflicts, exchange, network};
use crate::machine::{machine, memory};
use crate::render::{Head, Seconds, bytes, facts, parameters, print, seconds};
use crate::{Outcome, args};

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    algorithm: String,
    parameters: Parameters,
    model: &'static str,
    sync: &'static str,
    #[serde(flatten)]
    seconds: Seconds,
    steps: u64,
    messages: u128,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_utilisation: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_link_bytes: Option<u128>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conflicts: Option<Vec<conflicts::Entry>>,
}

/// The step that takes longest.
#[derive(Default)]
struct Slowest {
    step: u32,
    seconds: f64,
    count: StepCount,
}

pub(crate) fn run(args: &args::Simulate) -> anyhow::Result<Outcome> {
    let options = &args.common.options;
    let mut machine = machine(&args.common.machine, options)?;
    let (settings, rest) = network::settings(args)?;
    if args.model == args::Model::Steps {
        anyhow::ensure!(
            args.sync != Some(args::Sync::Free),
            "--sync free: the steps model is of steps apart by barriers"
        );
        anyhow::ensure!(
            args.csv.is_none() && args.trace.is_none(),
            "--csv and --trace need a model in which messages meet: --model wormhole, flit or fluid"
        );
    } else {
        anyhow::ensure!(
            args.conflicts.is_none(),
            "--conflicts is of the steps model, in which the messages of a step are all at once"
        );
    }
    let schedule = match network::messages(&mut machine, args, rest)? {
        Messages::Schedule(schedule) if args.model == args::Model::Steps => schedule,
        messages => return network::run(&machine, args, settings, &messages),
    };
    check_counting_work(&schedule, &machine).map_err(topocoll::Error::from)?;
    let mut slowest = Slowest::default();
    let counts = count_steps(&schedule, &machine, memory(), |step, count| {
        let seconds = count.startup + count.transmission + count.propagation;
        if seconds > slowest.seconds {
            slowest = Slowest { step, seconds, count: *count };
        }
    })
    .map_err(topocoll::Error::from)?;
    let named = conflicts::find(&Scheduled::new(&schedule, &machine), &machine, args.conflicts)?;
    let named_links = conflicts::entries(&named, &machine, None);
    let report = report(&machine, &schedule, &counts, named_links);
    print(options.json, &report, || {
        let conflicts = conflicts::text(&named, report.conflicts.as_deref());
        text(&machine, &schedule, &report, &slowest) + &conflicts
    })?;
    Ok(Outcome::Fine)
}

fn report(
    machine: &Machine,
    schedule: &Schedule,
    counts: &Counts,
    conflicts: Option<Vec<conflicts::Entry>>,
) -> Report {
    let time = counts.time;
    let on_grid = matches!(machine.topology.shape(), Shape::Grid(_)) && time.total() > 0.0;
    let links = machine.topology.links() as f64;
    Report {
        head: Head::new(machine, &schedule.problem),
        algorithm: schedule.origin.algorithm.clone(),
        parameters: schedule.origin.parameters.clone(),
        model: "steps",
        sync: "barrier",
        seconds: time.into(),
        steps: counts.steps,
        messages: counts.messages,
        link_utilisation: on_grid.then(|| counts.link_seconds / (links * time.total())),
        max_link_bytes: link_totals(schedule, machine).map(|totals| totals.max_link_bytes),
        conflicts,
    }
}

fn text(machine: &Machine, schedule: &Schedule, report: &Report, slowest: &Slowest) -> String {
    let share = |term: f64| {
        format!(
            "{} ({:.1} %)",
            seconds(term),
            100.0 * term / report.seconds.time_seconds.max(f64::MIN_POSITIVE)
        )
    };
    let mut rows = vec![
        ("startup", share(report.seconds.startup_seconds)),
        ("transmission", share(report.seconds.transmission_seconds)),
        ("propagation", share(report.seconds.propagation_seconds)),
        ("rearrangement", share(report.seconds.rearrangement_seconds)),
        ("barrier", share(report.seconds.barrier_seconds)),
        ("steps", report.steps.to_string()),
        ("messages", report.messages.to_string()),
    ];
    if let Some(utilisation) = report.link_utilisation {
        rows.push(("links busy", format!("{:.1} % of the time, on average", 100.0 * utilisation)));
    }
    if let Some(most) = report.max_link_bytes {
        rows.push(("busiest link", format!("{} bytes in all", most)));
    }
    if report.steps > 0 {
        let count = &slowest.count;
        let load = u64::try_from(count.largest_load.max(count.largest_message)).unwrap_or(u64::MAX);
        rows.push((
            "slowest step",
            format!(
                "step {}: {}, {} on its busiest link",
                slowest.step,
                seconds(slowest.seconds),
                bytes(load)
            ),
        ));
    }
    format!(
        "{}\n{} ({}): predicted {} by the steps model, steps apart by barriers\n\n{}",
        exchange(machine, &schedule.problem),
        report.algorithm,
        parameters(&report.parameters),
        seconds(report.seconds.time_seconds),
        facts(rows),
    )
}
