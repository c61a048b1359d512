//! Schedules as JSON lines: a header, then one message a line, ordered by step, then sender.

use std::io::BufRead;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use topocoll_topology::{
    Clusters, FullyConnected, Grid, Rank, Route, Shape, Topology, TopologyError,
};

use crate::{
    Block, Collective, Message, Origin, Parameters, Part, Problem, Recorded, Schedule,
    ScheduleError,
};

/// The version of the format.
pub const VERSION: u32 = 1;

/// A line longer than this is refused before it is read to its end.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// Schedules of more ranks are not read: listings are for thousands of them.
const MAX_RANKS: u32 = 65_535;

/// Line 1.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Always `header`.
    pub kind: String,
    /// [`VERSION`].
    pub version: u32,
    /// `alltoall` or `allgather`.
    pub operation: String,
    /// Who wrote it.
    pub algorithm: String,
    /// The parameters it was written with.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    pub parameters: Parameters,
    /// Number of ranks.
    pub ranks: u32,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Messages a rank may send, and receive, in a step.
    pub ports: u32,
    /// The shape it was written for.
    pub topology: Layout,
}

/// A topology in a header.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Layout {
    /// Fully connected.
    Full,
    /// A grid.
    Grid {
        /// Sides, dimension 0 first.
        dims: Vec<u32>,
        /// Which of them wrap.
        wrap: Vec<bool>,
    },
    /// SMP nodes.
    Cluster {
        /// Ranks on each node.
        sizes: Vec<u32>,
    },
}

/// A message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// The step it travels in.
    pub step: u32,
    /// Its sender.
    pub from: u32,
    /// Its receiver.
    pub to: u32,
    /// Grids: dimension and signed hops, in the order travelled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub route: Vec<(u32, i64)>,
    /// All-to-all: source, destination, first byte, end byte; all-gather without the destination.
    pub blocks: Vec<Vec<u64>>,
}

impl Layout {
    /// The layout that describes `topology`.
    #[must_use]
    pub fn of(topology: &dyn Topology) -> Self {
        match topology.shape() {
            Shape::Complete => Self::Full,
            Shape::Grid(grid) => {
                Self::Grid { dims: grid.sides().to_vec(), wrap: grid.wrap().to_vec() }
            }
            Shape::Clustered(clusters) => {
                Self::Cluster { sizes: Clusters::sizes(clusters).collect() }
            }
        }
    }

    /// The topology that is described.
    ///
    /// # Errors
    /// Sides or sizes that no machine of `ranks` ranks has.
    pub fn topology(&self, ranks: u32) -> Result<Arc<dyn Topology>, String> {
        let made: Result<Arc<dyn Topology>, TopologyError> = match self {
            Self::Full => FullyConnected::new(ranks).map(|full| Arc::new(full) as _),
            Self::Grid { dims, wrap } if dims.len() == wrap.len() => {
                Grid::new(dims, wrap).map(|grid| Arc::new(grid) as _)
            }
            Self::Grid { .. } => return Err(self.short_form()),
            Self::Cluster { sizes } => {
                let groups: Vec<_> = sizes.iter().map(|&size| (1, size)).collect();
                Clusters::new(&groups).map(|clusters| Arc::new(clusters) as _)
            }
        };
        made.map_err(|e| e.to_string())
    }

    /// The short form of what is described, for messages.
    fn short_form(&self) -> String {
        match self {
            Self::Full => "full".to_owned(),
            Self::Grid { dims, wrap } if dims.len() == wrap.len() => Grid::new(dims, wrap)
                .map_or_else(|e| format!("a grid of {e}"), |grid| grid.short_form()),
            Self::Grid { dims, wrap } => {
                format!("a grid of {} dims and {} wraps", dims.len(), wrap.len())
            }
            Self::Cluster { sizes } => format!("a cluster of {} nodes", sizes.len()),
        }
    }
}

