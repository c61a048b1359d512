//! Ports of a rank and of a node: more are never slower, and all commands price their schedules.

use std::path::Path;

use common::{choice_of, exchange, problem, reach, select, sweep, with_ports};
use rayon::prelude::*;
use topocoll::units::parse_ports;
use topocoll::{
    Collective, Demand, Machine, Method, Ports, Priced, Rank, Setting, Subset, count, machine,
    verify,
};

const MEMORY: u128 = 1 << 30;
pub(crate) const OPERATIONS: [Collective; 2] = [Collective::AllToAll, Collective::AllGather];

/// A machine of few ranks and the most ports to ask for: six of ten are grids, with ports up to twice their
/// dimensions; the others are complete graphs, hyperx, clusters, and grids of several ranks a node.
pub(crate) fn drawn(random: &mut fastrand::Rng, most_ranks: u32) -> (Machine, u32) {
    loop {
        let sides: Vec<u32> = (0..random.u32(1..=3)).map(|_| random.u32(2..=8)).collect();
        let text: Vec<String> = sides.iter().map(ToString::to_string).collect();
        let (text, dimensions) = (text.join("x"), sides.len() as u32);
        let ranks = sides.iter().product::<u32>();
        let kind = *random.choice(&["torus", "mesh", "grid"]).unwrap();
        let grid = match kind {
            "grid" => format!("grid:{}", text.replacen('x', "~x", 1)),
            kind => format!("{kind}:{text}"),
        };
        let (text, most) = match random.u32(..10) {
            0 => (format!("full:{ranks}"), (ranks - 1).min(7)),
            1 => (format!("hyperx:{text}"), 2 * dimensions),
            2 => (format!("cluster:{}*{}", sides[0], random.u32(2..=4)), 5),
            3 => (format!("{grid}*2"), 2 * dimensions),
            _ => (grid, 2 * dimensions),
        };
        let mut machine = machine(&text).unwrap();
        if machine.ranks() > most_ranks {
            continue;
        }
        if random.bool() {
            machine.timing.injection.rank = random.f64() * 1e-9;
            machine.timing.injection.node = random.f64() * 1e-9;
        }
        return (machine, most);
    }
}

fn best(machine: &Machine, operation: Collective, bytes: u64) -> f64 {
    select(machine, &problem(machine, operation, bytes)).best().unwrap().price.time.total()
}

/// From 1 port to twice the dimensions of a grid, to all of a small complete graph, and to the ranks of a node.
#[test]
fn more_ports_are_never_slower() {
    (0..reach(40, 1000)).into_par_iter().for_each(|seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let (machine, most) = drawn(&mut random, 40);
        let bytes = 1 << random.u32(..20);
        let operation = OPERATIONS[(seed % 2) as usize];
        let mut before = f64::INFINITY;
        for ports in 1..=most {
            let mut machine = machine.clone();
            machine.set_ports(ports);
            let time = best(&machine, operation, bytes);
            let place = format!("{operation} of {bytes} B on {} with {ports} ports", machine.name);
            // An all-gather splits blocks: its volume is rounded up to whole bytes.
            let rounded = if operation == Collective::AllGather { 4e-9 } else { 0.0 };
            let most = before * (1.0 + 1e-9) + rounded;
            assert!(time <= most, "{place}: {time}, with fewer {before}");
            before = time;
        }
    });
}

/// The same among some of the ranks, and for blocks of drawn sizes.
#[test]
fn more_ports_are_never_slower_for_subsets_and_demands() {
    (0..reach(16, 300)).into_par_iter().for_each(|seed| {
        let mut random = fastrand::Rng::with_seed(5000 + seed);
        let (machine, most) = drawn(&mut random, 20);
        let bytes = 1 << random.u32(6..18);
        let mut ranks: Vec<Rank> = (0..machine.ranks()).map(Rank).collect();
        while ranks.len() > 2 && random.u32(..4) > 0 {
            ranks.remove(random.usize(..ranks.len()));
        }
        let subset = Subset::new(&ranks, machine.ranks()).unwrap();
        let law = ["uniform:1", "sparse:3", "power-law:2", "experts:4"][random.usize(..4)];
        let by_demand = random.bool();
        let mut before = f64::INFINITY;
        for ports in 1..=most {
            let mut machine = machine.clone();
            machine.set_ports(ports);
            let problem = problem(&machine, Collective::AllToAll, bytes);
            let demand = Demand::drawn(&problem, law.parse().unwrap()).unwrap();
            let exchange = exchange(&machine, &problem);
            let exchange = match by_demand {
                true => exchange.demand(&demand).unwrap(),
                false => exchange.subset(&subset).unwrap(),
            };
            let time = exchange.select().unwrap().best().unwrap().price.time.total();
            let place = format!(
                "{bytes} B, {law} {by_demand}, {ranks:?} of {}, {ports} ports",
                machine.name
            );
            assert!(time <= before * (1.0 + 1e-9), "{place}: {time}, with fewer {before}");
            before = time;
        }
    });
}

