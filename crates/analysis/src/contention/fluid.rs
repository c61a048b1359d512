//! The fluid model: messages as flows that share links max-min fairly, as `SimGrid` does
//! (its model `CM02` with all its factors at 1).
//!
//! A message first crosses its route, hop by hop. Then it flows over all of its links at once, at
//! its max-min fair rate: a higher rate would lower that of a flow with an equal or lower rate.
//! Without contention it takes exactly startup + bytes / bandwidth + hops.
//!
//! # What it leaves out
//! Buffers, blocking and ports: only links limit a flow. Clusters have no numbered links, so
//! messages of one node do not slow each other. They do in the platform written for `SimGrid`,
//! where a node has one link out and one in.

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
    links: Vec<u32>,
    start: Picoseconds,
    /// The remaining bytes, as time at full speed, and the rate.
    left: f64,
    rate: f64,
    /// The link that limits it.
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
    machine: &'a Machine,
    channels: Channels<'a>,
    hops: Vec<Picoseconds>,
    arrivals: Calendar<u32>,
    next_arrival: Option<(Picoseconds, u32)>,
    flows: Vec<Flow>,
    idle: Vec<u32>,
    flowing: Vec<u32>,
    done: Vec<u32>,
    now: Picoseconds,
    stale: bool,
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
        let dimensions = machine.topology.link_classes().len();
        Self {
            machine,
            channels,
            hops: (0..dimensions).map(|u| clock.hop(u)).collect(),
            arrivals: Calendar::new(clock.cycle.max(1), 1),
            next_arrival: None,
            flows: Vec::new(),
            idle: Vec::new(),
            flowing: Vec::new(),
            done: Vec::new(),
            now: 0,
            stale: false,
            capacities: vec![Capacity::default(); links],
            links: vec![LinkUse::default(); links],
            chain: Chain::default(),
            records,
            intervals: Vec::new(),
        }
    }

    /// Sets the max-min fair rates: repeatedly, the links with the least capacity per open flow fix
    /// the rates of their open flows.
    fn share(&mut self) {
        let mut touched = Vec::new();
        for &flow in &self.flowing {
            let flow = &mut self.flows[flow as usize];
            flow.rate = 0.0;
            for &link in &flow.links {
                let capacity = &mut self.capacities[link as usize];
                if capacity.open == 0 {
                    capacity.left = 1.0;
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
            let least = touched.iter().map(|&link| fair(link)).fold(1.0, f64::min);
            let tight: Vec<u32> = touched
                .iter()
                .copied()
                .filter(|&link| fair(link) <= least * (1.0 + EQUAL))
                .collect();
            let mut settled = false;
            open.retain(|&number| {
                let flow = &mut self.flows[number as usize];
                let limit =
                    flow.links.iter().copied().find(|link| tight.binary_search(link).is_ok());
                if limit.is_none() && !flow.links.is_empty() {
                    return true;
                }
                settled = true;
                flow.rate = least;
                flow.limit = limit.filter(|_| least < 1.0);
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
        let ended = |flow: &u32| flows[*flow as usize].left < 0.5;
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
            let used = &mut self.links[link as usize];
            used.bytes += u128::from(flow.message.bytes);
            used.messages += 1;
        }
        self.flowing.push(number);
        self.stale = true;
    }

    /// Delivers the message of a flow that has ended.
    fn deliver(&mut self, number: u32) -> (Picoseconds, InFlight) {
        let flow = &mut self.flows[number as usize];
        let longer = (self.now - flow.start).saturating_sub(flow.message.transmission);
        if let Some(link) = flow.limit {
            let used = &mut self.links[link as usize];
            used.waited = used.waited.saturating_add(longer);
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
            self.intervals.extend(flow.links.iter().map(|&link| Interval {
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
            let (links, left, rate, start, limit) = (Vec::new(), 0.0, 0.0, 0, None);
            self.flows.push(Flow { message, links, start, left, rate, limit });
            self.flows.len() as u32 - 1
        });
        let flow = &mut self.flows[number as usize];
        flow.message = message;
        flow.left = message.transmission as f64;
        flow.limit = None;
        flow.links.clear();
        let (links, ports) = (&mut flow.links, 2 * self.channels.links() as u64);
        self.channels.along(message.from, message.to, route, |pool, _| {
            if pool < ports {
                links.push((pool / 2) as u32);
            }
        });
        let way = |s: &topocoll_topology::Segment| {
            s.hops.unsigned_abs().saturating_mul(self.hops[s.dimension as usize])
        };
        let arrives = (route.segments().iter().map(way)).fold(message.handed, u64::saturating_add);
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
        self.machine.topology.link_name(LinkId(number))
    }

    fn take_intervals(&mut self) -> Vec<Interval> {
        std::mem::take(&mut self.intervals)
    }
}
