//! What each command takes.

use std::path::PathBuf;

use clap::builder::{
    PossibleValue, PossibleValuesParser, TypedValueParser, UnknownArgumentValueParser,
};
use clap::{Arg, Args as ClapArgs};
use clap_complete::engine::ArgValueCompleter;
use topocoll::{Collective, Setting};

use super::{Common, Method, Open, Options, Part, Ranks, Routing, Subject, Sync, Ties};
use crate::values::{
    Model, RankList, Settings, SweptSizes, block_sizes, budget, count, points, rank_list, setting,
    settings,
};
use crate::{completion, examples};

/// The sizes of blocks.
#[derive(ClapArgs, Debug)]
pub(crate) struct Sizes {
    /// Demand matrix of an all-to-all-v: uniform:SEED, power-law:SEED, sparse:SEED, experts:SEED
    /// or neighbours:SEED with mean --block; or tokens routed to experts,
    /// zipf:1.2,tokens=4096,hidden=7168,dtype=bf16,experts=256,top=8,seed=1; or a file with one line for
    /// each rank: its sizes in bytes, separated by commas (select: of several matrices, one for each step)
    #[arg(long, value_name = "LAW|FILE")]
    pub(crate) demand: Option<String>,
}

/// Where the ranks of a grid are.
#[derive(ClapArgs, Debug)]
pub(crate) struct Placing {
    /// The node of each rank of a grid, one number per line: algorithms see the grid, links are those
    /// between the nodes, and messages take the machine's routes
    #[arg(long, value_name = "FILE")]
    pub(crate) placement: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
#[command(after_help = examples::SELECT)]
pub(crate) struct Select {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Add a schedule from a file to the algorithms; may be repeated
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) schedule: Vec<PathBuf>,
    /// Show every choice, with all parameters and all terms of its time.
    #[arg(long)]
    pub(crate) all: bool,
    /// Say why the other algorithms do not apply.
    #[arg(long)]
    pub(crate) why: bool,
    /// Rank by this model alone: by times in step, or by simulations of the choices that fit the budget
    /// [default: by the larger of the time in step and the simulated one without barriers]
    #[arg(long)]
    pub(crate) model: Option<Model>,
    /// Rank with barriers between steps, by times in step, or without them [default: free, unless the
    /// machine gives the cost of a barrier]
    #[arg(long)]
    pub(crate) sync: Option<Sync>,
    /// Seconds of one core, as estimated, such as 10s: for each search for a schedule [default: 0.4,
    /// and longer where much is to gain], and for all simulations together [default: 10, unlimited up to 256 ranks]
    #[arg(long, value_name = "SECONDS", value_parser = budget, allow_hyphen_values = true)]
    pub(crate) budget: Option<f64>,
    #[command(flatten)]
    pub(crate) part: Part,
    #[command(flatten)]
    pub(crate) sizes: Sizes,
    #[command(flatten)]
    pub(crate) placing: Placing,
    /// Also show, by block size, what this MPI library would gain: its default algorithm, its fastest and
    /// the options that force it, the best schedule here
    #[arg(long, value_name = "LIBRARY", value_parser = libraries())]
    pub(crate) against: Option<String>,
    /// Version of that library [default: Open MPI's 4.1, MPICH's 5.0]
    #[arg(long, requires = "against")]
    pub(crate) release: Option<String>,
}

#[derive(ClapArgs, Debug)]
#[command(after_help = examples::ALGORITHMS)]
pub(crate) struct Algorithms {
    /// File of any kind that describes a machine (`-`: on standard input), shipped machine, or short
    /// form such as torus:16x16, full:64, cluster:4,4,2
    #[arg(add = ArgValueCompleter::new(completion::machines))]
    pub(crate) machine: Option<String>,
    #[command(flatten)]
    pub(crate) options: Options,
}

#[derive(ClapArgs, Debug)]
#[command(after_help = examples::MACHINES)]
pub(crate) struct Machines {
    /// A machine: print its machine file, with the source of every value, to correct it or to start one of
    /// your own
    #[arg(add = ArgValueCompleter::new(completion::machines))]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) open: Open,
    /// Print one JSON object
    #[arg(long, conflicts_with = "name")]
    pub(crate) json: bool,
}

#[derive(ClapArgs, Debug)]
#[command(after_help = examples::BOUNDS)]
pub(crate) struct Bounds {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) placing: Placing,
    #[command(flatten)]
    pub(crate) part: Part,
    #[command(flatten)]
    pub(crate) sizes: Sizes,
    /// Also the least volume of schedules of at most this number of steps
    #[arg(long, value_name = "T")]
    pub(crate) steps: Option<u64>,
    /// Rank the failed nodes and links by what the repair of each one gives back
    #[arg(long)]
    pub(crate) repair: bool,
}

