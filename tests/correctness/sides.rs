//! Grids of any sides: wrapping, non-wrapping and mixed, with every residue, primes, twos and ones.

use common::{MEMORY, all_settings, check_promises, claims, find, problem, reach, schedule_of};
use rayon::prelude::*;
use topocoll::{
    Collective, Counts, Machine, Method, Parameters, Problem, Setting, best_bounds, count, machine,
    verify,
};

/// Grid algorithms that apply wherever the sides allow.
const ALGORITHMS: [&str; 2] = ["suh-shin", "coloured-rings"];

/// Checks claims against counts in every setting, and with a method also delivery.
fn check(text: &str, method: Option<Method>) -> u32 {
    let machine: Machine = machine(text).unwrap();
    let problem = problem(&machine, Collective::AllToAll, 1);
    let mut schedules = 0;
    for algorithm in ALGORITHMS {
        let settings = all_settings(find(algorithm).unwrap(), &problem, &*machine.topology);
        assert!(algorithm != "coloured-rings" || !settings.is_empty(), "{text}: refused");
        for setting in settings {
            let place = format!("{algorithm} {setting:?} on {text}");
            let schedule = schedule_of(&machine, &problem, algorithm, &setting).unwrap();
            let counts: Counts = match method {
                None => count(&schedule, &machine, None, MEMORY).unwrap(),
                method => {
                    let found = verify(&schedule, &machine, method, MEMORY).unwrap();
                    assert_eq!(found.violation, None, "{place}");
                    found.counts
                }
            };
            let claims = claims(&machine, &problem, algorithm, &setting).unwrap();
            assert_eq!((counts.steps, counts.bytes), (claims.steps, claims.bytes), "{place}");
            assert_eq!(counts.link_conflicts == 0, claims.contention_free, "{place}");
            assert_eq!(counts.port_violations, 0, "{place}");
            assert_eq!(counts.link_bytes, claims.link_bytes_floor, "{place}");
            assert_eq!(
                Some(counts.rearrangements),
                claims.rearrangements.map(u64::from),
                "{place}"
            );
            let is =
                |name, value| setting.get(name).is_some_and(|is: &Setting| is.to_string() == value);
            let axis = is("residual", "axis");
            assert!(!axis || counts.packed_bytes == 0, "{place}");
            let copied = counts.rearranged_bytes + counts.packed_bytes;
            assert!(claims.copied_bytes.is_none_or(|bytes| bytes == copied), "{place}: {copied}");
            assert!(claims.hops.is_none_or(|hops| hops == counts.hops), "{place}: {}", counts.hops);
            schedules += 1;
        }
    }
    schedules
}

fn grids_2d(sides: std::ops::RangeInclusive<u32>) -> Vec<String> {
    let pairs = sides.clone().flat_map(move |a| sides.clone().map(move |b| (a, b)));
    let grids = pairs.flat_map(|(a, b)| {
        [("", ""), ("", "~"), ("~", ""), ("~", "~")]
            .map(|(first, second)| format!("grid:{a}{first}x{b}{second}"))
    });
    grids.collect()
}

#[test]
fn claims_equal_counts_on_all_grids_of_two_sides() {
    let schedules: u32 =
        grids_2d(1..=reach(12, 16)).into_par_iter().map(|text| check(&text, None)).sum();
    assert!(schedules > reach(900, 1800), "only {schedules}");
}

#[test]
fn small_grids_of_two_sides_deliver() {
    grids_2d(1..=reach(6, 9)).into_par_iter().for_each(|text| {
        check(&text, Some(Method::Replay));
        check(&text, Some(Method::Classes));
    });
}

#[test]
fn claims_equal_counts_on_all_grids_of_three_sides() {
    let sides = (1..=reach(8, 12u32))
        .flat_map(|a| (1..=a).flat_map(move |b| (1..=b).map(move |c| [a, b, c])));
    sides.collect::<Vec<_>>().into_par_iter().for_each(|[a, b, c]| {
        // Listed with the longest in each place in turn.
        let [a, b, c] = [[a, b, c], [b, a, c], [c, b, a]][((a + b + c) % 3) as usize];
        check(&format!("torus:{a}x{b}x{c}"), None);
        check(&format!("mesh:{a}x{b}x{c}"), None);
    });
}

