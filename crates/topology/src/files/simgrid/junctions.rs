//! Links without ends, made a graph.
//!
//! A SimGrid route is a list of links, and no link names its ends. Each link gets a vertex before and one
//! behind it. Where a route goes on from one link to the next, a junction joins them; a junction takes no
//! time and does not limit. Then its two vertices become one, if that changes no route: the junction is the
//! only way out of the one, or the only way into the other.

use std::collections::HashMap;

use crate::{Capacity, LinkKind};

/// How much a link carries.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Carries {
    pub(super) bandwidth: f64,
    pub(super) latency: f64,
    /// Whether each message has the whole bandwidth.
    pub(super) each: bool,
}

/// A link of a platform, used in one direction.
struct Resource {
    name: String,
    carries: Carries,
    /// The edge of it, once a route has it.
    edge: Option<u32>,
}

struct Edge {
    from: u32,
    to: u32,
    /// The link, or none for a junction.
    resource: Option<usize>,
}

/// Vertices, and the edges between them.
#[derive(Default)]
pub(super) struct Junctions {
    names: Vec<String>,
    resources: Vec<Resource>,
    edges: Vec<Edge>,
    joined: HashMap<(u32, u32), u32>,
}

/// The classes of links.
pub(super) const CLASSES: [&str; 3] = ["host", "network", "junction"];

/// The graph after vertices are joined where no route tells them apart.
pub(super) struct Joined {
    /// The names of vertices, hosts first.
    pub(super) names: Vec<String>,
    /// In the order of the vertices that they leave.
    pub(super) links: Vec<(u32, u32, LinkKind)>,
    /// By edge, its place in `links`, or none if its ends are one vertex.
    pub(super) places: Vec<Option<usize>>,
}

impl Junctions {
    pub(super) fn vertex(&mut self, name: &str) -> u32 {
        self.names.push(name.to_owned());
        self.names.len() as u32 - 1
    }

    pub(super) fn resource(&mut self, name: &str, carries: Carries) -> usize {
        self.resources.push(Resource { name: name.to_owned(), carries, edge: None });
        self.resources.len() - 1
    }

    /// The edges from a vertex over some links to another.
    pub(super) fn chain(&mut self, from: u32, links: &[usize], to: u32) -> Vec<u32> {
        let (mut at, mut edges) = (from, Vec::new());
        for &link in links {
            let edge = self.edge(link);
            edges.extend(self.join(at, self.edges[edge as usize].from));
            edges.push(edge);
            at = self.edges[edge as usize].to;
        }
        edges.extend(self.join(at, to));
        edges
    }

    /// The edge of a link.
    fn edge(&mut self, link: usize) -> u32 {
        if let Some(edge) = self.resources[link].edge {
            return edge;
        }
        let name = self.resources[link].name.clone();
        let from = self.vertex(&format!("before {name}"));
        let to = self.vertex(&format!("behind {name}"));
        self.edges.push(Edge { from, to, resource: Some(link) });
        let edge = self.edges.len() as u32 - 1;
        self.resources[link].edge = Some(edge);
        edge
    }

    fn join(&mut self, from: u32, to: u32) -> Option<u32> {
        let Self { edges, joined, .. } = self;
        (from != to).then(|| {
            *joined.entry((from, to)).or_insert_with(|| {
                edges.push(Edge { from, to, resource: None });
                edges.len() as u32 - 1
            })
        })
    }

    /// What a message has at most, of links that give each the whole bandwidth, and of the others.
    pub(super) fn narrowest(&self, edges: &[u32]) -> [f64; 2] {
        let mut least = [f64::INFINITY; 2];
        let resources = edges.iter().filter_map(|edge| self.edges[*edge as usize].resource);
        for carries in resources.map(|resource| self.resources[resource].carries) {
            let least = &mut least[usize::from(!carries.each)];
            *least = least.min(carries.bandwidth);
        }
        least
    }

    /// Makes vertices one where that changes no route.
    pub(super) fn merge(&self, hosts: &[u32]) -> Joined {
        let mut parts = Parts::of(self.names.len(), hosts);
        for edge in &self.edges {
            parts.leaving[edge.from as usize] += 1;
            parts.entering[edge.to as usize] += 1;
        }
        let mut merged = true;
        while merged {
            merged = false;
            for edge in self.edges.iter().filter(|edge| edge.resource.is_none()) {
                merged |= parts.merge(edge.from, edge.to);
            }
        }
        let mut numbers = vec![u32::MAX; self.names.len()];
        let mut names = Vec::new();
        for vertex in hosts.iter().copied().chain(0..self.names.len() as u32) {
            let part = parts.find(vertex) as usize;
            let used = parts.is_host[part] || parts.entering[part] > 0 || parts.leaving[part] > 0;
            if numbers[part] == u32::MAX && used {
                numbers[part] = names.len() as u32;
                names.push(self.names[vertex as usize].clone());
            }
        }
        let all: f64 = self.resources.iter().map(|resource| resource.carries.bandwidth).sum();
        let mut links = Vec::new();
        for (number, edge) in self.edges.iter().enumerate() {
            let [from, to] = [edge.from, edge.to].map(|end| numbers[parts.find(end) as usize]);
            let (class, bandwidth, latency) = match edge.resource.map(|r| self.resources[r].carries)
            {
                None => (2, all, 0.0),
                Some(Carries { latency, each: true, .. }) => (2, all, latency),
                Some(Carries { bandwidth, latency, .. }) => {
                    let of_host = (from.min(to) as usize) < hosts.len();
                    (u32::from(!of_host), bandwidth, latency)
                }
            };
            let kind = LinkKind {
                capacity: Capacity::BytesPerSecond(bandwidth),
                latency: Some(latency),
                ..LinkKind::of_class(class)
            };
            if from != to {
                links.push((number, (from, to, kind)));
            }
        }
        links.sort_by_key(|(_, (from, ..))| *from);
        let mut places = vec![None; self.edges.len()];
        links.iter().enumerate().for_each(|(place, (edge, _))| places[*edge] = Some(place));
        Joined { names, links: links.into_iter().map(|(_, link)| link).collect(), places }
    }
}

/// Vertices that have become one.
struct Parts {
    of: Vec<u32>,
    is_host: Vec<bool>,
    leaving: Vec<u32>,
    entering: Vec<u32>,
}

impl Parts {
    fn of(vertices: usize, hosts: &[u32]) -> Self {
        let mut is_host = vec![false; vertices];
        hosts.iter().for_each(|host| is_host[*host as usize] = true);
        let (leaving, entering) = (vec![0; vertices], vec![0; vertices]);
        Self { of: (0..vertices as u32).collect(), is_host, leaving, entering }
    }

    fn find(&mut self, vertex: u32) -> u32 {
        let mut at = vertex;
        while self.of[at as usize] != at {
            let next = self.of[at as usize];
            self.of[at as usize] = self.of[next as usize];
            at = next;
        }
        at
    }

    /// Makes the ends of a junction one, if that changes no route. Routes begin and end at hosts: one may
    /// reach the other end of their only junction without passing them.
    fn merge(&mut self, from: u32, to: u32) -> bool {
        let (from, to) = (self.find(from), self.find(to));
        let (one, other) = (from as usize, to as usize);
        let only_out = self.leaving[one] == 1 && !self.is_host[one];
        let only_in = self.entering[other] == 1 && !self.is_host[other];
        if one == other || !(only_out || only_in) {
            return false;
        }
        self.of[other] = from;
        self.is_host[one] |= self.is_host[other];
        self.leaving[one] += self.leaving[other] - 1;
        self.entering[one] += self.entering[other] - 1;
        true
    }
}
