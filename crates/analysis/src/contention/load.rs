//! Offered and accepted load of traffic that is sent at a rate.

use super::clock::{Clock, Picoseconds};
use super::network::InFlight;

/// The least part of the offered load that a network below saturation accepts.
const ACCEPTED: f64 = 0.95;
/// Where queues grow, messages of the second half take this times as long as the first ones.
const LONGER: f64 = 2.0;
/// The part of the time whose messages meet an empty network.
const FIRST: u64 = 16;

/// The load of traffic at a rate, in the second half of the time in which it sends, when buffers are
/// as full as they will be.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Load {
    /// Flits that a node sends in a flit time, on average.
    pub offered: f64,
    /// Flits that are delivered to a node in a flit time, on average.
    pub accepted: f64,
    /// Whether the network accepts clearly less than is offered, so that queues and latencies grow as
    /// long as it is sent: less than 95 % of the offered load is accepted, and messages of the second
    /// half take at least twice as long as those of the first sixteenth, which meet an empty
    /// network. A run that is short against the latency fulfils the first condition alone.
    pub saturated: bool,
}

/// Counts a load. Flits count when their message is sent, and when all of it is delivered.
#[derive(Clone, Copy)]
pub(crate) struct LoadCount {
    cycles: u64,
    cycle: Picoseconds,
    flit_bytes: u64,
    /// When the first flit time begins.
    start: Picoseconds,
    offered: u64,
    accepted: u64,
    /// Of the messages sent in the first sixteenth, and in the second half, their number and the sum of
    /// their latencies.
    sums: [(u64, u128); 2],
}

impl LoadCount {
    pub(crate) fn new(cycles: u64, clock: &Clock<'_>) -> Self {
        Self {
            cycles,
            cycle: clock.cycle,
            flit_bytes: clock.flit_bytes,
            start: Picoseconds::MAX,
            offered: 0,
            accepted: 0,
            sums: [(0, 0); 2],
        }
    }

    fn flits(&self, message: &InFlight) -> u64 {
        message.bytes.div_ceil(self.flit_bytes)
    }

    /// The time from the start.
    fn at(&self, cycle: u64) -> Picoseconds {
        cycle.saturating_mul(self.cycle)
    }

    /// A message is sent in this flit time.
    pub(crate) fn sent(&mut self, message: &InFlight, cycle: u64) {
        let start = message.handed.saturating_sub(cycle.saturating_mul(self.cycle));
        self.start = self.start.min(start);
        if cycle >= self.cycles / 2 {
            self.offered += self.flits(message);
        }
    }

    pub(crate) fn delivered(&mut self, message: &InFlight, now: Picoseconds) {
        let half = self.at(self.cycles / 2);
        let (sent, arrived) = (message.handed - self.start, now - self.start);
        if arrived >= half && arrived < self.at(self.cycles) {
            self.accepted += self.flits(message);
        }
        let is_first = sent <= self.at(self.cycles / FIRST);
        if is_first || sent >= half {
            let (count, sum) = &mut self.sums[usize::from(!is_first)];
            (*count, *sum) = (*count + 1, *sum + u128::from(now - message.handed));
        }
    }

    pub(crate) fn summary(&self, nodes: u32) -> Load {
        let each = 1.0 / (f64::from(nodes) * (self.cycles - self.cycles / 2) as f64);
        let [offered, accepted] = [self.offered, self.accepted].map(|flits| flits as f64 * each);
        // The mean of no messages is no number, and no comparison with it holds.
        let [first, second] = self.sums.map(|(count, sum)| sum as f64 / count as f64);
        let saturated = accepted < ACCEPTED * offered && second >= LONGER * first;
        Load { offered, accepted, saturated }
    }
}
