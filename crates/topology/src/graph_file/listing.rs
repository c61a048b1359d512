//! Links by the names of their ends.

use std::ops::Range;

use hashbrown::HashMap;

use crate::error::SpecError;
use crate::number::{fraction, number};
use crate::topology::graph::MOST_VERTICES;
use crate::units::{parse_bytes_per_second, parse_seconds};
use crate::{Capacity, Graph, LinkKind, ListedGraph};

/// The most directed links of a file.
const MOST_LINKS: usize = 1 << 22;

/// A graph as it is listed so far.
pub(crate) struct Listing {
    /// Whether links go both ways.
    both_ways: bool,
    vertices: Vec<Vertex>,
    numbers: HashMap<String, u32>,
    classes: Vec<String>,
    links: Vec<(u32, u32, LinkKind)>,
}

struct Vertex {
    name: String,
    is_switch: bool,
    has_links: bool,
    /// What declares it.
    at: Range<usize>,
}

/// What is written of a link besides its ends: class, bandwidth, latency and count.
pub(crate) type Values<'a> = [Option<&'a str>; 4];

impl Listing {
    pub(crate) fn new(both_ways: bool) -> Self {
        let (vertices, numbers) = (Vec::new(), HashMap::new());
        Self { both_ways, vertices, numbers, classes: Vec::new(), links: Vec::new() }
    }

    /// Declares a node or a switch that rows of links call `key`.
    pub(crate) fn declare(
        &mut self,
        key: &str,
        name: &str,
        is_switch: bool,
        at: Range<usize>,
    ) -> Result<u32, String> {
        let number = self.vertices.len() as u32;
        if name.is_empty() {
            return Err("a vertex without a name".to_owned());
        }
        if u64::from(number) == MOST_VERTICES {
            return Err(format!("more than {MOST_VERTICES} vertices"));
        }
        if self.numbers.insert(key.to_owned(), number).is_some() {
            return Err(format!("`{name}` is declared twice"));
        }
        self.vertices.push(Vertex { name: name.to_owned(), is_switch, has_links: false, at });
        Ok(number)
    }

    /// The number of a vertex that has been declared.
    pub(crate) fn find(&self, key: &str) -> Option<u32> {
        self.numbers.get(key).copied()
    }

    /// The number of a vertex: a node unless it has been declared as a switch.
    pub(crate) fn find_or_declare(&mut self, name: &str, at: Range<usize>) -> Result<u32, String> {
        match self.find(name) {
            Some(number) => Ok(number),
            None => self.declare(name, name, false, at),
        }
    }

    /// Adds the links of a row between two vertices.
    pub(crate) fn link(&mut self, from: u32, to: u32, values: Values<'_>) -> Result<(), String> {
        let [class, bandwidth, latency, count] = values;
        if from == to {
            let name = &self.vertices[from as usize].name;
            return Err(format!("a link from `{name}` to itself"));
        }
        let class = class.unwrap_or("link");
        let known = self.classes.iter().position(|known| known == class);
        let class = known.unwrap_or_else(|| {
            self.classes.push(class.to_owned());
            self.classes.len() - 1
        });
        let capacity = bandwidth.map_or(Ok(Capacity::CLASS), capacity)?;
        let latency = latency.map(parse_seconds).transpose().map_err(|e| e.message)?;
        let kind = LinkKind { capacity, latency, ..LinkKind::of_class(class as u32) };
        let count = count.map_or(Ok(1), |count| number("count", count))? as usize;
        let directions = 1 + usize::from(self.both_ways);
        if count.saturating_mul(directions) > MOST_LINKS - self.links.len() {
            return Err(format!("more than {MOST_LINKS} directed links"));
        }
        for end in [from, to] {
            self.vertices[end as usize].has_links = true;
        }
        for _ in 0..count {
            self.links.push((from, to, kind));
            if self.both_ways {
                self.links.push((to, from, kind));
            }
        }
        Ok(())
    }

    /// The graph with shortest routes. Nodes come first, each kind of vertex in order. The order of lines does
    /// not matter to links: those of a vertex are in the order of where they lead.
    pub(crate) fn graph(self, form: String) -> Result<Graph, SpecError> {
        let alone = |vertex: &&Vertex| vertex.is_switch && !vertex.has_links;
        if let Some(Vertex { name, at, .. }) = self.vertices.iter().find(alone) {
            let message = format!("switch `{name}` has no links");
            return Err(SpecError { message, span: Some(at.clone()) });
        }
        let nodes = self.vertices.iter().filter(|vertex| !vertex.is_switch).count() as u32;
        let switches = self.vertices.len() as u32 - nodes;
        let (mut next_node, mut next_switch) = (0, nodes);
        let mut numbers = Vec::with_capacity(self.vertices.len());
        for vertex in &self.vertices {
            let next = if vertex.is_switch { &mut next_switch } else { &mut next_node };
            numbers.push(*next);
            *next += 1;
        }
        let mut names = vec![String::new(); self.vertices.len()];
        for (vertex, &number) in self.vertices.into_iter().zip(&numbers) {
            names[number as usize] = vertex.name;
        }
        let mut links = self.links;
        for (from, to, _) in &mut links {
            (*from, *to) = (numbers[*from as usize], numbers[*to as usize]);
        }
        links.sort_by_key(|(from, to, kind)| (*from, *to, kind.key()));
        let classes = if self.classes.is_empty() { vec!["link".to_owned()] } else { self.classes };
        let listed = ListedGraph { form, nodes, switches, names, classes, links };
        Ok(listed.with_shortest_routes()?)
    }
}

/// A bandwidth, or `3/2x`: times that of the class.
fn capacity(text: &str) -> Result<Capacity, String> {
    if let Some((times, over)) = text.strip_suffix('x').and_then(|times| fraction(times).ok()) {
        return Ok(Capacity::Relative { times, over }.lowest());
    }
    match parse_bytes_per_second(text).map_err(|e| e.message)? {
        bandwidth if bandwidth.is_finite() => Ok(Capacity::BytesPerSecond(bandwidth)),
        _ => Err(format!("bandwidth is `{text}`: the bandwidth of a link is above 0 and finite")),
    }
}
