//! Counts one step over all ranks: every link, one rank of each class that is not idle.

mod work;

use hashbrown::HashMap;
use rayon::prelude::*;
use topocoll_schedule::{RankClasses, Schedule, Transfer};
use topocoll_topology::{
    Coordinates, Grid, INTRA_NODE, LinkId, Machine, Ports, Rank, Shape, coprime, parallel,
};

use crate::AnalysisError;
use crate::charges::Rates;
use crate::error::{by_all_threads, check_memory, check_ranks};
use crate::kinds::Boxes;
use crate::loads::{Busiest, LineLoads, Loads};
use crate::route_links::RouteLinks;
use crate::sample::{self, RankSample};
use crate::shift::{self, Shift};
use crate::step_count::{Amounts, StepCount, Sums};
use crate::symmetry::NodeClasses;
use crate::traffic::Traffic;
use crate::visit::{Does, Sent, Source, Visitor, Weights};

/// The most steps counted together: their counts take less than 64 KiB, or of many steps a byte for each.
const CHUNK: [u32; 2] = [32, 512];

/// Segments visited in a batch of steps: a small part of a second.
const BATCH_WORK: u128 = 1 << 20;

/// The counts of steps that are kept for equivalent steps, about the most.
const KEPT: usize = 1 << 12;

pub(crate) struct Counter<'a> {
    pub(crate) visitor: Visitor<'a>,
    rates: Rates<'a>,
    ports: Ports,
    nodes: NodeClasses,
    /// Whether ranks are charged as nodes; not if nodes have several ranks.
    is_node: bool,
    /// The classes of nodes whose messages are counted.
    nodes_counted: usize,
    /// The ranks whose messages received are known where they are sent.
    receivers: usize,
    /// Where ranks may act by the kinds of their coordinates, of which there are fewer than classes.
    kinds: Option<&'a Grid>,
    /// The ranks that are visited in each step, if not one of every class.
    some: Option<Vec<Rank>>,
}

/// The memory of one thread.
pub(crate) struct Scratch {
    does: Does,
    loads: Option<Loads>,
    busiest: Vec<Busiest>,
    shifts: Vec<Shift>,
    lines: Vec<LineLoads>,
    boxes: Boxes,
    /// Of one route.
    links: Vec<LinkId>,
    /// Bytes that each node sends to other nodes, and receives from them.
    by_node: Ends,
    /// Bytes and attoseconds that each rank receives, where they are known where they are sent.
    received: Ends,
}

/// Two amounts by rank or node, and those of a step that are not zero.
#[derive(Default)]
struct Ends {
    all: Vec<[Amounts; 2]>,
    used: Vec<u32>,
}

impl Ends {
    /// Of one rank or node.
    const BYTES: usize = size_of::<[Amounts; 2]>() + size_of::<u32>();

    fn new(count: usize) -> Self {
        Self { all: vec![<[Amounts; 2]>::default(); count], used: Vec::with_capacity(count) }
    }

    fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    fn at(&mut self, end: usize) -> &mut [Amounts; 2] {
        let amounts = &mut self.all[end];
        if amounts.iter().all(|of| of.messages == 0) {
            self.used.push(end as u32);
        }
        amounts
    }

    /// Takes those of a step.
    fn take(&mut self) -> impl Iterator<Item = (usize, [Amounts; 2])> {
        let Self { all, used } = self;
        used.drain(..).map(|end| (end as usize, std::mem::take(&mut all[end as usize])))
    }
}

impl<'a> Counter<'a> {
    /// Of the classes of a schedule of equal blocks.
    pub(crate) fn new(schedule: &'a Schedule, machine: &'a Machine) -> Result<Self, AnalysisError> {
        check_ranks(schedule.problem.ranks, machine)?;
        let classes = schedule.rule().classes();
        let counter = Self::of(Source::Schedule(schedule), machine, &classes);
        let kinds = match machine.topology.shape() {
            Shape::Grid(grid) if counter.visitor.cyclic.is_none() => {
                let positions: u64 = grid.sides().iter().map(|&side| u64::from(side)).sum();
                Some(grid).filter(|_| u64::from(counter.visitor.ranks.classes.count()) > positions)
            }
            _ => None,
        };
        Ok(Self { kinds, ..counter })
    }