impl Header {
    /// The header of `schedule` on `topology`.
    #[must_use]
    pub fn of(schedule: &Schedule, topology: &dyn Topology) -> Self {
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
            topology: Layout::of(topology),
        }
    }

    /// The problem, if the header fits `topology`; ports beyond `ranks - 1` are `ranks - 1`.
    fn problem(&self, topology: &dyn Topology) -> Result<Problem, String> {
        if self.kind != "header" {
            return Err(format!("kind is `{}`, and line 1 is the `header`", self.kind));
        }
        if self.version != VERSION {
            return Err(format!("version {} is not {VERSION}, the one read here", self.version));
        }
        if self.ranks != topology.ranks() {
            return Err(format!(
                "{} ranks, but {} has {}",
                self.ranks,
                topology.short_form(),
                topology.ranks()
            ));
        }
        if self.ranks > MAX_RANKS {
            return Err(format!("{} ranks: schedules of at most {MAX_RANKS} are read", self.ranks));
        }
        if self.topology != Layout::of(topology) {
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

/// Reads from line 1 the topology that a schedule was written for.
///
/// # Errors
/// A line that is no header, or describes no topology.
pub fn read_topology(input: impl BufRead) -> Result<Arc<dyn Topology>, ScheduleError> {
    let refuse = |message: String| ScheduleError::Line { line: 1, message };
    let mut text = String::new();
    std::io::Read::take(input, MAX_LINE_BYTES)
        .read_line(&mut text)
        .map_err(|e| refuse(format!("cannot be read: {e}")))?;
    let header: Header =
        serde_json::from_str(&text).map_err(|e| refuse(format!("no header: {}", in_line(&e))))?;
    header.topology.topology(header.ranks).map_err(refuse)
}

/// Reads a schedule written for `topology`.
///
/// # Errors
/// A line that cannot be read, contradicts `topology` or the header, or goes back a step.
pub fn read(mut input: impl BufRead, topology: &dyn Topology) -> Result<Schedule, ScheduleError> {
    let mut number = 0;
    let mut text = String::new();
    let mut next = |text: &mut String| -> Result<Option<usize>, ScheduleError> {
        text.clear();
        number += 1;
        let refuse = |message: String| ScheduleError::Line { line: number, message };
        let bytes = std::io::Read::take(&mut input, MAX_LINE_BYTES)
            .read_line(text)
            .map_err(|e| refuse(format!("cannot be read: {e}")))?;
        if bytes as u64 == MAX_LINE_BYTES {
            return Err(refuse(format!("longer than {MAX_LINE_BYTES} bytes")));
        }
        Ok((bytes > 0).then_some(number))
    };
    if next(&mut text)?.is_none() {
        return Err(ScheduleError::Line {
            line: 1,
            message: "empty file: line 1 is the header".to_owned(),
        });
    }
    let first = |message| ScheduleError::Line { line: 1, message };
    let header: Header =
        serde_json::from_str(&text).map_err(|e| first(format!("no header: {}", in_line(&e))))?;
    let problem = header.problem(topology).map_err(first)?;

    let mut messages: Vec<Message> = Vec::new();
    while let Some(line) = next(&mut text)? {
        let refuse = |message| ScheduleError::Line { line, message };
        let parsed: Line = serde_json::from_str(&text)
            .map_err(|e| refuse(format!("no message: {}", in_line(&e))))?;
        let after = messages.last().map_or(0, |message| message.step);
        // Steps may be skipped, but a few messages cannot claim billions of steps.
        if parsed.step < after || parsed.step as usize > 64 * (messages.len() + 64) {
            return Err(refuse(format!(
                "step {} after step {after} and {} messages: steps are numbered from 0 and never go back",
                parsed.step,
                messages.len()
            )));
        }
        messages.push(parsed.message(problem, topology).map_err(refuse)?);
    }
    let origin = Origin { algorithm: header.algorithm, parameters: header.parameters };
    Ok(Schedule::new(problem, origin, Recorded::new(problem, messages)))
}

/// What JSON has to say about a line, without its own count of lines.
fn in_line(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column", ", column")
}

impl Line {
    fn message(&self, problem: Problem, topology: &dyn Topology) -> Result<Message, String> {
        let rank = |name: &str, rank: u64| match u32::try_from(rank) {
            Ok(rank) if rank < problem.ranks => Ok(Rank(rank)),
            _ => Err(format!("{name} is rank {rank}, and ranks end at {}", problem.ranks - 1)),
        };
        let (from, to) = (rank("from", self.from.into())?, rank("to", self.to.into())?);
        if from == to {
            return Err(format!("rank {from} sends to itself: local copies are not listed"));
        }
        let mut route = Route::default();
        for &(dimension, hops) in &self.route {
            route.push(dimension, hops);
        }
        if !route.is_empty() {
            let Shape::Grid(grid) = topology.shape() else {
                return Err(format!("a route on {}, which is no grid", topology.short_form()));
            };
            match grid.follow(from, &route) {
                Ok(end) if end == to => {}
                Ok(end) => {
                    return Err(format!(
                        "the route leads from rank {from} to rank {end}, not to {to}"
                    ));
                }
                Err(segment) => {
                    return Err(format!(
                        "the route leaves the grid: {} hops along dimension {}",
                        segment.hops, segment.dimension
                    ));
                }
            }
        }
        if self.blocks.is_empty() {
            return Err("a message of no blocks".to_owned());
        }
        let mut blocks = Vec::with_capacity(self.blocks.len());
        for listed in &self.blocks {
            let (block, first, end) = match (problem.operation, listed.as_slice()) {
                (Collective::AllToAll, &[source, destination, first, end]) => {
                    let block = Block {
                        from: rank("a source", source)?,
                        to: rank("a destination", destination)?,
                    };
                    (block, first, end)
                }
                (Collective::AllGather, &[source, first, end]) => {
                    (Block::of(rank("a source", source)?), first, end)
                }
                (operation, listed) => {
                    return Err(format!("a block of {operation} has no {} numbers", listed.len()));
                }
            };
            if first >= end || end > problem.block_bytes {
                return Err(format!(
                    "bytes {first}..{end} of a block of {} bytes",
                    problem.block_bytes
                ));
            }
            let whole = first == 0 && end == problem.block_bytes;
            blocks.push((block, if whole { Part::Whole } else { Part::Bytes { first, end } }));
        }
        Ok(Message { step: self.step, from, to, route, blocks })
    }
}
