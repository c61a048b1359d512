//! Time over the size of the machine: `cargo bench --bench scale`.
#![allow(missing_docs, reason = "criterion's macros write undocumented items")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use topocoll::exec::{Plan, plan_all};
use topocoll::{
    Collective, Demand, Exchange, Machine, Matchings, Parameters, Problem, Rank, Schedule, Setting,
    Shape, Step, count, machine, verify,
};

const MEMORY: u128 = 4 << 30;

fn problem(machine: &Machine) -> Problem {
    Problem::new(Collective::AllToAll, machine.ranks(), machine.ports, 1024)
        .expect("a machine has ranks")
}

fn schedule(machine: &Machine, algorithm: &str) -> Schedule {
    let exchange = Exchange::new(machine, &problem(machine)).expect("its ranks");
    exchange.schedule(algorithm, &Default::default()).expect("the algorithm applies")
}

/// The number of blocks of all ranks grows with the fourth power of the side.
fn replay(c: &mut Criterion) {
    let mut group = c.benchmark_group("verify suh-shin by replay");
    group.sample_size(10).warm_up_time(Duration::from_millis(1));
    for side in [16, 32, 64] {
        let machine = machine(&format!("torus:{side}x{side}")).expect("a torus");
        let schedule = schedule(&machine, "suh-shin");
        group.bench_function(BenchmarkId::from_parameter(side), |b| {
            b.iter(|| verify(&schedule, &machine, None, MEMORY).expect("it fits"));
        });
    }
}

/// For `suh-shin`, boxes times steps grow with the third power of the side. For `direct`, steps
/// grow with its square, and each step touches one box.
fn classes(c: &mut Criterion) {
    for algorithm in ["suh-shin", "direct"] {
        let mut group = c.benchmark_group(format!("verify {algorithm} by classes"));
        group.sample_size(10).warm_up_time(Duration::from_millis(1));
        for side in [128, 256, 512, 1024] {
            let machine = machine(&format!("torus:{side}x{side}")).expect("a torus");
            let schedule = schedule(&machine, algorithm);
            group.bench_function(BenchmarkId::from_parameter(side), |b| {
                b.iter(|| verify(&schedule, &machine, None, MEMORY).expect("it fits"));
            });
        }
    }
}

/// Steps in which few ranks differ, or few are not idle.
fn counting(c: &mut Criterion) {
    let mut group = c.benchmark_group("count a million ranks");
    group.sample_size(10).warm_up_time(Duration::from_millis(1));
    for (text, algorithm) in
        [("torus:1021x1019", "coloured-rings"), ("torus:1024x1024", "tseng-gupta-panda")]
    {
        let machine = machine(text).expect("a torus");
        let schedule = schedule(&machine, algorithm);
        group.bench_function(algorithm, |b| {
            b.iter(|| count(&schedule, &machine, None, MEMORY).expect("it fits"));
        });
    }
}

fn selection(c: &mut Criterion) {
    let mut group = c.benchmark_group("select");
    group.sample_size(10).warm_up_time(Duration::from_millis(1));
    for text in [
        "sp1-64",
        "paragon-16x16",
        "torus:64x64",
        "torus:64x64x64",
        "torus:1024x1024",
        "torus:32768x32768",
        "fat-tree:32,2",
        "fat-tree:128,2",
        "fat-tree:362,2",
        // With fat-tree:32,2 trees and dragonflies of about 2^10, 2^14 and 2^17 ranks.
        "fat-tree:32,2*16",
        "fat-tree:32,2*128",
        "dragonfly:4,8,4",
        "dragonfly:8,16,8",
        "dragonfly:16,32,8",
    ] {
        let machine = machine(text).expect("a machine");
        let problem = problem(&machine);
        group.bench_function(BenchmarkId::from_parameter(text), |b| {
            let exchange = Exchange::new(&machine, &problem).expect("its ranks");
            b.iter(|| exchange.select().expect("a ranking"));
        });
    }
}