    /// Of all ranks of a schedule whose blocks have sizes.
    pub(crate) fn of_sizes(
        schedule: &'a Schedule,
        machine: &'a Machine,
    ) -> Result<Self, AnalysisError> {
        let ranks = schedule.problem.ranks;
        check_ranks(ranks, machine)?;
        let classes = RankClasses::distinct(ranks);
        let counter = Self::of(Source::Schedule(schedule), machine, &classes);
        Ok(Self { receivers: ranks as usize, ..counter })
    }

    /// Of traffic, which exceeds no ports. What ranks and nodes receive is only known where it is sent:
    /// if their injection is limited, all ranks are visited.
    pub(crate) fn of_traffic(traffic: &'a dyn Traffic, machine: &'a Machine) -> Self {
        let (source, counted) = (Source::Traffic(traffic), |count: u32| count as usize);
        if machine.timing.injection.is_unlimited() {
            let counter = Self::of(source, machine, &traffic.classes());
            return Self { is_node: false, nodes_counted: 0, ..counter };
        }
        let counter = Self::of(source, machine, &RankClasses::distinct(traffic.nodes()));
        let nodes_counted = counted(machine.topology.nodes());
        Self { is_node: false, receivers: counted(traffic.nodes()), nodes_counted, ..counter }
    }

    fn of(source: Source<'a>, machine: &'a Machine, classes: &RankClasses) -> Self {
        let (visitor, topology) = (Visitor::new(source, machine, classes), &*machine.topology);
        let nodes = match visitor.cyclic {
            Some(cyclic) => NodeClasses::Translations(cyclic.nodes(), 0),
            None => NodeClasses::new(&visitor.ranks, topology),
        };
        let is_node = !matches!(topology.shape(), Shape::Clustered(_));
        let nodes_counted = if is_node { 0 } else { nodes.count() as usize };
        let ports = source.schedule().map_or(Ports::ALL, |of| of.problem.both_ports());
        let rates = Rates::new(machine);
        let (receivers, kinds, some) = (0, None, None);
        Self { visitor, rates, ports, nodes, is_node, nodes_counted, receivers, kinds, some }
    }

    /// The same of these ranks alone.
    pub(crate) fn only(self, ranks: &[Rank]) -> Self {
        let visitor = Visitor { on_router: None, ..self.visitor };
        Self { some: Some(ranks.to_vec()), visitor, ..self }
    }

    /// The same of a sample of the classes.
    pub(crate) fn of_some(self, sample: RankSample) -> Self {
        let (classes, topology) = (&self.visitor.ranks.classes, &*self.visitor.machine.topology);
        let all = classes.count();
        let near = |most: u32| match sample::crossing(topology) {
            Some(nodes) if all == topology.ranks() => {
                let size = topology.ranks() / topology.nodes();
                let ranks = nodes.flat_map(|node| node * size..(node + 1) * size);
                ranks.take(most as usize).collect()
            }
            _ => (0..most).collect(),
        };
        let some: Option<Vec<u32>> = match sample {
            RankSample::Spread(most) | RankSample::Near(most) if all <= most => None,
            RankSample::Spread(most) => Some(sample::spread(all, most).collect()),
            RankSample::Near(most) => Some(near(most)),
        };
        let Some(some) = some else { return self };
        let some: Vec<Rank> = some.into_iter().map(|of| classes.representative(of)).collect();
        self.only(&some)
    }

    /// Bytes of the counters of one thread.
    pub(crate) fn memory(&self) -> u128 {
        self.visitor.memory_of_loads()
            + ((self.nodes_counted + self.receivers) * Ends::BYTES) as u128
    }

    /// Bytes of the counts of equivalent steps that are kept, in a table that doubles.
    pub(crate) fn kept(&self) -> u128 {
        match self.steps() {
            0 => 0,
            steps if self.class_of_step(0).is_some() => {
                let most = 2 * (steps as usize).min(KEPT).next_power_of_two();
                (most * size_of::<(u64, StepCount)>()) as u128
            }
            _ => 0,
        }
    }

    /// Checks that a step, all counters and the counts that are kept fit.
    pub(crate) fn fits(&self, kept: u128, memory: u128) -> Result<(), AnalysisError> {
        // The messages of a step, sent and received.
        let step = 2 * u128::from(self.ports.rank) * size_of::<Transfer>() as u128;
        let needed = by_all_threads(self.memory() + step) + kept;
        check_memory("a step's messages and link counters", needed, memory)
    }

