//! Messages of whole nodes in matchings coloured for a demand matrix.

use std::collections::BTreeMap;

use common::{MEMORY, exchange};
use topocoll::formats::{self, Source};
use topocoll::{
    Block, Collective, Demand, Machine, Method, Parameters, Problem, Rank, Shape, count, machine,
    verify,
};

const LAWS: [&str; 5] = ["uniform", "power-law", "sparse", "experts", "neighbours"];

fn drawn(machine: &Machine, mean: u64, law: &str) -> (Problem, Demand) {
    let problem = Problem::new(Collective::AllToAll, machine.ranks(), machine.ports, mean).unwrap();
    let demand = Demand::drawn(&problem, law.parse().unwrap()).unwrap();
    (problem, demand)
}

fn setting(collect: &str) -> Parameters {
    Parameters::from([("collect".to_owned(), collect.into())])
}

/// The cost of the plan, and the bound of plans with its messages: by phase startup x the most messages of a rank, or
/// inter-node of a node, and the largest i-th largest of one, summed.
fn cost(machine: &Machine, problem: &Problem, demand: &Demand, collect: &str) -> [f64; 2] {
    let place = format!("{} {demand:?} {:?} {collect}", machine.name, machine.ports);
    let exchange = exchange(machine, problem).demand(demand).unwrap();
    let solution = exchange.solve("node-matchings", &setting(collect)).unwrap();
    let found = verify(&solution.schedule, machine, Some(Method::Replay), MEMORY).unwrap();
    assert_eq!((found.violation, found.counts.port_violations), (None, 0), "{place}");
    let counts = count(&solution.schedule, machine, Some(demand), MEMORY).unwrap();
    let claims = (solution.claims.steps, solution.claims.bytes);
    assert_eq!(
        (counts.steps, counts.bytes, counts.port_violations),
        (claims.0, claims.1, 0),
        "{place}"
    );
    let Shape::Clustered(nodes) = machine.topology.shape() else { panic!("a cluster") };
    let mut written = Vec::new();
    formats::jsonl::write(&Source::new(&solution.schedule, machine, MEMORY), &mut written).unwrap();
    let matched = machine.ports.node < machine.ports.rank * nodes.largest();
    let (mut phase, mut lists) = (0, BTreeMap::<_, Vec<u64>>::new());
    for line in String::from_utf8(written).unwrap().lines().skip(1) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let [from, to] = ["from", "to"].map(|end| Rank(line[end].as_u64().unwrap() as u32));
        let ends = [from, to].map(|rank| nodes.node_of(rank));
        let between = ends[0] != ends[1];
        phase += usize::from(between == (phase % 2 == 0));
        let blocks: Vec<[u64; 4]> = serde_json::from_value(line["blocks"].clone()).unwrap();
        let block = |one: &[u64; 4]| Block { from: Rank(one[0] as u32), to: Rank(one[1] as u32) };
        let bytes = blocks.iter().map(|one| demand.bytes(block(one))).sum();
        let vertices = if between && matched { ends } else { [from.0, to.0] };
        for (side, vertex) in vertices.into_iter().enumerate().filter(|_| bytes > 0) {
            lists.entry((phase, side, vertex)).or_default().push(bytes);
        }
    }
    assert!(phase <= 2, "{place}");
    let startup = machine.startup_bytes() as f64;
    let mut bound = 0.0;
    for phase in 0..3 {
        let own = lists.iter_mut().filter(|(key, _)| key.0 == phase);
        let mut floor: Vec<u64> = Vec::new();
        for (_, list) in own {
            list.sort_unstable_by_key(|&bytes| std::cmp::Reverse(bytes));
            floor.resize(floor.len().max(list.len()), 0);
            floor.iter_mut().zip(list).for_each(|(most, bytes)| *most = (*bytes).max(*most));
        }
        let ports = if phase == 1 { machine.ports.node } else { u32::MAX };
        let steps = floor.iter().step_by(machine.ports.rank.min(ports) as usize);
        bound += steps.map(|&bytes| bytes as f64 + startup).sum::<f64>();
    }
    [claims.1 as f64 + startup * claims.0 as f64, bound]
}

