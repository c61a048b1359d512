//! The flit model: cycle-accurate virtual-channel wormhole routers with credits (Dally 1992;
//! parameters and allocators named as in `BookSim` 2).
//!
//! A cycle is the time of one flit on the fastest links. A slower link passes p flits in q cycles,
//! evenly; a flit takes a channel at the beginning of its time there. Every node and switch is a
//! router, with a buffer for each virtual channel of each input; inputs and outputs are the links,
//! and the ports of a node. A header that arrives in
//! cycle t is routed, gets a virtual channel of its output in t + 1 and the switch in t + 2, and is
//! in the next buffer at t + `hop_cycles`. Other flits follow at the switch. The credit of a buffer
//! returns two cycles after the switch. Injection and ejection take a cycle each. So without
//! contention a message of L flits over H hops takes `hop_cycles (H + 1) + 2 + L - 1` cycles, by
//! default 5 H + 7 + (L - 1).
//!
//! The ranks of a node share its ports. A message inside a node takes no router: its flits pass at
//! the rate of its link class, L flits at p flits in q cycles in (L - 1) q / p cycles, rounded down,
//! and one. Where injection is limited, the messages of a rank together inject, and eject, at the
//! rate of its injection, those that leave or enter a node also at that of the node's, each port at
//! most a flit in a cycle, and take turns.
//!
//! Both allocators are one iteration of iSLIP: outputs grant round robin, inputs accept round
//! robin, and pointers move only past what was accepted.
//!
//! # What it leaves out
//! Causes of waiting: links count no waiting time, and the critical chain has only deliveries.

mod allocators;
mod limits;
mod rate;
mod routers;

use std::collections::VecDeque;

use smallvec::SmallVec;
use topocoll_topology::{LinkId, Machine, Route};

use self::limits::{End, Limits, Way};
use self::rate::{Rate, Through};
use self::routers::Routers;
pub(crate) use self::routers::most_inputs;
use super::calendar::Calendar;
use super::chain::Chain;
use super::channels::Channels;
use super::clock::{Clock, Picoseconds};
use super::kinds::{Kinds, Values};
use super::network::{Contents, Held, InFlight, Interval, LinkUse, Network, cycle};
use super::settings::{Dateline, Settings};

/// The default cycles of a hop.
const HOP_CYCLES: u32 = 5;
/// Cycles until a credit returns.
const CREDIT_CYCLES: u64 = 2;
/// After this number of cycles without a moving flit the run is deadlocked.
const PATIENCE: u64 = 100_000;

/// The most virtual channels of all inputs of a router.
pub(crate) const MAX_INPUTS: u64 = 128;

#[derive(Clone, Copy)]
struct Flit {
    packet: u32,
    head: bool,
    tail: bool,
    /// The cycle from which it may ask for the switch.
    ready: u64,
}

struct Packet {
    message: InFlight,
    flits: u64,
    /// Flits injected.
    sent: u64,
    /// Those that have passed inside a node.
    inside: Through,
    /// The pools of its links in order, and the number of links it has left.
    pools: Vec<u32>,
    hop: u32,
}

/// A virtual channel of an input.
#[derive(Default)]
struct Input {
    flits: VecDeque<Flit>,
    /// The output virtual channel of the packet in front, and its port.
    granted: Option<(u32, u32)>,
}

/// A virtual channel of an output.
#[derive(Clone, Copy)]
struct Output {
    taken: bool,
    credits: u32,
    /// The round robin position of the next grant.
    pointer: u32,
    since: Picoseconds,
}

/// The injection queue of a port.
#[derive(Default)]
struct Source {
    queue: VecDeque<u32>,
    /// The packet being sent, and the virtual channel that it takes.
    sending: Option<(u32, u32)>,
}

#[derive(Clone, Copy)]
enum Arrival {
    Flit(u32, Flit),
    Credit(u32),
}

