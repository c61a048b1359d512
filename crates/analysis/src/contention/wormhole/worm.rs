//! A message in flight, and the position of its tail.

use crate::contention::clock::Picoseconds;
use crate::contention::network::InFlight;
use crate::contention::settings::MAX_VCS;

/// A channel that a worm takes.
#[derive(Clone, Copy, Default)]
pub(super) struct Hop {
    pub(super) pool: u32,
    pub(super) dimension: u32,
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
    /// Moving worms on the most crowded of its links.
    pub(super) crowd: u32,
    /// Its links by how many moving worms they carry.
    pub(super) crowds: [u16; MAX_VCS as usize + 1],
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
    /// Whether the tail cannot pass its next channel because the header waits.
    pub(super) fn is_held(&self, buffer: Picoseconds) -> bool {
        self.waits.is_some()
            && buffer.saturating_mul(u64::from(self.head - self.tail)) < self.message.transmission
    }

    /// Updates the tail after the header waited: bytes behind it without room are delayed too.
    pub(super) fn relax(&mut self, buffer: Picoseconds) {
        let mut room = 0;
        for i in (self.tail..self.head).rev() {
            room = buffer.saturating_add(room);
            let phi = self.phi.saturating_sub(room);
            let hop = &mut self.hops[i as usize];
            if room >= self.message.transmission || phi <= hop.phi {
                break;
            }
            hop.phi = phi;
        }
    }
}
