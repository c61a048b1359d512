//! Counts and messages of an exchange whose block sizes are a demand matrix.

use rayon::prelude::*;
use topocoll_schedule::{Demand, Schedule, SlotSet, Step};
use topocoll_topology::{Machine, Rank, parallel};

use crate::AnalysisError;
use crate::count_step::Counter;
use crate::error::{check_memory, check_named, check_work};
use crate::pairs::ByPeer;
use crate::step_count::{Counts, StepCount, Sums};
use crate::traffic::{Scheduled, Share, Traffic};
use crate::visit::Weights;

/// The most slots visited: some seconds.
const WORK_LIMIT: u128 = 1 << 30;

/// Slots and steps that [`count`] visits: those of a rank in the middle times the ranks.
pub(crate) fn counting_work(schedule: &Schedule) -> u128 {
    let ranks = schedule.problem.ranks;
    let mut does = Step::default();
    let slots = (0..schedule.rule().steps()).map(|step| {
        schedule.rule().step(Rank(ranks / 2), step, &mut does);
        let copied: u64 = does.copies.iter().map(|copy| copy.to.len()).sum();
        let sent: u64 = does.sends.iter().map(|send| send.slots.len()).sum();
        1 + u128::from(copied) + u128::from(sent)
    });
    slots.sum::<u128>() * u128::from(ranks)
}

/// [`count_steps`](crate::count_steps) for a demand matrix: visits every message of every rank.
pub(crate) fn count(
    schedule: &Schedule,
    machine: &Machine,
    demand: &Demand,
    memory: u128,
    mut each: impl FnMut(u32, &StepCount),
) -> Result<Counts, AnalysisError> {
    check(schedule, memory)?;
    let counter = Counter::of_sizes(schedule, machine)?;
    counter.fits(0, memory)?;
    let (mut scratch, mut sums) = (counter.scratch(), Sums::default());
    follow(schedule, demand, |step, sizes, slots| {
        let one = counter.step(step, &mut scratch, Weights::Each(sizes, slots));
        each(step, &one);
        sums.add(&one);
    });
    Ok(sums.close(schedule, machine))
}

/// Checks that the sizes of whole blocks can be followed.
fn check(schedule: &Schedule, memory: u128) -> Result<(), AnalysisError> {
    let (rule, ranks) = (schedule.rule(), schedule.problem.ranks);
    check_named(schedule)?;
    if let Some(&cut) = rule.cuts().first() {
        return Err(AnalysisError::SplitDemand { cut });
    }
    // Messages in flight take at most as much again.
    let needed = 2 * 8 * u128::from(rule.slots()) * u128::from(ranks);
    check_memory("the sizes in all slots", needed, memory)?;
    check_work("following the sizes of blocks", counting_work(schedule), WORK_LIMIT)
}

/// Calls `each` for every step with the sizes in the slots of all ranks after its copies, and the slots of a
/// rank.
fn follow(schedule: &Schedule, demand: &Demand, mut each: impl FnMut(u32, &[u64], usize)) {
    let (rule, ranks) = (schedule.rule(), schedule.problem.ranks);
    let slots = rule.slots() as usize;
    let mut sizes = vec![0; slots * ranks as usize];
    parallel::chunks_mut(&mut sizes, slots.max(1)).enumerate().for_each(|(rank, sizes)| {
        for (slot, size) in sizes.iter_mut().enumerate() {
            let block = rule.initial_block(Rank(rank as u32), slot as u64);
            *size = block.map_or(0, |block| demand.bytes(block));
        }
    });
    let mut follower = Follower { schedule, slots, sent: vec![Sent::default(); ranks as usize] };
    for step in 0..rule.steps() {
        follower.copy(step, &mut sizes);
        each(step, &sizes, slots);
        follower.exchange(step, &mut sizes);
    }
}

/// The messages of a schedule whose block sizes are a demand matrix: rank i on node i. Messages of no bytes are
/// not sent.
#[derive(Debug)]
pub struct ScheduledSizes<'a> {
    schedule: &'a Schedule,
    on: Scheduled<'a>,
    /// By step, then rank: where its messages begin, what it copies, and what it receives.
    shares: Vec<(usize, u64, u32)>,
    /// The bytes of each message.
    messages: Vec<u64>,
}

