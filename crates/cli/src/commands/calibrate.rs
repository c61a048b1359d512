use serde::Serialize;
use topocoll::{Fit, Regret, Sample, fit, measure, measured_file, regret};

use super::compare::{compared, write_fitted};
use super::plural;
use crate::bar::{PROGRESS, starting};
use crate::host::{check_threads, cores, memory};
use crate::render::{
    Answer, Field, VERSION, bytes, check_files, facts, print, seconds, table, write_or_print,
};
use crate::{Outcome, args};

/// Numbers of ranks measured in addition to `--ranks`, and block sizes.
const RANKS: [u32; 5] = [4, 8, 16, 32, 64];
const BLOCKS: [u64; 8] = [1, 8, 64, 256, 1024, 4096, 16_384, 65_536];

/// Bytes of all ranks' blocks in one exchange, at most.
const LARGEST: u64 = 32 << 20;

/// Number of worst choices shown.
const SHOWN: usize = 8;

#[derive(Serialize)]
struct Report {
    version: u32,
    ranks: u32,
    threads: usize,
    rounds: usize,
    cells: usize,
    startup_seconds: f64,
    per_byte_seconds: f64,
    rearrangement_seconds_per_byte: f64,
    per_block_seconds: f64,
    exchange_seconds: f64,
    fit_error: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    regret: Option<Regrets>,
}

/// Chosen time over best time, less 1.
#[derive(Serialize)]
struct Regrets {
    median: f64,
    p95: f64,
    worst: f64,
}

pub(crate) fn run(args: &args::Calibrate) -> anyhow::Result<Outcome> {
    check_files(&[("--out", args.out.as_deref())])?;
    if args.mpi {
        return super::calibrate_mpi::run(args);
    }
    if let Some(path) = &args.measured {
        let machine = topocoll::machine(&format!("full:{}", args.ranks))?;
        let found = compared(&machine, path, args.op, args.algorithm.as_deref(), &args.set)?;
        return write_fitted(&machine, &found, path, args.out.as_deref());
    }
    // No rank runs on two threads at once.
    let threads = args.threads.unwrap_or_else(cores).min(args.ranks as usize);
    check_threads(threads)?;
    anyhow::ensure!(
        u128::from(LARGEST) * 8 <= memory(),
        "measuring takes 8 times {LARGEST} bytes, but the limit is {}",
        memory()
    );
    let cells = measure_all(args, threads)?;
    let all: Vec<Sample> = cells.iter().flatten().cloned().collect();
    let fit = fit(&all);
    let prints = !args.check && args.out.is_none() && !args.json;
    if prints || args.out.is_some() {
        write_or_print(args.out.as_deref(), &machine_file(args, threads, &fit)?)?;
    }
    if prints {
        return Ok(Outcome::Fine);
    }
    let mut regrets = Vec::new();
    if args.check {
        for cell in &cells {
            regrets.push(regret(cell, &fit)?);
        }
        regrets.sort_by(|a, b| a.share().total_cmp(&b.share()));
    }
    let timing = fit.timing(args.ranks);
    let report = Report {
        version: VERSION,
        ranks: args.ranks,
        threads,
        rounds: args.rounds,
        cells: cells.len(),
        startup_seconds: timing.startup.least(),
        per_byte_seconds: timing.per_byte.least(),
        rearrangement_seconds_per_byte: timing.rearrangement_per_byte,
        per_block_seconds: timing.per_block,
        exchange_seconds: fit.exchange,
        fit_error: fit.error,
        regret: (!regrets.is_empty()).then(|| Regrets {
            median: regrets[regrets.len() / 2].share(),
            p95: regrets[regrets.len() * 95 / 100].share(),
            worst: regrets[regrets.len() - 1].share(),
        }),
    };
    print(args.json, &report, || text(&report, &regrets))?;
    Ok(Outcome::Fine)
}

/// Measures each number of ranks with each block size.
fn measure_all(args: &args::Calibrate, threads: usize) -> anyhow::Result<Vec<Vec<Sample>>> {
    let mut ranks = RANKS.to_vec();
    if !ranks.contains(&args.ranks) {
        ranks.push(args.ranks);
    }
    let cells: Vec<(u32, u64)> = (ranks.into_iter())
        .flat_map(|ranks| BLOCKS.map(|block| (ranks, block)))
        .filter(|&(ranks, block)| u64::from(ranks).pow(2) * block <= LARGEST)
        .collect();
    starting("measuring cells", cells.len() as u64);
    let measured = cells.into_iter().map(|(ranks, block)| {
        let cell = measure(ranks, block, threads, args.rounds)?;
        (PROGRESS.done)(1);
        Ok(cell)
    });
    measured.collect()
}

fn machine_file(args: &args::Calibrate, threads: usize, fit: &Fit) -> anyhow::Result<String> {
    let args::Calibrate { ranks, rounds, .. } = args;
    let mut machine = topocoll::machine(&format!("full:{ranks}"))?;
    machine.timing = fit.timing(*ranks);
    let title = format!("This computer, {ranks} ranks on {threads} thread{}", plural(threads));
    let measured = format!(
        "measured: topocoll calibrate --ranks {ranks} --threads {threads} --rounds {rounds}"
    );
    let sources = [
        ("title", &*title),
        ("shape", "the threaded driver: every rank reaches every other"),
        ("ports", "the threaded driver: a thread moves one message at a time"),
        ("startup", &measured),
        ("per_byte", &measured),
        ("per_hop", "unused: ranks that share memory have no distances"),
        ("rearrangement", &measured),
        ("per_block", &measured),
        ("barrier", "unused: no barriers between steps"),
    ];
    Ok(measured_file(machine, sources)?)
}

fn text(report: &Report, regrets: &[Regret]) -> Answer {
    let Report { ranks, threads, rounds, cells, .. } = report;
    let per_byte = |value: f64| format!("{:.4} ns a byte", value * 1e9);
    let answer = Answer::new(format!(
        "Startup {} for {ranks} ranks, {} of transmission.",
        seconds(report.startup_seconds),
        per_byte(report.per_byte_seconds),
    ))
    .about(format!(
        "{cells} exchanges of 4 to {} ranks on {threads} thread{} of this computer, the fastest of {rounds}.",
        RANKS[RANKS.len() - 1].max(*ranks),
        plural(*threads),
    ))
    .notes(facts([
            ("rearrangement", per_byte(report.rearrangement_seconds_per_byte)),
            ("every copied block", seconds(report.per_block_seconds)),
            ("every exchange", seconds(report.exchange_seconds)),
            ("error of the fit", format!("{:.0} %", report.fit_error * 100.0)),
    ]));
    let Some(found) = &report.regret else { return answer };
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let named =
        |sample: &Sample| Field::Setting(Some(sample.algorithm.clone()), sample.parameters.clone());
    let rows = regrets.iter().rev().take(SHOWN).map(|regret| {
        vec![
            regret.ranks.to_string().into(),
            bytes(regret.block_bytes).into(),
            named(&regret.chosen),
            seconds(regret.chosen.seconds).into(),
            named(&regret.best),
            seconds(regret.best.seconds).into(),
            percent(regret.share()).into(),
        ]
    });
    let header = ["ranks", "block", "chosen", "time", "best", "time", "more"];
    answer
        .notes(format!(
            "The choice of select takes more time than the fastest measured: median {}, 95th percentile {}, worst {}.",
            percent(found.median),
            percent(found.p95),
            percent(found.worst)
        ))
        .table(&table(&header, 2, rows))
}
