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

/// A kind, a worm, a turn number that outdates the event, and the pool of the channel that the header
/// asks for or that the tail passes: it can be read at once with the worm.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    pub(super) worm: u32,
    pub(super) pool: u32,
    kind_and_turn: u32,
}

impl Event {
    /// The header asks for a channel of a pool.
    pub(super) fn head(worm: u32, pool: u32) -> Self {
        Self { worm, pool, kind_and_turn: Kind::Head as u32 }
    }

    /// The tail passes a channel of a pool.
    pub(super) fn tail(worm: u32, pool: u32, turn: u32) -> Self {
        Self { worm, pool, kind_and_turn: turn << 2 | Kind::Tail as u32 }
    }

    /// The worm fills its buffers while it waits for a channel of a pool.
    pub(super) fn still(worm: u32, pool: u32, turn: u32) -> Self {
        Self { worm, pool, kind_and_turn: turn << 2 | Kind::Still as u32 }
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
