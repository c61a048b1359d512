//! Selection: the right one first, nothing unbeaten left out, crossovers where they are.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::{MEMORY, machines_and_ports};
use rayon::prelude::*;
use topocoll::{
    Choice, Collective, Machine, PerClass, Priced, Problem, Setting, Time, best_bounds, count,
    machine, plan, select,
};

fn of<'c>(choices: &'c [Choice], algorithm: &str, radix: u64) -> &'c Choice {
    let is = |choice: &&Choice| {
        choice.algorithm == algorithm
            && choice.parameters.get("radix") == Some(&Setting::Integer(radix))
    };
    choices.iter().find(is).unwrap()
}

#[test]
fn radix_2_and_radix_64_cross_at_107_bytes_on_the_sp1() {
    let machine = machine("sp1-64").unwrap();
    for (block_bytes, two_wins) in [(106, true), (107, false)] {
        let problem = Problem::new(Collective::AllToAll, 64, 1, block_bytes).unwrap();
        let selection = select(&machine, &problem);
        let time = |radix| of(&selection.choices, "bruck", radix).price.time.total();
        assert_eq!(time(2) < time(64), two_wins, "{block_bytes} bytes");
        // By hand: 6 x 29 us + 192 x 0.12 us a byte; 63 x 29 us + 63 x 0.12 us a byte.
        let bytes = block_bytes as f64;
        assert!((time(2) - (6.0 * 29e-6 + 192.0 * 0.12e-6 * bytes)).abs() < 1e-12);
        assert!((time(64) - (63.0 * 29e-6 + 63.0 * 0.12e-6 * bytes)).abs() < 1e-12);
        let extremes = selection
            .extremes
            .iter()
            .find(|e| selection.choices[e.fewest_steps].algorithm == "bruck");
        assert_eq!(extremes.unwrap().block_bytes, 107);
    }
}

#[test]
fn choices_are_ranked_priced_right_and_unbeaten() {
    for machine in machines_and_ports().into_iter().filter(|machine| machine.ranks() <= 512) {
        let problem = common::problem(&machine, Collective::AllToAll, 100);
        let selection = select(&machine, &problem);
        let times: Vec<f64> =
            selection.choices.iter().map(|choice| choice.price.time.total()).collect();
        assert!(times.is_sorted(), "{}", machine.name);
        assert!(
            times
                .iter()
                .all(|&time| time >= best_bounds(&problem, &machine).seconds * (1.0 - 1e-12)),
            "{}",
            machine.name
        );
        for (i, choice) in selection.choices.iter().enumerate().step_by(7) {
            assert_eq!(choice.price.priced, Priced::Exactly, "{}", machine.name);
            let schedule = plan(&machine, &problem, choice.algorithm, &choice.parameters).unwrap();
            let counts = count(&schedule, &machine, MEMORY).unwrap();
            assert_eq!(
                (counts.time, counts.steps),
                (choice.price.time, choice.price.steps),
                "{}",
                machine.name
            );
            // The best of its algorithm, or beaten by none in both measures.
            let first =
                selection.choices.iter().position(|other| other.algorithm == choice.algorithm)
                    == Some(i);
            let beats = |other: &Choice| {
                other.price.steps < choice.price.steps
                    && other.price.link_blocks < choice.price.link_blocks
            };
            assert!(first || !selection.choices.iter().any(beats), "{}: {choice:?}", machine.name);
        }
    }
}

#[test]
fn every_setting_that_none_beats_in_both_measures_is_listed() {
    for text in ["full:16", "full:21", "torus:4x4", "mesh:3x4"] {
        let machine = machine(text).unwrap();
        let problem = common::problem(&machine, Collective::AllToAll, 100);
        let listed = select(&machine, &problem).choices;
        let mut priced = Vec::new();
        for algorithm in topocoll::ALGORITHMS {
            for setting in algorithm.settings(&problem, &*machine.topology) {
                let schedule = plan(&machine, &problem, algorithm.name(), &setting).unwrap();
                let counts = count(&schedule, &machine, MEMORY).unwrap();
                priced.push((algorithm.name(), setting, counts.steps, counts.link_bytes));
            }
        }
        for (name, setting, steps, bytes) in &priced {
            let beaten = priced.iter().any(|(_, _, s, b)| s < steps && b < bytes);
            let found = listed.iter().any(|c| c.algorithm == *name && c.parameters == *setting);
            assert!(beaten || found, "{name} {setting:?} on {text}");
        }
    }
}

