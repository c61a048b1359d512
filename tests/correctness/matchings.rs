//! Matchings coloured for a demand matrix: their number and their weight.

use std::fmt::Write;

use common::{MEMORY, exchange, schedule_for, schedule_of};
use rayon::prelude::*;
use topocoll::exec::{PlannedSizes, SeededDriver, plan_all};
use topocoll::{
    Block, Collective, Counts, Demand, Machine, Matchings, Method, Parameters, Problem, Rank,
    Setting, Shape, best_bounds, count, machine, verify,
};

const LAWS: [&str; 5] = ["uniform", "power-law", "sparse", "experts", "neighbours"];

/// A random machine without shared links, its demand matrix and its number of ports.
fn random(seed: u64, clusters: bool) -> (Machine, Problem, Demand) {
    let mut random = fastrand::Rng::with_seed(seed);
    let form = if clusters {
        let sizes: Vec<String> =
            (0..random.u32(2..8)).map(|_| random.u32(1..6).to_string()).collect();
        format!("cluster:{}", sizes.join(","))
    } else {
        format!("full:{}", random.u32(2..40))
    };
    let mut machine = machine(&form).unwrap();
    machine.set_ports(random.u32(1..4));
    let problem =
        Problem::new(Collective::AllToAll, machine.ranks(), machine.ports, random.u64(1..4000))
            .unwrap();
    let law = format!("{}:{seed}", LAWS[random.usize(..LAWS.len())]);
    let demand = Demand::drawn(&problem, law.parse().unwrap()).unwrap();
    (machine, problem, demand)
}

/// The i-th largest blocks that any rank sends or receives, or on a cluster any node to or from other
/// nodes. Their number is the fewest matchings, and their sum is a lower bound on the weight of
/// matchings.
fn floor(machine: &Machine, demand: &Demand) -> Vec<u64> {
    let vertex = |rank: u32| match machine.topology.shape() {
        Shape::Clustered(clusters) => clusters.node_of(Rank(rank)),
        _ => rank,
    };
    let ranks = machine.ranks();
    let mut lists = vec![Vec::new(); 4 * ranks as usize];
    for from in 0..ranks {
        for to in 0..ranks {
            let bytes = demand.bytes(Block { from: Rank(from), to: Rank(to) });
            if bytes > 0 && from != to {
                lists[4 * from as usize].push(bytes);
                lists[4 * to as usize + 1].push(bytes);
            }
            if bytes > 0 && vertex(from) != vertex(to) {
                lists[4 * vertex(from) as usize + 2].push(bytes);
                lists[4 * vertex(to) as usize + 3].push(bytes);
            }
        }
    }
    let mut floor = Vec::new();
    for list in &mut lists {
        list.sort_unstable_by_key(|&bytes| std::cmp::Reverse(bytes));
        floor.resize(floor.len().max(list.len()), 0);
        floor.iter_mut().zip(list).for_each(|(most, bytes)| *most = (*bytes).max(*most));
    }
    floor
}

fn counted(machine: &Machine, problem: &Problem, demand: &Demand, startup: Option<u64>) -> Counts {
    let place = format!("{} {demand:?} {} ports {startup:?}", machine.name, machine.ports);
    let given = startup.map(|bytes| ("startup".to_owned(), Setting::Integer(bytes)));
    let given: Parameters = given.into_iter().collect();
    let schedule = schedule_for(machine, problem, demand, "demand-matchings", &given).unwrap();
    let found = verify(&schedule, machine, Some(Method::Replay), MEMORY).unwrap();
    assert_eq!((found.violation, found.counts.port_violations), (None, 0), "{place}");
    let counts = count(&schedule, machine, Some(demand), MEMORY).unwrap();
    assert_eq!(counts.port_violations, 0, "{place}");
    let bound = best_bounds(problem, machine, Some(demand));
    assert!(counts.time.total() >= bound.seconds * (1.0 - 1e-12), "{place}");
    // The plan from the matrix is the same.
    let mut plan = Matchings::new(&*machine.topology, problem.ports).unwrap();
    let startup = startup.unwrap_or(machine.startup_bytes());
    plan.plan(&matrix(demand), startup).unwrap();
    let (floor, ports) = (floor(machine, demand), problem.ports as usize);
    assert_eq!(plan.cost(), (counts.steps, counts.bytes), "{place}");
    assert_eq!(plan.schedule(problem).origin, schedule.origin, "{place}");
    if machine.topology.nodes() == machine.ranks() {
        let least = floor.iter().step_by(ports).map(|&bytes| u128::from(bytes)).sum();
        assert_eq!(plan.least(), (floor.len().div_ceil(ports) as u64, least), "{place}");
        assert!(plan.steps() as usize <= 2 * (problem.ranks as usize).div_ceil(ports), "{place}");
    }
    counts
}

fn matrix(demand: &Demand) -> Vec<u64> {
    (0..demand.ranks()).flat_map(|rank| demand.row(Rank(rank))).collect()
}

