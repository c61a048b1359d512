use serde::Serialize;
use topocoll::{BestBounds, Machine, Parameters, Problem, Schedule, Time};
use topocoll_report::number::{Blocks, bandwidth};

use crate::args::Part;

/// The version of all JSON objects. In version 1, `blocks` of bounds had today's `link_blocks`.
pub(crate) const VERSION: u32 = 2;

/// The first fields of every object.
#[derive(Serialize, Debug)]
pub(crate) struct Head {
    version: u32,
    /// Whether the work was stopped; what it did not do is missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) partial: bool,
    machine: String,
    topology: String,
    timing: String,
    ranks: u32,
    operation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_bytes: Option<u64>,
    ports: u32,
    /// Of a node of several ranks, if not the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    node_ports: Option<u32>,
    /// The groups that exchange, as they were named.
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<String>,
}

impl Head {
    pub(crate) fn new(machine: &Machine, problem: &Problem) -> Self {
        let Problem { operation, ranks, ports, block_bytes, .. } = *problem;
        let node_ports = problem.own_node_ports(&*machine.topology);
        let names = (operation.name(), block_bytes);
        Self { ranks, ports, node_ports, ..Self::of(machine, names) }
    }

    /// The head of a schedule. One of a demand matrix has no operation, and its blocks are bytes.
    pub(crate) fn of_schedule(machine: &Machine, schedule: &Schedule) -> Self {
        match schedule.rule().names_blocks() {
            true => {
                let ranks = schedule.participants();
                Self { ranks, ..Self::new(machine, &schedule.problem) }
            }
            false => Self::of(machine, ("messages", schedule.problem.block_bytes)),
        }
    }

    /// The same for the groups that are named, if any are.
    pub(crate) fn in_groups(self, part: &Part) -> Self {
        Self { groups: part.groups.clone(), ..self }
    }

    /// The head of single messages of some bytes, without an exchange.
    pub(crate) fn traffic(machine: &Machine, bytes: u64) -> Self {
        Self::of(machine, ("traffic", bytes))
    }

    fn of(machine: &Machine, (operation, block_bytes): (&'static str, u64)) -> Self {
        Self {
            version: VERSION,
            partial: false,
            machine: machine.name.clone(),
            topology: machine.topology.short_form(),
            timing: machine.timing.name.clone(),
            ranks: machine.ranks(),
            operation,
            block_bytes: Some(block_bytes),
            ports: machine.ports.rank,
            node_ports: machine.own_node_ports(),
            groups: None,
        }
    }

    /// The head of a report on several block sizes.
    pub(crate) fn of_sizes(machine: &Machine, problem: &Problem) -> Self {
        Self { block_bytes: None, ..Self::new(machine, problem) }
    }
}

/// The lower bounds of the time and of each count.
#[derive(Clone, Copy, Serialize, Debug)]
pub(crate) struct Bounds {
    pub(crate) time_seconds: f64,
    pub(crate) steps: u64,
    pub(crate) blocks: Blocks,
    pub(crate) link_blocks: Blocks,
    /// What limits the bandwidth, and the seconds of the bytes that pass it.
    limited_by: &'static str,
    transmission_seconds: f64,
    /// The least charged volume in a number of steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tradeoff_link_blocks: Option<Blocks>,
}

impl From<BestBounds> for Bounds {
    fn from(bounds: BestBounds) -> Self {
        Self {
            time_seconds: bounds.seconds,
            steps: bounds.steps,
            blocks: Blocks(bounds.blocks),
            link_blocks: Blocks(bounds.link_blocks),
            limited_by: bounds.limit.name(),
            transmission_seconds: bounds.transmission,
            tradeoff_link_blocks: None,
        }
    }
}

impl Bounds {
    /// With the least charged volume of schedules of at most this number of steps, where it is known.
    pub(crate) fn in_steps(bounds: BestBounds, steps: u64) -> Self {
        let tradeoff_link_blocks = bounds.link_blocks_in(steps).map(Blocks);
        Self { tradeoff_link_blocks, ..bounds.into() }
    }
}

/// Predicted seconds and their terms.
#[derive(Serialize, Debug)]
pub(crate) struct Seconds {
    pub(crate) time_seconds: f64,
    pub(crate) startup_seconds: f64,
    pub(crate) transmission_seconds: f64,
    pub(crate) propagation_seconds: f64,
    pub(crate) rearrangement_seconds: f64,
    pub(crate) barrier_seconds: f64,
    /// The part of the startup, where the machine has rendezvous.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) rendezvous_seconds: f64,
    /// The part of the rearrangement, where the machine has a time of a block.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) block_copies_seconds: f64,
}

fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

impl From<Time> for Seconds {
    fn from(time: Time) -> Self {
        Self {
            time_seconds: time.total(),
            startup_seconds: time.startup,
            transmission_seconds: time.transmission,
            propagation_seconds: time.propagation,
            rearrangement_seconds: time.rearrangement,
            barrier_seconds: time.barrier,
            rendezvous_seconds: time.rendezvous,
            block_copies_seconds: time.block_copies,
        }
    }
}

/// Bytes per second and rank, as nccl-tests define them.
#[derive(Clone, Copy, Serialize, Debug)]
pub(crate) struct Bandwidth {
    algorithm_bandwidth: f64,
    bus_bandwidth: f64,
}

impl Bandwidth {
    pub(crate) fn new(problem: &Problem, seconds: f64) -> Self {
        let [algorithm_bandwidth, bus_bandwidth] = problem.bandwidth(seconds);
        Self { algorithm_bandwidth, bus_bandwidth }
    }

