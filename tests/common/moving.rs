//! Bytes that a schedule moves.

use std::sync::Arc;

use topocoll::exec::{BlockSizes, Plan, SeededDriver, ThreadedDriver, plan_all};
use topocoll::{Collective, Rank, Schedule, Sync};

use crate::without_classes;

/// Every rank's input, and the output it must get.
fn data(plans: &[Arc<Plan>], block_bytes: usize, seed: u64) -> (Vec<u8>, Vec<u8>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (ranks, blocks) = (plans.len(), plans[0].input_blocks() as usize);
    let input: Vec<u8> = (0..ranks * blocks * block_bytes).map(|_| random.u8(..)).collect();
    let mut output = Vec::new();
    for to in 0..ranks {
        for from in 0..ranks {
            let block = from * blocks + if blocks == 1 { 0 } else { to };
            output.extend_from_slice(&input[block * block_bytes..][..block_bytes]);
        }
    }
    (input, output)
}

/// Moves bytes by the seeded driver, and compares the output with the expected one.
pub fn check_seeded(
    plans: &[Arc<Plan>],
    sizes: &BlockSizes,
    (input, expected): (&[u8], &[u8]),
    seed: u64,
    what: &dyn Fn() -> String,
) {
    let mut output = vec![0xee; expected.len()];
    SeededDriver::new(plans)
        .exchange(sizes.clone(), input, &mut output, seed)
        .unwrap_or_else(|error| panic!("{}: {error}", what()));
    assert!(output == expected, "seeded: {}", what());
}

/// The same by threads, twice by one driver: free-running, and with barriers.
pub fn check_threaded(
    plans: Vec<Arc<Plan>>,
    sizes: &BlockSizes,
    (input, expected): (&[u8], &[u8]),
    what: &dyn Fn() -> String,
) {
    let mut output = vec![0xee; expected.len()];
    let mut driver = ThreadedDriver::new(plans, 3);
    for sync in [Sync::Free, Sync::Barrier] {
        output.fill(0xee);
        driver.set_sync(sync);
        driver
            .exchange(sizes.clone(), input, &mut output)
            .unwrap_or_else(|error| panic!("{}: {error}", what()));
        assert!(output == expected, "threads, {sync}: {}", what());
    }
}

/// Moves random bytes by both drivers, and compares the output with the transpose.
pub fn check_moves(schedule: &Schedule, block_bytes: usize, seed: u64) {
    let plans = plan_all(schedule).unwrap();
    let (input, expected) = data(&plans, block_bytes, seed);
    let (bytes, sizes) = ((&*input, &*expected), (block_bytes as u64).into());
    let what = || format!("{schedule:?}, blocks of {block_bytes}, seed {seed}");
    // The order of the seeded driver is that of one thread: on larger machines only threads run.
    if schedule.problem.ranks <= 64 {
        check_seeded(&plans, &sizes, bytes, seed, &what);
    }
    check_threaded(plans, &sizes, bytes, &what);
}

/// The output before an exchange in place: in an all-to-all the input, in an all-gather every rank's
/// own block among arbitrary bytes.
fn placed(plans: &[Arc<Plan>], block_bytes: usize, input: &[u8]) -> Vec<u8> {
    if plans[0].problem().operation == Collective::AllToAll {
        return input.to_vec();
    }
    let mut output = vec![0xee; plans.len() * input.len()];
    for rank in 0..plans.len() {
        let at = rank * input.len() + rank * block_bytes;
        output[at..at + block_bytes].copy_from_slice(&input[rank * block_bytes..][..block_bytes]);
    }
    output
}

/// The same in place.
pub fn check_in_place(schedule: &Schedule, block_bytes: usize, seed: u64) {
    let plans = plan_all(schedule).unwrap();
    let (input, expected) = data(&plans, block_bytes, seed);
    let before = placed(&plans, block_bytes, &input);
    let owned = plans.into_iter().map(|plan| Arc::into_inner(plan).unwrap().in_place());
    let plans: Vec<_> = owned.map(Arc::new).collect();
    let mut output = before.clone();
    SeededDriver::new(&plans).exchange(block_bytes as u64, &[], &mut output, seed).unwrap();
    assert!(output == expected, "seeded: {schedule:?}, {block_bytes}, seed {seed}");
    output = before;
    ThreadedDriver::new(plans, 2).exchange(block_bytes as u64, &[], &mut output).unwrap();
    assert!(output == expected, "threads: {schedule:?}, {block_bytes}");
}

/// Plans from layouts in runs equal the plans made slot by slot.
pub fn check_plans(schedule: &Schedule) {
    // The rule of this one is read slot by slot.
    let slow = without_classes(schedule);
    let ranks = schedule.problem.ranks;
    for rank in (0..ranks).step_by(ranks as usize / 16 + 1).map(Rank) {
        let plan = |schedule| format!("{:?}", Plan::new(schedule, rank).unwrap());
        assert_eq!(plan(schedule), plan(&slow), "{schedule:?}, rank {rank}");
    }
}
