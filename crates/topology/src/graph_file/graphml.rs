//! Graphs in GraphML, as networkx and yEd write them.

use std::collections::HashMap;

use serde_json::Value;

use super::Wrong;
use super::items::{Item, Items, Link, Vertex, value_of};
use crate::error::SpecError;
use crate::xml::{Element, Part, parts};

/// What a `<key>` declares.
struct Key {
    name: String,
    /// What has it: `node`, `edge`, `graph` or `all`.
    of: String,
    is_text: bool,
    default: Option<String>,
}

/// What the text of the next elements belongs to.
#[derive(Default)]
struct Open {
    /// The key of a `<data>`.
    data: Option<String>,
    /// The identifier of a `<key>`.
    key: String,
    is_default: bool,
    text: String,
    depth: usize,
}

pub(super) fn read(text: &str) -> Result<Items, Wrong> {
    let mut reader = Reader::default();
    let (mut line, mut at) = (1, 0);
    let read = parts(text, |part| match part {
        Part::Element(element, depth) => {
            line += text[at..element.span.start].matches('\n').count();
            at = element.span.start;
            reader
                .close(depth)
                .and_then(|()| reader.element(element, depth, line))
                .map_err(|message| element.wrong(message))
        }
        Part::Text(text) => {
            reader.open.text += text;
            Ok(())
        }
    });
    let done = read.and_then(|()| Ok(reader.close(0)?));
    done.map_err(|SpecError { message, span }| {
        let at = span.map(|span| 1 + text[..span.start].matches('\n').count());
        (at.unwrap_or(0), message)
    })?;
    reader.defaults();
    Ok(reader.items)
}

#[derive(Default)]
struct Reader {
    items: Items,
    keys: HashMap<String, Key>,
    open: Open,
    /// The depth of the last item, and whether it is a link.
    item: (usize, bool),
}

impl Reader {
    fn element(&mut self, element: &Element, depth: usize, line: usize) -> Result<(), String> {
        if self.open.data.is_some() {
            // What is drawn, inside a value.
            return Ok(());
        }
        let given =
            |name: &str| element.get(name).map(str::to_owned).ok_or_else(|| format!("no {name}"));
        match element.name.as_str() {
            "graphml" | "desc" | "port" => {}
            "key" => {
                let id = given("id")?;
                let key = Key {
                    name: element.get("attr.name").unwrap_or(&id).to_owned(),
                    of: element.get("for").unwrap_or("all").to_owned(),
                    is_text: element.get("attr.type").unwrap_or("string") == "string",
                    default: None,
                };
                self.open = Open { key: id.clone(), ..Open::default() };
                self.keys.insert(id, key);
            }
            "default" => {
                self.open = Open {
                    is_default: true,
                    depth,
                    key: std::mem::take(&mut self.open.key),
                    ..Open::default()
                }
            }
            "graph" => {
                let directed = given("edgedefault")? == "directed";
                if !self.items.links.is_empty() && directed != self.items.directed {
                    return Err("graphs of both directions".to_owned());
                }
                self.items.directed = directed;
                self.item = (usize::MAX, false);
            }
            "node" => {
                let (key, name) = (given("id")?, given("id")?);
                self.items.vertices.push(Vertex { key, name, has: Item::new(), line });
                self.item = (depth, false);
            }
            "edge" => {
                let own = element.get("directed").map(|own| own == "true");
                if own.is_some_and(|own| own != self.items.directed) {
                    return Err(
                        "`directed` is not that of the graph: all links go one way, or both"
                            .to_owned(),
                    );
                }
                self.items.links.push(Link {
                    ends: [given("source")?, given("target")?],
                    has: Item::new(),
                    line,
                });
                self.item = (depth, true);
            }
            "data" => self.open = Open { data: Some(given("key")?), depth, ..Open::default() },
            other => return Err(format!("<{other}> is not supported")),
        }
        Ok(())
    }

    /// Takes the text of an element that has ended before one of a depth.
    fn close(&mut self, depth: usize) -> Result<(), String> {
        let ended = depth <= self.open.depth;
        if ended && self.open.is_default {
            let open = std::mem::take(&mut self.open);
            if let Some(key) = self.keys.get_mut(&open.key) {
                key.default = Some(open.text.trim().to_owned());
            }
        } else if ended && self.open.data.is_some() {
            let open = std::mem::take(&mut self.open);
            let id = open.data.unwrap_or_default();
            let key = self.keys.get(&id).ok_or_else(|| format!("no <key> of id `{id}`"))?;
            let value = key.value(open.text.trim());
            let has = match self.item {
                // Of the graph.
                (at, _) if open.depth <= at => return Ok(()),
                (_, true) => self.items.links.last_mut().map(|link| &mut link.has),
                (_, false) => self.items.vertices.last_mut().map(|vertex| &mut vertex.has),
            };
            has.map(|has| has.insert(key.name.clone(), value));
        }
        Ok(())
    }

    /// Gives all items the values that their keys have by default.
    fn defaults(&mut self) {
        let Self { items, keys, .. } = self;
        for key in keys.values() {
            let Some(default) = &key.default else { continue };
            let of = |what: &str| key.of == what || key.of == "all";
            let vertices =
                items.vertices.iter_mut().map(|vertex| &mut vertex.has).filter(|_| of("node"));
            let links = items.links.iter_mut().map(|link| &mut link.has).filter(|_| of("edge"));
            for has in vertices.chain(links) {
                has.entry(key.name.clone()).or_insert_with(|| key.value(default));
            }
        }
    }
}

impl Key {
    fn value(&self, text: &str) -> Value {
        if self.is_text { Value::String(text.to_owned()) } else { value_of(text) }
    }
}
