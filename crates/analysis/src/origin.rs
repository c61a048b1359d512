//! The block that a slot holds, traced back to the initial layout.

use topocoll_schedule::{Block, Schedule, Slot, SlotSet, Step, other_end};
use topocoll_topology::Rank;

/// Traces single slots back through a schedule of whole blocks.
///
/// Each step back costs a call of the rule, so this is for a few slots of machines too large to
/// replay.
pub(crate) struct Origin<'a> {
    schedule: &'a Schedule,
    does: Step,
    peer_does: Step,
}

impl<'a> Origin<'a> {
    pub(crate) fn new(schedule: &'a Schedule) -> Self {
        Self { schedule, does: Step::default(), peer_does: Step::default() }
    }

    /// The block that `slot` of `rank` holds between the copies and the transfers of `step`; `None`
    /// if it is empty, or the two ends of a message disagree.
    pub(crate) fn block(&mut self, rank: Rank, slot: Slot, step: u32) -> Option<Block> {
        let (mut rank, mut slot) = (rank, slot);
        for step in (0..=step).rev() {
            self.schedule.rule().step(rank, step, &mut self.does);
            let copied =
                (self.does.copies.iter()).find_map(|copy| moved(&copy.to, &copy.from, slot));
            slot = copied.unwrap_or(slot);
            let Some(before) = step.checked_sub(1) else { break };
            self.schedule.rule().step(rank, before, &mut self.does);
            let arrival = self
                .does
                .receives
                .iter()
                .enumerate()
                .find(|(_, receive)| receive.slots.position(slot).is_some());
            if let Some((i, receive)) = arrival {
                self.schedule.rule().step(receive.peer, before, &mut self.peer_does);
                let sends = &self.peer_does.sends;
                let send = other_end(&self.does.receives, i, rank, sends)?;
                slot = moved(&receive.slots, &send.slots, slot)?;
                rank = receive.peer;
            }
        }
        self.schedule.rule().initial_block(rank, slot)
    }
}

/// The slot of `other` at the position of `slot` in `set`.
fn moved(set: &SlotSet, other: &SlotSet, slot: Slot) -> Option<Slot> {
    other.nth(set.position(slot)?)
}
