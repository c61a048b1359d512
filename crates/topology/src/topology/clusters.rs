use std::sync::Arc;

use crate::error::check_limit;
use crate::number::number;
use crate::{
    FullyConnected, LinkId, MAX_DIMENSIONS, MixedRadix, Rank, Route, Segment, Shape, Topology,
    TopologyError,
};

/// The class of intra-node links.
pub const INTRA_NODE: usize = 0;
/// The first class of inter-node links.
pub const INTER_NODE: usize = 1;

/// The end of the form of a machine whose placement is listed.
pub(crate) const LISTED: &str = " placed";

/// The most ranks whose nodes are listed.
pub(crate) const MOST_PLACED: u64 = 1 << 20;

/// Nodes that hold one or more ranks each, on a network; on a complete one they are a cluster of
/// SMP nodes (Sanders and Traeff 2002, section 1).
///
/// Ranks are numbered node by node, unless they are [placed](Self::placed). Consecutive nodes of equal size are
/// kept as one run, so a cluster of a billion nodes takes no more memory than one of two.
#[derive(Clone, Debug)]
pub struct Clusters {
    runs: Vec<NodeRun>,
    ranks: u32,
    nodes: u32,
    network: Arc<dyn Topology>,
    /// The same nodes on the network that algorithms see, if it is another one.
    logical: Option<Arc<dyn Topology>>,
    /// The numbers of ranks that are not numbered node by node.
    pub(crate) order: Option<Arc<Order>>,
}

/// The numbers that ranks would have node by node, and back.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Order {
    pub(crate) by_node: Vec<u32>,
    pub(crate) ranks: Vec<u32>,
}

/// Consecutive nodes of one size.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct NodeRun {
    nodes: u32,
    size: u32,
    first_node: u32,
    first_rank: u32,
}

impl Clusters {
    /// The cluster with these fully connected nodes, given as (number of nodes, ranks on each) in
    /// order.
    ///
    /// # Errors
    /// No nodes, a node without ranks, or more than 2^32 - 1 ranks.
    pub fn new(groups: &[(u32, u32)]) -> Result<Self, TopologyError> {
        let nodes = groups.iter().map(|&(nodes, _)| u64::from(nodes)).sum::<u64>();
        let nodes = u32::try_from(nodes).map_err(|_| TopologyError::too_many_ranks())?;
        let network = FullyConnected::new(nodes).map_err(|_| TopologyError::no_nodes())?;
        Self::on(Arc::new(network), groups)
    }

    /// Nodes on a network that has one rank for each of them, given as (number of nodes, ranks on
    /// each) in order.
    ///
    /// # Errors
    /// As [`new`](Self::new), or other nodes than the network has.
    pub fn on(network: Arc<dyn Topology>, groups: &[(u32, u32)]) -> Result<Self, TopologyError> {
        let logical =
            network.logical().map(|seen| Self::on(Arc::clone(seen), groups)).transpose()?;
        let logical = logical.map(|seen| Arc::new(seen) as _);
        let mut cluster =
            Self { runs: Vec::new(), ranks: 0, nodes: 0, network, logical, order: None };
        check_limit("link classes", cluster.link_classes().len() as u64, MAX_DIMENSIONS as u64)?;
        for &(nodes, size) in groups.iter().filter(|group| group.0 > 0) {
            if size == 0 {
                let node = cluster.nodes;
                return Err(
                    format!("node {node} has 0 ranks: every node holds at least one").into()
                );
            }
            let ranks = nodes.checked_mul(size).and_then(|ranks| ranks.checked_add(cluster.ranks));
            let ranks = ranks.ok_or_else(TopologyError::too_many_ranks)?;
            match cluster.runs.last_mut() {
                Some(run) if run.size == size => run.nodes += nodes,
                _ => cluster.runs.push(NodeRun {
                    nodes,
                    size,
                    first_node: cluster.nodes,
                    first_rank: cluster.ranks,
                }),
            }
            cluster.ranks = ranks;
            cluster.nodes += nodes;
        }
        let on_network = cluster.network.ranks();
        match cluster.nodes {
            0 => Err(TopologyError::no_nodes()),
            nodes if nodes != on_network => {
                Err(format!("{nodes} nodes with ranks: the network has {on_network} nodes").into())
            }
            _ => Ok(cluster),
        }
    }

