use std::io::Write as _;

use anyhow::Context;
use serde::Serialize;
use topocoll::{Machine, machine, shipped};
use topocoll_report::words::ports_of;

use crate::error::NO_OUTPUT;
use crate::render::{Answer, VERSION, print};
use crate::{Outcome, args};

#[derive(Serialize)]
struct Report {
    version: u32,
    machines: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    name: String,
    topology: String,
    ranks: u32,
    ports: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_ports: Option<u32>,
    title: String,
    sources: Vec<Source>,
}

/// Where a value of the machine file comes from.
#[derive(Serialize)]
struct Source {
    value: String,
    source: String,
}

pub(super) fn run(args: &args::Machines) -> anyhow::Result<Outcome> {
    if let Some(name) = &args.name {
        return file(name);
    }
    let machines = shipped().map(|(name, _)| Ok(entry(machine(name)?)));
    let machines = machines.collect::<Result<_, topocoll::Error>>()?;
    let report = Report { version: VERSION, machines };
    print(args.json, &report, || text(&report.machines))?;
    Ok(Outcome::Fine)
}

/// Prints the file of a shipped machine.
fn file(name: &str) -> anyhow::Result<Outcome> {
    let Some((_, text)) = shipped().find(|(known, _)| *known == name) else {
        machine(name)?;
        anyhow::bail!("`{name}` is not a shipped machine: `topocoll machines` lists them");
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context(NO_OUTPUT)?;
    Ok(Outcome::Fine)
}

fn entry(machine: Machine) -> Entry {
    let node_ports = machine.own_node_ports();
    let (titles, sources): (Vec<_>, Vec<_>) =
        machine.sources.into_iter().partition(|(value, _)| value == "title");
    Entry {
        topology: machine.topology.short_form(),
        ranks: machine.topology.ranks(),
        name: machine.name,
        ports: machine.ports.rank,
        node_ports,
        title: titles.into_iter().map(|(_, title)| title).collect(),
        sources: sources.into_iter().map(|(value, source)| Source { value, source }).collect(),
    }
}

/// A line of columns for each machine, and one with its title and the source of its bandwidth.
fn text(machines: &[Entry]) -> Answer {
    let names = machines.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let shapes = machines.iter().map(|entry| entry.topology.len()).max().unwrap_or(0);
    let mut out = String::new();
    for entry in machines {
        let Entry { name, topology, ranks, ports, node_ports, title, sources } = entry;
        let ports = ports_of(*ports, *node_ports);
        out += &format!("{name:names$}  {topology:shapes$}  {ranks:4} ranks  {ports}\n");
        let bandwidth = sources.iter().find(|source| source.value == "per_byte");
        let bandwidth = bandwidth.map_or("", |source| first_clause(&source.source));
        out += &format!("    {title}; bandwidth: {bandwidth}\n");
    }
    Answer::new(format!("{} machines are shipped.", machines.len()))
        .about("`topocoll machines NAME` prints a machine file, with the source of every value.")
        .notes(out)
}

/// A source up to its first colon or semicolon.
fn first_clause(source: &str) -> &str {
    source.split([':', ';']).next().unwrap_or(source)
}
