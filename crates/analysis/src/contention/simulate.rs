use std::fmt;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use topocoll_schedule::{RankClasses, Sync};
use topocoll_topology::{Endpoint, LinkId, Machine, Shape, parallel};

use super::classes::ChannelClasses;
use super::clock::{Clock, Picoseconds, within};
use super::closed::{Shares, closed};
use super::estimate::Cost;
use super::flit::{self, Flits};
use super::fluid::{self, Fluid};
use super::fold::Fold;
use super::kinds::Kinds;
use super::latencies::{Latencies, LatencySummary};
use super::load::Load;
use super::network::{Contents, Held, Interval, LinkUse, Network};
use super::ranks::{Ranks, Simulated};
use super::run::{Control, NamedLink, Outcome, StepTime, run};
use super::settings::{Dateline, MAX_VCS, Routing, Settings};
use super::survey::{Survey, survey};
use super::timeline::{RankStep, Timeline};
use super::traffic::{Posted, Traffic};
use super::wormhole::{self, Wormhole};
use crate::counts::check_ranks;
use crate::error::{check_memory, check_work};
use crate::{AnalysisError, symmetry};

/// The constructor of a network model.
type Make = for<'a> fn(&'a Machine, &Settings, &Clock<'_>, Of<'_>) -> Box<dyn Network + 'a>;

/// Bytes of the network of a machine for these contents.
type Memory = fn(&Machine, &Settings, &RankClasses, &Contents) -> u128;

/// The traffic that a network model is made for.
struct Of<'c> {
    dateline: Dateline,
    channels: Option<Arc<ChannelClasses>>,
    classes: &'c RankClasses,
    records: bool,
}

/// A model of the network.
#[derive(Clone, Copy, Debug)]
pub struct ContentionModel {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// Whether a message without contention takes startup + transmission + propagation, so that
    /// steps without shared links need no simulation.
    pub(super) closed_form: bool,
    /// Whether it is a model of routers, so that messages need numbered links.
    needs_links: bool,
    /// Whether messages take virtual channels.
    virtual_channels: bool,
    /// Whether one rank of each class gives the exact result: translations keep every part of the
    /// model. In the other models virtual channels change at a dateline, which has a fixed place,
    /// and simultaneous requests are served in the order in which they are processed.
    pub(super) folds: bool,
    pub(super) cost: Cost,
    /// The packets of endpoints.
    packets: Packets,
    /// What was validated, on machines with numbered links and on all others.
    accuracy: [&'static str; 2],
    /// Checks that it has adaptive routes on a machine.
    adaptive: fn(&Machine, &Settings) -> Result<(), AnalysisError>,
    make: Make,
    memory: Memory,
}

impl ContentionModel {
    /// Whether it is fast enough to simulate every choice of a ranking: it follows messages, not flits.
    #[must_use]
    pub fn simulates_schedules(&self) -> bool {
        !self.cost.flits
    }

    /// How near the model was to measured figures, on machines of this kind: the chapter "Validation" of
    /// the book has each of them.
    #[must_use]
    pub fn accuracy(&self, machine: &Machine) -> &'static str {
        self.accuracy[usize::from(machine.topology.links() == 0)]
    }
}

/// How a model knows the packets of endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Packets {
    /// A message is not divided.
    None,
    /// They are sent one by one.
    OneByOne,
    /// Their overheads limit the injection of a rank.
    AsRates,
}

