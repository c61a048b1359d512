//! All-gathers on grids, with the fewest steps between neighbours and the volume of the bounds; and
//! all-gathers between nodes.

use common::{claims, schedule_of};
use rayon::prelude::*;
use topocoll::exec::{PlannedSizes, SeededDriver, plan_all};
use topocoll::{
    Collective, Counts, Demand, Machine, Method, Parameters, Problem, Setting, Shape, bounds,
    machine, verify,
};

/// Replays an all-gather, whose counts must equal the claims.
fn replayed(machine: &Machine, algorithm: &str, setting: &Parameters, bytes: u64) -> Counts {
    let problem =
        Problem::new(Collective::AllGather, machine.ranks(), machine.ports, bytes).unwrap();
    let place = format!("{algorithm} {setting:?} on {} with {} ports", machine.name, machine.ports);
    let schedule = schedule_of(machine, &problem, algorithm, setting).unwrap();
    let found = verify(&schedule, machine, Some(Method::Replay), 1 << 33).unwrap();
    assert_eq!(found.violation, None, "{place}");
    let (counts, claims) = (found.counts, claims(machine, &problem, algorithm, setting).unwrap());
    assert_eq!((counts.steps, counts.bytes), (claims.steps, claims.bytes), "{place}");
    assert_eq!((counts.link_conflicts, counts.port_violations), (0, 0), "{place}");
    counts
}

/// All tori of two sides from 2 to 24, and of three from 2 to 8, each once.
fn tori() -> Vec<Vec<u32>> {
    let two = (2..=24).flat_map(|a| (2..=a).map(move |b| vec![a, b]));
    let three =
        (2..=8).flat_map(|a| (2..=a).flat_map(move |b| (2..=b).map(move |c| vec![a, b, c])));
    two.chain(three).collect()
}

fn form(sides: &[u32]) -> String {
    let text: Vec<String> = sides.iter().map(ToString::to_string).collect();
    text.join("x")
}

/// On 251 of the 276 tori of two sides both measures are minimal, on the others the steps are one more.
/// On some tori of three sides the steps or the volume are one above the minimum.
#[test]
fn on_tori_steps_equal_the_diameter_and_all_links_have_equal_load() {
    let above: Vec<_> = (tori().into_par_iter())
        .map(|sides| {
            let mut machine = machine(&format!("torus:{}", form(&sides))).unwrap();
            machine.set_ports(2 * sides.len() as u32);
            let counts = replayed(&machine, "neighbour-gather", &Parameters::new(), 1);
            let diameter: u32 = sides.iter().map(|side| side / 2).sum();
            let blocks = (machine.ranks() - 1).div_ceil(machine.ports.rank).max(diameter);
            let above = (counts.steps - u64::from(diameter), counts.bytes - u128::from(blocks));
            assert!(above.0 <= 1 && above.1 <= if sides.len() == 2 { 0 } else { 1 }, "{sides:?}");
            (sides.len(), above != (0, 0))
        })
        .collect();
    let exact = |n| above.iter().filter(|&&(sides, above)| sides == n && !above).count();
    assert_eq!((exact(2), exact(3)), (251, 76));
}

#[test]
fn on_tori_with_fewer_ports_the_volume_is_that_of_the_ports() {
    for (text, ports, blocks) in [
        ("torus:6x4", 1, 23),
        ("torus:5x5", 2, 12),
        ("torus:4x4x4", 1, 63),
        ("torus:5x5x5", 2, 62),
        ("torus:5x5x5", 3, 42),
    ] {
        let mut machine = machine(text).unwrap();
        machine.set_ports(ports);
        let counts = replayed(&machine, "neighbour-gather", &Parameters::new(), 1);
        assert_eq!(counts.bytes, blocks, "{text} {ports}");
    }
}

fn dimensions(word: &str) -> Parameters {
    Parameters::from([("dimensions".to_owned(), Setting::Text(word.to_owned()))])
}

#[test]
fn with_one_port_buckets_carry_the_bytes_that_a_rank_receives() {
    let grids: Vec<String> = (2..=9)
        .flat_map(|a| (1..=7).map(move |b| (a, b)))
        .flat_map(|(a, b)| {
            [
                format!("torus:{a}x{b}"),
                format!("mesh:{a}x{b}"),
                format!("grid:{a}~x{b}"),
                format!("mesh:{b}x3x{a}"),
                format!("grid:2x{a}~x{b}x2~"),
            ]
        })
        .collect();
    grids.into_par_iter().for_each(|text| {
        let machine = machine(&text).unwrap();
        let Shape::Grid(grid) = machine.topology.shape() else { panic!("a grid") };
        let counts = replayed(&machine, "bucket", &dimensions("in-turn"), 3);
        let steps: u32 = grid.sides().iter().map(|side| side - 1).sum();
        assert_eq!(
            (counts.steps, counts.bytes),
            (steps.into(), 3 * u128::from(machine.ranks() - 1))
        );
        assert!(counts.hops <= 2 * u128::from(counts.steps), "{text}");
    });
}

