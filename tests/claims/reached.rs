//! Points of startups and volume that schedules reach: steps, and blocks over the busiest links.
//!
//! Each is a candidate of its algorithm's, claimed, and counted and verified by the readers.

use common::{check_promises, claims, find, problem, reach, schedule_of, setting, with_ports};
use topocoll::{Collective, Method, NotApplicable, Request};

/// Machine, ports, algorithm, setting (`key=value,..`), steps, blocks over the busiest links.
pub(crate) type Row<'r> = (&'r str, u32, &'r str, &'r str, u64, f64);

const REACHED: &[Row<'_>] = &[
    ("torus:8x8", 1, "strided-rings", "fold=4,landing=near,last=all", 9, 144.0),
    ("torus:8x8", 1, "strided-rings", "stride=1,fold=4,share=halves", 14, 112.0),
    ("torus:16x16", 1, "strided-rings", "landing=near,last=all", 19, 704.0),
    ("torus:16x16", 1, "strided-rings", "landing=short,last=all", 24, 640.0),
    ("torus:16x16", 1, "strided-rings", "share=parts", 64, 512.0),
    ("torus:12x12", 1, "strided-rings", "stride=3,last=all", 14, 344.0),
    ("torus:12x12", 1, "strided-rings", "stride=3,last=axis", 10, 408.0),
    ("torus:24x24", 1, "strided-rings", "stride=3,fold=6,last=all", 20, 2240.0),
    ("torus:6x12", 1, "strided-rings", "stride=3,last=axis", 10, 258.0),
    ("torus:16x16x16", 1, "strided-rings", "share=halves,last=all", 29, 14848.0),
    ("torus:8x8x16", 1, "strided-rings", "fold=4,landing=short,last=all", 39, 3840.0),
    ("torus:8x8x16", 1, "strided-rings", "stride=1,fold=4,share=halves", 26, 3840.0),
    ("torus:4x4x4", 1, "strided-rings", "stride=1,fold=2", 9, 144.0),
    ("torus:4x4x4", 1, "product", "together=16", 18, 108.0),
    ("torus:4x4x8", 1, "strided-rings", "stride=1,fold=4,share=halves", 13, 320.0),
    ("torus:4x4x8", 1, "product", "together=16", 23, 248.0),
    ("torus:6x6", 1, "product", "", 10, 60.0),
    ("torus:7x7", 1, "product", "", 12, 84.0),
    ("torus:5x7", 1, "product", "", 10, 58.0),
    ("torus:4x8", 1, "strided-rings", "stride=1,fold=4,share=halves", 10, 56.0),
    ("torus:6x8", 1, "product", "", 13, 88.0),
    ("torus:8x8x8", 1, "product", "split=rings", 38, 1280.0),
    ("torus:8x8x8", 1, "product", "split=two", 48, 1024.0),
    ("torus:8x8x4", 1, "product", "split=two", 31, 496.0),
    ("torus:4x8x8", 1, "product", "split=two", 31, 496.0),
    ("torus:8x8x16", 1, "product", "split=two", 144, 3072.0),
    ("torus:6x6x6", 1, "product", "split=rings", 27, 495.0),
    ("torus:10x10", 1, "product", "split=rings", 11, 235.0),
    ("torus:14x14", 1, "product", "split=rings", 15, 483.0),
    ("torus:18x18", 1, "product", "split=rings", 23, 963.0),
    ("torus:6x10", 1, "product", "split=rings", 11, 173.0),
    ("torus:8x12", 1, "product", "split=rings", 13, 280.0),
    ("torus:10x12", 1, "product", "split=rings", 13, 322.0),
    ("torus:10x14", 1, "product", "split=rings", 15, 409.0),
    ("torus:12x14", 1, "product", "split=rings", 15, 454.0),
    ("torus:14x18", 1, "product", "split=rings", 23, 845.0),
    ("torus:22x22", 1, "product", "split=rings", 33, 1683.0),
    ("torus:24x24", 1, "product", "split=rings", 39, 2160.0),
    ("torus:26x26", 1, "product", "split=rings", 45, 2691.0),
    ("mesh:4x4", 1, "tabled", "", 16, 16.0),
    ("mesh:6x6", 1, "tabled", "", 54, 54.0),
    ("mesh:8x8", 1, "tabled", "", 128, 128.0),
    ("torus:10x10", 1, "tabled", "", 27, 180.0),
    ("torus:12x12", 1, "tabled", "", 33, 264.0),
    ("torus:8x8", 4, "neighbour-rings", "hop=2", 6, 80.0),
    ("torus:10x10", 4, "neighbour-rings", "hop=2", 8, 150.0),
    ("torus:16x16", 4, "neighbour-rings", "hop=2", 10, 608.0),
    ("torus:24x24", 4, "neighbour-rings", "hop=4", 12, 2256.0),
    ("torus:24x24", 4, "neighbour-rings", "hop=2", 14, 1968.0),
    ("torus:32x32", 4, "neighbour-rings", "hop=4", 14, 5184.0),
    ("torus:32x32", 4, "neighbour-rings", "hop=2", 18, 4544.0),
    ("torus:24x9", 4, "neighbour-rings", "hop=4,parts=bytes", 12, 846.0),
    ("torus:4x4", 4, "neighbour-rings", "", 4, 8.0),
    ("mesh:15x15", 4, "neighbour-rings", "parts=bytes", 28, 840.0),
    ("mesh:8x8x8", 6, "neighbour-rings", "parts=bytes", 21, 1024.0),
    ("torus:36", 2, "neighbour-rings", "hop=4", 8, 202.0),
    ("torus:4x4x4", 6, "neighbour-rings", "parts=bytes", 6, 32.0),
    ("torus:5x5x5", 6, "neighbour-rings", "parts=bytes", 6, 75.0),
    ("torus:8x8x8", 6, "neighbour-rings", "hop=2", 9, 640.0),
    ("torus:8x8x8", 6, "neighbour-rings", "parts=bytes", 12, 512.0),
    ("torus:8x8x4", 6, "neighbour-rings", "hop=2", 9, 320.0),
    ("torus:24x3x3", 6, "neighbour-rings", "hop=4", 18, 846.0),
    ("torus:8x8", 2, "strided-rings", "stride=2,share=parts", 8, 96.0),
    ("torus:8x8", 2, "strided-rings", "stride=2,share=parts,landing=short,last=all", 10, 72.0),
    ("torus:16x16", 2, "strided-rings", "stride=2,share=parts,landing=short,last=all", 18, 544.0),
    ("torus:32x32", 2, "strided-rings", "stride=2,share=parts,landing=short,last=all", 34, 4224.0),
    ("torus:8x16", 2, "strided-rings", "stride=2,share=parts,landing=short,last=all", 18, 272.0),
    ("torus:12x12", 2, "strided-rings", "stride=2,share=parts,landing=short,last=all", 14, 234.0),
    ("torus:16x16", 2, "strided-rings", "stride=1,fold=4,share=parts", 24, 512.0),
    ("torus:4x4x4", 3, "strided-rings", "stride=2,share=parts,landing=short,last=all", 13, 36.0),
    ("torus:8x8x8", 3, "strided-rings", "stride=2,share=parts", 12, 768.0),
    ("torus:8x8x8", 3, "strided-rings", "stride=2,share=parts,landing=short", 15, 640.0),
    ("torus:8x8x8", 3, "strided-rings", "stride=2,share=parts,landing=short,last=all", 19, 544.0),
    ("torus:8x8x8", 3, "strided-rings", "stride=1,fold=4,share=parts", 24, 512.0),
    ("torus:4x8x12", 3, "strided-rings", "stride=2,share=parts,landing=short,last=all", 25, 600.0),
];

