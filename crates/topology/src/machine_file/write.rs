//! Machines as machine files.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use toml::Value;

use super::MOST_BYTES;
use crate::error::SpecError;
use crate::text::printable;
use crate::topology::clusters::LISTED;
use crate::units::{parse_bytes_per_second, parse_seconds, parse_seconds_per_byte};
use crate::{
    Barrier, Capacity, Contention, Endpoint, Graph, Injection, LinkId, LinkKind, Machine, OnGrid,
    PerClass, Rank, Rendezvous, Shape, Ties, Topology,
};

/// The machine file of a machine, which reads back to the same machine: equal links, routes and values. Values
/// that have no source say that they are assumed.
///
/// # Errors
/// A file that would be longer than any that is read.
pub fn write_file(machine: &Machine) -> Result<String, SpecError> {
    let network = match machine.topology.network() {
        Shape::Graph(graph) if is_listed(graph) => Some(graph),
        _ => None,
    };
    let source = |key: &str| quoted(machine.source(key).unwrap_or("assumed"));
    let mut out = String::new();
    for clause in machine.assumed.iter().flat_map(|assumed| assumed.split("; ")) {
        out += &format!("# Also assumed: {}\n", printable(clause));
    }
    let entry = |key: &str, value: &str| {
        format!("{key} = {{ value = {value}, source = {} }}\n", source(key))
    };
    let title = machine.source("title").map_or_else(|| machine.name.clone(), str::to_owned);
    let form = machine.topology.short_form();
    let (shape, table) = match network {
        Some(graph) => {
            let sizes = form.strip_prefix(&*graph.short_form()).unwrap_or_default();
            (format!("network{sizes}"), route_table(graph)?)
        }
        None => (form.clone(), None),
    };
    let shape = shape.replacen(LISTED, "", 1);
    out += &entry("shape", &quoted(&shape));
    if let Some(table) = &table {
        out += &format!("routes = {{ value = {}, source = {} }}\n", quoted(table), source("shape"));
    }
    if let Some(nodes) = placement(machine) {
        let nodes: String = nodes.iter().map(|node| format!("{node}\n")).collect();
        out += &entry("placement", &quoted(&nodes));
    }
    if let Shape::Grid(grid) = machine.topology.network()
        && grid.ties() == Ties::Balanced
    {
        out += &entry("ties", &quoted("balanced"));
    }
    let ports = machine.given_ports;
    let count = |ports: u32| if ports == u32::MAX { quoted("all") } else { ports.to_string() };
    out += &match ports.rank == ports.node {
        true => entry("ports", &count(ports.rank)),
        false => format!(
            "ports = {{ rank = {}, node = {}, source = {} }}\n",
            count(ports.rank),
            count(ports.node),
            source("ports")
        ),
    };
    let mut out = format!("title = {}\n{out}", quoted(&title));
    if let Some(graph) = network {
        out += &format!("\n[network]\nsource = {}\n", source("network"));
        write_links(&mut out, graph)?;
    }
    write_timing(&mut out, machine, &entry);
    if machine.endpoint != Endpoint::default() {
        write_endpoint(&mut out, &machine.endpoint, &entry);
    }
    if out.len() > MOST_BYTES {
        return Err(too_long());
    }
    Ok(out)
}

/// The node of each rank, or of each node of a placed grid, if they are listed.
fn placement(machine: &Machine) -> Option<Vec<u32>> {
    match (machine.topology.shape(), machine.topology.network()) {
        (Shape::Clustered(clusters), _) if clusters.is_placed() => clusters.placement(),
        (_, Shape::Graph(graph)) if graph.form.ends_with(LISTED) => {
            graph.on_grid().map(|OnGrid { nodes, .. }| nodes.to_vec())
        }
        _ => None,
    }
}

/// A key, a value and its source as a line.
type Entry<'a> = &'a dyn Fn(&str, &str) -> String;

/// Whether a graph has no short form but that of a file.
fn is_listed(graph: &Graph) -> bool {
    graph.form.starts_with("network") || graph.form.starts_with("graph:")
}

