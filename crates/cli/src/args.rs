//! The command line.

mod commands;
mod fft;

use std::fmt;
use std::path::PathBuf;

use clap::error::{Error, ErrorKind};
use clap::{
    Args as ClapArgs, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum,
};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter};
use topocoll::spec::{Attributes, Reading, Taper};
use topocoll::units::{parse_seconds, parse_seconds_per_byte};
use topocoll::{Collective, Injection, Ports, Rank, Setting};

use crate::error::{say, set_colour};
use crate::values::{
    Given, PerNode, RankList, bandwidths, block, given, injection, note_on_sizes, nvlink, ports,
    rank_list, setting, startups, yes_or_no,
};
use crate::{completion, uses};

pub(crate) use commands::{
    Algorithms, Bounds, Calibrate, Check, Compare, Completions, Detect, Machines, Man, MpiProgram,
    Placing, Report, Run, Schedule, Select, Simulate, Sizes, Sweep, Tune, Verify,
};
pub(crate) use fft::Fft;

/// Best all-to-all and all-gather schedules for machines with a shape: proved, priced, written out.
#[derive(Parser, Debug)]
#[command(name = "topocoll", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Colours and emphasis; NO_COLOR turns them off as well
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,
}

/// The commands, with the requests that use each option in its help.
pub(crate) fn command() -> clap::Command {
    uses::explained(Args::command())
}

/// Reads the arguments of this process. A note follows if a size is written in a way that some read
/// differently.
///
/// # Errors
/// Invalid arguments, or a request for the help or the version.
pub(crate) fn read() -> clap::error::Result<Args> {
    let mut command = command();
    // A machine on standard input with ranks on its nodes, `-*4`, would be an option.
    let arguments = std::env::args_os().map(|argument| match argument.to_str() {
        Some(text) if text.starts_with("-*") => format!(" {text}").into(),
        _ => argument,
    });
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    if let Some((name, given)) = matches.subcommand() {
        let refused = |refused| Error::raw(ErrorKind::ArgumentConflict, format!("{refused}\n"));
        uses::check(name, given).map_err(refused)?;
    }
    let note = matches.subcommand().and_then(|(_, given)| {
        let sizes = ["block", "blocks"].into_iter();
        let given = sizes.filter_map(|option| given.try_get_raw(option).ok().flatten());
        given.flatten().find_map(|size| note_on_sizes(size.to_str()?))
    });
    let args = Args::from_arg_matches_mut(&mut matches);
    let mut args = args.map_err(|error| error.format(&mut command))?;
    args.command.note_ranks();
    set_colour(args.color);
    if let Some(note) = note {
        say(&note);
    }
    Ok(args)
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Rank every applicable algorithm and setting by predicted time.
    Select(Select),
    /// Rank the process grids of a Fourier transform by the time of their exchanges.
    Fft(Fft),
    /// List the algorithms; with a machine, say which apply.
    Algorithms(Algorithms),
    /// List the shipped machines, or print any machine as a machine file.
    Machines(Machines),
    /// List every lower bound that holds, with the theorem it comes from.
    Bounds(Bounds),
    /// Prove one schedule: delivery, ports, link conflicts, counts.
    ///
    /// A send leaves a copy at the sender, so a rank may send a block again after it has passed the
    /// block on. Replay of an all-to-all counts these sends (`resent_blocks`).
    Verify(Verify),
    /// Check a certificate that `verify --certificate` wrote.
    Check(Check),
    /// Predict the completion time of one schedule and where the time goes.
    Simulate(Simulate),
    /// Execute one schedule in memory, check every byte, and report the time.
    Run(Run),
    /// Write a schedule out.
    Schedule(Schedule),
    /// Predict the time of every algorithm over block sizes: table, crossovers, plot.
    Sweep(Sweep),
    /// Write one HTML page: the machine, animated schedules, the ranking and the sweep.
    Report(Report),
    /// Measure exchanges on this computer and write a machine file.
    Calibrate(Calibrate),
    /// Hold the times of OSU's micro-benchmarks, IMB or nccl-tests against predicted ones.
    Compare(Compare),
    /// Write a machine file of the machine that this runs on.
    Detect(Detect),
    /// Write a tuning file that selects among an MPI library's own algorithms.
    Tune(Tune),
    /// Print completions of commands and options for a shell.
    Completions(Completions),
    /// Write the manual pages, one for each command.
    Man(Man),
}

