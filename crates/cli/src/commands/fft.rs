use std::io::Write as _;

use serde::Serialize;
use topocoll::{
    Among, Budget, Catalogue, Clusters, Distribution, Machine, Parameters, Shape, Transform,
    Transposition,
};
use topocoll_report::names::{EQUAL, Names};
use topocoll_report::words::on;
use topocoll_report::{Bar, Bars};

use super::gains::faster;
use super::heading::assumed_by;
use crate::bar::PROGRESS;
use crate::host::memory;
use crate::machine::{machine, problem};
use crate::render::{Answer, Head, bytes, check_files, print, seconds, table, write_file};
use crate::{Outcome, args};

/// Process grids that the table lists without `--all`.
const SHOWN: usize = 6;

/// Route segments that are counted for each exchange, and seconds of each search: some seconds for all exchanges.
const WORK: u128 = 1 << 20;
const SEARCH: f64 = 0.1;

/// What FFTW does: <https://www.fftw.org/fftw3_doc/MPI-Data-Distribution.html>, and "Transposed distributions" there.
const FFTW: &str = "slabs along the first side, and transposed back";

/// What heFFTe does: `make_procgrid` and `plan_options` of <https://icl-utk-edu.github.io/heffte/>.
const HEFFTE: &str = "pencils on the grid of least P1 + P2";

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    sides: [u64; 3],
    point_bytes: u64,
    /// Whether no process grid that is not priced exactly may be faster than the first.
    decided: bool,
    /// By time: the first is recommended.
    distributions: Vec<Entry>,
    defaults: Vec<Default>,
}

#[derive(Serialize)]
struct Entry {
    process_grid: Vec<u32>,
    /// Whose ranks have consecutive numbers.
    consecutive: &'static str,
    time_seconds: f64,
    bound_seconds: f64,
    bound_ratio: f64,
    exchanges: Vec<Exchanged>,
}

#[derive(Serialize)]
struct Exchanged {
    among: &'static str,
    groups: String,
    ranks: u32,
    block_bytes: u64,
    algorithm: String,
    parameters: Parameters,
    time_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    priced: Option<&'static str>,
    bound_seconds: f64,
}

/// What a library does by itself.
#[derive(Serialize)]
struct Default {
    library: &'static str,
    does: &'static str,
    /// None where it leaves ranks without points.
    process_grid: Option<Vec<u32>>,
    exchanges: usize,
    time_seconds: Option<f64>,
    /// Over the time of the recommended one.
    ratio: Option<f64>,
}

pub(crate) fn run(args: &args::Fft) -> anyhow::Result<Outcome> {
    let options = &args.common.options;
    check_files(&[("--out", args.out.as_deref())])?;
    let machine = machine(&args.common.machine, options)?;
    let transform = Transform::new(args.sides, args.complex)?;
    let mut budget = Budget::default();
    (budget.memory, budget.progress) = (memory(), PROGRESS);
    (budget.work, budget.search) = (WORK, SEARCH);
    let found = transform.rank(&machine, budget)?;
    let problem = problem(&machine, options)?;
    let default = |library, does, of: Option<&Distribution>, times: usize| Default {
        library,
        does,
        process_grid: of.map(Distribution::process_grid),
        exchanges: times * of.map_or(1, |of| of.exchanges.len()),
        time_seconds: of.map(|of| times as f64 * of.seconds()),
        ratio: of.map(|of| times as f64 * ratio(of, &found)),
    };
    let square = near_square(&found);
    let slabs = found.iter().find(|of| of.pencils == [machine.ranks(), 1]);
    let report = Report {
        head: Head::of_sizes(&machine, &problem),
        sides: args.sides,
        point_bytes: args.complex,
        decided: open(&found) == 0,
        distributions: found.iter().map(entry).collect(),
        defaults: vec![default("FFTW-MPI", FFTW, slabs, 2), default("heFFTe", HEFFTE, square, 1)],
    };
    let [n1, n2, n3] = args.sides;
    let what = format!("Forward transform of {n1}x{n2}x{n3} points");
    let about = format!("{what} of {} {}.", bytes(args.complex), on(&machine, &problem));
    let assumed = assumed_by(&machine, problem.both_ports(), options);
    let (answer, rows) = (verdict(&found, square, &machine), rows(&found, args.all));
    let notes = notes(&report, &found, &machine, args.all);
    if let Some(out) = &args.out {
        let page = Bars {
            title: &format!("{what} on {}", machine.name),
            answer: &answer,
            about: &format!("{about} {assumed}"),
            parts: &AMONG.map(|(_, name)| name),
            header: &HEADER,
            rows: rows.iter().map(bar).collect(),
            notes: &notes,
        };
        write_file(out, |file| Ok(file.write_all(page.html().as_bytes())?))?;
    }
    print(options.json, &report, || {
        let rows = rows.into_iter().map(|(_, row)| row);
        Answer::new(answer)
            .about(about)
            .assuming(assumed)
            .table(&table(&HEADER, 2, rows))
            .notes(notes)
    })?;
    Ok(Outcome::Fine)
}

