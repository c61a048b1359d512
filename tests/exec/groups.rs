//! Groups that exchange at the same time: every block arrives in its group, and all share the links.

use std::collections::{BTreeSet, HashMap};
use std::process::Command;
use std::sync::Arc;

use common::{MEMORY, check_translations, exchange, serving, set_values, without_classes};
use proptest::prelude::*;
use topocoll::contention::{self, MODELS, Scheduled, in_seconds, simulate};
use topocoll::exec::{BlockSizes, Plan, PlannedSizes, ThreadedDriver, pattern};
use topocoll::formats::{ReadError, Source, Target, jsonl};
use topocoll::{
    AnalysisError, Block, Collective, Demand, Exchange, GivenSchedule, Groups, Machine, Method,
    NotSimulated, Parameters, Priced, Progress, Rank, RankClasses, Schedule, Step, Subset, Sync,
    count, machine, verify,
};

/// Machines, and the names of groups that each has.
fn known() -> Vec<(&'static str, &'static str)> {
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
    all.iter().flat_map(|(text, names)| names.iter().map(move |name| (*text, *name))).collect()
}

fn drawn() -> impl Strategy<Value = (Machine, Groups)> {
    (prop::sample::select(known()), 0u64..1000, 1u32..4)
        .prop_map(|(one, seed, ports)| grouped(one, seed, ports))
}

fn grouped((text, name): (&str, &str), seed: u64, ports: u32) -> (Machine, Groups) {
    let mut machine = machine(text).unwrap();
    machine.set_ports(ports);
    set_values(&mut machine, seed);
    let groups =
        Groups::named(name, &machine).unwrap_or_else(|error| panic!("{text} {name}: {error}"));
    (machine, groups)
}

