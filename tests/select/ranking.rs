//! Selection: the best choice is first, no unbeaten setting is missing, crossovers are exact.

use common::{
    self, MEMORY, algorithms, all_settings, choice_of, exchange, machines_and_ports, reach,
    schedule_of, select, select_within, with_ports,
};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use topocoll::{
    Algorithm, Barrier, Budget, Catalogue, Choice, Collective, Fastest, GivenSchedule, Info,
    Machine, NotApplicable, Parameters, PerClass, Ports, Priced, Problem, Progress, Rendezvous,
    Request, Selection, Setting, Solution, Time, Values, best_bounds, count, count_steps, machine,
};

use crate::sweep::near;

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
fn choices_are_ranked_priced_and_unbeaten() {
    let most = reach(64, 512);
    for machine in machines_and_ports().into_iter().filter(|machine| machine.ranks() <= most) {
        let problem = common::problem(&machine, Collective::AllToAll, 100);
        let selection = select(&machine, &problem);
        let times: Vec<f64> =
            selection.choices.iter().map(|choice| choice.price.time.total()).collect();
        assert!(times.is_sorted(), "{}", machine.name);
        assert!(
            times
                .iter()
                .all(|&time| time >= best_bounds(&problem, &machine, None).seconds * (1.0 - 1e-12)),
            "{}",
            machine.name
        );
        for (i, choice) in selection.choices.iter().enumerate().step_by(7) {
            assert_eq!(choice.price.priced, Priced::Exactly, "{}", machine.name);
            let schedule =
                schedule_of(&machine, &problem, &choice.algorithm, &choice.parameters).unwrap();
            let counts = count(&schedule, &machine, None, MEMORY).unwrap();
            assert!(near(counts.time.total(), choice.price.time.total()), "{}", machine.name);
            assert_eq!(counts.steps, choice.price.steps, "{}", machine.name);
            // The best of its algorithm, on the Pareto front, or the fastest at another size.
            let first =
                selection.choices.iter().position(|other| other.algorithm == choice.algorithm)
                    == Some(i);
            let beats = |other: &Choice| {
                other.price.steps < choice.price.steps
                    && other.price.link_blocks < choice.price.link_blocks
            };
            let wins = |one: &Fastest| {
                (&one.algorithm, &one.parameters) == (&choice.algorithm, &choice.parameters)
            };
            let is_kept = first
                || selection.crossovers.iter().any(wins)
                || !selection.choices.iter().any(beats);
            assert!(is_kept, "{}: {choice:?}", machine.name);
        }
    }
}

/// A machine of 2 to 100 ranks, with ports and timing values of its own: the same for all link
/// classes, different, or one value written for each class.
fn drawn(random: &mut fastrand::Rng) -> Machine {
    let sides = |random: &mut fastrand::Rng, wrap: bool| {
        let (dimensions, most) = *random.choice(&[(1, 100), (2, 10), (3, 4)]).unwrap();
        let sides = (0..dimensions).map(|_| random.u32(2..=most).to_string());
        let mut sides: Vec<_> = sides.collect();
        if wrap {
            let mark = |side: &mut String| {
                if random.bool() {
                    side.push('~');
                }
            };
            sides.iter_mut().for_each(mark);
        }
        sides.join("x")
    };
    let text = match random.u8(..6) {
        0 => format!("full:{}", random.u32(2..100)),
        1 => format!("torus:{}", sides(random, false)),
        2 => format!("mesh:{}", sides(random, false)),
        3 => format!("grid:{}", sides(random, true)),
        4 => format!("cluster:{}*{}", random.u32(2..18), random.u32(1..6)),
        _ => format!("cluster:{},{},{}", random.u32(1..6), random.u32(1..6), random.u32(1..6)),
    };
    let mut machine = machine(&text).unwrap();
    machine.set_ports(*random.choice(&[1, 1, 2, 3, 7]).unwrap());
    let classes = machine.topology.link_classes().len();
    let each = random.u8(..4);
    let mut values = |unit: f64| {
        let first = unit * random.f64();
        match each {
            0 => PerClass::uniform(first),
            1 => PerClass::each(&vec![first; classes]),
            _ => PerClass::each(&(0..classes).map(|_| unit * random.f64()).collect::<Vec<_>>()),
        }
    };
    let timing = &mut machine.timing;
    timing.startup = values(1e-5);
    timing.per_byte = values(1e-8);
    timing.per_hop = values(1e-7);
    timing.rearrangement_per_byte = *random.choice(&[0.0, 7e-10]).unwrap();
    timing.barrier = Barrier { fixed: 3e-7 * random.f64(), per_doubling: 1e-7 };
    timing.gather = random.bool();
    // Beside the other values, so that these are drawn as before.
    let mut beside = random.clone();
    timing.per_block = *beside.choice(&[0.0, 0.0, 3e-9]).unwrap();
    if beside.u8(..3) == 0 {
        timing.rendezvous = Rendezvous { above: 1 << beside.u8(5..18), time: 1e-5 * beside.f64() };
    }
    timing.contention.alone = *beside.choice(&[f64::INFINITY, 1.0, 2.5]).unwrap();
    timing.contention.several = *beside.choice(&[f64::INFINITY, 1.0, 2.5]).unwrap();
    machine.endpoint.message_overhead = *beside.choice(&[0.0, 0.0, 2e-6]).unwrap();
    machine
}

