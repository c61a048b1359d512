use std::ops::Range;

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::error::SpecError;

/// The deepest nesting of elements; no machine file has a tenth of it.
const MAX_DEPTH: usize = 256;

/// The most attributes of an element. Reading time grows with their square.
const MAX_ATTRIBUTES: usize = 64;

/// The most elements of a file.
const MAX_ELEMENTS: usize = 1 << 22;

/// An element's name, attributes and text.
pub(crate) struct Element {
    pub(crate) name: String,
    attributes: Vec<(String, String)>,
    pub(crate) span: Range<usize>,
    /// The place of the element around it; none of the root.
    pub(crate) around: Option<usize>,
    /// What stands in it beside other elements.
    pub(crate) text: String,
}

impl Element {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of an attribute that the element needs.
    pub(crate) fn given(&self, name: &str) -> Result<&str, String> {
        self.get(name).ok_or_else(|| format!("<{}> has no {name}", self.name))
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

/// The elements of a text in order, each after the one around it.
///
/// Entities are never expanded: a file that declares any is refused.
fn elements(text: &str) -> Result<Vec<Element>, SpecError> {
    let mut reader = Reader::from_str(text);
    let (mut all, mut open): (Vec<Element>, Vec<usize>) = (Vec::new(), Vec::new());
    loop {
        let begins = reader.buffer_position() as usize;
        let event = reader.read_event();
        let span = begins..reader.buffer_position() as usize;
        let wrong = |message| SpecError { message, span: Some(span.clone()) };
        let event = event.map_err(|e| {
            let at = (reader.error_position() as usize).min(text.len());
            SpecError { message: e.to_string(), span: Some(at..at) }
        })?;
        let mut say = |text: &str| {
            open.last().into_iter().for_each(|around| all[*around].text.push_str(text));
        };
        match event {
            Event::Start(ref start) | Event::Empty(ref start) => {
                if all.len() == MAX_ELEMENTS {
                    return Err(wrong(format!("more than {MAX_ELEMENTS} elements")));
                }
                all.push(element(start, span.clone(), open.last().copied())?);
                if matches!(event, Event::Start(_)) {
                    open.push(all.len() - 1);
                }
                if open.len() > MAX_DEPTH {
                    return Err(wrong(format!("more than {MAX_DEPTH} nested elements")));
                }
            }
            Event::Text(text) => say(&text.xml10_content()),
            Event::CData(text) => say(&text),
            Event::GeneralRef(name) => match predefined(&name) {
                Some(letter) => say(letter.encode_utf8(&mut [0; 4])),
                None => return Err(wrong(format!("`&{};` is not supported", &*name))),
            },
            Event::End(_) => drop(open.pop()),
            Event::DocType(declared) if declared.contains('[') => {
                return Err(wrong(
                    "the document declares entities: these are not supported".to_owned(),
                ));
            }
            Event::Eof if open.is_empty() => return Ok(all),
            Event::Eof => {
                return Err(wrong(format!("the file ends with {} open elements", open.len())));
            }
            _ => {}
        }
    }
}

/// Calls `each` with all elements of a text and the place of each of them in turn. What it refuses is said at
/// the element.
pub(crate) fn each(
    text: &str,
    mut each: impl FnMut(&[Element], usize) -> Result<(), String>,
) -> Result<Vec<Element>, SpecError> {
    let all = elements(text)?;
    for (place, element) in all.iter().enumerate() {
        each(&all, place).map_err(|message| element.wrong(message))?;
    }
    Ok(all)
}

/// The element at a place and those around it, the root last.
pub(crate) fn around(all: &[Element], place: usize) -> impl Iterator<Item = &Element> {
    std::iter::successors(Some(&all[place]), |element| element.around.map(|around| &all[around]))
}

fn element(
    start: &BytesStart<'_>,
    span: Range<usize>,
    around: Option<usize>,
) -> Result<Element, SpecError> {
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
    let (name, text) = (start.name().as_ref().to_owned(), String::new());
    Ok(Element { name, attributes, span, around, text })
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
