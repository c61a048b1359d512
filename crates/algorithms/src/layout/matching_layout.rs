//! The layout of matchings: a slot for every destination, and behind them one for every source. A
//! rank's own block stays where it is.

use topocoll_schedule::{Block, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Rank, Route};

/// The slots of each of a number of ranks.
#[derive(Clone, Copy)]
pub(crate) struct MatchingLayout {
    ranks: u32,
}

impl MatchingLayout {
    pub(crate) fn of(ranks: u32) -> Self {
        Self { ranks }
    }

    pub(crate) fn slots(self) -> u64 {
        2 * u64::from(self.ranks)
    }

    pub(crate) fn initial_block(self, rank: Rank, slot: Slot) -> Option<Block> {
        (slot < self.ranks.into()).then_some(Block { from: rank, to: Rank(slot as u32) })
    }

    pub(crate) fn final_block(self, rank: Rank, slot: Slot) -> Option<Block> {
        match slot.checked_sub(self.ranks.into()) {
            None if slot == u64::from(rank.0) => Some(Block { from: rank, to: rank }),
            Some(from) if from != u64::from(rank.0) => {
                Some(Block { from: Rank(from as u32), to: rank })
            }
            _ => None,
        }
    }

    /// Adds the block for a rank to the blocks sent.
    pub(crate) fn send(to: Rank, route: Route, out: &mut Step) {
        out.send(to, SlotSet::of(Strided::contiguous(to.0.into(), 1)), route);
    }

    /// Adds the block of a rank to the blocks received.
    pub(crate) fn receive(self, from: Rank, out: &mut Step) {
        let slot = u64::from(self.ranks) + u64::from(from.0);
        out.receive(from, SlotSet::of(Strided::contiguous(slot, 1)));
    }
}
