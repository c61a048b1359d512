//! Settings on a Pareto front.

/// The items that no other beats in both steps and bytes, the fewest steps first. If these are more than
/// `most`, which is at least 2, as many of them at equal distances, the first and the last included.
pub(crate) fn front<T>(mut items: Vec<(u64, u128, T)>, most: usize) -> Vec<(u64, T)> {
    items.sort_by_key(|&(steps, bytes, _)| (steps, bytes));
    let mut least = u128::MAX;
    items.retain(|&(_, bytes, _)| {
        let better = bytes < least;
        least = least.min(bytes);
        better
    });
    let last = items.len().saturating_sub(1);
    let chosen: Vec<usize> = (0..most).map(|i| i * last / (most - 1)).collect();
    let placed = (0..).zip(items).filter(|(place, _)| chosen.binary_search(place).is_ok());
    placed.map(|(_, (steps, _, item))| (steps, item)).collect()
}
