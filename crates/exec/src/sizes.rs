//! Sizes of blocks: one for all, or one for each.
//!
//! A plan's registers are places of one block each; sizes say how many bytes a block has. A rank
//! knows the sizes of its own blocks, and must know those of the blocks that pass through it. One
//! process plans for all ranks of a demand ([`PlannedSizes::new`]); a rank plans for itself where
//! every block that it receives is its own to keep, as in direct exchanges
//! ([`PlannedSizes::of_rank`]).
//!
//! Both ends of a message then know its length; a message of no bytes is neither sent nor received.
//!
//! # Places
//! The last block that a register is given goes straight to the output; all blocks before it pass
//! through the workspace, where the register has room for the largest of them. So a direct exchange
//! needs no workspace, and one huge block takes its own size at the ranks that it passes.

mod sizing;

use std::ops::Range;
use std::sync::Arc;

use topocoll_schedule::{Demand, Schedule};
use topocoll_topology::Rank;

use crate::places::Joined;
use crate::plan::{NONE, Plan};
use crate::{Buffer, PlanError, Region};

use sizing::{SentSizes, Sizing};

/// Sizes of the blocks of an exchange. A clone is cheap.
#[derive(Clone, Debug)]
pub enum BlockSizes {
    /// All blocks have this many bytes.
    Equal(u64),
    /// Each block has a size of its own.
    Planned(Arc<PlannedSizes>),
}

impl From<u64> for BlockSizes {
    fn from(bytes: u64) -> Self {
        Self::Equal(bytes)
    }
}

impl From<&Arc<PlannedSizes>> for BlockSizes {
    fn from(planned: &Arc<PlannedSizes>) -> Self {
        Self::Planned(Arc::clone(planned))
    }
}

impl BlockSizes {
    /// Bytes of each block of a rank's input, in order.
    pub(crate) fn input(&self, plan: &Plan) -> impl Iterator<Item = usize> {
        self.each(plan.input_blocks(), plan, RankSizes::input_offsets)
    }

    /// Bytes of each block of a rank's output, in order.
    pub(crate) fn output(&self, plan: &Plan) -> impl Iterator<Item = usize> {
        self.each(plan.problem.ranks, plan, RankSizes::output_offsets)
    }

    fn each(
        &self,
        blocks: u32,
        plan: &Plan,
        offsets: fn(&RankSizes) -> &[u64],
    ) -> impl Iterator<Item = usize> {
        (0..blocks as usize).map(move |i| match self {
            Self::Equal(bytes) => *bytes as usize,
            Self::Planned(sizes) => {
                let offsets = offsets(sizes.known(plan));
                (offsets[i + 1] - offsets[i]) as usize
            }
        })
    }
}

/// Lengths and places of blocks of given sizes, for one or all of a schedule's plans: made once and
/// kept for any number of exchanges, or planned again for other sizes in the same memory.
///
/// Input and output are the blocks one after the other, in order of their destinations and sources.
#[derive(Debug)]
pub struct PlannedSizes {
    /// By the numbers that the machine gives the ranks, ascending.
    ranks: Vec<Sizing>,
    sent: SentSizes,
    /// Whether the last sizes were planned to the end.
    complete: bool,
}

impl PlannedSizes {
    /// The sizes of a demand for the plans of all ranks, or of all ranks of groups, each with the same sizes.
    ///
    /// # Errors
    /// Not one size for each block, or more bytes than a rank can address; blocks that the schedule
    /// splits; a schedule whose ends do not agree. Of several ranks, the first one's error.
    pub fn new(plans: &[Arc<Plan>], demand: &Demand) -> Result<Self, PlanError> {
        let mut sizes = Self::of_no_bytes(plans)?;
        sizes.plan_again(demand)?;
        Ok(sizes)
    }