/// Options that every command takes.
#[derive(ClapArgs, Debug)]
pub(crate) struct Common {
    /// File of any kind that describes a machine (`-`: on standard input), shipped machine, or short
    /// form such as torus:16x16, full:64, cluster:4,4,2
    #[arg(add = ArgValueCompleter::new(completion::machines))]
    pub(crate) machine: String,
    #[command(flatten)]
    pub(crate) options: Options,
}

#[derive(ClapArgs, Clone, Debug)]
pub(crate) struct Options {
    /// alltoall or allgather [default: alltoall]
    #[arg(long, add = ArgValueCandidates::new(|| vec!["alltoall".into(), "allgather".into()]))]
    pub(crate) op: Option<Collective>,
    /// Bytes of a block, which is what each rank has for each other one, such as 64, 4KiB or 1MiB
    /// [default: 1KiB]
    #[arg(long, value_parser = block, allow_hyphen_values = true)]
    pub(crate) block: Option<u64>,
    /// Messages a rank, or a rank and a node, may send, and receive, in one step, such as 8 or 1,8 or
    /// all; a node's are its inter-node messages [default: the machine's]
    #[arg(long, value_name = "RANK[,NODE]", value_parser = ports, allow_hyphen_values = true)]
    pub(crate) ports: Option<Ports>,
    #[command(flatten)]
    pub(crate) open: Open,
    /// Timing values of another machine
    #[arg(long, value_name = "NAME|FILE", add = ArgValueCompleter::new(completion::timings))]
    pub(crate) timing: Option<String>,
    /// Startup of a message, such as 2us; of one intra-node and one inter-node, such as 1us,3us
    #[arg(long, value_name = "T[,INTER]", value_parser = given(startups), allow_hyphen_values = true)]
    pub(crate) startup: Option<Given<PerNode>>,
    /// Bandwidth of a link, such as 50GB/s or 400Gb/s (bits), or the time of one byte, such as 0.1ns;
    /// intra-node and inter-node, such as 450GB/s,50GB/s
    #[arg(long, value_name = "B[,INTER]", value_parser = given(bandwidths), allow_hyphen_values = true)]
    pub(crate) bandwidth: Option<Given<PerNode>>,
    /// Bandwidth at which a rank, or a rank and a node, can send, and receive, over all ports, such as
    /// 50GB/s or 50GB/s,100GB/s; a node's counts inter-node messages, whichever of its ranks send them; 0s
    /// leaves one unlimited [default: unlimited]
    #[arg(long, value_name = "RANK[,NODE]", value_parser = given(injection), allow_hyphen_values = true)]
    pub(crate) injection: Option<Given<Injection>>,
    /// Propagation over a link
    #[arg(long, value_parser = given(parse_seconds), allow_hyphen_values = true)]
    pub(crate) per_hop: Option<Given<f64>>,
    /// Bandwidth of copies of blocks inside a rank between steps, or the time of one byte
    #[arg(long, value_parser = given(parse_seconds_per_byte), allow_hyphen_values = true)]
    pub(crate) rearrangement: Option<Given<f64>>,
    /// Barrier between steps
    #[arg(long, value_parser = given(parse_seconds), allow_hyphen_values = true)]
    pub(crate) barrier: Option<Given<f64>>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the text of a machine may leave open.
#[derive(ClapArgs, Clone, Debug)]
pub(crate) struct Open {
    /// Names of attributes in a graph of JSON, GraphML, GML or DOT, such as bandwidth=capacity,kind=type;
    /// of class, bandwidth, latency, count, switch, kind, and ignore to skip one
    #[arg(long, value_name = "OURS=THEIRS,..")]
    pub(crate) attributes: Option<Attributes>,
    /// Taper of the links between switches in Slurm's topology.conf that have no LinkSpeed, such as 2
    /// [default: 1, not blocking]
    #[arg(long, value_name = "T", allow_hyphen_values = true)]
    pub(crate) taper: Option<Taper>,
    /// Bandwidth of an NVLink, or an XGMI link, which `nvidia-smi topo -m`, `rocm-smi --showtopo` and NCCL's
    /// XML do not say, such as 50GB/s [default: 25GB/s, 50GB/s]
    #[arg(long, value_name = "B", value_parser = nvlink, allow_hyphen_values = true)]
    pub(crate) nvlink: Option<f64>,
    /// Whether a switch joins the NVLinks of GPUs that all have equally many to each other [default: of
    /// more than four GPUs]
    #[arg(long, value_name = "yes|no", value_parser = yes_or_no)]
    pub(crate) nvlink_switch: Option<bool>,
    /// Each core of a host in a SimGrid platform is a rank; otherwise each host is
    #[arg(long)]
    pub(crate) cores: bool,
    /// Host file or rankfile: ranks are on the nodes that it names, as many as their slots, in its order
    #[arg(long, value_name = "FILE")]
    pub(crate) hosts: Option<PathBuf>,
    /// Those that exchange, if a command has them.
    #[arg(skip)]
    pub(crate) ranks: Option<Vec<Rank>>,
}

impl Open {
    pub(crate) fn reading(&self) -> Reading {
        let Self { attributes, taper, nvlink, nvlink_switch, cores, ranks, .. } = self.clone();
        Reading { attributes, taper, nvlink, nvlink_switch, cores, ranks }
    }
}

impl Command {
    /// Notes the ranks that exchange for the reader of the machine.
    fn note_ranks(&mut self) {
        let (common, ranks) = match self {
            Self::Select(Select { common, part, .. }) => (common, &part.ranks),
            Self::Bounds(Bounds { common, part, .. }) => (common, &part.ranks),
            Self::Verify(Verify { common, part, .. }) => (common, &part.ranks),
            Self::Simulate(Simulate { common, part, .. }) => (common, &part.ranks),
            Self::Run(Run { common, part, .. }) => (common, &part.ranks),
            Self::Schedule(Schedule { common, part, .. }) => (common, &part.ranks),
            Self::Report(Report { common, part, .. }) => (common, &part.ranks),
            Self::Tune(Tune { common, ranks, .. }) => (common, &*ranks),
            _ => return,
        };
        common.options.open.ranks = ranks.as_ref().map(|RankList(ranks)| ranks.clone());
    }
}

/// The ranks that exchange, if not all with all.
#[derive(ClapArgs, Debug)]
pub(crate) struct Part {
    /// Exchange among this subset of ranks, such as 0-7,12, over the links of the whole machine
    #[arg(long, value_name = "RANKS", value_parser = rank_list)]
    pub(crate) ranks: Option<RankList>,
    /// Groups that exchange at the same time, each among its own ranks: nodes, peers (ranks of equal number
    /// on all nodes), dim:0,2 (ranks that differ along these dimensions), tiles:2x2, consecutive:8,
    /// stride:8, or a file with the ranks of a group in each line
    #[arg(long, value_name = "GROUPS|FILE", conflicts_with = "ranks")]
    pub(crate) groups: Option<String>,
}

impl Part {
    pub(crate) const WHOLE: Self = Self { ranks: None, groups: None };

