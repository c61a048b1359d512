//! Rankings of what runs: no choice of the table is better by the larger of its times in step and without
//! barriers.

use common::{MEMORY, exchange, reach, schedule_of, with_ports};
use rayon::prelude::*;
use topocoll::contention::{AllToAll, MAX_VCS, Request, Scheduled, Sync, in_seconds, simulate};
use topocoll::{
    AnalysisError, Choice, Collective, Exchange, Machine, Parameters, Problem, Selection, machine,
};

use crate::simulated::model;
use crate::unbeaten::drawn;

fn of(machine: &Machine, block_bytes: u64) -> Problem {
    Problem::new(Collective::AllToAll, machine.ranks(), machine.ports, block_bytes).unwrap()
}

fn select(machine: &Machine, block_bytes: u64) -> Selection {
    exchange(machine, &of(machine, block_bytes)).select().unwrap()
}

/// Seconds without barriers, with as many virtual channels as the routes require.
pub(crate) fn free(
    machine: &Machine,
    problem: &Problem,
    name: &str,
    given: &Parameters,
    by: &str,
) -> f64 {
    let schedule = schedule_of(machine, problem, name, given).unwrap();
    let traffic = Scheduled::new(&schedule, machine);
    let mut request = Request::new(&traffic, machine, model(by), MEMORY);
    loop {
        match simulate(&request) {
            Ok(found) if found.deadlock.is_empty() => return in_seconds(found.time),
            Ok(_) => return f64::INFINITY,
            Err(AnalysisError::VirtualChannels { required, .. }) if required <= MAX_VCS => {
                request.settings.vcs = required;
            }
            Err(error) => panic!("{name} {given:?}: {error}"),
        }
    }
}

fn set(given: &[(&str, &str)]) -> Parameters {
    given.iter().map(|&(name, value)| (name.to_owned(), value.into())).collect()
}

fn near(found: f64, seconds: f64) -> bool {
    (found / seconds - 1.0).abs() < 1e-3
}

/// By machine, ports and bytes: the best choice, and its times in step and without barriers.
#[test]
fn the_time_of_what_runs_decides() {
    let cases: [(_, _, _, _, &[_], _, _); 3] = [
        ("torus:16x16", 1, 1 << 10, "strided-rings", &[("last", "all")], 684.8e-6, 682.4e-6),
        ("mesh:8x8", 1, 1 << 10, "coloured-rings", &[("landing", "windows")], 271.2e-6, 271.2e-6),
        ("torus:4x4x4", 2, 1 << 20, "pairwise-xor", &[("ties", "balanced")], 64.00e-3, 64.00e-3),
    ];
    for (text, ports, bytes, name, given, in_step, running) in cases {
        let found = select(&with_ports(text, ports), bytes);
        let best = found.best().unwrap();
        assert_eq!(best.algorithm, name, "{text}");
        let has = |(name, value): (&String, _)| best.parameters.get(name) == Some(value);
        assert!(set(given).iter().all(has), "{text}: {:?}", best.parameters);
        assert_eq!(found.without_barriers.as_ref().unwrap().model, "wormhole");
        let runs = best.free_running.unwrap().seconds;
        assert!(near(best.price.time.total(), in_step) && near(runs, running), "{text}: {best:?}");
    }
}

/// The fastest in step, and what it takes without barriers by fluid and by wormhole.
#[test]
fn the_fastest_in_step_may_run_slowly() {
    let parts = [("share", "parts")];
    let cases: [(_, _, _, _, &[_], _); 2] = [
        ("torus:16x16", 1, 1 << 10, "strided-rings", &parts, [609.1e-6, 602.7e-6, 1.485e-3]),
        ("torus:4x4x4", 2, 1 << 20, "link-matchings", &[], [36.74e-3, 71.46e-3, 94.88e-3]),
    ];
    for (text, ports, bytes, name, given, [in_step, fluid, wormhole]) in cases {
        let machine = with_ports(text, ports);
        let (problem, found) = (of(&machine, bytes), select(&machine, bytes));
        let apart = found.in_step().unwrap();
        let fastest = &found.choices[apart.choice];
        assert_eq!(fastest.algorithm, name);
        let steps = fastest.price.steps - 1;
        let with_barriers = fastest.price.time.total() + apart.barrier * steps as f64;
        assert!(near(with_barriers, found.best().unwrap().ranked_seconds()), "{text}: {apart:?}");
        assert!(near(fastest.price.time.total(), in_step), "{text}: {fastest:?}");
        for (by, seconds) in [("fluid", fluid), ("wormhole", wormhole)] {
            let runs = free(&machine, &problem, name, &set(given), by);
            assert!(near(runs, seconds), "{text} {by}: {runs}");
        }
    }
    let machine = with_ports("torus:4x4x4", 2);
    let together = Parameters::from([("together".to_owned(), 16.into())]);
    for by in ["fluid", "wormhole"] {
        let runs = free(&machine, &of(&machine, 1 << 20), "product", &together, by);
        assert!(near(runs, 71.32e-3), "{by}: {runs}");
    }
}

