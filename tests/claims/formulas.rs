//! The papers' closed forms equal the counts of the readers.

use common::{all_settings, claims, find, reach, schedule_of, setting};
use rayon::prelude::*;
use topocoll::{
    Collective, Counts, Machine, Method, Parameters, Problem, Rank, Setting, Shape, Step,
    Violation, best_bounds, machine, verify,
};

fn problem(machine: &Machine) -> Problem {
    Problem::new(Collective::AllToAll, machine.ranks(), machine.ports, 1).unwrap()
}

fn check(
    text: &str,
    algorithm: &str,
    parameters: &Parameters,
    method: Method,
) -> Result<Counts, Violation> {
    let machine = machine(text).unwrap();
    let schedule = schedule_of(&machine, &problem(&machine), algorithm, parameters).unwrap();
    let report = verify(&schedule, &machine, Some(method), 1 << 33).unwrap();
    report.violation.map_or(Ok(report.counts), Err)
}

fn set(name: &str, value: u64) -> Parameters {
    Parameters::from([(name.to_owned(), Setting::Integer(value))])
}

/// Machine, steps, blocks, hops, rearrangements.
const SUH_SHIN: [(&str, u64, u128, u128, u64); 18] = [
    ("torus:4x4", 4, 32, 6, 1),
    ("torus:8x8", 6, 192, 14, 3),
    ("torus:8x12", 8, 384, 22, 3),
    ("torus:12x8", 8, 384, 22, 3),
    ("torus:12x12", 8, 576, 22, 3),
    ("torus:16x16", 10, 1280, 30, 3),
    ("torus:8x8x4", 9, 1152, 21, 4),
    ("torus:4x8x8", 9, 1152, 21, 4),
    ("torus:8x8x16", 15, 7680, 45, 4),
    ("torus:12x12x12", 12, 10368, 33, 4),
    ("torus:8x8x8x8", 12, 24576, 28, 5),
    ("torus:12", 6, 36, 11, 1),
    ("torus:10x10", 10, 500, 18, 2),
    ("torus:2x2x2", 3, 12, 3, 0),
    ("mesh:2x4", 4, 16, 6, 2),
    ("mesh:6x6", 6, 108, 18, 2),
    ("mesh:6x6x6", 9, 972, 27, 3),
    ("grid:4~x1x6", 6, 72, 18, 2),
];

#[test]
fn suh_shin_counts_equal_the_papers() {
    for (text, steps, blocks, hops, rearrangements) in SUH_SHIN {
        let few = machine(text).unwrap().ranks() <= reach(256, 4096);
        for &method in if few { BOTH } else { &BOTH[1..] } {
            let counts = check(text, "suh-shin", &Parameters::new(), method).unwrap();
            assert_eq!((counts.steps, counts.bytes, counts.hops), (steps, blocks, hops), "{text}");
            assert_eq!(
                (counts.rearrangements, counts.link_conflicts, counts.port_violations),
                (rearrangements, 0, 0)
            );
            assert_eq!(counts.link_bytes, counts.bytes);
            let fixed =
                Parameters::from([("layout".to_owned(), Setting::Text("fixed".to_owned()))]);
            let counts = check(text, "suh-shin", &fixed, method).unwrap();
            assert_eq!(
                (counts.steps, counts.bytes, counts.hops, counts.rearrangements),
                (steps, blocks, hops, 0)
            );
        }
    }
}

#[test]
fn suh_shin_in_the_nearer_direction_takes_the_papers_steps_and_half_the_volume() {
    let nearer = Parameters::from([("ways".to_owned(), Setting::Text("nearer".to_owned()))]);
    for (text, steps, blocks) in [
        ("torus:8x8", 6, 192),
        ("torus:12x12", 8, 480),
        ("torus:8x12", 8, 352),
        ("torus:16x16", 10, 1024),
        ("torus:20x12", 12, 1056),
        ("torus:32x32", 18, 6144),
        ("torus:64x64", 34, 40_960),
        ("torus:128x128", 66, 294_912),
        ("torus:10x10", 10, 340),
    ] {
        let machine = machine(text).unwrap();
        let schedule = schedule_of(&machine, &problem(&machine), "suh-shin", &nearer).unwrap();
        let counts = topocoll::count(&schedule, &machine, None, 1 << 33).unwrap();
        assert_eq!((counts.steps, counts.bytes), (steps, blocks), "{text}");
        assert_eq!((counts.link_conflicts, counts.port_violations), (0, 0), "{text}");
        if machine.ranks() <= reach(256, 1024) {
            for &method in BOTH {
                check(text, "suh-shin", &nearer, method).unwrap();
            }
        }
    }
}

/// Both ways to verify, of which the first takes long on many ranks.
const BOTH: &[Method] = &[Method::Replay, Method::Classes];

/// Machine, directions, steps, blocks over the busiest links.
const SUH_SHIN_BY_DIGITS: [(&str, &str, u64, u128); 14] = [
    ("torus:16x16", "one", 8, 1280),
    ("torus:16x16", "nearer", 10, 1024),
    ("torus:32x32", "one", 10, 9216),
    ("torus:32x32", "nearer", 14, 6144),
    ("torus:16x8", "one", 8, 640),
    ("torus:16x8", "nearer", 10, 512),
    ("torus:4x16", "nearer", 10, 256),
    ("torus:16x4x8", "one", 12, 3840),
    ("torus:10x10", "one", 8, 500),
    ("torus:10x10", "nearer", 10, 340),
    ("torus:28x28", "nearer", 12, 4256),
    ("torus:28x28", "one", 10, 6272),
    ("torus:20x12", "nearer", 12, 1184),
    ("torus:14x6", "nearer", 10, 388),
];

