//! Machines read from text: short forms such as `torus:16x16`, and TOML files.

use std::ops::Range;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::{Spanned, Value};

use crate::text::{nearest, printable};
use crate::units::{UnitError, parse_seconds, parse_seconds_per_byte, parse_signed_seconds};
use crate::{
    Barrier, Clusters, Fault, FullyConnected, Graph, Grid, Injection, Lattice, MAX_DIMENSIONS,
    Machine, PerClass, Shape, TOPOLOGIES, Timing, Topology,
};

/// How one kind of topology is written: `kind:rest`.
#[derive(Clone, Copy, Debug)]
pub struct ShortForm {
    /// The word before the colon.
    pub kind: &'static str,
    /// A complete short form.
    pub example: &'static str,
    /// Reads the text after the colon.
    pub(crate) parse: fn(&str) -> Result<Arc<dyn Topology>, String>,
}

/// Why a text does not name a machine.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct SpecError {
    /// The value, the rule and, for a short form, the place.
    pub message: String,
    /// The bytes of the file that are wrong, if the error has a place.
    pub span: Option<Range<usize>>,
}

/// Reads a short form such as `torus:16x16`, `grid:16~x8` or `cluster:32*4,1*2`.
///
/// Absent nodes and broken links follow, each after a `/`: `/0,1` is a node, `/0,1+1` the link that
/// leaves that node upwards along dimension 1.
///
/// # Errors
/// The wrong part and the rule.
pub fn parse_short_form(text: &str) -> Result<Arc<dyn Topology>, SpecError> {
    let error = |message| SpecError { message, span: None };
    let forms = || TOPOLOGIES.iter().map(|form| form.example).collect::<Vec<_>>().join(", ");
    let Some((kind, rest)) = text.split_once(':') else {
        return Err(error(format!("`{text}` is not a short form such as {}", forms())));
    };
    let Some(form) = TOPOLOGIES.iter().find(|form| form.kind == kind) else {
        return Err(error(match meant(kind, rest) {
            Some(meant) => format!("`{text}` is not a short form: did you mean `{meant}`?"),
            None => format!("`{text}` is not a short form: `{kind}` is not one of {}", forms()),
        }));
    };
    let named = |reason| error(format!("`{text}`: {reason}"));
    let mut parts = rest.split('/');
    let topology = (form.parse)(parts.next().unwrap_or_default()).map_err(named)?;
    let mut faults = Faults::on(&*topology);
    for part in parts {
        faults.add(part, None).map_err(named)?;
    }
    faults.taken_out(topology.clone()).map_err(named)
}

/// Other names of topologies, and the kind of each.
const SYNONYMS: [(&str, &str); 6] = [
    ("ring", "torus"),
    ("line", "mesh"),
    ("hypercube", "mesh"),
    ("complete", "full"),
    ("crossbar", "full"),
    ("switch", "full"),
];

/// The short form that `kind:rest` most likely means.
fn meant(kind: &str, rest: &str) -> Option<String> {
    let kinds = TOPOLOGIES.iter().map(|form| form.kind);
    let name = nearest(kind, kinds.chain(SYNONYMS.map(|(name, _)| name)))?;
    if name == "hypercube" {
        let dimensions = rest.parse().ok().filter(|n| (1..MAX_DIMENSIONS).contains(n))?;
        return Some(format!("mesh:{}", vec!["2"; dimensions].join("x")));
    }
    let kind = SYNONYMS.iter().find(|(synonym, _)| *synonym == name).map_or(name, |(_, kind)| kind);
    Some(format!("{kind}:{rest}"))
}

/// The short forms that a text without a kind most likely means, such as `torus:8x8` and `mesh:8x8`
/// for `8x8`; none if the text is no such shape.
#[must_use]
pub fn short_forms_of(shape: &str) -> Vec<String> {
    let kinds: &[&str] = match shape {
        _ if shape.contains('~') => &["grid"],
        _ if shape.contains('x') => &["torus", "mesh"],
        _ if shape.contains(['*', ',']) => &["cluster"],
        _ => &["full"],
    };
    let forms = kinds.iter().map(|kind| format!("{kind}:{shape}"));
    forms.filter(|form| parse_short_form(form).is_ok()).collect()
}

