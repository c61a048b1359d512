//! A schedule as the first rank tells it to the others, and the subject that it is for.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use topocoll::exec::{Plan, PlannedSizes};
use topocoll::{
    Collective, Error, Exchange, Machine, Parameters, Ports, Problem, Rank, Schedule, Sync, spec,
};

use super::place::Place;
use super::settings::WINDOW;
use super::vector::Sizes;

/// The subject of one decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Subject {
    pub(crate) operation: Collective,
    /// Whether blocks may differ in size.
    pub(crate) vector: bool,
    pub(crate) sizes: Sizes,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operation, self.sizes)
    }
}

impl Subject {
    /// A number for each.
    pub(crate) fn number(self) -> u64 {
        self.sizes.number() << 2 | u64::from(self.vector) << 1 | self.operation as u64
    }
}

/// A schedule of ours, as the first rank tells the others.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ours {
    pub(super) topology: String,
    pub(super) ports: u32,
    /// Of a node, if not the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) node_ports: Option<u32>,
    /// By rank of the schedule, the rank of the communicator; `None` if they are equal.
    pub(crate) order: Option<Vec<u32>>,
    pub(super) algorithm: String,
    pub(super) parameters: Parameters,
    /// Whether messages inside a node pass through a shared window.
    #[serde(default)]
    pub(crate) window: bool,
    /// The synchronization between steps.
    #[serde(default, skip_serializing_if = "is_free")]
    pub(crate) sync: Sync,
}

fn is_free(sync: &Sync) -> bool {
    *sync == Sync::Free
}

pub(super) fn problem(
    machine: &Machine,
    operation: Collective,
    block_bytes: u64,
) -> Result<Problem, Error> {
    Ok(Problem::new(operation, machine.ranks(), machine.ports, block_bytes)?)
}

/// The algorithm and its setting.
impl fmt::Display for Ours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.algorithm)?;
        self.parameters.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))?;
        if self.window {
            write!(f, " (window)")?;
        }
        if self.sync == Sync::Barrier { write!(f, " (barrier)") } else { Ok(()) }
    }
}

impl Ours {
    pub(super) fn new(place: &Place, schedule: &Schedule, sync: Option<Sync>) -> Self {
        Self {
            topology: place.machine.topology.short_form(),
            ports: place.machine.ports.rank,
            node_ports: place.machine.own_node_ports(),
            order: place.order.clone(),
            algorithm: schedule.origin.algorithm.to_string(),
            parameters: schedule.origin.parameters.clone(),
            window: false,
            sync: sync.unwrap_or_default(),
        }
    }

    /// Whether the ranks of a communicator can follow it.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn serves(&self, subject: Subject, ranks: u32) -> Result<(), String> {
        let mut order: Vec<u32> = self.order.clone().unwrap_or_else(|| (0..ranks).collect());
        order.sort_unstable();
        if !order.into_iter().eq(0..ranks) {
            return Err(format!("the order of {self} is not one of {ranks} ranks"));
        }
        let own = self.machine().map_err(|error| error.to_string())?.ranks();
        if own != ranks {
            return Err(format!("{self} is for {own} ranks, not {ranks}"));
        }
        self.plan(subject, 0).map(drop).map_err(|error| error.to_string())
    }

    /// The variables that force its algorithm, in the algorithm's usual setting.
    pub(crate) fn force(&self, operation: Collective) -> String {
        let (window, name) = (if self.window { WINDOW } else { "" }, &self.algorithm);
        let sync = if self.sync == Sync::Barrier { " TOPOCOLL_SYNC=barrier" } else { "" };
        format!("TOPOCOLL_ALGORITHM={operation}:{name}{window}{sync}")
    }

    fn machine(&self) -> Result<Machine, Error> {
        let topology = spec::parse_short_form(&self.topology).map_err(Error::ShortForm)?;
        let mut machine = Machine::of(topology);
        let node = self.node_ports.unwrap_or(self.ports);
        machine.set_ports(Ports { rank: self.ports, node });
        Ok(machine)
    }

    /// A rank's plan, which serves the subject.
    ///
    /// # Errors
    /// A schedule too large to number, or one that passes on blocks whose sizes a rank does not know;
    /// the first rank plans before it tells the others.
    pub(crate) fn plan(&self, subject: Subject, rank: u32) -> Result<Arc<Plan>, Error> {
        let machine = self.machine()?;
        let problem = problem(&machine, subject.operation, subject.sizes.bytes())?;
        let schedule =
            Exchange::new(&machine, &problem)?.schedule(&self.algorithm, &self.parameters)?;
        let plan = Arc::new(Plan::new(&schedule, Rank(rank))?);
        if subject.vector {
            PlannedSizes::check_plan(&plan)?;
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_schedule_serves_only_its_ranks() {
        let known = |topology: &str, order: Option<Vec<u32>>, algorithm: &str| Ours {
            topology: topology.to_owned(),
            ports: 1,
            node_ports: None,
            order,
            algorithm: algorithm.to_owned(),
            parameters: Parameters::new(),
            window: false,
            sync: Sync::Free,
        };
        let serves = |ours: &Ours, vector| {
            let (operation, sizes) = (Collective::AllToAll, Sizes::Equal(3));
            ours.serves(Subject { operation, vector, sizes }, 4)
        };
        assert_eq!(serves(&known("full:4", Some(vec![2, 0, 1, 3]), "bruck"), false), Ok(()));
        for (ours, vector, expected) in [
            (known("full:4", Some(vec![2, 0, 1, 2]), "bruck"), false, "the order of bruck is not"),
            (known("full:4", Some(vec![0, 1]), "bruck"), false, "the order of bruck is not"),
            (known("full:400000", None, "bruck"), false, "bruck is for 400000 ranks, not 4"),
            (known("full4", None, "bruck"), false, "full4"),
            (known("full:4", None, "brukc"), false, "unknown algorithm `brukc`"),
            (known("full:4", None, "bruck"), true, "pass"),
        ] {
            let refused = serves(&ours, vector).unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