    /// The sizes for one rank, which knows those of the blocks it has, in `row`, and of the blocks it
    /// gets, in `column`.
    ///
    /// # Errors
    /// As [`new`](Self::new), [`PlanError::Passes`] where blocks of other ranks pass through, or
    /// [`PlanError::OwnBlock`] where `row` and `column` disagree about a block that the rank keeps.
    pub fn of_rank(plan: &Arc<Plan>, row: &[u64], column: &[u64]) -> Result<Self, PlanError> {
        let mut sizes = Self::of_no_bytes(std::slice::from_ref(plan))?;
        sizes.plan_rank_again(row, column)?;
        Ok(sizes)
    }

    fn of_no_bytes(plans: &[Arc<Plan>]) -> Result<Self, PlanError> {
        let mut ranks = plans.iter().map(Sizing::new).collect::<Result<Vec<_>, _>>()?;
        ranks.sort_by_key(|one| one.found.plan.own_rank());
        Ok(Self { ranks, sent: SentSizes::default(), complete: false })
    }

    /// Plans for another demand what [`new`](Self::new) planned, without allocation. After an error the sizes
    /// serve no plan until they are planned again.
    ///
    /// Endpoints keep the sizes of their last exchange: two `Arc`s in turn are planned through [`Arc::get_mut`].
    /// An endpoint plans for itself by [`Endpoint::begin_v`](crate::Endpoint::begin_v).
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn plan_again(&mut self, demand: &Demand) -> Result<(), PlanError> {
        let Self { ranks, sent, complete } = self;
        *complete = false;
        ranks.iter_mut().try_for_each(|rank| rank.begin(demand.row(rank.found.plan.rank)))?;
        let steps = ranks.iter().map(|rank| rank.found.plan.tags()).max().unwrap_or(0);
        for step in 0..steps {
            sent.clear();
            ranks.iter_mut().for_each(|rank| rank.send(step, sent));
            sent.sort();
            for rank in &mut *ranks {
                let plan = &rank.found.plan;
                for receive in plan.receives(step) {
                    let peer = plan.messages[receive as usize].peer;
                    let heard = sent.take(plan.machine_rank(peer), plan.own_rank());
                    let heard = heard.filter(|sizes| sizes.len() == plan.piece_count(receive));
                    let refused = PlanError::Unpaired { rank: plan.rank, step, peer: Rank(peer) };
                    rank.found.given.extend_from_slice(heard.ok_or(refused)?);
                }
                rank.receive(step);
            }
        }
        ranks.iter_mut().try_for_each(Sizing::finish)?;
        *complete = true;
        Ok(())
    }

    /// The same for what [`of_rank`](Self::of_rank) planned.
    pub(crate) fn plan_rank_again(&mut self, row: &[u64], column: &[u64]) -> Result<(), PlanError> {
        let Self { ranks, sent, complete } = self;
        *complete = false;
        let [rank] = &mut **ranks else { panic!("bug: sizes of several ranks") };
        rank.begin(row.iter().copied())?;
        let plan = Arc::clone(&rank.found.plan);
        plan.check_sizes("output", column.len(), plan.problem.ranks)?;
        for step in 0..plan.tags() {
            sent.clear();
            rank.send(step, sent);
            for receive in plan.receives(step) {
                let mut passes = false;
                plan.pieces(receive, step, 0, |register, _, _| {
                    passes |= rank.found.last_write[register as usize] != 2 * step + 1
                        || register >= plan.problem.ranks;
                    rank.found.given.push(column.get(register as usize).copied().unwrap_or(0));
                });
                if passes {
                    return Err(PlanError::Passes { rank: plan.rank, step });
                }
            }
            rank.receive(step);
        }
        let mut kept = rank.sizes.iter().zip(column).filter(|(given, wanted)| given != wanted);
        let two = kept.next().map(|(&given, &wanted)| (given, wanted));
        rank.finish()?;
        if let Some((given, wanted)) = two {
            return Err(PlanError::OwnBlock { rank: plan.rank, given, wanted });
        }
        *complete = true;
        Ok(())
    }