#[test]
fn suh_shin_by_digits_takes_logarithmic_steps_and_shares_links() {
    for (text, ways, steps, blocks) in SUH_SHIN_BY_DIGITS {
        let word = |name: &str, value: &str| (name.to_owned(), Setting::Text(value.to_owned()));
        let digits = Parameters::from([word("rings", "digits"), word("ways", ways)]);
        let few = machine(text).unwrap().ranks() <= reach(256, u32::MAX);
        for &method in if few { BOTH } else { &BOTH[1..] } {
            let counts = check(text, "suh-shin", &digits, method).unwrap();
            assert_eq!((counts.steps, counts.link_bytes), (steps, blocks), "{text} {ways}");
            assert_eq!(counts.port_violations, 0, "{text} {ways}");
        }
    }
}

#[test]
fn bruck_counts_equal_the_exact_sums() {
    let cases: Vec<(u64, u32)> = (1..=200).flat_map(|n| (1..=6).map(move |k| (n, k))).collect();
    cases.into_par_iter().for_each(|(n, k)| {
        let mut machine = machine(&format!("full:{n}")).unwrap();
        machine.set_ports(k);
        let k = machine.ports.rank;
        let problem = problem(&machine);
        let mut radices: Vec<u64> = (2..=n.max(2)).collect();
        if n > 32 {
            radices.retain(|&r| r <= 9 || [n.isqrt(), n.isqrt() + 1, n / 2, n - 1, n].contains(&r));
        }
        for r in radices {
            let place = format!("n {n} r {r} k {k}");
            let schedule = schedule_of(&machine, &problem, "bruck", &set("radix", r)).unwrap();
            let claims = claims(&machine, &problem, "bruck", &set("radix", r)).unwrap();
            let expected = bruck_sums(n, r, k.into());
            assert_eq!((claims.steps, claims.bytes), expected, "{place}");
            let counts = if n <= 64 {
                let report = verify(&schedule, &machine, Some(Method::Replay), 1 << 33).unwrap();
                assert_eq!(report.violation, None, "{place}");
                report.counts
            } else {
                topocoll::count(&schedule, &machine, None, 1 << 33).unwrap()
            };
            if n <= 24 {
                let report = verify(&schedule, &machine, Some(Method::Classes), 1 << 33).unwrap();
                assert_eq!((report.violation, report.counts), (None, counts), "{place}");
            }
            assert_eq!((counts.steps, counts.bytes), expected, "{place}");
            assert_eq!(counts.port_violations, 0, "{place}");
        }
    });
}

/// C1 and C2 of the index algorithm, from every digit of every block.
fn bruck_sums(n: u64, r: u64, k: u64) -> (u64, u128) {
    let (mut steps, mut blocks, mut weight) = (0, 0, 1);
    while weight < n {
        let values: Vec<u64> = (1..r).filter(|z| z * weight < n).collect();
        for group in values.chunks(k as usize) {
            let size = |z: &u64| (0..n).filter(|j| j / weight % r == *z).count();
            blocks += group.iter().map(size).max().unwrap() as u128;
            steps += 1;
        }
        weight *= r;
    }
    (steps, blocks)
}

/// Along each side the index algorithm of its ranks, with the blocks of all other sides.
#[test]
fn bruck_by_coordinates_takes_the_sums_of_all_sides() {
    let grids = [
        "torus:4x4",
        "torus:5x7",
        "torus:2x9",
        "torus:16x6",
        "torus:1x13x1",
        "torus:3x5x2",
        "torus:4x4x4",
        "torus:7x6x5",
        "torus:2x2x2x2x2",
        "torus:1",
        "torus:2x1",
        "mesh:4x4",
        "mesh:7x5",
        "mesh:2x3x4",
        "mesh:10",
        "grid:5~x6",
        "grid:3x8~x4",
    ];
    let cases: Vec<_> = grids.iter().flat_map(|text| (1..=6).map(move |k| (*text, k))).collect();
    cases.into_par_iter().for_each(|(text, k)| {
        let mut machine = machine(text).unwrap();
        machine.set_ports(k);
        let Shape::Grid(grid) = machine.topology.shape() else { panic!("a grid") };
        let (sides, torus) = (grid.sides().to_vec(), grid.wrap().iter().all(|&wraps| wraps));
        let (problem, ranks) = (problem(&machine), u64::from(machine.ranks()));
        for r in 2..=sides.iter().copied().fold(2, u32::max).into() {
            let place = format!("{text} r {r} k {k}");
            let mut setting = set("radix", r);
            setting.insert("digits".to_owned(), "coordinates".into());
            let claims = claims(&machine, &problem, "bruck", &setting).unwrap();
            let of_sides = sides.iter().map(|&side| {
                let (steps, blocks) = bruck_sums(side.into(), r, k.into());
                (steps, blocks * u128::from(ranks / u64::from(side)))
            });
            let expected = of_sides.fold((0, 0), |all, own| (all.0 + own.0, all.1 + own.1));
            assert_eq!((claims.steps, claims.bytes), expected, "{place}");
            let schedule = schedule_of(&machine, &problem, "bruck", &setting).unwrap();
            assert_eq!(schedule.origin.parameters, setting, "{place}");
            for method in [Method::Replay, Method::Classes] {
                let report = verify(&schedule, &machine, Some(method), 1 << 33).unwrap();
                assert_eq!(report.violation, None, "{place}");
                let counts = report.counts;
                assert!(method == Method::Replay || !torus || report.classes == 1, "{place}");
                assert_eq!((counts.steps, counts.bytes), expected, "{place}");
                assert_eq!(counts.link_bytes, claims.link_bytes_floor, "{place}");
                assert_eq!(Some(counts.hops), claims.hops, "{place}");
                assert_eq!(counts.link_conflicts == 0, claims.contention_free, "{place}");
                assert_eq!((counts.rearrangements, counts.port_violations), (0, 0), "{place}");
            }
        }
    });
}