fn terms(time: Time) -> [f64; 7] {
    let Time { startup, transmission, propagation, rearrangement, barrier, .. } = time;
    let Time { rendezvous, block_copies, .. } = time;
    [startup, transmission, propagation, rearrangement, barrier, rendezvous, block_copies]
}

/// `select` and `simulate` give equal times, term by term.
#[test]
fn prices_equal_simulation_by_steps() {
    let mut random = fastrand::Rng::with_seed(25);
    let mut machines: Vec<_> = (0..reach(80, 200)).map(|_| drawn(&mut random)).collect();
    // Too large for `select` to count: priced by claims.
    let different = |values: [f64; 2]| PerClass::each(&values);
    for (text, startup, per_byte) in [
        ("full:2048", PerClass::uniform(1.1e-6), PerClass::uniform(0.7e-9)),
        ("torus:2048", PerClass::uniform(1.1e-6), PerClass::uniform(0.7e-9)),
        ("cluster:20*9", different([1.3e-6, 7.1e-6]), different([0.7e-9, 1.9e-9])),
        ("cluster:20*9", different([7.1e-6, 1.3e-6]), different([1.9e-9, 0.7e-9])),
        ("cluster:48*12", different([1.3e-6, 7.1e-6]), different([1.9e-9, 0.7e-9])),
    ] {
        let mut large = machine(text).unwrap();
        (large.timing.startup, large.timing.per_byte) = (startup, per_byte);
        machines.push(large);
    }
    let found = machines.par_iter().enumerate().map(|(i, machine)| {
        let mut exact = 0;
        for operation in [Collective::AllToAll, Collective::AllGather] {
            let problem = common::problem(machine, operation, [1, 100, 1021, 65_536][i % 4]);
            let large = machine.ranks() > 100;
            let mut budget = Budget::default();
            if large {
                budget.work = 0;
            }
            let choices = select_within(machine, &problem, &budget).choices;
            for choice in choices.iter().filter(|choice| choice.price.priced == Priced::Exactly) {
                // On a large machine one choice of each algorithm.
                let alike = |other: &Choice| other.algorithm == choice.algorithm;
                if large && choices.iter().find(|&other| alike(other)) != Some(choice) {
                    continue;
                }
                let schedule =
                    schedule_of(machine, &problem, &choice.algorithm, &choice.parameters).unwrap();
                let counts = count_steps(&schedule, machine, None, MEMORY, |_, _| {}).unwrap();
                let place = format!("{choice:?} on {machine:?}");
                for (ours, theirs) in terms(choice.price.time).into_iter().zip(terms(counts.time)) {
                    // Contention is in whole attoseconds, at the reference size of a price.
                    let rounded = 1e-18 * counts.steps as f64;
                    assert!(near(ours, theirs) || (ours - theirs).abs() <= rounded, "{place}");
                }
                assert_eq!(choice.price.steps, counts.steps, "{place}");
                let link_blocks = counts.in_blocks(counts.link_bytes);
                assert!(near(choice.price.link_blocks, link_blocks), "{place}");
                exact += 1;
            }
        }
        exact
    });
    assert!(found.sum::<usize>() > 20 * machines.len());
}

