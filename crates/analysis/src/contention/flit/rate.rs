//! Channels that pass more or less than one flit in each cycle.

/// The rate of a channel: so many flits in so many cycles, evenly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rate {
    flits: u64,
    cycles: u64,
}

/// When the flits that a channel has passed are through, in cycles divided by the flits of its rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Through(u128);

impl Rate {
    /// The simplest fraction within one part in 10^9 of `flits_per_cycle`, which is positive.
    pub(super) fn of(flits_per_cycle: f64) -> Self {
        const EQUAL: f64 = 1e-9;
        const MOST: f64 = (1u64 << 62) as f64;
        let value = flits_per_cycle.clamp(1.0 / MOST, MOST);
        // Convergents of the continued fraction.
        let (mut last, mut now) = ([1.0, 0.0], [value.floor(), 1.0]);
        let mut rest = value - value.floor();
        while now[0] == 0.0 || (now[0] / now[1] / value - 1.0).abs() > EQUAL {
            let whole = rest.recip().floor();
            rest = rest.recip() - whole;
            let next = [0, 1].map(|i| whole * now[i] + last[i]);
            (last, now) = (now, next);
        }
        Self { flits: now[0] as u64, cycles: now[1] as u64 }
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

    #[test]
    fn rates_are_the_simplest_fractions() {
        let rates: [(f64, u64, u64); 8] = [
            (1.0, 1, 1),
            (0.5, 1, 2),
            (1.0 / 3.0, 1, 3),
            (2.0 / 3.0, 2, 3),
            (3.5, 7, 2),
            (450.0 / 7.0 / 450.0, 1, 7),
            (50.0 / 450.0, 1, 9),
            (1e-12, 1, 1_000_000_000_000),
        ];
        for (value, flits, cycles) in rates {
            assert_eq!(Rate::of(value), Rate { flits, cycles }, "{value}");
        }
        for value in [std::f64::consts::PI, 1e-300, 1e300, 0.123_456_789_012] {
            let Rate { flits, cycles } = Rate::of(value);
            let value = value.clamp(1.0 / (1u64 << 62) as f64, (1u64 << 62) as f64);
            assert!((flits as f64 / cycles as f64 / value - 1.0).abs() < 1e-9, "{value}");
        }
    }

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
