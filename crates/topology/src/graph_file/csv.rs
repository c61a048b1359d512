//! Links as CSV, a link a line, with the header `from,to[,class][,bandwidth][,latency][,count]`.
//!
//! A line `switch,NAME` declares a switch; all other names are nodes. With the first line
//! `#undirected` each link goes both ways. Other lines that begin with `#` are comments.

use std::borrow::Cow;

use super::Listing;
use super::attributes::OF_LINKS;
use crate::error::SpecError;
use crate::text::{fields, lines};

pub(super) fn read(text: &str) -> Result<Listing, SpecError> {
    let is_undirected = |line: &str| {
        line.strip_prefix('#').is_some_and(|word| word.trim().eq_ignore_ascii_case("undirected"))
    };
    let mut rows = Vec::new();
    let mut listing =
        Listing::new(text.lines().next().is_some_and(|line| is_undirected(line.trim())));
    for (line, at) in lines(text) {
        let wrong = |message| SpecError { message, span: Some(at..at + line.len()) };
        if is_undirected(line) && text[..at].contains('\n') {
            return Err(wrong("`#undirected` must be the first line".to_owned()));
        }
        if line.starts_with('#') {
            continue;
        }
        let fields = fields(line).map_err(wrong)?;
        match &fields[..] {
            [first, name, rest @ ..] if first == "switch" => {
                if let Some(value) = rest.iter().find(|value| !value.is_empty()) {
                    return Err(wrong(format!("`{value}` after the name of a switch")));
                }
                listing.declare(name, name, true, at..at + line.len()).map_err(wrong)?;
            }
            _ => rows.push((at..at + line.len(), fields)),
        }
    }
    let mut rows = rows.into_iter();
    let (at, header) = rows.next().ok_or("no header `from,to`")?;
    let columns = columns(&header).map_err(|message| SpecError { message, span: Some(at) })?;
    for (at, fields) in rows {
        let wrong = |message| SpecError { message, span: Some(at.clone()) };
        if fields.len() < 2 || fields.len() > header.len() {
            let (values, most) = (fields.len(), header.len());
            return Err(wrong(format!(
                "{values} values: a link has at least 2, and at most the {most} of the header"
            )));
        }
        let value = |place: Option<usize>| {
            fields.get(place?).map(|value| &**value).filter(|value| !value.is_empty())
        };
        let [from, to] =
            [0, 1].map(|end| listing.find_or_declare(&fields[end], at.clone()).map_err(wrong));
        listing.link([from?, to?], columns.map(value), at.start).map_err(wrong)?;
    }
    Ok(listing)
}

/// The places of the optional columns in a header.
fn columns(header: &[Cow<'_, str>]) -> Result<[Option<usize>; 4], String> {
    let named: Vec<&str> = header.iter().map(|name| &**name).collect();
    let is_known = |name: &&str| OF_LINKS.contains(name);
    let is_header = named.starts_with(&["from", "to"])
        && named[2..].iter().all(is_known)
        && (2..named.len()).all(|place| !named[..place].contains(&named[place]));
    if !is_header {
        let columns = OF_LINKS.join(", ");
        let given = named.join(",");
        return Err(format!("header `{given}`: it is from,to and any of {columns}"));
    }
    Ok(OF_LINKS.map(|column| named.iter().position(|name| *name == column)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_quotes_have_commas() {
        assert_eq!(
            fields(r#"a , "(0,1)" ,"say ""b""",,"#).unwrap(),
            ["a", "(0,1)", "say \"b\"", "", ""]
        );
        for bad in [r#""a"#, r#""a" b,c"#] {
            assert!(fields(bad).is_err(), "{bad}");
        }
    }
}