#[test]
fn grids_of_three_and_more_sides_deliver() {
    for text in [
        "torus:5x7x3",
        "mesh:5x7x3",
        "grid:5~x6x7~",
        "grid:4x9~x2~",
        "torus:13x3x2",
        "torus:6x12x6",
        "mesh:12x6x6",
        "mesh:2x7x5",
        "torus:3x3x3x3",
        "mesh:3x2x3x4",
        "grid:2~x5x1x3~",
        "torus:2x2x2x2x2x2",
    ] {
        check(text, Some(Method::Replay));
        check(text, Some(Method::Classes));
    }
    let large = ["torus:6x10x14", "torus:12x12x12", "grid:12~x6x18~"];
    for text in &large[..reach(1, 3)] {
        check(text, Some(Method::Replay));
    }
}

#[test]
fn lines_and_rings_of_any_length_deliver() {
    for side in 1..=40 {
        check(&format!("torus:{side}"), Some(Method::Replay));
        check(&format!("mesh:{side}"), Some(Method::Replay));
    }
}

#[test]
fn longer_sides_of_every_residue_deliver() {
    let few = ["torus:16x8", "torus:4x32x4", "torus:61x2", "torus:27x26"];
    let more = ["torus:29x31", "mesh:31x30", "grid:33~x29", "torus:32x33"];
    for text in few.iter().chain(reach(&[][..], &more)) {
        check(text, Some(Method::Replay));
    }
}

#[test]
fn claims_equal_counts_on_long_sides_where_few_ranks_send_the_largest_message() {
    for side in [301, 302, 303, 618] {
        check(&format!("torus:{side}x2"), None);
        check(&format!("torus:3x1x{side}"), None);
    }
    check("grid:401~x3", None);
    check("torus:603x2x2", None);
    check("torus:607", None);
}

fn coloured_rings(classes: u64, landing: &str) -> Parameters {
    [
        ("classes".to_owned(), Setting::Integer(classes)),
        ("landing".to_owned(), Setting::Text(landing.to_owned())),
    ]
    .into()
}

#[test]
fn windows_of_four_sides_deliver() {
    let machine = machine("grid:8~x8x8x8~").unwrap();
    let problem = problem(&machine, Collective::AllToAll, 1);
    let windows = coloured_rings(2, "windows");
    let schedule = schedule_of(&machine, &problem, "coloured-rings", &windows).unwrap();
    let found = verify(&schedule, &machine, Some(Method::Replay), MEMORY).unwrap();
    let claims = claims(&machine, &problem, "coloured-rings", &windows).unwrap();
    assert_eq!((found.violation, found.counts.link_conflicts), (None, 0));
    assert_eq!((found.counts.steps, found.counts.bytes), (claims.steps, claims.bytes));
}

/// Machine, classes a line, landing, steps, blocks.
const COLOURED_RINGS: [(&str, u64, &str, u64, u128); 26] = [
    ("torus:5x5", 2, "distance", 8, 40),
    ("torus:13x13", 2, "distance", 16, 598),
    ("torus:65x65", 2, "distance", 48, 44_200),
    ("torus:66x66", 2, "distance", 52, 46_200),
    ("torus:9x30", 2, "distance", 27, 1587),
    ("torus:10x10", 1, "near", 12, 300),
    ("torus:13x13", 2, "near", 18, 783),
    ("torus:16x16", 2, "near", 16, 832),
    ("torus:64x64", 2, "near", 40, 37_888),
    ("torus:65x65", 2, "near", 42, 47_402),
    ("torus:67x67", 2, "near", 44, 50_457),
    ("torus:24x24x24", 2, "near", 33, 76_032),
    ("torus:5x7", 2, "near", 14, 115),
    ("torus:3x5", 1, "near", 8, 46),
    ("mesh:6x6", 1, "near", 6, 108),
    ("mesh:6x6x6", 1, "near", 9, 756),
    ("mesh:5x7", 1, "near", 10, 212),
    ("mesh:13x13", 2, "near", 22, 1500),
    ("mesh:32x32", 2, "windows", 32, 10_240),
    ("mesh:64x64", 2, "windows", 64, 73_728),
    ("torus:24x24x24", 2, "windows", 18, 89_856),
    ("torus:48x48x48", 2, "windows", 30, 1_050_624),
    ("torus:16x16x16x16", 2, "windows", 16, 524_288),
    ("mesh:24x24x24", 2, "windows", 27, 131_328),
    ("grid:32x32~", 2, "windows", 32, 11_776),
    ("torus:32x32", 2, "windows", 18, 6144),
];

