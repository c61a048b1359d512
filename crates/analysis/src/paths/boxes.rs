//! Boxes of slots, which strided sets cut and move.

use smallvec::SmallVec;
use topocoll_schedule::{Axis, Slot, SlotSet, Strided};

use super::Span;

/// Slots that travel together: their initial and their current positions.
///
/// Both are sums over the axes of index times stride, so the set is a product of ranges. Axes have
/// a count of at least 2 and a positive current stride, the largest first.
#[derive(Clone, Debug)]
pub(crate) struct SlotBox {
    start: i64,
    now: i64,
    axes: SmallVec<[BoxAxis; 4]>,
}

#[derive(Clone, Copy, Debug)]
struct BoxAxis {
    count: i64,
    /// The current distance between the slots.
    stride: i64,
    /// The initial distance between the slots.
    start_stride: i64,
}

/// A move of the slots of one strided set onto those of another, axis by axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Map {
    from: i64,
    to: i64,
    /// The period and what repeats in it; the slower axis has the larger stride.
    slow: MapAxis,
    fast: MapAxis,
    /// Whether every slot stays where it is.
    stays: bool,
}

#[derive(Clone, Copy, Debug)]
struct MapAxis {
    count: i64,
    from: i64,
    to: i64,
}

impl Map {
    /// The maps that take the i-th slot of `from` to the i-th of `to`, or `None` if their numbers
    /// of slots differ.
    pub(crate) fn between(from: &SlotSet, to: &SlotSet) -> Option<Vec<Self>> {
        if from.len() != to.len() {
            return None;
        }
        let shape = |strided: &Strided| (strided.outer.count, strided.inner.count);
        let alike = from.runs().len() == to.runs().len()
            && from
                .runs()
                .iter()
                .zip(to.runs())
                .all(|(from, to)| shape(&from.slots) == shape(&to.slots));
        let mut maps = Vec::new();
        if alike {
            for (from, to) in from.runs().iter().zip(to.runs()) {
                Self::push(&mut maps, from.slots, to.slots);
            }
            return Some(maps);
        }
        // A run of one axis can be reshaped like the other end.
        if let ([from], [to]) = (from.runs(), to.runs()) {
            let reshaped = |run: Strided, like: Strided| {
                (run.outer.count == 1).then(|| {
                    let outer = Axis {
                        count: like.outer.count,
                        stride: run.inner.stride * like.inner.count as i64,
                    };
                    Strided {
                        base: run.base,
                        outer,
                        inner: Axis { count: like.inner.count, stride: run.inner.stride },
                    }
                })
            };
            if let Some(from) = reshaped(from.slots, to.slots) {
                Self::push(&mut maps, from, to.slots);
                return Some(maps);
            }
            if let Some(to) = reshaped(to.slots, from.slots) {
                Self::push(&mut maps, from.slots, to);
                return Some(maps);
            }
        }
        for ((from, _), (to, _)) in from.slots().zip(to.slots()) {
            Self::push(&mut maps, Strided::contiguous(from, 1), Strided::contiguous(to, 1));
        }
        Some(maps)
    }

    /// The maps that leave the slots of a set where they are.
    pub(crate) fn identity(set: Strided) -> Vec<Self> {
        let mut maps = Vec::new();
        Self::push(&mut maps, set, set);
        maps
    }