/// The faults of a machine, as listed so far.
struct Faults<'a> {
    topology: &'a dyn Topology,
    listed: Vec<Fault>,
}

impl<'a> Faults<'a> {
    fn on(topology: &'a dyn Topology) -> Self {
        Self { topology, listed: Vec::new() }
    }

    fn lattice(&self) -> Option<&'a Lattice> {
        let Shape::Graph(graph) = self.topology.shape() else { return None };
        graph.lattice()
    }

    /// Adds the node or link of a name. `nodes` is given where only nodes, or only links, are
    /// allowed.
    fn add(&mut self, name: &str, nodes: Option<bool>) -> Result<(), String> {
        let grid = match (self.topology.shape(), self.lattice()) {
            (Shape::Grid(grid), _) => (grid.radix(), grid.wrap()),
            (_, Some(lattice)) => (lattice.radix(), lattice.wrap()),
            _ => {
                return Err(format!(
                    "`{name}`: {} cannot have failed nodes or links: only tori, meshes and grids \
                     can",
                    self.topology.short_form()
                ));
            }
        };
        let fault = Fault::parse(name, grid.0, grid.1)?;
        match (nodes, fault) {
            (Some(true), Fault::Broken { .. }) => {
                return Err(format!("`{name}` is a link, not a node"));
            }
            (Some(false), Fault::Absent { .. }) => {
                return Err(format!(
                    "`{name}` is a node, not a link: a link is named as `{name}+0`"
                ));
            }
            _ => {}
        }
        let before = self.lattice().map_or(&[][..], Lattice::faults);
        if self.listed.contains(&fault) || before.contains(&fault) {
            let twice = match fault {
                Fault::Absent { .. } => "is missing already",
                Fault::Broken { .. } => "has failed already: a link fails in both directions",
            };
            return Err(format!("`{name}` {twice}"));
        }
        self.listed.push(fault);
        Ok(())
    }

    /// The machine with these faults.
    fn taken_out(&self, topology: Arc<dyn Topology>) -> Result<Arc<dyn Topology>, String> {
        let graph = match (topology.shape(), self.lattice()) {
            _ if self.listed.is_empty() => return Ok(topology),
            (_, Some(lattice)) => lattice.without(&self.listed),
            (Shape::Grid(grid), _) => Graph::of_grid(grid, &self.listed),
            _ => unreachable!("bug: faults of {topology:?}"),
        };
        graph.map(|graph| Arc::new(graph) as _).map_err(|e| e.to_string())
    }
}

/// `64`, or nodes of several ranks: `16*8`, `3*4,4,2`.
pub(crate) fn full(rest: &str) -> Result<Arc<dyn Topology>, String> {
    if let Some((nodes, sizes)) = rest.split_once('*') {
        return nodes_of(number("number of nodes", nodes)?, sizes);
    }
    let ranks = number("number of ranks", rest)?;
    Ok(Arc::new(FullyConnected::new(ranks).map_err(|e| e.to_string())?))
}

/// Fully connected nodes with the same number of ranks each, or with the listed ones.
fn nodes_of(nodes: u32, sizes: &str) -> Result<Arc<dyn Topology>, String> {
    let size = |text: &str| number("ranks on each node", text);
    let groups = match sizes.contains(',') {
        false => vec![(nodes, size(sizes)?)],
        true => sizes.split(',').map(|text| Ok((1, size(text)?))).collect::<Result<_, String>>()?,
    };
    let listed: u64 = groups.iter().map(|&(count, _)| u64::from(count)).sum();
    if listed != u64::from(nodes) {
        return Err(format!("{listed} sizes for {nodes} nodes"));
    }
    Ok(Arc::new(Clusters::new(&groups).map_err(|e| e.to_string())?))
}