#[test]
fn coloured_rings_cost_as_documented() {
    for (text, classes, landing, steps, blocks) in COLOURED_RINGS {
        let machine = machine(text).unwrap();
        let problem = problem(&machine, Collective::AllToAll, 1);
        let set = coloured_rings(classes, landing);
        let schedule = schedule_of(&machine, &problem, "coloured-rings", &set).unwrap();
        let counts = count(&schedule, &machine, None, MEMORY).unwrap();
        assert_eq!((counts.steps, counts.bytes), (steps, blocks), "{text}");
    }
    // N/2 + 8 steps and (N/8 + 5/4) N^2 blocks.
    for side in [16u64, 24, 32, 64, 128] {
        let machine = machine(&format!("torus:{side}x{side}")).unwrap();
        let problem = problem(&machine, Collective::AllToAll, 1);
        let claims = claims(&machine, &problem, "coloured-rings", &[].into()).unwrap();
        let expected = (side / 2 + 8, u128::from((side + 10) * side * side / 8));
        assert_eq!((claims.steps, claims.bytes), expected);
    }
}

#[test]
fn tori_of_two_long_sides_come_near_the_bisection_whatever_their_residues() {
    for (sides, least, most) in
        [(64..=96u32, 1.4, 60), (64..=96, 1.3, 68), (128..=160, 1.25, 100), (128..=160, 1.17, 104)]
    {
        let apart = reach(3, 1);
        let pairs =
            sides.clone().flat_map(|a| (a..=*sides.end()).step_by(apart).map(move |b| (a, b)));
        pairs.collect::<Vec<_>>().into_par_iter().for_each(|(a, b)| {
            let machine: Machine = machine(&format!("torus:{a}x{b}")).unwrap();
            let problem = problem(&machine, Collective::AllToAll, 1);
            let bound = best_bounds(&problem, &machine, None).link_blocks;
            let near = ["near", "distance"].into_iter().any(|landing| {
                let set = coloured_rings(2, landing);
                claims(&machine, &problem, "coloured-rings", &set).is_ok_and(|claims| {
                    claims.steps <= most && claims.bytes as f64 <= least * bound
                })
            });
            assert!(near, "{a}x{b}");
        });
    }
}

/// Checks neighbour rings on a number of ports; returns blocks over the bound.
fn neighbour_rings(text: &str, ports: u32, method: Option<Method>) -> f64 {
    let machine: Machine = machine(text).unwrap();
    let problem = Problem::new(Collective::AllToAll, machine.ranks(), ports, 64).unwrap();
    let schedule = schedule_of(&machine, &problem, "neighbour-rings", &[].into()).unwrap();
    let counts = match method {
        None => count(&schedule, &machine, None, MEMORY).unwrap(),
        method => {
            let found = verify(&schedule, &machine, method, MEMORY).unwrap();
            assert_eq!(found.violation, None, "{text}, {ports} ports");
            found.counts
        }
    };
    let claims = claims(&machine, &problem, "neighbour-rings", &[].into()).unwrap();
    assert_eq!((counts.steps, counts.link_bytes), (claims.steps, claims.bytes), "{text}, {ports}");
    assert_eq!(Some(counts.hops), claims.hops, "{text}, {ports}");
    let broken = (counts.link_conflicts, counts.port_violations, counts.rearrangements);
    assert_eq!(broken, (0, 0, 0), "{text}, {ports}");
    counts.in_blocks(counts.link_bytes) / best_bounds(&problem, &machine, None).link_blocks
}

