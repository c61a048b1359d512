//! Exchanges under a demand matrix, empty blocks included: whatever the algorithm, the driver and the
//! order, the output is the naive transpose.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use common::{
    MEMORY, check_seeded, check_threaded, exchange, machines_and_ports, problem, reach,
    schedule_of, serving,
};
use proptest::prelude::*;
use topocoll::exec::{
    Arrival, Driver, Endpoint, ExecError, Layout, Memory, Plan, PlanError, PlannedSizes,
    SeededDriver, ThreadedDriver, Transport, Views, plan_all,
};
use topocoll::formats::Source;
use topocoll::{
    AnalysisError, Barrier, Block, Collective, Demand, Machine, Parameters, PerClass, Priced,
    Problem, Rank, Request, Schedule, best_bounds, count, formats, machine,
};

/// A demand matrix from a closure, through the file format.
fn listed(problem: &Problem, size: impl Fn(u32, u32) -> u64) -> Demand {
    let columns = problem.blocks_at_start();
    let row = |from| {
        let sizes: Vec<_> = (0..columns).map(|to| size(from, to).to_string()).collect();
        sizes.join(",") + "\n"
    };
    let text: String = (0..problem.ranks).map(row).collect();
    Demand::read(problem, text.as_bytes()).unwrap()
}

/// Demand matrices with zeros, equal blocks, laws, and one huge block.
fn demand(problem: &Problem, kind: usize, seed: u64) -> Demand {
    let ranks = problem.ranks;
    let huge = (seed as u32 % ranks, (seed >> 32) as u32 % ranks);
    match kind {
        0 => listed(problem, |_, _| 0),
        1 => listed(problem, |_, _| 7),
        2 => listed(problem, |from, to| if (from, to) == huge { 5000 } else { 0 }),
        3 => listed(problem, |from, to| if from == huge.0 { 3000 } else { u64::from(to % 3) }),
        4 => listed(problem, |from, to| u64::from(from * 31 + to * 17) % 41),
        kind => {
            let name = ["uniform", "power-law", "sparse"][kind % 3];
            Demand::drawn(problem, format!("{name}:{seed}").parse().unwrap()).unwrap()
        }
    }
}

const KINDS: usize = 8;

/// Every rank's input, and the output it must get.
fn data(problem: &Problem, demand: &Demand, seed: u64) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let ranks = || (0..problem.ranks).map(Rank);
    let blocks: Vec<Vec<Vec<u8>>> = ranks()
        .map(|rank| {
            let sizes = demand.row(rank);
            sizes.map(|bytes| (0..bytes).map(|_| random.u8(..)).collect()).collect()
        })
        .collect();
    let output = |to: Rank| {
        let row = |from: &Vec<Vec<u8>>| from[if from.len() == 1 { 0 } else { to.index() }].clone();
        if problem.operation == Collective::AllGather {
            return blocks.iter().flat_map(|from| from[0].clone()).collect();
        }
        blocks.iter().flat_map(row).collect()
    };
    let output = ranks().map(output).collect();
    (blocks.iter().map(|blocks| blocks.concat()).collect(), output)
}

fn planned(plans: &[Arc<Plan>], demand: &Demand) -> Arc<PlannedSizes> {
    Arc::new(PlannedSizes::new(plans, demand).unwrap())
}

/// Whether the schedule accepts a demand matrix; if it splits blocks, the refusal says so. The sizes are planned in the
/// memory of others.
fn check(schedule: &Schedule, demand: &Demand, seed: u64) -> bool {
    let plans = plan_all(schedule).unwrap();
    let others = self::demand(&schedule.problem, seed as usize % 3 + 2, seed);
    let mut sizes = match PlannedSizes::new(&plans, &others) {
        Err(PlanError::Split { .. }) => {
            assert!(!schedule.rule().cuts().is_empty());
            return false;
        }
        sizes => sizes.unwrap(),
    };
    sizes.plan_again(demand).unwrap();
    let sizes = Arc::new(sizes);
    let (input, expected) = data(&schedule.problem, demand, seed);
    let (input, expected) = (input.concat(), expected.concat());
    let what = || format!("{schedule:?}, {demand:?}, seed {seed}");
    let (bytes, sizes) = ((&*input, &*expected), (&sizes).into());
    check_seeded(&plans, &sizes, bytes, seed, &what);
    check_threaded(plans, &sizes, bytes, &what);
    true
}

