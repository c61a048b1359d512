//! Injection limits: each step is charged the slowest of its links, ranks and nodes.

use topocoll::contention::{Scheduled, steps_model};
use topocoll::{
    Block, Demand, Drawn, Injection, Machine, Measure, Parameters, Priced, Schedule, Shape, Step,
    bounds, count, count_steps, machine,
};

use common::{exchange, problem};

const MEMORY: u128 = 1 << 30;

fn limited(name: &str, ports: u32, rank: f64, node: f64) -> Machine {
    let mut machine = machine(name).unwrap();
    machine.set_ports(ports);
    machine.timing.injection = Injection { rank, node };
    machine
}

/// The node of a rank; every rank is a node by itself where nodes hold one.
fn node(machine: &Machine, rank: usize) -> usize {
    match machine.topology.shape() {
        Shape::Clustered(clusters) => clusters.node_of(topocoll::Rank(rank as u32)) as usize,
        _ => rank,
    }
}

/// Seconds of the largest injection of one step, added up message by message.
fn injected(
    schedule: &Schedule,
    machine: &Machine,
    step: u32,
    bytes: impl Fn(usize, usize, &topocoll::Transfer) -> u128,
) -> f64 {
    let ranks = machine.ranks() as usize;
    let (mut of_rank, mut of_node) = (vec![[0u128; 2]; ranks], vec![[0u128; 2]; ranks]);
    let mut does = Step::default();
    for from in 0..ranks {
        schedule.rule().step(topocoll::Rank(from as u32), step, &mut does);
        for send in &does.sends {
            let (to, bytes) = (send.peer.index(), bytes(from, send.peer.index(), send));
            of_rank[from][0] += bytes;
            of_rank[to][1] += bytes;
            let (a, b) = (node(machine, from), node(machine, to));
            if a != b {
                of_node[a][0] += bytes;
                of_node[b][1] += bytes;
            }
        }
    }
    let most = |sums: &[[u128; 2]]| sums.iter().flatten().copied().max().unwrap_or(0) as f64;
    let Injection { rank, node } = machine.timing.injection;
    (most(&of_rank) * rank).max(most(&of_node) * node)
}

/// The transmission of all steps: links as a machine without limits charges them, and injection.
fn expected(
    schedule: &Schedule,
    machine: &Machine,
    demand: Option<&Demand>,
    bytes: impl Fn(usize, usize, &topocoll::Transfer) -> u128,
) -> f64 {
    let mut unlimited = machine.clone();
    unlimited.timing.injection = Injection::default();
    let mut seconds = 0.0;
    count_steps(schedule, &unlimited, demand, MEMORY, |step, found| {
        let links = found.time(&unlimited, 1).transmission;
        seconds += injected(schedule, machine, step, &bytes).max(links);
    })
    .unwrap();
    seconds
}

fn equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

const MACHINES: [(&str, u32); 9] = [
    ("full:8", 7),
    ("full:9", 1),
    ("torus:4x4", 4),
    ("torus:6x3", 1),
    ("mesh:3x4", 2),
    ("twisted-torus:2x4", 4),
    ("torus:4x4/1,2", 3),
    ("cluster:3*4,2", 1),
    ("cluster:4*4", 4),
];

/// Limits of a rank and a node in seconds a byte; links take 1 ns.
const LIMITS: [(f64, f64); 5] =
    [(0.4e-9, 0.0), (0.0, 0.3e-9), (0.5e-9, 0.45e-9), (2e-9, 0.0), (3e-9, 5e-9)];