    /// Adds the map of two sets of one shape; several where the axes of `from` interleave.
    fn push(maps: &mut Vec<Self>, from: Strided, to: Strided) {
        let mut map = Self {
            from: from.base as i64,
            to: to.base as i64,
            slow: MapAxis {
                count: from.outer.count as i64,
                from: from.outer.stride,
                to: to.outer.stride,
            },
            fast: MapAxis {
                count: from.inner.count as i64,
                from: from.inner.stride,
                to: to.inner.stride,
            },
            stays: from == to,
        };
        for axis in [&mut map.slow, &mut map.fast] {
            if axis.from < 0 {
                map.from += (axis.count - 1) * axis.from;
                map.to += (axis.count - 1) * axis.to;
                (axis.from, axis.to) = (-axis.from, -axis.to);
            }
        }
        if map.slow.count == 1 || map.fast.count > 1 && map.fast.from > map.slow.from {
            std::mem::swap(&mut map.slow, &mut map.fast);
        }
        if map.fast.count == 1 {
            map.fast = MapAxis { count: 1, from: 1, to: 1 };
        }
        if map.slow.count == 1 {
            map.slow = MapAxis { count: 1, from: 1, to: 1 };
        }
        // A run of stride 1 is all fast axis; its period is never reached.
        if map.fast.count == 1 && map.slow.from == 1 {
            std::mem::swap(&mut map.slow, &mut map.fast);
        }
        if map.slow.count == 1 {
            map.slow.from = i64::MAX / 4;
        }
        if map.slow.from >= map.fast.count * map.fast.from {
            maps.push(map);
            return;
        }
        for i in 0..map.slow.count {
            let slow = MapAxis { count: 1, from: i64::MAX / 4, to: 0 };
            maps.push(Self {
                from: map.from + i * map.slow.from,
                to: map.to + i * map.slow.to,
                slow,
                fast: map.fast,
                stays: map.stays,
            });
        }
    }
}

/// The position of a box relative to the slots of a map.
enum Relation {
    Outside,
    /// Inside: the slow and the fast index of the box's first slot.
    Inside(i64, i64),
    /// Cut axis `axis` before these indices.
    Cut {
        axis: usize,
        below: i64,
        above: i64,
    },
    /// Split axis `axis` into two, the inner of `count`.
    Factor {
        axis: usize,
        count: i64,
    },
}

impl SlotBox {
    /// `count` consecutive slots from `first`, at their initial positions.
    pub(crate) fn contiguous(first: Slot, count: u64) -> Self {
        let axis = BoxAxis { count: count as i64, stride: 1, start_stride: 1 };
        let axes = if count > 1 { SmallVec::from_slice(&[axis]) } else { SmallVec::new() };
        Self { start: first as i64, now: first as i64, axes }
    }

