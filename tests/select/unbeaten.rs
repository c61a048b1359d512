//! No algorithm, asked for by name, is faster than the answer.

use common::{algorithms, drawn_graphs, exchange, find, on, reach, select, time, with_ports};
use rayon::prelude::*;
use topocoll::{
    Collective, Exchange, Machine, Parameters, Problem, Rank, Request, Schedule, Step, machine,
};

/// What a search may save that is not worth it.
const NOT_WORTH: f64 = 0.02;
/// Rounding.
const ROUNDED: f64 = 1e-9;

/// The fastest of all settings of all algorithms, each by name, with what it may save: less is left out where
/// it is searched for.
fn fastest(exchange: &Exchange<'_>, answer: f64) -> Option<(f64, String)> {
    let request = Request::new(exchange.problem(), &*exchange.machine().topology);
    let mut named: Vec<(&str, Parameters, f64)> = Vec::new();
    for algorithm in algorithms().filter(|one| !one.info().by_demand) {
        let name = &*algorithm.info().name;
        let save = match request.search(algorithm, &Parameters::new()) {
            Some(_) => NOT_WORTH,
            None => ROUNDED,
        };
        let Ok(settings) = request.candidates(algorithm) else { continue };
        named.extend([Parameters::new()].into_iter().chain(settings).map(|own| (name, own, save)));
        if name != "product" {
            let along = Parameters::from([("along".to_owned(), name.into())]);
            named.push(("product", along, save));
        }
    }
    let slow = named.into_par_iter().filter_map(|(name, own, save)| {
        let choice = exchange.priced(name, &own).ok()??;
        let time = choice.price.time.total();
        (time < answer * (1.0 - save)).then(|| (time / answer, format!("{name} {own:?}")))
    });
    slow.min_by(|a, b| a.0.total_cmp(&b.0))
}

/// Sides of at most that many vertices in all.
fn sides(random: &mut fastrand::Rng, most: u32) -> Vec<u32> {
    let (mut left, mut sides) = (most, Vec::new());
    while sides.len() < 3 && left >= 2 && (sides.is_empty() || random.u32(0..4) > 0) {
        let side = random.u32(2..=left.min(if sides.is_empty() { 16 } else { 8 }));
        left /= side;
        sides.push(side);
    }
    random.shuffle(&mut sides);
    sides
}

/// Numbers with a separator.
fn joined(numbers: &[u32], separator: &str) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(separator)
}

/// A torus, a mesh or one of both kinds of sides.
fn grid(random: &mut fastrand::Rng, most: u32) -> String {
    let sides = sides(random, most);
    match random.u32(0..7) {
        0..3 => format!("torus:{}", joined(&sides, "x")),
        3..6 => format!("mesh:{}", joined(&sides, "x")),
        _ => {
            let wrap = |side: &u32| format!("{side}{}", if random.bool() { "~" } else { "" });
            format!("grid:{}", sides.iter().map(wrap).collect::<Vec<_>>().join("x"))
        }
    }
}

/// A grid without some of its nodes and links.
fn broken(random: &mut fastrand::Rng, most: u32) -> String {
    let sides = sides(random, most);
    let mut text = format!("{}:{}", ["torus", "mesh"][random.usize(0..2)], joined(&sides, "x"));
    for _ in 0..random.u32(1..=3) {
        let node: Vec<u32> = sides.iter().map(|&side| random.u32(0..side)).collect();
        text += &format!("/{}", joined(&node, ","));
        if random.bool() {
            text += &format!("+{}", random.usize(0..sides.len()));
        }
    }
    text
}

/// Some ranks on each of some nodes.
fn sizes(random: &mut fastrand::Rng, nodes: u32) -> String {
    joined(&(0..nodes).map(|_| random.u32(1..=4)).collect::<Vec<_>>(), ",")
}

/// A machine of at most that many ranks: a grid in 6 cases of 10. None where one that is broken falls apart.
pub(crate) fn drawn(random: &mut fastrand::Rng, most: u32) -> Option<Machine> {
    let nodes = random.u32(2..=most / 4);
    let text = match random.u32(0..20) {
        0..12 => grid(random, most),
        12 => format!("hypercube:{}", random.u32(1..=most.ilog2())),
        13 => match random.u32(0..3) {
            0 => format!("hyperx:{}", joined(&sides(random, most), "x")),
            1 => format!("twisted-torus:2x{}", random.u32(3..=most / 2)),
            _ => format!("full:{}", random.u32(2..=most)),
        },
        14 => match random.u32(0..3) {
            0 => return drawn_graphs().into_iter().nth(random.usize(0..20)),
            1 => format!("dragonfly:1,2,{}", random.u32(1..=most / 12)),
            _ => format!("fat-tree:{},{},{}", nodes.min(4), random.u32(1..=3), random.u32(1..=2)),
        },
        15 => match random.bool() {
            true => format!("cluster:{nodes}*{}", random.u32(2..=4)),
            false => format!("cluster:{}", sizes(random, nodes)),
        },
        16 | 17 => format!("{}*{}", grid(random, most / 2), 2),
        _ => broken(random, most),
    };
    machine(&text).ok()
}

