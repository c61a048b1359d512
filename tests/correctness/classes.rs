//! Classes are true, and readers that rely on them get the results of readers that do not.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{MEMORY, machines_and_ports, schedule_of, serving, without_classes};
use proptest::prelude::*;
use topocoll::{
    Collective, Machine, Method, PerClass, Problem, Progress, Rank, RankClasses, Schedule, Step,
    Transfer, count, count_steps, link_totals, machine, verify, verify_watched,
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
            assert!(
                alike(&expected.receives, &does.receives),
                "{place}: receives of rank {rank} in step {step}"
            );
        }
    }
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