    pub(crate) fn scratch(&self) -> Scratch {
        let Visitor { machine, cyclic, .. } = &self.visitor;
        let topology = &*machine.topology;
        let counted = topology.link_numbers() > 0 && cyclic.is_none();
        Scratch {
            does: Does::default(),
            loads: counted.then(|| self.visitor.loads()),
            busiest: Vec::new(),
            shifts: Vec::new(),
            lines: Vec::new(),
            boxes: Boxes::default(),
            links: Vec::new(),
            by_node: Ends::new(self.nodes_counted),
            received: Ends::new(self.receivers),
        }
    }

    fn steps(&self) -> u32 {
        match self.visitor.source {
            Source::Schedule(schedule) => schedule.rule().steps(),
            Source::Traffic(traffic) => traffic.steps(),
        }
    }

    /// The class of a step, if there are classes of steps.
    fn class_of_step(&self, step: u32) -> Option<u64> {
        let rule = self.visitor.source.schedule()?.rule();
        let class = rule.class_of_step(step)?;
        let network = || match self.visitor.machine.topology.shape() {
            Shape::Graph(graph) => graph.groups(),
            _ => None,
        };
        rule.equivalent_on_routers().is_none_or(|of| network() == Some(of)).then_some(class)
    }

    /// Counts all steps of equal blocks, in order or scattered, and adds them up. Calls `each` with every one
    /// and the sums with it, until that returns false.
    pub(crate) fn each_step(
        &self,
        scattered: bool,
        mut each: impl FnMut(u32, &StepCount, &Sums) -> bool,
    ) -> Sums {
        let steps = self.steps();
        if steps == 0 {
            return Sums::default();
        }
        // Most steps of rules that know classes are not visited.
        let per_step = match self.class_of_step(0) {
            Some(_) => 1,
            None => self.work() / u128::from(steps),
        };
        let per_step = match &self.some {
            Some(ranks) => {
                per_step * ranks.len() as u128 / u128::from(self.visitor.ranks.classes.count())
            }
            None => per_step,
        };
        let threads = parallel::threads() as u128;
        let most = (steps / 1024).clamp(CHUNK[0], CHUNK[1]);
        let size = (BATCH_WORK / per_step.max(1)).max(threads).min(most.into()) as u32;
        let mut sums = Sums::default();
        let mut scratches: Vec<Scratch> = (0..threads).map(|_| self.scratch()).collect();
        let apart = if scattered && self.class_of_step(0).is_none() {
            coprime(u64::from(steps) * 89 / 144, steps.into())
        } else {
            1
        };
        let numbered = |place: u32| (u64::from(place) * apart % u64::from(steps)) as u32;
        // Steps counted before, by their classes.
        let mut known: HashMap<u64, StepCount> = HashMap::new();
        for batch in (0..steps).step_by(size as usize) {
            let batch = (batch..steps.min(batch.saturating_add(size))).map(numbered);
            let (mut new, mut places) = (Vec::new(), HashMap::new());
            let mut push = |step: u32| {
                new.push(step);
                new.len() - 1
            };
            let placed = batch.map(|step| match self.class_of_step(step) {
                None => (step, Err(push(step))),
                Some(class) if known.contains_key(&class) => (step, Ok(class)),
                Some(class) => (step, Err(*places.entry(class).or_insert_with(|| push(step)))),
            });
            let placed: Vec<(u32, Result<u64, usize>)> = placed.collect();
            let part = new.len().div_ceil(scratches.len()).max(1);
            let of_thread = |(scratch, part): (&mut Scratch, &[u32])| -> Vec<StepCount> {
                part.iter().map(|&step| self.step(step, scratch, Weights::Equal)).collect()
            };
            let parts = scratches.iter_mut().zip(new.chunks(part));
            let counted: Vec<Vec<StepCount>> =
                parallel::each(parts.collect::<Vec<_>>()).map(of_thread).collect();
            for (step, place) in placed {
                let one = match place {
                    Ok(class) => &known[&class],
                    Err(place) => &counted[place / part][place % part],
                };
                sums.add(one);
                if !each(step, one, &sums) {
                    return sums;
                }
            }
            if known.len() > KEPT {
                known.clear();
            }
            let kept = places.into_iter();
            known.extend(kept.map(|(class, place)| (class, counted[place / part][place % part])));
        }
        sums
    }

