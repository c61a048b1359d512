//! The data of the page.

use serde::Serialize;
use topocoll::{
    Choice, Error, Exchange, Fastest, Front, Injection, Line, Machine, Parameters, PerClass,
    Priced, Selection, Sweep, bounds,
};

use super::play::{Play, play};
use super::scene::scene;
use crate::number::{Blocks, parameters, seconds};
use crate::words::{in_full, reason, title};

/// The approximate limit of the bytes of all schedules in a page.
const BYTES: usize = 1_200_000;

/// Block sizes of the sweep, powers of two from 1 B to 1 MiB.
const DOUBLINGS: u32 = 20;

/// Parts of the work that makes a page, whose progress is reported.
pub const PARTS: u64 = 4;

/// Rows of the ranking.
const RANKED: usize = 40;

/// Dominated points in the Pareto front's background.
const BEATEN: usize = 400;

/// The data of a page.
#[derive(Serialize)]
pub(crate) struct Data {
    version: &'static str,
    pub(crate) title: String,
    command: String,
    machine: String,
    topology: String,
    ranks: u32,
    ports: u32,
    operation: &'static str,
    block_bytes: u64,
    timing: Vec<[String; 2]>,
    sources: Vec<(String, String)>,
    reason: String,
    bound: Bound,
    bounds: Vec<Theorem>,
    pub(crate) ranking: Vec<Ranked>,
    more: usize,
    rejected: Vec<[String; 2]>,
    sweep: Drawn,
    front: Points,
    pub(crate) plays: Vec<Play>,
    /// The schedule shown first.
    first: usize,
    /// Algorithms that apply and cannot be played, and why.
    unplayed: Vec<[String; 2]>,
}

#[derive(Serialize)]
struct Bound {
    seconds: f64,
    steps: u64,
    blocks: Blocks,
}

#[derive(Serialize)]
struct Theorem {
    measure: &'static str,
    value: Blocks,
    theorem: String,
    condition: String,
}

#[derive(Serialize)]
pub(crate) struct Ranked {
    pub(crate) algorithm: String,
    pub(crate) setting: String,
    /// Startup, transmission, propagation, rearrangement and barrier.
    seconds: [f64; 5],
    ratio: f64,
    steps: u64,
    blocks: Blocks,
    link_blocks: Blocks,
    sharing: u64,
    exact: bool,
    /// Its position in `plays`.
    #[serde(skip_serializing_if = "Option::is_none")]
    play: Option<usize>,
}

#[derive(Serialize)]
struct Drawn {
    sizes: Vec<u64>,
    bound: Vec<f64>,
    lines: Vec<Curve>,
    fastest: Vec<Leader>,
}

#[derive(Serialize)]
struct Curve {
    algorithm: String,
    floor: bool,
    seconds: Vec<f64>,
    settings: Vec<String>,
}

/// The fastest setting from a block size on.
#[derive(Serialize)]
struct Leader {
    bytes: u64,
    algorithm: String,
    setting: String,
}

#[derive(Serialize)]
struct Points {
    front: Vec<Point>,
    /// Steps and link blocks of some settings that the Pareto front beats.
    beaten: Vec<(u64, Blocks)>,
    /// The number of settings that the Pareto front beats.
    beaten_in_all: usize,
    /// Numbers of steps, and the least link blocks of any schedule of as many.
    least: Vec<(u64, Blocks)>,
}

#[derive(Serialize)]
struct Point {
    algorithm: String,
    setting: String,
    steps: u64,
    link_blocks: Blocks,
    seconds: f64,
}

/// The page's data; a requested algorithm is played first. Calls `done` after each part.
pub(crate) fn gather(
    exchange: &Exchange<'_>,
    asked: Option<(&str, &Parameters)>,
    command: String,
    memory: u128,
    done: &dyn Fn(),
) -> Result<Data, Error> {
    let (machine, problem) = (exchange.machine(), exchange.problem());
    let selection = exchange.select()?;
    let sizes: Vec<u64> = (0..=DOUBLINGS).map(|i| 1 << i).collect();
    done();
    let swept = exchange.sweep(&sizes, &[])?;
    done();
    let found = exchange.front(&[])?;
    done();
    let (plays, unplayed) = plays(exchange, &selection, asked, memory);
    done();
    let ranked = |choice: &Choice| Ranked {
        play: plays.iter().position(|play| play.is(&choice.algorithm, &choice.parameters)),
        ..Ranked::from(choice)
    };
    let of_asked = |play: &Play| asked.is_some_and(|(name, setting)| play.is(name, setting));
    Ok(Data {
        version: env!("CARGO_PKG_VERSION"),
        title: title(machine, problem),
        command,
        machine: machine.name.clone(),
        topology: machine.topology.short_form(),
        ranks: problem.ranks,
        ports: problem.ports,
        operation: problem.operation.name(),
        block_bytes: problem.block_bytes,
        timing: timing(machine),
        sources: machine.sources.clone(),
        reason: reason(&selection, in_full),
        bound: Bound {
            seconds: selection.bound.seconds,
            steps: selection.bound.steps,
            blocks: Blocks(selection.bound.link_blocks),
        },
        bounds: (bounds(problem, machine).into_iter())
            .map(|bound| Theorem {
                measure: bound.measure.name(),
                value: Blocks(bound.value),
                theorem: bound.theorem,
                condition: bound.condition,
            })
            .collect(),
        ranking: selection.choices.iter().take(RANKED).map(ranked).collect(),
        more: selection.choices.len().saturating_sub(RANKED),
        rejected: (selection.rejected.iter())
            .map(|rejected| [rejected.algorithm.clone(), rejected.reason.clone()])
            .collect(),
        sweep: Drawn::from(&swept),
        front: Points::from(&found),
        first: plays.iter().position(of_asked).unwrap_or(0),
        plays,
        unplayed,
    })
}

