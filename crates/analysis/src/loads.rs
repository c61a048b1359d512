//! The load of each directed link, counted on one period of the machine.

mod line;

use std::sync::Arc;

use topocoll_schedule::RankClasses;
use topocoll_topology::{Coordinates, LinkId, MixedRadix, Orbits, Rank, Route, Shape, Topology};

pub(crate) use self::line::LineLoads;
use crate::charges::Rates;
use crate::route_links::RouteLinks;
use crate::symmetry::{self, Equivalent};

/// Loads of the links of a grid or graph, up to the translations of a [`RankClasses`].
///
/// Equivalent links carry equal loads, so one of them is counted, and every route of a
/// representative is folded onto it. On a grid a segment is entered at its two ends only, and the
/// sums along each line come last: a route costs its segments, not its hops, and a line costs the
/// positions at which its load changes. On a graph a route costs its hops.
pub(crate) struct Loads {
    links: Links,
    /// Equivalent ranks of a node send the same at once.
    times: u32,
}

enum Links {
    None,
    /// Lines by dimension and direction (+, -).
    Grid(Places, Vec<LineLoads>),
    Graph(GraphLinks),
}

/// The positions in one period of a grid, row-major.
struct Places {
    sides: Coordinates,
    periods: Coordinates,
    strides: Coordinates,
    /// The numbers of the links, if they are not those of the grid.
    numbers: Option<Arc<[u32]>>,
}

impl Places {
    fn count(&self) -> usize {
        self.strides[0] as usize * self.periods[0] as usize
    }

    /// The number on the grid of the link of a position: it leaves the lowest node of its class.
    fn link(&self, line: usize, position: usize) -> u64 {
        let digits = self.strides.iter().zip(&self.periods);
        let digits = digits.map(|(stride, period)| position as u32 / stride % period);
        let node = digits
            .zip(&self.sides)
            .fold(0, |node, (at, &side)| node * u64::from(side) + u64::from(at));
        node * 2 * self.sides.len() as u64 + line as u64
    }

    /// Enters a route from a node.
    fn enter(
        &self,
        lines: &mut [LineLoads],
        radix: &MixedRadix,
        from: Rank,
        route: &Route,
        load: (i64, i128),
    ) {
        let mut at = radix.coordinates(from);
        let base = |at: &[u32], u: usize| self.folded(at[u], u) * self.strides[u];
        let mut position: u32 = (0..at.len()).map(|u| base(&at, u)).sum();
        for segment in route.segments() {
            let u = segment.dimension as usize;
            let (side, hops) = (i64::from(self.sides[u]), segment.hops.unsigned_abs());
            let to = around(i64::from(at[u]) + segment.hops, side);
            // A link is numbered by the node it leaves. Downwards these are all positions of the
            // segment except the last, so the lowest is one above that.
            let lowest = if segment.hops > 0 { i64::from(at[u]) } else { around(to + 1, side) };
            let first = self.folded(lowest as u32, u);
            position -= base(&at, u);
            let line = &mut lines[2 * u + usize::from(segment.hops < 0)];
            line.open(self.count(), load.1);
            let along = (position as usize, self.strides[u] as usize, self.periods[u] as usize);
            line.add_range(along, first as usize, hops, load);
            at[u] = to as u32;
            position += base(&at, u);
        }
    }

    /// A coordinate in the period.
    fn folded(&self, x: u32, u: usize) -> u32 {
        if x < self.periods[u] { x } else { x % self.periods[u] }
    }
}

/// A position counted around a side. Few are around at all, and division is slow.
fn around(x: i64, side: i64) -> i64 {
    match x {
        _ if (0..side).contains(&x) => x,
        _ if (side..2 * side).contains(&x) => x - side,
        _ => x.rem_euclid(side),
    }
}

struct GraphLinks {
    fold: Fold,
    /// Messages and bytes by link.
    loads: Vec<(u64, u128)>,
    /// Links with messages.
    used: Vec<u32>,
}

/// Which links are counted as one.
enum Fold {
    None,
    /// Those of one port of equivalent vertices; the links of each.
    Vertices(RankClasses, u64),
    /// The links of an orbit; the number of translations.
    Orbits(Arc<Orbits>, u32),
}

impl GraphLinks {
    fn add(&mut self, link: LinkId, mut times: u32, bytes: u128) {
        let place = match &self.fold {
            Fold::None => link.0,
            Fold::Vertices(nodes, per_vertex) => {
                let class = nodes.class_of(Rank((link.0 / *per_vertex) as u32));
                u64::from(class) * *per_vertex + link.0 % *per_vertex
            }
            Fold::Orbits(orbits, translations) => {
                let class = orbits.links.class_of(link.0 as usize);
                times *= translations / orbits.links.classes[class].1;
                class as u64
            }
        };
        let load = &mut self.loads[place as usize];
        if load.0 == 0 {
            self.used.push(place as u32);
        }
        load.0 += u64::from(times);
        load.1 += u128::from(times) * bytes;
    }
}

