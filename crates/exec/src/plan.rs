use std::ops::Range;

use rayon::prelude::*;
use topocoll_schedule::{Axis, Problem};
use topocoll_topology::{Rank, Subset};

use crate::PlanError;

/// One rank's share of a schedule: made once, kept for any number of exchanges.
///
/// # Registers
/// The schedule's slots become *registers*, places of one block each that keep their contents while
/// the names of slots change: a rearrangement that permutes slots only renames them, and costs
/// nothing at run time. A register that ends with the block of rank k is block k of the output, so
/// nothing is put in order at the end. A register holds block `origin` of the input until something
/// is written to it, so nothing is put in order at the start either: the first sends read the
/// input, the last receives write the output. Registers that end with nothing stand behind the
/// output, in the workspace.
///
/// # Block size
/// A plan serves any block size. Where the schedule splits blocks at byte c of b, an exchange of
/// blocks of B splits them at floor(c B / b); both ends of a message agree on it. The steps chosen
/// for b need not be the cheapest for B.
///
/// # Memory
/// Proportional to the rank's slots, steps, messages and runs. Shared between threads by [`Arc`](std::sync::Arc).
#[derive(PartialEq, Eq, Debug)]
pub struct Plan {
    pub(crate) problem: Problem,
    pub(crate) rank: Rank,
    pub(crate) subset: Option<Subset>,
    pub(crate) steps: Vec<StepRow>,
    pub(crate) messages: Vec<MessageRow>,
    pub(crate) sets: Vec<SetRow>,
    pub(crate) runs: Vec<RunRow>,
    /// Parts of blocks as (first, end) bytes of a block as planned.
    pub(crate) parts: Vec<(u64, u64)>,
    /// Registers by slot, one table for each stretch of steps between rearrangements.
    pub(crate) names: Vec<Names>,
    /// By register, the block of the input that it holds at first; [`NONE`] for nothing.
    pub(crate) origin: Vec<u32>,
    /// By register, the time of the first write: 2 s for the copies of step s, 2 s + 1 for its
    /// messages; [`NONE`] for never.
    pub(crate) first_write: Vec<u32>,
    /// Registers whose block of the input is to be in the output: the rank's own.
    pub(crate) kept: Vec<u32>,
    /// Copies that rename nothing, by step.
    pub(crate) moves: Vec<Moves>,
    /// Registers behind the output.
    pub(crate) extra: u32,
    /// Of an exchange in place, the blocks of the input that are set aside, behind those registers.
    pub(crate) aside: Option<Vec<u32>>,
    pub(crate) most_messages: u32,
}

/// No number.
pub(crate) const NONE: u32 = u32::MAX;

/// Messages of a step: sends, then receives, up to the first message of the next step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StepRow {
    pub(crate) first_send: u32,
    pub(crate) first_receive: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MessageRow {
    /// The other end, as a rank of the schedule.
    pub(crate) peer: u32,
    pub(crate) slots: Slots,
}

/// The slots of a message: a single slot, or a set by number. A message passes through staging
/// memory where its bytes lie in several places, or in one that may not be touched yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slots(u32);

impl Slots {
    /// Slots and sets are numbered below this.
    pub(crate) const MOST: u64 = 1 << 30;
    const SINGLE: u32 = 1 << 31;
    const STAGED: u32 = 1 << 30;

    pub(crate) fn single(slot: u32) -> Self {
        Self(slot | Self::SINGLE)
    }

    pub(crate) fn set(number: u32) -> Self {
        Self(number)
    }

    pub(crate) fn staged(self) -> Self {
        Self(self.0 | Self::STAGED)
    }

    pub(crate) fn is_staged(self) -> bool {
        self.0 & Self::STAGED != 0
    }

