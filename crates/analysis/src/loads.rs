//! The load of each directed link, counted on one period of the machine.

use topocoll_schedule::RankClasses;
use topocoll_topology::{Coordinates, Grid, Rank, Route, Shape, Topology};

/// Loads of the links of a grid or lattice, up to the translations of a [`RankClasses`].
///
/// Equivalent links carry equal loads, so one of them is counted, and every route of a
/// representative is folded onto it. On a grid a segment is entered at its two ends only, and the
/// sums along each line come last: a route costs its segments, not its hops. On a lattice a route
/// costs its hops.
pub(crate) struct Loads {
    fold: Fold,
    /// By dimension and direction (+, -), for each position: on a grid the load that begins there
    /// minus the load that ends, on a lattice the load.
    lines: Vec<LineLoads>,
    classes: usize,
}

/// The fold of positions onto one period.
enum Fold {
    Grid { periods: Coordinates, strides: Vec<usize> },
    Lattice(RankClasses),
}

#[derive(Default)]
struct LineLoads {
    messages: Vec<i64>,
    bytes: Vec<i128>,
    used: bool,
}

impl LineLoads {
    fn open(&mut self, classes: usize) {
        if self.messages.is_empty() {
            self.messages = vec![0; classes];
            self.bytes = vec![0; classes];
        }
        self.used = true;
    }

    /// Enters `hops` links from position `first` of a period. Its positions are at `base` and every
    /// `stride` after.
    fn add_range(
        &mut self,
        base: usize,
        stride: usize,
        period: usize,
        first: usize,
        hops: u64,
        bytes: i128,
    ) {
        let mut enter = |position: usize, times: i64| {
            self.messages[base + position * stride] += times;
            self.bytes[base + position * stride] += i128::from(times) * bytes;
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
    /// Loads of 0. The classes must be [`common`](crate::symmetry::common) to a rule and the
    /// topology.
    pub(crate) fn new(classes: &RankClasses, topology: &dyn Topology) -> Self {
        let lines = (0..2 * topology.dimensions()).map(|_| LineLoads::default()).collect();
        let fold = match topology.shape() {
            Shape::Lattice(_) => Fold::Lattice(classes.clone()),
            _ => {
                let periods = Coordinates::from_slice(classes.periods());
                let mut strides = vec![1; periods.len()];
                for u in (0..periods.len() - 1).rev() {
                    strides[u] = strides[u + 1] * periods[u + 1] as usize;
                }
                Fold::Grid { periods, strides }
            }
        };
        Self { fold, lines, classes: classes.count() as usize }
    }

    /// Bytes that the loads take once every dimension is used.
    pub(crate) fn memory(classes: &RankClasses, topology: &dyn Topology) -> u128 {
        u128::from(classes.count()) * 2 * topology.dimensions() as u128 * 24
    }

    /// Adds a message of `bytes` that takes `route` from `from`.
    pub(crate) fn add(&mut self, topology: &dyn Topology, from: Rank, route: &Route, bytes: u128) {
        match topology.shape() {
            Shape::Grid(grid) => self.add_lines(grid, from, route, bytes),
            Shape::Lattice(_) => self.add_links(topology, from, route, bytes),
            Shape::Complete | Shape::Clustered(_) => {}
        }
    }

    fn add_links(&mut self, topology: &dyn Topology, from: Rank, route: &Route, bytes: u128) {
        let Self { fold: Fold::Lattice(classes), lines, .. } = self else {
            unreachable!("bug: the loads of a grid")
        };
        let per_rank = lines.len() as u64;
        topology.for_each_link(from, route, &mut |link| {
            let line = &mut lines[(link.0 % per_rank) as usize];
            line.open(self.classes);
            let class = classes.class_of(Rank((link.0 / per_rank) as u32)) as usize;
            line.messages[class] += 1;
            line.bytes[class] += bytes as i128;
        });
    }

    fn add_lines(&mut self, grid: &Grid, from: Rank, route: &Route, bytes: u128) {
        let Self { fold: Fold::Grid { periods, strides }, lines, classes } = self else {
            unreachable!("bug: the loads of a lattice")
        };
        let mut at = grid.radix().coordinates(from);
        for segment in route.segments() {
            let u = segment.dimension as usize;
            let period = u64::from(periods[u]);
            let side = i64::from(grid.sides()[u]);
            let hops = segment.hops.unsigned_abs();
            let to = (i64::from(at[u]) + segment.hops).rem_euclid(side);
            // A link is numbered by the rank it leaves. Downwards these are all positions of the
            // segment except the last, so the lowest is one above that.
            let lowest = if segment.hops > 0 { i64::from(at[u]) } else { to + 1 };
            let first = (lowest.rem_euclid(side) as u64 % period) as usize;
            let base: usize = (0..at.len())
                .filter(|&v| v != u)
                .map(|v| (at[v] % periods[v]) as usize * strides[v])
                .sum();
            let line = &mut lines[2 * u + usize::from(segment.hops < 0)];
            line.open(*classes);
            line.add_range(base, strides[u], period as usize, first, hops, bytes as i128);
            at[u] = to as u32;
        }
    }

    /// The sum of both.
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

    /// Writes the busiest links of each dimension and resets all loads.
    pub(crate) fn take(&mut self, busiest: &mut Vec<Busiest>) {
        busiest.clear();
        busiest.resize(self.lines.len() / 2, Busiest::default());
        self.drain(|u, _, _, messages, bytes| {
            let most = &mut busiest[u];
            most.messages = most.messages.max(messages);
            most.bytes = most.bytes.max(bytes);
            most.shared += u64::from(messages > 1);
        });
    }

    /// Calls `each` with the links of every line used: dimension, whether downwards, the class of
    /// the rank it leaves, messages and bytes. Resets all loads.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(usize, bool, u32, u64, u128)) {
        let Self { fold, lines, classes } = self;
        for (i, line) in lines.iter_mut().enumerate().filter(|(_, line)| line.used) {
            let (u, downwards) = (i / 2, i % 2 == 1);
            line.used = false;
            let mut take = |position: usize| {
                let messages = std::mem::take(&mut line.messages[position]);
                (messages, std::mem::take(&mut line.bytes[position]))
            };
            let Fold::Grid { periods, strides } = fold else {
                for class in 0..*classes {
                    let (messages, bytes) = take(class);
                    each(u, downwards, class as u32, messages as u64, bytes as u128);
                }
                continue;
            };
            let (period, stride) = (periods[u] as usize, strides[u]);
            // Lines along u: `stride` of them in each block of period * stride positions.
            for block in (0..*classes).step_by(period * stride) {
                for offset in block..block + stride {
                    let (mut messages, mut bytes) = (0, 0);
                    for position in (offset..offset + period * stride).step_by(stride) {
                        let begins = take(position);
                        messages += begins.0;
                        bytes += begins.1;
                        each(u, downwards, position as u32, messages as u64, bytes as u128);
                    }
                }
            }
        }
    }
}
