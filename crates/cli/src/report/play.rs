//! A schedule for the page: every message of one rank of each class, what is on the way, and the
//! time of every step.

use std::collections::BTreeMap;

use serde::Serialize;
use topocoll::{
    Block, Clusters, Machine, Parameters, Part as Piece, Rank, RankClasses, Route, Run, Schedule,
    Shape, SlotSet, Step, StepCount, check_counting_work, count_steps,
};

use super::scene::{Part, Scene};
use crate::machine::memory;
use crate::render::parameters;

/// Messages that are written of one schedule at most.
const MESSAGES: usize = 80_000;

/// A schedule that can be played.
///
/// Ranks of a class send the same slots to peers that differ by the same translation, so the page
/// has the messages of one of each. Sets of slots and routes are written once, and named by number.
#[derive(Serialize)]
pub(crate) struct Play {
    algorithm: String,
    setting: String,
    /// What is drawn, as a short form.
    machine: String,
    shape: Kind,
    part: Part,
    /// The numbering by which ranks are translated, and its periods.
    radix: Vec<u32>,
    periods: Vec<u32>,
    /// Blocks in every rank's buffer; 0 where they are not followed.
    slots: u64,
    /// By class, or where a class differs by rank: runs of consecutive receivers, slot after slot;
    /// -1 begins a run of empty slots.
    start: Vec<Vec<i64>>,
    /// Runs of slots: first and count; or first, counts and strides of the inner and outer index,
    /// and the bytes of each block that move where it is not whole.
    sets: Vec<Vec<Vec<i64>>>,
    /// Bytes of each set.
    bytes: Vec<u128>,
    /// Dimension and hops, in turn; the first is the machine's own way.
    routes: Vec<Vec<i64>>,
    steps: Vec<Moves>,
    /// Startup, transmission, propagation, rearrangement and barrier of each step.
    seconds: Vec<[f64; 5]>,
}

/// What moves in a step.
#[derive(Serialize)]
struct Moves {
    /// By class: the peer, the slots sent, the slots received and the route, message after message.
    sends: Vec<Vec<usize>>,
    /// By class, or where a class differs by rank: slots read and slots written, in turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    copies: Vec<Vec<usize>>,
}

/// The machine that is drawn.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum Kind {
    Full {
        ranks: u32,
    },
    Grid {
        sides: Vec<u32>,
        /// What is drawn of them.
        window: Vec<u32>,
        wrap: Vec<bool>,
    },
    Cluster {
        sizes: Vec<u32>,
    },
}

impl Kind {
    fn of(scene: &Scene) -> Self {
        match scene.machine.topology.shape() {
            Shape::Complete => Self::Full { ranks: scene.machine.ranks() },
            Shape::Grid(grid) => Self::Grid {
                sides: grid.sides().to_vec(),
                window: scene.window.clone(),
                wrap: grid.wrap().to_vec(),
            },
            Shape::Clustered(clusters) => {
                Self::Cluster { sizes: Clusters::sizes(clusters).collect() }
            }
        }
    }
}

/// The schedule of a scene, or none if it has too many messages for a page.
pub(super) fn play(scene: &Scene) -> Option<Play> {
    let (schedule, machine) = (&scene.schedule, &scene.machine);
    let (rule, classes) = (schedule.rule(), schedule.rule().classes());
    check_counting_work(schedule, machine).ok()?;
    if u128::from(rule.steps()) * u128::from(classes.count()) > MESSAGES as u128 {
        return None;
    }
    let followed = scene.part != Part::Period;
    let mut names =
        Names { followed, block_bytes: schedule.problem.block_bytes, ..Names::default() };
    names.route(&Route::default());
    let mut steps = Vec::new();
    let mut messages = 0;
    for step in 0..rule.steps() {
        let moves = moves(schedule, &classes, step, &mut names);
        messages += moves.sends.iter().map(|sends| sends.len() / 4).sum::<usize>();
        if messages > MESSAGES {
            return None;
        }
        steps.push(moves);
    }
    Some(Play {
        algorithm: schedule.origin.algorithm.clone(),
        setting: parameters(&schedule.origin.parameters),
        machine: machine.topology.short_form(),
        shape: Kind::of(scene),
        part: scene.part,
        radix: classes.radix().sides().to_vec(),
        periods: classes.periods().to_vec(),
        slots: if followed { rule.slots() } else { 0 },
        start: if followed { start(schedule, &classes) } else { Vec::new() },
        sets: names.sets,
        bytes: names.bytes,
        routes: names.routes,
        steps,
        seconds: seconds(schedule, machine)?,
    })
}

/// What is written once and named by its number.
#[derive(Default)]
struct Names {
    followed: bool,
    block_bytes: u64,
    sets: Vec<Vec<Vec<i64>>>,
    bytes: Vec<u128>,
    routes: Vec<Vec<i64>>,
    known_sets: BTreeMap<(Vec<Vec<i64>>, u128), usize>,
    known_routes: BTreeMap<Vec<i64>, usize>,
}

impl Names {
    fn set(&mut self, set: &SlotSet) -> usize {
        let bytes = set.bytes(self.block_bytes);
        let runs: Vec<_> = match self.followed {
            true => set.runs().iter().map(written).collect(),
            false => Vec::new(),
        };
        let next = self.sets.len();
        let name = *self.known_sets.entry((runs.clone(), bytes)).or_insert(next);
        if name == next {
            self.sets.push(runs);
            self.bytes.push(bytes);
        }
        name
    }