/// The busiest links of one class.
#[derive(Clone, Copy, Default)]
pub(crate) struct Busiest {
    /// The most messages on one link.
    pub(crate) messages: u64,
    /// The most bytes on one link, over its capacity.
    pub(crate) bytes: u128,
    /// The same of links with the bandwidth of the class.
    pub(crate) of_class: u128,
    /// The longest time of the other links.
    pub(crate) attoseconds: u128,
    /// Counted links that carry several messages.
    pub(crate) shared: u64,
}

impl Busiest {
    /// Those of a class, by class.
    pub(crate) fn of_class(all: &mut Vec<Self>, class: usize) -> &mut Self {
        if all.len() <= class {
            all.resize(class + 1, Self::default());
        }
        &mut all[class]
    }

    /// Adds `count` links with these messages and charged bytes on each, and attoseconds if their
    /// bandwidth is not that of the class.
    pub(crate) fn add(&mut self, messages: u64, (bytes, time): (u128, Option<u128>), count: u64) {
        self.messages = self.messages.max(messages);
        self.bytes = self.bytes.max(bytes);
        match time {
            Some(time) => self.attoseconds = self.attoseconds.max(time),
            None => self.of_class = self.of_class.max(bytes),
        }
        self.shared += if messages > 1 { count } else { 0 };
    }
}

/// Consecutive links of a line that carry equal loads, each of which represents its equivalents.
/// On a graph a single link.
pub(crate) struct Run<'a> {
    /// Their class on the network.
    pub(crate) class: usize,
    pub(crate) count: u64,
    /// On each of them.
    pub(crate) messages: u64,
    pub(crate) bytes: u128,
    first: First<'a>,
}

enum First<'a> {
    Link(LinkId),
    /// A position of lines.
    Position(&'a Places, usize, usize),
}

impl Run<'_> {
    pub(crate) fn first(&self) -> LinkId {
        self.links().next().expect("bug: a run without a link")
    }

    pub(crate) fn links(&self) -> impl Iterator<Item = LinkId> + use<> {
        let (first, apart, numbers) = match self.first {
            First::Link(link) => (link.0, 1, None),
            First::Position(places, line, position) => {
                let nodes: u64 =
                    places.sides[line / 2 + 1..].iter().copied().map(u64::from).product();
                let apart = nodes * 2 * places.sides.len() as u64;
                (places.link(line, position), apart, places.numbers.clone())
            }
        };
        let number =
            move |link: u64| numbers.as_ref().map_or(link, |own| own[link as usize].into());
        (0..self.count).map(move |i| LinkId(number(first + i * apart)))
    }
}

impl Loads {
    /// Loads of 0.
    pub(crate) fn new(ranks: &Equivalent, topology: &dyn Topology) -> Self {
        let Equivalent { classes, orbits } = ranks;
        if let Some(orbits) = orbits {
            let loads = vec![(0, 0); orbits.links.classes.len()];
            let fold = Fold::Orbits(orbits.clone(), topology.ranks() / classes.count());
            return Self {
                links: Links::Graph(GraphLinks { fold, loads, used: Vec::new() }),
                times: 1,
            };
        }
        let (nodes, times) = symmetry::of_nodes(classes, topology);
        let lines = |places: Places| {
            let lines = (0..2 * places.sides.len()).map(|_| LineLoads::default()).collect();
            Links::Grid(places, lines)
        };
        let links = match topology.network() {
            Shape::Complete | Shape::Clustered(_) => Links::None,
            Shape::Grid(grid) => {
                let periods = match nodes.radix() == grid.radix() {
                    true => Coordinates::from_slice(nodes.periods()),
                    false => Coordinates::from_slice(grid.sides()),
                };
                let mut strides = Coordinates::from_elem(1, periods.len());
                for u in (0..periods.len() - 1).rev() {
                    strides[u] = strides[u + 1] * periods[u + 1];
                }
                lines(Places {
                    sides: Coordinates::from_slice(grid.sides()),
                    periods,
                    strides,
                    numbers: None,
                })
            }
            Shape::Graph(graph) if let Some(on) = graph.on_grid() => {
                let sides = Coordinates::from_slice(on.grid.sides());
                let strides = (0..sides.len()).map(|u| on.grid.radix().stride(u)).collect();
                let numbers = Some(Arc::clone(on.links));
                lines(Places { periods: sides.clone(), sides, strides, numbers })
            }
            Shape::Graph(graph) => {
                let folds =
                    symmetry::folds(&nodes, graph).is_some() && nodes.count() < topology.nodes();
                let per_vertex = graph.links() / u64::from(graph.vertices());
                let fold = match folds {
                    true => Fold::Vertices(nodes.clone(), per_vertex),
                    false => Fold::None,
                };
                let loads = vec![(0, 0); counted(&nodes, topology) as usize];
                Links::Graph(GraphLinks { fold, loads, used: Vec::new() })
            }
        };
        Self { links, times }
    }

