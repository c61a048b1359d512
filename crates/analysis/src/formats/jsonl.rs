//! JSON lines: a header, then one message a line with its blocks, ordered by step, then sender.

mod read;
mod write;

use std::sync::Arc;

use hashbrown::HashMap;
use serde::{Deserialize, Deserializer, Serialize};
use topocoll_schedule::{Parameters, Problem, Schedule, ScheduleError};
use topocoll_topology::spec::parse_short_form;
use topocoll_topology::{
    Capacity, Clusters, FullyConnected, Graph, Grid, Groups, Link, LinkId, LinkKind, ListedGraph,
    Machine, Ports, Rank, Shape, Subset, Ties, Timing, Topology, TopologyError,
};

use super::messages::check_ranks;

pub(super) use read::{List, Listed, read_each};
pub use read::{read, read_topology, schedule};
pub use write::write;

/// The version of the format.
const VERSION: u32 = 1;

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    /// Always `header`.
    kind: String,
    /// [`VERSION`].
    version: u32,
    /// `alltoall` or `allgather`.
    operation: String,
    /// The algorithm.
    algorithm: String,
    /// The parameters of the algorithm.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    parameters: Parameters,
    /// Number of ranks.
    ranks: u32,
    /// Bytes of a block.
    block_bytes: u64,
    /// Messages a rank may send, and receive, in a step.
    ports: u32,
    /// The same of a node of several ranks, to and from other nodes, where it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node_ports: Option<u32>,
    /// The topology it was written for.
    topology: HeaderTopology,
    /// The ranks of each group, if not all ranks exchange with all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    groups: Option<Vec<Vec<u32>>>,
}

/// A topology in a header.
#[derive(PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum HeaderTopology {
    /// Fully connected.
    Full,
    /// A grid.
    Grid {
        /// Sides, dimension 0 first.
        dims: Vec<u32>,
        /// Which of them wrap.
        wrap: Vec<bool>,
        /// The direction of its routes at exactly half a ring.
        #[serde(default, skip_serializing_if = "is_up")]
        ties: Ties,
        /// Ranks on each node.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ranks_per_node: Option<PerNode>,
    },
    /// A graph.
    Graph {
        /// Its short form.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        form: Option<String>,
        /// Nodes and switches.
        vertices: u32,
        /// The vertex of each node.
        nodes: Vec<u32>,
        /// By number: the vertices that each leaves and enters, its class, and its capacity as a
        /// fraction of its class's.
        links: Vec<(u32, u32, u32, f64)>,
        /// Ranks on each node.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ranks_per_node: Option<PerNode>,
    },
    /// A twisted torus, or a grid with failed nodes or links, as files of earlier versions have it.
    #[serde(skip_serializing)]
    Lattice {
        /// Its short form.
        form: String,
    },
    /// Fully connected nodes.
    Cluster {
        /// Ranks on each node.
        sizes: Vec<u32>,
    },
}

/// Ranks on each node: one number for all, or one for each.
#[derive(PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum PerNode {
    All(u32),
    Each(Vec<u32>),
}

impl PerNode {
    fn of(topology: &dyn Topology) -> Option<Self> {
        let Shape::Clustered(clusters) = topology.shape() else { return None };
        let each = || Self::Each(clusters.sizes().collect());
        Some(clusters.equal_size().map_or_else(each, Self::All))
    }

    /// Nodes of these sizes on a network.
    fn on(&self, network: Arc<dyn Topology>) -> Result<Arc<dyn Topology>, TopologyError> {
        let groups = match self {
            Self::All(size) => vec![(network.nodes(), *size)],
            Self::Each(sizes) => sizes.iter().map(|&size| (1, size)).collect(),
        };
        Ok(Arc::new(Clusters::on(network, &groups)?))
    }
}

/// A message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageLine {
    /// The step it travels in.
    pub step: u32,
    /// Its sender.
    pub from: u32,
    /// Its receiver.
    pub to: u32,
    /// On grids dimension and signed hops, in the order travelled; `None` for the machine's own
    /// route.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub route: Option<Vec<(u32, i64)>>,
    /// On graphs the numbers of the links, in the order travelled; `None` for the machine's own
    /// route.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub links: Option<Vec<u64>>,
    /// For an all-to-all source, destination, first byte, end byte; for an all-gather without the
    /// destination.
    pub blocks: Vec<Vec<u64>>,
}

fn is_up(ties: &Ties) -> bool {
    *ties == Ties::Up
}

/// A route that is given, even an empty one. `null` is refused.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<Vec<T>>, D::Error> {
    Vec::deserialize(from).map(Some)
}

