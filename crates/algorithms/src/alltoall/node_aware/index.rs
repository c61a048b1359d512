//! Node-aware exchanges whose ranks exchange inside their nodes by the index algorithm, for the smallest
//! blocks: one radix-r digit of the distance between ranks of a node at a time (Bruck et al. 1997, section 3;
//! inside nodes as in Fan et al. 2024).
//!
//! All nodes have s ranks. Of the N - 1 other nodes each of c = min(lanes, N - 1) carriers carries for
//! floor((N - 1) / c), and the first of them for one more. Blocks for the own node and for a carrier take the
//! digits from the lowest on, so that at any time the blocks for a carrier lie in few strided runs; those from
//! a carrier to their destination from the highest on.
//!
//! Claim, with one port: sum over the digits of s - 1 of h - 1 steps, h = r but for the top digit, before and
//! as many after the N - 1 steps between nodes; each of the latter is of s^2 blocks.
//!
//! # The layout
//! Five rooms of s rows: the blocks for the own node, those carried away and in, and the same of the carriers
//! that carry for one more node. A row holds what travels a distance d between ranks of the node. Away, it is for
//! the carrier d after the rank, by node and then destination; in, it is from the carrier d before the rank, by
//! node and then source. Both count from the carrier around the node. No block leaves its row inside a
//! node, and what arrives between nodes goes to the row of its distance, so nothing is copied.

use topocoll_schedule::{Axis, Block, RankClasses, Rule, Schedule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Clusters, Ports, Rank, Route};

use super::steps::{carry_between, classes_between, names_routes_between};
use crate::layout::digits::{Digit, Digits};
use crate::layout::node_rows::each_with;
use crate::{ByLinks, StepsOf};

/// Slots of a rank, at most.
pub(super) const MOST_SLOTS: u128 = 1 << 26;

pub(super) struct Index {
    clusters: Clusters,
    size: u32,
    digits: Digits,
    /// Ports of a carrier to other nodes.
    carrier_ports: u32,
    carriers: u32,
    /// Nodes that every carrier carries for, and carriers that carry for one more.
    nodes_each: u32,
    longer: u32,
    /// Carriers that send at once.
    at_once: u32,
    /// The exchange between nodes, if it is not in turns of carriers.
    between_nodes: Option<Schedule>,
    between: u32,
}

/// Rows by a distance between ranks of a node.
#[derive(Clone, Copy)]
struct Room {
    first: Slot,
    row: u64,
    /// The ranks at one end of its blocks are below it.
    carriers: u32,
}

/// The rooms by number.
const LOCAL: usize = 0;
const AWAY: [usize; 2] = [1, 2];
const IN: [usize; 2] = [3, 4];

/// Where the blocks of a room are going.
#[derive(Clone, Copy)]
enum Toward {
    /// To ranks of the own node and to carriers, by the digits from the lowest on.
    Carriers,
    /// From carriers, by the digits from the highest on.
    Destinations,
}

impl Index {
    pub(super) fn new(
        clusters: &Clusters,
        ports: Ports,
        lanes: u32,
        radix: u32,
        between_nodes: Option<Schedule>,
    ) -> Self {
        let (size, others) = (clusters.largest(), clusters.nodes() - 1);
        let carriers = lanes.min(others);
        let carrier_ports = ports.rank.min(ports.node);
        let mut all = Self {
            clusters: clusters.clone(),
            size,
            digits: Digits::new(size, radix, ports.rank),
            carrier_ports,
            carriers,
            nodes_each: others / carriers,
            longer: others % carriers,
            at_once: (ports.node / carrier_ports).min(carriers),
            between_nodes,
            between: 0,
        };
        all.between = match &all.between_nodes {
            Some(schedule) => schedule.rule().steps(),
            None => {
                let [long, steps, short] = all.turns();
                long * steps + (carriers.div_ceil(all.at_once) - long) * short
            }
        };
        all
    }

    /// The rounds between nodes that may share a step.
    pub(super) fn together(&self) -> u32 {
        self.at_once * self.carrier_ports
    }

