//! The load of each directed link, counted on one period of the machine.

use topocoll_schedule::RankClasses;
use topocoll_topology::{Coordinates, Grid, LinkId, Rank, Route, Shape, Topology};

use crate::charges::Rates;
use crate::symmetry;

/// Loads of the links of a grid or graph, up to the translations of a [`RankClasses`].
///
/// Equivalent links carry equal loads, so one of them is counted, and every route of a
/// representative is folded onto it. On a grid a segment is entered at its two ends only, and the
/// sums along each line come last: a route costs its segments, not its hops. On a graph a route
/// costs its hops.
pub(crate) struct Loads {
    links: Links,
    /// Equivalent ranks of a node send the same at once.
    times: u32,
}

enum Links {
    None,
    Grid {
        sides: Coordinates,
        periods: Coordinates,
        /// Of the positions in a period.
        strides: Vec<usize>,
        /// By dimension and direction (+, -), for each position the load that begins there minus
        /// the load that ends.
        lines: Vec<LineLoads>,
    },
    Graph(GraphLinks),
}

struct GraphLinks {
    /// Links of a vertex, where they are folded.
    fold: Option<(RankClasses, u64)>,
    /// Messages and bytes by link.
    loads: Vec<(u64, u128)>,
    /// Links with messages.
    used: Vec<u32>,
}

impl GraphLinks {
    fn add(&mut self, link: LinkId, times: u32, bytes: u128) {
        let place = match &self.fold {
            Some((nodes, per_vertex)) => {
                let class = nodes.class_of(Rank((link.0 / *per_vertex) as u32));
                u64::from(class) * *per_vertex + link.0 % *per_vertex
            }
            None => link.0,
        };
        let load = &mut self.loads[place as usize];
        if load.0 == 0 {
            self.used.push(place as u32);
        }
        load.0 += u64::from(times);
        load.1 += u128::from(times) * bytes;
    }
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

