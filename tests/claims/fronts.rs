//! `validation/fronts.txt` holds the points of steps and volume of all tori and meshes of some sizes, and
//! `docs/src/fronts.md` says what they are.

use std::fmt::Write as _;
use std::path::Path;

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

const FILE: &str = "validation/fronts.txt";

/// A multiple of the parts into which blocks are cut.
const BYTES: u64 = 1536;

/// The volume of a point over that of the one before, at most, unless it is the last.
const LEAST_GAIN: f64 = 0.97;

/// Machines of which one is looked at in the short test.
const SAMPLE: usize = 120;

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

/// The line of a machine.
fn line(text: &str) -> String {
    let machine = machine(text).unwrap();
    let problem = Problem::new(Collective::AllToAll, machine.ranks(), 1, BYTES).unwrap();
    let front = front(&machine, &problem, &[]).unwrap();
    let mut line = text.to_owned();
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
    line
}

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap()
}

/// Checks every so manyth line.
fn check(every: usize) {
    let file = read(FILE);
    let lines: Vec<&str> = file.lines().collect();
    let named: Vec<&str> = lines.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(named, machines(), "the machines of {FILE}");
    lines.par_iter().zip(&named).step_by(every).for_each(|(known, text)| {
        assert_eq!(line(text), **known, "FRONTS=overwrite makes the file anew");
    });
}

#[test]
fn some_fronts_are_those_of_the_file() {
    check(SAMPLE);
    // The examples of the book.
    let book = read("docs/src/fronts.md");
    let examples =
        book.lines().filter(|line| line.starts_with("torus:") || line.starts_with("mesh:"));
    let file = read(FILE);
    let known = examples.map(|line| assert!(file.lines().any(|known| known == line), "{line}"));
    assert_eq!(known.count(), 3);
}

#[test]
#[ignore = "some minutes"]
fn all_fronts_are_those_of_the_file() {
    if std::env::var("FRONTS").is_ok_and(|fronts| fronts == "overwrite") {
        let lines: Vec<_> = machines().par_iter().map(|text| line(text) + "\n").collect();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(FILE);
        return std::fs::write(path, lines.concat()).unwrap();
    }
    check(1);
}
