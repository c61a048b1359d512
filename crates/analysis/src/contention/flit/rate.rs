//! Channels that pass more or less than one flit in each cycle.

use topocoll_topology::Capacity;

/// The rate of a channel: a number of flits in a number of cycles, evenly spread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rate {
    flits: u64,
    cycles: u64,
}

/// When the flits that a channel has passed are through, in cycles divided by the flits of its rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Through(u128);

impl Rate {
    /// The fraction near a number of flits in a cycle, within some parts in 10^9.
    pub(super) fn near(flits_per_cycle: f64) -> Self {
        let (flits, cycles) = Capacity::near(flits_per_cycle).relative(1.0);
        Self { flits: flits.into(), cycles: cycles.into() }
    }

    /// The number of flits that the channel can begin to pass in a cycle, at most `most`.
    pub(super) fn room(self, through: Through, cycle: u64, most: u32) -> u32 {
        let end = (u128::from(cycle) + 1) * u128::from(self.flits);
        let left = end.saturating_sub(through.0.max(end - u128::from(self.flits)));
        let room = left.div_ceil(self.cycles.into());
        u32::try_from(room).map_or(most, |room| room.min(most))
    }

    /// The channel passes a flit in a cycle in which it has room.
    pub(super) fn pass(self, through: &mut Through, cycle: u64) {
        let begin = through.0.max(u128::from(cycle) * u128::from(self.flits));
        *through = Through(begin + u128::from(self.cycles));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A channel that always has flits to pass begins flit k in the cycle that k times its time
    /// falls into; after a pause it begins again at once.
    #[test]
    fn flits_pass_evenly() {
        for (flits, cycles) in [(1, 1), (1, 2), (2, 3), (7, 2), (5, 9)] {
            let (rate, mut through) = (Rate { flits, cycles }, Through::default());
            let mut passed = 0u64;
            for cycle in 0..100 {
                while rate.room(through, cycle, 1) > 0 {
                    assert_eq!(passed * cycles / flits, cycle, "{rate:?}");
                    rate.pass(&mut through, cycle);
                    passed += 1;
                }
            }
            assert_eq!(passed, (100 * flits).div_ceil(cycles));
            assert_eq!(rate.room(through, 1000, 100), flits.div_ceil(cycles) as u32);
            assert_eq!(rate.room(through, 1000, 0), 0);
        }
    }
}