/// Machine, ports, algorithm, setting, and what the error says.
pub(crate) type Refused = (&'static str, u32, &'static str, &'static str, &'static str);

const REFUSED: &[Refused] = &[
    ("torus:16x16", 1, "product", "along=product", "along is `product`, not another algorithm"),
    ("torus:8x8x8", 1, "product", "split=halves", "one of none, rings, two"),
    ("torus:8x8x8", 1, "product", "split=axes", "was removed; the nearest is split=rings"),
    ("torus:8x4x8", 1, "product", "split=two,together=16", "for a product with split=two"),
    ("torus:8x8x8", 1, "product", "split=two,along=bruck", "for a product with split=two"),
    ("torus:8x4x6", 1, "product", "split=two", "two sides of 8 that wrap"),
    ("mesh:8x8x8", 1, "product", "split=two", "two sides of 8 that wrap"),
    ("torus:8x8", 1, "product", "split=two", "two sides of 8 that wrap are required, and a third"),
    ("torus:34x34", 1, "product", "split=rings", "two even sides from 4 to 32 that wrap"),
    ("torus:7x8x9", 1, "product", "split=rings", "two even sides from 4 to 32 that wrap"),
    ("torus:8x8x17", 1, "product", "split=two", "a third of at most 16"),
    ("torus:32x32x2", 1, "product", "split=rings", "at most 2^20 blocks of different ranks"),
    (
        "torus:8x8",
        1,
        "tabled",
        "",
        "requires a mesh of 4x4, 6x6 or 8x8, or a torus of 10x10 or 12x12",
    ),
    ("mesh:4x6", 1, "tabled", "", "which mesh:4x6 is not"),
    ("torus:12x12x2", 1, "tabled", "", "which torus:12x12x2 is not"),
    ("torus:8x8", 4, "neighbour-rings", "hop=3", "hop is `3`, not 1, 2 or 4"),
    ("torus:8x8", 4, "neighbour-rings", "hop=8", "hop is `8`, not a whole number from 1 to 4"),
    ("torus:6x9", 4, "neighbour-rings", "hop=2", "not 1, as no side is even and at least 8"),
    ("torus:20x26", 4, "neighbour-rings", "hop=4", "as no side is a multiple of 4 and at least 24"),
    (
        "torus:8x8",
        3,
        "neighbour-rings",
        "hop=2",
        "not 1, as 2 dimensions require 4 ports and there are 3",
    ),
    ("grid:8~x8", 4, "neighbour-rings", "hop=2", "not 1, as side 1 (8) does not wrap"),
    ("torus:131072x2", 4, "neighbour-rings", "hop=2", "as side 131072 is longer than 65536"),
    (
        "torus:8x8x8",
        6,
        "neighbour-rings",
        "hop=2,parts=blocks",
        "not bytes, as 3 dimensions have leaders",
    ),
    (
        "torus:8",
        2,
        "neighbour-rings",
        "parts=bytes",
        "not blocks, as fewer than two sides are longer than 1",
    ),
    (
        "torus:1",
        1,
        "neighbour-rings",
        "parts=bytes",
        "not blocks, as fewer than two sides are longer than 1",
    ),
    (
        "torus:8x8x8",
        2,
        "strided-rings",
        "stride=2,share=parts",
        "share is `parts`, not classes, as there are fewer than 3 ports",
    ),
    (
        "torus:16",
        2,
        "strided-rings",
        "share=parts",
        "share is `parts`, not classes, as not two to four sides are longer than 1",
    ),
    (
        "torus:6x8",
        2,
        "strided-rings",
        "stride=2,share=parts",
        "requires sides of 2 or of multiples of 4; side 0 (6) breaks this rule",
    ),
    ("torus:8x8", 2, "strided-rings", "stride=3,share=parts", "stride is `3`, not 1 or 2 in parts"),
    ("torus:8x8", 2, "strided-rings", "stride=2,share=parts,fold=4", "fold is `4`, not of use"),
    (
        "torus:8x8",
        2,
        "strided-rings",
        "share=parts,landing=short",
        "landing is `short`, not of use",
    ),
    ("torus:8x8", 2, "strided-rings", "share=parts,fold=1", "fold is `1`, not at least 2"),
    (
        "torus:524288x2",
        2,
        "strided-rings",
        "stride=2,share=parts",
        "at most 262144 steps; side 0 (524288), side 1 (2) break this rule",
    ),
];

