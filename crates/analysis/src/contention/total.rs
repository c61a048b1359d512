use std::cmp::Reverse;

use topocoll_topology::LinkId;

use super::clock::{Clock, Picoseconds};
use super::fold::Fold;
use super::kinds::Kinds;
use super::latencies::Latencies;
use super::network::{Interval, LinkUse, Network};
use super::ranks::{Ranks, Simulated};
use super::run::{Outcome, StepTime};
use super::simulation::Simulation;
use super::timeline::{RankStep, Timeline};

/// The sum over the pieces of a run.
pub(super) struct Total {
    virtual_channels: u32,
    pub(super) time: Picoseconds,
    pub(super) out: Outcome,
    latencies: Latencies,
    longest: Picoseconds,
    links: Vec<LinkUse>,
    pub(super) closed: u32,
    cycle: Picoseconds,
    pub(super) link_seconds: f64,
    pub(super) intervals: Vec<Interval>,
    timeline: Vec<RankStep>,
}

impl Total {
    pub(super) fn new(clock: &Clock<'_>, virtual_channels: u32) -> Self {
        Self {
            virtual_channels,
            time: 0,
            out: Outcome::default(),
            latencies: Latencies::default(),
            longest: 0,
            links: Vec::new(),
            closed: 0,
            cycle: clock.cycle,
            link_seconds: 0.0,
            intervals: Vec::new(),
            timeline: Vec::new(),
        }
    }

    /// Adds a piece that begins at `start`; its times count from there.
    pub(super) fn add(&mut self, part: Outcome, start: Picoseconds) {
        self.time = start + part.end;
        self.timeline.extend(part.timeline);
        let all = &mut self.out;
        all.messages += part.messages;
        all.first_handed = all.first_handed.or(part.first_handed.map(|first| start + first));
        self.latencies.merge(&part.latencies);
        all.steps.extend(
            part.steps
                .iter()
                .map(|time| StepTime { start: start + time.start, end: start + time.end }),
        );
        all.partial |= part.partial;
        all.load = all.load.or(part.load);
        all.circle.extend(part.circle);
        if part.end > self.longest {
            self.longest = part.end;
            all.chain = part.chain;
            for link in &mut all.chain {
                link.link.at += start;
            }
            all.chain_length = part.chain_length;
        }
    }

    pub(super) fn add_closed(&mut self, alone: Picoseconds) {
        self.out.steps.push(StepTime { start: self.time, end: self.time + alone });
        self.time += alone;
        self.closed += 1;
    }

    /// Adds the messages of a step without contention that begins at `start`.
    pub(super) fn add_alone(&mut self, alone: &Outcome, start: Picoseconds) {
        self.latencies.merge(&alone.latencies);
        self.out.messages += alone.messages;
        let first = alone.first_handed.map(|first| start + first);
        self.out.first_handed = self.out.first_handed.or(first);
    }

    pub(super) fn use_links(&mut self, network: &mut dyn Network) {
        self.links = network.links().to_vec();
        self.intervals = network.take_intervals();
    }

    pub(super) fn merge_links(&mut self, links: &[LinkUse]) {
        self.links.resize(links.len(), LinkUse::default());
        for (all, link) in self.links.iter_mut().zip(links) {
            all.bytes += link.bytes;
            all.messages += link.messages;
            all.waited = all.waited.saturating_add(link.waited);
        }
    }

    pub(super) fn close(self, kinds: &Kinds<'_>, ranks: &Simulated, fold: &Fold<'_>) -> Simulation {
        let all_simulated = self.closed == 0;
        let links = || (0..).zip(&self.links);
        let mut bytes = vec![0u128; kinds.values().len()];
        for (kept, used) in links() {
            let kind = kinds.of(LinkId(fold.representative(kept)));
            bytes[kind] += used.bytes * u128::from(fold.equivalent(kept));
        }
        let values = kinds.values().iter().zip(bytes);
        let busy: f64 = values.map(|(values, bytes)| bytes as f64 * values.per_byte).sum();
        let waited = links().map(|(kept, used)| (used.waited, Reverse(fold.representative(kept))));
        let busiest = waited.max().map(|(waited, Reverse(link))| {
            let bytes = self.links.iter().map(|used| used.bytes).max();
            (bytes.unwrap_or(0), LinkId(link), waited)
        });
        let able = kinds.machine.topology.links() as f64 * self.time as f64 * 1e-12;
        Simulation {
            time: self.time,
            ranks: ranks.method(),
            classes: ranks.count(),
            virtual_channels: self.virtual_channels,
            messages: self.out.messages,
            latencies: self.latencies.summary(),
            load: self.out.load,
            network_time: self.out.first_handed.map_or(0, |first| self.time.saturating_sub(first)),
            cycle: self.cycle,
            steps: self.out.steps,
            link_utilisation: (able > 0.0).then(|| ((busy + self.link_seconds) / able).min(1.0)),
            busiest: busiest.filter(|_| all_simulated),
            links: match ranks.method() {
                Ranks::Every if all_simulated => self.links,
                Ranks::Every | Ranks::Classes => Vec::new(),
            },
            chain: self.out.chain,
            chain_length: self.out.chain_length,
            closed_steps: self.closed,
            deadlock: self.out.circle,
            partial: self.out.partial,
            intervals: self.intervals,
            timeline: (!self.timeline.is_empty()).then(|| Timeline::new(ranks, self.timeline)),
        }
    }
}
