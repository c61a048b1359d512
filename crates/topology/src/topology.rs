//! What machines answer about their ranks and links; the topologies, one file each.

pub(crate) mod clusters;
pub(crate) mod complete;
pub(crate) mod dragonfly;
pub(crate) mod fat_tree;
pub(crate) mod graph;
pub(crate) mod grid;
pub(crate) mod hypercube;
pub(crate) mod hyperx;
pub(crate) mod lattice;

use std::fmt;
use std::sync::Arc;

use crate::{Clusters, Graph, Grid, Link, LinkId, LinkKind, Rank, Route, Segment};

/// The ranks of a machine and the links between them.
///
/// Only grids and graphs number their [`Link`]s, which belong to the network between the nodes. On a
/// complete graph messages between different ranks share no link.
///
/// All implementations are in this crate, and methods may be added. Readers ask for the [`Shape`].
pub trait Topology: fmt::Debug + Send + Sync {
    /// Number of ranks, at least 1.
    fn ranks(&self) -> u32;

    /// The facts algorithms may rely on.
    fn shape(&self) -> Shape<'_>;

    /// The topology that algorithms see, if it is another one of the same ranks: the grid that is
    /// [placed](Graph::placed) on this network. Routes on it are not routes here.
    fn logical(&self) -> Option<&Arc<dyn Topology>> {
        None
    }

    /// The short form that names this topology, such as `torus:16x16`.
    fn short_form(&self) -> String;

    /// Names of the link classes; a timing value may differ from class to class.
    fn link_classes(&self) -> Vec<String>;

    /// The topology of the nodes, if nodes hold several ranks: it has one rank for each node, and all links
    /// are its own.
    fn between_nodes(&self) -> Option<&dyn Topology> {
        None
    }

    /// Number of nodes. Where each rank is a node by itself, nodes are numbered as ranks.
    fn nodes(&self) -> u32 {
        self.ranks()
    }

    /// The node that holds a rank.
    fn node_of(&self, rank: Rank) -> u32 {
        rank.0
    }

    /// The structure of the network between the nodes, with one rank for each node.
    fn network(&self) -> Shape<'_> {
        self.between_nodes().map_or_else(|| self.shape(), |nodes| nodes.shape())
    }

    /// The class of a message between two ranks that shares no numbered link: 0 inside a node.
    fn link_class(&self, _from: Rank, _to: Rank) -> usize {
        0
    }

    /// Number of directed links that messages may share.
    fn links(&self) -> u64 {
        self.between_nodes().map_or(0, Topology::links)
    }

    /// The numbers of links are below this.
    fn link_numbers(&self) -> u64 {
        self.between_nodes().map_or(0, Topology::link_numbers)
    }

    /// The most directed links that leave one node; 0 where links are not numbered.
    fn most_links_out(&self) -> u64 {
        self.between_nodes().map_or(0, Topology::most_links_out)
    }

    /// The kinds of links; empty on grids, where all links of a class are alike.
    fn link_kinds(&self) -> &[LinkKind] {
        self.between_nodes().map_or(&[], |nodes| nodes.link_kinds())
    }

    /// The kind of a link, a place in [`link_kinds`](Self::link_kinds).
    fn link_kind(&self, link: LinkId) -> usize {
        self.between_nodes().map_or(0, |nodes| nodes.link_kind(link))
    }

    /// The ends of a link, or `None` if no link has this number.
    fn link(&self, link: LinkId) -> Option<Link> {
        self.between_nodes()?.link(link)
    }

    /// The name of a node or a switch, for reports.
    fn vertex_name(&self, vertex: u32) -> String {
        self.between_nodes().map_or_else(|| vertex.to_string(), |nodes| nodes.vertex_name(vertex))
    }

    /// The name of a link for reports: on a grid the coordinates it leaves, its direction and its
    /// dimension, such as `(0,1)+1`.
    fn link_name(&self, link: LinkId) -> String {
        self.between_nodes().map_or_else(|| format!("link {link}"), |nodes| nodes.link_name(link))
    }

    /// Overwrites `out` with the route of a message whose schedule names none; empty where links
    /// are not numbered.
    fn route(&self, _from: Rank, _to: Rank, out: &mut Route) {
        out.clear();
    }

    /// The node or switch at which `route` from the node of `from` ends, or the first segment that
    /// leaves the machine.
    ///
    /// # Errors
    /// The offending segment.
    fn follow(&self, from: Rank, route: &Route) -> Result<u32, Segment> {
        route.segments().first().map_or(Ok(self.node_of(from)), |&segment| Err(segment))
    }

    /// Calls `visit` with every link of `route` in the order travelled. The route must stay on the
    /// machine.
    fn for_each_link(&self, _from: Rank, _route: &Route, _visit: &mut dyn FnMut(LinkId)) {}
}

/// The structure of a machine that algorithms may rely on: facts to match on, not types.
///
/// Exhaustive, so that the compiler points at every reader when a variant is added.
#[derive(Clone, Copy, Debug)]
pub enum Shape<'a> {
    /// A direct link between any two ranks, all links equal.
    Complete,
    /// Ranks on a grid, each side wrapping or not.
    Grid(&'a Grid),
    /// Ranks on a listed network, such as a fat tree, a twisted torus or a grid with failed links.
    Graph(&'a Graph),
    /// Nodes that hold several ranks, on a network.
    Clustered(&'a Clusters),
}

impl Shape<'_> {
    /// Whether ranks have other numbers than node by node ([`Clusters::placed`]).
    #[must_use]
    pub fn is_placed(&self) -> bool {
        matches!(self, Self::Clustered(nodes) if nodes.is_placed())
    }
}
