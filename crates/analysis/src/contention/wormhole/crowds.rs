//! The crowds of channels: worms that move over a channel have equal shares of its rate.

use super::Wormhole;
use crate::contention::network::InFlight;

impl Wormhole<'_> {
    /// A waiting worm has filled its buffers.
    pub(super) fn stand(&mut self, worm: u32) {
        let w = &mut self.worms[worm as usize];
        w.still = true;
        for k in w.tail..w.head {
            self.leave(k as usize, worm);
        }
        self.plan_tail(worm);
    }

    pub(super) fn move_again(&mut self, worm: u32) {
        let w = &mut self.worms[worm as usize];
        if !std::mem::take(&mut w.still) {
            return;
        }
        for k in w.tail..w.head {
            self.join(k as usize, worm);
        }
    }

    /// A worm begins to move over its k-th channel.
    pub(super) fn join(&mut self, k: usize, worm: u32) {
        let w = &self.worms[worm as usize];
        match self.link(w.hops[k].pool) {
            Some(link) => self.join_shared(link as u32, worm),
            None => {
                let InFlight { from, to, .. } = w.message;
                let shares = self.channels.shares(w.hops[k].pool.into(), from, to);
                shares.into_iter().for_each(|shared| self.join_shared(shared, worm));
            }
        }
    }

    fn join_shared(&mut self, shared: u32, worm: u32) {
        let pace = self.channels.pace(shared);
        let before = self.movers[shared as usize].len() as u64;
        for i in 0..before as usize {
            let other = self.movers[shared as usize][i];
            self.crowd(other, before * pace, (before + 1) * pace);
        }
        self.movers[shared as usize].push(worm);
        self.crowd(worm, 0, (before + 1) * pace);
    }

    /// A worm no longer moves over its k-th channel. The caller plans its tail.
    pub(super) fn leave(&mut self, k: usize, worm: u32) {
        let w = &self.worms[worm as usize];
        match self.link(w.hops[k].pool) {
            Some(link) => self.leave_shared(link as u32, worm),
            None => {
                let InFlight { from, to, .. } = w.message;
                let shares = self.channels.shares(w.hops[k].pool.into(), from, to);
                shares.into_iter().for_each(|shared| self.leave_shared(shared, worm));
            }
        }
    }

    fn leave_shared(&mut self, shared: u32, worm: u32) {
        let pace = self.channels.pace(shared);
        let movers = &mut self.movers[shared as usize];
        let place = movers
            .iter()
            .position(|&mover| mover == worm)
            .expect("bug: a worm that does not move here");
        let before = movers.len() as u64;
        movers.remove(place);
        self.recount(worm, before * pace, 0);
        for i in 0..before as usize - 1 {
            let other = self.movers[shared as usize][i];
            self.crowd(other, before * pace, (before - 1) * pace);
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
        let Some(slowed) = self.worms[worm as usize].share(before, after) else { return false };
        self.settle(worm);
        std::mem::replace(&mut self.worms[worm as usize].slowed, slowed) > slowed
    }
}
