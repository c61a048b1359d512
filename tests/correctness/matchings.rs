//! Matchings coloured for a demand matrix: their number and their weight.

use common::{MEMORY, exchange, schedule_for, schedule_of};
use rayon::prelude::*;
use topocoll::exec::{PlannedSizes, SeededDriver, plan_all};
use topocoll::{
    Block, Collective, Counts, Demand, Machine, Method, Parameters, Problem, Rank, Setting, Shape,
    best_bounds, count, machine, verify,
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

fn counted(
    machine: &Machine,
    problem: &Problem,
    demand: &Demand,
    matchings: Option<usize>,
) -> Counts {
    let place = format!("{} {demand:?} {} ports {matchings:?}", machine.name, machine.ports);
    let given = matchings.map(|most| ("matchings".to_owned(), Setting::Integer(most as u64)));
    let given: Parameters = given.into_iter().collect();
    let schedule = schedule_for(machine, problem, demand, "demand-matchings", &given).unwrap();
    let found = verify(&schedule, machine, Some(Method::Replay), MEMORY).unwrap();
    assert_eq!((found.violation, found.counts.port_violations), (None, 0), "{place}");
    let counts = count(&schedule, machine, Some(demand), MEMORY).unwrap();
    assert_eq!(counts.port_violations, 0, "{place}");
    let bound = best_bounds(problem, machine, Some(demand));
    assert!(counts.time.total() >= bound.seconds * (1.0 - 1e-12), "{place}");
    counts
}

/// The ratio of `matchings` to the lower bounds, with the fewest steps and without limit: the steps of
/// the first, and the weight of each.
fn gaps(seed: u64, clusters: bool) -> [f64; 3] {
    let (machine, problem, demand) = random(seed, clusters);
    let floor = floor(&machine, &demand);
    let ports = machine.ports.rank as usize;
    let weight: u64 = floor.iter().step_by(ports).sum();
    let fewest = counted(&machine, &problem, &demand, Some(floor.len()));
    let steps = floor.len().div_ceil(ports) as u64;
    assert!(fewest.steps == steps || clusters && fewest.steps > steps, "{seed}");
    let unlimited = counted(&machine, &problem, &demand, Some(1 << 20));
    let chosen = counted(&machine, &problem, &demand, None).time.total();
    assert!(chosen <= fewest.time.total().min(unlimited.time.total()) * (1.0 + 1e-12), "{seed}");
    let over = |bytes: u128, floor: u64| if floor == 0 { 1.0 } else { bytes as f64 / floor as f64 };
    assert!(fewest.bytes.min(unlimited.bytes) >= u128::from(weight), "{seed}");
    [over(fewest.steps.into(), steps), over(fewest.bytes, weight), over(unlimited.bytes, weight)]
}

fn report(seeds: std::ops::Range<u64>, clusters: bool) -> [(f64, f64); 3] {
    let gaps: Vec<[f64; 3]> = seeds.into_par_iter().map(|seed| gaps(seed, clusters)).collect();
    let found = [0, 1, 2].map(|i| {
        let values = gaps.iter().map(|gap| gap[i]);
        (values.clone().sum::<f64>() / gaps.len() as f64, values.fold(0.0, f64::max))
    });
    eprintln!(
        "clusters {clusters}: mean and most of steps, weight at the fewest, without limit: {found:?}"
    );
    found
}

#[test]
fn matchings_are_the_fewest_and_little_above_the_lightest() {
    for clusters in [false, true] {
        let [steps, fewest, unlimited] = report(0..150, clusters);
        assert!(steps.1 <= 1.0 || clusters);
        assert!(fewest.0 < 1.1 && unlimited.0 < 1.05);
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

#[test]
fn a_limit_below_the_fewest_is_refused() {
    let machine = machine("full:5").unwrap();
    let problem = Problem::new(Collective::AllToAll, 5, 1, 10).unwrap();
    let demand = Demand::read(
        &problem,
        "0,1,1,1,1\n0,0,2,0,0\n0,0,0,0,0\n5,0,0,0,0\n0,0,0,0,0\n".as_bytes(),
    );
    let demand = demand.unwrap();
    let said = |name: &str, value| {
        let given = Parameters::from([(name.to_owned(), Setting::Integer(value))]);
        schedule_for(&machine, &problem, &demand, "demand-matchings", &given)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        said("matchings", 3),
        "demand-matchings: matchings is `3`, not a whole number from 4 to 4294967295"
    );
    assert_eq!(
        said("matching", 4),
        "demand-matchings has no parameter `matching`: it takes matchings"
    );
    let error = schedule_of(&machine, &problem, "demand-matchings", &Parameters::new());
    assert_eq!(
        error.unwrap_err().to_string(),
        "demand-matchings: requires the sizes of blocks (--demand)"
    );
}
