//! The commands, one file each.

mod algorithms;
mod bounds;
mod calibrate;
mod calibrate_mpi;
mod check;
mod compare;
mod conflicts;
mod detect;
mod fft;
mod front;
mod gains;
mod heading;
mod heat;
mod help;
mod machines;
mod mpi_program;
mod network;
mod repairs;
mod report;
mod request;
mod run;
mod schedule;
mod select;
mod simulate;
mod sweep;
mod tune;
mod verify;
mod whole;
mod within;

use std::path::PathBuf;

use topocoll::Catalogue;
use topocoll::text::printable;

use crate::Outcome;
use crate::args::Command;
use crate::error::say;
use crate::values::text_of;

/// What a step with more messages than ports is charged.
const IN_TURN: &str =
    "a step is charged the bytes of a port, which carries several messages in turn";

/// Runs a command.
pub(crate) fn run(command: &Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Select(args) => select::run(args),
        Command::Fft(args) => fft::run(args),
        Command::Algorithms(args) => algorithms::run(args),
        Command::Machines(args) => machines::run(args),
        Command::Bounds(args) => bounds::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Check(args) => check::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Run(args) => run::run(args),
        Command::Schedule(args) => schedule::run(args),
        Command::Sweep(args) => sweep::run(args),
        Command::Report(args) => report::run(args),
        Command::Calibrate(args) => calibrate::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Detect(args) => detect::run(args),
        Command::Tune(args) => tune::run(args),
        Command::Completions(args) => help::completions(args.shell),
        Command::Man(args) => help::pages(&args.out),
    }
}

/// Says which of the given schedules do not apply.
fn say_refused(files: &[PathBuf], rejected: &[topocoll::Rejected]) {
    for name in files.iter().map(|path| printable(&path.to_string_lossy())) {
        if let Some(rejected) = rejected.iter().find(|rejected| rejected.algorithm == name) {
            say(&format!("note: {name} does not apply: {}", rejected.reason));
        }
    }
}

/// A command line for the same machine and options, with an algorithm and its setting.
fn command_line(
    command: &str,
    common: &crate::args::Common,
    algorithm: Option<&str>,
    setting: &topocoll::Parameters,
) -> String {
    let crate::args::Common { machine, options } = common;
    // A schedule from a file is named by its path.
    let is_file = |name: &&str| command != "report" && Catalogue::standard().find(name).is_err();
    let options = [
        ("op", options.op.map(|op| op.to_string())),
        ("block", options.block.map(|block| block.to_string())),
        ("ports", options.ports.map(|ports| ports.to_string())),
        ("timing", options.timing.clone()),
        ("startup", text_of(&options.startup)),
        ("bandwidth", text_of(&options.bandwidth)),
        ("injection", text_of(&options.injection)),
        ("per-hop", text_of(&options.per_hop)),
        ("rearrangement", text_of(&options.rearrangement)),
        ("barrier", text_of(&options.barrier)),
        ("schedule", algorithm.filter(is_file).map(str::to_owned)),
        ("algorithm", algorithm.filter(|name| !is_file(name)).map(str::to_owned)),
    ];
    let options =
        options.into_iter().filter_map(|(name, value)| Some(format!(" --{name} {}", value?)));
    let set = setting.iter().map(|(key, value)| format!(" --set {key}={value}"));
    printable(&format!("topocoll {command} {machine}{}", options.chain(set).collect::<String>()))
}

/// The algorithms of the exchange's operation among those that do not apply.
fn of_operation<'r>(
    exchange: &topocoll::Exchange<'_>,
    rejected: &'r [topocoll::Rejected],
) -> impl Iterator<Item = &'r topocoll::Rejected> {
    let catalogue = Catalogue::standard();
    let operation = exchange.problem().operation;
    rejected.iter().filter(move |rejected| {
        let algorithm = catalogue.find(&rejected.algorithm);
        !algorithm.is_ok_and(|algorithm| algorithm.info().operation != operation)
    })
}

/// Algorithms that do not apply, by reason; `rejected` has pairs of algorithm and reason.
fn refused<'r>(rejected: impl IntoIterator<Item = (&'r str, &'r str)>) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (algorithm, reason) in rejected {
        match groups.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(algorithm),
            None => groups.push((reason, vec![algorithm])),
        }
    }
    let line = |(reason, names): (&str, Vec<&str>)| format!("  {}: {reason}\n", names.join(", "));
    groups.into_iter().map(line).collect()
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
