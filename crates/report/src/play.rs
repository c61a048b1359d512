//! A schedule for the page: every message of one rank of each class, its route, and the time of
//! every step.

use serde::Serialize;
use topocoll::{
    Block, Collective, Parameters, Period, Rank, RankClasses, Route, Schedule, Shape, SlotRun,
    SlotSet, Step, check_counting_work,
};

use super::interned::Interned;
use super::network::Network;
use super::packed::{list, lists};
use super::scene::{Extent, Scene};
use super::times::{Model, STEPS, Times, by_steps, cost, priced, simulated};
use crate::number::parameters;

/// The most messages of one schedule.
const MESSAGES: u64 = 80_000;

/// The most steps of one schedule, over all classes: in many of them a rank may be idle.
const RANK_STEPS: u128 = 400_000;

/// The most numbers of one schedule that describe its slots.
const NUMBERS: usize = 1_000_000;

/// Numbers of a run of slots: first, counts and strides of the inner and outer index.
const RUN: usize = 5;

/// A schedule that can be played.
///
/// Ranks of a class send the same slots to peers that differ by the same translation, so the page
/// has the messages of one rank of each class. Sets of slots and routes are numbered, each written
/// once.
#[derive(Serialize)]
pub(crate) struct Play {
    algorithm: String,
    setting: String,
    /// The setting of a smaller machine that does not take the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    drawn_setting: Option<String>,
    /// The short form of the drawn machine.
    machine: String,
    shape: Network,
    part: Extent,
    /// The numbering by which ranks are translated, and its periods.
    radix: Vec<u32>,
    periods: Vec<u32>,
    /// Blocks in every rank's buffer; 0 if the page does not follow blocks.
    slots: u64,
    /// Initial layouts, one for all ranks, by class or by rank: runs of consecutive receivers,
    /// translated to rank 0, slot by slot; -1 begins a run of empty slots.
    #[serde(serialize_with = "lists::<2, _, _, _>")]
    start: Vec<Vec<i64>>,
    /// Runs of slots, [`RUN`] numbers each.
    #[serde(serialize_with = "lists::<RUN, _, _, _>")]
    sets: Vec<Vec<i64>>,
    /// Bytes of each set.
    #[serde(serialize_with = "list")]
    bytes: Vec<u128>,
    /// Dimension, or port, and hops, in turn; on a grid the first is the machine's own.
    routes: Vec<Vec<i64>>,
    steps: Vec<Moves>,
    /// Startup, transmission, propagation, rearrangement and barrier of steps, each written once.
    terms: Vec<[f64; 5]>,
    /// The number of the terms of each step.
    #[serde(serialize_with = "list")]
    seconds: Vec<usize>,
    /// Timelines, that of the steps model first.
    times: Vec<Times>,
    /// Why the contention model has no timeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    untimed: Option<String>,
}

/// The messages of a step.
#[derive(Serialize)]
struct Moves {
    /// By class: the peer, the slots sent, the slots received and the route of each message.
    #[serde(serialize_with = "lists::<4, _, _, _>")]
    sends: Vec<Vec<usize>>,
    /// By class, or by rank if ranks of a class differ: slots read and slots written, in turn.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "lists::<2, _, _, _>")]
    copies: Vec<Vec<usize>>,
}

/// A contention model, and the seconds of one core that are left for simulations, by estimate.
pub(super) struct Simulations<'a> {
    pub(super) model: Option<&'a Model>,
    pub(super) left: f64,
}

/// The schedule of a scene; `None` if it has too many messages for a page. If the slots are too many,
/// they are omitted. `setting` is the one of the whole machine.
pub(super) fn play(
    scene: &Scene,
    setting: &Parameters,
    simulations: &mut Simulations<'_>,
    memory: u128,
) -> Option<Play> {
    let Scene { schedule, machine, .. } = scene;
    let (rule, classes) = (schedule.rule(), classes(scene));
    check_counting_work(schedule, machine).ok()?;
    if u128::from(rule.steps()) * u128::from(classes.count()) > RANK_STEPS {
        return None;
    }
    let slots = rule.slots();
    // All ranks get a block of an all-gather, or it does not arrive.
    let of_all = schedule.groups().is_none() || schedule.problem.operation == Collective::AllToAll;
    let followed = of_all && scene.part != Extent::Period
        || slots <= NUMBERS as u64 && members_are_equivalent(schedule);
    let ranks = every(scene, &classes);
    let mut play = played(scene, &classes, &ranks, followed)?;
    let numbers = play.start.iter().map(Vec::len).sum::<usize>()
        + play.sets.iter().map(Vec::len).sum::<usize>();
    if numbers > NUMBERS {
        play = played(scene, &classes, &ranks, false)?;
    }
    let own = std::mem::replace(&mut play.setting, parameters(setting));
    play.drawn_setting = (own != play.setting).then_some(own);
    add_times(&mut play, scene, (&classes, &ranks), simulations, memory)?;
    Some(play)
}

