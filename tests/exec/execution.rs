//! Plans move bytes: whatever the driver and the order, the output is the naive transpose.

use std::sync::Arc;

use crate::common::{
    algorithms, machines_and_ports, problem, schedule_of, serving, target, without_classes,
};
use proptest::prelude::*;
use topocoll::exec::{ExecError, Plan, PlanError, SeededDriver, ThreadedDriver, plan_all};
use topocoll::{Catalogue, Collective, Machine, Parameters, Rank, Request, Schedule, machine};

fn plans(schedule: &Schedule) -> Vec<Arc<Plan>> {
    let ranks = (0..schedule.problem.ranks).map(Rank);
    ranks.map(|rank| Arc::new(Plan::new(schedule, rank).unwrap())).collect()
}

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

fn check(schedule: &Schedule, block_bytes: usize, seed: u64) {
    let plans = plans(schedule);
    let (input, expected) = data(&plans, block_bytes, seed);
    let what = || format!("{schedule:?}, blocks of {block_bytes}, seed {seed}");
    let mut output = vec![0xee; expected.len()];
    SeededDriver::new(&plans)
        .exchange(block_bytes as u64, &input, &mut output, seed)
        .unwrap_or_else(|error| panic!("{}: {error}", what()));
    assert!(output == expected, "seeded: {}", what());
    let mut driver = ThreadedDriver::new(plans, 3);
    for _ in 0..2 {
        output.fill(0xee);
        driver
            .exchange(block_bytes as u64, &input, &mut output)
            .unwrap_or_else(|error| panic!("{}: {error}", what()));
        assert!(output == expected, "threads: {}", what());
    }
}

/// The machines without those of hundreds of ranks.
fn small() -> Vec<Machine> {
    machines_and_ports().into_iter().filter(|machine| machine.ranks() <= 64).collect()
}

#[test]
fn every_schedule_moves_the_bytes_it_says() {
    for machine in small() {
        for (algorithm, problem, setting) in serving(&machine, 5) {
            let schedule = Request::new(&problem, &*machine.topology)
                .solve(algorithm, &setting)
                .map(|s| s.schedule)
                .unwrap();
            check(&schedule, 5, u64::from(machine.ranks()));
        }
    }
}

/// Blocks that met failures have slots of their own beside those of the whole machine's schedule.
#[test]
fn blocks_around_failures_move_beside_the_others() {
    let catalogue = Catalogue::standard();
    let repair = catalogue.find("repair").unwrap();
    for (text, parts) in [
        ("torus:4x4/0,0+0", "blocks"),
        ("torus:5x4/1,1/3,2+1", "blocks"),
        ("torus:3x3x3/1,1,1/0,0,0+2", "bytes"),
    ] {
        let mut machine = machine(text).unwrap();
        machine.set_ports(6);
        let problem = problem(&machine, Collective::AllToAll, 6);
        let setting = [("of", "neighbour-rings"), ("of.parts", parts), ("moved", "cut")];
        let setting = setting.map(|(key, value)| (key.to_owned(), value.into())).into();
        let request = Request::new(&problem, &*machine.topology);
        check(&request.solve(repair, &setting).unwrap().schedule, 6, 1);
    }
}

#[test]
fn a_plan_serves_blocks_of_any_size() {
    for text in ["full:11", "torus:4x4", "cluster:1,2,3"] {
        let mut machine = machine(text).unwrap();
        machine.set_ports(3);
        for (algorithm, problem, setting) in serving(&machine, 7) {
            let schedule = Request::new(&problem, &*machine.topology)
                .solve(algorithm, &setting)
                .map(|s| s.schedule)
                .unwrap();
            for block_bytes in [0, 1, 3, 7, 8, 64, 1000] {
                check(&schedule, block_bytes, 1);
            }
        }
    }
}

