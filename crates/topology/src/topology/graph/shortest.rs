//! Routes of the fewest links.
//!
//! At each vertex several links may lead nearer to the destination. Of c such links, in the order of
//! their numbers, a message takes number (source + destination) mod c. Parallel links are among
//! them one by one.

use super::{Links, Routes};

/// Links to each node from each vertex.
#[derive(Debug)]
pub(crate) struct Shortest {
    vertices: usize,
    /// By node and vertex.
    distances: Vec<u16>,
    diameter: u32,
    /// Whether only one link leads nearer to any node from anywhere.
    unique: bool,
    ports: Ports,
}

/// The places of the links of each vertex, where the next link of a message is looked up.
#[derive(Debug)]
struct Ports {
    /// By vertex, the ends of its links, ascending, and their places.
    by_end: Vec<(u32, u32)>,
    /// By vertex, the first of its places in `onward`; one more entry at the end.
    first: Vec<u32>,
    /// The places that lead to a vertex from which a message can go on to a third one.
    onward: Vec<u32>,
}

impl Ports {
    fn of(links: &Links) -> Self {
        let (mut by_end, mut first, mut onward) =
            (Vec::with_capacity(links.count()), vec![0], Vec::new());
        for vertex in 0..links.vertices() {
            let ends = links.ends(links.leaving(vertex));
            let start = by_end.len();
            by_end.extend(ends.iter().copied().zip(0..));
            by_end[start..].sort_unstable();
            let goes_on = |&place: &u32| {
                let beyond = links.ends(links.leaving(ends[place as usize]));
                beyond.iter().any(|&end| end != vertex)
            };
            onward.extend((0..ends.len() as u32).filter(goes_on));
            first.push(onward.len() as u32);
        }
        Self { by_end, first, onward }
    }

    /// The places of the links of a vertex that lead to another.
    fn to(&self, links: &Links, at: u32, end: u32) -> impl Iterator<Item = usize> {
        let ends = &self.by_end[links.leaving(at)];
        let own = ends[ends.partition_point(|of| of.0 < end)..].iter();
        own.take_while(move |of| of.0 == end).map(|&(_, place)| place as usize)
    }

    fn onward(&self, at: u32) -> &[u32] {
        &self.onward[self.first[at as usize] as usize..self.first[at as usize + 1] as usize]
    }
}

/// Links of a vertex that are all looked at.
const FEW: usize = 8;

/// No route.
const FAR: u16 = u16::MAX;

impl Shortest {
    /// Routes between all nodes, or two nodes of which the first cannot reach the second.
    pub(crate) fn new(links: &Links, nodes: u32) -> Result<Self, (u32, u32)> {
        let vertices = links.vertices() as usize;
        let entering = Entering::of(links);
        let mut distances = vec![FAR; nodes as usize * vertices];
        let mut open: Vec<u32> = Vec::with_capacity(vertices);
        let (mut diameter, mut unique) = (0, true);
        for (to, row) in (0..nodes).zip(distances.chunks_mut(vertices.max(1))) {
            row[to as usize] = 0;
            open.clear();
            open.push(to);
            let mut next = 0;
            while let Some(&at) = open.get(next) {
                next += 1;
                // Nothing is farther than the last one.
                if open.len() == vertices && row[at as usize] == row[open[vertices - 1] as usize] {
                    break;
                }
                for &before in entering.leading_to(at) {
                    if row[before as usize] == FAR {
                        row[before as usize] = row[at as usize] + 1;
                        open.push(before);
                    } else {
                        unique &= row[before as usize] != row[at as usize] + 1;
                    }
                }
            }
            let own = row.iter().take(nodes as usize);
            if let Some(from) = own.clone().position(|&hops| hops == FAR) {
                return Err((from as u32, to));
            }
            diameter = diameter.max(own.copied().max().unwrap_or(0));
        }
        let ports = Ports::of(links);
        Ok(Self { vertices, distances, diameter: diameter.into(), unique, ports })
    }

    /// Calls `each` with the places of the links from a vertex that lead nearer to a node.
    #[inline]
    fn nearer(&self, links: &Links, at: u32, to: u32, mut each: impl FnMut(usize)) {
        let ends = links.ends(links.leaving(at));
        let row = &self.distances[to as usize * self.vertices..][..self.vertices];
        let leads = |end: u32| row[end as usize] == row[at as usize] - 1;
        if ends.len() <= FEW {
            let places = ends.iter().enumerate().filter(|(_, end)| leads(**end));
            return places.for_each(|(place, _)| each(place));
        }
        let mut direct = self.ports.to(links, at, to).peekable();
        if direct.peek().is_some() {
            return direct.for_each(each);
        }
        let places = self.ports.onward(at);
        // The only one needs no look at distances.
        let all = places.len() == 1;
        let places = places.iter().map(|&place| place as usize);
        places.filter(|&place| all || leads(ends[place])).for_each(each);
    }
}

impl Routes for Shortest {
    fn next(&self, links: &Links, at: u32, from: u32, to: u32) -> usize {
        let (mut count, mut last) = (0, 0);
        self.nearer(links, at, to, |place| (count, last) = (count + 1, place));
        if count > 1 {
            let mut taken = (u64::from(from) + u64::from(to)) % count;
            self.nearer(links, at, to, |place| {
                last = if taken == 0 { place } else { last };
                taken = taken.wrapping_sub(1);
            });
        }
        last
    }

    fn modulus(&self, links: &Links, at: u32, to: u32) -> Option<u32> {
        let mut count = 0;
        self.nearer(links, at, to, |_| count += 1);
        Some(count)
    }

    fn diameter(&self) -> u32 {
        self.diameter
    }

    fn are_of_links(&self) -> bool {
        true
    }

    fn are_shortest(&self) -> bool {
        true
    }

    fn follow_links(&self) -> bool {
        self.unique
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
