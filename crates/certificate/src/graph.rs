//! Networks whose links and routes a certificate lists.

use std::collections::BTreeMap;

use crate::Fault;
use crate::lines::{Busiest, Segment};
use crate::radix::limited;

/// The largest common denominator of capacities. Where theirs is larger, bounds take capacities as
/// multiples of 1 over this, rounded up, and stay true.
const DENOMINATOR: u64 = 1 << 32;

/// Vertices, first the nodes and then switches, and the links that leave each of them by its ports.
pub(crate) struct Graph {
    nodes: u32,
    /// By vertex, the place of its first port, and one more at the end.
    first: Vec<usize>,
    ports: Vec<Option<Link>>,
    /// By vertex, the machine's own routes: for destinations in order, the end of each run of
    /// destinations, and the places in `choices` of the ports of a message to them.
    next: Vec<Vec<Run>>,
    choices: Vec<u32>,
}

/// A link from one vertex to another.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    pub(crate) to: u32,
    /// The capacity, as a fraction.
    pub(crate) times: u32,
    pub(crate) over: u32,
    /// The length that bounds an all-to-all.
    pub(crate) length: u32,
}

struct Run {
    end: u32,
    choices: (u32, u32),
}

impl Graph {
    /// A graph without vertices.
    pub(crate) fn new(nodes: u32) -> Self {
        let (ports, next, choices) = (Vec::new(), Vec::new(), Vec::new());
        Self { nodes, first: vec![0], ports, next, choices }
    }

    /// Adds a vertex with these ports.
    pub(crate) fn add_vertex(&mut self, ports: impl Iterator<Item = Option<Link>>) {
        self.ports.extend(ports);
        self.first.push(self.ports.len());
        self.next.push(Vec::new());
    }

    /// Adds the number of destinations that follow those so far, and the ports by which messages to
    /// them leave the last vertex. Returns the number of all its destinations.
    pub(crate) fn add_next(&mut self, destinations: u32, ports: &[u32]) -> u32 {
        let runs = self.next.last_mut().expect("bug: no vertex");
        let before = runs.last().map_or(0, |run| run.end);
        let choices = (self.choices.len() as u32, ports.len() as u32);
        self.choices.extend(ports);
        let end = before.saturating_add(destinations);
        runs.push(Run { end, choices });
        end
    }

    pub(crate) fn nodes(&self) -> u32 {
        self.nodes
    }

    pub(crate) fn vertices(&self) -> usize {
        self.next.len()
    }

    /// The ports of all vertices.
    pub(crate) fn ports(&self) -> usize {
        self.ports.len()
    }

    pub(crate) fn name(&self) -> String {
        format!("graph {}+{}", self.nodes, self.vertices() - self.nodes as usize)
    }

    /// The place among all ports of a port of a vertex.
    fn place(&self, at: u32, port: usize) -> Option<usize> {
        let ends = &self.first[at as usize..at as usize + 2];
        Some(ends[0].checked_add(port)?).filter(|place| *place < ends[1])
    }

    /// The next link of the machine's own route between two nodes.
    fn next(&self, at: u32, [from, to]: [u32; 2]) -> Option<usize> {
        let runs = &self.next[at as usize];
        let run = runs.get(runs.partition_point(|run| run.end <= to))?;
        let (first, count) = run.choices;
        let choice = (u64::from(from) + u64::from(to)) % u64::from(count);
        self.place(at, self.choices[first as usize + choice as usize] as usize)
    }

    fn leaving(&self, vertex: u32) -> impl Iterator<Item = &Link> {
        self.ports[self.first[vertex as usize]..self.first[vertex as usize + 1]].iter().flatten()
    }

    /// The denominator of capacities.
    pub(crate) fn denominator(&self) -> u128 {
        let divisor = |mut a: u64, mut b: u64| {
            while b > 0 {
                (a, b) = (b, a % b);
            }
            a
        };
        let mut common = 1u64;
        for link in self.ports.iter().flatten() {
            let over = u64::from(link.over);
            common = common / divisor(common, over) * over;
            if common > DENOMINATOR {
                return DENOMINATOR.into();
            }
        }
        common.into()
    }

    /// By node, the capacities of the links that leave it and that lead to it, in units of 1 over
    /// the denominator.
    pub(crate) fn capacities(&self) -> Vec<[u128; 2]> {
        let denominator = self.denominator();
        let mut capacities = vec![[0; 2]; self.vertices()];
        for vertex in 0..self.vertices() as u32 {
            for link in self.leaving(vertex) {
                let capacity = link.capacity(denominator);
                capacities[vertex as usize][0] += capacity;
                capacities[link.to as usize][1] += capacity;
            }
        }
        capacities.truncate(self.nodes as usize);
        capacities
    }