/// The models, in the order in which help lists them.
pub const MODELS: &[ContentionModel] = &[
    ContentionModel {
        name: "wormhole",
        summary: "headers take channels one by one and hold them until the tail has passed",
        closed_form: true,
        needs_links: false,
        virtual_channels: true,
        folds: false,
        cost: Cost { each: 0.0, link: 2e-7, flits: false },
        packets: Packets::None,
        accuracy: ["within 10 % of 2 of 2 latencies of BookSim; no machine was measured"; 2],
        adaptive: |_, _| {
            Err(AnalysisError::Routing {
                rule: "the wormhole model has no adaptive routing: use the flit or fluid model"
                    .to_owned(),
            })
        },
        make: |machine, settings, clock, Of { dateline, channels, records, .. }| {
            Box::new(Wormhole::new(machine, settings, clock, (dateline, channels), records))
        },
        memory: |machine, settings, _, contents| wormhole::memory(machine, settings, contents),
    },
    ContentionModel {
        name: "flit",
        summary: "virtual-channel routers with credits, cycle by cycle",
        closed_form: false,
        needs_links: true,
        virtual_channels: true,
        folds: false,
        cost: Cost { each: 0.0, link: 5e-8, flits: true },
        packets: Packets::OneByOne,
        accuracy: ["within 10 % of 12 of 12 latencies of BookSim; no machine was measured"; 2],
        adaptive: flit::check_adaptive,
        make: |machine, settings, clock, Of { dateline, channels, records, .. }| {
            Box::new(Flits::new(machine, settings, clock, (dateline, channels), records))
        },
        memory: |machine, settings, _, contents| flit::memory(machine, settings, contents),
    },
    ContentionModel {
        name: "fluid",
        summary: "messages flow at max-min fair rates",
        closed_form: true,
        needs_links: false,
        virtual_channels: false,
        folds: true,
        cost: Cost { each: 2e-6, link: 2.5e-7, flits: false },
        packets: Packets::AsRates,
        accuracy: [
            "within 10 % of 5 of 6 figures predicted for TPU slices and a ring of Blackhole chips",
            "within 10 % of 8 of 9 figures predicted for GPUs behind NVSwitch and InfiniBand clusters",
        ],
        adaptive: |_, _| Ok(()),
        make: |machine, settings, clock, Of { classes, records, .. }| {
            Box::new(Fluid::new(machine, settings, clock, classes, records))
        },
        memory: fluid::memory,
    },
];

/// A request to simulate traffic.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The messages.
    pub traffic: &'a dyn Traffic,
    /// The machine.
    pub machine: &'a Machine,
    /// The model of the network.
    pub model: &'a ContentionModel,
    /// Its parameters.
    pub settings: Settings,
    /// Whether links have more virtual channels than the settings say, if the routes require them.
    pub vcs_as_required: bool,
    /// Keeps the classes of virtual channels for other requests with the same routes.
    pub channels: Option<&'a OnceLock<Arc<ChannelClasses>>>,
    /// The synchronization between steps.
    pub sync: Sync,
    /// The ranks to simulate; `None` takes one of each class where that is exact.
    pub ranks: Option<Ranks>,
    /// The most bytes of memory.
    pub memory: u128,
    /// Whether to record the intervals in which messages hold links, and count the use of every
    /// link. Then every step is simulated.
    pub records: bool,
    /// Whether to record when each rank copies, sends and receives; only without barriers. Then every
    /// step is simulated.
    pub timeline: bool,
    /// Progress and early stop.
    pub control: Control<'a>,
}

impl<'a> Request<'a> {
    /// A request with default parameters, without barriers, records and progress.
    #[must_use]
    pub fn new(
        traffic: &'a dyn Traffic,
        machine: &'a Machine,
        model: &'a ContentionModel,
        memory: u128,
    ) -> Self {
        Self {
            traffic,
            machine,
            model,
            settings: Settings::default(),
            vcs_as_required: false,
            channels: None,
            sync: Sync::Free,
            ranks: None,
            memory,
            records: false,
            timeline: false,
            control: Control::NONE,
        }
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("machine", &self.machine)
            .field("model", &self.model.name)
            .field("settings", &self.settings)
            .field("sync", &self.sync)
            .finish_non_exhaustive()
    }
}

