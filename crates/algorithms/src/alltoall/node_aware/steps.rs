//! The steps, and where blocks are in them.

use topocoll_schedule::{
    Axis, Block, RankClasses, Rule, Schedule, Slot, SlotSet, Step, Strided, Transfer,
};
use topocoll_topology::{Clusters, Coordinates, MixedRadix, Rank, Route, Topology};

use super::{Chunk, Lanes, Phase};
use crate::layout::node_rows::node_classes;

/// A step of an exchange between nodes in which every message is of a block by itself: what a rank of a node
/// sends to and receives from other nodes, as far as it carries their messages.
pub(super) fn carry_between(
    schedule: &Schedule,
    node: Rank,
    step: u32,
    out: &mut Step,
    sent: impl Fn(u32) -> Option<(Rank, SlotSet)>,
    received: impl Fn(u32) -> Option<(Rank, SlotSet)>,
) {
    schedule.rule().step(node, step, out);
    out.copies.clear();
    let carry = |transfer: &mut Transfer, message: Option<(Rank, SlotSet)>| {
        let carries = message.is_some();
        if let Some(message) = message {
            (transfer.peer, transfer.slots) = message;
        }
        carries
    };
    out.sends.retain_mut(|send| carry(send, sent(send.peer.0)));
    out.receives.retain_mut(|receive| carry(receive, received(receive.peer.0)));
}

/// Translations of nodes of equal sizes: those of the exchange between them along its slowest coordinate, which turn
/// the nodes around, so that the distances by which carriers carry stay.
pub(super) fn classes_between(clusters: &Clusters, between: Option<&Schedule>) -> RankClasses {
    let Some(schedule) = between else { return node_classes(clusters) };
    let own = schedule.rule().classes();
    let sides = own.radix().sides().iter().copied().chain([clusters.largest()]);
    let sides: Coordinates = sides.collect();
    let mut periods = sides.clone();
    periods[0] = own.periods()[0];
    let is_twisted = own.radix().shifts().iter().any(|&shift| shift > 0);
    match MixedRadix::new(&sides).ok().filter(|_| !is_twisted) {
        Some(radix) => RankClasses::translations(radix, periods),
        None => RankClasses::distinct(clusters.ranks()),
    }
}

/// Whether messages have routes of their own: those of the exchange between nodes.
pub(super) fn names_routes_between(between: Option<&Schedule>) -> bool {
    between.map(Schedule::rule).is_some_and(|rule| rule.names_routes(&rule.classes()))
}

impl Lanes {
    fn carriers(&self, position: u32) -> u32 {
        self.lanes.min(self.row.size(position))
    }

    /// The nodes for which a rank carries away, and from which it carries in.
    fn chunks(&self, position: u32, carrier: u32) -> [Chunk; 2] {
        let all = self.row.count();
        let distances = self.row.distances(self.carriers(position), carrier);
        let nodes = distances.len() as u32;
        [(position + distances.start) % all, (position + all + 1 - distances.end) % all].map(
            |first| Chunk {
                distances: distances.clone(),
                first,
                ranks: self.row.ranks_on(first, nodes),
            },
        )
    }

    /// The most ranks for which a rank of a node carries away, and from which it carries in.
    pub(super) fn most_carried(&self, position: u32) -> (u64, u64) {
        (0..self.carriers(position))
            .map(|carrier| self.chunks(position, carrier))
            .fold((0, 0), |(out, back), [away, home]| {
                (out.max(away.ranks.into()), back.max(home.ranks.into()))
            })
    }

    /// The first slots of the rooms of blocks carried away, carried in, and arrived.
    fn room(&self, number: usize) -> Slot {
        let carried: u64 = self.rooms[..number].iter().sum();
        u64::from(self.row.ranks()) + carried
    }

    /// The node at a distance.
    fn ahead(&self, position: u32, distance: u32) -> u32 {
        (position + distance) % self.row.count()
    }

    /// The distance from a node to another.
    fn distance(&self, from: u32, to: u32) -> u32 {
        (to + self.row.count() - from) % self.row.count()
    }

