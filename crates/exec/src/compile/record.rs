//! Writes down a rank's steps.

use std::ops::ControlFlow;

use hashbrown::HashMap;
use topocoll_schedule::{LocalCopy, Part, Schedule, SlotSet, Step};
use topocoll_topology::Rank;

use crate::PlanError;
use crate::plan::{MessageRow, NONE, Plan, RunRow, SetRow, Slots, StepRow};

/// A step and its copies: slots, or later registers, (from, to).
pub(super) type StepMoves = (u32, Vec<(u32, u32)>);

/// Collected while steps are recorded, and dropped afterwards.
pub(super) struct Found {
    /// Slots of the schedule.
    pub(super) slots: u64,
    /// The numbers of parts of blocks: first byte, and end.
    pub(super) parts: HashMap<(u64, u64), u32>,
    /// Steps whose copies permute the slots: the new slot of each.
    pub(super) renamings: Vec<(u32, Vec<u32>)>,
    /// Those whose copies do not.
    pub(super) moves: Vec<StepMoves>,
}

/// Writes down the rank's steps.
pub(super) fn record(
    plan: &mut Plan,
    schedule: &Schedule,
    found: &mut Found,
) -> Result<(), PlanError> {
    let (rule, rank) = (schedule.rule(), plan.rank);
    let steps = rule.steps();
    if steps >= NONE / 2 - 1 {
        let most = u64::from(NONE / 2) - 2;
        return Err(PlanError::TooMany { what: "steps", count: steps.into(), most });
    }
    plan.steps.reserve_exact(steps as usize);
    let mut recorded = Ok(());
    rule.each_step(rank, &mut |number, step| {
        recorded = plan.record_step(number, step, found);
        if recorded.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    recorded.map(|()| plan.idle_until(steps))
}

impl Plan {
    /// Writes down a step in which the rank does something.
    fn record_step(
        &mut self,
        number: u32,
        step: &Step,
        found: &mut Found,
    ) -> Result<(), PlanError> {
        self.idle_until(number);
        if !step.copies.is_empty() {
            found.add(self.rank, number, step)?;
        }
        let first_send = self.messages.len() as u32;
        for send in &step.sends {
            let slots = self.slots(found, number, &send.slots)?;
            self.messages.push(MessageRow { peer: send.peer.0, slots });
        }
        let first_receive = self.messages.len() as u32;
        for receive in &step.receives {
            let slots = self.slots(found, number, &receive.slots)?;
            self.messages.push(MessageRow { peer: receive.peer.0, slots });
        }
        self.steps.push(StepRow { first_send, first_receive });
        self.most_messages = self.most_messages.max(self.messages.len() as u32 - first_send);
        if self.messages.len() as u64 > Slots::MOST {
            let count = self.messages.len() as u64;
            return Err(PlanError::TooMany { what: "messages", count, most: Slots::MOST });
        }
        Ok(())
    }

    /// Writes down steps without messages.
    fn idle_until(&mut self, step: u32) {
        let next = self.messages.len() as u32;
        self.steps.resize(step as usize, StepRow { first_send: next, first_receive: next });
    }

    /// The slots of a message, its set written down unless it is that of the message before.
    fn slots(&mut self, found: &mut Found, step: u32, set: &SlotSet) -> Result<Slots, PlanError> {
        if let [run] = set.runs()
            && run.slots.len() == 1
            && run.part == Part::Whole
            && run.slots.base < found.slots
        {
            return Ok(Slots::single(run.slots.base as u32));
        }
        inside(self.rank, step, set, found.slots)?;
        let (first_run, mut whole) = (self.runs.len(), 0);
        for run in set.runs() {
            let part = match run.part {
                Part::Whole => {
                    whole += run.slots.len() as u32;
                    NONE
                }
                Part::Bytes { first, end } => {
                    *found.parts.entry((first, end)).or_insert_with(|| {
                        self.parts.push((first, end));
                        self.parts.len() as u32 - 1
                    })
                }
            };
            let (outer, inner) = (RunRow::axes(run.slots.outer), RunRow::axes(run.slots.inner));
            self.runs.push(RunRow { base: run.slots.base as u32, outer, inner, part });
        }
        // A message is often received into the slots just sent, or those of the step before.
        if let Some(last) = self.sets.last()
            && self.runs[last.first_run as usize..last.end_run as usize] == self.runs[first_run..]
        {
            self.runs.truncate(first_run);
            return Ok(Slots::set(self.sets.len() as u32 - 1));
        }
        let (first_run, end_run) = (first_run as u32, self.runs.len() as u32);
        self.sets.push(SetRow { first_run, end_run, whole });
        Ok(Slots::set(self.sets.len() as u32 - 1))
    }
}

/// Whether a set lies within the slots.
fn inside(rank: Rank, step: u32, set: &SlotSet, slots: u64) -> Result<(), PlanError> {
    for run in set.runs() {
        let (low, high) = run.slots.span().unwrap_or_default();
        if low < 0 || high >= i128::from(slots) {
            let slot = if low < 0 { low } else { high } as u64;
            return Err(PlanError::Slot { rank, step, slot, slots });
        }
    }
    Ok(())
}

impl Found {
    fn add(&mut self, rank: Rank, number: u32, step: &Step) -> Result<(), PlanError> {
        for copy in &step.copies {
            inside(rank, number, &copy.from, self.slots)?;
            inside(rank, number, &copy.to, self.slots)?;
        }
        const READ: u8 = 1;
        const WRITTEN: u8 = 2;
        let mut new_slot: Vec<u32> = (0..self.slots as u32).collect();
        let mut marks = vec![0; self.slots as usize];
        let mut permutes = true;
        for copy in &step.copies {
            each_pair(copy, |from, to| {
                permutes &= marks[from as usize] & READ == 0;
                marks[from as usize] |= READ;
                marks[to as usize] |= WRITTEN;
                new_slot[from as usize] = to;
            });
        }
        // Each slot that is read is written, and each that is written is read.
        permutes &= !marks.iter().any(|&mark| mark == READ || mark == WRITTEN);
        if permutes {
            self.renamings.push((number, new_slot));
        } else {
            let copied = step.copies.iter().map(|copy| copy.from.len() as usize);
            let mut pairs = Vec::with_capacity(copied.sum());
            for copy in &step.copies {
                each_pair(copy, |from, to| pairs.push((from, to)));
            }
            self.moves.push((number, pairs));
        }
        Ok(())
    }
}

/// Calls `each` with the slots of a copy in order, from and to.
#[inline]
fn each_pair(copy: &LocalCopy, mut each: impl FnMut(u32, u32)) {
    if let ([from], [to]) = (copy.from.runs(), copy.to.runs())
        && (from.slots.outer.count, from.slots.inner.count)
            == (to.slots.outer.count, to.slots.inner.count)
    {
        let (from, to) = (from.slots, to.slots);
        for i in 0..from.outer.count as i64 {
            let mut a = from.base as i64 + i * from.outer.stride;
            let mut b = to.base as i64 + i * to.outer.stride;
            for _ in 0..from.inner.count {
                each(a as u32, b as u32);
                a += from.inner.stride;
                b += to.inner.stride;
            }
        }
        return;
    }
    for ((from, _), (to, _)) in copy.from.slots().zip(copy.to.slots()) {
        each(from as u32, to as u32);
    }
}