/// The result of a simulation.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Simulation {
    /// The completion time.
    pub time: Picoseconds,
    /// The ranks that were simulated.
    pub ranks: Ranks,
    /// The number of ranks that were simulated.
    pub classes: u32,
    /// Virtual channels of a link.
    pub virtual_channels: u32,
    /// Messages delivered, over all ranks.
    pub messages: u64,
    /// Latencies from entering the network to the last byte delivered.
    pub latencies: Option<LatencySummary>,
    /// The load of traffic at a rate, if all of it was simulated.
    pub load: Option<Load>,
    /// The time from the first message entering the network to the end.
    pub network_time: Picoseconds,
    /// One flit's time on a link.
    pub cycle: Picoseconds,
    /// When each step began and ended.
    pub steps: Vec<StepTime>,
    /// The use of links by number; empty without numbered links, if steps were not simulated, and
    /// if one rank of each class was.
    pub links: Vec<LinkUse>,
    /// The most bytes on one link, and the link that messages waited for most: the first of equal
    /// ones. `None` without numbered links, and if steps were not simulated.
    pub busiest: Option<(u128, LinkId, Picoseconds)>,
    /// The average fraction of the time simulated that links were busy; `None` without numbered links.
    pub link_utilisation: Option<f64>,
    /// The last links of the critical chain of the run, or with barriers of the longest step.
    pub chain: Vec<NamedLink>,
    /// The number of all links of the chain.
    pub chain_length: usize,
    /// Steps that were not simulated, as no link is shared in them.
    pub closed_steps: u32,
    /// The cycle of messages that wait for each other, in a deadlock.
    pub deadlock: Vec<Held>,
    /// Whether the run was stopped or deadlocked.
    pub partial: bool,
    /// The intervals in which messages held links, if recorded.
    pub intervals: Vec<Interval>,
    /// When each rank copies, sends and receives, if recorded.
    pub timeline: Option<Timeline>,
}

/// Simulates traffic on a machine.
///
/// Time is proportional to the hops of all messages (wormhole), the hops of all flits (flit), or
/// messages times concurrent flows times hops (fluid). Memory is proportional to the links, and to
/// the hops of the messages in flight.
///
/// # Errors
/// Settings out of range, traffic of another machine, too many messages or bytes, times out of
/// range, routes that require more virtual channels, or a schedule in which a rank waits for
/// a message that is not sent. All but the last are found before the simulation starts.
pub fn simulate(request: &Request<'_>) -> Result<Simulation, AnalysisError> {
    let machine = &limited(request.model, request.machine);
    let request = &Request { machine, ..*request };
    let Request { traffic, model, mut settings, .. } = *request;
    settings.check()?;
    check_ranks(traffic.nodes(), machine)?;
    check_model(model, machine, &settings)?;
    let clock = Clock::new(machine, &settings);
    if clock.cycle == 0 && model.needs_links {
        return Err(AnalysisError::Time { what: "a flit takes less than a picosecond".to_owned() });
    }
    let classes = symmetry::common(&traffic.classes(), &*machine.topology);
    let survey = survey(traffic, machine, &clock, &classes)?;
    if settings.routing == Routing::Adaptive && model.needs_links && survey.turns_back {
        return Err(AnalysisError::Routing {
            rule: "the schedule gives routes that are not in dimension order: adaptive routing in the \
                   flit model requires it of given routes"
                .to_owned(),
        });
    }
    let ranks = simulated(request, &classes)?;
    let closed = closed(request, &clock, &survey, &classes)?;
    check(request, &survey, &closed.steps, &clock, &ranks)?;
    let dateline = settings.dateline.unwrap_or(match survey.goes_far {
        true => Dateline::Crossing,
        false => Dateline::Entry,
    });
    let simulated = !closed.steps.iter().all(|&closed| closed);
    let classed = classed(request, &survey) && simulated;
    let own = OnceLock::new();
    let channels = classed.then(|| {
        let find = || Arc::new(ChannelClasses::fewest(traffic, machine, settings.vcs));
        Arc::clone(request.channels.unwrap_or(&own).get_or_init(find))
    });
    let count = channels.as_ref().map_or(0, |classes| classes.count());
    let most = if request.vcs_as_required { MAX_VCS } else { settings.vcs };
    if count > most {
        return Err(ChannelClasses::too_many(machine, count, most));
    }
    settings.vcs = settings.vcs.max(count);
    let make = || {
        let channels = channels.clone();
        let of = Of { dateline, channels, classes: &ranks.classes, records: request.records };
        (model.make)(machine, &settings, &clock, of)
    };
    (request.control.progress.starting)(u64::try_from(survey.messages).unwrap_or(u64::MAX));
    let mut total = Total::new(&clock, settings.vcs);
    total.link_seconds = closed.link_seconds;
    match request.sync {
        Sync::Free => {
            total.closed = closed.first.steps.len() as u32;
            total.add(closed.first, 0);
            let steps = total.closed..traffic.steps();
            if !steps.is_empty() {
                let mut network = make();
                let start = |rank| closed.starts[classes.class_of(rank) as usize];
                let control = &request.control;
                let start = (&start as &dyn Fn(_) -> _, request.timeline);
                let out = run(traffic, &clock, &ranks, &mut *network, steps, start, control)?;
                total.add(out, 0);
                total.use_links(&mut *network);
            }
        }
        Sync::Barrier => {
            apart(request, &survey, &closed.steps, (&clock, &ranks, &classes), &make, &mut total)?;
        }
    }
    let fold = Fold::new(machine, &settings, &ranks.classes);
    Ok(total.close(&clock.kinds, &ranks, &fold))
}

