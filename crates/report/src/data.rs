//! The data of the page.

use serde::Serialize;
use topocoll::{
    Choice, Contention, Endpoint, Error, Exchange, Fastest, Front, Injection, Line, Machine,
    PerClass, Priced, Progress, Rendezvous, Selection, Sweep, bounds,
};

use super::Asked;
use super::demand::DemandHeat;
use super::gains::{Gains, gains};
use super::play::{Play, Simulations, play};
use super::scene::{Scene, scene, stand_in};
use super::settings::{Settings, settings};
use crate::number::{Blocks, bytes, duration, parameters, seconds};
use crate::words::{about_sizes, allowed, in_full, particulars, plural, reason, title, title_of};

/// The most bytes of all schedules in a page, which has less than 2 MB with them, and of all but the first.
const BYTES: usize = 1_600_000;
const OTHERS: usize = 450_000;

/// Block sizes of the sweep, powers of two from 1 B to 1 MiB.
const DOUBLINGS: u32 = 20;

/// Seconds of one core for all simulations, by estimate.
const SIMULATED: f64 = 10.0;

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
    /// Sentences about the machine.
    particulars: Vec<String>,
    ranks: u32,
    ports: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_ports: Option<u32>,
    operation: &'static str,
    block_bytes: u64,
    /// Bytes of a rank of which algorithm bandwidth and bus bandwidth are told, of blocks of one size.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank_bytes: Option<[f64; 2]>,
    /// The sizes of blocks that differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    demand: Option<DemandHeat>,
    timing: Vec<[String; 2]>,
    sources: Vec<(String, String)>,
    reason: String,
    /// Choices that may be faster than the first of the ranking.
    undecided: usize,
    /// The model of the times without barriers, if they rank too.
    #[serde(skip_serializing_if = "Option::is_none")]
    free_model: Option<&'static str>,
    /// The schedule that the page is about, unless it is the best.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<Ranked>,
    /// The contention model.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<Simulator>,
    /// What an MPI library would gain.
    #[serde(skip_serializing_if = "Option::is_none")]
    library: Option<Gains>,
    bound: Bound,
    bounds: Vec<Theorem>,
    /// By algorithm, what its parameters are.
    settings: Settings,
    pub(crate) ranking: Vec<Ranked>,
    more: usize,
    rejected: Vec<[String; 2]>,
    /// Over block sizes, if all ranks exchange blocks of one size with all.
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<Drawn>,
    front: Points,
    pub(crate) plays: Vec<Play>,
    /// The schedule shown first.
    first: usize,
    /// Algorithms that apply and cannot be played, and why.
    unplayed: Vec<[String; 2]>,
}

#[derive(Serialize)]
struct Simulator {
    name: &'static str,
    summary: &'static str,
    accuracy: &'static str,
    endpoint: Option<String>,
}