#[test]
fn bruck_by_coordinates_is_refused_with_a_reason() {
    let coordinates = Parameters::from([("digits".to_owned(), "coordinates".into())]);
    for (text, setting, reason) in [
        (
            "full:9",
            coordinates.clone(),
            "requires a torus, mesh or grid, for digits=coordinates, which full:9 is not",
        ),
        (
            "torus:4x8",
            coordinates.into_iter().chain(set("radix", 9)).collect(),
            "radix is `9`, not a whole number from 2 to 8",
        ),
        (
            "torus:4x8",
            Parameters::from([("digits".to_owned(), "ranks".into())]),
            "digits is `ranks`, not one of rank, coordinates",
        ),
    ] {
        let machine = machine(text).unwrap();
        let refused = schedule_of(&machine, &problem(&machine), "bruck", &setting).unwrap_err();
        assert!(refused.to_string().contains(reason), "{text}: {refused}");
    }
}

/// The default of a parameter leaves the others to be chosen by cost.
#[test]
fn digits_of_ranks_are_the_default() {
    let machine = machine("torus:6x6").unwrap();
    let schedule = |setting| schedule_of(&machine, &problem(&machine), "bruck", &setting).unwrap();
    let rank = schedule(Parameters::from([("digits".to_owned(), "rank".into())]));
    let of_ranks = rank.origin.parameters.get("radix").unwrap().to_string();
    let given = schedule(set("radix", of_ranks.parse().unwrap()));
    assert_eq!(rank.origin, given.origin);
    assert_eq!(rank.rule().classes().count(), 1);
    assert_eq!(rank.rule().steps(), given.rule().steps());
}

/// Machine, ports, steps and blocks over the busiest links.
const DIRECT_OFFSETS: [(&str, u32, u64, u128); 22] = [
    ("torus:8x8", 1, 63, 172),
    ("torus:8x8", 2, 32, 88),
    ("torus:8x8", 4, 16, 64),
    ("torus:8x8", 8, 8, 64),
    ("torus:8x8", 3, 21, 70),
    ("torus:7x7", 4, 12, 42),
    ("torus:5x7", 4, 9, 30),
    ("torus:5x7", 3, 12, 30),
    ("torus:6x10", 4, 15, 75),
    ("torus:16x16", 4, 64, 512),
    ("torus:64x64", 4, 1024, 32_768),
    ("torus:64x96", 4, 1536, 73_728),
    ("torus:4x4x4", 4, 16, 32),
    ("torus:4x4x4", 6, 11, 34),
    ("torus:5x5x5", 6, 21, 75),
    ("torus:4x4x8", 4, 32, 128),
    ("torus:4x4x8", 6, 22, 132),
    ("torus:6x8x10", 4, 120, 600),
    ("torus:16x16x16", 4, 1024, 8192),
    ("torus:2x2", 4, 1, 1),
    ("torus:12", 2, 6, 21),
    ("torus:13", 2, 6, 21),
];

/// On even sides with four ports, and on n equal ones with 2n, all links carry what they must.
#[test]
fn direct_offsets_cost_as_documented() {
    for (text, ports, steps, blocks) in DIRECT_OFFSETS {
        let mut machine = machine(text).unwrap();
        machine.set_ports(ports);
        let problem = problem(&machine);
        let schedule =
            schedule_of(&machine, &problem, "direct-offsets", &Parameters::new()).unwrap();
        let method = if machine.ranks() <= 512 { Method::Replay } else { Method::Classes };
        let found = verify(&schedule, &machine, Some(method), 1 << 33).unwrap();
        let counts = found.counts;
        assert_eq!(found.violation, None, "{text} with {ports} ports");
        assert_eq!((counts.steps, counts.link_bytes), (steps, blocks), "{text}, {ports} ports");
    }
    for n in [4u64, 6, 8, 10, 30, 62, 128, 512] {
        for (text, ranks) in
            [(format!("torus:{n}x{n}"), n * n), (format!("torus:{}x{n}", n + 2), n * (n + 2))]
        {
            let mut machine = machine(&text).unwrap();
            machine.set_ports(4);
            let none = Parameters::new();
            let claims = claims(&machine, &problem(&machine), "direct-offsets", &none).unwrap();
            let longest = if ranks == n * n { n } else { n + 2 };
            assert_eq!(claims.steps, ranks / 4, "{text}");
            assert_eq!(claims.link_bytes_floor, u128::from(ranks * longest / 8), "{text}");
        }
    }
}

#[test]
fn pairwise_exchange_on_a_mesh_is_the_papers_figure_1() {
    let counts = check("mesh:2x4", "pairwise-xor", &Parameters::new(), Method::Replay).unwrap();
    assert_eq!((counts.steps, counts.contended_steps, counts.contention_free_steps), (7, 4, 11));
}

#[test]
fn exchanges_on_squares_deliver_as_claimed() {
    for d in 1..=reach(4, 5u32) {
        for (shape, algorithms) in [
            (
                "mesh",
                &["binary-exchange", "quadrant-exchange", "cyclic-exchange", "minimum-startup"][..],
            ),
            ("torus", &["tseng-gupta-panda", "minimum-startup"]),
        ] {
            let text = format!("{shape}:{0}x{0}", 1 << d);
            for name in algorithms {
                let place = format!("{name} on {text}");
                let machine = machine(&text).unwrap();
                let claims =
                    claims(&machine, &problem(&machine), name, &Parameters::new()).unwrap();
                let counts = check(&text, name, &Parameters::new(), Method::Replay).unwrap();
                assert_eq!((counts.steps, counts.bytes), (claims.steps, claims.bytes), "{place}");
                assert_eq!(Some(counts.hops), claims.hops, "{place}");
                let rearrangements = claims.rearrangements.map(u64::from);
                assert_eq!(Some(counts.rearrangements), rearrangements, "{place}");
                assert_eq!(counts.port_violations, 0, "{place}");
                assert_eq!(counts.link_conflicts == 0, claims.contention_free || d == 1, "{place}");
                assert!(counts.link_bytes == claims.link_bytes_floor, "{place}");
                if d <= 4 {
                    check(&text, name, &Parameters::new(), Method::Classes).unwrap();
                }
            }
        }
    }
}

