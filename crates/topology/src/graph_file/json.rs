//! Node-link JSON, as `networkx.node_link_data` writes it: `nodes`, and `links` or `edges`.
//!
//! A node with the attribute `"switch": true` is a switch. Links may have the attributes `class`,
//! `bandwidth`, `latency` and `count`. [`Attributes`] has other names for them. Attributes of networkx
//! itself are skipped, all others are refused. Unless `directed` is true, each link goes both ways.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::attributes::OF_LINKS;
use super::{Attributes, Listing, Wrong};

/// The attributes of a node or a link.
type Item = Map<String, Value>;

pub(super) fn read(text: &str, attributes: &Attributes) -> Result<Listing, Wrong> {
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
    let mut unused = Unused::of(attributes, &json);
    let mut listing = Listing::new(!directed.transpose()?.unwrap_or(false));
    let mut lines = Lines::of(text);
    for raw in nodes {
        let line = lines.line_of(raw);
        let wrong = |message| (line, message);
        let node: Item = parse(raw, line)?;
        let id = of(&node, "id").map_err(wrong)?;
        let name = name(id).map_err(wrong)?;
        attributes
            .check(&format!("node `{name}`"), node.keys(), &["id", "switch"])
            .map_err(wrong)?;
        let is_switch = is_switch(&node, attributes).map_err(wrong)?;
        unused.see(&node, is_switch);
        listing.declare(&id.to_string(), &name, is_switch, line).map_err(wrong)?;
    }
    let mut lines = Lines::of(text);
    let known = [&["source", "target"], &OF_LINKS[..]].concat();
    for raw in links {
        let line = lines.line_of(raw);
        let wrong = |message| (line, message);
        let link: Item = parse(raw, line)?;
        let end = |key: &str| {
            let id = of(&link, key)?;
            match listing.find(&id.to_string()) {
                Some(number) => Ok(number),
                None => Err(format!("a link of `{}`, which is not in nodes", name(id)?)),
            }
        };
        let (from, to) = (end("source").map_err(wrong)?, end("target").map_err(wrong)?);
        attributes.check("a link", link.keys(), &known).map_err(wrong)?;
        unused.see(&link, false);
        let mut values = [const { None }; 4];
        for (value, own) in values.iter_mut().zip(OF_LINKS) {
            *value = self::value(&link, own, attributes.name(own)).map_err(wrong)?;
        }
        listing.link(from, to, values.each_ref().map(Option::as_deref)).map_err(wrong)?;
    }
    unused.check().map_err(|message| (0, message))?;
    Ok(listing)
}

/// Names that `--attributes` gives, and nothing has.
struct Unused<'a> {
    names: Vec<&'a str>,
    /// The value of a switch.
    switch: Option<&'a str>,
}

impl<'a> Unused<'a> {
    fn of(attributes: &'a Attributes, json: &BTreeMap<String, &RawValue>) -> Self {
        let names = attributes.names().filter(|name| !json.contains_key(*name)).collect();
        Self { names, switch: attributes.switch() }
    }

    fn see(&mut self, item: &Item, is_switch: bool) {
        self.names.retain(|name| !item.contains_key(*name));
        self.switch = self.switch.filter(|_| !is_switch);
    }

    fn check(&self) -> Result<(), String> {
        match (self.names.first(), self.switch) {
            (None, None) => Ok(()),
            (Some(name), _) => Err(format!("--attributes: no node or link has `{name}`")),
            (None, Some(value)) => {
                Err(format!("--attributes: no node is a switch, of value `{value}`"))
            }
        }
    }
}

fn of<'v>(item: &'v Item, key: &str) -> Result<&'v Value, String> {
    item.get(key).ok_or_else(|| format!("missing field `{key}`"))
}

/// The text of an attribute of a link, or the number of its `count`.
fn value(link: &Item, own: &str, name: &str) -> Result<Option<String>, String> {
    match link.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if own != "count" => Ok(Some(text.clone())),
        Some(Value::Number(number)) if own == "count" => Ok(Some(number.to_string())),
        Some(other) => {
            let expected = if own == "count" { "a number" } else { "a string" };
            Err(format!("{name} is `{other}`, expected {expected}"))
        }
    }
}

fn is_switch(node: &Item, attributes: &Attributes) -> Result<bool, String> {
    let name = attributes.name("switch");
    match (node.get(name), attributes.switch()) {
        (None, _) => Ok(false),
        (Some(other), Some(value)) => {
            let text = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
            Ok(text == value)
        }
        (Some(Value::Bool(is_switch)), None) => Ok(*is_switch),
        (Some(other), None) => Err(format!(
            "{name} is `{other}`, expected a boolean; --attributes switch={name}:VALUE gives the value of a switch"
        )),
    }
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
