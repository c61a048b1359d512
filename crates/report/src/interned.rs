//! Values that a page writes once.

use std::collections::BTreeMap;

/// Values, each kept once.
pub(super) struct Interned<T> {
    known: BTreeMap<T, usize>,
    /// In the order of their numbers.
    pub(super) all: Vec<T>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), all: Vec::new() }
    }
}

impl<T: Ord + Clone> Interned<T> {
    /// The number of a value.
    pub(super) fn name(&mut self, value: T) -> usize {
        let next = self.all.len();
        let name = *self.known.entry(value.clone()).or_insert(next);
        if name == next {
            self.all.push(value);
        }
        name
    }
}
