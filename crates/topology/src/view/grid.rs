//! A grid's ranks and links as those of another grid.

use std::sync::Arc;

use crate::{
    Coordinates, Graph, Grid, Machine, PerClass, Rank, Route, Segment, Shape, Ties, Topology,
};

/// A grid, or a hypercube, whose ranks and links are seen as those of another grid: its dimensions in
/// another order, without sides of 1, and with other directions at half a ring.
///
/// A ring of 4 is also two sides of 2 that do not wrap, by the Gray code 00, 01, 11, 10 of positions 0
/// to 3, and two such sides are also a ring of 4. The views of a machine have equally many links, which
/// join the same ranks.
#[derive(Clone, Debug)]
pub(super) struct GridView {
    grid: Grid,
    /// By dimension of the view.
    axes: Vec<Axis>,
    name: String,
    machine: Grid,
    /// By dimension of the machine, the first port of its links, where routes name ports.
    ports: Option<Vec<u32>>,
}

/// A dimension of a view, in dimensions of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Axis {
    Whole(usize),
    /// A side of 2: the higher bit of the Gray code of a ring of 4, or the lower one.
    Half(usize, bool),
    /// A ring of 4: the sides of the higher and the lower bit.
    Joined(usize, usize),
}

/// The most views of a machine that [`GridView::all`] lists.
const MOST: usize = 24;

impl GridView {
    /// A machine with its dimensions as axes in this order, such as `1:0`. A side of 1 may be left out. A ring
    /// of 4 that is named twice is two sides of 2, the higher bit first; `0+1` joins two such sides to a ring.
    ///
    /// # Errors
    /// The rule that the axes break.
    pub(super) fn new(
        topology: &dyn Topology,
        name: &str,
        ties: Option<Ties>,
    ) -> Result<Self, String> {
        let Some((machine, ports)) = as_grid(topology) else {
            return Err("for a grid or hypercube".to_owned());
        };
        let sides = machine.sides().len();
        let number = |text: &str| {
            let rule = || format!("dimensions from 0 to {}, such as 1:0", sides - 1);
            text.parse::<usize>().ok().filter(|&u| u < sides).ok_or_else(rule)
        };
        let mut axes: Vec<Axis> = Vec::new();
        let is = |u: usize, side: u32| (machine.sides()[u], machine.wrap()[u]) == (side, side == 4);
        for text in name.split(':') {
            let Some((u, v)) = text.split_once('+') else {
                let u = number(text)?;
                match axes.iter().position(|&axis| axis == Axis::Whole(u)) {
                    Some(first) if is(u, 4) => {
                        axes[first] = Axis::Half(u, true);
                        axes.push(Axis::Half(u, false));
                    }
                    _ => axes.push(Axis::Whole(u)),
                }
                continue;
            };
            let (u, v) = (number(u)?, number(v)?);
            if u == v || !is(u, 2) || !is(v, 2) {
                return Err("a sum of two sides of 2 that do not wrap".to_owned());
            }
            axes.push(Axis::Joined(u, v));
        }
        let named = |u: usize| {
            let bits = |axis: &Axis| match *axis {
                Axis::Whole(v) => 2 * u32::from(u == v),
                Axis::Half(v, _) => u32::from(u == v),
                Axis::Joined(v, w) => 2 * u32::from(u == v || u == w),
            };
            axes.iter().map(bits).sum::<u32>()
        };
        if let Some(u) =
            (0..sides).find(|&u| named(u) > 2 || named(u) < 2 && machine.sides()[u] > 1)
        {
            return Err(format!("dimension {u} once among others, or twice if it is a ring of 4"));
        }
        Self::of(&machine, &ports, &axes, ties).ok_or_else(|| "at most 32 dimensions".to_owned())
    }

