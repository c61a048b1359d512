//! Which bytes of which blocks are in which part.
//!
//! The n parts have n equal runs of bytes of every block. The bytes that are left over, fewer than n, go to a part
//! by the slot, as whole blocks do: where n divides two sides, so that whole blocks share equally, where a block has
//! fewer than n bytes, and where blocks have several sizes. The side of N has n ranges of digits, range t those with
//! `floor(n d / N) = t`. The part of a slot is the sum of the ranges of its digits, mod n. So blocks of the same
//! digit along one side share equally if n divides another side, and else as nearly as ranges allow.

use smallvec::SmallVec;
use topocoll_schedule::{Axis, Part, SlotSet, Strided};

use super::side::Side;
use crate::layout::axes::push_box;

pub(super) struct Shares {
    /// The ranks of each side, and the slots from one digit to the next.
    sides: SmallVec<[(u32, u64); 3]>,
    /// The bytes of every block in each part.
    each: u64,
    block_bytes: u64,
    cuts: Vec<u64>,
}

impl Shares {
    /// Blocks of `block_bytes` in parts; blocks stay whole if they may not be cut.
    pub(super) fn new(
        sides: &[Side],
        weight: impl Fn(usize) -> u32,
        block_bytes: u64,
        may_cut: bool,
    ) -> Self {
        let n = sides.len() as u64;
        let sides: SmallVec<[(u32, u64); 3]> =
            sides.iter().map(|side| (side.ranks(), weight(side.dimension()).into())).collect();
        let equal = sides.iter().filter(|(side, _)| u64::from(*side) % n == 0).count() > 1;
        let each = if may_cut && !equal { block_bytes / n } else { 0 };
        let cuts = (1..=n).map(|part| part * each);
        let cuts = cuts.filter(|&cut| cut > 0 && cut < block_bytes).collect();
        Self { sides, each, block_bytes, cuts }
    }

    pub(super) fn cuts(&self) -> &[u64] {
        &self.cuts
    }

    /// The slots, whole, with given digits along all sides.
    pub(super) fn whole(&self, digits: &[Strided]) -> SlotSet {
        let mut out = SlotSet::default();
        self.push(digits, Part::Whole, &mut out);
        out
    }

    /// The bytes of a part in the slots with given digits along side u.
    pub(super) fn slots(&self, part: usize, u: usize, given: &[Strided]) -> SlotSet {
        let (n, number) = (self.sides.len(), part as u64);
        let mut out = SlotSet::default();
        let all = self.sides.iter().map(|&(side, _)| Strided::contiguous(0, side.into()));
        let mut digits: SmallVec<[Strided; 3]> = all.collect();
        let left = n as u64 * self.each;
        if self.each > 0 {
            let bytes = Part::Bytes { first: number * self.each, end: (number + 1) * self.each };
            for &given in given {
                digits[u] = given;
                self.push(&digits, bytes, &mut out);
            }
        }
        if self.each > 0 && left == self.block_bytes {
            return out;
        }
        let bytes = match self.each {
            0 => Part::Whole,
            _ => Part::Bytes { first: left, end: self.block_bytes },
        };
        // The ranges along all sides but u; that along u makes the sum.
        for choice in 0..n.pow(n as u32 - 1) {
            let (mut rest, mut sum) = (choice, 0);
            for v in (0..n).filter(|&v| v != u) {
                let [first, end] = self.range(v, rest % n);
                digits[v] = Strided::contiguous(first, end - first);
                sum += rest % n;
                rest /= n;
            }
            let range = self.range(u, (part + n * n - sum) % n);
            for &given in given {
                within(given, range, |piece| {
                    digits[u] = piece;
                    self.push(&digits, bytes, &mut out);
                });
            }
        }
        out
    }

    /// A range of digits of a side, its end not among them.
    fn range(&self, u: usize, number: usize) -> [u64; 2] {
        let (side, n) = (u64::from(self.sides[u].0), self.sides.len() as u64);
        [number, number + 1].map(|number| (number as u64 * side).div_ceil(n))
    }

    fn push(&self, digits: &[Strided], part: Part, out: &mut SlotSet) {
        if digits.iter().any(Strided::is_empty) {
            return;
        }
        let (mut base, mut axes) = (0, SmallVec::<[Axis; 8]>::new());
        for (digits, &(_, weight)) in digits.iter().zip(&self.sides) {
            base += digits.base * weight;
            for axis in [digits.outer, digits.inner] {
                axes.push(Axis { count: axis.count, stride: axis.stride * weight as i64 });
            }
        }
        let mut slots = SlotSet::default();
        push_box(base, &axes, &mut slots);
        slots.runs().iter().for_each(|run| out.push_part(run.slots, part));
    }
}

/// Calls `each` with the digits in a range; `digits` ascend.
fn within(digits: Strided, [first, end]: [u64; 2], mut each: impl FnMut(Strided)) {
    let Strided { base, outer, inner } = digits;
    let stride = inner.stride.unsigned_abs().max(1);
    let mut full = 0..0;
    let runs = |full: &std::ops::Range<u64>| Strided {
        base: base + full.start * outer.stride.unsigned_abs(),
        outer: Axis { count: full.end - full.start, stride: outer.stride },
        inner,
    };
    for row in 0..outer.count {
        let start = base + row * outer.stride.unsigned_abs();
        let before = |digit: u64| digit.saturating_sub(start).div_ceil(stride).min(inner.count);
        let (low, high) = (before(first), before(end));
        if low == 0 && high == inner.count && full.end == row {
            full.end = row + 1;
        } else if low == 0 && high == inner.count && full.is_empty() {
            full = row..row + 1;
        } else if low < high {
            let inner = Axis { count: high - low, stride: inner.stride };
            each(Strided { base: start + low * stride, outer: Axis::POINT, inner });
        }
    }
    if !full.is_empty() {
        each(runs(&full));
    }
}
