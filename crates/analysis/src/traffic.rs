//! Traffic: the messages of a schedule or a pattern.

use topocoll_schedule::{RankClasses, Schedule, Step};
use topocoll_topology::{Machine, Rank, Route};

/// A message to be sent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Posted {
    /// The node that receives it; the sender's own only in patterns.
    pub to: Rank,
    /// Its length.
    pub bytes: u64,
    /// Its route; empty without numbered links.
    pub route: Route,
    /// Whether it may take any other shortest route, as the route is the machine's own.
    pub free: bool,
    /// Bytes that must be packed before it can be sent.
    pub packed: u64,
    /// Flit times from the beginning of the step to its sending.
    pub cycle: u64,
}

/// One node's share of one step.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Share {
    /// Bytes copied before anything is sent.
    pub copied: u128,
    /// Messages sent.
    pub sends: Vec<Posted>,
    /// The number of messages received.
    pub receives: u32,
}

/// Messages by node and step, computed when they are needed. Implement it for your own traffic. New
/// methods will have defaults.
pub trait Traffic: Sync {
    /// Nodes of the machine.
    fn nodes(&self) -> u32;

    /// Number of steps.
    fn steps(&self) -> u32;

    /// Overwrites `out` with the share of `node` in `step`.
    fn share(&self, node: Rank, step: u32, out: &mut Share);

    /// Classes of nodes whose messages differ only by a translation.
    fn classes(&self) -> RankClasses {
        RankClasses::distinct(self.nodes())
    }

    /// The schedule of this traffic, if node i is its rank i.
    fn schedule(&self) -> Option<&Schedule> {
        None
    }

    /// Bytes of the blocks that are copied.
    fn block_bytes(&self) -> u64 {
        self.schedule().map_or(1, |of| of.problem.block_bytes)
    }

    /// The flit times for which nodes send at a rate, if they do.
    fn sends_for(&self) -> Option<u64> {
        None
    }
}

impl<T: Traffic + ?Sized> Traffic for &T {
    fn nodes(&self) -> u32 {
        (**self).nodes()
    }

    fn steps(&self) -> u32 {
        (**self).steps()
    }

    fn share(&self, node: Rank, step: u32, out: &mut Share) {
        (**self).share(node, step, out);
    }

    fn classes(&self) -> RankClasses {
        (**self).classes()
    }

    fn schedule(&self) -> Option<&Schedule> {
        (**self).schedule()
    }

    fn block_bytes(&self) -> u64 {
        (**self).block_bytes()
    }

    fn sends_for(&self) -> Option<u64> {
        (**self).sends_for()
    }
}

/// A schedule on its own machine: rank i on node i.
#[derive(Clone, Copy, Debug)]
pub struct Scheduled<'a> {
    schedule: &'a Schedule,
    machine: &'a Machine,
}

impl<'a> Scheduled<'a> {
    /// The messages of `schedule` on `machine`.
    ///
    /// # Panics
    /// A schedule of other ranks than the machine's.
    #[must_use]
    pub fn new(schedule: &'a Schedule, machine: &'a Machine) -> Self {
        assert_eq!(
            schedule.problem.ranks,
            machine.ranks(),
            "a schedule of other ranks than the machine's"
        );
        Self { schedule, machine }
    }
}

impl Traffic for Scheduled<'_> {
    fn nodes(&self) -> u32 {
        self.machine.ranks()
    }

    fn steps(&self) -> u32 {
        self.schedule.rule().steps()
    }

    fn share(&self, node: Rank, step: u32, out: &mut Share) {
        SHARED.with_borrow_mut(|does| {
            self.schedule.rule().step(node, step, does);
            share_of(self.schedule, self.machine, does, out, |send, route| {
                let mut own = Route::default();
                route.clone_from(send.route_from(node, &*self.machine.topology, &mut own));
                (send.peer, !send.route.is_empty())
            });
        });
    }

    fn classes(&self) -> RankClasses {
        self.schedule.rule().classes()
    }

    fn schedule(&self) -> Option<&Schedule> {
        Some(self.schedule)
    }
}

thread_local! {
    /// A step whose memory is reused.
    pub(crate) static SHARED: std::cell::RefCell<Step> = std::cell::RefCell::default();
}

/// Turns a rank's step into a node's share; `place` gives the receiving node and the route, and says
/// whether that is the route of the schedule.
pub(crate) fn share_of(
    schedule: &Schedule,
    machine: &Machine,
    does: &Step,
    out: &mut Share,
    mut place: impl FnMut(&topocoll_schedule::Transfer, &mut Route) -> (Rank, bool),
) {
    let block_bytes = schedule.problem.block_bytes;
    out.copied = does.copies.iter().map(|copy| copy.to.bytes(block_bytes)).sum();
    out.receives = does.receives.len() as u32;
    out.sends.resize_with(does.sends.len(), Posted::default);
    for (send, posted) in does.sends.iter().zip(&mut out.sends) {
        let (to, given) = place(send, &mut posted.route);
        (posted.to, posted.free) = (to, !given);
        posted.bytes = u64::try_from(send.slots.bytes(block_bytes)).unwrap_or(u64::MAX);
        let packs = !machine.timing.gather && !send.slots.is_contiguous(block_bytes);
        posted.packed = if packs { posted.bytes } else { 0 };
        posted.cycle = 0;
    }
}