    /// Bytes that the loads take once every dimension is used.
    pub(crate) fn memory(ranks: &Equivalent, topology: &dyn Topology) -> u128 {
        let Equivalent { classes, orbits } = ranks;
        if let Some(orbits) = orbits {
            let each = size_of::<(u64, u128)>() + size_of::<u32>();
            return (orbits.links.classes.len() * each) as u128;
        }
        let (nodes, _) = symmetry::of_nodes(classes, topology);
        match topology.network() {
            Shape::Complete | Shape::Clustered(_) => 0,
            Shape::Grid(_) => LineLoads::memory(counted(&nodes, topology)),
            Shape::Graph(graph) if let Some(on) = graph.on_grid() => {
                LineLoads::memory(on.grid.link_numbers())
            }
            Shape::Graph(_) => {
                let each = size_of::<(u64, u128)>() + size_of::<u32>();
                u128::from(counted(&nodes, topology)) * each as u128
            }
        }
    }

    /// Adds a message of `bytes` from a rank.
    pub(crate) fn add(
        &mut self,
        topology: &dyn Topology,
        from: Rank,
        route_links: &RouteLinks<'_>,
        bytes: u128,
    ) {
        match (&mut self.links, topology.network(), route_links) {
            (Links::Grid(places, lines), network, RouteLinks::Route(route)) => {
                let (load, node) = ((i64::from(self.times), bytes as i128), topology.node_of(from));
                match network {
                    Shape::Grid(grid) => places.enter(lines, grid.radix(), Rank(node), route, load),
                    Shape::Graph(graph) if let Some(on) = graph.on_grid() => {
                        let node = Rank(on.nodes[node as usize]);
                        places.enter(lines, on.grid.radix(), node, route, load);
                    }
                    Shape::Graph(_) | Shape::Complete | Shape::Clustered(_) => {}
                }
            }
            (Links::Graph(links), ..) => {
                route_links
                    .each_link(topology, from, &mut |link| links.add(link, self.times, bytes));
            }
            _ => {}
        }
    }

    /// Adds `times` messages of `bytes` on a link of a graph.
    pub(crate) fn add_link(&mut self, link: LinkId, times: u32, bytes: u128) {
        if let Links::Graph(of) = &mut self.links {
            of.add(link, times, bytes);
        }
    }

    /// The sum of both.
    pub(crate) fn merged(mut self, other: Self) -> Self {
        match (&mut self.links, other.links) {
            (Links::Grid(_, lines), Links::Grid(_, others)) => {
                lines.iter_mut().zip(&others).for_each(|(line, other)| line.merge(other));
            }
            (Links::Graph(links), Links::Graph(GraphLinks { loads: others, used: more, .. })) => {
                let GraphLinks { loads, used, .. } = links;
                for place in more {
                    let (load, other) = (&mut loads[place as usize], others[place as usize]);
                    if load.0 == 0 {
                        used.push(place);
                    }
                    load.0 += other.0;
                    load.1 += other.1;
                }
            }
            _ => {}
        }
        self
    }

    /// Writes the busiest links of each class and resets all loads.
    pub(crate) fn take(&mut self, rates: &Rates<'_>, busiest: &mut Vec<Busiest>) {
        busiest.clear();
        self.drain(rates, |run| {
            let most = Busiest::of_class(busiest, run.class);
            most.add(run.messages, rates.over_capacity(|| run.first(), run.bytes), run.count);
        });
    }

