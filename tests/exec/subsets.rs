//! Plans for a subset of a machine's ranks: peers are the machine's ranks, and routes hold on the machine.

use std::slice::from_ref;
use std::sync::Arc;

use common::{
    self, MEMORY, among, count_among, drawn_graphs, exchange, schedule_for, schedule_of, serving,
    set_values,
};
use proptest::prelude::*;
use topocoll::exec::{Plan, PlanError, SeededDriver};
use topocoll::{
    Block, Collective, Demand, Groups, Machine, Parameters, PerClass, Priced, Problem, Rank,
    Schedule, Shape, Step, Subset, Topology, TopologyError, count, machine, verify,
};

fn check(text: &str, ranks: &[Rank], seed: u64) {
    let parent = machine(text).unwrap();
    let subset = Subset::new(ranks, parent.ranks()).unwrap();
    let own = parent.subset(&subset);
    for (algorithm, problem, setting) in serving(&own, 3) {
        let schedule = schedule_of(&own, &problem, &algorithm.info().name, &setting).unwrap();
        let n = ranks.len();
        // A route of the subset's grid leads to the same rank on the machine's.
        if let (Shape::Grid(_), Shape::Grid(grid)) = (own.topology.shape(), parent.topology.shape())
        {
            let mut step = Step::default();
            for (rank, number) in
                (0..n as u32).flat_map(|i| (0..schedule.rule().steps()).map(move |s| (i, s)))
            {
                schedule.rule().step(Rank(rank), number, &mut step);
                for send in step.sends.iter().filter(|send| !send.route.is_empty()) {
                    let to = grid.follow(ranks[rank as usize], &send.route).unwrap();
                    assert_eq!(to, ranks[send.peer.index()].0, "{text}, {schedule:?}");
                }
            }
        }
        let plan = |&rank| Arc::new(Plan::in_subset(&schedule, rank, &subset).unwrap());
        let plans: Vec<_> = ranks.iter().map(plan).collect();
        let blocks = plans[0].input_blocks() as usize;
        let input: Vec<u8> = (0..n * blocks * 3).map(|i| (i * 7 % 251) as u8).collect();
        let mut expected = Vec::new();
        for to in 0..n {
            for from in 0..n {
                let block = match problem.operation {
                    Collective::AllToAll => from * n + to,
                    Collective::AllGather => from,
                };
                expected.extend_from_slice(&input[block * 3..][..3]);
            }
        }
        let mut output = vec![0; n * n * 3];
        SeededDriver::new(&plans).exchange(3u64, &input, &mut output, seed).unwrap();
        assert!(output == expected, "{text}, {ranks:?}, {schedule:?}");
    }
}

fn subset(ranks: &[u32], machine_ranks: u32) -> Result<Subset, TopologyError> {
    Subset::new(&ranks.iter().copied().map(Rank).collect::<Vec<_>>(), machine_ranks)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn ranks_in_any_order_exchange_among_themselves(
        text in prop_oneof![Just("full:40"), Just("torus:8x4"), Just("mesh:6x6"), Just("cluster:8*4")],
        members in Just((0..32).map(Rank).collect::<Vec<_>>()).prop_shuffle(),
        count in 1usize..12,
        seed in any::<u64>(),
    ) {
        check(text, &members[..count], seed);
    }

    #[test]
    fn boxes_of_a_grid_run_its_algorithms(
        low in (0u32..5, 0u32..5),
        sides in (1u32..5, 1u32..5),
        text in prop_oneof![Just("torus:8x8"), Just("mesh:8x8"), Just("grid:8~x8")],
        seed in any::<u64>(),
    ) {
        let rows = low.0..low.0 + sides.0;
        let members: Vec<_> = rows
            .flat_map(|r| (low.1..low.1 + sides.1).map(move |c| Rank(8 * r + c)))
            .collect();
        check(text, &members, seed);
    }
}

#[test]
fn only_a_box_in_order_is_a_grid() {
    let form = |text: &str, ranks: &[u32]| {
        let machine = machine(text).unwrap();
        machine.subset(&subset(ranks, machine.ranks()).unwrap()).topology.short_form()
    };
    assert_eq!(form("torus:4x4", &[4, 5, 6, 7, 8, 9, 10, 11]), "grid:2x4~");
    assert_eq!(form("torus:4x4", &[0, 1, 4, 5]), "mesh:2x2");
    assert_eq!(form("torus:4x4", &[1, 0, 4, 5]), "full:4");
    assert_eq!(form("torus:4x4", &[0, 1, 2, 4]), "full:4");
    assert_eq!(form("torus:4x4", &[5, 4]), "full:2");
    assert_eq!(form("cluster:2*4", &[0, 1]), "cluster:2");
    assert_eq!(form("cluster:2*4", &[6, 5, 0, 1, 2]), "cluster:2,3");
    assert_eq!(form("cluster:2*4", &[0, 4, 1]), "full:3");
}

