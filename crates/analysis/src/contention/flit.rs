//! The flit model: cycle-accurate virtual-channel wormhole routers with credits (Dally 1992;
//! parameters and allocators named as in `BookSim` 2).
//!
//! A cycle is the time of one flit on the fastest links. A slower link passes p flits in q cycles,
//! evenly; a flit takes a channel at the beginning of its time there. Where injection is limited, the
//! ports of a rank together inject, and eject, at the rate of its injection, each at most a flit in a
//! cycle, and take turns. Every router has a buffer for each virtual channel of
//! each input; inputs and outputs are the links and the rank's ports. A header that arrives in
//! cycle t is routed, gets a virtual channel of its output in t + 1 and the switch in t + 2, and is
//! in the next buffer at t + `hop_cycles`. Other flits follow at the switch. The credit of a buffer
//! returns two cycles after the switch. Injection and ejection take a cycle each. So without
//! contention a message of L flits over H hops takes `hop_cycles (H + 1) + 2 + L - 1` cycles, by
//! default 5 H + 7 + (L - 1).
//!
//! Both allocators are one iteration of iSLIP: outputs grant round robin, inputs accept round
//! robin, and pointers move only past what was accepted.
//!
//! # What it leaves out
//! Causes of waiting: links count no waiting time, and the critical chain has only deliveries.

mod allocators;
mod rate;

use std::collections::VecDeque;

use smallvec::SmallVec;
use topocoll_topology::{LinkId, Machine, Route};

use self::rate::{Rate, Through};
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

/// The injection queue of a rank.
#[derive(Default)]
struct Source {
    queue: VecDeque<u32>,
    /// By virtual channel of the port: the packet being sent, and its flits sent.
    sending: Option<(u32, u32, u64)>,
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
    /// Inputs, outputs and ports of a router: links first, then the rank's ports.
    vcs: u32,
    links_per_router: u32,
    ports: u32,
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
    sources: Vec<Source>,
    injecting: Vec<u32>,
    /// The rate of links by dimension, if they are slower than a flit in each cycle, and of the
    /// injection of a rank, if it limits its ports.
    link_rates: SmallVec<[Option<Rate>; 4]>,
    injection: Option<Rate>,
    /// By link, and by router; empty where there is no such rate.
    through_links: Vec<Through>,
    injected: Vec<Through>,
    ejected: Vec<Through>,
    /// By router: the port whose turn to eject is next.
    ejecting: Vec<u32>,
    /// Sources that have injected in this cycle and let others go first in the next.
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
    let sides = machine.topology.link_classes().len() as u128;
    let ports = 2 * sides + u128::from(machine.ports);
    let per_vc = size_of::<Input>() + size_of::<Output>();
    let flits = u128::from(settings.buffer_flits) * size_of::<Flit>() as u128;
    let buffers = u128::from(settings.vcs) * (per_vc as u128 + flits);
    // Flits and credits in flight: one of each enters a link per cycle.
    let cycles =
        u128::from(settings.hop_cycles.unwrap_or(HOP_CYCLES)) + u128::from(CREDIT_CYCLES + 2);
    let wheel = cycles * size_of::<Arrival>() as u128;
    let port = buffers + wheel + (size_of::<LinkUse>() + size_of::<Source>()) as u128;
    let kinds = Kinds::new(machine);
    let slower = rates_of_links(&kinds).iter().any(Option::is_some);
    let limited = rate_of_injection(&kinds).is_some();
    let links = if slower { 2 * sides * size_of::<Through>() as u128 } else { 0 };
    let injection = if limited { 2 * size_of::<Through>() + size_of::<u32>() } else { 0 };
    u128::from(machine.ranks()) * (ports * port + links + injection as u128)
        + contents.live * (size_of::<Packet>() as u128 + 4 * u128::from(contents.hops) + 64)
}

/// The rates of links by dimension, if they are slower than a flit in each cycle.
fn rates_of_links(kinds: &Kinds<'_>) -> SmallVec<[Option<Rate>; 4]> {
    let fastest = kinds.fastest();
    let rate = |values: &Values| {
        (values.per_byte > fastest).then(|| Rate::near(fastest / values.per_byte))
    };
    kinds.values().iter().map(rate).collect()
}

