//! Vertices and links with attributes, as formats of graphs have them.

use std::ops::Range;

use serde_json::{Map, Value};

use super::attributes::OF_LINKS;
use super::{Attributes, Listing};
use crate::error::SpecError;

/// The attributes of a vertex or a link.
pub(super) type Item = Map<String, Value>;

/// A graph as it is written.
#[derive(Default)]
pub(super) struct Items {
    /// Whether links go one way.
    pub(super) directed: bool,
    /// Attributes that every vertex, and every link, of the format has.
    pub(super) of_all: [&'static [&'static str]; 2],
    pub(super) vertices: Vec<Vertex>,
    pub(super) links: Vec<Link>,
    /// Other names that the format has, for a graph.
    pub(super) of_graph: Vec<String>,
}

pub(super) struct Vertex {
    /// What links call it.
    pub(super) key: String,
    pub(super) name: String,
    pub(super) has: Item,
    pub(super) at: Range<usize>,
}

impl Vertex {
    /// A vertex that links call by its name.
    pub(super) fn named(name: &str, has: Item, at: Range<usize>) -> Self {
        Self { key: name.to_owned(), name: name.to_owned(), has, at }
    }
}

pub(super) struct Link {
    /// Keys of vertices.
    pub(super) ends: [String; 2],
    pub(super) has: Item,
    pub(super) at: Range<usize>,
}

impl Items {
    /// The graph, if all attributes are known.
    pub(super) fn listing(self, attributes: &Attributes) -> Result<Listing, SpecError> {
        let mut unused = Unused::of(attributes, &self.of_graph);
        let mut listing = Listing::new(!self.directed);
        let known = [self.of_all[0], &["switch"]].concat();
        for Vertex { key, name, has, at } in &self.vertices {
            let wrong = |message| SpecError { message, span: Some(at.clone()) };
            attributes.check(&format!("node `{name}`"), has.keys(), &known).map_err(wrong)?;
            let is_switch = is_switch(has, attributes).map_err(wrong)?;
            unused.see(has, is_switch);
            listing.declare(key, name, is_switch, at.clone()).map_err(wrong)?;
        }
        let known = [self.of_all[1], &OF_LINKS[..]].concat();
        for Link { ends, has, at } in &self.links {
            let wrong = |message| SpecError { message, span: Some(at.clone()) };
            let end = |key: &String| {
                let shown = key.trim_matches('"');
                listing
                    .find(key)
                    .ok_or_else(|| format!("a link of `{shown}`, which is not in nodes"))
            };
            let (from, to) = (end(&ends[0]).map_err(wrong)?, end(&ends[1]).map_err(wrong)?);
            attributes.check("a link", has.keys(), &known).map_err(wrong)?;
            unused.see(has, false);
            let mut values = [const { None }; 4];
            for (value, own) in values.iter_mut().zip(OF_LINKS) {
                *value = self::value(has, own, attributes.name(own)).map_err(wrong)?;
            }
            let values = values.each_ref().map(Option::as_deref);
            listing.link([from, to], values, at.start).map_err(wrong)?;
        }
        unused.check()?;
        Ok(listing)
    }
}

/// The value of a text: a number, a truth value, or the text itself.
pub(super) fn value_of(text: &str) -> Value {
    match text {
        "true" | "True" => Value::Bool(true),
        "false" | "False" => Value::Bool(false),
        "None" => Value::Null,
        _ => match serde_json::from_str::<serde_json::Number>(text) {
            Ok(number) => Value::Number(number),
            Err(_) => Value::String(text.to_owned()),
        },
    }
}

/// Names that `--attributes` gives, and nothing has.
struct Unused<'a> {
    names: Vec<&'a str>,
    /// The value of a switch.
    switch: Option<&'a str>,
}

impl<'a> Unused<'a> {
    fn of(attributes: &'a Attributes, of_graph: &[String]) -> Self {
        let is_new = |name: &&str| !of_graph.iter().any(|known| known == name);
        let names = attributes.names().filter(is_new).collect();
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
