//! Classes are true, and readers that rely on them get the results of readers that do not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{MEMORY, machines_and_ports, reach, schedule_of, serving, without_classes};
use proptest::prelude::*;
use topocoll::contention::Scheduled;
use topocoll::{
    Collective, Kinds, Machine, Method, PerClass, Problem, Progress, Rank, RankClasses, Schedule,
    Shape, Step, Transfer, check_counting_work, conflicts, count, count_steps, link_totals,
    machine, verify, verify_watched,
};

/// Every rank acts as the representative of its class, translated.
fn check_classes(schedule: &Schedule, place: &str) {
    let rule = schedule.rule();
    let classes: RankClasses = rule.classes();
    let (mut does, mut expected) = (Step::default(), Step::default());
    for rank in (0..schedule.problem.ranks).map(Rank) {
        let representative = classes.representative(classes.class_of(rank));
        let alike = |theirs: &[Transfer], own: &[Transfer]| {
            theirs.len() == own.len()
                && theirs.iter().zip(own).all(|(theirs, own)| {
                    let peer = classes.translated(theirs.peer, representative, rank);
                    (peer, &theirs.slots, &theirs.route) == (own.peer, &own.slots, &own.route)
                })
        };
        for step in 0..rule.steps() {
            rule.step(representative, step, &mut expected);
            rule.step(rank, step, &mut does);
            assert!(
                alike(&expected.sends, &does.sends),
                "{place}: sends of rank {rank} in step {step}"
            );
            let bytes = schedule.problem.block_bytes;
            let copied =
                |step: &Step| step.copies.iter().map(|copy| copy.to.bytes(bytes)).sum::<u128>();
            assert_eq!(
                copied(&expected),
                copied(&does),
                "{place}: copies of rank {rank} in step {step}"
            );
            assert!(
                alike(&expected.receives, &does.receives),
                "{place}: receives of rank {rank} in step {step}"
            );
        }
    }
}

/// All ranks that are not idle are visited once, of the rule's classes and if each is its own.
fn check_active(schedule: &Schedule, machine: &Machine, place: &str) {
    let rule = schedule.rule();
    let of_grid = match machine.topology.shape() {
        Shape::Grid(grid) => {
            RankClasses::translations(grid.radix().clone(), grid.sides().iter().copied().collect())
        }
        _ => RankClasses::distinct(machine.ranks()),
    };
    let mut does = Step::default();
    for classes in [rule.classes(), of_grid, RankClasses::distinct(machine.ranks())] {
        for step in 0..rule.steps() {
            let mut visited = BTreeSet::new();
            rule.active(step, &classes, &mut |rank| {
                assert!(visited.insert(rank), "{place}: rank {rank} twice in step {step}");
                assert_eq!(classes.representative(classes.class_of(rank)), rank, "{place}");
            });
            for rank in classes.representatives().filter(|rank| !visited.contains(rank)) {
                rule.step(rank, step, &mut does);
                assert!(does.is_idle(), "{place}: rank {rank} is not idle in step {step}");
            }
        }
    }
}

/// Ranks whose coordinates are of equal kinds do the same. Returns the steps with kinds.
fn check_kinds(schedule: &Schedule, machine: &Machine, place: &str) -> u32 {
    let Shape::Grid(grid) = machine.topology.shape() else { return 0 };
    let (rule, block_bytes) = (schedule.rule(), schedule.problem.block_bytes);
    let (mut kinds, mut does, mut found) = (Kinds::default(), Step::default(), 0);
    for step in (0..rule.steps()).filter(|_| machine.ranks() > 1) {
        if !rule.kinds(step, &mut kinds) {
            continue;
        }
        found += 1;
        let mut by_box = BTreeMap::new();
        for rank in (0..machine.ranks()).map(Rank) {
            rule.step(rank, step, &mut does);
            let of_box: Vec<u32> = (0..grid.sides().len())
                .map(|u| kinds.along(u)[grid.radix().coordinate(rank, u) as usize])
                .collect();
            let copied: u128 = does.copies.iter().map(|copy| copy.to.bytes(block_bytes)).sum();
            let sends = does.sends.iter().map(|send| {
                assert!(!send.route.is_empty(), "{place}: a route of the machine");
                let contiguous = send.slots.is_contiguous(block_bytes);
                (send.slots.bytes(block_bytes), send.route.clone(), contiguous)
            });
            let receives = does.receives.iter().map(|receive| receive.slots.bytes(block_bytes));
            let own = (copied, sends.collect::<Vec<_>>(), receives.collect::<Vec<_>>());
            let first = by_box.entry(of_box).or_insert_with(|| own.clone());
            assert_eq!(*first, own, "{place}: rank {rank} in step {step}");
        }
    }
    found
}

