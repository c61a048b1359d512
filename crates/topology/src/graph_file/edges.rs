//! Lists of edges as networkx writes them: `a b`, or `a b {'bandwidth': '50GB/s'}`, a link a line.
//!
//! Links go both ways, unless each is listed in both directions.

use std::collections::HashSet;

use super::items::{Item, Items, Link, Vertex, value_of};
use super::words::{Word, Words};
use crate::error::SpecError;
use crate::text::lines;

/// Lines that are looked at.
const LINES: usize = 20;

/// Whether the lines have two names with a digit, and a dictionary if anything more. One line without a
/// dictionary may be anything, and two lines of two numbers a matrix.
pub(super) fn knows(text: &str) -> bool {
    let mut lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let first: Vec<&str> = lines.by_ref().take(LINES).collect();
    let is_sure = first.len() > 1 || first.iter().any(|line| line.ends_with('}'));
    let is_number = |c: char| c.is_ascii_digit() || c == '.' || c.is_whitespace();
    let is_matrix = first.len() == 2 && first.iter().all(|line| line.chars().all(is_number));
    is_sure && !is_matrix && first.iter().all(|line| is_edge(line))
}

fn is_edge(line: &str) -> bool {
    let (from, to, rest) = split(line);
    let is_name =
        |name: &str| !name.is_empty() && !name.contains(|c: char| "=:,{}[]()<>\"'".contains(c));
    let is_dictionary = rest.starts_with('{') && rest.ends_with('}');
    let has_digit =
        from.contains(|c: char| c.is_ascii_digit()) || to.contains(|c: char| c.is_ascii_digit());
    is_name(from) && is_name(to) && (is_dictionary || rest.is_empty() && has_digit)
}

fn split(line: &str) -> (&str, &str, &str) {
    let (from, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim_start();
    let (to, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    (from, to, rest.trim())
}

pub(super) fn read(text: &str) -> Result<Items, SpecError> {
    let (mut items, mut seen, mut listed) = (Items::default(), HashSet::new(), HashSet::new());
    for (line, begins) in lines(text) {
        let said = line.split('#').next().unwrap_or_default().trim_end();
        if said.is_empty() {
            continue;
        }
        let at = begins..begins + line.len();
        let wrong = |message| SpecError { message, span: Some(at.clone()) };
        let (from, to, rest) = split(said);
        if to.is_empty() || !(rest.is_empty() || rest.starts_with('{')) {
            return Err(wrong("a line is `a b` or `a b {'name': value}`".to_owned()));
        }
        let ends = [from, to];
        let new = ends.into_iter().filter(|name| seen.insert(*name));
        items.vertices.extend(new.map(|name| Vertex::named(name, Item::new(), at.clone())));
        listed.insert((from, to));
        let has = dictionary(rest)
            .ok_or_else(|| wrong(format!("`{rest}` is not a dictionary such as {{'count': 2}}")))?;
        items.links.push(Link { ends: ends.map(str::to_owned), has, at });
    }
    let back = listed.iter().filter(|(from, to)| listed.contains(&(*to, *from))).count();
    items.directed = back == listed.len();
    if back > 0 && !items.directed {
        return Err("some links are listed in both directions, and others in one".into());
    }
    Ok(items)
}

/// Python's dictionary of a link, or nothing.
fn dictionary(text: &str) -> Option<Item> {
    let (mut words, mut has) = (Words::of(text), Item::new());
    if words.take("{").ok()? {
        while !words.take("}").ok()? {
            let key = words.next().ok()??;
            let true = words.take(":").ok()? else { return None };
            let value = match words.next().ok()?? {
                Word::Quoted(text) => text.into_owned().into(),
                other => value_of(other.text()?),
            };
            has.insert(key.text()?.to_owned(), value);
            words.take(",").ok()?;
        }
    }
    words.next().ok()?.is_none().then_some(has)
}