#[test]
fn ranks_outside_the_subset_are_refused() {
    let schedule = serving(&machine("full:3").unwrap(), 1).remove(0);
    let schedule =
        schedule_of(&machine("full:3").unwrap(), &schedule.1, &schedule.0.info().name, &schedule.2)
            .unwrap();
    let subset = |ranks: &[u32]| subset(ranks, 8).unwrap();
    let error = Plan::in_subset(&schedule, Rank(4), &subset(&[7, 2, 5])).unwrap_err();
    assert_eq!(error.to_string(), "rank 4 is not in the subset of 3 ranks");
    let error = Plan::in_subset(&schedule, Rank(7), &subset(&[7, 2])).unwrap_err();
    assert_eq!(error, PlanError::SubsetSize { size: 2, ranks: 3 });
}

/// A subset of all ranks has the links of the machine: both ways of counting agree.
#[test]
fn a_subset_of_all_ranks_counts_as_the_machine() {
    for text in ["torus:4x6", "mesh:3x4", "cluster:3,1,2", "full:9"] {
        let machine = machine(text).unwrap();
        let all: Vec<_> = (0..machine.ranks()).collect();
        let all = subset(&all, machine.ranks()).unwrap();
        for (algorithm, problem, setting) in serving(&machine, 5) {
            let schedule =
                schedule_of(&machine, &problem, &algorithm.info().name, &setting).unwrap();
            let whole = count(&schedule, &machine, None, MEMORY).unwrap();
            let placed = count_among(&machine, &all, &schedule, None).unwrap();
            assert_eq!(placed, whole);
        }
    }
}

/// Worked out by hand: on a ring of 8, every second rank shifts by one within the subset over two
/// links, by two over four.
#[test]
fn messages_of_a_subset_take_the_links_of_the_whole_machine() {
    let ring = machine("torus:8").unwrap();
    let members = subset(&[0, 2, 4, 6], 8).unwrap();
    let own = ring.subset(&members);
    assert_eq!(own.topology.short_form(), "full:4");
    let problem = Problem::new(Collective::AllToAll, 4, 1, 100).unwrap();
    let schedule = schedule_of(&own, &problem, "direct", &Parameters::new()).unwrap();
    let counts = count_among(&ring, &members, &schedule, None).unwrap();
    assert_eq!((counts.steps, counts.hops, counts.bytes), (3, 2 + 4 + 2, 300));
    // Half around, all upwards: two messages on every link.
    assert_eq!((counts.link_bytes, counts.link_contention), (400, 2));
    let selection = among(&ring, &members, problem.block_bytes).unwrap().select().unwrap();
    assert!(selection.choices.iter().all(|choice| choice.bound_ratio >= 1.0));
    assert!(selection.choices.iter().all(|choice| choice.price.priced == Priced::Exactly));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The choice for a subset never sends two messages through one port of the machine in a step.
    #[test]
    fn selections_for_a_subset_keep_ports_and_beat_no_bound(
        text in prop_oneof![
            Just("full:30"), Just("torus:6x5"), Just("mesh:6x6"), Just("cluster:5*4,2*6"),
        ],
        members in Just((0..30).map(Rank).collect::<Vec<_>>()).prop_shuffle(),
        count in 2usize..12,
        ports in 1u32..4,
    ) {
        let mut machine = machine(text).unwrap();
        machine.set_ports(ports);
        let mut members = members[..count].to_vec();
        members.sort_unstable();
        let members = Subset::new(&members, machine.ranks()).unwrap();
        let own = machine.subset(&members);
        let problem = Problem::new(Collective::AllToAll, count as u32, own.ports, 64).unwrap();
        let selection = among(&machine, &members, problem.block_bytes).unwrap().select().unwrap();
        assert!(!selection.choices.is_empty(), "{text} {members:?}");
        for choice in &selection.choices {
            assert!(choice.bound_ratio >= 1.0 - 1e-12, "{text} {members:?} {choice:?}");
            let schedule = schedule_of(&own, &problem, &choice.algorithm, &choice.parameters).unwrap();
            let found = verify(&schedule, &own, None, MEMORY).unwrap();
            assert_eq!(found.violation, None);
            let counts = count_among(&machine, &members, &schedule, None).unwrap();
            assert_eq!((counts.steps, counts.port_violations), (choice.price.steps, 0));
        }
    }
}

