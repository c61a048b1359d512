//! `simulate` under the contention models, and of traffic patterns.

mod answer;

use std::io::BufWriter;

use anyhow::Context;
use serde::{Serialize, Serializer};
use topocoll::contention::{
    AllToAll, ContentionModel, Control, Job, Pattern, Placed, PlacedRoutes, Ranks, Request,
    Routing, Settings, Simulation, Sync, Traffic, in_seconds, simulate, steps_model, write_links,
    write_trace,
};
use topocoll::{
    AnalysisError, Endpoint, Machine, Order, Parameters, Rank, Schedule, Time, link_totals,
};

use self::answer::{assumes, steps_text, text};
use super::heading::{about_sized, title_of};
use super::request::{Messages, model};
use super::{conflicts, heat, request};
use crate::bar::{PROGRESS, starting};
use crate::host::memory;
use crate::machine::{Named, problem};
use crate::render::{Bandwidth, Blocks, Head, Seconds, bytes, print, write_file};
use crate::unfinished::{ended_by, heeding};
use crate::values::ALL_TO_ALL;
use crate::{Outcome, args};

/// The accuracy of a model where queues grow.
const SATURATED: &str =
    "not validated on saturated networks, where latencies grow as long as traffic is sent";

/// Most steps whose times are listed.
const STEPS: usize = 4096;

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    #[serde(flatten)]
    subject: Subject,
    model: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_parameters: Option<ModelParameters>,
    #[serde(skip_serializing_if = "Option::is_none")]
    routing: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<EndpointValues>,
    sync: &'static str,
    method: &'static str,
    time_seconds: f64,
    #[serde(flatten)]
    bandwidth: Option<Bandwidth>,
    messages: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rank_bytes_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_utilisation: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_link_bytes: Option<u128>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_cycles: Option<Latency<Blocks>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cycles: Option<Blocks>,
    /// Flits of a node in a flit time.
    #[serde(skip_serializing_if = "Option::is_none")]
    offered_load: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_load: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saturated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_seconds: Option<Latency<f64>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    step_seconds: Vec<[f64; 2]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    critical_chain: Vec<Waited>,
    critical_chain_length: usize,
    accuracy: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadlock: Option<Vec<Stuck>>,
}

#[derive(Serialize)]
struct StepsReport {
    #[serde(flatten)]
    head: Head,
    #[serde(flatten)]
    subject: Subject,
    model: &'static str,
    sync: &'static str,
    #[serde(flatten)]
    seconds: Seconds,
    steps: u64,
    messages: u128,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_utilisation: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conflicts: Option<Vec<conflicts::Entry>>,
}

/// The sender: an algorithm, algorithms, or a pattern.
#[derive(Default, Serialize)]
struct Subject {
    /// In texts.
    #[serde(skip)]
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    demand: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    algorithm: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Parameters>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traffic: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    schedules: Vec<String>,
    /// Source of the routes of messages on chosen nodes: `schedule`, `machine` or `mixed`.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "whose")]
    routes: Option<PlacedRoutes>,
}

fn whose<S: Serializer>(routes: &Option<PlacedRoutes>, to: S) -> Result<S::Ok, S::Error> {
    routes.as_ref().map(PlacedRoutes::name).serialize(to)
}

#[derive(Serialize)]
struct ModelParameters {
    vcs: u32,
    buffer_flits: u32,
    flit_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    hop_cycles: Option<u32>,
}

