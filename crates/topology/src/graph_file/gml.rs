//! Graphs in GML, as networkx writes them: lists of keys and values, `graph [ node [ id 0 label "a" ] .. ]`.

use serde_json::{Map, Value};

use super::Wrong;
use super::items::{Item, Items, Link, Vertex, value_of};
use super::words::{Word, Words};

/// The deepest nesting of lists.
const MAX_DEPTH: usize = 16;

/// Whether a text begins as a graph in GML does.
pub(super) fn knows(text: &str) -> bool {
    let mut words = Words::of(text, 1);
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

pub(super) fn read(text: &str) -> Result<Items, Wrong> {
    let mut words = Words::of(text, 1);
    let mut items = Items { of_all: [&["label"], &["source", "target"]], ..Items::default() };
    let mut seen = false;
    while let Some(word) = words.next()? {
        if word != Word::Plain("graph") {
            value(&mut words, 0)?;
        } else if std::mem::replace(&mut seen, true) || !words.take("[")? {
            return Err((words.line, "a file has one `graph [ .. ]`".to_owned()));
        } else {
            graph(&mut words, &mut items)?;
        }
    }
    Ok(items)
}

fn graph(words: &mut Words<'_>, items: &mut Items) -> Result<(), Wrong> {
    while !words.take("]")? {
        let line = words.here()?;
        let key = words.next()?;
        let value = value(words, 0)?;
        let own = |has: &Item, key: &str| {
            let missing = || (line, format!("missing field `{key}`"));
            has.get(key).map(ToString::to_string).ok_or_else(missing)
        };
        match (key, value) {
            (Some(Word::Plain("directed")), value) => items.directed = value == 1,
            (Some(Word::Plain("node")), Value::Object(has)) => {
                let key = own(&has, "id")?;
                let name = has.get("label").map_or_else(
                    || key.clone(),
                    |label| match label {
                        Value::String(label) => label.clone(),
                        other => other.to_string(),
                    },
                );
                items.vertices.push(Vertex { key, name, has, line });
            }
            (Some(Word::Plain("edge")), Value::Object(has)) => {
                let ends = [own(&has, "source")?, own(&has, "target")?];
                items.links.push(Link { ends, has, line });
            }
            (None, _) => return Err((line, "no closing ]".to_owned())),
            _ => {}
        }
    }
    Ok(())
}

/// Reads the value of a key: a list, a number or a text.
fn value(words: &mut Words<'_>, depth: usize) -> Result<Value, Wrong> {
    if !words.take("[")? {
        return match words.next()? {
            Some(Word::Quoted(text)) => Ok(Value::String(text.into_owned())),
            Some(Word::Plain(text)) => Ok(value_of(text)),
            _ => Err((words.line, "a key without a value".to_owned())),
        };
    }
    if depth == MAX_DEPTH {
        return Err((words.line, format!("more than {MAX_DEPTH} nested lists")));
    }
    let mut list = Map::new();
    while !words.take("]")? {
        let key = match words.next()? {
            Some(Word::Plain(key)) => key.to_owned(),
            _ => {
                return Err((
                    words.here()?,
                    "a list has keys and values, and ends with ]".to_owned(),
                ));
            }
        };
        list.insert(key, value(words, depth + 1)?);
    }
    Ok(Value::Object(list))
}