/// Checks a row; blocks have as many bytes as make the parts of blocks equal.
pub(crate) fn check(&(text, ports, name, given, steps, blocks): &Row<'_>, method: Method) {
    /// A multiple of the parts into which blocks are cut on up to three dimensions.
    const BYTES: u64 = 12;
    let (machine, algorithm) = (with_ports(text, ports), find(name).unwrap());
    let problem = problem(&machine, Collective::AllToAll, BYTES);
    let schedule = schedule_of(&machine, &problem, name, &setting(given)).unwrap();
    let complete = &schedule.origin.parameters;
    check_promises(&machine, algorithm, &problem, complete, method);
    let claims = claims(&machine, &problem, name, complete).unwrap();
    let claimed = claims.bytes as f64 / BYTES as f64;
    assert_eq!((claims.steps, claimed), (steps, blocks), "{name} {given} on {text}");
    assert!(claims.contention_free, "{name} {given} on {text}");
    let request = Request::new(&problem, &*machine.topology);
    let ranked = match request.candidates(algorithm) {
        Err(NotApplicable::Unranked { .. }) => true,
        candidates => candidates.unwrap().iter().any(|candidate| {
            let solved = request.solve(algorithm, candidate);
            solved.is_ok_and(|solution| &solution.schedule.origin.parameters == complete)
        }),
    };
    assert!(ranked, "{name} {given} on {text} is no candidate");
}