#[test]
fn neighbour_rings_serve_every_grid_and_number_of_ports() {
    let most = reach(8, 24);
    let pairs = (1..=most).flat_map(|a| (1..=most).map(move |b| (a, b)));
    let grids: Vec<_> = pairs.flat_map(|(a, b)| [(true, a, b), (false, a, b)]).collect();
    grids.into_par_iter().for_each(|(wraps, a, b)| {
        let text = format!("{}:{a}x{b}", if wraps { "torus" } else { "mesh" });
        for ports in 1..=4 {
            neighbour_rings(&text, ports, None);
        }
        if a.max(b) <= reach(6, 9) {
            for ports in [1, 3, 4] {
                neighbour_rings(&text, ports, Some(Method::Replay));
                neighbour_rings(&text, ports, Some(Method::Classes));
            }
        }
        let over = neighbour_rings(&text, 4, None);
        assert!(a.min(b) < 5 || over <= 1.2, "{text}: {over}");
        let even = if wraps { 4 } else { 2 };
        assert!(a % even + b % even > 0 || over <= 1.0, "{text}: {over}");
    });
    for text in
        ["torus:7", "torus:2x2x2", "torus:5x4x7", "torus:6x1x9", "torus:3x4x2x5", "torus:2x2x2x2x3"]
    {
        for ports in 1..=10 {
            neighbour_rings(text, ports, Some(Method::Replay));
        }
    }
    for text in
        ["mesh:7", "mesh:2x2x2", "mesh:5x4x7", "mesh:6x1x9", "mesh:3x4x2x5", "mesh:2x2x2x2x3"]
            .into_iter()
            .chain(["grid:7~x4", "grid:6x8~x5", "grid:3x4~x2~x5", "grid:16~x4", "grid:4x12~"])
    {
        for ports in 1..=10 {
            neighbour_rings(text, ports, Some(Method::Replay));
        }
    }
    for (text, ports, most) in [
        ("torus:12x12x12", 6, 1.0),
        ("torus:8x8x8", 6, 1.09),
        ("mesh:6x6x6", 6, 1.0),
        ("mesh:12x6x6", 6, 1.0),
        ("mesh:9x9x9", 6, 1.0),
        ("mesh:8x8x8", 6, 1.01),
        ("mesh:8x8x8x4", 8, 1.0),
    ] {
        let replay = is_few(text).then_some(Method::Replay);
        assert!(neighbour_rings(text, ports, replay) <= most, "{text}");
    }
    assert!(neighbour_rings("torus:1024x1024", 4, None) <= 1.0);
}

#[test]
fn settings_of_neighbour_rings_serve_every_grid() {
    let most = reach(7, 14);
    let few = (1..=most).flat_map(|a| (1..=most).map(move |b| format!("torus:{a}x{b}")));
    let meshes = (2..=7).flat_map(|a| (2..=7).map(move |b| format!("mesh:{a}x{b}")));
    let grids = ["mesh:3x4x5", "mesh:2x2x3x3", "grid:5~x4x3~", "grid:6x8~x3", "grid:9~x7"];
    let lengths = reach(&[25, 30][..], &[24, 25, 26, 28, 30, 32, 36]);
    let long = lengths.iter().flat_map(|a| {
        [
            format!("torus:{a}"),
            format!("torus:{a}x3"),
            format!("torus:8x{a}"),
            format!("torus:{a}x{}", reach(5, 24)),
        ]
    });
    let more = [
        "5x4x7",
        "8x1x10",
        "8x3x6",
        "2x2x24",
        "25x2x3",
        "28x2x2",
        "3x8x2x2",
        "2x2x2x2x9",
        "8x2x2x2",
    ];
    let all: Vec<_> = few
        .chain(meshes)
        .chain(long)
        .chain(more.map(|sides| format!("torus:{sides}")))
        .chain(grids.map(str::to_owned))
        .collect();
    all.into_par_iter().for_each(|text| {
        let mut machine: Machine = machine(&text).unwrap();
        machine.set_ports(2 * (text.matches('x').count() as u32 + 1));
        let algorithm = find("neighbour-rings").unwrap();
        for block_bytes in reach(&[2, 7][..], &[1, 2, 7]).iter().copied() {
            let problem = problem(&machine, Collective::AllToAll, block_bytes);
            for setting in all_settings(algorithm, &problem, &*machine.topology) {
                check_promises(&machine, algorithm, &problem, &setting, Method::Replay);
            }
        }
    });
}

#[test]
fn windows_cost_as_documented() {
    for (n, sides) in [(2u32, &[4u64, 8, 12, 24, 32][..]), (3, &[6, 12, 18, 24, 48]), (4, &[8, 16])]
    {
        for &side in sides {
            for wraps in [true, false] {
                let shape = if wraps { "torus" } else { "mesh" };
                let machine =
                    machine(&format!("{shape}:{}", vec![side.to_string(); n as usize].join("x")))
                        .unwrap();
                let problem = problem(&machine, Collective::AllToAll, 1);
                let windows = coloured_rings(2, "windows");
                let claims = claims(&machine, &problem, "coloured-rings", &windows).unwrap();
                let (ranks, sides) = (side.pow(n), u64::from(n));
                let ring = side / (2 * sides);
                let (inner_steps, inner) = match n {
                    2 => (4, 2 * ranks),
                    3 => (9, 7 * ranks / 2),
                    _ => (12, 6 * ranks),
                };
                let twice = if wraps { 1 } else { 2 };
                let (rounds, windows) = (twice * (ring - 1), twice * (ring * ring / 4));
                let blocks = sides * windows * 2 * sides * (ranks / side) + inner;
                assert_eq!(
                    (claims.steps, claims.bytes),
                    (sides * rounds + inner_steps, blocks.into()),
                    "{}",
                    machine.name
                );
            }
        }
    }
}