    /// Checks that every rank can plan for itself, whatever the sizes are.
    ///
    /// # Errors
    /// As [`check_plan`](Self::check_plan), of the first rank that cannot.
    pub fn check_schedule(schedule: &Schedule) -> Result<(), PlanError> {
        let classes = schedule.rule().classes();
        classes
            .representatives()
            .try_for_each(|rank| Self::check_plan(&Arc::new(Plan::new(schedule, rank)?)))
    }

    /// Checks that a rank can plan for itself, whatever the sizes are.
    ///
    /// # Errors
    /// As [`of_rank`](Self::of_rank).
    pub fn check_plan(plan: &Arc<Plan>) -> Result<(), PlanError> {
        let ones = |blocks: u32| vec![1; blocks as usize];
        let (row, column) = (ones(plan.input_blocks()), ones(plan.problem.ranks));
        Self::of_rank(plan, &row, &column).map(|_| ())
    }

    /// Bytes that sizes and places take beside a plan, whatever the sizes are.
    #[must_use]
    pub fn bytes_beside(plan: &Plan) -> usize {
        let registers = plan.origin.len();
        let copied: usize = plan.moves.iter().map(|moves| moves.registers.len()).sum();
        let pieces = |messages: Range<u32>| -> usize {
            messages.map(|message| plan.piece_count(message)).sum()
        };
        let received: usize = (0..plan.tags()).map(|step| pieces(plan.receives(step))).sum();
        let sent = (0..plan.tags()).map(|step| pieces(plan.sends(step))).max().unwrap_or(0);
        let offsets = plan.input_blocks() + plan.problem.ranks + 3;
        let words = offsets as usize + registers + copied + received + sent + plan.moves.len();
        // An endpoint keeps the sizes that registers hold, and so does planning.
        8 * (words + 2 * registers) + 4 * registers + size_of::<Weight>() * plan.messages.len()
    }

    /// Those of one rank.
    ///
    /// # Panics
    /// Sizes that were planned for another plan.
    pub(crate) fn of(&self, plan: &Plan) -> &RankSizes {
        assert!(self.serves(plan), "block sizes that were planned for this plan");
        self.known(plan)
    }

    /// Whether they were planned for this plan or an equal one.
    pub(crate) fn serves(&self, plan: &Plan) -> bool {
        let planned = self.rank(plan).filter(|_| self.complete).map(|rank| &*rank.plan);
        planned.is_some_and(|planned| std::ptr::eq(planned, plan) || planned == plan)
    }

    /// Whether they were planned for this plan alone.
    pub(crate) fn serves_only(&self, plan: &Plan) -> bool {
        self.ranks.len() == 1 && self.serves(plan)
    }

    /// Those of a rank whose plan they [serve](Self::serves).
    pub(crate) fn known(&self, plan: &Plan) -> &RankSizes {
        self.rank(plan).expect("bug: block sizes of another rank")
    }

    fn rank(&self, plan: &Plan) -> Option<&RankSizes> {
        let of = |one: &Sizing| one.found.plan.own_rank();
        let at = self.ranks.binary_search_by_key(&plan.own_rank(), of).ok()?;
        Some(&self.ranks[at].found)
    }
}

/// Lengths and places of blocks for one rank's plan.
#[derive(Debug)]
pub(crate) struct RankSizes {
    plan: Arc<Plan>,
    /// Where each block of the input begins, and where the last ends.
    input: Vec<u64>,
    /// The same of the output.
    output: Vec<u64>,
    /// The same of the registers' room in the workspace.
    work: Vec<u64>,
    /// By register, the time of the last write, as [`Plan`] counts times.
    last_write: Vec<u32>,
    messages: Vec<Weight>,
    /// Sizes of what registers are given, in the order of the plan's copies and receives.
    given: Vec<u64>,
    /// Where those of each of the plan's moves begin.
    moved: Vec<usize>,
    scratch: u64,
    staging: u64,
}