/// Gives each link class its own values. Sums of the values per hop are often equal, or differ by
/// rounding only.
fn set_values(machine: &mut Machine, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let classes = machine.topology.link_classes().len();
    let mut values = |unit: f64| {
        let value = |_| unit * f64::from(random.u8(1..=3));
        PerClass::each(&(0..classes).map(value).collect::<Vec<_>>())
    };
    let timing = &mut machine.timing;
    (timing.startup, timing.per_byte, timing.per_hop) =
        (values(0.3e-6), values(0.7e-9), values(0.1e-7));
}

/// The two methods, and counting with and without classes, agree exactly.
fn check(schedule: &Schedule, machine: &Machine, place: &str) {
    check_classes(schedule, place);
    check_active(schedule, machine, place);
    check_kinds(schedule, machine, place);
    let plain = without_classes(schedule);
    let by_replay = verify(&plain, machine, Some(Method::Replay), MEMORY).unwrap();
    assert_eq!(by_replay.violation, None, "{place}");
    let counts = count(schedule, machine, None, MEMORY).unwrap();
    if schedule.rule().cuts().is_empty() {
        let by_classes = verify(schedule, machine, Some(Method::Classes), MEMORY).unwrap();
        assert_eq!(by_classes.violation, None, "{place}");
        assert_eq!(by_classes.counts, counts, "{place}");
    }
    assert_eq!(by_replay.counts, counts, "{place}");
    assert_eq!(count_steps(&plain, machine, None, MEMORY, |_, _| {}), Ok(counts), "{place}");
    assert_eq!(link_totals(&plain, machine), link_totals(schedule, machine), "{place}");
}

#[test]
fn classes_change_no_count() {
    let small = machines_and_ports().into_iter().filter(|machine| machine.ranks() <= 96);
    for (seed, mut machine) in (0..).zip(small) {
        set_values(&mut machine, seed);
        for (algorithm, problem, setting) in serving(&machine, 5) {
            let schedule =
                schedule_of(&machine, &problem, &algorithm.info().name, &setting).unwrap();
            check(
                &schedule,
                &machine,
                &format!("{} {setting:?} on {}", algorithm.info().name, machine.name),
            );
        }
    }
}

fn shape() -> impl Strategy<Value = String> {
    let sides = || prop::collection::vec((1u32..7, any::<bool>()), 1..4);
    let grid = sides().prop_map(|sides| {
        let sides: Vec<_> = sides
            .iter()
            .map(|(side, wraps)| format!("{side}{}", if *wraps { "~" } else { "" }))
            .collect();
        format!("grid:{}", sides.join("x"))
    });
    let torus = prop::collection::vec(1u32..4, 1..4).prop_map(|sides| {
        let sides: Vec<_> = sides.iter().map(|side| (4 * side).to_string()).collect();
        format!("torus:{}", sides.join("x"))
    });
    let cluster = prop::collection::vec(1u32..6, 1..6).prop_map(|sizes| {
        let sizes: Vec<_> = sizes.iter().map(ToString::to_string).collect();
        format!("cluster:{}", sizes.join(","))
    });
    prop_oneof![(1u32..80).prop_map(|ranks| format!("full:{ranks}")), grid, torus, cluster]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn random_machines_are_served_correctly(text in shape(), ports in 1u32..5, block_bytes in 1u64..9, pick in any::<prop::sample::Index>(), seed in any::<u64>()) {
        let mut machine = machine(&text).unwrap();
        set_values(&mut machine, seed);
        machine.set_ports(ports);
        prop_assume!(machine.ranks() <= 256);
        let served = serving(&machine, block_bytes);
        prop_assume!(!served.is_empty());
        let (algorithm, problem, setting) = &served[pick.index(served.len())];
        let schedule = schedule_of(&machine, problem, &algorithm.info().name, setting).unwrap();
        check(&schedule, &machine, &format!("{} {setting:?} on {text} with {ports} ports", algorithm.info().name));
    }
}

#[test]
fn kinds_change_no_count() {
    let shapes =
        ["torus:13x11", "torus:21x18", "grid:23~x10", "torus:9x5x7", "torus:11x2x9", "mesh:14x15"];
    for (seed, text) in (0..).zip(shapes) {
        let mut machine = machine(text).unwrap();
        set_values(&mut machine, seed);
        for (algorithm, problem, setting) in serving(&machine, 5) {
            let name = &algorithm.info().name;
            if *name != "coloured-rings" || problem.operation != Collective::AllToAll {
                continue;
            }
            let schedule = schedule_of(&machine, &problem, name, &setting).unwrap();
            let place = format!("{setting:?} on {text}");
            assert_eq!(
                check_kinds(&schedule, &machine, &place),
                schedule.rule().steps(),
                "{place}"
            );
            // On its own machine, and read on one of other sides.
            let others =
                ["torus:11x13", "torus:18x21"].map(|text| topocoll::machine(text).unwrap());
            for on in others.iter().chain([&machine]).filter(|on| on.ranks() == machine.ranks()) {
                let [counts, plain] = [&schedule, &without_classes(&schedule)]
                    .map(|of| count(of, on, None, MEMORY).unwrap());
                assert_eq!(counts, plain, "{place}, counted on {}", on.name);
            }
        }
    }
}