#[test]
fn every_setting_of_the_pareto_front_is_listed() {
    for text in ["full:16", "full:21", "torus:4x4", "mesh:3x4"] {
        let machine = machine(text).unwrap();
        let problem = common::problem(&machine, Collective::AllToAll, 100);
        let selection = select(&machine, &problem);
        let listed = selection.choices;
        let mut priced = Vec::new();
        // Not those whose search cannot find a faster schedule.
        let is_rejected =
            |name: &str| selection.rejected.iter().any(|rejected| rejected.algorithm == name);
        for algorithm in algorithms().filter(|one| !is_rejected(&one.info().name)) {
            for setting in all_settings(algorithm, &problem, &*machine.topology) {
                let schedule =
                    schedule_of(&machine, &problem, &algorithm.info().name, &setting).unwrap();
                let counts = count(&schedule, &machine, None, MEMORY).unwrap();
                priced.push((
                    algorithm.info().name.clone(),
                    setting,
                    counts.steps,
                    counts.link_bytes,
                ));
            }
        }
        for (name, setting, steps, bytes) in &priced {
            let beaten = priced.iter().any(|(_, _, s, b)| s < steps && b < bytes);
            let found = listed.iter().any(|c| c.algorithm == *name && c.parameters == *setting);
            assert!(beaten || found, "{name} {setting:?} on {text}");
        }
    }
}

/// On the last two machines the budget is not enough for all settings: the sizes at which one of these may be faster
/// are left out. The list does not depend on the size that is asked for.
#[test]
fn the_fastest_by_block_size_is_the_selection_at_that_size() {
    let all_sizes = ["sp1-64", "paragon-16x16", "torus:8x8", "mesh:4x4", "cluster:2,3"];
    for text in all_sizes.into_iter().chain(["mesh:64x64", "torus:24x24/0,0"]) {
        let machine = machine(text).unwrap();
        let at = |block_bytes| {
            let problem =
                Problem::new(Collective::AllToAll, machine.ranks(), machine.ports, block_bytes)
                    .unwrap();
            let mut budget = Budget::default();
            if !all_sizes.contains(&text) {
                budget.work = 1 << 22;
            }
            select_within(&machine, &problem, &budget)
        };
        let found = at(1000);
        let is_whole = found.crossovers[0].block_bytes == 1
            && found.crossovers.iter().all(|crossover| crossover.to_bytes.is_none());
        assert_eq!(is_whole, all_sizes.contains(&text), "{text}");
        let ends = found.crossovers.iter().flat_map(|one| {
            [Some(one.block_bytes), one.to_bytes].into_iter().flatten().map(move |size| (size, one))
        });
        for (block_bytes, named) in ends {
            let picked = at(block_bytes);
            assert_eq!(picked.crossovers, found.crossovers, "{text} at {block_bytes}");
            let time = |c: &Choice| c.price.time.total();
            let (same, best) = (choice_of(&picked, named), picked.best().unwrap());
            assert!(time(same) <= time(best) * (1.0 + 1e-9), "{text} at {block_bytes}");
        }
    }
}

/// Several settings become faster at one size, where small startups make lines cross.
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
            let named = time(choice_of(&selection, named));
            assert!(named <= least * (1.0 + 1e-12), "{text}, {bytes} B: {named} {least}");
        }
    }
}

/// A setting that splits blocks into parts is the fastest only at sizes that it accepts.
#[test]
fn crossovers_of_split_blocks_name_settings_that_accept_their_sizes() {
    for (text, ports) in [("mesh:4x4", 4), ("torus:4x4/1,2", 3), ("full:14", 3)] {
        let machine = with_ports(text, ports);
        let at = |bytes| select(&machine, &common::problem(&machine, Collective::AllGather, bytes));
        let found = at(1);
        assert!(found.split.contains(&"concat".to_owned()), "{text}");
        assert_eq!(found.crossovers[0].block_bytes, 1, "{text}");
        for (i, crossover) in found.crossovers.iter().enumerate() {
            let next = found.crossovers.get(i + 1).map_or(1 << 30, |next| next.block_bytes);
            for bytes in [crossover.block_bytes, next - 1] {
                let picked = at(bytes);
                let same = choice_of(&picked, crossover);
                let (own, best) =
                    (same.price.time.total(), picked.best().unwrap().price.time.total());
                // Exact to the bytes of a part.
                assert!(own <= best + 1e-9 * f64::from(ports), "{text} at {bytes}: {crossover:?}");
            }
        }
    }
    let mesh = with_ports("mesh:4x4", 4);
    let selection = select(&mesh, &common::problem(&mesh, Collective::AllToAll, 1));
    assert_eq!(selection.split, [""; 0]);
}

