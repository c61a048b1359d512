//! Readers that visit one rank of each class get the results of readers that visit all.

use std::collections::{BTreeMap, BTreeSet};

use topocoll::{
    Contention, Kinds, Machine, Method, PerClass, Rank, RankClasses, Schedule, Shape, Step,
    Transfer, count, count_steps, link_totals, verify,
};

use crate::{MEMORY, without_classes};

/// Every rank acts as the representative of its class, translated.
pub fn check_translations(schedule: &Schedule, place: &str) {
    let rule = schedule.rule();
    let classes: RankClasses = rule.classes();
    let named = rule.names_routes(&classes);
    let (mut does, mut expected) = (Step::default(), Step::default());
    for rank in (0..schedule.problem.ranks).map(Rank) {
        let representative = classes.representative(classes.class_of(rank));
        let same = |theirs: &[Transfer], own: &[Transfer]| {
            theirs.len() == own.len()
                && theirs.iter().zip(own).all(|(theirs, own)| {
                    let peer = classes.translated(theirs.peer, representative, rank);
                    (peer, &theirs.slots, &theirs.route) == (own.peer, &own.slots, &own.route)
                })
        };
        for step in 0..rule.steps() {
            rule.step(representative, step, &mut expected);
            rule.step(rank, step, &mut does);
            let own = does.sends.iter().all(|send| send.route.is_empty());
            assert!(named || own, "{place}: routes of rank {rank} in step {step}");
            assert!(
                same(&expected.sends, &does.sends),
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
                same(&expected.receives, &does.receives),
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
pub fn check_kinds(schedule: &Schedule, machine: &Machine, place: &str) -> u32 {
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
pub fn set_values(machine: &mut Machine, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let classes = machine.topology.link_classes().len();
    let mut values = |unit: f64| {
        let value = |_| unit * f64::from(random.u8(1..=3));
        PerClass::each(&(0..classes).map(value).collect::<Vec<_>>())
    };
    let timing = &mut machine.timing;
    (timing.startup, timing.per_byte, timing.per_hop) =
        (values(0.3e-6), values(0.7e-9), values(0.1e-7));
    timing.contention = Contention { alone: 1.0, several: 2.5 };
}

/// The two methods, and counting with and without classes, agree exactly.
pub fn check_classes(schedule: &Schedule, machine: &Machine, place: &str) {
    check_translations(schedule, place);
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