    /// The position and local index of the rank that stands a number of ranks after the first of a
    /// node.
    fn standing_after(&self, position: u32, ranks: u64) -> (u32, u32) {
        let place = u64::from(self.row.before(position)) + ranks;
        self.row.standing((place % u64::from(self.row.ranks())) as u32)
    }

    /// The slot of the block for a rank of the node; those that it carries follow.
    fn first_for(&self, position: u32, local: u32) -> Slot {
        let carriers = self.carriers(position);
        let before = match local < carriers {
            true => self.row.distances(carriers, local).start - 1,
            false => self.row.count() - 1,
        };
        u64::from(local) + u64::from(self.row.ranks_on(position + 1, before))
    }

    /// Whether the blocks of a node for another are by source and then destination.
    fn by_source(&self, from: u32, to: u32) -> bool {
        self.row.size(from) <= self.row.size(to)
    }

    /// The slots of a source's blocks among those that a rank of its node carries away.
    fn carried(&self, position: u32, chunk: &Chunk, source: u32, out: &mut SlotSet) {
        let size = u64::from(self.row.size(position));
        let (mut first, mut distance) = (self.room(0), chunk.distances.start);
        while distance < chunk.distances.end {
            let to = self.ahead(position, distance);
            let (length, by_source) = (self.row.size(to), self.by_source(position, to));
            // The nodes that follow and have as many ranks.
            let same = (distance..chunk.distances.end)
                .take_while(|&distance| self.row.size(self.ahead(position, distance)) == length)
                .count() as u64;
            let (source, length) = (u64::from(source), u64::from(length));
            out.push(if by_source {
                Strided::runs(first + source * length, same, size * length, length)
            } else {
                Strided::runs(first + source, same * length, size, 1)
            });
            first += size * length * same;
            distance += same as u32;
        }
    }

    /// A round of the first intra-node exchange.
    fn collect(&self, rank: Rank, round: u32, out: &mut Step) {
        let (position, l) = self.row.place(rank);
        let size = self.row.size(position);
        if round >= size {
            return;
        }
        let (to, from) = ((l + round) % size, (l + size - round) % size);
        let [away, _] = self.chunks(position, to);
        let sent = Strided::contiguous(self.first_for(position, to), 1 + u64::from(away.ranks));
        out.send(self.row.rank(position, to), SlotSet::of(sent), Route::default());
        let mut received = SlotSet::of(Strided::contiguous(self.room(2) + u64::from(from), 1));
        self.carried(position, &self.chunks(position, l)[0], from, &mut received);
        out.receive(self.row.rank(position, from), received);
    }

    /// The ranks at either end, sources and destinations, of an inter-node message.
    fn ends(&self, phase: &Phase, from: u32, to: u32) -> [std::ops::Range<u32>; 2] {
        let (s, t) = (self.row.size(from), self.row.size(to));
        let part = phase.done..phase.current;
        match (self.cut, self.by_source(from, to)) {
            (false, _) => [0..s, 0..t],
            (true, true) => [part, 0..t],
            (true, false) => [0..s, part],
        }
    }

    /// The message of a rank for the node at a position, if it carries it: the receiver, and the
    /// slots.
    fn sent(&self, rank: Rank, phase: &Phase, to: u32) -> Option<(Rank, SlotSet)> {
        let (position, l) = self.row.place(rank);
        let distance = self.distance(position, to);
        if self.row.carrier(self.carriers(position), distance) != l {
            return None;
        }
        let [sources, destinations] = self.ends(phase, position, to);
        let [chunk, _] = self.chunks(position, l);
        let before = self.row.ranks_on(chunk.first, distance - chunk.distances.start);
        let size = u64::from(self.row.size(position));
        let skipped = if self.by_source(position, to) {
            u64::from(sources.start) * destinations.len() as u64
        } else {
            u64::from(destinations.start) * size
        };
        let first = self.room(0) + u64::from(before) * size + skipped;
        let slots = Strided::contiguous(first, (sources.len() * destinations.len()) as u64);
        let to = self.row.rank(to, self.row.carrier(self.carriers(to), distance));
        Some((to, SlotSet::of(slots)))
    }

