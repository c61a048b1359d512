//! Time in whole picoseconds, so that results depend neither on the order of additions nor on the
//! number of threads.

use topocoll_topology::{Machine, Rank, Route};

use crate::AnalysisError;
use crate::contention::Settings;
use crate::contention::kinds::Kinds;

/// A point in time or a duration, in picoseconds.
pub type Picoseconds = u64;

/// The latest time of a run: 53 days, so that any two times can be added.
const LATEST: u128 = 1 << 62;

/// Checks that a time is within the limit of a run.
///
/// # Errors
/// A later one.
pub(crate) fn within(time: u128) -> Result<Picoseconds, AnalysisError> {
    match Picoseconds::try_from(time) {
        Ok(fine) if time <= LATEST => Ok(fine),
        _ => Err(AnalysisError::Time {
            what: format!(
                "{:.3e} s is reached, but a run lasts at most {:.3e} s",
                time as f64 * 1e-12,
                LATEST as f64 * 1e-12
            ),
        }),
    }
}

/// Seconds of a time.
#[must_use]
pub fn in_seconds(time: Picoseconds) -> f64 {
    time as f64 * 1e-12
}

/// A duration in whole picoseconds, at most the largest number.
pub(crate) fn picoseconds(seconds: f64) -> Picoseconds {
    (seconds * 1e12).round() as u64
}

/// The times of a message without contention.
pub(crate) struct Clock<'a> {
    machine: &'a Machine,
    /// Bytes of the blocks that are copied.
    block_bytes: u64,
    pub(crate) kinds: Kinds<'a>,
    /// Of a header over a link, by kind.
    pub(crate) hops: Vec<Picoseconds>,
    /// The time of one flit on the fastest links.
    pub(crate) cycle: Picoseconds,
    /// Bytes of a flit.
    pub(crate) flit_bytes: u64,
    /// The time of a sender for a message and its first packet.
    overhead: Picoseconds,
}

impl<'a> Clock<'a> {
    pub(crate) fn new(machine: &'a Machine, settings: &Settings, block_bytes: u64) -> Self {
        let kinds = Kinds::new(machine);
        let cycle = settings.flit_bytes as f64 * kinds.fastest();
        let hop = settings.hop_cycles.map(|cycles| f64::from(cycles) * cycle);
        let hops = kinds.values().iter().map(|values| picoseconds(hop.unwrap_or(values.latency)));
        let overhead = machine.endpoint.message_overhead + machine.endpoint.packet_overhead;
        let [cycle, overhead] = [cycle, overhead].map(picoseconds);
        let flit_bytes = settings.flit_bytes;
        Self { machine, block_bytes, hops: hops.collect(), kinds, cycle, flit_bytes, overhead }
    }

    /// The startup of a message: that of the slowest link class of its route, and its rendezvous.
    pub(crate) fn startup(
        &self,
        (from, to): (Rank, Rank),
        route: &Route,
        bytes: u64,
    ) -> Picoseconds {
        let rendezvous = self.machine.timing.rendezvous.of(bytes.into());
        picoseconds(self.kinds.startup(from, to, route) + rendezvous)
    }

    /// The transmission of a message, at the rate of the slowest channel that it takes.
    pub(crate) fn transmission(&self, from: Rank, to: Rank, route: &Route, bytes: u64) -> u64 {
        picoseconds(bytes as f64 * self.kinds.per_byte(from, to, route))
    }

    pub(crate) fn propagation(&self, from: Rank, route: &Route) -> Picoseconds {
        let mut time: Picoseconds = 0;
        self.kinds.along(from, route, |kind, links| {
            time = time.saturating_add(self.hops[kind].saturating_mul(links));
        });
        time
    }

    /// The time of local copies of `bytes`.
    pub(crate) fn rearrangement(&self, bytes: u128) -> Picoseconds {
        picoseconds(self.machine.timing.copies(bytes, self.block_bytes)[0])
    }

    /// When a rank that posts messages at `begin` is done with the overheads of one after `before` others.
    pub(crate) fn ready(&self, begin: Picoseconds, before: usize) -> Picoseconds {
        begin.saturating_add(self.overhead.saturating_mul(before as u64 + 1))
    }

    /// The most messages that a rank has outstanding.
    pub(crate) fn window(&self) -> usize {
        self.machine.endpoint.window.map_or(usize::MAX, |window| window as usize)
    }

    pub(crate) fn barrier(&self) -> Picoseconds {
        picoseconds(self.machine.timing.barrier.seconds(self.machine.ranks()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_lasts_53_days() {
        assert_eq!(within(LATEST), Ok(1 << 62));
        let refused = within(LATEST + 1).unwrap_err().to_string();
        assert!(refused.contains("4.612e6 s is reached"), "{refused}");
        assert!(within(u128::MAX).is_err());
    }
}
