//! A message in flight, and the position of its tail.

use smallvec::SmallVec;

use crate::contention::clock::Picoseconds;
use crate::contention::network::InFlight;

/// Shares of rates that differ by less than one part in 2^30 are equal.
const EQUAL: u32 = 30;

/// A channel that a worm takes.
#[derive(Clone, Copy, Default)]
pub(super) struct Hop {
    pub(super) pool: u32,
    pub(super) kind: u32,
    /// The value of phi, less the length, at which the tail passes.
    pub(super) phi: Picoseconds,
}

pub(super) struct Worm {
    pub(super) message: InFlight,
    pub(super) hops: Vec<Hop>,
    /// When the header got each channel, if recorded.
    pub(super) got: Vec<Picoseconds>,
    /// The numbers of channels that the header got and that the tail passed.
    pub(super) head: u32,
    pub(super) tail: u32,
    /// Bytes sent up to `since`, as time at full speed.
    pub(super) phi: Picoseconds,
    pub(super) since: Picoseconds,
    /// Its pace at full speed.
    pub(super) pace: u64,
    /// The paces at which channels carry it, if they slow it down: the channel's times the worms
    /// that move over it. Each with the number of channels.
    pub(super) shares: SmallVec<[(u64, u32); 2]>,
    /// The slowest of them, at least `pace`.
    pub(super) slowed: u64,
    /// The time to fill the space between two headers at full speed.
    pub(super) buffer: Picoseconds,
    /// The time since which it waits, if it does.
    pub(super) waits: Option<Picoseconds>,
    /// Whether its buffers are full, so that it does not move.
    pub(super) still: bool,
    /// Turn numbers that outdate events of the tail, and of standing still.
    pub(super) tail_turn: u32,
    pub(super) wait_turn: u32,
    pub(super) next: u32,
}

impl Worm {
    /// The bytes that pass in a time, as time at full speed.
    pub(super) fn bytes_in(&self, time: Picoseconds) -> Picoseconds {
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

    /// Counts a channel that carries the worm at pace `after` instead of `before`; 0 for a channel
    /// that it does not move over. Returns the pace of the worm if that changes.
    pub(super) fn share(&mut self, before: u64, after: u64) -> Option<u64> {
        // Channels that allow full speed are not counted.
        let full = self.pace + (self.pace >> EQUAL);
        if before <= full && after <= full {
            return None;
        }
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
        let slowed = self.shares.iter().map(|share| share.0).fold(self.pace, u64::max);
        (slowed != self.slowed).then_some(slowed)
    }

    /// Whether the tail cannot pass its next channel because the header waits.
    pub(super) fn is_held(&self) -> bool {
        self.waits.is_some()
            && self.buffer.saturating_mul(u64::from(self.head - self.tail))
                < self.message.transmission
    }

    /// Updates the tail after the header waited: bytes behind it without room are delayed too.
    pub(super) fn relax(&mut self) {
        let mut room = 0;
        for i in (self.tail..self.head).rev() {
            room = self.buffer.saturating_add(room);
            let phi = self.phi.saturating_sub(room);
            let hop = &mut self.hops[i as usize];
            if room >= self.message.transmission || phi <= hop.phi {
                break;
            }
            hop.phi = phi;
        }
    }
}