/// Plans from a matrix in the same memory: the time grows with the blocks, the square of the ranks.
fn demands(c: &mut Criterion) {
    let mut group = c.benchmark_group("plan matchings");
    let experts = "zipf:1.2,tokens=512,hidden=7168,dtype=bf16,experts=512,top=8,seed=1";
    for ranks in [32, 64, 128, 256, 512] {
        let machine = machine(&format!("full:{ranks}")).expect("a machine");
        let problem =
            Problem::new(Collective::AllToAll, ranks, 1, 65_536).expect("a machine has ranks");
        let drawn =
            |law: &str| Demand::drawn(&problem, law.parse().expect("a law")).expect("small blocks");
        let routed = Demand::routed(&problem, &experts.parse().expect("experts"));
        for (name, demand) in [
            ("zipf", routed.expect("few tokens")),
            ("uniform", drawn("uniform:7")),
            ("power-law", drawn("power-law:7")),
            ("sparse", drawn("sparse:7")),
            ("neighbours", drawn("neighbours:7")),
        ] {
            let sizes: Vec<u64> =
                (0..ranks).flat_map(|rank| demand.row(Rank(rank)).collect::<Vec<_>>()).collect();
            let mut plan = Matchings::new(&*machine.topology, 1).expect("few ranks");
            group.bench_function(BenchmarkId::new(name, ranks), |b| {
                b.iter(|| plan.plan(black_box(&sizes), machine.startup_bytes()).expect("sizes"));
            });
        }
    }
}

/// All steps of one rank of a million, planning included.
fn one_rank(c: &mut Criterion) {
    let mut group = c.benchmark_group("one rank of a million");
    let grid = machine("torus:1024x1024").expect("a torus");
    let full = machine("full:1048576").expect("a machine");
    let radix = |radix| Parameters::from([("radix".to_owned(), Setting::Integer(radix))]);
    let uneven = machine("torus:1021x1019").expect("a torus");
    let near = || {
        Parameters::from([
            ("classes".to_owned(), Setting::Integer(2)),
            ("landing".to_owned(), Setting::Text("near".to_owned())),
        ])
    };
    for (name, machine, algorithm, parameters) in [
        ("suh-shin", &grid, "suh-shin", Parameters::new()),
        ("coloured-rings landing=near", &grid, "coloured-rings", near()),
        ("coloured-rings on 1021x1019", &uneven, "coloured-rings", near()),
        ("bruck radix=2", &full, "bruck", radix(2)),
        ("bruck radix=1024", &full, "bruck", radix(1024)),
    ] {
        group.bench_function(name, |b| {
            let mut step = Step::default();
            b.iter(|| {
                let exchange = Exchange::new(machine, &problem(machine)).expect("its ranks");
                let schedule = exchange.schedule(algorithm, &parameters).expect("it applies");
                for number in 0..schedule.rule().steps() {
                    schedule.rule().step(Rank(777_777), number, black_box(&mut step));
                }
            });
        });
    }
}

/// 64 nodes of 8: the schedule and the plan of one rank, and of all.
fn cluster(c: &mut Criterion) {
    let mut group = c.benchmark_group("plans of clustered-matchings on 64 nodes of 8");
    group.sample_size(10).warm_up_time(Duration::from_millis(1));
    let machine = machine("cluster:64*8").expect("a cluster");
    let schedule = || schedule(&machine, "clustered-matchings");
    group.bench_function("one rank", |b| b.iter(|| Plan::new(&schedule(), Rank(77))));
    group.bench_function("all 512", |b| b.iter(|| plan_all(&schedule())));
}

/// By an interior-point method up to about 100 nodes, by cuts and hops where there are thousands.
fn least_load(c: &mut Criterion) {
    let mut group = c.benchmark_group("the bound on links of a machine with failures");
    group.sample_size(10).warm_up_time(Duration::from_millis(1));
    for text in [
        "mesh:4x6/1,1/2,2+1",
        "torus:4x4x4/0,0,0+0",
        "mesh:16x16/3,4",
        "mesh:64x64/3,4",
        "torus:16x16x16/0,0,0+0",
    ] {
        group.bench_function(BenchmarkId::from_parameter(text), |b| {
            b.iter_batched(
                || machine(text).expect("a machine"),
                |machine| match machine.topology.shape() {
                    Shape::Graph(graph) => topocoll::least_load(graph),
                    _ => panic!("a graph"),
                },
                BatchSize::PerIteration,
            );
        });
    }
}

criterion_group!(
    benches, replay, classes, counting, demands, selection, one_rank, cluster, least_load
);
criterion_main!(benches);
