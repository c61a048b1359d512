//! Which options each command, model and traffic uses: one table, from which all others are refused, and
//! which help shows.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use crate::values::{ALL_TO_ALL, Model};

/// Options that only some requests of these commands use. All other requests use every option that the
/// command has.
struct Row {
    commands: &'static [&'static str],
    /// Options, each by itself, with one value, or a parameter of `--set`.
    options: &'static [&'static str],
    /// The requests that use them, after "only for".
    only: &'static str,
    uses: fn(&Request<'_>) -> bool,
}

const SIMULATIONS: &str = "--model wormhole, flit or fluid";
const ROUTERS: &str = "--model wormhole or flit";
const FLOWS: &str = "--model flit or fluid";
const STEPS: &str = "the steps model";
const SCHEDULES: &str = "schedules, not traffic";

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { commands: &["simulate"], options: &["--op", "--rearrangement", "--sync barrier"],
        only: SCHEDULES, uses: |of| of.is_schedule() },
    Row { commands: &["simulate"], options: &["--barrier"],
        only: "schedules with barriers between steps",
        uses: |of| of.is_schedule() && (of.is(Model::Steps) || of.has("--sync barrier")) },
    Row { commands: &["simulate"], options: &["--ports"],
        only: "schedules, traffic at a rate under --model wormhole or flit, and alltoall under flit",
        uses: |of| {
            of.is_schedule() || of.is(Model::Flit) && !of.is_one_each()
                || of.is(Model::Wormhole) && of.is_at_rate()
        } },
    Row { commands: &["simulate"], options: &["--cycles"],
        only: "traffic at a rate, such as uniform:RATE", uses: |of| of.is_at_rate() },
    Row { commands: &["simulate"], options: &["--demand"],
        only: "one schedule on its own nodes",
        uses: |of| of.is_schedule() && !of.has("--placement") && of.count("schedule") < 2 },
    Row { commands: &["simulate"], options: &["--ranks", "--groups"],
        only: "one schedule, not traffic or --placement", uses: |of| of.is_schedule() && !of.has("--placement") },
    Row { commands: &["simulate"], options: &["--conflicts"],
        only: STEPS, uses: |of| of.is(Model::Steps) },
    Row { commands: &["simulate"], options: &["--csv", "--trace", "--method", "--sync free"],
        only: SIMULATIONS, uses: |of| of.is_simulated() },
    Row { commands: &["simulate"], options: &["--heatmap"],
        only: "routes in dimension order: --csv has the bytes of every link",
        uses: |of| !of.has("--routing adaptive") },
    Row { commands: &["simulate"], options: &["--routing adaptive"], only: FLOWS, uses: |of| of.divides() },
    Row { commands: &["simulate"], options: &["--ties"],
        only: "schedules and --traffic alltoall, whose routes are in dimension order",
        uses: |of| (of.is_schedule() || of.is_all_to_all()) && !of.has("--routing adaptive") },
    Row { commands: &["simulate", "report"], options: &["--per-hop"],
        only: "other models than flit, which counts hops in flit times: --set hop_cycles",
        uses: |of| !of.is(Model::Flit) },
    Row { commands: &["simulate", "report"], options: &["--set vcs", "--set buffer_flits", "--set dateline"],
        only: ROUTERS, uses: |of| of.is(Model::Wormhole) || of.is(Model::Flit) },
    Row { commands: &["simulate", "report"], options: &["--set flit_bytes"],
        only: "--model wormhole or flit, and under fluid for --set hop_cycles or traffic at a rate",
        uses: |of| of.is_simulated() && (!of.is(Model::Fluid) || of.is_at_rate() || of.has("--set hop_cycles")) },
    Row { commands: &["simulate", "report"], options: &["--set hop_cycles", "--set message_overhead"],
        only: SIMULATIONS, uses: |of| of.is_simulated() },
    Row { commands: &["simulate", "report"], options: &["--set window"],
        only: "several messages of a rank under --model wormhole, flit or fluid",
        uses: |of| of.is_simulated() && !of.is_one_each() },
    Row { commands: &["simulate", "report"], options: &["--set packet_bytes", "--set packet_overhead"],
        only: FLOWS, uses: |of| of.divides() },
    Row { commands: &["simulate", "report"], options: &["--set interleave"],
        only: "several messages of a rank under --model flit or fluid",
        uses: |of| of.divides() && !of.is_one_each() },
    Row { commands: &["simulate", "report"], options: &["--set order"],
        only: ORDER, uses: |of| of.is_simulated() && of.is_all_to_all() },
    Row { commands: &["sweep"], options: &["--budget"],
        only: "all algorithms, those that search for schedules, or simulations", uses: |of| of.is_simulated() || of.searches() },
    Row { commands: &["select"], options: &["--demand"], only: STEPS, uses: |of| of.is(Model::Steps) },
    Row { commands: &["select"], options: &["--sync barrier"], only: STEPS, uses: |of| of.is(Model::Steps) },
    Row { commands: &["select"], options: &["--sync free"],
        only: "all ranks, blocks of one size and no --model",
        uses: |of| !["--model", "--ranks", "--groups", "--demand"].iter().any(|option| of.has(option)) },
    Row { commands: &["sweep"], options: &["--front", "--published"], only: STEPS, uses: |of| of.is(Model::Steps) },
    Row { commands: &["sweep"], options: &["--block"],
        only: "--front: a sweep takes --blocks", uses: |of| of.has("--front") },
    Row { commands: &["select"], options: &["--against"], only: "the steps model and blocks of one size",
        uses: |of| of.is(Model::Steps) && !of.has("--demand") },
    Row { commands: &["tune"], options: &["--block"],
        only: "other commands: rules are written for blocks of every size", uses: |_| false },
    Row { commands: &["tune"], options: &["--demand"],
        only: "other commands: rules choose by ranks and by one block size", uses: |_| false },
    Row { commands: &["tune"], options: &["--model"],
        only: "other commands: rules for blocks of every size are of the steps model", uses: |_| false },
    Row { commands: &["tune"], options: &["--algorithm"],
        only: "other commands: rules choose among the library's own algorithms", uses: |_| false },
    Row { commands: &["select"], options: &["--algorithm"],
        only: "commands on one schedule and sweep: select ranks all algorithms", uses: |_| false },
    Row { commands: &["bounds"], options: &["--algorithm", "--schedule", "--model"],
        only: "other commands: bounds hold for every schedule, by the steps model", uses: |_| false },
    Row { commands: &["bounds"], options: &["--repair"],
        only: "all ranks and blocks of one size",
        uses: |of| !["--ranks", "--groups", "--demand"].iter().any(|option| of.has(option)) },
    Row { commands: &["verify"], options: &["--ranks", "--groups"],
        only: "schedules of algorithms, without --certificate",
        uses: |of| !of.has("--schedule") && !of.has("--certificate") },
    Row { commands: &["bounds"], options: &["--steps"],
        only: "blocks of one size", uses: |of| !of.has("--demand") },
    Row { commands: &["verify", "run", "schedule"], options: &["--model"],
        only: "predictions, as of simulate: verify proves, run measures, schedule writes", uses: |_| false },
    Row { commands: &["verify", "schedule"], options: &["--demand"],
        only: "predictions and run: schedules are proved and written for blocks of one size", uses: |_| false },
    Row { commands: &["report"], options: &["--ranks", "--groups"],
        only: "standard algorithms, without --against",
        uses: |of| !of.has("--schedule") && !of.has("--against") },
    Row { commands: &["sweep"], options: &["--demand"],
        only: "other commands: a sweep varies the size of equal blocks", uses: |_| false },
    Row { commands: &["sweep"], options: &["--ranks", "--groups"],
        only: "other commands: select ranks the schedules of a part at one block size", uses: |_| false },
    Row { commands: &["report"], options: &["--demand"],
        only: "standard algorithms by the steps model, without --against",
        uses: |of| of.is(Model::Steps) && !of.has("--schedule") && !of.has("--against") },
    Row { commands: &["tune"], options: &["--launch", "--program", "--rounds"],
        only: "--measured without a file", uses: |of| of.is_asked("measured") && of.count("measured") == 0 },
    Row { commands: &["calibrate"], options: &["--launch", "--program"],
        only: "--mpi", uses: |of| of.has("--mpi") },
    Row { commands: &["fft"], options: &["--op", "--block"],
        only: "other commands: a transform has all-to-alls, and its sides give their blocks", uses: |_| false },
    Row { commands: &["fft"], options: &["--ranks", "--groups", "--demand"],
        only: "other commands: the rows and columns of all process grids exchange", uses: |_| false },
    Row { commands: &["compare"], options: &["--block"],
        only: "other commands: the measured file has the sizes", uses: |_| false },
    Row { commands: &["bounds"], options: &["--rearrangement"],
        only: "other commands: bounds have none", uses: |_| false },
    Row { commands: &["schedule"], options: &["--json"],
        only: "reports: --format sets the format of a schedule", uses: |_| false },
    Row { commands: &["algorithms"], only: "a machine",
        options: &["--op", "--block", "--ports", "--timing", "--startup", "--bandwidth", "--injection",
            "--per-hop", "--rearrangement", "--barrier"],
        uses: |of| of.has("--machine") },
];

