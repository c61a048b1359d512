//! docs/src/fronts.md holds the points of steps and volume of all tori and meshes of some sizes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use common::front;
use rayon::prelude::*;
use topocoll::{Collective, Problem, machine};

/// The most ranks of a machine, and the shortest side.
const RANKS: u32 = 512;
const SIDE: u32 = 4;

/// Larger machines.
const LARGE: [&str; 6] = [
    "torus:64x64",
    "mesh:64x64",
    "torus:128x128",
    "mesh:128x128",
    "torus:24x24x24",
    "mesh:24x24x24",
];

/// A multiple of the parts into which blocks are cut.
const BYTES: u64 = 1536;

/// The volume of a point over that of the one before, at most, unless it is the last.
const LEAST_GAIN: f64 = 0.97;

/// Machines of which one is looked at in the test.
const SAMPLE: usize = 60;

/// All lists of sides in ascending order, the shortest first.
fn sides(dimensions: usize, least: u32, most: u32) -> Vec<Vec<u32>> {
    if dimensions == 0 {
        return vec![Vec::new()];
    }
    let fits = |side: &u32| side.checked_pow(dimensions as u32).is_some_and(|all| all <= most);
    let longer = |side| {
        let rest = sides(dimensions - 1, side, most / side);
        rest.into_iter().map(move |rest| [vec![side], rest].concat())
    };
    (least..).take_while(fits).flat_map(longer).collect()
}

fn machines() -> Vec<String> {
    let named = |kind: &str, sides: &[u32]| {
        let sides: Vec<String> = sides.iter().map(u32::to_string).collect();
        format!("{kind}:{}", sides.join("x"))
    };
    let shapes = (1..=4).flat_map(|dimensions| sides(dimensions, SIDE, RANKS));
    let small = shapes.flat_map(|sides| ["torus", "mesh"].map(|kind| named(kind, &sides)));
    small.chain(LARGE.map(str::to_owned)).collect()
}

/// The line of a machine in the table, and the algorithms of its points.
fn line(text: &str) -> (String, Vec<String>) {
    let machine = machine(text).unwrap();
    let problem = Problem::new(Collective::AllToAll, machine.ranks(), 1, BYTES).unwrap();
    let front = front(&machine, &problem, &[]).unwrap();
    let mut line = format!("| `{text}` |");
    let (mut shown, end) = (f64::INFINITY, front.points.last().map(|point| point.price.steps));
    for point in &front.points {
        let (steps, volume) = (point.price.steps, point.price.link_blocks);
        let gains = volume < shown && (volume <= shown * LEAST_GAIN || Some(steps) == end);
        if !gains {
            continue;
        }
        shown = volume;
        let bound = front.bound.link_blocks_in(steps).unwrap_or(front.bound.link_blocks);
        // A thousandth of a block is more than rounding.
        let volume = (volume * 1e3).round() / 1e3;
        write!(line, " {steps}/{volume} ({:.2})", volume / bound).unwrap();
    }
    let algorithms = front.points.iter().map(|point| point.algorithm.clone()).collect();
    (line + " |", algorithms)
}

/// The lines of the files of an algorithm.
fn lines_of_code(name: &str) -> usize {
    fn count(path: &Path) -> usize {
        if !path.is_dir() {
            return std::fs::read_to_string(path).map_or(0, |text| text.lines().count());
        }
        std::fs::read_dir(path).unwrap().map(|entry| count(&entry.unwrap().path())).sum()
    }
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/algorithms/src/alltoall");
    let name = name.replace('-', "_");
    count(&home.join(&name)) + count(&home.join(format!("{name}.rs")))
}

fn page(lines: &[(String, Vec<String>)]) -> String {
    let mut page = format!(
        "# Steps and volume of all machines\n\n\
         For each torus and mesh of up to {RANKS} ranks with sides of at least {SIDE}, in ascending order, and some\n\
         larger ones: the Pareto front of steps and charged volume of an all-to-all by one port. A point is the steps,\n\
         the charged volume in blocks, and its ratio to the least volume of all schedules with no more steps\n\
         ([proofs](proofs.md#volume-in-a-number-of-steps)). Points that save less than 3 % of the volume of\n\
         the one before are left out, but for the last. `topocoll sweep MACHINE --front --block {BYTES}`\n\
         names the schedules. The page is made by\n\n\
         ```sh\n\
         BOOK=overwrite cargo test --test claims fronts::\n\
         ```\n\n\
         ## The algorithms side by side\n\n\
         The lines of each algorithm's files, and the machines below that have it on their front.\n\n\
         | algorithm | lines | machines |\n|---|--:|--:|\n"
    );
    let mut machines: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, algorithms) in lines {
        let mut named: Vec<&str> = algorithms.iter().map(String::as_str).collect();
        named.sort_unstable();
        named.dedup();
        named.into_iter().for_each(|name| *machines.entry(name).or_default() += 1);
    }
    let mut machines: Vec<_> = machines.into_iter().collect();
    machines.sort_by_key(|&(_, number)| std::cmp::Reverse(number));
    for (name, number) in machines {
        writeln!(page, "| `{name}` | {} | {number} |", lines_of_code(name)).unwrap();
    }
    page += "\n## The machines\n\n| machine | steps/volume (of the bound) |\n|---|---|\n";
    lines.iter().for_each(|(line, _)| page += &format!("{line}\n"));
    page
}

#[test]
fn the_fronts_are_those_of_the_book() {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/fronts.md");
    let machines = machines();
    if std::env::var("BOOK").is_ok_and(|book| book == "overwrite") {
        let lines: Vec<_> = machines.par_iter().map(|text| line(text)).collect();
        std::fs::write(&path, page(&lines)).unwrap();
        return;
    }
    let book = std::fs::read_to_string(&path).unwrap();
    let all: Vec<&str> = book
        .lines()
        .filter(|line| line.starts_with("| `torus:") || line.starts_with("| `mesh:"))
        .collect();
    let named: Vec<&str> = all.iter().map(|line| line.split('`').nth(1).unwrap()).collect();
    assert_eq!(named, machines, "the machines of the book");
    all.par_iter().step_by(SAMPLE).for_each(|known| {
        let text = known.split('`').nth(1).unwrap();
        assert_eq!(line(text).0, **known, "BOOK=overwrite makes the page anew");
    });
}