#[derive(Clone, Copy, Debug)]
struct Weight {
    bytes: u64,
    /// Of a receive, where the sizes of its pieces begin.
    first: u32,
    staged: bool,
}

impl RankSizes {
    /// Where each block of the input begins, and where the last ends.
    pub(crate) fn input_offsets(&self) -> &[u64] {
        &self.input
    }

    /// Where each block of the output begins, and where the last ends.
    pub(crate) fn output_offsets(&self) -> &[u64] {
        &self.output
    }

    /// Bytes of workspace: blocks that pass through, then staging memory.
    pub(crate) fn workspace_bytes(&self) -> u64 {
        self.register_bytes() + self.scratch.max(self.staging)
    }

    /// Bytes of the registers' room in the workspace, the part of it that is not staging.
    pub(crate) fn register_bytes(&self) -> u64 {
        self.work.last().copied().unwrap_or(0)
    }

    /// The sizes that the registers hold at first.
    pub(crate) fn begin(&self, sizes: &mut Vec<u64>) {
        let origins = self.plan.origin.iter();
        sizes.clear();
        sizes.extend(origins.map(|&block| self.block_bytes(block)));
    }

    /// What the messages of a step have given the registers.
    pub(crate) fn receive(&self, step: u32, sizes: &mut [u64]) {
        for receive in self.plan.receives(step) {
            let mut next = self.messages[receive as usize].first as usize;
            self.plan.pieces(receive, step, 0, |register, _, _| {
                sizes[register as usize] = self.given[next];
                next += 1;
            });
        }
    }

    /// What the copies of a step give them.
    pub(crate) fn copied(&self, step: u32, sizes: &mut [u64]) {
        let Some((i, moves)) = self.plan.moves(step) else { return };
        for (&(_, to), &bytes) in moves.registers.iter().zip(&self.given[self.moved[i]..]) {
            sizes[to as usize] = bytes;
        }
    }

    /// Whether a message passes through staging memory, and its bytes.
    pub(crate) fn message(&self, message: u32) -> (bool, u64) {
        let weight = self.messages[message as usize];
        (weight.staged, weight.bytes)
    }

    fn block_bytes(&self, block: u32) -> u64 {
        if block == NONE { 0 } else { self.input[block as usize + 1] - self.input[block as usize] }
    }

    /// Where a register's block is read at a time.
    pub(crate) fn read(&self, register: u32, bytes: u64, time: u32) -> Region {
        if self.plan.untouched(register, time) {
            let offset = self.input[self.plan.origin[register as usize] as usize];
            return Region { buffer: Buffer::Input, offset, bytes };
        }
        self.place(register, bytes, self.last_write[register as usize] < time)
    }

    /// Where a register's block is written at a time; [`NONE`] for blocks that are kept.
    pub(crate) fn write(&self, register: u32, bytes: u64, time: u32) -> Region {
        self.place(register, bytes, self.last_write[register as usize] == time)
    }

    fn place(&self, register: u32, bytes: u64, last: bool) -> Region {
        let at = register as usize;
        if last && register < self.plan.problem.ranks {
            Region { buffer: Buffer::Output, offset: self.output[at], bytes }
        } else {
            Region { buffer: Buffer::Work, offset: self.work[at], bytes }
        }
    }

    /// The regions of a message of a step in order, those that touch joined, those of no bytes left
    /// out; `sizes` are the registers' before its messages.
    pub(crate) fn regions(&self, message: u32, step: u32, sizes: &[u64], each: impl FnMut(Region)) {
        let sends = self.plan.sends(step).contains(&message);
        let mut next = self.messages[message as usize].first as usize;
        let mut joined = Joined { last: None, each };
        self.plan.pieces(message, step, 0, |register, _, _| {
            let region = if sends {
                self.read(register, sizes[register as usize], 2 * step + 1)
            } else {
                next += 1;
                self.write(register, self.given[next - 1], 2 * step + 1)
            };
            if region.bytes > 0 {
                joined.push(region);
            }
        });
        joined.end();
    }
}

