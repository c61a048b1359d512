//! Equal machines have equal answers, and no better machine has a slower one. Times are those in step.

use std::sync::Arc;

use common::{as_listed, find, on, reach, time, with_ports};
use rayon::prelude::*;
use topocoll::{
    Collective, Grid, Machine, Parameters, PerClass, Problem, Request, Selection, machine, spec,
};

/// Rounding.
const ROUNDED: f64 = 1e-9;
/// What graphs in two orders may differ by.
const LITTLE: f64 = 0.05;
/// Graphs that differ by more: of more ranks than those of which other orders are tried, or of 80 ports, for
/// which the budget does not reach all schedules.
const LARGER: [(&str, f64); 2] = [("fat-tree:4,4", 0.6), ("fat-tree:3,4", 2.0)];
/// What a search may save that is not worth it.
const NOT_WORTH: f64 = 0.02;

/// What a better answer may be slower by: searches are run where they may save more than a little.
fn tolerance(machine: &Machine, problem: &Problem, selection: &Selection) -> f64 {
    let best = selection.best().unwrap();
    let (algorithm, request) =
        (find(&best.algorithm).unwrap(), Request::new(problem, &*machine.topology));
    let searched = [&Parameters::new(), &best.parameters].map(|own| request.search(algorithm, own));
    if searched.iter().any(Option::is_some) { NOT_WORTH } else { ROUNDED }
}

/// A question: machine, operation, bytes of a block.
type Asked = (Machine, Collective, u64);

/// The best time, what equal ones may differ by, and the answer for messages.
fn answer((machine, operation, block_bytes): &Asked) -> (f64, f64, String) {
    let selection = on(machine, *operation, *block_bytes);
    let problem = Problem::new(*operation, machine.ranks(), machine.ports, *block_bytes).unwrap();
    let best = selection.best().unwrap();
    let text = format!(
        "{} {operation:?} {} ports {block_bytes} B: {} {:?} {}",
        machine.name,
        machine.ports,
        best.algorithm,
        best.parameters,
        best.price.time.total()
    );
    (time(&selection), tolerance(machine, &problem, &selection), text)
}

/// Why the first answer is slower than the second, if it is.
fn slower(better: &Asked, than: &Asked) -> Option<String> {
    let ((own, own_tolerance, text), (other, tolerance, of_other)) = (answer(better), answer(than));
    let most = other * (1.0 + own_tolerance.max(tolerance));
    (own > most).then(|| format!("{:.4} times:\n{text}\n{of_other}\n", own / other))
}

fn unequal(one: &Asked, other: &Asked) -> Option<String> {
    slower(one, other).or_else(|| slower(other, one))
}

/// Why the first answer is slower than the second by more than a part, if it is.
fn slower_by(one: &Asked, than: &Asked, part: f64) -> Option<String> {
    let ((own, _, text), (other, _, of_other)) = (answer(one), answer(than));
    let ratio = own / other;
    (ratio > 1.0 + part).then(|| format!("{ratio:.4} times:\n{text}\n{of_other}\n"))
}

/// Checks drawn cases.
fn check(cases: u64, case: impl Fn(&mut fastrand::Rng) -> Option<String> + Sync) {
    let drawn = |seed| case(&mut fastrand::Rng::with_seed(seed));
    let wrong: Vec<String> = (0..cases).into_par_iter().filter_map(drawn).collect();
    assert!(wrong.is_empty(), "{} of {cases} cases:\n{}", wrong.len(), wrong.concat());
}

/// A random question about a machine: ports, operation and block size are drawn.
fn asked(random: &mut fastrand::Rng, machines: Vec<Machine>) -> Vec<Asked> {
    let all = machines[0].ranks() - 1;
    let ports = [1, 1, 2, 3, 4, 6, all][random.usize(0..7)].min(all);
    let operation =
        if random.u32(0..3) == 0 { Collective::AllGather } else { Collective::AllToAll };
    let block_bytes = 1 << random.u32(6..=20);
    let with = |mut machine: Machine| {
        machine.set_ports(ports);
        (machine, operation, block_bytes)
    };
    machines.into_iter().map(with).collect()
}

/// A side, whether it wraps, and the startup, bandwidth and latency of its links against the first.
type Side = (u32, bool, [f64; 3]);

fn grid(sides: &[Side]) -> Machine {
    let (lengths, wrap): (Vec<u32>, Vec<bool>) = sides.iter().map(|side| (side.0, side.1)).unzip();
    let mut machine = Machine::of(Arc::new(Grid::new(&lengths, &wrap).unwrap()));
    let each = |which: usize, value: f64| {
        let values: Vec<f64> = sides.iter().map(|side| value * side.2[which]).collect();
        PerClass::each(&values)
    };
    machine.timing.startup = each(0, 1e-6);
    machine.timing.per_byte = each(1, 1e-9);
    machine.timing.per_hop = each(2, 50e-9);
    machine
}