/// Equal times and equal choices for 12 sizes: by a selection, a sweep, and the list of crossovers, whatever size is
/// asked for.
#[test]
fn all_commands_have_one_price() {
    const SIZES: [u64; 12] =
        [1, 3, 8, 64, 100, 1021, 4096, 20_000, 65_536, 99_999, 1 << 20, 1 << 24];
    (0..reach(12, 100)).into_par_iter().for_each(|seed| {
        let mut random = fastrand::Rng::with_seed(1000 + seed);
        let (mut machine, most) = drawn(&mut random, 64);
        machine.set_ports(random.u32(1..=most));
        let operation = OPERATIONS[(seed % 2) as usize];
        let problem = |bytes| problem(&machine, operation, bytes);
        let swept = sweep(&machine, &problem(1), &SIZES, &[]).unwrap();
        let mut lists = Vec::new();
        for (i, &bytes) in SIZES.iter().enumerate() {
            let place =
                format!("{operation} of {bytes} B on {}, {} ports", machine.name, machine.ports);
            let found = select(&machine, &problem(bytes));
            let best = found.best().unwrap();
            let time = best.price.time.total();
            let points = swept.lines.iter().map(|line| line.points[i].price.time.total());
            assert_eq!(points.fold(f64::INFINITY, f64::min), time, "{place}");
            let priced =
                exchange(&machine, &problem(bytes)).priced(&best.algorithm, &best.parameters);
            let priced = priced.unwrap().unwrap().price.time.total();
            assert!((priced - time).abs() <= 1e-12 * time, "{place}: {priced} {time}");
            let crossover = found.crossovers.iter().rfind(|one| one.block_bytes <= bytes).unwrap();
            assert_eq!(crossover.to_bytes, None, "{place}");
            let named = choice_of(&found, crossover);
            // The bytes of a part of a block that is split.
            let most = time * (1.0 + 1e-9) + if found.split.is_empty() { 0.0 } else { 1e-7 };
            assert!(named.price.time.total() <= most, "{place}: {named:?} {time}");
            lists.push(found.crossovers);
        }
        assert!(lists.iter().all(|list| *list == lists[0]), "{}", machine.name);
        let last = *SIZES.last().unwrap();
        let inside: Vec<_> =
            lists[0].iter().filter(|one| one.block_bytes <= last).cloned().collect();
        assert_eq!(swept.crossovers, inside, "{}", machine.name);
    });
}

/// A node with a port for each message does not limit its ranks.
#[test]
fn all_messages_of_a_rank_go_at_once() {
    for (text, ports, steps) in [
        ("cluster:2x4", "16", 1),
        ("cluster:2x4", "15", 3),
        ("cluster:2x4", "3,all", 3),
        ("cluster:2,3,1", "all", 1),
        ("torus:3x3*2", "all", 1),
        ("cluster:8x8", "1,all", 63),
    ] {
        let machine = with_ports(text, parse_ports(ports).unwrap());
        let problem = problem(&machine, Collective::AllToAll, 64);
        let schedule =
            exchange(&machine, &problem).schedule("direct", &Default::default()).unwrap();
        let found = verify(&schedule, &machine, Some(Method::Replay), MEMORY).unwrap();
        assert_eq!(found.violation, None);
        let counts = (found.counts.steps, found.counts.port_violations);
        assert_eq!(counts, (steps, 0), "{text} {ports}");
    }
}

