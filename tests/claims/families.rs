//! Whole families of machines under every algorithm that applies: delivery, ports, conflicts, claims and
//! bounds.
//!
//! The tests take a seeded sample of each family. `TOPOCOLL_SWEEP=MINUTES` goes on for that time in a seeded
//! order, `TOPOCOLL_SWEEP=3/100` takes the third of 100 parts, `TOPOCOLL_SWEEP=all` takes all. With
//! `--nocapture` the tests print the number of schedules.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::common::{algorithms, all_settings, check_promises, problem};
use rayon::prelude::*;
use topocoll::{Algorithm, Machine, Method, Parameters, Problem, Request, Setting, machine};

/// Machines of a family in a sample.
const SAMPLE: usize = 24;

/// Ranks of the machines of a sample, at most.
const SAMPLE_RANKS: u32 = 144;

/// How much of a family is checked.
enum Effort {
    Sample,
    Until(Instant),
    /// A part, from 0, and the number of parts.
    Part(usize, usize),
}

fn effort(families: u32) -> Effort {
    let rule = "TOPOCOLL_SWEEP is minutes, a part such as 3/100, or `all`";
    let Ok(text) = std::env::var("TOPOCOLL_SWEEP") else { return Effort::Sample };
    if text == "all" {
        return Effort::Part(0, 1);
    }
    if let Some((part, of)) = text.split_once('/') {
        let [part, of] = [part, of].map(|number| number.parse().expect(rule));
        assert!((1..=of).contains(&part), "{rule}");
        return Effort::Part(part - 1, of);
    }
    let minutes: u64 = text.parse().expect(rule);
    Effort::Until(Instant::now() + Duration::from_secs(60 * minutes) / families)
}

/// Families run one at a time, so that each has all threads for its minutes.
static ONE_BY_ONE: Mutex<()> = Mutex::new(());

/// Whether no two ranks of a schedule are equivalent.
fn unlike(
    algorithm: &dyn Algorithm,
    problem: &Problem,
    machine: &Machine,
    setting: &Parameters,
) -> bool {
    let schedule = Request::new(problem, &*machine.topology)
        .solve(algorithm, setting)
        .map(|s| s.schedule)
        .unwrap();
    schedule.rule().classes().count() == machine.ranks()
}

/// Checks every algorithm that applies, with the radices that the family names; by classes only where
/// some ranks are equivalent.
fn check(machine: &Machine, method: Method) -> u32 {
    let ranks = u64::from(machine.ranks());
    let mut schedules = 0;
    for algorithm in algorithms() {
        let problem = problem(machine, algorithm.info().operation, 3);
        for setting in all_settings(algorithm, &problem, &*machine.topology) {
            let named = |radix: u64| radix <= 8 || radix == ranks || radix == ranks.isqrt();
            match setting.get("radix") {
                Some(&Setting::Integer(radix)) if !named(radix) => {}
                _ if method == Method::Classes
                    && unlike(algorithm, &problem, machine, &setting) => {}
                _ => {
                    check_promises(machine, algorithm, &problem, &setting, method);
                    schedules += 1;
                }
            }
        }
    }
    schedules
}

/// Checks the machines of a family, up to the effort.
fn sweep(family: &str, mut machines: Vec<(String, u32)>, method: Method) {
    let turn = ONE_BY_ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (start, effort) = (Instant::now(), effort(FAMILIES));
    let parsed = |(text, ports): &(String, u32)| {
        let mut machine = machine(text).unwrap();
        machine.set_ports(*ports);
        machine
    };
    let all = machines.len();
    fastrand::Rng::with_seed(20_260_101).shuffle(&mut machines);
    match effort {
        Effort::Sample => {
            machines.retain(|text| parsed(text).ranks() <= SAMPLE_RANKS);
            machines.truncate(SAMPLE);
        }
        Effort::Part(part, of) => machines = machines.into_iter().skip(part).step_by(of).collect(),
        Effort::Until(_) => {}
    }
    let visited = AtomicU32::new(0);
    let schedules: u32 = (machines.par_iter())
        .filter(|_| !matches!(effort, Effort::Until(end) if Instant::now() > end))
        .map(|text| {
            visited.fetch_add(1, Ordering::Relaxed);
            check(&parsed(text), method)
        })
        .sum();
    drop(turn);
    let visited = visited.into_inner();
    println!(
        "{family}: {schedules} schedules on {visited} of {all} machines by {}, {:.0} s",
        method.name(),
        start.elapsed().as_secs_f64()
    );
    assert!(visited > 0 && schedules >= visited, "{family}: {schedules} on {visited}");
}

/// Number of families, which share the minutes.
const FAMILIES: u32 = 5;

/// Grids of two sides, of which each wraps or does not.
fn of_two_sides(sides: std::ops::RangeInclusive<u32>) -> Vec<(String, u32)> {
    let pairs = sides.clone().flat_map(move |a| sides.clone().map(move |b| (a, b)));
    let grids = pairs.flat_map(|(a, b)| {
        [("", ""), ("", "~"), ("~", ""), ("~", "~")]
            .map(|(first, second)| (format!("grid:{a}{first}x{b}{second}"), 1))
    });
    grids.collect()
}

#[test]
fn grids_of_two_sides_up_to_24_by_replay() {
    sweep("grids of two sides up to 24", of_two_sides(1..=24), Method::Replay);
}

#[test]
fn grids_of_two_sides_up_to_64_by_classes() {
    sweep("grids of two sides up to 64", of_two_sides(1..=64), Method::Classes);
}

#[test]
fn grids_of_three_sides_up_to_512_ranks() {
    let mut grids = Vec::new();
    for a in 1..=8u32 {
        for b in a..=512 / a {
            for c in b..=512 / (a * b) {
                grids.push((format!("torus:{a}x{b}x{c}"), 1));
                grids.push((format!("mesh:{a}x{b}x{c}"), 1));
            }
        }
    }
    sweep("grids of three sides up to 512 ranks", grids, Method::Replay);
}

#[test]
fn complete_graphs_up_to_1024_ranks_with_up_to_8_ports() {
    let machines = (1..=1024).flat_map(|n| (1..=8).map(move |k| (format!("full:{n}"), k)));
    sweep("complete graphs up to 1024 ranks", machines.collect(), Method::Replay);
}

/// Calls `each` with every partition of `ranks` into sizes, each at most the one before.
fn partitions(ranks: u32, largest: u32, sizes: &mut Vec<u32>, each: &mut impl FnMut(&[u32])) {
    if ranks == 0 {
        return each(sizes);
    }
    for size in 1..=largest.min(ranks) {
        sizes.push(size);
        partitions(ranks - size, size, sizes, each);
        sizes.pop();
    }
}

#[test]
fn clusters_of_all_sizes_up_to_32_ranks() {
    let mut machines = Vec::new();
    for ranks in 1..=32 {
        partitions(ranks, ranks, &mut Vec::new(), &mut |sizes| {
            let sizes: Vec<_> = sizes.iter().map(ToString::to_string).collect();
            machines.push((format!("cluster:{}", sizes.join(",")), 1));
        });
    }
    sweep("clusters up to 32 ranks", machines, Method::Replay);
}
