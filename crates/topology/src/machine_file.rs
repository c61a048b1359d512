//! Machine files: TOML, every value with its source.

mod implementation;
mod network;
mod write;

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::{Spanned, Value};

use crate::error::SpecError;
use crate::graph_file::placed;
use crate::reading::{Reading, Source};
use crate::spec::placement::{self, read_nodes};
use crate::spec::{Faults, NodesOn, ranks_of_nodes};
use crate::text::printable;
use crate::units::{
    UnitError, parse_seconds, parse_seconds_per_byte, parse_signed_seconds, port_count,
};
use network::Network;
pub use write::write_file;

use crate::{
    Barrier, Endpoint, Graph, Injection, Machine, PerClass, Ports, Rank, Shape, Ties, Timing,
    Topology,
};

/// A machine file: every value has a source.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "version")]
    _version: Option<IgnoredAny>,
    title: Spanned<String>,
    shape: Entry<String>,
    network: Option<Network>,
    routes: Option<Entry<String>>,
    placement: Option<Entry<String>>,
    ties: Option<Entry<Ties>>,
    absent: Option<Entry<Vec<Spanned<String>>>>,
    broken: Option<Entry<Vec<Spanned<String>>>>,
    ports: PortsEntry,
    timing: TimingTable,
    #[serde(default)]
    endpoint: BTreeMap<String, Entry<Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TimingTable {
    startup: Entry<Value>,
    per_byte: Entry<Value>,
    per_hop: Entry<Value>,
    rearrangement: Entry<String>,
    barrier: BarrierEntry,
    gather: Option<Entry<bool>>,
    injection: Option<Entry<Value>>,
    per_block: Option<Entry<Value>>,
    rendezvous: Option<implementation::RendezvousEntry>,
    contention: Option<Entry<Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a value and its source, { value = .., source = \"..\" }")]
struct Entry<T> {
    value: Spanned<T>,
    source: Spanned<String>,
}

/// One value for a rank and a node, or one for each.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a value and its source, { value = .., source = \"..\" }")]
struct PortsEntry {
    value: Option<Spanned<Value>>,
    rank: Option<Spanned<Value>>,
    node: Option<Spanned<Value>>,
    source: Spanned<String>,
}