    pub(crate) fn is_whole(&self) -> bool {
        self.ranks.is_none() && self.groups.is_none()
    }
}

/// The options, each after a blank.
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { ranks: Some(ranks), .. } => write!(f, " --ranks {ranks}"),
            Self { groups: Some(groups), .. } => write!(f, " --groups {groups}"),
            Self { ranks: None, groups: None } => Ok(()),
        }
    }
}

/// The schedule to read.
#[derive(ClapArgs, Debug)]
pub(crate) struct Subject {
    /// The algorithm that writes the schedule [default: the choice of select]
    #[arg(long, conflicts_with = "schedule", add = ArgValueCompleter::new(completion::algorithms))]
    pub(crate) algorithm: Option<String>,
    /// A parameter of the algorithm
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, requires = "algorithm", conflicts_with = "schedule", add = ArgValueCompleter::new(completion::settings))]
    pub(crate) set: Vec<(String, Setting)>,
    /// A schedule from a file or folder, in a format detected from its content: jsonl, csv, goal,
    /// simgrid
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) schedule: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Method {
    Replay,
    Classes,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Ranks {
    Classes,
    EveryRank,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Routing {
    /// The machine's own route; a grid's corrects dimension 0 first
    DimensionOrder,
    /// Shortest routes: in the flit model headers go around blocked links of a grid, in the fluid model a
    /// message is split among all
    Adaptive,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Ties {
    Up,
    Balanced,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Sync {
    Barrier,
    Free,
}

impl From<Sync> for topocoll::Sync {
    fn from(sync: Sync) -> Self {
        match sync {
            Sync::Barrier => Self::Barrier,
            Sync::Free => Self::Free,
        }
    }
}
