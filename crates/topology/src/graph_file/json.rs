//! Node-link JSON, as `networkx.node_link_data` writes it: `nodes`, and `links` or `edges`.
//!
//! A node with the attribute `"switch": true` is a switch. Links may have the attributes `class`,
//! `bandwidth`, `latency` and `count`. [`Attributes`] has other names for them. Attributes of networkx
//! itself are skipped, all others are refused. Unless `directed` is true, each link goes both ways.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Attributes;
use super::items::{Item, Items, Link, Vertex};
use crate::error::SpecError;

pub(super) fn read(text: &str, attributes: &Attributes) -> Result<Items, SpecError> {
    let json: BTreeMap<String, &RawValue> = serde_json::from_str(text).map_err(|error| {
        let at: usize = text.split_inclusive('\n').take(error.line() - 1).map(str::len).sum();
        let message = format!("not node-link JSON with nodes and links: {error}");
        SpecError { message, span: Some(at..at) }
    })?;
    attributes.check("the graph", json.keys(), &["nodes", "links", "edges"])?;
    let place = |raw: &RawValue| {
        let at = raw.get().as_ptr() as usize - text.as_ptr() as usize;
        at..at + raw.get().len()
    };
    let list = |key: &str| -> Result<Option<Vec<&RawValue>>, SpecError> {
        json.get(key).map(|raw| parse(raw, &place(raw))).transpose()
    };
    let nodes = list("nodes")?.ok_or("not node-link JSON: no `nodes`")?;
    let links = match (list("links")?, list("edges")?) {
        (Some(links), None) | (None, Some(links)) => links,
        (None, None) => return Err("no links: they are in `links` or `edges`".into()),
        (Some(_), Some(_)) => return Err("both `links` and `edges`".into()),
    };
    let directed = json.get("directed").map(|raw| parse(raw, &place(raw)));
    let mut items = Items {
        directed: directed.transpose()?.unwrap_or(false),
        of_all: [&["id"], &["source", "target"]],
        of_graph: json.keys().cloned().collect(),
        ..Items::default()
    };
    for raw in nodes {
        let at = place(raw);
        let has: Item = parse(raw, &at)?;
        let named = match (has.get("id"), has.get("name")) {
            // Without identifiers, links name nodes by their place in the list.
            (None, Some(own)) => name(own).map(|name| (items.vertices.len().to_string(), name)),
            _ => of(&has, "id").and_then(|id| Ok((id.to_string(), name(id)?))),
        };
        let wrong = |message| SpecError { message, span: Some(at.clone()) };
        let (key, name) = named.map_err(wrong)?;
        items.vertices.push(Vertex { key, name, has, at });
    }
    for raw in links {
        let at = place(raw);
        let has: Item = parse(raw, &at)?;
        let wrong = |message| SpecError { message, span: Some(at.clone()) };
        let [from, to] = ["source", "target"].map(|key| of(&has, key).map_err(wrong));
        items.links.push(Link { ends: [from?.to_string(), to?.to_string()], has, at });
    }
    Ok(items)
}

fn of<'v>(item: &'v Item, key: &str) -> Result<&'v Value, String> {
    item.get(key).ok_or_else(|| format!("missing field `{key}`"))
}

fn parse<'a, T: Deserialize<'a>>(raw: &'a RawValue, at: &Range<usize>) -> Result<T, SpecError> {
    let read = serde_json::from_str(raw.get());
    read.map_err(|error| SpecError { message: error.to_string(), span: Some(at.clone()) })
}

/// The name of a vertex: text, a number, or a list of them, which networkx takes for a tuple.
fn name(id: &Value) -> Result<String, String> {
    match id {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Array(items) => {
            let items = items.iter().map(name).collect::<Result<Vec<_>, _>>()?;
            Ok(format!("({})", items.join(",")))
        }
        other => Err(format!("`{other}` is not the name of a vertex: text, a number or a list")),
    }
}
