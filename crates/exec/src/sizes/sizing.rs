//! Follows the sizes of blocks through a rank's steps.

use std::sync::Arc;

use topocoll_topology::Rank;

use super::{RankSizes, Weight};
use crate::PlanError;
use crate::error::MOST_BYTES;
use crate::plan::{NONE, Plan};

/// Follows the sizes through a rank's steps.
#[derive(Debug)]
pub(super) struct Sizing {
    /// What has been found. Before [`finish`](Self::finish) `work` has the largest block that passes through
    /// each register.
    pub(super) found: RankSizes,
    /// By register, the size of the block it holds.
    pub(super) sizes: Vec<u64>,
    too_large: bool,
}

/// What ranks send in a step.
#[derive(Default, Debug)]
pub(super) struct SentSizes {
    /// Of the pieces of all messages.
    sizes: Vec<u64>,
    messages: Vec<SentMessage>,
}

/// Ends of a message, and where the sizes of its pieces begin and end. Of messages with the same ends, the first
/// counts those that have been taken.
#[derive(Debug)]
struct SentMessage {
    ends: (Rank, Rank),
    pieces: (usize, usize),
    taken: usize,
}

impl SentSizes {
    pub(super) fn clear(&mut self) {
        self.sizes.clear();
        self.messages.clear();
    }

    /// Puts the messages in order of their ends. Those with the same ends keep their order.
    pub(super) fn sort(&mut self) {
        self.messages.sort_unstable_by_key(|message| (message.ends, message.pieces));
    }

    /// The sizes of the pieces of the next message from a rank to another.
    pub(super) fn take(&mut self, from: Rank, to: Rank) -> Option<&[u64]> {
        let ends = (from, to);
        let first = self.messages.partition_point(|message| message.ends < ends);
        let taken = &mut self.messages.get_mut(first)?.taken;
        *taken += 1;
        let next = first + *taken - 1;
        let message = self.messages.get(next).filter(|message| message.ends == ends)?;
        Some(&self.sizes[message.pieces.0..message.pieces.1])
    }
}

impl Sizing {
    /// Memory for the sizes of a plan.
    pub(super) fn new(plan: &Arc<Plan>) -> Result<Self, PlanError> {
        if let Some(&(first, end)) = plan.parts.first() {
            let cut = if first > 0 { first } else { end };
            return Err(PlanError::Split { rank: plan.rank, cut });
        }
        if plan.aside.is_some() {
            return Err(PlanError::InPlace { rank: plan.rank });
        }
        let mut last_write = vec![NONE; plan.origin.len()];
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
        Ok(Self { found, sizes: Vec::new(), too_large: false })
    }

    /// Begins with the sizes of the blocks of the input.
    pub(super) fn begin(&mut self, row: impl Iterator<Item = u64>) -> Result<(), PlanError> {
        let Self { found, sizes, too_large } = self;
        let plan = &found.plan;
        *too_large = !fill_offsets(&mut found.input, row);
        plan.check_sizes("input", found.input.len() - 1, plan.input_blocks())?;
        found.work.clear();
        found.work.resize(plan.origin.len(), 0);
        found.given.clear();
        found.moved.clear();
        (found.scratch, found.staging) = (0, 0);
        found.begin(sizes);
        Ok(())
    }

    /// Does a step's copies, and adds what is sent.
    pub(super) fn send(&mut self, step: u32, sent: &mut SentSizes) {
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
        for send in plan.sends(step) {
            let first = sent.sizes.len();
            plan.pieces(send, step, 0, |register, _, _| {
                sent.sizes.push(self.sizes[register as usize]);
            });
            let of_message = &sent.sizes[first..];
            self.found.messages[send as usize].bytes = total(of_message, &mut self.too_large);
            let peer = plan.messages[send as usize].peer;
            let ends = (plan.own_rank(), plan.machine_rank(peer));
            let pieces = (first, sent.sizes.len());
            sent.messages.push(SentMessage { ends, pieces, taken: 0 });
        }
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
            self.found.work[at] = self.found.work[at].max(bytes);
        }
    }

    /// Gives the blocks their places.
    pub(super) fn finish(&mut self) -> Result<(), PlanError> {
        let Self { found, sizes, too_large } = self;
        let (rank, ranks) = (found.plan.rank, found.plan.problem.ranks as usize);
        *too_large |= !fill_offsets(&mut found.output, sizes[..ranks].iter().copied());
        *too_large |= !add_up(&mut found.work);
        if *too_large {
            return Err(PlanError::Bytes { rank });
        }
        let (count, most) = (found.given.len() as u64, u32::MAX.into());
        if count > most {
            return Err(PlanError::TooMany { what: "blocks received", count, most });
        }
        found.stage(sizes)
    }
}

/// Where each of some sizes begins, and where the last ends, as far as that is numbered.
fn fill_offsets(offsets: &mut Vec<u64>, sizes: impl Iterator<Item = u64>) -> bool {
    offsets.clear();
    offsets.extend(sizes);
    add_up(offsets)
}

/// Replaces sizes by where each begins, and appends where the last ends. Whether all is numbered.
fn add_up(sizes: &mut Vec<u64>) -> bool {
    let mut end = 0u64;
    for size in &mut *sizes {
        let next = end.saturating_add(*size);
        *size = std::mem::replace(&mut end, next);
    }
    sizes.push(end);
    end <= MOST_BYTES
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
    fn stage(&mut self, sizes: &mut Vec<u64>) -> Result<(), PlanError> {
        let plan = Arc::clone(&self.plan);
        self.begin(sizes);
        for step in 0..plan.tags() {
            self.copied(step, sizes);
            let mut staged = 0u64;
            for message in plan.step_messages(step) {
                let mut regions = 0;
                self.regions(message, step, sizes, |_| regions += 1);
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
            self.receive(step, sizes);
        }
        Ok(())
    }
}