    /// The same nodes with the ranks of a list, which has the node of each: ranks of a node have their numbers in
    /// ascending order.
    ///
    /// # Errors
    /// More than 2^20 ranks, a network that is a grid placed on another one, a node that the cluster does not have,
    /// or other numbers of ranks on nodes than the cluster's.
    pub fn placed(&self, nodes: &[Rank]) -> Result<Self, TopologyError> {
        check_limit("ranks with listed nodes", nodes.len() as u64, MOST_PLACED)?;
        if self.logical.is_some() {
            let form = self.network.short_form();
            return Err(format!("{form} is placed: ranks on its nodes are numbered by node").into());
        }
        let mut counts = vec![0; self.nodes as usize];
        for (rank, node) in (0..).zip(nodes) {
            let rule =
                || format!("rank {rank} on node {node}: the last node is {}", self.nodes - 1);
            *counts.get_mut(node.index()).ok_or_else(rule)? += 1;
        }
        let wrong = (0..).zip(&counts).find(|&(node, count)| *count != self.size(node));
        if let Some((node, count)) = wrong {
            let size = self.size(node);
            return Err(format!("{count} ranks are on node {node}, which holds {size}").into());
        }
        let mut ranks: Vec<u32> = (0..self.ranks).collect();
        ranks.sort_by_key(|&rank| nodes[rank as usize]);
        let mut by_node = vec![0; ranks.len()];
        (0..).zip(&ranks).for_each(|(place, &rank)| by_node[rank as usize] = place);
        let order = (!ranks.is_sorted()).then(|| Arc::new(Order { by_node, ranks }));
        Ok(Self { order, ..self.clone() })
    }

    /// The same nodes on another network of as many nodes.
    ///
    /// # Panics
    /// The network has another number of nodes.
    pub(crate) fn on_other(&self, network: Arc<dyn Topology>) -> Self {
        let groups: Vec<_> = self.groups().map(|(_, count, size)| (count, size)).collect();
        let other = Self::on(network, &groups).expect("bug: nodes of another network");
        Self { order: self.order.clone(), ..other }
    }

    /// Whether ranks have other numbers than node by node.
    #[must_use]
    pub fn is_placed(&self) -> bool {
        self.order.is_some()
    }

    /// The node of each rank, where ranks are placed.
    #[must_use]
    pub fn placement(&self) -> Option<Vec<u32>> {
        let nodes = || (0..self.ranks).map(|rank| self.node_of(Rank(rank))).collect();
        self.is_placed().then(nodes)
    }

