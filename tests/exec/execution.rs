//! Plans move bytes: whatever the driver and the order, the output is the naive transpose.

use std::sync::Arc;

use common::{algorithms, check_moves, problem, schedule_of, serving, target};
use proptest::prelude::*;
use topocoll::exec::{Plan, PlanError, SeededDriver, ThreadedDriver, plan_all};
use topocoll::{Catalogue, Collective, Parameters, Rank, Request, machine};

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
        check_moves(&request.solve(repair, &setting).unwrap().schedule, 6, 1);
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
                check_moves(&schedule, block_bytes, 1);
            }
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
        check_moves(&schedule, block_bytes, seed);
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
    assert!(error.to_string().ends_with("and no rank can go on"), "{error}");
    let error = ThreadedDriver::new(mixed, 2).exchange(4u64, &input, &mut output).unwrap_err();
    assert!(error.to_string().ends_with("and no rank can go on"), "{error}");
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
        for plan in plan_all(&schedule).unwrap() {
            assert_eq!(plan.tags(), schedule.rule().steps());
            assert!(plan.most_outstanding() <= 6 && plan.most_outstanding() > 0);
        }
    }
}

#[test]
fn pairs_exchange_in_place_through_one_block() {
    let machine = machine("full:8").unwrap();
    let problem = problem(&machine, Collective::AllToAll, 16);
    let find = |name| common::find(name).unwrap();
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