    /// The single slot, or the number of the set.
    pub(crate) fn number(self) -> Result<u32, usize> {
        let number = self.0 & !(Self::SINGLE | Self::STAGED);
        if self.0 & Self::SINGLE != 0 { Ok(number) } else { Err(number as usize) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SetRow {
    pub(crate) first_run: u32,
    pub(crate) end_run: u32,
    /// Whole blocks among them.
    pub(crate) whole: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RunRow {
    pub(crate) base: u32,
    pub(crate) outer: (u32, i32),
    pub(crate) inner: (u32, i32),
    /// The part of each block, by number; [`NONE`] for the whole.
    pub(crate) part: u32,
}

impl RunRow {
    pub(crate) fn axes(axis: Axis) -> (u32, i32) {
        (axis.count as u32, axis.stride as i32)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Names {
    /// The steps from this one on.
    pub(crate) first_step: u32,
    pub(crate) registers: Vec<u32>,
}

/// Copies between registers, all at once: (from, to).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Moves {
    pub(crate) step: u32,
    pub(crate) registers: Vec<(u32, u32)>,
    /// Whether some register is both read and written, so that the blocks pass through scratch.
    pub(crate) scratch: bool,
}

/// The items in order, or the first error in that order, in any interleaving of the threads.
pub(crate) fn all_or_first_error<T: Send>(
    made: impl IndexedParallelIterator<Item = Result<T, PlanError>>,
) -> Result<Vec<T>, PlanError> {
    made.collect::<Vec<_>>().into_iter().collect()
}

impl Plan {
    /// The problem of the schedule, with the block size that it was written for.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The rank, as the schedule numbers it.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// The number of tags, which count from 0: one for each step. Messages between the same two ranks
    /// with the same tag, or of two exchanges, must arrive in the order sent; others may overtake each
    /// other.
    #[must_use]
    pub fn tags(&self) -> u32 {
        self.steps.len() as u32
    }

    /// The rounds of a dissemination barrier among the ranks (Hensgen, Finkel and Manber 1988): in
    /// each the rank sends an empty message to the first of these ranks, as the machine numbers them,
    /// and receives one from the second. After the last it has heard, through others, of all ranks.
    pub fn barrier_rounds(&self) -> impl Iterator<Item = (Rank, Rank)> {
        let (own, ranks) = (u64::from(self.rank.0), u64::from(self.problem.ranks));
        let at = move |rank: u64| self.machine_rank((rank % ranks) as u32);
        let distances = (0..).map(|round| 1u64 << round).take_while(move |&far| far < ranks);
        distances.map(move |far| (at(own + far), at(own + ranks - far)))
    }

    /// The most sends and receives outstanding at once.
    #[must_use]
    pub fn most_outstanding(&self) -> u32 {
        self.most_messages
    }

    /// Messages sent and received in all.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.messages.len()
    }

    /// Blocks of the input: one for every rank, or in an all-gather the rank's own.
    #[must_use]
    pub fn input_blocks(&self) -> u32 {
        self.problem.blocks_at_start()
    }

    /// Bytes that the plan itself takes.
    #[must_use]
    pub fn plan_bytes(&self) -> usize {
        let names: usize = self.names.iter().map(|names| size_of_val(&*names.registers)).sum();
        let moves: usize = self.moves.iter().map(|moves| size_of_val(&*moves.registers)).sum();
        size_of::<Self>()
            + size_of_val(&*self.steps)
            + size_of_val(&*self.messages)
            + size_of_val(&*self.sets)
            + size_of_val(&*self.runs)
            + size_of_val(&*self.parts)
            + size_of_val(&*self.origin)
            + size_of_val(&*self.first_write)
            + self.aside.as_ref().map_or(0, |aside| size_of_val(&**aside))
            + names
            + moves
    }

    /// A rank of the schedule as the machine numbers it.
    pub(crate) fn machine_rank(&self, rank: u32) -> Rank {
        self.subset.as_ref().map_or(Rank(rank), |subset| subset.ranks()[rank as usize])
    }

    /// The rank itself.
    pub(crate) fn own_rank(&self) -> Rank {
        self.machine_rank(self.rank.0)
    }

    /// Whether a rank of the machine takes part.
    pub(crate) fn includes(&self, rank: Rank) -> bool {
        let ranks = self.problem.ranks;
        self.subset.as_ref().map_or(rank.0 < ranks, |subset| subset.position(rank).is_some())
    }

    /// The place of a peer, numbered as the machine does, in a list of plans that has this one at `own`, and with
    /// it those of all ranks of its schedule in order.
    pub(crate) fn place_of(&self, peer: Rank, own: usize) -> usize {
        let position = self.subset.as_ref().map_or(Some(peer.0), |subset| subset.position(peer));
        own - self.rank.index() + position.expect("bug: a peer outside the subset") as usize
    }

    /// The copies of a step, and their place among those of all steps.
    pub(crate) fn moves(&self, step: u32) -> Option<(usize, &Moves)> {
        let at = self.moves.binary_search_by_key(&step, |moves| moves.step);
        at.ok().map(|i| (i, &self.moves[i]))
    }

    /// The messages of a step by number, sends first; none after the last step.
    pub(crate) fn step_messages(&self, step: u32) -> Range<u32> {
        let first = |step: u32| {
            let row = self.steps.get(step as usize);
            row.map_or(self.messages.len() as u32, |row| row.first_send)
        };
        first(step)..first(step + 1)
    }

    pub(crate) fn sends(&self, step: u32) -> Range<u32> {
        let Range { start, end } = self.step_messages(step);
        start..self.steps.get(step as usize).map_or(end, |row| row.first_receive)
    }

    pub(crate) fn receives(&self, step: u32) -> Range<u32> {
        self.sends(step).end..self.step_messages(step).end
    }

    /// The runs of a set.
    fn runs(&self, set: usize) -> &[RunRow] {
        let SetRow { first_run, end_run, .. } = self.sets[set];
        &self.runs[first_run as usize..end_run as usize]
    }

    /// A part of a block as planned, in bytes of a block of `block_bytes`.
    pub(crate) fn part(&self, part: u32, block_bytes: u64) -> (u64, u64) {
        if part == NONE {
            return (0, block_bytes);
        }
        let planned = self.problem.block_bytes;
        let scaled = |at: u64| {
            if block_bytes == planned {
                return at;
            }
            (u128::from(at) * u128::from(block_bytes) / u128::from(planned)) as u64
        };
        let (first, end) = self.parts[part as usize];
        (scaled(first), scaled(end))
    }

    pub(crate) fn message_bytes(&self, message: u32, block_bytes: u64) -> u64 {
        let Err(set) = self.messages[message as usize].slots.number() else { return block_bytes };
        let parts = self.runs(set).iter().filter(|run| run.part != NONE).map(|run| {
            let (first, end) = self.part(run.part, block_bytes);
            (u64::from(run.outer.0) * u64::from(run.inner.0)).saturating_mul(end - first)
        });
        // A sum that saturates is larger than any buffer.
        let whole = u64::from(self.sets[set].whole).saturating_mul(block_bytes);
        parts.fold(whole, u64::saturating_add)
    }

    pub(crate) fn stage(&mut self, message: u32) {
        let row = &mut self.messages[message as usize];
        row.slots = row.slots.staged();
    }

    /// The registers by slot in a step.
    pub(crate) fn names(&self, step: u32) -> &[u32] {
        let i = self.names.partition_point(|names| names.first_step <= step) - 1;
        &self.names[i].registers
    }

    /// Whether a register read at `time` still holds its block of the input.
    pub(crate) fn untouched(&self, register: u32, time: u32) -> bool {
        self.first_write[register as usize] >= time
    }

    /// Calls `each` with the pieces of a message in order: a register, and the first and one past
    /// the last of the bytes of it that move.
    #[inline]
    pub(crate) fn pieces(
        &self,
        message: u32,
        step: u32,
        block_bytes: u64,
        mut each: impl FnMut(u32, u64, u64),
    ) {
        let names = self.names(step);
        match self.messages[message as usize].slots.number() {
            Ok(slot) => each(names[slot as usize], 0, block_bytes),
            Err(set) => {
                for run in self.runs(set) {
                    let (first, end) = self.part(run.part, block_bytes);
                    for i in 0..run.outer.0 as i32 {
                        let row = run.base as i32 + i * run.outer.1;
                        if run.inner.1 == 1 {
                            let row = &names[row as usize..][..run.inner.0 as usize];
                            row.iter().for_each(|&register| each(register, first, end));
                            continue;
                        }
                        for j in 0..run.inner.0 as i32 {
                            each(names[(row + j * run.inner.1) as usize], first, end);
                        }
                    }
                }
            }
        }
    }
}
