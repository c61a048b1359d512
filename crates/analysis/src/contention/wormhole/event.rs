//! Events of worms.

/// A kind of event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The header asks for its next channel.
    Head,
    /// The tail passes its next channel.
    Tail,
    /// A waiting worm has filled its buffers.
    Still,
}

/// A kind, a worm, and a turn number that outdates the event, in few bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    pub(super) worm: u32,
    kind_and_turn: u32,
}

impl Event {
    pub(super) fn new(kind: Kind, worm: u32, turn: u32) -> Self {
        Self { worm, kind_and_turn: turn << 2 | kind as u32 }
    }

    pub(super) fn kind(self) -> Kind {
        match self.kind_and_turn & 3 {
            0 => Kind::Head,
            1 => Kind::Tail,
            _ => Kind::Still,
        }
    }

    /// Whether `turn` is still that of the event.
    pub(super) fn is_of(self, turn: u32) -> bool {
        self.kind_and_turn >> 2 == turn << 2 >> 2
    }
}