#[test]
fn every_schedule_is_charged_its_injection() {
    let mut limits = 0;
    for (name, ports) in MACHINES {
        for (rank, node) in LIMITS {
            let machine = limited(name, ports, rank, node);
            for operation in [topocoll::Collective::AllToAll, topocoll::Collective::AllGather] {
                let problem = problem(&machine, operation, 96);
                for solution in exchange(&machine, &problem).solutions() {
                    let schedule = &solution.schedule;
                    let bytes = |_, _, send: &topocoll::Transfer| send.slots.bytes(96);
                    let found = count(schedule, &machine, None, MEMORY).unwrap().time.transmission;
                    let expected = expected(schedule, &machine, None, bytes);
                    let traffic = Scheduled::new(schedule, &machine);
                    let posted = steps_model(&traffic, &machine, MEMORY).unwrap().time.transmission;
                    let origin = &schedule.origin;
                    assert!(equal(posted, found), "{name} {origin:?}: {posted}, not {found}");
                    assert!(equal(found, expected), "{name} {origin:?}: {found}, not {expected}");
                    let mut free = machine.clone();
                    free.timing.injection = Injection::default();
                    let links = count(schedule, &free, None, MEMORY).unwrap().time.transmission;
                    limits += u32::from(!equal(found, links));
                }
            }
        }
    }
    assert!(limits > 500, "{limits} schedules are limited by injection");
}

#[test]
fn blocks_of_different_sizes_are_charged_their_injection() {
    for (name, ports) in MACHINES {
        let machine = limited(name, ports, 0.6e-9, 0.8e-9);
        let problem = problem(&machine, topocoll::Collective::AllToAll, 4096);
        let drawn: Drawn = "power-law:7".parse().unwrap();
        let demand = Demand::drawn(&problem, drawn).unwrap();
        for algorithm in ["direct", "one-factor", "clustered-factor", "link-matchings"] {
            let exchange = exchange(&machine, &problem).demand(&demand).unwrap();
            let Ok(schedule) = exchange.schedule(algorithm, &Parameters::new()) else { continue };
            // These algorithms send every block by itself, straight to its destination.
            let bytes = |from: usize, to: usize, _: &topocoll::Transfer| {
                let (from, to) = (topocoll::Rank(from as u32), topocoll::Rank(to as u32));
                u128::from(demand.bytes(Block { from, to }))
            };
            let found = exchange.count(&schedule).unwrap().time.transmission;
            let expected = expected(&schedule, &machine, Some(&demand), bytes);
            assert!(equal(found, expected), "{name} {algorithm}: {found}, not {expected}");
        }
    }
}

#[test]
fn prices_by_claims_are_those_of_counts_and_no_bound_is_beaten() {
    for (name, ports) in MACHINES {
        for (rank, node) in LIMITS {
            let machine = limited(name, ports, rank, node);
            let problem = problem(&machine, topocoll::Collective::AllToAll, 4096);
            let exchange = exchange(&machine, &problem);
            let selection = exchange.select().unwrap();
            for choice in &selection.choices {
                let schedule = exchange.schedule(&choice.algorithm, &choice.parameters).unwrap();
                let counted = exchange.count(&schedule).unwrap().time.total();
                let price = choice.price.time.total();
                match choice.price.priced {
                    Priced::Exactly => assert!(equal(price, counted), "{name} {choice:?}"),
                    _ => assert!(price <= counted * (1.0 + 1e-9), "{name} {choice:?}"),
                }
                assert!(counted >= selection.bound.seconds * (1.0 - 1e-9), "{name} {choice:?}");
            }
        }
    }
}

/// 7 blocks of 1 MiB at 450 GB/s take 16.31 us, however many ports send them.
#[test]
fn ports_do_not_multiply_the_injection() {
    let mut machine = limited("full:8", 7, 1.0 / 450e9, 0.0);
    machine.timing.startup = topocoll::PerClass::uniform(3e-6);
    machine.timing.per_byte = topocoll::PerClass::uniform(1.0 / 450e9);
    let problem = problem(&machine, topocoll::Collective::AllToAll, 1 << 20);
    let selection = exchange(&machine, &problem).select().unwrap();
    let best = selection.best().unwrap();
    assert!(equal(best.price.time.transmission, 7.0 * 1_048_576.0 / 450e9));
    assert!((best.price.time.transmission * 1e6 - 16.31).abs() < 0.005);
    assert!(equal(best.price.time.total(), selection.bound.seconds));
    let rank = bounds(&problem, &machine).into_iter().find(|b| b.measure == Measure::Seconds);
    assert!(equal(rank.unwrap().value, 7.0 * 1_048_576.0 / 450e9));
}
