//! The fluid model: messages as flows that share links max-min fairly, as `SimGrid` does
//! (its model `CM02` with all its factors at 1).
//!
//! A message first crosses its route, hop by hop. Then it flows over all of its links at once, at
//! its max-min fair rate: a higher rate would lower that of a flow with an equal or lower rate.
//! Without contention it takes exactly startup + bytes / bandwidth + hops.
//!
//! Where injection is limited, each rank and node has one more link out and one in, which its
//! messages share.
//!
//! Rates, bytes and times are whole numbers. So a result depends neither on the order of messages
//! nor on messages elsewhere, and equivalent ranks do the same at the same time: one rank of each class
//! is simulated, with the links of one period of the machine (`fold.rs`). A flow ends at the nearest
//! picosecond.
//!
//! With adaptive routing a message is split into flows over its shortest routes (`shortest.rs`), and is
//! delivered with the last of them. Where messages of a rank leave one after the other, a flow begins
//! when those of the messages before it have ended. The overheads of packets limit the injection of a
//! rank.
//!
//! # Validated
//! All-to-alls of large messages on TPU slices and a ring of Blackhole chips, behind `NVSwitch` and on `InfiniBand`:
//! 13 of 15 predictions within 10 %, 8 of them within 5 %. Not large packets, and not the gain of a window of
//! eight (`docs/src/validation.md`).
//!
//! # What it leaves out
//! Buffers, blocking, ports and single packets: only links and injection limit a flow. Clusters have no numbered
//! links, so without an injection limit messages of one node do not slow each other. They do in the
//! platform written for `SimGrid`, where a node has one link out and one in.

mod ends;
mod rates;
mod shortest;

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use topocoll_topology::{LinkId, Machine, Rank, Route};

use self::ends::Ends;
use self::rates::Rates;
use self::shortest::Shortest;
use super::calendar::Calendar;
use super::chain::{Chain, ChainLink};
use super::clock::{Clock, Picoseconds, picoseconds};
use super::fold::Fold;
use super::network::{Contents, Held, InFlight, Interval, LinkUse, Network};
use super::settings::{Routing, Settings};
use crate::symmetry::Equivalent;

/// The capacity of the slowest channel. Its shares by up to 15 flows, and the shares of these by up
/// to 15, are whole numbers.
const SLOWEST: u64 = 360_360 * 360_360 * 5_040;

/// The capacity of the fastest channel is at most this, and all are lower in proportion.
const FASTEST: u64 = 1 << 60;

struct Flow {
    message: InFlight,
    route: Route,
    bundle: u32,
    start: Picoseconds,
    /// Its place in the order in which flows begin.
    begun: u64,
    /// The message that it is a part of, if messages are split or wait for each other.
    whole: u32,
}

/// A message that is split over several routes, or that waits for others of its rank.
struct Whole {
    /// Flows that have not ended.
    flows: u32,
    /// Flows that wait for the messages before it.
    held: Vec<u32>,
}

/// No such message.
const ALONE: u32 = u32::MAX;

/// The service of a bundle of flows with equal links and equal rates.
#[derive(Default)]
struct Service {
    /// What each flow got since the first one, up to `since`, as rate times time.
    served: u128,
    since: Picoseconds,
    /// The flows by the service at which they end.
    flows: VecDeque<(u128, u32)>,
    /// Messages of the bundle that flow or cross their route.
    messages: u32,
    hash: u64,
}

impl Service {
    fn settle(&mut self, now: Picoseconds, rate: u64) {
        self.served += u128::from(now - self.since) * u128::from(rate);
        self.since = now;
    }

    /// The time until the first flow ends.
    fn left(&self, rate: u64) -> Picoseconds {
        let left = self.flows.front().map_or(0, |&(end, _)| end.saturating_sub(self.served));
        let half = u128::from(rate / 2);
        u64::try_from((left + half) / u128::from(rate)).unwrap_or(Picoseconds::MAX)
    }
}

pub(crate) struct Fluid<'a> {
    fold: Fold<'a>,
    /// Of a header over a link, by kind.
    hops: Vec<Picoseconds>,
    arrivals: Calendar<u32>,
    next_arrival: Option<(Picoseconds, u32)>,
    flows: Vec<Flow>,
    idle: Vec<u32>,
    wholes: Vec<Whole>,
    idle_wholes: Vec<u32>,
    /// The routes of a message, if it is split.
    shortest: Option<Shortest<'a>>,
    /// By rank, its messages in the order in which they flow, if they do so one after the other.
    lines: Option<HashMap<Rank, VecDeque<u32>>>,
    rates: Rates,
    /// By bundle.
    services: Vec<Service>,
    bundles: HashTable<u32>,
    hasher: DefaultHashBuilder,
    ends: Ends,
    begun: u64,
    /// Flows that have ended, the last first.
    done: Vec<u32>,
    now: Picoseconds,
    /// Scratch: the links of a message, and the bundles with another rate.
    over: Vec<(u32, u32)>,
    changed: Vec<(u32, u64)>,
    links: Vec<LinkUse>,
    chain: Chain,
    records: bool,
    intervals: Vec<Interval>,
}

