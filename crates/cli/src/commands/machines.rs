use serde::Serialize;
use topocoll::spec::{Reading, write_file};
use topocoll::{Error, Machine, machine, shipped};
use topocoll_report::words::ports_of;

use crate::machine::named_machine;
use crate::render::{Answer, VERSION, print, print_text};
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
        return file(name, &args.open);
    }
    anyhow::ensure!(
        args.open.reading() == Reading::default(),
        "the list of machines takes no options of a file: name the file"
    );
    let machines = shipped().map(|(name, _)| Ok(entry(machine(name)?)));
    let machines = machines.collect::<Result<_, topocoll::Error>>()?;
    let report = Report { version: VERSION, machines };
    print(args.json, &report, || text(&report.machines))?;
    Ok(Outcome::Fine)
}

/// Prints the machine file of a machine; that of a shipped machine as it is.
fn file(name: &str, open: &args::Open) -> anyhow::Result<Outcome> {
    let shipped = shipped().find(|(known, _)| *known == name).map(|(_, text)| text.to_owned());
    let text = match shipped {
        Some(text) => text,
        None => write_file(&named_machine(name, open)?).map_err(Error::ShortForm)?,
    };
    print_text(&text)?;
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
        .about(
            "`topocoll machines NAME|FILE` prints a machine file, with the source of every value.",
        )
        .notes(out)
}

/// A source up to its first colon or semicolon.
fn first_clause(source: &str) -> &str {
    source.split([':', ';']).next().unwrap_or(source)
}
