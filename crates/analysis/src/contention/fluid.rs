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
//! # What it leaves out
//! Buffers, blocking and ports: only links and injection limit a flow. Clusters have no numbered
//! links, so without an injection limit messages of one node do not slow each other. They do in the
//! platform written for `SimGrid`, where a node has one link out and one in.

use topocoll_topology::{LinkId, Machine, Route};

use super::calendar::Calendar;
use super::chain::{Chain, ChainLink};
use super::channels::Channels;
use super::clock::{Clock, Picoseconds};
use super::network::{Held, InFlight, Interval, LinkUse, Network};
use super::settings::{Dateline, Settings};

/// Rates with a smaller relative difference are equal.
const EQUAL: f64 = 1e-9;

struct Flow {
    message: InFlight,
    /// The shared channels that it takes.
    links: Vec<u32>,
    start: Picoseconds,
    /// The remaining bytes, as time on the slowest link of the machine, and the rate.
    left: f64,
    rate: f64,
    /// The rate of its own slowest link.
    full: f64,
    /// The shared channel that limits it.
    limit: Option<u32>,
}

#[derive(Clone, Copy, Default)]
struct Capacity {
    /// Flows without a rate yet.
    open: u32,
    /// The capacity not yet assigned.
    left: f64,
}

pub(crate) struct Fluid<'a> {
    channels: Channels<'a>,
    /// Of a header over a link, by kind.
    hops: Vec<Picoseconds>,
    arrivals: Calendar<u32>,
    next_arrival: Option<(Picoseconds, u32)>,
    flows: Vec<Flow>,
    idle: Vec<u32>,
    flowing: Vec<u32>,
    done: Vec<u32>,
    now: Picoseconds,
    stale: bool,
    /// By shared channel.
    capacities: Vec<Capacity>,
    links: Vec<LinkUse>,
    chain: Chain,
    records: bool,
    intervals: Vec<Interval>,
}

impl<'a> Fluid<'a> {
    pub(crate) fn new(
        machine: &'a Machine,
        settings: &Settings,
        clock: &Clock<'_>,
        records: bool,
    ) -> Self {
        let channels = Channels::new(machine, settings, Dateline::Entry);
        let links = channels.links();
        Self {
            hops: clock.hops.clone(),
            arrivals: Calendar::new(clock.cycle.max(1), 1),
            next_arrival: None,
            flows: Vec::new(),
            idle: Vec::new(),
            flowing: Vec::new(),
            done: Vec::new(),
            now: 0,
            stale: false,
            capacities: vec![Capacity::default(); channels.shared() as usize],
            links: vec![LinkUse::default(); links],
            chain: Chain::default(),
            records,
            intervals: Vec::new(),
            channels,
        }
    }

    /// The rate of a channel of this pace, in units of the slowest link of the machine.
    fn rate(channels: &Channels<'_>, pace: u64) -> f64 {
        channels.slowest() as f64 / pace as f64
    }

    /// Sets the max-min fair rates: repeatedly, the links with the least capacity per open flow fix
    /// the rates of their open flows. No flow is faster than its own slowest link.
    fn share(&mut self) {
        let mut touched = Vec::new();
        for &flow in &self.flowing {
            let flow = &mut self.flows[flow as usize];
            flow.rate = 0.0;
            for &link in &flow.links {
                let capacity = &mut self.capacities[link as usize];
                if capacity.open == 0 {
                    capacity.left = Self::rate(&self.channels, self.channels.pace(link));
                    touched.push(link);
                }
                capacity.open += 1;
            }
        }
        touched.sort_unstable();
        let mut open: Vec<u32> = self.flowing.clone();
        while !open.is_empty() {
            touched.retain(|&link| self.capacities[link as usize].open > 0);
            let fair = |link: u32| {
                let capacity = self.capacities[link as usize];
                capacity.left / f64::from(capacity.open)
            };
            let full = |&flow: &u32| self.flows[flow as usize].full;
            let most = open.iter().map(full).fold(f64::INFINITY, f64::min);
            let least = touched.iter().map(|&link| fair(link)).fold(most, f64::min);
            let within = least * (1.0 + EQUAL);
            let tight: Vec<u32> =
                touched.iter().copied().filter(|&link| fair(link) <= within).collect();
            let mut settled = false;
            open.retain(|&number| {
                let flow = &mut self.flows[number as usize];
                let limit =
                    flow.links.iter().copied().find(|link| tight.binary_search(link).is_ok());
                if limit.is_none() && flow.full > within {
                    return true;
                }
                settled = true;
                flow.rate = least;
                flow.limit = limit.filter(|_| least < flow.full);
                for &link in &flow.links {
                    let capacity = &mut self.capacities[link as usize];
                    capacity.open -= 1;
                    capacity.left = (capacity.left - least).max(0.0);
                }
                false
            });
            assert!(settled, "bug: no link limits a flow");
        }
        self.stale = false;
    }

