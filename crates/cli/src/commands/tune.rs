use std::io::Write as _;

use anyhow::Context;
use serde::Serialize;
use topocoll::text::printable;
use topocoll::tune::{
    Given, LIBRARIES, Library, Rules, Times, Tuning, by_model, by_times, communicators,
};
use topocoll::{Collective, Error, Machine};

use super::mpi_program::said;
use crate::host::check_fits;
use crate::machine::{machine, read_whole};
use crate::render::{Answer, VERSION, bytes, check_files, print, table, write_file};
use crate::{Outcome, args};

/// Default rounds of measuring.
const ROUNDS: usize = 9;

/// Most bytes of the `--base` file.
const LARGEST_BASE: u64 = 1 << 26;

/// Bytes of a rank and its place.
const RANK: u128 = 16;

#[derive(Serialize)]
struct Report {
    version: u32,
    library: &'static str,
    machine: String,
    ranks: u32,
    rules: Vec<Rule>,
}

#[derive(Serialize)]
struct Rule {
    ranks: u32,
    operation: String,
    from_block_bytes: u64,
    algorithm: &'static str,
}

pub(crate) fn run(args: &args::Tune) -> anyhow::Result<Outcome> {
    let options = &args.common.options;
    check_files(&[("--out", args.out.as_deref())])?;
    let library = LIBRARIES.iter().find(|library| library.name == args.library);
    let library = library.expect("bug: arguments have known libraries");
    let machine = machine(&args.common.machine, options)?;
    let operations = match options.op {
        Some(operation) => vec![operation],
        None => vec![Collective::AllGather, Collective::AllToAll],
    };
    let sizes = communicators(&machine, &args.communicators).map_err(Error::from)?;
    let most = sizes.iter().copied().max().unwrap_or(0);
    check_fits("the ranks of a communicator", most, RANK).context("--communicators")?;
    let tuning = if args.measured {
        measured(library, &machine, &sizes, &operations, args)?
    } else {
        by_model(library, &machine, &sizes, &operations)?
    };
    let base = match &args.base {
        Some(path) => Some(read_whole(path, LARGEST_BASE)?),
        None => None,
    };
    let mut given = Given::default();
    (given.release, given.base) = (args.release.as_deref(), base.as_deref());
    let file = library.write(&tuning, &given).map_err(Error::from)?;
    match &args.out {
        Some(path) => write_file(path, |out| Ok(out.write_all(file.as_bytes())?))?,
        None if !options.json => {
            std::io::stdout().write_all(file.as_bytes()).context("cannot write the tuning file")?;
            return Ok(Outcome::Fine);
        }
        None => {}
    }
    let mut rules = Vec::new();
    for Rules { ranks, turns } in &tuning.rules {
        for (operation, turns) in turns {
            rules.extend(turns.iter().map(|turn| Rule {
                ranks: *ranks,
                operation: operation.to_string(),
                from_block_bytes: turn.block_bytes,
                algorithm: turn.own.name,
            }));
        }
    }
    let report = Report {
        version: VERSION,
        library: library.name,
        machine: machine.name.clone(),
        ranks: machine.ranks(),
        rules,
    };
    print(options.json, &report, || text(library, &report, args))?;
    Ok(Outcome::Fine)
}

/// The fastest of the library's algorithms, each measured in its own run.
fn measured(
    library: &'static Library,
    machine: &Machine,
    sizes: &[u32],
    operations: &[Collective],
    args: &args::Tune,
) -> anyhow::Result<Tuning> {
    let (all, rounds) = (machine.ranks(), args.rounds.unwrap_or(ROUNDS));
    let mut rules = Vec::new();
    for &ranks in sizes {
        let mut turns = Vec::new();
        for &operation in operations {
            let mut times = Vec::new();
            for own in library.serving(operation, ranks) {
                let arguments = [&*rounds.to_string(), operation.name(), &*ranks.to_string()];
                let own_times: Times = said(&args.mpi_program, &arguments, &library.force(own))?;
                anyhow::ensure!(
                    own_times.started == all,
                    "--launch starts {} ranks, but {} has {all}",
                    own_times.started,
                    machine.name
                );
                times.push((own, own_times));
            }
            turns.push((operation, by_times(&times).map_err(Error::from)?));
        }
        rules.push(Rules { ranks, turns });
    }
    let origin = format!("{}, measured in {rounds} rounds", machine.name);
    Ok(Tuning { rules, origin })
}

fn text(library: &Library, report: &Report, args: &args::Tune) -> Answer {
    let rows = report.rules.iter().map(|rule| {
        let from = bytes(rule.from_block_bytes);
        vec![rule.ranks.to_string(), rule.operation.clone(), from, rule.algorithm.to_owned()]
    });
    let using = args.out.as_ref().map_or(String::new(), |path| {
        let file = printable(&path.to_string_lossy());
        library.using.replace("{file}", &file)
    });
    Answer::new(format!("{} rules for {} on {}.", report.rules.len(), library.name, report.machine))
        .about("For communicators of these sizes; the library chooses for all others.")
        .table(&table(&["ranks", "operation", "blocks from", "algorithm"], 4, rows))
        .notes(using)
}
