//! The crowds of channels: worms that move over a channel have equal shares of its rate.

use super::Wormhole;
use crate::contention::network::InFlight;

impl Wormhole<'_> {
    /// A waiting worm has filled its buffers.
    pub(super) fn stand(&mut self, worm: u32) {
        let w = &mut self.worms[worm as usize];
        w.still = true;
        for k in w.tail..w.head {
            self.leave(self.hops.pools[self.hops.place(worm, k)], worm);
        }
        self.plan_tail(worm);
    }

    pub(super) fn move_again(&mut self, worm: u32) {
        let w = &mut self.worms[worm as usize];
        if !std::mem::take(&mut w.still) {
            return;
        }
        for k in w.tail..w.head {
            self.join(self.hops.pools[self.hops.place(worm, k)], worm);
        }
    }

    /// A worm begins to move over a channel of a pool.
    #[inline(always)]
    pub(super) fn join(&mut self, pool: u32, worm: u32) {
        match self.channels.link_of(pool.into()) {
            Some(link) => self.join_shared(link, worm),
            None if self.channels.limits() == [false; 2] => {}
            None => {
                let InFlight { from, to, .. } = self.rest[worm as usize].message;
                let shares = self.channels.shares(pool.into(), from, to);
                shares.into_iter().for_each(|shared| self.join_shared(shared, worm));
            }
        }
    }

    #[inline(always)]
    fn join_shared(&mut self, shared: u32, worm: u32) {
        let movers = &mut self.movers[shared as usize];
        movers.push(worm);
        let count = movers.len();
        if count > 1 {
            self.share_among(shared, worm, count as u64);
        }
    }

    /// The last mover of a channel has joined the others.
    fn share_among(&mut self, shared: u32, worm: u32, count: u64) {
        let pace = self.channels.pace(shared);
        for i in 0..count as usize - 1 {
            let other = self.movers[shared as usize][i];
            self.crowd(other, (count - 1) * pace, count * pace);
        }
        self.crowd(worm, 0, count * pace);
    }

    /// A worm no longer moves over a channel of a pool. The caller plans its tail.
    #[inline(always)]
    pub(super) fn leave(&mut self, pool: u32, worm: u32) {
        match self.channels.link_of(pool.into()) {
            Some(link) => self.leave_shared(link, worm),
            None if self.channels.limits() == [false; 2] => {}
            None => {
                let InFlight { from, to, .. } = self.rest[worm as usize].message;
                let shares = self.channels.shares(pool.into(), from, to);
                shares.into_iter().for_each(|shared| self.leave_shared(shared, worm));
            }
        }
    }

    #[inline(always)]
    fn leave_shared(&mut self, shared: u32, worm: u32) {
        let movers = &mut self.movers[shared as usize];
        if movers.len() > 1 {
            self.leave_others(shared, worm);
        } else {
            debug_assert_eq!(movers[..], [worm]);
            movers.pop();
        }
    }

    fn leave_others(&mut self, shared: u32, worm: u32) {
        let pace = self.channels.pace(shared);
        let movers = &mut self.movers[shared as usize];
        let place = movers.iter().position(|&mover| mover == worm);
        movers.remove(place.expect("bug: a worm that does not move here"));
        let count = movers.len() as u64;
        self.recount(worm, (count + 1) * pace, 0);
        for i in 0..count as usize {
            let other = self.movers[shared as usize][i];
            self.crowd(other, (count + 1) * pace, count * pace);
        }
    }

    /// One channel of a worm carries it at pace `after` instead of `before`.
    fn crowd(&mut self, worm: u32, before: u64, after: u64) {
        // A slower worm is replanned at the time its tail was to pass.
        if self.recount(worm, before, after) {
            self.plan_tail(worm);
        }
    }

    /// Updates a worm when a channel carries it at pace `after` instead of `before`. Returns whether
    /// it becomes faster.
    fn recount(&mut self, worm: u32, before: u64, after: u64) -> bool {
        let w = &mut self.worms[worm as usize];
        if !w.counts(before, after) {
            return false;
        }
        let slowed = self.rest[worm as usize].share(w, before, after);
        if slowed == w.slowed {
            return false;
        }
        w.settle(self.now);
        std::mem::replace(&mut w.slowed, slowed) > slowed
    }
}