#[test]
fn machines_of_hundreds_of_ranks_run_on_few_threads() {
    for machine in machines_and_ports().into_iter().filter(|m| (65..=256).contains(&m.ranks())) {
        for (algorithm, problem, setting) in serving(&machine, 2).into_iter().step_by(3) {
            let schedule = Request::new(&problem, &*machine.topology)
                .solve(algorithm, &setting)
                .map(|s| s.schedule)
                .unwrap();
            let plans = plans(&schedule);
            let (input, expected) = data(&plans, 2, 5);
            let mut output = vec![0xee; expected.len()];
            ThreadedDriver::new(plans, 2).exchange(2u64, &input, &mut output).unwrap();
            assert!(output == expected, "{schedule:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn random_shapes_sizes_and_orders_equal_the_transpose(
        shape in prop_oneof![
            (1u32..24).prop_map(|n| format!("full:{n}")),
            (1u32..7, 1u32..5).prop_map(|(a, b)| format!("torus:{a}x{b}")),
            (1u32..5, 1u32..4, 1u32..3).prop_map(|(a, b, c)| format!("grid:{a}~x{b}x{c}")),
            proptest::collection::vec(1u32..5, 1..5).prop_map(|sizes| {
                let sizes: Vec<_> = sizes.iter().map(u32::to_string).collect();
                format!("cluster:{}", sizes.join(","))
            }),
        ],
        ports in 1u32..5,
        planned in 1u64..40,
        block_bytes in 0usize..100,
        seed in any::<u64>(),
        pick in any::<prop::sample::Index>(),
    ) {
        let mut machine = machine(&shape).unwrap();
        machine.set_ports(ports);
        let serving = serving(&machine, planned);
        let (algorithm, problem, setting) = pick.get(&serving);
        let schedule = Request::new(problem, &*machine.topology).solve(*algorithm, setting).map(|s| s.schedule).unwrap();
        check(&schedule, block_bytes, seed);
    }
}

#[test]
fn the_first_of_many_refused_ranks_is_named() {
    // Rank 0 receives all blocks except the last, so it is refused later than ranks that receive none.
    const RANKS: u32 = 64;
    let topology = r#""ports":1,"topology":{"kind":"full"}}"#;
    let mut text = format!(
        r#"{{"kind":"header","version":1,"operation":"alltoall","algorithm":"x","ranks":{RANKS},"block_bytes":4,{topology}"#
    );
    for from in 1..RANKS - 1 {
        let step = from - 1;
        text +=
            &format!("\n{{\"step\":{step},\"from\":{from},\"to\":0,\"blocks\":[[{from},0,0,4]]}}");
    }
    text.push('\n');
    let machine = machine("full:64").unwrap();
    let schedule = topocoll::formats::jsonl::read(&mut text.as_bytes(), &target(&machine)).unwrap();
    for _ in 0..100 {
        let error = plan_all(&schedule).unwrap_err();
        assert_eq!(error, PlanError::NotDelivered { rank: Rank(0), from: Rank(RANKS - 1) });
    }
}

#[test]
fn a_schedule_without_a_message_is_refused_or_stalls_and_never_hangs() {
    let machine = machine("full:4").unwrap();
    let header = r#"{"kind":"header","version":1,"operation":"alltoall","algorithm":"x","ranks":4,"block_bytes":4,"ports":1,"topology":{"kind":"full"}}"#;
    // Rank 1 receives one block, and no rank receives another.
    let text = format!("{header}\n{}\n", r#"{"step":0,"from":0,"to":1,"blocks":[[0,1,0,4]]}"#);
    let schedule = topocoll::formats::jsonl::read(&mut text.as_bytes(), &target(&machine)).unwrap();
    let error = Plan::new(&schedule, Rank(1)).unwrap_err();
    assert_eq!(error, PlanError::NotDelivered { rank: Rank(1), from: Rank(2) });
    // Plans of two schedules do not match.
    let plan_of = |name: &str, rank: u32| {
        let problem = problem(&machine, Collective::AllToAll, 4);
        let schedule = schedule_of(&machine, &problem, name, &Parameters::new()).unwrap();
        Arc::new(Plan::new(&schedule, Rank(rank)).unwrap())
    };
    let mixed: Vec<_> = (0..3).map(|rank| plan_of("direct", rank)).collect();
    let mixed: Vec<_> = mixed.into_iter().chain([plan_of("pairwise-xor", 3)]).collect();
    let (input, mut output) = (vec![1; 64], vec![0; 64]);
    let error = SeededDriver::new(&mixed).exchange(4u64, &input, &mut output, 1).unwrap_err();
    assert!(matches!(error, ExecError::Stalled { .. }), "{error}");
    let error = ThreadedDriver::new(mixed, 2).exchange(4u64, &input, &mut output).unwrap_err();
    assert!(matches!(error, ExecError::Stalled { .. }), "{error}");
}

#[test]
fn tags_and_outstanding_messages_are_known_in_advance() {
    let machine = machine("full:9").unwrap();
    for algorithm in algorithms() {
        let mut machine = machine.clone();
        machine.set_ports(3);
        let problem = problem(&machine, algorithm.info().operation, 8);
        let Ok(schedule) = Request::new(&problem, &*machine.topology)
            .solve(algorithm, &Parameters::new())
            .map(|s| s.schedule)
        else {
            continue;
        };
        for plan in plans(&schedule) {
            assert_eq!(plan.tags(), schedule.rule().steps());
            assert!(plan.most_outstanding() <= 6 && plan.most_outstanding() > 0);
        }
    }
}

/// A plan from layouts in runs equals the plan made slot by slot.
#[test]
fn layouts_written_in_runs_change_no_plan() {
    let mut machines = machines_and_ports();
    for text in ["torus:4x1x8x4", "grid:6~x5x4", "mesh:4x2x6", "torus:8x8", "mesh:16x16", "full:1"]
    {
        machines.push(machine(text).unwrap());
    }
    for machine in machines.into_iter().filter(|machine| machine.ranks() <= 512) {
        for (algorithm, problem, setting) in serving(&machine, 64) {
            let schedule = Request::new(&problem, &*machine.topology)
                .solve(algorithm, &setting)
                .map(|s| s.schedule)
                .unwrap();
            // The rule of this one is read slot by slot.
            let slow = without_classes(&schedule);
            for rank in (0..problem.ranks).step_by(problem.ranks as usize / 16 + 1).map(Rank) {
                let plan = |schedule| format!("{:?}", Plan::new(schedule, rank).unwrap());
                assert_eq!(plan(&schedule), plan(&slow), "{schedule:?}, rank {rank}");
            }
        }
    }
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

fn check_in_place(schedule: &Schedule, block_bytes: usize, seed: u64) {
    let plans = plans(schedule);
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

#[test]
fn every_schedule_runs_in_place() {
    for machine in small() {
        for (algorithm, problem, setting) in serving(&machine, 5) {
            let schedule = Request::new(&problem, &*machine.topology)
                .solve(algorithm, &setting)
                .map(|s| s.schedule)
                .unwrap();
            check_in_place(&schedule, 5, u64::from(machine.ranks()));
        }
    }
}

#[test]
fn pairs_exchange_in_place_through_one_block() {
    let machine = machine("full:8").unwrap();
    let problem = problem(&machine, Collective::AllToAll, 16);
    let find = |name| crate::common::find(name).unwrap();
    let plan = |name| {
        let algorithm = find(name);
        let schedule = Request::new(&problem, &*machine.topology)
            .solve(algorithm, &Parameters::new())
            .map(|s| s.schedule)
            .unwrap();
        Plan::new(&schedule, Rank(3)).unwrap()
    };
    assert_eq!(plan("pairwise-xor").in_place().workspace_bytes(16u64), 16);
    assert_eq!(plan("pairwise-xor").workspace_bytes(16u64), 0);
    // Arrivals from the three preceding ranks take the slots of the blocks sent to them last; with the
    // opposite rank a block is exchanged.
    assert_eq!(plan("direct").in_place().workspace_bytes(16u64), 4 * 16);
}