/// The requests that use the order of a rank's messages.
pub(crate) const ORDER: &str =
    "--traffic alltoall under a contention model: others have their own order";

/// A request, as far as it decides which options are used.
struct Request<'a> {
    given: &'a ArgMatches,
}

impl Request<'_> {
    /// The words given for an option.
    fn words(&self, id: &str) -> impl Iterator<Item = &std::ffi::OsStr> {
        let words = self.given.try_get_raw(id).ok().flatten();
        words.filter(|_| self.is_asked(id)).into_iter().flatten()
    }

    /// Whether an option of the command is given.
    fn is_asked(&self, id: &str) -> bool {
        let is_known = self.given.try_get_raw(id).is_ok_and(|words| words.is_some());
        is_known && self.given.value_source(id) == Some(ValueSource::CommandLine)
    }

    /// Whether an option of the table is given.
    fn has(&self, option: &str) -> bool {
        let (name, value) = option.split_once(' ').unwrap_or((option, ""));
        let id = name.trim_start_matches('-').replace('-', "_");
        self.words(&id).any(|word| {
            let word = word.to_string_lossy();
            let key = if id == "set" { word.split('=').next().unwrap_or("") } else { &word };
            value.is_empty() || key == value
        })
    }

    fn count(&self, id: &str) -> usize {
        self.words(id).count()
    }

    fn is(&self, model: Model) -> bool {
        let asked = self.given.try_get_one("model").ok().flatten();
        *asked.unwrap_or(&Model::Steps) == model
    }

    fn is_simulated(&self) -> bool {
        !self.is(Model::Steps)
    }

    /// Whether some algorithm searches for schedules.
    fn searches(&self) -> bool {
        let known =
            ["--algorithm link-matchings", "--algorithm store-and-forward", "--algorithm gossip"];
        !self.has("--algorithm") || known.iter().any(|one| self.has(one))
    }

    /// Whether the model divides messages.
    fn divides(&self) -> bool {
        self.is(Model::Flit) || self.is(Model::Fluid)
    }

    fn traffic(&self) -> Option<&String> {
        self.given.try_get_one("traffic").ok().flatten()
    }

    fn is_schedule(&self) -> bool {
        self.traffic().is_none()
    }

    fn is_all_to_all(&self) -> bool {
        self.traffic().is_some_and(|traffic| traffic == ALL_TO_ALL)
    }

    fn is_at_rate(&self) -> bool {
        self.traffic()
            .is_some_and(|traffic| traffic.contains(':') && !traffic.starts_with("random:"))
    }

    /// Whether each rank sends one message.
    fn is_one_each(&self) -> bool {
        !self.is_schedule() && !self.is_all_to_all() && !self.is_at_rate()
    }

    /// Whether this option is a parameter that belongs to the algorithm under the steps model.
    fn is_of_algorithm(&self, option: &str) -> bool {
        option.starts_with("--set ") && self.is(Model::Steps) && self.has("--algorithm")
    }
}