/// The ratio of `matchings` to the lower bounds, with expensive and with free startups: the steps of
/// the first, and the weight of each.
fn gaps(seed: u64, clusters: bool) -> [f64; 3] {
    let (machine, problem, demand) = random(seed, clusters);
    let floor = floor(&machine, &demand);
    let ports = machine.ports.rank as usize;
    let weight: u64 = floor.iter().step_by(ports).sum();
    let fewest = counted(&machine, &problem, &demand, Some(1 << 50));
    let steps = floor.len().div_ceil(ports) as u64;
    assert!(fewest.steps == steps || clusters && fewest.steps > steps, "{seed}");
    let free = counted(&machine, &problem, &demand, Some(0));
    counted(&machine, &problem, &demand, None);
    let over = |bytes: u128, floor: u64| if floor == 0 { 1.0 } else { bytes as f64 / floor as f64 };
    assert!(fewest.bytes.min(free.bytes) >= u128::from(weight), "{seed}");
    [over(fewest.steps.into(), steps), over(fewest.bytes, weight), over(free.bytes, weight)]
}

fn report(seeds: std::ops::Range<u64>, clusters: bool) -> [(f64, f64); 3] {
    let gaps: Vec<[f64; 3]> = seeds.into_par_iter().map(|seed| gaps(seed, clusters)).collect();
    let found = [0, 1, 2].map(|i| {
        let values = gaps.iter().map(|gap| gap[i]);
        (values.clone().sum::<f64>() / gaps.len() as f64, values.fold(0.0, f64::max))
    });
    eprintln!(
        "clusters {clusters}: mean and most of steps, weight at the fewest, with free startups: {found:?}"
    );
    found
}

#[test]
fn matchings_are_the_fewest_and_little_above_the_lightest() {
    for clusters in [false, true] {
        let [steps, fewest, free] = report(0..150, clusters);
        assert!(steps.1 <= 1.0 || clusters);
        assert!(fewest.0 < 1.1 && free.0 < 1.05);
    }
}

/// `cargo test --test correctness matchings:: -- --ignored --nocapture`.
#[test]
#[ignore = "a sample of it always runs"]
fn matchings_of_ten_thousand_random_demands() {
    for clusters in [false, true] {
        report(0..5000, clusters);
    }
}

#[test]
fn blocks_of_any_sizes_arrive() {
    for seed in 0..60 {
        let (machine, problem, demand) = random(seed, seed % 2 == 0);
        let schedule =
            schedule_for(&machine, &problem, &demand, "demand-matchings", &Parameters::new())
                .unwrap();
        let ranks = || (0..machine.ranks()).map(Rank);
        let byte = |from: Rank, to: Rank, i: u64| (from.0 * 31 + to.0 * 7 + i as u32) as u8;
        let block = |from, to| {
            (0..demand.bytes(Block { from, to }))
                .map(move |i| byte(from, to, i))
                .collect::<Vec<_>>()
        };
        let input: Vec<u8> =
            ranks().flat_map(|from| ranks().flat_map(move |to| block(from, to))).collect();
        let expected: Vec<u8> =
            ranks().flat_map(|to| ranks().flat_map(move |from| block(from, to))).collect();
        let plans = plan_all(&schedule).unwrap();
        let sizes = std::sync::Arc::new(PlannedSizes::new(&plans, &demand).unwrap());
        let mut output = vec![0; expected.len()];
        SeededDriver::new(&plans).exchange(&sizes, &input, &mut output, seed).unwrap();
        assert!(output == expected, "{} {demand:?}", machine.name);
    }
}

#[test]
fn few_large_steps_beat_many_small_ones_where_startups_are_expensive() {
    let mut machine = machine("full:32").unwrap();
    let problem = Problem::new(Collective::AllToAll, 32, 1, 1000).unwrap();
    let demand = Demand::drawn(&problem, "power-law:3".parse().unwrap()).unwrap();
    let matchings = |machine: &Machine| {
        let selection = exchange(machine, &problem).demand(&demand).unwrap().select().unwrap();
        let own = |choice: &&topocoll::Choice| choice.algorithm == "demand-matchings";
        let best = selection.choices.iter().find(own).unwrap();
        assert!(selection.rejected.iter().all(|row| row.algorithm != "demand-matchings"));
        best.price.steps
    };
    machine.timing.startup = topocoll::PerClass::uniform(1e-3);
    assert_eq!(matchings(&machine), 31);
    machine.timing.startup = topocoll::PerClass::uniform(1e-12);
    assert!(matchings(&machine) > 31);
}

