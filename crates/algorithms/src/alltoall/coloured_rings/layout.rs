//! Rearrangements between phases: the digit just used is made compact, the next one goes first.

use topocoll_schedule::{Axis, SlotSet, Step, Strided};

use super::line::{Piece, Pieces};
use super::{Class, ColouredRule, Phase};

impl ColouredRule {
    /// Copies from the layout at the end of one phase to that at the start of the next.
    ///
    /// With u the dimension of the one and v of the other, and x and y the digits between them,
    /// cyclically, a slot `(u, x, v, y)` becomes `(v, y, u, x)`.
    pub(super) fn rearrange(
        &self,
        class: Class,
        at: &[u32],
        (before, after): (Phase, Phase),
        out: &mut Step,
    ) {
        let n = self.dimensions();
        let (u, v) = (self.dimension(class, before), self.dimension(class, after));
        let (mut ends, mut starts) = (Pieces::new(), Pieces::new());
        match before {
            Phase::Ring(_) => self.lines[u].landed_pieces(at[u], class.own, &mut ends),
            Phase::Residual(_) => self.lines[u].arrived_pieces(at[u], &mut ends),
        }
        if u == v {
            let others = self.others(class, before, at);
            let room = self.others(class, after, at);
            for end in &ends {
                let axes = [
                    copied(end.count, end.stride * others as i64, room as i64),
                    copied(others, 1, 1),
                ];
                copy_box(end.digit * others, end.compact * room, &axes, out);
            }
            return;
        }
        let between = |first: usize, last: usize| -> u64 {
            let count = (last + n - first) % n;
            (1..count)
                .map(|i| (first + i) % n)
                .map(|w| self.compact(class, before, w, at[w]))
                .product()
        };
        let (x, y) = (between(u, v), between(v, u));
        let radix_v = self.compact(class, before, v, at[v]);
        let radix_u = self.compact(class, after, u, at[u]);
        match after {
            Phase::Ring(_) => self.lines[v].start_pieces(at[v], class.own, &mut starts),
            Phase::Residual(_) => {
                starts.push(Piece { compact: 0, count: radix_v, digit: 0, stride: 1 });
            }
        }
        for end in &ends {
            for start in &starts {
                let from = (end.digit * x * radix_v + start.compact) * y;
                let to = (start.digit * y * radix_u + end.compact) * x;
                let axes = [
                    copied(end.count, end.stride * (x * radix_v * y) as i64, x as i64),
                    copied(x, (radix_v * y) as i64, 1),
                    copied(start.count, y as i64, start.stride * (y * radix_u * x) as i64),
                    copied(y, 1, (radix_u * x) as i64),
                ];
                copy_box(from, to, &axes, out);
            }
        }
    }
}

/// An axis of a box that is copied: the same places with two strides.
#[derive(Clone, Copy)]
struct Copied {
    count: u64,
    from: i64,
    to: i64,
}

fn copied(count: u64, from: i64, to: i64) -> Copied {
    Copied { count, from, to }
}

/// Copies a box of slots, as few strided runs as its axes allow.
fn copy_box(from: u64, to: u64, axes: &[Copied], out: &mut Step) {
    let mut merged: smallvec::SmallVec<[Copied; 4]> = smallvec::SmallVec::new();
    for &axis in axes.iter().filter(|axis| axis.count > 1) {
        match merged.last_mut() {
            Some(outer)
                if outer.from == axis.from * axis.count as i64
                    && outer.to == axis.to * axis.count as i64 =>
            {
                *outer = copied(outer.count * axis.count, axis.from, axis.to);
            }
            _ => merged.push(axis),
        }
    }
    let inner = merged.pop().unwrap_or(copied(1, 1, 1));
    let outer = merged.pop().unwrap_or(copied(1, 0, 0));
    // A box that two strides cannot describe is copied run by run.
    let copies: u64 = merged.iter().map(|axis| axis.count).product();
    for i in 0..copies {
        let (mut from, mut to, mut rest) = (from as i64, to as i64, i);
        for axis in merged.iter().rev() {
            from += (rest % axis.count) as i64 * axis.from;
            to += (rest % axis.count) as i64 * axis.to;
            rest /= axis.count;
        }
        let strided = |base: i64, outer_stride, inner_stride| Strided {
            base: base as u64,
            outer: Axis { count: outer.count, stride: outer_stride },
            inner: Axis { count: inner.count, stride: inner_stride },
        };
        let [from, to] = [strided(from, outer.from, inner.from), strided(to, outer.to, inner.to)];
        out.copy(SlotSet::of(from), SlotSet::of(to));
    }
}