    /// Enters `hops` links from position `first` of a period, `times` messages of `bytes` on each.
    /// Its positions are at `base` and every `stride` after.
    fn add_range(
        &mut self,
        (base, stride, period): (usize, usize, usize),
        first: usize,
        hops: u64,
        (times, bytes): (i64, i128),
    ) {
        let mut enter = |position: usize, rounds: i64| {
            let messages = rounds * times;
            self.messages[base + position * stride] += messages;
            self.bytes[base + position * stride] += i128::from(messages) * bytes;
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

/// The busiest links of one class.
#[derive(Clone, Copy, Default)]
pub(crate) struct Busiest {
    /// The most messages on one link.
    pub(crate) messages: u64,
    /// The most bytes on one link, over its capacity.
    pub(crate) bytes: u128,
    /// Counted links that carry several messages.
    pub(crate) shared: u64,
}

/// A link that stands for its equivalents.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// Its class on the network.
    pub(crate) class: usize,
    pub(crate) link: LinkId,
    pub(crate) messages: u64,
    pub(crate) bytes: u128,
}

impl Loads {
    /// Loads of 0. The classes must be [`common`](symmetry::common) to a rule and the topology.
    pub(crate) fn new(classes: &RankClasses, topology: &dyn Topology) -> Self {
        let (nodes, times) = symmetry::of_nodes(classes, topology);
        let links = match topology.network() {
            Shape::Complete | Shape::Clustered(_) => Links::None,
            Shape::Grid(grid) => {
                let periods = match nodes.radix() == grid.radix() {
                    true => Coordinates::from_slice(nodes.periods()),
                    false => Coordinates::from_slice(grid.sides()),
                };
                let mut strides = vec![1; periods.len()];
                for u in (0..periods.len() - 1).rev() {
                    strides[u] = strides[u + 1] * periods[u + 1] as usize;
                }
                let lines = (0..2 * periods.len()).map(|_| LineLoads::default()).collect();
                let sides = Coordinates::from_slice(grid.sides());
                Links::Grid { sides, periods, strides, lines }
            }
            Shape::Graph(graph) => {
                let folds =
                    symmetry::folds(&nodes, graph).is_some() && nodes.count() < topology.nodes();
                let per_vertex = graph.links() / u64::from(graph.vertices());
                let fold = folds.then(|| (nodes.clone(), per_vertex));
                let loads = vec![(0, 0); counted(&nodes, topology) as usize];
                Links::Graph(GraphLinks { fold, loads, used: Vec::new() })
            }
        };
        Self { links, times }
    }

    /// Bytes that the loads take once every dimension is used.
    pub(crate) fn memory(classes: &RankClasses, topology: &dyn Topology) -> u128 {
        let (nodes, _) = symmetry::of_nodes(classes, topology);
        let each = match topology.network() {
            Shape::Complete | Shape::Clustered(_) => 0,
            Shape::Grid(_) => size_of::<i64>() + size_of::<i128>(),
            Shape::Graph(_) => size_of::<(u64, u128)>() + size_of::<u32>(),
        };
        u128::from(counted(&nodes, topology)) * each as u128
    }

    /// Adds a message of `bytes` that takes `route` from `from`.
    pub(crate) fn add(&mut self, topology: &dyn Topology, from: Rank, route: &Route, bytes: u128) {
        let node = Rank(topology.node_of(from));
        match (&mut self.links, topology.network()) {
            (Links::Grid { periods, strides, lines, .. }, Shape::Grid(grid)) => {
                let times = (i64::from(self.times), bytes as i128);
                add_lines((periods, strides), lines, grid, node, route, times);
            }
            (Links::Graph(links), Shape::Graph(graph)) => {
                graph.for_each_link(node, route, &mut |link| links.add(link, self.times, bytes));
            }
            _ => {}
        }
    }

    /// Adds a message of `bytes` over some links of a graph.
    pub(crate) fn add_over(&mut self, over: &[LinkId], bytes: u128) {
        if let Links::Graph(links) = &mut self.links {
            over.iter().for_each(|&link| links.add(link, self.times, bytes));
        }
    }

    /// The sum of both.
    pub(crate) fn merged(mut self, other: Self) -> Self {
        match (&mut self.links, other.links) {
            (Links::Grid { lines, .. }, Links::Grid { lines: others, .. }) => {
                for (line, other) in lines.iter_mut().zip(others) {
                    if line.messages.is_empty() {
                        *line = other;
                    } else if other.used {
                        line.used = true;
                        let messages = line.messages.iter_mut().zip(other.messages);
                        messages.for_each(|(sum, more)| *sum += more);
                        line.bytes.iter_mut().zip(other.bytes).for_each(|(sum, more)| *sum += more);
                    }
                }
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
        self.drain(rates, |load| {
            if busiest.len() <= load.class {
                busiest.resize(load.class + 1, Busiest::default());
            }
            let most = &mut busiest[load.class];
            most.messages = most.messages.max(load.messages);
            most.bytes = most.bytes.max(rates.over_capacity(load.link, load.bytes));
            most.shared += u64::from(load.messages > 1);
        });
    }

    /// Calls `each` with the links of every line used, one of each class, and resets all loads.
    pub(crate) fn drain(&mut self, rates: &Rates<'_>, mut each: impl FnMut(Load)) {
        match &mut self.links {
            Links::None => {}
            Links::Graph(GraphLinks { fold, loads, used }) => {
                // In the order of links, so that results do not depend on the order of messages.
                used.sort_unstable();
                for place in used.drain(..) {
                    let (messages, bytes) = std::mem::take(&mut loads[place as usize]);
                    let place = u64::from(place);
                    let link = match fold {
                        Some((nodes, per_vertex)) => {
                            let node = nodes.representative((place / *per_vertex) as u32);
                            u64::from(node.0) * *per_vertex + place % *per_vertex
                        }
                        None => place,
                    };
                    let link = LinkId(link);
                    each(Load { class: rates.class_of(link), link, messages, bytes });
                }
            }
            Links::Grid { sides, periods, strides, lines } => {
                let used = lines.iter_mut().enumerate().filter(|(_, line)| line.used);
                for (i, line) in used {
                    line.used = false;
                    drain_line((sides, periods, strides), i, line, &mut each);
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

fn add_lines(
    (periods, strides): (&Coordinates, &[usize]),
    lines: &mut [LineLoads],
    grid: &Grid,
    from: Rank,
    route: &Route,
    times: (i64, i128),
) {
    let classes = strides[0] * periods[0] as usize;
    let mut at = grid.radix().coordinates(from);
    for segment in route.segments() {
        let u = segment.dimension as usize;
        let period = u64::from(periods[u]);
        let side = i64::from(grid.sides()[u]);
        let hops = segment.hops.unsigned_abs();
        let to = (i64::from(at[u]) + segment.hops).rem_euclid(side);
        // A link is numbered by the node it leaves. Downwards these are all positions of the
        // segment except the last, so the lowest is one above that.
        let lowest = if segment.hops > 0 { i64::from(at[u]) } else { to + 1 };
        let first = (lowest.rem_euclid(side) as u64 % period) as usize;
        let base: usize = (0..at.len())
            .filter(|&v| v != u)
            .map(|v| (at[v] % periods[v]) as usize * strides[v])
            .sum();
        let line = &mut lines[2 * u + usize::from(segment.hops < 0)];
        line.open(classes);
        line.add_range((base, strides[u], period as usize), first, hops, times);
        at[u] = to as u32;
    }
}

fn drain_line(
    (sides, periods, strides): (&Coordinates, &Coordinates, &[usize]),
    i: usize,
    line: &mut LineLoads,
    each: &mut impl FnMut(Load),
) {
    let u = i / 2;
    let (period, stride) = (periods[u] as usize, strides[u]);
    // The link of a position leaves the lowest node of its class.
    let link = |position: usize| {
        let along = (0..sides.len()).map(|v| position / strides[v] % periods[v] as usize);
        let node = along.zip(sides).fold(0, |node, (at, &side)| node * u64::from(side) + at as u64);
        LinkId(node * 2 * sides.len() as u64 + i as u64)
    };
    // Lines along u: `stride` of them in each block of period * stride positions.
    for block in (0..line.messages.len()).step_by(period * stride) {
        for offset in block..block + stride {
            let (mut messages, mut bytes) = (0, 0);
            for position in (offset..offset + period * stride).step_by(stride) {
                messages += std::mem::take(&mut line.messages[position]);
                bytes += std::mem::take(&mut line.bytes[position]);
                if messages > 0 {
                    let (link, bytes) = (link(position), bytes as u128);
                    each(Load { class: u, link, messages: messages as u64, bytes });
                }
            }
        }
    }
}