#[test]
fn a_phase_of_cyclic_exchange_pairs_a_rank_along_its_row_and_its_column() {
    for (text, phases) in [("mesh:8x8", 4), ("torus:16x16", 5)] {
        let machine = machine(text).unwrap();
        let name = if phases == 4 { "cyclic-exchange" } else { "tseng-gupta-panda" };
        let schedule = schedule_of(&machine, &problem(&machine), name, &Parameters::new()).unwrap();
        let mut rows_first = [false; 2];
        for rank in (0..machine.ranks()).map(Rank) {
            for phase in 0..phases {
                let dimensions: Vec<u32> = (0..2)
                    .flat_map(|second| {
                        let mut step = Step::default();
                        schedule.rule().step(rank, 2 * phase + second, &mut step);
                        step.sends
                    })
                    .map(|send| send.route.segments()[0].dimension)
                    .collect();
                assert!(matches!(dimensions[..], [] | [0, 1] | [1, 0]), "{text} {rank} {phase}");
                if let [first, _] = dimensions[..] {
                    rows_first[first as usize] = true;
                }
            }
        }
        assert_eq!(rows_first, [true; 2], "some along columns first, some along rows");
    }
}

/// All multisets of node sizes that sum to `ranks`, by falling size.
fn node_sizes(ranks: u32, most: u32) -> Vec<Vec<u32>> {
    if ranks == 0 {
        return vec![Vec::new()];
    }
    let first = 1..=ranks.min(most);
    first
        .flat_map(|size| {
            node_sizes(ranks - size, size).into_iter().map(move |mut rest| {
                rest.insert(0, size);
                rest
            })
        })
        .collect()
}

fn clustered(inside: &str, rounds: &str) -> Parameters {
    let text = |name: &str, value: &str| (name.to_owned(), Setting::Text(value.to_owned()));
    Parameters::from([text("inside", inside), text("rounds", rounds)])
}

#[test]
fn clustered_factor_takes_the_papers_number_of_steps() {
    let clusters: Vec<(usize, Vec<u32>)> =
        (1..=reach(20, 24)).flat_map(|ranks| node_sizes(ranks, ranks)).enumerate().collect();
    let schedules = clusters
        .into_par_iter()
        .map(|(i, mut sizes)| {
            let mut schedules = 0;
            let ranks: u32 = sizes.iter().sum();
            // Listed in falling, rising and mixed order.
            match i % 3 {
                0 => {}
                1 => sizes.reverse(),
                _ => {
                    let half = sizes.len() / 2;
                    sizes.rotate_left(half);
                }
            }
            let list: Vec<String> = sizes.iter().map(ToString::to_string).collect();
            let mut machine = machine(&format!("cluster:{}", list.join(","))).unwrap();
            let largest = u64::from(*sizes.iter().max().unwrap());
            let p = u64::from(ranks);
            for ports in if ranks <= 12 { 1..=3 } else { 1 + i as u32 % 3..=1 + i as u32 % 3 } {
                machine.set_ports(ports);
                let problem = problem(&machine);
                let settings = [
                    ("paired", "factors"),
                    ("paired", "permutations"),
                    ("early", "factors"),
                    ("early", "permutations"),
                ];
                // Larger clusters take one setting each.
                let chosen = if ranks <= 18 { &settings[..] } else { &settings[i / 3 % 4..][..1] };
                for &(inside, rounds) in chosen {
                    let setting = clustered(inside, rounds);
                    let place = format!("{} {setting:?} {ports} ports", machine.name);
                    let schedule =
                        schedule_of(&machine, &problem, "clustered-factor", &setting).unwrap();
                    let found = verify(&schedule, &machine, Some(Method::Replay), 1 << 33).unwrap();
                    assert_eq!(found.violation, None, "{place}");
                    let claims = claims(&machine, &problem, "clustered-factor", &setting).unwrap();
                    let counts = found.counts;
                    assert_eq!(counts.port_violations, 0, "{place}");
                    assert_eq!(
                        (counts.steps, counts.bytes),
                        (claims.steps, claims.bytes),
                        "{place}"
                    );
                    schedules += 1;
                    if machine.ports.node > 1 {
                        continue;
                    }
                    match (inside, rounds) {
                        // Theorem 1, without the rounds in which all ranks of the largest node copy to
                        // themselves.
                        ("paired", "permutations") => {
                            assert_eq!(counts.steps, largest * p - largest, "{place}");
                        }
                        ("paired", _) => {
                            assert!((largest * p - largest..=largest * p).contains(&counts.steps));
                        }
                        ("early", "permutations") => {
                            assert_eq!(
                                counts.steps,
                                largest * (p - largest) + largest - 1,
                                "{place}"
                            );
                            assert_eq!(counts.inter_node_steps, largest * (p - largest), "{place}");
                        }
                        _ => assert!(counts.steps <= largest * p, "{place}"),
                    }
                }
            }
            schedules
        })
        .sum::<u32>();
    assert!(schedules > reach(9_000, 12_000), "only {schedules}");
    let steps = |text, setting: Parameters| {
        check(text, "clustered-factor", &setting, Method::Replay).unwrap().steps
    };
    assert_eq!(steps("cluster:1,2,3", Parameters::new()), 15);
    assert_eq!(steps("cluster:1,2,3", clustered("early", "factors")), 11);
    assert_eq!(steps("cluster:1,2,3", clustered("early", "permutations")), 11);
}

