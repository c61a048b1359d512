use std::sync::{Mutex, PoisonError};

/// Capacities by kind of links, and ranks on each node.
type Key = (Vec<(u32, u32)>, Vec<u32>);

/// Values that take long to compute, by the capacities of links and the ranks on nodes.
#[derive(Debug)]
pub(crate) struct Known<V>(Mutex<Vec<(Key, V)>>);

impl<V> Default for Known<V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<V: Copy> Known<V> {
    /// The value, computed on first use.
    pub(super) fn of(
        &self,
        capacities: &[(u32, u32)],
        ranks: &[u32],
        compute: impl FnOnce() -> V,
    ) -> V {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, value)) = known.iter().find(|((c, r), _)| c == capacities && r == ranks) {
            return *value;
        }
        let value = compute();
        known.push(((capacities.to_vec(), ranks.to_vec()), value));
        value
    }
}
