//! Blocks that cross into, or out of, a rank, a node or half of a grid.

use topocoll_schedule::{Collective, Problem};
use topocoll_topology::{Machine, Rank, Shape};

/// Blocks that each link across the middle of a side of length a must carry. In each direction
/// floor(a^2/4) (N/a)^2 pairs of the N nodes cross, each with a block for all ranks of both, in an
/// all-to-all, and at least N/a ceil(a/2) nodes in an all-gather, over 2 N/a links if the side wraps
/// and N/a if not.
pub(super) fn bisection(problem: &Problem, machine: &Machine, u: usize) -> Option<f64> {
    narrowest(problem, machine, u).map(|(crossing, links)| crossing as f64 / links as f64)
}

/// The blocks that cross the middle of side u, and the links they cross.
pub(super) fn narrowest(problem: &Problem, machine: &Machine, u: usize) -> Option<(u128, u128)> {
    let Shape::Grid(grid) = machine.topology.network() else { return None };
    let a = u128::from(grid.sides()[u]);
    if a == 1 {
        return None;
    }
    let (nodes, ranks) = (u128::from(machine.topology.nodes()), u128::from(problem.ranks));
    let lines = nodes / a;
    // The ranks of the lower half.
    let below = match machine.topology.shape() {
        Shape::Clustered(clusters) if clusters.equal_size().is_none() => {
            let at = |node| u128::from(grid.radix().coordinate(Rank(node), u));
            let sizes = (0..).zip(clusters.sizes()).filter(|(node, _)| at(*node) < a / 2);
            sizes.map(|(_, size)| u128::from(size)).sum()
        }
        _ => a / 2 * lines * (ranks / nodes),
    };
    let crossing = match problem.operation {
        Collective::AllToAll => below * (ranks - below),
        // The larger part sends all its blocks to the smaller one.
        Collective::AllGather => below.max(ranks - below),
    };
    Some((crossing, lines * if grid.wrap()[u] { 2 } else { 1 }))
}

/// Blocks that each link of a node must carry, if a node has fewer links than ports.
pub(super) fn least_links(problem: &Problem, machine: &Machine) -> Option<f64> {
    let links = fewest_links(problem, machine)?;
    Some(leaving(problem, machine)? as f64 / f64::from(links))
}

/// The fewest links of a node, if fewer than ports. A corner of a grid has one for each side and two
/// for each side that wraps. Where nodes hold unequal numbers of ranks, the most links of a node.
pub(super) fn fewest_links(problem: &Problem, machine: &Machine) -> Option<u32> {
    let topology = &*machine.topology;
    let links: u32 = match (topology.shape(), topology.network()) {
        (Shape::Clustered(clusters), Shape::Grid(_)) if clusters.equal_size().is_none() => {
            topology.most_links_out() as u32
        }
        (_, Shape::Grid(grid)) => {
            grid.radix().long_dimensions().map(|u| if grid.wrap()[u] { 2 } else { 1 }).sum()
        }
        (_, Shape::Graph(graph)) if graph.lattice().is_some() && is_node(machine) => {
            graph.fewest_links()
        }
        _ => return None,
    };
    let ports = if is_node(machine) { problem.ports } else { problem.node_ports };
    (0 < links && links < ports).then_some(links)
}

/// Blocks that a port of a node of several ranks must carry: with s ranks it sends s (p - s) blocks
/// to the others.
pub(super) fn node_ports(problem: &Problem, machine: &Machine) -> Option<f64> {
    let blocks = leaving(problem, machine).filter(|_| !is_node(machine))?;
    Some(blocks as f64 / f64::from(problem.node_ports))
}

/// Seconds in which a rank, and a node, send or receive the bytes that they must.
pub(super) fn injection(problem: &Problem, machine: &Machine) -> [(f64, &'static str); 2] {
    let (limits, block_bytes) = (machine.injection(), problem.block_bytes as f64);
    let rank = f64::from(problem.ranks - 1) * block_bytes * limits.rank;
    let left = leaving(problem, machine).filter(|_| !is_node(machine));
    let node = left.map_or(0.0, |blocks| blocks as f64 * block_bytes);
    [(rank, "rank"), (node * limits.node, "node")]
}

/// The most blocks that leave, or must enter, a node.
pub(super) fn leaving(problem: &Problem, machine: &Machine) -> Option<u128> {
    if machine.topology.nodes() < 2 {
        return None;
    }
    let p = u128::from(problem.ranks);
    let crossing = |size: u32| match problem.operation {
        Collective::AllToAll => u128::from(size) * (p - u128::from(size)),
        // It must receive the blocks of all other nodes.
        Collective::AllGather => p - u128::from(size),
    };
    match machine.topology.shape() {
        Shape::Clustered(clusters) => clusters.groups().map(|(_, _, size)| crossing(size)).max(),
        _ => Some(crossing(1)),
    }
}

/// Whether each rank is a node by itself.
pub(super) fn is_node(machine: &Machine) -> bool {
    !matches!(machine.topology.shape(), Shape::Clustered(_))
}

/// The strongest bound on the sum over steps of the largest message or link load, in whole bytes,
/// without the bounds of links listed one by one.
pub(crate) fn least_link_bytes(problem: &Problem, machine: &Machine) -> u128 {
    let (b, k) = (u128::from(problem.block_bytes), u128::from(problem.ports));
    let injected = (b * u128::from(problem.ranks - 1)).div_ceil(k);
    let doors = fewest_links(problem, machine).map(u128::from);
    let of_node = (!is_node(machine)).then_some(problem.node_ports.into());
    let doors = doors.into_iter().chain(of_node);
    let left = leaving(problem, machine).unwrap_or(0) * b;
    let dimensions = match machine.topology.network() {
        Shape::Grid(grid) => grid.sides().len(),
        Shape::Complete | Shape::Graph(_) | Shape::Clustered(_) => 0,
    };
    let across = (0..dimensions).filter_map(|u| narrowest(problem, machine, u));
    let across = across.map(|(crossing, links)| (crossing * b).div_ceil(links));
    across.chain(doors.map(|doors| left.div_ceil(doors))).fold(injected, u128::max)
}