impl HeaderTopology {
    /// The description of a topology; timing values give the capacities of some links.
    fn of(topology: &dyn Topology, timing: &Timing) -> Self {
        let ranks_per_node = PerNode::of(topology);
        match topology.network() {
            Shape::Complete | Shape::Clustered(_) => match topology.shape() {
                Shape::Clustered(clusters) => Self::Cluster { sizes: clusters.sizes().collect() },
                _ => Self::Full,
            },
            Shape::Grid(grid) => {
                let (dims, wrap) = (grid.sides().to_vec(), grid.wrap().to_vec());
                Self::Grid { dims, wrap, ties: grid.ties(), ranks_per_node }
            }
            Shape::Graph(graph) => {
                let first = usize::from(ranks_per_node.is_some());
                let link = |number| {
                    let Link { from, to, class, .. } = graph.link(LinkId(number))?;
                    let kind = graph.link_kinds()[graph.link_kind(LinkId(number))];
                    let per_byte = timing.per_byte.of(first + class as usize);
                    let (times, over) = kind.capacity.relative(per_byte);
                    Some((from, to, class, f64::from(times) / f64::from(over)))
                };
                Self::Graph {
                    form: Some(graph.short_form()),
                    vertices: graph.vertices(),
                    nodes: (0..graph.nodes()).collect(),
                    links: (0..graph.links()).filter_map(link).collect(),
                    ranks_per_node,
                }
            }
        }
    }

    /// Whether both describe one topology. Capacities may differ, as they depend on timing values.
    fn is(&self, other: &Self, form: &str) -> bool {
        match (self, other) {
            (Self::Lattice { form: named }, _) => named == form,
            (
                Self::Graph { vertices, nodes, links, ranks_per_node, .. },
                Self::Graph { vertices: v, nodes: n, links: l, ranks_per_node: r, .. },
            ) => {
                let ends = |&(from, to, class, _): &(u32, u32, u32, f64)| (from, to, class);
                (vertices, nodes, ranks_per_node) == (v, n, r)
                    && links.iter().map(ends).eq(l.iter().map(ends))
            }
            _ => self == other,
        }
    }

    /// The topology described.
    ///
    /// # Errors
    /// Sides, sizes or links that no machine of `ranks` ranks has.
    fn topology(&self, ranks: u32) -> Result<Arc<dyn Topology>, String> {
        let made: Result<Arc<dyn Topology>, TopologyError> = match self {
            Self::Full => FullyConnected::new(ranks).map(|full| Arc::new(full) as _),
            Self::Grid { dims, wrap, ties, ranks_per_node } if dims.len() == wrap.len() => {
                let grid = Grid::new(dims, wrap).map(|grid| grid.with_ties(*ties));
                grid.and_then(|grid| with_ranks(Arc::new(grid), ranks_per_node))
            }
            Self::Grid { .. } => return Err(self.short_form()),
            Self::Graph { vertices, nodes, links, ranks_per_node, .. } => {
                graph(*vertices, nodes, links)
                    .and_then(|graph| with_ranks(Arc::new(graph), ranks_per_node))
            }
            Self::Lattice { form } => return parse_short_form(form).map_err(|e| e.to_string()),
            Self::Cluster { sizes } => {
                let groups: Vec<_> = sizes.iter().map(|&size| (1, size)).collect();
                Clusters::new(&groups).map(|clusters| Arc::new(clusters) as _)
            }
        };
        made.map_err(|e| e.to_string())
    }

    /// The short form of the topology described, for errors.
    fn short_form(&self) -> String {
        match self {
            Self::Full => "full".to_owned(),
            Self::Grid { dims, wrap, .. } if dims.len() == wrap.len() => Grid::new(dims, wrap)
                .map_or_else(|e| format!("a grid of {e}"), |grid| grid.short_form()),
            Self::Grid { dims, wrap, .. } => {
                format!("a grid of {} dims and {} wraps", dims.len(), wrap.len())
            }
            Self::Graph { form: Some(form), .. } => form.clone(),
            Self::Graph { nodes, links, .. } => {
                format!("a graph of {} nodes and {} links", nodes.len(), links.len())
            }
            Self::Lattice { form } => form.clone(),
            Self::Cluster { sizes } => format!("a cluster of {} nodes", sizes.len()),
        }
    }
}

fn with_ranks(
    network: Arc<dyn Topology>,
    ranks_per_node: &Option<PerNode>,
) -> Result<Arc<dyn Topology>, TopologyError> {
    match ranks_per_node {
        Some(sizes) => sizes.on(network),
        None => Ok(network),
    }
}

