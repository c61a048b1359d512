use rayon::prelude::*;
use topocoll_schedule::{Demand, Problem, RankClasses, Schedule, SlotSet, Step, Transfer};
use topocoll_topology::{
    Coordinates, Grid, INTRA_NODE, LinkId, Machine, Rank, Route, Shape, Timing, parallel,
};

use crate::charges::{Charged, Charges, Rates};
use crate::error::{by_all_threads, check_memory, check_work};
use crate::kinds::Boxes;
use crate::loads::{Busiest, Loads};
use crate::shift::{self, Cyclic, Shift};
use crate::{AnalysisError, all_to_all_v, symmetry};

/// The most steps counted together.
const MAX_CHUNK: u32 = 512;

/// Segments visited in a batch of [`count_steps`]: part of a second.
const BATCH_WORK: u128 = 1 << 22;

/// The counts of one step over all ranks.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct StepCount {
    /// Messages between ranks.
    pub messages: u128,
    /// Bytes of the largest message, or of the most loaded port of a rank or node that has fewer ports
    /// than messages.
    pub largest_message: u128,
    /// Bytes on the busiest directed link; 0 where links are not shared.
    pub largest_load: u128,
    /// Most messages on one directed link; 0 where links have no numbers.
    pub link_contention: u64,
    /// Directed links that carry several messages.
    pub shared_links: u128,
    /// Most hops of a message.
    pub hops: u64,
    /// Bytes of the largest message that must be packed.
    pub packed: u128,
    /// Most bytes that one rank copies before the step.
    pub copied: u128,
    /// Most messages that one node of a cluster sends to others, or receives from them.
    pub inter_node: u32,
    /// Ranks or nodes that send, or receive, more messages than they have ports.
    pub port_violations: u64,
    /// The charges for startup, transmission and propagation.
    pub(crate) charges: Charges,
}

impl StepCount {
    /// Adds links of `class` that carry `messages` of `bytes` together; `shared` of them
    /// carry several.
    pub(crate) fn load(
        &mut self,
        rates: &Rates<'_>,
        class: usize,
        messages: u64,
        bytes: u128,
        shared: u128,
    ) {
        self.link_contention = self.link_contention.max(messages);
        self.largest_load = self.largest_load.max(bytes);
        self.shared_links += shared;
        self.charges.link(rates, class, bytes);
    }

    /// Adds the busiest links of each class; each represents `equivalent` links.
    pub(crate) fn load_busiest(&mut self, rates: &Rates<'_>, busiest: &[Busiest], equivalent: u64) {
        for (class, most) in busiest.iter().enumerate().filter(|(_, most)| most.messages > 0) {
            let shared = u128::from(most.shared) * u128::from(equivalent);
            self.load(rates, rates.first_class() + class, most.messages, most.of_class, shared);
            self.largest_load = self.largest_load.max(most.bytes);
            self.charges.during(rates, most.attoseconds);
        }
    }

    /// Adds `ranks` ranks, or nodes, that send or receive these bytes, which take these attoseconds, if
    /// they exceed their ports: a port carries several messages in turn.
    fn exceed(&mut self, rates: &Rates<'_>, ports: u32, [bytes, time]: [Load; 2], ranks: u64) {
        if bytes.messages > ports {
            self.port_violations += ranks;
            self.largest_message = self.largest_message.max(bytes.of_port(ports));
            self.charges.during(rates, time.of_port(ports));
        }
    }

    /// Seconds of the slowest startup, the slowest transmission with shared links charged in full,
    /// the slowest propagation, and the rearrangement; without the barrier.
    #[must_use]
    pub fn time(&self, timing: &Timing) -> Time {
        let packed = if timing.gather { 0 } else { self.packed };
        let rearrangement = (self.copied + packed) as f64 * timing.rearrangement_per_byte;
        Time { rearrangement, ..self.charges.time(timing) }
    }
}