pub(crate) struct Flits<'a> {
    machine: &'a Machine,
    channels: Channels<'a>,
    cycle_time: Picoseconds,
    cycle: u64,
    routers: Routers,
    vcs: u32,
    front: u64,
    after: u64,
    buffer: u32,
    flit_bytes: u64,
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    /// By router: input virtual channels that hold a flit, and round robin pointers of the switch.
    occupied: Vec<u128>,
    output_pointers: Vec<u32>,
    input_pointers: Vec<u32>,
    vc_pointers: Vec<u32>,
    /// By port of a node.
    sources: Vec<Source>,
    /// The ports that inject, and after the last of them packets inside nodes.
    injecting: Vec<u32>,
    /// The rate of links by kind, if they are slower than a flit in each cycle, and that of a
    /// message inside a node.
    link_rates: SmallVec<[Option<Rate>; 4]>,
    inside_rate: Rate,
    /// By link; empty where all have a flit in each cycle.
    through_links: Vec<Through>,
    limits: Limits,
    /// By node: the port whose turn to eject is next; empty without limits.
    ejecting: Vec<u32>,
    /// Those that have injected in this cycle and let others go first in the next.
    later: Vec<u32>,
    posted: Calendar<u32>,
    next_posted: Option<(Picoseconds, u32)>,
    wheel: Vec<Vec<Arrival>>,
    on_wheel: usize,
    packets: Vec<Packet>,
    idle: Vec<u32>,
    /// Routers with a flit.
    busy: Vec<bool>,
    working: Vec<u32>,
    still_since: u64,
    delivered: VecDeque<(Picoseconds, u32)>,
    links: Vec<LinkUse>,
    chain: Chain,
    records: bool,
    intervals: Vec<Interval>,
}

/// Bytes of memory of a machine and of the messages in flight.
pub(crate) fn memory(machine: &Machine, settings: &Settings, contents: &Contents) -> u128 {
    let per_vc = size_of::<Input>() + size_of::<Output>();
    let flits = u128::from(settings.buffer_flits) * size_of::<Flit>() as u128;
    let buffers = u128::from(settings.vcs) * (per_vc as u128 + flits);
    // Flits and credits in flight: one of each enters a link per cycle.
    let cycles =
        u128::from(settings.hop_cycles.unwrap_or(HOP_CYCLES)) + u128::from(CREDIT_CYCLES + 2);
    let wheel = cycles * size_of::<Arrival>() as u128;
    let port =
        wheel + (Routers::BYTES + size_of::<LinkUse>() + size_of::<Source>()) as u128 + buffers;
    let (kinds, topology) = (Kinds::new(machine), &machine.topology);
    let slower = rates_of_links(&kinds).iter().any(Option::is_some);
    let links = if slower { u128::from(topology.link_numbers()) } else { 0 };
    let limits = Limits::memory(&kinds);
    let ejecting = if limits > 0 { u128::from(topology.nodes()) } else { 0 };
    Routers::all_inputs(machine) * port
        + links * size_of::<Through>() as u128
        + limits
        + ejecting * size_of::<u32>() as u128
        + contents.live * (size_of::<Packet>() as u128 + 4 * u128::from(contents.hops) + 64)
}

/// The rates of links by kind, if they are slower than a flit in each cycle.
fn rates_of_links(kinds: &Kinds<'_>) -> SmallVec<[Option<Rate>; 4]> {
    let fastest = kinds.fastest();
    let rate = |values: &Values| {
        (values.per_byte > fastest).then(|| Rate::near(fastest / values.per_byte))
    };
    kinds.values().iter().map(rate).collect()
}

impl<'a> Flits<'a> {
    pub(crate) fn new(
        machine: &'a Machine,
        settings: &Settings,
        clock: &Clock<'_>,
        dateline: Dateline,
        records: bool,
    ) -> Self {
        let (kinds, routers) = (&clock.kinds, Routers::new(machine));
        let channels = Channels::new(machine, settings, dateline);
        let ([inputs, outputs], count) = (routers.inputs_and_outputs(), routers.count());
        let channels_of = |ends: usize| ends * settings.vcs as usize;
        let hop = u64::from(settings.hop_cycles.unwrap_or(HOP_CYCLES));
        let front = (hop - 1).min(2);
        let link_rates = rates_of_links(kinds);
        let slower = if link_rates.iter().any(Option::is_some) { channels.links() } else { 0 };
        let limits = Limits::new(kinds);
        let nodes = machine.topology.nodes() as usize;
        let output = Output { taken: false, credits: settings.buffer_flits, pointer: 0, since: 0 };
        Self {
            machine,
            cycle_time: clock.cycle.max(1),
            cycle: 0,
            vcs: settings.vcs,
            front,
            after: hop - front,
            buffer: settings.buffer_flits,
            flit_bytes: settings.flit_bytes,
            inputs: (0..channels_of(inputs)).map(|_| Input::default()).collect(),
            outputs: vec![output; channels_of(outputs)],
            occupied: vec![0; count],
            output_pointers: vec![0; outputs],
            input_pointers: vec![0; inputs],
            vc_pointers: vec![0; inputs],
            sources: (0..nodes * machine.ports as usize).map(|_| Source::default()).collect(),
            injecting: Vec::new(),
            link_rates,
            inside_rate: Rate::near(kinds.fastest() / machine.timing.per_byte.of(0)),
            through_links: vec![Through::default(); slower],
            ejecting: vec![0; if limits.is_unlimited() { 0 } else { nodes }],
            limits,
            later: Vec::new(),
            posted: Calendar::new(clock.cycle.max(1), machine.ranks() as usize),
            next_posted: None,
            wheel: vec![Vec::new(); (hop + CREDIT_CYCLES + 2) as usize],
            on_wheel: 0,
            packets: Vec::new(),
            idle: Vec::new(),
            busy: vec![false; count],
            working: Vec::new(),
            still_since: 0,
            delivered: VecDeque::new(),
            links: vec![LinkUse::default(); channels.links()],
            chain: Chain::default(),
            records,
            intervals: Vec::new(),
            routers,
            channels,
        }
    }

