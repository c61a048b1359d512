//! The values that a machine may have besides those of the papers, by hand.

use common::{MEMORY, problem, schedule_of, setting, with_ports};
use topocoll::{Collective, Contention, Counts, Machine, PerClass, Rendezvous, count};

/// A machine on which a byte over a link takes 1 ns, and nothing else takes time.
fn bytes_only(text: &str, ports: u32) -> Machine {
    let mut machine = with_ports(text, ports);
    machine.timing.startup = PerClass::uniform(0.0);
    machine.timing.per_hop = PerClass::uniform(0.0);
    machine
}

/// Of an all-to-all of `block` bytes, in nanoseconds.
fn counted(machine: &Machine, algorithm: &str, words: &str, block: u64) -> (f64, Counts) {
    let problem = problem(machine, Collective::AllToAll, block);
    let schedule = schedule_of(machine, &problem, algorithm, &setting(words)).unwrap();
    let counts = count(&schedule, machine, None, MEMORY).unwrap();
    ((counts.time.total() * 1e9).round(), counts)
}

/// Radix 2 of 8 ranks packs 4 blocks in each of 3 steps.
#[test]
fn a_copied_block_takes_its_time_whatever_its_size() {
    let mut machine = bytes_only("full:8", 1);
    let without = counted(&machine, "bruck", "radix=2", 100).0;
    machine.timing.per_block = 7e-9;
    for block in [100, 1000] {
        let (with, counts) = counted(&machine, "bruck", "radix=2", block);
        let blocks = counts.in_blocks(counts.rearranged_bytes + counts.packed_bytes);
        let expected = without * block as f64 / 100.0 + 7.0 * blocks;
        assert!(blocks >= 12.0 && (with, counts.time.block_copies) == (expected, 7e-9 * blocks));
    }
}

#[test]
fn steps_with_a_message_above_a_size_wait_for_a_rendezvous() {
    let mut machine = bytes_only("full:8", 1);
    let without = counted(&machine, "bruck", "radix=2", 100).0;
    for (above, steps) in [(399, 3), (400, 0)] {
        machine.timing.rendezvous = Rendezvous { above, time: 1e-6 };
        let (with, counts) = counted(&machine, "bruck", "radix=2", 100);
        assert_eq!((with, counts.rendezvous_steps), (without + 1000.0 * steps as f64, steps));
    }
}

/// A shift by (3, 2) carries from the second ring of 8 into the first: links have 4 messages and 2, which is 3 and
/// 1 beyond one.
#[test]
fn loads_of_two_axes_beyond_the_largest_message_add_up() {
    let mut machine = bytes_only("torus:8x8", 1);
    let steps = |machine: &Machine| {
        let problem = problem(machine, Collective::AllToAll, 100);
        let schedule = schedule_of(machine, &problem, "direct", &setting("")).unwrap();
        let mut found = (0.0, 0);
        topocoll::count_steps(&schedule, machine, None, MEMORY, |step, count| {
            // Rank (3, 2) is 26 after rank 0.
            if step == 25 {
                found = ((count.time(machine, 100).total() * 1e9).round(), count.largest_load);
            }
        })
        .unwrap();
        found
    };
    assert_eq!(steps(&machine), (400.0, 400));
    for (p, blocks) in [(1.0, 5.0), (2.0, 1.0 + 10f64.sqrt()), (f64::INFINITY, 4.0)] {
        machine.timing.contention = Contention { alone: p, several: f64::INFINITY };
        assert_eq!(steps(&machine), ((100.0 * blocks).round(), 400), "{p}");
    }
}

/// All messages at once: each has its overhead, and 16 ranks of a 4x4 torus put 12 blocks on a link of each axis.
#[test]
fn messages_at_once_have_their_overheads_and_an_exponent_of_their_own() {
    let mut machine = bytes_only("torus:4x4", 15);
    machine.timing.contention = Contention { alone: f64::INFINITY, several: 1.0 };
    machine.endpoint.message_overhead = 2e-6;
    let (time, counts) = counted(&machine, "direct", "", 100);
    let each = counts.largest_load as f64 / 100.0 - 1.0;
    assert_eq!((counts.steps, counts.sent, each), (1, 15, 11.0));
    assert_eq!(time, 15.0 * 2000.0 + 100.0 * (1.0 + 2.0 * each));
}