/// Whether virtual channels have classes by the routes of the traffic: on graphs, and on grids for routes that
/// are not in dimension order, unless datelines are asked for.
fn classed(request: &Request<'_>, survey: &Survey) -> bool {
    request.model.virtual_channels
        && match request.machine.topology.network() {
            Shape::Graph(_) => true,
            Shape::Grid(_) => survey.turns_back && request.settings.dateline.is_none(),
            Shape::Complete | Shape::Clustered(_) => false,
        }
}

/// The machine with the injection that the overheads of packets leave, where the model sends whole
/// messages.
fn limited(model: &ContentionModel, machine: &Machine) -> Machine {
    let mut machine = machine.clone();
    if model.packets == Packets::AsRates {
        let injection = &mut machine.timing.injection.rank;
        *injection = injection.max(machine.endpoint.overhead_per_byte());
    }
    machine
}

/// Checks that a model supports a machine.
///
/// # Errors
/// A model of routers on a machine without links, or with too many virtual channels into a router.
/// A model without packets on a machine whose endpoints have them, or without its adaptive routes.
pub fn check_model(
    model: &ContentionModel,
    machine: &Machine,
    settings: &Settings,
) -> Result<(), AnalysisError> {
    if model.packets == Packets::None {
        let Endpoint { packet_bytes, packet_overhead, interleave, .. } = machine.endpoint;
        let given = [
            ("packet_bytes", packet_bytes.is_some()),
            ("packet_overhead", packet_overhead > 0.0),
            ("interleave=off", !interleave),
        ];
        if let Some((name, _)) = given.iter().find(|(_, given)| *given) {
            return Err(AnalysisError::Packets { model: model.name, name });
        }
    }
    if settings.routing == Routing::Adaptive {
        (model.adaptive)(machine, settings)?;
    }
    if !model.needs_links {
        return Ok(());
    }
    if !matches!(machine.topology.network(), Shape::Grid(_) | Shape::Graph(_)) {
        return Err(AnalysisError::NeedsLinks {
            model: model.name,
            topology: machine.topology.short_form(),
        });
    }
    let inputs = flit::most_inputs(machine) * u64::from(settings.vcs);
    if inputs > flit::MAX_INPUTS {
        return Err(AnalysisError::Inputs { inputs, most: flit::MAX_INPUTS });
    }
    Ok(())
}