/// Clusters of up to `ranks` ranks on nodes of up to `largest`, by a seed.
fn random_cluster(seed: u64, ranks: u32, largest: u32) -> Machine {
    let mut random = fastrand::Rng::with_seed(seed);
    let (ranks, largest) = (random.u32(1..=ranks), random.u32(1..=largest));
    let mut sizes = Vec::new();
    while sizes.iter().sum::<u32>() < ranks {
        sizes.push(random.u32(1..=largest));
    }
    let list: Vec<String> = sizes.iter().map(ToString::to_string).collect();
    let mut machine = machine(&format!("cluster:{}", list.join(","))).unwrap();
    machine.set_ports(random.u32(1..=4));
    machine
}

/// Replays `clustered-matchings`: it takes the steps that the largest node's port requires, and with
/// one port all of them are inter-node.
fn matchings_meet_their_bound(machine: &Machine) {
    let Shape::Clustered(clusters) = machine.topology.shape() else { panic!("a cluster") };
    let p = u64::from(machine.ranks());
    let leaving = |size: u32| u64::from(size) * (p - u64::from(size));
    let leaving = clusters.sizes().map(leaving).max().unwrap();
    let place = format!("{} {} ports", machine.name, machine.ports);
    let problem = problem(machine);
    let schedule =
        schedule_of(machine, &problem, "clustered-matchings", &Parameters::new()).unwrap();
    let found = verify(&schedule, machine, Some(Method::Replay), 1 << 33).unwrap();
    assert_eq!(found.violation, None, "{place}");
    let counts = found.counts;
    let claims = claims(machine, &problem, "clustered-matchings", &Parameters::new()).unwrap();
    assert_eq!((counts.steps, counts.bytes), (claims.steps, claims.bytes), "{place}");
    let k = u64::from(machine.ports.rank.min(machine.ports.node));
    let bound = leaving.max(p - 1).div_ceil(k);
    assert_eq!((counts.steps, counts.port_violations), (bound, 0), "{place}");
    assert_eq!(counts.inter_node_steps, leaving.div_ceil(k), "{place}");
}

#[test]
fn clustered_matchings_take_the_steps_of_the_largest_node() {
    let all: Vec<_> = (1..=16).flat_map(orders).collect();
    all.into_par_iter().for_each(|sizes| {
        let list: Vec<String> = sizes.iter().map(ToString::to_string).collect();
        for ports in 1..=3 {
            let mut machine = machine(&format!("cluster:{}", list.join(","))).unwrap();
            machine.set_ports(ports);
            matchings_meet_their_bound(&machine);
        }
    });
    for (text, steps) in [("cluster:1,2,3", 9), ("cluster:4*2", 12), ("cluster:2*2", 4)] {
        let counts = check(text, "clustered-matchings", &Parameters::new(), Method::Replay);
        assert_eq!(counts.unwrap().steps, steps);
    }
}

#[test]
fn clustered_matchings_meet_their_bound_on_random_clusters() {
    (0..reach(50, 150)).into_par_iter().for_each(|seed| {
        matchings_meet_their_bound(&random_cluster(seed, 60, 12));
    });
}

/// `cargo test --test claims formulas:: -- --ignored`: some minutes.
#[test]
#[ignore = "a sample of it always runs"]
fn clustered_matchings_meet_their_bound_on_ten_thousand_random_clusters() {
    (0..10_000).into_par_iter().for_each(|seed| {
        matchings_meet_their_bound(&random_cluster(seed, 100, 16));
    });
}

/// Node sizes that sum to `ranks`, each multiset once, in falling, rising or mixed order.
fn orders(ranks: u32) -> impl Iterator<Item = Vec<u32>> {
    node_sizes(ranks, ranks).into_iter().enumerate().map(|(i, mut sizes)| {
        match i % 3 {
            0 => {}
            1 => sizes.reverse(),
            _ => {
                let half = sizes.len() / 2;
                sizes.rotate_left(half);
            }
        }
        sizes
    })
}

#[test]
fn node_aware_exchanges_deliver_as_claimed() {
    let all: Vec<_> = (1..=reach(11, 13)).flat_map(orders).collect();
    all.into_par_iter().for_each(|sizes| {
        let list: Vec<String> = sizes.iter().map(ToString::to_string).collect();
        let mut machine = machine(&format!("cluster:{}", list.join(","))).unwrap();
        let largest = u64::from(*sizes.iter().max().unwrap());
        for (ports, lanes) in
            (1..=3).flat_map(|ports| [1, 2, largest].map(|lanes| (ports, lanes.min(largest))))
        {
            machine.set_ports(ports);
            let problem = problem(&machine);
            for rounds in ["whole", "cut"] {
                let text = |value: &str| Setting::Text(value.to_owned());
                let mut setting = set("lanes", lanes);
                setting.insert("rounds".to_owned(), text(rounds));
                let place = format!("{} {setting:?} {ports} ports", machine.name);
                let schedule = schedule_of(&machine, &problem, "node-aware", &setting).unwrap();
                let found = verify(&schedule, &machine, Some(Method::Replay), 1 << 33).unwrap();
                assert_eq!(found.violation, None, "{place}");
                let counts = found.counts;
                let claims = claims(&machine, &problem, "node-aware", &setting).unwrap();
                assert_eq!((counts.steps, counts.bytes), (claims.steps, claims.bytes), "{place}");
                assert_eq!((counts.port_violations, counts.rearrangements), (0, 0), "{place}");
            }
        }
    });
}

