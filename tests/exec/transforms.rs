//! The exchanges of a Fourier transform: what FFTW sends in them, and what ranks have before and after each.

use std::collections::BTreeMap;
use std::ops::Range;

use topocoll::{Among, Budget, Distribution, Exchange, Groups, Rank, Transform, machine};

const POINT: u64 = 16;

fn ranked(sides: [u64; 3], name: &str) -> (Transform, Vec<Distribution>) {
    let transform = Transform::new(sides, POINT).unwrap();
    let found = transform.rank(&machine(name).unwrap(), Budget::quick()).unwrap();
    (transform, found)
}

fn numbers<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> Vec<T> {
    text.split('x').map(|number| number.parse().unwrap()).collect()
}

/// `tests/mpi/transposes.c` recorded the messages of FFTW's transposes on 4 and 8 processes.
#[test]
fn blocks_are_the_messages_of_fftw() {
    let recorded = include_str!("../inputs/fftw-transposes.txt");
    let mut largest: BTreeMap<(&str, &str, &str), (u64, u64)> = BTreeMap::new();
    let mut known = BTreeMap::new();
    for line in recorded.lines().filter(|line| !line.starts_with('#')) {
        let (about, bytes) = line.split_once(": ").unwrap();
        let [sides, grid, exchange, group] = about.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let bytes: Vec<u64> = bytes.split(' ').map(|bytes| bytes.parse().unwrap()).collect();
        let pencils: [u32; 2] = numbers(grid).try_into().unwrap();
        let ranks = pencils[0] * pencils[1];
        let of = || ranked(numbers(sides).try_into().unwrap(), &format!("full:{ranks}"));
        let (transform, found) = known.entry((sides, ranks)).or_insert_with(of);
        let on = found.iter().find(|on| on.pencils == pencils && on.bricks == 1).unwrap();
        // FFTW's transform over slabs has the exchange of columns alone.
        let among = if exchange == "rows" { Among::Rows } else { Among::Columns };
        let of = on.exchanges.iter().find(|one| one.among == among).unwrap();
        let size = of.ranks;
        let ends = (0..size).flat_map(|from| (0..size).map(move |to| [from, to]));
        assert_eq!(bytes.len(), (size * size) as usize, "{line}");
        for ([from, to], sent) in ends.zip(bytes) {
            let block = transform.block_bytes(on, among, group.parse().unwrap(), [from, to]);
            assert!(block == sent || from == to, "{line}: {from} to {to}: {block}");
            let (most, all) = largest.entry((sides, grid, exchange)).or_default();
            (*most, *all) = (block.max(*most), of.block_bytes);
        }
    }
    assert_eq!(largest.len(), 4 * (1 + 4 + 1 + 6));
    assert!(largest.values().all(|(most, all)| most == all), "{largest:?}");
}

type Points = [Range<u64>; 3];

fn common(a: &Points, b: &Points) -> u64 {
    let sides = a.iter().zip(b);
    sides.map(|(a, b)| a.end.min(b.end).saturating_sub(a.start.max(b.start))).product()
}

/// The points that a rank has at the beginning, between exchanges and in the end.
fn stages(sides: [u64; 3], on: &Distribution, rank: u32) -> [Points; 5] {
    let ([p1, p2], k) = (on.pencils, on.bricks);
    let at = |rank: u32| match on.rows_are_consecutive {
        true => [rank / p2, rank % p2],
        false => [rank % p1, rank / p1],
    };
    let part = |side: usize, parts: u32, which: u32| Transform::part(sides[side], parts, which);
    let along_third = |rank| [part(0, p1, at(rank)[0]), part(1, p2, at(rank)[1]), 0..sides[2]];
    let along_first = |rank| [0..sides[0], part(1, p1, at(rank)[0]), part(2, p2, at(rank)[1])];
    // All that k consecutive ranks have, divided along the side that is whole.
    let (within, first) = (rank % k, rank - rank % k);
    let brick = |of: &dyn Fn(u32) -> Points, whole: usize| {
        let (one, last) = (of(first), of(first + k - 1));
        let mut all: Points = std::array::from_fn(|side| one[side].start..last[side].end);
        all[whole] = part(whole, k, within);
        all
    };
    let along_second = [part(0, p1, at(rank)[0]), 0..sides[1], part(2, p2, at(rank)[1])];
    [
        brick(&along_third, 2),
        along_third(rank),
        along_second,
        along_first(rank),
        brick(&along_first, 0),
    ]
}