/// The playable schedules, each algorithm with its best setting, until the page is full.
fn plays(
    exchange: &Exchange<'_>,
    selection: &Selection,
    asked: Option<(&str, &Parameters)>,
    memory: u128,
) -> (Vec<Play>, Vec<[String; 2]>) {
    let best = selection.choices.iter().enumerate();
    let best = best.filter(|(i, choice)| {
        selection.choices[..*i].iter().all(|earlier| earlier.algorithm != choice.algorithm)
    });
    let best = best.map(|(_, choice)| (&*choice.algorithm, &choice.parameters));
    let (mut plays, mut unplayed, mut written) = (Vec::<Play>::new(), Vec::new(), 0);
    for (name, setting) in asked.into_iter().chain(best) {
        if plays.iter().any(|play| play.is(name, setting)) {
            continue;
        }
        let mut refuse = |reason: &str| unplayed.push([name.to_owned(), reason.to_owned()]);
        let Some(scene) = scene(exchange, name, setting) else {
            refuse("the schedule has no period, and no smaller machine has this setting");
            continue;
        };
        let Some(play) = play(&scene, memory) else {
            refuse("too many messages for a page");
            continue;
        };
        let size = serde_json::to_string(&play).map_or(usize::MAX, |text| text.len());
        if !plays.is_empty() && written + size > BYTES {
            refuse("the page is full; --algorithm puts it first");
            continue;
        }
        written += size;
        plays.push(play);
    }
    (plays, unplayed)
}

/// The machine's timing values, formatted.
fn timing(machine: &Machine) -> Vec<[String; 2]> {
    let timing = &machine.timing;
    let classes = machine.topology.link_classes();
    let row = |name: &str, value: String| [name.to_owned(), value];
    let each = |values: &PerClass, show: fn(f64) -> String| match values.is_uniform() {
        true => show(values.of(0)),
        false => {
            let classes = classes.iter().zip(values.values());
            classes.map(|(class, &v)| format!("{class} {}", show(v))).collect::<Vec<_>>().join(", ")
        }
    };
    let rate = |per_byte: f64| match per_byte > 0.0 {
        true => format!("{} GB/s", (1e-7 / per_byte).round() / 100.0),
        false => "no time".to_owned(),
    };
    let mut rows = vec![
        row("values of", timing.name.clone()),
        row("startup of a message", each(&timing.startup, seconds)),
        row("bandwidth of a link", each(&timing.per_byte, rate)),
        row("propagation over a link", each(&timing.per_hop, seconds)),
        row("rearrangement", rate(timing.rearrangement_per_byte)),
        row("barrier", seconds(timing.barrier.seconds(machine.ranks()))),
    ];
    let Injection { rank, node } = timing.injection;
    let limits = [("injection of a rank", rank), ("injection of a node", node)];
    let limits = limits.into_iter().filter(|(_, per_byte)| *per_byte > 0.0);
    rows.extend(limits.map(|(name, per_byte)| row(name, rate(per_byte))));
    rows
}

fn terms(choice: &Choice) -> [f64; 5] {
    let time = &choice.price.time;
    [time.startup, time.transmission, time.propagation, time.rearrangement, time.barrier]
}

impl From<&Choice> for Ranked {
    fn from(choice: &Choice) -> Self {
        Self {
            algorithm: choice.algorithm.clone(),
            setting: parameters(&choice.parameters),
            seconds: terms(choice),
            ratio: choice.bound_ratio,
            steps: choice.price.steps,
            blocks: Blocks(choice.price.blocks),
            link_blocks: Blocks(choice.price.link_blocks),
            sharing: choice.price.link_contention,
            exact: choice.price.priced == Priced::Exactly,
            play: None,
        }
    }
}

impl From<&Sweep> for Drawn {
    fn from(swept: &Sweep) -> Self {
        let curve = |line: &Line| Curve {
            algorithm: line.algorithm.clone(),
            floor: line.points.iter().any(|choice| choice.price.priced == Priced::AtLeast),
            seconds: line.points.iter().map(|choice| choice.price.time.total()).collect(),
            settings: line.points.iter().map(|choice| parameters(&choice.parameters)).collect(),
        };
        let leader = |fastest: &Fastest| Leader {
            bytes: fastest.block_bytes,
            algorithm: fastest.algorithm.clone(),
            setting: parameters(&fastest.parameters),
        };
        Self {
            sizes: swept.block_sizes.clone(),
            bound: swept.bounds.iter().map(|bound| bound.seconds).collect(),
            lines: swept.lines.iter().map(curve).collect(),
            fastest: swept.crossovers.iter().map(leader).collect(),
        }
    }
}

impl From<&Front> for Points {
    fn from(found: &Front) -> Self {
        let point = |choice: &Choice| Point {
            algorithm: choice.algorithm.clone(),
            setting: parameters(&choice.parameters),
            steps: choice.price.steps,
            link_blocks: Blocks(choice.price.link_blocks),
            seconds: choice.price.time.total(),
        };
        let every = found.beaten.len().div_ceil(BEATEN).max(1);
        Self {
            front: found.points.iter().map(point).collect(),
            beaten: (found.beaten.iter().step_by(every))
                .map(|choice| (choice.price.steps, Blocks(choice.price.link_blocks)))
                .collect(),
            beaten_in_all: found.beaten.len(),
            least: (found.least_volumes().into_iter())
                .map(|(steps, least)| (steps, Blocks(least)))
                .collect(),
        }
    }
}