/// The rate of the injection of a rank, if it limits its ports.
fn rate_of_injection(kinds: &Kinds<'_>) -> Option<Rate> {
    let flits = kinds.fastest() / kinds.machine.injection().rank;
    (flits < f64::from(kinds.machine.ports)).then(|| Rate::near(flits))
}

impl<'a> Flits<'a> {
    pub(crate) fn new(
        machine: &'a Machine,
        settings: &Settings,
        clock: &Clock<'_>,
        dateline: Dateline,
        records: bool,
    ) -> Self {
        let channels = Channels::new(machine, settings, dateline);
        let links_per_router = (channels.links() / machine.ranks() as usize) as u32;
        let ports = links_per_router + machine.ports;
        let routers = machine.ranks() as usize;
        let inputs = routers * (ports * settings.vcs) as usize;
        let hop = u64::from(settings.hop_cycles.unwrap_or(HOP_CYCLES));
        let front = (hop - 1).min(2);
        let (link_rates, injection) =
            (rates_of_links(&clock.kinds), rate_of_injection(&clock.kinds));
        let slower = if link_rates.iter().any(Option::is_some) { channels.links() } else { 0 };
        let limited = if injection.is_some() { routers } else { 0 };
        let output = Output { taken: false, credits: settings.buffer_flits, pointer: 0, since: 0 };
        Self {
            machine,
            cycle_time: clock.cycle.max(1),
            cycle: 0,
            vcs: settings.vcs,
            links_per_router,
            ports,
            front,
            after: hop - front,
            buffer: settings.buffer_flits,
            flit_bytes: settings.flit_bytes,
            inputs: (0..inputs).map(|_| Input::default()).collect(),
            outputs: vec![output; inputs],
            occupied: vec![0; routers],
            output_pointers: vec![0; routers * ports as usize],
            input_pointers: vec![0; routers * ports as usize],
            vc_pointers: vec![0; routers * ports as usize],
            sources: (0..routers * machine.ports as usize).map(|_| Source::default()).collect(),
            injecting: Vec::new(),
            link_rates,
            injection,
            through_links: vec![Through::default(); slower],
            injected: vec![Through::default(); limited],
            ejected: vec![Through::default(); limited],
            ejecting: vec![0; limited],
            later: Vec::new(),
            posted: Calendar::new(clock.cycle.max(1), routers),
            next_posted: None,
            wheel: vec![Vec::new(); (hop + CREDIT_CYCLES + 2) as usize],
            on_wheel: 0,
            packets: Vec::new(),
            idle: Vec::new(),
            busy: vec![false; routers],
            working: Vec::new(),
            still_since: 0,
            delivered: VecDeque::new(),
            links: vec![LinkUse::default(); channels.links()],
            chain: Chain::default(),
            records,
            intervals: Vec::new(),
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
                    let per_router = self.ports * self.vcs;
                    let router = input / per_router;
                    self.occupied[router as usize] |= 1 << (input % per_router);
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

    /// Every port sends the next flit of its packet if there is room.
    fn inject(&mut self) {
        let mut injecting = std::mem::take(&mut self.injecting);
        injecting.retain(|&source| {
            let ports = self.machine.ports;
            let (router, port) = (source / ports, self.links_per_router + source % ports);
            let base = (router * self.ports + port) * self.vcs;
            let place = &mut self.sources[source as usize];
            if place.sending.is_none()
                && let Some(&packet) = place.queue.front()
            {
                // An empty virtual channel of the port.
                let free = (0..self.vcs).find(|vc| {
                    let input = &self.inputs[(base + vc) as usize];
                    input.flits.is_empty() && input.granted.is_none()
                });
                if let Some(vc) = free {
                    place.queue.pop_front();
                    place.sending = Some((packet, base + vc, 0));
                }
            }
            if let Some((packet, input, sent)) = place.sending {
                // The flit in flight takes a place too.
                let room =
                    self.inputs[input as usize].flits.len() + 1 < self.buffer.max(2) as usize;
                if room && self.may_inject(router) {
                    let all = self.packets[packet as usize].flits;
                    let (head, tail) = (sent == 0, sent + 1 == all);
                    let place = &mut self.sources[source as usize];
                    place.sending = (!tail).then_some((packet, input, sent + 1));
                    let more = place.sending.is_some() || !place.queue.is_empty();
                    self.schedule(1, Arrival::Flit(input, Flit { packet, head, tail, ready: 0 }));
                    self.still_since = self.cycle;
                    if more && self.injection.is_some() {
                        self.later.push(source);
                        return false;
                    }
                    return more;
                }
            }
            true
        });
        injecting.append(&mut self.later);
        injecting.append(&mut self.injecting);
        self.injecting = injecting;
    }

    /// Takes room for a flit on the injection of a rank. Returns whether there is room.
    fn may_inject(&mut self, router: u32) -> bool {
        let Some(rate) = self.injection else { return true };
        let injected = &mut self.injected[router as usize];
        if rate.room(*injected, self.cycle, 1) == 0 {
            // The flit waits for its time, not for another packet.
            self.still_since = self.cycle;
            return false;
        }
        rate.pass(injected, self.cycle);
        true
    }

    /// A flit goes through the switch.
    fn cross(&mut self, router: u32, i: u32, port: u32) {
        self.still_since = self.cycle;
        let number = router * self.ports * self.vcs + i;
        let input = &mut self.inputs[number as usize];
        let flit = input.flits.pop_front().expect("bug: no flit asked");
        let (output, _) = input.granted.expect("bug: no output was granted");
        if input.flits.is_empty() {
            self.occupied[router as usize] &= !(1 << i);
        }
        if flit.tail {
            input.granted = None;
            self.outputs[output as usize].taken = false;
        }
        let input_port = i / self.vcs;
        if input_port < self.links_per_router {
            // The output at the other end of this input's link.
            let upstream = self.upstream(router, input_port) * self.vcs + i % self.vcs;
            self.schedule(CREDIT_CYCLES, Arrival::Credit(upstream));
        }
        if port >= self.links_per_router {
            if flit.tail {
                let at = (self.cycle + self.after + 1).saturating_mul(self.cycle_time);
                self.delivered.push_back((at, flit.packet));
            }
            if let Some(rate) = self.injection {
                rate.pass(&mut self.ejected[router as usize], self.cycle);
            }
            return;
        }
        let vc = output % self.vcs;
        self.outputs[output as usize].credits -= 1;
        let link = u64::from(router * self.links_per_router + port);
        let ahead = self.neighbour(router, port) * self.vcs + vc;
        if let Some(rate) = self.link_rates[port as usize / 2] {
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
            let link = LinkId(link);
            self.intervals.push(Interval { link, start, end, from, to, step, bytes });
        }
        self.schedule(self.after, Arrival::Flit(ahead, flit));
    }

    /// The input that a link leads to, as router times ports plus port.
    fn neighbour(&self, router: u32, port: u32) -> u32 {
        let to = self.beyond(router, port, if port % 2 == 0 { 1 } else { -1 });
        to * self.ports + port
    }

    /// The output at the other end of the link of an input. The input has the number of that link's
    /// port.
    fn upstream(&self, router: u32, port: u32) -> u32 {
        let from = self.beyond(router, port, if port % 2 == 0 { -1 } else { 1 });
        from * self.ports + port
    }

    fn beyond(&self, router: u32, port: u32, hops: i64) -> u32 {
        let topocoll_topology::Shape::Grid(grid) = self.machine.topology.shape() else {
            unreachable!("bug: routers without a grid")
        };
        grid.radix().shifted(topocoll_topology::Rank(router), port as usize / 2, hops).0
    }

    fn begin(&mut self, packet: u32) {
        let p = &self.packets[packet as usize];
        let ports = self.machine.ports;
        let source = p.message.from.0 * ports + packet % ports;
        let place = &mut self.sources[source as usize];
        let was_idle = place.queue.is_empty() && place.sending.is_none();
        place.queue.push_back(packet);
        if was_idle {
            self.injecting.push(source);
        }
    }
}

impl Network for Flits<'_> {
    fn post(&mut self, message: InFlight, route: &Route) {
        let number = self.idle.pop().unwrap_or_else(|| {
            self.packets.push(Packet { message, flits: 0, pools: Vec::new(), hop: 0 });
            self.packets.len() as u32 - 1
        });
        let packet = &mut self.packets[number as usize];
        packet.message = message;
        packet.hop = 0;
        packet.flits = message.bytes.div_ceil(self.flit_bytes).max(1);
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
                    || format!("a receiving port of {}", message.to),
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