    /// The slots of a rank.
    pub(super) fn most_slots(&self) -> u128 {
        let [size, each] = [self.size, self.nodes_each].map(u128::from);
        size + 2 * size * size * (each + u128::from(self.longer.min(1)))
    }

    /// The turns of carriers of which the first carry for one more node, the steps of each, and those of each
    /// other turn.
    fn turns(&self) -> [u32; 3] {
        let steps = |nodes: u32| nodes.div_ceil(self.carrier_ports);
        let long = self.longer.div_ceil(self.at_once);
        [long, steps(self.nodes_each + 1), steps(self.nodes_each)]
    }

    /// The turn of a step between nodes, and the step in it.
    fn turn(&self, step: u32) -> (u32, u32) {
        let [long, steps, short] = self.turns();
        match step.checked_sub(long * steps) {
            None => (step / steps, step % steps),
            Some(after) => (long + after / short, after % short),
        }
    }

    /// The nodes that a carrier carries for.
    fn nodes_of(&self, carrier: u32) -> u32 {
        self.nodes_each + u32::from(carrier < self.longer)
    }

    /// The distance of the first of them.
    fn first_distance(&self, carrier: u32) -> u32 {
        1 + carrier * self.nodes_each + carrier.min(self.longer)
    }

    /// The carrier of the node at a distance, and the place of the node among those of the carrier.
    fn carrier(&self, distance: u32) -> (u32, u32) {
        let (place, long) = (distance - 1, self.nodes_each + 1);
        match place.checked_sub(self.longer * long) {
            None => (place / long, place % long),
            Some(after) => (self.longer + after / self.nodes_each, after % self.nodes_each),
        }
    }

    fn room(&self, number: usize) -> Room {
        let size = u64::from(self.size);
        let row = size * u64::from(self.nodes_each);
        let (away, away_longer) = (size * row, size * size * u64::from(self.longer.min(1)));
        let [first, row, carriers] = match number {
            LOCAL => [0, 1, self.size.into()],
            1 => [size, row, self.carriers.into()],
            2 => [size + away, size, self.longer.into()],
            3 => [size + away + away_longer, row, self.carriers.into()],
            _ => [size + 2 * away + away_longer, size, self.longer.into()],
        };
        Room { first, row, carriers: carriers as u32 }
    }

    /// The room, the row and the place in the row of a slot.
    fn place(&self, slot: Slot) -> (usize, u32, u32) {
        let number = (1..5).take_while(|&number| self.room(number).first <= slot).count();
        let Room { first, row, .. } = self.room(number);
        (number, ((slot - first) / row) as u32, ((slot - first) % row) as u32)
    }

    /// The node of a rank, and its place there.
    fn local(&self, rank: Rank) -> (u32, u32) {
        (rank.0 / self.size, rank.0 % self.size)
    }

    fn rank(&self, node: u32, local: u32) -> Rank {
        Rank(node * self.size + local)
    }

    fn ahead(&self, node: u32, distance: u32) -> u32 {
        (node + distance) % self.clusters.nodes()
    }

    fn behind(&self, node: u32, distance: u32) -> u32 {
        (node + self.clusters.nodes() - distance) % self.clusters.nodes()
    }