    /// The ranks on a node, in ascending order.
    pub fn ranks_of(&self, node: u32) -> impl Iterator<Item = Rank> + '_ {
        let first = self.first_by_node(node);
        (first..first + self.size(node)).map(|place| self.rank_at(place))
    }

    /// The rank at a place in the order of nodes.
    fn rank_at(&self, place: u32) -> Rank {
        Rank(self.order.as_ref().map_or(place, |order| order.ranks[place as usize]))
    }

    /// The network between the nodes, with one rank for each node.
    #[must_use]
    pub fn network(&self) -> &Arc<dyn Topology> {
        &self.network
    }

    /// Number of nodes.
    #[must_use]
    #[inline]
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// The node that holds `rank`.
    #[must_use]
    #[inline]
    pub fn node_of(&self, rank: Rank) -> u32 {
        let place = self.order.as_ref().map_or(rank.0, |order| order.by_node[rank.index()]);
        let run = self.run_before(|run| run.first_rank <= place);
        run.first_node + (place - run.first_rank) / run.size
    }

    /// Ranks on `node`.
    #[must_use]
    #[inline]
    pub fn size(&self, node: u32) -> u32 {
        self.run_before(|run| run.first_node <= node).size
    }

    /// The lowest rank on `node`.
    #[must_use]
    #[inline]
    pub fn first_rank(&self, node: u32) -> Rank {
        self.rank_at(self.first_by_node(node))
    }

    /// The lowest rank on a node, where ranks are numbered node by node.
    fn first_by_node(&self, node: u32) -> u32 {
        let run = self.run_before(|run| run.first_node <= node);
        run.first_rank + (node - run.first_node) * run.size
    }

    /// Ranks on the largest node.
    #[must_use]
    pub fn largest(&self) -> u32 {
        self.runs.iter().map(|run| run.size).max().expect("a cluster has a node")
    }

    /// Ranks on each node where all nodes are equal, and ranks are numbered node by node.
    #[must_use]
    pub fn equal_size(&self) -> Option<u32> {
        let [run] = self.runs[..] else { return None };
        (!self.is_placed()).then_some(run.size)
    }

    /// Consecutive nodes of equal size, as (first node, number of nodes, ranks on each), in order.
    pub fn groups(&self) -> impl Iterator<Item = (u32, u32, u32)> {
        self.runs.iter().map(|run| (run.first_node, run.nodes, run.size))
    }

    /// Ranks as coordinates (node, rank on the node) where all nodes are equal.
    #[must_use]
    pub fn by_node(&self) -> Option<MixedRadix> {
        let sides = [self.nodes, self.equal_size()?];
        Some(MixedRadix::new(&sides).expect("bug: more ranks than the cluster has"))
    }

    /// Ranks on each node, in order.
    pub fn sizes(&self) -> impl Iterator<Item = u32> {
        self.runs.iter().flat_map(|run| (0..run.nodes).map(|_| run.size))
    }

    /// The nodes that `ranks` form, if the ranks of each node are consecutive. Nodes that form no box
    /// of a grid are fully connected.
    pub(crate) fn part(&self, ranks: &[Rank]) -> Option<Self> {
        let groups: Vec<&[Rank]> =
            ranks.chunk_by(|&a, &b| self.node_of(a) == self.node_of(b)).collect();
        let nodes: Vec<Rank> = groups.iter().map(|group| self.place(group[0])).collect();
        let mut seen = nodes.clone();
        seen.sort_unstable();
        if seen.windows(2).any(|two| two[0] == two[1]) {
            return None;
        }
        let sizes: Vec<_> = groups.iter().map(|group| (1, group.len() as u32)).collect();
        let boxed = match self.network.shape() {
            Shape::Grid(grid) => grid.boxed(&nodes),
            _ => None,
        };
        match boxed {
            _ if nodes.len() == self.nodes as usize && seen == nodes => {
                Self::on(Arc::clone(&self.network), &sizes).ok()
            }
            Some(grid) => Self::on(Arc::new(grid), &sizes).ok(),
            None => Self::new(&sizes).ok(),
        }
    }

    /// The rank of the network that is the node of `rank`.
    fn place(&self, rank: Rank) -> Rank {
        Rank(self.node_of(rank))
    }

    fn run_before(&self, starts_by: impl FnMut(&NodeRun) -> bool) -> NodeRun {
        self.runs[self.runs.partition_point(starts_by) - 1]
    }
}

impl Topology for Clusters {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Clustered(self)
    }

    fn logical(&self) -> Option<&Arc<dyn Topology>> {
        self.logical.as_ref()
    }

    fn short_form(&self) -> String {
        let placed = if self.is_placed() { LISTED } else { "" };
        if let Shape::Complete = self.network.shape() {
            let groups: Vec<_> = (self.runs.iter())
                .map(|run| match run.nodes {
                    1 => run.size.to_string(),
                    nodes => format!("{nodes}*{}", run.size),
                })
                .collect();
            return format!("cluster:{}{placed}", groups.join(","));
        }
        let sizes: Vec<_> = match self.runs[..] {
            [run] => vec![run.size.to_string()],
            _ => self.sizes().map(|size| size.to_string()).collect(),
        };
        format!("{}*{}{placed}", self.network.short_form(), sizes.join(","))
    }

    fn nodes(&self) -> u32 {
        self.nodes
    }

    fn node_of(&self, rank: Rank) -> u32 {
        Self::node_of(self, rank)
    }

    fn between_nodes(&self) -> Option<&dyn Topology> {
        Some(&*self.network)
    }

    /// Those inside a node come first, then those of the network.
    fn link_classes(&self) -> Vec<String> {
        let between = match self.network.shape() {
            Shape::Complete => vec!["inter-node".to_owned()],
            _ => self.network.link_classes(),
        };
        std::iter::once("intra-node".to_owned()).chain(between).collect()
    }

    fn link_class(&self, from: Rank, to: Rank) -> usize {
        if self.node_of(from) == self.node_of(to) { INTRA_NODE } else { INTER_NODE }
    }

    fn route(&self, from: Rank, to: Rank, out: &mut Route) {
        self.network.route(self.place(from), self.place(to), out);
    }

    fn follow(&self, from: Rank, route: &Route) -> Result<u32, Segment> {
        self.network.follow(self.place(from), route)
    }

    fn for_each_link(&self, from: Rank, route: &Route, visit: &mut dyn FnMut(LinkId)) {
        self.network.for_each_link(self.place(from), route, visit);
    }
}

