//! Once an endpoint is made, exchanges allocate nothing, whatever the size. A threaded driver allocates
//! the messages under way.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use topocoll_exec::{
    Action, Endpoint, Memory, PlannedSizes, ThreadedDriver, plan_all, worthwhile_threads,
};
use topocoll_schedule::{
    Block, Collective, Demand, Origin, Parameters, Problem, RankClasses, Rule, Schedule, Slot,
    SlotSet, Step, Strided,
};
use topocoll_topology::{Rank, Route};

/// Four ranks: halves exchanged with rank XOR 1, then with rank XOR 2, and two copies: one to slots
/// of its own, and one that reads a slot that it writes.
struct Halves;

impl Rule for Halves {
    fn steps(&self) -> u32 {
        4
    }
    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let set = |base, stride| SlotSet::of(Strided::runs(base, 2, stride, 1));
        match step {
            0 => {
                let bit = u64::from(1 - rank.0 % 2);
                out.send(Rank(rank.0 ^ 1), set(bit, 2), Route::default());
                out.receive(Rank(rank.0 ^ 1), set(bit, 2));
            }
            1 => {
                let half = 2 * u64::from(1 - rank.0 / 2);
                out.send(Rank(rank.0 ^ 2), set(half, 1), Route::default());
                out.receive(Rank(rank.0 ^ 2), set(half, 1));
            }
            2 => out.copy(set(0, 2), SlotSet::of(Strided::contiguous(4, 2))),
            _ => {
                out.copy(
                    SlotSet::of(Strided::contiguous(1, 1)),
                    SlotSet::of(Strided::contiguous(3, 1)),
                );
                out.copy(
                    SlotSet::of(Strided::contiguous(3, 1)),
                    SlotSet::of(Strided::contiguous(2, 1)),
                );
            }
        }
    }
    fn slots(&self) -> u64 {
        6
    }
    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        (slot < 4).then_some(Block { from: rank, to: Rank(slot as u32) })
    }
    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let from = match slot {
            4 | 5 => Rank(2 * (slot as u32 - 4)),
            3 => Rank(1),
            2 => Rank(3),
            _ => return None,
        };
        Some(Block { from, to: rank })
    }
    fn classes(&self) -> RankClasses {
        RankClasses::distinct(4)
    }
}

/// Copies and messages of an exchange in which no rank waits.
fn exchange(endpoint: &mut Endpoint, memory: &mut Memory<'_>) -> (u32, u32) {
    endpoint.check(memory).unwrap();
    let (mut copies, mut messages) = (0, 0);
    loop {
        match endpoint.poll().unwrap() {
            Action::Copy(copy) => {
                endpoint.copy(copy, memory);
                copies += 1;
            }
            Action::Send(message) | Action::Receive(message) => {
                endpoint.complete(message.token, message.region.bytes).unwrap();
                messages += 1;
            }
            Action::Wait => unreachable!("everything is complete"),
            Action::Done => return (copies, messages),
        }
    }
}

fn schedule() -> Schedule {
    let problem = Problem::new(Collective::AllToAll, 4, 1, 16).unwrap();
    let origin = Origin { algorithm: "halves".to_owned(), parameters: Parameters::new() };
    Schedule::new(problem, origin, Halves)
}

#[test]
fn exchanges_allocate_nothing() {
    let plan = plan_all(&schedule()).unwrap().remove(1);
    let (input, mut output, mut work) = (vec![1; 256], vec![0; 256], vec![0; 1024]);
    let mut endpoint = Endpoint::new(plan, 16u64);
    let (mut copies, mut messages) = (0, 0);
    let taken = allocation_counter::measure(|| {
        for block_bytes in [16u64, 64, 1, 0] {
            endpoint.begin(block_bytes);
            let mut memory = Memory { input: &input, output: &mut output, work: &mut work };
            let done = exchange(&mut endpoint, &mut memory);
            copies += done.0;
            messages += done.1;
        }
    });
    assert!(copies >= 4 && messages == 16, "{copies} copies, {messages} messages");
    assert_eq!(taken.count_total, 0);
}

#[test]
fn exchanges_of_all_to_all_v_allocate_nothing() {
    let schedule = schedule();
    let demand = Demand::read(&schedule.problem, "9,0,1,2\n3,4,5,6\n7,8,9,1\n2,3,4,5\n".as_bytes());
    let plans = plan_all(&schedule).unwrap();
    let sizes = Arc::new(PlannedSizes::new(&plans, &demand.unwrap()).unwrap());
    let (input, mut output, mut work) = (vec![1; 256], vec![0; 256], vec![0; 1024]);
    let mut endpoint = Endpoint::new(Arc::clone(&plans[1]), &sizes);
    let mut done = (0, 0);
    let taken = allocation_counter::measure(|| {
        for _ in 0..3 {
            endpoint.begin(&sizes);
            let mut memory = Memory { input: &input, output: &mut output, work: &mut work };
            done = exchange(&mut endpoint, &mut memory);
        }
    });
    assert!(done.0 >= 4 && done.1 == 4, "{done:?}");
    assert_eq!(taken.count_total, 0);
}

#[test]
fn a_driver_allocates_registers_and_messages_under_way() {
    const BLOCK: usize = 1 << 16;
    let plans = plan_all(&schedule()).unwrap();
    let registers: u128 = plans.iter().map(|plan| plan.register_bytes(BLOCK as u64)).sum();
    let (input, mut output) = (vec![1; 16 * BLOCK], vec![0; 16 * BLOCK]);
    let mut driver = ThreadedDriver::new(plans, 1);
    let mut timed = None;
    let taken = allocation_counter::measure(|| {
        timed = Some(driver.exchange(BLOCK as u64, &input, &mut output).unwrap());
    });
    // Two blocks at a time pass through a buffer that is kept between exchanges.
    let needed = registers as u64 + timed.unwrap().most_under_way + 2 * BLOCK as u64;
    assert!(taken.bytes_max < needed + BLOCK as u64 / 2, "{} of {needed}", taken.bytes_max);
}

#[test]
fn threads_start_once_and_only_for_enough_bytes() {
    let named = || -> Vec<_> {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
        let name = |task: &PathBuf| std::fs::read_to_string(task.join("comm")).unwrap_or_default();
        tasks.filter(|task| name(task).starts_with("topocoll")).collect()
    };
    let mut driver = ThreadedDriver::new(plan_all(&schedule()).unwrap(), 3);
    let (input, mut output) = ([1; 16 * 8], [0; 16 * 8]);
    driver.exchange(8u64, &input, &mut output).unwrap();
    // A thread that starts late gets its name late, and the others do its work.
    let begin = Instant::now();
    let started = loop {
        let started = named();
        if started.len() >= 2 {
            break started;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{started:?}");
        std::thread::yield_now();
    };
    for _ in 0..3 {
        driver.exchange(8u64, &input, &mut output).unwrap();
    }
    let after = named();
    assert!(started.iter().all(|thread| after.contains(thread)), "{started:?} {after:?}");
    assert_eq!([0, 4_194_303, 4_194_304, 1 << 30].map(worthwhile_threads), [1, 1, 2, 512]);
}