/// Bytes of memory of a machine and its messages.
pub(crate) fn memory(
    machine: &Machine,
    settings: &Settings,
    ranks: &Equivalent,
    contents: &Contents,
) -> u128 {
    let fold = Fold::new(machine, settings, ranks);
    // Vectors that grow are up to twice as long.
    let hop = 2 * (Rates::HOP + size_of::<(u32, u32)>()) as u128;
    let flow = 2 * (size_of::<Flow>() + Rates::BUNDLE + size_of::<Service>() + 200) as u128;
    let (flows, routes) = match settings.routing {
        Routing::DimensionOrder => (1, 0),
        Routing::Adaptive => (shortest::MOST as u128, shortest::memory(machine)),
    };
    routes
        + fold.links() as u128 * size_of::<LinkUse>() as u128
        + u128::from(fold.count()) * Rates::LINK as u128
        + contents.live * flows * (flow + (u128::from(contents.hops) + 4) * hop)
        + contents.live * Chain::CAUSE as u128 * 2
}

impl<'a> Fluid<'a> {
    pub(crate) fn new(
        machine: &'a Machine,
        settings: &Settings,
        clock: &Clock<'_>,
        ranks: &Equivalent,
        records: bool,
    ) -> Self {
        let fold = Fold::new(machine, settings, ranks);
        let links = fold.links();
        let capacity =
            |kept| Self::capacity(&fold, fold.channels.pace(fold.representative(kept) as u32));
        let rates = Rates::new((0..fold.count() as u32).map(capacity));
        Self {
            hops: clock.hops.clone(),
            arrivals: Calendar::new(clock.cycle.max(1), 1),
            next_arrival: None,
            flows: Vec::new(),
            idle: Vec::new(),
            wholes: Vec::new(),
            idle_wholes: Vec::new(),
            shortest: (settings.routing == Routing::Adaptive).then(|| Shortest::new(machine)),
            lines: (!machine.endpoint.interleave).then(HashMap::new),
            rates,
            services: Vec::new(),
            bundles: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            ends: Ends::default(),
            begun: 0,
            done: Vec::new(),
            now: 0,
            over: Vec::new(),
            changed: Vec::new(),
            links: vec![LinkUse::default(); links],
            chain: Chain::default(),
            records,
            intervals: Vec::new(),
            fold,
        }
    }

    /// The capacity of a channel of this pace.
    fn capacity(fold: &Fold<'_>, pace: u64) -> u64 {
        let [slowest, fastest] = fold.channels.extremes();
        let of = |slow: u64| (u128::from(slow) * u128::from(slowest) / u128::from(pace)) as u64;
        let limit = (u128::from(FASTEST) * u128::from(fastest) / u128::from(slowest)) as u64;
        of(SLOWEST.min(limit))
    }

    /// The bundle of a message, which counts it.
    fn bundle(&mut self, message: &InFlight, route: &Route) -> u32 {
        let pace = self.fold.channels.message_pace(message.from, message.to, route).0;
        let full = Self::capacity(&self.fold, pace);
        let Self { fold, over, rates, services, bundles, hasher, .. } = self;
        over.clear();
        fold.along(message.from, message.to, route, |kept, times, _| over.push((kept, times)));
        let hash = hasher.hash_one((&*over, full));
        let known = bundles.find(hash, |&number| {
            services[number as usize].hash == hash && rates.is(number, over, full)
        });
        let number = known.copied().unwrap_or_else(|| {
            let number = rates.add(over, full);
            bundles.insert_unique(hash, number, |&number| services[number as usize].hash);
            let all = services.len().max(number as usize + 1);
            services.resize_with(all, Service::default);
            let service = &mut services[number as usize];
            (service.served, service.hash) = (0, hash);
            number
        });
        services[number as usize].messages += 1;
        number
    }

    /// Removes a message that has ended, and its bundle with the last one.
    fn drop_bundle(&mut self, number: u32) {
        let service = &mut self.services[number as usize];
        service.messages -= 1;
        if service.messages == 0 {
            let found = self.bundles.find_entry(service.hash, |&other| other == number);
            found.expect("bug: a bundle that is not known").remove();
            self.rates.remove(number);
        }
    }

    /// Begins a flow that has arrived, or lets it wait for the messages before it.
    fn arrive(&mut self, number: u32) {
        let Flow { whole, message, .. } = &self.flows[number as usize];
        let line = self.lines.as_ref().map(|lines| &lines[&message.from]);
        match line {
            Some(line) if line.front() != Some(whole) => {
                self.wholes[*whole as usize].held.push(number);
            }
            _ => self.begin(number),
        }
    }