/// Whether a grid is replayed in a short run, too.
fn is_few(text: &str) -> bool {
    machine(text).unwrap().ranks() <= reach(256, u32::MAX)
}

/// Checks direct rings; returns steps over the blocks that the bisection requires.
fn direct_rings(text: &str, methods: &[Method]) -> f64 {
    let machine: Machine = machine(text).unwrap();
    let problem = problem(&machine, Collective::AllToAll, 64);
    let schedule = schedule_of(&machine, &problem, "direct-rings", &[].into()).unwrap();
    let counts = count(&schedule, &machine, None, MEMORY).unwrap();
    for &method in methods {
        let found = verify(&schedule, &machine, Some(method), MEMORY).unwrap();
        assert_eq!(found.violation, None, "{text}");
        assert_eq!(found.counts.hops, counts.hops, "{text}");
    }
    let claims = claims(&machine, &problem, "direct-rings", &[].into()).unwrap();
    assert_eq!((counts.steps, counts.bytes), (claims.steps, claims.bytes), "{text}");
    assert_eq!(
        (Some(counts.hops), counts.bytes),
        (claims.hops, u128::from(counts.steps) * 64),
        "{text}"
    );
    let broken = (counts.link_conflicts, counts.port_violations, counts.rearrangements);
    assert_eq!((broken, counts.packed_bytes), ((0, 0, 0), 0), "{text}");
    counts.steps as f64 / best_bounds(&problem, &machine, None).link_blocks
}

#[test]
fn direct_rings_fill_all_rings_of_every_torus() {
    let most = reach(9, 16);
    let pairs: Vec<_> = (1..=most).flat_map(|a| (5..=most).map(move |b| (a, b))).collect();
    pairs.into_par_iter().for_each(|(a, b)| {
        let text = format!("torus:{a}x{b}");
        let small = a * b <= 64;
        let methods = if small { &[Method::Replay, Method::Classes][..] } else { &[] };
        let over = direct_rings(&text, methods);
        let longest = a.max(b);
        let even = a == 1 || a % 2 == 0 && b % 2 == 0;
        assert!(longest < 8 || longest % 4 > 0 || !even || over == 1.0, "{text}: {over}");
        let bound = f64::from(longest + 2) / f64::from(longest);
        assert!(longest < 8 || !even || b % 2 > 0 || over <= bound, "{text}: {over}");
        let odd = if a < 15 || a % 4 == 1 { f64::from(a + 1) / f64::from(a) } else { 1.0 };
        assert!(a != b || a < 9 || a % 2 == 0 || (over - odd).abs() < 1e-9, "{text}: {over}");
    });
    for text in [
        "torus:16x16",
        "torus:13x13",
        "torus:15x9",
        "torus:20x12",
        "torus:21x1x7",
        "torus:18x18",
        "torus:22x18",
        "torus:18x20",
        "torus:19x15",
        "torus:15x19",
        "torus:18x15",
        "torus:17x18",
        "torus:22x4x2",
        "torus:2x26x2",
        "torus:1x18",
        "torus:8x8x8",
        "torus:5x6x7",
        "torus:4x8x1x3",
        "torus:2x6x2x2x3",
        "torus:33",
        "torus:64",
    ] {
        direct_rings(text, if is_few(text) { &[Method::Replay] } else { &[] });
    }
    for text in reach(&[][..], &["torus:53x53", "torus:54x54"]) {
        assert!(direct_rings(text, &[]) < 1.02);
    }
    assert!(direct_rings("torus:22x22", &[]) <= 1.0 + 1.0 / 22.0 + 4.0 / 484.0);
    assert_eq!(direct_rings("torus:27x23", &[]), 1.0);
    assert_eq!(direct_rings("torus:24x24", &[]), 1.0);
    assert_eq!(direct_rings("torus:8x12x10", &[]), 1.0);
    assert_eq!(direct_rings("torus:8x4x8x4", &[]), 1.0);
    for text in ["torus:4x4", "torus:3", "grid:8~x8", "full:9"] {
        let machine: Machine = machine(text).unwrap();
        let problem = problem(&machine, Collective::AllToAll, 1);
        assert!(schedule_of(&machine, &problem, "direct-rings", &[].into()).is_err(), "{text}");
    }
}
