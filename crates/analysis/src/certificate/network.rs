//! The network in the words of a certificate.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use topocoll_schedule::{Collective, Problem, Transfer};
use topocoll_topology::{
    Clusters, Graph, Grid, LinkId, LinkKind, Machine, Rank, Route, Segment, Shape, Ties,
    Topology as _, gcd,
};

use super::LIMIT;
use crate::AnalysisError;
use crate::bounds::{least_link_bytes, lengths_of_links};

/// The most ranks of a graph.
const MOST_RANKS: u32 = 1 << 12;

/// The largest common denominator of capacities. Where theirs is larger, bounds take capacities as
/// multiples of 1 over this, rounded up.
const DENOMINATOR: u64 = 1 << 32;

/// A machine as a certificate lists it.
pub(super) struct Network<'a> {
    pub(super) machine: &'a Machine,
    /// The machine, and the links and routes of a graph.
    pub(super) lines: String,
    /// Whether its own routes are known from its lines.
    pub(super) lists_routes: bool,
    /// The least sum over steps of the largest message or link load.
    pub(super) least_link_bytes: u128,
}

impl<'a> Network<'a> {
    pub(super) fn new(problem: &Problem, machine: &'a Machine) -> Result<Self, AnalysisError> {
        check_certifiable(machine)?;
        let topology = &*machine.topology;
        let (nodes, groups) = match topology.shape() {
            Shape::Clustered(clusters) => {
                (format!(" nodes {}", groups(clusters)), groups(clusters))
            }
            _ => (String::new(), String::new()),
        };
        let mut least_link_bytes = least_link_bytes(problem, machine);
        let mut lists_routes = true;
        let lines = match topology.network() {
            Shape::Complete | Shape::Clustered(_) if groups.is_empty() => {
                format!("machine complete {}\n", machine.ranks())
            }
            Shape::Complete | Shape::Clustered(_) => format!("machine cluster {groups}\n"),
            Shape::Grid(grid) => {
                let ties = if grid.ties() == Ties::Balanced { " balanced" } else { "" };
                format!("machine grid {}{ties}{nodes}\n", sides(grid))
            }
            Shape::Graph(graph) => {
                let links = Links::new(graph, problem, machine);
                least_link_bytes = least_link_bytes.max(links.least_bytes(problem));
                let (vertices, listed) = links.lines()?;
                lists_routes = listed;
                let switches = graph.vertices() - graph.ranks();
                format!("machine graph {}+{switches}{nodes}\n{vertices}", graph.ranks())
            }
        };
        Ok(Self { machine, lines, lists_routes, least_link_bytes })
    }

    /// The route of a message.
    pub(super) fn route(&self, from: Rank, send: &Transfer) -> String {
        let topology = &*self.machine.topology;
        let mut own = Route::default();
        let route = match self.lists_routes {
            true => &send.route,
            false => send.route_from(from, topology, &mut own),
        };
        let word = |Segment { dimension, hops }: &Segment| match topology.network() {
            Shape::Graph(graph) if graph.lattice().is_some() => {
                format!("{}:{}", lattice_port(*dimension, *hops), hops.unsigned_abs())
            }
            _ => format!("{dimension}:{hops}"),
        };
        let words: Vec<_> = route.segments().iter().map(word).collect();
        match topology.network() {
            Shape::Grid(_) | Shape::Graph(_) if !words.is_empty() => words.join(";"),
            _ => "own".to_owned(),
        }
    }
}

/// Refuses a machine that no certificate describes.
///
/// # Errors
/// Ties at half a ring that certificates have no word for; a graph of more than 4,096 ranks.
pub fn check_certifiable(machine: &Machine) -> Result<(), AnalysisError> {
    let what = match machine.topology.network() {
        _ if machine.topology.shape().is_placed() => "ranks that are not numbered node by node",
        Shape::Grid(grid) if !matches!(grid.ties(), Ties::Up | Ties::Balanced) => {
            "these ties at half a ring"
        }
        Shape::Graph(_) if machine.ranks() > MOST_RANKS => {
            "more than 4,096 ranks on a network of listed links"
        }
        _ => return Ok(()),
    };
    Err(AnalysisError::Unwritten { what })
}