/// Process grids that may be faster than the first.
fn open(found: &[Distribution]) -> usize {
    let may_win =
        |of: &&Distribution| of.bricks == 1 && !of.is_exact() && ratio(of, found) < 1.0 - EQUAL;
    found.iter().filter(may_win).count()
}

/// The time over that of the first.
fn ratio(of: &Distribution, found: &[Distribution]) -> f64 {
    of.seconds() / found[0].seconds()
}

/// Pencils on the process grid of least P1 + P2, P2 the smaller, the ranks of a row consecutive.
fn near_square(found: &[Distribution]) -> Option<&Distribution> {
    let pencils = found.iter().filter(|of| of.bricks == 1 && of.rows_are_consecutive);
    pencils.min_by_key(|of| (of.pencils.iter().sum::<u32>(), of.pencils[1]))
}

/// `Use 8 x 128, rows intra-node: 41.3 ms in exchanges, 1.31x faster than 32 x 32, rows consecutive, 1.05x the bound.`
fn verdict(found: &[Distribution], square: Option<&Distribution>, machine: &Machine) -> String {
    let (best, time) = (&found[0], found[0].seconds());
    let is_other = |of: &&Distribution| of.bricks == 1 && of.pencils != best.pencils;
    let other = square.filter(is_other).or_else(|| found.iter().find(is_other));
    let other = other.map_or(String::new(), |other| {
        let least = if other.is_exact() { "" } else { "at least " };
        format!(", {least}{} {}", faster(ratio(other, found)), name(other, machine))
    });
    format!(
        "Use {}: {}{} in exchanges{other}, {:.2}x the bound.",
        name(best, machine),
        if best.is_exact() { "" } else { "at least " },
        seconds(time),
        time / best.bound_seconds(),
    )
}

/// `8 x 128, rows intra-node`.
fn name(of: &Distribution, machine: &Machine) -> String {
    let grid = grid(&of.process_grid());
    match consecutive(of) {
        "all" => format!("slabs {grid}"),
        near => {
            let size = of.pencils[usize::from(of.rows_are_consecutive)];
            let node = match machine.topology.shape() {
                Shape::Clustered(nodes) => Clusters::equal_size(nodes),
                _ => None,
            };
            let is_inside = node.is_some_and(|node| node % size == 0);
            format!("{grid}, {near} {}", if is_inside { "intra-node" } else { "consecutive" })
        }
    }
}

fn grid(processes: &[u32]) -> String {
    processes.iter().map(u32::to_string).collect::<Vec<_>>().join(" x ")
}

/// Whose ranks have consecutive numbers; those of slabs have in either way.
fn consecutive(of: &Distribution) -> &'static str {
    match (of.pencils.contains(&1), of.rows_are_consecutive) {
        (true, _) => "all",
        (_, true) => "rows",
        (_, false) => "columns",
    }
}

/// The columns of the table.
const HEADER: [&str; 6] = ["process grid", "consecutive", "time", "bound", "rows", "columns"];

/// What ranks exchange among, and its name.
const AMONG: [(Among, &str); 4] = [
    (Among::Rows, "rows"),
    (Among::Columns, "columns"),
    (Among::BricksBefore, "bricks before"),
    (Among::BricksAfter, "bricks after"),
];

/// The bar of a row.
fn bar((of, cells): &(&Distribution, Vec<String>)) -> Bar {
    let of_part = |(among, _)| {
        let own = of.exchanges.iter().filter(|one| one.among == among);
        own.map(Transposition::seconds).sum()
    };
    let seconds = AMONG.map(of_part).to_vec();
    Bar { cells: cells.clone(), seconds, bound: of.bound_seconds() }
}

