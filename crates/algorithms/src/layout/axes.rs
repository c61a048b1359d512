//! Sets of slots along several axes, as strided runs of two.

use smallvec::SmallVec;
use topocoll_schedule::{Axis, Slot, SlotSet, Strided};

/// Appends the slots from `base` on along several axes, the slowest first.
pub(crate) fn push_axes(base: Slot, axes: &[Axis], out: &mut SlotSet) {
    match merged(axes)[..] {
        [] => out.push(Strided::contiguous(base, 1)),
        [inner] => out.push(Strided { base, outer: Axis::POINT, inner }),
        [outer, inner] => out.push(Strided { base, outer, inner }),
        [slowest, ref others @ ..] => {
            for i in 0..slowest.count {
                push_axes(base.wrapping_add_signed(i as i64 * slowest.stride), others, out);
            }
        }
    }
}

/// Appends the same slots in few runs, in an order of its own.
pub(crate) fn push_box(base: Slot, axes: &[Axis], out: &mut SlotSet) {
    let mut axes: SmallVec<[Axis; 8]> = axes.iter().copied().collect();
    axes.sort_unstable_by_key(|axis| std::cmp::Reverse(axis.stride));
    let mut axes = merged(&axes);
    // All but the two longest become runs of their own.
    axes.sort_by_key(|axis| axis.count);
    let short = axes.len().saturating_sub(2);
    axes[short..].sort_unstable_by_key(|axis| std::cmp::Reverse(axis.stride));
    push_axes(base, &axes, out);
}

/// Axes of more than one slot, those that continue each other as one.
fn merged(axes: &[Axis]) -> SmallVec<[Axis; 8]> {
    let mut left: SmallVec<[Axis; 8]> = SmallVec::new();
    for &axis in axes.iter().filter(|axis| axis.count > 1) {
        match left.last_mut() {
            Some(last) if last.stride == axis.count as i64 * axis.stride => {
                *last = Axis { count: last.count * axis.count, stride: axis.stride };
            }
            _ => left.push(axis),
        }
    }
    left
}