    /// The view of these axes.
    fn of(
        machine: &Grid,
        ports: &Option<Vec<u32>>,
        axes: &[Axis],
        ties: Option<Ties>,
    ) -> Option<Self> {
        let side = |axis: &Axis| match *axis {
            Axis::Whole(u) => (machine.sides()[u], machine.wrap()[u]),
            Axis::Half(..) => (2, false),
            Axis::Joined(..) => (4, true),
        };
        let (sides, wrap): (Vec<_>, Vec<_>) = axes.iter().map(side).unzip();
        let grid = Grid::new(&sides, &wrap).ok()?.with_ties(ties.unwrap_or(machine.ties()));
        let names = axes.iter().map(|axis| match axis {
            Axis::Whole(u) | Axis::Half(u, _) => u.to_string(),
            Axis::Joined(u, v) => format!("{u}+{v}"),
        });
        let name = names.collect::<Vec<_>>().join(":");
        let (axes, machine, ports) = (axes.to_vec(), machine.clone(), ports.clone());
        Some(Self { grid, axes, name, machine, ports })
    }

    /// The same machine with all dimensions in their order, and these directions at half a ring.
    ///
    /// # Errors
    /// Neither a grid nor a hypercube.
    pub(super) fn with_ties(topology: &dyn Topology, ties: Ties) -> Result<Self, String> {
        let sides = as_grid(topology).map_or(0, |(grid, _)| grid.sides().len());
        let order: Vec<_> = (0..sides).map(|u| u.to_string()).collect();
        Self::new(topology, &order.join(":"), Some(ties))
    }

    /// The views that may give other schedules than the machine itself, at most 24: those of equal sides,
    /// timing values and ties are one. They are the same for all orders of a machine's dimensions.
    pub(super) fn all(machine: &Machine) -> Vec<Self> {
        let Some((grid, ports)) = as_grid(&*machine.topology) else { return Vec::new() };
        if !machine.links_are_of_class() {
            return Vec::new();
        }
        let long: Vec<usize> = grid.radix().long_dimensions().collect();
        let values = |u: usize| {
            let timing = &machine.timing;
            [&timing.startup, &timing.per_byte, &timing.per_hop].map(|each| each.of(u).to_bits())
        };
        let key = |axis: &Axis| match *axis {
            Axis::Whole(u) => (grid.sides()[u], grid.wrap()[u], values(u)),
            Axis::Half(u, _) => (2, false, values(u)),
            Axis::Joined(u, _) => (4, true, values(u)),
        };
        let mut shapes = vec![long.iter().map(|&u| Axis::Whole(u)).collect::<Vec<_>>()];
        let side = |u: usize| (grid.sides()[u], grid.wrap()[u]);
        if long.iter().all(|&u| [(2, false), (4, true)].contains(&side(u))) {
            let split = |&u: &usize| match side(u) {
                (4, _) => vec![Axis::Half(u, true), Axis::Half(u, false)],
                _ => vec![Axis::Whole(u)],
            };
            shapes.push(long.iter().flat_map(split).collect());
            let mut twos: Vec<usize> = long.iter().copied().filter(|&u| side(u).0 == 2).collect();
            twos.sort_by_key(|&u| values(u));
            let mut joined: Vec<_> =
                long.iter().filter(|&&u| side(u).0 == 4).map(|&u| Axis::Whole(u)).collect();
            while let Some(u) = twos.pop() {
                match twos.pop_if(|v| values(*v) == values(u)) {
                    Some(v) => joined.push(Axis::Joined(v, u)),
                    None => joined.push(Axis::Whole(u)),
                }
            }
            shapes.push(joined);
        }
        let is_own = ports.is_none();
        let own = (0..grid.sides().len()).map(|u| key(&Axis::Whole(u))).collect::<Vec<_>>();
        let mut known = vec![(own, grid.ties())];
        known.truncate(usize::from(is_own));
        let mut views = Vec::new();
        for mut axes in shapes {
            axes.sort_by_key(key);
            loop {
                let keys: Vec<_> = axes.iter().map(key).collect();
                let tied = keys.iter().any(|&(side, wraps, _)| wraps && side % 2 == 0);
                for ties in [Ties::Up, Ties::Balanced] {
                    let same = (keys.clone(), ties);
                    if views.len() == MOST || known.contains(&same) || ties != Ties::Up && !tied {
                        continue;
                    }
                    known.push(same);
                    views.extend(Self::of(&grid, &ports, &axes, Some(ties)));
                }
                if views.len() == MOST || !next_order(&mut axes, key) {
                    break;
                }
            }
        }
        views
    }

