use serde::Serialize;
use topocoll::{
    Counts, Machine, Parameters, Schedule, StepCount, Time, check_counting_work, count,
    count_steps, link_totals,
};

use super::heading::{about_sized, assumed_by, title_of};
use super::request::{Messages, traffic};
use super::{IN_TURN, conflicts, heat, network, request};
use crate::bar::{PROGRESS, starting};
use crate::error::say;
use crate::host::memory;
use crate::machine::{Named, machine};
use crate::render::{Answer, Bandwidth, Head, Seconds, bytes, check_files, facts, print, seconds};
use crate::values::Model;
use crate::{Outcome, args};

/// Characters of a bar for all of the time.
const SHARE_BAR: f64 = 20.0;

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    #[serde(skip_serializing_if = "Option::is_none")]
    demand: Option<String>,
    algorithm: String,
    parameters: Parameters,
    model: &'static str,
    sync: &'static str,
    #[serde(flatten)]
    seconds: Seconds,
    #[serde(flatten)]
    bandwidth: Option<Bandwidth>,
    steps: u64,
    messages: u128,
    /// Cases that exceed the ports, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    port_violations: Option<u64>,
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
    heat::check(args, &machine)?;
    let files = [("--heatmap", &args.heatmap), ("--csv", &args.csv), ("--trace", &args.trace)];
    check_files(&files.map(|(option, path)| (option, path.as_deref())))?;
    let (settings, rest) = request::settings(&mut machine, args)?;
    let (Named { schedule, name }, sizes) = match request::messages(&mut machine, args, rest)? {
        Messages::Schedule(found) if args.model == Model::Steps => *found,
        messages => {
            note_shared_ports(&machine, &messages);
            return network::run(&machine, args, settings, &messages);
        }
    };
    let demand = sizes.as_ref().map(|sizes| &sizes.demand);
    if demand.is_none() {
        check_counting_work(&schedule, &machine).map_err(topocoll::Error::from)?;
    }
    let mut slowest = Slowest::default();
    starting("counting steps", schedule.rule().steps().into());
    let counts = count_steps(&schedule, &machine, demand, memory(), |step, count| {
        slowest.look_at(step, count, &machine);
        (PROGRESS.done)(1);
    })
    .map_err(topocoll::Error::from)?;
    starting("counting links", 0);
    let traffic = traffic(&schedule, &machine, sizes.as_ref())?;
    heat::check_work(args, &*traffic)?;
    let conflicts = conflicts::find(&*traffic, &machine, args.conflicts)?;
    let about = about_sized(&machine, &schedule, sizes.as_ref());
    heat::draw(args, &machine, &*traffic, &title_of(&machine, &about), &name)?;
    let named_links = conflicts::entries(&conflicts, &machine, None);
    let mut report = report(&machine, args, &schedule, &counts, named_links);
    report.demand = sizes.map(|sizes| sizes.given);
    report.bandwidth = report.bandwidth.filter(|_| report.demand.is_none());
    // Of blocks of one size.
    let totals = link_totals(&schedule, &machine).filter(|_| report.demand.is_none());
    report.max_link_bytes = totals.map(|totals| totals.max_link_bytes);
    print(options.json, &report, || {
        let assumed = assumed_by(&machine, schedule.problem.both_ports(), options);
        let answer = text(&name, (&about, &assumed), &report, &slowest);
        conflicts::add(answer, &conflicts, report.conflicts.as_deref())
    })?;
    Ok(Outcome::Fine)
}

/// Says that a model of the network does not know the ports that groups share.
fn note_shared_ports(machine: &Machine, messages: &Messages) {
    let Messages::Schedule(found) = messages else { return };
    let schedule = &found.0.schedule;
    let counts = schedule.groups().and_then(|_| count(schedule, machine, None, memory()).ok());
    if counts.is_some_and(|counts| counts.port_violations > 0) {
        say(
            "note: groups share ports, at which they take turns in the steps model only; --injection limits in every model what they carry",
        );
    }
}

impl Slowest {
    fn look_at(&mut self, step: u32, count: &StepCount, machine: &Machine) {
        let Time { startup, transmission, propagation, .. } = count.time(machine, 1);
        let seconds = startup + transmission + propagation;
        if seconds > self.seconds {
            *self = Self { step, seconds, count: *count };
        }
    }
}

fn report(
    machine: &Machine,
    args: &args::Simulate,
    schedule: &Schedule,
    counts: &Counts,
    conflicts: Option<Vec<conflicts::Entry>>,
) -> Report {
    let time = counts.time;
    let bandwidth = Bandwidth::of(schedule, time.total());
    let able = machine.topology.links() as f64 * time.total();
    Report {
        head: Head::of_schedule(machine, schedule).in_groups(&args.part),
        demand: None,
        algorithm: schedule.origin.algorithm.clone(),
        parameters: schedule.origin.parameters.clone(),
        model: "steps",
        sync: "barrier",
        seconds: time.into(),
        bandwidth,
        steps: counts.steps,
        messages: counts.messages,
        port_violations: Some(counts.port_violations).filter(|&cases| cases > 0),
        link_utilisation: (able > 0.0).then(|| counts.link_seconds / able),
        max_link_bytes: None,
        conflicts,
    }
}

fn text(name: &str, (about, assumed): (&str, &str), report: &Report, slowest: &Slowest) -> Answer {
    let rate = report.bandwidth.map_or(String::new(), |of| format!(", {}", of.text()));
    let share = |term: f64| {
        let share = term / report.seconds.time_seconds.max(f64::MIN_POSITIVE);
        let bar = "\u{2588}".repeat((SHARE_BAR * share).round() as usize);
        format!("{:9}  {:5.1} %  {bar}", seconds(term), 100.0 * share).trim_end().to_owned()
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
    if let Some(cases) = report.port_violations {
        rows.push(("ports", format!("exceeded in {cases} cases: {IN_TURN}")));
    }
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
                "step {}: {}, {} on its busiest {}",
                slowest.step,
                seconds(slowest.seconds),
                bytes(load),
                if count.largest_message > count.largest_load && count.port_violations > 0 {
                    "port"
                } else {
                    "link"
                }
            ),
        ));
    }
    Answer::new(format!(
        "{name} takes {} by the steps model{rate}.",
        seconds(report.seconds.time_seconds),
    ))
    .about(format!("{about}; barriers between steps."))
    .assuming(assumed)
    .notes(facts(rows))
}