#[test]
fn a_schedule_for_fewer_ports_is_a_setting() {
    let set = |of: &[(&str, u64)]| {
        of.iter().map(|&(name, value)| (name.to_owned(), Setting::Integer(value))).collect()
    };
    let machine = with_ports("cluster:3x4", Ports { rank: 5, node: 12 });
    let problem = problem(&machine, Collective::AllToAll, 64);
    let exchange = exchange(&machine, &problem);
    let fewer = with_ports("cluster:3x4", Ports { rank: 2, node: 8 });
    let given = set(&[("ports", 2), ("node_ports", 8)]);
    for name in ["direct", "bruck", "node-aware", "node-radix", "clustered-matchings"] {
        let schedule = exchange.schedule(name, &given).unwrap();
        let same = schedule_on(&fewer, name);
        assert_eq!(schedule.rule().steps(), same.rule().steps(), "{name}");
        assert_eq!(schedule.problem, problem, "{name}");
        let again = exchange.schedule(name, &schedule.origin.parameters).unwrap();
        assert_eq!(again.origin, schedule.origin, "{name}");
        let counts = count(&schedule, &fewer, None, MEMORY);
        assert!(counts.is_ok_and(|counts| counts.port_violations == 0), "{name}");
    }
    let refused =
        |given: &[(&str, u64)]| exchange.schedule("direct", &set(given)).unwrap_err().to_string();
    assert_eq!(refused(&[("ports", 6)]), "direct: ports is `6`, not a whole number from 1 to 5");
    assert_eq!(
        refused(&[("node_ports", 0)]),
        "direct: node_ports is `0`, not a whole number from 1 to 12"
    );
}

fn schedule_on(machine: &Machine, name: &str) -> topocoll::Schedule {
    let problem = problem(machine, Collective::AllToAll, 64);
    exchange(machine, &problem).schedule(name, &Default::default()).unwrap()
}

/// A 3 x 4 grid, each side fully connected: 12 ranks whose injection 4 messages of a step fill better than 5.
#[test]
fn the_fastest_of_fewer_ports_is_a_choice() {
    let at = |ports: u32| {
        let mut machine = with_ports("hyperx:3x4", ports);
        machine.timing.injection.rank = 1.0 / 1.5e9;
        best(&machine, Collective::AllToAll, 1000)
    };
    assert!((at(4) * 1e6 - 11.30).abs() < 0.005 && at(5) <= at(4), "{} {}", at(4), at(5));
}

#[test]
fn a_broken_machine_is_compared_with_the_ports_that_were_given() {
    for (text, broken, whole) in
        [("torus:3/1", 1, 2), ("torus:4x4/0,0", 4, 4), ("mesh:2x2/1,1", 2, 3)]
    {
        let machine = with_ports(text, 4);
        let unbroken = machine.unbroken().unwrap();
        assert_eq!((machine.ports.rank, unbroken.ports.rank), (broken, whole), "{text}");
    }
}

fn input(name: &str) -> Machine {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs").join(name);
    machine(&path.display().to_string()).unwrap()
}

/// 64 GPUs in nodes of 8, all messages of a rank at once: 63 blocks of 16 KiB through 25 GB/s, and a startup of 10 us.
#[test]
fn all_messages_at_once_are_the_answer_for_gpus() {
    let machine = input("tutel64.toml");
    assert_eq!(machine.ports, Ports { rank: 63, node: 448 });
    let found = select(&machine, &problem(&machine, Collective::AllToAll, 16 << 10));
    let best = found.best().unwrap();
    assert_eq!((&*best.algorithm, best.price.steps), ("direct", 1));
    let by_hand = 10e-6 + 63.0 * 16384.0 / 25e9;
    assert!((best.price.time.total() / by_hand - 1.0).abs() < 1e-3);
}

#[test]
fn crossovers_do_not_depend_on_the_block() {
    let machine = input("h100-16x8.toml");
    let at = |bytes| select(&machine, &problem(&machine, Collective::AllToAll, bytes)).crossovers;
    let crossovers = at(1 << 10);
    assert_eq!(at(1 << 16), crossovers);
    let last = crossovers.last().unwrap();
    assert_eq!((&*last.algorithm, last.block_bytes), ("clustered-matchings", 1_045_525));
}

/// A machine on which many settings are too long to count.
#[test]
#[ignore = "takes a minute"]
fn a_sweep_is_a_selection_at_each_size_where_not_all_is_counted() {
    for name in ["tree-32x128.toml", "../../topologies/fat-tree-256x8-tapered.toml"] {
        let machine = input(name);
        let sizes = [8, 1 << 10, 1 << 16, 1 << 20];
        let problem = |bytes| problem(&machine, Collective::AllToAll, bytes);
        let swept = sweep(&machine, &problem(1), &sizes, &[]).unwrap();
        for (i, bytes) in sizes.into_iter().enumerate() {
            let found = select(&machine, &problem(bytes));
            let exact = swept.lines.iter().map(|line| &line.points[i]);
            let exact = exact.filter(|point| point.price.priced == Priced::Exactly);
            let times = exact.map(|point| point.price.time.total());
            let best = found.best().unwrap().price.time.total();
            assert_eq!(times.fold(f64::INFINITY, f64::min), best, "{name} at {bytes}");
            assert_eq!(found.crossovers, select(&machine, &problem(1)).crossovers, "{name}");
        }
    }
}
