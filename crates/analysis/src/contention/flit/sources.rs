//! Messages on their way into the network: packets, the ports that inject them, and overheads.
//!
//! A port holds messages. It sends one packet at a time: of its messages in turn, or of one until it
//! has no more. The first packet of a message is ready when the message is posted. A later one takes a
//! rank the overhead, one packet at a time, from the cycle in which the port begins the packet before
//! it. So the heads of packets of F flits follow each other by the larger of F and the overhead in
//! cycles, rounded up.

use std::collections::VecDeque;

use topocoll_topology::{Machine, Rank};

use super::limits::{End, Way};
use super::rate::Through;
use super::{Arrival, Flit, Flits, Message, Packet};
use crate::contention::clock::{Picoseconds, picoseconds};
use crate::contention::network::InFlight;

/// A port of a node, where packets are injected.
#[derive(Default)]
pub(super) struct Source {
    /// Messages with packets to send.
    queue: VecDeque<u32>,
    /// The packet being sent, and the virtual channel that it takes.
    sending: Option<(u32, u32)>,
    /// The cycle from which the next packet is ready.
    ready: u64,
    /// The virtual channel of the next packet, where they take turns.
    turn: u32,
}

/// The overheads of packets after the first of a message.
pub(super) struct Overheads {
    cycles: u64,
    /// By rank, the cycle in which it has prepared its last packet; empty without overheads.
    done: Vec<u64>,
}

impl Overheads {
    /// Bytes for the ranks of a machine.
    pub(super) fn memory(machine: &Machine) -> u128 {
        let ranks = if machine.endpoint.packet_overhead > 0.0 { machine.ranks() } else { 0 };
        u128::from(ranks) * size_of::<u64>() as u128
    }

    pub(super) fn new(machine: &Machine, cycle: Picoseconds) -> Self {
        let cycles = picoseconds(machine.endpoint.packet_overhead).div_ceil(cycle);
        let ranks = if cycles > 0 { machine.ranks() } else { 0 };
        Self { cycles, done: vec![0; ranks as usize] }
    }

    /// A message is posted: its rank has prepared the first packet.
    fn post(&mut self, rank: Rank, cycle: u64) {
        if self.cycles > 0 {
            let done = &mut self.done[rank.index()];
            *done = done.saturating_add(self.cycles).max(cycle);
        }
    }

    /// A rank prepares a later packet from `cycle` on. Returns the cycle in which it is ready.
    fn prepare(&mut self, rank: Rank, cycle: u64) -> u64 {
        if self.cycles == 0 {
            return cycle;
        }
        let done = &mut self.done[rank.index()];
        *done = (*done).max(cycle).saturating_add(self.cycles);
        *done
    }
}