/// Adds the terms of every step's time, and the timelines.
fn add_times(
    play: &mut Play,
    scene: &Scene,
    (classes, ranks): (&RankClasses, &[Rank]),
    simulations: &mut Simulations<'_>,
    memory: u128,
) -> Option<()> {
    let found = priced(scene, memory)?;
    play.times.extend(by_steps(scene, &found, classes, ranks));
    if let Some(model) = simulations.model {
        let cost = cost(scene, model, &found);
        let added = if cost <= simulations.left {
            simulations.left -= cost;
            simulated(scene, model, classes, ranks, memory)
        } else {
            Err("the estimated time of its simulation exceeds the time that the page has left"
                .to_owned())
        };
        match added {
            Ok(times) => play.times.push(times),
            Err(reason) => play.untimed = Some(format!("{} model: {reason}", model.0.name)),
        }
    }
    let mut terms = Interned::default();
    play.seconds = found.terms.iter().map(|step| terms.name(step.map(f64::to_bits))).collect();
    play.terms = terms.all.into_iter().map(|step| step.map(f64::from_bits)).collect();
    Some(())
}

/// The translations with which the page moves messages: not along sides that are twisted, and between
/// single ranks.
fn classes(scene: &Scene) -> RankClasses {
    let topology = &*scene.machine.topology;
    match topology.shape() {
        Shape::Grid(_) | Shape::Complete => scene.schedule.rule().classes(),
        Shape::Clustered(_) if topology.link_numbers() == 0 => scene.schedule.rule().classes(),
        Shape::Graph(_) | Shape::Clustered(_) => RankClasses::distinct(topology.ranks()),
    }
}

/// The ranks that are drawn, or one of each class.
fn every(scene: &Scene, classes: &RankClasses) -> Vec<Rank> {
    match scene.part {
        Extent::Period => (0..classes.count()).map(|class| classes.representative(class)).collect(),
        Extent::Whole | Extent::Smaller => (0..scene.machine.ranks()).map(Rank).collect(),
    }
}

fn played(scene: &Scene, classes: &RankClasses, every: &[Rank], followed: bool) -> Option<Play> {
    let (schedule, machine) = (&scene.schedule, &scene.machine);
    let rule = schedule.rule();
    let mut names =
        Names { followed, block_bytes: schedule.problem.block_bytes, ..Names::default() };
    names.route(&Route::default());
    let period = Period::of(rule, classes.clone(), MESSAGES)?;
    let steps = (0..rule.steps()).map(|step| moves(scene, &period, every, step, &mut names));
    let steps = steps.collect();
    let (sets, bytes) = names.sets.all.into_iter().unzip();
    Some(Play {
        algorithm: schedule.origin.algorithm.clone(),
        setting: parameters(&schedule.origin.parameters),
        drawn_setting: None,
        machine: machine.topology.short_form(),
        shape: Network::of(scene),
        part: scene.part,
        radix: classes.radix().sides().to_vec(),
        periods: classes.periods().to_vec(),
        slots: if followed { rule.slots() } else { 0 },
        start: if followed { start(schedule, classes, every) } else { Vec::new() },
        sets,
        bytes,
        routes: names.routes.all,
        steps,
        terms: Vec::new(),
        seconds: Vec::new(),
        times: Vec::new(),
        untimed: None,
    })
}

/// Numbered values, each written once.
#[derive(Default)]
struct Names {
    followed: bool,
    block_bytes: u64,
    /// Sets of slots, with their bytes.
    sets: Interned<(Vec<i64>, u128)>,
    routes: Interned<Vec<i64>>,
}

impl Names {
    fn set(&mut self, set: &SlotSet) -> usize {
        let runs = match self.followed {
            true => written(set),
            false => Vec::new(),
        };
        self.sets.name((runs, set.bytes(self.block_bytes)))
    }