#[test]
fn node_aware_on_equal_nodes_takes_a_step_for_each_node_and_each_rank_of_a_node() {
    for (text, lanes, steps, blocks) in [
        ("cluster:8*4", 4, 7 + 6, 7 * 16 + 3 * (1 + 4 * 2) + 3 * 4 * 2),
        ("cluster:8*4", 1, 7 + 6, 7 * 16 + 3 * (1 + 4 * 7) + 3 * 4 * 7),
        ("cluster:5*3", 2, 4 + 4, 4 * 9 + 2 * (1 + 3 * 2) + 2 * 3 * 2),
        ("cluster:6", 6, 5, 5),
        ("cluster:6*1", 1, 5, 5),
    ] {
        let counts = check(text, "node-aware", &set("lanes", lanes), Method::Replay).unwrap();
        assert_eq!((counts.steps, counts.bytes), (steps, blocks), "{text}");
    }
}

/// Without intra-node messages, messages cut by node sizes carry the bytes that the largest node must
/// send.
#[test]
fn cut_rounds_carry_no_more_than_the_bound_of_the_largest_node() {
    let cut = Parameters::from([("rounds".to_owned(), Setting::Text("cut".to_owned()))]);
    for text in ["cluster:3*4,2,1", "cluster:1,2,3,4,5", "cluster:7,1,1,1"] {
        let machine = machine(text).unwrap();
        let schedule = schedule_of(&machine, &problem(&machine), "node-aware", &cut).unwrap();
        let Shape::Clustered(clusters) = machine.topology.shape() else { panic!("a cluster") };
        let (mut step, mut blocks) = (Step::default(), 0);
        for number in 0..schedule.rule().steps() {
            let mut most = 0;
            for rank in (0..machine.ranks()).map(Rank) {
                schedule.rule().step(rank, number, &mut step);
                let between = |peer: Rank| clusters.node_of(peer) != clusters.node_of(rank);
                let sends = step.sends.iter().filter(|send| between(send.peer));
                most = sends.map(|send| send.slots.len()).fold(most, u64::max);
            }
            blocks += most;
        }
        let (s, p) = (u64::from(clusters.largest()), u64::from(machine.ranks()));
        assert_eq!(blocks, s * (p - s), "{text}");
    }
}

#[test]
fn concatenation_is_optimal_in_steps_and_volume_where_claimed() {
    let cases: Vec<(u64, u64)> = (1..=200).flat_map(|n| (1..=6).map(move |k| (n, k))).collect();
    cases.into_par_iter().for_each(|(n, k)| {
        for b in if n <= 40 { vec![1, 2, 3, 5, 8] } else { vec![1, 7] } {
            let mut machine = machine(&format!("full:{n}")).unwrap();
            machine.set_ports(k as u32);
            let k = u64::from(machine.ports.rank);
            let problem =
                Problem::new(Collective::AllGather, machine.ranks(), machine.ports, b).unwrap();
            let steps = (0..).find(|&d| (k + 1).pow(d) >= n).unwrap();
            let bytes = (b * (n - 1)).div_ceil(k);
            let full = (k + 1).pow(steps);
            let s = full - n;
            for setting in all_settings(find("concat").unwrap(), &problem, &*machine.topology) {
                let schedule = schedule_of(&machine, &problem, "concat", &setting).unwrap();
                let found = verify(&schedule, &machine, None, 1 << 33).unwrap();
                let place = format!("n {n} k {k} b {b} {setting:?}");
                assert_eq!(found.violation, None, "{place}");
                let counts = found.counts;
                assert_eq!((counts.port_violations, counts.packed_bytes), (0, 0), "{place}");
                let (c1, c2) = (counts.steps, counts.bytes);
                match setting.get("last").map(ToString::to_string).as_deref() {
                    None => assert_eq!((c1, c2), (steps.into(), bytes.into()), "{place}"),
                    Some("rounds") => {
                        assert!(
                            c1 == u64::from(steps)
                                && c2 > bytes.into()
                                && c2 < u128::from(bytes + b),
                            "{place}"
                        );
                    }
                    _ => assert_eq!((c1, c2), (u64::from(steps) + 1, bytes.into()), "{place}"),
                }
                // Proposition 4.2's special range, narrowed to where (k - s) does not divide k.
                let special = b >= 3 && k >= 3 && (1..k).contains(&s) && k % (k - s) != 0;
                assert!(setting.is_empty() || special, "{place}");
            }
        }
    });
}

#[test]
fn fourteen_ranks_with_three_ports_gather_three_bytes_in_two_rounds_and_thirteen_bytes() {
    let mut machine = machine("full:14").unwrap();
    machine.set_ports(3);
    let problem = Problem::new(Collective::AllGather, 14, 3, 3).unwrap();
    let schedule = schedule_of(&machine, &problem, "concat", &Parameters::new()).unwrap();
    let found = verify(&schedule, &machine, None, 1 << 33).unwrap();
    assert_eq!((found.violation, found.counts.steps, found.counts.bytes), (None, 2, 13));
}