    fn begin(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        (flow.start, flow.begun) = (self.now, self.begun);
        self.begun += 1;
        let bytes = flow.message.bytes;
        for (link, times) in self.rates.over(flow.bundle) {
            if let Some(used) = self.links.get_mut(link as usize) {
                used.bytes += u128::from(times) * u128::from(bytes);
                used.messages += u64::from(times);
            }
        }
        let (bundle, transmission) = (flow.bundle, flow.message.transmission);
        let service = &mut self.services[bundle as usize];
        service.settle(self.now, self.rates.rate(bundle));
        let work = u128::from(transmission) * u128::from(self.rates.full(bundle));
        let end = service.served + work;
        let place = service.flows.partition_point(|&(other, _)| other <= end);
        service.flows.insert(place, (end, number));
        self.rates.change(bundle, 1);
    }

    /// Takes back the bytes that flows have left, as none will flow any more.
    fn uncount(&mut self) {
        let Self { rates, services, flows, links, now, .. } = self;
        for (bundle, service) in (0..).zip(services) {
            if service.flows.is_empty() {
                continue;
            }
            service.settle(*now, rates.rate(bundle));
            for &(end, number) in &service.flows {
                let InFlight { bytes, transmission, .. } = flows[number as usize].message;
                let work = u128::from(transmission) * u128::from(rates.full(bundle));
                let share = end.saturating_sub(service.served) as f64 / work.max(1) as f64;
                let left = ((bytes as f64 * share).ceil() as u64).min(bytes);
                for (link, times) in rates.over(bundle) {
                    if let Some(used) = links.get_mut(link as usize) {
                        used.bytes -= u128::from(times) * u128::from(left);
                    }
                }
            }
        }
    }

    /// Ends the flows of a bundle that end now.
    fn end(&mut self, bundle: u32) {
        let rate = self.rates.rate(bundle);
        let service = &mut self.services[bundle as usize];
        service.settle(self.now, rate);
        let mut ended = 0;
        while !service.flows.is_empty() && service.left(rate) == 0 {
            self.done.extend(service.flows.pop_front().map(|(_, flow)| flow));
            ended += 1;
        }
        self.rates.change(bundle, -ended);
    }

    /// Brings the rates up to date, and the times at which bundles have their next end.
    fn share(&mut self) {
        let mut changed = std::mem::take(&mut self.changed);
        self.rates.update(&mut changed);
        for &(bundle, before) in &changed {
            let service = &mut self.services[bundle as usize];
            service.settle(self.now, before);
            let left = service.left(self.rates.rate(bundle));
            self.ends.set(bundle, self.now.saturating_add(left));
        }
        self.changed = changed;
    }

    /// Delivers the message of a flow that has ended, if it is the last of its flows.
    fn deliver(&mut self, number: u32) -> Option<(Picoseconds, InFlight)> {
        let flow = &mut self.flows[number as usize];
        let InFlight { from, to, step, bytes, transmission, .. } = flow.message;
        let longer = (self.now - flow.start).saturating_sub(transmission);
        if let Some((hop, kept)) = self.rates.limit(flow.bundle) {
            if let Some(used) = self.links.get_mut(kept as usize) {
                let waited = longer.saturating_mul(self.fold.times(kept).into());
                used.waited = used.waited.saturating_add(waited);
            }
            let (mut place, mut shared) = (0, 0);
            self.fold.along(from, to, &flow.route, |_, _, number| {
                shared = if place == hop { number } else { shared };
                place += 1;
            });
            let waited = Some((shared, from, to));
            let what = ChainLink { from, to, step, at: self.now, waited };
            flow.message.cause = self.chain.add(what, flow.message.cause);
        }
        if self.records {
            let (start, end, links) = (flow.start, self.now, self.links.len());
            let over = self.rates.over(flow.bundle).filter(|&(link, _)| (link as usize) < links);
            self.intervals.extend(over.map(|(link, _)| {
                let link = LinkId(link.into());
                Interval { link, start, end, from, to, step, bytes }
            }));
        }
        let (bundle, whole, message) = (flow.bundle, flow.whole, flow.message);
        self.drop_bundle(bundle);
        self.idle.push(number);
        if whole != ALONE {
            let flows = &mut self.wholes[whole as usize].flows;
            *flows -= 1;
            if *flows > 0 {
                self.chain.drop(message.cause);
                return None;
            }
            self.idle_wholes.push(whole);
            self.let_next_flow(from);
        }
        Some((self.now, message))
    }

