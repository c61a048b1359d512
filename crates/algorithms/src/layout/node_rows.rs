//! The nodes of a cluster by falling size, among which the nodes of a size or more come first, and
//! their ranks in that order.

use std::ops::Range;

use topocoll_schedule::RankClasses;
use topocoll_topology::{Clusters, Coordinates, Rank, Topology};

use crate::NotApplicable;

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

/// The translations of nodes where all have equal sizes.
pub(crate) fn node_classes(clusters: &Clusters) -> RankClasses {
    match clusters.by_node() {
        Some(radix) => {
            let periods = Coordinates::from_slice(&[1, clusters.largest()]);
            RankClasses::translations(radix, periods)
        }
        None => RankClasses::distinct(clusters.ranks()),
    }
}

/// Calls `each` with the representatives of classes that have one of some local indices of their nodes, which
/// are equal.
pub(crate) fn each_with(
    clusters: &Clusters,
    locals: &mut Vec<u32>,
    classes: &RankClasses,
    each: &mut dyn FnMut(Rank),
) {
    locals.sort_unstable();
    locals.dedup();
    let size = clusters.largest();
    if classes.count() < clusters.ranks() {
        let has = |rank: &Rank| locals.binary_search(&(rank.0 % size)).is_ok();
        return classes.representatives().filter(has).for_each(each);
    }
    for node in 0..clusters.nodes() {
        locals.iter().for_each(|local| each(Rank(node * size + local)));
    }
}

/// All ranks in a row, node by node by falling size.
pub(crate) struct Row {
    nodes: Nodes,
    /// By position of a node, the ranks on those before it; and all ranks.
    before: Vec<u32>,
}

impl Row {
    /// Whether a cluster is small enough for a row: claims look at all pairs of its node sizes.
    pub(crate) fn check(clusters: &Clusters) -> Result<(), NotApplicable> {
        let ranks = clusters.ranks();
        if clusters.nodes() > 4096 || ranks > 1 << 20 {
            let rule = "at most 2^20 ranks on at most 4096 nodes";
            return Err(NotApplicable::Ranks { rule, ranks });
        }
        Ok(())
    }

    pub(crate) fn new(nodes: Nodes) -> Self {
        let mut before = vec![0];
        for position in 0..nodes.clusters().nodes() {
            let ranks = before[position as usize] + nodes.clusters().size(nodes.node_at(position));
            before.push(ranks);
        }
        Self { nodes, before }
    }

    pub(crate) fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// Number of nodes.
    pub(crate) fn count(&self) -> u32 {
        self.before.len() as u32 - 1
    }

    pub(crate) fn ranks(&self) -> u32 {
        self.before(self.count())
    }

    /// Ranks on the nodes before a position.
    pub(crate) fn before(&self, position: u32) -> u32 {
        self.before[position as usize]
    }

    pub(crate) fn size(&self, position: u32) -> u32 {
        self.before(position + 1) - self.before(position)
    }

    /// Ranks on a number of nodes from a position on, around.
    pub(crate) fn ranks_on(&self, first: u32, nodes: u32) -> u32 {
        let (all, end) = (self.count(), first + nodes);
        if end <= all {
            self.before(end) - self.before(first)
        } else {
            self.ranks() - self.before(first) + self.before(end - all)
        }
    }

    /// The position of a rank's node, and its local index.
    pub(crate) fn place(&self, rank: Rank) -> (u32, u32) {
        let clusters = self.nodes.clusters();
        let node = clusters.node_of(rank);
        (self.nodes.position(node), rank.0 - clusters.first_rank(node).0)
    }

    pub(crate) fn rank(&self, position: u32, local: u32) -> Rank {
        self.nodes.local(self.nodes.node_at(position), local)
    }

    /// The position and local index of the rank at a place of the row.
    pub(crate) fn standing(&self, place: u32) -> (u32, u32) {
        let position = self.before.partition_point(|&before| before <= place) as u32 - 1;
        (position, place - self.before(position))
    }

    /// The carrier, of a number, that has the node at a distance, from 1.
    pub(crate) fn carrier(&self, carriers: u32, distance: u32) -> u32 {
        (u64::from(distance - 1) * u64::from(carriers) / u64::from(self.count() - 1)) as u32
    }

    /// The distances of the nodes that a carrier has; none for a rank that is not a carrier.
    pub(crate) fn distances(&self, carriers: u32, carrier: u32) -> Range<u32> {
        let others = u64::from(self.count() - 1);
        let first = |c: u32| 1 + (u64::from(c) * others).div_ceil(carriers.into()) as u32;
        if carrier < carriers { first(carrier)..first(carrier + 1) } else { 1..1 }
    }
}
