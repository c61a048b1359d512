//! Links by the names of their ends.

use std::ops::Range;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::error::SpecError;
use crate::number::{fraction, number};
use crate::topology::graph::MOST_VERTICES;
use crate::units::{parse_bytes_per_second, parse_seconds};
use crate::{Capacity, Graph, LinkKind, ListedGraph, Machine};

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
    /// By class, the seconds of a byte on its fastest link and the least latency, and where these stand.
    least: Vec<[Option<(f64, usize)>; 2]>,
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
        let (vertices, numbers, classes) = (Vec::new(), HashMap::new(), Vec::new());
        Self { both_ways, vertices, numbers, classes, links: Vec::new(), least: Vec::new() }
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
        Ok(self.vertex(name.to_owned(), is_switch, at))
    }

    /// Adds a node or a switch, and returns its number.
    pub(crate) fn vertex(&mut self, name: String, is_switch: bool, at: Range<usize>) -> u32 {
        self.vertices.push(Vertex { name, is_switch, has_links: false, at });
        self.vertices.len() as u32 - 1
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

    /// The same with these classes first; others are in the order in which links name them.
    pub(crate) fn with_classes<S: AsRef<str>>(
        mut self,
        names: impl IntoIterator<Item = S>,
    ) -> Self {
        for name in names {
            self.class(name.as_ref());
        }
        self
    }

    fn class(&mut self, name: &str) -> usize {
        let known = self.classes.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.classes.push(name.to_owned());
            self.least.push([None; 2]);
            self.classes.len() - 1
        })
    }

    /// Adds the links of a row at an offset between two vertices.
    pub(crate) fn link(
        &mut self,
        ends: [u32; 2],
        values: Values<'_>,
        at: usize,
    ) -> Result<(), String> {
        let [class, bandwidth, latency, count] = values;
        let capacity = bandwidth.map_or(Ok(Capacity::CLASS), capacity)?;
        let latency = latency.map(parse_seconds).transpose().map_err(|e| e.message)?;
        let count = count.map_or(Ok(1), |count| number("count", count))?;
        self.add(ends, class.unwrap_or("link"), (capacity, latency), count, Some(at))
    }

    /// Adds links between two vertices, which stand at an offset.
    pub(crate) fn add(
        &mut self,
        [from, to]: [u32; 2],
        class: &str,
        (capacity, latency): (Capacity, Option<f64>),
        count: u32,
        at: Option<usize>,
    ) -> Result<(), String> {
        if from == to {
            let name = &self.vertices[from as usize].name;
            return Err(format!("a link from `{name}` to itself"));
        }
        let class = self.class(class);
        let per_byte = match capacity {
            Capacity::BytesPerSecond(bandwidth) => Some(1.0 / bandwidth),
            Capacity::Relative { .. } => None,
        };
        for (least, value) in self.least[class].iter_mut().zip([per_byte, latency]) {
            let value = value.filter(|value| least.is_none_or(|(own, _)| *value < own));
            *least = value.zip(at).or(*least);
        }
        let kind = LinkKind { capacity, latency, ..LinkKind::of_class(class as u32) };
        let directions = 1 + usize::from(self.both_ways);
        if (count as usize).saturating_mul(directions) > MOST_LINKS - self.links.len() {
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

    /// The machine of the graph, with the lines of `text` where the values of its classes stand.
    pub(crate) fn machine(self, name: &str, text: &str) -> Result<Machine, SpecError> {
        let places: Vec<_> =
            self.least.iter().map(|of| of.map(|of| of.map(|(_, at)| at))).collect();
        let graph = self.graph("network".to_owned())?;
        let mut machine = Machine { name: name.to_owned(), ..Machine::of(Arc::new(graph)) };
        for (value, key) in ["per_byte", "per_hop"].into_iter().enumerate() {
            let of_links = |(class, at): (usize, &[Option<usize>; 2])| {
                at[value].filter(|_| machine.values_of_links(class)[value].is_some())
            };
            let places: Vec<_> = places.iter().enumerate().filter_map(of_links).collect();
            machine.cite_lines(key, text, places);
        }
        Ok(machine)
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
