//! Selection: the right one first, nothing unbeaten left out, crossovers where they are.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::{MEMORY, machines_and_ports};
use topocoll::{
    Choice, Collective, Priced, Problem, Setting, best_bounds, count, machine, plan, select,
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
fn of_every_algorithm_the_most_promising_setting_is_counted_first() {
    let mut large = machine("mesh:128x128").unwrap();
    large.timing = machine("paragon-16x16-mesh").unwrap().timing;
    let problem = common::problem(&large, Collective::AllToAll, 1024);
    let choices = select(&large, &problem).choices;
    let counted = |choice: &Choice| choice.price.priced == Priced::Exactly;
    assert!(choices.iter().any(|choice| choice.algorithm == "suh-shin" && counted(choice)));
}
