//! Lower bounds worked out by hand: each theorem's value, its measure and its condition.

use topocoll::{
    Barrier, Collective, Machine, Measure, PerClass, Problem, asymptotic_bounds, best_bounds,
    bounds, machine, spec,
};

use Collective::{AllGather, AllToAll};

fn on(text: &str, ports: u32, operation: Collective, block_bytes: u64) -> (Problem, Machine) {
    let mut machine = machine(text).unwrap();
    machine.set_ports(ports);
    let problem = Problem::new(operation, machine.ranks(), ports, block_bytes).unwrap();
    (problem, machine)
}

/// The measure, the bound, its source and its condition.
type Row = (&'static str, f64, &'static str, &'static str);

fn check(text: &str, ports: u32, operation: Collective, block_bytes: u64, rows: &[Row]) {
    let (problem, machine) = on(text, ports, operation, block_bytes);
    let found = bounds(&problem, &machine);
    let found: Vec<_> = (found.iter())
        .map(|bound| (bound.measure.name(), bound.value, &*bound.theorem, &*bound.condition))
        .collect();
    assert_eq!(found, rows, "{text} by {ports} ports");
}

/// Startups: the least d with (k+1)^d >= n. Injection: b (n-1) bytes through k ports. Theorem 2.5:
/// where n = (k+1)^d, n d/(k+1) blocks in d steps. Theorem 2.6: where k divides n-1, (n-1)/k steps with
/// the fewest blocks.
#[test]
fn bounds_on_complete_graphs() {
    const INDEX: &str = "Bruck et al. 1997, Proposition 2.3 (startups)";
    const INJECTION: &str = "Bruck et al. 1997, Proposition 2.4 (injection)";
    const GATHER: &str = "Bruck et al. 1997, Proposition 2.1 (startups)";
    const GATHERED: &str = "Bruck et al. 1997, Proposition 2.2 (injection)";
    const EXACT: &str = "Bruck et al. 1997, Theorem 2.5";
    const FEWEST: &str = "Bruck et al. 1997, Theorem 2.6";
    let (two, four) = ("schedules of exactly 2 steps", "schedules of exactly 4 blocks");
    check(
        "full:9",
        2,
        AllToAll,
        100,
        &[
            ("steps", 2.0, INDEX, ""),
            ("blocks", 4.0, INJECTION, ""),
            ("blocks", 6.0, EXACT, two),
            ("steps", 4.0, FEWEST, four),
        ],
    );
    check(
        "full:9",
        2,
        AllGather,
        100,
        &[("steps", 2.0, GATHER, ""), ("blocks", 4.0, GATHERED, "")],
    );
    // 49 bytes through three ports: 17. 16 is a power of 4, and 3 does not divide 7.
    check(
        "full:8",
        3,
        AllToAll,
        7,
        &[("steps", 2.0, INDEX, ""), ("blocks", 17.0 / 7.0, INJECTION, "")],
    );
    let one = "schedules of exactly 1 blocks";
    check(
        "full:2",
        1,
        AllToAll,
        1,
        &[
            ("steps", 1.0, INDEX, ""),
            ("blocks", 1.0, INJECTION, ""),
            ("blocks", 1.0, EXACT, "schedules of exactly 1 steps"),
            ("steps", 1.0, FEWEST, one),
        ],
    );
    check("full:1", 1, AllToAll, 1, &[("steps", 0.0, INDEX, ""), ("blocks", 0.0, INJECTION, "")]);
}

/// Across the middle of a side a: floor(a^2/4) (P/a)^2 blocks over P/a links, or 2P/a where the side
/// wraps; in an all-gather the blocks of the larger part.
#[test]
fn bounds_on_grids() {
    let links = |text, ports, operation| -> Vec<(f64, String)> {
        let (problem, machine) = on(text, ports, operation, 8);
        let found = bounds(&problem, &machine).into_iter();
        let found = found.filter(|bound| bound.condition.is_empty());
        let found =
            found.filter(|bound| matches!(bound.measure, Measure::LinkBlocks | Measure::Hops));
        found.map(|bound| (bound.value, bound.theorem)).collect()
    };
    let across = |u: u32, side: u32| format!("bisection across dimension {u} (side {side})");
    let few = || "links of a rank with the fewest".to_owned();
    let diameter = || "diameter".to_owned();
    // 6 * 9 over 3 links; 2 * 25 over 5; (5 - 1) + (3 - 1) hops.
    let expected = [(18.0, across(0, 5)), (10.0, across(1, 3)), (6.0, diameter())];
    assert_eq!(links("mesh:5x3", 1, AllToAll), expected);
    // Twice the links; 2 + 1 hops; a rank has four links for its four ports.
    let expected = [(9.0, across(0, 5)), (5.0, across(1, 3)), (3.0, diameter())];
    assert_eq!(links("torus:5x3", 4, AllToAll), expected);
    // 5 ports, of which four have a link: 14 blocks.
    assert_eq!(links("torus:5x3", 5, AllToAll)[0], (3.5, few()));
    // 3 * 3 over 3 links; 2 * 5 over 5.
    let expected = [(3.0, across(0, 5)), (2.0, across(1, 3)), (6.0, diameter())];
    assert_eq!(links("mesh:5x3", 2, AllGather), expected);
    // A corner has two links of the side that wraps, one of the other, none of the side of 1.
    let mut expected = vec![(7.0 / 3.0, few()), (4.0, across(0, 4)), (4.0, across(1, 2))];
    expected.push((3.0, diameter()));
    assert_eq!(links("grid:4~x2x1", 4, AllToAll), expected);
    assert_eq!(links("grid:4~x2x1", 3, AllToAll), expected[1..]);
}

/// The busiest link of the machine's routes: on a ring of a nodes 1 + 2 + .. + a/2 messages go up,
/// and with balanced ties every second one of the longest goes down. Nodes of s ranks carry s^2.
#[test]
fn bounds_of_routes_on_grids() {
    let routed = |machine: &Machine, operation| {
        let problem = Problem::new(operation, machine.ranks(), 1, 8).unwrap();
        let mut found = bounds(&problem, machine).into_iter();
        found.find(|bound| bound.theorem.contains("routes")).map(|bound| bound.value)
    };
    let on = |text| routed(&machine(text).unwrap(), AllToAll);
    assert_eq!(on("torus:4x4x4"), Some(48.0));
    assert_eq!(on("torus:4x4x4*2"), Some(192.0));
    assert_eq!(on("torus:5x3"), Some(9.0));
    assert_eq!(on("mesh:5x3"), Some(18.0));
    assert_eq!(on("full:4"), None);
    assert_eq!(routed(&machine("torus:4x4").unwrap(), AllGather), None);
    let balanced = |sides: &str| {
        let file = include_str!("../machines/ties.toml").replace("torus:4x6", sides);
        routed(&spec::parse_file("balanced-ties", &file).unwrap(), AllToAll)
    };
    assert_eq!(balanced("torus:4x4x4"), Some(32.0));
    assert_eq!(balanced("torus:6"), Some(5.0));
}

/// A node of s ranks sends s (p - s) blocks to the others; in an all-gather it receives p - s.
#[test]
fn bounds_on_clusters() {
    let node = |text, ports, operation| {
        let (problem, machine) = on(text, ports, operation, 8);
        let mut found = bounds(&problem, &machine).into_iter();
        found.find(|bound| bound.theorem.contains("node")).map(|bound| bound.value)
    };
    assert_eq!(node("cluster:3,1,2", 1, AllToAll), Some(9.0));
    assert_eq!(node("cluster:3,1,2", 2, AllToAll), Some(4.5));
    assert_eq!(node("cluster:3,1,2", 1, AllGather), Some(5.0));
    assert_eq!(node("cluster:1,1", 1, AllToAll), Some(1.0));
    assert_eq!(node("cluster:6", 1, AllToAll), None);
}

/// Startups, bytes at the speed of their links, hops along a diameter, and a barrier between steps.
#[test]
fn bounds_in_seconds() {
    let least = |text, ports, operation, bytes, startup, per_byte: &[f64], per_hop: &[f64]| {
        let (problem, mut machine) = on(text, ports, operation, bytes);
        machine.timing.startup = PerClass::uniform(startup);
        machine.timing.per_byte = PerClass::each(per_byte);
        machine.timing.per_hop = PerClass::each(per_hop);
        machine.timing.barrier = Barrier { fixed: 5.0, per_doubling: 0.0 };
        let best = best_bounds(&problem, &machine, None);
        (best.steps, best.link_blocks, best.seconds)
    };
    // In four steps 800 s of bytes, in three 1000, in two 1200.
    assert_eq!(least("full:9", 2, AllToAll, 100, 3.0, &[2.0], &[0.0]), (2, 4.0, 827.0));
    assert_eq!(least("full:9", 2, AllToAll, 100, 1000.0, &[2.0], &[0.0]), (2, 4.0, 3205.0));
    // Not a power of two: nine moves of two bytes in three steps.
    assert_eq!(least("full:7", 1, AllToAll, 2, 1.0, &[1.0], &[0.0]), (3, 6.0, 31.0));
    // 144 bytes across the first side at 2 s, 80 across the second at 10; 4 hops of 1 s and 2 of 7.
    let found = least("mesh:5x3", 1, AllToAll, 8, 3.0, &[2.0, 10.0], &[1.0, 7.0]);
    assert_eq!(found, (4, 18.0, 12.0 + 800.0 + 18.0 + 15.0));
    let found = least("mesh:5x3", 1, AllToAll, 8, 3.0, &[20.0, 10.0], &[1.0, 7.0]);
    assert_eq!(found, (4, 18.0, 12.0 + 2880.0 + 18.0 + 15.0));
    // A rank's five ports have four links: 3.5 blocks each.
    let found = least("torus:5x3", 5, AllGather, 8, 3.0, &[2.0], &[1.0]);
    assert_eq!(found, (2, 3.5, 6.0 + 56.0 + 3.0 + 5.0));
    // 9 blocks of 4 bytes between nodes at 2 s.
    let found = least("cluster:3,1,2", 1, AllToAll, 4, 3.0, &[1.0, 2.0], &[0.0]);
    assert_eq!(found, (3, 9.0, 9.0 + 72.0 + 10.0));
}

/// Asymptotic bounds: of all-to-alls among several ranks, one of them on one port.
#[test]
fn bounds_of_asymptotic_order() {
    let orders = |text, ports, operation| -> Vec<_> {
        let found = asymptotic_bounds(&on(text, ports, operation, 8).0);
        found.iter().map(|bound| bound.theorem).collect()
    };
    let [exact, one] = ["Bruck et al. 1997, Theorem 2.7", "Bruck et al. 1997, Theorem 2.9"];
    assert_eq!(orders("full:2", 1, AllToAll), [exact, one]);
    assert_eq!(orders("full:4", 2, AllToAll), [exact]);
    assert!(orders("full:1", 1, AllToAll).is_empty());
    assert!(orders("full:2", 1, AllGather).is_empty());
}

#[test]
fn a_single_rank_has_bounds_of_zero() {
    for text in ["full:1", "torus:1", "mesh:1x1", "mesh:1x2/0,1", "cluster:1"] {
        for operation in [AllToAll, AllGather] {
            let (problem, machine) = on(text, 2, operation, 100);
            assert!(bounds(&problem, &machine).iter().all(|bound| bound.value == 0.0), "{text}");
            assert!(best_bounds(&problem, &machine, None).seconds == 0.0, "{text}");
        }
    }
}

/// The distances of the blocks of an all-to-all do not bound an all-gather, except the longest.
#[test]
fn an_all_gather_has_no_bound_from_the_sum_of_distances() {
    let (problem, machine) = on("twisted-torus:4x8", 4, AllGather, 100);
    let found = bounds(&problem, &machine);
    let found: Vec<_> = found.iter().map(|bound| (bound.measure.name(), bound.value)).collect();
    assert_eq!(found, [("steps", 3.0), ("blocks", 7.75), ("hops", 4.0)]);
}

/// Of the 9 least steps on 64 nodes of 8 ranks, 6 are between nodes, with the startup of nodes: in these 192 moves of
/// the 64 blocks of two nodes.
#[test]
fn steps_between_nodes_start_as_slowly_as_nodes() {
    let (problem, mut machine) = on("cluster:64*8", 1, AllToAll, 1);
    machine.timing.startup = PerClass::each(&[2e-6, 10e-6]);
    let seconds = best_bounds(&problem, &machine, None).seconds;
    let by_hand = 6.0 * 10e-6 + 3.0 * 2e-6 + 192.0 * 64.0 * 1e-9;
    assert!((seconds / by_hand - 1.0).abs() < 1e-9, "{seconds}");
}