/// The graph of a header; its nodes become its first vertices.
fn graph(
    vertices: u32,
    nodes: &[u32],
    links: &[(u32, u32, u32, f64)],
) -> Result<Graph, TopologyError> {
    let is_node: HashMap<u32, u32> = nodes.iter().copied().zip(0..).collect();
    let classes = links.iter().map(|link| u64::from(link.2) + 1).max().unwrap_or(1);
    // The place of a vertex among the switches is its number less the nodes before it.
    let mut sorted = nodes.to_vec();
    sorted.sort_unstable();
    let numbered = |vertex: u32| match is_node.get(&vertex) {
        Some(&node) => node,
        None => {
            let before = sorted.partition_point(|&node| node < vertex) as u32;
            (vertex - before).saturating_add(nodes.len() as u32)
        }
    };
    let link = |&(from, to, class, capacity): &(u32, u32, u32, f64)| {
        let capacity = match capacity > 0.0 {
            true => Capacity::near(capacity),
            false => Capacity::Relative { times: 0, over: 1 },
        };
        (numbered(from), numbered(to), LinkKind { capacity, ..LinkKind::of_class(class) })
    };
    let listed = ListedGraph {
        form: format!("a graph of {} nodes", nodes.len()),
        nodes: is_node.len() as u32,
        switches: vertices.saturating_sub(is_node.len() as u32),
        classes: (0..classes.min(1 << 10)).map(|class| format!("class {class}")).collect(),
        links: links.iter().map(link).collect(),
        ..ListedGraph::default()
    };
    listed.with_shortest_routes()
}

/// The fields of headers of all versions.
#[derive(Deserialize)]
struct Versioned {
    version: u64,
}

impl Header {
    /// Reads the first line. A header of another version is refused by its number, before its other
    /// fields are read.
    fn parse(text: &str) -> Result<Self, String> {
        match serde_json::from_str(text) {
            Ok(Versioned { version }) if version != u64::from(VERSION) => Err(format!(
                "version {version}: this program reads version {VERSION}, which \
                 `topocoll schedule MACHINE --algorithm NAME --out FILE` writes"
            )),
            _ => read::parsed(text, "header"),
        }
    }

    /// The header of `schedule` on a machine.
    fn of(schedule: &Schedule, machine: &Machine) -> Self {
        let Schedule { problem, origin, .. } = schedule;
        Self {
            kind: "header".to_owned(),
            version: VERSION,
            operation: problem.operation.to_string(),
            algorithm: origin.algorithm.clone(),
            parameters: origin.parameters.clone(),
            ranks: problem.ranks,
            block_bytes: problem.block_bytes,
            ports: problem.ports,
            node_ports: problem.own_node_ports(&*machine.topology),
            topology: HeaderTopology::of(&*machine.topology, &machine.timing),
            groups: schedule.groups().map(|groups| {
                let ranks = |group| groups.group(group).ranks().iter().map(|rank| rank.0).collect();
                (0..groups.count()).map(ranks).collect()
            }),
        }
    }

    /// The groups that exchange.
    fn groups(&self) -> Result<Option<Groups>, String> {
        let Some(groups) = &self.groups else { return Ok(None) };
        let subset = |(number, ranks): (usize, &Vec<u32>)| {
            let ranks: Vec<Rank> = ranks.iter().copied().map(Rank).collect();
            Subset::new(&ranks, self.ranks).map_err(|error| format!("groups[{number}]: {error}"))
        };
        let groups = groups.iter().enumerate().map(subset).collect::<Result<_, _>>()?;
        Ok(Some(Groups::listed(groups).map_err(|error| format!("groups: {error}"))?))
    }

    /// The problem, if the header matches `topology`; more than `ranks - 1` ports are `ranks - 1`.
    fn problem(&self, topology: &dyn Topology) -> Result<Problem, String> {
        if self.kind != "header" {
            return Err(format!("kind is `{}`: the first line must be the `header`", self.kind));
        }
        check_ranks(self.ranks, topology)?;
        let form = topology.short_form();
        if !self.topology.is(&HeaderTopology::of(topology, &Timing::generic()), &form) {
            return Err(format!("written for {}, not for {form}", self.topology.short_form()));
        }
        let operation = self.operation.parse().map_err(|e: ScheduleError| e.to_string())?;
        let ports = Ports { rank: self.ports, node: self.node_ports.unwrap_or(self.ports) };
        Problem::new(operation, self.ranks, ports, self.block_bytes).map_err(|e| e.to_string())
    }
}