    /// Of a schedule whose blocks are of one size; of groups that of the largest.
    pub(crate) fn of(schedule: &Schedule, seconds: f64) -> Option<Self> {
        let mut problem = schedule.problem;
        problem.ranks = schedule.participants();
        schedule.rule().names_blocks().then(|| Self::new(&problem, seconds))
    }

    /// `382.8 MB/s a rank`.
    pub(crate) fn text(self) -> String {
        format!("{} a rank", self.rate())
    }

    /// `382.8 MB/s`.
    pub(crate) fn rate(self) -> String {
        bandwidth(1.0 / self.algorithm_bandwidth)
    }
}

/// Algorithms that do not apply, and the reasons.
#[derive(Serialize)]
pub(crate) struct Rejected {
    algorithm: String,
    /// For reports with formulas without a schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    reason: String,
}

impl From<&topocoll::Rejected> for Rejected {
    fn from(rejected: &topocoll::Rejected) -> Self {
        let topocoll::Rejected { algorithm, reason, .. } = rejected.clone();
        Self { algorithm, kind: None, reason }
    }
}

impl Rejected {
    pub(crate) fn of_kind(rejected: &topocoll::Rejected, kind: &'static str) -> Self {
        Self { kind: Some(kind), ..rejected.into() }
    }
}

/// From this block size on a setting is the fastest.
#[derive(Serialize)]
pub(crate) struct Crossover {
    pub(crate) block_bytes: u64,
    /// The last size, where it is undecided which setting is the fastest beyond.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to_bytes: Option<u64>,
    pub(crate) algorithm: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<&'static str>,
    pub(crate) parameters: Parameters,
    /// Powers of 2 at which another choice is the best without barriers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) changes_free_running: Vec<u64>,
}

/// An algorithm with searches that exceed the budget.
#[derive(Serialize)]
pub(crate) struct Unsearched {
    algorithm: String,
    budget_seconds: f64,
}

impl From<&topocoll::Unsearched> for Unsearched {
    fn from(unsearched: &topocoll::Unsearched) -> Self {
        let topocoll::Unsearched { algorithm, seconds, .. } = unsearched.clone();
        Self { algorithm, budget_seconds: seconds }
    }
}

/// An algorithm of which only some settings were priced.
#[derive(Serialize)]
pub(crate) struct PartlyPriced {
    algorithm: String,
    settings_priced: usize,
    settings: usize,
}

impl From<&topocoll::PartlyPriced> for PartlyPriced {
    fn from(partly: &topocoll::PartlyPriced) -> Self {
        let topocoll::PartlyPriced { algorithm, priced, settings, .. } = partly.clone();
        Self { algorithm, settings_priced: priced, settings }
    }
}
