use std::sync::Arc;

use crate::{FullyConnected, Shape, Subset, Timing, Topology};

/// A machine: its topology, the ports it grants, and its timing values.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Machine {
    /// What the user called it: a file's name or a short form.
    pub name: String,
    /// Ranks and links.
    pub topology: Arc<dyn Topology>,
    /// Messages that a rank may send, and receive, in one step; on a cluster also the messages
    /// that a node may send to, and receive from, other nodes.
    pub ports: u32,
    /// Timing values.
    pub timing: Timing,
    /// Where each value comes from, in the order of the file; empty for short forms.
    pub sources: Vec<(String, String)>,
}

impl Machine {
    /// The machine that a short form names: one port, [`Timing::generic`].
    #[must_use]
    pub fn of(topology: Arc<dyn Topology>) -> Self {
        Self {
            name: topology.short_form(),
            topology,
            ports: 1,
            timing: Timing::generic(),
            sources: Vec::new(),
        }
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.topology.ranks()
    }

    /// The machine that a subset is by itself: its rank i is the i-th of the subset.
    ///
    /// Ranks in ascending order that are a box of a grid are a grid of as many dimensions: what its
    /// schedules say of routes holds on the whole grid too. A side wraps where the box spans one
    /// that does. Ranks of a cluster that are listed node by node are a cluster. All others are taken
    /// for a complete graph, whose schedules run on any machine; its links have the timing values of
    /// the first class.
    ///
    /// # Panics
    /// A subset of a machine of another number of ranks.
    #[must_use]
    pub fn subset(&self, subset: &Subset) -> Self {
        assert_eq!(subset.machine_ranks(), self.ranks(), "a subset of another machine");
        let ranks = subset.ranks();
        let part: Option<Arc<dyn Topology>> = match self.topology.shape() {
            Shape::Grid(grid) => grid.boxed(ranks).map(|grid| Arc::new(grid) as _),
            Shape::Clustered(clusters) => clusters.part(ranks).map(|part| Arc::new(part) as _),
            Shape::Complete | Shape::Lattice(_) => None,
        };
        let topology = part.unwrap_or_else(|| {
            Arc::new(FullyConnected::new(ranks.len() as u32).expect("bug: a subset of no ranks"))
        });
        let name = format!("{} of {}", topology.short_form(), self.name);
        let mut machine = Self { name, topology, ..self.clone() };
        machine.set_ports(self.ports);
        machine
    }

    /// The machine with the nodes and links that it lacks, if it lacks any.
    #[must_use]
    pub fn unbroken(&self) -> Option<Self> {
        let Shape::Lattice(lattice) = self.topology.shape() else { return None };
        if lattice.faults().is_empty() {
            return None;
        }
        Some(Self { topology: lattice.unbroken(), ..self.clone() })
    }

    /// Grants `ports` messages a step; more than `ranks - 1` are `ranks - 1`, and at least 1.
    pub fn set_ports(&mut self, ports: u32) {
        self.ports = ports.min(self.ranks() - 1).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FullyConnected, Rank, Route};

    #[test]
    fn ports_are_no_more_than_the_other_ranks_and_one_at_least() {
        for (ranks, ports, granted) in [(5, 3, 3), (5, 4, 4), (5, 9, 4), (5, 0, 1), (1, 9, 1)] {
            let mut machine = Machine::of(Arc::new(FullyConnected::new(ranks).unwrap()));
            machine.set_ports(ports);
            assert_eq!(machine.ports, granted, "{ports} of {ranks} ranks");
        }
    }

    #[test]
    fn where_no_links_are_shared_there_is_no_way() {
        let mut route = Route::straight(0, 3);
        FullyConnected::new(5).unwrap().route(Rank(0), Rank(1), &mut route);
        assert_eq!(route, Route::default());
    }
}
