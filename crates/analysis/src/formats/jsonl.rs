//! JSON lines: a header, then one message a line with its blocks, ordered by step, then sender.

mod read;
mod write;

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use topocoll_schedule::{Parameters, Problem, Schedule, ScheduleError};
use topocoll_topology::spec::parse_short_form;
use topocoll_topology::{Clusters, FullyConnected, Grid, Shape, Topology, TopologyError};

use super::messages::check_ranks;

pub(super) use read::{List, Listed, read_each};
pub use read::{read, read_topology};
pub use write::write;

/// The version of the format.
const VERSION: u32 = 1;

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    /// Always `header`.
    kind: String,
    /// [`VERSION`].
    version: u32,
    /// `alltoall` or `allgather`.
    operation: String,
    /// The algorithm.
    algorithm: String,
    /// The parameters of the algorithm.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    parameters: Parameters,
    /// Number of ranks.
    ranks: u32,
    /// Bytes of a block.
    block_bytes: u64,
    /// Messages a rank may send, and receive, in a step.
    ports: u32,
    /// The topology it was written for.
    topology: HeaderTopology,
}

/// A topology in a header.
#[derive(PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum HeaderTopology {
    /// Fully connected.
    Full,
    /// A grid.
    Grid {
        /// Sides, dimension 0 first.
        dims: Vec<u32>,
        /// Which of them wrap.
        wrap: Vec<bool>,
    },
    /// A twisted torus, or a grid with failed nodes or links.
    Lattice {
        /// Its short form.
        form: String,
    },
    /// SMP nodes.
    Cluster {
        /// Ranks on each node.
        sizes: Vec<u32>,
    },
}

/// A message.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageLine {
    /// The step it travels in.
    step: u32,
    /// Its sender.
    from: u32,
    /// Its receiver.
    to: u32,
    /// On grids dimension and signed hops, in the order travelled; `None` for the machine's own
    /// route.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    route: Option<Vec<(u32, i64)>>,
    /// For an all-to-all source, destination, first byte, end byte; for an all-gather without the
    /// destination.
    blocks: Vec<Vec<u64>>,
}

/// A route that is given, even an empty one. `null` is refused.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<(u32, i64)>>, D::Error> {
    Vec::deserialize(from).map(Some)
}

impl HeaderTopology {
    /// The description of `topology`.
    fn of(topology: &dyn Topology) -> Self {
        match topology.shape() {
            Shape::Complete => Self::Full,
            Shape::Grid(grid) => {
                Self::Grid { dims: grid.sides().to_vec(), wrap: grid.wrap().to_vec() }
            }
            Shape::Lattice(lattice) => Self::Lattice { form: lattice.short_form() },
            Shape::Clustered(clusters) => {
                Self::Cluster { sizes: Clusters::sizes(clusters).collect() }
            }
        }
    }

    /// The topology described.
    ///
    /// # Errors
    /// Sides or sizes that no machine of `ranks` ranks has.
    fn topology(&self, ranks: u32) -> Result<Arc<dyn Topology>, String> {
        let made: Result<Arc<dyn Topology>, TopologyError> = match self {
            Self::Full => FullyConnected::new(ranks).map(|full| Arc::new(full) as _),
            Self::Grid { dims, wrap } if dims.len() == wrap.len() => {
                Grid::new(dims, wrap).map(|grid| Arc::new(grid) as _)
            }
            Self::Grid { .. } => return Err(self.short_form()),
            Self::Lattice { form } => return parse_short_form(form).map_err(|e| e.to_string()),
            Self::Cluster { sizes } => {
                let groups: Vec<_> = sizes.iter().map(|&size| (1, size)).collect();
                Clusters::new(&groups).map(|clusters| Arc::new(clusters) as _)
            }
        };
        made.map_err(|e| e.to_string())
    }

    /// The short form of the topology described, for errors.
    fn short_form(&self) -> String {
        match self {
            Self::Full => "full".to_owned(),
            Self::Grid { dims, wrap } if dims.len() == wrap.len() => Grid::new(dims, wrap)
                .map_or_else(|e| format!("a grid of {e}"), |grid| grid.short_form()),
            Self::Grid { dims, wrap } => {
                format!("a grid of {} dims and {} wraps", dims.len(), wrap.len())
            }
            Self::Lattice { form } => form.clone(),
            Self::Cluster { sizes } => format!("a cluster of {} nodes", sizes.len()),
        }
    }
}

/// The fields of headers of all versions.
#[derive(Deserialize)]
struct Versioned {
    version: u64,
}

impl Header {
    /// Reads the first line. A header of another version is refused by its number, before its other
    /// fields are read.
    fn parse(text: &str) -> Result<Self, String> {
        match serde_json::from_str(text) {
            Ok(Versioned { version }) if version != u64::from(VERSION) => Err(format!(
                "version {version}: this program reads version {VERSION}, which \
                 `topocoll schedule MACHINE --algorithm NAME --out FILE` writes"
            )),
            _ => read::parsed(text, "header"),
        }
    }

    /// The header of `schedule` on `topology`.
    fn of(schedule: &Schedule, topology: &dyn Topology) -> Self {
        let Schedule { problem, origin, .. } = schedule;
        Self {
            kind: "header".to_owned(),
            version: VERSION,
            operation: problem.operation.to_string(),
            algorithm: origin.algorithm.clone(),
            parameters: origin.parameters.clone(),
            ranks: problem.ranks,
            block_bytes: problem.block_bytes,
            ports: problem.ports,
            topology: HeaderTopology::of(topology),
        }
    }

    /// The problem, if the header matches `topology`; more than `ranks - 1` ports are `ranks - 1`.
    fn problem(&self, topology: &dyn Topology) -> Result<Problem, String> {
        if self.kind != "header" {
            return Err(format!("kind is `{}`: the first line must be the `header`", self.kind));
        }
        check_ranks(self.ranks, topology)?;
        if self.topology != HeaderTopology::of(topology) {
            return Err(format!(
                "written for {}, not for {}",
                self.topology.short_form(),
                topology.short_form()
            ));
        }
        let operation = self.operation.parse().map_err(|e: ScheduleError| e.to_string())?;
        Problem::new(operation, self.ranks, self.ports, self.block_bytes).map_err(|e| e.to_string())
    }
}