#[test]
fn idle_ranks_change_no_count() {
    for (text, algorithm) in [
        ("mesh:4x4", "cyclic-exchange"),
        ("mesh:8x1x8", "cyclic-exchange"),
        ("mesh:16x16", "cyclic-exchange"),
        ("torus:4x4", "tseng-gupta-panda"),
        ("torus:8x8", "tseng-gupta-panda"),
        ("torus:16x16", "tseng-gupta-panda"),
    ] {
        let machine = machine(text).unwrap();
        let problem = Problem::new(Collective::AllToAll, machine.ranks(), 1, 5).unwrap();
        let schedule = schedule_of(&machine, &problem, algorithm, &Default::default()).unwrap();
        check(&schedule, &machine, &format!("{algorithm} on {text}"));
    }
}

/// Steps in which kinds of coordinates, or the ranks that are not idle, are few.
#[test]
fn conflicts_of_a_million_nodes_are_named_by_default() {
    let cases = [
        ("torus:1021x1019", "coloured-rings", 0),
        ("mesh:1024x1024", "binary-exchange", 31_469_568),
        ("torus:1024x1024", "tseng-gupta-panda", 0),
        ("mesh:1024x1024", "cyclic-exchange", 0),
    ];
    for &(text, algorithm, contended) in &cases[..reach(2, 4)] {
        let machine = machine(text).unwrap();
        let problem = Problem::new(Collective::AllToAll, machine.ranks(), 1, 1024).unwrap();
        let schedule = schedule_of(&machine, &problem, algorithm, &Default::default()).unwrap();
        let found = conflicts(&Scheduled::new(&schedule, &machine), &machine, None, MEMORY);
        assert_eq!(found.unwrap().conflicts, contended, "{algorithm}");
    }
}

/// No two ranks are equivalent, but a step has few kinds of them.
#[test]
fn kinds_make_counting_less_work() {
    let machine = machine("torus:1021x1019").unwrap();
    let problem = Problem::new(Collective::AllToAll, machine.ranks(), 1, 1024).unwrap();
    let one_class = BTreeMap::from([("classes".to_owned(), 1.into())]);
    let schedule = schedule_of(&machine, &problem, "coloured-rings", &one_class).unwrap();
    assert_eq!(schedule.rule().classes().count(), machine.ranks());
    assert_eq!(check_counting_work(&schedule, &machine), Ok(()));
    let counts = count(&schedule, &machine, None, MEMORY).unwrap();
    assert_eq!((counts.steps, counts.messages), (1035, 1_067_440_196));
}

#[test]
fn progress_ends_at_its_total() {
    for (name, operation, method) in [
        ("torus:8x8", Collective::AllToAll, Method::Classes),
        ("torus:8x8", Collective::AllGather, Method::Classes),
        ("torus:8x8", Collective::AllToAll, Method::Replay),
    ] {
        let machine = machine(name).unwrap();
        let problem = Problem::new(operation, machine.ranks(), machine.ports, 64).unwrap();
        for algorithm in ["direct", "coloured-rings", "ring", "bucket"] {
            let Ok(schedule) = schedule_of(&machine, &problem, algorithm, &Default::default())
            else {
                continue;
            };
            let (all, done) = (AtomicU64::new(0), AtomicU64::new(0));
            let progress = Progress {
                starting: &|length| all.store(length, Ordering::Relaxed),
                done: &|more| _ = done.fetch_add(more, Ordering::Relaxed),
            };
            let found = verify_watched(&schedule, &machine, Some(method), MEMORY, &progress);
            assert_eq!(found.unwrap().violation, None);
            assert!(all.load(Ordering::Relaxed) > 0);
            assert_eq!(done.into_inner(), all.into_inner(), "{algorithm} by {}", method.name());
        }
    }
}

#[test]
fn a_billion_ranks_are_counted_by_their_period() {
    let machine = machine("torus:32768x32768").unwrap();
    let problem = Problem::new(Collective::AllToAll, machine.ranks(), 1, 1 << 20).unwrap();
    let schedule = schedule_of(&machine, &problem, "suh-shin", &Default::default()).unwrap();
    let counts = count(&schedule, &machine, None, MEMORY).unwrap();
    let (ranks, side) = (1u128 << 30, 32768u128);
    assert_eq!((counts.steps, counts.bytes), (16386, (ranks * (side + 4) / 4) << 20));
    assert_eq!((counts.hops, counts.link_conflicts), (2 * (side - 1), 0));
}