#[test]
fn buckets_of_several_ports_deliver_as_claimed() {
    let grids = [
        "torus:4x6",
        "mesh:5x4",
        "grid:4~x6",
        "torus:5x2x3",
        "mesh:3x4x2",
        "grid:2~x4x3~",
        "mesh:9",
        "torus:8",
        "mesh:1x6x2",
    ];
    grids.into_par_iter().for_each(|text| {
        for ports in 2..=6 {
            let mut machine = machine(text).unwrap();
            machine.set_ports(ports);
            for word in ["in-turn", "at-once"] {
                replayed(&machine, "bucket", &dimensions(word), 7);
            }
        }
    });
}

/// A corner of n sides has n links, over which P - 1 blocks must arrive.
#[test]
fn on_equal_meshes_all_ports_meet_the_bound_of_a_corner() {
    for (text, side, n) in
        [("mesh:4x4", 4, 2), ("mesh:7x7", 7, 2), ("mesh:16x16", 16, 2), ("mesh:5x5x5", 5, 3)]
    {
        let mut machine = machine(text).unwrap();
        machine.set_ports(2 * n);
        let problem = Problem::new(Collective::AllGather, machine.ranks(), 2 * n, 6).unwrap();
        let counts = replayed(&machine, "bucket", &dimensions("at-once"), 6);
        assert_eq!(counts.steps, u64::from(n * (side - 1)), "{text}");
        assert_eq!(counts.bytes * u128::from(n), 6 * u128::from(machine.ranks() - 1), "{text}");
        let bound = bounds(&problem, &machine).into_iter().map(|bound| bound.value);
        let most = bound.fold(0.0, f64::max);
        assert!((counts.in_blocks(counts.bytes) - most).abs() < 1e-9, "{text}: {most}");
    }
}

fn rounds(word: &str) -> Parameters {
    Parameters::from([("rounds".to_owned(), Setting::Text(word.to_owned()))])
}

#[test]
fn nodes_of_any_sizes_gather_as_claimed() {
    (0..300u64).into_par_iter().for_each(|seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let sizes: Vec<String> =
            (0..random.u32(1..9)).map(|_| random.u32(1..8).to_string()).collect();
        let mut machine = machine(&format!("cluster:{}", sizes.join(","))).unwrap();
        machine.set_ports(random.u32(1..4));
        for word in ["direct", "doubling"] {
            replayed(&machine, "node-gather", &rounds(word), 2);
        }
    });
}

#[test]
fn equal_nodes_receive_the_least_inter_node_bytes() {
    for (nodes, size, steps, blocks) in [
        // 2 ceil(log2 s) + N - 1 steps; s - 1, p - s and (p - s) (s - 1) / s blocks.
        (9, 4, [2 * 2 + 8, 2 * 2 + 4], [3 + 32 + 24, 3 + 32 + 2 * 32]),
        (4, 3, [2 * 2 + 3, 2 * 2 + 2], [2 + 9 + 6, 2 + 9 + 2 * 9]),
        (40, 2, [2 + 39, 2 + 6], [1 + 78 + 40, 1 + 78 + 78]),
        (7, 1, [6, 3], [6, 6]),
        (1, 6, [3, 3], [5, 5]),
    ] {
        let machine = machine(&format!("cluster:{nodes}*{size}")).unwrap();
        for (i, word) in ["direct", "doubling"].into_iter().enumerate() {
            let counts = replayed(&machine, "node-gather", &rounds(word), 1);
            assert_eq!(
                (counts.steps, counts.bytes),
                (steps[i], blocks[i]),
                "{nodes}*{size} {word}"
            );
        }
    }
}

/// Whole blocks may have any sizes, zero included.
#[test]
fn an_all_gather_of_different_sizes_delivers_on_grids() {
    for (text, algorithm) in [
        ("torus:4x6", "neighbour-gather"),
        ("mesh:5x3", "bucket"),
        ("torus:3x3x2", "bucket"),
        ("cluster:3,1,4", "node-gather"),
    ] {
        let mut machine = machine(text).unwrap();
        machine.set_ports(4);
        let problem = Problem::new(Collective::AllGather, machine.ranks(), 4, 9).unwrap();
        let schedule = schedule_of(&machine, &problem, algorithm, &Parameters::new()).unwrap();
        let sizes: Vec<usize> = (0..machine.ranks() as usize).map(|rank| rank * 37 % 11).collect();
        let lines: String = sizes.iter().map(|size| format!("{size}\n")).collect();
        let demand = Demand::read(&problem, lines.as_bytes()).unwrap();
        let plans = plan_all(&schedule).unwrap();
        let planned = std::sync::Arc::new(PlannedSizes::new(&plans, &demand).unwrap());
        let input: Vec<u8> = (0..sizes.iter().sum::<usize>()).map(|i| i as u8).collect();
        let mut output = vec![0; input.len() * sizes.len()];
        SeededDriver::new(&plans).exchange(&planned, &input, &mut output, 3).unwrap();
        assert!(output.chunks(input.len()).all(|all| all == input), "{text}");
    }
}
