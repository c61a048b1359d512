//! Follows the sizes of blocks through a rank's steps.

use std::ops::Range;
use std::sync::Arc;

use super::{RankSizes, Weight};
use crate::PlanError;
use crate::error::MOST_BYTES;
use crate::plan::{NONE, Plan};

/// Follows the sizes through a rank's steps.
pub(super) struct Sizing {
    /// What has been found, without the offsets.
    pub(super) found: RankSizes,
    row: Vec<u64>,
    /// By register, the size of the block it holds.
    pub(super) sizes: Vec<u64>,
    /// By register, the largest that passes.
    room: Vec<u64>,
    too_large: bool,
}

/// What a rank sends in a step.
#[derive(Default)]
pub(super) struct SentSizes {
    /// Of the pieces of all messages.
    sizes: Vec<u64>,
    /// Where those of each message are, by peer.
    messages: Vec<(u32, Range<usize>)>,
}

impl SentSizes {
    /// The sizes of the pieces of the message to `peer` that follows `before` others to it.
    pub(super) fn to(&self, peer: u32, before: usize) -> Option<&[u64]> {
        let first = self.messages.partition_point(|&(other, _)| other < peer);
        let (other, pieces) = self.messages.get(first + before)?;
        (*other == peer).then(|| &self.sizes[pieces.clone()])
    }
}

impl Sizing {
    pub(super) fn new(plan: &Arc<Plan>, row: Vec<u64>) -> Result<Self, PlanError> {
        if let Some(&(first, end)) = plan.parts.first() {
            let cut = if first > 0 { first } else { end };
            return Err(PlanError::Split { rank: plan.rank, cut });
        }
        if plan.aside.is_some() {
            return Err(PlanError::InPlace { rank: plan.rank });
        }
        plan.check_sizes("input", row.len(), plan.input_blocks())?;
        let registers = plan.origin.len();
        let mut last_write = vec![NONE; registers];
        let mut moves = plan.moves.iter().peekable();
        for step in 0..plan.tags() {
            while let Some(moves) = moves.next_if(|moves| moves.step == step) {
                for &(_, to) in &moves.registers {
                    last_write[to as usize] = 2 * step;
                }
            }
            for receive in plan.receives(step) {
                plan.pieces(receive, step, 0, |register, _, _| {
                    last_write[register as usize] = 2 * step + 1;
                });
            }
        }
        let size = |&block: &u32| if block == NONE { 0 } else { row[block as usize] };
        let nothing = Weight { bytes: 0, first: 0, staged: false };
        let found = RankSizes {
            plan: Arc::clone(plan),
            input: Vec::new(),
            output: Vec::new(),
            work: Vec::new(),
            last_write,
            messages: vec![nothing; plan.messages.len()],
            given: Vec::new(),
            moved: Vec::new(),
            scratch: 0,
            staging: 0,
        };
        let (sizes, room) = (plan.origin.iter().map(size).collect(), vec![0; registers]);
        Ok(Self { found, row, sizes, room, too_large: false })
    }

    /// Does a step's copies, and gives the sizes of the pieces of what is sent.
    pub(super) fn sent(&mut self, step: u32) -> SentSizes {
        let plan = Arc::clone(&self.found.plan);
        if let Some((_, moves)) = plan.moves(step) {
            let found = &mut self.found;
            let first = found.given.len();
            found.moved.push(first);
            found.given.extend(moves.registers.iter().map(|&(from, _)| self.sizes[from as usize]));
            let copied = total(&found.given[first..], &mut self.too_large);
            if moves.scratch {
                found.scratch = found.scratch.max(copied);
            }
            for (j, &(_, to)) in moves.registers.iter().enumerate() {
                self.give(to, self.found.given[first + j], 2 * step);
            }
        }
        let mut sent = SentSizes::default();
        for send in plan.sends(step) {
            let first = sent.sizes.len();
            plan.pieces(send, step, 0, |register, _, _| {
                sent.sizes.push(self.sizes[register as usize]);
            });
            let of_message = &sent.sizes[first..];
            self.found.messages[send as usize].bytes = total(of_message, &mut self.too_large);
            let peer = plan.messages[send as usize].peer;
            sent.messages.push((peer, first..sent.sizes.len()));
        }
        // Those to one peer keep their order.
        sent.messages.sort_by_key(|&(peer, _)| peer);
        sent
    }

