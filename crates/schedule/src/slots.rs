use smallvec::SmallVec;

/// The number of a place for one block in a rank's buffer, from 0.
///
/// A step names the *places* that move, not the blocks. So executors need no bookkeeping, slot sets
/// are equal at equivalent ranks, and local rearrangements, which Suh and Shin charge for, are
/// visible. Readers that need the blocks recover them by replay.
pub type Slot = u64;

/// `count` places, `stride` apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Axis {
    /// Number of places, at least 1.
    pub count: u64,
    /// Distance from one to the next; negative to count down.
    pub stride: i64,
}

impl Axis {
    /// A single place.
    pub const POINT: Self = Self { count: 1, stride: 0 };
}

/// The slots `base + i * outer.stride + j * inner.stride`, ordered by i, then j: like a vector type
/// of MPI or a tensor of FFTW.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Strided {
    /// The first slot.
    pub base: Slot,
    /// The slower index.
    pub outer: Axis,
    /// The faster index.
    pub inner: Axis,
}

impl Strided {
    /// `count` consecutive slots from `base`.
    #[must_use]
    #[inline]
    pub fn contiguous(base: Slot, count: u64) -> Self {
        Self { base, outer: Axis::POINT, inner: Axis { count, stride: 1 } }
    }

    /// `count` slots from `base` downwards.
    #[must_use]
    #[inline]
    pub fn descending(base: Slot, count: u64) -> Self {
        Self { base, outer: Axis::POINT, inner: Axis { count, stride: -1 } }
    }

    /// `count` runs of `length` consecutive slots, their first slots `stride` apart; one run if
    /// they touch.
    #[must_use]
    #[inline]
    pub fn runs(base: Slot, count: u64, stride: u64, length: u64) -> Self {
        if count == 1 || length == stride {
            return Self::contiguous(base, count * length);
        }
        Self {
            base,
            outer: Axis { count, stride: stride as i64 },
            inner: Axis { count: length, stride: 1 },
        }
    }

    /// Number of slots.
    #[must_use]
    #[inline]
    pub fn len(&self) -> u64 {
        self.outer.count * self.inner.count
    }

    /// Whether there is no slot.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The slots in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Slot> + use<> {
        let Self { base, outer, inner } = *self;
        (0..outer.count as i64).flat_map(move |i| {
            let row = base as i64 + i * outer.stride;
            (0..inner.count as i64).map(move |j| (row + j * inner.stride) as Slot)
        })
    }

    /// The position of `slot` in the order, if it is in the set.
    #[must_use]
    #[inline]
    pub fn position(&self, slot: Slot) -> Option<u64> {
        let distance = slot as i64 - self.base as i64;
        let at = |axis: Axis, distance: i64| match axis.count {
            1 => (distance == 0).then_some(0),
            count => {
                let whole = distance % axis.stride == 0;
                Some(distance / axis.stride).filter(|&i| whole && (0..count as i64).contains(&i))
            }
        };
        // Each outer index leaves one candidate. If the inner run is shorter than the outer stride,
        // as in nested sets, only one outer index is possible.
        let reach = (self.inner.count as i64 - 1) * self.inner.stride;
        let outer = match self.outer.stride {
            stride
                if self.outer.count > 1
                    && stride > reach
                    && reach >= 0
                    && self.inner.stride > 0 =>
            {
                let i = distance.div_euclid(stride);
                i..i + 1
            }
            _ => 0..self.outer.count as i64,
        };
        outer.filter(|i| (0..self.outer.count as i64).contains(i)).find_map(|i| {
            let j = at(self.inner, distance - i * self.outer.stride)?;
            Some((i as u64) * self.inner.count + j as u64)
        })
    }

    /// The slot at a position in the order.
    #[must_use]
    #[inline]
    pub fn nth(&self, position: u64) -> Slot {
        let (i, j) = (position / self.inner.count, position % self.inner.count);
        (self.base as i64 + i as i64 * self.outer.stride + j as i64 * self.inner.stride) as Slot
    }

    /// The runs of consecutive slots in order, as (first slot, length).
    #[inline]
    pub fn contiguous_runs(&self) -> impl Iterator<Item = (Slot, u64)> + use<> {
        let Self { base, outer, inner } = *self;
        let (runs, length) = if inner.stride == 1 { (1, inner.count) } else { (inner.count, 1) };
        (0..outer.count as i64).flat_map(move |i| {
            let row = base as i64 + i * outer.stride;
            (0..runs as i64).map(move |j| ((row + j * inner.stride) as Slot, length))
        })
    }

    /// The lowest and the highest slot; none for an empty set.
    #[must_use]
    #[inline]
    pub fn span(&self) -> Option<(i128, i128)> {
        if self.is_empty() {
            return None;
        }
        let (mut low, mut high) = (i128::from(self.base), i128::from(self.base));
        for axis in [self.outer, self.inner] {
            let reach = i128::from(axis.count - 1) * i128::from(axis.stride);
            if reach < 0 { low += reach } else { high += reach }
        }
        Some((low, high))
    }
}

