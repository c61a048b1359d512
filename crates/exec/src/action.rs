//! What an endpoint asks its driver to do.

use topocoll_topology::Rank;

use crate::Region;

/// Identifies an outstanding message of one exchange of one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Token(pub u64);

/// A message that an endpoint sends or receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct EndpointMessage {
    /// The argument of [`Endpoint::complete`](crate::Endpoint::complete).
    pub token: Token,
    /// The rank at the other end.
    pub peer: Rank,
    /// The same at both ends: the step.
    pub tag: u32,
    /// The bytes to send, or the place to receive them in.
    pub region: Region,
    /// Whether the region is staging memory, filled by a [`MemoryCopy::Pack`] before or read by a
    /// [`MemoryCopy::Unpack`] after. A driver may keep such bytes elsewhere.
    pub staged: bool,
}

/// Bytes to be copied within a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryCopy {
    /// The blocks that the rank keeps, from input to output; in place, those that are set aside.
    Keep,
    /// The copies of a step that renaming registers does not replace.
    Local,
    /// The pieces of a message that will be sent, into its region.
    Pack(EndpointMessage),
    /// The pieces of a message that has arrived, out of its region.
    Unpack(EndpointMessage),
}

/// The next action of a rank. Exhaustive: a driver performs all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Copies; done when [`poll`](crate::Endpoint::poll) is called again.
    Copy(MemoryCopy),
    /// Starts sending. The region stays as it is until the token is given to `complete`.
    Send(EndpointMessage),
    /// Starts receiving. The region belongs to the message until the token is given to `complete`.
    Receive(EndpointMessage),
    /// Nothing before a message completes.
    Wait,
    /// The output is complete, and nothing is outstanding.
    Done,
}
