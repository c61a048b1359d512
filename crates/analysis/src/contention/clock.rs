//! Time in whole picoseconds, so that results depend neither on the order of additions nor on the
//! number of threads.

use topocoll_topology::{Machine, PerClass, Rank, Route, Topology};

use crate::AnalysisError;
use crate::contention::Settings;

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
    /// Seconds of a header over a link, if not the machine's.
    hop: Option<f64>,
    /// Seconds of one flit on the first link class.
    pub(crate) cycle: Picoseconds,
}

/// The largest value among the link classes of a message's route, or that of its direct link.
pub(super) fn slowest(
    values: &PerClass,
    topology: &dyn Topology,
    from: Rank,
    to: Rank,
    route: &Route,
) -> f64 {
    let on_its_way = route.segments().iter().map(|segment| values.of(segment.dimension as usize));
    on_its_way.reduce(f64::max).unwrap_or_else(|| values.of(topology.link_class(from, to)))
}

impl<'a> Clock<'a> {
    pub(crate) fn new(machine: &'a Machine, settings: &Settings) -> Self {
        let cycle = settings.flit_bytes as f64 * machine.timing.per_byte.of(0);
        let hop = settings.hop_cycles.map(|cycles| f64::from(cycles) * cycle);
        Self { machine, hop, cycle: picoseconds(cycle) }
    }

    /// The startup of a message: that of the slowest link class of its route.
    pub(crate) fn startup(&self, from: Rank, to: Rank, route: &Route) -> Picoseconds {
        let topology = &*self.machine.topology;
        picoseconds(slowest(&self.machine.timing.startup, topology, from, to, route))
    }

    /// The transmission of a message, at the speed of the slowest link of its route.
    pub(crate) fn transmission(&self, from: Rank, to: Rank, route: &Route, bytes: u64) -> u64 {
        let topology = &*self.machine.topology;
        let pace = slowest(&self.machine.timing.per_byte, topology, from, to, route);
        picoseconds(bytes as f64 * pace)
    }

    /// A header's time over one link along `dimension`.
    pub(crate) fn hop(&self, dimension: usize) -> Picoseconds {
        picoseconds(self.hop.unwrap_or_else(|| self.machine.timing.per_hop.of(dimension)))
    }

    pub(crate) fn propagation(&self, route: &Route) -> Picoseconds {
        let hops = |s: &topocoll_topology::Segment| {
            s.hops.unsigned_abs().saturating_mul(self.hop(s.dimension as usize))
        };
        route.segments().iter().map(hops).fold(0, u64::saturating_add)
    }

    /// The time of local copies of `bytes`.
    pub(crate) fn rearrangement(&self, bytes: u128) -> Picoseconds {
        picoseconds(bytes as f64 * self.machine.timing.rearrangement_per_byte)
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
