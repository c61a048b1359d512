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
//! A message is cut into packets of the endpoint's size, each of whole flits; the module `sources` has the
//! ports that send them, and their overheads. Packets of a message alone follow each other without a
//! gap, if they have three flits and there are two virtual channels.
//!
//! On grids messages follow their routes in dimension order, and the module `adaptive` has adaptive
//! routes. On graphs they follow the machine's routes or their own, in the classes of virtual channels of the
//! module [`classes`](super::classes).
//!
//! Both allocators are one iteration of iSLIP: outputs grant round robin, inputs accept round
//! robin, and pointers move only past what was accepted.
//!
//! # Validated
//! Latencies of `BookSim` 2 below saturation, within 10 %; no machine was measured (`docs/src/validation.md`).
//!
//! # What it leaves out
//! Causes of waiting: links count no waiting time, and the critical chain has only deliveries. A link
//! counts a message for the first of its packets.

mod adaptive;
mod allocators;
mod crossing;
mod limits;
mod rate;
mod routers;
mod sources;

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;
use topocoll_topology::{LinkId, Machine, Route};

pub(crate) use self::adaptive::check as check_adaptive;
use self::adaptive::{Adaptive, Course};
use self::limits::Limits;
use self::rate::{Rate, Through};
use self::routers::Routers;
pub(crate) use self::routers::most_inputs;
use self::sources::{Overheads, Source};
use super::calendar::Calendar;
use super::chain::Chain;
use super::channels::Channels;
use super::classes::ChannelClasses;
use super::clock::{Clock, Picoseconds};
use super::kinds::{Kinds, Values};
use super::network::{Contents, Held, InFlight, Interval, LinkUse, Network, cycle};
use super::settings::{Dateline, Routing, Settings};

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

struct Message {
    message: InFlight,
    /// Whether it takes any shortest route.
    free: bool,
    /// Its packets, those that have begun, and those that are not delivered.
    packets: u64,
    begun: u64,
    undelivered: u64,
    /// The pools of its links in order, if it is not free.
    pools: Vec<u32>,
    /// Inside a node: flits whose packets are ready, those that have passed, and the cycle from which
    /// the next packet is ready.
    ready_flits: u64,
    passed: u64,
    ready: u64,
    inside: Through,
}

/// A packet of a message between two nodes.
#[derive(Default)]
struct Packet {
    message: u32,
    bytes: u64,
    flits: u64,
    /// Flits injected.
    sent: u64,
    /// The pools of its links in order, and the number of links it has left. A packet with an
    /// adaptive route has no pools.
    pools: Vec<u32>,
    hop: u32,
    /// Whether it is the first of its message.
    first: bool,
    /// Its adaptive route.
    course: Option<Box<Course>>,
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
    /// Flits in the buffer of an injecting channel: in dimension order one place stays empty.
    injection_buffer: usize,
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
    /// The ports that inject, and after the last of them messages inside nodes.
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
    messages: Vec<Message>,
    packets: Vec<Packet>,
    /// Places of messages and of packets that are delivered.
    idle: Vec<u32>,
    idle_packets: Vec<u32>,
    overheads: Overheads,
    adaptive: Option<Adaptive<'a>>,
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
    let hops = 4 * u128::from(contents.hops);
    // A packet has a flit in a buffer or in flight, or more to inject.
    let flits = u128::from(settings.vcs) * u128::from(settings.buffer_flits) + cycles + 1;
    let packets = match machine.endpoint.packet_bytes {
        None => contents.live,
        Some(_) => Routers::all_inputs(machine) * flits,
    };
    Routers::all_inputs(machine) * port
        + links * size_of::<Through>() as u128
        + limits
        + ejecting * size_of::<u32>() as u128
        + Adaptive::memory(machine, settings)
        + Overheads::memory(machine)
        + contents.live * (size_of::<Message>() as u128 + hops + 64)
        + packets * (size_of::<Packet>() as u128 + hops + 4 + Adaptive::packet_bytes(settings))
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
        (dateline, classes): (Dateline, Option<Arc<ChannelClasses>>),
        records: bool,
    ) -> Self {
        let (kinds, routers) = (&clock.kinds, Routers::new(machine));
        let channels = Channels::new(machine, settings, dateline, classes);
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
            injection_buffer: match settings.routing {
                Routing::DimensionOrder => settings.buffer_flits.max(2) as usize - 1,
                Routing::Adaptive => settings.buffer_flits as usize,
            },
            flit_bytes: settings.flit_bytes,
            inputs: (0..channels_of(inputs)).map(|_| Input::default()).collect(),
            outputs: vec![output; channels_of(outputs)],
            occupied: vec![0; count],
            output_pointers: vec![0; outputs],
            input_pointers: vec![0; inputs],
            vc_pointers: vec![0; inputs],
            sources: (0..nodes * machine.ports.node as usize).map(|_| Source::default()).collect(),
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
            messages: Vec::new(),
            packets: Vec::new(),
            idle: Vec::new(),
            idle_packets: Vec::new(),
            overheads: Overheads::new(machine, clock.cycle.max(1)),
            adaptive: Adaptive::new(machine, settings, channels_of(inputs)),
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
            match self.adaptive {
                None => self.route(router),
                Some(_) => self.route_adaptive(router),
            }
            self.switch(router);
            let more = self.occupied[router as usize] != 0;
            self.busy[router as usize] = more;
            more
        });
        working.append(&mut self.working);
        self.working = working;
        self.cycle += 1;
    }

    /// A packet of a message is delivered at the beginning of a cycle.
    fn deliver(&mut self, cycle: u64, message: u32) {
        let undelivered = &mut self.messages[message as usize].undelivered;
        *undelivered -= 1;
        if *undelivered == 0 {
            let at = cycle.saturating_mul(self.cycle_time);
            let place = self.delivered.partition_point(|&(other, _)| other <= at);
            self.delivered.insert(place, (at, message));
        }
    }

    fn message(&self, packet: u32) -> &InFlight {
        &self.messages[self.packets[packet as usize].message as usize].message
    }

    /// The rate of a link, if it is slower than a flit in each cycle.
    fn rate_of(&self, link: u32) -> Option<Rate> {
        if self.through_links.is_empty() {
            return None;
        }
        self.link_rates[self.channels.kind(LinkId(link.into()))]
    }
}

impl Network for Flits<'_> {
    fn post(&mut self, message: InFlight, route: &Route, free: bool) {
        let number = self.take_message(message, free && self.adaptive.is_some());
        let posted = &mut self.messages[number as usize];
        if !posted.free {
            let (pools, channels) = (&mut posted.pools, &self.channels);
            channels.along(message.from, message.to, route, |pool, _| {
                pools.extend(channels.link_of(pool).map(|_| pool as u32));
            });
        }
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
            if let Some(&(at, message)) = self.delivered.front()
                && (at <= passed || still)
            {
                self.delivered.pop_front();
                self.idle.push(message);
                self.cycle = self.cycle.max(at.div_ceil(self.cycle_time));
                return Some((at, self.messages[message as usize].message));
            }
            loop {
                if self.next_posted.is_none() {
                    self.next_posted = self.posted.next();
                }
                let Some((time, message)) = self.next_posted else { break };
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
                self.begin(message);
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

    fn now(&self) -> Picoseconds {
        self.cycle.min(self.still_since + 1).saturating_mul(self.cycle_time)
    }

    fn waiting(&self) -> usize {
        self.messages.len() - self.idle.len()
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
                let message = self.message(number);
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