/// Grids, trees and random graphs, some with several ranks on a node.
fn drawn_machine() -> impl Strategy<Value = Machine> {
    let side = || (1u32..6, prop::bool::ANY);
    let several = || prop_oneof![3 => Just(1u32), 1 => Just(2), 1 => Just(3)];
    let grid = (proptest::collection::vec(side(), 1..4), several()).prop_map(|(sides, several)| {
        let side = |(side, wraps): &(u32, bool)| format!("{side}{}", if *wraps { "~" } else { "" });
        let sides: Vec<_> = sides.iter().map(side).collect();
        format!("grid:{}*{several}", sides.join("x"))
    });
    let tree = (2u32..5, 1u32..4, several())
        .prop_map(|(arity, taper, several)| format!("fat-tree:{arity},2,{taper}*{several}"));
    prop_oneof![
        6 => grid.prop_map(|text| machine(&text).unwrap()),
        2 => tree.prop_map(|text| machine(&text).unwrap()),
        2 => prop::sample::select(drawn_graphs()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// No schedule of a subset costs less than a bound on the links of the whole machine.
    #[test]
    fn no_schedule_of_a_subset_beats_a_bound(
        mut machine in drawn_machine(),
        (ports, seed) in (1u32..7, 0u64..1000),
        (most, in_order) in (2usize..14, prop::bool::ANY),
    ) {
        machine.set_ports(ports);
        set_values(&mut machine, seed);
        let mut members: Vec<_> = (0..machine.ranks()).map(Rank).collect();
        let mut random = fastrand::Rng::with_seed(seed);
        random.shuffle(&mut members);
        members.truncate(most);
        if in_order {
            members.sort_unstable();
        }
        let subset = Subset::new(&members, machine.ranks()).unwrap();
        for (algorithm, problem, setting) in serving(&machine.subset(&subset), 64) {
            let exchange = exchange(&machine, &common::problem(&machine, problem.operation, 64));
            let exchange = exchange.subset(&subset).unwrap();
            let Ok(schedule) = exchange.schedule(&algorithm.info().name, &setting) else { continue };
            let (counts, bounds) = (exchange.count(&schedule).unwrap(), exchange.bounds());
            let place = format!("{} {members:?} {}", machine.name, algorithm.info().name);
            let above = |count: f64, bound: f64| count >= bound * (1.0 - 1e-9);
            prop_assert!(counts.steps >= bounds.steps, "{place}");
            prop_assert!(above(counts.in_blocks(counts.link_bytes), bounds.link_blocks)
                || counts.port_violations > 0, "{place}: {counts:?} {bounds:?}");
            prop_assert!(above(counts.time.total(), bounds.seconds)
                || counts.port_violations > 0, "{place}: {counts:?} {bounds:?}");
        }
    }

    /// All ranks in order are the machine itself; more ranks have no lower bounds.
    #[test]
    fn bounds_of_more_ranks_are_no_lower(mut machine in drawn_machine(), seed in 0u64..1000) {
        set_values(&mut machine, seed);
        for operation in [Collective::AllToAll, Collective::AllGather] {
            let whole = exchange(&machine, &common::problem(&machine, operation, 64));
            let of = |count: u32| {
                let members: Vec<_> = (0..count).collect();
                let members = subset(&members, machine.ranks()).unwrap();
                whole.clone().subset(&members).unwrap().bounds()
            };
            prop_assert_eq!(of(machine.ranks()), whole.bounds());
            let mut before = of(1);
            for count in 2..machine.ranks().min(12) {
                let bounds = of(count);
                // A search finds the lengths of links.
                let no_lower = |more: f64, less: f64| more >= less * (1.0 - 1e-3);
                prop_assert!(no_lower(bounds.link_blocks, before.link_blocks), "{}", machine.name);
                prop_assert!(
                    no_lower(bounds.seconds, before.seconds),
                    "{}: {count} ranks: {bounds:?}, one less: {before:?}",
                    machine.name
                );
                before = bounds;
            }
        }
    }
}

/// Two leaves of a tree: the cut of a leaf, as of the same network cut out by hand.
#[test]
fn a_subset_of_a_tree_has_the_cut_of_a_leaf() {
    let bound = |text: &str, members: Vec<u32>| {
        let mut machine = machine(text).unwrap();
        machine.timing.per_byte = PerClass::uniform(1.0 / 24e9);
        let members = subset(&members, machine.ranks()).unwrap();
        among(&machine, &members, 1024).unwrap().bounds()
    };
    let two = bound("fat-tree:16,2,2*128", (0..4096).collect());
    assert_eq!((two.blocks, two.link_blocks), (507_904.0, 524_288.0));
    assert_eq!(format!("{:.2}", two.seconds * 1e3), "22.40");
    // Half a ring, though the links of the ring's other half are free; a corner of a mesh.
    assert_eq!(bound("torus:8", (0..4).collect()).link_blocks, 3.0);
    assert_eq!(bound("mesh:16", (0..8).collect()).link_blocks, 16.0);
    assert_eq!(bound("mesh:9x9*4", (0..8).collect()).link_blocks, 16.0);
}

/// A demand matrix over all ranks is counted as the machine's; over a subset, on a ring worked out by
/// hand.
#[test]
fn all_to_all_v_of_a_subset_takes_the_links_of_the_whole_machine() {
    for text in ["torus:4x6", "mesh:3x4", "cluster:3,1,2", "full:9"] {
        let machine = machine(text).unwrap();
        let all: Vec<_> = (0..machine.ranks()).collect();
        let all = subset(&all, machine.ranks()).unwrap();
        let problem = common::problem(&machine, Collective::AllToAll, 500);
        let demand = Demand::drawn(&problem, "power-law:4".parse().unwrap()).unwrap();
        for choice in
            &exchange(&machine, &problem).demand(&demand).unwrap().select().unwrap().choices
        {
            let (name, setting) = (&choice.algorithm, &choice.parameters);
            let schedule = schedule_for(&machine, &problem, &demand, name, setting).unwrap();
            let whole = count(&schedule, &machine, Some(&demand), MEMORY).unwrap();
            let placed = count_among(&machine, &all, &schedule, Some(&demand)).unwrap();
            assert_eq!(placed, whole);
        }
    }
    let ring = machine("torus:8").unwrap();
    let members = subset(&[0, 2, 4, 6], 8).unwrap();
    let problem = Problem::new(Collective::AllToAll, 4, 1, 100).unwrap();
    // Rank 0 of the four has 7 bytes for rank 1, which is 2 links away, rank 3 has 5 for rank 1.
    let sizes = "0,7,0,0\n0,0,0,0\n0,0,0,0\n0,5,0,0\n";
    let demand = Demand::read(&problem, sizes.as_bytes()).unwrap();
    let own = ring.subset(&members);
    let schedule = schedule_of(&own, &problem, "direct", &Parameters::new()).unwrap();
    let counts = count_among(&ring, &members, &schedule, Some(&demand)).unwrap();
    assert_eq!((counts.steps, counts.bytes, counts.hops, counts.messages), (2, 12, 2 + 4, 2));
    let selection = among(&ring, &members, 100).unwrap().demand(&demand).unwrap().select().unwrap();
    assert!(selection.choices.iter().all(|choice| choice.bound_ratio >= 1.0 - 1e-12));
    assert_eq!(selection.choices[0].price.steps, 2);
}

#[test]
fn a_subset_of_invalid_ranks_is_refused() {
    let error = |ranks: &[u32]| subset(ranks, 16).unwrap_err().to_string();
    assert_eq!(error(&[]), "0 ranks: a subset has at least one");
    assert_eq!(error(&[3, 16]), "rank 16: there are ranks 0 to 15");
    assert_eq!(error(&[3, 4, 3]), "rank 3 is listed at positions 0 and 2, counted from 0");
    let (machine, other) = (machine("full:15").unwrap(), subset(&[3], 16).unwrap());
    assert!(topocoll::Exchange::all_to_all(&machine).unwrap().subset(&other).is_err());
}

#[test]
fn blocks_of_a_subset_are_those_of_its_ranks() {
    let on = [7, 3, 1, 0, 5, 6].map(Rank);
    let subset = Subset::new(&on, 8).unwrap();
    let moved = |block: Block| Block { from: on[block.from.index()], to: on[block.to.index()] };
    let mut split = 0;
    for mut machine in ["torus:2x3", "full:6"].map(|text| machine(text).unwrap()) {
        machine.set_ports(3);
        for (algorithm, problem, setting) in serving(&machine, 24) {
            let schedule =
                schedule_of(&machine, &problem, &algorithm.info().name, &setting).unwrap();
            let placed = Schedule::on_groups(from_ref(&schedule), &Groups::one(&subset), &[]);
            let (members, all) = (schedule.rule(), placed.rule());
            assert_eq!((members.slots(), members.cuts()), (all.slots(), all.cuts()));
            split += u32::from(!members.cuts().is_empty());
            for slot in 0..members.slots() {
                for (member, &rank) in (0..).map(Rank).zip(&on) {
                    assert_eq!(
                        all.initial_block(rank, slot),
                        members.initial_block(member, slot).map(moved)
                    );
                    assert_eq!(
                        all.final_block(rank, slot),
                        members.final_block(member, slot).map(moved)
                    );
                }
                assert_eq!(
                    (all.initial_block(Rank(2), slot), all.final_block(Rank(4), slot)),
                    (None, None)
                );
            }
        }
    }
    assert!(split > 0, "no schedule splits blocks");
}