/// Sizes of one kind among ranks, with a mean near 50 kB.
fn kind(name: &str, ranks: u32) -> Demand {
    let mut random = fastrand::Rng::with_seed(59);
    let mut text = String::new();
    for from in 0..ranks {
        for to in 0..ranks {
            let near = from / 8 == to / 8;
            let size = match name {
                "random" => random.u64(..100_000),
                "zipf" => {
                    100_000_000 / u64::from((to * 37 % ranks + 1) * ranks) * random.u64(8..12) / 10
                }
                "block-diagonal" => random.u64(..100_000) * u64::from(near),
                "hot column" if to == 5 => random.u64(200_000..400_000),
                "hot column" => random.u64(..50_000),
                "huge entry" if (from, to) == (3, 7) => 1 << 30,
                "huge entry" => random.u64(..20_000),
                _ => 0,
            };
            write!(text, "{size} ").unwrap();
        }
        text += "\n";
    }
    let problem = Problem::new(Collective::AllToAll, ranks, 1, 1).unwrap();
    Demand::read(&problem, text.as_bytes()).unwrap()
}

const KINDS: [&str; 6] = ["random", "zipf", "block-diagonal", "hot column", "huge entry", "zeros"];

/// The bound is startup x fewest matchings + the sum of the largest i-th largest blocks. Kinds without skew may
/// cost more above it.
#[test]
fn skewed_demands_cost_at_most_a_twentieth_above_the_bound_that_counts_startups() {
    for form in ["full:64", "cluster:8*8", "full:16"] {
        let mut machine = machine(form).unwrap();
        for name in KINDS {
            let demand = kind(name, machine.ranks());
            let problem =
                Problem::new(Collective::AllToAll, machine.ranks(), 1, demand.mean()).unwrap();
            for startup in [1e-8, 1e-6, 3e-5, 1e-3] {
                machine.timing.startup = topocoll::PerClass::uniform(startup);
                counted(&machine, &problem, &demand, None);
                let mut plan = Matchings::new(&*machine.topology, 1).unwrap();
                plan.plan(&matrix(&demand), machine.startup_bytes()).unwrap();
                let cost = |(steps, bytes)| steps as f64 * startup + bytes as f64 * 1e-9;
                // On a cluster the bound leaves out intra-node messages.
                if name == "zeros" || form.starts_with("cluster") {
                    continue;
                }
                let ratio = cost(plan.cost()) / cost(plan.least());
                let most = match name {
                    "random" | "block-diagonal" => 1.2,
                    _ => 1.05,
                };
                assert!(ratio <= most, "{form} {name} {startup}: {ratio}");
            }
        }
    }
}

#[test]
fn planning_again_allocates_nothing() {
    for form in ["full:40", "cluster:5*8"] {
        let machine = machine(form).unwrap();
        let mut plan = Matchings::new(&*machine.topology, 1).unwrap();
        let matrices = KINDS.map(|name| matrix(&kind(name, 40)));
        // Until every list has had its longest.
        for startup in [0, u64::MAX] {
            matrices.iter().for_each(|sizes| plan.plan(sizes, startup).unwrap());
        }
        let taken = allocation_counter::measure(|| {
            for (sizes, startup) in matrices.iter().rev().zip([7, 1 << 20].into_iter().cycle()) {
                plan.plan(sizes, startup).unwrap();
            }
        });
        assert_eq!(taken.count_total, 0, "{form}");
    }
}

#[test]
fn sizes_that_are_no_matrix_are_refused() {
    let machine = machine("full:3").unwrap();
    let mut plan = Matchings::new(&*machine.topology, 1).unwrap();
    let mut refused = |sizes: &[u64]| plan.plan(sizes, 0).unwrap_err().to_string();
    assert_eq!(
        refused(&[1; 8]),
        "line 3: the matrix has 2 rows and 2 sizes: 3 ranks have 3 rows of 3"
    );
    assert_eq!(
        refused(&[1, 2, 3, 4, 5, 6, 7, 1 << 41, 9]),
        "line 3: column 2: `2199023255552`: a size is a whole number from 0 to 1099511627776"
    );
    let machine = topocoll::machine("full:2049").unwrap();
    assert!(Matchings::new(&*machine.topology, 1).is_err());
}

#[test]
fn a_parameter_without_meaning_is_refused() {
    let machine = machine("full:5").unwrap();
    let problem = Problem::new(Collective::AllToAll, 5, 1, 10).unwrap();
    let demand = kind("random", 5);
    let said = |name: &str, value: Setting| {
        let given = Parameters::from([(name.to_owned(), value)]);
        schedule_for(&machine, &problem, &demand, "demand-matchings", &given)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        said("startup", "none".into()),
        "demand-matchings: startup is `none`, not a whole number from 0 to 18446744073709551615"
    );
    assert_eq!(
        said("startups", 4.into()),
        "demand-matchings has no parameter `startups`: it takes startup"
    );
    let error = schedule_of(&machine, &problem, "demand-matchings", &Parameters::new());
    assert_eq!(
        error.unwrap_err().to_string(),
        "demand-matchings: requires the sizes of blocks (--demand)"
    );
}