#[test]
fn every_block_arrives_on_random_clusters() {
    for seed in 0..80 {
        let mut random = fastrand::Rng::with_seed(seed);
        let sizes: Vec<String> =
            (0..random.u32(2..8)).map(|_| random.u32(1..6).to_string()).collect();
        let mut machine = machine(&format!("cluster:{}", sizes.join(","))).unwrap();
        machine.set_ports(random.u32(1..4));
        machine.ports.node = random.choice([1, 2, 40]).unwrap();
        let law = format!("{}:{seed}", LAWS[random.usize(..LAWS.len())]);
        let (problem, demand) = drawn(&machine, random.u64(1..4000), &law);
        for collect in ["node", "rank"] {
            let [cost, bound] = cost(&machine, &problem, &demand, collect);
            assert!(cost >= bound, "{seed}: {cost} below {bound}");
            assert!(cost <= 1.2 * bound, "{seed}: {cost} of {bound}");
        }
    }
}

/// Demands of programs: experts and laws without and with skew.
const DEMANDS: [&str; 5] = [
    "zipf:1.2,tokens=64,hidden=64,dtype=bf16,experts=64,top=8,seed=1",
    "power-law:3",
    "experts:1",
    "sparse:7",
    "hot column",
];

fn demand(machine: &Machine, mean: u64, name: &str) -> (Problem, Demand) {
    let problem = Problem::new(Collective::AllToAll, machine.ranks(), machine.ports, mean).unwrap();
    if name.starts_with("zipf") {
        return (problem, Demand::routed(&problem, &name.parse().unwrap()).unwrap());
    }
    if name != "hot column" {
        return drawn(machine, mean, name);
    }
    let size =
        |from, to| if to == 5 { 4096 + from * 641 % 4096 } else { (from * 31 + to * 17) % 256 };
    let row =
        |from| (0..problem.ranks).map(|to| format!("{} ", size(from, to))).collect::<String>();
    let text: String = (0..problem.ranks).map(|from| row(from) + "\n").collect();
    (problem, Demand::read(&problem, text.as_bytes()).unwrap())
}

/// The bound of plans with these messages: startup x the most of a rank or node + the largest i-th largest ones.
#[test]
fn matchings_of_nodes_cost_at_most_a_twentieth_above_their_bound() {
    for (form, ports) in [
        ("cluster:8*8", [1, 1]),
        ("cluster:8*8", [1, 8]),
        ("dgx-h100-4x8", [1, 8]),
        ("torus:4x2*8", [1, 2]),
    ] {
        let mut machine = machine(form).unwrap();
        [machine.ports.rank, machine.ports.node] = ports;
        for name in DEMANDS {
            let (problem, demand) = demand(&machine, 256, name);
            for collect in ["node", "rank"] {
                let [cost, bound] = cost(&machine, &problem, &demand, collect);
                eprintln!("{form} {ports:?} {name} {collect}: {}", cost / bound);
                assert!(
                    cost <= 1.05 * bound,
                    "{form} {ports:?} {name} {collect}: {cost} of {bound}"
                );
            }
        }
    }
}

/// Where skew meets startups, no other schedule comes near.
#[test]
fn rankings_use_them_for_skewed_demands_of_nodes() {
    let large = "zipf:1.2,tokens=4096,hidden=7168,dtype=bf16,experts=256,top=8,seed=1";
    for (form, ports, name, saved) in [
        ("cluster:8*8", [1, 1], "power-law:3", 1.5),
        ("cluster:8*8", [1, 8], "power-law:3", 1.2),
        ("dgx-h100-4x8", [1, 8], large, 1.6),
    ] {
        let mut machine = machine(form).unwrap();
        [machine.ports.rank, machine.ports.node] = ports;
        let (problem, demand) = demand(&machine, 256, name);
        let choices =
            exchange(&machine, &problem).demand(&demand).unwrap().select().unwrap().choices;
        let other = choices.iter().find(|choice| choice.algorithm != "node-matchings").unwrap();
        assert_eq!(choices[0].algorithm, "node-matchings", "{form}");
        let times = [other, &choices[0]].map(|choice| choice.price.time.total());
        assert!(times[0] > saved * times[1], "{form}: {times:?}");
    }
}
