//! What each algorithm and each of its settings wins: the table of `docs/src/what-earns-its-place.md`, written by
//! `cargo bench --bench ablation`, and with more machines by `cargo bench --bench ablation -- full`.
//!
//! For each machine, number of ports, operation, timing and block size a ranking is made once. The loss of a row is
//! the best time of the choices without it over the best time of all.
#![allow(clippy::print_stdout, reason = "progress")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use topocoll::{Catalogue, Choice, Collective, Exchange, Priced, Problem, Setting, Sync, machine};

/// Machines, each with the numbers of ports.
const MACHINES: [(&str, &[u32]); 36] = [
    ("torus:8", &[1, 2]),
    ("torus:13", &[1, 2]),
    ("mesh:16", &[1]),
    ("torus:4x4", &[1, 2, 4]),
    ("torus:5x7", &[1, 4]),
    ("torus:6x6", &[1, 4]),
    ("torus:8x8", &[1, 2, 4]),
    ("torus:10x10", &[1]),
    ("torus:12x12", &[1, 2]),
    ("torus:13x13", &[1]),
    ("torus:16x16", &[1, 2, 4]),
    ("torus:18x20", &[1]),
    ("torus:32x32", &[1, 4]),
    ("torus:4x8", &[1, 4]),
    ("torus:4x4x4", &[1, 3, 6]),
    ("torus:6x6x6", &[1]),
    ("torus:8x8x8", &[1, 3, 6]),
    ("torus:4x4x4x4", &[1, 8]),
    ("mesh:4x4", &[1, 4]),
    ("mesh:5x7", &[1]),
    ("mesh:8x8", &[1, 4]),
    ("mesh:12x12", &[1]),
    ("mesh:16x16", &[1, 4]),
    ("mesh:4x4x4", &[1, 6]),
    ("grid:8~x8", &[1]),
    ("torus:8x8/3,4", &[1, 4]),
    ("torus:4x4/0,0+1", &[1, 4]),
    ("mesh:5x5/2,2", &[1]),
    ("twisted-torus:4x4x8", &[1, 6]),
    ("hypercube:5", &[1, 5]),
    ("fat-tree:4,4,2", &[1]),
    ("dragonfly:2,4,2", &[1]),
    ("full:12", &[1, 3]),
    ("cluster:8*4", &[1, 4]),
    ("cluster:3*4,2,1", &[1]),
    ("torus:4x4*2", &[1, 4]),
];

/// Machines of the full run: all tori and meshes of these sides, too.
const SIDES: [&str; 30] = [
    "5", "6", "9", "12", "15", "20", "32", "5x5", "7x7", "9x9", "14x14", "15x15", "20x20", "24x24",
    "30x30", "36x36", "48x48", "64x64", "4x6", "6x9", "8x12", "8x16", "12x20", "16x32", "5x5x5",
    "3x4x5", "4x4x8", "4x8x8", "8x8x16", "12x12x12",
];

/// Seconds to copy a byte, where that is priced.
const COPY: f64 = 1e-9;

const BLOCKS: [u64; 4] = [64, 1 << 10, 16 << 10, 1 << 20];

/// The most ranks of a machine that is ranked by free-running times too.
const FREE_RUNNING: u32 = 64;

/// Files of a setting; those of an algorithm have its name.
const FILES: [(&str, &str); 8] = [
    ("coloured-rings inside", "coloured_rings/inside"),
    ("coloured-rings landing=windows", "coloured_rings/windows"),
    ("neighbour-rings hop", "neighbour_rings/leaders"),
    ("neighbour-rings parts=bytes", "neighbour_rings/cut"),
    ("product along", "product/along"),
    ("product split", "product/split"),
    ("strided-rings last=all", "strided_rings/last"),
    ("strided-rings share=parts", "strided_rings/parts"),
];

/// Parameters of every algorithm.
const OF_ALL: [&str; 4] = ["axes", "node_ports", "ports", "ties"];

/// The losses of a row, as a ratio less 1.
#[derive(Default)]
struct Losses {
    sum: f64,
    /// Cells with more than 2 %.
    cells: u32,
    worst: f64,
    place: String,
}

impl Losses {
    fn add(&mut self, loss: f64, place: &str) {
        self.sum += loss;
        self.cells += u32::from(loss > 0.02);
        if loss > self.worst {
            (self.worst, self.place) = (loss, place.to_owned());
        }
    }
}

/// By row: in step, and by the larger of the times in step and free-running.
type Rows = BTreeMap<String, [Losses; 2]>;

/// The rows to which a choice belongs: its algorithm, those that it names, and what is set.
fn rows(choice: &Choice, names: &BTreeSet<String>) -> BTreeSet<String> {
    let name = &choice.algorithm;
    let mut rows = BTreeSet::from([name.clone()]);
    for (key, value) in &choice.parameters {
        let word = value.to_string();
        match value {
            // Those of the named algorithm.
            _ if key.contains('.') => {}
            _ if OF_ALL.contains(&&**key) => drop(rows.insert(format!("any algorithm, {key}"))),
            Setting::Text(_) if names.contains(&word) => {
                rows.extend([word, format!("{name} {key}")]);
            }
            Setting::Text(_) => drop(rows.insert(format!("{name} {key}={word}"))),
            _ => drop(rows.insert(format!("{name} {key}"))),
        }
    }
    rows
}

