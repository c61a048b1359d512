//! Steps that need no simulation: no link and no port is shared in them, and their messages meet no
//! others. Their times are those of messages alone.

use topocoll_schedule::{RankClasses, Sync};
use topocoll_topology::{Ports, Rank};

use super::clock::{Clock, Picoseconds};
use super::run::{Outcome, StepTime};
use super::simulation::Request;
use super::survey::{Survey, handed};
use crate::AnalysisError;
use crate::counts::count_steps;
use crate::step_count::{StepCount, Sums};
use crate::traffic::Share;

/// Without barriers, runs of fewer messages are simulated whole: they report every link and the
/// chain of causes.
const MESSAGES: u128 = 1 << 18;

/// The most steps whose counts are kept.
const STEPS: u32 = 1 << 16;

/// The steps that need no simulation.
pub(crate) struct Closed {
    /// By step. Without barriers these are the first ones.
    pub(crate) steps: Vec<bool>,
    /// Seconds that links are busy in them.
    pub(crate) link_seconds: f64,
    /// Without barriers: their results, and when each class begins the first step after them.
    pub(crate) first: Outcome,
    pub(crate) starts: Vec<Picoseconds>,
}

/// Finds these steps: under barriers those without shared links and port violations, without barriers
/// the first ones of a large run, as long as all messages of a step are delivered before the next one
/// begins to send. Messages of several ports share the injection.
pub(crate) fn closed(
    request: &Request<'_>,
    clock: &Clock<'_>,
    survey: &Survey,
    classes: &RankClasses,
) -> Result<Closed, AnalysisError> {
    let (traffic, machine) = (request.traffic, request.machine);
    let steps = traffic.steps();
    let mut found = Closed {
        steps: vec![false; steps as usize],
        link_seconds: 0.0,
        first: Outcome::default(),
        starts: vec![0; classes.count() as usize],
    };
    let free = request.sync == Sync::Free;
    let wanted = request.model.closed_form
        && !request.records
        && !request.timeline
        && !(free && (survey.messages < MESSAGES || steps > STEPS));
    let Some(schedule) = traffic.schedule().filter(|_| wanted) else { return Ok(found) };
    let alone = schedule.problem.both_ports() == Ports::from(1);
    let injects_all = alone || machine.timing.injection.is_unlimited();
    if !injects_all || survey.sends > clock.window() {
        return Ok(found);
    }
    let mut sums = Sums::default();
    let mut counts: Vec<StepCount> = Vec::new();
    count_steps(schedule, machine, None, request.memory, |step, count| {
        let alone = count.link_contention <= 1 && count.port_violations == 0;
        match free {
            true if alone && counts.len() == step as usize => counts.push(*count),
            false if alone => {
                found.steps[step as usize] = true;
                sums.add(count);
            }
            _ => {}
        }
    })?;
    if free {
        let apart = apart(request, clock, classes, counts.len() as u32);
        let mut shares = Shares::new(request, clock, classes);
        for (step, count) in (0..apart).zip(&counts) {
            found.steps[step as usize] = true;
            sums.add(count);
            shares.step(step, &mut found.starts, Some(&mut found.first));
        }
    }
    found.link_seconds = sums.charge(machine, 1, machine.ranks()).link_seconds;
    Ok(found)
}

/// The number of steps, at most `most`, that end before the next one sends.
fn apart(request: &Request<'_>, clock: &Clock<'_>, classes: &RankClasses, most: u32) -> u32 {
    let mut shares = Shares::new(request, clock, classes);
    let mut starts = vec![0; classes.count() as usize];
    let (mut apart, mut last) = (0, None);
    for step in 0..request.traffic.steps().min(most + 1) {
        let Some([first, delivered]) = shares.step(step, &mut starts, None) else { continue };
        if last.is_some_and(|last| first <= last) {
            return apart;
        }
        (apart, last) = (step, Some(delivered));
    }
    if most == request.traffic.steps() { most } else { apart }
}

/// Steps of which every message is alone.
pub(crate) struct Shares<'a> {
    request: &'a Request<'a>,
    clock: &'a Clock<'a>,
    classes: &'a RankClasses,
    share: Share,
    /// When each class begins the step.
    begins: Vec<Picoseconds>,
}

impl<'a> Shares<'a> {
    pub(crate) fn new(
        request: &'a Request<'a>,
        clock: &'a Clock<'a>,
        classes: &'a RankClasses,
    ) -> Self {
        Self { request, clock, classes, share: Share::default(), begins: Vec::new() }
    }

    /// Moves the starts of a step, by class, to those of the next one, and adds the step to `out`.
    /// Returns when its first message enters the network and its last one is delivered.
    pub(crate) fn step(
        &mut self,
        step: u32,
        starts: &mut [Picoseconds],
        mut out: Option<&mut Outcome>,
    ) -> Option<[Picoseconds; 2]> {
        let Self { request, clock, classes, share, begins } = self;
        let equivalent = u64::from(request.traffic.nodes() / classes.count());
        let mut time = StepTime { start: Picoseconds::MAX, end: 0 };
        let mut ends = None;
        begins.clear();
        begins.extend_from_slice(starts);
        for (class, &begin) in (0..).zip(&*begins) {
            let node: Rank = classes.representative(class);
            request.traffic.share(node, step, share);
            time.start = time.start.min(begin);
            let begin = begin.saturating_add(clock.rearrangement(share.copied));
            time.end = time.end.max(begin);
            let own = &mut starts[class as usize];
            *own = (*own).max(begin);
            for (place, send) in share.sends.iter().enumerate() {
                let latency = clock
                    .transmission(node, send.to, &send.route, send.bytes)
                    .saturating_add(clock.propagation(node, &send.route));
                let handed = handed(clock, node, send, clock.ready(begin, place));
                let end = handed.saturating_add(latency);
                for class in [class, classes.class_of(send.to)] {
                    let ready = &mut starts[class as usize];
                    *ready = (*ready).max(end);
                }
                let [first, last] = ends.get_or_insert([handed, end]);
                (*first, *last) = ((*first).min(handed), (*last).max(end));
                if let Some(out) = &mut out {
                    out.messages += equivalent;
                    out.latencies.add_many(latency, equivalent);
                }
            }
        }
        if let Some(out) = out {
            time.end = ends.map_or(time.end, |[_, last]: [_; 2]| time.end.max(last));
            out.end = out.end.max(time.end);
            let first = ends.map(|[first, _]| first);
            out.first_handed = [out.first_handed, first].into_iter().flatten().min();
            out.steps.push(time);
        }
        ends
    }
}