fn too_long() -> SpecError {
    format!("the machine file would be longer than {MOST_BYTES} bytes, the limit of machine files")
        .into()
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The names of all vertices, each once; in a table of routes a name has no blanks.
fn names(graph: &Graph) -> Vec<String> {
    let mut seen = HashSet::new();
    let unique = |vertex: u32| {
        let mut name = graph.vertex_name(vertex);
        if !graph.routes.are_of_links() {
            name = name.replace(|letter: char| letter.is_whitespace() || letter == '#', "_");
        }
        if name.is_empty() || seen.contains(&name) {
            name = format!("{name}_{vertex}");
        }
        while !seen.insert(name.clone()) {
            name.push('_');
        }
        name
    };
    (0..graph.vertices()).map(unique).collect()
}

/// The routes, unless links alone give them.
fn route_table(graph: &Graph) -> Result<Option<String>, SpecError> {
    if graph.routes.are_of_links() {
        return Ok(None);
    }
    let names = names(graph);
    let mut table = "source,destination,vertices\n".to_owned();
    let mut links = Vec::new();
    let field = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let pairs = (0..graph.nodes).flat_map(|from| (0..graph.nodes).map(move |to| (from, to)));
    for (from, to) in pairs.filter(|(from, to)| from != to) {
        links.clear();
        graph.own_links(Rank(from), Rank(to), &mut links);
        let (mut at, mut route) = (from, names[from as usize].clone());
        for &LinkId(link) in &links {
            let next = graph.links.to(link as usize);
            route += &format!(" {}", names[next as usize]);
            // Parallel links are in the order in which they are written.
            let order = |link: usize| (graph.links.kind(link).key(), link);
            let parallel = graph.links.leaving(at).filter(|&other| graph.links.to(other) == next);
            let parallel: Vec<_> = parallel.map(order).collect();
            if parallel.len() > 1 {
                let own = order(link as usize);
                route += &format!("#{}", parallel.iter().filter(|other| **other < own).count());
            }
            at = next;
        }
        let [from, to] = [from, to].map(|node| field(&names[node as usize]));
        let _ = writeln!(table, "{from},{to},{}", field(&route));
        if table.len() > MOST_BYTES {
            return Err(too_long());
        }
    }
    Ok(Some(table))
}

fn write_links(out: &mut String, graph: &Graph) -> Result<(), SpecError> {
    let names = names(graph);
    let nodes = graph.nodes as usize;
    for (key, names) in [("nodes", &names[..nodes]), ("switches", &names[nodes..])] {
        let names: Vec<_> = names.iter().map(|name| quoted(name)).collect();
        *out += &format!("{key} = [{}]\n", names.join(", "));
        if out.len() > MOST_BYTES {
            return Err(too_long());
        }
    }
    // Classes are numbered by first appearance.
    let mut links = BTreeMap::<_, (LinkKind, u32)>::new();
    for from in 0..graph.vertices() {
        for link in graph.links.leaving(from) {
            let (to, kind) = (graph.links.to(link), *graph.links.kind(link));
            links.entry((kind.class, from, to, kind.key())).or_insert((kind, 0)).1 += 1;
        }
    }
    let both_ways = links.iter().all(|(&(class, from, to, key), &(_, count))| {
        links.get(&(class, to, from, key)).is_some_and(|(_, back)| *back == count)
    });
    if !both_ways {
        *out += "directed = true\n";
    }
    *out += "links = [\n";
    for (&(class, from, to, _), (kind, count)) in &links {
        if both_ways && from > to {
            continue;
        }
        let [from, to] = [from, to].map(|vertex| quoted(&names[vertex as usize]));
        let class = quoted(&graph.classes[class as usize]);
        let _ = write!(out, "    {{ from = {from}, to = {to}, class = {class}");
        match kind.capacity {
            Capacity::CLASS => {}
            Capacity::Relative { times, over: 1 } => {
                let _ = write!(out, ", bandwidth = \"{times}x\"");
            }
            Capacity::Relative { times, over } => {
                let _ = write!(out, ", bandwidth = \"{times}/{over}x\"");
            }
            Capacity::BytesPerSecond(bandwidth) => {
                let is =
                    |text: &str| parse_bytes_per_second(text).is_ok_and(|read| read == bandwidth);
                let text = with_unit(bandwidth, BANDWIDTHS, is);
                let _ = write!(
                    out,
                    ", bandwidth = \"{}\"",
                    text.unwrap_or_else(|| format!("{bandwidth:e}B/s"))
                );
            }
        }
        if let Some(latency) = kind.latency {
            let _ = write!(out, ", latency = {}", seconds(latency));
        }
        if *count > 1 {
            let _ = write!(out, ", count = {count}");
        }
        *out += " },\n";
        if out.len() > MOST_BYTES {
            return Err(too_long());
        }
    }
    *out += "]\n";
    Ok(())
}

fn write_timing(out: &mut String, machine: &Machine, entry: Entry<'_>) {
    let timing = &machine.timing;
    let first = machine.first_class();
    // Classes without links are not in the file.
    let kinds = machine.topology.link_kinds();
    let is_used = |class: usize| {
        kinds.is_empty()
            || class < first
            || kinds.iter().any(|kind| first + kind.class as usize == class)
    };
    let per_class = |values: &PerClass, write: fn(f64) -> String| match values.values() {
        [one] => write(*one),
        all => {
            let used = all.iter().enumerate().filter(|(class, _)| is_used(*class));
            let used: Vec<_> = used.map(|(_, value)| write(*value)).collect();
            format!("[{}]", used.join(", "))
        }
    };
    let Barrier { fixed, per_doubling } = timing.barrier;
    let doubling = match per_doubling {
        0.0 => String::new(),
        each => format!(", per_doubling = {}", seconds(each)),
    };
    let mut values = vec![
        ("startup", per_class(&timing.startup, seconds)),
        ("per_byte", per_class(&timing.per_byte, per_byte)),
        ("per_hop", per_class(&timing.per_hop, seconds)),
        ("rearrangement", per_byte(timing.rearrangement_per_byte)),
        ("barrier", seconds(fixed) + &doubling),
    ];
    if timing.gather {
        values.push(("gather", "true".to_owned()));
    }
    if !timing.injection.is_unlimited() {
        let Injection { rank, node } = timing.injection;
        values.push(("injection", format!("[{}, {}]", per_byte(rank), per_byte(node))));
    }
    if timing.per_block > 0.0 {
        values.push(("per_block", seconds(timing.per_block)));
    }
    if timing.contention != Contention::default() {
        let Contention { alone, several } = timing.contention;
        values.push(("contention", format!("[{alone:?}, {several:?}]")));
    }
    *out += "\n[timing]\n";
    if timing.rendezvous.time > 0.0 {
        let Rendezvous { above, time } = timing.rendezvous;
        let source = quoted(machine.source("rendezvous").unwrap_or("assumed"));
        let (above, time) = (quoted(&above.to_string()), seconds(time));
        *out += &format!("rendezvous = {{ above = {above}, time = {time}, source = {source} }}\n");
    }
    for (key, value) in values {
        *out += &entry(key, &value);
    }
}

fn write_endpoint(out: &mut String, endpoint: &Endpoint, entry: Entry<'_>) {
    let all =
        |limit: Option<u64>| limit.map_or_else(|| "all".to_owned(), |limit| limit.to_string());
    *out += "\n[endpoint]\n";
    for (key, value) in [
        ("window", quoted(&all(endpoint.window.map(u64::from)))),
        ("packet_bytes", quoted(&all(endpoint.packet_bytes))),
        ("packet_overhead", seconds(endpoint.packet_overhead)),
        ("message_overhead", seconds(endpoint.message_overhead)),
        ("order", quoted(&endpoint.order.to_string())),
        ("interleave", quoted(if endpoint.interleave { "on" } else { "off" })),
    ] {
        *out += &entry(key, &value);
    }
}

const BANDWIDTHS: &[(&str, f64)] =
    &[("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0)];
const DURATIONS: &[(&str, f64)] =
    &[("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("ps", 1e-12)];

/// A number and a unit whose text has the meaning that `is` accepts, from 1 or else short.
fn with_unit(amount: f64, units: &[(&str, f64)], is: impl Fn(&str) -> bool) -> Option<String> {
    let whole = units.iter().find(|(_, unit)| amount >= 0.999 * unit);
    let rounded = |(name, unit): &(&str, f64)| {
        Some(format!("{}{name}", (amount / unit * 1e6).round() / 1e6)).filter(|text| is(text))
    };
    let exact = |(name, unit): &(&str, f64)| {
        Some(format!("{}{name}", amount / unit)).filter(|text| is(text))
    };
    let short = || units.iter().filter_map(rounded).min_by_key(String::len);
    whole.and_then(rounded).or_else(short).or_else(|| whole.and_then(exact))
}

fn seconds(value: f64) -> String {
    let is = |text: &str| parse_seconds(text).is_ok_and(|read| read == value);
    match value {
        0.0 => quoted("0"),
        value => quoted(&with_unit(value, DURATIONS, is).unwrap_or_else(|| format!("{value:e}s"))),
    }
}

fn per_byte(value: f64) -> String {
    let is = |text: &str| parse_seconds_per_byte(text).is_ok_and(|read| read == value);
    match with_unit(1.0 / value, BANDWIDTHS, is).filter(|_| value > 0.0) {
        Some(text) => quoted(&text),
        None => seconds(value),
    }
}

#[cfg(test)]
mod tests;
