//! Lifting: an exchange of single ranks becomes one of nodes of several ranks.
//!
//! All nodes have equal sizes, s ranks each. The ranks of a node are divided into `lanes` of w
//! ranks each. First the ranks of a lane gather their blocks at its first rank, the carrier, along
//! a tree. Then the carriers of each lane perform the exchange between nodes: what is a block there
//! are all blocks of the lane for another node. Its routes are those of the nodes. Last, the ranks
//! of a node distribute what has arrived.
//!
//! The ports of a node are shared: `lanes` / `turns` lanes exchange at once, each with its part of
//! the ports, and the others in later turns.
//!
//! Claim, of an exchange of S steps and V blocks between N nodes, with k ports:
//! - the inter-node steps and volume are `turns` S and `turns` V w s in an all-to-all (V w in an
//!   all-gather), and the rearrangements those of every turn;
//! - gathering takes ceil(log_{k+1} w) steps of (w - 1) / k ranks' blocks, rounded by step;
//! - in an all-to-all, a single carrier distributes along a tree, and several in rounds, in which
//!   each sends to the i-th rank after it: ceil((s - 1) / k) steps of w N blocks;
//! - in an all-gather, a carrier broadcasts w N blocks in its lane along a tree; then ranks of
//!   equal place in their lanes gather the other lanes' as in `concat.rs`.
//!
//! # The layout
//! A slot of the exchange between nodes becomes w s slots, by source and then destination; in an
//! all-gather it becomes s, by source. Blocks keep their slots while they are gathered. If an
//! all-to-all has several carriers, each sends what has arrived to a second room, by slot of the
//! exchange and source.

use std::ops::ControlFlow;

use topocoll_schedule::{
    Axis, Block, Collective, MAX_BLOCK_BYTES, Parameters, Part, RankClasses, Rule, Schedule, Slot,
    SlotSet, Step, Strided,
};
use topocoll_topology::{Clusters, Coordinates, MixedRadix, Rank, Route, Topology};

use crate::front::front;
use crate::layout::node_rows::Row;
use crate::layout::tree::{digits, passed};
use crate::{
    Algorithm, ByLinks, Claims, NotApplicable, Parameter, Request, Solution, StepsOf, Values,
};

/// The parameter that names the exchange between nodes.
pub(crate) const BETWEEN: Parameter = Parameter::algorithm(
    "between",
    "the exchange between nodes of equal sizes, any of the operation that applies to their network",
);
/// The parameter of turns.
pub(crate) const TURNS: Parameter = Parameter::number(
    "turns",
    "with between, turns of the lanes, from the fewest that a node's ports allow (default) to the lanes",
);

/// Slots of a rank, at most.
const MOST_SLOTS: u128 = 1 << 40;
/// Slots of all classes whose layouts are looked at, at most.
const MOST_LAYOUTS: u64 = 1 << 22;
/// Messages of a node that are looked at where there are too many nodes for looking at all.
const LOOKED_AT: u64 = 64;

/// A request for an exchange between nodes.
pub(crate) struct Between<'r> {
    request: &'r Request<'r>,
    values: &'r Values<'r>,
    clusters: &'r Clusters,
    /// Ranks of each node.
    size: u32,
}

impl<'r> Between<'r> {
    /// The exchange that the parameter names, if it is given.
    pub(crate) fn of(
        request: &'r Request<'r>,
        values: &'r Values<'r>,
    ) -> Result<Option<Self>, NotApplicable> {
        let clusters = request.clusters()?;
        let Some((name, _)) = values.algorithm(BETWEEN.name) else {
            let requires = || format!("{}=NAME", BETWEEN.name);
            let alone = values.is_given(TURNS.name);
            return if alone { Err(values.alone(TURNS.name, requires())) } else { Ok(None) };
        };
        if values.is_given("rounds") {
            return Err(values.refused("rounds", format!("for an exchange with between={name}")));
        }
        if clusters.nodes() == 1 {
            return Err(request.requires("a cluster of several nodes"));
        }
        if clusters.by_node().is_none() {
            return Err(request.requires("a machine with nodes of equal sizes"));
        }
        let size = clusters.largest();
        let slots = u128::from(clusters.ranks()) * u128::from(size);
        if slots > MOST_SLOTS {
            let rule = "nodes times ranks of a node squared to be at most 2^40";
            return Err(NotApplicable::Ranks { rule, ranks: clusters.ranks() });
        }
        Ok(Some(Self { request, values, clusters, size }))
    }