#[test]
fn machines_too_large_to_count_are_decided() {
    let machines = ["torus:1024x1024", "torus:32768x32768", "torus:256x256x256"];
    for text in &machines[..reach(2, 3)] {
        let machine = machine(text).unwrap();
        let problem = common::problem(&machine, Collective::AllToAll, 1024);
        let selection = select(&machine, &problem);
        assert_eq!(selection.best().unwrap().price.priced, Priced::Exactly, "{text}");
        assert!(
            selection.choices.iter().any(|choice| choice.price.priced == Priced::AtLeast),
            "{text}"
        );
    }
}

#[test]
fn selection_decides_on_clusters_of_any_size() {
    for (text, block_bytes, best) in [
        ("cluster:20*48", 1 << 20, "clustered-matchings"),
        ("cluster:19*48,47", 1 << 20, "clustered-matchings"),
        ("cluster:2000*1", 1024, "direct"),
        ("cluster:9408*8", 1024, "node-aware"),
        ("cluster:40000*4", 1024, "node-aware"),
        ("cluster:65536*1", 1024, "direct"),
        ("full:1000003", 1024, "direct"),
        ("cluster:4294967295*1", 1, "bruck"),
    ] {
        let machine = machine(text).unwrap();
        let selection =
            select(&machine, &common::problem(&machine, Collective::AllToAll, block_bytes));
        assert_eq!(selection.best().unwrap().algorithm, best, "{text}");
        assert_eq!(selection.undecided(), [], "{text}");
    }
}

