//! The interface between the driver and network models.

use topocoll_topology::{LinkId, Rank, Route};

use super::chain::{Cause, Chain};
use super::clock::Picoseconds;

/// A message in the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct InFlight {
    pub(crate) from: Rank,
    pub(crate) to: Rank,
    pub(crate) step: u32,
    pub(crate) bytes: u64,
    /// Its transmission without contention.
    pub(crate) transmission: Picoseconds,
    /// When it entered the network, after its startup.
    pub(crate) handed: Picoseconds,
    /// The cause that delayed its sending.
    pub(crate) cause: Cause,
}

/// The use of one directed link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LinkUse {
    /// Bytes carried.
    pub bytes: u128,
    /// Messages carried.
    pub messages: u64,
    /// Time that messages waited for the link; not counted by the flit model.
    pub waited: Picoseconds,
}

/// The sizes that determine the memory of a network.
pub(crate) struct Contents {
    /// The most messages in flight at once.
    pub(crate) live: u128,
    /// Most links on a route.
    pub(crate) hops: u64,
    /// Messages of a run.
    pub(crate) messages: u128,
}

/// A deadlocked message: it waits for a channel that the next message of the cycle holds.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Held {
    /// The sender.
    pub from: Rank,
    /// The receiver.
    pub to: Rank,
    /// The step it belongs to.
    pub step: u32,
    /// The channel that it waits for.
    pub waits_for: String,
}

/// The time during which a message held a link, for traces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Interval {
    /// The link's number.
    pub link: LinkId,
    /// The beginning.
    pub start: Picoseconds,
    /// The end.
    pub end: Picoseconds,
    /// The sender.
    pub from: Rank,
    /// The receiver.
    pub to: Rank,
    /// The step.
    pub step: u32,
    /// The length.
    pub bytes: u64,
}

/// A network model: takes messages and delivers them.
pub(crate) trait Network {
    /// Takes a message at `message.handed`, which is not before the last delivery. A `free` message may
    /// take any other shortest route.
    fn post(&mut self, message: InFlight, route: &Route, free: bool);

    /// The next delivery; `None` if no message can move, or if `stop`, which is called now and
    /// then, returns true.
    fn next(&mut self, stop: &dyn Fn() -> bool) -> Option<(Picoseconds, InFlight)>;

    /// The time up to which it has moved messages.
    fn now(&self) -> Picoseconds;

    /// The number of messages posted and not delivered.
    fn waiting(&self) -> usize;

    /// The cycle of messages that wait for each other, in a deadlock.
    fn circle(&self) -> Vec<Held>;

    /// The use of the links by number; empty without numbered links. Bytes that messages in flight have
    /// not moved over a link are not counted once [`next`](Self::next) returned `None`.
    fn links(&self) -> &[LinkUse];

    /// The causes of the messages.
    fn chain(&mut self) -> &mut Chain;

    /// The name of a channel of the chain, for reports.
    fn channel(&self, number: u64) -> String;

    /// The channel that a translation of ranks moves a channel of the chain to.
    fn moved(&self, channel: u64, _moves: &dyn Fn(Rank) -> Rank) -> u64 {
        channel
    }

    /// Takes the intervals recorded for a trace.
    fn take_intervals(&mut self) -> Vec<Interval>;
}

/// The cycle that `next` leads into from `first`; the whole walk if it ends.
pub(super) fn cycle<T: Copy + PartialEq>(
    first: Option<T>,
    next: impl Fn(T) -> Option<T>,
) -> Vec<T> {
    let (mut order, mut at) = (Vec::new(), first);
    while let Some(now) = at {
        if let Some(start) = order.iter().position(|&seen| seen == now) {
            order.drain(..start);
            break;
        }
        order.push(now);
        at = next(now);
    }
    order
}