impl PortsEntry {
    fn ports(&self) -> Result<Ports, SpecError> {
        fn one(value: &Spanned<Value>) -> Result<u32, SpecError> {
            let text = text_of(value);
            port_count(&text).map_err(|error| at(value, format!("ports is {text}: {error}")))
        }
        match (&self.value, &self.rank, &self.node) {
            (Some(value), None, None) => one(value).map(Ports::from),
            (None, Some(rank), Some(node)) => Ok(Ports { rank: one(rank)?, node: one(node)? }),
            _ => Err(at(
                &self.source,
                "ports needs a value, or one for a rank and one for a node".to_owned(),
            )),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a value and its source, { value = .., source = \"..\" }")]
struct BarrierEntry {
    value: Spanned<String>,
    per_doubling: Option<Spanned<String>>,
    source: Spanned<String>,
}

/// The version of machine files; a file without a number has this version.
const VERSION: i64 = 1;

/// What the machine files of all versions have.
#[derive(Deserialize)]
struct Versioned {
    version: Option<Spanned<i64>>,
}

/// Whether a line of a text is of a machine file: it gives one of its fields, or begins one of its tables.
pub(crate) fn has_field(line: &str) -> bool {
    const FIELDS: [&str; 10] = [
        "version",
        "title",
        "shape",
        "routes",
        "placement",
        "ties",
        "absent",
        "broken",
        "ports",
        "timing",
    ];
    const TABLES: [&str; 3] = ["timing", "network", "endpoint"];
    // A key may have quotes, blanks around it, and keys of its table.
    let (known, line, end) = match line.strip_prefix('[') {
        Some(table) => (&TABLES[..], table, ']'),
        None => (&FIELDS[..], line, '='),
    };
    let (keys, value) = line.split_once(end).unwrap_or_default();
    let key = keys.split('.').next().unwrap_or_default().trim().trim_matches(['"', '\'']);
    known.contains(&key) && (end == ']' || !value.is_empty())
}

/// The most bytes of a machine file, and of the placement that it names.
const MOST_BYTES: usize = 1 << 20;
const MOST_PLACEMENT: u64 = 1 << 26;

/// Reads a machine file; `name` becomes the name of the machine. Files that it names are relative
/// to the current folder.
///
/// # Errors
/// What is wrong, and the bytes of `text` that are.
pub fn parse_file(name: &str, text: &str) -> Result<Machine, SpecError> {
    parse_file_in(Path::new(""), name, text, &Reading::default())
}

/// The machine of a file.
pub(crate) fn read(file: &Source<'_>) -> Result<Machine, SpecError> {
    parse_file_in(file.folder, file.name, file.text, file.reading)
}

/// Reads a machine file as [`parse_file`]. Files that it names are relative to `folder`, and may leave
/// something open.
///
/// # Errors
/// What is wrong, and the bytes of `text` that are.
pub fn parse_file_in(
    folder: &Path,
    name: &str,
    text: &str,
    reading: &Reading,
) -> Result<Machine, SpecError> {
    reading.refuse_but("--attributes")?;
    if text.len() > MOST_BYTES {
        return Err(format!("longer than {MOST_BYTES} bytes, the limit of machine files").into());
    }
    let name = printable(name);
    let malformed = |error: toml::de::Error| SpecError {
        message: with_all_fields(error.message().trim_end()),
        span: error.span(),
    };
    let Versioned { version } = toml::from_str(text).map_err(malformed)?;
    if let Some(version) = version.filter(|version| *version.get_ref() != VERSION) {
        let rule =
            format!("this program reads version {VERSION}, which `topocoll calibrate` writes");
        return Err(at(&version, format!("version {}: {rule}", version.get_ref())));
    }
    let file: File = toml::from_str(text).map_err(malformed)?;
    let mut sources = vec![("title".to_owned(), nonempty("title", &file.title)?)];
    let mut cite = |key: &str, source: &Spanned<String>| {
        sources.push((key.to_owned(), nonempty("source", source)?));
        Ok::<_, SpecError>(())
    };
    for (key, source) in [
        ("shape", Some(&file.shape.source)),
        ("network", file.network.as_ref().map(|network| &network.source)),
        ("routes", file.routes.as_ref().map(|routes| &routes.source)),
        ("placement", file.placement.as_ref().map(|nodes| &nodes.source)),
        ("ties", file.ties.as_ref().map(|ties| &ties.source)),
        ("absent", file.absent.as_ref().map(|list| &list.source)),
        ("broken", file.broken.as_ref().map(|list| &list.source)),
    ] {
        source.map_or(Ok(()), |source| cite(key, source))?;
    }
    let topology = topology(folder, &file, reading)?;
    cite("ports", &file.ports.source)?;
    let ports = file.ports.ports()?;

    let mut per_class =
        |key: &str, entry: &Entry<Value>, parse: fn(&str) -> Result<f64, UnitError>| {
            cite(key, &entry.source)?;
            per_class(key, &entry.value, &*topology, parse)
        };
    let table = &file.timing;
    let startup = per_class("startup", &table.startup, parse_seconds)?;
    let per_byte = per_class("per_byte", &table.per_byte, parse_seconds_per_byte)?;
    let per_hop = per_class("per_hop", &table.per_hop, parse_seconds)?;
    cite("rearrangement", &table.rearrangement.source)?;
    let rearrangement = (parse_seconds_per_byte(table.rearrangement.value.get_ref()))
        .map_err(|e| at(&table.rearrangement.value, e.message))?;
    cite("barrier", &table.barrier.source)?;
    let barrier = barrier(&table.barrier, topology.ranks())?;
    let gather = match &table.gather {
        Some(entry) => {
            cite("gather", &entry.source)?;
            *entry.value.get_ref()
        }
        None => false,
    };
    let injection = match &table.injection {
        Some(entry) => {
            cite("injection", &entry.source)?;
            injection(&entry.value)?
        }
        None => Injection::default(),
    };
    for (key, source) in implementation::sources(table) {
        cite(key, source)?;
    }
    let timing = Timing {
        name: name.clone(),
        startup,
        per_byte,
        per_hop,
        rearrangement_per_byte: rearrangement,
        per_block: implementation::per_block(table)?,
        barrier,
        gather,
        injection,
        rendezvous: implementation::rendezvous(table)?,
        contention: implementation::contention(table)?,
    };
    let mut endpoint = Endpoint::default();
    for (key, entry) in &file.endpoint {
        cite(key, &entry.source)?;
        endpoint.set(key, &text_of(&entry.value)).map_err(|message| at(&entry.value, message))?;
    }
    let mut machine = Machine { name, timing, endpoint, sources, ..Machine::of(topology) };
    machine.set_ports(ports);
    Ok(machine.with_values_of_links())
}

/// An error about a missing field, with all fields that its table needs.
fn with_all_fields(message: &str) -> String {
    const NEEDED: [(&str, &[&str]); 3] = [
        ("a machine file", &["title", "shape", "ports", "timing"]),
        ("[timing]", &["startup", "per_byte", "per_hop", "rearrangement", "barrier"]),
        ("a value", &["value", "source"]),
    ];
    let missing = |field: &str| message == format!("missing field `{field}`");
    match NEEDED.iter().find(|(_, fields)| fields.iter().any(|field| missing(field))) {
        Some((table, fields)) => format!("{message}: {table} needs {}", fields.join(", ")),
        None => message.to_owned(),
    }
}

/// The machine of the shape, without the failed nodes and links that the file lists.
fn topology(folder: &Path, file: &File, reading: &Reading) -> Result<Arc<dyn Topology>, SpecError> {
    let refused = |message: String| at(&file.shape.value, message);
    let shape = file.shape.value.get_ref();
    let NodesOn { mut network, sizes } = nodes_on(folder, file, reading)?;
    if let Some(routes) = &file.routes {
        let Shape::Graph(graph) = network.shape() else {
            let form = network.short_form();
            return Err(at(
                &routes.value,
                format!("{form} has routes of its own: no table is read"),
            ));
        };
        let table = routes.value.get_ref();
        let with_routes = route_table(graph, folder, table).map_err(|m| at(&routes.value, m))?;
        network = Arc::new(with_routes);
    }
    let mut of_ranks = None;
    if let Some(Entry { value, .. }) = &file.placement {
        let nodes = nodes_listed(folder, value.get_ref()).map_err(|message| at(value, message))?;
        if placement::is_of_nodes(&*network, &nodes) {
            network = placement::placed(&*network, &nodes).map_err(|message| at(value, message))?;
        } else {
            of_ranks = Some((value, nodes));
        }
    }
    if let Some(ties) = &file.ties {
        let Shape::Grid(grid) = network.shape() else {
            let form = network.short_form();
            return Err(at(&ties.value, format!("ties requires a grid, and {form} is not a grid")));
        };
        network = Arc::new(grid.clone().with_ties(*ties.value.get_ref()));
    }
    let mut faults = Faults::on(&*network);
    let mut span = file.shape.value.span();
    for (list, nodes) in [(&file.absent, true), (&file.broken, false)] {
        let Some(list) = list else { continue };
        span = list.value.span();
        for name in list.value.get_ref() {
            faults.add(name.get_ref(), Some(nodes)).map_err(|reason| at(name, reason))?;
        }
    }
    let network = faults.taken_out(Arc::clone(&network));
    let network = network.map_err(|message| SpecError { message, span: Some(span) })?;
    let topology = NodesOn { network, sizes }.topology();
    let topology = topology.map_err(|rule| refused(format!("`{shape}`: {rule}")))?;
    match of_ranks {
        None => Ok(topology),
        Some((value, nodes)) => {
            placement::with_ranks_on(&*topology, &nodes).map_err(|message| at(value, message))
        }
    }
}

/// The network of the shape, and the ranks on its nodes.
fn nodes_on(folder: &Path, file: &File, reading: &Reading) -> Result<NodesOn, SpecError> {
    let refused = |message: String| at(&file.shape.value, message);
    let shape = file.shape.value.get_ref();
    let (kind, sizes) = match shape.split_once('*') {
        Some((kind, sizes)) => (kind, Some(sizes)),
        None => (&**shape, None),
    };
    match (&file.network, kind) {
        (Some(listed), "network") => {
            reading.refuse_but("")?;
            let sizes = sizes.map(ranks_of_nodes).transpose();
            let sizes = sizes.map_err(|rule| refused(format!("`{shape}`: {rule}")))?;
            Ok(NodesOn { network: Arc::new(listed.graph()?), sizes })
        }
        (None, "network") => Err(refused("shape `network` needs the table [network]".to_owned())),
        (Some(_), _) => Err(refused(format!("[network] needs the shape `network`, not `{shape}`"))),
        (None, _) => {
            // A path is relative to the machine file.
            let file = shape.strip_prefix("graph:").map(|path| folder.join(path));
            let form = file.map(|path| format!("graph:{}", path.display()));
            NodesOn::parse(form.as_ref().unwrap_or(shape), reading).map_err(|e| refused(e.message))
        }
    }
}

/// The graph with the routes of a table: a text of several lines, or a file.
fn route_table(graph: &Graph, folder: &Path, table: &str) -> Result<Graph, String> {
    let path = folder.join(table);
    let (file, routed) = match table.contains('\n') {
        true => ("routes".to_owned(), graph.with_route_table(&mut table.as_bytes())),
        false => {
            let opened = crate::regular::open(&path).map_err(|e| (0, e.to_string()));
            let routed = opened.and_then(|file| graph.with_route_table(&mut BufReader::new(file)));
            (path.display().to_string(), routed)
        }
    };
    routed.map_err(|(line, message)| placed(&file, line, &message))
}

/// The nodes of ranks: a text of several lines, or a file.
fn nodes_listed(folder: &Path, listed: &str) -> Result<Vec<Rank>, String> {
    if listed.contains('\n') {
        return read_nodes(listed);
    }
    let path = folder.join(listed);
    let text = crate::regular::text_of(&path, MOST_PLACEMENT, "placements");
    let nodes = text.and_then(|text| read_nodes(&text));
    nodes.map_err(|message| format!("`{}`: {message}", path.display()))
}

/// The bandwidth of a rank, or those of a rank and of a node.
fn injection(value: &Spanned<Value>) -> Result<Injection, SpecError> {
    let one = |item: &Value| quantity("injection", value, item, parse_seconds_per_byte);
    match value.get_ref() {
        Value::Array(items) => match &items[..] {
            [rank, node] => Ok(Injection { rank: one(rank)?, node: one(node)? }),
            _ => {
                let rule = "not one for a rank and one for a node";
                Err(at(value, format!("injection has {} values, {rule}", items.len())))
            }
        },
        single => Ok(Injection { rank: one(single)?, node: 0.0 }),
    }
}

fn quantity(
    key: &str,
    value: &Spanned<Value>,
    item: &Value,
    parse: fn(&str) -> Result<f64, UnitError>,
) -> Result<f64, SpecError> {
    match item {
        Value::String(text) => parse(text).map_err(|e| at(value, e.message)),
        other => Err(at(value, format!("{key} is {}, not text such as \"1us\"", other.type_str()))),
    }
}

fn per_class(
    key: &str,
    value: &Spanned<Value>,
    topology: &dyn Topology,
    parse: fn(&str) -> Result<f64, UnitError>,
) -> Result<PerClass, SpecError> {
    let one = |item: &Value| quantity(key, value, item, parse);
    let classes = topology.link_classes();
    match value.get_ref() {
        Value::Array(items) if items.len() == classes.len() => {
            Ok(PerClass::each(&items.iter().map(one).collect::<Result<Vec<_>, _>>()?))
        }
        Value::Array(items) if items.len() == 2 && topology.nodes() < topology.ranks() => {
            let values = [one(&items[0])?, one(&items[1])?];
            PerClass::of_nodes(values, topology).map_err(|error| at(value, error.message))
        }
        Value::Array(items) => Err(at(
            value,
            format!(
                "{key} has {} values for {} link classes ({})",
                items.len(),
                classes.len(),
                classes.join(", ")
            ),
        )),
        single => Ok(PerClass::uniform(one(single)?)),
    }
}

fn barrier(entry: &BarrierEntry, ranks: u32) -> Result<Barrier, SpecError> {
    let fixed =
        parse_signed_seconds(entry.value.get_ref()).map_err(|e| at(&entry.value, e.message))?;
    let per_doubling = match &entry.per_doubling {
        Some(text) => parse_seconds(text.get_ref()).map_err(|e| at(text, e.message))?,
        None => 0.0,
    };
    if fixed + per_doubling * f64::from(ranks).log2() < 0.0 {
        return Err(at(
            &entry.value,
            format!("the barrier of {ranks} ranks would take negative time"),
        ));
    }
    Ok(Barrier { fixed, per_doubling })
}

fn nonempty(what: &str, text: &Spanned<String>) -> Result<String, SpecError> {
    if text.get_ref().trim().is_empty() {
        return Err(at(
            text,
            format!("empty {what}: say where the value comes from, or `assumed`"),
        ));
    }
    Ok(printable(text.get_ref()))
}

fn text_of(value: &Spanned<Value>) -> String {
    match value.get_ref() {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn at<T>(value: &Spanned<T>, message: String) -> SpecError {
    SpecError { message, span: Some(value.span()) }
}
