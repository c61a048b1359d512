//! Parsers on arbitrary bytes: they never panic, and accepted input has the meaning it states.
//! `tests/robustness/fuzz.rs` runs them on the corpora and alterations, `cargo fuzz` on new inputs.

use std::io::BufReader;

use sha2::{Digest as _, Sha256};
use topocoll::contention::{Job, Placed, Settings};
use topocoll::formats::{self, FORMATS, Reader, Target};
use topocoll::spec::read_nodes;
use topocoll::{
    Block, Catalogue, Collective, Demand, Drawn, Exchange, Machine, Measured, Parameters, Problem,
    Rank, Schedule, Setting, files, machine, spec, units, verify,
};
use topocoll_certificate::check;

/// A test of some bytes.
pub(crate) type Reads = fn(&[u8]);

/// Every target, named as its folder in `corpus`.
pub(crate) const TARGETS: [(&str, Reads); 8] = [
    ("machine", machine_text),
    ("schedule", schedule),
    ("traces", traces),
    ("certificate", certificate),
    ("demand", demand),
    ("placement", placement),
    ("settings", settings),
    ("measured", measured),
];

/// Memory limit of readers, in bytes.
const MEMORY: u128 = 64 << 20;

/// Machines for which files are read.
const SMALL: [&str; 6] = ["full:3", "full:4", "torus:2x2", "mesh:2x3", "cluster:2,1", "torus:4x4"];

fn small() -> impl Iterator<Item = Machine> {
    SMALL.iter().map(|form| machine(form).expect("a short form"))
}

/// Machine files of every kind, short forms and quantities.
pub(crate) fn machine_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for read in [spec::parse_file, files::read] {
        if let Ok(machine) = read("fuzz", text) {
            named(&machine);
        }
    }
    if let Ok(topology) = spec::parse_short_form(text) {
        named(&Machine::of(topology));
    }
    for quantity in [units::parse_seconds, units::parse_seconds_per_byte] {
        assert!(quantity(text).is_ok_and(f64::is_finite) || quantity(text).is_err());
    }
}

/// The short form of a machine names an equal machine, unless only its file has the links or the placement.
fn named(machine: &Machine) {
    assert!(machine.ranks() > 0 && machine.ports.rank > 0);
    let form = machine.topology.short_form();
    if form.starts_with("network") || form.contains(" placed") {
        return;
    }
    let again = spec::parse_short_form(&form).expect("a short form that was written");
    assert_eq!((again.ranks(), again.short_form()), (machine.ranks(), form));
}

/// Schedules in every format that is one file.
pub(crate) fn schedule(data: &[u8]) {
    let begins = String::from_utf8_lossy(&data[..data.len().min(4096)]).trim_start().to_owned();
    for machine in small() {
        let target = target(&machine);
        for format in FORMATS.iter().filter(|format| (format.knows)(&begins)) {
            if let Reader::File(read) = format.reader
                && let Ok(schedule) = read(&mut BufReader::new(data), &target)
            {
                looked_at(&schedule, &machine);
            }
        }
    }
    let _ = formats::jsonl::read_topology(&mut BufReader::new(data));
}

fn target(machine: &Machine) -> Target<'_> {
    Target::new(machine, MEMORY)
}

/// Every reader of an accepted schedule returns a result.
fn looked_at(schedule: &Schedule, machine: &Machine) {
    if !schedule.rule().names_blocks() {
        return;
    }
    if let Ok(found) = verify(schedule, machine, None, MEMORY)
        && found.violation.is_none()
    {
        let mut plans = (0..schedule.problem.ranks).map(Rank);
        assert!(plans.all(|rank| topocoll::exec::Plan::new(schedule, rank).is_ok()));
    }
}

/// SimGrid's traces: several files, separated by a line of three hyphens.
pub(crate) fn traces(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let names =
        ["traces.txt", "schedule.jsonl", "rank-0.txt", "rank-1.txt", "rank-2.txt", "rank-3.txt"];
    let mut rest = Some(data);
    for name in names {
        let Some(text) = rest else { break };
        let end = text.windows(5).position(|window| window == b"\n---\n");
        let (text, after) = end.map_or((text, None), |end| (&text[..end], Some(&text[end + 5..])));
        if !text.is_empty() {
            std::fs::write(folder.path().join(name), text).expect("a file");
        }
        rest = after;
    }
    for machine in small() {
        if let Ok(schedule) = formats::read(folder.path(), &target(&machine)) {
            looked_at(&schedule, &machine);
        }
    }
}

