//! The steps of one rank, in bytes and time.

use topocoll_schedule::Step;
use topocoll_topology::{Rank, Route};

use super::Source;
use crate::contention::{Picoseconds, Scheduled, Settings, Share, Traffic as _};

use crate::contention::Clock;

/// A message that a rank sends.
pub(super) struct Sent {
    pub(super) to: Rank,
    pub(super) bytes: u64,
    /// Bytes that are packed first.
    pub(super) packed: u64,
    /// Its route; empty without numbered links.
    pub(super) route: Route,
    /// The time from the beginning of the step: copies, packing and startup.
    pub(super) begins: Picoseconds,
}

/// The share of one rank in one step at a time.
pub(super) struct Local<'a> {
    source: &'a Source<'a>,
    scheduled: Scheduled<'a>,
    clock: Clock<'a>,
    share: Share,
    does: Step,
    /// The messages sent in the step, ordered by when they begin.
    pub(super) sends: Vec<Sent>,
    /// Senders and bytes.
    pub(super) receives: Vec<(Rank, u64)>,
    /// The time of the copies in a step that sends nothing.
    pub(super) copies: Picoseconds,
}

impl<'a> Local<'a> {
    pub(super) fn new(source: &'a Source<'a>) -> Self {
        let block_bytes = source.schedule.problem.block_bytes;
        Self {
            source,
            scheduled: Scheduled::new(source.schedule, source.machine),
            clock: Clock::new(source.machine, &Settings::default(), block_bytes),
            share: Share::default(),
            does: Step::default(),
            sends: Vec::new(),
            receives: Vec::new(),
            copies: 0,
        }
    }

    /// Reads a step of a rank.
    pub(super) fn look(&mut self, rank: Rank, step: u32) {
        let block_bytes = self.source.schedule.problem.block_bytes;
        self.scheduled.share(rank, step, &mut self.share);
        self.source.schedule.rule().step(rank, step, &mut self.does);
        self.copies = self.clock.rearrangement(self.share.copied);
        self.sends.clear();
        for send in &mut self.share.sends {
            let route = std::mem::take(&mut send.route);
            let before = self.clock.rearrangement(send.packed.into())
                + self.clock.startup((rank, send.to), &route, send.bytes);
            self.sends.push(Sent {
                to: send.to,
                bytes: send.bytes,
                packed: send.packed,
                route,
                begins: self.copies.saturating_add(before),
            });
        }
        self.sends.sort_by_key(|send| send.begins);
        let receives = self.does.receives.iter();
        self.receives.clear();
        self.receives.extend(receives.map(|receive| {
            let bytes = receive.slots.bytes(block_bytes);
            (receive.peer, u64::try_from(bytes).unwrap_or(u64::MAX))
        }));
    }

    /// Whether the rank neither sends, receives nor copies.
    pub(super) fn is_idle(&self) -> bool {
        self.sends.is_empty() && self.receives.is_empty() && self.copies == 0
    }
}