/// Checks that a value is refused.
pub(crate) fn check_refused(&(text, ports, name, given, reason): &Refused) {
    let machine = with_ports(text, ports);
    let problem = problem(&machine, Collective::AllToAll, 12);
    let refused = schedule_of(&machine, &problem, name, &setting(given)).unwrap_err();
    assert!(refused.to_string().contains(reason), "{given} on {text}: {refused}");
}

#[test]
fn schedules_reach_these_steps_and_volumes() {
    let ranks = |row: &Row<'_>| with_ports(row.0, row.1).ranks();
    for row in REACHED.iter().filter(|row| ranks(row) <= reach(600, u32::MAX)) {
        check(row, Method::Replay);
    }
}

#[test]
fn values_are_refused_with_the_rule_that_they_break() {
    REFUSED.iter().for_each(check_refused);
}

#[test]
fn parts_of_blocks_keep_their_promises_on_sides_that_differ() {
    let algorithm = find("strided-rings").unwrap();
    for (text, ports) in [
        ("torus:2x4", 2),
        ("torus:8x2", 3),
        ("torus:4x1x12", 2),
        ("torus:12x8", 2),
        ("torus:2x2x4", 3),
        ("torus:8x4x4", 3),
        ("torus:12x2x4", 4),
        ("torus:2x4x2x2", 4),
        ("torus:4x2x2x8", 4),
    ] {
        // Bytes that do not make equal parts, too.
        for &bytes in reach(&[7][..], &[1, 2, 7]) {
            let machine = with_ports(text, ports);
            let problem = problem(&machine, Collective::AllToAll, bytes);
            let check = |given: &str| {
                let schedule =
                    schedule_of(&machine, &problem, "strided-rings", &setting(given)).unwrap();
                let complete = &schedule.origin.parameters;
                check_promises(&machine, algorithm, &problem, complete, Method::Replay);
            };
            for landing in ["near", "short"] {
                for last in ["axis", "all"] {
                    check(&format!("stride=2,share=parts,landing={landing},last={last}"));
                }
            }
            for given in ["share=parts,fold=2", "share=parts,fold=6"] {
                check(given);
            }
        }
    }
}
