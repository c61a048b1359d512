//! Speed of planning and of moving bytes: `cargo bench --bench exec`.
//!
//! Ratios compare times taken in turn in one run, so that a busy machine slows both.
#![allow(missing_docs, reason = "criterion's macros write undocumented items")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use topocoll::exec::{Action, Endpoint, Memory, MemoryCopy, Plan, ThreadedDriver, plan_all};
use topocoll::{
    Catalogue, Collective, Exchange, Parameters, Problem, Rank, Request, Schedule, Setting, machine,
};

fn schedule(machine_name: &str, algorithm: &str, radix: Option<u64>, block: u64) -> Schedule {
    let machine = machine(machine_name).expect("a machine");
    let problem = Problem::new(Collective::AllToAll, machine.ranks(), machine.ports, block)
        .expect("a machine has ranks");
    let parameters: Parameters =
        radix.map(|radix| ("radix".to_owned(), Setting::Integer(radix))).into_iter().collect();
    let exchange = Exchange::new(&machine, &problem).expect("its ranks");
    exchange.schedule(algorithm, &parameters).expect("the algorithm applies")
}

fn plans(schedule: &Schedule) -> Vec<Arc<Plan>> {
    plan_all(schedule).expect("it delivers")
}

/// Machines of 512 ranks, and the squares that some algorithms require instead.
const MACHINES: [&str; 6] =
    ["full:512", "cluster:64*8", "torus:8x8x8", "torus:16x32", "mesh:16x32", "torus:16x16"];

/// Every algorithm at every setting: one rank, the fastest of several, and all with all threads.
fn planning(_: &mut Criterion) {
    const RUNS: u32 = 100;
    println!("{:<56} {:>9} {:>9} {:>8} {:>8}", "plan", "one [us]", "mark", "all [ms]", "mark");
    for name in MACHINES {
        let machine = machine(name).expect("a machine");
        for algorithm in Catalogue::standard().iter() {
            let problem =
                Problem::new(algorithm.info().operation, machine.ranks(), machine.ports, 64)
                    .expect("a machine has ranks");
            let solutions = Request::new(&problem, &*machine.topology).solutions(algorithm);
            // Only radices that are powers of two.
            let radix = |setting: &Parameters| match setting.get("radix") {
                Some(&Setting::Integer(radix)) => radix,
                _ => 1,
            };
            let schedules = solutions.map(|solution| solution.schedule);
            for schedule in schedules.filter(|s| radix(&s.origin.parameters).is_power_of_two()) {
                let setting = &schedule.origin.parameters;
                let time = |make: &mut dyn FnMut()| {
                    let start = Instant::now();
                    make();
                    start.elapsed()
                };
                let one = (0..RUNS)
                    .map(|i| {
                        let rank = Rank(i * 37 % machine.ranks());
                        time(&mut || drop(black_box(Plan::new(&schedule, rank).expect("so"))))
                    })
                    .collect();
                let all = (0..7).map(|_| time(&mut || drop(plans(&schedule)))).min();
                let steps = schedule.rule().steps();
                let mark = if steps < machine.ranks() - 1 { 20 } else { 50 };
                let setting: Vec<_> = setting.values().map(ToString::to_string).collect();
                println!(
                    "{:<56} {:>9.1} {:>9} {:>8.2} {:>8}",
                    format!(
                        "{name} {} {}, {steps} steps",
                        algorithm.info().name,
                        setting.join(",")
                    ),
                    median(one) * 1e6,
                    mark,
                    all.expect("some").as_secs_f64() * 1e3,
                    5
                );
            }
        }
    }
}

