use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

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

/// A plan and what it depends on.
type Plan = (Vec<u32>, Arc<dyn Any + Send + Sync>);

/// What algorithms have planned for a network, the latest last. Clones share it, and it does not tell networks
/// apart.
#[derive(Clone, Default)]
pub(crate) struct Plans(Arc<Mutex<Vec<Plan>>>);

impl PartialEq for Plans {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Plans {}

impl Hash for Plans {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl fmt::Debug for Plans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Plans")
    }
}

impl Plans {
    /// The most plans that are kept.
    const KEPT: usize = 32;

    /// The plan, computed on first use and after it has been dropped. Others may be computed at the
    /// same time.
    pub(crate) fn of<V: Send + Sync + 'static>(
        &self,
        key: &[u32],
        compute: impl FnOnce() -> V,
    ) -> Arc<V> {
        let plans = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |(other, plan): &Plan| {
            if other == key { Arc::clone(plan).downcast().ok() } else { None }
        };
        if let Some(plan) = plans().iter().find_map(known) {
            return plan;
        }
        let plan = Arc::new(compute());
        let mut plans = plans();
        if plans.len() == Self::KEPT {
            plans.remove(0);
        }
        plans.push((key.to_vec(), Arc::clone(&plan) as _));
        plan
    }
}