/// The counts of a schedule, and its predicted time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Bytes of a block, to turn bytes into blocks.
    pub block_bytes: u64,
    /// C1: steps in which a message moves between ranks.
    pub steps: u64,
    /// Messages between ranks.
    pub messages: u128,
    /// C2: sum over steps of the largest message. In a step with more messages than ports those of a rank
    /// or node are distributed over its ports, and the bytes of a port are summed: at least the mean of
    /// its ports, and at least the smallest message times the most messages of a port.
    pub bytes: u128,
    /// Sum over steps of the largest message or link load, whichever is more.
    pub link_bytes: u128,
    /// Sum over steps of the largest hop count.
    pub hops: u128,
    /// Groups of local copies.
    pub rearrangements: u64,
    /// Bytes that one rank copies in all of them.
    pub rearranged_bytes: u128,
    /// Sum over steps of the largest message that must be packed.
    pub packed_bytes: u128,
    /// Pairs of a step and a directed link that carries several messages.
    pub link_conflicts: u128,
    /// Most messages on one directed link in one step; 0 where links have no numbers.
    pub link_contention: u64,
    /// Steps with a link that carries several messages.
    pub contended_steps: u64,
    /// Steps needed when every contended step is split.
    pub contention_free_steps: u128,
    /// Cases of a step, a rank or node, and a direction that exceed the port model.
    pub port_violations: u64,
    /// Steps in which a message crosses between nodes of a cluster.
    pub inter_node_steps: u64,
    /// Seconds that links are busy, summed over links.
    pub link_seconds: f64,
    /// The predicted time, term by term.
    pub time: Time,
}

/// Predicted seconds by the steps model: T = startup x steps + per byte x link bytes + per hop x
/// hops + rearrangement per byte x (rearranged + packed) bytes + barrier x (steps - 1).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Time {
    /// Startups.
    pub startup: f64,
    /// Transmission.
    pub transmission: f64,
    /// Propagation.
    pub propagation: f64,
    /// Rearrangement and packing.
    pub rearrangement: f64,
    /// Barriers between steps.
    pub barrier: f64,
}

impl Time {
    /// The sum of the terms.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.startup + self.transmission + self.propagation + self.rearrangement + self.barrier
    }
}

impl Counts {
    /// `bytes` in blocks.
    #[must_use]
    pub fn in_blocks(&self, bytes: u128) -> f64 {
        bytes as f64 / self.block_bytes as f64
    }
}

/// Sums over steps. All are integers, so the order of addition does not matter.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sums {
    counts: Counts,
    charged: Charged,
    /// Bytes on the busiest link of any step.
    pub(crate) largest_load: u128,
}

impl Sums {
    pub(crate) fn add(&mut self, step: &StepCount) {
        let Self { counts, charged, largest_load } = self;
        let moves = step.messages > 0;
        counts.steps += u64::from(moves);
        counts.messages += step.messages;
        counts.bytes += step.largest_message;
        counts.link_bytes += step.largest_message.max(step.largest_load);
        counts.hops += u128::from(step.hops);
        counts.rearrangements += u64::from(step.copied > 0);
        counts.rearranged_bytes += step.copied;
        counts.packed_bytes += step.packed;
        counts.link_conflicts += step.shared_links;
        counts.link_contention = counts.link_contention.max(step.link_contention);
        counts.contended_steps += u64::from(step.link_contention > 1);
        counts.contention_free_steps += u128::from(step.link_contention.max(u64::from(moves)));
        counts.port_violations += step.port_violations;
        counts.inter_node_steps += u64::from(step.inter_node > 0);
        charged.add(&step.charges, moves);
        *largest_load = (*largest_load).max(step.largest_load);
    }

    /// Sums over all steps on all threads, each with its own scratch.
    pub(crate) fn of<S>(
        steps: u32,
        scratch: impl Fn() -> S + Sync,
        step: impl Fn(u32, &mut S) -> StepCount + Sync,
    ) -> Self {
        let chunk = steps.div_ceil(64).clamp(1, MAX_CHUNK);
        let sum = |i: u32| {
            let (mut scratch, mut sums) = (scratch(), Self::default());
            for number in i * chunk..steps.min((i + 1).saturating_mul(chunk)) {
                sums.add(&step(number, &mut scratch));
            }
            sums
        };
        let chunks = parallel::each(0..steps.div_ceil(chunk)).map(sum);
        chunks.reduce(Self::default, |a, b| a.merge(&b))
    }

