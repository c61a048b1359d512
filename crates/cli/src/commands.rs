//! The commands, one file each.

mod algorithms;
mod bounds;
mod calibrate;
mod calibrate_mpi;
mod check;
mod conflicts;
mod front;
mod heat;
mod help;
mod mpi_program;
mod network;
mod report;
mod request;
mod run;
mod schedule;
mod select;
mod simulate;
mod sweep;
mod tune;
mod verify;
mod watch;
mod whole;

pub(crate) use select::reason;

use topocoll::Catalogue;
use topocoll::text::printable;

use crate::Outcome;
use crate::args::Command;

/// Runs a command.
pub(crate) fn run(command: &Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Select(args) => select::run(args),
        Command::Algorithms(args) => algorithms::run(args),
        Command::Bounds(args) => bounds::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Check(args) => check::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Run(args) => run::run(args),
        Command::Schedule(args) => schedule::run(args),
        Command::Sweep(args) => sweep::run(args),
        Command::Report(args) => report::run(args),
        Command::Calibrate(args) => calibrate::run(args),
        Command::Tune(args) => tune::run(args),
        Command::Completions(args) => help::completions(args.shell),
        Command::Man(args) => help::pages(&args.out),
    }
}

/// One line that names the exchange: `alltoall of 1 KiB blocks on torus:8x8: 64 ranks, 1 port, ..`.
pub(crate) fn title(machine: &topocoll::Machine, problem: &topocoll::Problem) -> String {
    title_of(machine, problem, &crate::render::bytes(problem.block_bytes))
}

/// The same for a schedule, which may have message sizes only.
fn title_of_schedule(machine: &topocoll::Machine, schedule: &topocoll::Schedule) -> String {
    match schedule.rule().names_blocks() {
        true => title(machine, &schedule.problem),
        false => {
            format!("messages of known sizes, {}", on(machine, &schedule.problem))
        }
    }
}

/// The same for a demand matrix, if there is one.
fn title_of_sizes(
    machine: &topocoll::Machine,
    problem: &topocoll::Problem,
    sizes: Option<&crate::demand::Named>,
) -> String {
    match sizes {
        Some(sizes) => title_of(machine, problem, &sizes.name),
        None => title(machine, problem),
    }
}

/// The same for a range of block sizes.
fn title_of(machine: &topocoll::Machine, problem: &topocoll::Problem, sizes: &str) -> String {
    format!("{} of {sizes} blocks {}", problem.operation, on(machine, problem))
}

/// The machine: `on torus:8x8: 64 ranks, 1 port, ..`.
fn on(machine: &topocoll::Machine, problem: &topocoll::Problem) -> String {
    let topology = machine.topology.short_form();
    // The name of a partial machine begins with its topology.
    let said = topology == machine.name || machine.name.starts_with(&format!("{topology} of "));
    let named = if said { machine.name.clone() } else { format!("{} ({topology})", machine.name) };
    format!(
        "on {named}: {} rank{}, {} port{}, timing {}",
        problem.ranks,
        plural(problem.ranks as usize),
        problem.ports,
        plural(problem.ports as usize),
        machine.timing.name,
    )
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
    let duration = |value: Option<f64>| value.map(|seconds| format!("{seconds}s"));
    let options = [
        ("op", options.op.map(|op| op.to_string())),
        ("block", options.block.map(|block| block.to_string())),
        ("ports", options.ports.map(|ports| ports.to_string())),
        ("timing", options.timing.clone()),
        ("startup", duration(options.startup)),
        ("bandwidth", duration(options.bandwidth)),
        ("per-hop", duration(options.per_hop)),
        ("rearrangement", duration(options.rearrangement)),
        ("barrier", duration(options.barrier)),
        ("schedule", algorithm.filter(is_file).map(str::to_owned)),
        ("algorithm", algorithm.filter(|name| !is_file(name)).map(str::to_owned)),
    ];
    let options =
        options.into_iter().filter_map(|(name, value)| Some(format!(" --{name} {}", value?)));
    let set = setting.iter().map(|(key, value)| format!(" --set {key}={value}"));
    printable(&format!("topocoll {command} {machine}{}", options.chain(set).collect::<String>()))
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
