//! What the driver asks of a network, whatever the model inside.

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
    /// Its transmission where nothing contends.
    pub(crate) transmission: Picoseconds,
    /// When it was handed to the network, its startup over.
    pub(crate) handed: Picoseconds,
    /// Why it was sent no earlier.
    pub(crate) cause: Cause,
}

/// What one directed link did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LinkUse {
    /// Bytes carried.
    pub bytes: u128,
    /// Messages carried.
    pub messages: u64,
    /// Time that messages stood still because they waited for the link; not counted by the flit model.
    pub waited: Picoseconds,
}

/// What a network is to hold.
pub(crate) struct Contents {
    /// Messages under way at once.
    pub(crate) live: u128,
    /// Most links on a route.
    pub(crate) hops: u64,
    /// Messages of a run.
    pub(crate) messages: u128,
}

/// A message that can never move: it waits for a channel that the next one in the circle holds.
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

/// The time that a message kept a link, for traces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Interval {
    /// The link's number.
    pub link: LinkId,
    /// From when.
    pub start: Picoseconds,
    /// Until when.
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

/// Messages in, messages out.
pub(crate) trait Network {
    /// Hands over a message at `message.handed`, not before the last delivery.
    fn post(&mut self, message: InFlight, route: &Route);

    /// The next delivery; none where nothing can move any more. Also none when `stop` says so,
    /// which is asked now and then.
    fn next(&mut self, stop: &dyn Fn() -> bool) -> Option<(Picoseconds, InFlight)>;

    /// Messages posted and not delivered.
    fn waiting(&self) -> usize;

    /// The circle of messages that wait for each other, where nothing can move any more.
    fn circle(&self) -> Vec<Held>;

    /// The links, by number; empty off grids.
    fn links(&self) -> &[LinkUse];

    /// The causes of the messages.
    fn chain(&mut self) -> &mut Chain;

    /// A channel of the chain as people name it.
    fn channel(&self, number: u64) -> String;

    /// Takes what was recorded for a trace.
    fn take_intervals(&mut self) -> Vec<Interval>;
}