    fn route(&mut self, route: &Route) -> usize {
        let segments = route.segments().iter();
        self.routes.name(segments.flat_map(|s| [i64::from(s.dimension), s.hops]).collect())
    }
}

/// The runs of a set, joined.
fn written(set: &SlotSet) -> Vec<i64> {
    let runs = set.runs().iter().map(|SlotRun { slots, .. }| {
        let (inner, outer) = (&slots.inner, &slots.outer);
        let stride = if inner.count == 1 { 1 } else { inner.stride };
        let apart = if outer.count == 1 { 0 } else { outer.stride };
        [slots.base as i64, inner.count as i64, stride, outer.count as i64, apart]
    });
    compact(runs).concat()
}

/// Runs of the same slots in the same order: neighbouring runs become one run, and equal runs at equal distances
/// its outer index.
fn compact(runs: impl IntoIterator<Item = [i64; RUN]>) -> Vec<[i64; RUN]> {
    let lines = joined(runs, |last, next| {
        let plain = [&*last, &next].iter().all(|run| run[2..] == [1, 1, 0]);
        let joins = plain && next[0] == last[0] + last[1];
        last[1] += if joins { next[1] } else { 0 };
        joins
    });
    joined(lines, |last, next| {
        let far = next[0] - last[0];
        let joins =
            last[1..3] == next[1..3] && next[3] == 1 && (last[3] == 1 || far == last[3] * last[4]);
        if joins {
            last[4] = if last[3] == 1 { far } else { last[4] };
            last[3] += 1;
        }
        joins
    })
}

/// Runs, each of them joined to the one before if `join` does so.
fn joined(
    runs: impl IntoIterator<Item = [i64; RUN]>,
    join: impl Fn(&mut [i64; RUN], [i64; RUN]) -> bool,
) -> Vec<[i64; RUN]> {
    let mut out: Vec<[i64; RUN]> = Vec::new();
    for run in runs {
        if !out.last_mut().is_some_and(|last| join(last, run)) {
            out.push(run);
        }
    }
    out
}

fn moves(scene: &Scene, period: &Period, every: &[Rank], step: u32, names: &mut Names) -> Moves {
    let topology = &*scene.machine.topology;
    let (mut own, empty) = (Route::default(), Route::default());
    let classes = period.classes();
    let mut sends = Vec::new();
    for class in 0..classes.count() {
        let (rank, mut list) = (classes.representative(class), Vec::new());
        let messages = period.step_of(class, step).map_or(&[][..], |does| &does.sends);
        for (place, send) in messages.iter().enumerate() {
            let received = period.received(class, step, place).filter(|_| names.followed);
            let landed = received.map_or(0, |receive| names.set(&receive.slots));
            let send = classes.placed(rank, send);
            list.extend([
                send.peer.0 as usize,
                names.set(&send.slots),
                landed,
                names.route(match topology.shape() {
                    Shape::Grid(_) => &send.route,
                    _ if topology.link_numbers() == 0 => &empty,
                    _ => send.route_from(rank, topology, &mut own),
                }),
            ]);
        }
        sends.push(list);
    }
    let copies = match names.followed {
        true => copies(&scene.schedule, classes, every, step, names),
        false => Vec::new(),
    };
    Moves { sends, copies }
}

fn copies(
    schedule: &Schedule,
    classes: &RankClasses,
    every: &[Rank],
    step: u32,
    names: &mut Names,
) -> Vec<Vec<usize>> {
    let mut does = Step::default();
    let mut all: Vec<Vec<usize>> = Vec::new();
    for &rank in every {
        schedule.rule().step(rank, step, &mut does);
        let named = |copy: &topocoll::LocalCopy| [names.set(&copy.from), names.set(&copy.to)];
        all.push(does.copies.iter().flat_map(named).collect());
    }
    if all.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    by_class(all, classes, every)
}

/// Rows by rank, or by class if those of each class are equal. A part has one rank of each class.
fn by_class<T: PartialEq + Clone>(rows: Vec<T>, classes: &RankClasses, every: &[Rank]) -> Vec<T> {
    let first = |class| &rows[classes.representative(class).index()];
    let equal = |(&rank, own): (&Rank, &T)| first(classes.class_of(rank)) == own;
    match rows.len() == classes.radix().ranks() as usize && every.iter().zip(&rows).all(equal) {
        true => (0..classes.count()).map(|class| first(class).clone()).collect(),
        false => rows,
    }
}