/// Ranks exchange only in their groups, and no block is larger than the largest, which occurs.
#[test]
fn exchanges_lead_from_one_distribution_to_the_next() {
    let mut seen = [0; 4];
    for (sides, name) in [
        ([16, 16, 16], "torus:4x4"),
        ([8, 12, 20], "cluster:4*4"),
        ([9, 10, 7], "full:8"),
        ([7, 13, 11], "full:12"),
    ] {
        let machine = machine(name).unwrap();
        let (_, found) = ranked(sides, name);
        for on in &found {
            let stages: Vec<_> = (0..machine.ranks()).map(|rank| stages(sides, on, rank)).collect();
            for one in &on.exchanges {
                let place = format!("{sides:?} {name} {on:?}");
                let stage = match one.among {
                    Among::BricksBefore => 0,
                    Among::Rows => 1,
                    Among::Columns => 2,
                    Among::BricksAfter => 3,
                };
                seen[stage] += 1;
                let groups = Groups::named(&one.groups, &machine).unwrap();
                let group = |rank: usize| groups.place(Rank(rank as u32)).unwrap().0;
                let mut most = 0;
                for (from, before) in stages.iter().enumerate() {
                    let mut sent = 0;
                    for (to, after) in stages.iter().enumerate() {
                        let points = common(&before[stage], &after[stage + 1]);
                        assert!(points == 0 || group(from) == group(to), "{place}");
                        (most, sent) = (points.max(most), sent + points);
                    }
                    assert_eq!(sent, common(&before[stage], &before[stage]), "{place}");
                }
                assert_eq!(most * POINT, one.block_bytes, "{place}");
                assert_eq!(groups.sizes().next(), Some(one.ranks), "{place}");
            }
        }
    }
    assert!(seen.iter().all(|&count| count >= 10), "{seen:?}");
}

/// The time of an exchange is that of its schedule in all groups at once, and the ranking is by their sum.
#[test]
fn a_process_grid_costs_what_its_schedules_cost() {
    let torus = machine("torus:4x8").unwrap();
    let (_, found) = ranked([64, 64, 64], "torus:4x8");
    for one in found.iter().flat_map(|on| &on.exchanges) {
        let groups = Groups::named(&one.groups, &torus).unwrap();
        let exchange = Exchange::all_to_all(&torus).unwrap().groups(&groups).unwrap();
        let exchange = exchange.block_bytes(one.block_bytes).unwrap();
        let schedule = exchange.schedule(&one.choice.algorithm, &one.choice.parameters).unwrap();
        let counts = exchange.count(&schedule).unwrap();
        let ratio = one.choice.price.time.total() / counts.time.total();
        assert!((ratio - 1.0).abs() < 1e-9, "{one:?} {counts:?}");
        assert!(one.bound.seconds <= counts.time.total() * (1.0 + 1e-9), "{one:?}");
    }
    assert!(found.is_sorted_by(|a, b| a.seconds() <= b.seconds()));
    // 1 x 32 and 32 x 1 in one order each, 2 x 16 to 16 x 2 in two, and bricks of 2, 4 and 8.
    assert_eq!(found.iter().filter(|on| on.bricks == 1).count(), 2 + 4 * 2);
    assert_eq!(found.iter().filter(|on| on.bricks > 1).count(), 2 * (3 + 2 + 1));
    assert_eq!(found[0].bricks, 1);
}

/// Without work to count, a process grid takes at least the bound, and exact prices come first.
#[test]
fn grids_that_are_not_priced_come_last() {
    let torus = machine("torus:8x8").unwrap();
    let transform = Transform::new([64; 3], POINT).unwrap();
    let exact = transform.rank(&torus, Budget::quick()).unwrap();
    let mut budget = Budget::quick();
    budget.work = 0;
    let some = transform.rank(&torus, budget).unwrap();
    assert!(exact.iter().all(Distribution::is_exact));
    let priced = some.iter().filter(|on| on.is_exact()).count();
    assert!(priced > 0 && priced < some.len(), "{priced} of {}", some.len());
    assert!(some.is_sorted_by_key(|on| !on.is_exact()));
    for on in &some {
        let is_same = |other: &&Distribution| {
            (other.pencils, other.bricks, other.rows_are_consecutive)
                == (on.pencils, on.bricks, on.rows_are_consecutive)
        };
        let other = exact.iter().find(is_same).unwrap();
        for (one, other) in on.exchanges.iter().zip(&other.exchanges) {
            assert!(one.is_exact() || one.seconds() <= other.seconds() * (1.0 + 1e-9), "{one:?}");
        }
    }
}

#[test]
fn transforms_without_a_process_grid_are_refused() {
    let error = |sides, name: &str| {
        let transform = Transform::new(sides, POINT);
        let found = transform.and_then(|of| of.rank(&machine(name)?, Budget::quick()));
        found.unwrap_err().to_string()
    };
    assert_eq!(error([8, 0, 8], "full:4"), "8x0x8 points of 16 bytes are no data");
    assert_eq!(
        error([1 << 30, 1 << 30, 1], "full:4"),
        "1073741824x1073741824x1 points of 16 bytes are more than 18446744073709551615 bytes"
    );
    assert_eq!(error([8, 8, 8], "full:1"), "one rank exchanges nothing");
    assert_eq!(
        error([4, 8, 3], "full:32"),
        "32 ranks form no process grid P1 x P2 for 4x8x3 points: P1 is at most 4, P2 at most 3"
    );
    assert!(error([1 << 20, 1 << 20, 1 << 15], "full:2").contains("block"));
}
