//! The nodes of ranks.

use std::sync::Arc;

use super::{NodesOn, SpecError};
use crate::text::{line_at, uncommented};
use crate::topology::clusters::LISTED;
use crate::{Graph, Machine, Rank, Shape, Topology};

/// The machine whose ranks are on these nodes: those of a grid, or of a grid on the sides of another one
/// (`torus:64x64@16x2x2,16x2x2`), on nodes of the latter. Where nodes hold several ranks, a list with a node for each
/// rank places ranks on nodes, and one with a node for each node of a grid places nodes on nodes. Its other values
/// are kept.
///
/// # Errors
/// Another number of nodes, a node that the machine does not have, other numbers of ranks on nodes than the
/// machine's, or ranks that are placed already. Without several ranks on nodes, a machine on no grid, or a node that
/// is named twice.
pub fn with_placement(machine: &Machine, nodes: &[Rank]) -> Result<Machine, SpecError> {
    let NodesOn { network, sizes } = NodesOn::of(machine)?;
    let topology = match is_of_nodes(&*network, nodes) {
        true => NodesOn { network: placed(&*network, nodes)?, sizes }.topology()?,
        false => with_ranks_on(&*machine.topology, nodes)?,
    };
    Ok(machine.on(topology))
}

/// Whether a list has a node for each node of a network, not for each of several ranks on a node.
pub(crate) fn is_of_nodes(network: &dyn Topology, nodes: &[Rank]) -> bool {
    let several = matches!(network.shape(), Shape::Clustered(_));
    !several && nodes.len() == network.ranks() as usize
}

/// The topology whose ranks are on these nodes, which hold several.
pub(crate) fn with_ranks_on(
    topology: &dyn Topology,
    nodes: &[Rank],
) -> Result<Arc<dyn Topology>, String> {
    match topology.shape() {
        Shape::Clustered(clusters) => Ok(Arc::new(clusters.placed(nodes)?)),
        _ => placed(topology, nodes),
    }
}

pub(crate) fn placed(network: &dyn Topology, nodes: &[Rank]) -> Result<Arc<dyn Topology>, String> {
    let physical = match network.shape() {
        Shape::Grid(grid) => Some(grid),
        Shape::Graph(graph) => graph.on_grid().map(|on| on.grid),
        Shape::Complete | Shape::Clustered(_) => None,
    };
    let (form, nodes) = (network.short_form(), nodes.iter().map(|node| node.0).collect::<Vec<_>>());
    let logical = network.logical().map_or(network, |logical| &**logical);
    let (Shape::Grid(logical), Some(physical)) = (logical.shape(), physical) else {
        return Err(format!("a placement requires a grid, and {form} is not a grid"));
    };
    let form = format!("{}{LISTED}", form.trim_end_matches(LISTED));
    Ok(Arc::new(Graph::placed(form, logical, physical, &nodes)?))
}

/// Reads the nodes of ranks in order: one number a line, `#` beginning a comment.
///
/// # Errors
/// A line that is not a number.
pub fn read_nodes(text: &str) -> Result<Vec<Rank>, String> {
    let text = text.trim_start_matches('\u{feff}');
    let node = |(line, at): (&str, usize)| {
        let wrong = |_| format!("line {}: `{line}` is not the number of a node", line_at(text, at));
        Ok(Rank(line.parse().map_err(wrong)?))
    };
    uncommented(text).map(node).collect()
}