pub(crate) fn torus(rest: &str) -> Result<Arc<dyn Topology>, String> {
    sides(rest, |_| Some(true))
}

pub(crate) fn mesh(rest: &str) -> Result<Arc<dyn Topology>, String> {
    sides(rest, |_| Some(false))
}

pub(crate) fn grid(rest: &str) -> Result<Arc<dyn Topology>, String> {
    sides(rest, |_| None)
}

/// Reads sides separated by `x`. Where `wraps` gives `None`, a `~` marks a side that wraps.
fn sides(rest: &str, wraps: impl Fn(usize) -> Option<bool>) -> Result<Arc<dyn Topology>, String> {
    let (mut sides, mut wrap) = (Vec::new(), Vec::new());
    for (u, side) in rest.split('x').enumerate() {
        if u == MAX_DIMENSIONS {
            return Err(format!("more than {MAX_DIMENSIONS} sides"));
        }
        let (side, marked) = match side.strip_suffix('~') {
            Some(_) if wraps(u).is_some() => {
                return Err(format!(
                    "side {u} `{side}` is marked `~`: only grid: mixes sides that wrap with others"
                ));
            }
            Some(side) => (side, true),
            None => (side, false),
        };
        sides.push(number(&format!("side {u}"), side)?);
        wrap.push(wraps(u).unwrap_or(marked));
    }
    Ok(Arc::new(Grid::new(&sides, &wrap).map_err(|e| e.to_string())?))
}

/// Reads sides separated by `x`. A side of `4+2` shifts by 2. A side without a shift that is
/// shorter than the longest shifts by its own length.
pub(crate) fn twisted_torus(rest: &str) -> Result<Arc<dyn Topology>, String> {
    let (mut sides, mut shifts) = (Vec::new(), Vec::new());
    for (u, side) in rest.split('x').enumerate() {
        if u == MAX_DIMENSIONS {
            return Err(format!("more than {MAX_DIMENSIONS} sides"));
        }
        let (side, shift) = match side.split_once('+') {
            Some((side, shift)) => (side, Some(whole(&format!("shift of side {u}"), shift, 0)?)),
            None => (side, None),
        };
        sides.push(number(&format!("side {u}"), side)?);
        shifts.push(shift);
    }
    let longest = sides.iter().copied().max().expect("split gives a part");
    if sides.iter().all(|&side| side == longest) {
        return Err(format!("all sides have length {longest}: only shorter sides can be twisted"));
    }
    let own = |&side: &u32| if side == longest { 0 } else { side };
    let shifts: Vec<u32> =
        shifts.iter().zip(&sides).map(|(shift, side)| shift.unwrap_or_else(|| own(side))).collect();
    Ok(Arc::new(Graph::twisted_torus(&sides, &shifts).map_err(|e| e.to_string())?))
}

pub(crate) fn cluster(rest: &str) -> Result<Arc<dyn Topology>, String> {
    let mut groups = Vec::new();
    for (i, group) in rest.split(',').enumerate() {
        let (nodes, size) = match group.split_once(['*', 'x']) {
            Some((nodes, size)) => (number(&format!("number of nodes of group {i}"), nodes)?, size),
            None => (1, group),
        };
        groups.push((nodes, number(&format!("ranks on each node of group {i}"), size)?));
    }
    Ok(Arc::new(Clusters::new(&groups).map_err(|e| e.to_string())?))
}

fn number(what: &str, text: &str) -> Result<u32, String> {
    whole(what, text, 1)
}

fn whole(what: &str, text: &str, least: u32) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(value) if value >= least && !text.starts_with('+') => Ok(value),
        _ => Err(format!("{what} is `{text}`, not a whole number from {least} to {}", u32::MAX)),
    }
}