/// The values of endpoints that are not the default.
#[derive(Serialize)]
struct EndpointValues {
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    packet_bytes: Option<u64>,
    #[serde(skip_serializing_if = "is_zero")]
    packet_overhead_seconds: f64,
    #[serde(skip_serializing_if = "is_zero")]
    message_overhead_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interleave: Option<&'static str>,
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl EndpointValues {
    fn of(endpoint: &Endpoint) -> Option<Self> {
        (*endpoint != Endpoint::default()).then(|| Self {
            window: endpoint.window,
            packet_bytes: endpoint.packet_bytes,
            packet_overhead_seconds: endpoint.packet_overhead,
            message_overhead_seconds: endpoint.message_overhead,
            order: (endpoint.order != Order::Schedule).then(|| endpoint.order.to_string()),
            interleave: (!endpoint.interleave).then_some("off"),
        })
    }
}

#[derive(Serialize)]
struct Latency<T> {
    average: T,
    max: T,
    p50: T,
    p99: T,
}

#[derive(Serialize)]
struct Waited {
    from: u32,
    to: u32,
    step: u32,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    waited_for: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_by: Option<[u32; 2]>,
}

#[derive(Serialize)]
struct Stuck {
    from: u32,
    to: u32,
    step: u32,
    waits_for: String,
}

/// Simulates and reports everything but a plain schedule under the steps model.
pub(super) fn run(
    machine: &Machine,
    args: &args::Simulate,
    settings: Settings,
    messages: &Messages,
) -> anyhow::Result<Outcome> {
    let block = problem(machine, &args.common.options)?.block_bytes;
    let placed = std::cell::OnceCell::new();
    let (mut subject, head, about);
    let traffic: Box<dyn Traffic + '_> = match messages {
        Messages::Schedule(found) => {
            let (Named { schedule, name }, sizes) = &**found;
            subject = Subject::of(schedule, name);
            subject.demand = sizes.as_ref().map(|sizes| sizes.given.clone());
            head = Head::of_schedule(machine, schedule).in_groups(&args.part);
            about = about_sized(machine, schedule, sizes.as_ref());
            request::traffic(schedule, machine, sizes.as_ref())?
        }
        Messages::Jobs(jobs) => {
            subject = Subject::jobs(jobs);
            head = Head::traffic(machine, jobs[0].schedule.problem.block_bytes);
            about = format!("{} on {}", subject.name, machine.topology.short_form());
            let copies = jobs
                .iter()
                .map(|job| Job { schedule: job.schedule.clone(), nodes: job.nodes.clone() });
            let jobs = Placed::new(machine, copies.collect()).map_err(topocoll::Error::from)?;
            subject.routes = Some(jobs.routes());
            Box::new(placed.get_or_init(|| jobs))
        }
        Messages::Pattern(text) => {
            subject = Subject::pattern(text);
            head = Head::traffic(machine, block);
            let (on, block_text) = (machine.topology.short_form(), bytes(block));
            if text == ALL_TO_ALL {
                about = format!("all messages of {block_text} of an all-to-all at once on {on}");
                Box::new(AllToAll::new(machine, block, memory()).map_err(topocoll::Error::from)?)
            } else {
                about = format!("{text} traffic of {block_text} messages on {on}");
                let flit = settings.flit_bytes;
                let pattern = Pattern::new(machine, text, block, flit, args.cycles, memory());
                let pattern = pattern.map_err(|error| {
                    let is_named = matches!(error, AnalysisError::Pattern { .. });
                    let error = anyhow::Error::from(topocoll::Error::from(error));
                    if is_named { error } else { error.context(format!("--traffic {text}")) }
                });
                Box::new(pattern?)
            }
        }
    };
    heat::check_work(args, &*traffic)?;
    match model(args.model) {
        None => by_steps(machine, args, &*traffic, placed.get(), (subject, head, about)),
        Some(model) => by_model(machine, args, model, settings, &*traffic, (subject, head, about)),
    }
}

fn by_steps(
    machine: &Machine,
    args: &args::Simulate,
    traffic: &dyn Traffic,
    placed: Option<&Placed<'_>>,
    (subject, head, about): (Subject, Head, String),
) -> anyhow::Result<Outcome> {
    starting("counting messages", 0);
    let found = steps_model(traffic, machine, memory()).map_err(topocoll::Error::from)?;
    let named = conflicts::find(traffic, machine, args.conflicts)?;
    heat::draw(args, machine, traffic, &title_of(machine, &about), &subject.name)?;
    let time: Time = found.time;
    let able = machine.topology.links() as f64 * time.total();
    let report = StepsReport {
        head,
        subject,
        model: "steps",
        sync: "barrier",
        seconds: time.into(),
        steps: found.steps,
        messages: found.messages,
        link_utilisation: (able > 0.0).then(|| found.link_seconds / able),
        conflicts: conflicts::entries(&named, machine, placed),
    };
    print(args.common.options.json, &report, || {
        let answer = steps_text(&report, time, (&about, &assumes(machine, args)));
        conflicts::add(answer, &named, report.conflicts.as_deref())
    })?;
    Ok(Outcome::Fine)
}

fn by_model(
    machine: &Machine,
    args: &args::Simulate,
    model: &'static ContentionModel,
    settings: Settings,
    traffic: &dyn Traffic,
    (subject, head, about): (Subject, Head, String),
) -> anyhow::Result<Outcome> {
    let sync = args.sync.map_or(Sync::Free, Sync::from);
    let records = args.trace.is_some() || args.csv.is_some();
    let found = heeding(|stop| {
        let mut request = Request::new(traffic, machine, model, memory());
        (request.settings, request.sync) = (settings, sync);
        (request.records, request.control) = (records, Control { progress: PROGRESS, stop });
        request.ranks = args.method.map(|method| match method {
            args::Ranks::Classes => Ranks::Classes,
            args::Ranks::EveryRank => Ranks::Every,
        });
        simulate(&request)
    })
    .map_err(topocoll::Error::from)
    .with_context(|| format!("--model {}", model.name))?;
    let stopped = found.partial && ended_by().is_some();
    if stopped && found.messages == 0 {
        return Ok(Outcome::Failed);
    }
    // Files do not say that a result is partial.
    if !stopped {
        heat::draw(args, machine, traffic, &title_of(machine, &about), &subject.name)?;
    }
    for (path, trace) in [(&args.trace, true), (&args.csv, false)] {
        let Some(path) = path.as_ref().filter(|_| !stopped) else { continue };
        write_file(path, |file| {
            let mut out = BufWriter::new(file);
            match trace {
                true => write_trace(machine, &found.intervals, &mut out),
                false => write_links(machine, &found.links, &mut out),
            }
            .map_err(|e: AnalysisError| topocoll::Error::from(e).into())
        })?;
    }
    let schedule = traffic.schedule().filter(|_| !stopped);
    let totals = || Some(link_totals(schedule?, machine)?.max_link_bytes);
    let max_link_bytes = found.busiest.map(|(most, ..)| most).or_else(totals);
    let mut report = report(machine, model, &settings, sync, &found, (subject, head));
    report.max_link_bytes = max_link_bytes;
    if !found.partial && report.deadlock.is_none() {
        let of = |schedule| Bandwidth::of(schedule, report.time_seconds);
        report.bandwidth = traffic.schedule().and_then(of);
    }
    if report.subject.traffic.as_deref() == Some(ALL_TO_ALL) && !found.partial {
        let block = problem(machine, &args.common.options)?.block_bytes;
        let sent = u128::from(block) * u128::from(machine.ranks() - 1);
        report.rank_bytes_per_second = Some(sent as f64 / report.time_seconds);
    }
    print(args.common.options.json, &report, || {
        let assumed = assumes(machine, args);
        text(machine, &found, &report, (&about, &assumed))
    })?;
    Ok(if found.partial { Outcome::Failed } else { Outcome::Fine })
}

