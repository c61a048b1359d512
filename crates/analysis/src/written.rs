use std::collections::BTreeMap;

use topocoll_schedule::{Part, Slot, SlotSet};

/// Marks the slots that a rank writes in a step, to find one written twice.
pub(crate) struct Written {
    whole: Vec<bool>,
    /// Written parts, which do not overlap: the end of each by its slot and first byte.
    parts: BTreeMap<(Slot, u64), u64>,
}

impl Written {
    pub(crate) fn new(slots: u64) -> Self {
        Self { whole: vec![false; slots as usize], parts: BTreeMap::new() }
    }

    pub(crate) fn mark(&mut self, set: &SlotSet) -> Result<(), Slot> {
        for (slot, part) in set.slots() {
            // Slots out of range are reported when they are written.
            let Some(whole) = self.whole.get_mut(slot as usize) else { continue };
            let again = match part {
                Part::Whole => *whole,
                Part::Bytes { first, end } => {
                    // The last part that begins before this one ends.
                    let before = self.parts.range((slot, 0)..(slot, end)).next_back();
                    let meets = before.is_some_and(|(_, &end)| first < end);
                    self.parts.insert((slot, first), end);
                    meets
                }
            };
            if again {
                return Err(slot);
            }
            *whole |= part == Part::Whole;
        }
        Ok(())
    }

    pub(crate) fn clear<'s>(&mut self, sets: impl Iterator<Item = &'s SlotSet>) {
        self.parts.clear();
        for (slot, _) in sets.flat_map(SlotSet::slots) {
            if let Some(whole) = self.whole.get_mut(slot as usize) {
                *whole = false;
            }
        }
    }
}

/// A slot that is written by two of these sets, or twice by one.
pub(crate) fn written_twice<'s>(
    slots: u64,
    mut sets: impl ExactSizeIterator<Item = &'s SlotSet> + Clone,
) -> Option<Slot> {
    if sets.len() < 2 {
        return None;
    }
    let span = |set: &SlotSet| {
        set.runs().iter().filter_map(|run| run.slots.span()).map(|(_, high)| high).max()
    };
    let highest = sets.clone().filter_map(span).max()?.clamp(0, i128::from(slots) - 1);
    let mut written = Written::new(highest as u64 + 1);
    sets.find_map(|set| written.mark(set).err())
}

#[cfg(test)]
mod tests {
    use topocoll_schedule::Strided;

    use super::*;

    #[test]
    fn the_highest_slot_is_among_those_looked_at() {
        let set = |first, count| SlotSet::of(Strided::contiguous(first, count));
        for highest in [0, 1, 63, 64, 65] {
            let (all, one, below) = (set(0, highest + 1), set(highest, 1), set(0, highest.max(1)));
            assert_eq!(written_twice(66, [&all, &one].into_iter()), Some(highest));
            assert!(written_twice(66, [&below, &one, &one].into_iter()).is_some());
            let apart = written_twice(66, [&below, &one].into_iter());
            assert_eq!(apart, (highest == 0).then_some(0), "{highest}");
        }
    }

    #[test]
    fn parts_of_a_slot_are_written_twice_where_they_share_a_byte() {
        let part = |first, end| {
            let mut set = SlotSet::default();
            set.push_part(Strided::contiguous(7, 1), Part::Bytes { first, end });
            set
        };
        let twice = |a: &SlotSet, b: &SlotSet| written_twice(9, [a, b].into_iter()) == Some(7);
        for (second, shared) in
            [((2, 4), false), ((6, 9), false), ((2, 5), true), ((5, 9), true), ((4, 6), true)]
        {
            assert_eq!(twice(&part(4, 6), &part(second.0, second.1)), shared, "{second:?}");
        }
        let elsewhere = SlotSet::of(Strided::contiguous(6, 1));
        assert!(!twice(&part(4, 6), &elsewhere));
    }
}