/// An algorithm that is faster than the answer, on a machine that is drawn.
fn faster(seed: u64, most: u32) -> Option<String> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut machine = drawn(&mut random, most).filter(|machine| machine.ranks() > 1)?;
    let all = machine.ranks() - 1;
    let ports = [1, 2, 3, 4, 6, all][random.usize(0..6)].min(all);
    machine.set_ports(ports);
    let operation =
        if random.u32(0..4) == 0 { Collective::AllGather } else { Collective::AllToAll };
    let up_to = 1 << random.u32(0..=20);
    let block_bytes = if random.bool() { up_to } else { random.u64(1..=up_to) };
    let problem = Problem::new(operation, machine.ranks(), machine.ports, block_bytes).unwrap();
    let answer = time(&select(&machine, &problem));
    let (ratio, faster) = fastest(&exchange(&machine, &problem), answer)?;
    let name = &machine.name;
    Some(format!(
        "{name} {operation:?} {ports} ports {block_bytes} B: {faster} takes {ratio} times"
    ))
}

#[test]
fn no_algorithm_by_name_is_faster_than_the_answer() {
    let (cases, most) = reach((200, 24), (1000, 128));
    let beaten: Vec<_> = (0..cases).into_par_iter().filter_map(|seed| faster(seed, most)).collect();
    assert!(beaten.is_empty(), "{}", beaten.join("\n"));
}

/// Settings that differ at one block size may be one schedule at another.
#[test]
fn concat_serves_blocks_of_few_bytes() {
    let mut machine = machine("mesh:9x7").unwrap();
    machine.set_ports(3);
    for block_bytes in 1..=4 {
        let problem =
            Problem::new(Collective::AllGather, machine.ranks(), machine.ports, block_bytes)
                .unwrap();
        let answer = time(&select(&machine, &problem));
        assert_eq!(fastest(&exchange(&machine, &problem), answer), None, "{block_bytes} B");
    }
}

#[test]
fn searches_win_on_whole_grids() {
    const CASES: [(&str, u32, f64); 8] = [
        ("torus:4x4x4", 1, 66.13e-3),
        ("torus:4x4x4", 2, 36.74e-3),
        ("torus:2x4", 2, 4.20e-3),
        ("torus:4", 2, 2.099e-3),
        ("torus:2x4x4", 1, 32.54e-3),
        ("torus:4x4", 1, 15.75e-3),
        ("torus:2x4", 1, 7.35e-3),
        ("torus:6", 1, 5.25e-3),
    ];
    for (text, ports, seconds) in CASES {
        let found = time(&on(&with_ports(text, ports), Collective::AllToAll, 1 << 20));
        assert!(found <= seconds * 1.0005, "{text} {ports}: {found}");
    }
    let found = time(&on(&with_ports("mesh:3x3", 2), Collective::AllGather, 1 << 20));
    assert!(found <= 5.2485e-3, "{found}");
}

/// Whether all ranks do the same in two schedules.
fn does_the_same(one: &Schedule, other: &Schedule) -> bool {
    let (mut does, mut others) = (Step::default(), Step::default());
    let mut same = |step: u32, rank: u32| {
        one.rule().step(Rank(rank), step, &mut does);
        other.rule().step(Rank(rank), step, &mut others);
        does == others
    };
    let (steps, ranks) = (one.rule().steps(), one.problem.ranks);
    steps == other.rule().steps() && (0..steps).all(|step| (0..ranks).all(|rank| same(step, rank)))
}

#[test]
fn no_product_is_a_candidate_twice() {
    let product = find("product").unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..reach(40, 200) {
        let machine = machine(&grid(&mut random, 48)).unwrap();
        let ports = random.u32(1..=4).min(machine.ranks() - 1);
        let problem = Problem::new(Collective::AllToAll, machine.ranks(), ports, 64).unwrap();
        let request = Request::new(&problem, &*machine.topology);
        let (named, others): (Vec<_>, Vec<_>) = (request.solutions(product))
            .map(|solution| solution.schedule)
            .partition(|schedule| schedule.origin.parameters.contains_key("along"));
        for (place, schedule) in named.iter().enumerate() {
            let is_twice = |other: &&Schedule| {
                let together = |one: &Schedule| one.origin.parameters.get("together").cloned();
                together(schedule) == together(other) && does_the_same(schedule, other)
            };
            let before = named[..place].iter().chain(&others).find(is_twice);
            let settings = before.map(|other| (&schedule.origin, &other.origin));
            assert!(settings.is_none(), "{} {ports} ports: {settings:?}", machine.name);
        }
    }
}
