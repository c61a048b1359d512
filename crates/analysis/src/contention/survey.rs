//! A survey of all traffic before the simulation: its memory, and its times without contention.

use rayon::prelude::*;
use topocoll_schedule::RankClasses;
use topocoll_topology::{Machine, Segment, Shape, parallel};

use super::clock::{Clock, Picoseconds};
use crate::AnalysisError;
use crate::error::check_work;
use crate::traffic::{Share, Traffic};

/// The most shares visited: a quarter of a minute.
const WORK_LIMIT: u128 = 1 << 28;

/// Steps of a batch, which are in memory at once.
const BATCH: u32 = 4096;

/// One step.
#[derive(Clone, Copy, Default)]
pub(crate) struct StepSurvey {
    pub(crate) messages: u64,
    /// The longest time of a node without contention.
    pub(crate) alone: Picoseconds,
}

/// All steps.
#[derive(Default)]
pub(crate) struct Survey {
    pub(crate) steps: Vec<StepSurvey>,
    pub(crate) messages: u128,
    /// Most messages that one node sends in a step.
    pub(crate) sends: usize,
    /// Links on all routes together.
    pub(crate) all_hops: u128,
    /// Most links on a route.
    pub(crate) hops: u64,
    /// Whether a message goes more than half around a side that wraps.
    pub(crate) goes_far: bool,
    /// Whether a message must take a route that is not in dimension order.
    pub(crate) turns_back: bool,
}

/// When a message enters the network whose overheads end at `ready`.
pub(crate) fn handed(
    clock: &Clock<'_>,
    from: topocoll_topology::Rank,
    send: &crate::traffic::Posted,
    ready: Picoseconds,
) -> Picoseconds {
    ready
        .saturating_add(clock.rearrangement(send.packed.into()))
        .saturating_add(clock.startup((from, send.to), &send.route, send.bytes))
        .saturating_add(send.cycle.saturating_mul(clock.cycle))
}

/// Visits every step of one node of each of the classes common to the traffic and the machine.
pub(crate) fn survey(
    traffic: &dyn Traffic,
    machine: &Machine,
    clock: &Clock<'_>,
    classes: &RankClasses,
) -> Result<Survey, AnalysisError> {
    let needed = u128::from(classes.count()) * u128::from(traffic.steps());
    check_work("visiting all messages", needed, WORK_LIMIT)?;
    let mut survey = Survey::default();
    for batch in (0..traffic.steps()).step_by(BATCH as usize) {
        let batch = batch..traffic.steps().min(batch.saturating_add(BATCH));
        let steps: Vec<Survey> = parallel::each(batch)
            .map_init(Share::default, |share, step| {
                one_step(traffic, machine, clock, classes, step, share)
            })
            .collect();
        for step in steps {
            survey.add(step);
        }
    }
    Ok(survey)
}

impl Survey {
    fn add(&mut self, step: Self) {
        self.steps.extend(step.steps);
        self.messages += step.messages;
        self.sends = self.sends.max(step.sends);
        self.all_hops += step.all_hops;
        self.hops = self.hops.max(step.hops);
        self.goes_far |= step.goes_far;
        self.turns_back |= step.turns_back;
    }
}

fn one_step(
    traffic: &dyn Traffic,
    machine: &Machine,
    clock: &Clock<'_>,
    classes: &RankClasses,
    number: u32,
    share: &mut Share,
) -> Survey {
    let alike = u64::from(traffic.nodes() / classes.count());
    let mut survey = Survey::default();
    let mut step = StepSurvey::default();
    for node in (0..classes.count()).map(|class| classes.representative(class)) {
        traffic.share(node, number, share);
        let begin = clock.rearrangement(share.copied);
        survey.sends = survey.sends.max(share.sends.len());
        step.alone = step.alone.max(begin);
        step.messages += alike * share.sends.len() as u64;
        for (place, send) in share.sends.iter().enumerate() {
            let travels = clock
                .transmission(node, send.to, &send.route, send.bytes)
                .saturating_add(clock.propagation(node, &send.route));
            let end = handed(clock, node, send, clock.ready(begin, place)).saturating_add(travels);
            step.alone = step.alone.max(end);
            survey.hops = survey.hops.max(send.route.hops());
            survey.all_hops += u128::from(alike) * u128::from(send.route.hops());
            if let Shape::Grid(grid) = machine.topology.network() {
                let ascends = |two: &[Segment]| two[0].dimension < two[1].dimension;
                survey.turns_back |= !send.free && !send.route.segments().windows(2).all(ascends);
                survey.goes_far |= send.route.segments().iter().any(|segment| {
                    let u = segment.dimension as usize;
                    grid.wrap()[u] && 2 * segment.hops.unsigned_abs() > grid.sides()[u].into()
                });
            }
        }
    }
    survey.messages = step.messages.into();
    survey.steps.push(step);
    survey
}