pub(crate) fn cluster(rest: &str) -> Result<Arc<dyn Topology>, String> {
    let mut groups = Vec::new();
    for (i, group) in rest.split(',').enumerate() {
        let (nodes, size) = match group.split_once(['*', 'x']) {
            Some((nodes, size)) => (number(&format!("number of nodes of group {i}"), nodes)?, size),
            None => (1, group),
        };
        groups.push((nodes, number(&format!("ranks on each node of group {i}"), size)?));
    }
    Ok(Arc::new(Clusters::new(&groups)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_numbered_node_by_node() {
        let cluster = Clusters::new(&[(1, 1), (2, 2), (1, 3)]).unwrap();
        let nodes: Vec<_> = (0..8).map(|r| cluster.node_of(Rank(r))).collect();
        assert_eq!(nodes, [0, 1, 1, 2, 2, 3, 3, 3]);
        assert_eq!(cluster.sizes().collect::<Vec<_>>(), [1, 2, 2, 3]);
        assert_eq!((cluster.first_rank(2), cluster.size(3)), (Rank(3), 3));
        assert_eq!(cluster.short_form(), "cluster:1,2*2,3");
        assert_eq!(cluster.by_node(), None);
        let equal = Clusters::new(&[(2, 3), (1, 3)]).unwrap().by_node().unwrap();
        assert_eq!(equal.coordinates(Rank(7))[..], [2, 1]);
    }

    #[test]
    fn ranks_may_be_placed_in_any_order() {
        let nodes = |listed: &[u32]| listed.iter().copied().map(Rank).collect::<Vec<_>>();
        let cluster = Clusters::new(&[(2, 2), (1, 1)]).unwrap();
        let placed = cluster.placed(&nodes(&[1, 0, 2, 1, 0])).unwrap();
        assert_eq!((0..5).map(|r| placed.node_of(Rank(r))).collect::<Vec<_>>(), [1, 0, 2, 1, 0]);
        assert_eq!(placed.ranks_of(0).collect::<Vec<_>>(), [Rank(1), Rank(4)]);
        assert_eq!((placed.first_rank(1), placed.equal_size()), (Rank(0), None));
        assert_eq!(placed.short_form(), "cluster:2*2,1 placed");
        assert!(!cluster.placed(&nodes(&[0, 0, 1, 1, 2])).unwrap().is_placed());
        for (listed, rule) in [
            (&[0, 0, 1, 1, 3][..], "rank 4 on node 3: the last node is 2"),
            (&[0, 0, 1, 1], "0 ranks are on node 2, which holds 1"),
            (&[0, 1, 0, 0, 2], "3 ranks are on node 0, which holds 2"),
        ] {
            assert_eq!(cluster.placed(&nodes(listed)).unwrap_err().message, rule);
        }
    }

    #[test]
    fn a_billion_nodes_need_no_memory() {
        let cluster = Clusters::new(&[(1 << 30, 3)]).unwrap();
        assert_eq!(cluster.node_of(Rank(3 << 29)), 1 << 29);
        let refused = |groups| Clusters::new(groups).unwrap_err().message;
        assert!(refused(&[(1 << 30, 4)]).contains("more than 4294967295 ranks"));
        assert!(refused(&[(2, 3), (1, 0)]).contains("node 2 has 0 ranks"));
        assert!(refused(&[(0, 3)]).contains("0 nodes"));
    }
}