/// A certificate, and the same text with a correct digest.
pub(crate) fn certificate(data: &[u8]) {
    let _ = check(data);
    let end = data.windows(8).rposition(|window| window == b"\nsha256 ");
    let body = end.map_or(data, |end| &data[..=end]);
    let digest: String = Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect();
    let sealed = [body, format!("sha256 {digest}\n").as_bytes()].concat();
    if let Ok(proved) = check(&sealed) {
        let counts = proved.counts;
        let least = [proved.least_steps.into(), proved.least_bytes, proved.least_link_bytes];
        let found = [counts.steps, counts.bytes, counts.link_bytes];
        let below = found.iter().zip(least).any(|(found, least)| *found < least);
        assert!(!below || counts.port_violations > 0);
    }
}

/// Sizes of blocks, listed and drawn.
pub(crate) fn demand(data: &[u8]) {
    for machine in small() {
        for algorithm in ["direct", "ring"] {
            let operation = Catalogue::standard().find(algorithm).expect("a name").info().operation;
            let problem = Problem::new(operation, machine.ranks(), 1, 100).expect("a problem");
            let text = String::from_utf8_lossy(data);
            let drawn = text.parse::<Drawn>().ok().map(|drawn| Demand::drawn(&problem, drawn));
            for demand in
                Demand::read(&problem, data).ok().into_iter().chain(drawn.and_then(Result::ok))
            {
                let ranks = || (0..machine.ranks()).map(Rank);
                let bytes: u128 =
                    ranks().flat_map(|rank| demand.column(rank)).map(u128::from).sum();
                let rows = ranks().flat_map(|rank| demand.row(rank)).map(u128::from).sum::<u128>();
                assert!(bytes == rows || operation == topocoll::Collective::AllGather);
                assert!(demand.mean() > 0);
                let own = Block { from: Rank(0), to: Rank(0) };
                assert!(demand.bytes(own) <= topocoll::MAX_BLOCK_BYTES);
            }
        }
    }
}

/// Measured times of both operations.
pub(crate) fn measured(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for asked in [None, Some(Collective::AllToAll), Some(Collective::AllGather)] {
        if let Ok((measured, _)) = Measured::read(text, asked, 4) {
            assert!(measured.ranks.is_none_or(|ranks| ranks == 4) && !measured.rows.is_empty());
            let is_real = |seconds: f64| seconds > 0.0 && seconds.is_finite();
            assert!(measured.rows.iter().all(|row| row.1 > 0 && is_real(row.2)));
        }
    }
}

/// Placements of ranks on nodes.
pub(crate) fn placement(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(nodes) = read_nodes(text) else { return };
    for machine in small() {
        let problem =
            Problem::new(topocoll::Collective::AllToAll, machine.ranks(), 4, 8).expect("a problem");
        let schedule = Exchange::new(&machine, &problem)
            .and_then(|exchange| exchange.schedule("direct", &Parameters::new()));
        let schedule = schedule.expect("it serves everywhere");
        let job = Job { schedule, nodes: nodes.clone() };
        if let Ok(placed) = Placed::new(&machine, vec![job]) {
            assert!((0..machine.ranks()).all(|node| placed.on(Rank(node)).is_some()));
        }
    }
}

/// An algorithm's name and lines of `key=value`, for the algorithm and for the models.
pub(crate) fn settings(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.lines();
    let name = lines.next().unwrap_or_default();
    let given: Parameters = lines
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| {
            let text = || Setting::Text(value.to_owned());
            (key.to_owned(), value.parse().map_or_else(|_| text(), Setting::Integer))
        })
        .collect();
    let _ = Settings::from_parameters(&given);
    if let Ok(algorithm) = Catalogue::standard().find(name) {
        for machine in small() {
            let ports = machine.ports;
            let problem = Problem::new(algorithm.info().operation, machine.ranks(), ports, 8);
            let problem = problem.expect("a problem");
            let exchange = Exchange::new(&machine, &problem).expect("its ranks");
            let Ok(schedule) = exchange.schedule(name, &given) else { continue };
            let found = verify(&schedule, &machine, None, MEMORY).expect("small");
            assert_eq!(found.violation, None, "{name} {given:?} on {}", machine.name);
        }
    }
}
