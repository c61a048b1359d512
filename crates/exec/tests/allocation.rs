//! Once an endpoint is made, exchanges allocate nothing, whatever the size, and neither do plans for other
//! sizes of blocks. A threaded driver allocates
//! the messages under way.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use topocoll_exec::{
    Action, Endpoint, Memory, PlannedSizes, ThreadedDriver, plan_all, worthwhile_threads,
};
use topocoll_schedule::{
    Block, Collective, Demand, Message, Origin, Parameters, Part, Problem, RankClasses, Recorder,
    Rule, Schedule, Slot, SlotSet, Step, Strided,
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

/// Demands of four ranks: zeros, and other places for the largest block.
const DEMANDS: [&str; 3] = [
    "9,0,1,2\n3,4,5,6\n7,8,9,1\n2,3,4,5\n",
    "0,0,0,0\n60,0,0,0\n0,0,0,70\n0,0,0,0\n",
    "1,1,1,1\n1,1,1,1\n1,1,1,1\n1,1,1,1\n",
];

#[test]
fn exchanges_of_all_to_all_v_and_plans_for_other_sizes_allocate_nothing() {
    let schedule = schedule();
    let demands = DEMANDS.map(|text| Demand::read(&schedule.problem, text.as_bytes()).unwrap());
    let plans = plan_all(&schedule).unwrap();
    let planned = || Arc::new(PlannedSizes::new(&plans, &demands[0]).unwrap());
    let (mut sizes, mut last) = (planned(), planned());
    let (input, mut output, mut work) = (vec![1; 256], vec![0; 256], vec![0; 1024]);
    let mut endpoint = Endpoint::new(Arc::clone(&plans[1]), &last);
    let mut done = Vec::with_capacity(6);
    let taken = allocation_counter::measure(|| {
        for demand in demands.iter().chain(&demands) {
            Arc::get_mut(&mut sizes).unwrap().plan_again(demand).unwrap();
            endpoint.begin(&sizes);
            let mut memory = Memory { input: &input, output: &mut output, work: &mut work };
            done.push(exchange(&mut endpoint, &mut memory));
            std::mem::swap(&mut sizes, &mut last);
        }
    });
    assert_eq!(done[..3], done[3..]);
    assert!(done[0].0 >= 4 && [done[0].1, done[1].1, done[2].1] == [4, 1, 4], "{done:?}");
    assert_eq!(taken.count_total, 0);
}

#[test]
fn an_endpoint_plans_for_other_sizes_without_allocation() {
    let problem = schedule().problem;
    let mut straight = Recorder::new(problem);
    for (step, from) in (1..4).flat_map(|step| (0..4).map(move |from| (step, Rank(from)))) {
        let to = Rank(from.0 ^ step);
        let blocks = vec![(Block { from, to }, Part::Whole)];
        straight.push(&Message { step: step - 1, from, to, route: None, blocks });
    }
    let origin = Origin { algorithm: "straight".to_owned(), parameters: Parameters::new() };
    let plans = plan_all(&Schedule::new(problem, origin, straight.finish())).unwrap();
    let demands = DEMANDS.map(|text| Demand::read(&problem, text.as_bytes()).unwrap());
    let lists: Vec<[Vec<u64>; 2]> = demands
        .iter()
        .map(|demand| [demand.row(Rank(1)).collect(), demand.column(Rank(1)).collect()])
        .collect();
    let (input, mut output) = (vec![1; 256], vec![0; 256]);
    let mut endpoint = Endpoint::new(Arc::clone(&plans[1]), 16u64);
    let mut messages = 0;
    let mut exchange_of = |[row, column]: &[Vec<u64>; 2]| {
        endpoint.begin_v(row, column).unwrap();
        let mut memory = Memory { input: &input, output: &mut output, work: &mut [] };
        messages += exchange(&mut endpoint, &mut memory).1;
    };
    exchange_of(&lists[0]);
    let taken = allocation_counter::measure(|| lists.iter().for_each(&mut exchange_of));
    // No message of no bytes.
    assert_eq!(messages, 5 + 5 + 1 + 6);
    assert_eq!(taken.count_total, 0);
    // What another holder has stays as it is.
    let held = Arc::new(PlannedSizes::of_rank(&plans[1], &lists[0][0], &lists[0][1]).unwrap());
    endpoint.begin(&held);
    endpoint.begin_v(&lists[2][0], &lists[2][1]).unwrap();
    assert_eq!((endpoint.input_bytes(), plans[1].input_bytes(&held)), (4, 18));
    // A refused begin leaves nothing begun.
    endpoint.begin_v(&lists[0][0], &[1; 3]).unwrap_err();
    assert!(endpoint.poll().is_err());
    endpoint.begin_v(&lists[0][0], &lists[0][1]).unwrap();
    assert_eq!(endpoint.input_bytes(), 18);
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