    fn schedule(&mut self, ahead: u64, arrival: Arrival) {
        let slot = (self.cycle + ahead) as usize % self.wheel.len();
        self.wheel[slot].push(arrival);
        self.on_wheel += 1;
    }

    /// One cycle: arrivals, injection, virtual channels, switches.
    fn tick(&mut self) {
        let slot = self.cycle as usize % self.wheel.len();
        let mut arrivals = std::mem::take(&mut self.wheel[slot]);
        self.on_wheel -= arrivals.len();
        for arrival in arrivals.drain(..) {
            match arrival {
                Arrival::Credit(output) => self.outputs[output as usize].credits += 1,
                Arrival::Flit(input, mut flit) => {
                    flit.ready = self.cycle + if flit.head { self.front } else { 0 };
                    self.inputs[input as usize].flits.push_back(flit);
                    let router = self.routers.of_input(input / self.vcs);
                    let first = self.routers.inputs(router).start * self.vcs;
                    self.occupied[router as usize] |= 1 << (input - first);
                    if !std::mem::replace(&mut self.busy[router as usize], true) {
                        self.working.push(router);
                    }
                }
            }
        }
        self.wheel[slot] = arrivals;
        self.inject();
        let mut working = std::mem::take(&mut self.working);
        // The order of routers does not matter: they interact only by the wheel.
        working.retain(|&router| {
            self.route(router);
            self.switch(router);
            let more = self.occupied[router as usize] != 0;
            self.busy[router as usize] = more;
            more
        });
        working.append(&mut self.working);
        self.working = working;
        self.cycle += 1;
    }

    /// The ends of a message at its sender and at its receiver.
    fn ends(&self, message: &InFlight) -> [End; 2] {
        let ranks = [message.from, message.to];
        let [sender, receiver] = ranks.map(|rank| self.machine.topology.node_of(rank));
        let leaves = sender != receiver;
        [(ranks[0], sender), (ranks[1], receiver)]
            .map(|(rank, node)| End { rank, node: leaves.then_some(node) })
    }