#[test]
fn every_schedule_of_whole_blocks_moves_blocks_of_any_sizes() {
    let (mut served, most) = (0, reach(20, 64));
    for machine in machines_and_ports().into_iter().filter(|machine| machine.ranks() <= most) {
        for (i, (algorithm, problem, setting)) in serving(&machine, 40).into_iter().enumerate() {
            let schedule = Request::new(&problem, &*machine.topology)
                .solve(algorithm, &setting)
                .map(|s| s.schedule)
                .unwrap();
            let seed = u64::from(machine.ranks()) << 32 | i as u64;
            served += usize::from(check(&schedule, &demand(&problem, i % KINDS, seed), seed));
        }
    }
    assert!(served > 500, "{served} schedules");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn random_shapes_sizes_and_orders_equal_the_transpose(
        shape in prop_oneof![
            (1u32..24).prop_map(|n| format!("full:{n}")),
            (1u32..7, 1u32..5).prop_map(|(a, b)| format!("torus:{a}x{b}")),
            proptest::collection::vec(1u32..5, 1..5).prop_map(|sizes| {
                let sizes: Vec<_> = sizes.iter().map(u32::to_string).collect();
                format!("cluster:{}", sizes.join(","))
            }),
        ],
        ports in 1u32..5,
        mean in 1u64..60,
        kind in 0..KINDS,
        seed in any::<u64>(),
        pick in any::<prop::sample::Index>(),
    ) {
        let mut machine = machine(&shape).unwrap();
        machine.set_ports(ports);
        let serving = serving(&machine, mean);
        let (algorithm, problem, setting) = pick.get(&serving);
        let schedule = Request::new(problem, &*machine.topology).solve(*algorithm, setting).map(|s| s.schedule).unwrap();
        check(&schedule, &demand(problem, kind, seed), seed);
    }
}

fn schedule(machine: &Machine, operation: Collective, name: &str) -> Schedule {
    let problem = problem(machine, operation, 64);
    schedule_of(machine, &problem, name, &Parameters::new()).unwrap()
}

/// One rank's end of the channels to all ranks.
struct Channels {
    rank: Rank,
    to: Vec<Sender<Arrival>>,
    from: Receiver<Arrival>,
}

impl Transport for Channels {
    fn send(&mut self, to: Rank, tag: u32, bytes: &[u8]) -> Result<(), String> {
        let arrival = Arrival { from: self.rank, tag, bytes: bytes.to_vec() };
        self.to[to.index()].send(arrival).map_err(|error| error.to_string())
    }

    fn arrival(&mut self, patience: Duration) -> Result<Option<Arrival>, String> {
        Ok(self.from.recv_timeout(patience).ok())
    }
}

