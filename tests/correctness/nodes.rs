//! Exchanges through the leaders of nodes deliver as claimed for nodes of any sizes.

use common::{MEMORY, algorithms, all_settings, claims, find, problem, schedule_of, select};
use rayon::prelude::*;
use std::collections::BTreeSet;
use topocoll::{
    ByLinks, Collective, Counts, Machine, Method, Parameters, PerClass, Ports, Request, Setting,
    count, machine, verify,
};

fn radix(lanes: u64, radix: u64) -> Parameters {
    [("lanes", lanes), ("radix", radix)]
        .map(|(name, value)| (name.to_owned(), Setting::Integer(value)))
        .into()
}

fn cluster(sizes: &[u32], ports: impl Into<Ports>) -> Machine {
    let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
    let mut machine = machine(&format!("cluster:{}", sizes.join(","))).unwrap();
    machine.set_ports(ports);
    machine
}

fn replayed(machine: &Machine, setting: &Parameters) -> Counts {
    let place = format!("{} {setting:?} {} ports", machine.name, machine.ports);
    let problem = problem(machine, Collective::AllToAll, 1);
    let schedule = schedule_of(machine, &problem, "node-radix", setting).unwrap();
    let found = verify(&schedule, machine, Some(Method::Replay), MEMORY).unwrap();
    assert_eq!(found.violation, None, "{place}");
    let counts = found.counts;
    let claims = claims(machine, &problem, "node-radix", setting).unwrap();
    assert_eq!((counts.steps, counts.bytes), (claims.steps, claims.bytes), "{place}");
    assert_eq!((counts.port_violations, counts.rearrangements), (0, 0), "{place}");
    counts
}

/// Node sizes by a seed.
fn random_sizes(seed: u64) -> Vec<u32> {
    let mut random = fastrand::Rng::with_seed(seed);
    let (nodes, least) = (random.usize(2..9), random.u32(1..4));
    (0..nodes).map(|_| random.u32(least..least + 5)).collect()
}

#[test]
fn node_radix_delivers_as_claimed_at_every_setting() {
    let small = [
        &[1, 1][..],
        &[2, 2],
        &[1, 2, 3],
        &[3, 1],
        &[4, 4, 4],
        &[2, 3, 2, 3, 2],
        &[5, 2, 2, 2, 2, 2, 2],
        &[3; 9],
    ];
    let sizes = small.iter().map(|sizes| sizes.to_vec()).chain((0..40).map(random_sizes));
    sizes.collect::<Vec<_>>().into_par_iter().for_each(|sizes| {
        for ports in 1..=5 {
            let machine = cluster(&sizes, ports);
            let lanes = machine.ports.rank.min(*sizes.iter().min().unwrap());
            for (lanes, base) in
                (1..=lanes).flat_map(|lanes| (2..=sizes.len()).map(move |base| (lanes, base)))
            {
                replayed(&machine, &radix(lanes.into(), base as u64));
            }
        }
    });
}

/// All messages of `node-aware` are sent from consecutive slots, whatever the sizes of nodes and
/// however many carriers send at once, as is claimed.
#[test]
fn node_aware_packs_and_copies_nothing() {
    let algorithm = find("node-aware").unwrap();
    let equal = [vec![2; 4], vec![4; 6], vec![5; 4], vec![3; 11]];
    let sizes = equal.into_iter().chain((0..20).map(random_sizes));
    sizes.collect::<Vec<_>>().into_par_iter().for_each(|sizes| {
        for (rank, node) in [(1, 1), (3, 3), (1, 2), (1, 3), (2, 5), (4, 8), (3, 100)] {
            let machine = cluster(&sizes, Ports { rank, node });
            let problem = problem(&machine, Collective::AllToAll, 3);
            for setting in all_settings(algorithm, &problem, &*machine.topology) {
                let place = format!("{sizes:?} {setting:?} {:?}", machine.ports);
                let schedule = schedule_of(&machine, &problem, "node-aware", &setting).unwrap();
                let found = verify(&schedule, &machine, Some(Method::Replay), MEMORY).unwrap();
                assert_eq!((found.violation, found.counts.port_violations), (None, 0), "{place}");
                let counts = found.counts;
                assert_eq!(counts.rearranged_bytes, 0, "{place}");
                let claims = claims(&machine, &problem, "node-aware", &setting).unwrap();
                // Messages of a digit have several runs.
                if !setting.contains_key("radix") {
                    assert_eq!(counts.packed_bytes, 0, "{place}");
                    assert_eq!(claims.copied_bytes, Some(0), "{place}");
                }
                assert_eq!((counts.steps, counts.bytes), (claims.steps, claims.bytes), "{place}");
            }
        }
    });
}

/// By digits of radix r ranks of a node exchange in as many steps as an index exchange among them.
#[test]
fn node_aware_by_digits_takes_a_step_for_each_value() {
    for (size, radix, inside) in [(8, 2, 3), (9, 3, 4), (7, 2, 3), (7, 4, 4), (5, 5, 4)] {
        let machine = cluster(&[size; 4], Ports { rank: 1, node: 1 });
        let problem = problem(&machine, Collective::AllToAll, 1);
        let setting = [("radix".to_owned(), Setting::Integer(radix))].into();
        let claims = claims(&machine, &problem, "node-aware", &setting).unwrap();
        assert_eq!(claims.steps, 2 * inside + 3, "{size} ranks, radix {radix}");
    }
}

