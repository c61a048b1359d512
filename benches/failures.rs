//! The table of `docs/src/machines.md` on missing nodes and failed links: what every inequivalent failure of
//! some tori costs.
//!
//! `cargo bench --bench failures` takes single links, nodes, lines and optical switches of all machines, and
//! pairs of links of the smallest; `-- --pairs` pairs of links alone, of all machines. `-- torus:16x16`
//! and `-- --pairs torus:16x16` take the machines that they name. `-- --large` takes links, nodes and lines of
//! machines up to 4,096 nodes.
#![allow(clippy::print_stdout, reason = "the tables are the output")]

use std::collections::BTreeMap;
use std::time::Instant;

use rayon::prelude::*;
use topocoll::{
    Budget, Catalogue, Coordinates, Exchange, Fault, Graph, Lattice, Machine, Method, MixedRadix,
    NotApplicable, Parameters, Rank, Request, Setting, Shape, Solution, machine,
};

/// Machines, and a port for each link of a node.
const MACHINES: [(&str, u32); 4] =
    [("torus:4x4x4", 6), ("torus:8x4x4", 6), ("torus:16x16", 4), ("torus:8x8x8", 6)];

/// Machines on which only blocks that met failures move.
const LARGE: [(&str, u32); 3] = [("torus:32x32", 4), ("torus:8x16x16", 6), ("torus:16x16x16", 6)];

/// The machine whose pairs of links need no option.
const SMALLEST: &str = "torus:4x4x4";

/// The required limit: the volume over the bound, and the steps.
const MOST_RATIO: f64 = 1.15;
const MOST_STEPS: u64 = 20;

/// Bytes for reading a schedule.
const MEMORY: u128 = 4 << 30;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Link,
    Node,
    Line,
    OpticalSwitch,
    Pair,
}

const ALL: [Kind; 5] = [Kind::Link, Kind::Node, Kind::Line, Kind::OpticalSwitch, Kind::Pair];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Link => "a link",
            Self::Node => "a node",
            Self::Line => "a line",
            Self::OpticalSwitch => "an optical switch",
            Self::Pair => "two links",
        }
    }
}

/// A failure by its name in a short form, with what fails.
type Failed = (String, Vec<Fault>);

/// One of some equivalent failures, and the number of these.
struct Case {
    name: String,
    equivalent: usize,
}

/// A verified schedule.
struct Found {
    steps: u64,
    volume: f64,
    setting: String,
}

struct Row {
    case: Case,
    bound: f64,
    /// The schedule of the fewest steps, and that of the least volume in at most [`MOST_STEPS`].
    fewest: Found,
    least: Found,
}

impl Row {
    fn ratio(&self) -> f64 {
        self.least.volume / self.bound
    }
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let (options, names): (Vec<_>, Vec<_>) =
        given.iter().partition(|word| ["--pairs", "--large"].contains(&word.as_str()));
    let is_given = |option: &str| options.iter().any(|word| *word == option);
    let (pairs, large) = (is_given("--pairs"), is_given("--large"));
    let machines = if large { &LARGE[..] } else { &MACHINES[..] };
    let known: Vec<&str> = machines.iter().map(|(torus, _)| *torus).collect();
    for name in &names {
        assert!(known.contains(&name.as_str()), "`{name}` is not one of {}", known.join(", "));
    }
    let mut summaries = Vec::new();
    for &(torus, ports) in machines {
        if names.is_empty() || names.iter().any(|name| *name == torus) {
            let kinds = ALL.iter().filter(|kind| match kind {
                Kind::Pair => torus == SMALLEST || pairs,
                Kind::OpticalSwitch => !pairs && !large,
                _ => !pairs,
            });
            summaries.extend(tables(torus, ports, kinds.copied()));
        }
    }
    println!(
        "\n| machine | without failures | failed | cases | bound | fewest steps | volume | least volume | steps | over the bound |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    summaries.iter().for_each(|line| println!("{line}"));
}

/// Prints the tables of a machine, and returns a summary of each.
fn tables(torus: &str, ports: u32, kinds: impl Iterator<Item = Kind>) -> Vec<String> {
    let start = Instant::now();
    let whole = with_ports(torus, ports);
    let Shape::Grid(grid) = whole.topology.shape() else { panic!("{torus} is not a torus") };
    let cases: Vec<(Kind, Case)> = kinds
        .flat_map(|kind| {
            let cases = inequivalent(grid.radix(), failures(torus, grid.radix(), kind));
            cases.into_iter().map(move |case| (kind, case))
        })
        .collect();
    let rings = Rings::new(&whole);
    let rows: Vec<(Kind, Row)> =
        cases.into_par_iter().map(|(kind, case)| (kind, row(torus, ports, &rings, case))).collect();
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "\n{torus}, {ports} ports; neighbour-rings without failures {}; {seconds:.0} s",
        rings.counts
    );
    let of_kind = rows.chunk_by(|(one, _), (next, _)| one == next);
    let summaries = of_kind.map(|rows| {
        let kind = rows[0].0.name();
        println!("\n| {kind} | equivalent | bound | fewest steps | by | least volume | over the bound | by |");
        println!("|---|---|---|---|---|---|---|---|");
        rows.iter().for_each(|(_, row)| println!("{}", shown(row)));
        let high = |row: &Row| row.ratio() > MOST_RATIO || row.least.steps > MOST_STEPS;
        for (_, row) in rows.iter().filter(|(_, row)| high(row)) {
            println!("Above the limit: {}", shown(row));
        }
        summary(&format!("`{torus}` | {}", rings.counts), kind, rows)
    });
    summaries.collect()
}

