use std::sync::Arc;

use crate::{Timing, Topology};

/// A machine: its topology, the ports it grants, and its timing values.
#[derive(Clone, Debug)]
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

    /// Grants `ports` messages a step; more than `ranks - 1` are `ranks - 1`, and at least 1.
    pub fn set_ports(&mut self, ports: u32) {
        self.ports = ports.min(self.ranks() - 1).max(1);
    }
}
