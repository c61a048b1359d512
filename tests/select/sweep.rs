//! Sweeps over block sizes equal selection at each size and price formulas as printed. The Pareto front
//! of startups and volume leaves out beaten settings only.

use common::{algorithms, all_settings, exchange, find, front, schedule_of, select, sweep};
use topocoll::{
    Algorithm, Choice, Collective, Machine, PUBLISHED, Parameters, Priced, Request, Setting, Sweep,
    count, machine,
};

const MEMORY: u128 = 1 << 30;

/// Equal but for rounding: prices are multiplied by block sizes.
pub(crate) fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
}

/// A machine on which every term counts.
fn paragon(text: &str, ports: u32) -> Machine {
    let mut on = machine(text).unwrap();
    on.timing = machine("paragon-16x16").unwrap().timing;
    on.set_ports(ports);
    on
}

fn swept(text: &str, operation: Collective, ports: u32, sizes: &[u64]) -> Sweep {
    let machine = paragon(text, ports);
    let problem = common::problem(&machine, operation, 1);
    sweep(&machine, &problem, sizes, &[]).unwrap()
}

#[test]
fn every_line_has_its_best_setting_at_every_size() {
    let sizes = [1, 3, 100, 4096];
    for (text, ports) in
        [("torus:8x4", 1), ("mesh:4x6", 1), ("full:14", 3), ("cluster:2,3", 1), ("full:30", 2)]
    {
        for operation in [Collective::AllToAll, Collective::AllGather] {
            let found = swept(text, operation, ports, &sizes);
            let machine = paragon(text, ports);
            for (i, &bytes) in sizes.iter().enumerate() {
                let problem = common::problem(&machine, operation, bytes);
                let of_lines = found.lines.iter().map(|line| line.points[i].price.time.total());
                let least = of_lines.fold(f64::INFINITY, f64::min);
                for line in &found.lines {
                    let algorithm = find(&line.algorithm).unwrap();
                    let times = all_settings(algorithm, &problem, &*machine.topology)
                        .into_iter()
                        .map(|setting| {
                            let schedule =
                                schedule_of(&machine, &problem, &line.algorithm, &setting).unwrap();
                            count(&schedule, &machine, None, MEMORY).unwrap().time.total()
                        });
                    let best = times.fold(f64::INFINITY, f64::min);
                    let point = &line.points[i];
                    let place = format!("{} on {text} at {bytes} bytes", line.algorithm);
                    let time = point.price.time.total();
                    let on_view =
                        ["axes", "ties"].iter().any(|name| point.parameters.contains_key(*name));
                    // Settings that cannot win are not searched for.
                    let searched = Request::new(&problem, &*machine.topology)
                        .search(algorithm, &Parameters::new())
                        .is_some_and(|_| 0.98 * least <= best);
                    assert!(near(time, best) || time < best && on_view || searched, "{place}");
                    let schedule =
                        schedule_of(&machine, &problem, &line.algorithm, &point.parameters)
                            .unwrap();
                    let counted = count(&schedule, &machine, None, MEMORY).unwrap();
                    assert!(near(point.price.time.total(), counted.time.total()), "{place}");
                    assert_eq!(point.price.steps, counted.steps, "{place}");
                }
            }
        }
    }
}

#[test]
fn exactly_the_algorithms_that_split_blocks_are_found() {
    let sizes = [1, 64, 1000];
    let split = |operation, ports| swept("full:14", operation, ports, &sizes).split;
    assert_eq!(split(Collective::AllGather, 3), ["concat"]);
    assert!(split(Collective::AllGather, 1).is_empty());
    assert!(split(Collective::AllToAll, 3).is_empty());
}

#[test]
fn the_fastest_changes_exactly_at_the_crossovers() {
    for text in ["torus:8x8", "mesh:8x8", "full:64"] {
        let machine = paragon(text, 1);
        let problem = common::problem(&machine, Collective::AllToAll, 1);
        let fastest = |bytes| {
            let mut at = problem;
            at.block_bytes = bytes;
            let best = select(&machine, &at).choices.swap_remove(0);
            (best.algorithm, best.price.steps)
        };
        let whole = sweep(&machine, &problem, &[1, 1 << 20], &[]).unwrap();
        assert!(whole.crossovers.len() > 1, "{text}");
        for pair in whole.crossovers.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            assert_eq!(fastest(after.block_bytes).0, after.algorithm, "{text}");
            assert_eq!(fastest(after.block_bytes - 1).0, before.algorithm, "{text}");
            // A range that starts in between starts with the fastest choice there.
            let inner = sweep(&machine, &problem, &[after.block_bytes + 1, 1 << 20], &[]).unwrap();
            assert_eq!(inner.crossovers[0].algorithm, after.algorithm);
            assert_eq!(inner.crossovers[0].block_bytes, after.block_bytes + 1);
        }
    }
}

#[test]
fn each_request_makes_a_line() {
    let machine = machine("sp1-64").unwrap();
    let problem = common::problem(&machine, Collective::AllToAll, 1);
    let radix = |r| Parameters::from([("radix".to_owned(), Setting::Integer(r))]);
    let asked = [2, 64].map(|r| ("bruck".to_owned(), radix(r)));
    let found = sweep(&machine, &problem, &[1, 1 << 20], &asked).unwrap();
    assert_eq!(found.lines.len(), 2);
    assert!(found.lines.iter().all(|line| line.points.iter().all(|p| p.parameters == line.given)));
    let crossing: Vec<_> =
        found.crossovers.iter().map(|c| (c.block_bytes, &c.parameters)).collect();
    assert_eq!(crossing, [(1, &radix(2)), (107, &radix(64))]);
}

