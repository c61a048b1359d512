use std::io::Write as _;
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use topocoll::text::printable;
use topocoll::tune::{
    Given, Library, Modelled, Own, Rules, Times, Tuning, by_model, by_times, communicators, first,
};
use topocoll::{Collective, Error, Exchange, Machine, Problem, Sync};

use super::gains::{Gains, library};
use super::mpi_program::said;
use super::say_refused;
use crate::bar::starting;
use crate::error::say;
use crate::host::check_fits;
use crate::machine::{catalogue, exchange, machine, ranked, read_whole};
use crate::render::{
    Answer, VERSION, bytes, check_files, print, print_beside, print_text, seconds, table,
    write_file,
};
use crate::{Outcome, args};

/// Default rounds of measuring.
const ROUNDS: usize = 9;

/// Most bytes of the `--base` file.
const LARGEST_BASE: u64 = 1 << 26;

/// The block at which the best schedules are ranked.
const BLOCK: u64 = 1024;

/// Bytes of a rank and its place.
const RANK: u128 = 16;

#[derive(Serialize)]
struct Report {
    version: u32,
    library: &'static str,
    machine: String,
    ranks: u32,
    rules: Vec<Rule>,
    /// For the largest communicator; none for measured rules, and releases whose defaults are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    gains: Option<Gains>,
}

#[derive(Serialize)]
struct Rule {
    ranks: u32,
    operation: String,
    from_block_bytes: u64,
    algorithm: &'static str,
    /// Requests of a rank at a time; none where the library's parameter stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<u32>,
    /// At the first block size, predicted or measured.
    time_seconds: f64,
}

pub(crate) fn run(args: &args::Tune) -> anyhow::Result<Outcome> {
    let options = &args.common.options;
    check_files(&[("--out", args.out.as_deref())])?;
    let library = library(&args.library);
    let whole = machine(&args.common.machine, options)?;
    let asked = exchange(&whole, options, &args::Part { ranks: args.ranks.clone(), groups: None })?;
    let (machine, operation) = (asked.machine(), asked.problem().operation);
    let sizes = communicators(machine, &args.communicators).map_err(Error::from)?;
    let most = sizes.iter().copied().max().unwrap_or(0);
    check_fits("the ranks of a communicator", most, RANK).context("--communicators")?;
    starting("counting messages of the library", 0);
    let (tuning, modelled) = match &args.measured {
        Some(_) => (measured(library, machine, &sizes, operation, args)?, Vec::new()),
        None => by_model(library, machine, &sizes, &[operation])?,
    };
    let base = match &args.base {
        Some(path) => Some(read_whole(path, LARGEST_BASE)?),
        None => None,
    };
    let mut given = Given::default();
    (given.release, given.base) = (args.release.as_deref(), base.as_deref());
    let file = library.write(&tuning, &given).map_err(Error::from)?;
    let gains = match &modelled[..] {
        [modelled] => gains(library, machine, most, modelled, args)?,
        _ => None,
    };
    let mut rules = Vec::new();
    for Rules { ranks, turns } in &tuning.rules {
        for (operation, turns) in turns {
            rules.extend(turns.iter().map(|turn| Rule {
                ranks: *ranks,
                operation: operation.to_string(),
                from_block_bytes: turn.block_bytes,
                algorithm: turn.own.name,
                requests: Some(turn.requests).filter(|&requests| requests > 0),
                time_seconds: turn.seconds,
            }));
        }
    }
    let (version, name, ranks) = (VERSION, library.name, machine.ranks());
    let report =
        Report { version, library: name, machine: machine.name.clone(), ranks, rules, gains };
    match &args.out {
        Some(path) => write_file(path, |out| Ok(out.write_all(file.as_bytes())?))?,
        None if !options.json => {
            print_text(&file)?;
            if let Some(gains) = &report.gains {
                print_beside(&gains.add_to(Answer::default()));
            }
            return Ok(Outcome::Fine);
        }
        None => {}
    }
    print(options.json, &report, || text(library, &report, args))?;
    Ok(Outcome::Fine)
}

/// What the library would gain between the first `ranks` of a machine.
fn gains(
    library: &'static Library,
    machine: &Machine,
    ranks: u32,
    modelled: &Modelled,
    args: &args::Tune,
) -> anyhow::Result<Option<Gains>> {
    let Ok(release) = library.release(args.release.as_deref()) else {
        say("note: the defaults of this release are not known, so gains over them are not shown");
        return Ok(None);
    };
    let part = machine.subset(&first(machine, ranks)?);
    let part = if ranks == machine.ranks() { machine } else { &part };
    let catalogue = catalogue(part, &args.common.options, &args.schedule)?;
    let problem =
        Problem::new(modelled.operation(), ranks, part.ports, BLOCK).map_err(Error::from)?;
    let exchange = Exchange::new(part, &problem)?.catalogue(&catalogue).sync(Sync::Barrier);
    let selection = ranked(&exchange, None)?;
    say_refused(&args.schedule, &selection.rejected);
    Ok(Some(Gains::new(library, release, modelled, &exchange, &selection)))
}

