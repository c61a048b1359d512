//! The channels that worms take: a row of one table for each worm.

use crate::contention::clock::Picoseconds;

/// Rows have the length of the longest route so far, or a little more.
#[derive(Default)]
pub(super) struct Hops {
    stride: usize,
    rows: usize,
    /// The pools of the channels.
    pub(super) pools: Vec<u32>,
    /// The values of phi at which the tail passes the channels that the header got.
    pub(super) passes: Vec<Picoseconds>,
    /// When the header got the channels, if recorded; else empty.
    pub(super) got: Vec<Picoseconds>,
    records: bool,
}

impl Hops {
    /// Bytes of a channel of a worm.
    pub(super) const HOP: usize = size_of::<u32>() + 2 * size_of::<Picoseconds>();

    pub(super) fn new(records: bool) -> Self {
        Self { records, ..Self::default() }
    }

    /// The place of the k-th channel of a worm.
    pub(super) fn place(&self, worm: u32, k: u32) -> usize {
        worm as usize * self.stride + k as usize
    }

    /// Sets the channels of a worm, which may be the first without a row.
    pub(super) fn set(&mut self, worm: u32, pools: &[u32]) {
        if pools.len() > self.stride {
            self.widen(pools.len().max(self.stride + self.stride / 8));
        }
        if worm as usize == self.rows {
            self.rows += 1;
            let places = self.rows * self.stride;
            self.pools.resize(places, 0);
            self.passes.resize(places, 0);
            self.got.resize(if self.records { places } else { 0 }, 0);
        }
        let first = self.place(worm, 0);
        self.pools[first..first + pools.len()].copy_from_slice(pools);
    }

    fn widen(&mut self, stride: usize) {
        let (rows, before) = (self.rows, self.stride);
        widened(&mut self.pools, rows, before, stride);
        widened(&mut self.passes, rows, before, stride);
        if self.records {
            widened(&mut self.got, rows, before, stride);
        }
        self.stride = stride;
    }
}

/// Lengthens the rows of a table.
fn widened<T: Copy + Default>(table: &mut Vec<T>, rows: usize, before: usize, after: usize) {
    let mut wide = vec![T::default(); rows * after];
    for row in 0..rows {
        let old = &table[row * before..(row + 1) * before];
        wide[row * after..row * after + before].copy_from_slice(old);
    }
    *table = wide;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_channels_as_they_become_longer() {
        let mut hops = Hops::new(true);
        for worm in 0..50 {
            let route: Vec<u32> = (0..=worm).map(|k| 100 * worm + k).collect();
            hops.set(worm, &route);
            let last = hops.place(worm, worm);
            (hops.passes[last], hops.got[last]) = (worm.into(), (2 * worm).into());
        }
        for worm in 0..50 {
            let all: Vec<u32> = (0..=worm).map(|k| hops.pools[hops.place(worm, k)]).collect();
            assert_eq!(all, (0..=worm).map(|k| 100 * worm + k).collect::<Vec<_>>());
            let last = hops.place(worm, worm);
            assert_eq!((hops.passes[last], hops.got[last]), (worm.into(), (2 * worm).into()));
        }
    }
}
