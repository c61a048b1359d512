use std::cmp::Ordering;

/// Stable sorts, compiled once for each type of item; the standard library's are compiled for each key.
pub(crate) trait SortByKey<T> {
    /// Sorts by a key; items of equal keys keep their order.
    fn stable_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K);
}

impl<T> SortByKey<T> for [T] {
    fn stable_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K) {
        let order: &dyn Fn(&T, &T) -> Ordering = &|a, b| key(a).cmp(&key(b));
        self.sort_by(order);
    }
}
