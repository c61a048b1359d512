//! Simulation time of contention over the number of messages, for three and four decades:
//! `cargo bench --bench contention`.
#![allow(missing_docs, reason = "criterion's macros write undocumented items")]

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use topocoll::contention::{
    MODELS, Pattern, Request, Scheduled, Settings, Sync, Traffic, simulate,
};
use topocoll::{Collective, Exchange, Machine, Problem, Schedule, machine};

fn schedule(machine: &Machine, problem: &Problem, algorithm: &str) -> Schedule {
    let exchange = Exchange::new(machine, problem).expect("its ranks");
    exchange.schedule(algorithm, &Default::default()).expect("it applies")
}

fn run(traffic: &dyn Traffic, machine: &Machine, model: &str, settings: Settings, sync: Sync) {
    let model = MODELS.iter().find(|known| known.name == model).expect("a model");
    let mut request = Request::new(traffic, machine, model, 8 << 30);
    (request.settings, request.sync) = (settings, sync);
    assert!(!simulate(&request).expect("it fits").partial);
}

/// The number of messages grows with the fourth power of the side, the hops with the fifth.
fn worms(c: &mut Criterion) {
    let mut group = c.benchmark_group("wormhole direct");
    group.sample_size(10).warm_up_time(Duration::from_millis(1));
    for side in [6u64, 10, 18, 32] {
        let machine = machine(&format!("torus:{side}x{side}")).expect("a torus");
        let problem = Problem::new(Collective::AllToAll, machine.ranks(), 1, 1024).expect("ranks");
        let schedule = schedule(&machine, &problem, "direct");
        let traffic = Scheduled::new(&schedule, &machine);
        group.throughput(Throughput::Elements(side.pow(4) - side.pow(2)));
        group.bench_function(BenchmarkId::from_parameter(side), |b| {
            b.iter(|| run(&traffic, &machine, "wormhole", Settings::default(), Sync::Free));
        });
    }
}

/// One rank of each class: messages grow with the cube of the side, their hops with its fourth power.
fn flows(c: &mut Criterion) {
    let mut group = c.benchmark_group("fluid direct");
    group.sample_size(10).warm_up_time(Duration::from_millis(1));
    for side in [6u64, 14, 30, 64, 128] {
        let machine = machine(&format!("torus:{side}x{side}")).expect("a torus");
        let problem = Problem::new(Collective::AllToAll, machine.ranks(), 1, 4096).expect("ranks");
        let schedule = schedule(&machine, &problem, "direct");
        let traffic = Scheduled::new(&schedule, &machine);
        group.throughput(Throughput::Elements(side.pow(3) - side));
        group.bench_function(BenchmarkId::from_parameter(side), |b| {
            b.iter(|| run(&traffic, &machine, "fluid", Settings::default(), Sync::Free));
        });
    }
}

/// At a load of 0.05 the number of flits grows with the cycles.
fn flits(c: &mut Criterion) {
    let mut group = c.benchmark_group("flit uniform:0.05 on torus:16x16");
    group.sample_size(10).warm_up_time(Duration::from_millis(1));
    let machine = machine("torus:16x16").expect("a torus");
    let mut settings = Settings::default();
    settings.flit_bytes = 1;
    for cycles in [100, 1_000, 10_000, 100_000] {
        let traffic = Pattern::new(&machine, "uniform:0.05", 64, 1, Some(cycles), u128::MAX)
            .expect("a pattern");
        group.throughput(Throughput::Elements(cycles * 256 / 20));
        group.bench_function(BenchmarkId::from_parameter(cycles), |b| {
            b.iter(|| run(&traffic, &machine, "flit", settings, Sync::Free));
        });
    }
}

/// The time of steps without shared links depends on their classes, not on the nodes.
fn closed(c: &mut Criterion) {
    let mut group = c.benchmark_group("wormhole suh-shin under barriers");
    group.sample_size(10).warm_up_time(Duration::from_millis(1));
    for side in [32u32, 128, 1024] {
        let machine = machine(&format!("torus:{side}x{side}")).expect("a torus");
        let problem = Problem::new(Collective::AllToAll, machine.ranks(), 1, 1024).expect("ranks");
        let schedule = schedule(&machine, &problem, "suh-shin");
        let traffic = Scheduled::new(&schedule, &machine);
        group.bench_function(BenchmarkId::from_parameter(side), |b| {
            b.iter(|| run(&traffic, &machine, "wormhole", Settings::default(), Sync::Barrier));
        });
    }
}

criterion_group!(benches, worms, flows, flits, closed);
criterion_main!(benches);