/// A torus, a mesh, or a mixed grid; in 1 case of 3 with values for each dimension.
fn drawn(random: &mut fastrand::Rng, most: u32) -> Vec<Side> {
    let (kind, values) = (random.u32(0..3), random.u32(0..3) == 0);
    let (mut left, mut sides) = (most, Vec::new());
    while left >= 2 && sides.len() < 4 && (sides.len() < 2 || random.bool()) {
        let side = random.u32(2..=left.min(8));
        left /= side;
        let wraps = if kind == 2 { random.bool() } else { kind == 1 };
        let own = [(); 3].map(|()| f64::from(random.u32(1..4)));
        sides.push((side, wraps, if values { own } else { [1.0; 3] }));
    }
    sides
}

#[test]
fn the_order_of_sides_does_not_matter() {
    let (cases, most) = reach((30, 20), (1500, 32));
    check(cases, |random| {
        let sides = drawn(random, most);
        let mut other = sides.clone();
        random.shuffle(&mut other);
        // A side of 1 changes nothing.
        if random.u32(0..4) == 0 {
            other.insert(random.usize(0..=other.len()), (1, random.bool(), [1.0; 3]));
        }
        let asked = asked(random, vec![grid(&sides), grid(&other)]);
        unequal(&asked[0], &asked[1])
    });
}

/// Forms of one machine.
fn forms(random: &mut fastrand::Rng) -> Vec<Machine> {
    let n = random.u32(2..=4);
    let joined = |side: &str, times: u32| vec![side; times as usize].join("x");
    let (twos, fours) = (joined("2", n), joined("4", n / 2));
    let texts = match random.u32(0..4) {
        0 if n % 2 == 0 => {
            vec![format!("hypercube:{n}"), format!("mesh:{twos}"), format!("torus:{fours}")]
        }
        0 => vec![format!("hypercube:{n}"), format!("mesh:{twos}")],
        1 => vec![format!("cluster:{}*1", 5 * n), format!("full:{}", 5 * n)],
        2 => vec![format!("hyperx:{}", 5 * n), format!("full:{}", 5 * n)],
        _ => vec![format!("torus:{n}x1x3"), format!("torus:{n}x3"), format!("torus:3x{n}x1")],
    };
    let without_hops = |text: &String| {
        let mut machine = machine(text).unwrap();
        if text.starts_with("hyperx") || text.starts_with("full") {
            machine.timing.per_hop = PerClass::uniform(0.0);
        }
        machine
    };
    texts.iter().map(without_hops).collect()
}

#[test]
fn forms_of_one_machine_have_one_answer() {
    check(reach(12, 400), |random| {
        let forms = forms(random);
        let asked = asked(random, forms);
        asked.windows(2).find_map(|pair| unequal(&pair[0], &pair[1]))
    });
}

/// Lines of a graph of 3 to 16 nodes: first those that name its nodes in order, then the others.
fn lines(random: &mut fastrand::Rng) -> (Vec<String>, Vec<String>) {
    let nodes = random.u32(3..=16);
    let value = |random: &mut fastrand::Rng| [1, 1, 2][random.usize(0..3)];
    let first =
        (1..nodes).map(|to| format!("n{},n{to},{}GB/s\n", random.u32(0..to), value(random)));
    let first = first.collect();
    let others = (0..random.u32(2..3 * nodes)).map(|_| {
        let from = random.u32(0..nodes);
        let to = (from + random.u32(1..nodes)) % nodes;
        format!("n{from},n{to},{}GB/s\n", value(random))
    });
    (first, others.collect())
}

#[test]
fn the_order_of_the_lines_of_a_file_does_not_matter() {
    check(reach(12, 400), |random| {
        let (first, mut others) = lines(random);
        let machines = [(); 2].map(|()| {
            random.shuffle(&mut others);
            let head = "#undirected\nfrom,to,bandwidth\n".to_owned();
            let text: String = [head].iter().chain(&first).chain(&others).cloned().collect();
            let file = spec::parse_graph("lines", &text).unwrap();
            Machine::of(file)
        });
        let asked = asked(random, machines.into());
        unequal(&asked[0], &asked[1])
    });
}

/// A torus or mesh of two sides with one failure less, and with failed links that leave it connected.
fn failing(random: &mut fastrand::Rng) -> Vec<Machine> {
    let (a, b) = (random.u32(3..=5), random.u32(4..=5));
    let kind = if random.bool() { "torus" } else { "mesh" };
    let failures = ["/0,0+0", "/1,1+1", "/1,2+0"];
    let count = random.usize(1..=failures.len());
    let texts = [&failures[1..count], &failures[..count]].map(<[&str]>::concat);
    texts.map(|failures| machine(&format!("{kind}:{a}x{b}{failures}")).unwrap()).into()
}