#[derive(ClapArgs, Debug)]
#[command(after_help = examples::VERIFY)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) subject: Subject,
    #[command(flatten)]
    pub(crate) part: Part,
    /// Follow every block of every rank, or of one rank of each class of equivalent ranks [default:
    /// replay up to 4096 ranks, the faster by estimate for more]
    #[arg(long)]
    pub(crate) method: Option<Method>,
    /// List the N most contended links, however long it takes [default: 5]
    #[arg(long, value_name = "N")]
    pub(crate) conflicts: Option<usize>,
    /// Write a certificate for `check`, unless verification fails
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
#[command(after_help = examples::CHECK)]
pub(crate) struct Check {
    /// A certificate
    pub(crate) file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(ClapArgs, Debug)]
#[command(after_help = examples::SIMULATE)]
pub(crate) struct Simulate {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The algorithm that writes the schedule [default: the choice of select]
    #[arg(long, conflicts_with_all = ["schedule", "traffic"], add = ArgValueCompleter::new(completion::algorithms))]
    pub(crate) algorithm: Option<String>,
    /// A parameter of the algorithm, of the model, or of the endpoints of ranks
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, add = ArgValueCompleter::new(completion::settings))]
    pub(crate) set: Vec<(String, Setting)>,
    /// A schedule from a file or folder, in a format detected from its content: jsonl, csv, goal,
    /// simgrid; several in jsonl run at once on the nodes of --placement
    #[arg(long, value_name = "FILE|DIR", conflicts_with = "traffic")]
    pub(crate) schedule: Vec<PathBuf>,
    /// Send traffic instead of a schedule: alltoall (all messages of an all-to-all at once); random:SEED,
    /// neighbor, tornado, transpose or bitcomp; uniform:RATE, or one of these with a rate, such as
    /// tornado:0.1
    #[arg(long)]
    pub(crate) traffic: Option<String>,
    /// How long traffic sends, in flit times
    #[arg(long)]
    pub(crate) cycles: Option<u64>,
    #[command(flatten)]
    pub(crate) sizes: Sizes,
    #[command(flatten)]
    pub(crate) part: Part,
    /// How messages share the network
    #[arg(long, default_value = "steps")]
    pub(crate) model: Model,
    /// Routes of messages whose schedule gives none [default: dimension-order]
    #[arg(long)]
    pub(crate) routing: Option<Routing>,
    /// Direction of routes at exactly half a ring: up, or balanced, up from even coordinates and down
    /// from odd ones [default: that of the machine, which is up unless its file has another]
    #[arg(long)]
    pub(crate) ties: Option<Ties>,
    /// Simulate one rank of each class of equivalent ranks, or every rank; the fluid model gives the
    /// same result by both [default: classes, where the model has them]
    #[arg(long)]
    pub(crate) method: Option<Ranks>,
    /// Insert a barrier between steps, or let each rank continue by itself [default: barrier in the
    /// steps model, free in the others]
    #[arg(long)]
    pub(crate) sync: Option<Sync>,
    /// The node of each rank, one number per line, schedule after schedule. A message keeps its
    /// schedule's route if that route leads to the receiver's node
    #[arg(long, value_name = "FILE", conflicts_with = "traffic")]
    pub(crate) placement: Option<PathBuf>,
    /// List the N most contended links, however long it takes [default: 5]
    #[arg(long, value_name = "N")]
    pub(crate) conflicts: Option<usize>,
    /// Draw the traffic of every link into this file
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) heatmap: Option<PathBuf>,
    /// Write the traffic of every link, comma-separated
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write the times at which messages hold each link, for Chrome and Perfetto
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
#[command(after_help = examples::RUN)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) subject: Subject,
    #[command(flatten)]
    pub(crate) part: Part,
    #[command(flatten)]
    pub(crate) sizes: Sizes,
    /// Operating-system threads that share the ranks [default: the cores, or fewer for few bytes]
    #[arg(long, value_parser = count, allow_hyphen_values = true)]
    pub(crate) threads: Option<usize>,
    /// Exchanges to run; the report has their median time
    #[arg(long, default_value = "5", value_parser = count, allow_hyphen_values = true)]
    pub(crate) repeat: usize,
    /// Insert a barrier between steps, or let each rank continue by itself
    #[arg(long, default_value = "free")]
    pub(crate) sync: Sync,
}

