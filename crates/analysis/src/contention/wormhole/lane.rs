//! The headers on links of one latency: first in, first out.

use super::event::{Event, Kind};
use crate::contention::clock::Picoseconds;

/// Headers by when they ask for their next channel.
#[derive(Default)]
pub(super) struct Lane {
    /// The first headers in order, and the number of them taken.
    now: Vec<Header>,
    taken: usize,
    /// Headers added since.
    added: Vec<Header>,
}

#[derive(Clone, Copy)]
struct Header {
    time: Picoseconds,
    worm: u32,
    pool: u32,
}

impl Lane {
    /// Adds a worm whose header asks at a time not before that of the last one added.
    #[inline]
    pub(super) fn add(&mut self, time: Picoseconds, worm: u32, pool: u32) {
        self.added.push(Header { time, worm, pool });
    }

    /// When the first header asks.
    #[inline]
    pub(super) fn first(&self) -> Option<Picoseconds> {
        self.now.get(self.taken).or_else(|| self.added.first()).map(|header| header.time)
    }

    /// Takes the first header, which there is.
    #[inline]
    pub(super) fn take(&mut self) -> (Picoseconds, Event) {
        if self.taken == self.now.len() {
            self.now.clear();
            self.taken = 0;
            std::mem::swap(&mut self.now, &mut self.added);
        }
        let Header { time, worm, pool } = self.now[self.taken];
        self.taken += 1;
        (time, Event { kind: Kind::Head, worm, pool })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_in_the_order_added() {
        let mut lane = Lane::default();
        let (mut taken, mut added) = (0, 0);
        for many in [3, 1, 7, 2, 40] {
            for _ in 0..many {
                lane.add(u64::from(added), added, 2 * added);
                added += 1;
            }
            while added - taken > many / 2 {
                assert_eq!(lane.first(), Some(taken.into()));
                let event = Event { kind: Kind::Head, worm: taken, pool: 2 * taken };
                assert_eq!(lane.take(), (taken.into(), event));
                taken += 1;
            }
        }
        (taken..added).for_each(|worm| assert_eq!(lane.take().1.worm, worm));
        assert_eq!(lane.first(), None);
    }
}
