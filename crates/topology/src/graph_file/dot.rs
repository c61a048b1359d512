//! Graphs in DOT, the language of Graphviz.
//!
//! Ports have no meaning here, and attributes of drawing are skipped. Defaults of `node` and `edge` hold in
//! their subgraph, from where they stand.

use std::collections::HashMap;

use super::items::{Item, Items, Link, Vertex, value_of};
use super::words::{Word, Words};
use crate::error::SpecError;

/// The deepest nesting of subgraphs.
const MAX_DEPTH: usize = 64;

/// The most links of a file.
const MOST_LINKS: usize = 1 << 22;

/// Attributes that say how a vertex or a link is drawn.
const DRAWING: &str = "arrowhead arrowsize arrowtail color colorscheme comment constraint decorate dir \
    edgeURL edgehref fillcolor fixedsize fontcolor fontname fontsize group head_lp headlabel headport height href \
    id image label labelangle labelfloat labelfontsize labelloc len lhead lp ltail margin minlen nojustify ordering \
    orientation penwidth peripheries pin pos rank regular samehead sametail shape sides skew style tail_lp taillabel \
    tailport target tooltip URL vertices weight width xlabel";

/// Whether a text begins as a graph in DOT does.
pub(super) fn knows(text: &str) -> bool {
    let mut words = Words::of(text);
    let mut next = || words.next().ok().flatten();
    let mut first = next();
    if matches!(&first, Some(Word::Plain(word)) if word.eq_ignore_ascii_case("strict")) {
        first = next();
    }
    let is_graph = matches!(&first, Some(Word::Plain(word)) if keyword(word, "graph") || keyword(word, "digraph"));
    is_graph && (0..2).any(|_| next() == Some(Word::Mark("{")))
}

pub(super) fn read(text: &str) -> Result<Items, SpecError> {
    let mut reader =
        Reader { words: Words::of(text), items: Items::default(), numbers: HashMap::new() };
    while let Some(word) = reader.words.next()? {
        match word {
            Word::Mark("{") => break,
            word => {
                reader.items.directed |=
                    matches!(word, Word::Plain(word) if keyword(word, "digraph"));
            }
        }
    }
    reader.statements(&Defaults::default(), 0)?;
    match reader.words.next()? {
        None => Ok(reader.items),
        Some(_) => Err(reader.words.wrong("text after the graph: a file has one")),
    }
}

fn keyword(word: &str, known: &str) -> bool {
    word.eq_ignore_ascii_case(known)
}

/// Attributes that vertices and links have unless they say others.
#[derive(Clone, Default)]
struct Defaults {
    node: Item,
    edge: Item,
}

struct Reader<'a> {
    words: Words<'a>,
    items: Items,
    numbers: HashMap<String, usize>,
}

impl Reader<'_> {
    /// Reads up to the closing brace. Returns the vertices that were named.
    fn statements(&mut self, around: &Defaults, depth: usize) -> Result<Vec<usize>, SpecError> {
        if depth > MAX_DEPTH {
            return Err(self.words.wrong(format!("more than {MAX_DEPTH} nested subgraphs")));
        }
        let (mut defaults, mut members) = (around.clone(), Vec::new());
        loop {
            if self.words.take("}")? {
                return Ok(members);
            }
            if self.words.take(";")? || self.words.take(",")? {
                continue;
            }
            let begins = self.words.here()?;
            let word = self.words.peek()?;
            let of = |known| matches!(&word, Some(Word::Plain(word)) if keyword(word, known));
            if word.is_none() {
                return Err(self.words.wrong("no closing }"));
            }
            if of("node") || of("edge") || of("graph") {
                let (node, edge) = (of("node"), of("edge"));
                self.words.next()?;
                let has = self.attributes()?;
                match (node, edge) {
                    (true, _) => defaults.node.extend(has),
                    (_, true) => defaults.edge.extend(has),
                    _ => {}
                }
                continue;
            }
            let Some(mut from) = self.end(&defaults, depth)? else { continue };
            let mut links = Vec::new();
            let is_one = from.len() == 1;
            members.extend(&from);
            let arrow = if self.items.directed { "->" } else { "--" };
            while self.words.take(arrow)? {
                let Some(to) = self.end(&defaults, depth)? else {
                    return Err(self.words.wrong("an attribute of the graph in a link"));
                };
                if links.len() + from.len() * to.len() > MOST_LINKS - self.items.links.len() {
                    return Err(self.words.wrong(format!("more than {MOST_LINKS} links")));
                }
                links.extend(from.iter().flat_map(|from| to.iter().map(move |to| [*from, *to])));
                members.extend(&to);
                from = to;
            }
            let has = self.attributes()?;
            if links.is_empty() && is_one {
                self.items.vertices[from[0]].has.extend(has);
                continue;
            }
            let at = begins..self.words.at();
            for ends in links {
                let mut all = defaults.edge.clone();
                all.extend(has.clone());
                let ends = ends.map(|end| self.items.vertices[end].key.clone());
                self.items.links.push(Link { ends, has: all, at: at.clone() });
            }
        }
    }

    /// Reads an end of a link, a vertex or a subgraph; `None` for an attribute of the graph.
    fn end(&mut self, defaults: &Defaults, depth: usize) -> Result<Option<Vec<usize>>, SpecError> {
        let begins = self.words.here()?;
        let word = self.words.next()?;
        if matches!(&word, Some(Word::Plain(word)) if keyword(word, "subgraph")) {
            if !self.words.take("{")? {
                self.words.next()?;
                if !self.words.take("{")? {
                    return Err(self.words.wrong("a subgraph without {"));
                }
            }
            return self.statements(defaults, depth + 1).map(Some);
        }
        if word == Some(Word::Mark("{")) {
            return self.statements(defaults, depth + 1).map(Some);
        }
        let Some(name) = word.as_ref().and_then(Word::text) else {
            let shown = match word {
                Some(Word::Mark(mark)) => mark,
                _ => "the end",
            };
            return Err(self.words.wrong(format!("`{shown}` is not the name of a vertex")));
        };
        if self.words.take("=")? {
            self.words.next()?;
            return Ok(None);
        }
        while self.words.take(":")? {
            self.words.next()?;
        }
        let next = self.items.vertices.len();
        let number = *self.numbers.entry(name.to_owned()).or_insert(next);
        if number == next {
            let at = begins..self.words.at();
            self.items.vertices.push(Vertex::named(name, defaults.node.clone(), at));
        }
        Ok(Some(vec![number]))
    }

    /// Reads lists of attributes, without those of drawing.
    fn attributes(&mut self) -> Result<Item, SpecError> {
        let mut has = Item::new();
        while self.words.take("[")? {
            while !self.words.take("]")? {
                let word = self.words.next()?;
                let Some(name) = word.as_ref().and_then(Word::text) else {
                    return Err(self.words.wrong("a list of attributes is [name=value, ..]"));
                };
                let value = match self.words.take("=")? {
                    true => self.words.next()?,
                    false => Some(Word::Plain("true")),
                };
                let Some(value) = value.as_ref().and_then(Word::text) else {
                    return Err(self.words.wrong(format!("no value of `{name}`")));
                };
                if !DRAWING.split_whitespace().any(|known| known == name) {
                    has.insert(name.to_owned(), value_of(value));
                }
                let _ = self.words.take(",")? || self.words.take(";")?;
            }
        }
        Ok(has)
    }
}
