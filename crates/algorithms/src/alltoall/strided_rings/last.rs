//! The last hops: which dimensions are in a message, and its slots.

use smallvec::SmallVec;
use topocoll_schedule::{SlotSet, Strided};

use super::Rings;

/// Dimensions of a message.
pub(super) type Group = SmallVec<[usize; 3]>;

/// How dimensions share messages of the last hops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Last {
    /// Messages along this number of dimensions. A message moves along some or all of them.
    Together(usize),
    /// Every one and every two dimensions in a message. A block goes along the first two dimensions
    /// in which it has hops, then along the next two.
    Relay,
}

impl Last {
    /// The dimensions of messages of n in all, in the order of steps.
    pub(super) fn groups(self, n: usize) -> SmallVec<[Group; 3]> {
        match self {
            Self::Together(most) => {
                (0..n).step_by(most).map(|u| (u..n.min(u + most)).collect()).collect()
            }
            Self::Relay => {
                let pairs =
                    (0..n).flat_map(|u| (u + 1..n).map(move |v| Group::from_slice(&[u, v])));
                pairs.chain((0..n).map(|u| Group::from_slice(&[u]))).collect()
            }
        }
    }

    /// The least number of a move along a dimension of a message; 0 stays.
    fn least(self) -> u32 {
        u32::from(self == Self::Relay)
    }
}

impl Rings {
    /// The moves along each dimension of a group.
    fn kinds_of_moves(&self, group: &Group) -> impl Iterator<Item = u64> {
        let kinds = |&u: &usize| u64::from(self.lines[u].moves() + 1 - self.last.least());
        group.iter().map(kinds)
    }

    /// Steps of a group; none if there are too many.
    pub(super) fn steps_of_group(&self, group: &Group) -> Option<u64> {
        let all = self.kinds_of_moves(group).try_fold(1, u64::checked_mul)?;
        // In none of the steps does every dimension stay.
        Some(all - u64::from(1 - self.last.least()))
    }

    /// The dimensions of a step of the last hops, with the number of the move along each.
    pub(super) fn last_moves(&self, mut step: u64) -> Option<(&Group, SmallVec<[u32; 3]>)> {
        let least = self.last.least();
        for group in &self.groups {
            let steps = self.steps_of_group(group)?;
            if step < steps {
                let mut rest = step + u64::from(1 - least);
                let digit = |kinds| {
                    let digit = rest % kinds;
                    rest /= kinds;
                    digit as u32 + least
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
        let mut given: SmallVec<[(usize, Strided); 3]> =
            group.iter().copied().zip(digits).collect();
        let mut slots = SlotSet::default();
        if self.last != Last::Relay {
            self.slots_of(&given, &mut slots);
            return (hops, slots);
        }
        let stays = |u: usize| (u, self.lines[u].staying());
        let first = group[0];
        // No hops between the two dimensions, or after one.
        given.extend((first + 1..*group.get(1).unwrap_or(&self.lines.len())).map(stays));
        // An even number of dimensions with hops before them, in messages of two.
        for before in (0..1u32 << first).filter(|before| before.count_ones() % 2 == 0) {
            let of = |u: usize| match before >> u & 1 {
                0 => stays(u),
                _ => (u, self.lines[u].moving()),
            };
            let given: SmallVec<[(usize, Strided); 4]> =
                given.iter().copied().chain((0..first).map(of)).collect();
            self.slots_of(&given, &mut slots);
        }
        (hops, slots)
    }
}