#[derive(ClapArgs, Debug)]
#[command(after_help = examples::CALIBRATE)]
pub(crate) struct Calibrate {
    /// Ranks of the machine to write
    #[arg(long, default_value = "16", value_parser = clap::value_parser!(u32).range(2..=256), allow_hyphen_values = true)]
    pub(crate) ranks: u32,
    /// Most operating-system threads that share the ranks; an exchange of few bytes uses fewer
    /// [default: all cores]
    #[arg(long, value_parser = count, allow_hyphen_values = true)]
    pub(crate) threads: Option<usize>,
    /// Exchanges of each kind; the fastest counts
    #[arg(long, default_value = "9", value_parser = count, allow_hyphen_values = true)]
    pub(crate) rounds: usize,
    /// Compare the choice of select, under the fitted values, with the fastest measured algorithm
    #[arg(long)]
    pub(crate) check: bool,
    /// Measure between the ranks of an MPI, intra-node and inter-node
    #[arg(long, conflicts_with_all = ["ranks", "threads", "check"])]
    pub(crate) mpi: bool,
    #[command(flatten)]
    pub(crate) mpi_program: MpiProgram,
    /// Measure nothing: fit startup and bandwidth to times that a benchmark printed, as `compare` does
    #[arg(long, value_name = "FILE", requires = "algorithm", conflicts_with_all = ["threads", "check", "mpi", "json"])]
    pub(crate) measured: Option<PathBuf>,
    /// The algorithm that the benchmark ran
    #[arg(long, requires = "measured", add = ArgValueCompleter::new(completion::algorithms))]
    pub(crate) algorithm: Option<String>,
    /// A parameter of the algorithm
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, requires = "algorithm", add = ArgValueCompleter::new(completion::settings))]
    pub(crate) set: Vec<(String, Setting)>,
    /// The operation, if the benchmark's output does not say it
    #[arg(long, requires = "measured")]
    pub(crate) op: Option<Collective>,
    /// Write the machine file here, not to standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(ClapArgs, Debug)]
#[command(after_help = examples::COMPARE)]
pub(crate) struct Compare {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The output of osu_alltoall, osu_allgather, IMB's Alltoall or Allgather, alltoall_perf or
    /// all_gather_perf
    pub(crate) file: PathBuf,
    /// The algorithm to predict [default: at each size the choice of select]
    #[arg(long, add = ArgValueCompleter::new(completion::algorithms))]
    pub(crate) algorithm: Option<String>,
    /// A parameter of the algorithm
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, requires = "algorithm", add = ArgValueCompleter::new(completion::settings))]
    pub(crate) set: Vec<(String, Setting)>,
    /// Also write the machine file of the machine with the startup and bandwidth that fit
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
#[command(after_help = examples::DETECT)]
pub(crate) struct Detect {
    /// Write the machine file here, not to standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
#[command(after_help = examples::SCHEDULE)]
pub(crate) struct Schedule {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) subject: Subject,
    #[command(flatten)]
    pub(crate) part: Part,
    /// The format
    #[arg(long, default_value = "jsonl", value_parser = formats())]
    pub(crate) format: String,
    /// Write only the sends of this rank
    #[arg(long, allow_hyphen_values = true)]
    pub(crate) rank: Option<u32>,
    /// Write to this file, or to this new or empty folder, which appears only when it is complete
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) out: Option<PathBuf>,
}

fn formats() -> impl TypedValueParser<Value = String> {
    let formats = topocoll::formats::FORMATS.iter();
    PossibleValuesParser::new(
        formats.map(|format| PossibleValue::new(format.name).help(format.about)),
    )
}