/// On `torus:8x8` it would stand still with datelines.
#[test]
fn links_have_the_virtual_channels_that_routes_require() {
    for (text, required) in [("dragonfly:2,4,2", 3), ("torus:8x8", 4), ("torus:4x4", 2)] {
        let machine = machine(text).unwrap();
        let problem = of(&machine, 1 << 20);
        let schedule = schedule_of(&machine, &problem, "link-matchings", &set(&[])).unwrap();
        let traffic = Scheduled::new(&schedule, &machine);
        let mut request = Request::new(&traffic, &machine, model("wormhole"), MEMORY);
        request.vcs_as_required = true;
        let alone = simulate(&request).unwrap();
        assert!(alone.deadlock.is_empty(), "{text}");
        assert_eq!(alone.virtual_channels, required, "{text}");
        let found = select(&machine, 1 << 20);
        let searched = found.choices.iter().filter(|one| one.algorithm == "link-matchings");
        for run in searched.filter_map(|one| one.free_running) {
            assert_eq!(run.virtual_channels, required, "{text}");
        }
    }
}

#[test]
fn all_messages_at_once_have_a_time_of_their_own() {
    let machine = machine("torus:16x16").unwrap();
    let traffic = AllToAll::new(&machine, 1 << 10, MEMORY).unwrap();
    let alone = simulate(&Request::new(&traffic, &machine, model("fluid"), MEMORY)).unwrap();
    let found = select(&machine, 1 << 10).all_at_once.unwrap();
    assert!(near(found, 590.9e-6) && found == in_seconds(alone.time), "{found}");
    // Where the ports allow it, it is a schedule of one step.
    let all = with_ports("torus:4x4", 15);
    let one = select(&all, 1 << 10);
    assert!(
        one.choices.iter().any(|choice| choice.algorithm == "direct" && choice.price.steps == 1)
    );
}

/// With a barrier that costs, on request, and without links.
#[test]
fn ranks_in_step_are_ranked_in_step() {
    let in_step = |exchange: &Exchange<'_>| {
        let found = exchange.select().unwrap();
        let time = |choice: &Choice| choice.price.time.total();
        assert_eq!((found.without_barriers, found.all_at_once), (None, None));
        assert!(found.choices.iter().all(|choice| choice.free_running.is_none()));
        assert!(found.choices.is_sorted_by(|a, b| time(a) <= time(b)));
    };
    for text in ["paragon-16x16", "full:12", "cluster:4*3"] {
        let machine = machine(text).unwrap();
        in_step(&exchange(&machine, &of(&machine, 1 << 10)));
    }
    let machine = machine("torus:4x4").unwrap();
    in_step(&exchange(&machine, &of(&machine, 1 << 10)).sync(Sync::Barrier));
}

/// At powers of 2 the best of what runs is that of a selection there.
#[test]
fn what_changes_at_other_sizes_is_marked() {
    let mut changes = 0;
    for (text, ports) in [("mesh:4x4", 2), ("torus:3x4", 1)] {
        let machine = with_ports(text, ports);
        let found = select(&machine, 1 << 10);
        changes += found.crossovers.iter().map(|one| one.changes.len()).sum::<usize>();
        for fastest in &found.crossovers {
            let sizes = (6..=20).map(|power| 1 << power);
            let next = found.crossovers.iter().map(|one| one.block_bytes);
            let next = next.filter(|&from| from > fastest.block_bytes).min().unwrap_or(u64::MAX);
            for bytes in sizes.filter(|&bytes| fastest.block_bytes <= bytes && bytes < next) {
                let there = select(&machine, bytes);
                let best = there.best().unwrap().ranked_seconds();
                let is = |choice: &&Choice| {
                    (&choice.algorithm, &choice.parameters)
                        == (&fastest.algorithm, &fastest.parameters)
                };
                let own = there.choices.iter().find(is).unwrap().ranked_seconds();
                assert_eq!(fastest.changes.contains(&bytes), own > best, "{text} {bytes}");
            }
        }
    }
    assert!(changes > 0);
}

fn check(seed: u64, most: u32) {
    let mut random = fastrand::Rng::with_seed(seed);
    let Some(mut machine) = drawn(&mut random, most).filter(|one| one.ranks() > 1) else { return };
    let ports = random.u32(1..=4).min(machine.ranks() - 1);
    machine.set_ports(ports);
    let bytes = 1 << random.u32(6..=20);
    let (problem, found) = (of(&machine, bytes), select(&machine, bytes));
    let place = format!("{} {ports} ports {bytes} B", machine.name);
    let (Some(best), Some(runs)) = (found.best(), &found.without_barriers) else {
        assert_eq!(machine.topology.links(), 0, "{place}: not simulated");
        return;
    };
    let time = |choice: &Choice| choice.price.time.total();
    let least = found.choices.iter().map(time).fold(f64::INFINITY, f64::min);
    for choice in found.choices.iter().filter(|choice| time(choice) <= 2.0 * least) {
        let seconds = free(&machine, &problem, &choice.algorithm, &choice.parameters, runs.model);
        if let Some(run) = choice.free_running {
            assert!(near(run.seconds, seconds), "{place}: {choice:?}");
        }
        let runs = seconds.max(time(choice));
        assert!(best.ranked_seconds() <= 1.01 * runs, "{place}: {choice:?} takes {runs}");
    }
}

#[test]
fn no_choice_of_the_table_runs_faster_than_the_answer() {
    let (cases, most) = reach((20, 32), (200, 128));
    (0..cases).into_par_iter().for_each(|seed| check(seed, most));
}
