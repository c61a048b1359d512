//! The texts of simulations, and of traffic under the steps model.

use indicatif::HumanCount;
use topocoll::contention::{PlacedRoutes, Ranks, Simulation, in_seconds};
use topocoll::{Machine, Time};

use super::{EndpointValues, Report, StepsReport, Subject, Waited};
use crate::args;
use crate::commands::heading::{assumed, assumed_by};
use crate::render::{Answer, bandwidth, blocks, bytes, duration, facts, seconds};

/// Links of the critical chain shown.
const CHAIN: usize = 6;

/// The assumed values, with the ports of a schedule; a traffic pattern has no ports.
pub(super) fn assumes(machine: &Machine, args: &args::Simulate) -> String {
    match args.traffic {
        Some(_) => assumed(machine),
        None => assumed_by(machine, machine.ports, &args.common.options),
    }
}

pub(super) fn steps_text(
    report: &StepsReport,
    time: Time,
    (about, assumed): (&str, &str),
) -> Answer {
    let rows = [
        ("startup", seconds(time.startup)),
        ("transmission", seconds(time.transmission)),
        ("propagation", seconds(time.propagation)),
        ("rearrangement", seconds(time.rearrangement)),
        ("barrier", seconds(time.barrier)),
        ("steps", report.steps.to_string()),
        ("messages", report.messages.to_string()),
    ];
    Answer::new(format!(
        "{} takes {} by the steps model.",
        report.subject.name,
        seconds(time.total())
    ))
    .about(format!("{about}; barriers between steps."))
    .about(report.subject.replaced())
    .assuming(assumed)
    .notes(facts(rows))
}

pub(super) fn text(
    machine: &Machine,
    found: &Simulation,
    report: &Report,
    (about, assumed): (&str, &str),
) -> Answer {
    let mut rows = vec![("messages", found.messages.to_string())];
    if let Some(rate) = report.rank_bytes_per_second {
        rows.push(("throughput", format!("{} a rank", bandwidth(1.0 / rate))));
    }
    if let Some(endpoint) = &report.endpoint {
        rows.push(("endpoints", endpoint.text()));
    }
    if let Some(routing) = report.routing {
        rows.push(("routing", format!("{routing}, over shortest routes")));
    }
    if found.ranks == Ranks::Classes {
        rows.push(("simulated", format!("one rank of each of {} classes", found.classes)));
    }
    let saturated = found.load.filter(|load| load.saturated);
    if let Some(load) = found.load {
        let rates = format!("offered {:.3}, accepted {:.3}", load.offered, load.accepted);
        rows.push(("load", format!("{rates} flits a node and flit time")));
    }
    if let Some(latency) = found.latencies {
        let of = |time: u64| seconds(in_seconds(time));
        rows.push((
            if saturated.is_some() { "latency so far" } else { "latency" },
            format!(
                "average {}, median {}, 99 % within {}, longest {}",
                seconds(latency.average * 1e-12),
                of(latency.p50),
                of(latency.p99),
                of(latency.max)
            ),
        ));
    }
    if let Some(cycles) = &report.cycles {
        rows.push(("flit times", blocks(cycles.0)));
    }
    if let Some(busy) = found.link_utilisation {
        rows.push(("links busy", format!("{:.1} % of the time, on average", 100.0 * busy)));
    }
    if let Some(most) = report.max_link_bytes {
        rows.push(("busiest link", format!("{most} bytes in all")));
    }
    if let Some((_, link, waited)) = found.busiest.filter(|(.., waited)| *waited > 0) {
        let name = machine.topology.link_name(link);
        let waited = format!("link {name}: {} in all", seconds(in_seconds(waited)));
        rows.push(("waited for most", waited));
    }
    let longest = found
        .steps
        .iter()
        .enumerate()
        .max_by_key(|(i, s)| (s.end - s.start, std::cmp::Reverse(*i)));
    if let Some((step, time)) = longest.filter(|_| found.steps.len() > 1) {
        rows.push((
            "longest step",
            format!("step {step}: {}", seconds(in_seconds(time.end - time.start))),
        ));
    }
    if found.closed_steps > 0 {
        rows.push((
            "steps",
            format!(
                "{} of {} have no shared link; their time is exact without simulation",
                found.closed_steps,
                found.steps.len()
            ),
        ));
    }
    let sync =
        if report.sync == "free" { "no barriers between steps" } else { "barriers between steps" };
    let time = seconds(in_seconds(found.time));
    let (name, model) = (&report.subject.name, report.model);
    let answer = match (&report.deadlock, found.partial) {
        (Some(_), _) => {
            Answer::failed(format!("{name} deadlocks after {time} by the {model} model."))
        }
        (None, true) => Answer::failed(format!(
            "{name} was stopped after {time} of the {model} model, with {} messages delivered.",
            HumanCount(report.messages)
        )),
        (None, false) => match saturated {
            Some(load) => Answer::new(format!(
                "{name} saturates the network by the {model} model: of {:.2} flits it accepts {:.2}.",
                load.offered, load.accepted
            )),
            None => {
                let rate = report.bandwidth.map_or(String::new(), |of| format!(", {}", of.text()));
                Answer::new(format!("{name} takes {time} by the {model} model{rate}."))
            }
        },
    };
    let mut chain = String::new();
    for waited in report.critical_chain.iter().rev().take(CHAIN).rev() {
        let Waited { from, to, step, seconds: at, .. } = waited;
        let what = match (&waited.waited_for, waited.held_by) {
            (Some(link), Some([a, b])) if (a, b) == (*from, *to) => {
                format!("was slowed by others on {link}")
            }
            (Some(link), Some([a, b])) => format!("got {link}, which {a}->{b} had held"),
            _ => "was delivered".to_owned(),
        };
        chain += &format!("  {}: {from}->{to} of step {step} {what}\n", seconds(*at));
    }
    let mut circle = String::new();
    for stuck in report.deadlock.iter().flatten() {
        circle += &format!(
            "  {}->{} of step {} waits for {}\n",
            stuck.from, stuck.to, stuck.step, stuck.waits_for
        );
    }
    answer
        .about(format!("{about}; {sync}."))
        .about(report.subject.replaced())
        .assuming(assumed)
        .assuming(format!(
            "Accuracy: {model} was {}; see Validation in the book.\n",
            report.accuracy
        ))
        .notes(facts(rows))
        .list(&format!("Last of the critical chain ({} events):", found.chain_length), chain)
        .list(
            "These messages wait for each other, each for a channel that the next one holds:",
            circle,
        )
}

impl EndpointValues {
    fn text(&self) -> String {
        let time = |name: &str, value| (value > 0.0).then(|| format!("{name} {}", duration(value)));
        let values = [
            self.window.map(|window| format!("window of {window} messages")),
            self.packet_bytes.map(|size| format!("packets of {}", bytes(size))),
            time("packet overhead", self.packet_overhead_seconds),
            time("message overhead", self.message_overhead_seconds),
            self.order.as_ref().map(|order| format!("order {order}")),
            self.interleave.map(|_| "messages one after the other".to_owned()),
        ];
        values.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl Subject {
    /// A note with the number of routes that are not the schedule's, if any.
    fn replaced(&self) -> String {
        match self.routes {
            Some(PlacedRoutes { given, kept, .. }) if kept < given => format!(
                "{} of {given} messages take the machine's routes: their schedule's routes lead to other nodes.\n",
                given - kept
            ),
            _ => String::new(),
        }
    }
}