fn with_ports(text: &str, ports: u32) -> Machine {
    let mut machine = machine(text).expect("a machine");
    machine.set_ports(ports);
    machine
}

fn exchange(machine: &Machine) -> Exchange<'_> {
    let mut budget = Budget::default();
    budget.memory = MEMORY;
    Exchange::all_to_all(machine).expect("it has ranks").budget(budget)
}

fn graph(machine: &Machine) -> &Graph {
    let Shape::Graph(graph) = machine.topology.shape() else { panic!("a machine with failures") };
    graph
}

/// All failures of a kind.
fn failures(torus: &str, radix: &MixedRadix, kind: Kind) -> Vec<Failed> {
    let places = || {
        let nodes = (0..radix.ranks()).map(|node| (node, radix.coordinates(Rank(node))));
        nodes.flat_map(|(node, at)| (0..radix.dimensions()).map(move |u| (node, at.clone(), u)))
    };
    let text = |at: &Coordinates| at.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let named = |name: String| {
        let machine = machine(&format!("{torus}/{name}")).expect("a failure");
        let faults = graph(&machine).lattice().map(Lattice::faults).expect("a torus");
        (name, faults.to_vec())
    };
    match kind {
        Kind::Link => {
            let link = |(node, at, u): (u32, Coordinates, usize)| {
                let fault = Fault::Broken { node, dimension: u as u32 };
                (format!("{}+{u}", text(&at)), vec![fault])
            };
            places().map(link).collect()
        }
        Kind::Node => {
            let nodes = places().filter(|(_, _, u)| *u == 0);
            nodes.map(|(node, at, _)| (text(&at), vec![Fault::Absent { node }])).collect()
        }
        Kind::Line => {
            let lines = places().filter(|(_, at, u)| at[*u] == 0);
            lines.map(|(_, at, u)| named(format!("line:{}+{u}", text(&at)))).collect()
        }
        Kind::OpticalSwitch if radix.dimensions() != 3 => Vec::new(),
        Kind::OpticalSwitch => {
            let first = places().filter(|(_, at, u)| at[*u] == 0 && at.iter().all(|&at| at < 4));
            let switches =
                first.map(|(_, at, u)| named(format!("optical-switch:{}+{u}", text(&at))));
            // One of a single link is that link.
            switches.filter(|(_, faults)| faults.len() > 1).collect()
        }
        Kind::Pair => {
            let links = failures(torus, radix, Kind::Link);
            let pairs = links.iter().enumerate().flat_map(|(place, first)| {
                links[place + 1..].iter().map(move |second| {
                    (format!("{}/{}", first.0, second.0), [&first.1[..], &second.1].concat())
                })
            });
            pairs.collect()
        }
    }
}

/// One failure of each class that translations, reflections and exchanges of equal sides map onto each other.
fn inequivalent(radix: &MixedRadix, failures: Vec<Failed>) -> Vec<Case> {
    let symmetries = Symmetries::new(radix);
    let forms: Vec<_> =
        failures.par_iter().map(|(_, faults)| symmetries.canonical(radix, faults)).collect();
    let mut classes: BTreeMap<_, (usize, Case)> = BTreeMap::new();
    for (place, (form, (name, _))) in forms.into_iter().zip(failures).enumerate() {
        let new = || (place, Case { name, equivalent: 0 });
        classes.entry(form).or_insert_with(new).1.equivalent += 1;
    }
    let mut classes: Vec<(usize, Case)> = classes.into_values().collect();
    classes.sort_by_key(|(place, _)| *place);
    classes.into_iter().map(|(_, case)| case).collect()
}

