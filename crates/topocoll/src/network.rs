//! Measurements of nodes and the network between them.

use serde::{Deserialize, Serialize};
use topocoll_topology::{Injection, PerClass};

use crate::calibrate::measured_file;
use crate::{Error, Fit, machine};

/// Ranks of MPI on their nodes, and intra-node and inter-node message costs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Network {
    /// The number of ranks of each node; ranks of a node are consecutive.
    pub nodes: Vec<u32>,
    /// The number of concurrent messages that take as long as one: of a rank if nodes do not
    /// matter, otherwise of a node to other nodes.
    pub ports: u32,
    /// The time of one of many concurrent messages, in seconds.
    pub message: f64,
    /// Seconds in which a rank, and a node, injects a byte; 0 where only the links limit it.
    pub injection: [f64; 2],
    /// Intra-node; `None` if no node has two ranks.
    pub inside: Option<Fit>,
    /// Inter-node; `None` if there is one node.
    pub between: Option<Fit>,
}

impl Network {
    /// The machine's short form: a cluster if there are several nodes, and one has several ranks.
    #[must_use]
    pub fn short_form(&self) -> String {
        match (&self.inside, &self.between) {
            (Some(_), Some(_)) => {
                let sizes: Vec<_> = self.nodes.iter().map(u32::to_string).collect();
                format!("cluster:{}", sizes.join(","))
            }
            _ => format!("full:{}", self.nodes.iter().sum::<u32>()),
        }
    }

    /// A machine file with `command` as the source of its values.
    ///
    /// # Errors
    /// No ranks, or more than a machine has.
    pub fn machine_file(&self, command: &str) -> Result<String, Error> {
        let form = self.short_form();
        let fits: Vec<&Fit> = self.inside.iter().chain(&self.between).collect();
        let each = |value: fn(&Fit) -> f64| match fits.is_empty() {
            true => PerClass::uniform(0.0),
            false => PerClass::each(&fits.iter().map(|fit| value(fit)).collect::<Vec<_>>()),
        };
        let mut machine = machine(&form)?;
        machine.set_ports(self.ports);
        let [rank, node] = self.injection;
        let timing = &mut machine.timing;
        timing.startup = each(|fit| fit.startup);
        timing.per_byte = each(|fit| fit.per_byte);
        timing.per_hop = PerClass::uniform(0.0);
        timing.rearrangement_per_byte = fits.first().map_or(0.0, |fit| fit.rearrangement);
        timing.per_block = fits.first().map_or(0.0, |fit| fit.per_block);
        timing.injection = Injection { rank, node };
        let (title, measured) =
            (format!("This computer's MPI, {form}"), format!("measured: {command}"));
        let others = [
            ("title", &*title),
            ("per_hop", "unused: distances are not measured"),
            ("barrier", "unused: ranks go on by themselves"),
        ];
        let keys =
            ["shape", "ports", "startup", "per_byte", "rearrangement", "per_block", "injection"];
        measured_file(machine, keys.map(|key| (key, &*measured)).into_iter().chain(others))
    }
}

#[cfg(test)]
mod tests {
    use topocoll_topology::spec::parse_file;
    use topocoll_topology::{INTER_NODE, INTRA_NODE};

    use super::*;

    fn fit(startup: f64) -> Fit {
        let [per_byte, rearrangement, per_block] = [1e-9, 2e-10, 5e-9];
        Fit { startup, per_byte, rearrangement, per_block, exchange: 0.0, threads: 1, error: 0.0 }
    }

    #[test]
    fn machine_files_say_what_was_measured() {
        let (inside, between) = (Some(fit(1e-6)), Some(fit(3e-5)));
        let injection = [0.0, 4e-10];
        let network =
            Network { nodes: vec![3, 1], ports: 2, message: 1e-7, injection, inside, between };
        let machine = parse_file("here", &network.machine_file("command").unwrap()).unwrap();
        assert_eq!(
            (machine.topology.short_form().as_str(), machine.ports.rank),
            ("cluster:3,1", 2)
        );
        let startup = &machine.timing.startup;
        assert!((startup.of(INTRA_NODE) - 1e-6).abs() < 1e-12);
        assert!((startup.of(INTER_NODE) - 3e-5).abs() < 1e-12);
        assert_eq!(machine.timing.per_block, 5e-9);
        // Four digits are written.
        let near = |limit: f64, value: f64| (limit / value - 1.0).abs() < 1e-3;
        let injection = machine.timing.injection;
        assert!(injection.rank == 0.0 && near(injection.node, 4e-10), "{injection:?}");
        assert!(
            machine
                .sources
                .iter()
                .any(|(value, source)| value == "injection" && source == "measured: command")
        );
        let alone =
            Network { nodes: vec![1, 1, 1], inside: None, injection: [3e-10, 0.0], ..network };
        let machine = parse_file("here", &alone.machine_file("command").unwrap()).unwrap();
        assert_eq!(machine.topology.short_form(), "full:3");
        assert!((machine.timing.startup.of(0) - 3e-5).abs() < 1e-12);
        assert!(near(machine.injection().rank, 3e-10));
        let unlimited = Network { injection: [0.0, 0.0], ..alone };
        assert!(!unlimited.machine_file("command").unwrap().contains("injection"));
    }
}