    /// Adds the sums over other steps.
    fn merge(mut self, other: &Self) -> Self {
        let (counts, others) = (&mut self.counts, &other.counts);
        counts.steps += others.steps;
        counts.messages += others.messages;
        counts.bytes += others.bytes;
        counts.link_bytes += others.link_bytes;
        counts.hops += others.hops;
        counts.rearrangements += others.rearrangements;
        counts.rearranged_bytes += others.rearranged_bytes;
        counts.packed_bytes += others.packed_bytes;
        counts.link_conflicts += others.link_conflicts;
        counts.link_contention = counts.link_contention.max(others.link_contention);
        counts.contended_steps += others.contended_steps;
        counts.contention_free_steps += others.contention_free_steps;
        counts.port_violations += others.port_violations;
        counts.inter_node_steps += others.inter_node_steps;
        self.charged.merge(&other.charged);
        self.largest_load = self.largest_load.max(other.largest_load);
        self
    }

    /// The counts of a schedule's steps, and their seconds.
    pub(crate) fn close(self, schedule: &Schedule, timing: &Timing) -> Counts {
        let block_bytes = schedule.problem.block_bytes;
        Counts { block_bytes, ..self.charge(schedule.participants(), timing) }
    }

    /// The counts, and their seconds with barriers of `ranks` ranks.
    pub(crate) fn charge(self, ranks: u32, timing: &Timing) -> Counts {
        let Self { counts, charged, .. } = self;
        let packed = if timing.gather { 0 } else { counts.packed_bytes };
        let rearranged = counts.rearranged_bytes + packed;
        let barriers = counts.steps.saturating_sub(1);
        let time = Time {
            rearrangement: rearranged as f64 * timing.rearrangement_per_byte,
            barrier: timing.barrier.seconds(ranks) * barriers as f64,
            ..charged.time(timing)
        };
        Counts { time, link_seconds: charged.link_seconds(&timing.per_byte), ..counts }
    }
}

/// An upper bound on the work of [`count`].
///
/// Without a demand matrix it is a number of route segments: steps, times representatives of the
/// classes, times ports, times dimensions. With one it is a number of slots and steps.
///
/// # Panics
/// A schedule of other ranks than the machine's.
#[must_use]
pub fn counting_work(schedule: &Schedule, machine: &Machine, demand: Option<&Demand>) -> u128 {
    if demand.is_some() {
        return all_to_all_v::counting_work(schedule);
    }
    if let Some((schedule, machine)) = schedule.seen(machine) {
        return counting_work(&schedule, &machine, None);
    }
    let reader = Reader::new(schedule, machine).unwrap_or_else(|error| panic!("{error}"));
    let ports = u128::from(schedule.problem.ports);
    let dimensions = |grid: &Grid| grid.sides().len() as u128;
    // Of a message between nodes.
    let segments = match machine.topology.network() {
        // Lines of a shift differ in the carries of all messages of a step.
        Shape::Grid(grid) if reader.cyclic.is_some() => ports * dimensions(grid),
        Shape::Grid(grid) => dimensions(grid),
        // Every hop of a route is visited.
        Shape::Graph(graph) => graph.diameter().max(1).into(),
        Shape::Complete | Shape::Clustered(_) => 1,
    };
    // The ranks of a node share its ports.
    let per_rank = match machine.ranks() / machine.topology.nodes() {
        size if size > 1 && machine.topology.link_numbers() > 0 => {
            let of_node = u128::from(schedule.problem.node_ports) * segments / u128::from(size);
            ports + of_node.min(ports * segments)
        }
        _ => ports * segments,
    };
    u128::from(schedule.rule().steps()) * u128::from(reader.classes.count()) * per_rank
}

/// The most segments that [`check_counting_work`] allows: minutes.
const COUNT_LIMIT: u128 = 2_000_000_000;