    /// The message for a rank from the node at a position, if it carries it: the sender, and the
    /// slots.
    fn received(&self, rank: Rank, phase: &Phase, from: u32) -> Option<(Rank, SlotSet)> {
        let (position, l) = self.row.place(rank);
        let distance = self.distance(from, position);
        if self.row.carrier(self.carriers(position), distance) != l {
            return None;
        }
        let [sources, destinations] = self.ends(phase, from, position);
        let [_, chunk] = self.chunks(position, l);
        let before = self.row.ranks_on(chunk.first, chunk.distances.end - 1 - distance);
        let stride = u64::from(chunk.ranks);
        let base = self.room(1)
            + u64::from(destinations.start) * stride
            + u64::from(before + sources.start);
        let by_source = Axis { count: sources.len() as u64, stride: 1 };
        let by_destination = Axis { count: destinations.len() as u64, stride: stride as i64 };
        let slots = if self.by_source(from, position) {
            Strided { base, outer: by_source, inner: by_destination }
        } else {
            Strided { base, outer: by_destination, inner: by_source }
        };
        let from = self.row.rank(from, self.row.carrier(self.carriers(from), distance));
        Some((from, SlotSet::of(slots)))
    }

    /// An inter-node round.
    fn cross(&self, rank: Rank, phase: &Phase, round: u32, out: &mut Step) {
        let (position, _) = self.row.place(rank);
        if position >= phase.active {
            return;
        }
        if let Some((peer, slots)) = self.sent(rank, phase, (position + round) % phase.active) {
            out.send(peer, slots, Route::default());
        }
        let from = (position + phase.active - round) % phase.active;
        if let Some((peer, slots)) = self.received(rank, phase, from) {
            out.receive(peer, slots);
        }
    }

    /// A step of the exchange between nodes.
    fn between_nodes(&self, rank: Rank, schedule: &Schedule, step: u32, out: &mut Step) {
        let (nodes, phase) = (self.row.nodes(), &self.phases[0]);
        let node = Rank(nodes.clusters().node_of(rank));
        let sent = |to: u32| self.sent(rank, phase, nodes.position(to));
        let received = |from: u32| self.received(rank, phase, nodes.position(from));
        carry_between(schedule, node, step, out, sent, received);
    }

    /// A round of the last intra-node exchange.
    fn deal(&self, rank: Rank, round: u32, out: &mut Step) {
        let (position, l) = self.row.place(rank);
        let size = self.row.size(position);
        if round >= size {
            return;
        }
        let (to, from) = ((l + round) % size, (l + size - round) % size);
        let carried = u64::from(self.chunks(position, l)[1].ranks);
        if carried > 0 {
            let slots = Strided::contiguous(self.room(1) + u64::from(to) * carried, carried);
            out.send(self.row.rank(position, to), SlotSet::of(slots), Route::default());
        }
        let [_, chunk] = self.chunks(position, from);
        if chunk.ranks > 0 {
            let nodes = self.distance(position, chunk.first);
            let first = self.room(2) + u64::from(self.row.ranks_on(position, nodes));
            let slots = Strided::contiguous(first, chunk.ranks.into());
            out.receive(self.row.rank(position, from), SlotSet::of(slots));
        }
    }
}

impl Rule for Lanes {
    fn steps(&self) -> u32 {
        self.between + self.inside * if self.row.count() > 1 { 2 } else { 1 }
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let together =
            |first: u32, end: u32, ports: u32| first..end.min(first.saturating_add(ports));
        let largest = self.row.size(0);
        if step < self.inside {
            for round in together(1 + step * self.ports, largest, self.ports) {
                self.collect(rank, round, out);
            }
        } else if step - self.inside < self.between {
            let step = step - self.inside;
            if let Some(schedule) = &self.between_nodes {
                return self.between_nodes(rank, schedule, step, out);
            }
            let phase = self.phases.partition_point(|phase| phase.first <= step) - 1;
            let phase = &self.phases[phase];
            for round in self.rounds(phase, step - phase.first) {
                self.cross(rank, phase, round, out);
            }
        } else {
            let step = step - self.inside - self.between;
            for round in together(1 + step * self.ports, largest, self.ports) {
                self.deal(rank, round, out);
            }
        }
    }