/// Adds the losses of all rows on a machine at a block size; returns whether there is a choice.
fn measure(exchange: &Exchange<'_>, place: &str, names: &BTreeSet<String>, all: &mut Rows) -> bool {
    let selection = exchange.select().expect("a ranking");
    let exact = |choice: &&Choice| choice.price.priced != Priced::AtLeast;
    let choices: Vec<_> = (selection.choices.iter().filter(exact))
        .map(|one| (rows(one, names), [one.price.time.total(), one.ranked_seconds()]))
        .collect();
    let named: BTreeSet<&String> = choices.iter().flat_map(|(rows, _)| rows).collect();
    for row in named {
        let losses = all.entry(row.clone()).or_default();
        for (by, losses) in losses.iter_mut().enumerate() {
            let best = |without: bool| {
                let left = choices.iter().filter(|(rows, _)| !without || !rows.contains(row));
                left.map(|(_, times)| times[by]).fold(f64::INFINITY, f64::min)
            };
            let loss = best(true) / best(false) - 1.0;
            if loss.is_finite() {
                losses.add(loss, place);
            }
        }
    }
    !choices.is_empty()
}

/// Measures a machine; returns the number of cells.
fn on(text: &str, ports: &[u32], names: &BTreeSet<String>, all: &mut Rows) -> u32 {
    let generic = machine(text).expect("a machine");
    let mut copied = generic.clone();
    copied.timing.rearrangement_per_byte = COPY;
    let mut cells = 0;
    for (machine, timing) in [(generic, ""), (copied, ", copies priced")] {
        for &ports in ports {
            let mut machine = machine.clone();
            machine.set_ports(ports);
            for operation in [Collective::AllToAll, Collective::AllGather] {
                for block in BLOCKS {
                    let problem = Problem::new(operation, machine.ranks(), ports, block);
                    let exchange = Exchange::new(&machine, &problem.expect("a problem"));
                    let mut exchange = exchange.expect("its ranks");
                    if machine.ranks() > FREE_RUNNING || !timing.is_empty() {
                        exchange = exchange.sync(Sync::Barrier);
                    }
                    let place = format!(
                        "`{text}`, {ports} port{}, {} of {block} B{timing}",
                        if ports == 1 { "" } else { "s" },
                        operation.name()
                    );
                    cells += u32::from(measure(&exchange, &place, names, all));
                }
            }
        }
    }
    cells
}

/// The lines of the files of a row; `None` if it has none of its own.
fn lines(row: &str) -> Option<usize> {
    fn count(path: &Path) -> usize {
        match std::fs::read_dir(path) {
            Ok(entries) => entries.map(|entry| count(&entry.expect("an entry").path())).sum(),
            Err(_) => std::fs::read_to_string(path).map_or(0, |text| text.lines().count()),
        }
    }
    let files = match FILES.iter().find(|(named, _)| *named == row) {
        Some((_, files)) => (*files).to_owned(),
        None => row.replace('-', "_"),
    };
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/algorithms/src");
    let of = |place: &str| {
        let path = home.join(place).join(&files);
        count(&path) + count(&path.with_extension("rs"))
    };
    Some(of("alltoall") + of("allgather")).filter(|&lines| lines > 0)
}

fn main() {
    let full = std::env::args().any(|argument| argument == "full");
    let catalogue = Catalogue::standard();
    let names: BTreeSet<String> = catalogue.iter().map(|one| one.info().name.to_string()).collect();
    let (mut all, mut cells) = (Rows::new(), 0);
    let mut machines: Vec<(String, Vec<u32>)> =
        MACHINES.iter().map(|(text, ports)| ((*text).to_owned(), ports.to_vec())).collect();
    if full {
        for sides in SIDES {
            let dimensions = 1 + sides.matches('x').count() as u32;
            let ports = vec![1, dimensions + 1, 2 * dimensions];
            machines
                .extend(["torus", "mesh"].map(|kind| (format!("{kind}:{sides}"), ports.clone())));
        }
    }
    for (text, ports) in machines {
        let start = std::time::Instant::now();
        cells += on(&text, &ports, &names, &mut all);
        println!("{text}: {:.1} s", start.elapsed().as_secs_f64());
    }
    let mut page = String::from(include_str!("ablation.md"));
    for (row, [in_step, ranked]) in &all {
        let percent = |loss: f64| format!("{:.1}", 100.0 * loss);
        let mean = |losses: &Losses| format!("{:.2}", 100.0 * losses.sum / f64::from(cells));
        let lines = lines(row).map_or("-".to_owned(), |lines| lines.to_string());
        let of = |losses: &Losses| {
            format!("{} | {} | {}", mean(losses), percent(losses.worst), losses.cells)
        };
        let place = if ranked.place.is_empty() { "-" } else { &ranked.place };
        writeln!(page, "| {row} | {lines} | {} | {} | {place} |", of(in_step), of(ranked))
            .expect("a string");
    }
    let number = |by: usize| all.values().filter(|losses| losses[by].cells > 0).count();
    writeln!(
        page,
        "\n{cells} cells, {} rows, of which {} win more than 2 % somewhere.",
        all.len(),
        number(1)
    )
    .expect("a string");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/what-earns-its-place.md");
    std::fs::write(path, page).expect("the page");
}
