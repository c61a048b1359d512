//! The next end of each bundle of flows: a heap in which the time of a bundle can change.

use crate::contention::clock::Picoseconds;

/// No place in the heap.
const NOWHERE: u32 = u32::MAX;

#[derive(Default)]
pub(super) struct Ends {
    heap: Vec<(Picoseconds, u32)>,
    /// By bundle, its place in the heap.
    places: Vec<u32>,
}

impl Ends {
    /// The first time.
    pub(super) fn first(&self) -> Option<Picoseconds> {
        self.heap.first().map(|&(time, _)| time)
    }

    /// Sets the time of a bundle.
    pub(super) fn set(&mut self, bundle: u32, time: Picoseconds) {
        if self.places.len() <= bundle as usize {
            self.places.resize(bundle as usize + 1, NOWHERE);
        }
        let place = self.places[bundle as usize];
        if place == NOWHERE {
            self.heap.push((time, bundle));
            self.rise(self.heap.len() - 1);
        } else {
            let before = std::mem::replace(&mut self.heap[place as usize].0, time);
            if time < before {
                self.rise(place as usize);
            } else {
                self.sink(place as usize);
            }
        }
    }

    /// Takes the bundle with the first time.
    ///
    /// # Panics
    /// No bundles.
    pub(super) fn pop(&mut self) -> u32 {
        let (_, bundle) = self.heap.swap_remove(0);
        self.places[bundle as usize] = NOWHERE;
        if !self.heap.is_empty() {
            self.sink(0);
        }
        bundle
    }

    fn rise(&mut self, mut place: usize) {
        let entry = self.heap[place];
        while place > 0 {
            let above = (place - 1) / 2;
            if self.heap[above] <= entry {
                break;
            }
            self.put(place, self.heap[above]);
            place = above;
        }
        self.put(place, entry);
    }

    fn sink(&mut self, mut place: usize) {
        let entry = self.heap[place];
        loop {
            let mut below = 2 * place + 1;
            if below + 1 < self.heap.len() && self.heap[below + 1] < self.heap[below] {
                below += 1;
            }
            if below >= self.heap.len() || self.heap[below] >= entry {
                break;
            }
            self.put(place, self.heap[below]);
            place = below;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: (Picoseconds, u32)) {
        self.heap[place] = entry;
        self.places[entry.1 as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_time_comes_first_whatever_changes() {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut ends, mut known) = (Ends::default(), std::collections::BTreeMap::new());
        for _ in 0..20_000 {
            if random.u32(..3) > 0 {
                let (bundle, time) = (random.u32(..50), random.u64(..1000));
                ends.set(bundle, time);
                known.insert(bundle, time);
            } else if let Some(first) = known.iter().map(|(&bundle, &time)| (time, bundle)).min() {
                assert_eq!((ends.first(), ends.pop()), (Some(first.0), first.1));
                known.remove(&first.1);
            }
        }
    }
}
