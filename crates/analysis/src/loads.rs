//! What each directed link of a grid carries, counted on one period of the grid.

use topocoll_schedule::RankClasses;
use topocoll_topology::{Coordinates, Grid, Rank, Route};

/// Loads of the links of a grid, up to the translations of a [`RankClasses`].
///
/// Links that a translation maps onto each other carry the same, so one of them is counted, and
/// every route of a representative is folded onto it. A segment is entered at its two ends only;
/// the sums along each line come last. So a route costs its segments, not its hops.
pub(crate) struct Loads {
    periods: Coordinates,
    strides: Vec<usize>,
    /// By dimension and direction (+, -): what begins minus what ends at each position.
    lines: Vec<Line>,
    classes: usize,
}

#[derive(Default)]
struct Line {
    messages: Vec<i64>,
    bytes: Vec<i128>,
    used: bool,
}

/// The busiest links of one dimension.
#[derive(Clone, Copy, Default)]
pub(crate) struct Busiest {
    /// The most messages on one link.
    pub(crate) messages: u64,
    /// The most bytes on one link.
    pub(crate) bytes: u128,
    /// Counted links that carry several messages.
    pub(crate) shared: u64,
}

impl Loads {
    pub(crate) fn new(classes: &RankClasses) -> Self {
        let periods = Coordinates::from_slice(classes.periods());
        let mut strides = vec![1; periods.len()];
        for u in (0..periods.len() - 1).rev() {
            strides[u] = strides[u + 1] * periods[u + 1] as usize;
        }
        let classes = classes.count() as usize;
        let lines = (0..2 * periods.len()).map(|_| Line::default()).collect();
        Self { periods, strides, lines, classes }
    }

    /// Bytes that [`Loads::new`] will take once every dimension is used.
    pub(crate) fn memory(classes: &RankClasses) -> u128 {
        u128::from(classes.count()) * 2 * classes.periods().len() as u128 * 24
    }

    /// Adds a message of `bytes` that leaves `from` by `route`.
    pub(crate) fn add(&mut self, grid: &Grid, from: Rank, route: &Route, bytes: u128) {
        let mut at = grid.radix().coordinates(from);
        for segment in route.segments() {
            let u = segment.dimension as usize;
            let period = u64::from(self.periods[u]);
            let side = i64::from(grid.sides()[u]);
            let hops = segment.hops.unsigned_abs();
            let to = (i64::from(at[u]) + segment.hops).rem_euclid(side);
            // A link is numbered by the rank it leaves; downwards that is every position but the
            // last, so the lowest is one above it.
            let lowest = if segment.hops > 0 { i64::from(at[u]) } else { to + 1 };
            let first = (lowest.rem_euclid(side) as u64 % period) as usize;
            let base: usize = (0..at.len())
                .filter(|&v| v != u)
                .map(|v| (at[v] % self.periods[v]) as usize * self.strides[v])
                .sum();
            self.add_range(
                2 * u + usize::from(segment.hops < 0),
                u,
                base,
                first,
                hops,
                bytes as i128,
            );
            at[u] = to as u32;
        }
    }

    fn add_range(
        &mut self,
        line: usize,
        u: usize,
        base: usize,
        first: usize,
        hops: u64,
        bytes: i128,
    ) {
        let (period, stride) = (self.periods[u] as usize, self.strides[u]);
        let line = &mut self.lines[line];
        if line.messages.is_empty() {
            line.messages = vec![0; self.classes];
            line.bytes = vec![0; self.classes];
        }
        line.used = true;
        let mut enter = |position: usize, times: i64| {
            line.messages[base + position * stride] += times;
            line.bytes[base + position * stride] += i128::from(times) * bytes;
        };
        let (rounds, rest) = ((hops / period as u64) as i64, (hops % period as u64) as usize);
        if rounds > 0 {
            enter(0, rounds);
        }
        if rest > 0 {
            let end = first + rest;
            enter(first, 1);
            if end > period {
                enter(0, 1);
                enter(end - period, -1);
            } else if end < period {
                enter(end, -1);
            }
        }
    }

    /// What was added to both.
    pub(crate) fn merged(mut self, other: Self) -> Self {
        for (line, other) in self.lines.iter_mut().zip(other.lines) {
            if line.messages.is_empty() {
                *line = other;
            } else if other.used {
                line.used = true;
                line.messages.iter_mut().zip(other.messages).for_each(|(sum, more)| *sum += more);
                line.bytes.iter_mut().zip(other.bytes).for_each(|(sum, more)| *sum += more);
            }
        }
        self
    }

    /// The busiest links of each dimension; forgets what was added.
    pub(crate) fn take(&mut self, busiest: &mut Vec<Busiest>) {
        busiest.clear();
        busiest.resize(self.periods.len(), Busiest::default());
        self.drain(|u, _, _, messages, bytes| {
            let most = &mut busiest[u];
            most.messages = most.messages.max(messages);
            most.bytes = most.bytes.max(bytes);
            most.shared += u64::from(messages > 1);
        });
    }

    /// Calls `each` with the links of every line used: dimension, whether downwards, the class of
    /// the rank it leaves, messages and bytes. Forgets what was added.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(usize, bool, u32, u64, u128)) {
        for (i, line) in self.lines.iter_mut().enumerate().filter(|(_, line)| line.used) {
            let u = i / 2;
            let (period, stride) = (self.periods[u] as usize, self.strides[u]);
            // Lines along u: `stride` of them in each block of period * stride positions.
            for block in (0..self.classes).step_by(period * stride) {
                for offset in block..block + stride {
                    let (mut messages, mut bytes) = (0, 0);
                    for position in (offset..offset + period * stride).step_by(stride) {
                        messages += std::mem::take(&mut line.messages[position]);
                        bytes += std::mem::take(&mut line.bytes[position]);
                        each(u, i % 2 == 1, position as u32, messages as u64, bytes as u128);
                    }
                }
            }
            line.used = false;
        }
    }
}