    /// Solves the exchange between nodes with blocks of `blocks` blocks.
    fn solve(&self, blocks: u64, ports: u32) -> Result<Solution, NotApplicable> {
        let part = self.request.part(&**self.clusters.network(), ports, self.request.bytes(blocks));
        let part = part.ok_or_else(|| {
            let rule = "for blocks of two nodes of more than 2^40 bytes";
            self.values.refused(BETWEEN.name, rule)
        })?;
        let solution = self.values.solve_named(BETWEEN.name, &part)?;
        Ok(solution.expect("bug: an exchange between nodes without a name"))
    }

    /// The exchange between nodes, with whole nodes' blocks for each other, if it is an all-to-all
    /// that sends each of them once: straight to its destination, in a message of its own.
    pub(crate) fn straight(&self) -> Result<Option<Solution>, NotApplicable> {
        let size = u64::from(self.size);
        let solution = self.solve(size * size, self.request.carrier_ports())?;
        let (rule, others) = (solution.schedule.rule(), u64::from(self.clusters.nodes()) - 1);
        let classes = rule.classes();
        let too_large = Row::check(self.clusters).err();
        // Every node sends its blocks for others at least once.
        let straight = |class: u32| {
            let (mut sent, mut single) = (0, true);
            rule.each_step(classes.representative(class), &mut |_, does| {
                for send in &does.sends {
                    sent += 1;
                    single &= send.slots.len() == 1;
                }
                let enough = if too_large.is_some() { sent >= LOOKED_AT } else { sent > others };
                if enough || !single { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            single && (sent == others || too_large.is_some())
        };
        if !straight(0) {
            return Ok(None);
        }
        if let Some(reason) = too_large {
            return Err(reason);
        }
        let all = (1..classes.count()).all(straight);
        Ok(all.then_some(solution))
    }

    /// The lifted schedule.
    pub(crate) fn lifted(&self) -> Result<Solution, NotApplicable> {
        let (values, ports, size) = (self.values, self.request.problem.both_ports(), self.size);
        let divides = |lanes: &u32| size % lanes == 0;
        let lanes = match values.number("lanes", 1, size.into())?.map(|lanes| lanes as u32) {
            None => (1..=size.min(ports.node)).rev().find(divides).unwrap_or(1),
            Some(lanes) if divides(&lanes) => lanes,
            Some(_) => {
                let rule = format!("a divisor of the {size} ranks of a node");
                return Err(values.refused("lanes", rule));
            }
        };
        let fewest = lanes.div_ceil(ports.node);
        let turns = values.number(TURNS.name, fewest.into(), lanes.into())?;
        let at_once = lanes.div_ceil(turns.map_or(fewest, |turns| turns as u32));
        let turns = lanes.div_ceil(at_once);
        let unit = match self.request.problem.operation {
            Collective::AllToAll => size,
            Collective::AllGather => 1,
        };
        let blocks = u64::from(size / lanes) * u64::from(unit);
        let between = self.solve(blocks, ports.rank.min(ports.node / at_once))?;
        let rule = Lifted::new(self, between.schedule.clone(), lanes, at_once)?;
        let inside = rule.inside(self.request.problem.block_bytes);
        let claims = self.claims(inside, &between.claims, turns, at_once);
        let solution = Solution::new(self.request, values, rule, claims);
        Ok(self
            .named(solution, &between)
            .with("lanes", u64::from(lanes))
            .with(TURNS.name, u64::from(turns)))
    }

    /// The claims of a lifted schedule: its intra-node steps, and the exchange between nodes in
    /// turns.
    pub(crate) fn claims(
        &self,
        inside: StepsOf,
        between: &Claims,
        turns: u32,
        at_once: u32,
    ) -> Claims {
        let turns = u64::from(turns);
        let all = u128::from(turns);
        let inter_node = StepsOf { steps: turns * between.steps, bytes: all * between.bytes };
        let rearrangements = between.rearrangements.map(|times| times * turns as u32);
        if self.clusters.network().links() == 0 {
            let by_links = ByLinks { intra_node: inside, inter_node, ..ByLinks::default() };
            return Claims { rearrangements, ..Claims::of_cluster(by_links, true) };
        }
        Claims {
            hops: between.hops.map(|hops| all * hops),
            rearrangements,
            contention_free: between.contention_free && at_once == 1,
            link_bytes_floor: inside.bytes + all * between.link_bytes_floor,
            hops_floor: all * between.hops_floor,
            ..Claims::new(inside.steps + inter_node.steps, inside.bytes + inter_node.bytes)
        }
    }

    /// A solution with the parameters of the exchange between nodes, and without those it replaces.
    pub(crate) fn named(&self, solution: Solution, between: &Solution) -> Solution {
        solution.without("rounds").with_named(&BETWEEN, between)
    }
}

/// The settings with which an algorithm lifts exchanges, as far as they are worth pricing: one
/// carrier for each node, or all ranks, together or in turn.
pub(crate) fn candidates(request: &Request<'_>) -> Vec<Parameters> {
    let Ok(clusters) = request.clusters() else { return Vec::new() };
    let (network, size, ports) = (clusters.network(), clusters.largest(), request.carrier_ports());
    let operation = request.problem.operation;
    // Where nodes are fully connected, other all-to-alls are as short without lifting.
    let better = network.links() > 0 || operation == Collective::AllGather;
    if clusters.by_node().is_none() || size == 1 || network.ranks() == 1 || !better {
        return Vec::new();
    }
    let bytes = request.bytes(size).min(MAX_BLOCK_BYTES.into());
    let Some(inner) = request.part(&**network, ports, bytes) else { return Vec::new() };
    let named = inner.inner().flat_map(|algorithm| {
        settings(&inner, algorithm)
            .into_iter()
            .map(|own| BETWEEN.naming(&algorithm.info().name, &own))
    });
    let carried = [(1, None), (size, None), (size, Some(size))];
    let some = if request.problem.node_ports > 1 { 3 } else { 2 };
    let carried = named.flat_map(|named| {
        carried[..some].iter().map(move |&(lanes, turns)| {
            let turns = turns.map(|turns| (TURNS.name, turns));
            let both = [("lanes", lanes)].into_iter().chain(turns);
            let numbers = both.map(|(key, value)| (key.to_owned(), u64::from(value).into()));
            named.clone().into_iter().chain(numbers).collect()
        })
    });
    carried.collect()
}

/// Some of an algorithm's settings, on its Pareto front of claimed steps and bytes.
fn settings(request: &Request<'_>, algorithm: &dyn Algorithm) -> Vec<Parameters> {
    /// The most settings.
    const SOME: usize = 4;
    /// The longest search, in seconds.
    const LONGEST: f64 = 0.1;
    let is_short = |setting: &Parameters| {
        request.search(algorithm, setting).is_none_or(|search| search.seconds <= LONGEST)
    };
    if !is_short(&Parameters::new()) {
        return Vec::new();
    }
    let mut settings = request.candidates(algorithm).unwrap_or_default();
    settings.retain(is_short);
    if settings.len() == 1 {
        return settings;
    }
    let claimed = settings.into_iter().filter_map(|setting| {
        let claims = request.solve(algorithm, &setting).ok()?.claims;
        Some((claims.steps, claims.bytes.max(claims.link_bytes_floor), setting))
    });
    front(claimed.collect(), SOME).into_iter().map(|(_, setting)| setting).collect()
}

/// Runs of inner slots, as (first, number).
pub(crate) type Runs = Vec<(Slot, u64)>;

struct Lifted {
    operation: Collective,
    block_bytes: u64,
    between: Schedule,
    /// Slots of the exchange between nodes.
    inner_slots: u64,
    nodes: u32,
    /// Ranks of a node.
    size: u32,
    ports: u32,
    lanes: u32,
    /// Lanes of a turn.
    at_once: u32,
    /// By class of nodes, the slots that hold a block before and after the exchange between nodes.
    held: Vec<[Runs; 2]>,
    node_classes: RankClasses,
    cuts: Vec<u64>,
    /// Steps before, in each turn of, and after the exchange between nodes.
    gather: u32,
    turn: u32,
    deal: u32,
    /// Of `deal`, the broadcast of an all-gather within lanes.
    broadcast: u32,
}

/// A rank's place.
#[derive(Clone, Copy)]
struct Place {
    node: u32,
    /// Its number on the node.
    local: u32,
    lane: u32,
    /// Its number in the lane.
    own: u32,
}

impl Lifted {
    fn new(
        of: &Between<'_>,
        between: Schedule,
        lanes: u32,
        at_once: u32,
    ) -> Result<Self, NotApplicable> {
        let problem = &of.request.problem;
        let (nodes, size, ports) = (of.clusters.nodes(), of.size, problem.ports);
        let (base, width) = (u64::from(ports) + 1, size / lanes);
        let within = digits(base, width);
        let broadcast = if problem.operation == Collective::AllGather { within } else { 0 };
        let deal = match problem.operation {
            Collective::AllGather => within + digits(base, lanes),
            Collective::AllToAll if lanes == 1 => digits(base, size),
            Collective::AllToAll => (size - 1).div_ceil(ports),
        };
        let (rule, turns) = (between.rule(), lanes.div_ceil(at_once));
        let (inner_slots, turn, node_classes) = (rule.slots(), rule.steps(), rule.classes());
        let steps = u64::from(within) + u64::from(turns) * u64::from(turn) + u64::from(deal);
        if steps > u32::MAX.into() {
            let rule = "an exchange that takes at most 2^32 - 1 steps in all turns";
            return Err(of.values.refused(BETWEEN.name, rule));
        }
        let held = held(&between, problem.operation).ok_or_else(|| {
            let rule = "of few enough classes of nodes to look at their layouts";
            of.values.refused(BETWEEN.name, rule)
        })?;
        let block_bytes = problem.block_bytes;
        let mut cuts: Vec<u64> = rule.cuts().iter().map(|cut| cut % block_bytes).collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts.retain(|&cut| cut > 0);
        Ok(Self {
            operation: problem.operation,
            block_bytes,
            inner_slots,
            nodes,
            size,
            ports,
            lanes,
            at_once,
            held,
            node_classes,
            cuts,
            gather: within,
            turn,
            deal,
            broadcast,
            between,
        })
    }

    /// Ranks of a lane.
    fn width(&self) -> u32 {
        self.size / self.lanes
    }

    /// Slots of a source at each slot of the exchange between nodes.
    fn unit(&self) -> u64 {
        match self.operation {
            Collective::AllToAll => self.size.into(),
            Collective::AllGather => 1,
        }
    }

    /// Slots from one slot of the exchange between nodes to the next.
    fn stride(&self) -> u64 {
        match self.operation {
            Collective::AllToAll => u64::from(self.width()) * u64::from(self.size),
            Collective::AllGather => self.size.into(),
        }
    }

    /// The first slot of a source of a lane, from that of the slot of the exchange between nodes.
    fn offset(&self, lane: u32, source: u32) -> u64 {
        match self.operation {
            Collective::AllToAll => u64::from(source) * self.unit(),
            Collective::AllGather => u64::from(lane * self.width() + source),
        }
    }

    /// The first slot of the room for blocks that several carriers distribute.
    fn second_room(&self) -> u64 {
        self.inner_slots * self.stride()
    }

    fn has_second_room(&self) -> bool {
        self.operation == Collective::AllToAll && self.lanes > 1
    }

    fn turns(&self) -> u32 {
        self.lanes.div_ceil(self.at_once)
    }

    fn base(&self) -> u64 {
        u64::from(self.ports) + 1
    }

    fn place(&self, rank: Rank) -> Place {
        let (node, local) = (rank.0 / self.size, rank.0 % self.size);
        Place { node, local, lane: local / self.width(), own: local % self.width() }
    }

    fn rank(&self, node: u32, local: u32) -> Rank {
        Rank(node * self.size + local)
    }

    /// The slots of the exchange between nodes that hold a block before it, or after it.
    fn held(&self, node: u32, after: bool) -> impl Iterator<Item = Strided> {
        let class = self.node_classes.class_of(Rank(node));
        let runs = &self.held[class as usize][usize::from(after)];
        runs.iter().map(|&(first, count)| Strided::contiguous(first, count))
    }

    /// Appends `length` slots from `first` on of each slot of a run.
    fn push(&self, out: &mut SlotSet, run: Strided, first: u64, length: u64) {
        let wide = |axis: Axis| Axis { stride: axis.stride * self.stride() as i64, ..axis };
        let base = run.base * self.stride() + first;
        let piece = Axis { count: length, stride: 1 };
        let (outer, inner) = (wide(run.outer), wide(run.inner));
        if length == self.stride() && (run.inner.stride == 1 || run.inner.count == 1) {
            let inner = Axis { count: run.inner.count * length, stride: 1 };
            return out.push(Strided { base, outer, inner });
        }
        match (run.outer.count, run.inner.count) {
            (1, 1) => out.push(Strided { base, outer: Axis::POINT, inner: piece }),
            (1, _) => out.push(Strided { base, outer: inner, inner: piece }),
            (_, 1) => out.push(Strided { base, outer, inner: piece }),
            _ if length == 1 => out.push(Strided { base, outer, inner }),
            (count, _) => (0..count as i64).for_each(|i| {
                let base = (base as i64 + i * outer.stride) as u64;
                out.push(Strided { base, outer: inner, inner: piece });
            }),
        }
    }

    /// Appends a part of the blocks of a lane at a slot of the exchange between nodes.
    fn push_bytes(&self, out: &mut SlotSet, base: u64, first: u64, end: u64) {
        let (size, mut at) = (self.block_bytes, first);
        while at < end {
            let (slot, start) = (base + at / size, at % size);
            if start == 0 && end - at >= size {
                let blocks = (end - at) / size;
                out.push(Strided::contiguous(slot, blocks));
                at += blocks * size;
            } else {
                let stop = size.min(start + end - at);
                let part = Part::Bytes { first: start, end: stop };
                out.push_part(Strided::contiguous(slot, 1), part);
                at += stop - start;
            }
        }
    }

    /// The slots of a lane for slots of the exchange between nodes.
    fn slots_of(&self, inner: &SlotSet, lane: u32) -> SlotSet {
        let (offset, length) = (self.offset(lane, 0), u64::from(self.width()) * self.unit());
        let mut out = SlotSet::default();
        for run in inner.runs() {
            match run.part {
                Part::Whole => self.push(&mut out, run.slots, offset, length),
                Part::Bytes { first, end } => {
                    for slot in run.slots.iter() {
                        self.push_bytes(&mut out, slot * self.stride() + offset, first, end);
                    }
                }
            }
        }
        out
    }

    /// A step in which carriers gather.
    fn gather(&self, place: Place, step: u32, out: &mut Step) {
        let (weight, width) = (self.base().pow(step), u64::from(self.width()));
        let own = u64::from(place.own);
        if own % weight > 0 {
            return;
        }
        // The blocks gathered below a rank, for all nodes.
        let below = |first: u64| {
            let (offset, count) =
                (self.offset(place.lane, first as u32), weight.min(width - first));
            let mut slots = SlotSet::default();
            for run in self.held(place.node, false) {
                self.push(&mut slots, run, offset, count * self.unit());
            }
            slots
        };
        let rank = |own: u64| self.rank(place.node, place.lane * self.width() + own as u32);
        let digit = own / weight % self.base();
        if digit > 0 {
            return out.send(rank(own - digit * weight), below(own), Route::default());
        }
        let children = (1..self.base()).map(|z| own + z * weight);
        for child in children.take_while(|&child| child < width) {
            out.receive(rank(child), below(child));
        }
    }

    /// A node's step of the exchange between nodes becomes that of a lane's carrier.
    fn lift(&self, lane: u32, step: &mut Step) {
        for copy in &mut step.copies {
            copy.from = self.slots_of(&copy.from, lane);
            copy.to = self.slots_of(&copy.to, lane);
        }
        for transfer in step.sends.iter_mut().chain(&mut step.receives) {
            transfer.peer = self.rank(transfer.peer.0, lane * self.width());
            transfer.slots = self.slots_of(&transfer.slots, lane);
        }
    }

    /// A step along a tree from number 0 of `count` down: whom a number receives from, and to whom
    /// it sends.
    fn down(&self, count: u32, step: u32, own: u32, mut each: impl FnMut(bool, u32, u32)) {
        let count = u64::from(count);
        let weight = self.base().pow(digits(self.base(), count as u32) - 1 - step);
        let own = u64::from(own);
        if own % weight > 0 {
            return;
        }
        let below = |first: u64| weight.min(count - first) as u32;
        let digit = own / weight % self.base();
        if digit > 0 {
            return each(true, (own - digit * weight) as u32, below(own));
        }
        let children = (1..self.base()).map(|z| own + z * weight);
        for child in children.take_while(|&child| child < count) {
            each(false, child as u32, below(child));
        }
    }

    /// A step in which the only carrier of a node distributes an all-to-all's blocks.
    fn scatter(&self, place: Place, step: u32, out: &mut Step) {
        self.down(self.size, step, place.local, |receives, peer, below| {
            let first = if receives { place.local } else { peer };
            let mut slots = SlotSet::default();
            for run in self.held(place.node, true) {
                let rows = run.len() * u64::from(self.width());
                let base = run.base * self.stride() + u64::from(first);
                slots.push(Strided::runs(base, rows, self.size.into(), below.into()));
            }
            let peer = self.rank(place.node, peer);
            match receives {
                true => out.receive(peer, slots),
                false => out.send(peer, slots, Route::default()),
            }
        });
    }

    /// A round in which all carriers of a node distribute an all-to-all's blocks.
    fn deal(&self, place: Place, round: u32, out: &mut Step) {
        let width = u64::from(self.width());
        let (to, from) =
            ((place.local + round) % self.size, (place.local + (self.size - round)) % self.size);
        if place.own == 0 {
            let mut slots = SlotSet::default();
            for run in self.held(place.node, true) {
                let base = run.base * self.stride() + u64::from(to);
                slots.push(Strided::runs(base, run.len() * width, self.size.into(), 1));
            }
            out.send(self.rank(place.node, to), slots, Route::default());
        }
        if from % self.width() == 0 {
            let mut slots = SlotSet::default();
            for run in self.held(place.node, true) {
                let base = self.second_room() + run.base * u64::from(self.size) + u64::from(from);
                slots.push(Strided::runs(base, run.len(), self.size.into(), width));
            }
            out.receive(self.rank(place.node, from), slots);
        }
    }

    /// The slots of a number of lanes that end with one, around the node, after the exchange.
    fn lanes_to(&self, node: u32, lane: u32, lanes: u32) -> SlotSet {
        let mut slots = SlotSet::default();
        let mut push = |first: u32, lanes: u32| {
            if lanes > 0 {
                for run in self.held(node, true) {
                    let length = u64::from(lanes * self.width());
                    self.push(&mut slots, run, self.offset(first, 0), length);
                }
            }
        };
        let before = lanes.saturating_sub(lane + 1);
        push(self.lanes - before, before);
        push(lane + 1 - (lanes - before), lanes - before);
        slots
    }

    /// A step of an all-gather after the exchange between nodes.
    fn share(&self, place: Place, step: u32, out: &mut Step) {
        let Some(step) = step.checked_sub(self.broadcast) else {
            return self.down(self.width(), step, place.own, |receives, peer, _| {
                let slots = self.lanes_to(place.node, place.lane, 1);
                let peer = self.rank(place.node, place.lane * self.width() + peer);
                match receives {
                    true => out.receive(peer, slots),
                    false => out.send(peer, slots, Route::default()),
                }
            });
        };
        let (lanes, weight) = (u64::from(self.lanes), self.base().pow(step));
        let distances = (1..self.base()).map(|z| z * weight);
        for distance in distances.take_while(|&distance| distance < lanes) {
            let known = weight.min(lanes - distance) as u32;
            let at = |lane: u64| (lane % lanes) as u32;
            let to = at(u64::from(place.lane) + distance);
            let from = at(u64::from(place.lane) + lanes - distance);
            let rank = |lane: u32| self.rank(place.node, lane * self.width() + place.own);
            let sent = self.lanes_to(place.node, place.lane, known);
            out.send(rank(to), sent, Route::default());
            out.receive(rank(from), self.lanes_to(place.node, from, known));
        }
    }

    /// A step after the exchange between nodes.
    fn finish(&self, place: Place, step: u32, out: &mut Step) {
        match self.operation {
            Collective::AllGather => self.share(place, step, out),
            Collective::AllToAll if self.lanes == 1 => self.scatter(place, step, out),
            Collective::AllToAll => {
                let first = 1 + step * self.ports;
                for round in first..first.saturating_add(self.ports).min(self.size) {
                    self.deal(place, round, out);
                }
            }
        }
    }

    /// The intra-node steps, and the sum of their largest messages.
    fn inside(&self, block_bytes: u64) -> StepsOf {
        let (width, nodes) = (u128::from(self.width()), u128::from(self.nodes));
        let arrived = width * nodes;
        let tree = |count: u32| passed(self.base(), count);
        let blocks = match self.operation {
            Collective::AllToAll => {
                let deal = if self.lanes == 1 { tree(self.size) } else { self.deal.into() };
                tree(self.width()) * nodes * u128::from(self.size) + deal * arrived
            }
            Collective::AllGather => {
                let broadcast = u128::from(self.broadcast) + tree(self.lanes);
                tree(self.width()) + broadcast * arrived
            }
        };
        StepsOf::new((self.gather + self.deal).into(), blocks, block_bytes)
    }

    /// The block at a slot, from the block of the exchange between nodes there.
    fn block(
        &self,
        place: Place,
        slot: Slot,
        after: bool,
        inner: impl FnOnce(Slot) -> Option<Block>,
    ) -> Option<Block> {
        let (size, local) = (u64::from(self.size), u64::from(place.local));
        let carries = place.own == 0;
        let lane_first = place.lane * self.width();
        match (self.operation, slot.checked_sub(self.second_room())) {
            (Collective::AllGather, _) => {
                let source = slot % size;
                let block = inner(slot / size).filter(|_| after || source == local)?;
                Some(Block::of(self.rank(block.from.0, source as u32)))
            }
            (Collective::AllToAll, None) => {
                let (row, to) = (slot / size, slot % size);
                let width = u64::from(self.width());
                let source = lane_first + (row % width) as u32;
                let held = if after {
                    to == local && (carries || self.lanes == 1)
                } else {
                    source == place.local
                };
                let source = if after && self.lanes == 1 { (row % width) as u32 } else { source };
                let block = inner(row / width).filter(|_| held)?;
                let [from, to] = [(block.from, source), (block.to, to as u32)]
                    .map(|(node, local)| self.rank(node.0, local));
                Some(Block { from, to })
            }
            (Collective::AllToAll, Some(second)) => {
                let source = (second % size) as u32;
                let kept = carries && source / self.width() == place.lane;
                let block = inner(second / size).filter(|_| after && !kept)?;
                let from = self.rank(block.from.0, source);
                Some(Block { from, to: self.rank(block.to.0, place.local) })
            }
        }
    }

    /// Overwrites `out` with a layout, from that of the exchange between nodes.
    fn layout(&self, rank: Rank, after: bool, out: &mut Vec<Option<Block>>) {
        let (place, mut inner) = (self.place(rank), Vec::new());
        let (rule, node) = (self.between.rule(), Rank(place.node));
        match after {
            true => rule.final_layout(node, &mut inner),
            false => rule.initial_layout(node, &mut inner),
        }
        let block = |slot| self.block(place, slot, after, |inner_slot| inner[inner_slot as usize]);
        out.clear();
        out.extend((0..self.slots()).map(block));
    }
}

/// By class of ranks, the slots that hold a block before and after an exchange. `None` if there are
/// too many to look at.
pub(crate) fn held(between: &Schedule, operation: Collective) -> Option<Vec<[Runs; 2]>> {
    let (rule, nodes) = (between.rule(), u64::from(between.problem.ranks));
    let (slots, classes) = (rule.slots(), rule.classes());
    let count = classes.count();
    // Where there are as many slots as blocks, every slot holds one.
    let full = [operation == Collective::AllToAll, true].map(|all| all && slots == nodes);
    if full != [true; 2] && u64::from(count).saturating_mul(slots) > MOST_LAYOUTS {
        return None;
    }
    let mut layout = Vec::new();
    let mut runs = |full: bool, read: &dyn Fn(&mut Vec<Option<Block>>)| -> Runs {
        if full {
            return vec![(0, slots)];
        }
        read(&mut layout);
        let mut runs: Runs = Vec::new();
        for (slot, _) in (0..).zip(&layout).filter(|(_, block)| block.is_some()) {
            match runs.last_mut() {
                Some((first, count)) if *first + *count == slot => *count += 1,
                _ => runs.push((slot, 1)),
            }
        }
        runs
    };
    let of_class = |class| {
        let node = classes.representative(class);
        [
            runs(full[0], &|out| rule.initial_layout(node, out)),
            runs(full[1], &|out| rule.final_layout(node, out)),
        ]
    };
    Some((0..count).map(of_class).collect())
}

impl Rule for Lifted {
    fn steps(&self) -> u32 {
        self.gather + self.turns() * self.turn + self.deal
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let (place, between) = (self.place(rank), self.turns() * self.turn);
        if step < self.gather {
            return self.gather(place, step, out);
        }
        let step = step - self.gather;
        if step >= between {
            return self.finish(place, step - between, out);
        }
        if place.own == 0 && place.lane / self.at_once == step / self.turn {
            self.between.rule().step(Rank(place.node), step % self.turn, out);
            self.lift(place.lane, out);
        }
    }

    /// A rank that carries nothing is idle between nodes.
    fn each_step(&self, rank: Rank, each: &mut dyn FnMut(u32, &Step) -> ControlFlow<()>) {
        let (place, mut does) = (self.place(rank), Step::default());
        for step in 0..self.gather {
            self.step(rank, step, &mut does);
            if !does.is_idle() && each(step, &does).is_break() {
                return;
            }
        }
        let mut broken = false;
        if place.own == 0 {
            let first = self.gather + place.lane / self.at_once * self.turn;
            self.between.rule().each_step(Rank(place.node), &mut |step, inner| {
                does.clone_from(inner);
                self.lift(place.lane, &mut does);
                let flow = each(first + step, &does);
                broken = flow.is_break();
                flow
            });
        }
        for step in self.steps() - self.deal..self.steps() {
            if broken {
                return;
            }
            self.step(rank, step, &mut does);
            broken = !does.is_idle() && each(step, &does).is_break();
        }
    }

    fn slots(&self) -> u64 {
        let second =
            if self.has_second_room() { self.inner_slots * u64::from(self.size) } else { 0 };
        self.second_room() + second
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let place = self.place(rank);
        let inner = |slot| self.between.rule().initial_block(Rank(place.node), slot);
        self.block(place, slot, false, inner)
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let place = self.place(rank);
        let inner = |slot| self.between.rule().final_block(Rank(place.node), slot);
        self.block(place, slot, true, inner)
    }

    fn initial_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        self.layout(rank, false, out);
    }

    fn final_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        self.layout(rank, true, out);
    }

    /// Nodes are equivalent as in the exchange between them, and ranks of equal numbers on them.
    fn classes(&self) -> RankClasses {
        let (radix, periods) = (self.node_classes.radix(), self.node_classes.periods());
        let ranks = self.nodes * self.size;
        if radix.shifts().iter().any(|&shift| shift > 0) {
            return RankClasses::distinct(ranks);
        }
        let with = |sides: &[u32]| Coordinates::from_iter(sides.iter().copied().chain([self.size]));
        match MixedRadix::new(&with(radix.sides())) {
            Ok(radix) => RankClasses::translations(radix, with(periods)),
            // As many dimensions as there may be.
            Err(_) => RankClasses::distinct(ranks),
        }
    }

    fn cuts(&self) -> &[u64] {
        &self.cuts
    }
}
