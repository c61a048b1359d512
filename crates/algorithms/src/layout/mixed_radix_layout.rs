//! Layouts whose slots are numbers in a mixed radix, each digit adding its own to the other end.

use topocoll_topology::Rank;

/// The other ends by slot, each a sum over digits.
pub(crate) struct Ends(Vec<u32>);

impl Ends {
    /// Of one slot without a digit, its other end 0; with room for a number of slots.
    pub(crate) fn new(slots: u64) -> Self {
        let mut ends = Self(Vec::with_capacity(slots as usize));
        ends.restart(0);
        ends
    }

    /// One slot without a digit again.
    pub(crate) fn restart(&mut self, end: u32) {
        self.0.clear();
        self.0.push(end);
    }

    /// Puts a digit in front of the others: the value v of it adds `added(v)`.
    pub(crate) fn prepend(&mut self, values: u32, added: impl Fn(u32) -> u32) {
        let below = self.0.len();
        for value in 1..values {
            let more = added(value);
            self.0.extend_from_within(..below);
            self.0[value as usize * below..].iter_mut().for_each(|end| *end += more);
        }
        let first = added(0);
        self.0[..below].iter_mut().for_each(|end| *end += first);
    }

    /// The other ends in the order of slots.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = Rank> + Clone {
        self.0.iter().map(|&end| Rank(end))
    }
}
