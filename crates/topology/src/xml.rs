use std::collections::BTreeSet;
use std::ops::Range;

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::error::SpecError;

/// The deepest nesting of elements; no machine file has a tenth of it.
const MAX_DEPTH: usize = 256;

/// The most attributes of an element. Reading time grows with their square.
const MAX_ATTRIBUTES: usize = 64;

/// An element's name and attributes.
#[derive(Clone)]
pub(crate) struct Element {
    pub(crate) name: String,
    attributes: Vec<(String, String)>,
    pub(crate) span: Range<usize>,
}

impl Element {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Adds to `ignored` the names of attributes but those that are `known`, each after the element's.
    pub(crate) fn ignore_but(&self, known: &[&str], ignored: &mut BTreeSet<String>) {
        let others = self.attributes.iter().map(|(name, _)| &**name);
        let others = others.filter(|name| !known.contains(name));
        ignored.extend(others.map(|name| format!("{} {name}", self.name)));
    }

    /// The names of the attributes.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.attributes.iter().map(|(name, _)| name.as_str())
    }

    pub(crate) fn wrong(&self, message: String) -> SpecError {
        SpecError { message, span: Some(self.span.clone()) }
    }
}

/// The name of the first element of a text that begins as XML does.
pub(crate) fn root(text: &str) -> Option<String> {
    let mut reader = Reader::from_str(text);
    loop {
        match reader.read_event().ok()? {
            Event::Start(root) | Event::Empty(root) => {
                return Some(root.name().as_ref().to_owned());
            }
            Event::Eof => return None,
            _ => {}
        }
    }
}

/// An element, with its depth, or a text between two.
pub(crate) enum Part<'a> {
    Element(&'a Element, usize),
    Text(&'a str),
}

/// Calls `each` with the elements of a text in order, each with its depth; the root has depth 0.
pub(crate) fn elements(
    text: &str,
    mut each: impl FnMut(&Element, usize) -> Result<(), SpecError>,
) -> Result<(), SpecError> {
    parts(text, |part| match part {
        Part::Element(element, depth) => each(element, depth),
        Part::Text(_) => Ok(()),
    })
}

/// Calls `each` with the elements of a text and what is between them, in order.
///
/// Only the names of open elements are kept. Entities are never expanded: a file that declares any
/// is refused.
pub(crate) fn parts(
    text: &str,
    mut each: impl FnMut(Part<'_>) -> Result<(), SpecError>,
) -> Result<(), SpecError> {
    let mut reader = Reader::from_str(text);
    let mut depth = 0;
    loop {
        let begins = reader.buffer_position() as usize;
        let event = reader.read_event();
        let span = begins..reader.buffer_position() as usize;
        let wrong = |message| SpecError { message, span: Some(span.clone()) };
        let event = event.map_err(|e| {
            let at = (reader.error_position() as usize).min(text.len());
            SpecError { message: e.to_string(), span: Some(at..at) }
        })?;
        match event {
            Event::Start(start) => {
                each(Part::Element(&element(&start, span.clone())?, depth))?;
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(wrong(format!("more than {MAX_DEPTH} nested elements")));
                }
            }
            Event::Empty(start) => each(Part::Element(&element(&start, span.clone())?, depth))?,
            Event::Text(text) => each(Part::Text(&text.xml10_content()))?,
            Event::CData(text) => each(Part::Text(&text))?,
            Event::GeneralRef(name) => match predefined(&name) {
                Some(text) => each(Part::Text(&text.to_string()))?,
                None => return Err(wrong(format!("`&{};` is not supported", &*name))),
            },
            Event::End(_) => depth -= 1,
            Event::DocType(declared) if declared.contains('[') => {
                return Err(wrong(
                    "the document declares entities: these are not supported".to_owned(),
                ));
            }
            Event::Eof if depth > 0 => {
                return Err(wrong(format!("the file ends with {depth} open elements")));
            }
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

fn element(start: &BytesStart<'_>, span: Range<usize>) -> Result<Element, SpecError> {
    let wrong = |message| SpecError { message, span: Some(span.clone()) };
    let mut attributes = Vec::new();
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|e| wrong(e.to_string()))?;
        if attributes.len() == MAX_ATTRIBUTES {
            return Err(wrong(format!("more than {MAX_ATTRIBUTES} attributes")));
        }
        let value = attribute.normalized_value(XmlVersion::Implicit1_0);
        let value = value.map_err(|e| wrong(e.to_string()))?.into_owned();
        attributes.push((attribute.key.as_ref().to_owned(), value));
    }
    Ok(Element { name: start.name().as_ref().to_owned(), attributes, span })
}

/// The character of an entity that every document has, or of a number.
fn predefined(name: &BytesRef<'_>) -> Option<char> {
    match &**name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => name.resolve_char_ref().ok().flatten(),
    }
}
