//! Machines read from text: short forms such as `torus:16x16`, and TOML files.

use std::ops::Range;
use std::sync::Arc;

use serde::Deserialize;
use toml::{Spanned, Value};

use crate::units::{parse_seconds, parse_seconds_per_byte, parse_signed_seconds};
use crate::{
    Barrier, Clusters, FullyConnected, Grid, MAX_DIMENSIONS, Machine, PerClass, TOPOLOGIES, Timing,
    Topology,
};

/// How one kind of topology is written: `kind:rest`.
#[derive(Debug)]
pub struct ShortForm {
    /// What stands before the colon.
    pub kind: &'static str,
    /// A whole short form.
    pub example: &'static str,
    /// Reads what stands after the colon.
    pub parse: fn(&str) -> Result<Arc<dyn Topology>, String>,
}

/// Why a text names no machine.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct SpecError {
    /// The value, the rule and, for a short form, the place.
    pub message: String,
    /// The bytes of the file that are wrong, where one place is.
    pub span: Option<Range<usize>>,
}

/// Reads a short form such as `torus:16x16`, `grid:16~x8` or `cluster:32*4,1*2`.
///
/// # Errors
/// What is wrong with it, naming the part and the rule.
pub fn parse_short_form(text: &str) -> Result<Arc<dyn Topology>, SpecError> {
    let error = |message| SpecError { message, span: None };
    let forms = || TOPOLOGIES.iter().map(|form| form.example).collect::<Vec<_>>().join(", ");
    let Some((kind, rest)) = text.split_once(':') else {
        return Err(error(format!("`{text}` is not a short form such as {}", forms())));
    };
    let Some(form) = TOPOLOGIES.iter().find(|form| form.kind == kind) else {
        let likeness = |form: &&ShortForm| strsim::jaro_winkler(kind, form.kind);
        let nearest = TOPOLOGIES.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        let nearest = nearest.filter(|form| likeness(form) > 0.7);
        let meant = nearest.map(|form| format!(": did you mean `{}:{rest}`?", form.kind));
        return Err(error(format!(
            "`{text}` is not a short form: `{kind}` is none of {}{}",
            forms(),
            meant.unwrap_or_default()
        )));
    };
    (form.parse)(rest).map_err(|reason| error(format!("`{text}`: {reason}")))
}

pub(crate) fn full(rest: &str) -> Result<Arc<dyn Topology>, String> {
    let ranks = number("number of ranks", rest)?;
    Ok(Arc::new(FullyConnected::new(ranks).map_err(|e| e.to_string())?))
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

/// Reads sides separated by `x`; where `wraps` does not say, a `~` after a side does.
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

pub(crate) fn cluster(rest: &str) -> Result<Arc<dyn Topology>, String> {
    let mut groups = Vec::new();
    for (i, group) in rest.split(',').enumerate() {
        let (nodes, size) = match group.split_once('*') {
            Some((nodes, size)) => (number(&format!("number of nodes of group {i}"), nodes)?, size),
            None => (1, group),
        };
        groups.push((nodes, number(&format!("ranks on each node of group {i}"), size)?));
    }
    Ok(Arc::new(Clusters::new(&groups).map_err(|e| e.to_string())?))
}

fn number(what: &str, text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(value) if value > 0 && !text.starts_with('+') => Ok(value),
        _ => Err(format!("{what} is `{text}`, not a whole number from 1 to {}", u32::MAX)),
    }
}

/// A machine file: every value stands beside its source.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: Spanned<String>,
    shape: Entry<String>,
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
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry<T> {
    value: Spanned<T>,
    source: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BarrierEntry {
    value: Spanned<String>,
    per_doubling: Option<Spanned<String>>,
    source: Spanned<String>,
}

/// Reads a machine file; `name` is what the machine is called from then on.
///
/// # Errors
/// What is wrong and which bytes of `text` it stands in.
pub fn parse_file(name: &str, text: &str) -> Result<Machine, SpecError> {
    let file: File = toml::from_str(text).map_err(|error| SpecError {
        message: error.message().trim_end().to_owned(),
        span: error.span(),
    })?;
    let topology = parse_short_form(file.shape.value.get_ref())
        .map_err(|e| at(&file.shape.value, e.message))?;
    let mut sources = vec![("title".to_owned(), nonempty("title", &file.title)?)];
    let mut cite = |key: &str, source: &Spanned<String>| {
        sources.push((key.to_owned(), nonempty("source", source)?));
        Ok::<_, SpecError>(())
    };
    cite("shape", &file.shape.source)?;
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
        |key: &str, entry: &Entry<Value>, parse: fn(&str) -> Result<f64, String>| {
            cite(key, &entry.source)?;
            per_class(key, &entry.value, &topology.link_classes(), parse)
        };
    let table = &file.timing;
    let startup = per_class("startup", &table.startup, parse_seconds)?;
    let per_byte = per_class("per_byte", &table.per_byte, parse_seconds_per_byte)?;
    let per_hop = per_class("per_hop", &table.per_hop, parse_seconds)?;
    cite("rearrangement", &table.rearrangement.source)?;
    let rearrangement = (parse_seconds_per_byte(table.rearrangement.value.get_ref()))
        .map_err(|reason| at(&table.rearrangement.value, reason))?;
    cite("barrier", &table.barrier.source)?;
    let barrier = barrier(&table.barrier, topology.ranks())?;
    let gather = match &table.gather {
        Some(entry) => {
            cite("gather", &entry.source)?;
            *entry.value.get_ref()
        }
        None => false,
    };
    let timing = Timing {
        name: name.to_owned(),
        startup,
        per_byte,
        per_hop,
        rearrangement_per_byte: rearrangement,
        barrier,
        gather,
    };
    let mut machine = Machine { name: name.to_owned(), topology, ports, timing, sources };
    machine.set_ports(ports);
    Ok(machine)
}

fn per_class(
    key: &str,
    value: &Spanned<Value>,
    classes: &[String],
    parse: fn(&str) -> Result<f64, String>,
) -> Result<PerClass, SpecError> {
    let one = |item: &Value| match item {
        Value::String(text) => parse(text).map_err(|reason| at(value, reason)),
        other => Err(at(value, format!("{key} is {}, not text such as \"1us\"", other.type_str()))),
    };
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
        parse_signed_seconds(entry.value.get_ref()).map_err(|reason| at(&entry.value, reason))?;
    let per_doubling = match &entry.per_doubling {
        Some(text) => parse_seconds(text.get_ref()).map_err(|reason| at(text, reason))?,
        None => 0.0,
    };
    if fixed + per_doubling * f64::from(ranks).log2() < 0.0 {
        return Err(at(
            &entry.value,
            format!("the barrier of {ranks} ranks would take less than no time"),
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
    Ok(text.get_ref().clone())
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
        ] {
            assert_eq!(parse_short_form(text).unwrap().short_form(), text);
        }
        assert_eq!(parse_short_form("grid:4~x4~").unwrap().short_form(), "torus:4x4");
        assert_eq!(parse_short_form("cluster:4,4,2").unwrap().short_form(), "cluster:2*4,2");
    }

    #[test]
    fn refuses_what_names_no_machine() {
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
            "full:+4",
            "full: 4",
            "grid:~",
            "full:99999999999999999999",
            "cluster:4294967295*2",
        ];
        for text in bad {
            assert!(parse_short_form(text).is_err(), "{text}");
        }
    }
}
