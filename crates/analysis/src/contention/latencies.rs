//! Latencies of messages.

use hashbrown::HashMap;

use super::clock::Picoseconds;

/// Recent latencies, which are counted together: their places in memory are read at once.
const RECENT: usize = 1024;

/// Every latency with its number of occurrences: whole picoseconds have few different values.
#[derive(Clone, Default)]
pub(crate) struct Latencies {
    times: HashMap<Picoseconds, u64>,
    /// Latencies that are not yet counted.
    recent: Vec<(Picoseconds, u64)>,
}

/// Latencies of all messages, from entering the network to the last byte delivered.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct LatencySummary {
    /// The mean, in picoseconds.
    pub average: f64,
    /// The longest.
    pub max: Picoseconds,
    /// The median.
    pub p50: Picoseconds,
    /// The 99th percentile.
    pub p99: Picoseconds,
}

impl Latencies {
    pub(crate) fn add_many(&mut self, latency: Picoseconds, count: u64) {
        self.recent.push((latency, count));
        if self.recent.len() == RECENT {
            for (latency, count) in self.recent.drain(..) {
                *self.times.entry(latency).or_default() += count;
            }
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (&time, &count) in &other.times {
            *self.times.entry(time).or_default() += count;
        }
        other.recent.iter().for_each(|&(latency, count)| self.add_many(latency, count));
    }

    pub(crate) fn summary(&self) -> Option<LatencySummary> {
        let counted = self.times.iter().map(|(&time, &count)| (time, count));
        let mut sorted: Vec<_> = counted.chain(self.recent.iter().copied()).collect();
        sorted.sort_unstable();
        let all: u64 = sorted.iter().map(|&(_, count)| count).sum();
        let total: u128 =
            sorted.iter().map(|&(time, count)| u128::from(time) * u128::from(count)).sum();
        let rank = |percent: u64| {
            let mut left = (u128::from(all) * u128::from(percent)).div_ceil(100) as u64;
            let at = sorted.iter().find(|&&(_, count)| {
                let here = left <= count;
                left = left.saturating_sub(count);
                here
            });
            at.map_or(0, |&(time, _)| time)
        };
        let max = sorted.last()?.0;
        Some(LatencySummary {
            average: total as f64 / all as f64,
            max,
            p50: rank(50),
            p99: rank(99),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_sorted_list() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.summary(), None);
        (1..=200).for_each(|time| latencies.add_many(time, 1));
        let found = latencies.summary().unwrap();
        assert_eq!((found.average, found.max, found.p50, found.p99), (100.5, 200, 100, 198));
    }
}