    /// The sum of the lengths of all links times their capacities, in units of 1 over the
    /// denominator.
    pub(crate) fn lengths(&self) -> u128 {
        let denominator = self.denominator();
        let length = |link: &Link| u128::from(link.length) * link.capacity(denominator);
        self.ports.iter().flatten().map(length).sum()
    }

    /// The distances of all nodes from one, `None` where there is no way: by the lengths of links,
    /// or in links.
    pub(crate) fn distances(&self, from: u32, in_links: bool) -> Vec<Option<u64>> {
        let mut found: Vec<Option<u64>> = vec![None; self.vertices()];
        found[from as usize] = Some(0);
        // By distance, so that each vertex is left by its shortest way first (Dijkstra 1959).
        let mut open = BTreeMap::from([(0, vec![from])]);
        while let Some((distance, vertices)) = open.pop_first() {
            for at in vertices {
                if found[at as usize] != Some(distance) {
                    continue;
                }
                for link in self.leaving(at) {
                    let distance = distance + if in_links { 1 } else { link.length.into() };
                    let known = &mut found[link.to as usize];
                    if known.is_none_or(|known| distance < known) {
                        *known = Some(distance);
                        open.entry(distance).or_default().push(link.to);
                    }
                }
            }
        }
        found.truncate(self.nodes as usize);
        found
    }
}

impl Link {
    fn capacity(&self, denominator: u128) -> u128 {
        (u128::from(self.times) * denominator).div_ceil(self.over.into())
    }
}

/// The loads of a graph's links in one step.
pub(crate) struct Loads<'c> {
    graph: &'c Graph,
    /// By port, the messages and bytes.
    loads: Vec<(u64, u128)>,
    /// The ports with messages.
    used: Vec<usize>,
    /// The links of all messages so far.
    visited: u128,
    /// The most links of all messages.
    most: u128,
}

impl<'c> Loads<'c> {
    pub(crate) fn new(graph: &'c Graph, most: u128) -> Self {
        Self { graph, loads: vec![(0, 0); graph.ports()], used: Vec::new(), visited: 0, most }
    }

    /// Adds a message between two nodes and returns its hops; `None` if its route does not end at
    /// the second.
    pub(crate) fn add(
        &mut self,
        [from, to]: [u32; 2],
        route: Option<&[Segment]>,
        bytes: u128,
    ) -> Result<Option<u128>, Fault> {
        let graph = self.graph;
        let (mut at, mut hops) = (from, 0);
        let Some(route) = route else {
            while at != to {
                // A route that passes a vertex twice has no end.
                let next = graph.next(at, [from, to]).filter(|_| hops < graph.vertices() as u128);
                let Some(next) = self.hop(next, bytes)? else { return Ok(None) };
                (at, hops) = (next, hops + 1);
            }
            return Ok(Some(hops));
        };
        for &(port, times) in route {
            if times < 1 {
                return Ok(None);
            }
            for _ in 0..times {
                let Some(next) = self.hop(graph.place(at, port), bytes)? else { return Ok(None) };
                (at, hops) = (next, hops + 1);
            }
        }
        Ok((at == to).then_some(hops))
    }

    /// Adds a message to the link at a port and returns the vertex that it leads to.
    fn hop(&mut self, place: Option<usize>, bytes: u128) -> Result<Option<u32>, Fault> {
        let link = place.and_then(|place| Some((place, self.graph.ports[place]?)));
        let Some((place, link)) = link else { return Ok(None) };
        self.visited += 1;
        limited("links visited", self.visited, self.most)?;
        let load = &mut self.loads[place];
        if load.0 == 0 {
            self.used.push(place);
        }
        *load = (load.0 + 1, load.1 + bytes);
        Ok(Some(link.to))
    }

    /// The busiest links, with loads over their capacities, rounded up to whole bytes. Resets all
    /// loads.
    pub(crate) fn busiest(&mut self) -> Busiest {
        let mut busiest = Busiest::default();
        for place in self.used.drain(..) {
            let (messages, load) = std::mem::take(&mut self.loads[place]);
            let link = self.graph.ports[place].expect("bug: a message on no link");
            let load = load.saturating_mul(link.over.into()).div_ceil(link.times.into());
            busiest.messages = busiest.messages.max(messages.into());
            busiest.load = busiest.load.max(load);
            busiest.shared += u128::from(messages > 1);
        }
        busiest
    }
}