#[derive(Serialize)]
struct Bound {
    seconds: f64,
    /// Seconds of the bytes that pass what limits the bandwidth.
    transmission: f64,
    limit: &'static str,
    /// `what the bisection allows`.
    allowed: String,
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
    /// Seconds without barriers, if it was simulated and ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    free: Option<f64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deadlock: bool,
    /// Its position in `plays`.
    #[serde(skip_serializing_if = "Option::is_none")]
    play: Option<usize>,
    /// Seconds by the contention model.
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated: Option<f64>,
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

/// The page's data.
pub(crate) fn gather(
    exchange: &Exchange<'_>,
    asked: &Asked<'_>,
    progress: &Progress<'_>,
) -> Result<Data, Error> {
    let (machine, problem) = (exchange.machine(), exchange.problem());
    let mut selection = exchange.select()?;
    let (reason, undecided) = (reason(&selection, in_full), selection.undecided().len());
    // The best comes before those that may be faster.
    if undecided < selection.choices.len() {
        selection.choices[..=undecided].rotate_right(1);
    }
    let sizes: Vec<u64> = (0..=DOUBLINGS).map(|i| 1 << i).collect();
    let demand = exchange.placed_demand();
    let is_plain = exchange.grouped().is_none() && demand.is_none();
    let (swept, found) = match is_plain {
        true => (Some(exchange.sweep(&sizes, &[])?), exchange.front(&[])?),
        // Only a selection counts the messages of other groups, and sizes.
        false => (None, selection.front()),
    };
    let (plays, unplayed) = plays(exchange, &selection, asked, progress);
    let ranked = |choice: &Choice| {
        let play = plays.iter().position(|play| play.is(&choice.algorithm, &choice.parameters));
        let simulated = play.and_then(|play| plays[play].simulated());
        Ranked { play, simulated, ..Ranked::from(choice) }
    };
    let is_asked = |choice: &&Choice| {
        (asked.algorithm).is_some_and(|it| it == (&choice.algorithm, &choice.parameters))
    };
    let wanted = match (selection.choices.iter().find(is_asked), asked.algorithm) {
        (Some(known), _) => Some(ranked(known)),
        (None, Some((name, setting))) => exchange.priced(name, setting)?.as_ref().map(ranked),
        (None, None) => None,
    };
    let of_asked =
        |play: &Play| asked.algorithm.is_some_and(|(name, setting)| play.is(name, setting));
    Ok(Data {
        version: env!("CARGO_PKG_VERSION"),
        title: match asked.demand {
            Some(name) => title_of(machine, &about_sizes(machine, problem, name)),
            None => title(machine, problem),
        },
        command: asked.command.clone(),
        machine: machine.name.clone(),
        topology: machine.topology.short_form(),
        particulars: particulars(machine),
        ranks: problem.ranks,
        ports: problem.ports,
        node_ports: problem.own_node_ports(&*machine.topology),
        operation: problem.operation.name(),
        block_bytes: problem.block_bytes,
        rank_bytes: demand.is_none().then(|| problem.bandwidth(1.0)),
        demand: (demand.as_ref().zip(asked.demand))
            .map(|(demand, name)| DemandHeat::new(name, demand, problem)),
        timing: timing(machine),
        sources: machine.sources.clone(),
        reason,
        undecided,
        free_model: selection.without_barriers.as_ref().map(|found| found.model),
        asked: wanted,
        model: asked.model.map(|(model, _)| Simulator {
            name: model.name,
            summary: model.summary,
            accuracy: model.accuracy(machine),
            endpoint: endpoint(&machine.endpoint),
        }),
        library: asked
            .against
            .as_ref()
            .map(|baseline| gains(baseline, &sizes, exchange, &selection)),
        settings: settings(asked, &selection, swept.as_ref(), &found),
        bound: Bound {
            seconds: selection.bound.seconds,
            transmission: selection.bound.transmission,
            limit: selection.bound.limit.name(),
            allowed: allowed(&selection.bound),
            steps: selection.bound.steps,
            blocks: Blocks(selection.bound.link_blocks),
        },
        // Of groups, and of sizes, only the strongest bounds are known.
        bounds: (is_plain.then(|| bounds(problem, machine)).into_iter())
            .flatten()
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
        sweep: swept.as_ref().map(Drawn::from),
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
    asked: &Asked<'_>,
    progress: &Progress<'_>,
) -> (Vec<Play>, Vec<[String; 2]>) {
    let best = selection.choices.iter().enumerate();
    let best = best.filter(|(i, choice)| {
        selection.choices[..*i].iter().all(|earlier| earlier.algorithm != choice.algorithm)
    });
    let best = best.map(|(_, choice)| (&*choice.algorithm, &choice.parameters));
    let names: Vec<_> = asked.algorithm.into_iter().chain(best).collect();
    (progress.starting)("drawing schedules", names.len() as u64);
    let (mut plays, mut unplayed, mut room) = (Vec::<Play>::new(), Vec::new(), BYTES);
    let mut simulations = Simulations { model: asked.model.as_ref(), left: SIMULATED };
    for (name, setting) in names {
        (progress.done)(1);
        if plays.iter().any(|play| play.is(name, setting)) {
            continue;
        }
        let mut refuse = |reason: &str| unplayed.push([name.to_owned(), reason.to_owned()]);
        if asked.demand.is_some() {
            refuse("messages are drawn of blocks of one size");
            continue;
        }
        let mut drawn = |scene: Option<Scene>| {
            let play = play(&scene?, setting, &mut simulations, asked.memory)?;
            let size =
                serde_json::to_string(&play).expect("bug: a schedule cannot be written").len();
            (size <= BYTES).then_some((play, size))
        };
        let whole = drawn(scene(exchange, name, setting));
        let Some((play, size)) = whole.or_else(|| drawn(stand_in(exchange, name, setting))) else {
            refuse("too many messages for a page, and no smaller machine has the algorithm");
            continue;
        };
        if size > room {
            refuse("the page is full; --algorithm puts it first");
            continue;
        }
        room = (room - size).min(if plays.is_empty() { OTHERS } else { room });
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
        row("startup of a message", each(&timing.startup, duration)),
        row("bandwidth of a link", each(&timing.per_byte, rate)),
        row("propagation over a link", each(&timing.per_hop, duration)),
        row("rearrangement", rate(timing.rearrangement_per_byte)),
        row("barrier", seconds(timing.barrier.seconds(machine.ranks()))),
    ];
    let Injection { rank, node } = timing.injection;
    let limits = [("injection of a rank", rank), ("injection of a node", node)];
    let limits = limits.into_iter().filter(|(_, per_byte)| *per_byte > 0.0);
    rows.extend(limits.map(|(name, per_byte)| row(name, rate(per_byte))));
    if timing.per_block > 0.0 {
        rows.push(row("copy of a block, besides its bytes", seconds(timing.per_block)));
    }
    if timing.rendezvous.time > 0.0 {
        let Rendezvous { above, time } = timing.rendezvous;
        let time = format!("{} above {}", seconds(time), bytes(above));
        rows.push(row("rendezvous of a message", time));
    }
    if timing.contention != Contention::default() {
        let Contention { alone, several } = timing.contention;
        let both = format!("{alone}; {several} with several messages of a rank");
        rows.push(row("exponent of loads of link classes", both));
    }
    rows
}

/// The values of endpoints that are not the default.
fn endpoint(endpoint: &Endpoint) -> Option<String> {
    let time = |name: &str, value: f64| (value > 0.0).then(|| format!("{name} {}", seconds(value)));
    let values = [
        endpoint
            .window
            .map(|window| format!("a window of {window} message{}", plural(window as usize))),
        endpoint.packet_bytes.map(|size| format!("packets of {}", bytes(size))),
        time("packet overhead", endpoint.packet_overhead),
        time("message overhead", endpoint.message_overhead),
        (!endpoint.interleave).then(|| "messages one after the other".to_owned()),
    ];
    let values: Vec<_> = values.into_iter().flatten().collect();
    (!values.is_empty()).then(|| values.join(", "))
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
            free: choice.free_running.map(|run| run.seconds).filter(|time| time.is_finite()),
            deadlock: choice.free_running.is_some_and(|run| run.seconds.is_infinite()),
            play: None,
            simulated: None,
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
