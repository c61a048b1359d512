//! Groups that exchange at the same time: every block arrives in its group, and all share the links.

use std::collections::{BTreeSet, HashMap};

use common::{MEMORY, check_translations, exchange, serving, set_values, without_classes};
use proptest::prelude::*;
use topocoll::{
    Block, Collective, Demand, Exchange, Groups, Machine, Parameters, Rank, Schedule, Step, Subset,
    count, machine, verify,
};

/// The groups of each name that a machine has.
fn drawn() -> impl Strategy<Value = (Machine, Groups)> {
    let all = [
        (
            "torus:4x6",
            &["dim:0", "dim:1", "tiles:2x3", "tiles:4x2", "stride:6", "stride:4", "consecutive:12"]
                [..],
        ),
        ("grid:4~x3", &["dim:0", "dim:1", "tiles:2x1", "consecutive:6", "stride:2"]),
        ("torus:3x2x4", &["dim:0,2", "dim:1", "tiles:3x1x2", "consecutive:4", "stride:12"]),
        ("torus:4x2*3", &["nodes", "peers", "dim:0", "tiles:2x2", "consecutive:6", "stride:3"]),
        ("cluster:5*4", &["nodes", "peers", "consecutive:2", "stride:10"]),
        ("cluster:2*3,4,1", &["nodes", "peers", "consecutive:11"]),
        ("fat-tree:3,2*2", &["nodes", "peers", "consecutive:6", "stride:6", "stride:9"]),
        ("full:12", &["consecutive:3", "stride:4", "consecutive:1", "stride:1"]),
        ("dragonfly:2,2,1", &["consecutive:2", "stride:3", "consecutive:6"]),
    ];
    let names = all.iter().flat_map(|(text, names)| names.iter().map(move |name| (*text, *name)));
    let names: Vec<(&'static str, &'static str)> = names.collect();
    (prop::sample::select(names), 0u64..1000, 1u32..4).prop_map(|((text, name), seed, ports)| {
        let mut machine = machine(text).unwrap();
        machine.set_ports(ports);
        set_values(&mut machine, seed);
        let groups =
            Groups::named(name, &machine).unwrap_or_else(|error| panic!("{text} {name}: {error}"));
        (machine, groups)
    })
}

/// The same groups, listed rank by rank.
fn listed(groups: &Groups) -> Groups {
    Groups::listed((0..groups.count()).map(|group| groups.group(group)).collect()).unwrap()
}

