//! The drawn network: its nodes, switches and links.

use serde::Serialize;
use topocoll::{Clusters, Fault, Graph, Lattice, Rank, Shape, Ties, Topology};

use super::layout::{Layout, layout};
use super::scene::Scene;

/// The drawn machine.
#[derive(Serialize)]
pub(super) struct Network {
    #[serde(flatten)]
    kind: Kind,
    /// Ranks on each node, if a node may hold several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sizes: Vec<u32>,
    /// Ranks in the order of nodes, if that is not the order of their numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    order: Vec<u32>,
}

/// The network between the nodes.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Kind {
    Full {
        nodes: u32,
    },
    Grid {
        sides: Vec<u32>,
        /// The drawn sides.
        window: Vec<u32>,
        wrap: Vec<bool>,
        /// Whether half of the routes of half a ring go down.
        balanced: bool,
    },
    Lattice {
        sides: Vec<u32>,
        wrap: Vec<bool>,
        /// For each side, the positions that one turn around it adds along the longest sides.
        shifts: Vec<u32>,
        /// The place of each node.
        places: Vec<u32>,
        /// By node, dimension and direction (+, -), the target of the link, if it exists.
        next: Vec<Option<u32>>,
        /// Places without a node.
        missing: Vec<u32>,
        /// Failed links: the place at the lower end, and the dimension.
        failed: Vec<[u32; 2]>,
    },
    Graph {
        /// Nodes are the first vertices.
        nodes: u32,
        /// By vertex, the number of its first link; one more entry at the end.
        first: Vec<u32>,
        /// By link, the vertex that it leads to.
        to: Vec<u32>,
        /// By link, its class.
        class: Vec<u32>,
        classes: Vec<String>,
        names: Vec<String>,
        /// By vertex, where it is drawn, in units of the distance between neighbours.
        places: Vec<[f32; 2]>,
        /// By vertex, links to the nearest node, if each link leads one level up or down.
        levels: Vec<u32>,
        curved: bool,
    },
}

impl Network {
    pub(super) fn of(scene: &Scene) -> Self {
        let topology = &*scene.machine.topology;
        let nodes = match topology.shape() {
            Shape::Clustered(clusters) => Some(clusters),
            _ => None,
        };
        let sizes = nodes.map_or_else(Vec::new, |nodes| Clusters::sizes(nodes).collect());
        let ranks = |nodes: &Clusters| {
            (0..Clusters::nodes(nodes))
                .flat_map(|node| nodes.ranks_of(node))
                .map(|rank| rank.0)
                .collect()
        };
        let order = nodes.filter(|nodes| nodes.is_placed()).map_or_else(Vec::new, ranks);
        let kind = match topology.network() {
            Shape::Grid(grid) => Kind::Grid {
                sides: grid.sides().to_vec(),
                window: scene.window.clone(),
                wrap: grid.wrap().to_vec(),
                balanced: grid.ties() == Ties::Balanced,
            },
            Shape::Graph(graph) => match graph.lattice() {
                Some(lattice) => on_lattice(graph, lattice),
                None => listed(graph),
            },
            Shape::Complete | Shape::Clustered(_) => Kind::Full { nodes: topology.nodes() },
        };
        Self { kind, sizes, order }
    }
}

fn on_lattice(graph: &Graph, lattice: &Lattice) -> Kind {
    let nodes = || (0..graph.ranks()).map(Rank);
    let directions = || (0..lattice.wrap().len()).flat_map(|u| [(u, 1), (u, -1)]);
    let next = |node| {
        let to = move |(u, direction)| graph.neighbour(node, u, direction);
        directions().map(to).map(|to| to.map(|to| to.0))
    };
    let mut missing = Vec::new();
    let mut failed = Vec::new();
    for fault in lattice.faults() {
        match *fault {
            Fault::Absent { node } => missing.push(node),
            Fault::Broken { node, dimension } => failed.push([node, dimension]),
            _ => {}
        }
    }
    Kind::Lattice {
        sides: lattice.radix().sides().to_vec(),
        wrap: lattice.wrap().to_vec(),
        shifts: lattice.radix().shifts().to_vec(),
        places: nodes().map(|node| lattice.place(node).0).collect(),
        next: nodes().flat_map(next).collect(),
        missing,
        failed,
    }
}

fn listed(graph: &Graph) -> Kind {
    let vertices = 0..graph.vertices();
    let (mut first, mut to, mut class) = (vec![0], Vec::new(), Vec::new());
    for vertex in vertices.clone() {
        for (link, end) in graph.leaving(vertex) {
            to.push(end);
            class.push(graph.link(link).map_or(0, |link| link.class));
        }
        first.push(to.len() as u32);
    }
    let Layout { places, levels, curved } = layout(graph);
    Kind::Graph {
        nodes: graph.ranks(),
        first,
        to,
        class,
        classes: graph.link_classes(),
        names: vertices.map(|vertex| graph.vertex_name(vertex)).collect(),
        places,
        levels,
        curved,
    }
}