/// Checks that counting a schedule with equal blocks takes minutes at most.
///
/// # Errors
/// [`AnalysisError::Work`], or a schedule of other ranks than the machine's.
pub fn check_counting_work(schedule: &Schedule, machine: &Machine) -> Result<(), AnalysisError> {
    check_ranks(schedule.problem.ranks, machine)?;
    if let Some((schedule, machine)) = schedule.seen(machine) {
        return check_counting_work(&schedule, &machine);
    }
    let work = counting_work(schedule, machine, None);
    let by_kinds = || Reader::new(schedule, machine).ok()?.work_by_kinds();
    let work = if work > COUNT_LIMIT { by_kinds().unwrap_or(work) } else { work };
    check_work("counting", work, COUNT_LIMIT)
}

/// Checks that a machine has `ranks` ranks.
///
/// # Errors
/// [`AnalysisError::Ranks`].
pub fn check_ranks(ranks: u32, machine: &Machine) -> Result<(), AnalysisError> {
    match machine.ranks() {
        machine if machine != ranks => Err(AnalysisError::Ranks { ranks, machine }),
        _ => Ok(()),
    }
}

/// Checks that a step and all link counters fit in `memory` bytes.
pub(crate) fn check_counting_memory(
    schedule: &Schedule,
    machine: &Machine,
    memory: u128,
) -> Result<(), AnalysisError> {
    if let Some((schedule, machine)) = schedule.seen(machine) {
        return check_counting_memory(&schedule, &machine, memory);
    }
    Reader::new(schedule, machine)?.fits(memory)
}

/// Counts a schedule on a machine: every step, every link, one rank of each class that is not idle.
///
/// Blocks have the problem's size, or the sizes of a demand matrix, which is followed message by
/// message on every rank. A shared link is charged its whole load. Time is proportional to
/// [`counting_work`] times the ports used; on grids memory is proportional to the classes.
///
/// With a demand matrix a message of no bytes is not sent. A message of several slots that are not
/// consecutive is charged as packed, even if only one of them has bytes. The exchange of the sizes
/// is not part of the cost.
///
/// # Errors
/// More than `memory` bytes, or a schedule of other ranks than the machine's. With a demand matrix
/// also a schedule that names no blocks or splits them, or work beyond a limit of some seconds.
pub fn count(
    schedule: &Schedule,
    machine: &Machine,
    demand: Option<&Demand>,
    memory: u128,
) -> Result<Counts, AnalysisError> {
    if let Some(demand) = demand {
        return all_to_all_v::count(schedule, machine, demand, memory, |_, _| {});
    }
    if let Some((schedule, machine)) = schedule.seen(machine) {
        return count(&schedule, &machine, None, memory);
    }
    let reader = Reader::new(schedule, machine)?;
    reader.fits(memory)?;
    let sums = Sums::of(
        schedule.rule().steps(),
        || reader.scratch(),
        |step, scratch| reader.step(step, scratch, reader.equal()),
    );
    Ok(sums.close(schedule, &machine.timing))
}

/// Counts as [`count`] does and calls `each` with every step, in order.
///
/// # Errors
/// As [`count`].
pub fn count_steps(
    schedule: &Schedule,
    machine: &Machine,
    demand: Option<&Demand>,
    memory: u128,
    mut each: impl FnMut(u32, &StepCount),
) -> Result<Counts, AnalysisError> {
    if let Some(demand) = demand {
        return all_to_all_v::count(schedule, machine, demand, memory, each);
    }
    if let Some((schedule, machine)) = schedule.seen(machine) {
        return count_steps(&schedule, &machine, None, memory, each);
    }
    let reader = Reader::new(schedule, machine)?;
    reader.fits(memory)?;
    let steps = schedule.rule().steps();
    let batch = u128::from(steps.min(MAX_CHUNK)) * size_of::<StepCount>() as u128;
    check_memory("the counts of some steps", batch, memory)?;
    let per_step = counting_work(schedule, machine, None) / u128::from(steps).max(1);
    let threads = parallel::threads() as u128;
    let size = (BATCH_WORK / per_step.max(1)).max(threads).min(MAX_CHUNK.into()) as u32;
    let mut sums = Sums::default();
    let mut scratches: Vec<Scratch> = (0..threads).map(|_| reader.scratch()).collect();
    for batch in (0..steps).step_by(size as usize) {
        let batch = batch..steps.min(batch.saturating_add(size));
        let part = batch.len().div_ceil(scratches.len());
        let of_thread = |(i, scratch): (usize, &mut Scratch)| -> Vec<StepCount> {
            let steps = batch.clone().skip(i * part).take(part);
            steps.map(|step| reader.step(step, scratch, reader.equal())).collect()
        };
        let counted: Vec<_> = parallel::each(&mut scratches).enumerate().map(of_thread).collect();
        for (step, one) in batch.zip(counted.iter().flatten()) {
            each(step, one);
            sums.add(one);
        }
    }
    Ok(sums.close(schedule, &machine.timing))
}