/// The ranks to simulate.
fn simulated(request: &Request<'_>, classes: &RankClasses) -> Result<Simulated, AnalysisError> {
    let refuse = |rule| Err(AnalysisError::Classes { model: request.model.name, rule });
    match request.ranks {
        Some(Ranks::Classes) if !request.model.folds => refuse(
            "its datelines and its order of simultaneous requests depend on the ranks' numbers",
        ),
        Some(Ranks::Classes) if request.records => {
            refuse("a trace or a table of links has every rank")
        }
        None if !request.model.folds || request.records => Ok(Simulated::every(request.machine)),
        Some(Ranks::Every) => Ok(Simulated::every(request.machine)),
        None | Some(Ranks::Classes) => Ok(Simulated::of(classes.clone(), request.machine)),
    }
}

/// Checks that a run fits in memory and in the clock.
fn check(
    request: &Request<'_>,
    survey: &Survey,
    closed: &[bool],
    clock: &Clock<'_>,
    ranks: &Simulated,
) -> Result<(), AnalysisError> {
    /// The most messages of a run: hours.
    const MESSAGES: u128 = 1 << 30;
    let nodes = u128::from(ranks.count());
    let equivalent = u128::from(ranks.equivalent);
    let mut latest = 0u128;
    let (mut simulated, mut largest) = (0u128, 0);
    for (step, &closed) in survey.steps.iter().zip(closed) {
        latest += u128::from(clock.barrier());
        latest += u128::from(step.alone);
        let messages = if closed { 0 } else { u128::from(step.messages) / equivalent };
        (simulated, largest) = (simulated + messages, messages.max(largest));
    }
    within(latest)?;
    check_work("simulating", simulated, MESSAGES)?;
    let outstanding = survey.sends.min(clock.window());
    let live = (nodes * outstanding as u128).min(survey.messages / equivalent);
    let waiting_sends = nodes * (survey.sends - outstanding) as u128;
    // Networks at once, the messages of each, and the number of copies of the links.
    let (networks, messages, kept) = match (request.sync, simulated) {
        (_, 0) => (0, 0, 0),
        (Sync::Free, _) => (1, simulated, 1),
        (Sync::Barrier, _) => (parallel::threads() as u128, largest, waiting() as u128),
    };
    let contents = Contents { live, hops: survey.hops, messages };
    let fold = Fold::new(request.machine, &request.settings, &ranks.classes);
    let links = fold.links() as u128 * size_of::<LinkUse>() as u128;
    let needed = networks
        * ((request.model.memory)(request.machine, &request.settings, &ranks.classes, &contents)
            + nodes * 96
            + waiting_sends * 2 * size_of::<Posted>() as u128)
        + kept * links
        + match classed(request, survey) && networks > 0 {
            true => {
                ChannelClasses::memory(request.machine, MAX_VCS, survey.messages, survey.all_hops)
            }
            false => 0,
        }
        + survey.steps.len() as u128 * 64
        + if request.records { survey.all_hops * size_of::<Interval>() as u128 } else { 0 }
        + if request.timeline {
            nodes * (survey.steps.len() * size_of::<RankStep>()) as u128
        } else {
            0
        };
    let what = "the network, the messages in flight and the records";
    check_memory(what, needed, request.memory)?;
    // Channels of links, ports and injection are numbered in 32 bits.
    let numbered = match simulated {
        0 => 0,
        _ if request.model.folds => fold.count(),
        _ => fold.channels.pools().max(fold.channels.shared()),
    };
    check_work(
        "numbering the channels of all links and ports",
        u128::from(numbered).saturating_sub(1),
        u32::MAX.into(),
    )
}