    /// The grid that algorithms see.
    pub(super) fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Its axes and ties, as [`new`](Self::new) reads them, where they are not those of the machine.
    pub(super) fn words(&self) -> [Option<String>; 2] {
        let ties = if self.grid.ties() == Ties::Up { "up" } else { "balanced" };
        let in_order = self.ports.is_none() && self.is_in_order();
        [
            (!in_order).then(|| self.name.clone()),
            (self.grid.ties() != self.machine.ties()).then(|| ties.to_owned()),
        ]
    }

    /// Whether its dimensions are all those of the machine in their order.
    fn is_in_order(&self) -> bool {
        (0..self.machine.sides().len()).map(Axis::Whole).eq(self.axes.iter().copied())
    }

    /// Whether ranks have the same numbers, and messages the same routes, as on a hypercube.
    pub(super) fn is_of_own_ranks(&self) -> bool {
        self.ports.is_some() && self.is_in_order()
    }

    /// Whether its rings are not those of a grid: it joins or splits some, or is of a hypercube.
    pub(super) fn has_other_rings(&self) -> bool {
        self.ports.is_some() || !self.axes.iter().all(|axis| matches!(axis, Axis::Whole(_)))
    }

    /// The machine's rank that a rank of the view is.
    pub(super) fn on_machine(&self, rank: Rank) -> Rank {
        let at = |d: usize| self.grid.radix().coordinate(rank, d);
        let radix = self.machine.radix();
        let of = |(d, axis): (usize, &Axis)| match *axis {
            Axis::Whole(u) => at(d) * radix.stride(u),
            Axis::Joined(u, v) => {
                let hi = at(d) / 2;
                hi * radix.stride(u) + (hi ^ (at(d) % 2)) * radix.stride(v)
            }
            Axis::Half(u, false) => {
                let hi = self.axes.iter().position(|&axis| axis == Axis::Half(u, true));
                let hi = at(hi.expect("bug: half a ring"));
                (2 * hi + (hi ^ at(d))) * radix.stride(u)
            }
            Axis::Half(_, true) => 0,
        };
        Rank(self.axes.iter().enumerate().map(of).sum())
    }

    /// The rank of the view that a rank of the machine is.
    pub(super) fn in_view(&self, rank: Rank) -> Rank {
        let at = |u: usize| self.machine.radix().coordinate(rank, u);
        let of = |(d, axis): (usize, &Axis)| {
            let position = match *axis {
                Axis::Whole(u) => at(u),
                Axis::Joined(u, v) => 2 * at(u) + (at(u) ^ at(v)),
                Axis::Half(u, true) => at(u) / 2,
                Axis::Half(u, false) => (at(u) / 2) ^ (at(u) % 2),
            };
            position * self.grid.radix().stride(d)
        };
        Rank(self.axes.iter().enumerate().map(of).sum())
    }

    /// Overwrites `out` with the machine's route of a message between two ranks of the view, of which
    /// `route` is the route there, empty for the grid's own. It is empty where it is the machine's own.
    pub(super) fn route(&self, from: Rank, to: Rank, route: &Route, out: &mut Route) {
        let mut own = Route::default();
        let route = if route.is_empty() {
            self.grid.route(from, to, &mut own);
            &own
        } else {
            route
        };
        out.clear();
        let (radix, mut at) = (self.grid.radix(), from);
        for segment in route.segments() {
            let d = segment.dimension as usize;
            if let Axis::Whole(u) = self.axes[d] {
                out.push(u as u32, segment.hops);
                at = radix.shifted(at, d, segment.hops);
                continue;
            }
            for _ in 0..segment.hops.unsigned_abs() {
                let next = radix.shifted(at, d, segment.hops.signum());
                let (u, hops) = self.hop(self.on_machine(at), self.on_machine(next));
                out.push(u, hops);
                at = next;
            }
        }
        let mut own = Route::default();
        self.machine.route(self.on_machine(from), self.on_machine(to), &mut own);
        if own == *out {
            out.clear();
        } else if let Some(ports) = &self.ports {
            own.clear();
            for &Segment { dimension, hops } in out.segments() {
                let port = ports[dimension as usize];
                // A ring of 3 has a port up and a port down.
                let down = hops < 0 && self.machine.sides()[dimension as usize] == 3;
                (0..hops.abs()).for_each(|_| own.push(port + u32::from(down), 1));
            }
            out.clone_from(&own);
        }
    }