    fn route(&mut self, route: &Route) -> usize {
        let segments = route.segments().iter();
        let way: Vec<i64> = segments.flat_map(|s| [i64::from(s.dimension), s.hops]).collect();
        let next = self.routes.len();
        let name = *self.known_routes.entry(way.clone()).or_insert(next);
        if name == next {
            self.routes.push(way);
        }
        name
    }
}

fn written(run: &Run) -> Vec<i64> {
    let slots = &run.slots;
    let mut out = vec![slots.base as i64, slots.inner.count as i64];
    let plain = slots.outer.count == 1 && slots.inner.stride == 1;
    if !plain || run.part != Piece::Whole {
        out.extend([slots.inner.stride, slots.outer.count as i64, slots.outer.stride]);
    }
    if let Piece::Bytes { first, end } = run.part {
        out.extend([first as i64, end as i64]);
    }
    out
}

fn moves(schedule: &Schedule, classes: &RankClasses, step: u32, names: &mut Names) -> Moves {
    let rule = schedule.rule();
    let (mut does, mut peer_does) = (Step::default(), Step::default());
    let mut sends = Vec::new();
    for rank in (0..classes.count()).map(|class| classes.representative(class)) {
        rule.step(rank, step, &mut does);
        let mut list = Vec::with_capacity(4 * does.sends.len());
        for (i, send) in does.sends.iter().enumerate() {
            let landed = if names.followed {
                rule.step(send.peer, step, &mut peer_does);
                // Messages between two ranks pair in the order listed.
                let nth = does.sends[..i].iter().filter(|other| other.peer == send.peer).count();
                let mut from_here = peer_does.receives.iter().filter(|r| r.peer == rank);
                from_here.nth(nth).map_or(0, |receive| names.set(&receive.slots))
            } else {
                0
            };
            list.extend([
                send.peer.0 as usize,
                names.set(&send.slots),
                landed,
                names.route(&send.route),
            ]);
        }
        sends.push(list);
    }
    let copies = if names.followed { copies(schedule, classes, step, names) } else { Vec::new() };
    Moves { sends, copies }
}

fn copies(
    schedule: &Schedule,
    classes: &RankClasses,
    step: u32,
    names: &mut Names,
) -> Vec<Vec<usize>> {
    let mut does = Step::default();
    let mut all: Vec<Vec<usize>> = Vec::new();
    for rank in (0..schedule.problem.ranks).map(Rank) {
        schedule.rule().step(rank, step, &mut does);
        let named = |copy: &topocoll::LocalCopy| [names.set(&copy.from), names.set(&copy.to)];
        all.push(does.copies.iter().flat_map(named).collect());
    }
    if all.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    by_class(all, classes)
}

/// What each class has, where all ranks of a class have the same.
fn by_class<T: Clone + PartialEq>(all: Vec<T>, classes: &RankClasses) -> Vec<T> {
    let of = |rank: Rank| &all[classes.representative(classes.class_of(rank)).0 as usize];
    if !(0..).zip(&all).all(|(rank, own)| of(Rank(rank)) == own) {
        return all;
    }
    let representatives = (0..classes.count()).map(|class| classes.representative(class));
    representatives.map(|rank| all[rank.0 as usize].clone()).collect()
}

/// The layouts before the first step.
fn start(schedule: &Schedule, classes: &RankClasses) -> Vec<Vec<i64>> {
    let mut layout = Vec::new();
    let mut row = |rank: Rank| -> Vec<Option<Rank>> {
        schedule.rule().starts(rank, &mut layout);
        layout.iter().map(|block| block.map(|Block { to, .. }| to)).collect()
    };
    let rows: Vec<_> = (0..schedule.problem.ranks).map(|rank| row(Rank(rank))).collect();
    let alike = (0..).map(Rank).zip(&rows).all(|(rank, own)| {
        let first = classes.representative(classes.class_of(rank));
        let moved = |to: &Option<Rank>| to.map(|to| classes.translated(to, first, rank));
        rows[first.index()].iter().map(moved).eq(own.iter().copied())
    });
    let kept = match alike {
        true => (0..classes.count()).map(|class| classes.representative(class)).collect(),
        false => (0..schedule.problem.ranks).map(Rank).collect::<Vec<_>>(),
    };
    kept.into_iter().map(|rank| runs(&rows[rank.index()])).collect()
}

/// Runs of consecutive numbers: the first and how many.
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

/// The terms of every step's time; their sums are the schedule's.
fn seconds(schedule: &Schedule, machine: &Machine) -> Option<Vec<[f64; 5]>> {
    let timing = &machine.timing;
    let barrier = timing.barrier.seconds(schedule.problem.ranks);
    let mut moved = false;
    let mut out = Vec::new();
    let each = |_, count: &StepCount| {
        let packed = if timing.gather { 0 } else { count.packed };
        let rearrangement = (count.copied + packed) as f64 * timing.rearrangement_per_byte;
        let barrier = if moved && count.messages > 0 { barrier } else { 0.0 };
        moved |= count.messages > 0;
        out.push([count.startup, count.transmission, count.propagation, rearrangement, barrier]);
    };
    count_steps(schedule, machine, memory(), each).ok()?;
    Some(out)
}

impl Play {
    /// Whether it is of this algorithm and setting.
    pub(super) fn is(&self, algorithm: &str, setting: &Parameters) -> bool {
        self.algorithm == algorithm && self.setting == parameters(setting)
    }
}