/// The symmetries of a torus.
struct Symmetries {
    /// Reflections and exchanges of dimensions: by node, its image.
    turns: Vec<Vec<u32>>,
    /// By two nodes, the image of the second under the translation that maps the first to node 0.
    moved: Vec<Vec<u32>>,
}

impl Symmetries {
    fn new(radix: &MixedRadix) -> Self {
        let (sides, nodes) = (radix.sides(), || (0..radix.ranks()).map(Rank));
        let turns = orders(sides).into_iter().flat_map(|order| {
            (0..1 << sides.len()).map(move |reflected: u32| (order.clone(), reflected))
        });
        let turned = |(order, reflected): (Vec<usize>, u32)| {
            let image = |node| {
                let coordinate = |(v, &u): (usize, &usize)| match radix.coordinate(node, u) {
                    at if reflected >> v & 1 == 1 => (sides[v] - at) % sides[v],
                    at => at,
                };
                radix.rank(&order.iter().enumerate().map(coordinate).collect::<Vec<_>>()).0
            };
            nodes().map(image).collect()
        };
        let moved = |first| {
            let image = |node| {
                let coordinate = |u: usize| {
                    (radix.coordinate(node, u) + sides[u] - radix.coordinate(first, u)) % sides[u]
                };
                radix.rank(&(0..sides.len()).map(coordinate).collect::<Vec<_>>()).0
            };
            nodes().map(image).collect()
        };
        Self { turns: turns.map(turned).collect(), moved: nodes().map(moved).collect() }
    }

    /// The least image under all symmetries, of those with node 0 among the ends.
    fn canonical(&self, radix: &MixedRadix, faults: &[Fault]) -> Vec<[u32; 2]> {
        let ends: Vec<[u32; 2]> = faults.iter().map(|fault| ends(radix, fault)).collect();
        let mut least: Option<Vec<[u32; 2]>> = None;
        let mut image = Vec::new();
        for turn in &self.turns {
            for first in ends.as_flattened() {
                let moved = &self.moved[turn[*first as usize] as usize];
                image.clear();
                image.extend(ends.iter().map(|ends| {
                    let mut ends = ends.map(|node| moved[turn[node as usize] as usize]);
                    ends.sort_unstable();
                    ends
                }));
                image.sort_unstable();
                if least.as_ref().is_none_or(|least| image < *least) {
                    least = Some(image.clone());
                }
            }
        }
        least.expect("a failure of a node or link")
    }
}

/// The nodes at the ends of a failed link, which name it on sides of three or more; twice a failed node.
fn ends(radix: &MixedRadix, fault: &Fault) -> [u32; 2] {
    match *fault {
        Fault::Absent { node } => [node, node],
        Fault::Broken { node, dimension } => {
            [node, radix.shifted(Rank(node), dimension as usize, 1).0]
        }
        _ => panic!("a fault of another kind"),
    }
}

/// The orders of dimensions that keep the sides.
fn orders(sides: &[u32]) -> Vec<Vec<usize>> {
    let mut orders = vec![Vec::new()];
    for side in sides {
        let longer = |order: Vec<usize>| {
            let next = (0..sides.len()).filter(|u| sides[*u] == *side && !order.contains(u));
            next.map(|u| [&order[..], &[u]].concat()).collect::<Vec<_>>()
        };
        orders = orders.into_iter().flat_map(longer).collect();
    }
    orders
}

/// The ends of the Pareto front of `neighbour-rings` on the machine without failures: the fewest steps, and the
/// least volume.
struct Rings {
    /// Steps/volume.
    counts: String,
    /// The settings of `repair`.
    repaired: Vec<Parameters>,
}

impl Rings {
    fn new(whole: &Machine) -> Self {
        let asked = [("neighbour-rings".to_owned(), Parameters::new())];
        let mut ends = exchange(whole).front(&asked).expect("an algorithm for tori").points;
        ends.drain(1..ends.len().max(2) - 1);
        let counts = ends
            .iter()
            .map(|choice| format!("{}/{}", choice.price.steps, volume(choice.price.link_blocks)));
        let counts = counts.collect::<Vec<_>>().join(", ");
        let repaired = ends.into_iter().map(|choice| {
            let own = choice.parameters.into_iter();
            let own = own.map(|(key, value)| (format!("of.{key}"), value));
            own.chain([("of".to_owned(), "neighbour-rings".into())]).collect()
        });
        Self { counts, repaired: repaired.collect() }
    }
}