fn groups(clusters: &Clusters) -> String {
    let group = |(_, nodes, size)| format!("{nodes}*{size}");
    clusters.groups().map(group).collect::<Vec<_>>().join(",")
}

fn sides(grid: &Grid) -> String {
    let side = |(side, wraps): (&u32, &bool)| format!("{side}{}", if *wraps { "~" } else { "" });
    grid.sides().iter().zip(grid.wrap()).map(side).collect::<Vec<_>>().join("x")
}

/// The port of a vertex of a lattice along a dimension, in the direction of some hops.
fn lattice_port(dimension: u32, hops: i64) -> u32 {
    2 * dimension + u32::from(hops < 0)
}

/// The links of a graph.
struct Links<'a> {
    graph: &'a Graph,
    /// The ranks of each node.
    ranks: Vec<u32>,
    /// By link, its capacity as a fraction.
    capacities: Vec<(u32, u32)>,
    /// By link, or none for lengths of 0.
    lengths: Vec<u64>,
}

impl<'a> Links<'a> {
    fn new(graph: &'a Graph, problem: &Problem, machine: &Machine) -> Self {
        let capacity = |kind: &LinkKind| {
            let class = machine.first_class() + kind.class as usize;
            kind.capacity.relative(machine.timing.per_byte.of(class))
        };
        let kinds: Vec<_> = graph.link_kinds().iter().map(capacity).collect();
        let kind = |link| kinds[graph.link_kind(LinkId(link))];
        let ranks = match machine.topology.shape() {
            Shape::Clustered(clusters) => clusters.sizes().collect(),
            _ => vec![1; graph.ranks() as usize],
        };
        let capacities = (0..graph.links()).map(kind).collect();
        Self { graph, ranks, capacities, lengths: lengths_of_links(problem, machine) }
    }

    fn length(&self, link: LinkId) -> u64 {
        self.lengths.get(link.0 as usize).copied().unwrap_or(0)
    }

    /// The links that leave each vertex, and the routes, if they follow a rule that can be listed.
    fn lines(&self) -> Result<(String, bool), AnalysisError> {
        let (mut vertices, mut both, mut lists_routes) = (String::new(), String::new(), true);
        for vertex in 0..self.graph.vertices() {
            let (words, ports) = self.leaving(vertex);
            let line = format!("vertex {vertex}{words}\n");
            vertices += &line;
            both += &line;
            lists_routes = lists_routes && self.next(vertex, &ports, &mut both);
            let bytes = both.len() as u128;
            if bytes > LIMIT {
                return Err(AnalysisError::Listing { bytes, limit: LIMIT });
            }
        }
        Ok((if lists_routes { both } else { vertices }, lists_routes))
    }

    /// The links that leave a vertex, by port, and the port of each of them.
    fn leaving(&self, vertex: u32) -> (String, Vec<u32>) {
        let (mut words, mut ports) = (String::new(), Vec::new());
        let mut next = 0;
        for (link, to) in self.graph.leaving(vertex) {
            let kind = self.graph.link_kinds()[self.graph.link_kind(link)];
            let port = match self.graph.lattice() {
                Some(_) => lattice_port(kind.class, kind.direction),
                None => next,
            };
            words.extend((next..port).map(|_| " -"));
            let _ = write!(words, " {to}");
            let (times, over) = self.capacities[link.0 as usize];
            if times != over {
                let _ = write!(words, "*{times}/{over}");
            }
            if self.length(link) > 0 {
                let _ = write!(words, ":{}", self.length(link));
            }
            ports.push(port);
            next = port + 1;
        }
        if ports.is_empty() { (" -".to_owned(), ports) } else { (words, ports) }
    }

