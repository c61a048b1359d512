//! When each rank copies, sends and receives, step by step.

use topocoll_schedule::RankClasses;
use topocoll_topology::{Machine, Rank};

use super::clock::{Clock, Picoseconds, picoseconds};
use super::ranks::Simulated;
use super::settings::Settings;
use crate::error::check_ranks;
use crate::traffic::{Share, Traffic};
use crate::{AnalysisError, symmetry};

/// One step of one rank. Times count from the beginning of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RankStep {
    /// When the rank begins the step. It copies first.
    pub begin: Picoseconds,
    /// When its copies are done.
    pub copied: Picoseconds,
    /// When its last message is delivered; not before `copied`.
    pub sent: Picoseconds,
    /// When the first message to it is posted, possibly before `begin`; `None` if it receives none.
    pub posted: Option<Picoseconds>,
    /// When the last message to it is delivered, possibly before `begin`; `begin` if it receives none.
    pub received: Picoseconds,
}

impl RankStep {
    pub(super) const NONE: Self = Self { begin: 0, copied: 0, sent: 0, posted: None, received: 0 };

    pub(super) fn begins(&mut self, begin: Picoseconds, copied: Picoseconds) {
        (self.begin, self.copied, self.sent) = (begin, copied, self.sent.max(copied));
        if self.posted.is_none() {
            self.received = begin;
        }
    }

    pub(super) fn is_posted(&mut self, at: Picoseconds) {
        self.posted = Some(self.posted.map_or(at, |first| first.min(at)));
    }

    /// When the rank goes on.
    #[must_use]
    pub fn end(&self) -> Picoseconds {
        self.sent.max(self.received)
    }
}

/// The steps of ranks. Equivalent ranks do the same at the same time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timeline {
    classes: RankClasses,
    every: bool,
    steps: u32,
    /// By class and step.
    rows: Vec<RankStep>,
}

impl Timeline {
    pub(super) fn new(ranks: &Simulated, rows: Vec<RankStep>) -> Self {
        let every = ranks.method() == super::Ranks::Every;
        let steps = (rows.len() / ranks.count() as usize) as u32;
        Self { classes: ranks.classes().clone(), every, steps, rows }
    }

    /// One step of a rank.
    #[must_use]
    pub fn of(&self, rank: Rank, step: u32) -> &RankStep {
        let class = match self.every {
            true => rank.index(),
            false => self.classes.class_of(rank) as usize,
        };
        &self.rows[class * self.steps as usize + step as usize]
    }
}

/// The timeline of the steps model: all ranks begin a step together, all messages are posted after the
/// longest copy of the step, and each takes the time that it takes alone. `steps` has the seconds of
/// each step, and those of its longest copy.
///
/// # Errors
/// Traffic of another machine.
pub fn steps_timeline(
    traffic: &dyn Traffic,
    machine: &Machine,
    steps: &[[f64; 2]],
) -> Result<Timeline, AnalysisError> {
    check_ranks(traffic.nodes(), machine)?;
    let classes = symmetry::common(&traffic.classes(), &*machine.topology);
    let clock = Clock::new(machine, &Settings::default(), traffic.block_bytes());
    let mut rows = vec![RankStep::NONE; classes.count() as usize * steps.len()];
    let (mut share, mut now) = (Share::default(), 0.0);
    for (step, [seconds, copying]) in steps.iter().enumerate() {
        let (begin, posted) = (picoseconds(now), picoseconds(now + copying));
        for class in 0..classes.count() {
            let rank = classes.representative(class);
            traffic.share(rank, step as u32, &mut share);
            let at = |class: u32| class as usize * steps.len() + step;
            rows[at(class)].begins(begin, begin + clock.rearrangement(share.copied));
            for send in &share.sends {
                let delivered = posted
                    + clock.startup((rank, send.to), &send.route, send.bytes)
                    + clock.transmission(rank, send.to, &send.route, send.bytes)
                    + clock.propagation(rank, &send.route);
                let sender = &mut rows[at(class)];
                sender.sent = sender.sent.max(delivered);
                let receiver = &mut rows[at(classes.class_of(send.to))];
                receiver.is_posted(posted);
                receiver.received = receiver.received.max(delivered);
            }
        }
        now += seconds;
    }
    Ok(Timeline { every: false, classes, steps: steps.len() as u32, rows })
}