/// The fastest of the library's algorithms, each measured in its own run, or all in the run of a file.
fn measured(
    library: &'static Library,
    machine: &Machine,
    sizes: &[u32],
    operation: Collective,
    args: &args::Tune,
) -> anyhow::Result<Tuning> {
    let (all, rounds) = (machine.ranks(), args.rounds.unwrap_or(ROUNDS));
    let file = args.measured.as_ref().and_then(Option::as_deref).map(Compared::read).transpose()?;
    let mut rules = Vec::new();
    for &ranks in sizes {
        let mut times = Vec::new();
        for own in library.serving(operation, ranks) {
            if let Some(file) = &file {
                times.extend(file.times(library, own, ranks)?);
                continue;
            }
            let arguments = [&*rounds.to_string(), operation.name(), &*ranks.to_string()];
            let own_times: Times = said(&args.mpi_program, &arguments, &library.force(own, 0))?;
            anyhow::ensure!(
                own_times.started == all,
                "--launch starts {} ranks, but {} has {all}",
                own_times.started,
                machine.name
            );
            times.push((own, own_times));
        }
        let turns = by_times(&times).map_err(Error::from)?;
        rules.push(Rules { ranks, turns: vec![(operation, turns)] });
    }
    let how =
        if file.is_some() { "by topocoll-mpi compare" } else { &format!("in {rounds} rounds") };
    let origin = format!("{}, measured {how}", machine.name);
    Ok(Tuning { rules, origin })
}

/// A file of `topocoll-mpi compare`.
#[derive(Deserialize)]
struct Compared {
    #[serde(skip)]
    path: String,
    run: Run,
    compared: Vec<Performer>,
}

#[derive(Deserialize)]
struct Run {
    mpi: String,
    ranks: u32,
}

#[derive(Deserialize)]
struct Performer {
    operation: String,
    block_bytes: u64,
    name: String,
    is_library: bool,
    /// The first quartile, the median and the third quartile.
    seconds: [f64; 3],
}

impl Compared {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display().to_string();
        let file = serde_json::from_slice(&read_whole(path, LARGEST_BASE)?);
        let file: Self = file.with_context(|| format!("{shown} is not of topocoll-mpi compare"))?;
        Ok(Self { path: shown, ..file })
    }

    /// The medians of an algorithm; none if it was not measured.
    fn times(
        &self,
        library: &Library,
        own: &'static Own,
        ranks: u32,
    ) -> anyhow::Result<Option<(&'static Own, Times)>> {
        let (path, Run { mpi, ranks: started }) = (&self.path, &self.run);
        anyhow::ensure!(
            mpi.starts_with(library.title),
            "{path}: measured with {mpi}, not {}",
            library.title
        );
        anyhow::ensure!(ranks == *started, "{path}: measured between {started} ranks, not {ranks}");
        let is_own = |by: &&Performer| {
            by.is_library && by.name == own.name && by.operation == own.operation.name()
        };
        let own_times = self.compared.iter().filter(is_own);
        let seconds: Vec<_> = own_times.map(|by| (by.block_bytes, by.seconds[1])).collect();
        let times = Times { ranks, started: *started, seconds };
        Ok((!times.seconds.is_empty()).then_some((own, times)))
    }
}

fn text(library: &Library, report: &Report, args: &args::Tune) -> Answer {
    let rows = report.rules.iter().map(|rule| {
        let (from, time) = (bytes(rule.from_block_bytes), seconds(rule.time_seconds));
        vec![rule.ranks.to_string(), rule.operation.clone(), from, rule.algorithm.to_owned(), time]
    });
    let mut using = args.out.as_ref().map_or(String::new(), |path| {
        let file = printable(&path.to_string_lossy());
        library.using.replace("{file}", &file)
    });
    let requests = report.rules.iter().find_map(|rule| rule.requests);
    if let Some(limiting) = requests.and_then(|requests| library.limiting(requests)) {
        using += &format!(" {limiting}");
    }
    let answer = Answer::new(format!(
        "{} rules for {} on {}.",
        report.rules.len(),
        library.name,
        report.machine
    ))
    .about("For communicators of these sizes; the library chooses for all others.")
    .table(&table(&["ranks", "operation", "blocks from", "algorithm", "time there"], 4, rows));
    let answer = answer.notes(using);
    match &report.gains {
        Some(gains) => gains.add_to(answer),
        None => answer,
    }
}
