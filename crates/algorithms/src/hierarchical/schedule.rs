//! The schedule: the steps of the exchange between nodes for carriers, the slots and the layouts.

mod intra_node;

use std::ops::ControlFlow;

use topocoll_schedule::{
    Axis, Block, Collective, Part, RankClasses, Rule, Schedule, Slot, SlotSet, Step, Strided,
};
use topocoll_topology::{Coordinates, MixedRadix, Rank};

use super::{BETWEEN, InterNode};
use crate::NotApplicable;
use crate::layout::inner::Inner;
use crate::layout::tree::digits;

pub(super) struct Hierarchical {
    operation: Collective,
    block_bytes: u64,
    between: Inner,
    /// Slots of the exchange between nodes.
    inner_slots: u64,
    nodes: u32,
    /// Ranks of a node.
    size: u32,
    ports: u32,
    lanes: u32,
    /// Lanes of a turn.
    at_once: u32,
    cuts: Vec<u64>,
    /// Steps before, in each turn of, and after the exchange between nodes.
    gather: u32,
    turn: u32,
    deal: u32,
    /// Of `deal`, the broadcast of an all-gather within lanes.
    broadcast: u32,
    /// Whether the turns are equivalent, each of other ranks.
    equivalent_turns: bool,
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

impl Hierarchical {
    pub(super) fn new(
        of: &InterNode<'_>,
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
        let between = Inner::new(between).ok_or_else(|| {
            let rule = "of few enough classes of nodes to look at their layouts";
            of.values.refused(BETWEEN.name, rule)
        })?;
        let (rule, turns) = (between.rule(), lanes.div_ceil(at_once));
        let (inner_slots, turn) = (rule.slots(), rule.steps());
        let steps = u64::from(within) + u64::from(turns) * u64::from(turn) + u64::from(deal);
        if steps > u32::MAX.into() {
            let rule = "an exchange that takes at most 2^32 - 1 steps in all turns";
            return Err(of.values.refused(BETWEEN.name, rule));
        }
        let equivalent_turns = lanes % at_once == 0 && turns > 1 && between.takes_own_routes();
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
            cuts,
            gather: within,
            turn,
            deal,
            broadcast,
            equivalent_turns,
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
        let runs = self.between.held(Rank(node), after);
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

    /// A node's step of the exchange between nodes becomes that of a lane's carrier.
    fn for_lane(&self, lane: u32, step: &mut Step) {
        for copy in &mut step.copies {
            copy.from = self.slots_of(&copy.from, lane);
            copy.to = self.slots_of(&copy.to, lane);
        }
        for transfer in step.sends.iter_mut().chain(&mut step.receives) {
            transfer.peer = self.rank(transfer.peer.0, lane * self.width());
            transfer.slots = self.slots_of(&transfer.slots, lane);
        }
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

impl Rule for Hierarchical {
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
            self.for_lane(place.lane, out);
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
                self.for_lane(place.lane, &mut does);
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
        let (radix, periods) = (self.between.classes.radix(), self.between.classes.periods());
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

    /// Between nodes, the carriers of a turn.
    fn active(&self, step: u32, classes: &RankClasses, each: &mut dyn FnMut(Rank)) {
        let between = step.checked_sub(self.gather).filter(|&step| step < self.turns() * self.turn);
        let carries = |&rank: &Rank| {
            let place = self.place(rank);
            between
                .is_none_or(|step| place.own == 0 && place.lane / self.at_once == step / self.turn)
        };
        classes.representatives().filter(carries).for_each(each);
    }

    /// The steps of a turn are those of all others.
    fn class_of_step(&self, step: u32) -> Option<u64> {
        let between = step.checked_sub(self.gather).filter(|&step| step < self.turns() * self.turn);
        self.equivalent_turns.then_some(match between {
            Some(step) => u64::from(step % self.turn),
            None => 1 << 32 | u64::from(step),
        })
    }

    fn cuts(&self) -> &[u64] {
        &self.cuts
    }
}