    /// Does a step's receives, the sizes of whose pieces have been appended to `given`.
    pub(super) fn receive(&mut self, step: u32) {
        let plan = Arc::clone(&self.found.plan);
        let pieces: usize = plan.receives(step).map(|receive| plan.piece_count(receive)).sum();
        let mut next = self.found.given.len() - pieces;
        for receive in plan.receives(step) {
            let first = next;
            plan.pieces(receive, step, 0, |register, _, _| {
                self.give(register, self.found.given[next], 2 * step + 1);
                next += 1;
            });
            let bytes = total(&self.found.given[first..next], &mut self.too_large);
            self.found.messages[receive as usize] =
                Weight { bytes, first: first as u32, staged: false };
        }
    }

    fn give(&mut self, register: u32, bytes: u64, time: u32) {
        let at = register as usize;
        self.sizes[at] = bytes;
        if self.found.last_write[at] != time || register >= self.found.plan.problem.ranks {
            self.room[at] = self.room[at].max(bytes);
        }
    }

    pub(super) fn finish(mut self) -> Result<RankSizes, PlanError> {
        let plan = Arc::clone(&self.found.plan);
        let ranks = plan.problem.ranks as usize;
        let mut offsets = |sizes: &[u64]| {
            let mut end = Some(0u64);
            let mut offsets = vec![0];
            for &bytes in sizes {
                end = end.and_then(|end| end.checked_add(bytes));
                offsets.push(end.unwrap_or(0));
            }
            self.too_large |= end.is_none_or(|end| end > MOST_BYTES);
            offsets
        };
        let (input, output, work) =
            (offsets(&self.row), offsets(&self.sizes[..ranks]), offsets(&self.room));
        if self.too_large {
            return Err(PlanError::Bytes { rank: plan.rank });
        }
        let (count, most) = (self.found.given.len() as u64, u32::MAX.into());
        if count > most {
            return Err(PlanError::TooMany { what: "blocks received", count, most });
        }
        let mut sizes = RankSizes { input, output, work, ..self.found };
        sizes.stage()?;
        Ok(sizes)
    }
}

/// The sum of sizes, and whether it is too large to number.
fn total(sizes: &[u64], too_large: &mut bool) -> u64 {
    let sum = sizes.iter().try_fold(0u64, |sum, &bytes| sum.checked_add(bytes));
    *too_large |= sum.is_none();
    sum.unwrap_or(0)
}

impl RankSizes {
    /// Finds which messages pass through staging memory: those that do for equal blocks, and those
    /// whose pieces have been parted.
    fn stage(&mut self) -> Result<(), PlanError> {
        let plan = Arc::clone(&self.plan);
        let mut sizes = Vec::new();
        self.begin(&mut sizes);
        for step in 0..plan.tags() {
            self.copied(step, &mut sizes);
            let mut staged = 0u64;
            for message in plan.step_messages(step) {
                let mut regions = 0;
                self.regions(message, step, &sizes, |_| regions += 1);
                let weight = &mut self.messages[message as usize];
                let for_equal = plan.messages[message as usize].slots.is_staged();
                weight.staged = weight.bytes > 0 && (for_equal || regions > 1);
                if weight.staged {
                    let sum = staged.checked_add(weight.bytes);
                    staged = sum
                        .filter(|&sum| sum <= MOST_BYTES)
                        .ok_or(PlanError::Bytes { rank: plan.rank })?;
                }
            }
            self.staging = self.staging.max(staged);
            self.receive(step, &mut sizes);
        }
        Ok(())
    }
}