    fn slots(&self) -> u64 {
        self.room(2) + u64::from(self.row.ranks())
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let (position, l) = self.row.place(rank);
        let size = self.row.size(position);
        let block = |(position, local)| Block { from: rank, to: self.row.rank(position, local) };
        let Some(carried) = slot.checked_sub(self.room(0)) else {
            let (mut to, mut end) = (0, size);
            while end - to > 1 {
                let middle = to.midpoint(end);
                match self.first_for(position, middle) <= slot {
                    true => to = middle,
                    false => end = middle,
                }
            }
            let [chunk, _] = self.chunks(position, to);
            return match slot - self.first_for(position, to) {
                0 => Some(block((position, to))),
                // A carrier's own blocks are where it sends them from.
                _ if to == l => None,
                after => Some(block(self.standing_after(chunk.first, after - 1))),
            };
        };
        let ([chunk, _], size) = (self.chunks(position, l), u64::from(size));
        let before = carried / size;
        if before >= chunk.ranks.into() {
            return None;
        }
        let (to, local) = self.standing_after(chunk.first, before);
        let at = carried - (before - u64::from(local)) * size;
        let (source, to_local) = if self.by_source(position, to) {
            let length = u64::from(self.row.size(to));
            (at / length, at % length)
        } else {
            (at % size, at / size)
        };
        (source == u64::from(l)).then(|| block((to, to_local as u32)))
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let (position, l) = self.row.place(rank);
        let block = |(position, local)| Block { from: self.row.rank(position, local), to: rank };
        if slot < self.room(0) {
            return (slot == self.first_for(position, l)).then(|| block((position, l)));
        }
        let Some(arrived) = slot.checked_sub(self.room(2)) else {
            // A carrier's own blocks stay where they arrived.
            let [_, chunk] = self.chunks(position, l);
            let carried = u64::from(chunk.ranks);
            let own = slot.checked_sub(self.room(1) + u64::from(l) * carried)?;
            return (own < carried).then(|| block(self.standing_after(chunk.first, own)));
        };
        let (from, local) = self.standing_after(position, arrived);
        if from == position {
            return (local != l).then(|| block((from, local)));
        }
        let distance = self.distance(from, position);
        let carrier = self.row.carrier(self.carriers(position), distance);
        (carrier != l).then(|| block((from, local)))
    }

    fn names_routes(&self, _: &RankClasses) -> bool {
        names_routes_between(self.between_nodes.as_ref())
    }

    /// Slots are by distance, so that nodes of equal size are equivalent, as far as they are in the exchange
    /// between them.
    fn classes(&self) -> RankClasses {
        classes_between(self.row.nodes().clusters(), self.between_nodes.as_ref())
    }

    /// Of equal nodes, the carriers of the messages between nodes take part.
    fn active(&self, step: u32, classes: &RankClasses, each: &mut dyn FnMut(Rank)) {
        let nodes = self.row.nodes();
        let between = step.checked_sub(self.inside).filter(|&step| step < self.between);
        let (Some(schedule), Some(step)) = (&self.between_nodes, between) else {
            return classes.representatives().for_each(each);
        };
        if classes.count() < self.row.ranks() {
            return classes.representatives().for_each(each);
        }
        let (mut does, mut locals) = (Step::default(), Vec::new());
        for node in (0..self.row.count()).map(Rank) {
            schedule.rule().step(node, step, &mut does);
            let to = does.sends.iter().map(|send| self.distance(node.0, send.peer.0));
            let from = does.receives.iter().map(|receive| self.distance(receive.peer.0, node.0));
            locals.clear();
            locals.extend(to.chain(from).map(|distance| self.row.carrier(self.lanes, distance)));
            locals.sort_unstable();
            locals.dedup();
            locals.iter().for_each(|&local| each(nodes.local(node.0, local)));
        }
    }

    /// Of equal nodes, all ranks do the same in intra-node steps of equally many rounds, each for those after it.
    fn class_of_step(&self, step: u32) -> Option<u64> {
        let size = self.row.nodes().clusters().equal_size()?;
        let rounds = |step: u32| u64::from(self.ports.min(size - 1 - step * self.ports));
        Some(match step.checked_sub(self.inside) {
            None => rounds(step),
            Some(step) if step < self.between => 1 << 32 | u64::from(step),
            Some(step) => 1 << 33 | rounds(step - self.between),
        })
    }
}