/// Machine, ports, ranks of dimensions together, steps and blocks, and whether they are the least of any
/// schedule of as many steps.
const PRODUCT: [(&str, u32, u64, u64, u128, bool); 17] = [
    ("torus:4x4", 1, 0, 6, 24, true),
    ("torus:5x5", 1, 0, 8, 40, true),
    ("torus:6x6", 1, 0, 10, 60, true),
    ("torus:7x7", 1, 0, 12, 84, true),
    ("torus:5x7", 1, 0, 10, 58, true),
    ("torus:4x8", 1, 0, 11, 56, false),
    ("torus:6x8", 1, 0, 13, 88, false),
    ("torus:5x9", 1, 0, 14, 86, false),
    ("torus:7x9", 1, 0, 16, 124, false),
    ("torus:9x11", 1, 0, 25, 245, false),
    ("torus:4x4x4", 1, 0, 9, 144, false),
    ("torus:3x1x5", 1, 0, 6, 22, true),
    ("mesh:3x4", 2, 0, 5, 20, false),
    ("torus:4x4x4", 1, 16, 18, 108, true),
    ("torus:4x4x8", 1, 16, 23, 248, false),
    ("torus:2x2x2x4", 1, 8, 10, 52, true),
    ("torus:4x4x4x4", 2, 16, 18, 288, false),
];

/// The sum over the dimensions of the exchanges along their lines, without contention.
#[test]
fn product_costs_the_exchanges_along_all_dimensions() {
    for (text, ports, together, steps, blocks, least) in PRODUCT {
        let mut machine = machine(text).unwrap();
        machine.set_ports(ports);
        let problem = problem(&machine);
        let setting = if together > 0 { set("together", together) } else { Parameters::new() };
        let schedule = schedule_of(&machine, &problem, "product", &setting).unwrap();
        let found = verify(&schedule, &machine, Some(Method::Replay), 1 << 33).unwrap();
        let counts = found.counts;
        assert_eq!((found.violation, counts.link_conflicts), (None, 0), "{text}");
        assert_eq!((counts.steps, counts.link_bytes), (steps, blocks), "{text}");
        let bound = best_bounds(&problem, &machine, None).link_blocks_in(steps).unwrap();
        assert_eq!(bound == blocks as f64, least, "{text}: {bound}");
    }
}

/// Rings of 2 to 16, and lines and rings of 2 to 16 ranks after the even hops.
#[test]
fn product_splits_sides_with_lines_of_all_lengths() {
    let rings = (2..=16u32).map(|side| (format!("torus:{}x4", 2 * side), "rings"));
    let after =
        (2..=reach(8, 16)).flat_map(|side| ["", "~"].map(|end| format!("grid:8~x8~x{side}{end}")));
    let cases: Vec<_> = rings.chain(after.map(|text| (text, "two"))).collect();
    cases.into_par_iter().for_each(|(text, word)| {
        let setting = Parameters::from([("split".to_owned(), word.into())]);
        let counts = check(&text, "product", &setting, Method::Replay).expect(&text);
        assert_eq!((counts.link_conflicts, counts.bytes), (0, counts.link_bytes), "{text}");
    });
}

/// The same exchange along all sides, if one is named, with its parameters.
#[test]
fn product_takes_the_exchange_that_is_named() {
    let along = |name: &str, own: &[(&str, Setting)]| {
        let own = own.iter().map(|(key, value)| (format!("along.{key}"), value.clone()));
        own.chain([("along".to_owned(), name.into())]).collect::<Parameters>()
    };
    let radix = along("bruck", &[("radix", 4u64.into())]);
    let counts = check("torus:16x64", "product", &radix, Method::Classes).unwrap();
    // Digits of 4: 2 and 3, of three steps each, and of each a quarter of the blocks.
    assert_eq!((counts.steps, counts.bytes), (15, 15 * 256));
    let schedule = |text: &str, setting: &Parameters| {
        let machine = machine(text).unwrap();
        schedule_of(&machine, &problem(&machine), "product", setting)
    };
    assert_eq!(schedule("torus:16x64", &radix).unwrap().origin.parameters, radix);
    for (text, setting, reason) in [
        ("torus:4x4", along("product", &[]), "along is `product`, not another algorithm"),
        ("torus:4x4", along("demand-matchings", &[]), "not an algorithm for blocks of equal sizes"),
        (
            "torus:4x4",
            along("direct-rings", &[]),
            "along=direct-rings: requires a side of at least 5",
        ),
        ("torus:4x4", along("pairwise-xor", &[("x", 1u64.into())]), "x"),
        (
            "torus:4x17",
            Parameters::new(),
            "sides of at most 16, or along; side 1 (17) breaks this rule",
        ),
        (
            "torus:4x4",
            set("together", 16),
            "together is `16`, not fewer than the ranks of all dimensions",
        ),
        ("torus:4x4", set("together", 17), "together is `17`, not a whole number from 2 to 16"),
        ("torus:9", Parameters::new(), "requires a torus or mesh of two sides"),
        ("full:9", Parameters::new(), "requires a torus or mesh of two sides"),
    ] {
        let refused = schedule(text, &setting).unwrap_err().to_string();
        assert!(refused.contains(reason), "{text} {setting:?}: {refused}");
    }
    let largest = machine("torus:4x4").unwrap();
    let problem = Problem::new(Collective::AllToAll, 16, 1, topocoll::MAX_BLOCK_BYTES).unwrap();
    let refused = schedule_of(&largest, &problem, "product", &Parameters::new()).unwrap_err();
    let reason = "requires an exchange for bundles of at most 2^40 bytes; there are 16 ranks";
    assert!(refused.to_string().ends_with(reason), "{refused}");
}

