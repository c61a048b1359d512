//! The last hops: which dimensions are in a message, and its slots.

use smallvec::SmallVec;
use topocoll_schedule::{SlotSet, Strided};

use super::StridedRule;

/// Dimensions of a message, which moves along some or all of them.
pub(super) type Group = SmallVec<[usize; 3]>;

/// The dimensions of messages along this number of n dimensions, in the order of steps.
pub(super) fn groups(n: usize, together: usize) -> SmallVec<[Group; 3]> {
    (0..n).step_by(together).map(|u| (u..n.min(u + together)).collect()).collect()
}

impl StridedRule {
    /// The moves along each dimension of a group; move 0 stays.
    fn kinds_of_moves(&self, group: &Group) -> impl Iterator<Item = u64> {
        group.iter().map(|&u| u64::from(self.lines[u].moves() + 1))
    }

    /// Steps of a group; none if there are too many.
    pub(super) fn steps_of_group(&self, group: &Group) -> Option<u64> {
        // In none of the steps does every dimension stay.
        Some(self.kinds_of_moves(group).try_fold(1, u64::checked_mul)? - 1)
    }

    /// The dimensions of a step of the last hops, with the number of the move along each.
    pub(super) fn last_moves(&self, mut step: u64) -> Option<(&Group, SmallVec<[u32; 3]>)> {
        for group in &self.groups {
            let steps = self.steps_of_group(group)?;
            if step < steps {
                let mut rest = step + 1;
                let digit = |kinds| {
                    let digit = rest % kinds;
                    rest /= kinds;
                    digit as u32
                };
                return Some((group, self.kinds_of_moves(group).map(digit).collect()));
            }
            step -= steps;
        }
        None
    }

    /// The hops of a rank in the moves of a group, and its slots.
    pub(super) fn last_message(
        &self,
        group: &Group,
        moves: &[u32],
        at: &[u32],
    ) -> (SmallVec<[i64; 3]>, SlotSet) {
        let moved = group.iter().zip(moves).map(|(&u, &number)| self.lines[u].moved(number, at[u]));
        let (hops, digits): (SmallVec<[i64; 3]>, SmallVec<[Strided; 3]>) = moved.unzip();
        let given: SmallVec<[(usize, Strided); 3]> = group.iter().copied().zip(digits).collect();
        let mut slots = SlotSet::default();
        self.slots_of(&given, &mut slots);
        (hops, slots)
    }
}