    /// The rows that the rank at a place of its node sends for the value z of a digit, room by room.
    fn message(&self, local: u32, toward: Toward, digit: Digit, z: u32) -> SlotSet {
        let rooms = match toward {
            Toward::Carriers => &[LOCAL, AWAY[0], AWAY[1]][..],
            Toward::Destinations => &IN,
        };
        let [size, local, z] = [self.size, local, z].map(u64::from);
        let (period, first) = (self.digits.period(digit), z * digit.weight);
        // The rank at the end of a run's blocks that depends on the run alone.
        let end = |run: u64| match toward {
            Toward::Carriers => (local + run + first) % size,
            Toward::Destinations => (local + size - run) % size,
        };
        let mut slots = SlotSet::default();
        for room in rooms.iter().map(|&number| self.room(number)) {
            let has = |run: u64| end(run) < room.carriers.into();
            let rows = |run: u64| digit.weight.min(size - first - run);
            let mut run = 0;
            while first + run < size {
                let begin = run;
                let mut runs = 0;
                while first + run < size && has(run) && rows(run) == rows(begin) {
                    (run, runs) = (run + period, runs + 1);
                }
                if runs == 0 {
                    run += period;
                    continue;
                }
                let [base, stride, length] =
                    [first + begin, period, rows(begin)].map(|rows| rows * room.row);
                slots.push(Strided::runs(room.first + base, runs, stride, length));
            }
        }
        slots
    }

    /// A step inside nodes.
    fn inside(&self, rank: Rank, toward: Toward, step: u32, out: &mut Step) {
        let (node, local) = self.local(rank);
        let (digit, values) = self.digits.of_step(step);
        for z in values {
            let hops = (u64::from(z) * digit.weight) as u32;
            let (to, from) = ((local + hops) % self.size, (local + self.size - hops) % self.size);
            let sent = self.message(local, toward, digit, z);
            if !sent.is_empty() {
                out.send(self.rank(node, to), sent, Route::default());
            }
            let received = self.message(from, toward, digit, z);
            if !received.is_empty() {
                out.receive(self.rank(node, from), received);
            }
        }
    }

    /// The message of a rank for the node at a distance, if it carries it: the receiver, and the slots.
    fn sent(&self, rank: Rank, distance: u32) -> Option<(Rank, SlotSet)> {
        let (node, local) = self.local(rank);
        let (carrier, place) = self.carrier(distance);
        let [room, longer] = AWAY.map(|number| self.room(number));
        let size = u64::from(self.size);
        let slots = match place < self.nodes_each {
            true => Strided::runs(room.first + u64::from(place) * size, size, room.row, size),
            false => Strided::contiguous(longer.first, size * size),
        };
        let to = self.rank(self.ahead(node, distance), local);
        (carrier == local).then(|| (to, SlotSet::of(slots)))
    }

    /// The message for a rank from the node a distance before, if it carries it: the sender, and the slots.
    fn received(&self, rank: Rank, distance: u32) -> Option<(Rank, SlotSet)> {
        let (node, local) = self.local(rank);
        let (carrier, place) = self.carrier(distance);
        let size = u64::from(self.size);
        let (base, row) = match (place < self.nodes_each, IN.map(|number| self.room(number))) {
            (true, [room, _]) => (room.first + u64::from(place) * size, room.row),
            (false, [_, longer]) => (longer.first, longer.row),
        };
        let by_source = Axis { count: size, stride: 1 };
        let by_destination = Axis { count: size, stride: row as i64 };
        let slots = Strided { base, outer: by_source, inner: by_destination };
        let from = self.rank(self.behind(node, distance), local);
        (carrier == local).then(|| (from, SlotSet::of(slots)))
    }

    /// A step between nodes.
    fn cross(&self, rank: Rank, step: u32, out: &mut Step) {
        let (node, local) = self.local(rank);
        if let Some(schedule) = &self.between_nodes {
            let sent = |to: u32| self.sent(rank, self.behind(to, node));
            let received = |from: u32| self.received(rank, self.behind(node, from));
            return carry_between(schedule, Rank(node), step, out, sent, received);
        }
        let (turn, step) = self.turn(step);
        if local >= self.carriers || local / self.at_once != turn {
            return;
        }
        let first = step * self.carrier_ports;
        let end = self.nodes_of(local).min(first.saturating_add(self.carrier_ports));
        for distance in (first..end).map(|place| self.first_distance(local) + place) {
            if let Some((to, slots)) = self.sent(rank, distance) {
                out.send(to, slots, Route::default());
            }
            if let Some((from, slots)) = self.received(rank, distance) {
                out.receive(from, slots);
            }
        }
    }