/// Checks that a command uses all options given.
///
/// # Errors
/// The first that it does not use, and the requests that do.
pub(crate) fn check(command: &str, given: &ArgMatches) -> Result<(), String> {
    let request = Request { given };
    for Row { options, only, uses, .. } in rows(command) {
        let unused = |option: &&&str| request.has(option) && !request.is_of_algorithm(option);
        if let Some(option) = options.iter().find(unused).filter(|_| !uses(&request)) {
            return Err(format!("{option} is only for {only}"));
        }
    }
    Ok(())
}

fn rows(command: &str) -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(move |row| row.commands.contains(&command))
}

/// The commands whose help says of each option which requests use it. Options of other commands in the table
/// are read and hidden, so that [`check`] refuses them with the reason. Only the command that is asked for takes the
/// time for it.
pub(crate) fn explained(command: Command) -> Command {
    command.mut_subcommands(|command| command.defer(with_uses))
}

fn with_uses(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let options = rows(&name).flat_map(|row| row.options).filter(|option| !option.contains(' '));
    let hidden: Vec<_> = options
        .map(|option| &option[2..])
        .filter(|long| !command.get_arguments().any(|arg| arg.get_long() == Some(long)))
        .filter(|&long| long != "machine")
        .map(|long| Arg::new(long).long(long).hide(true))
        .collect();
    let command = command.args(hidden);
    command.mut_args(|arg| {
        let (Some(long), Some(help)) = (arg.get_long(), arg.get_help()) else { return arg };
        let mut help = help.to_string();
        for Row { options, only, .. } in rows(&name) {
            let of = |option: &&'static str| {
                let (name, value) = option[2..].split_once(' ').unwrap_or((&option[2..], ""));
                (name == long).then_some(value)
            };
            let values: Vec<_> = options.iter().filter_map(of).collect();
            match values[..] {
                [] => {}
                [""] => help += &format!(" [only for {only}]"),
                _ => help += &format!("; {} [only for {only}]", values.join(", ")),
            }
        }
        arg.help(help)
    })
}