/// The sizes of the blocks in slots.
#[derive(Clone, Copy)]
pub(crate) enum Weights<'w> {
    /// All blocks have this many bytes.
    Equal(u64),
    /// The bytes in each slot, rank by rank, and the slots of a rank. A message of no bytes is not sent.
    Each(&'w [u64], usize),
}

impl Weights<'_> {
    /// Bytes of some slots of a rank.
    fn bytes(self, rank: Rank, slots: &SlotSet) -> u128 {
        match self {
            Self::Equal(block_bytes) => slots.bytes(block_bytes),
            Self::Each(bytes, each) => {
                let first = rank.index() * each;
                slots.slots().map(|(slot, _)| u128::from(bytes[first + slot as usize])).sum()
            }
        }
    }
}

pub(crate) struct Reader<'a> {
    schedule: &'a Schedule,
    machine: &'a Machine,
    rates: Rates<'a>,
    /// Classes of equivalent ranks; one rank of each is visited.
    classes: RankClasses,
    /// The classes of nodes, and the ranks of a class on each node where links are counted.
    nodes: (RankClasses, u32),
    /// Where link loads have a closed form.
    cyclic: Option<Cyclic<'a>>,
    /// Where ranks may act by the kinds of their coordinates, of which there are fewer than classes.
    kinds: Option<&'a Grid>,
}

/// Amounts of the messages that a rank, or a node, sends in one step, or that it receives.
#[derive(Clone, Copy, Default)]
struct Load {
    messages: u32,
    sum: u128,
    least: u128,
}

impl Load {
    fn add(&mut self, times: u32, amount: u128) {
        if times > 0 {
            self.least = if self.messages == 0 { amount } else { self.least.min(amount) };
            self.sum = self.sum.saturating_add(amount.saturating_mul(times.into()));
            self.messages += times;
        }
    }

    /// The least that the most loaded of some ports carries, besides the largest message.
    fn of_port(&self, ports: u32) -> u128 {
        let whole = u128::from(self.messages.div_ceil(ports)).saturating_mul(self.least);
        whole.max(self.sum.div_ceil(ports.into()))
    }
}

pub(crate) struct Scratch {
    step: Step,
    route: Route,
    links: Vec<LinkId>,
    loads: Option<Loads>,
    busiest: Vec<Busiest>,
    shifts: Vec<Shift>,
    boxes: Boxes,
    /// Bytes that each node sends to other nodes, and receives from them.
    by_node: Vec<[Load; 2]>,
    /// Bytes and attoseconds that each rank receives, where blocks have sizes.
    received: Vec<[Load; 2]>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(schedule: &'a Schedule, machine: &'a Machine) -> Result<Self, AnalysisError> {
        check_ranks(schedule.problem.ranks, machine)?;
        let classes = schedule.rule().classes();
        let topology = &*machine.topology;
        Ok(match Cyclic::new(&classes, topology) {
            Some(cyclic) => {
                let nodes = (cyclic.nodes(), 0);
                Self {
                    schedule,
                    machine,
                    rates: Rates::new(machine),
                    classes,
                    nodes,
                    cyclic: Some(cyclic),
                    kinds: None,
                }
            }
            None => {
                let classes = symmetry::common(&classes, topology);
                let kinds = match topology.shape() {
                    Shape::Grid(grid) => {
                        let positions = grid.sides().iter().map(|&side| u64::from(side)).sum();
                        Some(grid).filter(|_| u64::from(classes.count()) > positions)
                    }
                    _ => None,
                };
                Self { kinds, ..Self::of_classes(schedule, machine, classes) }
            }
        })
    }