    /// The dimension and direction of the link between two neighbours of a machine.
    fn hop(&self, from: Rank, to: Rank) -> (u32, i64) {
        let radix = self.machine.radix();
        let at = |rank: Rank, u: usize| radix.coordinate(rank, u);
        let u = (0..radix.dimensions()).find(|&u| at(from, u) != at(to, u));
        let u = u.expect("bug: neighbours of equal coordinates");
        let hops = i64::from(at(to, u)) - i64::from(at(from, u));
        // Between the ends of a ring of 4.
        (u as u32, if hops.abs() > 1 { -hops.signum() } else { hops })
    }

    /// The machine as a grid.
    pub(super) fn machine(&self) -> &Grid {
        &self.machine
    }

    /// By dimension of the machine, the period of that dimension in the view; the whole side if the view
    /// has others.
    pub(super) fn along(&self, periods: &[u32]) -> Coordinates {
        let sides = self.machine.sides().iter().enumerate();
        let of = |u: usize| self.axes.iter().position(|&axis| axis == Axis::Whole(u));
        sides.map(|(u, &side)| of(u).map_or(side, |d| periods[d])).collect()
    }

    /// The machine, seen as the grid that algorithms see; `None` if it is another machine than the view is
    /// of, or if its links have several timing values.
    pub(super) fn on(&self, machine: &Machine) -> Option<Machine> {
        let (grid, ports) = as_grid(&*machine.topology)?;
        let same = (grid.sides(), grid.wrap(), &ports)
            == (self.machine.sides(), self.machine.wrap(), &self.ports);
        let mut other = machine.clone();
        other.topology = Arc::new(self.grid.clone());
        let timing = &mut other.timing;
        let mut is_uniform = true;
        for values in [&mut timing.startup, &mut timing.per_byte, &mut timing.per_hop] {
            is_uniform &= values.is_uniform();
            *values = PerClass::uniform(values.least());
        }
        (same && is_uniform && machine.links_are_of_class()).then_some(other)
    }
}

/// The next order of some axes by their keys, if this is not the last.
fn next_order<K: Ord>(axes: &mut [Axis], key: impl Fn(&Axis) -> K) -> bool {
    let rises = |i: &usize| key(&axes[*i]) < key(&axes[i + 1]);
    let Some(first) = (0..axes.len().saturating_sub(1)).rev().find(rises) else { return false };
    let larger = |i: &usize| key(&axes[*i]) > key(&axes[first]);
    let last = (first + 1..axes.len()).rev().find(larger).expect("bug: none is larger");
    axes.swap(first, last);
    axes[first + 1..].reverse();
    true
}

/// A grid, or a hypercube as a grid with the first port of each dimension: a fully connected side of 2 or
/// 3 is a line of 2 or a ring of 3.
fn as_grid(topology: &dyn Topology) -> Option<(Grid, Option<Vec<u32>>)> {
    match topology.shape() {
        Shape::Grid(grid) => Some((grid.clone(), None)),
        Shape::Graph(graph) => {
            let radix = connected_sides(graph)?;
            let wrap: Vec<bool> = radix.iter().map(|&side| side == 3).collect();
            let grid = Grid::new(radix, &wrap).ok()?;
            let ports = radix.iter().scan(0, |port, side| {
                *port += side - 1;
                Some(*port + 1 - side)
            });
            Some((grid, Some(ports.collect())))
        }
        Shape::Complete | Shape::Clustered(_) => None,
    }
}

/// The sides of a network whose every dimension is fully connected, if none is longer than 3.
fn connected_sides(graph: &Graph) -> Option<&[u32]> {
    let sides = graph.translations()?.sides();
    let fits = graph.lattice().is_none() && sides.iter().all(|&side| side <= 3);
    fits.then_some(sides)
}
