//! Routes of the fewest links.
//!
//! At each vertex several links may lead nearer to the destination. Of c such links, in the order of
//! their numbers, a message takes number (source + destination) mod c. Parallel links are among
//! them one by one.

use std::collections::VecDeque;

use super::{Links, Routes};

/// Links to each node from each vertex.
#[derive(Debug)]
pub(crate) struct Shortest {
    vertices: usize,
    /// By node and vertex.
    distances: Vec<u16>,
    diameter: u32,
}

/// No route.
const FAR: u16 = u16::MAX;

impl Shortest {
    /// Routes between all nodes, or two nodes of which the first cannot reach the second.
    pub(crate) fn new(links: &Links, nodes: u32) -> Result<Self, (u32, u32)> {
        let vertices = links.vertices() as usize;
        let entering = Entering::of(links);
        let mut distances = vec![FAR; nodes as usize * vertices];
        let mut open = VecDeque::new();
        let mut diameter = 0;
        for (to, row) in (0..nodes).zip(distances.chunks_mut(vertices.max(1))) {
            row[to as usize] = 0;
            open.push_back(to);
            while let Some(at) = open.pop_front() {
                for &before in entering.leading_to(at) {
                    if row[before as usize] == FAR {
                        row[before as usize] = row[at as usize] + 1;
                        open.push_back(before);
                    }
                }
            }
            let own = row.iter().take(nodes as usize);
            if let Some(from) = own.clone().position(|&hops| hops == FAR) {
                return Err((from as u32, to));
            }
            diameter = diameter.max(own.copied().max().unwrap_or(0));
        }
        Ok(Self { vertices, distances, diameter: diameter.into() })
    }

    /// The places of the links from a vertex that lead nearer to a node.
    fn nearer(&self, links: &Links, at: u32, to: u32) -> impl Iterator<Item = usize> {
        let row = &self.distances[to as usize * self.vertices..][..self.vertices];
        let nearer = row[at as usize] - 1;
        let ends = links.ends(links.leaving(at)).iter().enumerate();
        ends.filter(move |(_, end)| row[**end as usize] == nearer).map(|(place, _)| place)
    }
}

impl Routes for Shortest {
    fn next(&self, links: &Links, at: u32, from: u32, to: u32) -> usize {
        let onward = || self.nearer(links, at, to);
        let count = onward().count() as u64;
        let taken = (u64::from(from) + u64::from(to)) % count;
        onward().nth(taken as usize).expect("bug: a vertex on the route")
    }

    fn modulus(&self, links: &Links, at: u32, to: u32) -> Option<u32> {
        Some(self.nearer(links, at, to).count() as u32)
    }

    fn diameter(&self) -> u32 {
        self.diameter
    }
}

/// By vertex, the vertices that its links come from.
struct Entering {
    first: Vec<u32>,
    from: Vec<u32>,
}

impl Entering {
    fn of(links: &Links) -> Self {
        let vertices = links.vertices();
        let mut first = vec![0; vertices as usize + 2];
        for link in 0..links.count() {
            first[links.to(link) as usize + 2] += 1;
        }
        for vertex in 2..first.len() {
            first[vertex] += first[vertex - 1];
        }
        let mut from = vec![0; links.count()];
        for vertex in 0..vertices {
            for link in links.leaving(vertex) {
                let place = &mut first[links.to(link) as usize + 1];
                from[*place as usize] = vertex;
                *place += 1;
            }
        }
        Self { first, from }
    }

    fn leading_to(&self, vertex: u32) -> &[u32] {
        &self.from[self.first[vertex as usize] as usize..self.first[vertex as usize + 1] as usize]
    }
}
