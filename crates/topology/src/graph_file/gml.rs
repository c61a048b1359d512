//! Graphs in GML, as networkx writes them: lists of keys and values, `graph [ node [ id 0 label "a" ] .. ]`.

use serde_json::{Map, Value};

use super::items::{Item, Items, Link, Vertex, value_of};
use super::words::{Word, Words};
use crate::error::SpecError;

/// The deepest nesting of lists.
const MAX_DEPTH: usize = 16;

/// Whether a text begins as a graph in GML does.
pub(super) fn knows(text: &str) -> bool {
    let mut words = Words::of(text);
    let mut next = || words.next().ok().flatten();
    match next() {
        Some(Word::Plain("graph")) => next() == Some(Word::Mark("[")),
        Some(Word::Plain("Creator" | "Version")) => {
            next();
            matches!(next(), Some(Word::Plain("graph" | "Version" | "Creator" | "directed")))
        }
        _ => false,
    }
}

pub(super) fn read(text: &str) -> Result<Items, SpecError> {
    let mut words = Words::of(text);
    let mut items = Items { of_all: [&["label"], &["source", "target"]], ..Items::default() };
    let mut seen = false;
    while let Some(word) = words.next()? {
        if word != Word::Plain("graph") {
            value(&mut words, 0)?;
        } else if std::mem::replace(&mut seen, true) || !words.take("[")? {
            return Err(words.wrong("a file has one `graph [ .. ]`"));
        } else {
            graph(&mut words, &mut items)?;
        }
    }
    Ok(items)
}

fn graph(words: &mut Words<'_>, items: &mut Items) -> Result<(), SpecError> {
    while !words.take("]")? {
        let begins = words.here()?;
        let Some(key) = words.next()? else { return Err(words.wrong("no closing ]")) };
        let value = value(words, 0)?;
        let at = begins..words.at();
        let own = |has: &Item, key: &str| {
            let message = format!("missing field `{key}`");
            let missing = || SpecError { message, span: Some(at.clone()) };
            has.get(key).map(ToString::to_string).ok_or_else(missing)
        };
        match (key, value) {
            (Word::Plain("directed"), value) => items.directed = value == 1,
            (Word::Plain("node"), Value::Object(has)) => {
                let key = own(&has, "id")?;
                let label = has.get("label").map(|label| match label {
                    Value::String(label) => label.clone(),
                    other => other.to_string(),
                });
                let name = label.unwrap_or_else(|| key.clone());
                items.vertices.push(Vertex { key, name, has, at });
            }
            (Word::Plain("edge"), Value::Object(has)) => {
                let ends = [own(&has, "source")?, own(&has, "target")?];
                items.links.push(Link { ends, has, at });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Reads the value of a key: a list, a number or a text.
fn value(words: &mut Words<'_>, depth: usize) -> Result<Value, SpecError> {
    if !words.take("[")? {
        return match words.next()? {
            Some(Word::Quoted(text)) => Ok(Value::String(text.into_owned())),
            Some(Word::Plain(text)) => Ok(value_of(text)),
            _ => Err(words.wrong("a key without a value")),
        };
    }
    if depth == MAX_DEPTH {
        return Err(words.wrong(format!("more than {MAX_DEPTH} nested lists")));
    }
    let mut list = Map::new();
    while !words.take("]")? {
        let Some(Word::Plain(key)) = words.next()? else {
            return Err(words.wrong("a list has keys and values, and ends with ]"));
        };
        list.insert(key.to_owned(), value(words, depth + 1)?);
    }
    Ok(Value::Object(list))
}
