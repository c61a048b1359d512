//! The steps of a ring phase: one for every hop, or one for every binary digit of the hops.

use topocoll_schedule::{SlotSet, Strided};

use super::GridIndex;

/// The message of one ring step: values of the digit k.
#[derive(Clone, Copy)]
pub(super) struct RingMessage {
    /// The first of `runs` runs of `run` values at equal distances.
    low: u32,
    run: u32,
    runs: u32,
    period: u32,
    /// The number of further values, before the runs or after them.
    more: u32,
    first_more: u32,
    /// Hops that it makes along the ring.
    pub(super) hops: u32,
    /// Against the class's own sign.
    pub(super) reversed: bool,
}

impl RingMessage {
    /// Values `low..high`, by one hop; none if that is empty.
    fn range(low: u32, high: u32, reversed: bool) -> Option<Self> {
        Self::run(low, high, 1, reversed)
    }

    fn run(low: u32, high: u32, hops: u32, reversed: bool) -> Option<Self> {
        let run = high.checked_sub(low).filter(|&run| run > 0)?;
        Some(Self { low, run, runs: 1, period: 0, more: 0, first_more: 0, hops, reversed })
    }

    /// The values below `length` with this bit set, which move at once; `None` without values.
    fn bit(length: u32, bit: u32) -> Option<Self> {
        let (period, runs) = (2 * bit, length / (2 * bit));
        let more = (length % period).saturating_sub(bit);
        let first_more = runs * period + bit;
        let all =
            Self { low: bit, run: bit, runs, period, more, first_more, hops: bit, reversed: false };
        (all.values() > 0).then_some(all)
    }

    /// The same values less than `ring`, counted down from it, against the sign.
    fn counted_down(self, ring: u32) -> Self {
        Self {
            low: ring + 1 - self.runs * self.period,
            first_more: (ring + 1).saturating_sub(self.first_more + self.more),
            reversed: true,
            ..self
        }
    }

    /// The number of values.
    pub(super) fn values(&self) -> u32 {
        self.run * self.runs + self.more
    }

    /// Whether its slots are scattered where k is the topmost digit.
    pub(super) fn scattered(&self) -> bool {
        self.runs + u32::from(self.more > 0) > 1
    }
}

impl GridIndex {
    /// The message along dimension u in step t >= 1 of a ring phase, if there is one.
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

    /// The same by digits, the highest first: of k, or with `ways=nearer` of k below half the ring
    /// and then of ring - k. Half rings go first, all at once: they load links equally on rings of
    /// any size.
    fn digit_message(&self, ring: u32, t: u32) -> Option<RingMessage> {
        let digits = self.ring_digits();
        if !self.nearer {
            return RingMessage::bit(ring, 1 << (digits - t));
        }
        let Some(t) = t.checked_sub(u32::from(self.has_half_rings())).filter(|&t| t > 0) else {
            let half = ring / 2;
            return if ring % 2 == 0 {
                RingMessage::run(half, half + 1, half, false)
            } else {
                None
            };
        };
        let (below, reversed) = (ring.div_ceil(2), t > digits);
        let message = RingMessage::bit(below, 1 << ((2 * digits - t) % digits))?;
        Some(if reversed { message.counted_down(ring) } else { message })
    }

    /// Binary digits of the hops around the longest ring, or half of it.
    fn ring_digits(&self) -> u32 {
        let longest = self.longest_ring();
        let most = if self.nearer { (longest - 1) / 2 } else { longest - 1 };
        most.checked_ilog2().map_or(0, |digit| digit + 1)
    }

    fn has_half_rings(&self) -> bool {
        self.falling.iter().any(|&u| self.ring(u) % 2 == 0)
    }

    /// Steps of each ring phase.
    pub(super) fn ring_steps(&self) -> u32 {
        match (self.longest_ring(), self.by_digits) {
            (1, _) => 0,
            (longest, false) => longest - 1,
            (_, true) if self.nearer => 2 * self.ring_digits() + u32::from(self.has_half_rings()),
            (_, true) => self.ring_digits(),
        }
    }

    pub(super) fn longest_ring(&self) -> u32 {
        self.falling.first().map_or(1, |&x| self.ring(x))
    }

    /// The slots of a ring message, k having this weight.
    pub(super) fn ring_slots(&self, message: &RingMessage, weight: u64, ring: u32) -> SlotSet {
        let RingMessage { low, run, runs, period, more, first_more, .. } = *message;
        if runs == 1 && more == 0 {
            return self.digit_in(weight, ring, low, low + run);
        }
        // By digits, k is the topmost.
        let [low, run, period, more, first_more] =
            [low, run, period, more, first_more].map(|values| u64::from(values) * weight);
        let mut slots = SlotSet::default();
        if runs > 0 {
            slots.push(Strided::runs(low, runs.into(), period, run));
        }
        if more > 0 {
            slots.push(Strided::contiguous(first_more, more));
        }
        slots
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