/// The process grids, and the fastest of bricks last, with the texts of a row. A grid and its mirror image have the same
/// exchanges.
fn rows(found: &[Distribution], all: bool) -> Vec<(&Distribution, Vec<String>)> {
    let bricks = |of: &&Distribution| of.bricks > 1;
    let mut seen = Vec::new();
    let mut is_new = |of: &&Distribution| {
        let mut exchanges: Vec<_> =
            of.exchanges.iter().map(|one| (one.groups.clone(), one.block_bytes)).collect();
        exchanges.sort_unstable();
        let is_new = !seen.contains(&exchanges);
        seen.push(exchanges);
        is_new
    };
    let shown: Vec<_> = match all {
        true => found.iter().collect(),
        false => {
            let pencils = found.iter().filter(|of| of.bricks == 1).filter(&mut is_new).take(SHOWN);
            pencils.chain(found.iter().find(bricks)).collect()
        }
    };
    let choices = shown.iter().flat_map(|of| &of.exchanges).map(|one| &one.choice);
    let catalogue = Catalogue::standard();
    let names =
        Names::new(&catalogue, choices.map(|choice| (&*choice.algorithm, &choice.parameters)));
    let of = |one: &Transposition| {
        let schedule = match one.is_exact() {
            true => names.of(&one.choice),
            false => "not priced, >=".to_owned(),
        };
        format!("{}: {schedule} {}", bytes(one.block_bytes), seconds(one.seconds()))
    };
    let rows = shown.iter().map(|&on| {
        let column = |among: Among| {
            let mut own = on.exchanges.iter().filter(|one| one.among == among);
            own.next().map_or("-".to_owned(), of)
        };
        let row = vec![
            grid(&on.process_grid()),
            consecutive(on).to_owned(),
            format!("{}{}", if on.is_exact() { "" } else { ">= " }, seconds(on.seconds())),
            format!("{:.2}x", on.seconds() / on.bound_seconds()),
            column(Among::Rows),
            column(Among::Columns),
        ];
        (on, row)
    });
    rows.collect()
}

/// What libraries do, and what bricks cost.
fn notes(report: &Report, found: &[Distribution], machine: &Machine, all: bool) -> String {
    let mut notes = String::new();
    for Default { library, does, process_grid, exchanges, time_seconds, ratio } in &report.defaults
    {
        let what = match (process_grid, time_seconds, ratio) {
            (Some(processes), Some(time), Some(ratio)) => format!(
                "{}, {exchanges} exchange{}, {}, {ratio:.2}x the best",
                grid(processes),
                super::plural(*exchanges),
                seconds(*time)
            ),
            _ => {
                let [n1, n2, _] = report.sides;
                format!("at most {} ranks would have points", n1.min(n2))
            }
        };
        notes += &format!("{library} by default, {does}: {what}.\n");
    }
    if let Some(bricks) = found.iter().find(|of| of.bricks > 1) {
        let own = found.iter().find(|of| {
            of.bricks == 1
                && (of.pencils, of.rows_are_consecutive)
                    == (bricks.pencils, bricks.rows_are_consecutive)
        });
        let more = own.map_or(0.0, |own| bricks.seconds() - own.seconds());
        notes += &format!(
            "Data in bricks of {} take two more exchanges, among {} ranks: {} more than pencils on {}.\n",
            grid(&bricks.process_grid()),
            bricks.bricks,
            seconds(more),
            own.map_or(String::new(), |own| name(own, machine)),
        );
    }
    let open = open(found);
    if open > 0 {
        notes += &format!(
            "Of the process grids and orders, {open} took too long to price and may be faster.\n"
        );
    }
    if !all {
        let pencils = found.iter().filter(|of| of.bricks == 1).count();
        let bricks = found.len() - pencils;
        notes +=
            &format!("--all shows {pencils} process grids and orders, and {bricks} of bricks.\n");
    }
    notes
}

fn entry(of: &Distribution) -> Entry {
    let exchanges = of.exchanges.iter().map(|one| Exchanged {
        among: AMONG.iter().find(|(among, _)| *among == one.among).expect("bug: no name").1,
        groups: one.groups.clone(),
        ranks: one.ranks,
        block_bytes: one.block_bytes,
        algorithm: one.choice.algorithm.clone(),
        parameters: one.choice.parameters.clone(),
        time_seconds: one.seconds(),
        priced: (!one.is_exact()).then_some("at_least"),
        bound_seconds: one.bound.seconds,
    });
    Entry {
        process_grid: of.process_grid(),
        consecutive: consecutive(of),
        time_seconds: of.seconds(),
        bound_seconds: of.bound_seconds(),
        bound_ratio: of.seconds() / of.bound_seconds(),
        exchanges: exchanges.collect(),
    }
}