    /// Begins the flows that wait for the message of a rank that has ended.
    fn let_next_flow(&mut self, from: Rank) {
        let Some(line) = self.lines.as_mut().and_then(|lines| lines.get_mut(&from)) else { return };
        line.pop_front();
        let Some(&next) = line.front() else { return };
        for number in std::mem::take(&mut self.wholes[next as usize].held) {
            self.begin(number);
        }
    }

    /// Numbers a message of several flows, or in a line.
    fn whole(&mut self, from: Rank, flows: u32) -> u32 {
        if flows == 1 && self.lines.is_none() {
            return ALONE;
        }
        let whole = Whole { flows, held: Vec::new() };
        let number = match self.idle_wholes.pop() {
            Some(number) => {
                self.wholes[number as usize] = whole;
                number
            }
            None => {
                self.wholes.push(whole);
                self.wholes.len() as u32 - 1
            }
        };
        if let Some(lines) = &mut self.lines {
            lines.entry(from).or_default().push_back(number);
        }
        number
    }

    /// A message, or a part of one, that flows over a route.
    fn flow(&mut self, message: InFlight, route: &Route, whole: u32) {
        let bundle = self.bundle(&message, route);
        let mut arrives = message.handed;
        self.fold.channels.along_kinds(message.from, route, |kind, links| {
            arrives = arrives.saturating_add(self.hops[kind].saturating_mul(links));
        });
        let number = self.idle.pop().unwrap_or_else(|| {
            let (route, start, begun) = (Route::default(), 0, 0);
            self.flows.push(Flow { message, route, bundle, start, begun, whole });
            self.flows.len() as u32 - 1
        });
        let flow = &mut self.flows[number as usize];
        (flow.message, flow.bundle, flow.whole) = (message, bundle, whole);
        flow.route.clone_from(route);
        if let Some((time, other)) = self.next_arrival
            && arrives < time
        {
            // Put the event back.
            self.arrivals.add(time, other);
            self.next_arrival = None;
        }
        self.arrivals.add(arrives.max(self.now), number);
    }
}

impl Network for Fluid<'_> {
    fn post(&mut self, message: InFlight, route: &Route, free: bool) {
        if !free || self.shortest.is_none() {
            let whole = self.whole(message.from, 1);
            return self.flow(message, route, whole);
        }
        let mut shortest = self.shortest.take().expect("bug: no routes");
        let routes = shortest.between(message.from, message.to);
        // Each part has a byte.
        let parts = (routes.len() as u64).min(message.bytes).max(1);
        let whole = self.whole(message.from, parts as u32);
        for (part, route) in (0..parts).zip(routes) {
            let bytes = message.bytes / parts + u64::from(part < message.bytes % parts);
            let (_, per_byte) = self.fold.channels.message_pace(message.from, message.to, route);
            let transmission = picoseconds(bytes as f64 * per_byte);
            let cause = if part == 0 { message.cause } else { self.chain.keep(message.cause) };
            self.flow(InFlight { bytes, transmission, cause, ..message }, route, whole);
        }
        self.shortest = Some(shortest);
    }

    fn next(&mut self, stop: &dyn Fn() -> bool) -> Option<(Picoseconds, InFlight)> {
        loop {
            if let Some(number) = self.done.pop() {
                match self.deliver(number) {
                    None => continue,
                    delivered => return delivered,
                }
            }
            if stop() {
                self.uncount();
                return None;
            }
            if self.next_arrival.is_none() {
                self.next_arrival = self.arrivals.next();
            }
            if let Some((time, number)) = self.next_arrival
                && time <= self.now
            {
                self.next_arrival = None;
                self.arrive(number);
                continue;
            }
            if self.rates.is_stale() {
                self.share();
            }
            let arrival = self.next_arrival.map(|(time, _)| time);
            let end = self.ends.first();
            self.now = match (arrival, end) {
                (Some(arrival), Some(end)) => arrival.min(end),
                (one, other) => one.or(other)?,
            };
            while self.ends.first() == Some(self.now) {
                let bundle = self.ends.pop();
                self.end(bundle);
            }
            // In the order in which they began.
            self.done.sort_unstable_by_key(|&flow| Reverse(self.flows[flow as usize].begun));
        }
    }

    fn now(&self) -> Picoseconds {
        self.now
    }

    fn waiting(&self) -> usize {
        self.flows.len() - self.idle.len()
    }

    fn circle(&self) -> Vec<Held> {
        Vec::new()
    }

    fn links(&self) -> &[LinkUse] {
        &self.links
    }

    fn chain(&mut self) -> &mut Chain {
        &mut self.chain
    }

    fn channel(&self, number: u64) -> String {
        self.fold.channels.shared_name(number)
    }

    fn moved(&self, channel: u64, moves: &dyn Fn(Rank) -> Rank) -> u64 {
        self.fold.moved(channel, moves)
    }

    fn take_intervals(&mut self) -> Vec<Interval> {
        std::mem::take(&mut self.intervals)
    }
}