/// Machine, ports, setting, steps and blocks.
const STRIDED_RINGS: [(&str, u32, &str, u64, u128); 22] = [
    ("torus:8x8", 1, "last=all", 9, 144),
    ("torus:8x8", 1, "stride=1 fold=4 share=halves", 14, 112),
    ("torus:16x16", 1, "last=all", 19, 704),
    ("torus:16x16", 1, "landing=short last=all", 24, 640),
    ("torus:16x16", 1, "stride=1 share=parts", 64, 512),
    ("torus:16x16", 2, "stride=1 fold=4 share=parts", 24, 512),
    ("torus:32x32", 1, "fold=4 landing=short last=all", 26, 5120),
    ("torus:32x32", 1, "landing=short last=all", 32, 4608),
    ("torus:32x32", 1, "stride=1 share=parts", 80, 4096),
    ("torus:24x24", 1, "stride=1 fold=12 share=parts", 144, 1728),
    ("torus:64x64", 1, "fold=4 landing=short last=all", 42, 36864),
    ("torus:64x64", 1, "landing=short last=all", 48, 34816),
    ("torus:64x64", 1, "stride=1 share=parts", 112, 32768),
    ("torus:4x4x4", 1, "stride=1", 9, 144),
    ("torus:4x8x8", 1, "stride=1 fold=4 share=halves", 17, 672),
    ("torus:8x4x8", 1, "stride=1 fold=4 share=halves", 17, 672),
    ("torus:8x8x8", 1, "stride=2 share=halves", 12, 1920),
    ("torus:8x8x8", 1, "stride=2 share=halves last=all", 16, 1600),
    ("torus:8x8x8", 1, "stride=1 fold=4 share=halves", 21, 1344),
    ("torus:12x12x12", 1, "last=all", 35, 5552),
    ("torus:4x1x4", 1, "last=all", 5, 28),
    ("torus:64x96", 1, "landing=short last=all", 64, 76800),
];

/// Along strided rings there is no contention, and the volumes are those of the formulas.
#[test]
fn strided_rings_cost_their_rings_and_last_hops() {
    for (text, ports, setting, steps, blocks) in STRIDED_RINGS {
        let (machine, problem, setting) = strided(text, ports, setting);
        let schedule = schedule_of(&machine, &problem, "strided-rings", &setting).unwrap();
        let few = machine.ranks() <= reach(256, 1024);
        let method = if few { Method::Replay } else { Method::Classes };
        let found = verify(&schedule, &machine, Some(method), 1 << 33).unwrap();
        let counts = found.counts;
        assert_eq!((found.violation, counts.link_conflicts), (None, 0), "{text} {setting:?}");
        assert_eq!((counts.steps, counts.link_bytes), (steps, blocks), "{text} {setting:?}");
    }
    // Squares of n, a multiple of 16.
    for &n in reach(&[16u64, 48, 128][..], &[16, 48, 128, 1024]) {
        let (cube, square) = (u128::from(n).pow(3) / 8, u128::from(n).pow(2));
        for (setting, steps, blocks) in [
            ("fold=4 landing=short last=all", n / 2 + 10, cube + square),
            ("fold=8 landing=short last=all", n / 2 + 16, cube + square / 2),
            ("stride=1 fold=8 share=parts", n + 48, cube),
        ] {
            let (machine, problem, setting) = strided(&format!("torus:{n}x{n}"), 1, setting);
            let claims = claims(&machine, &problem, "strided-rings", &setting).unwrap();
            assert_eq!((claims.steps, claims.bytes), (steps, blocks), "{n} {setting:?}");
        }
    }
}

#[test]
fn strided_rings_are_near_the_bound_on_cubes() {
    for (n, setting, steps, blocks) in
        [(36, "fold=18 last=all", 80, 254_880), (48, "fold=12 last=all", 62, 770_048)]
    {
        let (machine, problem, setting) = strided(&format!("torus:{n}x{n}x{n}"), 1, setting);
        let claims = claims(&machine, &problem, "strided-rings", &setting).unwrap();
        assert_eq!((claims.steps, claims.bytes), (steps, blocks), "{n} {setting:?}");
    }
}

#[test]
fn strided_rings_refuse_what_has_none() {
    for (text, setting, reason) in [
        ("mesh:8x8", "", "requires sides that wrap; side 0 (8), side 1 (8) break this rule"),
        ("torus:6x8", "", "requires sides of 2 or of multiples of 4; side 0 (6) breaks this rule"),
        ("torus:12x8", "stride=2", "multiples of 8, for stride 2; side 0 (12) breaks this rule"),
        ("torus:8x8", "stride=3", "multiples of 12, for stride 3; side 0 (8), side 1 (8) break"),
        ("torus:8x8", "stride=4", "stride is `4`, not a whole number from 1 to 3"),
        ("torus:8x8", "fold=2", "fold is `2`, not at least 4, twice the stride"),
        ("torus:8x8", "fold=1025", "fold is `1025`, not a whole number from 1 to 1024"),
        ("torus:8x8", "stride=1 landing=short", "landing is `short`, not of use"),
        ("torus:8x24", "share=halves", "share is `halves`, not classes, as sides are not N, or N"),
        ("torus:8x32", "share=halves", "or N and 2N, for a multiple N of 4"),
        ("torus:2x4", "stride=1 share=halves", "or N and 2N, for a multiple N of 4"),
        ("torus:8x8", "stride=2 share=parts", "share is `parts`, not classes, as stride is not 1"),
        (
            "torus:8x8",
            "stride=1 share=parts",
            "share is `parts`, not classes, as there is one port",
        ),
        ("torus:1048576", "", "at most 262144 steps; side 0 (1048576) breaks this rule"),
        ("torus:1", "", "requires a torus of two ranks or more, which torus:1 is not"),
        ("full:8", "", "requires a torus, which full:8 is not"),
    ] {
        let (machine, problem, setting) = strided(text, 1, setting);
        let refused = schedule_of(&machine, &problem, "strided-rings", &setting).unwrap_err();
        assert!(refused.to_string().contains(reason), "{text} {setting:?}: {refused}");
    }
}

/// A machine, blocks of a byte, and `key=value` words.
fn strided(text: &str, ports: u32, words: &str) -> (Machine, Problem, Parameters) {
    let mut machine = machine(text).unwrap();
    machine.set_ports(ports);
    let problem = problem(&machine);
    (machine, problem, setting(words))
}