/// An independent program replays 100 schedules of groups: every block of every group arrives, and the links have
/// the messages of all groups.
#[test]
fn an_independent_reader_replays_groups() {
    let (folder, mut expected) = (tempfile::tempdir().unwrap(), Vec::new());
    for (number, one) in known().into_iter().cycle().take(200).enumerate() {
        let (machine, groups) = grouped(one, number as u64, 1 + number as u32 % 3);
        let exchange = Exchange::all_to_all(&machine).unwrap().groups(&groups).unwrap();
        let Some(solution) = exchange.solutions().take(1 + number % 40).last() else { continue };
        let Ok(placed) = exchange.placed(&solution.schedule) else { continue };
        let file = folder.path().join(format!("{number}.jsonl"));
        std::fs::write(&file, written(&placed, &machine)).unwrap();
        let place = format!("{one:?} {:?}", placed.origin);
        expected.push((file, exchange.count(&solution.schedule).unwrap(), place));
        if expected.len() == 100 {
            break;
        }
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/replay.py");
    let files = expected.iter().map(|(file, ..)| file);
    let output = Command::new("python3").arg(script).args(files).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.lines().count(), 100);
    for (line, (_, counts, place)) in text.lines().zip(&expected) {
        let found: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(found["delivered"], true, "{place}: {found}");
        for (name, counted) in [
            ("steps", counts.steps as f64),
            ("blocks", counts.in_blocks(counts.bytes)),
            ("link_blocks", counts.in_blocks(counts.link_bytes)),
            ("link_conflicts", counts.link_conflicts as f64),
            ("port_violations", counts.port_violations as f64),
        ] {
            let found = found[name].as_f64().unwrap();
            assert!(
                (found - counted).abs() <= 1e-9 * counted,
                "{place}: {name} {found}, counted {counted}"
            );
        }
    }
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
    fn groups_deliver_and_cost_what_their_ranks_do((machine, groups) in drawn(), seed in 0..2) {
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
                let read = read(&machine, &written(&placed, &machine)).unwrap();
                deliver(&read, problem.operation, &groups, &place);
                let proof = verify(&read, &machine, None, MEMORY).unwrap();
                prop_assert_eq!(proof.violation, None, "{}", place);
                let found = verify(&placed, &machine, Some(Method::Replay), MEMORY).unwrap();
                prop_assert_eq!(found.violation, None, "{}", place);
                // Ports that groups share are exceeded where one group by itself exceeds them.
                prop_assert_eq!(proof.exceeded, found.exceeded, "{}", place);
                let alone = exchange.verify(&schedule, None).unwrap().exceeded;
                prop_assert_eq!(found.exceeded > 0, alone > 0, "{}", place);
                let named = |rank| {
                    let mut does = Step::default();
                    (0..placed.rule().steps()).any(|step| {
                        placed.rule().step(Rank(rank), step, &mut does);
                        does.sends.iter().any(|send| !send.route.is_empty())
                    })
                };
                let all = RankClasses::distinct(machine.ranks());
                let has_classes = schedule.rule().class_of_step(0).is_some();
                prop_assert!(has_classes || (0..machine.ranks()).any(named) == placed.rule().names_routes(&all));
            }
            // Every byte of every group, all in one run.
            let plans = exchange.plans(&schedule).unwrap();
            let bytes = |of: fn(&Plan) -> u128| plans.iter().map(|plan| of(plan)).sum::<u128>();
            let mut input = vec![0; bytes(|plan| plan.input_bytes(24u64)) as usize];
            let mut output = vec![0; bytes(|plan| plan.output_bytes(24u64)) as usize];
            pattern::fill(&plans, 24u64, &mut input);
            let mut driver = ThreadedDriver::new(plans.clone(), 2);
            driver.set_sync(if seed % 2 == 0 { Sync::Barrier } else { Sync::Free });
            driver.exchange(24u64, &input, &mut output).unwrap();
            prop_assert_eq!(pattern::first_wrong(&plans, 24u64, &output), None, "{}", place);
            // And of each group the sizes of a matrix.
            if groups.sizes().all(|ranks| ranks == own.ranks()) && placed.rule().cuts().is_empty() {
                let demand = Demand::drawn(&schedule.problem, "uniform:1".parse().unwrap()).unwrap();
                let sizes = BlockSizes::Planned(Arc::new(PlannedSizes::new(&plans, &demand).unwrap()));
                let bytes = |rank: &Plan| demand.row(rank.rank()).sum::<u64>();
                input.resize(plans.iter().map(|plan| bytes(plan) as usize).sum(), 0);
                output = vec![0; plans.iter().map(|plan| plan.output_bytes(sizes.clone()) as usize).sum()];
                pattern::fill(&plans, sizes.clone(), &mut input);
                driver.exchange(sizes.clone(), &input, &mut output).unwrap();
                prop_assert_eq!(pattern::first_wrong(&plans, sizes, &output), None, "{}", place);
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

fn written(schedule: &Schedule, machine: &Machine) -> String {
    let mut lines = Vec::new();
    jsonl::write(&Source::new(schedule, machine, MEMORY), &mut lines).unwrap();
    String::from_utf8(lines).unwrap()
}

fn read(machine: &Machine, lines: &str) -> Result<Schedule, ReadError> {
    jsonl::read(&mut lines.as_bytes(), &Target::new(machine, MEMORY))
}

/// A file names its groups; only the blocks within them are sent, and each is.
#[test]
fn files_of_groups_are_proved_or_refuted_by_their_groups() {
    let machine = machine("full:6").unwrap();
    let groups = Groups::read("0,2,4\n1 5", &machine).unwrap();
    let exchange = Exchange::all_to_all(&machine).unwrap().groups(&groups).unwrap();
    let schedule = exchange.schedule("direct", &Parameters::new()).unwrap();
    let lines = written(&exchange.placed(&schedule).unwrap(), &machine);
    assert!(lines.lines().next().unwrap().ends_with(r#""groups":[[0,2,4],[1,5]]}"#), "{lines}");
    let back = read(&machine, &lines).unwrap();
    assert_eq!(back.groups(), Some(&groups));
    assert_eq!(back.participants(), 3);
    assert!(
        back.wants(Rank(4), Rank(0))
            && !back.wants(Rank(1), Rank(0))
            && !back.wants(Rank(3), Rank(3))
    );
    let found = |lines: &str| {
        let read = read(&machine, lines).unwrap();
        verify(&read, &machine, None, MEMORY).unwrap().violation
    };
    assert_eq!(found(&lines), None);
    let without = lines.lines().filter(|line| !line.contains("[[5,1,")).collect::<Vec<_>>();
    let missing = found(&without.join("\n")).unwrap().to_string();
    assert!(missing.contains("5->1"), "{missing}");
    // Without the groups, all blocks of all ranks are due.
    let whole = lines.replacen(r#","groups":[[0,2,4],[1,5]]"#, "", 1);
    assert!(found(&whole).is_some());
    let refused = |from: &str, to: &str| {
        assert!(lines.contains(from), "{from}: {lines}");
        read(&machine, &lines.replacen(from, to, 1)).unwrap_err().to_string()
    };
    assert_eq!(refused("[1,5]]", "[1,4]]"), "line 1: groups: rank 4 is in groups 0 and 1");
    assert_eq!(refused("[1,5]]", "[1,6]]"), "line 1: groups[1]: rank 6: there are ranks 0 to 5");
    let apart = refused("[[5,1,", "[[5,2,");
    assert!(apart.ends_with("block 5->2 is not of ranks of one group"), "{apart}");
    // Not followed by classes, and not an exchange of all ranks.
    let by_classes = verify(&back, &machine, Some(Method::Classes), MEMORY).unwrap_err();
    assert_eq!(by_classes, AnalysisError::Groups);
    let given = GivenSchedule::new("given", back, &machine).unwrap_err().to_string();
    assert!(given.contains("its ranks exchange within groups"), "{given}");
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

/// Groups that any symmetry of the machine maps onto each other are looked at once, in any numbering.
#[test]
fn consecutive_ranks_of_a_complete_graph_are_equivalent() {
    let full = machine("full:1048576").unwrap();
    for name in ["consecutive:1024", "stride:1024"] {
        let groups = Groups::named(name, &full).unwrap();
        let exchange = Exchange::all_to_all(&full).unwrap().groups(&groups).unwrap();
        let schedule = exchange.schedule("direct", &Parameters::new()).unwrap();
        let placed = exchange.placed(&schedule).unwrap();
        assert_eq!(placed.rule().classes().count(), 1, "{name}");
        assert_eq!(exchange.count(&schedule).unwrap().messages, (1 << 20) * 1023, "{name}");
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
    // The price by name is that of all groups, too.
    let schedule = pairs.schedule("direct", &Parameters::new()).unwrap();
    let priced = pairs.priced("direct", &Parameters::new()).unwrap().unwrap();
    assert_eq!(priced.price.time, pairs.count(&schedule).unwrap().time);
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

/// A selection prices all groups at once, whether they meet or not, in step and by a model of the network.
#[test]
fn selections_price_what_all_groups_send() {
    for (number, (text, name)) in known().into_iter().enumerate() {
        let (machine, groups) = grouped((text, name), number as u64, 1 + number as u32 % 2);
        let exchange = Exchange::all_to_all(&machine).unwrap().groups(&groups).unwrap();
        let selection = exchange.select().unwrap();
        assert!(selection.undecided().is_empty(), "{text} {name}");
        for choice in &selection.choices {
            let schedule = exchange.schedule(&choice.algorithm, &choice.parameters).unwrap();
            let (priced, counted) = (choice.price.time, exchange.count(&schedule).unwrap().time);
            let near = (priced.total() - counted.total()).abs() <= 1e-9 * counted.total();
            let place = format!("{text} {name} {} {:?}", choice.algorithm, choice.parameters);
            assert!(
                near || choice.price.priced != Priced::Exactly,
                "{place}: {priced:?} {counted:?}"
            );
        }
        let Some(model) = MODELS.iter().find(|model| model.name == "fluid") else { unreachable!() };
        let simulations = exchange.simulations(&selection, model).unwrap();
        let times = simulations.run(&Progress::UNHEARD).unwrap();
        let schedule = &selection.choices[0];
        let schedule = exchange.schedule(&schedule.algorithm, &schedule.parameters).unwrap();
        let placed = exchange.placed(&schedule).unwrap();
        let traffic = Scheduled::new(&placed, &machine);
        let found = simulate(&contention::Request::new(&traffic, &machine, model, MEMORY)).unwrap();
        let in_turn = exchange.count(&schedule).unwrap().port_violations > 0;
        let expected = if in_turn { Err(NotSimulated::Ports) } else { Ok(in_seconds(found.time)) };
        assert_eq!(times[0], expected, "{text} {name}");
    }
}

/// Ranks of a node in different groups take turns at its port: a file of all groups is proved, and one in which a
/// group by itself sends twice at once is refused.
#[test]
fn groups_take_turns_at_ports_that_they_share() {
    let cluster = machine("cluster:3*2").unwrap();
    let groups = Groups::named("peers", &cluster).unwrap();
    let exchange = Exchange::all_to_all(&cluster).unwrap().groups(&groups).unwrap();
    let schedule = exchange.schedule("direct", &Parameters::new()).unwrap();
    let lines = written(&exchange.placed(&schedule).unwrap(), &cluster);
    let proof = verify(&read(&cluster, &lines).unwrap(), &cluster, None, MEMORY).unwrap();
    // Three nodes, sent and received, in two steps.
    assert_eq!((proof.violation, proof.counts.port_violations, proof.exceeded), (None, 12, 0));
    let at_once = lines.replace(r#""step":1"#, r#""step":0"#);
    let proof = verify(&read(&cluster, &at_once).unwrap(), &cluster, None, MEMORY).unwrap();
    // Each of six ranks and of three nodes by each of two groups, sent and received.
    assert_eq!((proof.violation, proof.exceeded), (None, 2 * 6 + 2 * 2 * 3));
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
