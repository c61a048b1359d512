//! Routes from a table.

use std::borrow::Cow;
use std::io::BufRead;

use hashbrown::HashMap;

use super::{Graph, Links, Routes};
use crate::Topology;
use crate::text::fields;

/// The most nodes of a machine with a table of routes.
const MOST_NODES: u32 = 1 << 12;

/// The most links on all routes of a table.
const MOST_HOPS: usize = 1 << 27;

/// The most bytes of a line.
const MOST_BYTES: u64 = 1 << 20;

/// No route.
const NONE: u32 = u32::MAX;

/// A route for each pair of nodes.
#[derive(Debug)]
struct Table {
    nodes: usize,
    /// By source and destination, the place of the route.
    first: Vec<u32>,
    /// Of each route the number of its links, and the port of each.
    ports: Vec<u16>,
    diameter: u32,
}

impl Graph {
    /// This network with the routes of a CSV table, header `source,destination,vertices`: the names
    /// of the vertices on the route from the source to the destination, separated by blanks. Of
    /// parallel links a message takes number (source + destination) mod count, or link 1 to `spine` where
    /// the table has `spine#1`.
    ///
    /// # Errors
    /// What is wrong, and the line, 0 without one: a route that does not begin at its source, end at
    /// its destination, follow links, or pass each vertex once; a second route, or none, for a pair
    /// of different nodes; more than 4,096 nodes or 2^27 links on all routes; a lattice, whose routes
    /// have dimensions.
    pub fn with_route_table(&self, table: &mut dyn BufRead) -> Result<Self, (usize, String)> {
        if self.lattice.is_some() {
            return Err((0, format!("{} has routes of its own", self.form)));
        }
        self.check_nodes().map_err(|message| (0, message))?;
        let routes = Table::read(self, table)?;
        Ok(Self {
            names: (0..self.vertices()).map(|vertex| self.vertex_name(vertex)).collect(),
            ..Self::new(
                "network".to_owned(),
                self.nodes,
                self.classes.clone(),
                self.links.clone(),
                Box::new(routes),
            )
        })
    }

    /// This network with the routes that `links` gives by the numbers of their links, from the source on;
    /// it is the same where these are its own.
    ///
    /// # Errors
    /// Those of `links`; a route that does not lead from its source to its destination, or passes a
    /// vertex twice; more nodes or links than a table has.
    pub(crate) fn with_routes(
        mut self,
        mut links: impl FnMut(u32, u32, &mut Vec<usize>) -> Result<(), String>,
    ) -> Result<Self, String> {
        self.check_nodes()?;
        let nodes = self.nodes as usize;
        let mut table = Table::of(nodes);
        let (mut route, mut vertices, mut own) = (Vec::new(), Vec::new(), true);
        for (from, to) in (0..self.nodes).flat_map(|from| (0..self.nodes).map(move |to| (from, to)))
        {
            if from == to {
                continue;
            }
            route.clear();
            links(from, to, &mut route)?;
            table.begin(from, to, route.len())?;
            vertices.clear();
            vertices.push(from);
            let between =
                || format!("the route from {} to {}", self.vertex_name(from), self.vertex_name(to));
            for &link in &route {
                let at = vertices[vertices.len() - 1];
                let leaving = self.links.leaving(at);
                if !leaving.contains(&link) {
                    return Err(format!(
                        "{}: no link goes on from {}",
                        between(),
                        self.vertex_name(at)
                    ));
                }
                let (port, next) = (link - leaving.start, self.links.to(link));
                if vertices.contains(&next) {
                    return Err(format!("{} passes {} twice", between(), self.vertex_name(next)));
                }
                own = own && self.routes.next(&self.links, at, from, to) == port;
                table.push(port, || self.vertex_name(at))?;
                vertices.push(next);
            }
            if vertices.last() != Some(&to) {
                return Err(format!("{} does not end there", between()));
            }
        }
        if !own {
            self.routes = Box::new(table);
        }
        Ok(self)
    }

    fn check_nodes(&self) -> Result<(), String> {
        match self.nodes {
            nodes if nodes > MOST_NODES => Err(format!(
                "{nodes} nodes: a machine with a table of routes has at most {MOST_NODES}"
            )),
            _ => Ok(()),
        }
    }
}

impl Table {
    /// No routes yet.
    fn of(nodes: usize) -> Self {
        Self { nodes, first: vec![NONE; nodes * nodes], ports: Vec::new(), diameter: 0 }
    }

    /// Begins a route of some links.
    fn begin(&mut self, from: u32, to: u32, hops: usize) -> Result<(), String> {
        if self.ports.len() + hops + 1 > MOST_HOPS {
            return Err(format!("more than {MOST_HOPS} links on all routes"));
        }
        self.first[from as usize * self.nodes + to as usize] = self.ports.len() as u32;
        self.ports.push(hops as u16);
        self.diameter = self.diameter.max(hops as u32);
        Ok(())
    }

    /// Goes on over a port of the vertex with a name.
    fn push(&mut self, port: usize, name: impl Fn() -> String) -> Result<(), String> {
        let port = u16::try_from(port);
        self.ports.push(port.map_err(|_| format!("more than 65536 links leave `{}`", name()))?);
        Ok(())
    }