#[test]
fn no_better_machine_is_slower() {
    let (cases, most) = reach((60, 16), (1500, 32));
    check(cases, |random| {
        let named = |text: String| vec![machine(&text).unwrap()];
        let machines = match random.u32(0..6) {
            0 => failing(random),
            1 => named(format!("full:{}", random.u32(2..=most))),
            2 => named(format!("cluster:{}*{}", random.u32(2..5), random.u32(2..5))),
            3 => named(format!("hypercube:{}", random.u32(1..=4))),
            _ => vec![grid(&drawn(random, most))],
        };
        let asked = asked(random, machines);
        let (worse, mut better) = (asked.last().unwrap(), asked[0].clone());
        if asked.len() == 1 {
            let timing = &mut better.0.timing;
            let halved = |values: &PerClass| {
                PerClass::each(&values.values().iter().map(|value| value / 2.0).collect::<Vec<_>>())
            };
            match random.u32(0..3) {
                0 => timing.per_byte = halved(&timing.per_byte),
                1 => timing.startup = halved(&timing.startup),
                _ => better.2 = (better.2 / random.u64(2..5)).max(1),
            }
        }
        slower(&better, worse)
    });
}

/// A file's machine.
fn of_file(name: &str, ports: u32) -> Machine {
    with_ports(&format!("graph:{}/inputs/{name}", env!("CARGO_MANIFEST_DIR")), ports)
}

/// A network by name: rings, lines, grids, stars, trees, dragonflies and HyperX networks.
fn named(random: &mut fastrand::Rng) -> String {
    let mut one = |from: u32, to: u32| random.u32(from..=to);
    match one(0, 7) {
        0 => format!("torus:{}", one(3, 16)),
        1 => format!("mesh:{}", one(3, 12)),
        2 => format!("torus:{}x{}", one(3, 6), one(3, 5)),
        3 => format!("mesh:{}x{}x{}", one(2, 3), one(2, 4), one(1, 2)),
        4 => format!("hyperx:{}x{}", one(3, 5), one(2, 4)),
        5 => format!("fat-tree:{},{}", one(2, 4), one(2, 4)),
        6 => format!("fat-tree:{},{},2", one(2, 3), one(2, 3)),
        _ => format!("dragonfly:{},{},1", one(1, 2), one(2, 3)),
    }
}

#[test]
fn the_order_of_the_vertices_of_a_graph_matters_little() {
    check(reach(4, 200), |random| {
        let machine = machine(&named(random)).unwrap();
        let orders = [false, true].map(|shuffles| as_listed(&machine, random, shuffles));
        let asked = asked(random, orders.into());
        let most = LARGER.iter().find(|(name, _)| *name == machine.name);
        let most = most.map_or(LITTLE, |&(_, most)| most);
        slower_by(&asked[0], &asked[1], most).or_else(|| slower_by(&asked[1], &asked[0], most))
    });
}

/// A file is not slower than a name. A name may be slower if rings of 4 and sides of 2 make it other grids too,
/// which are tried of files alone.
#[test]
fn a_grid_as_a_file_and_by_name_has_one_answer() {
    check(reach(24, 600), |random| {
        let sides = drawn(random, 24);
        let named = grid(&sides.iter().map(|side| (side.0, side.1, [1.0; 3])).collect::<Vec<_>>());
        let file = as_listed(&named, random, true);
        let asked = asked(random, vec![named, file]);
        let is_other = sides.iter().any(|&(side, wraps, _)| side == 2 || side == 4 && wraps);
        let by_file = slower_by(&asked[1], &asked[0], LITTLE);
        let by_name = || slower_by(&asked[0], &asked[1], if is_other { 0.15 } else { LITTLE });
        by_file.or_else(by_name)
    });
}

#[test]
fn a_slow_link_is_not_worse_than_none() {
    for (ports, block_bytes) in [(1, 64), (1, 1 << 10), (2, 1 << 10), (2, 1 << 20)] {
        for operation in [Collective::AllToAll, Collective::AllGather] {
            let asked = |name| (of_file(name, ports), operation, block_bytes);
            for slow in ["sp30.csv", "sp30000.csv"] {
                assert_eq!(slower(&asked(slow), &asked("spd30.csv")), None);
            }
        }
    }
    let (time, _, text) = answer(&(of_file("sp30.csv", 1), Collective::AllToAll, 1 << 10));
    assert!(time <= 14.92e-6, "{text}");
}

#[test]
fn equal_machines_reach_the_best_of_them() {
    const CASES: [(&[&str], u32, u64, f64); 6] = [
        (&["torus:2x8", "torus:8x2"], 4, 64, 4.526e-6),
        (&["mesh:4x6", "mesh:6x4"], 4, 64, 6.53e-6),
        (&["mesh:2x8", "mesh:8x2"], 1, 64 << 10, 2.1825e-3),
        (&["torus:2x3x5", "torus:3x5x2", "torus:5x2x3"], 1, 1 << 10, 59.94e-6),
        (&["torus:4x4"], 1, 64 << 10, 999.65e-6),
        (&["torus:4x4", "hypercube:4", "mesh:2x2x2x2"], 4, 4 << 10, 36.98e-6),
    ];
    for (machines, ports, block_bytes, most) in CASES {
        let asked = |text: &&str| {
            let machine = with_ports(text, ports);
            (machine, Collective::AllToAll, block_bytes)
        };
        let asked: Vec<_> = machines.iter().map(asked).collect();
        assert_eq!(asked.windows(2).find_map(|pair| unequal(&pair[0], &pair[1])), None);
        for one in &asked {
            let (time, _, text) = answer(one);
            assert!(time <= most, "{text}: {time}");
        }
    }
}