/// A machine file: every value has a source.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "version")]
    _version: Option<IgnoredAny>,
    title: Spanned<String>,
    shape: Entry<String>,
    absent: Option<Entry<Vec<Spanned<String>>>>,
    broken: Option<Entry<Vec<Spanned<String>>>>,
    ports: Entry<i64>,
    timing: TimingTable,
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
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a value and its source, { value = .., source = \"..\" }")]
struct Entry<T> {
    value: Spanned<T>,
    source: Spanned<String>,
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

/// Reads a machine file; `name` becomes the name of the machine.
///
/// # Errors
/// What is wrong, and the bytes of `text` that are.
pub fn parse_file(name: &str, text: &str) -> Result<Machine, SpecError> {
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
    let topology = parse_short_form(file.shape.value.get_ref())
        .map_err(|e| at(&file.shape.value, e.message))?;
    let mut sources = vec![("title".to_owned(), nonempty("title", &file.title)?)];
    let mut cite = |key: &str, source: &Spanned<String>| {
        sources.push((key.to_owned(), nonempty("source", source)?));
        Ok::<_, SpecError>(())
    };
    cite("shape", &file.shape.source)?;
    for (key, list) in [("absent", &file.absent), ("broken", &file.broken)] {
        if let Some(list) = list {
            cite(key, &list.source)?;
        }
    }
    let topology = without(&topology, &file)?;
    cite("ports", &file.ports.source)?;
    let ports = (u32::try_from(*file.ports.value.get_ref()).ok().filter(|&ports| ports > 0))
        .ok_or_else(|| {
            at(
                &file.ports.value,
                format!(
                    "ports is {}, not a whole number from 1 to {}",
                    file.ports.value.get_ref(),
                    u32::MAX
                ),
            )
        })?;

    let mut per_class =
        |key: &str, entry: &Entry<Value>, parse: fn(&str) -> Result<f64, UnitError>| {
            cite(key, &entry.source)?;
            per_class(key, &entry.value, &topology.link_classes(), parse)
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
    let timing = Timing {
        name: name.clone(),
        startup,
        per_byte,
        per_hop,
        rearrangement_per_byte: rearrangement,
        barrier,
        gather,
        injection,
    };
    let mut machine = Machine { name, topology, ports, timing, sources };
    machine.set_ports(ports);
    Ok(machine)
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

/// The machine with the failed nodes and links that the file lists.
fn without(topology: &Arc<dyn Topology>, file: &File) -> Result<Arc<dyn Topology>, SpecError> {
    let mut faults = Faults::on(&**topology);
    let mut span = file.shape.value.span();
    for (list, nodes) in [(&file.absent, true), (&file.broken, false)] {
        let Some(list) = list else { continue };
        span = list.value.span();
        for name in list.value.get_ref() {
            faults.add(name.get_ref(), Some(nodes)).map_err(|reason| at(name, reason))?;
        }
    }
    let made = faults.taken_out(Arc::clone(topology));
    made.map_err(|message| SpecError { message, span: Some(span) })
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
    classes: &[String],
    parse: fn(&str) -> Result<f64, UnitError>,
) -> Result<PerClass, SpecError> {
    let one = |item: &Value| quantity(key, value, item, parse);
    match value.get_ref() {
        Value::Array(items) if items.len() == classes.len() => {
            Ok(PerClass::each(&items.iter().map(one).collect::<Result<Vec<_>, _>>()?))
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

fn at<T>(value: &Spanned<T>, message: String) -> SpecError {
    SpecError { message, span: Some(value.span()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_name_themselves() {
        for text in [
            "full:64",
            "torus:16x16",
            "mesh:8x8x8",
            "grid:16~x8",
            "cluster:2*4,2",
            "torus:1",
            "mesh:3",
            "twisted-torus:4x4x8",
            "twisted-torus:4+0x6+5x8",
            "torus:4x4/1,1/0,0+0",
            "grid:4~x3/0,0+1/3,0+0",
            "twisted-torus:2x4/1,3",
        ] {
            assert_eq!(parse_short_form(text).unwrap().short_form(), text);
        }
        assert_eq!(parse_short_form("grid:4~x4~").unwrap().short_form(), "torus:4x4");
        for (text, same) in [
            ("twisted-torus:4+4x4x8+0", "twisted-torus:4x4x8"),
            ("torus:4x4/1,1-1", "torus:4x4/1,0+1"),
            ("torus:4x4/2,0/0,3+1/1,3", "torus:4x4/1,3/2,0/0,3+1"),
            ("cluster:20x48", "cluster:20*48"),
            ("cluster:20x48,1x47", "cluster:20*48,47"),
            ("full:16*8", "cluster:16*8"),
            ("full:3*4,4,2", "cluster:2*4,2"),
        ] {
            assert_eq!(parse_short_form(text).unwrap().short_form(), same);
        }
        assert_eq!(parse_short_form("cluster:4,4,2").unwrap().short_form(), "cluster:2*4,2");
    }

    #[test]
    fn an_unknown_kind_names_the_nearest_known() {
        for (text, meant) in [
            ("tours:4x4", Some("torus:4x4")),
            ("ring:8", Some("torus:8")),
            ("hypercub:3", Some("mesh:2x2x2")),
            ("hypercube:0", None),
            ("hypercube:99999999999", None),
            ("crossbar:9", Some("full:9")),
            ("clusters:4,4", Some("cluster:4,4")),
            ("donut:4", None),
        ] {
            let message = parse_short_form(text).unwrap_err().message;
            let said = message.split_once("did you mean `").map(|(_, meant)| meant);
            assert_eq!(said, meant.map(|meant| format!("{meant}`?")).as_deref(), "{message}");
        }
    }

    #[test]
    fn a_shape_names_the_machines_that_have_it() {
        for (shape, forms) in [
            ("8x8x8", vec!["torus:8x8x8", "mesh:8x8x8"]),
            ("64", vec!["full:64"]),
            ("16~x8", vec!["grid:16~x8"]),
            ("32*4,1*2", vec!["cluster:32*4,1*2"]),
            ("4,4,2", vec!["cluster:4,4,2"]),
            ("8x0", vec![]),
            ("-8", vec![]),
            ("box", vec![]),
            ("65536x65536", vec![]),
        ] {
            assert_eq!(short_forms_of(shape), forms, "{shape}");
        }
    }

    #[test]
    fn refuses_text_that_names_no_machine() {
        let bad = [
            "",
            "torus",
            "torus:",
            "torus:0x4",
            "torus:-4x4",
            "torus:4x",
            "torus:4.5",
            "torus:4~x4",
            "donut:4",
            "full:0",
            "full:4294967296",
            "torus:65536x65536",
            "cluster:4,0",
            "cluster:",
            "cluster:*4",
            "cluster:0*4",
            "cluster:20x48x2",
            "full:4*0",
            "full:0*4",
            "full:4*",
            "full:*4",
            "full:3*4,4",
            "full:2*4,4,4",
            "full:4294967295*2",
            "full:4*4*4",
            "cluster:20x48*2",
            "cluster:x4",
            "full:+4",
            "full: 4",
            "grid:~",
            "full:99999999999999999999",
            "cluster:4294967295*2",
            "twisted-torus:4x4",
            "twisted-torus:4+8x8",
            "twisted-torus:4x8+1",
            "twisted-torus:4+-1x8",
            "twisted-torus:4+x8",
            "twisted-torus:1024x2048",
            "torus:4x4/",
            "torus:4x4/4,0",
            "torus:4x4/1",
            "torus:4x4/1,1,1",
            "torus:4x4/1,1+2",
            "torus:4x4/1,1+",
            "torus:4x4/1,1+1+1",
            "torus:4x4/1,1+1/1,2-1",
            "torus:4x4/1,1/1,1",
            "mesh:4x4/3,0+0",
            "mesh:3/1",
            "torus:1x4/0,0+0",
            "torus:1/0",
            "full:4/1",
            "cluster:4,4/1",
            "torus:128x128/0,0",
        ];
        for text in bad {
            assert!(parse_short_form(text).is_err(), "{text}");
        }
    }
}
