use topocoll_algorithms::NotApplicable;
use topocoll_analysis::AnalysisError;
use topocoll_analysis::formats::ReadError;
use topocoll_exec::{ExecError, PlanError};
use topocoll_schedule::ScheduleError;
use topocoll_topology::spec::SpecError;
use topocoll_topology::{Ports, TopologyError};

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
    /// A demand matrix for groups of different sizes.
    #[error(
        "a demand matrix requires groups of equal sizes: group {group} has {ranks} ranks, the largest {largest}"
    )]
    DemandOfGroups {
        /// The group, from 0.
        group: u32,
        /// Its ranks.
        ranks: u32,
        /// Those of the largest group.
        largest: u32,
    },
    /// A transform that no process grid can carry out.
    #[error("{reason}")]
    Transform {
        /// The rule, with the values.
        reason: String,
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

/// The error of a tuning file that cannot be written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// A machine of one rank.
    #[error("a machine of one rank has nothing to tune")]
    Alone,
    /// Communicators of more ranks than the machine's, or of one rank.
    #[error("a communicator of {asked} ranks: from 2 to the machine's {ranks}")]
    Communicator {
        /// Its ranks.
        asked: u32,
        /// The machine's.
        ranks: u32,
    },
    /// No measured times.
    #[error("no measured times")]
    Unmeasured,
    /// A version whose file format is not supported.
    #[error("release `{release}` of {library} is not supported; supported: {known}")]
    Release {
        /// The library.
        library: &'static str,
        /// The version.
        release: String,
        /// The supported versions.
        known: String,
    },
    /// A version, although the file to start from determines it.
    #[error("{library} takes no release: the base determines it")]
    ReleaseOfBase {
        /// The library.
        library: &'static str,
    },
    /// An unnecessary file to start from.
    #[error("{library} takes no base: its file is complete by itself")]
    NeedlessBase {
        /// The library.
        library: &'static str,
    },
    /// A missing file to start from.
    #[error(
        "mpich reads complete selection trees only: a base of its version is needed, its library libmpich.so (which holds one) or generic.json of its source"
    )]
    NoBase,
    /// An invalid file to start from.
    #[error("base: {reason}")]
    Base {
        /// The missing part.
        reason: String,
    },
    /// Sizes that the file cannot express.
    #[error(
        "{ranks} ranks of blocks of {block_bytes} bytes: {library} counts all of them in 31 bits"
    )]
    Size {
        /// The library.
        library: &'static str,
        /// Ranks.
        ranks: u32,
        /// Bytes of a block.
        block_bytes: u64,
    },
}