    /// Counts one step. `weights` are the sizes after its copies.
    pub(crate) fn step(&self, step: u32, scratch: &mut Scratch, weights: Weights<'_>) -> StepCount {
        if let Some(out) = self.step_by_kinds(step, scratch) {
            return out;
        }
        let mut out = StepCount::default();
        let (rates, classes) = (&self.rates, &self.visitor.ranks.classes);
        let ranks_per_class = u64::from(self.visitor.machine.ranks() / classes.count());
        scratch.shifts.clear();
        let mut visit = |rank| {
            self.count_rank(step, (rank, ranks_per_class, None), weights, scratch, &mut out);
        };
        match (&self.some, self.visitor.on_router) {
            (Some(ranks), _) => ranks.iter().copied().for_each(visit),
            (None, Some(_)) => {
                let all = (Rank(0), self.visitor.machine.ranks().into(), None);
                self.count_rank(step, all, weights, scratch, &mut out);
            }
            (None, None) => self.visitor.each_active(step, &mut visit),
        }
        for (_, load) in scratch.received.take() {
            out.exceed(rates, self.ports.rank, load, 1);
            out.charges.rank(rates, load[0].sum, self.is_node);
        }
        if let Some(cyclic) = self.visitor.cyclic {
            let lines = (&mut scratch.lines, &mut scratch.busiest);
            cyclic.count(rates, &scratch.shifts, lines, &mut out);
        }
        if let Some(loads) = &mut scratch.loads {
            if let Some(nodes) = self.visitor.on_router {
                let (topology, classes) = (&*self.visitor.machine.topology, classes.count());
                let of = (topology, nodes, classes);
                shift::count_routers(
                    of,
                    rates,
                    &scratch.shifts,
                    (loads, &mut scratch.links),
                    &mut out,
                );
            }
            loads.take(rates, &mut scratch.busiest);
            let equivalent =
                if self.visitor.ranks.orbits.is_some() { 1 } else { self.nodes_of_class(0) };
            out.load_busiest(rates, &scratch.busiest, equivalent);
        }
        for (class, load) in
            scratch.by_node.take().flat_map(|(class, loads)| loads.map(|load| (class, load)))
        {
            let time = |bytes| rates.attoseconds(false, bytes);
            let times = Amounts { sum: time(load.sum), least: time(load.least), ..load };
            out.inter_node = out.inter_node.max(load.messages);
            out.exceed(rates, self.ports.node, [load, times], self.nodes_of_class(class));
            out.charges.node(rates, load.sum);
        }
        // A part of the messages may have smaller ones, and then more beyond them.
        if self.some.is_none() {
            out.contend(rates);
        }
        out
    }

