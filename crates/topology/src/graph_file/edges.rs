//! Lists of edges as networkx writes them: `a b`, or `a b {'bandwidth': '50GB/s'}`, a link a line.
//!
//! Links go both ways, unless each is listed in both directions.

use std::collections::HashSet;

use super::Wrong;
use super::items::{Item, Items, Link, Vertex, value_of};
use super::words::{Word, Words};

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

pub(super) fn read(text: &str) -> Result<Items, Wrong> {
    let (mut items, mut seen, mut listed) = (Items::default(), HashSet::new(), HashSet::new());
    for (line, whole) in (1..).zip(text.lines()) {
        let said = whole.split('#').next().unwrap_or_default().trim();
        if said.is_empty() {
            continue;
        }
        let (from, to, rest) = split(said);
        if to.is_empty() || !(rest.is_empty() || rest.starts_with('{')) {
            return Err((line, "a line is `a b` or `a b {'name': value}`".to_owned()));
        }
        for name in [from, to] {
            if seen.insert(name) {
                let (key, name) = (name.to_owned(), name.to_owned());
                items.vertices.push(Vertex { key, name, has: Item::new(), line });
            }
        }
        listed.insert((from, to));
        let ends = [from.to_owned(), to.to_owned()];
        items.links.push(Link { ends, has: dictionary(rest, line)?, line });
    }
    let back = listed.iter().filter(|(from, to)| listed.contains(&(*to, *from))).count();
    items.directed = back == listed.len();
    if back > 0 && !items.directed {
        return Err((0, "some links are listed in both directions, and others in one".to_owned()));
    }
    Ok(items)
}

/// Python's dictionary of a link, or nothing.
fn dictionary(text: &str, line: usize) -> Result<Item, Wrong> {
    let (mut words, mut has) = (Words::of(text, line), Item::new());
    let wrong = || (line, format!("`{text}` is not a dictionary such as {{'count': 2}}"));
    if words.take("{")? {
        while !words.take("}")? {
            let key = words.next()?.ok_or_else(wrong)?;
            if !words.take(":")? {
                return Err(wrong());
            }
            let value = words.next()?.ok_or_else(wrong)?;
            let value = match &value {
                Word::Quoted(text) => text.clone().into_owned().into(),
                other => value_of(other.text().ok_or_else(wrong)?),
            };
            has.insert(key.text().ok_or_else(wrong)?.to_owned(), value);
            words.take(",")?;
        }
    }
    match words.next()? {
        None => Ok(has),
        Some(_) => Err(wrong()),
    }
}
