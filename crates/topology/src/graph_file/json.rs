//! Node-link JSON, as `networkx.node_link_data` writes it: `nodes`, and `links` or `edges`.
//!
//! A node with the attribute `"switch": true` is a switch. Links may have the attributes `class`,
//! `bandwidth`, `latency` and `count`; others are ignored. Unless `directed` is true, each link goes
//! both ways.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Listing, Values, Wrong};

#[derive(Deserialize)]
struct NodeLink<'a> {
    #[serde(default)]
    directed: bool,
    #[serde(borrow)]
    nodes: Vec<&'a RawValue>,
    #[serde(borrow)]
    links: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    edges: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Node {
    id: Value,
    #[serde(default)]
    switch: bool,
}

#[derive(Deserialize)]
struct Link {
    source: Value,
    target: Value,
    class: Option<String>,
    bandwidth: Option<String>,
    latency: Option<String>,
    count: Option<serde_json::Number>,
}

pub(super) fn read(text: &str) -> Result<Listing, Wrong> {
    let json: NodeLink<'_> = serde_json::from_str(text).map_err(|error| {
        (error.line(), format!("not node-link JSON with nodes and links: {error}"))
    })?;
    let links = match (json.links, json.edges) {
        (Some(links), None) | (None, Some(links)) => links,
        (None, None) => return Err((0, "no links: they are in `links` or `edges`".to_owned())),
        (Some(_), Some(_)) => return Err((0, "both `links` and `edges`".to_owned())),
    };
    let mut lines = Lines { text, offset: 0, line: 1 };
    let mut listing = Listing::new(!json.directed);
    for raw in json.nodes {
        let line = lines.line_of(raw);
        let Node { id, switch } = parse(raw, line)?;
        let wrong = |message| (line, message);
        let name = name(&id).map_err(wrong)?;
        listing.declare(&id.to_string(), &name, switch, line).map_err(wrong)?;
    }
    let mut lines = Lines { text, offset: 0, line: 1 };
    for raw in links {
        let line = lines.line_of(raw);
        let link: Link = parse(raw, line)?;
        let wrong = |message| (line, message);
        let end = |id: &Value| match listing.find(&id.to_string()) {
            Some(number) => Ok(number),
            None => Err(wrong(format!(
                "a link of `{}`, which is not in nodes",
                name(id).map_err(wrong)?
            ))),
        };
        let (from, to) = (end(&link.source)?, end(&link.target)?);
        let count = link.count.map(|count| count.to_string());
        let values = Values {
            class: link.class.as_deref(),
            bandwidth: link.bandwidth.as_deref(),
            latency: link.latency.as_deref(),
            count: count.as_deref(),
        };
        listing.link(from, to, &values).map_err(wrong)?;
    }
    Ok(listing)
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

impl Lines<'_> {
    fn line_of(&mut self, part: &RawValue) -> usize {
        let offset = part.get().as_ptr() as usize - self.text.as_ptr() as usize;
        self.line += self.text[self.offset..offset].matches('\n').count();
        self.offset = offset;
        self.line
    }
}