    /// Counts one step if its ranks act by kinds of coordinates, of which there are few.
    pub(crate) fn step_by_kinds(&self, step: u32, scratch: &mut Scratch) -> Option<StepCount> {
        let (grid, rule) = (self.kinds?, self.visitor.source.schedule()?.rule());
        if !scratch.boxes.take(rule, step, grid, self.visitor.ranks.classes.count()) {
            return None;
        }
        let (mut out, mut of) =
            (StepCount::default(), Coordinates::from_elem(0, grid.sides().len()));
        loop {
            let (rank, ranks) = scratch.boxes.ranks(grid, &of);
            let of_box = (rank, ranks, Some((grid, &of)));
            self.count_rank(step, of_box, Weights::Equal, scratch, &mut out);
            if !scratch.boxes.next(&mut of) {
                break;
            }
        }
        scratch.boxes.count(grid, &self.rates, &mut out);
        out.contend(&self.rates);
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
        let Scratch { does, loads, shifts, boxes, by_node, received, .. } = scratch;
        let (visitor, rates) = (&self.visitor, &self.rates);
        let topology = &*visitor.machine.topology;
        out.copied = out.copied.max(visitor.read((rank, step), weights, does));
        out.messages += u128::from(times) * does.sent.len() as u128;
        out.sent = out.sent.max(does.sent.len() as u32);
        // What a rank receives is counted where it is sent, or where it is received.
        let known = received.is_empty();
        self.exceed_by_rank(rank, times, &does.sent.iter().copied(), out);
        if known {
            self.exceed_by_rank(rank, times, &visitor.received(does), out);
        }
        let mut sent = 0u128;
        for i in 0..does.sent.len() {
            let message @ Sent { peer, bytes, packed } = does.sent[i];
            sent += bytes;
            out.rendezvous |= visitor.machine.timing.rendezvous.of(bytes) > 0.0;
            self.count_by_node([rank, peer], 0, message, by_node);
            if !known {
                let received = received.at(peer.index());
                received[0].add(1, bytes);
                received[1].add(1, self.alone(rank, peer, bytes));
                self.count_by_node([peer, rank], 1, message, by_node);
            }
            out.largest_message = out.largest_message.max(bytes);
            out.packed = out.packed.max(packed);
            if let Some(cyclic) = visitor.cyclic {
                // The representative is on node 0, so its peer's node is the shift.
                for shift in cyclic.shifts(peer, bytes) {
                    match shift.node {
                        0 => out.charges.link(rates, INTRA_NODE, bytes),
                        _ => shifts.push(shift),
                    }
                }
                continue;
            }
            if visitor.on_router.is_some() {
                shifts.push(Shift { node: peer.0, times: 1, bytes });
                continue;
            }
            let route_links = visitor.route_links(rank, i, does);
            out.hops = out.hops.max(route_links.hops());
            out.charges.route_links(rates, rank, &route_links, times, bytes);
            match (route_links, of_box, loads.as_mut()) {
                (RouteLinks::Route(route), Some((grid, of)), _) => {
                    boxes.add(grid, of, route, bytes);
                }
                (RouteLinks::Route(_) | RouteLinks::Links(_), None, Some(loads)) => {
                    loads.add(topology, rank, &route_links, bytes);
                }
                _ => out.charges.link(rates, topology.link_class(rank, peer), bytes),
            }
        }
        if known && !by_node.is_empty() {
            for message in visitor.received(does) {
                self.count_by_node([rank, message.peer], 1, message, by_node);
            }
        }
        if !visitor.machine.timing.injection.is_unlimited() {
            out.charges.rank(rates, sent, self.is_node);
            if known {
                let bytes = visitor.received(does).map(|message| message.bytes).sum();
                out.charges.rank(rates, bytes, self.is_node);
            }
        }
    }

    /// Adds `times` ranks that send, or receive, these messages, if they are more than ports.
    fn exceed_by_rank(
        &self,
        rank: Rank,
        times: u64,
        messages: &(impl ExactSizeIterator<Item = Sent> + Clone),
        out: &mut StepCount,
    ) {
        if messages.len() <= self.ports.rank as usize {
            return;
        }
        // The messages of equivalent ranks of a node may differ in whether they leave it.
        let members = self.visitor.cyclic.map_or(1, |cyclic| cyclic.members());
        let ranks = self.visitor.machine.ranks();
        for turn in 0..members {
            let turned = |Rank(rank): Rank| Rank((rank + turn) % ranks);
            let mut load = <[Amounts; 2]>::default();
            for Sent { peer, bytes, .. } in messages.clone() {
                load[0].add(1, bytes);
                load[1].add(1, self.alone(turned(rank), turned(peer), bytes));
            }
            out.exceed(&self.rates, self.ports.rank, load, times / u64::from(members));
        }
    }

    /// Attoseconds of a message between two ranks over the fastest links.
    fn alone(&self, from: Rank, to: Rank, bytes: u128) -> u128 {
        let topology = &*self.visitor.machine.topology;
        let within = topology.node_of(from) == topology.node_of(to);
        self.rates.attoseconds(within, bytes)
    }

    fn nodes_of_class(&self, class: usize) -> u64 {
        self.nodes.size(class, self.visitor.machine.topology.nodes())
    }

    /// Adds a message to what the node of its first end sends, or receives.
    fn count_by_node(&self, ends: [Rank; 2], direction: usize, message: Sent, by_node: &mut Ends) {
        if by_node.is_empty() {
            return;
        }
        let [own, other] = ends.map(|rank| self.visitor.machine.topology.node_of(rank));
        let (class, of_class) = self.nodes.of(own);
        let times = match self.visitor.cyclic {
            Some(cyclic) => cyclic.crossing(ends[1]),
            None if own == other => 0,
            None => of_class,
        };
        if times > 0 {
            by_node.at(class)[direction].add(times, message.bytes);
        }
    }
}
