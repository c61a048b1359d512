//! The crowds of links: a worm moves at full speed, or at 1/c of it while the most crowded of its
//! links carries c moving worms.

use super::Wormhole;

impl Wormhole<'_> {
    /// A waiting worm has filled its buffers.
    pub(super) fn stand(&mut self, worm: u32) {
        let w = &mut self.worms[worm as usize];
        w.still = true;
        for i in w.tail..w.head {
            let pool = self.worms[worm as usize].hops[i as usize].pool;
            if let Some(link) = self.link(pool) {
                self.leave(link, worm);
            }
        }
        self.plan_tail(worm);
    }

    pub(super) fn move_again(&mut self, worm: u32) {
        let w = &mut self.worms[worm as usize];
        if !std::mem::take(&mut w.still) {
            return;
        }
        for i in w.tail..w.head {
            let pool = self.worms[worm as usize].hops[i as usize].pool;
            if let Some(link) = self.link(pool) {
                self.join(link, worm);
            }
        }
    }

    /// A worm begins to move over a link.
    pub(super) fn join(&mut self, link: usize, worm: u32) {
        let before = self.moving[link] as usize;
        for i in 0..before {
            self.crowd(self.movers[link * self.vcs + i], before, before + 1);
        }
        self.movers[link * self.vcs + before] = worm;
        self.moving[link] += 1;
        self.crowd(worm, 0, before + 1);
    }

    /// A worm no longer moves over a link. The caller plans its tail.
    pub(super) fn leave(&mut self, link: usize, worm: u32) {
        let before = self.moving[link] as usize;
        let movers = &mut self.movers[link * self.vcs..link * self.vcs + before];
        let place = movers
            .iter()
            .position(|&mover| mover == worm)
            .expect("bug: a worm that does not move here");
        movers[place..].rotate_left(1);
        self.moving[link] -= 1;
        self.recount(worm, before, 0);
        for i in 0..before - 1 {
            self.crowd(self.movers[link * self.vcs + i], before, before - 1);
        }
    }

    /// One link of a worm carries `after` moving worms instead of `before`.
    fn crowd(&mut self, worm: u32, before: usize, after: usize) {
        // A slower worm is replanned at the time its tail was to pass.
        if self.recount(worm, before, after) {
            self.plan_tail(worm);
        }
    }

    /// Updates a worm when one of its links carries `after` moving worms instead of `before`; 0 for
    /// a link that it does not move over. Returns whether it becomes faster.
    fn recount(&mut self, worm: u32, before: usize, after: usize) -> bool {
        let w = &mut self.worms[worm as usize];
        w.crowds[before] = w.crowds[before].wrapping_sub(u16::from(before > 0));
        w.crowds[after] += u16::from(after > 0);
        let crowd = if after as u32 >= w.crowd {
            after as u32
        } else if before as u32 == w.crowd && w.crowds[before] == 0 {
            (1..before).rev().find(|&c| w.crowds[c] > 0).unwrap_or(1) as u32
        } else {
            return false;
        };
        if crowd == w.crowd {
            return false;
        }
        self.settle(worm);
        let before = std::mem::replace(&mut self.worms[worm as usize].crowd, crowd);
        crowd < before
    }
}
