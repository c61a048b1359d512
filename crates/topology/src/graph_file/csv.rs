//! Links as CSV, a link a line, with the header `from,to[,class][,bandwidth][,latency][,count]`.
//!
//! A line `switch,NAME` declares a switch; all other names are nodes. With the first line
//! `#undirected` each link goes both ways. Other lines that begin with `#` are comments.

use std::borrow::Cow;

use super::attributes::OF_LINKS;
use super::{Listing, Wrong};
use crate::text::fields;

pub(super) fn read(text: &str) -> Result<Listing, Wrong> {
    let text = text.trim_start_matches('\u{feff}');
    let is_undirected = |line: &str| {
        line.strip_prefix('#').is_some_and(|word| word.trim().eq_ignore_ascii_case("undirected"))
    };
    let both_ways = text.lines().next().is_some_and(|line| is_undirected(line.trim()));
    let mut rows = Vec::new();
    let mut listing = Listing::new(both_ways);
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        let wrong = |message| (number, message);
        if number > 1 && is_undirected(line) {
            return Err(wrong("`#undirected` must be the first line".to_owned()));
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fields = fields(line).map_err(wrong)?;
        match &fields[..] {
            [first, name, rest @ ..] if first == "switch" => {
                if let Some(value) = rest.iter().find(|value| !value.is_empty()) {
                    return Err(wrong(format!("`{value}` after the name of a switch")));
                }
                listing.declare(name, name, true, number).map_err(wrong)?;
            }
            _ => rows.push((number, fields)),
        }
    }
    let mut rows = rows.into_iter();
    let Some((line, header)) = rows.next() else {
        return Err((0, "no header `from,to`".to_owned()));
    };
    let columns = columns(&header).map_err(|message| (line, message))?;
    for (line, fields) in rows {
        let wrong = |message| (line, message);
        if fields.len() < 2 || fields.len() > header.len() {
            let (values, most) = (fields.len(), header.len());
            return Err(wrong(format!(
                "{values} values: a link has at least 2, and at most the {most} of the header"
            )));
        }
        let value = |place: Option<usize>| {
            fields.get(place?).map(|value| &**value).filter(|value| !value.is_empty())
        };
        let from = listing.find_or_declare(&fields[0], line).map_err(wrong)?;
        let to = listing.find_or_declare(&fields[1], line).map_err(wrong)?;
        listing.link(from, to, columns.map(value)).map_err(wrong)?;
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