/// The part of each block of a run that moves.
///
/// Blocks move whole unless an algorithm splits them (the last round of the k-port concatenation,
/// Bruck et al. 1997, section 4.2) or a file does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// The whole block.
    Whole,
    /// Bytes `first..end` of the block.
    Bytes {
        /// The first byte.
        first: u64,
        /// One past the last byte.
        end: u64,
    },
}

impl Part {
    /// Bytes of a block of `block_bytes` that move.
    #[must_use]
    #[inline]
    pub fn bytes(self, block_bytes: u64) -> u64 {
        match self {
            Self::Whole => block_bytes,
            Self::Bytes { first, end } => end - first,
        }
    }
}

/// Slots with the same part.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SlotRun {
    /// The slots.
    pub slots: Strided,
    /// The part of each that moves.
    pub part: Part,
}

/// An ordered set of slots, kept as a few strided runs. A list would take a million numbers per
/// message at a million ranks.
#[derive(PartialEq, Eq, Debug, Default)]
pub struct SlotSet {
    runs: SmallVec<[SlotRun; 1]>,
}

/// By a copy of the memory: the clone of a `SmallVec` pushes one by one.
impl Clone for SlotSet {
    #[inline]
    fn clone(&self) -> Self {
        Self { runs: SmallVec::from_slice(&self.runs) }
    }
}

impl SlotSet {
    /// The set of one strided run of whole blocks.
    #[must_use]
    #[inline]
    pub fn of(slots: Strided) -> Self {
        let mut set = Self::default();
        set.push(slots);
        set
    }

    /// Appends whole blocks; an empty run is ignored.
    #[inline]
    pub fn push(&mut self, slots: Strided) {
        self.push_part(slots, Part::Whole);
    }

    /// Appends the same part of several blocks; an empty run is ignored.
    #[inline]
    pub fn push_part(&mut self, slots: Strided, part: Part) {
        if !slots.is_empty() {
            self.runs.push(SlotRun { slots, part });
        }
    }

    /// Appends one slot, which extends the last run if it continues it.
    #[inline]
    pub fn push_slot(&mut self, slot: Slot, part: Part) {
        if let Some(SlotRun { slots, part: last }) = self.runs.last_mut()
            && *last == part
            && slots.outer.count == 1
            && slots.inner.stride == 1
            && slots.base + slots.inner.count == slot
        {
            slots.inner.count += 1;
            return;
        }
        self.push_part(Strided::contiguous(slot, 1), part);
    }

    /// The runs in order.
    #[must_use]
    #[inline]
    pub fn runs(&self) -> &[SlotRun] {
        &self.runs
    }

    /// Number of slots.
    #[must_use]
    #[inline]
    pub fn len(&self) -> u64 {
        self.runs.iter().map(|run| run.slots.len()).sum()
    }

    /// Whether there is no slot.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Bytes moved when a block has `block_bytes`.
    #[must_use]
    #[inline]
    pub fn bytes(&self, block_bytes: u64) -> u128 {
        (self.runs.iter())
            .map(|run| u128::from(run.slots.len()) * u128::from(run.part.bytes(block_bytes)))
            .sum()
    }

    /// Whether the bytes are contiguous and in order, so that they need no packing, when a block
    /// has `block_bytes`.
    #[must_use]
    pub fn is_contiguous(&self, block_bytes: u64) -> bool {
        // The bytes of a run in a buffer of blocks, from first to one past the last.
        let bytes = |run: &SlotRun| {
            let (first, end) = match run.part {
                Part::Whole => (0, block_bytes),
                Part::Bytes { first, end } => (first, end),
            };
            let in_one = run.slots.contiguous_runs().nth(1).is_none();
            let one_piece = in_one && (run.slots.len() == 1 || end - first == block_bytes);
            let at = |slot: Slot| u128::from(slot) * u128::from(block_bytes);
            let last = run.slots.base + run.slots.len() - 1;
            one_piece.then(|| (at(run.slots.base) + u128::from(first), at(last) + u128::from(end)))
        };
        let mut end = None;
        self.runs.iter().all(|run| {
            let Some((first, next)) = bytes(run) else { return false };
            let meets = end.is_none_or(|end| end == first);
            end = Some(next);
            meets
        })
    }

    /// The position of `slot` in the order, if it is in the set.
    #[must_use]
    #[inline]
    pub fn position(&self, slot: Slot) -> Option<u64> {
        let mut before = 0;
        self.runs.iter().find_map(|run| {
            let found = run.slots.position(slot).map(|position| before + position);
            before += run.slots.len();
            found
        })
    }

