use topocoll_algorithms::NotApplicable;
use topocoll_analysis::AnalysisError;
use topocoll_analysis::formats::ReadError;
use topocoll_exec::{ExecError, PlanError};
use topocoll_schedule::ScheduleError;
use topocoll_topology::spec::SpecError;
use topocoll_topology::{Ports, TopologyError};

use crate::tune::TuneError;

/// The error of a request: every bad input ends here.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No file, shipped machine or short form.
    #[error("unknown machine `{name}`{}", did_you_mean(meant))]
    UnknownMachine {
        /// The given name.
        name: String,
        /// The shipped machine with the nearest name, or the short forms of this shape.
        meant: Vec<String>,
    },
    /// An invalid short form.
    #[error(transparent)]
    ShortForm(SpecError),
    /// An invalid machine file.
    #[error("{path}: {error}")]
    File {
        /// Its path.
        path: String,
        /// Its text.
        text: String,
        /// The error, with its place.
        error: SpecError,
    },
    /// An unreadable file.
    #[error("cannot read `{path}`: {reason}")]
    Unreadable {
        /// Its path.
        path: String,
        /// The reason.
        reason: String,
    },
    /// An algorithm that does not apply.
    #[error("{algorithm}: {reason}")]
    NotApplicable {
        /// The algorithm.
        algorithm: String,
        /// The reason.
        reason: NotApplicable,
    },
    /// An unknown algorithm or parameter.
    #[error(transparent)]
    Algorithm(#[from] NotApplicable),
    /// A problem or a demand that is refused.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// A file that should hold a schedule.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A schedule that cannot be ranked.
    #[error("{name} cannot be ranked: {reason}")]
    GivenSchedule {
        /// Its name.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A schedule of a subset that exceeds ports of the whole machine.
    #[error(
        "ranks or nodes of the whole machine send or receive more messages in a step than they have ports ({} of a rank, {} of a node)",
        ports.rank, ports.node
    )]
    PortsOfWhole {
        /// The ports of a rank and of a node.
        ports: Ports,
    },
    /// A failed reading.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// A schedule that cannot be run.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// An invalid subset of a machine's ranks.
    #[error(transparent)]
    Subset(#[from] TopologyError),
    /// An exchange that cannot begin or has stopped.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// A tuning file that cannot be written.
    #[error(transparent)]
    Tune(#[from] TuneError),
}

fn did_you_mean(meant: &[String]) -> String {
    match meant {
        [] => String::new(),
        _ => format!(": did you mean `{}`?", meant.join("` or `")),
    }
}