/// Follows the blocks of all slots, and looks whether each rank ends with those of its group.
fn deliver(schedule: &Schedule, operation: Collective, groups: &Groups, place: &str) {
    let rule = schedule.rule();
    let ranks = || (0..groups.machine_ranks()).map(Rank);
    let mut held: HashMap<(Rank, u64), Block> = HashMap::new();
    for rank in ranks() {
        let slots = (0..rule.slots())
            .filter_map(|slot| Some(((rank, slot), rule.initial_block(rank, slot)?)));
        for (at, block) in slots {
            assert_eq!(block.from, rank, "{place}");
            held.insert(at, block);
        }
    }
    for step in 0..rule.steps() {
        let mut copied = Vec::new();
        let mut sent: HashMap<(Rank, Rank), Vec<Option<Block>>> = HashMap::new();
        let mut awaited: Vec<(Rank, Rank, u64)> = Vec::new();
        let steps: Vec<Step> = ranks()
            .map(|rank| {
                let mut does = Step::default();
                rule.step(rank, step, &mut does);
                does
            })
            .collect();
        for (rank, does) in ranks().zip(&steps) {
            for copy in &does.copies {
                let slots = copy.from.slots().zip(copy.to.slots());
                copied
                    .extend(slots.map(|((from, _), (to, _))| {
                        ((rank, to), held.get(&(rank, from)).copied())
                    }));
            }
        }
        held.extend(copied.into_iter().filter_map(|(at, block)| Some((at, block?))));
        for (rank, does) in ranks().zip(&steps) {
            for send in &does.sends {
                let blocks = send.slots.slots().map(|(slot, _)| held.get(&(rank, slot)).copied());
                sent.entry((rank, send.peer)).or_default().extend(blocks);
            }
            for receive in &does.receives {
                awaited.extend(receive.slots.slots().map(|(slot, _)| (receive.peer, rank, slot)));
            }
        }
        let mut next: HashMap<(Rank, Rank), usize> = HashMap::new();
        for (from, to, slot) in awaited {
            let at = next.entry((from, to)).or_default();
            let block = sent[&(from, to)][*at];
            *at += 1;
            held.extend(block.map(|block| ((to, slot), block)));
        }
        assert!(
            sent.iter().all(|(ends, blocks)| next.get(ends) == Some(&blocks.len())),
            "{place}: step {step}"
        );
    }
    for rank in ranks() {
        let wanted = |slot| Some((slot, rule.final_block(rank, slot)?));
        let wanted: Vec<(u64, Block)> = (0..rule.slots()).filter_map(wanted).collect();
        for (slot, block) in &wanted {
            assert_eq!(held.get(&(rank, *slot)), Some(block), "{place}: rank {rank}, slot {slot}");
        }
        let own = groups.place(rank).map(|(group, _)| groups.group(group));
        let expected: BTreeSet<Block> = own
            .iter()
            .flat_map(Subset::ranks)
            .map(|&from| match operation {
                Collective::AllToAll => Block { from, to: rank },
                Collective::AllGather => Block::of(from),
            })
            .collect();
        assert_eq!(
            wanted.into_iter().map(|(_, block)| block).collect::<BTreeSet<_>>(),
            expected,
            "{place}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(common::reach(30, 400)))]

    /// Every block of every group arrives, all groups cost what they cost rank by rank, and no less than a
    /// bound.
    #[test]
    fn groups_deliver_and_cost_what_their_ranks_do((machine, groups) in drawn()) {
        let own = machine.subset(&groups.group(groups.largest()));
        for (algorithm, problem, setting) in serving(&own, 24) {
            let whole = exchange(&machine, &common::problem(&machine, problem.operation, 24));
            let of = |groups: &Groups| whole.clone().groups(groups).unwrap();
            let (exchange, by_list) = (of(&groups), of(&listed(&groups)));
            let Ok(schedule) = exchange.schedule(&algorithm.info().name, &setting) else { continue };
            let place = format!("{} {groups:?} {} {setting:?}", machine.name, algorithm.info().name);
            let Ok(placed) = exchange.placed(&schedule) else { continue };
            check_translations(&placed, &place);
            if placed.rule().cuts().is_empty() {
                deliver(&placed, problem.operation, &groups, &place);
            }
            let counts = exchange.count(&schedule).unwrap();
            prop_assert_eq!(by_list.count(&schedule).unwrap(), counts, "{}", place);
            let plain = count(&without_classes(&placed), &machine, None, MEMORY).unwrap();
            // Barriers are of a group.
            prop_assert_eq!(plain.messages, counts.messages, "{}", place);
            prop_assert_eq!(plain.link_bytes, counts.link_bytes, "{}", place);
            let bounds = exchange.bounds();
            prop_assert_eq!(by_list.bounds(), bounds, "{}", place);
            let above = |count: f64, bound: f64| count >= bound * (1.0 - 1e-9);
            prop_assert!(counts.steps >= bounds.steps, "{place}");
            prop_assert!(counts.port_violations > 0 || above(counts.in_blocks(counts.link_bytes), bounds.link_blocks),
                "{place}: {counts:?} {bounds:?}");
            prop_assert!(above(counts.time.total(), bounds.seconds), "{place}: {counts:?} {bounds:?}");
        }
    }

    /// A rank is at its place in its group.
    #[test]
    fn places_and_ranks_are_inverse((machine, groups) in drawn()) {
        let mut seen = 0;
        for group in 0..groups.count() {
            let subset = groups.group(group);
            seen += subset.ranks().len();
            for (position, &rank) in (0..).map(Rank).zip(subset.ranks()) {
                prop_assert_eq!(groups.place(rank), Some((group, position)));
                prop_assert_eq!(groups.rank(group, position), rank);
            }
        }
        prop_assert_eq!(seen, machine.ranks() as usize);
    }
}

fn ranks_of(text: &str, name: &str) -> Vec<Vec<u32>> {
    let groups = Groups::named(name, &machine(text).unwrap()).unwrap();
    let ranks = |group| groups.group(group).ranks().iter().map(|rank| rank.0).collect();
    (0..groups.count()).map(ranks).collect()
}

#[test]
fn names_say_which_ranks_are_together() {
    for (text, name, expected) in [
        ("torus:2x3", "dim:0", vec![vec![0, 3], vec![1, 4], vec![2, 5]]),
        ("torus:2x3", "dim:1", vec![vec![0, 1, 2], vec![3, 4, 5]]),
        ("torus:2x4", "tiles:2x2", vec![vec![0, 1, 4, 5], vec![2, 3, 6, 7]]),
        ("torus:2x4", "stride:2", vec![vec![0, 2, 4, 6], vec![1, 3, 5, 7]]),
        ("torus:2x3", "stride:2", vec![vec![0, 2, 4], vec![1, 3, 5]]),
        ("torus:2x3", "consecutive:2", vec![vec![0, 1], vec![2, 3], vec![4, 5]]),
        ("torus:2x2*2", "dim:0", vec![vec![0, 4], vec![1, 5], vec![2, 6], vec![3, 7]]),
        ("cluster:2*3", "nodes", vec![vec![0, 1, 2], vec![3, 4, 5]]),
        ("cluster:2*3", "peers", vec![vec![0, 3], vec![1, 4], vec![2, 5]]),
        ("cluster:2,3,1", "peers", vec![vec![0, 2, 5], vec![1, 3], vec![4]]),
        ("cluster:2,3,1", "nodes", vec![vec![0, 1], vec![2, 3, 4], vec![5]]),
    ] {
        assert_eq!(ranks_of(text, name), expected, "{text} {name}");
    }
}

/// Rows of a torus do not meet; columns two apart share links.
#[test]
fn groups_that_share_links_are_charged_together() {
    let torus = machine("torus:4x4").unwrap();
    let of = |name: &str| {
        let groups = Groups::named(name, &torus).unwrap();
        Exchange::all_to_all(&torus).unwrap().groups(&groups).unwrap()
    };
    let direct = |exchange: &Exchange<'_>| {
        let schedule = exchange.schedule("direct", &Parameters::new()).unwrap();
        let counts = exchange.count(&schedule).unwrap();
        (counts.messages, counts.link_bytes / 1024, counts.link_contention)
    };
    // A step around half of a row loads its links twice, upwards; the other two each link once.
    assert_eq!(direct(&of("dim:1")), (16 * 3, 1 + 2 + 1, 2));
    assert_eq!(of("dim:1").bounds().link_blocks, 3.0);
    // Each row of 4 has two pairs, 0 and 2, 1 and 3, which meet on its links.
    assert_eq!(direct(&of("tiles:1x2")), (16, 1, 1));
    let pairs = (0..16).filter(|rank| rank % 4 < 2).map(|rank| [Rank(rank), Rank(rank + 2)]);
    let pairs = pairs.map(|pair| Subset::new(&pair, 16).unwrap()).collect();
    let pairs =
        Exchange::all_to_all(&torus).unwrap().groups(&Groups::listed(pairs).unwrap()).unwrap();
    assert_eq!(direct(&pairs), (16, 2, 2));
    assert_eq!(pairs.bounds().link_blocks, 1.0);
}

/// Each group has a schedule of its own where they differ, and all are proved.
#[test]
fn groups_of_different_sizes_have_schedules_of_one_algorithm() {
    let cluster = machine("cluster:4,3,3,1").unwrap();
    let groups = Groups::named("nodes", &cluster).unwrap();
    let exchange = Exchange::all_to_all(&cluster).unwrap().groups(&groups).unwrap();
    let best = exchange.select().unwrap().choices.remove(0);
    assert_eq!((exchange.problem().ranks, best.price.steps), (4, 3));
    let schedule = exchange.schedule(&best.algorithm, &best.parameters).unwrap();
    assert_eq!(exchange.verify(&schedule, None).unwrap().violation, None);
    let placed = exchange.placed(&schedule).unwrap();
    deliver(&placed, Collective::AllToAll, &groups, "cluster:4,3,3,1");
    assert_eq!(exchange.count(&schedule).unwrap().messages, 4 * 3 + 2 * 3 * 2);
    // Sizes of blocks are of one matrix.
    let demand = Demand::drawn(exchange.problem(), "uniform:1".parse().unwrap()).unwrap();
    let refused = exchange.clone().demand(&demand).unwrap_err().to_string();
    let rule = "a demand matrix requires groups of equal sizes: group 1 has 3 ranks, the largest 4";
    assert_eq!(refused, rule);
    let own = exchange.machine().clone();
    assert_eq!(verify(&schedule, &own, None, MEMORY).unwrap().violation, None);
}

/// A group of other ranks than its schedule's is a mistake of the caller.
#[test]
#[should_panic(expected = "groups of as many ranks")]
fn groups_have_the_ranks_of_their_schedules() {
    let full = machine("full:6").unwrap();
    let groups = Groups::named("consecutive:3", &full).unwrap();
    let exchange = Exchange::all_to_all(&full).unwrap();
    let schedule = exchange.schedule("direct", &Parameters::new()).unwrap();
    let _ = Schedule::on_groups(&[schedule], &groups, &[]);
}

#[test]
fn groups_that_meet_or_name_nothing_are_refused() {
    let torus = machine("torus:4x4*2").unwrap();
    let error = |name: &str| Groups::named(name, &torus).unwrap_err().to_string();
    assert_eq!(error("tiles:3x1"), "`tiles:3x1`: 3 does not divide the side 4");
    assert_eq!(error("dim:2"), "`dim:2`: dimension 2: there are dimensions 0 to 1");
    assert_eq!(
        error("consecutive:5"),
        "`consecutive:5`: 5 does not divide the 32 ranks of torus:4x4*2"
    );
    assert!(error("rows").starts_with("`rows` names no groups: nodes, peers, dim:0,2,"));
    let two = |a: &[u32], b: &[u32]| {
        let of = |ranks: &[u32]| {
            Subset::new(&ranks.iter().copied().map(Rank).collect::<Vec<_>>(), 8).unwrap()
        };
        Groups::listed(vec![of(a), of(b)])
    };
    assert_eq!(two(&[0, 1], &[2, 1]).unwrap_err().to_string(), "rank 1 is in groups 0 and 1");
    assert!(two(&[0, 1], &[2, 3]).is_ok());
    assert!(Groups::listed(Vec::new()).is_err());
}