    fn read(graph: &Graph, table: &mut dyn BufRead) -> Result<Self, (usize, String)> {
        let numbers: HashMap<String, u32> =
            (0..graph.vertices()).map(|vertex| (graph.vertex_name(vertex), vertex)).collect();
        let nodes = graph.nodes as usize;
        let mut read = Self::of(nodes);
        let (mut text, mut vertices, mut is_header) = (String::new(), Vec::new(), true);
        for number in 1.. {
            let wrong = |message: String| (number, message);
            text.clear();
            let mut rest = std::io::Read::take(&mut *table, MOST_BYTES);
            if rest.read_line(&mut text).map_err(|e| wrong(e.to_string()))? == 0 {
                break;
            }
            if text.len() as u64 == MOST_BYTES {
                return Err(wrong(format!("a line of {MOST_BYTES} bytes or more")));
            }
            let line = text.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let values = fields(line).map_err(wrong)?;
            if std::mem::take(&mut is_header) {
                if values != ["source", "destination", "vertices"] {
                    return Err(wrong(format!(
                        "header `{line}`: it is source,destination,vertices"
                    )));
                }
                continue;
            }
            read.add(graph, &numbers, &values, &mut vertices).map_err(wrong)?;
        }
        let pairs = (0..nodes * nodes).filter(|pair| pair / nodes != pair % nodes);
        match pairs.clone().find(|&pair| read.first[pair] == NONE) {
            None => Ok(read),
            Some(pair) => {
                let [from, to] = [pair / nodes, pair % nodes].map(|v| graph.vertex_name(v as u32));
                Err((0, format!("no route from {from} to {to}")))
            }
        }
    }

    /// Adds the route of a line.
    fn add(
        &mut self,
        graph: &Graph,
        numbers: &HashMap<String, u32>,
        values: &[Cow<'_, str>],
        vertices: &mut Vec<(u32, Option<u64>)>,
    ) -> Result<(), String> {
        let [source, destination, route] = values else {
            return Err(format!("{} values: source, destination, vertices", values.len()));
        };
        let find = |name: &str| match numbers.get(name) {
            Some(&vertex) => Ok(vertex),
            None => Err(format!("`{name}` is not a vertex of the network")),
        };
        let node = |name: &str| match find(name)? {
            node if node < graph.nodes => Ok(node),
            _ => Err(format!("`{name}` is a switch: routes lead from node to node")),
        };
        let (from, to) = (node(source)?, node(destination)?);
        if from == to {
            return Err(format!("a route from `{source}` to itself"));
        }
        vertices.clear();
        for name in route.split_ascii_whitespace() {
            let link = name.rsplit_once('#').filter(|_| !numbers.contains_key(name));
            let link = link.and_then(|(name, link)| Some((name, link.parse().ok()?)));
            let (name, link) = link.map_or((name, None), |(name, link)| (name, Some(link)));
            let vertex = find(name)?;
            if vertices.iter().any(|(passed, _)| *passed == vertex) {
                return Err(format!("the route passes `{name}` twice"));
            }
            vertices.push((vertex, link));
        }
        if vertices.first().map(|(vertex, _)| vertex) != Some(&from) {
            return Err(format!("the route `{route}` does not begin at `{source}`"));
        }
        if vertices.last().map(|(vertex, _)| vertex) != Some(&to) {
            return Err(format!("the route `{route}` does not end at `{destination}`"));
        }
        if self.first[from as usize * self.nodes + to as usize] != NONE {
            return Err(format!("a second route from `{source}` to `{destination}`"));
        }
        self.begin(from, to, vertices.len() - 1)?;
        for ends in vertices.windows(2) {
            let ((at, _), (next, link)) = (ends[0], ends[1]);
            let there = graph.links.ends(graph.links.leaving(at));
            let parallel = || there.iter().enumerate().filter(|(_, end)| **end == next);
            let count = parallel().count() as u64;
            let Some(taken) = (u64::from(from) + u64::from(to)).checked_rem(count) else {
                let [at, next] = [at, next].map(|vertex| graph.vertex_name(vertex));
                return Err(format!("no link from `{at}` to `{next}`"));
            };
            let taken = link.unwrap_or(taken);
            if taken >= count {
                let [at, next] = [at, next].map(|vertex| graph.vertex_name(vertex));
                return Err(format!("link {taken} of {count} from `{at}` to `{next}`"));
            }
            let (port, _) = parallel().nth(taken as usize).expect("bug: fewer links than counted");
            self.push(port, || graph.vertex_name(at))?;
        }
        Ok(())
    }
}

impl Routes for Table {
    fn next(&self, links: &Links, at: u32, from: u32, to: u32) -> usize {
        let first = self.first[from as usize * self.nodes + to as usize] as usize;
        let mut vertex = from;
        for &port in &self.ports[first + 1..][..self.ports[first].into()] {
            if vertex == at {
                return port.into();
            }
            vertex = links.to(links.leaving(vertex).start + usize::from(port));
        }
        unreachable!("bug: a vertex that is not on the route")
    }

    fn modulus(&self, _: &Links, _: u32, _: u32) -> Option<u32> {
        None
    }

    fn diameter(&self) -> u32 {
        self.diameter
    }
}