#[test]
fn the_fastest_by_block_size_is_what_selection_at_that_size_picks() {
    for text in ["sp1-64", "paragon-16x16", "torus:8x8", "mesh:4x4", "cluster:2,3"] {
        let machine = machine(text).unwrap();
        let at = |block_bytes| {
            let problem =
                Problem::new(Collective::AllToAll, machine.ranks(), machine.ports, block_bytes)
                    .unwrap();
            select(&machine, &problem)
        };
        for crossover in at(1000).crossovers {
            let named = &at(1000).choices[crossover.choice];
            let picked = at(crossover.block_bytes);
            let time = |c: &Choice| c.price.time.total();
            let same = picked
                .choices
                .iter()
                .find(|c| (c.algorithm, &c.parameters) == (named.algorithm, &named.parameters));
            assert!(
                time(same.unwrap()) <= time(&picked.choices[0]) * (1.0 + 1e-9),
                "{text} at {}",
                crossover.block_bytes
            );
        }
    }
}

/// Where several settings become faster at one size, and small startups make lines cross there.
#[test]
fn crossovers_within_a_byte_name_the_fastest_of_each_size() {
    for (text, startup) in [("full:64", 20e-9), ("full:100", 5e-9), ("cluster:4,1,4", 100e-9)] {
        let mut machine = machine(text).unwrap();
        machine.timing.startup = PerClass::uniform(startup);
        machine.timing.per_hop = PerClass::uniform(0.0);
        machine.timing.rearrangement_per_byte = 0.1e-9;
        let problem = common::problem(&machine, Collective::AllToAll, 1);
        let selection = select(&machine, &problem);
        for bytes in 1u32..40 {
            let time = |choice: &Choice| {
                let (fixed, per_byte) = choice.price.line(1);
                fixed + per_byte * f64::from(bytes)
            };
            let least = selection.choices.iter().map(time).fold(f64::INFINITY, f64::min);
            let crossovers = &selection.crossovers;
            let named = crossovers.iter().rfind(|from| from.block_bytes <= bytes.into()).unwrap();
            let named = time(&selection.choices[named.choice]);
            assert!(named <= least * (1.0 + 1e-12), "{text}, {bytes} B: {named} {least}");
        }
    }
}

/// What splits blocks does not cost in proportion to them.
#[test]
fn crossovers_are_left_to_a_sweep_where_blocks_are_split() {
    let mut mesh = machine("mesh:4x4").unwrap();
    mesh.set_ports(4);
    for (block_bytes, split) in [(1, &["concat"][..]), (1024, &["bucket", "concat"])] {
        let problem = common::problem(&mesh, Collective::AllGather, block_bytes);
        let selection = select(&mesh, &problem);
        assert_eq!(selection.split, split);
        assert_eq!(selection.crossovers, []);
    }
    let selection = select(&mesh, &common::problem(&mesh, Collective::AllToAll, 1));
    assert_eq!(selection.split, [""; 0]);
    assert!(!selection.crossovers.is_empty());
}

#[test]
fn machines_too_large_to_count_are_decided_all_the_same() {
    for text in ["torus:1024x1024", "torus:32768x32768", "torus:256x256x256"] {
        let machine = machine(text).unwrap();
        let problem = common::problem(&machine, Collective::AllToAll, 1024);
        let selection = select(&machine, &problem);
        assert_eq!(selection.choices[0].price.priced, Priced::Exactly, "{text}");
        assert!(
            selection.choices.iter().any(|choice| choice.price.priced == Priced::AtLeast),
            "{text}"
        );
    }
}

