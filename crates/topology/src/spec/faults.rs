//! Failed nodes and links after the name of a machine.

use std::sync::Arc;

use super::{NodesOn, SpecError};
use crate::{Failure, Fault, Graph, Lattice, Machine, Shape, Ties, Topology};

/// The machine without these failed nodes and links of its network, each as in a short form; its other
/// values are kept.
///
/// # Errors
/// A fault that the network cannot have, or nodes that cannot reach each other.
pub fn with_faults<'a>(
    machine: &Machine,
    failed: impl IntoIterator<Item = &'a str>,
) -> Result<Machine, SpecError> {
    let NodesOn { network, sizes } = NodesOn::of(machine)?;
    let mut faults = Faults::on(&*network);
    failed.into_iter().try_for_each(|name| faults.add(name, None))?;
    let network = faults.taken_out(Arc::clone(&network))?;
    Ok(machine.on(NodesOn { network, sizes }.topology()?))
}

/// The faults of a machine, as listed so far.
pub(crate) struct Faults<'a> {
    topology: &'a dyn Topology,
    listed: Vec<Failure>,
}

impl<'a> Faults<'a> {
    pub(crate) fn on(topology: &'a dyn Topology) -> Self {
        Self { topology, listed: Vec::new() }
    }

    fn lattice(&self) -> Option<&'a Lattice> {
        let Shape::Graph(graph) = self.topology.shape() else { return None };
        graph.lattice().filter(|lattice| lattice.logical().is_none())
    }

    /// Adds the failure of a name. `nodes` is given where only nodes, or only links, are allowed.
    pub(crate) fn add(&mut self, name: &str, nodes: Option<bool>) -> Result<(), String> {
        let grid = match (self.topology.shape(), self.lattice()) {
            (Shape::Grid(grid), _) => (grid.radix(), grid.wrap()),
            (_, Some(lattice)) => (lattice.radix(), lattice.wrap()),
            _ => {
                return Err(format!(
                    "`{name}`: {} cannot have failed nodes or links: only tori, meshes and grids \
                     can",
                    self.topology.short_form()
                ));
            }
        };
        let failure = Failure::parse(name, grid.0, grid.1)?;
        let word = failure.word();
        match nodes {
            Some(true) if !failure.is_node() => {
                return Err(format!("`{name}` is {word}, not a node"));
            }
            Some(false) if failure.is_node() => {
                return Err(format!(
                    "`{name}` is a node, not a link: a link is named as `{name}+0`"
                ));
            }
            _ => {}
        }
        let before = self.lattice().map_or(&[][..], Lattice::failures);
        for other in before.iter().chain(&self.listed) {
            let other_name = other.name();
            let rule = match (failure.is_within(other), other.is_within(&failure)) {
                (true, true) if failure.is_node() => "is missing already".to_owned(),
                (true, true) => format!("has failed already: {word} fails in both directions"),
                (true, false) => format!("has failed already: `{other_name}` contains it"),
                (false, true) => format!("contains `{other_name}`, which has failed already"),
                (false, false) => continue,
            };
            return Err(format!("`{name}` {rule}"));
        }
        self.listed.push(failure);
        Ok(())
    }

    /// The machine with these faults.
    pub(crate) fn taken_out(
        &self,
        topology: Arc<dyn Topology>,
    ) -> Result<Arc<dyn Topology>, String> {
        let faults: Vec<Fault> = self.listed.iter().flat_map(Failure::faults).copied().collect();
        let graph = match (topology.shape(), self.lattice()) {
            _ if faults.is_empty() => return Ok(topology),
            (_, Some(lattice)) => lattice.without(&faults),
            (Shape::Grid(grid), _) if grid.ties() != Ties::Up => {
                return Err("ties requires a grid without failed nodes or links".to_owned());
            }
            (Shape::Grid(grid), _) => Graph::of_grid(grid, &faults),
            _ => unreachable!("bug: faults of {topology:?}"),
        };
        Ok(Arc::new(graph?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::parse_short_form;

    #[test]
    fn a_machine_keeps_its_values_where_parts_have_failed() {
        let machine = Machine::of(parse_short_form("torus:4x4*2").unwrap());
        let with = |failed: &str| with_faults(&machine, failed.split('/'));
        let failed = with("0,0+0/line:1,1+1/3,3").unwrap();
        assert_eq!(failed.topology.short_form(), "torus:4x4/3,3/0,0+0/line:1,0+1*2");
        assert_eq!((failed.ranks(), &failed.timing), (30, &machine.timing));
        assert!(with("4,4").unwrap_err().message.starts_with("`4,4`"));
        assert!(with("0,0/0,0").unwrap_err().message.contains("is missing already"));
        let cluster = Machine::of(parse_short_form("cluster:4*2").unwrap());
        let refused = with_faults(&cluster, ["0"]).unwrap_err().message;
        assert!(refused.contains("full:4 cannot have failed nodes"), "{refused}");
    }
}
