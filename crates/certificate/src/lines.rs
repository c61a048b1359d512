//! The links of a grid, counted line by line.

use crate::radix::Radix;

/// Hops along a dimension of a grid, or over the link at a port of each vertex of a graph.
pub(crate) type Segment = (usize, i64);

/// A grid of nodes.
pub(crate) struct Grid {
    /// Its sides; each is its own period.
    pub(crate) places: Radix,
    /// Which sides wrap.
    pub(crate) wraps: Vec<bool>,
    /// Whether the machine's own routes at exactly half a ring go down from odd coordinates, and not
    /// always up.
    pub(crate) balanced: bool,
}

impl Grid {
    pub(crate) fn name(&self) -> String {
        let side =
            |(side, wraps): (&u32, &bool)| format!("{side}{}", if *wraps { "~" } else { "" });
        let sides: Vec<_> = self.places.sides.iter().zip(&self.wraps).map(side).collect();
        format!("grid {}{}", sides.join("x"), if self.balanced { " balanced" } else { "" })
    }

    /// Whether a translation by this period along a side keeps the links and the machine's routes.
    pub(crate) fn keeps(&self, u: usize, period: u32) -> bool {
        let side = self.places.sides[u];
        let ties = self.balanced && side % 2 == 0;
        period == side || self.wraps[u] && (period % 2 == 0 || !ties)
    }

    /// Writes the machine's own route: dimension 0 first, in the nearer direction.
    fn own_route(&self, from: u32, to: u32, route: &mut Vec<Segment>) {
        route.clear();
        for (u, &wraps) in self.wraps.iter().enumerate() {
            let side = i64::from(self.places.sides[u]);
            let [from, to] = [from, to].map(|node| i64::from(self.places.coordinate(node, u)));
            let hops = match (to - from).rem_euclid(side) {
                _ if !wraps => to - from,
                up if 2 * up == side && self.balanced && from % 2 == 1 => -up,
                up if 2 * up <= side => up,
                up => up - side,
            };
            if hops != 0 {
                route.push((u, hops));
            }
        }
    }

    /// Calls `each` with the segments of a route and the node that each of them leaves. Returns the
    /// node where the route ends; `None` if it leaves the grid or goes all around a side.
    fn walk(
        &self,
        from: u32,
        route: &[Segment],
        mut each: impl FnMut(u32, Segment),
    ) -> Option<u32> {
        let mut node = from;
        for &(u, hops) in route {
            let side = i64::from(*self.places.sides.get(u)?);
            let at = i64::from(self.places.coordinate(node, u));
            let to = at.checked_add(hops)?;
            let stays =
                if self.wraps[u] { hops > -side && hops < side } else { to >= 0 && to < side };
            if !stays {
                return None;
            }
            each(node, (u, hops));
            let moved = (to.rem_euclid(side) - at) * i64::from(self.places.strides[u]);
            node = (i64::from(node) + moved) as u32;
        }
        Some(node)
    }
}

/// The messages on the links of a network in one step.
#[derive(Clone, Copy, Default)]
pub(crate) struct Busiest {
    /// The most messages on a link.
    pub(crate) messages: u128,
    /// The largest load, in bytes.
    pub(crate) load: u128,
    /// The links that carry several messages.
    pub(crate) shared: u128,
}

/// The links of a grid, up to the translations that keep them.
pub(crate) struct Lines<'c> {
    grid: &'c Grid,
    /// Links whose coordinates are equal modulo these are counted as one.
    periods: &'c [u32],
    /// The number of links that one represents.
    each: u128,
    /// By dimension and direction, then by the lower position of a link's two ends: the messages
    /// and bytes that it carries more than the link before it on its line.
    more: Vec<(i64, i128)>,
    /// Whether a line, named by its first link, has messages, and the lines that have.
    used: Vec<bool>,
    lines: Vec<usize>,
    /// The number of positions.
    positions: usize,
    /// Memory for the machine's own route.
    own: Vec<Segment>,
}

impl<'c> Lines<'c> {
    pub(crate) fn new(grid: &'c Grid, periods: &'c [u32], each: u128) -> Self {
        let positions: usize = periods.iter().map(|&period| period as usize).product();
        let count = 2 * periods.len() * positions;
        let (more, used) = (vec![(0, 0); count], vec![false; count]);
        let (lines, own) = (Vec::new(), Vec::new());
        Self { grid, periods, each, more, used, lines, positions, own }
    }

    /// The distance of neighbouring positions along dimension u.
    fn stride(&self, u: usize) -> usize {
        self.periods[u + 1..].iter().map(|&period| period as usize).product()
    }

    /// Adds a number of messages between two nodes and returns their hops; `None` if the route does
    /// not end at the second.
    pub(crate) fn add(
        &mut self,
        [from, to]: [u32; 2],
        route: Option<&[Segment]>,
        times: u32,
        bytes: u128,
    ) -> Option<u128> {
        let grid = self.grid;
        let mut own = std::mem::take(&mut self.own);
        let route = route.unwrap_or_else(|| {
            grid.own_route(from, to, &mut own);
            &own
        });
        let mut hops = 0;
        let end = grid.walk(from, route, |node, segment| {
            self.add_segment(node, segment, times.into(), bytes as i128);
            hops += u128::from(segment.1.unsigned_abs());
        });
        self.own = own;
        (end == Some(to)).then_some(hops)
    }

    /// Adds a segment of messages from a node: the load grows where it enters a line and falls where
    /// it leaves.
    fn add_segment(&mut self, node: u32, (u, hops): Segment, times: i64, bytes: i128) {
        let (side, period) = (i64::from(self.grid.places.sides[u]), i64::from(self.periods[u]));
        let first = (0..self.periods.len()).fold(0, |position, v| {
            let at =
                if v == u { 0 } else { self.grid.places.coordinate(node, v) % self.periods[v] };
            position * self.periods[v] as usize + at as usize
        });
        let line = (2 * u + usize::from(hops < 0)) * self.positions + first;
        if !std::mem::replace(&mut self.used[line], true) {
            self.lines.push(line);
        }
        let stride = self.stride(u);
        let mut enter = |position: i64, rounds: i64| {
            let (messages, load) = &mut self.more[line + position as usize * stride];
            *messages += rounds * times;
            *load += i128::from(rounds * times) * bytes;
        };
        let lowest = i64::from(self.grid.places.coordinate(node, u)) + hops.min(0);
        let begin = lowest.rem_euclid(side) % period;
        let (rounds, end) = (hops.abs() / period, begin + hops.abs() % period);
        enter(0, rounds + i64::from(end > period));
        enter(begin, 1);
        match end {
            end if end > period => enter(end - period, -1),
            end if end < period => enter(end, -1),
            _ => {}
        }
    }

    /// The busiest links. Resets all loads.
    pub(crate) fn busiest(&mut self) -> Busiest {
        let mut busiest = Busiest::default();
        while let Some(line) = self.lines.pop() {
            let u = line / self.positions / 2;
            let stride = self.stride(u);
            let (mut messages, mut load) = (0, 0);
            for position in 0..self.periods[u] as usize {
                let more = std::mem::take(&mut self.more[line + position * stride]);
                (messages, load) = (messages + more.0, load + more.1);
                busiest.messages = busiest.messages.max(messages as u128);
                busiest.load = busiest.load.max(load as u128);
                busiest.shared += if messages > 1 { self.each } else { 0 };
            }
            self.used[line] = false;
        }
        busiest
    }
}