    /// The steps inside nodes.
    pub(super) fn inside_nodes(&self, block_bytes: u64) -> StepsOf {
        let largest = |toward: Toward, step: u32| {
            let (digit, values) = self.digits.of_step(step);
            let message = |(local, z): (u32, u32)| self.message(local, toward, digit, z).len();
            let all = (0..self.size).flat_map(|local| values.clone().map(move |z| (local, z)));
            u128::from(all.map(message).max().unwrap_or(0))
        };
        let both = [Toward::Carriers, Toward::Destinations];
        let blocks = both
            .into_iter()
            .flat_map(|toward| (0..self.digits.steps).map(move |step| (toward, step)));
        let blocks = blocks.map(|(toward, step)| largest(toward, step)).sum();
        StepsOf::new(2 * u64::from(self.digits.steps), blocks, block_bytes)
    }

    /// The steps inside nodes, and those between them if carriers take turns.
    pub(super) fn by_links(&self, block_bytes: u64) -> ByLinks {
        let message = u128::from(self.size) * u128::from(self.size);
        let inter_node =
            StepsOf::new(self.between.into(), u128::from(self.between) * message, block_bytes);
        ByLinks { intra_node: self.inside_nodes(block_bytes), inter_node, ..ByLinks::default() }
    }
}

impl Rule for Index {
    fn steps(&self) -> u32 {
        2 * self.digits.steps + self.between
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let inside = self.digits.steps;
        match step.checked_sub(inside) {
            None => self.inside(rank, Toward::Carriers, step, out),
            Some(step) if step < self.between => self.cross(rank, step, out),
            // From the highest digit on.
            Some(step) => {
                let step = inside - 1 - (step - self.between);
                self.inside(rank, Toward::Destinations, step, out);
            }
        }
    }

    fn slots(&self) -> u64 {
        self.most_slots() as u64
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let (node, local) = self.local(rank);
        let (number, row, place) = self.place(slot);
        let end = (local + row) % self.size;
        let block = |node, local| Block { from: rank, to: self.rank(node, local) };
        if number == LOCAL {
            return Some(block(node, end));
        }
        let of_carrier = match number - AWAY[0] {
            0 => place / self.size,
            1 => self.nodes_each,
            _ => return None,
        };
        let to = || self.ahead(node, self.first_distance(end) + of_carrier);
        (end < self.room(number).carriers)
            .then(|| block(to(), (end + place % self.size) % self.size))
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let (node, local) = self.local(rank);
        let (number, row, place) = self.place(slot);
        let end = (local + self.size - row) % self.size;
        let block = |node, local| Block { from: self.rank(node, local), to: rank };
        if number == LOCAL {
            return Some(block(node, end));
        }
        let of_carrier = match number.checked_sub(IN[0])? {
            0 => place / self.size,
            _ => self.nodes_each,
        };
        let from = || self.behind(node, self.first_distance(end) + of_carrier);
        let source = (end + self.size - place % self.size) % self.size;
        (end < self.room(number).carriers).then(|| block(from(), source))
    }

    fn names_routes(&self, _: &RankClasses) -> bool {
        names_routes_between(self.between_nodes.as_ref())
    }

    /// Nodes are equivalent, as far as they are in the exchange between them.
    fn classes(&self) -> RankClasses {
        classes_between(&self.clusters, self.between_nodes.as_ref())
    }

    /// Between nodes, the carriers that may send.
    fn active(&self, step: u32, classes: &RankClasses, each: &mut dyn FnMut(Rank)) {
        let between = step.checked_sub(self.digits.steps).filter(|&step| step < self.between);
        let carriers = match (between, &self.between_nodes) {
            (None, _) => return classes.representatives().for_each(each),
            (Some(_), Some(_)) => 0..self.carriers,
            (Some(step), None) => {
                let first = self.turn(step).0 * self.at_once;
                first..self.carriers.min(first.saturating_add(self.at_once))
            }
        };
        each_with(&self.clusters, &mut carriers.collect(), classes, each);
    }
}