fn report(
    machine: &Machine,
    model: &ContentionModel,
    settings: &Settings,
    sync: Sync,
    found: &Simulation,
    (subject, mut head): (Subject, Head),
) -> Report {
    head.partial = found.partial;
    let cycle = found.cycle as f64;
    let cycles = |time: f64| Blocks(time / cycle);
    let by_cycle = model.name != "fluid" && found.cycle > 0;
    let stuck = |held: &topocoll::contention::Held| Stuck {
        from: held.from.0,
        to: held.to.0,
        step: held.step,
        waits_for: held.waits_for.clone(),
    };
    Report {
        head,
        subject,
        model: model.name,
        model_parameters: by_cycle.then_some(ModelParameters {
            vcs: settings.vcs,
            buffer_flits: settings.buffer_flits,
            flit_bytes: settings.flit_bytes,
            hop_cycles: settings.hop_cycles,
        }),
        routing: (settings.routing == Routing::Adaptive).then_some("adaptive"),
        endpoint: EndpointValues::of(&machine.endpoint),
        bandwidth: None,
        rank_bytes_per_second: None,
        sync: if sync == Sync::Free { "free" } else { "barrier" },
        method: found.ranks.name(),
        time_seconds: in_seconds(found.time),
        messages: found.messages,
        link_utilisation: found.link_utilisation,
        max_link_bytes: None,
        latency_cycles: found.latencies.filter(|_| by_cycle).map(|latency| Latency {
            average: cycles(latency.average),
            max: cycles(latency.max as f64),
            p50: cycles(latency.p50 as f64),
            p99: cycles(latency.p99 as f64),
        }),
        cycles: by_cycle.then(|| cycles(found.network_time as f64)),
        offered_load: found.load.map(|load| load.offered),
        accepted_load: found.load.map(|load| load.accepted),
        saturated: found.load.map(|load| load.saturated),
        latency_seconds: found.latencies.map(|latency| Latency {
            average: latency.average * 1e-12,
            max: in_seconds(latency.max),
            p50: in_seconds(latency.p50),
            p99: in_seconds(latency.p99),
        }),
        step_seconds: match found.steps.len() {
            0..=STEPS => (found.steps.iter())
                .map(|step| [in_seconds(step.start), in_seconds(step.end)])
                .collect(),
            _ => Vec::new(),
        },
        critical_chain: (found.chain.iter())
            .map(|named| Waited {
                from: named.link.from.0,
                to: named.link.to.0,
                step: named.link.step,
                seconds: in_seconds(named.link.at),
                waited_for: named.channel.clone(),
                held_by: named.link.waited.map(|(_, Rank(from), Rank(to))| [from, to]),
            })
            .collect(),
        critical_chain_length: found.chain_length,
        accuracy: match found.load {
            Some(load) if load.saturated => SATURATED,
            _ => model.accuracy(machine),
        },
        deadlock: (!found.deadlock.is_empty()).then(|| found.deadlock.iter().map(stuck).collect()),
    }
}

impl Subject {
    fn of(schedule: &Schedule, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            algorithm: Some(schedule.origin.algorithm.clone()),
            parameters: Some(schedule.origin.parameters.clone()),
            ..Self::default()
        }
    }

    fn jobs(jobs: &[Job]) -> Self {
        let name = |job: &Job| {
            let Schedule { problem, origin, .. } = &job.schedule;
            format!("{} of {} ranks", origin.algorithm, problem.ranks)
        };
        let schedules: Vec<_> = jobs.iter().map(name).collect();
        Self { name: schedules.join(" and "), schedules, ..Self::default() }
    }

    fn pattern(text: &str) -> Self {
        Self { name: text.to_owned(), traffic: Some(text.to_owned()), ..Self::default() }
    }
}