    /// The slots, each as (initial, current).
    pub(crate) fn slots(&self) -> impl Iterator<Item = (Slot, Slot)> + '_ {
        let count: i64 = self.axes.iter().map(|axis| axis.count).product();
        (0..count).map(|i| {
            let (mut rest, mut start, mut now) = (i, self.start, self.now);
            for axis in self.axes.iter().rev() {
                let index = rest % axis.count;
                rest /= axis.count;
                start += index * axis.start_stride;
                now += index * axis.stride;
            }
            (start as Slot, now as Slot)
        })
    }

    /// The current span of the slots.
    pub(crate) fn span(&self) -> Span {
        let reach: i64 = self.axes.iter().map(|axis| (axis.count - 1) * axis.stride).sum();
        Span::new(self.now as Slot, (self.now + reach) as Slot)
    }

    /// Moves the box by the map and returns `true` if all of it is in the map's set; `false` if
    /// none of it is; `None` if it must be cut.
    pub(crate) fn pass_whole(&mut self, map: &Map) -> Option<bool> {
        match self.relation(map) {
            Relation::Outside => Some(false),
            Relation::Inside(slow, fast) => {
                self.advance(map, slow, fast);
                Some(true)
            }
            Relation::Factor { .. } | Relation::Cut { .. } => None,
        }
    }

    /// Passes the part of the box in the map's set, moved by the map, to `inside`, and the rest to
    /// `outside`.
    pub(crate) fn split(
        mut self,
        map: &Map,
        inside: &mut impl FnMut(Self),
        outside: &mut impl FnMut(Self),
    ) {
        match self.relation(map) {
            Relation::Outside => outside(self),
            Relation::Inside(slow, fast) => {
                self.advance(map, slow, fast);
                inside(self);
            }
            Relation::Factor { axis, count } => {
                let mut factored = self;
                let whole = factored.axes[axis];
                let outer = BoxAxis {
                    count: whole.count / count,
                    stride: whole.stride * count,
                    start_stride: whole.start_stride * count,
                };
                factored.axes[axis] = BoxAxis { count, ..whole };
                factored.axes.insert(axis, outer);
                factored.tidied().split(map, inside, outside);
            }
            Relation::Cut { axis, below, above } => {
                let count = self.axes[axis].count;
                self.slice(axis, 0, below, map, inside, outside);
                for i in below..above {
                    self.slice(axis, i, i + 1, map, inside, outside);
                }
                self.slice(axis, above, count, map, inside, outside);
            }
        }
    }

    fn slice(
        &self,
        axis: usize,
        first: i64,
        end: i64,
        map: &Map,
        inside: &mut impl FnMut(Self),
        outside: &mut impl FnMut(Self),
    ) {
        if first >= end {
            return;
        }
        let mut part = self.clone();
        let along = &mut part.axes[axis];
        along.count = end - first;
        part.start += first * along.start_stride;
        part.now += first * along.stride;
        part.tidied().split(map, inside, outside);
    }

    fn relation(&self, map: &Map) -> Relation {
        let (period, unit) = (map.slow.from, map.fast.from);
        let position = self.now - map.from;
        let (slow, rest) = (position.div_euclid(period), position.rem_euclid(period));
        let single = map.slow.count == 1;
        // An axis moves by whole periods, or within one.
        let is_slow = |axis: &BoxAxis| !single && axis.stride % period == 0;
        let reach = |slow: bool| -> i64 {
            self.axes
                .iter()
                .filter(|axis| is_slow(axis) == slow)
                .map(|axis| (axis.count - 1) * axis.stride)
                .sum()
        };
        if single && position < 0 {
            // Only the beginning of the set: its end is checked below.
            return self.within(position, 0, |_| true);
        }
        let (slow_reach, fast_reach) = (reach(true), reach(false));
        if !single && rest + fast_reach >= period {
            return self.fit_period(rest, period, is_slow);
        }
        let slow_last = slow + slow_reach / period;
        if slow_last < 0 || slow >= map.slow.count || rest >= map.fast.count * unit {
            return Relation::Outside;
        }
        if slow < 0 || slow_last >= map.slow.count {
            return self.within(slow * period, map.slow.count * period, is_slow);
        }
        if rest + fast_reach >= map.fast.count * unit {
            return self.within(rest, map.fast.count * unit, |axis| !is_slow(axis));
        }
        if unit > 1 {
            match self.axes.iter().position(|axis| !is_slow(axis) && axis.stride % unit != 0) {
                // Its slots alternate between the residues: split it.
                Some(axis) => {
                    return Relation::Cut { axis, below: 0, above: self.axes[axis].count };
                }
                None if rest % unit != 0 => return Relation::Outside,
                None => {}
            }
        }
        Relation::Inside(slow, rest / unit)
    }

    /// Cuts the largest of the `chosen` axes where the window `0..end` begins or ends; `position`
    /// is where the box begins along them.
    fn within(&self, position: i64, end: i64, chosen: impl Fn(&BoxAxis) -> bool) -> Relation {
        let reach: i64 = self
            .axes
            .iter()
            .filter(|axis| chosen(axis))
            .map(|axis| (axis.count - 1) * axis.stride)
            .sum();
        if position >= end || position + reach < 0 {
            return Relation::Outside;
        }
        let border = if position < 0 { 0 } else { end };
        let i =
            self.axes.iter().position(chosen).expect("bug: a box of one slot is inside or outside");
        let axis = self.axes[i];
        let others = reach - (axis.count - 1) * axis.stride;
        let up = |distance: i64| {
            (distance + axis.stride - 1).div_euclid(axis.stride).clamp(0, axis.count)
        };
        Relation::Cut {
            axis: i,
            below: up(border - others - position),
            above: up(border - position),
        }
    }

    /// A box that crosses from one period into the next within its fast axes.
    fn fit_period(&self, rest: i64, period: i64, is_slow: impl Fn(&BoxAxis) -> bool) -> Relation {
        let i = self
            .axes
            .iter()
            .position(|axis| !is_slow(axis))
            .expect("bug: a box of one slot crosses nothing");
        let axis = self.axes[i];
        let per_period = period / axis.stride;
        if axis.stride < period && period % axis.stride == 0 && axis.count > per_period {
            return match axis.count % per_period {
                0 => Relation::Factor { axis: i, count: per_period },
                over => {
                    Relation::Cut { axis: i, below: axis.count - over, above: axis.count - over }
                }
            };
        }
        if axis.stride >= period {
            return Relation::Cut { axis: i, below: 0, above: axis.count };
        }
        let fast = self.axes.iter().filter(|axis| !is_slow(axis));
        let others = fast.map(|axis| (axis.count - 1) * axis.stride).sum::<i64>()
            - (axis.count - 1) * axis.stride;
        let up = |distance: i64| {
            (distance + axis.stride - 1).div_euclid(axis.stride).clamp(0, axis.count)
        };
        let (below, above) = (up(period - others - rest), up(period - rest));
        Relation::Cut { axis: i, below, above }
    }

    /// Moves a box that lies inside, its first slot at these indices.
    fn advance(&mut self, map: &Map, slow: i64, fast: i64) {
        if map.stays {
            return;
        }
        let (period, single) = (map.slow.from, map.slow.count == 1);
        self.now = map.to + slow * map.slow.to + fast * map.fast.to;
        for axis in &mut self.axes {
            axis.stride = if !single && axis.stride % period == 0 {
                axis.stride / period * map.slow.to
            } else {
                axis.stride / map.fast.from * map.fast.to
            };
            if axis.stride < 0 {
                self.now += (axis.count - 1) * axis.stride;
                self.start += (axis.count - 1) * axis.start_stride;
                (axis.stride, axis.start_stride) = (-axis.stride, -axis.start_stride);
            }
        }
        self.tidy();
    }

    fn tidied(mut self) -> Self {
        self.tidy();
        self
    }

    /// Drops axes of one slot and sorts the others.
    fn tidy(&mut self) {
        self.axes.retain(|axis| axis.count > 1);
        if !self.axes.is_sorted_by(|a, b| a.stride >= b.stride) {
            self.axes.sort_unstable_by_key(|axis| std::cmp::Reverse(axis.stride));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares `split` with moving one slot at a time.
    fn check(pieces: &SlotBox, from: Strided, to: Strided) {
        let (from, to) = (SlotSet::of(from), SlotSet::of(to));
        let mut expected: Vec<(Slot, Slot)> = pieces.slots().collect();
        let mut hit = vec![false; expected.len()];
        for (i, (_, now)) in expected.iter_mut().enumerate() {
            if let Some(nth) = from.slots().position(|(slot, _)| slot == *now) {
                *now = to.slots().nth(nth).unwrap().0;
                hit[i] = true;
            }
        }
        let mut rest = vec![pieces.clone()];
        let mut got = Vec::new();
        for map in Map::between(&from, &to).unwrap() {
            let mut outside = Vec::new();
            for part in rest {
                part.split(
                    &map,
                    &mut |inside| got.extend(inside.slots().map(|s| (s, true))),
                    &mut |p| outside.push(p),
                );
            }
            rest = outside;
        }
        got.extend(rest.iter().flat_map(SlotBox::slots).map(|s| (s, false)));
        let mut expected: Vec<_> = expected.into_iter().zip(hit).collect();
        got.sort_unstable();
        expected.sort_unstable();
        assert_eq!(got, expected, "{pieces:?} by {from:?} -> {to:?}");
    }

    #[test]
    fn splitting_agrees_with_listing() {
        let strided = |base, outer: (u64, i64), inner: (u64, i64)| Strided {
            base,
            outer: Axis { count: outer.0, stride: outer.1 },
            inner: Axis { count: inner.0, stride: inner.1 },
        };
        let sets = [
            strided(0, (1, 0), (48, 1)),
            strided(12, (1, 0), (20, 1)),
            strided(4, (3, 16), (8, 1)),
            strided(1, (6, 8), (3, 2)),
            strided(5, (1, 0), (9, 3)),
            strided(0, (4, 12), (12, 1)),
            strided(0, (12, 1), (4, 12)),
            strided(40, (2, -9), (5, -3)),
            strided(7, (5, 2), (4, 5)),
            strided(3, (1, 0), (1, 1)),
            // Sets of equally many slots: backwards, and with several strides.
            strided(47, (1, 0), (48, -1)),
            strided(2, (1, 0), (10, 3)),
            strided(20, (2, 10), (5, 2)),
            strided(30, (2, 9), (5, -3)),
            strided(1, (4, 2), (6, 9)),
            strided(40, (6, -7), (4, 11)),
            strided(2, (1, 0), (20, 3)),
            // Rows that interleave with their neighbours.
            strided(20, (2, 7), (3, 4)),
            strided(3, (1, 0), (6, 5)),
        ];
        let mut boxes = vec![
            SlotBox::contiguous(0, 48),
            SlotBox::contiguous(10, 1),
            SlotBox::contiguous(5, 17),
        ];
        // Boxes that splitting leaves.
        for set in sets {
            for whole in boxes.clone().iter().take(3) {
                let mut parts = Vec::new();
                for map in Map::between(&SlotSet::of(set), &SlotSet::of(set)).unwrap() {
                    whole.clone().split(&map, &mut |part| parts.push(part), &mut |_| ());
                }
                boxes.extend(parts.into_iter().take(3));
            }
        }
        // Boxes that have moved, also backwards.
        for from in sets {
            for to in sets.iter().filter(|to| to.len() == from.len() && to.base != from.base) {
                for map in Map::between(&SlotSet::of(from), &SlotSet::of(*to)).unwrap() {
                    let whole = SlotBox::contiguous(0, 48);
                    whole.split(&map, &mut |part| boxes.push(part), &mut |_| ());
                }
            }
        }
        for pieces in &boxes {
            for from in sets {
                for to in sets.iter().filter(|to| to.len() == from.len()) {
                    // Sets must not list a slot twice.
                    let mut listed: Vec<_> = from.iter().collect();
                    listed.sort_unstable();
                    listed.dedup();
                    if listed.len() as u64 == from.len() {
                        check(pieces, from, *to);
                    }
                }
            }
        }
    }

    #[test]
    fn identities_take_all_slots_of_a_set() {
        let axis = |count, stride| Axis { count, stride };
        // The second interleaves: 0, 2, 4, then 3, 5, 7.
        for (outer, inner) in
            [((1, 0), (6, 2)), ((2, 3), (3, 2)), ((3, 2), (2, -3)), ((2, 7), (3, 4))]
        {
            let (outer, inner) = (axis(outer.0, outer.1), axis(inner.0, inner.1));
            let set = Strided { base: 10, outer, inner };
            let mut taken = Vec::new();
            for map in Map::identity(set) {
                let all = SlotBox::contiguous(0, 40);
                all.split(&map, &mut |inside| taken.extend(inside.slots()), &mut |_| ());
            }
            taken.sort_unstable();
            let mut expected: Vec<_> = set.iter().map(|slot| (slot, slot)).collect();
            expected.sort_unstable();
            assert_eq!(taken, expected, "{set:?}");
        }
    }
}