/// Runs steps under barriers, several at once.
fn apart<'a>(
    request: &Request<'a>,
    survey: &Survey,
    closed: &[bool],
    (clock, ranks, classes): (&Clock<'_>, &Simulated, &RankClasses),
    make: &(dyn Fn() -> Box<dyn Network + 'a> + std::marker::Sync),
    total: &mut Total,
) -> Result<(), AnalysisError> {
    /// The number of pieces, each with its own network: enough for all threads.
    const PIECES: usize = 64;
    let steps: Vec<u32> = (0..request.traffic.steps()).collect();
    let piece = steps.len().div_ceil(PIECES).max(1);
    let run_piece = |steps: &[u32]| {
        let mut network: Option<Box<dyn Network + 'a>> = None;
        let mut outs = Vec::new();
        let mut now = 0;
        for &step in steps {
            if closed[step as usize] {
                outs.push(None);
                continue;
            }
            let network = &mut **network.get_or_insert_with(make);
            let mut out = run(
                request.traffic,
                clock,
                ranks,
                network,
                step..step + 1,
                (&|_| now, false),
                &request.control,
            )?;
            out.rebase(now);
            now = within(u128::from(now) + u128::from(out.end))?;
            let ended = out.partial;
            let intervals = network.take_intervals();
            outs.push(Some((out, intervals, now)));
            if ended {
                break;
            }
        }
        Ok((outs, network.map(|network| network.links().to_vec())))
    };
    let mut shares = Shares::new(request, clock, classes);
    let mut starts = vec![0; classes.count() as usize];
    let mut step = 0;
    // Results of a piece are kept until earlier pieces are added.
    for some in steps.chunks(piece * waiting()) {
        let pieces = parallel::chunks(some, piece).map(run_piece);
        for piece in pieces.collect::<Vec<_>>() {
            let (outs, links) = piece?;
            for out in outs {
                let before = total.time;
                match out {
                    None => {
                        total.add_closed(survey.steps[step].alone);
                        let mut alone = Outcome::default();
                        starts.fill(0);
                        shares.step(step as u32, &mut starts, Some(&mut alone));
                        total.add_alone(&alone, before);
                    }
                    Some((out, intervals, ended)) => {
                        let began = ended - out.end;
                        total.intervals.extend(intervals.into_iter().map(|mut interval| {
                            interval.start = interval.start - began + before;
                            interval.end = interval.end - began + before;
                            interval
                        }));
                        total.add(out, before);
                    }
                }
                if total.out.partial {
                    break;
                }
                let moves = survey.steps[step].messages > 0;
                let later = survey.steps[step + 1..].iter().any(|step| step.messages > 0);
                if moves && later {
                    total.time += clock.barrier();
                    within(total.time.into())?;
                }
                step += 1;
            }
            if let Some(links) = links {
                total.merge_links(&links);
            }
            if total.out.partial {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The most pieces whose results wait to be added: enough to keep all threads busy.
fn waiting() -> usize {
    4 * parallel::threads()
}

/// The sum over the pieces of a run.
struct Total {
    virtual_channels: u32,
    time: Picoseconds,
    out: Outcome,
    latencies: Latencies,
    longest: Picoseconds,
    links: Vec<LinkUse>,
    closed: u32,
    cycle: Picoseconds,
    link_seconds: f64,
    intervals: Vec<Interval>,
    timeline: Vec<RankStep>,
}

impl Total {
    fn new(clock: &Clock<'_>, virtual_channels: u32) -> Self {
        Self {
            virtual_channels,
            time: 0,
            out: Outcome::default(),
            latencies: Latencies::default(),
            longest: 0,
            links: Vec::new(),
            closed: 0,
            cycle: clock.cycle,
            link_seconds: 0.0,
            intervals: Vec::new(),
            timeline: Vec::new(),
        }
    }

    /// Adds a piece that begins at `start`; its times count from there.
    fn add(&mut self, part: Outcome, start: Picoseconds) {
        self.time = start + part.end;
        self.timeline.extend(part.timeline);
        let all = &mut self.out;
        all.messages += part.messages;
        all.first_handed = all.first_handed.or(part.first_handed.map(|first| start + first));
        self.latencies.merge(&part.latencies);
        all.steps.extend(
            part.steps
                .iter()
                .map(|time| StepTime { start: start + time.start, end: start + time.end }),
        );
        all.partial |= part.partial;
        all.load = all.load.or(part.load);
        all.circle.extend(part.circle);
        if part.end > self.longest {
            self.longest = part.end;
            all.chain = part.chain;
            for link in &mut all.chain {
                link.link.at += start;
            }
            all.chain_length = part.chain_length;
        }
    }

    fn add_closed(&mut self, alone: Picoseconds) {
        self.out.steps.push(StepTime { start: self.time, end: self.time + alone });
        self.time += alone;
        self.closed += 1;
    }

    /// Adds the messages of a step without contention that begins at `start`.
    fn add_alone(&mut self, alone: &Outcome, start: Picoseconds) {
        self.latencies.merge(&alone.latencies);
        self.out.messages += alone.messages;
        let first = alone.first_handed.map(|first| start + first);
        self.out.first_handed = self.out.first_handed.or(first);
    }

    fn use_links(&mut self, network: &mut dyn Network) {
        self.links = network.links().to_vec();
        self.intervals = network.take_intervals();
    }

    fn merge_links(&mut self, links: &[LinkUse]) {
        self.links.resize(links.len(), LinkUse::default());
        for (all, link) in self.links.iter_mut().zip(links) {
            all.bytes += link.bytes;
            all.messages += link.messages;
            all.waited = all.waited.saturating_add(link.waited);
        }
    }

    fn close(self, kinds: &Kinds<'_>, ranks: &Simulated, fold: &Fold<'_>) -> Simulation {
        let all_simulated = self.closed == 0;
        let links = || (0..).zip(&self.links).map(|(kept, used)| (fold.representative(kept), used));
        let mut bytes = vec![0u128; kinds.values().len()];
        for (link, used) in links() {
            bytes[kinds.of(LinkId(link))] += used.bytes * u128::from(fold.equivalent());
        }
        let values = kinds.values().iter().zip(bytes);
        let busy: f64 = values.map(|(values, bytes)| bytes as f64 * values.per_byte).sum();
        let waited = links().map(|(link, used)| (used.waited, std::cmp::Reverse(link))).max();
        let busiest = waited.map(|(waited, std::cmp::Reverse(link))| {
            let bytes = self.links.iter().map(|used| used.bytes).max();
            (bytes.unwrap_or(0), LinkId(link), waited)
        });
        let steps = self.out.steps.len() as u32;
        let able = kinds.machine.topology.links() as f64 * self.time as f64 * 1e-12;
        Simulation {
            time: self.time,
            ranks: ranks.method(),
            classes: ranks.count(),
            virtual_channels: self.virtual_channels,
            messages: self.out.messages,
            latencies: self.latencies.summary(),
            load: self.out.load,
            network_time: self.out.first_handed.map_or(0, |first| self.time.saturating_sub(first)),
            cycle: self.cycle,
            steps: self.out.steps,
            link_utilisation: (able > 0.0).then(|| ((busy + self.link_seconds) / able).min(1.0)),
            busiest: busiest.filter(|_| all_simulated),
            links: match ranks.method() {
                Ranks::Every if all_simulated => self.links,
                Ranks::Every | Ranks::Classes => Vec::new(),
            },
            chain: self.out.chain,
            chain_length: self.out.chain_length,
            closed_steps: self.closed,
            deadlock: self.out.circle,
            partial: self.out.partial,
            intervals: self.intervals,
            timeline: (!self.timeline.is_empty())
                .then(|| Timeline::new(ranks, steps, self.timeline)),
        }
    }
}

impl Outcome {
    /// Counts all times from `start`.
    fn rebase(&mut self, start: Picoseconds) {
        self.end -= start;
        self.first_handed = self.first_handed.map(|first| first - start);
        for time in &mut self.steps {
            (time.start, time.end) = (time.start - start, time.end - start);
        }
        for link in &mut self.chain {
            link.link.at -= start;
        }
    }
}