#[test]
fn no_floor_is_below_the_bound() {
    for (text, operation) in [
        ("torus:1048576", Collective::AllGather),
        ("torus:1048576", Collective::AllToAll),
        ("torus:1024x1024", Collective::AllGather),
        ("mesh:512x512", Collective::AllToAll),
    ] {
        let machine: Machine = machine(text).unwrap();
        let problem = Problem::new(operation, machine.ranks(), 1, 1024).unwrap();
        let least = best_bounds(&problem, &machine).seconds * (1.0 - 1e-9);
        for choice in &select(&machine, &problem).choices {
            let (name, time) = (choice.algorithm, choice.price.time.total());
            assert!(time >= least, "{name} on {text}: {time} s, at least {least} s");
        }
    }
}

#[test]
fn of_every_algorithm_the_most_promising_setting_is_counted_first() {
    let mut large = machine("mesh:128x128").unwrap();
    large.timing = machine("paragon-16x16-mesh").unwrap().timing;
    let problem = common::problem(&large, Collective::AllToAll, 1024);
    let choices = select(&large, &problem).choices;
    let counted = |choice: &Choice| choice.price.priced == Priced::Exactly;
    assert!(choices.iter().any(|choice| choice.algorithm == "suh-shin" && counted(choice)));
}

/// What the steps model says of every setting of every algorithm, at blocks of 1 KiB.
fn all_times(machine: &Machine) -> Vec<Time> {
    let problem = common::problem(machine, Collective::AllToAll, 1024);
    let settings = topocoll::ALGORITHMS.iter().flat_map(|algorithm| {
        let settings = algorithm.settings(&problem, &*machine.topology);
        settings.into_iter().map(|setting| (algorithm.name(), setting))
    });
    let settings: Vec<_> = settings.collect();
    let counted = settings.into_par_iter().map(|(name, setting)| {
        let schedule = plan(machine, &problem, name, &setting).unwrap();
        count(&schedule, machine, MEMORY).unwrap().time
    });
    counted.collect()
}

#[test]
fn the_choice_is_within_two_percent_of_everything_at_every_block_size() {
    let mut cases = 0;
    for text in [
        "torus:8x8",
        "torus:16x16",
        "torus:13x13",
        "torus:10x10",
        "torus:6x6x6",
        "mesh:8x12",
        "mesh:12x7",
        "grid:8~x8x4~",
        "full:64",
        "cluster:8*4",
        "cluster:3*4,2,1",
    ] {
        for timing in ["generic", "paragon-16x16"] {
            let mut machine = machine(text).unwrap();
            if timing != "generic" {
                machine.timing = topocoll::machine(timing).unwrap().timing;
            }
            let times = all_times(&machine);
            for block_bytes in (0..=28).step_by(4).map(|power| 1u64 << power) {
                let factor = block_bytes as f64 / 1024.0;
                let at = |time: &Time| {
                    let grows = time.transmission + time.rearrangement;
                    time.total() + grows * (factor - 1.0)
                };
                let best = times.iter().map(at).fold(f64::INFINITY, f64::min);
                let problem = common::problem(&machine, Collective::AllToAll, block_bytes);
                let choice = &select(&machine, &problem).choices[0];
                let schedule =
                    plan(&machine, &problem, choice.algorithm, &choice.parameters).unwrap();
                let chosen = count(&schedule, &machine, MEMORY).unwrap().time.total();
                let place = format!("{text}, {timing}, {block_bytes} bytes: {}", choice.algorithm);
                assert!(chosen <= 1.02 * best, "{place}: {chosen} s, not {best} s");
                cases += 1;
            }
        }
    }
    assert_eq!(cases, 11 * 2 * 8);
}

#[test]
fn very_large_blocks_go_straight_over_full_rings() {
    for text in ["torus:10x10", "torus:16x16", "torus:8x8x8", "torus:64x64", "torus:64x64x64"] {
        let machine = machine(text).unwrap();
        let at = |block_bytes| {
            let problem = common::problem(&machine, Collective::AllToAll, block_bytes);
            select(&machine, &problem).choices.swap_remove(0)
        };
        let choice = at(1 << 20);
        assert_eq!((choice.algorithm, choice.price.priced), ("direct-rings", Priced::Exactly));
        assert_ne!(at(1).algorithm, "direct-rings", "{text}");
    }
}
