//! Node-link JSON, as `networkx.node_link_data` writes it: `nodes`, and `links` or `edges`.
//!
//! A node with the attribute `"switch": true` is a switch. Links may have the attributes `class`,
//! `bandwidth`, `latency` and `count`. [`Attributes`] has other names for them. Attributes of networkx
//! itself are skipped, all others are refused. Unless `directed` is true, each link goes both ways.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::items::{Item, Items, Link, Vertex};
use super::{Attributes, Wrong};

pub(super) fn read(text: &str, attributes: &Attributes) -> Result<Items, Wrong> {
    let json: BTreeMap<String, &RawValue> = serde_json::from_str(text).map_err(|error| {
        (error.line(), format!("not node-link JSON with nodes and links: {error}"))
    })?;
    let known = ["nodes", "links", "edges"];
    attributes.check("the graph", json.keys(), &known).map_err(|message| (0, message))?;
    let list = |key: &str| -> Result<Option<Vec<&RawValue>>, Wrong> {
        json.get(key).map(|raw| parse(raw, Lines::of(text).line_of(raw))).transpose()
    };
    let nodes = list("nodes")?.ok_or((0, "not node-link JSON: no `nodes`".to_owned()))?;
    let links = match (list("links")?, list("edges")?) {
        (Some(links), None) | (None, Some(links)) => links,
        (None, None) => return Err((0, "no links: they are in `links` or `edges`".to_owned())),
        (Some(_), Some(_)) => return Err((0, "both `links` and `edges`".to_owned())),
    };
    let directed = json.get("directed").map(|raw| parse(raw, Lines::of(text).line_of(raw)));
    let mut items = Items {
        directed: directed.transpose()?.unwrap_or(false),
        of_all: [&["id"], &["source", "target"]],
        of_graph: json.keys().cloned().collect(),
        ..Items::default()
    };
    let mut lines = Lines::of(text);
    for raw in nodes {
        let line = lines.line_of(raw);
        let wrong = |message| (line, message);
        let has: Item = parse(raw, line)?;
        // Without identifiers, links name nodes by their place in the list.
        let (key, name) = match (has.get("id"), has.get("name")) {
            (None, Some(own)) => (items.vertices.len().to_string(), name(own).map_err(wrong)?),
            _ => {
                let id = of(&has, "id").map_err(wrong)?;
                (id.to_string(), name(id).map_err(wrong)?)
            }
        };
        items.vertices.push(Vertex { key, name, has, line });
    }
    let mut lines = Lines::of(text);
    for raw in links {
        let line = lines.line_of(raw);
        let wrong = |message| (line, message);
        let has: Item = parse(raw, line)?;
        let end = |key: &str| of(&has, key).map(ToString::to_string).map_err(wrong);
        let ends = [end("source")?, end("target")?];
        items.links.push(Link { ends, has, line });
    }
    Ok(items)
}

fn of<'v>(item: &'v Item, key: &str) -> Result<&'v Value, String> {
    item.get(key).ok_or_else(|| format!("missing field `{key}`"))
}

fn parse<'a, T: Deserialize<'a>>(raw: &'a RawValue, line: usize) -> Result<T, Wrong> {
    serde_json::from_str(raw.get()).map_err(|error| (line + error.line() - 1, error.to_string()))
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

/// The lines of parts of a text that follow each other.
struct Lines<'a> {
    text: &'a str,
    offset: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, offset: 0, line: 1 }
    }

    fn line_of(&mut self, part: &RawValue) -> usize {
        let offset = part.get().as_ptr() as usize - self.text.as_ptr() as usize;
        self.line += self.text[self.offset..offset].matches('\n').count();
        self.offset = offset;
        self.line
    }
}