impl Flits<'_> {
    /// Takes a place for a message.
    pub(super) fn take_message(&mut self, message: InFlight, free: bool) -> u32 {
        let packets = self.machine.endpoint.packets(message.bytes);
        let posted = Message {
            message,
            free,
            packets,
            begun: 0,
            undelivered: packets,
            pools: Vec::new(),
            inside: Through::default(),
            passed: 0,
            ready_flits: 0,
            ready: 0,
        };
        let Some(number) = self.idle.pop() else {
            self.messages.push(posted);
            return self.messages.len() as u32 - 1;
        };
        let place = &mut self.messages[number as usize];
        let mut pools = std::mem::take(&mut place.pools);
        pools.clear();
        *place = Message { pools, ..posted };
        number
    }

    /// The bytes of the next packet of a message.
    fn next_bytes(&self, message: &Message) -> u64 {
        let bytes = message.message.bytes;
        match self.machine.endpoint.packet_bytes {
            Some(size) if message.begun + 1 < message.packets => size,
            Some(size) => bytes - (message.packets - 1) * size,
            None => bytes,
        }
    }

    fn flits_of(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.flit_bytes).max(1)
    }

    /// The flits of a message that are not yet part of a packet.
    fn flits_left(&self, message: &Message) -> u64 {
        let left = message.packets - message.begun;
        let size = self.machine.endpoint.packet_bytes.unwrap_or(message.message.bytes);
        let last = message.message.bytes - (message.packets - 1) * size;
        (left - 1) * self.flits_of(size) + self.flits_of(last)
    }

    /// The next packet of a message between nodes.
    fn cut(&mut self, number: u32) -> u32 {
        let message = &self.messages[number as usize];
        let bytes = self.next_bytes(message);
        let InFlight { from, to, .. } = message.message;
        let course = match &self.adaptive {
            Some(adaptive) if message.free => Some(Box::new(adaptive.course(from, to))),
            _ => None,
        };
        let flits = self.flits_of(bytes);
        let message = &mut self.messages[number as usize];
        let first = message.begun == 0;
        message.begun += 1;
        let place = self.idle_packets.pop().unwrap_or_else(|| {
            self.packets.push(Packet::default());
            self.packets.len() as u32 - 1
        });
        let packet = &mut self.packets[place as usize];
        let mut pools = std::mem::take(&mut packet.pools);
        pools.clear();
        if message.begun == message.packets {
            std::mem::swap(&mut pools, &mut message.pools);
        } else {
            pools.extend_from_slice(&message.pools);
        }
        *packet = Packet { message: number, bytes, flits, sent: 0, pools, hop: 0, first, course };
        place
    }

    /// A message begins to be sent.
    pub(super) fn begin(&mut self, number: u32) {
        let message = &self.messages[number as usize].message;
        let [sender, _] = self.ends(message);
        self.overheads.post(sender.rank, self.cycle);
        let Some(node) = sender.node else {
            self.begin_inside(number);
            return;
        };
        let ports = self.machine.ports.node;
        let source = node * ports + number % ports;
        let place = &mut self.sources[source as usize];
        let was_idle = place.queue.is_empty() && place.sending.is_none();
        place.queue.push_back(number);
        if was_idle {
            self.injecting.push(source);
        }
    }

    /// A message inside a node: without overheads it is a single packet.
    fn begin_inside(&mut self, number: u32) {
        let message = &self.messages[number as usize];
        let (begun, flits) = match self.overheads.cycles {
            0 => (message.packets, self.flits_left(message)),
            _ => (0, 0),
        };
        let ready = self.cycle;
        let message = &mut self.messages[number as usize];
        message.undelivered = 1;
        (message.begun, message.ready_flits, message.ready) = (begun, flits, ready);
        self.injecting.push(self.sources.len() as u32 + number);
    }

    /// The ends of a message at its sender and at its receiver.
    pub(super) fn ends(&self, message: &InFlight) -> [End; 2] {
        let ranks = [message.from, message.to];
        let [sender, receiver] = ranks.map(|rank| self.machine.topology.node_of(rank));
        let leaves = sender != receiver;
        [(ranks[0], sender), (ranks[1], receiver)]
            .map(|(rank, node)| End { rank, node: leaves.then_some(node) })
    }

    /// Every port sends the next flit of its packet, and every message inside a node its next flits,
    /// if there is room.
    pub(super) fn inject(&mut self) {
        let mut injecting = std::mem::take(&mut self.injecting);
        injecting.retain(|&source| {
            let more = match source.checked_sub(self.sources.len() as u32) {
                None => self.inject_by(source),
                Some(message) => self.pass_inside(message),
            };
            let Some(more) = more else { return true };
            self.still_since = self.cycle;
            if more && !self.limits.is_unlimited() {
                self.later.push(source);
                return false;
            }
            more
        });
        injecting.append(&mut self.later);
        injecting.append(&mut self.injecting);
        self.injecting = injecting;
    }

    /// A port sends the next flit of its packet. Returns whether it has more, or `None` if there is
    /// no room.
    fn inject_by(&mut self, source: u32) -> Option<bool> {
        let place = &self.sources[source as usize];
        if place.sending.is_none() && !place.queue.is_empty() {
            if place.ready > self.cycle {
                // The packet waits for its time, not for another one.
                self.still_since = self.cycle;
                return None;
            }
            if let Some(input) = self.channel_of_port(source) {
                self.next_packet(source, input);
            }
        }
        let (packet, input) = self.sources[source as usize].sending?;
        if !self.has_room(input) {
            return None;
        }
        if !self.limits.is_unlimited() {
            let [sender, _] = self.ends(self.message(packet));
            if self.limits.room(Way::Injected, sender, self.cycle, 1) == 0 {
                // The flit waits for its time, not for another packet.
                self.still_since = self.cycle;
                return None;
            }
            self.limits.pass(Way::Injected, sender, self.cycle);
        }
        let of = &mut self.packets[packet as usize];
        of.sent += 1;
        let (head, tail) = (of.sent == 1, of.sent == of.flits);
        let place = &mut self.sources[source as usize];
        if tail {
            place.sending = None;
        }
        let more = !tail || !place.queue.is_empty();
        self.schedule(1, Arrival::Flit(input, Flit { packet, head, tail, ready: 0 }));
        Some(more)
    }

    /// Whether an injection buffer has room.
    fn has_room(&self, input: u32) -> bool {
        self.inputs[input as usize].flits.len() < self.injection_buffer
    }

    /// A virtual channel for the next packet of a port: an empty one, or with adaptive routing the next
    /// one in turn with room.
    fn channel_of_port(&mut self, source: u32) -> Option<u32> {
        let (node, port) = (source / self.machine.ports.node, source % self.machine.ports.node);
        let (base, vcs) = (self.routers.injects(node, port) * self.vcs, self.vcs);
        if self.adaptive.is_none() {
            return (base..base + vcs).find(|&input| {
                let input = &self.inputs[input as usize];
                input.flits.is_empty() && input.granted.is_none()
            });
        }
        let turn = self.sources[source as usize].turn;
        let next = (turn..turn + vcs).map(|turn| turn % vcs).find(|vc| self.has_room(base + vc))?;
        self.sources[source as usize].turn = next + 1;
        Some(base + next)
    }

    /// A port begins the next packet.
    fn next_packet(&mut self, source: u32, input: u32) {
        let queue = &mut self.sources[source as usize].queue;
        let number = queue.pop_front().expect("bug: no message to send");
        let packet = self.cut(number);
        let message = &self.messages[number as usize];
        let place = &mut self.sources[source as usize];
        place.sending = Some((packet, input));
        if message.begun < message.packets {
            match self.machine.endpoint.interleave {
                true => place.queue.push_back(number),
                false => place.queue.push_front(number),
            }
        }
        if self.overheads.cycles > 0
            && let Some(&next) = place.queue.front()
        {
            let next = &self.messages[next as usize];
            place.ready = match next.begun {
                0 => 0,
                _ => self.overheads.prepare(next.message.from, self.cycle),
            };
        }
    }

    /// The next flits of a message pass from rank to rank inside a node. Returns whether it has
    /// more, or `None` if there is no room.
    fn pass_inside(&mut self, number: u32) -> Option<bool> {
        let cycle = self.cycle;
        // A flit waits for its time, not for another packet.
        self.still_since = cycle;
        let message = &self.messages[number as usize];
        if message.passed == message.ready_flits && message.ready <= cycle {
            let flits = self.flits_of(self.next_bytes(message));
            let message = &mut self.messages[number as usize];
            message.begun += 1;
            message.ready_flits += flits;
            if message.begun < message.packets {
                message.ready = self.overheads.prepare(message.message.from, cycle);
            }
        }
        let message = &self.messages[number as usize];
        let [sender, receiver] = self.ends(&message.message);
        let left = u32::try_from(message.ready_flits - message.passed).unwrap_or(u32::MAX);
        let mut room = self.inside_rate.room(message.inside, cycle, left);
        room = self.limits.room(Way::Injected, sender, cycle, room);
        room = self.limits.room(Way::Ejected, receiver, cycle, room);
        if room == 0 || !self.limits.inside_may_eject(receiver.rank) {
            return None;
        }
        let message = &mut self.messages[number as usize];
        for _ in 0..room {
            self.inside_rate.pass(&mut message.inside, cycle);
            self.limits.pass(Way::Injected, sender, cycle);
            self.limits.pass(Way::Ejected, receiver, cycle);
        }
        message.passed += u64::from(room);
        let more = message.passed < message.ready_flits || message.begun < message.packets;
        if !more {
            self.deliver(cycle + 1, number);
        }
        Some(more)
    }
}
