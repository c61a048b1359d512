//! The nodes of a cluster by falling size, among which the nodes of a size or more come first.

use topocoll_topology::{Clusters, Rank};

/// Nodes of equal size in a row.
#[derive(Clone, Copy)]
struct Group {
    first_node: u32,
    nodes: u32,
    size: u32,
    /// The position of its first node among the nodes by falling size.
    first_position: u32,
}

/// A cluster's nodes in two orders: as numbered, and by falling size.
pub(crate) struct Nodes {
    clusters: Clusters,
    falling: Vec<Group>,
    numbered: Vec<Group>,
}

impl Nodes {
    pub(crate) fn new(clusters: &Clusters) -> Self {
        let mut falling: Vec<Group> = (clusters.groups())
            .map(|(first_node, nodes, size)| Group { first_node, nodes, size, first_position: 0 })
            .collect();
        falling.sort_by_key(|group| std::cmp::Reverse(group.size));
        let mut active = 0;
        for group in &mut falling {
            group.first_position = active;
            active += group.nodes;
        }
        let mut numbered = falling.clone();
        numbered.sort_by_key(|group| group.first_node);
        Self { clusters: clusters.clone(), falling, numbered }
    }

    pub(crate) fn clusters(&self) -> &Clusters {
        &self.clusters
    }

    /// The node sizes there are, rising, each as (the size before, itself, the nodes of that size
    /// or more).
    pub(crate) fn sizes(&self) -> Vec<(u32, u32, u32)> {
        let mut sizes: Vec<(u32, u32, u32)> = Vec::new();
        let mut active = self.clusters.nodes();
        for group in self.falling.iter().rev() {
            let before = sizes.last().map_or(0, |&(_, size, _)| size);
            if group.size > before {
                sizes.push((before, group.size, active));
            }
            active -= group.nodes;
        }
        sizes
    }

    /// Nodes of the largest size.
    pub(crate) fn largest_nodes(&self) -> u32 {
        let largest = self.falling[0].size;
        self.falling.iter().filter(|group| group.size == largest).map(|group| group.nodes).sum()
    }

    /// The position of `node` among the nodes by falling size.
    pub(crate) fn position(&self, node: u32) -> u32 {
        let group =
            self.numbered[self.numbered.partition_point(|group| group.first_node <= node) - 1];
        group.first_position + (node - group.first_node)
    }

    /// The node at a position.
    pub(crate) fn node_at(&self, position: u32) -> u32 {
        let group = self.falling
            [self.falling.partition_point(|group| group.first_position <= position) - 1];
        group.first_node + (position - group.first_position)
    }

    /// The rank of a node with a local index.
    pub(crate) fn local(&self, node: u32, index: u32) -> Rank {
        Rank(self.clusters.first_rank(node).0 + index)
    }
}
