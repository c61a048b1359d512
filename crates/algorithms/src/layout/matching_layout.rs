//! The layout of matchings: a slot for every destination, and behind them one for every source, in the order
//! of ranks from the first one of the own node on. A rank's own block stays where it is.

use topocoll_schedule::{Block, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Rank, Route};

/// The slots of each of a number of ranks.
#[derive(Clone, Copy)]
pub(crate) struct MatchingLayout {
    ranks: u32,
    /// Ranks of each node.
    size: u32,
}

impl MatchingLayout {
    /// The same slots for the same ranks, on all ranks.
    pub(crate) fn of(ranks: u32) -> Self {
        Self { ranks, size: ranks }
    }

    /// The same slots for ranks as many nodes further on.
    pub(crate) fn by_node(ranks: u32, size: u32) -> Self {
        Self { ranks, size }
    }

    /// The place of a rank in the order of another one.
    pub(crate) fn place(self, own: Rank, other: Rank) -> Slot {
        let first = own.0 - own.0 % self.size;
        Slot::from(if other.0 < first { self.ranks - (first - other.0) } else { other.0 - first })
    }

    /// The rank at a place in the order of another one.
    fn rank_at(self, own: Rank, place: Slot) -> Rank {
        let first = u64::from(own.0 - own.0 % self.size);
        Rank(((first + place) % u64::from(self.ranks)) as u32)
    }

    pub(crate) fn slots(self) -> u64 {
        2 * u64::from(self.ranks)
    }

    pub(crate) fn initial_block(self, rank: Rank, slot: Slot) -> Option<Block> {
        (slot < self.ranks.into()).then(|| Block { from: rank, to: self.rank_at(rank, slot) })
    }

    pub(crate) fn final_block(self, rank: Rank, slot: Slot) -> Option<Block> {
        let (from, is_own) = match slot.checked_sub(self.ranks.into()) {
            None => (self.rank_at(rank, slot), true),
            Some(place) => (self.rank_at(rank, place), false),
        };
        ((from == rank) == is_own).then_some(Block { from, to: rank })
    }

    /// Adds the block for a rank to the blocks sent.
    pub(crate) fn send(self, own: Rank, to: Rank, route: Route, out: &mut Step) {
        out.send(to, SlotSet::of(Strided::contiguous(self.place(own, to), 1)), route);
    }

    /// Adds the block of a rank to the blocks received.
    pub(crate) fn receive(self, own: Rank, from: Rank, out: &mut Step) {
        let slot = u64::from(self.ranks) + self.place(own, from);
        out.receive(from, SlotSet::of(Strided::contiguous(slot, 1)));
    }
}