    /// The slot at a position below [`len`](Self::len).
    #[must_use]
    #[inline]
    pub fn nth(&self, position: u64) -> Option<Slot> {
        let mut rest = position;
        self.runs.iter().find_map(|run| {
            let here = rest < run.slots.len();
            let slot = here.then(|| run.slots.nth(rest));
            rest = rest.saturating_sub(run.slots.len());
            slot
        })
    }

    /// Every slot in order, with the part of it that moves.
    #[inline]
    pub fn slots(&self) -> impl Iterator<Item = (Slot, Part)> + '_ {
        self.runs.iter().flat_map(|run| run.slots.iter().map(|slot| (slot, run.part)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strided_sets_list_their_slots_in_order() {
        let set = Strided::runs(3, 2, 5, 2);
        assert_eq!(set.iter().collect::<Vec<_>>(), [3, 4, 8, 9]);
        assert_eq!(set.contiguous_runs().collect::<Vec<_>>(), [(3, 2), (8, 2)]);
        assert_eq!(set.span(), Some((3, 9)));
        assert_eq!(Strided::descending(4, 3).iter().collect::<Vec<_>>(), [4, 3, 2]);
        assert_eq!(Strided::runs(3, 2, 5, 5), Strided::contiguous(3, 10));
    }

    #[test]
    fn a_set_is_contiguous_if_its_bytes_are_one_run_in_order() {
        let set = |runs: &[(Strided, Part)]| {
            let mut set = SlotSet::default();
            runs.iter().for_each(|&(slots, part)| set.push_part(slots, part));
            set.is_contiguous(8)
        };
        let (run, whole) = (Strided::contiguous, Part::Whole);
        let bytes = |first, end| Part::Bytes { first, end };
        assert!(set(&[(run(3, 2), whole), (run(5, 1), whole), (run(6, 4), whole)]));
        assert!(!set(&[(run(3, 2), whole), (run(6, 1), whole)]));
        assert!(!set(&[(run(3, 2), whole), (run(4, 1), whole)]));
        assert!(!set(&[(run(5, 1), whole), (run(3, 2), whole)]));
        assert!(!set(&[(Strided::runs(3, 3, 2, 1), whole)]));
        assert!(!set(&[(Strided::descending(4, 3), whole)]));
        assert!(set(&[(Strided::descending(4, 1), whole)]));
        assert!(!set(&[(run(5, 1), bytes(0, 3)), (run(6, 1), whole)]));
        assert!(set(&[(run(3, 1), bytes(2, 8)), (run(4, 3), whole), (run(7, 1), bytes(0, 5))]));
        assert!(!set(&[(run(3, 2), bytes(0, 5))]));
        assert!(!set(&[(run(3, 2), bytes(3, 5))]));
        assert!(set(&[(run(3, 1), bytes(1, 3)), (run(3, 1), bytes(3, 7))]));
    }

    #[test]
    fn positions_are_those_of_the_listing() {
        let strided = |outer: (u64, i64), inner: (u64, i64)| Strided {
            base: 30,
            outer: Axis { count: outer.0, stride: outer.1 },
            inner: Axis { count: inner.0, stride: inner.1 },
        };
        let sets = [
            strided((1, 0), (7, 1)),
            strided((3, 10), (4, 2)),
            strided((4, 1), (3, 4)),
            strided((2, -9), (4, -2)),
            strided((5, 3), (1, 0)),
            // Rows that meet and that overlap: the first position counts.
            strided((3, 10), (6, 2)),
            strided((3, 5), (6, 2)),
        ];
        let both: SlotSet =
            [sets[1], sets[4]].into_iter().fold(SlotSet::default(), |mut set, run| {
                set.push(run);
                set
            });
        let listed: Vec<Slot> = both.slots().map(|(slot, _)| slot).collect();
        for slot in 0..80 {
            let expected = listed.iter().position(|&s| s == slot).map(|i| i as u64);
            assert_eq!(both.position(slot), expected, "{slot}");
        }
        for position in 0..20 {
            assert_eq!(both.nth(position), listed.get(position as usize).copied());
        }
        for set in sets {
            let listed: Vec<Slot> = set.iter().collect();
            for slot in 0..80 {
                let expected = listed.iter().position(|&s| s == slot).map(|i| i as u64);
                assert_eq!(set.position(slot), expected, "{set:?} {slot}");
            }
            assert!((0..).zip(&listed).all(|(i, &slot)| set.nth(i) == slot));
        }
    }

    #[test]
    fn single_slots_grow_into_runs() {
        let mut set = SlotSet::default();
        for slot in [4, 5, 6, 9] {
            set.push_slot(slot, Part::Whole);
        }
        assert_eq!((set.runs().len(), set.len()), (2, 4));
        set.push_slot(10, Part::Bytes { first: 0, end: 2 });
        assert_eq!(set.bytes(8), 4 * 8 + 2);
    }
}