fn row(torus: &str, ports: u32, rings: &Rings, case: Case) -> Row {
    let machine = with_ports(&format!("{torus}/{}", case.name), ports);
    let exchange = exchange(&machine);
    let solve =
        |name: &str, setting: &Parameters| exchange.solve(name, setting).expect("it applies");
    let all: Vec<Solution> = if LARGE.iter().any(|(large, _)| *large == torus) {
        let ranked = ranked(&exchange, "repair").expect("it is ranked");
        // Settings that cut too many pieces of blocks are refused.
        let solved = ranked.iter().map(|setting| exchange.solve("repair", setting));
        let refused = |error: &_| println!("refused on `/{}`: {error}", case.name);
        solved.filter_map(|solved| solved.inspect_err(refused).ok()).collect()
    } else {
        let repaired = rings.repaired.iter().map(|one| solve("repair", one));
        let forwarded = forwarding(&exchange);
        repaired.chain(forwarded.iter().map(|one| solve("store-and-forward", one))).collect()
    };
    let counts = |found: &&Solution| (found.claims.steps, found.claims.bytes);
    let fewest = all.iter().min_by_key(counts).expect("two algorithms");
    let least = all.iter().min_by_key(|found| {
        let (steps, bytes) = counts(found);
        (steps > MOST_STEPS, bytes, steps)
    });
    let least = least.expect("two algorithms");
    Row {
        case,
        bound: exchange.bounds().link_blocks,
        fewest: verified(&exchange, fewest),
        least: verified(&exchange, least),
    }
}

fn ranked(exchange: &Exchange<'_>, name: &str) -> Result<Vec<Parameters>, NotApplicable> {
    let (topology, catalogue) = (&*exchange.machine().topology, Catalogue::standard());
    let request = Request::new(exchange.problem(), topology);
    request.candidates(catalogue.find(name)?)
}

/// The settings of `store-and-forward` that are ranked; on machines of more than 256 ranks, where none is,
/// settings of about as many steps more than the fewest.
fn forwarding(exchange: &Exchange<'_>) -> Vec<Parameters> {
    let name = "store-and-forward";
    if let Ok(ranked) = ranked(exchange, name) {
        return ranked;
    }
    let default = exchange.solve(name, &Parameters::new()).expect("it applies");
    let Setting::Integer(most) = default.schedule.origin.parameters["link_blocks"] else {
        panic!("link_blocks is a number")
    };
    let steps = default.claims.steps;
    let fewer = [0, 1, 2, 4, 8].map(|more| (most * steps).div_ceil(steps + more));
    fewer.map(|blocks| Parameters::from([("link_blocks".to_owned(), blocks.into())])).into()
}

/// The counts of a schedule, which must deliver every block with the ports of the machine.
fn verified(exchange: &Exchange<'_>, found: &Solution) -> Found {
    let name = &exchange.machine().name;
    let proof = exchange.verify(&found.schedule, Some(Method::Replay)).expect("it fits");
    assert!(proof.violation.is_none(), "{name}: {:?}", proof.violation);
    assert_eq!(proof.counts.port_violations, 0, "{name}");
    let origin = &found.schedule.origin;
    let own = origin.parameters.iter().map(|(key, value)| format!(" {key}={value}"));
    Found {
        steps: proof.counts.steps,
        volume: proof.counts.in_blocks(proof.counts.link_bytes),
        setting: origin.algorithm.clone() + &own.collect::<String>(),
    }
}

fn shown(Row { case, bound, fewest, least }: &Row) -> String {
    format!(
        "| `/{}` | {} | {} | {}/{} | {} | {}/{} | {:.3} | {} |",
        case.name,
        case.equivalent,
        volume(*bound),
        fewest.steps,
        volume(fewest.volume),
        fewest.setting,
        least.steps,
        volume(least.volume),
        least.volume / bound,
        least.setting,
    )
}

fn summary(machine: &str, kind: &str, rows: &[(Kind, Row)]) -> String {
    let range = |of: &dyn Fn(&Row) -> f64| {
        let values = rows.iter().map(|(_, row)| of(row));
        let (low, high) = (values.clone().fold(f64::MAX, f64::min), values.fold(0.0, f64::max));
        if low == high { volume(low) } else { format!("{}-{}", volume(low), volume(high)) }
    };
    format!(
        "| {machine} | {kind} | {} | {} | {} | {} | {} | {} | {:.3} |",
        rows.len(),
        range(&|row| row.bound),
        range(&|row| row.fewest.steps as f64),
        range(&|row| row.fewest.volume),
        range(&|row| row.least.volume),
        range(&|row| row.least.steps as f64),
        rows.iter().map(|(_, row)| row.ratio()).fold(0.0, f64::max),
    )
}

/// At most two decimals.
fn volume(blocks: f64) -> String {
    let text = format!("{blocks:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
