//! The steps of a ring phase: one for every hop, or one for every binary digit of the hops.

use topocoll_schedule::{SlotSet, Strided};

use super::GridIndex;

/// The message of one ring step: values of the digit k.
#[derive(Clone, Copy)]
pub(super) struct RingMessage {
    /// The first of `runs` runs of as many as `run` values, each so many after the last.
    low: u32,
    run: u32,
    runs: u32,
    period: u32,
    /// Hops that it makes along the ring.
    pub(super) hops: u32,
    /// Against the class's own sign.
    pub(super) reversed: bool,
}

impl RingMessage {
    /// Values `low..high`, by one hop; none if that is empty.
    fn range(low: u32, high: u32, reversed: bool) -> Option<Self> {
        let run = high.checked_sub(low).filter(|&run| run > 0)?;
        Some(Self { low, run, runs: 1, period: 0, hops: 1, reversed })
    }

    /// From `low` on every other run of `bit` values, of `length` values in all.
    fn bit(low: u32, length: u32, bit: u32, reversed: bool) -> Self {
        Self { low, run: bit, runs: length / (2 * bit), period: 2 * bit, hops: bit, reversed }
    }

    /// The number of values.
    pub(super) fn values(&self) -> u32 {
        self.run * self.runs
    }

    /// Whether its slots are scattered where k is the topmost digit.
    pub(super) fn scattered(&self) -> bool {
        self.runs > 1
    }
}

impl GridIndex {
    /// What is sent along dimension u in step t >= 1 of a ring phase, if anything.
    pub(super) fn ring_message(&self, u: usize, t: u32) -> Option<RingMessage> {
        let ring = self.ring(u);
        if self.by_digits {
            return self.digit_message(ring, t);
        }
        let wraps = |&u: &usize| self.grid.wrap()[u];
        if !self.nearer || !wraps(&u) {
            return RingMessage::range(t, ring, false);
        }
        // The second half begins for all where the longest ring has it begin.
        let longest = self.falling.iter().copied().find(wraps).map_or(1, |u| self.ring(u));
        match t.checked_sub(longest / 2 + 1) {
            None => RingMessage::range(t, ring / 2 + 1, false),
            Some(before) => RingMessage::range(ring / 2 + 1, ring.saturating_sub(before), true),
        }
    }

    /// The same by digits, the highest first: of k, or the nearer way of k below half the ring and
    /// then of ring - k. Half rings go first, all at once: they load links alike on rings of any size.
    fn digit_message(&self, ring: u32, t: u32) -> Option<RingMessage> {
        let (digits, half) = (self.longest_ring().ilog2(), ring / 2);
        if !self.nearer {
            let bit = 1 << (digits - t);
            return (bit < ring).then(|| RingMessage::bit(bit, ring, bit, false));
        }
        if t == 1 {
            return (half > 0).then_some(RingMessage {
                low: half,
                run: 1,
                runs: 1,
                period: 0,
                hops: half,
                reversed: false,
            });
        }
        // In ring - k = 1 .. half - 1 a digit has the same runs, but counted from the end.
        let reversed = t > digits;
        let bit = 1 << (if reversed { 2 * digits - 1 - t } else { digits - t });
        let low = if reversed { half + 1 } else { bit };
        (bit < half).then(|| RingMessage::bit(low, half, bit, reversed))
    }

    /// Steps of each ring phase.
    pub(super) fn ring_steps(&self) -> u32 {
        match (self.longest_ring(), self.by_digits) {
            (1, _) => 0,
            (longest, false) => longest - 1,
            (longest, true) if self.nearer => 2 * longest.ilog2() - 1,
            (longest, true) => longest.ilog2(),
        }
    }

    pub(super) fn longest_ring(&self) -> u32 {
        self.falling.first().map_or(1, |&x| self.ring(x))
    }

    /// The slots of a ring message, k having this weight.
    pub(super) fn ring_slots(&self, message: &RingMessage, weight: u64, ring: u32) -> SlotSet {
        let RingMessage { low, run, runs, period, .. } = *message;
        if runs == 1 {
            return self.digit_in(weight, ring, low, low + run);
        }
        // By digits, k is the topmost.
        let [low, run, period] = [low, run, period].map(|values| u64::from(values) * weight);
        SlotSet::of(Strided::runs(low, runs.into(), period, run))
    }

    /// The largest of a measure of the messages of step t of ring phase p. It is given blocks and
    /// the message.
    pub(super) fn largest(
        &self,
        (p, t): (usize, u32),
        measure: impl Fn(u128, &RingMessage) -> u128,
    ) -> u128 {
        let (n, ranks) = (self.dimensions(), u128::from(self.radix().ranks()));
        // The first two dimensions come in every phase, one that is put first or last not in those
        // between.
        let comes = |place: usize| place < 2 || p + place < n || p >= place;
        (self.falling.iter().enumerate())
            .filter(|&(place, _)| comes(place))
            .filter_map(|(_, &u)| {
                let message = self.ring_message(u, t)?;
                let blocks = u128::from(message.values()) * ranks / u128::from(self.ring(u));
                Some(measure(blocks, &message))
            })
            .max()
            .unwrap_or(0)
    }

    /// The sum over the steps of all ring phases of the largest of a measure.
    pub(super) fn sum_of_largest(
        &self,
        measure: impl Fn(u128, &RingMessage) -> u128 + Copy,
    ) -> u128 {
        let of_phase =
            |p| (1..=self.ring_steps()).map(|t| self.largest((p, t), measure)).sum::<u128>();
        (0..self.dimensions()).map(of_phase).sum()
    }
}