/// The program that measures between the ranks of an MPI.
#[derive(ClapArgs, Debug)]
pub(crate) struct MpiProgram {
    /// Command that starts the ranks of the MPI, words separated by spaces [default: mpirun]
    #[arg(long, value_name = "COMMAND")]
    pub(crate) launch: Option<String>,
    /// The program topocoll-mpi, built for that MPI [default: beside this program, or on the path]
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
#[command(after_help = examples::TUNE)]
pub(crate) struct Tune {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The library that reads the file
    #[arg(long = "for", value_name = "LIBRARY", value_parser = libraries())]
    pub(crate) library: String,
    /// Version of the library, if its versions read different files [default: Open MPI's 4.1]
    #[arg(long)]
    pub(crate) release: Option<String>,
    /// The file to start from: for MPICH its library libmpich.so, or generic.json of its source
    #[arg(long, value_name = "FILE")]
    pub(crate) base: Option<PathBuf>,
    /// Sizes of communicators to write rules for, separated by commas; each has the machine's first
    /// ranks [default: all ranks]
    #[arg(long, value_name = "RANKS,..", value_delimiter = ',')]
    pub(crate) communicators: Vec<u32>,
    /// Choose by measured times of the library's algorithms, not by the model: starts and measures each, or reads a
    /// file of topocoll-mpi compare
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub(crate) measured: Option<Option<PathBuf>>,
    /// Measured exchanges of each kind; the fastest counts [default: 9]
    #[arg(long, value_parser = count, allow_hyphen_values = true, requires = "measured")]
    pub(crate) rounds: Option<usize>,
    #[command(flatten)]
    pub(crate) mpi_program: MpiProgram,
    /// Only these ranks of the machine, such as 0-7,12; communicators have the first of them
    #[arg(long, value_name = "RANKS", value_parser = rank_list, conflicts_with = "measured")]
    pub(crate) ranks: Option<RankList>,
    /// Add a schedule from a file to those that the library is compared with; may be repeated
    #[arg(long, value_name = "FILE|DIR", conflicts_with = "measured")]
    pub(crate) schedule: Vec<PathBuf>,
    /// Write the file here, not to standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

fn libraries() -> impl TypedValueParser<Value = String> {
    let libraries = topocoll::tune::LIBRARIES.iter();
    PossibleValuesParser::new(
        libraries.map(|library| PossibleValue::new(library.name).help(library.about)),
    )
}

#[derive(ClapArgs, Debug)]
#[command(after_help = examples::SWEEP, arg = former_png())]
pub(crate) struct Sweep {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) placing: Placing,
    /// Block sizes: a range such as 1:1MiB, or a list such as 16,64,1KiB
    #[arg(long, value_parser = block_sizes, default_value = "1:1MiB")]
    pub(crate) blocks: SweptSizes,
    /// Number of block sizes in the range, in equal ratios [default: powers of two]
    #[arg(long, value_name = "N", value_parser = points, allow_hyphen_values = true)]
    pub(crate) points: Option<u32>,
    /// Only this algorithm; may be repeated
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(completion::algorithms))]
    pub(crate) algorithm: Vec<String>,
    /// Add a schedule from a file to the algorithms; may be repeated
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) schedule: Vec<PathBuf>,
    /// Also price published formulas that have no schedule
    #[arg(long, conflicts_with = "front")]
    pub(crate) published: bool,
    /// A parameter, for the algorithms that have it; each value makes its own line
    #[arg(long, value_name = "KEY=VALUE,..", value_parser = settings, requires = "algorithm", add = ArgValueCompleter::new(completion::settings))]
    pub(crate) set: Vec<(String, Settings)>,
    /// Say why the other algorithms do not apply
    #[arg(long)]
    pub(crate) why: bool,
    /// Simulate by this model, at each block size, each algorithm's best setting by the steps model
    #[arg(long, default_value = "steps")]
    pub(crate) model: Model,
    /// Seconds of one core, as estimated, such as 10s: for each search for a schedule [default: 0.4,
    /// and longer where much is to gain], and for all simulations together [default: 10, unlimited up to 256 ranks]
    #[arg(long, value_name = "SECONDS", value_parser = budget, allow_hyphen_values = true)]
    pub(crate) budget: Option<f64>,
    /// List the Pareto front of startups and volume at one block size
    #[arg(long, conflicts_with_all = ["blocks", "points"])]
    pub(crate) front: bool,
    /// Plot predicted time over block size, or volume over startups, into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write every point with the terms of its time, or every setting with its volume, into this
    /// file
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
#[command(after_help = examples::REPORT)]
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) part: Part,
    #[command(flatten)]
    pub(crate) sizes: Sizes,
    /// Add a schedule from a file to the algorithms; may be repeated
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) schedule: Vec<PathBuf>,
    /// Open with this algorithm, in place of the best
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(completion::algorithms))]
    pub(crate) algorithm: Option<String>,
    /// A parameter of the algorithm, of the model, or of the endpoints of ranks
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, add = ArgValueCompleter::new(completion::settings))]
    pub(crate) set: Vec<(String, Setting)>,
    /// Simulate the schedules of the page by this model too, as many as fit 10 seconds of one core
    #[arg(long, default_value = "steps")]
    pub(crate) model: Model,
    /// Compare with this MPI library: the times of its default algorithms, and the gain over them
    #[arg(long, value_name = "LIBRARY", value_parser = libraries())]
    pub(crate) against: Option<String>,
    /// Version of that library [default: Open MPI's 4.1, MPICH's 5.0]
    #[arg(long, requires = "against")]
    pub(crate) release: Option<String>,
    /// Write the page to this file, which appears only when it is complete
    #[arg(long, value_name = "FILE.html")]
    pub(crate) out: PathBuf,
}

#[derive(ClapArgs, Debug)]
#[command(after_help = examples::COMPLETIONS)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(ClapArgs, Debug)]
#[command(after_help = examples::MAN)]
pub(crate) struct Man {
    /// Write into this new or empty folder, which appears only when it is complete
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

/// `sweep --png`, which earlier versions had.
fn former_png() -> Arg {
    let use_svg = UnknownArgumentValueParser::suggest("pictures are SVG files: use '--svg FILE'");
    Arg::new("png").long("png").value_name("FILE").hide(true).value_parser(use_svg)
}
