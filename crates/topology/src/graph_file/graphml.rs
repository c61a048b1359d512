//! Graphs in GraphML, as networkx and yEd write them.

use std::collections::HashMap;

use serde_json::Value;

use super::items::{Item, Items, Link, Vertex, value_of};
use crate::error::SpecError;
use crate::xml::each;

/// What a `<key>` declares.
struct Key {
    name: String,
    /// What has it: `node`, `edge`, `graph` or `all`.
    of: String,
    is_text: bool,
    default: Option<String>,
}

impl Key {
    fn value(&self, text: &str) -> Value {
        if self.is_text { Value::String(text.trim().to_owned()) } else { value_of(text.trim()) }
    }
}

pub(super) fn read(text: &str) -> Result<Items, SpecError> {
    let mut items = Items::default();
    let mut keys: HashMap<String, Key> = HashMap::new();
    // By element, whether it is in a value, and says what is drawn.
    let mut drawn: Vec<bool> = Vec::new();
    each(text, |all, place| {
        let element = &all[place];
        let given = |name: &str| element.given(name).map(str::to_owned);
        let around = element.around.map(|around| &all[around]);
        let within = around.map_or("", |around| &around.name);
        drawn.push(within == "data" || element.around.is_some_and(|around| drawn[around]));
        match (within, element.name.as_str()) {
            _ if drawn[place] => {}
            (_, "graphml" | "desc" | "port") => {}
            (_, "key") => {
                let name = element
                    .get("attr.name")
                    .map_or_else(|| given("id"), |name| Ok(name.to_owned()))?;
                let of = element.get("for").unwrap_or("all").to_owned();
                let is_text = element.get("attr.type").unwrap_or("string") == "string";
                keys.insert(given("id")?, Key { name, of, is_text, default: None });
            }
            ("key", "default") => {
                if let Some(key) = around.and_then(|key| keys.get_mut(key.get("id")?)) {
                    key.default = Some(element.text.clone());
                }
            }
            (_, "graph") => {
                let directed = given("edgedefault")? == "directed";
                if !items.links.is_empty() && directed != items.directed {
                    return Err("graphs of both directions".to_owned());
                }
                items.directed = directed;
            }
            (_, "node") => {
                let id = given("id")?;
                items.vertices.push(Vertex::named(&id, Item::new(), element.span.clone()));
            }
            (_, "edge") => {
                let own = element.get("directed").map(|own| own == "true");
                if own.is_some_and(|own| own != items.directed) {
                    let rule = "all links go one way, or both";
                    return Err(format!("`directed` is not that of the graph: {rule}"));
                }
                let (ends, at) = ([given("source")?, given("target")?], element.span.clone());
                items.links.push(Link { ends, has: Item::new(), at });
            }
            (of, "data") => {
                let id = given("key")?;
                let key = keys.get(&id).ok_or_else(|| format!("no <key> of id `{id}`"))?;
                let has = match of {
                    "edge" => items.links.last_mut().map(|link| &mut link.has),
                    "node" => items.vertices.last_mut().map(|vertex| &mut vertex.has),
                    _ => None,
                };
                has.map(|has| has.insert(key.name.clone(), key.value(&element.text)));
            }
            (_, other) => return Err(format!("<{other}> is not supported")),
        }
        Ok(())
    })?;
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
    Ok(items)
}