impl<'a> ScheduledSizes<'a> {
    /// The messages of `schedule` on `machine` for these sizes.
    ///
    /// # Errors
    /// A schedule without blocks or one that splits them, or too much memory or work.
    ///
    /// # Panics
    /// A schedule of other ranks than the machine's or the demand's.
    pub fn new(
        schedule: &'a Schedule,
        machine: &'a Machine,
        demand: &Demand,
        memory: u128,
    ) -> Result<Self, AnalysisError> {
        let (rule, ranks) = (schedule.rule(), schedule.problem.ranks);
        check(schedule, memory)?;
        let steps = u128::from(rule.steps());
        let needed = 24 * steps * u128::from(ranks) + 16 * counting_work(schedule);
        check_memory("the sizes of all messages", needed, memory)?;
        let (mut shares, mut messages, mut does) = (Vec::new(), Vec::new(), Step::default());
        follow(schedule, demand, |step, sizes, slots| {
            let first = shares.len();
            shares.resize(first + ranks as usize, (0, 0, 0));
            for rank in 0..ranks as usize {
                let own = &sizes[rank * slots..][..slots];
                let bytes =
                    |of: &SlotSet| of.slots().map(|(slot, _)| own[slot as usize]).sum::<u64>();
                rule.step(Rank(rank as u32), step, &mut does);
                shares[first + rank].0 = messages.len();
                shares[first + rank].1 = does.copies.iter().map(|copy| bytes(&copy.to)).sum();
                for send in &does.sends {
                    let bytes = bytes(&send.slots);
                    shares[first + send.peer.index()].2 += u32::from(bytes > 0);
                    messages.push(bytes);
                }
            }
        });
        Ok(Self { schedule, on: Scheduled::new(schedule, machine), shares, messages })
    }
}

impl Traffic for ScheduledSizes<'_> {
    fn nodes(&self) -> u32 {
        self.on.nodes()
    }

    fn steps(&self) -> u32 {
        self.on.steps()
    }

    fn share(&self, node: Rank, step: u32, out: &mut Share) {
        self.on.share(node, step, out);
        let place = step as usize * self.nodes() as usize + node.index();
        let (first, copied, receives) = self.shares[place];
        (out.copied, out.receives) = (copied.into(), receives);
        for (send, &bytes) in out.sends.iter_mut().zip(&self.messages[first..]) {
            send.bytes = bytes;
            send.packed = send.packed.min(1) * bytes;
        }
        out.sends.retain(|send| send.bytes > 0);
    }

    fn block_bytes(&self) -> u64 {
        self.schedule.problem.block_bytes
    }
}

/// Moves the sizes as the schedule moves the blocks.
struct Follower<'a> {
    schedule: &'a Schedule,
    slots: usize,
    /// By sender.
    sent: Vec<Sent>,
}

/// The messages of one rank in one step.
#[derive(Clone, Default)]
struct Sent {
    by_peer: ByPeer,
    /// The sizes in each message.
    sizes: Vec<Vec<u64>>,
}

impl Follower<'_> {
    fn copy(&self, step: u32, sizes: &mut [u64]) {
        parallel::chunks_mut(sizes, self.slots.max(1)).enumerate().for_each_init(
            || (Step::default(), Vec::new()),
            |(does, read), (rank, sizes)| {
                self.schedule.rule().step(Rank(rank as u32), step, does);
                read.clear();
                for copy in &does.copies {
                    read.extend(copy.from.slots().map(|(slot, _)| sizes[slot as usize]));
                }
                let written = does.copies.iter().flat_map(|copy| copy.to.slots());
                for ((slot, _), &size) in written.zip(&*read) {
                    sizes[slot as usize] = size;
                }
            },
        );
    }

    fn exchange(&mut self, step: u32, sizes: &mut [u64]) {
        let (rule, slots) = (self.schedule.rule(), self.slots);
        let before = &*sizes;
        parallel::each(&mut self.sent).enumerate().for_each_init(
            Step::default,
            |does, (rank, sent)| {
                rule.step(Rank(rank as u32), step, does);
                let own = &before[rank * slots..][..slots];
                sent.by_peer.list(&does.sends);
                sent.sizes.resize_with(does.sends.len(), Vec::new);
                for (send, sizes) in does.sends.iter().zip(&mut sent.sizes) {
                    sizes.clear();
                    sizes.extend(send.slots.slots().map(|(slot, _)| own[slot as usize]));
                }
            },
        );
        let sent = &self.sent;
        parallel::chunks_mut(sizes, slots.max(1)).enumerate().for_each_init(
            || (Step::default(), ByPeer::default()),
            |(does, receives), (rank, sizes)| {
                let rank = Rank(rank as u32);
                rule.step(rank, step, does);
                receives.list(&does.receives);
                for (place, receive) in does.receives.iter().enumerate() {
                    let from = &sent[receive.peer.index()];
                    let message = receives.other_end(place, rank, receive.peer, &from.by_peer);
                    let message = message.map_or(&[][..], |message| &from.sizes[message]);
                    for ((slot, _), &size) in receive.slots.slots().zip(message) {
                        sizes[slot as usize] = size;
                    }
                }
            },
        );
    }
}