#[test]
fn formulas_are_priced_term_by_term() {
    let machine = machine("paragon-16x16").unwrap();
    let problem = common::problem(&machine, Collective::AllToAll, 100);
    let row = PUBLISHED.iter().find(|row| row.name == "suh-yalamanchili").unwrap();
    let counts = row.counts(&problem, &*machine.topology).unwrap();
    let price = counts.price(&machine, &problem);
    // d = 4: 9 startups, 2176 blocks, 37 hops, 2176 blocks rearranged, 8 barriers of 895 us.
    let (blocks, time) = (2176.0 * 100.0, price.time);
    for (found, expected) in [
        (time.startup, 9.0 * 75e-6),
        (time.transmission, blocks * 0.011e-6),
        (time.propagation, 37.0 * 0.02e-6),
        (time.rearrangement, blocks * 0.014e-6),
        (time.barrier, 8.0 * 895e-6),
    ] {
        assert!(near(found, expected), "{found} {expected}");
    }
    assert_eq!((price.priced, price.steps, price.blocks), (Priced::Published, 9, 2176.0));
}

#[test]
fn formulas_are_swept_and_never_selected_or_planned() {
    for text in ["torus:16x16", "mesh:16x16"] {
        let machine = machine(text).unwrap();
        let problem = common::problem(&machine, Collective::AllToAll, 64);
        let found = sweep(&machine, &problem, &[64], &[]).unwrap();
        let (formulas, rejected) = exchange(&machine, &problem).published(&[64]);
        assert_eq!((formulas.len(), rejected.len()), (2, 1), "{text}");
        assert!(found.crossovers.iter().all(|fastest| !fastest.published));
        let direct = [("direct".to_owned(), Parameters::new())];
        let direct = sweep(&machine, &problem, &[64], &direct).unwrap();
        assert!(direct.crossovers_with(&formulas).iter().all(|fastest| fastest.published));
        let selection = select(&machine, &problem);
        assert!(selection.choices.iter().all(|c| c.price.priced != Priced::Published), "{text}");
    }
    for row in PUBLISHED {
        assert!(find(row.name).is_err(), "{}: a formula and a schedule share a name", row.name);
    }
}

#[test]
fn the_pareto_front_is_unbeaten() {
    for text in ["torus:8x8", "mesh:4x6", "full:21", "cluster:2,3", "torus:64x64x64", "torus:1"] {
        let machine = machine(text).unwrap();
        let problem = common::problem(&machine, Collective::AllToAll, 64);
        let found = front(&machine, &problem, &[]).unwrap();
        let beats = |one: &Choice, other: &Choice| {
            let at = |choice: &Choice| (choice.price.steps, choice.price.link_blocks);
            let (one_at, other_at) = (at(one), at(other));
            one.price.priced == Priced::Exactly
                && one_at.0 <= other_at.0
                && one_at.1 <= other_at.1
                && one_at != other_at
        };
        let all = || found.points.iter().chain(&found.undecided).chain(&found.beaten);
        let beaten = |choice: &Choice| all().any(|other| beats(other, choice));
        for choice in found.points.iter().chain(&found.undecided) {
            assert!(!beaten(choice), "{text}: {choice:?}");
        }
        for choice in &found.beaten {
            assert!(found.points.iter().any(|point| beats(point, choice)), "{text}: {choice:?}");
        }
        assert!(found.points.iter().all(|choice| choice.price.priced != Priced::AtLeast));
        assert!(found.undecided.iter().all(|choice| choice.price.priced == Priced::AtLeast));
        // The curve of least volumes falls from the fewest steps to the most, below all settings.
        let curve = found.least_volumes();
        assert_eq!(curve.first().map(|first| first.0), Some(found.bound.steps), "{text}");
        assert_eq!(curve.last().map(|last| last.0), all().map(|c| c.price.steps).max(), "{text}");
        assert!(curve.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 >= two[1].1), "{text}");
        for choice in all().filter(|choice| choice.price.priced == Priced::Exactly) {
            let (_, least) = *curve.iter().find(|(steps, _)| *steps >= choice.price.steps).unwrap();
            assert!(choice.price.link_blocks >= least - 1e-9, "{text}: {choice:?} {least}");
        }
        // Drawn from point to point, it is above no schedule of the steps between.
        for two in curve.windows(2) {
            let least = found.bound.link_blocks_in(two[1].0 - 1).unwrap_or(two[0].1);
            assert!(two[0].1 <= least, "{text}: {two:?} {least}");
        }
        // Nothing is left out but searches.
        let request = Request::new(&problem, &*machine.topology);
        let is_rule = |one: &&dyn Algorithm| request.search(*one, &Parameters::new()).is_none();
        let settings = algorithms().filter(is_rule).flat_map(|algorithm| {
            let settings = all_settings(algorithm, &problem, &*machine.topology);
            settings.into_iter().map(|setting| (algorithm.info().name.clone(), setting))
        });
        for (name, setting) in settings {
            let there = all().any(|c| c.algorithm == name && c.parameters == setting);
            let partly = found.partly_priced.iter().any(|partly| partly.algorithm == name);
            assert!(there || partly, "{name} {setting:?} on {text}");
        }
    }
}
