//! Loads of the links of a network.

use topocoll_schedule::{Collective, Problem};
use topocoll_topology::{Capacity, Graph, Grid, LinkId, Machine, Shape, Topology as _};

use super::lengths;

/// The least load of the busiest link of a graph in an all-to-all: in blocks over the capacity of
/// its class, and in seconds for each byte of a block.
pub(super) fn distances(problem: &Problem, machine: &Machine) -> Option<[f64; 2]> {
    let (graph, ranks, times) = flows(problem, machine)?;
    let [blocks, seconds] =
        loads(machine, |capacities| lengths::of_graph(graph, capacities, &ranks) * times);
    let far_apart = by_lengths(graph, &ranks, machine);
    Some([blocks, far_apart.map_or(seconds, |seconds| seconds * times)])
}

/// The least seconds for each byte of a block on the busiest link, where the rates of links are so far
/// apart that no fraction has both: lengths that are good for capacities relative to the slowest link
/// give a bound for the true ones.
fn by_lengths(graph: &Graph, ranks: &[u32], machine: &Machine) -> Option<f64> {
    let (fastest, own) = (machine.least_per_byte_between(), seconds_of_links(machine));
    let slowest = own.iter().copied().fold(0.0, f64::max);
    if fastest == 0.0 || slowest <= fastest * f64::from(u32::MAX) {
        return None;
    }
    let near = |own: &f64| Capacity::near(slowest / own).relative(slowest);
    let near: Vec<_> = own.iter().map(near).collect();
    let (mut charged, mut seconds) = (0.0, 0.0);
    for (link, length) in (0..).zip(lengths::prove(graph, &near, ranks).lengths) {
        let kind = graph.link_kind(LinkId(link));
        let (of, over) = near[kind];
        charged += length as f64 * f64::from(of) / f64::from(over);
        seconds += length as f64 / own[kind];
    }
    let distances = lengths::of_graph(graph, &near, ranks) * charged;
    Some(if seconds > 0.0 { distances / seconds * NEAR } else { 0.0 })
}

/// A load of the busiest link in blocks over the capacity of its class, and in seconds for each byte
/// of a block, from the load by capacities.
pub(super) fn loads(machine: &Machine, least: impl Fn(&[(u32, u32)]) -> f64) -> [f64; 2] {
    let fastest = machine.least_per_byte_between();
    let relative = capacities(machine, |per_byte, capacity| capacity.relative(per_byte));
    let in_seconds = capacities(machine, |per_byte, capacity| {
        let own = capacity.seconds_per_byte(per_byte);
        if fastest > 0.0 { Capacity::near(fastest / own).relative(per_byte) } else { (1, 1) }
    });
    // Fractions are near the quotients of seconds.
    let exact = if in_seconds.iter().all(|of| *of == (1, 1)) { 1.0 } else { NEAR };
    let blocks = least(&relative);
    let in_fastest = if in_seconds == relative { blocks } else { least(&in_seconds) };
    [blocks, in_fastest * fastest * exact]
}

/// What a bound keeps where fractions are near their values.
const NEAR: f64 = 1.0 - 1e-8;

/// By kind of links, the seconds of a byte.
fn seconds_of_links(machine: &Machine) -> Vec<f64> {
    let per_byte = |class: u32| machine.timing.per_byte.of(machine.first_class() + class as usize);
    let kinds = machine.topology.link_kinds().iter();
    kinds.map(|kind| kind.capacity.seconds_per_byte(per_byte(kind.class))).collect()
}

