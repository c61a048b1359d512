//! The steps of a rank that touch given slots.

use topocoll_schedule::{Slot, Strided};

/// For every step of a rank the range of slots that its messages and copies touch, and for every
/// two, four, eight, ... steps together. So the next step that touches a box is found in time
/// logarithmic in the steps skipped.
pub(super) struct Touches {
    /// `[log2 of the steps together][which of them]`.
    levels: Vec<Vec<Span>>,
}

/// The least and the greatest slot; empty if the least is greater.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Span {
    low: Slot,
    high: Slot,
}

impl Span {
    /// No slot.
    pub(super) const NONE: Self = Self { low: Slot::MAX, high: 0 };
    /// Every slot.
    pub(super) const ALL: Self = Self { low: 0, high: Slot::MAX };

    /// The slots from `low` to `high`, both included.
    pub(crate) fn new(low: Slot, high: Slot) -> Self {
        Self { low, high }
    }

    /// The slots of a set that lies within the slots of a rank.
    pub(super) fn of(slots: Strided) -> Self {
        slots.span().map_or(Self::NONE, |(low, high)| Self::new(low as Slot, high as Slot))
    }

    /// The smallest span that contains both.
    pub(super) fn and(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// The number of slots from the first to the last.
    pub(super) fn len(self) -> u64 {
        if self.low > self.high { 0 } else { (self.high - self.low).saturating_add(1) }
    }

    fn meets(self, other: Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

impl Touches {
    /// From the span that each step touches.
    pub(super) fn new(steps: Vec<Span>) -> Self {
        let mut levels = vec![steps];
        while let Some(below) = levels.last()
            && below.len() > 1
        {
            let join = |pair: &[Span]| pair.iter().fold(Span::NONE, |all, &one| all.and(one));
            let joined = below.chunks(2).map(join).collect();
            levels.push(joined);
        }
        Self { levels }
    }

    /// The first step from `step` on that may touch these slots, if any does.
    pub(super) fn next(&self, step: u32, slots: Span) -> Option<u32> {
        let (mut at, mut level) = (step as usize, 0);
        while let Some(span) = self.levels[level].get(at) {
            if !span.meets(slots) {
                // Go on to the next steps, the most together that begin there.
                at += 1;
                while at % 2 == 0 {
                    (at, level) = (at / 2, level + 1);
                }
            } else if level > 0 {
                (at, level) = (at * 2, level - 1);
            } else {
                return Some(at as u32);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_as_many_slots_as_from_its_first_to_its_last() {
        let lengths = [Span::NONE, Span::new(5, 5), Span::new(5, 6), Span::ALL].map(Span::len);
        assert_eq!(lengths, [0, 1, 2, u64::MAX]);
    }

    #[test]
    fn next_is_what_looking_at_every_step_finds() {
        let mut rng = fastrand::Rng::with_seed(1);
        for steps in 0..70 {
            let spans: Vec<_> = (0..steps)
                .map(|_| match rng.u8(..8) {
                    0 => Span::new(rng.u64(..40), 40 + rng.u64(..40)),
                    1 => Span::ALL,
                    2 => Span::new(0, 0),
                    _ => Span::NONE,
                })
                .collect();
            let touches = Touches::new(spans.clone());
            for step in 0..=steps {
                let low = rng.u64(..90);
                let slots = Span::new(low, low + rng.u64(..5));
                let meets = |span: Span| {
                    (low..=slots.high).any(|slot| (span.low..=span.high).contains(&slot))
                };
                let found = (step..steps).find(|&step| meets(spans[step as usize]));
                assert_eq!(touches.next(step, slots), found, "{step} of {steps}");
            }
        }
    }
}