#[test]
fn floors_below_the_best_price_are_undecided_when_the_budget_is_spent() {
    let torus = machine("torus:1022x1022").unwrap();
    let problem = common::problem(&torus, Collective::AllToAll, 1024);
    let mut budget = Budget::default();
    budget.work = 0;
    let short = select_within(&torus, &problem, &budget);
    let best = short.best().unwrap();
    assert_eq!(best.price.priced, Priced::Exactly);
    assert!(!short.undecided().is_empty());
    for choice in short.undecided() {
        assert_eq!(choice.price.priced, Priced::AtLeast);
        assert!(choice.price.time.total() < best.price.time.total());
    }
    let (length, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let counted = AtomicU64::new(0);
    let starting = |_: &str, work| {
        assert!(done.swap(0, Ordering::Relaxed) <= length.swap(work, Ordering::Relaxed));
    };
    let more = |work| {
        counted.fetch_add(work, Ordering::Relaxed);
        done.fetch_add(work, Ordering::Relaxed);
    };
    let mut budget = Budget::default();
    budget.progress = Progress { starting: &starting, done: &more };
    let long = select_within(&torus, &problem, &budget);
    assert_eq!(long.undecided(), []);
    assert!(long.best().unwrap().price.time.total() <= best.price.time.total());
    assert!(counted.into_inner() > 0);
    assert!(done.into_inner() <= length.into_inner());
}

#[test]
fn no_floor_is_below_the_bound() {
    for (text, operation) in [
        (reach("torus:16384", "torus:131072"), Collective::AllGather),
        (reach("torus:16384", "torus:131072"), Collective::AllToAll),
        ("torus:1024x1024", Collective::AllGather),
        (reach("mesh:128x128", "mesh:512x512"), Collective::AllToAll),
    ] {
        let machine: Machine = machine(text).unwrap();
        let problem = Problem::new(operation, machine.ranks(), 1, 1024).unwrap();
        let least = best_bounds(&problem, &machine, None).seconds * (1.0 - 1e-9);
        for choice in &select(&machine, &problem).choices {
            let (name, time) = (&choice.algorithm, choice.price.time.total());
            assert!(time >= least, "{name} on {text}: {time} s, at least {least} s");
        }
    }
}

/// Startups between nodes and the bytes that nodes send each other are bounded together.
#[test]
fn bounds_trade_steps_between_nodes_for_their_volume() {
    let bound = |text: &str, node: u32, block_bytes: u64| {
        let mut machine = machine(text).unwrap();
        machine.set_ports(Ports { rank: 1, node });
        machine.timing.startup = PerClass::each(&[1e-6, 10e-6]);
        machine.timing.per_byte = PerClass::each(&[1e-12, 1e-9]);
        let problem = common::problem(&machine, Collective::AllToAll, block_bytes);
        best_bounds(&problem, &machine, None).seconds * 1e6
    };
    // By hand, 16 nodes of 4 ranks: in T steps of one message of a node the 16 sets of the fewest steps in which a
    // block may leave its node have 32 moves together if T is 4, 25 if T is 5, 15 if T is 15. A node has 16
    // blocks for another. At least 6 steps, some of them inside nodes.
    let steps = |steps: f64, moves: f64, bytes: f64| {
        10.0 * steps + (6.0 - steps).max(0.0) + moves * 16.0 * bytes * 1e-3
    };
    for (bytes, by_hand) in [(10, steps(4.0, 32.0, 10.0)), (10_000, steps(15.0, 15.0, 10_000.0))] {
        let found = bound("cluster:16*4", 1, bytes);
        assert!((found - by_hand).abs() < by_hand * 1e-3, "{bytes} B: {found}, {by_hand} us");
    }
    // The single rank sends to one node at first, and one of four ranks to four.
    let [even, uneven] = ["cluster:5*4", "cluster:4*4,1"].map(|text| bound(text, 8, 1));
    assert!((even - 14.0).abs() < 0.1 && (uneven - 23.0).abs() < 0.1, "{even} {uneven}");
}

#[test]
fn the_most_promising_setting_of_each_algorithm_is_counted_first() {
    let mut large = machine("mesh:128x128").unwrap();
    large.timing = machine("paragon-16x16-mesh").unwrap().timing;
    let problem = common::problem(&large, Collective::AllToAll, 1024);
    let choices = select(&large, &problem).choices;
    let counted = |choice: &Choice| choice.price.priced == Priced::Exactly;
    assert!(choices.iter().any(|choice| choice.algorithm == "suh-shin" && counted(choice)));
}

/// The time in the steps model of every setting of every algorithm, for blocks of 1 KiB.
fn all_times(machine: &Machine) -> Vec<Time> {
    let problem = common::problem(machine, Collective::AllToAll, 1024);
    let settings = algorithms().flat_map(|algorithm| {
        let settings = all_settings(algorithm, &problem, &*machine.topology);
        settings.into_iter().map(|setting| (algorithm.info().name.clone(), setting))
    });
    let settings: Vec<_> = settings.collect();
    let counted = settings.into_par_iter().map(|(name, setting)| {
        let schedule = schedule_of(machine, &problem, &name, &setting).unwrap();
        count(&schedule, machine, None, MEMORY).unwrap().time
    });
    counted.collect()
}

#[test]
fn nothing_beats_the_choice_at_any_block_size() {
    let mut cases = 0;
    let machines = [
        "torus:8x8",
        "torus:13x13",
        "torus:10x10",
        "torus:6x6x6",
        "mesh:8x12",
        "mesh:12x7",
        "grid:8~x8x4~",
        "full:64",
        "cluster:8*4",
        "cluster:3*4,2,1",
        "torus:16x16",
    ];
    for text in &machines[..reach(5, 11)] {
        for timing in ["generic", "paragon-16x16"] {
            let mut machine = machine(text).unwrap();
            if timing != "generic" {
                machine.timing = topocoll::machine(timing).unwrap().timing;
            }
            let times = all_times(&machine);
            for block_bytes in (0..=28).step_by(reach(7, 4)).map(|power| 1u64 << power) {
                let factor = block_bytes as f64 / 1024.0;
                let at = |time: &Time| {
                    let grows = time.transmission + time.rearrangement;
                    time.total() + grows * (factor - 1.0)
                };
                let best = times.iter().map(at).fold(f64::INFINITY, f64::min);
                let problem = common::problem(&machine, Collective::AllToAll, block_bytes);
                let mut budget = Budget::default();
                // Searches are among the settings.
                budget.search = 1.0;
                let selection = select_within(&machine, &problem, &budget);
                let choice = selection.best().unwrap();
                assert_eq!(selection.undecided(), [], "{text}");
                let schedule =
                    schedule_of(&machine, &problem, &choice.algorithm, &choice.parameters).unwrap();
                let chosen = count(&schedule, &machine, None, MEMORY).unwrap().time.total();
                let place = format!("{text}, {timing}, {block_bytes} bytes: {}", choice.algorithm);
                assert!(chosen <= best * (1.0 + 1e-12), "{place}: {chosen} s, not {best} s");
                cases += 1;
            }
        }
    }
    assert_eq!(cases, reach(5 * 5, 11 * 8) * 2);
}

#[test]
fn nothing_beats_the_choice_on_drawn_machines() {
    let mut random = fastrand::Rng::with_seed(26);
    let machines: Vec<_> = (0..100).map(|_| drawn(&mut random)).collect();
    machines.par_iter().enumerate().for_each(|(i, machine)| {
        for operation in [Collective::AllToAll, Collective::AllGather] {
            let problem = common::problem(machine, operation, [1, 4096][i % 2]);
            let selection = select(machine, &problem);
            let Some(best) = selection.best() else { continue };
            let request = Request::new(&problem, &*machine.topology);
            for algorithm in algorithms() {
                // A search that saves no more than 2 % is not run.
                let search = request.search(algorithm, &Parameters::new());
                let share = if search.is_some() { 0.98 } else { 1.0 - 1e-12 };
                // Contention is in whole attoseconds, at the reference size of a price.
                let rounded = 1e-18 * best.price.steps as f64;
                let time = best.price.time.total() * share - rounded;
                for setting in all_settings(algorithm, &problem, &*machine.topology) {
                    let schedule =
                        schedule_of(machine, &problem, &algorithm.info().name, &setting).unwrap();
                    let other = count(&schedule, machine, None, MEMORY).unwrap().time.total();
                    let place = format!("{} {setting:?} beats {best:?}", algorithm.info().name);
                    assert!(other >= time, "{place} on {machine:?}: {other} s");
                }
            }
        }
    });
}

#[test]
fn very_large_blocks_go_straight_over_full_rings() {
    let (direct, strided) = ("direct-rings", "strided-rings");
    for (text, straight) in [
        ("torus:10x10", "link-matchings"),
        ("torus:16x16", strided),
        ("torus:8x8x8", direct),
        ("torus:64x64", strided),
        ("torus:64x64x64", direct),
    ] {
        let machine = machine(text).unwrap();
        let at = |block_bytes| {
            let problem = common::problem(&machine, Collective::AllToAll, block_bytes);
            select(&machine, &problem).choices.swap_remove(0)
        };
        let choice = at(1 << 20);
        assert_eq!((&*choice.algorithm, choice.price.priced), (straight, Priced::Exactly));
        assert_ne!(at(1).algorithm, straight, "{text}");
    }
}

/// Bruck's index up to 100 bytes, and then direct.
struct BySize(Info);

impl Algorithm for BySize {
    fn info(&self) -> &Info {
        &self.0
    }

    fn solve(&self, request: &Request<'_>, _: &Values<'_>) -> Result<Solution, NotApplicable> {
        let name = if request.problem.block_bytes <= 100 { "bruck" } else { "direct" };
        let mut solution = request.solve(common::find(name)?, &Parameters::new())?;
        solution.schedule.origin.algorithm = "by-size".to_owned();
        solution.schedule.origin.parameters.clear();
        Ok(solution)
    }
}

/// An algorithm of a caller may depend on the size of blocks, and a schedule that splits blocks has only its own.
#[test]
fn schedules_of_callers_are_priced_at_their_size() {
    let machine = with_ports("full:8", 3);
    let catalogue = Catalogue::standard().with(BySize(Info::new("by-size", "", ""))).unwrap();
    let time = |found: &Selection, name: &str| {
        let choice = found.choices.iter().find(|choice| choice.algorithm == name);
        choice.map(|choice| choice.price.time.total())
    };
    for bytes in [1, 100, 101, 4096] {
        let problem = common::problem(&machine, Collective::AllToAll, bytes);
        let exchange = exchange(&machine, &problem).catalogue(&catalogue);
        let name = if bytes <= 100 { "bruck" } else { "direct" };
        let schedule = exchange.schedule(name, &Parameters::new()).unwrap();
        let expected = exchange.count(&schedule).unwrap().time.total();
        let found = exchange.select().unwrap();
        assert!(near(time(&found, "by-size").unwrap(), expected), "{bytes}");
        let swept = exchange.sweep(&[1, bytes.max(2)], &[]).unwrap();
        let line = swept.lines.iter().find(|line| line.algorithm == "by-size").unwrap();
        assert!(bytes == 1 || near(line.points[1].price.time.total(), expected), "{bytes}");
    }
    let gathers = |bytes| common::problem(&machine, Collective::AllGather, bytes);
    let split = schedule_of(&machine, &gathers(64), "concat", &Parameters::new()).unwrap();
    assert!(!split.rule().cuts().is_empty());
    let given = GivenSchedule::new("given", split, &machine).unwrap();
    let catalogue = Catalogue::standard().with(given).unwrap();
    let at = |bytes| exchange(&machine, &gathers(bytes)).catalogue(&catalogue).select().unwrap();
    assert!(near(time(&at(64), "given").unwrap(), time(&at(64), "concat").unwrap()));
    let refused = at(65);
    assert!(time(&refused, "given").is_none());
    assert!(refused.rejected.iter().any(|rejected| rejected.algorithm == "given"));
}
