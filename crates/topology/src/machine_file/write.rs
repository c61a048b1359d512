//! Machines as machine files.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use toml::Value;

use super::MOST_BYTES;
use crate::error::SpecError;
use crate::text::printable;
use crate::units::{parse_bytes_per_second, parse_seconds, parse_seconds_per_byte};
use crate::{
    Barrier, Capacity, Endpoint, Graph, Injection, LinkId, LinkKind, Machine, PerClass, Rank,
    Shape, Ties, Topology,
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
        None => (form, None),
    };
    out += &entry("shape", &quoted(&shape));
    if let Some(table) = &table {
        out += &format!("routes = {{ value = {}, source = {} }}\n", quoted(table), source("shape"));
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
    *out += "\n[timing]\n";
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
mod tests {
    use std::sync::Arc;

    use super::super::parse_file;
    use super::*;
    use crate::{ListedGraph, Ports, Timing, spec};

    /// What tells two machines apart, but for their names and what is assumed.
    fn all_of(machine: &Machine) -> String {
        let Machine { topology, given_ports, ports, timing, endpoint, .. } = machine;
        let mut routes = Vec::new();
        let links: Vec<_> = (0..topology.links())
            .map(|link| {
                let kind = topology.link_kinds().get(topology.link_kind(LinkId(link)));
                let class = topology.link_classes()[machine.class_of(LinkId(link))].clone();
                let ends = topology.link(LinkId(link)).map(|link| (link.from, link.to));
                let kind = kind.map(|kind| (kind.capacity, kind.latency));
                (ends, topology.link_name(LinkId(link)), class, kind)
            })
            .collect();
        if let Shape::Graph(graph) = topology.network() {
            for (from, to) in (0..graph.nodes).flat_map(|a| (0..graph.nodes).map(move |b| (a, b))) {
                graph.own_links(Rank(from), Rank(to), &mut routes);
            }
        }
        let timing = Timing { name: String::new(), ..timing.clone() };
        let sizes: Vec<_> = match topology.shape() {
            Shape::Clustered(nodes) => nodes.sizes().collect(),
            _ => vec![topology.ranks()],
        };
        format!("{sizes:?} {links:?} {routes:?} {given_ports:?} {ports:?} {timing:?} {endpoint:?}")
    }

    fn reads_back(machine: &Machine) -> String {
        let text = write_file(machine).unwrap_or_else(|error| panic!("{}: {error}", machine.name));
        let again = parse_file("again", &text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
        assert_eq!(all_of(&again), all_of(machine), "{text}");
        text
    }

    #[test]
    fn short_forms_read_back() {
        for form in [
            "full:8",
            "torus:4x4/1,1",
            "mesh:2x2*4,1,1,2",
            "cluster:2*4,2",
            "hypercube:3",
            "fat-tree:4,2,3/2*2",
            "dragonfly:2,4,2",
            "twisted-torus:4x8",
        ] {
            let mut machine = Machine::of(spec::parse_short_form(form).unwrap());
            let text = reads_back(&machine);
            assert!(text.contains(&format!("shape = {{ value = \"{form}\"")), "{text}");
            machine.timing.barrier = Barrier { fixed: -1.5e-6, per_doubling: 1e-6 };
            machine.timing.gather = true;
            machine.timing.injection = Injection { rank: 1.0 / 3e9, node: 0.0 };
            machine.endpoint.set("window", "3").unwrap();
            machine.endpoint.set("order", "random:7").unwrap();
            machine.set_ties(Ties::Balanced);
            machine.set_ports(Ports { rank: 2, node: u32::MAX });
            reads_back(&machine);
        }
    }

    /// Random networks of any values and names.
    #[test]
    fn networks_read_back() {
        let mut random = fastrand::Rng::with_seed(57);
        let names = ["a", "a", "", "b c", "\u{1b}", "\"", "'''", "\u{1f980}", "\\", "x,y", "1"];
        for _ in 0..400 {
            let (nodes, switches) = (random.u32(1..7), random.u32(0..4));
            let (vertices, classes) = (nodes + switches, random.u32(1..4));
            let kind = |random: &mut fastrand::Rng| LinkKind {
                capacity: match random.u8(..4) {
                    0 => Capacity::CLASS,
                    1 => Capacity::Relative { times: random.u32(1..9), over: random.u32(1..9) }
                        .lowest(),
                    2 => Capacity::BytesPerSecond(random.f64() * 1e12 + 1.0),
                    _ => Capacity::BytesPerSecond(f64::from(random.u32(1..100)) * 1e9),
                },
                latency: random.bool().then(|| random.f64() * 1e-5),
                ..LinkKind::of_class(random.u32(..classes))
            };
            let one_way = random.u8(..4) == 0;
            let mut links = Vec::new();
            for to in 1..vertices {
                let (from, kind) = (random.u32(..to), kind(&mut random));
                links.extend([(from, to, kind), (to, from, kind)]);
            }
            for _ in 0..random.u32(..6) {
                let (from, to) = (random.u32(..vertices), random.u32(..vertices));
                let kind = kind(&mut random);
                if from != to {
                    links.push((from, to, kind));
                    links.extend((!one_way).then_some((to, from, kind)));
                }
            }
            links.sort_by_key(|(from, to, kind)| (*from, *to, kind.key()));
            let listed = ListedGraph {
                form: "network".to_owned(),
                nodes,
                switches,
                names: (0..vertices)
                    .map(|_| names[random.usize(..names.len())].to_owned())
                    .collect(),
                classes: (0..classes).map(|class| format!("class {class}")).collect(),
                links,
            };
            let graph = listed.with_shortest_routes().unwrap();
            let names = super::names(&graph);
            let is_used = |class| graph.links.kinds().iter().any(|kind| kind.class == class);
            let all_used = (0..classes).all(is_used);
            let mut topology: Arc<dyn Topology> = Arc::new(Graph { names, ..graph });
            if random.bool() {
                let groups = [(nodes, random.u32(2..4))];
                topology = Arc::new(crate::Clusters::on(topology, &groups).unwrap());
            }
            let machine = Machine::of(topology);
            match all_used {
                true => drop(reads_back(&machine)),
                false => drop(parse_file("again", &write_file(&machine).unwrap()).unwrap()),
            }
        }
    }

    /// By pair of nodes the seconds of a byte on each link of the route, and its loads by pairs of vertices.
    fn routes(machine: &Machine) -> (Vec<Vec<(u32, u32, f64)>>, BTreeMap<(u32, u32), Vec<u32>>) {
        let Shape::Graph(graph) = machine.topology.network() else { panic!("a graph") };
        let (mut routes, mut loads) = (Vec::new(), vec![0; graph.links.count()]);
        for (from, to) in (0..graph.nodes).flat_map(|a| (0..graph.nodes).map(move |b| (a, b))) {
            let mut links = Vec::new();
            graph.own_links(Rank(from), Rank(to), &mut links);
            let mut link = |link: LinkId| {
                loads[link.0 as usize] += from * graph.nodes + to;
                let ends = graph.link(link).unwrap();
                (ends.from, ends.to, machine.seconds_per_byte(link))
            };
            routes.push(links.into_iter().map(&mut link).collect());
        }
        let mut by_ends = BTreeMap::<_, Vec<_>>::new();
        for (link, load) in loads.into_iter().enumerate() {
            let ends = (graph.links.from(link), graph.links.to(link));
            by_ends.entry(ends).or_default().push(load);
        }
        by_ends.values_mut().for_each(|loads| loads.sort_unstable());
        (routes, by_ends)
    }

    #[test]
    fn routes_of_their_own_are_a_table() {
        let platform = |topology: &str, parameters: &str, hosts: u32| {
            let text = format!(
                "<platform><cluster topology='{topology}' radical='0-{}' bw='1GBps' lat='1us' \
                 topo_parameters='{parameters}'/></platform>",
                hosts - 1
            );
            crate::files::read("platform", &text).unwrap()
        };
        for machine in [
            platform("FAT_TREE", "2;4,2;1,2;1,1", 8),
            platform("FAT_TREE", "2;4,4;1,2;1,2", 16),
            platform("DRAGONFLY", "3,4;2,3;4,2;2", 48),
        ] {
            let text = write_file(&machine).unwrap();
            let again = parse_file("again", &text).unwrap();
            assert_eq!(routes(&again), routes(&machine), "{text}");
            assert_eq!(again.timing.per_hop, machine.timing.per_hop);
        }
        let large = write_file(&platform("FAT_TREE", "1;4000;1;1", 4000)).unwrap_err().message;
        assert!(large.contains("longer than 1048576 bytes"), "{large}");
        let text = write_file(&platform("FAT_TREE", "2;4,4;1,2;1,2", 16)).unwrap();
        let refused = parse_file("again", &text.replacen("#1", "#2", 1)).unwrap_err().message;
        assert!(refused.contains("link 2 of 2 from"), "{refused}");
    }
}
