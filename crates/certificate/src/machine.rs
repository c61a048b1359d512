use crate::graph::Graph;
use crate::lines::Grid;

/// The machine that a schedule is for.
pub(crate) struct Machine {
    pub(crate) network: Network,
    /// Where nodes hold several ranks; elsewhere every rank is a node.
    pub(crate) nodes: Option<Nodes>,
}

/// The network between nodes.
pub(crate) enum Network {
    /// Every node has a direct link to every other.
    Complete(u32),
    Grid(Grid),
    /// Listed links.
    Graph(Graph),
}

/// The ranks of nodes, numbered node by node.
pub(crate) struct Nodes {
    groups: Vec<Group>,
    nodes: u32,
    ranks: u32,
}

/// Consecutive nodes of one size.
#[derive(Clone, Copy)]
pub(crate) struct Group {
    pub(crate) first: u32,
    pub(crate) nodes: u32,
    /// The ranks of each.
    pub(crate) size: u32,
    first_rank: u32,
}

impl Nodes {
    /// Nodes as (number of nodes, ranks on each); `None` for 0 or more than 2^32 - 1 ranks.
    pub(crate) fn new(sizes: &[(u32, u32)]) -> Option<Self> {
        let mut made = Self { groups: Vec::new(), nodes: 0, ranks: 0 };
        for &(nodes, size) in sizes {
            let (first, first_rank) = (made.nodes, made.ranks);
            made.ranks = nodes.checked_mul(size)?.checked_add(first_rank)?;
            made.nodes += nodes;
            match made.groups.last_mut().filter(|group| group.size == size) {
                Some(group) => group.nodes += nodes,
                None => made.groups.push(Group { first, nodes, size, first_rank }),
            }
        }
        (made.ranks > 0).then_some(made)
    }

    fn of(&self, rank: u32) -> u32 {
        let after = self.groups.partition_point(|group| group.first_rank <= rank);
        let group = self.groups[after - 1];
        group.first + (rank - group.first_rank) / group.size
    }

    pub(crate) fn nodes(&self) -> u32 {
        self.nodes
    }

    pub(crate) fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The ranks of each node where all nodes are equal.
    pub(crate) fn size(&self) -> Option<u32> {
        if let [group] = self.groups[..] { Some(group.size) } else { None }
    }

    fn name(&self) -> String {
        let group = |group: &Group| format!("{}*{}", group.nodes, group.size);
        let groups: Vec<_> = self.groups.iter().map(group).collect();
        groups.join(",")
    }
}

impl Machine {
    pub(crate) fn ranks(&self) -> u32 {
        self.nodes.as_ref().map_or(self.network.nodes(), |nodes| nodes.ranks)
    }

    /// The node of a rank.
    pub(crate) fn node_of(&self, rank: u32) -> u32 {
        self.nodes.as_ref().map_or(rank, |nodes| nodes.of(rank))
    }

    /// Consecutive nodes of equal size, in order.
    pub(crate) fn groups(&self) -> Vec<Group> {
        let nodes = self.network.nodes();
        let each = || vec![Group { first: 0, nodes, size: 1, first_rank: 0 }];
        self.nodes.as_ref().map_or_else(each, |nodes| nodes.groups.clone())
    }

    /// The machine as written in a certificate, without its links.
    pub(crate) fn name(&self) -> String {
        let network = match (&self.network, &self.nodes) {
            (Network::Complete(_), Some(nodes)) => return format!("cluster {}", nodes.name()),
            (Network::Complete(ranks), None) => format!("complete {ranks}"),
            (Network::Grid(grid), _) => grid.name(),
            (Network::Graph(graph), _) => graph.name(),
        };
        let nodes = self.nodes.as_ref().map(|nodes| format!(" nodes {}", nodes.name()));
        network + &nodes.unwrap_or_default()
    }
}

impl Network {
    pub(crate) fn nodes(&self) -> u32 {
        match self {
            Self::Complete(nodes) => *nodes,
            Self::Grid(grid) => grid.places.ranks(),
            Self::Graph(graph) => graph.nodes(),
        }
    }
}