    /// Advances all flows to `to`.
    fn flow_until(&mut self, to: Picoseconds) {
        let passed = (to - self.now) as f64;
        self.now = to;
        if passed > 0.0 {
            for &flow in &self.flowing {
                let flow = &mut self.flows[flow as usize];
                flow.left -= flow.rate * passed;
            }
        }
    }

    /// Moves the flows that have ended to `done`, in order of their beginning.
    fn end(&mut self) {
        // A remainder of less than half a picosecond is a rounding error.
        let flows = &self.flows;
        let ended = |&flow: &u32| {
            let Flow { left, full, .. } = flows[flow as usize];
            left < 0.5 * full
        };
        self.done.extend(self.flowing.iter().copied().filter(ended));
        self.done.reverse();
        let before = self.flowing.len();
        self.flowing.retain(|flow| !ended(flow));
        self.stale |= self.flowing.len() < before;
    }

    fn begin(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        flow.start = self.now;
        for &link in &flow.links {
            if let Some(used) = self.links.get_mut(link as usize) {
                used.bytes += u128::from(flow.message.bytes);
                used.messages += 1;
            }
        }
        self.flowing.push(number);
        self.stale = true;
    }

    /// Delivers the message of a flow that has ended.
    fn deliver(&mut self, number: u32) -> (Picoseconds, InFlight) {
        let flow = &mut self.flows[number as usize];
        let longer = (self.now - flow.start).saturating_sub(flow.message.transmission);
        if let Some(link) = flow.limit {
            if let Some(used) = self.links.get_mut(link as usize) {
                used.waited = used.waited.saturating_add(longer);
            }
            let message = flow.message;
            let what = ChainLink {
                from: message.from,
                to: message.to,
                step: message.step,
                at: self.now,
                waited: Some((link.into(), message.from, message.to)),
            };
            flow.message.cause = self.chain.add(what, message.cause);
        }
        if self.records {
            let InFlight { from, to, step, bytes, .. } = flow.message;
            let (start, end) = (flow.start, self.now);
            let links = flow.links.iter().filter(|&&link| (link as usize) < self.links.len());
            self.intervals.extend(links.map(|&link| Interval {
                link: LinkId(link.into()),
                start,
                end,
                from,
                to,
                step,
                bytes,
            }));
        }
        self.idle.push(number);
        (self.now, self.flows[number as usize].message)
    }
}

impl Network for Fluid<'_> {
    fn post(&mut self, message: InFlight, route: &Route) {
        let number = self.idle.pop().unwrap_or_else(|| {
            let (links, start, limit) = (Vec::new(), 0, None);
            let (left, rate, full) = (0.0, 0.0, 0.0);
            self.flows.push(Flow { message, links, start, left, rate, full, limit });
            self.flows.len() as u32 - 1
        });
        let (pace, _) = self.channels.message_pace(message.from, message.to, route);
        let flow = &mut self.flows[number as usize];
        flow.message = message;
        flow.full = Self::rate(&self.channels, pace);
        flow.left = message.transmission as f64 * flow.full;
        flow.limit = None;
        flow.links.clear();
        let (mut arrives, ports) = (message.handed, 2 * self.channels.links() as u64);
        self.channels.along(message.from, message.to, route, |pool, kind| {
            flow.links.extend(self.channels.shares(pool, message.from, message.to));
            if pool < ports {
                arrives = arrives.saturating_add(self.hops[kind as usize]);
            }
        });
        if let Some((time, other)) = self.next_arrival
            && arrives < time
        {
            // Put the event back.
            self.arrivals.add(time, other);
            self.next_arrival = None;
        }
        self.arrivals.add(arrives.max(self.now), number);
    }

    fn next(&mut self, stop: &dyn Fn() -> bool) -> Option<(Picoseconds, InFlight)> {
        loop {
            if let Some(number) = self.done.pop() {
                return Some(self.deliver(number));
            }
            if stop() {
                return None;
            }
            if self.next_arrival.is_none() {
                self.next_arrival = self.arrivals.next();
            }
            if let Some((time, number)) = self.next_arrival
                && time <= self.now
            {
                self.next_arrival = None;
                self.begin(number);
                continue;
            }
            if self.stale {
                self.share();
            }
            let ends = (self.flowing.iter())
                .map(|&flow| {
                    let flow = &self.flows[flow as usize];
                    self.now.saturating_add((flow.left / flow.rate).max(0.0).round() as u64)
                })
                .min();
            match (self.next_arrival, ends) {
                (Some((time, _)), end) if end.is_none_or(|end| time <= end) => {
                    self.flow_until(time);
                }
                (_, Some(end)) => {
                    self.flow_until(end);
                    self.end();
                }
                _ => return None,
            }
        }
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
        self.channels.shared_name(number)
    }

    fn take_intervals(&mut self) -> Vec<Interval> {
        std::mem::take(&mut self.intervals)
    }
}