    /// A reader that visits every rank.
    pub(crate) fn of_all_ranks(
        schedule: &'a Schedule,
        machine: &'a Machine,
    ) -> Result<Self, AnalysisError> {
        check_ranks(schedule.problem.ranks, machine)?;
        let distinct = RankClasses::distinct(schedule.problem.ranks);
        let classes = symmetry::common(&distinct, &*machine.topology);
        Ok(Self::of_classes(schedule, machine, classes))
    }

    fn of_classes(schedule: &'a Schedule, machine: &'a Machine, classes: RankClasses) -> Self {
        let nodes = symmetry::of_nodes(&classes, &*machine.topology);
        Self {
            schedule,
            machine,
            rates: Rates::new(machine),
            classes,
            nodes,
            cyclic: None,
            kinds: None,
        }
    }

    fn equal(&self) -> Weights<'static> {
        Weights::Equal(self.schedule.problem.block_bytes)
    }

    pub(crate) fn fits(&self, memory: u128) -> Result<(), AnalysisError> {
        let topology = &*self.machine.topology;
        let loads = if self.cyclic.is_some() { 0 } else { Loads::memory(&self.classes, topology) };
        let counters = loads + (self.nodes_counted() * size_of::<[Load; 2]>()) as u128;
        // The messages of a step, sent and received.
        let step = 2 * u128::from(self.schedule.problem.ports) * size_of::<Transfer>() as u128;
        let needed = by_all_threads(counters + step);
        check_memory("a step's messages and link counters", needed, memory)
    }

    pub(crate) fn scratch(&self) -> Scratch {
        let topology = &*self.machine.topology;
        let counted = topology.link_numbers() > 0 && self.cyclic.is_none();
        let loads = counted.then(|| Loads::new(&self.classes, topology));
        Scratch {
            step: Step::default(),
            route: Route::default(),
            links: Vec::new(),
            loads,
            busiest: Vec::new(),
            shifts: Vec::new(),
            boxes: Boxes::default(),
            by_node: vec![<[Load; 2]>::default(); self.nodes_counted()],
            received: Vec::new(),
        }
    }

    /// Counts one step. `weights` are the sizes after its copies.
    pub(crate) fn step(&self, step: u32, scratch: &mut Scratch, weights: Weights<'_>) -> StepCount {
        if let (Weights::Equal(_), Some(out)) = (weights, self.step_by_kinds(step, scratch)) {
            return out;
        }
        let mut out = StepCount::default();
        let (rates, problem) = (&self.rates, &self.schedule.problem);
        let is_node = self.ranks_are_nodes();
        if matches!(weights, Weights::Each(..)) {
            scratch.received.resize(problem.ranks as usize, <[Load; 2]>::default());
        }
        let ranks_per_class = u64::from(problem.ranks / self.classes.count());
        scratch.shifts.clear();
        self.schedule.rule().active(step, &self.classes, &mut |rank| {
            self.count_rank(step, (rank, ranks_per_class, None), weights, scratch, &mut out);
        });
        for load in scratch.received.iter_mut().map(std::mem::take) {
            out.exceed(rates, problem.ports, load, 1);
            out.charges.rank(rates, load[0].sum, is_node);
        }
        if let Some(cyclic) = self.cyclic {
            shift::count(cyclic.grid, rates, &scratch.shifts, &mut out);
        }
        if let Some(loads) = &mut scratch.loads {
            loads.take(rates, &mut scratch.busiest);
            out.load_busiest(rates, &scratch.busiest, self.nodes_per_class());
        }
        if !is_node {
            for node in scratch.by_node.iter_mut() {
                for load in std::mem::take(node) {
                    let time = |bytes| rates.attoseconds(false, bytes);
                    let times = Load { sum: time(load.sum), least: time(load.least), ..load };
                    out.inter_node = out.inter_node.max(load.messages);
                    out.exceed(rates, problem.node_ports, [load, times], self.nodes_per_class());
                    out.charges.node(rates, load.sum);
                }
            }
        }
        out
    }

    /// The work of all steps if ranks act by kinds of coordinates in each.
    fn work_by_kinds(&self) -> Option<u128> {
        let (grid, rule) = (self.kinds?, self.schedule.rule());
        let mut boxes = Boxes::default();
        (0..rule.steps()).try_fold(0u128, |work, step| {
            let few = boxes.take(rule, step, grid, self.classes.count());
            (few && work <= COUNT_LIMIT).then(|| work + boxes.work())
        })
    }

    /// Counts one step of blocks of one size if its ranks act by kinds of coordinates, of which there
    /// are few.
    pub(crate) fn step_by_kinds(&self, step: u32, scratch: &mut Scratch) -> Option<StepCount> {
        let grid = self.kinds?;
        if !scratch.boxes.take(self.schedule.rule(), step, grid, self.classes.count()) {
            return None;
        }
        let (mut out, mut of) =
            (StepCount::default(), Coordinates::from_elem(0, grid.sides().len()));
        loop {
            let (rank, ranks) = scratch.boxes.ranks(grid, &of);
            self.count_rank(
                step,
                (rank, ranks, Some((grid, &of))),
                self.equal(),
                scratch,
                &mut out,
            );
            if !scratch.boxes.next(&mut of) {
                break;
            }
        }
        scratch.boxes.count(grid, &self.rates, &mut out);
        Some(out)
    }

    /// Counts a step of one rank of `times` that do the same: those of a class, or of a box.
    fn count_rank(
        &self,
        step: u32,
        (rank, times, of_box): (Rank, u64, Option<(&Grid, &Coordinates)>),
        weights: Weights<'_>,
        scratch: &mut Scratch,
        out: &mut StepCount,
    ) {
        let Scratch { step: does, route, links, loads, shifts, boxes, by_node, received, .. } =
            scratch;
        let topology = &*self.machine.topology;
        let (rates, problem) = (&self.rates, &self.schedule.problem);
        self.schedule.rule().step(rank, step, does);
        if matches!(weights, Weights::Each(..)) {
            does.sends.retain(|send| weights.bytes(rank, &send.slots) > 0);
        }
        let copied = does.copies.iter().map(|copy| weights.bytes(rank, &copy.to)).sum();
        out.copied = out.copied.max(copied);
        out.messages += u128::from(times) * does.sends.len() as u128;
        // What a rank receives is known where it is sent, if blocks have sizes.
        let each = matches!(weights, Weights::Each(..));
        let both = [&does.sends, &does.receives].into_iter().take(if each { 1 } else { 2 });
        for transfers in both.filter(|transfers| transfers.len() > problem.ports as usize) {
            self.exceed_by_rank(rank, times, transfers, weights, out);
        }
        let mut sent = 0u128;
        for send in &does.sends {
            let bytes = weights.bytes(rank, &send.slots);
            sent += bytes;
            if let Some(received) = received.get_mut(send.peer.index()) {
                received[0].add(1, bytes);
                received[1].add(1, self.alone(rank, send.peer, bytes));
            }
            out.largest_message = out.largest_message.max(bytes);
            if !send.slots.is_contiguous(problem.block_bytes) {
                out.packed = out.packed.max(bytes);
            }
            if let Some(cyclic) = self.cyclic {
                // The representative is on node 0, so its peer's node is the shift.
                for shift in cyclic.shifts(send.peer, bytes) {
                    match shift.node {
                        0 => out.charges.link(rates, INTRA_NODE, bytes),
                        _ => shifts.push(shift),
                    }
                }
                continue;
            }
            if let (Shape::Graph(graph), Some(loads)) = (topology.network(), loads.as_mut())
                && send.route.is_empty()
                && topology.node_of(rank) != topology.node_of(send.peer)
            {
                let [from, to] = [rank, send.peer].map(|end| Rank(topology.node_of(end)));
                links.clear();
                graph.own_links(from, to, links);
                out.hops = out.hops.max(links.len() as u64);
                out.charges.over(rates, links, times, bytes);
                loads.add_over(links, bytes);
                continue;
            }
            let route = send.route_from(rank, topology, route);
            if route.is_empty() {
                out.charges.link(rates, topology.link_class(rank, send.peer), bytes);
                continue;
            }
            out.hops = out.hops.max(route.hops());
            out.charges.route(rates, rank, route, times, bytes);
            match of_box {
                Some((grid, of)) => boxes.add(grid, of, route, bytes),
                None => loads.as_mut().expect("links have loads").add(topology, rank, route, bytes),
            }
        }
        if !self.machine.timing.injection.is_unlimited() {
            let is_node = self.ranks_are_nodes();
            out.charges.rank(rates, sent, is_node);
            if let Weights::Equal(block_bytes) = weights {
                let bytes = does.receives.iter().map(|receive| receive.slots.bytes(block_bytes));
                out.charges.rank(rates, bytes.sum(), is_node);
            }
        }
        self.count_by_node(rank, does, weights, by_node);
    }

    /// Adds `times` ranks that send, or receive, more messages than they have ports.
    fn exceed_by_rank(
        &self,
        rank: Rank,
        times: u64,
        transfers: &[Transfer],
        weights: Weights<'_>,
        out: &mut StepCount,
    ) {
        // The messages of equivalent ranks of a node may differ in whether they leave it.
        let members = self.cyclic.map_or(1, |cyclic| cyclic.members());
        let Problem { ranks, ports, .. } = self.schedule.problem;
        for turn in 0..members {
            let turned = |Rank(rank): Rank| Rank((rank + turn) % ranks);
            let mut load = <[Load; 2]>::default();
            for transfer in transfers {
                let bytes = weights.bytes(rank, &transfer.slots);
                load[0].add(1, bytes);
                load[1].add(1, self.alone(turned(rank), turned(transfer.peer), bytes));
            }
            out.exceed(&self.rates, ports, load, times / u64::from(members));
        }
    }

    /// Attoseconds of a message between two ranks over the fastest links.
    fn alone(&self, from: Rank, to: Rank, bytes: u128) -> u128 {
        let topology = &*self.machine.topology;
        let within = topology.node_of(from) == topology.node_of(to);
        self.rates.attoseconds(within, bytes)
    }

    fn ranks_are_nodes(&self) -> bool {
        !matches!(self.machine.topology.shape(), Shape::Clustered(_))
    }

    /// The nodes of several ranks whose messages are counted: one of each class.
    fn nodes_counted(&self) -> usize {
        match self.machine.topology.shape() {
            Shape::Clustered(_) => self.nodes.0.count() as usize,
            _ => 0,
        }
    }

    fn nodes_per_class(&self) -> u64 {
        u64::from(self.machine.topology.nodes() / self.nodes.0.count())
    }

    fn count_by_node(
        &self,
        rank: Rank,
        does: &Step,
        weights: Weights<'_>,
        by_node: &mut [[Load; 2]],
    ) {
        let topology = &*self.machine.topology;
        if by_node.is_empty() {
            return;
        }
        let (nodes, of_class) = &self.nodes;
        let at = |rank| topology.node_of(rank);
        let node = nodes.class_of(Rank(at(rank))) as usize;
        for (direction, transfers) in [&does.sends, &does.receives].into_iter().enumerate() {
            for transfer in transfers {
                let times = match self.cyclic {
                    Some(cyclic) => cyclic.crossing(transfer.peer),
                    None if at(rank) == at(transfer.peer) => 0,
                    None => *of_class,
                };
                // What a rank receives is known where it is sent, if blocks have sizes.
                let each = matches!(weights, Weights::Each(..));
                if each && direction == 1 {
                    continue;
                }
                let bytes = weights.bytes(rank, &transfer.slots);
                by_node[node][direction].add(times, bytes);
                if each {
                    by_node[at(transfer.peer) as usize][1].add(times, bytes);
                }
            }
        }
    }
}