/// What each rank gets over a transport of its own, with sizes that it plans for.
fn transported(
    plans: &[Arc<Plan>],
    input: &[Vec<u8>],
    sizes: impl Fn(&Arc<Plan>) -> Arc<PlannedSizes> + Sync,
) -> Vec<Vec<u8>> {
    const LONG: Duration = Duration::from_secs(30);
    let (senders, receivers): (Vec<_>, Vec<_>) = plans.iter().map(|_| channel()).unzip();
    thread::scope(|scope| {
        let ranks = plans.iter().zip(receivers).map(|(plan, from)| {
            let (to, sizes) = (senders.clone(), &sizes);
            scope.spawn(move || {
                let rank = plan.rank();
                let mut endpoint = Endpoint::new(Arc::clone(plan), &sizes(plan));
                let mut output = vec![0xee; endpoint.output_bytes() as usize];
                let mut work = vec![0xee; endpoint.workspace_bytes() as usize];
                let input = &input[rank.index()];
                let mut memory = Memory { input, output: &mut output, work: &mut work };
                let mut driver = Driver::new(Channels { rank, to, from });
                driver.drive(&mut endpoint, &mut memory, LONG).unwrap();
                output
            })
        });
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

#[test]
fn blocks_of_several_sizes_travel_over_transports() {
    for (text, operation, name) in [
        ("full:11", Collective::AllToAll, "bruck"),
        ("full:8", Collective::AllToAll, "direct"),
        ("torus:4x4", Collective::AllToAll, "suh-shin"),
        ("cluster:1,2,3", Collective::AllToAll, "clustered-factor"),
        ("full:9", Collective::AllGather, "concat"),
        ("full:7", Collective::AllGather, "ring"),
    ] {
        let machine = machine(text).unwrap();
        let schedule = schedule(&machine, operation, name);
        let plans = plan_all(&schedule).unwrap();
        for kind in 0..KINDS {
            let demand = demand(&schedule.problem, kind, 77);
            let (input, expected) = data(&schedule.problem, &demand, 5);
            let sizes = planned(&plans, &demand);
            let output = transported(&plans, &input, |_| Arc::clone(&sizes));
            assert!(output == expected, "{name}");
        }
    }
}

#[test]
fn given_sizes_suffice_where_no_blocks_are_forwarded() {
    for (text, operation, name) in [
        ("full:9", Collective::AllToAll, "direct"),
        ("full:8", Collective::AllToAll, "pairwise-xor"),
        ("full:9", Collective::AllToAll, "one-factor"),
        ("cluster:1,2,3", Collective::AllToAll, "clustered-factor"),
        ("full:9", Collective::AllGather, "ring"),
    ] {
        let machine = machine(text).unwrap();
        let schedule = schedule(&machine, operation, name);
        let demand = demand(&schedule.problem, 6, 3);
        let (input, expected) = data(&schedule.problem, &demand, 9);
        let plans = plan_all(&schedule).unwrap();
        let output = transported(&plans, &input, |plan| {
            let row: Vec<_> = demand.row(plan.rank()).collect();
            let column: Vec<_> = demand.column(plan.rank()).collect();
            let sizes = Arc::new(PlannedSizes::of_rank(plan, &row, &column).unwrap());
            assert_eq!(plan.workspace_bytes(&sizes), 0, "{name}");
            sizes
        });
        assert!(output == expected, "{name}");
    }
    let machine = machine("full:8").unwrap();
    let plan = plan_all(&schedule(&machine, Collective::AllToAll, "bruck")).unwrap().remove(3);
    let error = PlannedSizes::of_rank(&plan, &[1; 8], &[1; 8]).unwrap_err();
    assert_eq!(error, PlanError::Passes { rank: Rank(3), step: 0 });
    assert_eq!(
        error.to_string(),
        "rank 3, step 0: blocks of other ranks pass through; their sizes are unknown"
    );
}

#[test]
fn sizes_serve_plans_that_are_equal_and_no_others() {
    let machine = machine("full:4").unwrap();
    let plans = |name| plan_all(&schedule(&machine, Collective::AllToAll, name)).unwrap();
    let (direct, again, others) = (plans("direct"), plans("direct"), plans("bruck"));
    let problem = direct[0].problem();
    let sizes = planned(&direct, &demand(problem, 1, 0));
    for (plan, equal) in direct.iter().zip(&again) {
        assert_eq!(plan.output_bytes(&sizes), equal.output_bytes(&sizes));
        assert_eq!(Endpoint::new(Arc::clone(equal), &sizes).check_sizes(), Ok(()));
    }
    let refused = "rank 2: its block sizes were planned for another plan";
    let mut other = Endpoint::new(Arc::clone(&others[2]), &sizes);
    assert_eq!(other.poll().unwrap_err().to_string(), refused);
    let own = Arc::new(PlannedSizes::of_rank(&direct[2], &[1; 4], &[1; 4]).unwrap());
    other.begin(&own);
    assert_eq!(other.check_sizes().unwrap_err().to_string(), refused);
    let (mut threaded, mut seeded) =
        (ThreadedDriver::new(others.clone(), 1), SeededDriver::new(&others));
    assert!(matches!(threaded.exchange(&sizes, &[], &mut []), Err(ExecError::OtherPlan { .. })));
    assert!(matches!(seeded.exchange(&sizes, &[], &mut [], 1), Err(ExecError::OtherPlan { .. })));
}

/// After an error, sizes serve no plan until they are planned again.
#[test]
fn sizes_that_are_not_planned_to_the_end_are_refused() {
    let schedule = schedule(&machine("full:4").unwrap(), Collective::AllToAll, "bruck");
    let plans = plan_all(&schedule).unwrap();
    let demand = |size: u64| listed(&schedule.problem, |from, to| size * u64::from(from ^ to));
    let mut sizes = PlannedSizes::new(&plans, &demand(3)).unwrap();
    let five = problem(&machine("full:5").unwrap(), Collective::AllToAll, 64);
    let error = PlanError::Sizes { rank: Rank(0), what: "input", sizes: 5, blocks: 4 };
    assert_eq!(sizes.plan_again(&listed(&five, |_, _| 1)).unwrap_err(), error);
    let mut sizes = Arc::new(sizes);
    let refused = Endpoint::new(Arc::clone(&plans[1]), &sizes).check_sizes();
    assert_eq!(refused, Err(ExecError::OtherPlan { rank: Rank(1) }));
    Arc::get_mut(&mut sizes).unwrap().plan_again(&demand(5)).unwrap();
    assert_eq!(Endpoint::new(Arc::clone(&plans[1]), &sizes).check_sizes(), Ok(()));
    assert_eq!(plans[1].input_bytes(&sizes), 30);
}

/// Every block that a rank keeps has one size; the check is of the kept ones alone.
#[test]
fn an_own_block_of_two_sizes_is_refused() {
    for (text, operation, name) in [
        ("full:4", Collective::AllToAll, "direct"),
        ("cluster:2,2", Collective::AllToAll, "clustered-matchings"),
        ("full:4", Collective::AllGather, "ring"),
    ] {
        let schedule = schedule(&machine(text).unwrap(), operation, name);
        for plan in plan_all(&schedule).unwrap() {
            let own = plan.rank().index();
            let row: &[u64] = if operation == Collective::AllToAll { &[2, 2, 2, 2] } else { &[2] };
            for i in 0..4 {
                let mut column = [2; 4];
                column[i] = 99;
                let planned = PlannedSizes::of_rank(&plan, row, &column);
                let refused = PlanError::OwnBlock { rank: plan.rank(), given: 2, wanted: 99 };
                assert_eq!(planned.err(), (i == own).then_some(refused), "{text}, {i}");
            }
        }
    }
}

#[test]
fn one_huge_block_costs_its_size_where_it_is_forwarded() {
    let machine = machine("full:16").unwrap();
    let parameters = Parameters::from([("radix".to_owned(), topocoll::Setting::Integer(2))]);
    let problem = problem(&machine, Collective::AllToAll, 64);
    let schedule = schedule_of(&machine, &problem, "bruck", &parameters).unwrap();
    let demand = listed(&problem, |from, to| if (from, to) == (2, 9) { 1 << 20 } else { 1 });
    let plans = plan_all(&schedule).unwrap();
    let sizes = planned(&plans, &demand);
    // From 2 by 1, 2 and 4 to 9: ranks 3 and 5 forward it.
    for (rank, plan) in plans.iter().enumerate() {
        let (held, huge) = (plan.workspace_bytes(&sizes), [3, 5].contains(&rank));
        let staged = [2, 9].contains(&rank);
        assert_eq!(held >= 1 << 20, huge || staged, "rank {rank} holds {held}");
        assert!(held < 3 << 20, "rank {rank} holds {held}");
    }
}

/// Sent messages, counted one by one: a message of no bytes is not sent.
#[test]
fn messages_of_no_bytes_are_not_sent() {
    let machine = machine("full:8").unwrap();
    let schedule = schedule(&machine, Collective::AllToAll, "direct");
    let demand = listed(&schedule.problem, |from, to| if from == 1 && to > 5 { 9 } else { 0 });
    let plans = plan_all(&schedule).unwrap();
    let sizes = planned(&plans, &demand);
    let sent: Vec<u128> = plans.iter().map(|plan| plan.sent_bytes(&sizes)).collect();
    assert_eq!(sent, [0, 18, 0, 0, 0, 0, 0, 0]);
    let mut quiet = Endpoint::new(Arc::clone(&plans[4]), &sizes);
    while quiet.poll().unwrap() != topocoll::exec::Action::Done {
        assert_eq!(quiet.outstanding().count(), 0);
    }
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let machine = machine("full:4").unwrap();
    let schedule = schedule(&machine, Collective::AllToAll, "direct");
    let plan: Arc<Plan> = plan_all(&schedule).unwrap().remove(0);
    let said = |row: &[u64], column: &[u64]| {
        PlannedSizes::of_rank(&plan, row, column).unwrap_err().to_string()
    };
    assert_eq!(said(&[1; 3], &[1; 4]), "rank 0: 3 sizes for the 4 blocks of its input");
    assert_eq!(said(&[1; 4], &[1; 5]), "rank 0: 5 sizes for the 4 blocks of its output");
    let large =
        "rank 0: its blocks together have more bytes than are numbered, 4611686018427387903";
    assert_eq!(said(&[u64::MAX; 4], &[1; 4]), large);
    assert_eq!(said(&[1; 4], &[1, 1 << 61, 1 << 61, 1 << 61]), large);
    // Buffers of other sizes than planned.
    let demand = listed(&schedule.problem, |_, _| 3);
    let plans = plan_all(&schedule).unwrap();
    let sizes = planned(&plans, &demand);
    let error = ThreadedDriver::new(plans, 2).exchange(&sizes, &[0; 48], &mut [0; 47]).unwrap_err();
    assert!(matches!(error, ExecError::Buffer { bytes: 47, needed: 48, .. }), "{error}");
}

#[test]
fn split_blocks_are_refused_by_name() {
    let mut machine = machine("full:6").unwrap();
    machine.set_ports(3);
    let split = serving(&machine, 64).into_iter().find_map(|(algorithm, problem, setting)| {
        let schedule = Request::new(&problem, &*machine.topology)
            .solve(algorithm, &setting)
            .map(|s| s.schedule)
            .unwrap();
        let cuts = schedule.rule().cuts().to_vec();
        (!cuts.is_empty()).then_some((schedule, cuts))
    });
    let (schedule, cuts) = split.unwrap();
    let plans = plan_all(&schedule).unwrap();
    let error =
        PlannedSizes::new(&plans, &demand(&schedule.problem, 1, 0)).unwrap_err().to_string();
    let said = |cut: &u64| {
        let rule = "blocks of several sizes travel whole";
        error == format!("rank 0: the schedule splits blocks at byte {cut}; {rule}")
    };
    assert!(cuts.iter().any(said), "{error}");
}

#[test]
fn equal_sizes_cost_what_equal_blocks_do() {
    let most = reach(20, 64);
    for machine in machines_and_ports().into_iter().filter(|machine| machine.ranks() <= most) {
        for (algorithm, problem, setting) in serving(&machine, 9) {
            let schedule = Request::new(&problem, &*machine.topology)
                .solve(algorithm, &setting)
                .map(|s| s.schedule)
                .unwrap();
            let demand = listed(&problem, |_, _| 9);
            let counted = count(&schedule, &machine, Some(&demand), MEMORY);
            match schedule.rule().cuts().first() {
                Some(&cut) => assert_eq!(counted, Err(AnalysisError::SplitDemand { cut })),
                None => {
                    let equal = count(&schedule, &machine, None, MEMORY).unwrap();
                    assert_eq!(counted, Ok(equal), "{schedule:?}");
                }
            }
        }
    }
}

/// Messages and the sum over steps of the largest, from the listing of the blocks in each.
fn written_out(schedule: &Schedule, machine: &Machine, demand: &Demand) -> (u128, u128) {
    let mut written = Vec::new();
    let source = Source::new(schedule, machine, MEMORY);
    formats::jsonl::write(&source, &mut written).unwrap();
    let mut largest = std::collections::BTreeMap::new();
    let mut messages = 0;
    for line in String::from_utf8(written).unwrap().lines().skip(1) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let blocks: Vec<Vec<u64>> = serde_json::from_value(line["blocks"].clone()).unwrap();
        let block = |entry: &Vec<u64>| {
            let to = if entry.len() == 4 { entry[1] } else { entry[0] };
            Block { from: Rank(entry[0] as u32), to: Rank(to as u32) }
        };
        let bytes: u64 = blocks.iter().map(|entry| demand.bytes(block(entry))).sum();
        messages += u128::from(bytes > 0);
        let most = largest.entry(line["step"].as_u64()).or_insert(0);
        *most = bytes.max(*most);
    }
    (messages, largest.values().map(|&bytes| u128::from(bytes)).sum())
}

#[test]
fn counts_equal_those_of_the_written_schedule() {
    for text in ["full:13", "torus:4x4", "cluster:1,2,3", "mesh:2x4"] {
        for ports in [1, 2] {
            let mut machine = machine(text).unwrap();
            machine.set_ports(ports);
            for (i, (algorithm, problem, setting)) in serving(&machine, 20).into_iter().enumerate()
            {
                let schedule = Request::new(&problem, &*machine.topology)
                    .solve(algorithm, &setting)
                    .map(|s| s.schedule)
                    .unwrap();
                let demand = demand(&problem, i % KINDS, i as u64);
                let Ok(counts) = count(&schedule, &machine, Some(&demand), MEMORY) else {
                    continue;
                };
                let found = written_out(&schedule, &machine, &demand);
                assert_eq!((counts.messages, counts.bytes), found, "{schedule:?} {demand:?}");
                let bound = best_bounds(&problem, &machine, Some(&demand));
                assert!(counts.steps >= bound.steps, "{schedule:?} {demand:?}");
                assert!(counts.in_blocks(counts.bytes) >= bound.blocks, "{schedule:?} {demand:?}");
                assert!(counts.time.total() >= bound.seconds * (1.0 - 1e-12), "{schedule:?}");
            }
        }
    }
}

#[test]
fn bounds_are_those_worked_out_by_hand() {
    let sizes = "0,7,11,0\n0,0,0,9\n1,1,0,1\n0,0,4,0\n";
    let bounds = |text: &str, ports: u32, between: f64| {
        let mut machine = machine(text).unwrap();
        machine.set_ports(ports);
        let problem = problem(&machine, Collective::AllToAll, 11);
        let classes = machine.topology.link_classes().len();
        let values =
            |inside: f64, between: f64| PerClass::each(&[inside, between][..classes.max(1)]);
        machine.timing.startup = values(100.0, 1000.0);
        machine.timing.per_byte = values(1.0, between);
        machine.timing.barrier = Barrier { fixed: 10_000.0, per_doubling: 20_000.0 };
        best_bounds(&problem, &machine, Some(&Demand::read(&problem, sizes.as_bytes()).unwrap()))
    };
    // Rank 2 has bytes for three others: ceil(log2 4) steps of one port, ceil(log3 4) of two. Rank 0
    // sends 18 bytes; ranks 0 and 1 send 20 to the others.
    let apart = 50_000.0;
    for (text, ports, between, blocks, seconds) in [
        ("full:4", 1, 1.0, 18.0 / 11.0, 200.0 + 18.0 + apart),
        ("full:4", 2, 1.0, 9.0 / 11.0, 200.0 + 9.0 + apart),
        ("full:4", 3, 1.0, 6.0 / 11.0, 100.0 + 6.0),
        ("cluster:2*2", 1, 3.0, 20.0 / 11.0, 200.0 + 60.0 + apart),
        ("cluster:2*2", 2, 3.0, 10.0 / 11.0, 200.0 + 30.0 + apart),
        ("cluster:1,3", 1, 1.0, 18.0 / 11.0, 200.0 + 18.0 + apart),
        ("cluster:3,1", 1, 2.0, 18.0 / 11.0, 200.0 + 20.0 + apart),
    ] {
        let found = bounds(text, ports, between);
        assert_eq!((found.blocks, found.seconds), (blocks, seconds), "{text} with {ports} ports");
    }
}

/// Small equal blocks are combined; the same bytes in few blocks are not.
#[test]
fn combining_blocks_does_not_pay_with_one_huge_block() {
    let machine = machine("full:32").unwrap();
    let problem = problem(&machine, Collective::AllToAll, 64);
    let steps_of_best = |demand: &Demand| {
        let selection = exchange(&machine, &problem).demand(demand).unwrap().select().unwrap();
        assert!(selection.choices.iter().all(|choice| choice.price.priced == Priced::Exactly));
        assert!(selection.choices.iter().all(|choice| choice.bound_ratio >= 1.0));
        selection.choices[0].price.steps
    };
    assert_eq!(steps_of_best(&listed(&problem, |_, _| 64)), 5);
    let one = |from, to| if (from, to) == (0, 31) { 31 << 16 } else { 64 };
    assert_eq!(steps_of_best(&listed(&problem, one)), 31);
}

#[test]
fn exchanges_in_place_and_between_views_require_equal_blocks() {
    let machine = machine("full:4").unwrap();
    let schedule = schedule(&machine, Collective::AllToAll, "direct");
    let demand = demand(&schedule.problem, 6, 3);
    let plan = Plan::new(&schedule, Rank(2)).unwrap().in_place();
    let row: Vec<u64> = demand.row(Rank(2)).collect();
    let error = PlannedSizes::of_rank(&Arc::new(plan), &row, &row).unwrap_err();
    assert_eq!(error.to_string(), "rank 2: an exchange in place has blocks of one size");
    let plan = Arc::new(Plan::new(&schedule, Rank(2)).unwrap());
    let column: Vec<u64> = demand.column(Rank(2)).collect();
    let sizes = PlannedSizes::of_rank(&plan, &row, &column).unwrap();
    let (input, mut output) = (vec![0; 4000], vec![0; 4000]);
    let rows = || Layout::new(&[4, 1000], &[1000, 1], 1).unwrap();
    let views = Views::new((&input, rows()), (&mut output, rows()), &mut []).unwrap();
    let error = Endpoint::new(plan, &Arc::new(sizes)).check(&views).unwrap_err();
    let said = "rank 2: the input buffer has blocks of 1000 bytes each, and the exchange has blocks of several sizes";
    assert_eq!(error.to_string(), said);
}
