//! A message in flight, and the position of its tail: what every move needs, apart from the rest.

use smallvec::SmallVec;

use super::NOBODY;
use crate::contention::calendar;
use crate::contention::chain::NONE;
use crate::contention::clock::Picoseconds;
use crate::contention::network::InFlight;

/// Shares of rates that differ by less than one part in 2^30 are equal.
const EQUAL: u32 = 30;

/// What every move needs: one line of the processor's cache.
#[repr(align(64))]
pub(super) struct Worm {
    /// Bytes sent up to `since`, as time at full speed.
    pub(super) phi: Picoseconds,
    pub(super) since: Picoseconds,
    /// Its pace at full speed.
    pub(super) pace: u64,
    /// The pace of the slowest of its channels, at least `pace`.
    pub(super) slowed: u64,
    /// Its length, as time at full speed.
    pub(super) length: Picoseconds,
    /// The numbers of its channels, of those that the header got and of those that the tail passed.
    pub(super) hops: u32,
    pub(super) head: u32,
    pub(super) tail: u32,
    /// The first channel that the tail cannot pass while the header waits; [`u32::MAX`] if it moves.
    pub(super) held: u32,
    /// The event of its tail, if one is planned.
    pub(super) planned: calendar::Number,
    /// Whether it waits with full buffers, so that it does not move.
    pub(super) still: bool,
}

/// What few moves need: what a wait needs first.
#[repr(C, align(64))]
pub(super) struct Rest {
    pub(super) message: InFlight,
    /// The next that waits for the same pool; the first follows the last.
    pub(super) next: u32,
    /// The event of filled buffers, if it waits for that.
    pub(super) fills: calendar::Number,
    /// The time since which it waits, if it does.
    pub(super) waits: Option<Picoseconds>,
    /// The time to fill the space between two headers at full speed.
    pub(super) buffer: Picoseconds,
    /// The channels that hold all of it.
    span: u32,
    /// The paces at which channels carry it, if they slow it down: the channel's times the worms
    /// that move over it. Each with the number of channels.
    shares: SmallVec<[(u64, u32); 2]>,
}

impl Worm {
    pub(super) fn new(message: &InFlight, pace: u64, hops: u32) -> Self {
        Self {
            phi: 0,
            since: message.handed,
            pace,
            slowed: pace,
            length: message.transmission,
            hops,
            head: 0,
            tail: 0,
            held: u32::MAX,
            planned: calendar::NONE,
            still: false,
        }
    }

    /// Counts the bytes up to now.
    pub(super) fn settle(&mut self, now: Picoseconds) {
        self.phi += self.bytes_in(now - self.since);
        self.since = now;
    }

    /// The bytes that pass in a time, as time at full speed.
    fn bytes_in(&self, time: Picoseconds) -> Picoseconds {
        if self.slowed == self.pace {
            return time;
        }
        match time.checked_mul(self.pace) {
            Some(product) => product / self.slowed,
            None => (u128::from(time) * u128::from(self.pace) / u128::from(self.slowed)) as u64,
        }
    }

    /// The time in which bytes pass, the bytes as time at full speed.
    pub(super) fn time_of(&self, bytes: Picoseconds) -> Picoseconds {
        if self.slowed == self.pace {
            return bytes;
        }
        match bytes.checked_mul(self.slowed) {
            Some(product) => product.div_ceil(self.pace),
            None => {
                let product = u128::from(bytes) * u128::from(self.slowed);
                u64::try_from(product.div_ceil(self.pace.into())).unwrap_or(u64::MAX)
            }
        }
    }

    /// Whether the tail cannot pass its next channel: the header has not got it, or waits.
    pub(super) fn is_held(&self) -> bool {
        self.tail == self.head || self.tail >= self.held
    }

    /// Updates the values at which the tail passes after the header waited: bytes behind it without
    /// room are delayed too.
    pub(super) fn relax(&self, passes: &mut [Picoseconds], buffer: Picoseconds) {
        let mut room = 0;
        for at in passes.iter_mut().rev() {
            room = buffer.saturating_add(room);
            let phi = self.phi.saturating_sub(room).saturating_add(self.length);
            if room >= self.length || phi <= *at {
                break;
            }
            *at = phi;
        }
    }

    /// The greatest pace that is full speed.
    fn full(&self) -> u64 {
        self.pace + (self.pace >> EQUAL)
    }

    /// Whether a change of a channel's pace may change the worm's.
    pub(super) fn counts(&self, before: u64, after: u64) -> bool {
        before.max(after) > self.full()
    }
}

impl Rest {
    /// Of a message, and the time to fill the space between two headers.
    pub(super) fn new(message: InFlight, buffer: Picoseconds) -> Self {
        Self {
            message,
            next: NOBODY,
            fills: calendar::NONE,
            waits: None,
            buffer,
            span: span(message.transmission, buffer),
            shares: SmallVec::new(),
        }
    }

    /// The same for the next message.
    pub(super) fn set(&mut self, message: InFlight, buffer: Picoseconds) {
        (self.message, self.buffer) = (message, buffer);
        self.span = span(message.transmission, buffer);
    }

    /// The first channel that the tail cannot pass while the header waits after `head` channels:
    /// those from there on do not hold the whole message.
    pub(super) fn held(&self, head: u32) -> u32 {
        (head + 1).saturating_sub(self.span)
    }

    /// Counts a channel that carries the worm at pace `after` instead of `before`; 0 for a channel
    /// that it does not move over. Returns the pace of the worm.
    pub(super) fn share(&mut self, worm: &Worm, before: u64, after: u64) -> u64 {
        // Channels that allow full speed are not counted.
        let full = worm.full();
        if before > full {
            let place = self.shares.iter().position(|share| share.0 == before);
            let place = place.expect("bug: a share that was not counted");
            self.shares[place].1 -= 1;
            if self.shares[place].1 == 0 {
                self.shares.swap_remove(place);
            }
        }
        if after > full {
            match self.shares.iter_mut().find(|share| share.0 == after) {
                Some(share) => share.1 += 1,
                None => self.shares.push((after, 1)),
            }
        }
        self.shares.iter().map(|share| share.0).fold(worm.pace, u64::max)
    }
}

/// The channels that hold all of a message.
fn span(length: Picoseconds, buffer: Picoseconds) -> u32 {
    match (length, buffer) {
        (0, _) => 0,
        (_, 0) => u32::MAX,
        (length, buffer) => u32::try_from(length.div_ceil(buffer)).unwrap_or(u32::MAX),
    }
}

const _: () = assert!(NONE == NOBODY && size_of::<Worm>() == 64);