/// With as many ports of a node as carriers all of them send at once, in one step between nodes.
#[test]
fn carriers_of_a_node_of_many_ports_send_at_once() {
    let machine = cluster(&[8; 6], Ports { rank: 1, node: 8 });
    let problem = problem(&machine, Collective::AllToAll, 1);
    let lanes = |lanes: u64| {
        let setting = [("lanes".to_owned(), Setting::Integer(lanes))].into();
        claims(&machine, &problem, "node-aware", &setting).unwrap()
    };
    assert_eq!([1, 2, 4, 5, 8].map(|all| lanes(all).steps), [5, 3, 2, 1, 1].map(|x| 14 + x));
}

/// Trees of radix 2 over 8 ranks take 3 steps and carry 7 times the blocks of a rank. Between 16 nodes,
/// radix 2 sends half of all distances in each of 4 steps.
#[test]
fn node_radix_of_equal_nodes_takes_a_step_for_each_digit() {
    let counts = replayed(&cluster(&[8; 16], 1), &radix(1, 2));
    assert_eq!((counts.steps, counts.inter_node_steps), (3 + 4 + 3, 4));
    assert_eq!(counts.bytes, 2 * 7 * 128 + 4 * 8 * 64);
    let counts = replayed(&cluster(&[8; 16], 1), &radix(1, 16));
    assert_eq!((counts.steps, counts.bytes), (3 + 15 + 3, 2 * 7 * 128 + 15 * 64));
    // Two lanes of four ranks each, a port for each; three messages a step gather.
    let counts = replayed(&cluster(&[8; 16], 2), &radix(2, 2));
    assert_eq!((counts.steps, counts.inter_node_steps), (2 + 4 + 3, 4));
    assert_eq!(counts.bytes, (1 + 1) * 128 + 4 * 8 * 32 + 7 * 64);
}

/// Where only one link class costs time, the claims by links equal the counts.
#[test]
fn claims_by_links_equal_the_counts() {
    let mut seen = BTreeSet::new();
    let clusters = [
        &[1][..],
        &[2],
        &[5],
        &[1, 1],
        &[2, 2],
        &[3, 3],
        &[3, 2],
        &[4, 4, 4],
        &[1, 1, 1, 1],
        &[2; 5],
        &[3; 6],
        &[1, 2, 3],
        &[4, 4, 1, 1],
    ];
    for (sizes, ports) in clusters.into_iter().flat_map(|sizes| (1..=4).map(move |k| (sizes, k))) {
        let machine = cluster(sizes, ports);
        let alone = |inside: f64, between: f64| {
            let mut machine = machine.clone();
            machine.timing.startup = PerClass::each(&[inside, between]);
            machine.timing.per_byte = PerClass::each(&[inside, between]);
            machine
        };
        for algorithm in algorithms() {
            let problem = problem(&machine, algorithm.info().operation, 3);
            for setting in all_settings(algorithm, &problem, &*machine.topology) {
                let claims = Request::new(&problem, &*machine.topology)
                    .solve(algorithm, &setting)
                    .map(|s| s.claims)
                    .unwrap();
                let Some(claimed) = claims.by_links else { continue };
                let schedule =
                    schedule_of(&machine, &problem, &algorithm.info().name, &setting).unwrap();
                let counted = |machine: &Machine| count(&schedule, machine, None, MEMORY).unwrap();
                let place = format!("{} {setting:?} on {sizes:?}, {ports}", algorithm.info().name);
                let ByLinks { intra_node, inter_node, both } = claimed;
                let steps = counted(&machine).inter_node_steps;
                assert_eq!(inter_node.steps + both.steps, steps, "{place}");
                for (kind, time) in [
                    (intra_node, counted(&alone(1.0, 0.0))),
                    (inter_node, counted(&alone(0.0, 1.0))),
                ] {
                    let charged = (kind.steps + both.steps) as f64;
                    assert_eq!(time.time.startup, charged, "{place}");
                    let charged = (kind.bytes + both.bytes) as f64;
                    assert_eq!(time.time.transmission, charged, "{place}");
                }
                seen.insert(&algorithm.info().name);
            }
        }
    }
    let all =
        ["clustered-factor", "clustered-matchings", "node-aware", "node-gather", "node-radix"];
    assert!(seen.into_iter().eq(all));
}

#[test]
fn few_steps_win_where_startups_are_expensive() {
    let mut machine = cluster(&[8, 8, 8, 7, 6, 8, 8, 8, 8], 1);
    machine.timing.startup = PerClass::uniform(1e-3);
    let best = &select(&machine, &problem(&machine, Collective::AllToAll, 1)).choices[0];
    assert_eq!((&*best.algorithm, best.price.steps), ("node-radix", 3 + 4 + 3));
}

#[test]
fn more_lanes_than_ranks_of_a_node_are_refused() {
    let said = |sizes: &[u32], setting| {
        let machine = cluster(sizes, 4);
        let problem = problem(&machine, Collective::AllToAll, 1);
        schedule_of(&machine, &problem, "node-radix", &setting).unwrap_err().to_string()
    };
    assert_eq!(
        said(&[4, 2, 4], radix(3, 2)),
        "node-radix: lanes is `3`, not a whole number from 1 to 2"
    );
    assert_eq!(
        said(&[4, 2, 4], radix(2, 4)),
        "node-radix: radix is `4`, not a whole number from 2 to 3"
    );
    assert_eq!(
        said(&[6], Parameters::new()),
        "node-radix: requires a cluster of several nodes, which cluster:6 is not"
    );
}