    /// Calls `each` with all links that carry messages, one of each class, and resets all loads.
    pub(crate) fn drain(&mut self, rates: &Rates<'_>, mut each: impl FnMut(Run<'_>)) {
        match &mut self.links {
            Links::None => {}
            Links::Graph(GraphLinks { fold, loads, used }) => {
                // In the order of links, so that results do not depend on the order of messages.
                used.sort_unstable();
                for place in used.drain(..) {
                    let (messages, bytes) = std::mem::take(&mut loads[place as usize]);
                    let place = u64::from(place);
                    let (link, count) = match fold {
                        Fold::None => (place, 1),
                        Fold::Vertices(nodes, per_vertex) => {
                            let node = nodes.representative((place / *per_vertex) as u32);
                            (u64::from(node.0) * *per_vertex + place % *per_vertex, 1)
                        }
                        Fold::Orbits(orbits, _) => {
                            let (link, count) = orbits.links.classes[place as usize];
                            (link.into(), count.into())
                        }
                    };
                    let link = LinkId(link);
                    let (class, first) = (rates.class_of(link), First::Link(link));
                    each(Run { class, count, messages, bytes, first });
                }
            }
            Links::Grid(places, lines) => {
                let used = lines.iter_mut().enumerate().filter(|(_, line)| line.used);
                for (i, line) in used {
                    let class = i / 2;
                    let (period, stride) = (places.periods[class], places.strides[class]);
                    line.drain(period, stride, |position, count, messages, bytes| {
                        let first = First::Position(places, i, position);
                        each(Run { class, count: count.into(), messages, bytes, first });
                    });
                }
            }
        }
    }
}

/// Links that are counted.
fn counted(nodes: &RankClasses, topology: &dyn Topology) -> u64 {
    let folded = match topology.network() {
        Shape::Grid(grid) => nodes.radix() == grid.radix(),
        Shape::Graph(graph) => symmetry::folds(nodes, graph).is_some(),
        Shape::Complete | Shape::Clustered(_) => false,
    };
    if !folded {
        return topology.link_numbers();
    }
    topology.link_numbers() / u64::from(topology.nodes()) * u64::from(nodes.count())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use topocoll_topology::{Grid, Machine};

    use super::*;

    /// Messages by link, and their bytes.
    type ByLink = BTreeMap<LinkId, (u64, u128)>;

    fn drained(loads: &mut Loads, machine: &Machine) -> ByLink {
        let mut found = ByLink::new();
        loads.drain(&Rates::new(machine), |run| {
            for link in run.links() {
                assert_eq!(found.insert(link, (run.messages, run.bytes)), None, "{link:?}");
                assert_eq!(
                    u32::try_from(run.class),
                    Ok(machine.topology.link(link).unwrap().class)
                );
            }
        });
        found
    }

    /// Some messages of every representative, and what each link carries if all equivalents send them.
    #[test]
    fn loads_are_those_of_every_link_by_itself() {
        let shapes = [
            (&[6, 4][..], &[6, 4][..], true),
            (&[6, 4], &[3, 2], true),
            (&[6, 4], &[1, 4], true),
            (&[12], &[4], true),
            (&[70, 3], &[70, 3], false),
            (&[3, 5, 4], &[3, 5, 2], true),
            (&[3, 1, 7], &[3, 1, 7], false),
        ];
        let mut random = fastrand::Rng::with_seed(7);
        for (sides, periods, wraps) in shapes {
            let grid = Grid::new(sides, &vec![wraps; sides.len()]).unwrap();
            let machine = Machine::of(std::sync::Arc::new(grid.clone()));
            let periods = Coordinates::from_slice(periods);
            let classes = RankClasses::translations(grid.radix().clone(), periods);
            let ranks = Equivalent { classes: classes.clone(), orbits: None };
            let mut parts = [(); 2].map(|()| Loads::new(&ranks, &grid));
            for round in 0..6 {
                let mut expected = ByLink::new();
                for representative in classes.representatives() {
                    // Every other round all messages are equal.
                    let bytes = if round % 2 == 0 { 5 } else { random.u128(1..9) };
                    let mut route = Route::default();
                    for (u, &side) in sides.iter().enumerate() {
                        let x = i64::from(grid.radix().coordinate(representative, u));
                        let side = i64::from(side);
                        let to = if wraps {
                            random.i64(-3 * side..=3 * side)
                        } else {
                            random.i64(0..side) - x
                        };
                        route.push(u as u32, if random.bool() { to } else { 0 });
                    }
                    let part = usize::from(round > 2 && random.bool());
                    parts[part].add(&grid, representative, &RouteLinks::Route(&route), bytes);
                    for rank in (0..grid.ranks()).map(Rank) {
                        if classes.class_of(rank) == classes.class_of(representative) {
                            grid.for_each_link(rank, &route, &mut |link| {
                                let load = expected.entry(link).or_default();
                                (load.0, load.1) = (load.0 + 1, load.1 + bytes);
                            });
                        }
                    }
                }
                let [first, second] = parts;
                let mut all = first.merged(second);
                // One link of each class.
                let counted = |link: &LinkId| {
                    let from = Rank(grid.link(*link).unwrap().from);
                    classes.representative(classes.class_of(from)) == from
                };
                expected.retain(|link, _| counted(link));
                assert_eq!(drained(&mut all, &machine), expected, "{sides:?}, round {round}");
                assert!(drained(&mut all, &machine).is_empty());
                parts = [all, Loads::new(&ranks, &grid)];
            }
        }
    }
}
