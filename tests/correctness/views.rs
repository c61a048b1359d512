//! Schedules on views of a machine: orders of its dimensions, and directions at half a ring.

use common::{
    Case, MEMORY, check_certificate, check_classes, check_delivery, check_moves, find, problem,
    setting, target, with_ports,
};
use topocoll::formats::{FORMATS, Reader, Source, Writer};
use topocoll::{Machine, Method, Parameters, View, verify};

/// Machines, ports, algorithms and settings.
const VIEWS: [(&str, u32, &str, &str); 18] = [
    ("torus:8x2", 4, "bruck", "axes=1:0 radix=4 ties=balanced"),
    ("mesh:6x4", 1, "direct", "axes=1:0"),
    ("torus:3x5x2", 1, "product", "axes=2:0:1 together=16"),
    ("torus:4x1x6", 2, "bruck", "axes=2:0 radix=5 ports=1"),
    ("hypercube:4", 4, "neighbour-rings", "axes=0+1:2+3"),
    ("hypercube:5", 2, "bruck", "digits=coordinates axes=1:0:4:3:2 radix=2"),
    ("hyperx:3x3", 1, "coloured-rings", "axes=1:0"),
    ("torus:4x4", 1, "pairwise-xor", "axes=0:1:1:0"),
    ("mesh:2x6x2", 1, "link-matchings", "link_messages=1 axes=2+0:1"),
    ("torus:4x3", 2, "concat", "axes=1:0 ties=balanced"),
    ("dragonfly:2,2,1", 2, "bruck", "radix=3 seen=near"),
    ("fat-tree:3,2", 1, "one-factor", "seen=dealt"),
    ("hyperx:3x4", 3, "link-matchings", "link_messages=1 seen=coordinates"),
    ("torus:3x3/0,0", 2, "recursive-doubling", "seen=scattered-1"),
    ("inputs/sp30.csv", 2, "direct", "without=0"),
    ("inputs/sp30.csv", 1, "bruck", "radix=2 seen=mesh:6 without=0"),
    ("inputs/dgx1.csv", 4, "pairwise-xor", "seen=hyperx:2x4"),
    ("inputs/m3x3.csv", 4, "bucket", "axes=1:0 seen=mesh:3x3"),
];

/// A machine with these ports, or of a file.
fn machine_of(text: &str, ports: u32) -> Machine {
    let file = || format!("graph:{}/{text}", env!("CARGO_MANIFEST_DIR"));
    with_ports(&if text.starts_with("inputs") { file() } else { text.to_owned() }, ports)
}

#[test]
fn a_schedule_on_a_view_delivers_is_proved_and_written_and_moves_bytes() {
    for (text, ports, name, given) in VIEWS {
        let (machine, algorithm) = (machine_of(text, ports), find(name).unwrap());
        let problem = problem(&machine, algorithm.info().operation, 3);
        let case = Case::solve(&machine, algorithm, &problem, &setting(given)).unwrap();
        let (schedule, place) = (case.schedule(), &case.place);
        let kept = |(key, value)| schedule.origin.parameters.get(key) == Some(value);
        assert!(setting(given).iter().all(kept), "{place}");
        let counts = check_delivery(&case, Method::Replay);
        if schedule.rule().cuts().is_empty() {
            assert_eq!(check_delivery(&case, Method::Classes), counts, "{place}");
        }
        check_classes(schedule, &machine, place);
        check_certificate(&case, &counts);
        check_moves(schedule, 3, 5);
        let (Writer::File(write), Reader::File(read)) = (FORMATS[0].writer, FORMATS[0].reader)
        else {
            panic!("JSON lines are a file");
        };
        let mut lines = Vec::new();
        write(&Source::new(schedule, &machine, MEMORY), &mut lines).unwrap();
        let back = read(&mut &*lines, &target(&machine)).unwrap();
        let found = verify(&back, &machine, Some(Method::Replay), MEMORY).unwrap();
        assert_eq!((found.violation, found.counts.time), (None, counts.time), "{place}");
    }
}

/// The ranks of a view are those of the machine, and neighbours are neighbours.
#[test]
fn a_view_renames_ranks() {
    for (text, axes) in
        [("torus:8x2x3", "2:0:1"), ("hypercube:4", "3+0:1:2"), ("torus:4x3x4", "2:1:0:2:0")]
    {
        let machine = with_ports(text, 1);
        let view = View::new(&*machine.topology, [None, None, Some(axes), None]);
        let view = view.unwrap().unwrap();
        let ranks = (0..machine.ranks()).map(topocoll::Rank);
        let mut seen: Vec<_> = ranks.clone().map(|rank| view.on_machine(rank)).collect();
        assert!(ranks.clone().all(|rank| view.in_view(view.on_machine(rank)) == rank));
        seen.sort_unstable();
        assert!(ranks.eq(seen), "{text} {axes}");
    }
}

/// The machine does not cost less or more where its dimensions have values of their own.
#[test]
fn values_of_dimensions_go_with_them() {
    let mut machine = with_ports("mesh:4x4", 2);
    common::set_values(&mut machine, 3);
    let algorithm = find("direct").unwrap();
    let problem = problem(&machine, algorithm.info().operation, 100);
    let of = |given: &str| {
        let case = Case::solve(&machine, algorithm, &problem, &setting(given)).unwrap();
        check_classes(case.schedule(), &machine, &case.place);
        check_delivery(&case, Method::Replay).time.total()
    };
    assert_ne!(of("axes=1:0"), of(""));
}

#[test]
fn what_is_no_view_is_refused() {
    let refused = |text: &str, given: &str| {
        let (machine, algorithm) = (machine_of(text, 1), find("direct").unwrap());
        let problem = problem(&machine, algorithm.info().operation, 3);
        let given: Parameters = setting(given);
        Case::solve(&machine, algorithm, &problem, &given).map(|_| ()).unwrap_err().to_string()
    };
    for (text, given, error) in [
        (
            "torus:4x6",
            "axes=1",
            "axes is `1`, not dimension 0 once among others, or twice if it is a ring of 4",
        ),
        (
            "torus:4x6",
            "axes=0:1:1",
            "axes is `0:1:1`, not dimension 1 once among others, or twice if it is a ring of 4",
        ),
        ("torus:4x6", "axes=0:2", "axes is `0:2`, not dimensions from 0 to 1, such as 1:0"),
        ("torus:2x2", "axes=0+1", "axes is `0+1`, not a sum of two sides of 2 that do not wrap"),
        ("full:4", "axes=0", "axes is `0`, not for a grid or hypercube"),
        ("full:4", "ties=up", "ties is `up`, not for a grid or hypercube"),
        ("torus:4x6", "ties=down", "ties is `down`, not up or balanced"),
        ("torus:4x6", "seen=near", "seen is `near`, not for a graph"),
        ("full:4", "without=0", "without is `0`, not for a graph"),
        (
            "inputs/sp30.csv",
            "without=2",
            "without is `2`, not kinds of links from 0 to 1, such as 0:2",
        ),
        ("inputs/sp30.csv", "without=1", "without is `1`, not for a graph that stays connected"),
        ("inputs/sp30.csv", "seen=near", "seen is `near`, not torus:6 or coordinates"),
        ("fat-tree:2,2", "axes=0 seen=near", "axes is `0`, not for a grid or hypercube"),
    ] {
        assert_eq!(refused(text, given), format!("direct: {error}"));
    }
}
