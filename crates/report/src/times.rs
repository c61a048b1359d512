//! The times of a schedule for the page: of each step, and of what each rank does in it, by the steps
//! model and by a contention model.

use serde::Serialize;
use topocoll::contention::{
    ContentionModel, RankStep, Request, Scheduled, Settings, Timeline, estimate, in_seconds,
    simulate, steps_timeline,
};
use topocoll::{AnalysisError, Counts, Rank, RankClasses, StepCount, Time, count_steps};

use super::interned::Interned;
use super::packed::{list, lists};
use super::scene::Scene;

/// The most numbers of one timeline.
const NUMBERS: usize = 120_000;

/// The most steps of ranks of one timeline.
const ENTRIES: usize = 1_000_000;

/// The reason for a missing timeline.
const LONG: &str = "its timeline is too long for a page";

/// Ranks of a word.
const WORD: usize = 16;

/// Parts of the total time in which a timeline is written.
const PARTS: u64 = 1_000_000;

/// The name of the steps model.
pub(super) const STEPS: &str = "steps";

/// A contention model with its settings.
pub type Model = (&'static ContentionModel, Settings);

/// When ranks copy, send and receive, by one model.
#[derive(Serialize)]
pub(super) struct Times {
    pub(super) model: &'static str,
    pub(super) seconds: f64,
    /// The unit of all times.
    unit: f64,
    /// When all ranks begin each step; empty if each rank goes on by itself.
    #[serde(serialize_with = "list")]
    starts: Vec<u64>,
    /// When copies are done, when the first message to the rank is posted, when the last message from it
    /// and the last message to it are delivered, from the rank's beginning of the step; each written once.
    #[serde(serialize_with = "lists::<4, _, _, _>")]
    names: Vec<[i64; 4]>,
    /// Names of consecutive ranks, or classes; each written once.
    #[serde(serialize_with = "lists::<1, _, _, _>")]
    words: Vec<Vec<usize>>,
    /// By step: words of the names by class, or by rank if ranks of a class differ; one name if all are
    /// equal.
    #[serde(serialize_with = "lists::<1, _, _, _>")]
    steps: Vec<Vec<usize>>,
}

/// The terms of every step's time, whose sums are the schedule's, and its counts.
pub(super) struct Priced {
    pub(super) terms: Vec<[f64; 5]>,
    counts: Counts,
}

/// Prices every step by the steps model; `None` beyond `memory` bytes.
pub(super) fn priced(scene: &Scene, memory: u128) -> Option<Priced> {
    let Scene { schedule, machine, .. } = scene;
    let barrier = machine.timing.barrier.seconds(schedule.participants());
    let mut moved = false;
    let mut terms = Vec::new();
    let each = |_, count: &StepCount| {
        let Time { startup, transmission, propagation, rearrangement, .. } =
            count.time(machine, schedule.problem.block_bytes);
        let barrier = if moved && count.messages > 0 { barrier } else { 0.0 };
        moved |= count.messages > 0;
        terms.push([startup, transmission, propagation, rearrangement, barrier]);
    };
    let counts = count_steps(schedule, machine, None, memory, each).ok()?;
    Some(Priced { terms, counts })
}

/// The timeline of the steps model, if it is not too long.
pub(super) fn by_steps(
    scene: &Scene,
    priced: &Priced,
    classes: &RankClasses,
    ranks: &[Rank],
) -> Option<Times> {
    let Scene { schedule, machine, .. } = scene;
    let steps: Vec<_> = priced.terms.iter().map(|terms| [terms.iter().sum(), terms[3]]).collect();
    if is_long(ranks, steps.len()) {
        return None;
    }
    let traffic = Scheduled::new(schedule, machine);
    let timeline = steps_timeline(&traffic, machine, &steps).ok()?;
    let seconds = steps.iter().map(|[seconds, _]| seconds).sum();
    written(STEPS, seconds, &timeline, (classes, ranks), steps.len())
}

/// Seconds of one core that a simulation takes, by estimate.
pub(super) fn cost(scene: &Scene, (model, settings): &Model, priced: &Priced) -> f64 {
    let Scene { schedule, machine, .. } = scene;
    let found = estimate(schedule, machine, model, settings, priced.counts.bytes);
    found.map_or(f64::INFINITY, |estimate| estimate.seconds)
}

/// The timeline of a contention model, without barriers.
///
/// # Errors
/// The reason for a missing time.
pub(super) fn simulated(
    scene: &Scene,
    (model, settings): &Model,
    classes: &RankClasses,
    ranks: &[Rank],
    memory: u128,
) -> Result<Times, String> {
    let Scene { schedule, machine, .. } = scene;
    let steps = schedule.rule().steps() as usize;
    if is_long(ranks, steps) {
        return Err(LONG.to_owned());
    }
    let traffic = Scheduled::new(schedule, machine);
    let mut request = Request::new(&traffic, machine, model, memory);
    (request.settings, request.timeline) = (*settings, true);
    let found = simulate(&request).map_err(|error: AnalysisError| error.to_string())?;
    if !found.deadlock.is_empty() {
        return Err("its messages deadlock".to_owned());
    }
    let seconds = in_seconds(found.time);
    let timeline = found.timeline.as_ref().filter(|_| steps > 0);
    let timeline = timeline.ok_or_else(|| "the schedule has no steps".to_owned())?;
    written(model.name, seconds, timeline, (classes, ranks), steps).ok_or_else(|| LONG.to_owned())
}

/// Whether a timeline is too long before it is written.
fn is_long(ranks: &[Rank], steps: usize) -> bool {
    ranks.len() * steps > ENTRIES
}

/// A timeline of these ranks, if it is not too long.
fn written(
    model: &'static str,
    seconds: f64,
    timeline: &Timeline,
    (classes, ranks): (&RankClasses, &[Rank]),
    steps: usize,
) -> Option<Times> {
    let first = |rank| classes.representative(classes.class_of(rank));
    let equal = (0..steps as u32).all(|step| {
        ranks.iter().all(|&rank| timeline.of(rank, step) == timeline.of(first(rank), step))
    });
    let representatives: Vec<_> =
        (0..classes.count()).map(|class| classes.representative(class)).collect();
    let ranks = if equal { &representatives } else { ranks };
    let unit = ((seconds * 1e12) as u64 / PARTS).max(1);
    let whole = |time: u64| (time + unit / 2) / unit;
    let (mut names, mut words) = (Interned::default(), Interned::default());
    let mut starts = Vec::new();
    let mut written = Vec::with_capacity(steps);
    for step in 0..steps as u32 {
        let name = |rank: &Rank| {
            let &RankStep { begin, copied, posted, sent, received, .. } = timeline.of(*rank, step);
            let after = |time| whole(time) as i64 - whole(begin) as i64;
            names.name([copied, posted.unwrap_or(received), sent, received].map(after))
        };
        let mut own: Vec<_> = ranks.iter().map(name).collect();
        if own.iter().all(|name| *name == own[0]) {
            own.truncate(1);
        }
        written.push(own.chunks(WORD).map(|word| words.name(word.to_vec())).collect::<Vec<_>>());
        if model == STEPS {
            starts.push(whole(timeline.of(ranks[0], step).begin));
        }
    }
    let numbers = 4 * names.all.len()
        + words.all.iter().map(Vec::len).sum::<usize>()
        + written.iter().map(Vec::len).sum::<usize>();
    (numbers <= NUMBERS).then_some(Times {
        model,
        seconds,
        unit: unit as f64 * 1e-12,
        starts,
        names: names.all,
        words: words.all,
        steps: written,
    })
}