    /// Every port sends the next flit of its packet, and every packet inside a node its next flits,
    /// if there is room.
    fn inject(&mut self) {
        let mut injecting = std::mem::take(&mut self.injecting);
        injecting.retain(|&source| {
            let more = match source.checked_sub(self.sources.len() as u32) {
                None => self.inject_by(source),
                Some(packet) => self.pass_inside(packet),
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
        let (node, port) = (source / self.machine.ports, source % self.machine.ports);
        let place = &mut self.sources[source as usize];
        if place.sending.is_none()
            && let Some(&packet) = place.queue.front()
        {
            // An empty virtual channel of the port.
            let base = self.routers.injects(node, port) * self.vcs;
            let free = (base..base + self.vcs).find(|&input| {
                let input = &self.inputs[input as usize];
                input.flits.is_empty() && input.granted.is_none()
            });
            if let Some(input) = free {
                place.queue.pop_front();
                place.sending = Some((packet, input));
            }
        }
        let (packet, input) = place.sending?;
        // The flit in flight takes a place too.
        if self.inputs[input as usize].flits.len() + 1 >= self.buffer.max(2) as usize {
            return None;
        }
        let [sender, _] = self.ends(&self.packets[packet as usize].message);
        if self.limits.room(Way::Injected, sender, self.cycle, 1) == 0 {
            // The flit waits for its time, not for another packet.
            self.still_since = self.cycle;
            return None;
        }
        self.limits.pass(Way::Injected, sender, self.cycle);
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

    /// The next flits of a packet pass from rank to rank inside a node. Returns whether it has
    /// more, or `None` if there is no room.
    fn pass_inside(&mut self, number: u32) -> Option<bool> {
        let cycle = self.cycle;
        let packet = &self.packets[number as usize];
        let [sender, receiver] = self.ends(&packet.message);
        let left = u32::try_from(packet.flits - packet.sent).unwrap_or(u32::MAX);
        let mut room = self.inside_rate.room(packet.inside, cycle, left);
        room = self.limits.room(Way::Injected, sender, cycle, room);
        room = self.limits.room(Way::Ejected, receiver, cycle, room);
        // A flit waits for its time, not for another packet.
        self.still_since = cycle;
        if room == 0 || !self.limits.inside_may_eject(receiver.rank) {
            return None;
        }
        let packet = &mut self.packets[number as usize];
        for _ in 0..room {
            self.inside_rate.pass(&mut packet.inside, cycle);
            self.limits.pass(Way::Injected, sender, cycle);
            self.limits.pass(Way::Ejected, receiver, cycle);
        }
        packet.sent += u64::from(room);
        let more = packet.sent < packet.flits;
        if !more {
            self.deliver(cycle + 1, number);
        }
        Some(more)
    }

    /// A packet is delivered at the beginning of a cycle.
    fn deliver(&mut self, cycle: u64, packet: u32) {
        let at = cycle.saturating_mul(self.cycle_time);
        let place = self.delivered.partition_point(|&(other, _)| other <= at);
        self.delivered.insert(place, (at, packet));
    }

    /// A flit goes through the switch.
    fn cross(&mut self, router: u32, i: u32) {
        self.still_since = self.cycle;
        let input = self.routers.inputs(router).start * self.vcs + i;
        let flits = &mut self.inputs[input as usize];
        let flit = flits.flits.pop_front().expect("bug: no flit asked");
        let (output, _) = flits.granted.expect("bug: no output was granted");
        if flits.flits.is_empty() {
            self.occupied[router as usize] &= !(1 << i);
        }
        if flit.tail {
            flits.granted = None;
            self.outputs[output as usize].taken = false;
        }
        let vc = input % self.vcs;
        if let Some(before) = self.routers.before(input / self.vcs) {
            self.schedule(CREDIT_CYCLES, Arrival::Credit(before * self.vcs + vc));
        }
        let Some(link) = self.routers.link(output / self.vcs) else {
            if flit.tail {
                self.deliver(self.cycle + self.after + 1, flit.packet);
            }
            if !self.limits.is_unlimited() {
                let [_, receiver] = self.ends(&self.packets[flit.packet as usize].message);
                self.limits.pass(Way::Ejected, receiver, self.cycle);
            }
            return;
        };
        let vc = output % self.vcs;
        self.outputs[output as usize].credits -= 1;
        let [_, ahead] = self.routers.ends(link);
        if let Some(rate) = self.rate_of(link) {
            rate.pass(&mut self.through_links[link as usize], self.cycle);
        }
        let packet = &mut self.packets[flit.packet as usize];
        if flit.head {
            packet.hop += 1;
            self.links[link as usize].messages += 1;
            self.links[link as usize].bytes += u128::from(packet.message.bytes);
        }
        if flit.tail && self.records {
            let InFlight { from, to, step, bytes, .. } = packet.message;
            let start = self.outputs[output as usize].since;
            let end = (self.cycle + 1).saturating_mul(self.cycle_time);
            let link = LinkId(link.into());
            self.intervals.push(Interval { link, start, end, from, to, step, bytes });
        }
        self.schedule(self.after, Arrival::Flit(ahead * self.vcs + vc, flit));
    }

    /// The rate of a link, if it is slower than a flit in each cycle.
    fn rate_of(&self, link: u32) -> Option<Rate> {
        if self.through_links.is_empty() {
            return None;
        }
        self.link_rates[self.channels.kind(LinkId(link.into()))]
    }

    fn begin(&mut self, packet: u32) {
        let [sender, _] = self.ends(&self.packets[packet as usize].message);
        let Some(node) = sender.node else {
            self.injecting.push(self.sources.len() as u32 + packet);
            return;
        };
        let ports = self.machine.ports;
        let source = node * ports + packet % ports;
        let place = &mut self.sources[source as usize];
        let was_idle = place.queue.is_empty() && place.sending.is_none();
        place.queue.push_back(packet);
        if was_idle {
            self.injecting.push(source);
        }
    }
}

impl Network for Flits<'_> {
    fn post(&mut self, message: InFlight, route: &Route, _free: bool) {
        let number = self.idle.pop().unwrap_or_else(|| {
            let (inside, pools) = (Through::default(), Vec::new());
            self.packets.push(Packet { message, flits: 0, sent: 0, inside, pools, hop: 0 });
            self.packets.len() as u32 - 1
        });
        let packet = &mut self.packets[number as usize];
        packet.message = message;
        packet.flits = message.bytes.div_ceil(self.flit_bytes).max(1);
        (packet.sent, packet.inside, packet.hop) = (0, Through::default(), 0);
        packet.pools.clear();
        let (pools, ports) = (&mut packet.pools, 2 * self.channels.links() as u64);
        self.channels.along(message.from, message.to, route, |pool, _| {
            if pool < ports {
                pools.push(pool as u32);
            }
        });
        if let Some((time, other)) = self.next_posted
            && message.handed < time
        {
            self.posted.add(time, other);
            self.next_posted = None;
        }
        self.posted.add(message.handed, number);
    }

    fn next(&mut self, stop: &dyn Fn() -> bool) -> Option<(Picoseconds, InFlight)> {
        loop {
            let passed = self.cycle.saturating_mul(self.cycle_time);
            let still = self.on_wheel == 0 && self.working.is_empty();
            if let Some(&(at, packet)) = self.delivered.front()
                && (at <= passed || still)
            {
                self.delivered.pop_front();
                self.idle.push(packet);
                self.cycle = self.cycle.max(at.div_ceil(self.cycle_time));
                return Some((at, self.packets[packet as usize].message));
            }
            loop {
                if self.next_posted.is_none() {
                    self.next_posted = self.posted.next();
                }
                let Some((time, packet)) = self.next_posted else { break };
                let cycle = time.div_ceil(self.cycle_time);
                if still && self.injecting.is_empty() {
                    self.cycle = self.cycle.max(cycle);
                    // Without packets there is no deadlock.
                    self.still_since = self.cycle;
                }
                if cycle > self.cycle {
                    break;
                }
                self.next_posted = None;
                self.begin(packet);
            }
            if still && self.injecting.is_empty() {
                return None;
            }
            if self.cycle - self.still_since > PATIENCE && self.on_wheel == 0 {
                return None;
            }
            if self.cycle.is_multiple_of(4096) && stop() {
                return None;
            }
            self.tick();
        }
    }

    fn waiting(&self) -> usize {
        self.packets.len() - self.idle.len()
    }

    fn circle(&self) -> Vec<Held> {
        // Packets in front of an input without an output, and the holders of the channels they
        // want.
        let mut holder = hashbrown::HashMap::new();
        let mut at = None;
        for input in &self.inputs {
            let Some(front) = input.flits.front() else { continue };
            let packet = &self.packets[front.packet as usize];
            for &pool in &packet.pools[..packet.hop as usize] {
                holder.entry(pool).or_insert(front.packet);
            }
            if input.granted.is_none() {
                at = at.or(Some(front.packet));
            }
        }
        let wanted = |packet: u32| {
            let packet = &self.packets[packet as usize];
            packet.pools.get(packet.hop as usize).copied()
        };
        let next = |packet| wanted(packet).and_then(|pool| holder.get(&pool).copied());
        (cycle(at, next).into_iter())
            .map(|number| {
                let message = self.packets[number as usize].message;
                let waits_for = wanted(number).map_or_else(
                    || format!("a receiving port of {}", self.machine.topology.node_of(message.to)),
                    |pool| self.channels.name(pool.into()),
                );
                Held { from: message.from, to: message.to, step: message.step, waits_for }
            })
            .collect()
    }

    fn links(&self) -> &[LinkUse] {
        &self.links
    }

    fn chain(&mut self) -> &mut Chain {
        &mut self.chain
    }

    fn channel(&self, number: u64) -> String {
        self.channels.name(number)
    }

    fn take_intervals(&mut self) -> Vec<Interval> {
        std::mem::take(&mut self.intervals)
    }
}
