//! Events of worms.

/// A kind of event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The header asks for its next channel.
    Head,
    /// The tail passes its next channel.
    Tail,
    /// A waiting worm has filled its buffers.
    Still,
}

/// An event, and the pool of the channel that the header asks for or that the tail passes: it can be
/// read at once with the worm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Event {
    pub(super) kind: Kind,
    pub(super) worm: u32,
    pub(super) pool: u32,
}