/// What an all-gather brings to a node of a graph over its links: in blocks over the capacity of their
/// class, and in seconds for each byte of a block.
pub(super) fn gathered(problem: &Problem, machine: &Machine) -> Option<[f64; 2]> {
    let Shape::Graph(graph) = machine.topology.network() else { return None };
    if problem.operation != Collective::AllGather || graph.ranks() < 2 {
        return None;
    }
    let relative = capacities(machine, |per_byte, capacity| capacity.relative(per_byte));
    let own = seconds_of_links(machine);
    let mut into = vec![[0.0, 0.0]; graph.vertices() as usize];
    for link in (0..graph.links()).map(LinkId) {
        let kind = graph.link_kind(link);
        let (times, over) = relative[kind];
        let [capacity, bandwidth] = &mut into[graph.link(link)?.to as usize];
        *capacity += f64::from(times) / f64::from(over);
        *bandwidth += 1.0 / own[kind];
    }
    let exact = if relative.iter().all(|of| *of == (1, 1)) { 1.0 } else { NEAR };
    let sizes: Vec<u32> = match machine.topology.shape() {
        Shape::Clustered(clusters) => clusters.sizes().collect(),
        _ => vec![1; graph.ranks() as usize],
    };
    let blocks = sizes.iter().map(|size| f64::from(problem.ranks - size) * exact);
    let each = blocks.zip(&into).map(|(blocks, into)| into.map(|into| blocks / into));
    each.reduce(|a, b| [a[0].max(b[0]), a[1].max(b[1])])
}

/// The load of the busiest link of the machine's routes in an all-to-all, over its capacity.
pub(super) fn routed(problem: &Problem, machine: &Machine) -> Option<f64> {
    let grid = match machine.topology.network() {
        Shape::Grid(grid) => Some(grid),
        Shape::Graph(graph) => graph.on_grid().map(|on| on.grid),
        Shape::Complete | Shape::Clustered(_) => None,
    };
    if let Some(grid) = grid {
        return routed_on_grid(problem, machine, grid);
    }
    let (graph, ranks, times) = flows(problem, machine)?;
    let relative = capacities(machine, |per_byte, capacity| capacity.relative(per_byte));
    Some(graph.routed_load(&relative, &ranks)? * times)
}

/// The same on a grid whose nodes hold equally many ranks.
fn routed_on_grid(problem: &Problem, machine: &Machine, grid: &Grid) -> Option<f64> {
    let size = match machine.topology.shape() {
        Shape::Clustered(clusters) => clusters.equal_size()?,
        _ => 1,
    };
    let all_to_all = problem.operation == Collective::AllToAll;
    let along = (0..grid.sides().len()).map(|u| grid.routed_load(u));
    let busiest = along.max().filter(|&load| all_to_all && load > 0)?;
    Some(busiest as f64 * f64::from(size).powi(2))
}

/// A graph with an all-to-all, and the ranks on each node, none for one; loads are to be multiplied.
fn flows<'m>(problem: &Problem, machine: &'m Machine) -> Option<(&'m Graph, Vec<u32>, f64)> {
    let Shape::Graph(graph) = machine.topology.network() else { return None };
    if problem.operation != Collective::AllToAll {
        return None;
    }
    Some(match machine.topology.shape() {
        Shape::Clustered(clusters) => match clusters.equal_size() {
            Some(size) => (graph, Vec::new(), f64::from(size).powi(2)),
            None => (graph, clusters.sizes().collect(), 1.0),
        },
        _ => (graph, Vec::new(), 1.0),
    })
}

/// A capacity for each kind of links, on a grid for each dimension, from the seconds of a byte of its
/// class.
fn capacities(machine: &Machine, of: impl Fn(f64, Capacity) -> (u32, u32)) -> Vec<(u32, u32)> {
    let per_byte = |class: u32| machine.timing.per_byte.of(machine.first_class() + class as usize);
    if let Shape::Grid(grid) = machine.topology.network() {
        let dimensions = 0..grid.sides().len() as u32;
        return dimensions.map(|u| of(per_byte(u), Capacity::CLASS)).collect();
    }
    let kinds = machine.topology.link_kinds().iter();
    kinds.map(|kind| of(per_byte(kind.class), kind.capacity)).collect()
}

/// Lengths of the links of a graph that bound the load of the busiest link in an all-to-all; empty
/// if none are known.
pub(crate) fn lengths_of_links(problem: &Problem, machine: &Machine) -> Vec<u64> {
    let Some((graph, ranks, _)) = flows(problem, machine) else { return Vec::new() };
    let relative = capacities(machine, |per_byte, capacity| capacity.relative(per_byte));
    lengths::prove(graph, &relative, &ranks).lengths
}