/// The last of some offsets.
fn last(offsets: &[u64]) -> u128 {
    offsets.last().map_or(0, |&end| end.into())
}

impl Plan {
    /// Bytes that the rank sends.
    #[must_use]
    pub fn sent_bytes(&self, sizes: impl Into<BlockSizes>) -> u128 {
        let sends = (0..self.tags()).flat_map(|step| self.sends(step));
        match sizes.into() {
            BlockSizes::Equal(bytes) => {
                sends.map(|send| u128::from(self.message_bytes(send, bytes))).sum()
            }
            BlockSizes::Planned(sizes) => {
                let sizes = sizes.of(self);
                sends.map(|send| u128::from(sizes.message(send).1)).sum()
            }
        }
    }

    /// Bytes of the input; 0 in place.
    #[must_use]
    pub fn input_bytes(&self, sizes: impl Into<BlockSizes>) -> u128 {
        match sizes.into() {
            _ if self.aside.is_some() => 0,
            BlockSizes::Equal(bytes) => u128::from(self.input_blocks()) * u128::from(bytes),
            BlockSizes::Planned(sizes) => last(sizes.of(self).input_offsets()),
        }
    }

    /// Bytes of the output, a block from every rank.
    #[must_use]
    pub fn output_bytes(&self, sizes: impl Into<BlockSizes>) -> u128 {
        match sizes.into() {
            BlockSizes::Equal(bytes) => u128::from(self.problem.ranks) * u128::from(bytes),
            BlockSizes::Planned(sizes) => last(sizes.of(self).output_offsets()),
        }
    }

    /// Bytes of workspace: registers behind the output, blocks set aside, then staging memory for
    /// the messages of a step that lie in several places.
    #[must_use]
    pub fn workspace_bytes(&self, sizes: impl Into<BlockSizes>) -> u128 {
        let block_bytes = match sizes.into() {
            BlockSizes::Equal(bytes) => bytes,
            BlockSizes::Planned(sizes) => return sizes.of(self).workspace_bytes().into(),
        };
        let staged = (0..self.tags()).map(|step| {
            let messages = self.step_messages(step);
            let messages = messages.filter(|&m| self.messages[m as usize].slots.is_staged());
            messages.map(|m| u128::from(self.message_bytes(m, block_bytes))).sum::<u128>()
        });
        // Local copies take the same memory.
        let copied = self.moves.iter().filter(|moves| moves.scratch);
        let scratch = copied.map(|moves| moves.registers.len() as u128 * u128::from(block_bytes));
        self.register_bytes(block_bytes) + staged.chain(scratch).max().unwrap_or(0)
    }

    /// Bytes of the registers behind the output and of the blocks set aside, the part of the
    /// workspace that is not staging.
    #[must_use]
    pub fn register_bytes(&self, sizes: impl Into<BlockSizes>) -> u128 {
        let block_bytes = match sizes.into() {
            BlockSizes::Equal(bytes) => bytes,
            BlockSizes::Planned(sizes) => return sizes.of(self).register_bytes().into(),
        };
        let aside = self.aside.as_ref().map_or(0, Vec::len) as u128;
        (u128::from(self.extra) + aside) * u128::from(block_bytes)
    }

    /// Blocks that a message carries.
    fn piece_count(&self, message: u32) -> usize {
        let slots = self.messages[message as usize].slots;
        slots.number().map_or_else(|set| self.sets[set].whole as usize, |_| 1)
    }

    fn check_sizes(&self, what: &'static str, sizes: usize, blocks: u32) -> Result<(), PlanError> {
        if sizes != blocks as usize {
            return Err(PlanError::Sizes { rank: self.rank, what, sizes, blocks });
        }
        Ok(())
    }
}