/// 16 ranks on one and two threads, compared with a plain copy of the same bytes.
fn exchanges(c: &mut Criterion) {
    for (block, threads) in [(64u64, 1), (1 << 16, 1), (1 << 16, 2)] {
        let mut group = c.benchmark_group(format!("16 ranks x {block} B, {threads} threads"));
        group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_secs(1));
        let bytes = 256 * block as usize;
        group.throughput(Throughput::Bytes(bytes as u64));
        let (input, mut output) = (vec![7u8; bytes], vec![1u8; bytes]);
        for (algorithm, radix) in
            [("direct", None), ("pairwise-xor", None), ("bruck", Some(2)), ("bruck", Some(4))]
        {
            let schedule = schedule("full:16", algorithm, radix, block);
            let mut driver = ThreadedDriver::new(plans(&schedule), threads);
            let name = format!("{algorithm}{}", radix.map_or(String::new(), |r| format!("-{r}")));
            group.bench_function(&name, |b| {
                b.iter(|| driver.exchange(block, &input, &mut output).expect("it runs"));
            });
        }
        let mut driver =
            ThreadedDriver::new(plans(&schedule("full:16", "direct", None, block)), threads);
        group.bench_function("plain copy", |b| {
            b.iter(|| driver.plain_copy(&input, &mut output).expect("it copies"));
        });
    }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

/// Speeds as shares of a plain copy's: the figures of docs/src/performance.md.
fn ratios(_: &mut Criterion) {
    const RUNS: usize = 51;
    let (block, bytes) = (1 << 16, 256 << 16);
    let (input, mut output) = (vec![7u8; bytes], vec![1u8; bytes]);
    for threads in [1, 2] {
        let mut driver =
            ThreadedDriver::new(plans(&schedule("full:16", "direct", None, block)), threads);
        let times = (0..RUNS).map(|_| {
            // A fill leaves the output equally warm in the cache for both.
            output.fill(1);
            let copy = driver.plain_copy(&input, &mut output).expect("it copies");
            output.fill(2);
            (copy, driver.exchange(block, &input, &mut output).expect("it runs").elapsed)
        });
        let (copies, exchanges) = times.unzip();
        let share = median(copies) / median(exchanges) * 100.0;
        println!(
            "16 ranks x 64 KiB, {threads} threads: direct at {share:.0} % of a plain copy (mark 80)"
        );
    }
    // Small blocks, on one thread.
    for (algorithm, radix) in [("direct", None), ("bruck", Some(2)), ("bruck", Some(4))] {
        let mut driver = ThreadedDriver::new(plans(&schedule("full:16", algorithm, radix, 64)), 1);
        let (input, mut output) = (vec![7u8; 256 * 64], vec![1u8; 256 * 64]);
        let times =
            (0..2000).map(|_| driver.exchange(64u64, &input, &mut output).expect("it runs"));
        let time = median(times.map(|timed| timed.elapsed).collect()) * 1e6;
        let radix = radix.map_or(String::new(), |radix| format!(", radix {radix}"));
        println!("16 ranks x 64 B, 1 thread: {algorithm}{radix} in {time:.1} us (mark 12)");
    }
    // Packing and unpacking of Bruck's messages, rank by rank, and a copy of the same size.
    let plan = &plans(&schedule("full:16", "bruck", Some(2), block))[5];
    let mut work = vec![1u8; plan.workspace_bytes(block) as usize];
    let mut endpoint = Endpoint::new(Arc::clone(plan), block);
    let mut driver = ThreadedDriver::new(Vec::new(), 1);
    let (mut packed, mut packing, mut copying) = (0, Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let (from, to) = (&input[..1 << 20], &mut output[..1 << 20]);
        copying.push(driver.plain_copy(from, to).expect("it copies"));
        let mut elapsed = Duration::ZERO;
        packed = 0;
        endpoint.begin(block);
        let mut memory = Memory { input: from, output: to, work: &mut work };
        loop {
            match endpoint.poll().expect("it goes on") {
                Action::Copy(copy) => {
                    let start = Instant::now();
                    endpoint.copy(copy, &mut memory);
                    if let MemoryCopy::Pack(message) | MemoryCopy::Unpack(message) = copy {
                        elapsed += start.elapsed();
                        packed += message.region.bytes;
                    }
                }
                Action::Send(message) | Action::Receive(message) => {
                    endpoint.complete(message.token, message.region.bytes).expect("it is");
                }
                Action::Wait | Action::Done => break,
            }
        }
        packing.push(elapsed);
    }
    let copied = f64::from(1 << 20) / median(copying);
    let share = packed as f64 / median(packing) / copied * 100.0;
    println!("bruck, radix 2: packs and unpacks at {share:.0} % of a plain copy (mark 60)");
}

criterion_group!(benches, ratios, planning, exchanges);
criterion_main!(benches);