    /// Adds the line of the ports by which messages to each node leave a vertex. Returns false if
    /// the routes follow no such rule.
    fn next(&self, vertex: u32, ports: &[u32], out: &mut String) -> bool {
        let (mut onward, mut before) = (Vec::new(), Vec::new());
        let mut times = 0;
        let write = |places: &[usize], times: u32, out: &mut String| {
            let words: Vec<_> = places.iter().map(|&place| ports[place].to_string()).collect();
            // Where no message passes, any port will do.
            let word = if words.is_empty() { "0".to_owned() } else { words.join("/") };
            let _ = match times {
                1 => write!(out, " {word}"),
                _ => write!(out, " {word}*{times}"),
            };
        };
        *out += "next";
        for to in 0..self.graph.ranks() {
            onward.clear();
            if to != vertex && !self.graph.onward(vertex, Rank(to), &mut onward) {
                return false;
            }
            let goes_on = before.is_empty() || onward.is_empty() || before == onward;
            if !goes_on {
                write(&before, std::mem::take(&mut times), out);
            }
            if !goes_on || before.is_empty() {
                std::mem::swap(&mut before, &mut onward);
            }
            times += 1;
        }
        write(&before, times, out);
        *out += "\n";
        true
    }

    /// The least sum over steps of the largest link load, in bytes: that of the links of a node, and
    /// in an all-to-all that of the distances of all blocks over the lengths of all links.
    fn least_bytes(&self, problem: &Problem) -> u128 {
        let gathers = problem.operation == Collective::AllGather;
        let common = self.capacities.iter().try_fold(1, |common: u64, &(_, over)| {
            let common = common / gcd(common, over.into()) * u64::from(over);
            (common <= DENOMINATOR).then_some(common)
        });
        let common = u128::from(common.unwrap_or(DENOMINATOR));
        let capacity = |link: LinkId| {
            let (times, over) = self.capacities[link.0 as usize];
            (u128::from(times) * common).div_ceil(over.into())
        };
        let load = |blocks: u128, capacity: u128| {
            let bytes = blocks.saturating_mul(problem.block_bytes.into());
            bytes.saturating_mul(common).div_ceil(capacity.max(1))
        };
        let (mut out, mut into) = (vec![0; self.ranks.len()], vec![0; self.ranks.len()]);
        let mut lengths = 0;
        for from in 0..self.graph.vertices() {
            for (link, to) in self.graph.leaving(from) {
                let capacity = capacity(link);
                lengths += capacity * u128::from(self.length(link));
                out.get_mut(from as usize).into_iter().for_each(|sum| *sum += capacity);
                into.get_mut(to as usize).into_iter().for_each(|sum| *sum += capacity);
            }
        }
        let mut least = 0;
        for (node, &size) in self.ranks.iter().enumerate() {
            let (size, all) = (u128::from(size), u128::from(problem.ranks));
            least = least.max(match gathers {
                true => load(all - size, into[node]),
                false => load(size * (all - size), into[node].min(out[node])),
            });
        }
        if lengths > 0 {
            let from = (0..self.ranks.len()).map(|from| self.travelled(from)).sum();
            least = least.max(load(from, lengths));
        }
        least
    }

    /// The sum of the distances of all blocks of a node, by the lengths of links.
    fn travelled(&self, from: usize) -> u128 {
        let mut far = vec![u64::MAX; self.graph.vertices() as usize];
        far[from] = 0;
        let mut open = BTreeMap::from([(0, vec![from as u32])]);
        while let Some((distance, vertices)) = open.pop_first() {
            for at in vertices {
                if far[at as usize] < distance {
                    continue;
                }
                for (link, to) in self.graph.leaving(at) {
                    let distance = distance + self.length(link);
                    if distance < far[to as usize] {
                        far[to as usize] = distance;
                        open.entry(distance).or_default().push(to);
                    }
                }
            }
        }
        let blocks = |(&to, far)| u128::from(to) * u128::from(self.ranks[from]) * u128::from(far);
        self.ranks.iter().zip(far).map(blocks).sum()
    }
}
