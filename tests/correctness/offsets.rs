//! `direct-offsets` on tori of any sides and any ports.

use common::{MEMORY, check_promises, claims, find, problem, reach, schedule_of, without_classes};
use rayon::prelude::*;
use topocoll::{Collective, Machine, Method, Parameters, count, machine, verify};

fn named(text: &str, ports: u32) -> Machine {
    let mut machine = machine(text).unwrap();
    machine.set_ports(ports);
    machine
}

/// Delivers by replay and by its only class, both with the counts that it claims exactly.
fn check(text: &str, ports: u32) {
    let place = format!("{text} with {ports} ports");
    let machine = named(text, ports);
    let problem = problem(&machine, Collective::AllToAll, 3);
    let none = Parameters::new();
    let algorithm = find("direct-offsets").unwrap();
    check_promises(&machine, algorithm, &problem, &none, Method::Replay);
    let schedule = schedule_of(&machine, &problem, "direct-offsets", &none).unwrap();
    let by_class = verify(&schedule, &machine, Some(Method::Classes), MEMORY).unwrap();
    assert_eq!((by_class.classes, by_class.violation), (1, None), "{place}");
    let plain = without_classes(&schedule);
    let by_replay = verify(&plain, &machine, Some(Method::Replay), MEMORY).unwrap();
    assert_eq!((by_replay.violation, by_replay.counts), (None, by_class.counts), "{place}");
    let claims = claims(&machine, &problem, "direct-offsets", &none).unwrap();
    let counts = by_class.counts;
    let steps = u64::from(machine.ranks() - 1).div_ceil(ports.into());
    assert_eq!((counts.steps, counts.bytes), (steps, 3 * u128::from(steps)), "{place}");
    assert_eq!(
        (claims.link_bytes_floor, claims.hops),
        (counts.link_bytes, Some(counts.hops)),
        "{place}"
    );
    assert_eq!(claims.contention_free, counts.link_conflicts == 0, "{place}");
}

#[test]
fn tori_of_all_small_sides_and_ports_deliver_as_claimed() {
    let two =
        (1..=reach(7, 9u32)).flat_map(|a| (1..=reach(7, 9)).map(move |b| format!("torus:{a}x{b}")));
    let most = reach(4, 5u32);
    let three = (1..=most)
        .flat_map(|a| (1..=most).flat_map(move |b| (1..=most).map(move |c| (a, b, c))))
        .map(|(a, b, c)| format!("torus:{a}x{b}x{c}"));
    let others = [
        "torus:1",
        "torus:2",
        "torus:3",
        "torus:4",
        "torus:13",
        "torus:32",
        "torus:2x2x2x2x2x2",
        "torus:3x3x3x3",
        "torus:4x1x2x5x2",
        "torus:16x16",
        "torus:10x15",
        "torus:7x24",
    ];
    let all: Vec<_> = two.chain(three).chain(others.map(str::to_owned)).collect();
    all.into_par_iter().for_each(|text| {
        for ports in [1, 2, 3, 4, 5, 6, 8, 12, 1000] {
            check(&text, ports);
        }
    });
}

#[test]
fn direct_offsets_refuse_other_networks() {
    for (text, reason) in [
        ("mesh:4x6", "requires sides that wrap; side 0 (4), side 1 (6) break this rule"),
        ("grid:4~x6", "requires sides that wrap; side 1 (6) breaks this rule"),
        ("full:8", "requires a torus, which may be twisted, without missing nodes or failed links"),
        (
            "torus:16385x16384",
            "planning the schedule would take 2147614720 bytes, but the limit is 1073741824",
        ),
        (
            "twisted-torus:64+1x512",
            "requires at most 16384 ranks on a twisted torus; there are 32768 ranks",
        ),
    ] {
        let machine = machine(text).unwrap();
        let problem = problem(&machine, Collective::AllToAll, 1);
        let refused = schedule_of(&machine, &problem, "direct-offsets", &Parameters::new());
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(reason), "{text}: {refused}");
    }
}

/// A mesh of single ranks along a side is a torus.
#[test]
fn sides_of_one_rank_need_not_wrap() {
    check("grid:6~x1", 2);
}

#[test]
fn a_million_ranks_are_counted_from_one() {
    let machine = named("torus:1024x1024", 4);
    let problem = problem(&machine, Collective::AllToAll, 1);
    let none = Parameters::new();
    let schedule = schedule_of(&machine, &problem, "direct-offsets", &none).unwrap();
    let counts = count(&schedule, &machine, None, MEMORY).unwrap();
    assert_eq!((counts.steps, counts.link_bytes), (1 << 18, 1 << 27));
}