/// Whether, in each class, a distant rank has its representative's copies and initial layout.
fn members_are_equivalent(schedule: &Schedule) -> bool {
    let (rule, classes) = (schedule.rule(), schedule.rule().classes());
    let (mut does, mut expected) = (Step::default(), Step::default());
    let mut layout = Vec::new();
    (0..classes.count()).all(|class| {
        let first = classes.representative(class);
        let far = (0..classes.periods().len()).fold(first, |rank, u| {
            let period = classes.periods()[u];
            classes.radix().shifted(rank, u, i64::from(classes.radix().sides()[u] - period))
        });
        let mut starts = |rank| as_of_first(schedule, &classes, rank, &mut layout);
        starts(first) == starts(far)
            && (0..rule.steps()).all(|step| {
                rule.step(first, step, &mut expected);
                rule.step(far, step, &mut does);
                expected.copies == does.copies
            })
    })
}

/// The initial layouts, translated to rank 0: one if all are equal, one per class if those of each
/// class are equal, otherwise all.
fn start(schedule: &Schedule, classes: &RankClasses, every: &[Rank]) -> Vec<Vec<i64>> {
    let mut layout = Vec::new();
    let start = |&rank: &Rank| runs(&as_of_first(schedule, classes, rank, &mut layout));
    let mut rows = by_class(every.iter().map(start).collect(), classes, every);
    if rows.iter().all(|own| *own == rows[0]) {
        rows.truncate(1);
    }
    rows
}

/// The receivers in a rank's initial layout, translated with the rank to rank 0.
fn as_of_first(
    schedule: &Schedule,
    classes: &RankClasses,
    rank: Rank,
    layout: &mut Vec<Option<Block>>,
) -> Vec<Option<Rank>> {
    schedule.rule().initial_layout(rank, layout);
    let seen = |block: &Block| classes.displacement(rank, block.to);
    layout.iter().map(|block| block.as_ref().map(seen)).collect()
}

/// Runs of consecutive numbers: the first and the length.
fn runs(row: &[Option<Rank>]) -> Vec<i64> {
    let mut out: Vec<i64> = Vec::new();
    for to in row {
        let number = to.map_or(-1, |to| i64::from(to.0));
        let at = out.len();
        let continues = at > 0
            && match out[at - 2] {
                -1 => number == -1,
                first => number == first + out[at - 1],
            };
        match continues {
            true => out[at - 1] += 1,
            false => out.extend([number, 1]),
        }
    }
    out
}

impl Play {
    /// Whether it is of this algorithm and setting.
    pub(super) fn is(&self, algorithm: &str, setting: &Parameters) -> bool {
        self.algorithm == algorithm && self.setting == parameters(setting)
    }

    /// Seconds by the contention model, on the machine itself.
    pub(super) fn simulated(&self) -> Option<f64> {
        let own = self.times.iter().find(|times| times.model != STEPS);
        own.filter(|_| self.part != Extent::Smaller).map(|times| times.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_runs_have_the_same_slots_in_the_same_order() {
        let slots = |runs: &[[i64; RUN]]| {
            let of = |&[first, count, stride, rows, apart]: &[i64; RUN]| {
                let row = move |i| (0..count).map(move |j| first + i * apart + j * stride);
                (0..rows).flat_map(row)
            };
            runs.iter().flat_map(of).collect::<Vec<_>>()
        };
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((random >> 33) % below) as i64
        };
        for _ in 0..2000 {
            let mut first = 0;
            let runs = (0..12).map(|_| {
                first += [next(3), 8, -4][next(3) as usize];
                let count = 1 + next(3);
                let stride = if count == 1 { 1 } else { 1 + next(2) };
                let rows = 1 + next(5) / 4;
                [first, count, stride, rows, if rows == 1 { 0 } else { next(9) }]
            });
            let runs: Vec<_> = runs.collect();
            assert_eq!(slots(&compact(runs.clone())), slots(&runs), "{runs:?}");
        }
        let rows = [[5, 2], [7, 1], [13, 3], [21, 1], [22, 2]].map(|[at, n]| [at, n, 1, 1, 0]);
        assert_eq!(compact(rows), [[5, 3, 1, 3, 8]]);
    }
}
