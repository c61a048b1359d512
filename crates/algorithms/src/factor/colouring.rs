//! Edge colourings of bipartite multigraphs: messages assigned to matchings.
//!
//! As many colours suffice as the busiest vertex has edges (Koenig 1916): an edge whose ends have
//! no free colour in common gets one by swapping two colours along a path. Here edges have weights,
//! and a colour has the weight of its heaviest edge. The edges come by falling weight: one that
//! fits into an existing colour costs nothing; else a new colour costs its weight, and a swap costs
//! the weight that it adds to the lighter of the two colours.

/// An edge, from a vertex of one side to a vertex of the other.
#[derive(Clone, Copy)]
pub(crate) struct Edge {
    pub(crate) ends: [u32; 2],
    pub(crate) weight: u64,
}

/// Colours by number, as bits.
#[derive(Clone, Default)]
pub(crate) struct Colours(Vec<u64>);

impl Colours {
    pub(crate) fn insert(&mut self, colour: u32) {
        let word = colour as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (colour % 64);
    }

    fn remove(&mut self, colour: u32) {
        self.0[colour as usize / 64] &= !(1 << (colour % 64));
    }

    fn word(&self, word: usize) -> u64 {
        self.0.get(word).copied().unwrap_or(0)
    }

    /// The last colour below `colours` that is not among these.
    fn last_free(&self, colours: u32) -> Option<u32> {
        (0..colours.div_ceil(64)).rev().find_map(|word| {
            let below = (colours - 64 * word).min(64);
            let free = !self.word(word as usize) & (u64::MAX >> (64 - below));
            free.checked_ilog2().map(|bit| 64 * word + bit)
        })
    }
}

/// The first colour that is in none of these sets.
pub(crate) fn first_free(sets: &[&Colours]) -> u32 {
    let words = sets.iter().map(|set| set.0.len()).max().unwrap_or(0);
    let free = |word: usize| !sets.iter().fold(0, |used, set| used | set.word(word));
    let found = (0..=words).find(|&word| free(word) != 0).expect("bug: past the end all are free");
    found as u32 * 64 + free(found).trailing_zeros()
}

/// The most edges that a vertex has.
pub(crate) fn degree(vertices: u32, edges: &[Edge]) -> u32 {
    let mut degrees = vec![0; 2 * vertices as usize];
    for edge in edges {
        degrees[edge.ends[0] as usize] += 1;
        degrees[(vertices + edge.ends[1]) as usize] += 1;
    }
    degrees.into_iter().max().unwrap_or(0)
}

struct Colouring<'a> {
    vertices: usize,
    edges: &'a [Edge],
    /// By edge.
    colours: Vec<u32>,
    /// By side and vertex.
    used: [Vec<Colours>; 2],
    /// By colour, then side and vertex, the edge that has it there.
    holds: Vec<Vec<Option<u32>>>,
    /// By colour, an upper bound while colours are swapped.
    weights: Vec<u64>,
}

/// The colour of each edge, at most `most` of them, which are at least the [`degree`]; edges by
/// falling weight.
pub(crate) fn coloured(vertices: u32, edges: &[Edge], most: u32) -> Vec<u32> {
    let vertices = vertices as usize;
    let used = || vec![Colours::default(); vertices];
    let mut colouring = Colouring {
        vertices,
        edges,
        colours: vec![u32::MAX; edges.len()],
        used: [used(), used()],
        holds: Vec::new(),
        weights: Vec::new(),
    };
    for edge in 0..edges.len() as u32 {
        colouring.add(edge, most);
    }
    colouring.colours
}

impl Colouring<'_> {
    fn open(&self) -> u32 {
        self.weights.len() as u32
    }

    fn end(&self, edge: u32, side: usize) -> usize {
        self.edges[edge as usize].ends[side] as usize
    }

    fn add(&mut self, edge: u32, most: u32) {
        let (u, v) = (self.end(edge, 0), self.end(edge, 1));
        let weight = self.edges[edge as usize].weight;
        let free = first_free(&[&self.used[0][u], &self.used[1][v]]);
        if free < self.open() {
            return self.put(edge, free);
        }
        let pair = (self.used[0][u].last_free(self.open()))
            .zip(self.used[1][v].last_free(self.open()))
            .map(|(a, b)| (a, b, self.path(v, a, b)));
        match pair {
            Some((a, b, path)) if self.open() >= most || self.added(a, b, &path) <= weight => {
                self.swap(a, b, &path);
                self.put(edge, a);
            }
            _ => {
                self.holds.push(vec![None; 2 * self.vertices]);
                self.weights.push(weight);
                self.put(edge, self.open() - 1);
            }
        }
    }

    fn put(&mut self, edge: u32, colour: u32) {
        self.colours[edge as usize] = colour;
        let weight = &mut self.weights[colour as usize];
        *weight = (*weight).max(self.edges[edge as usize].weight);
        for side in 0..2 {
            let vertex = self.end(edge, side);
            self.used[side][vertex].insert(colour);
            self.holds[colour as usize][side * self.vertices + vertex] = Some(edge);
        }
    }

    /// The path of colours a and b in turn from the receiving vertex v, which has no edge of b: it
    /// never meets a sending vertex without a.
    fn path(&self, v: usize, a: u32, b: u32) -> Vec<u32> {
        let (mut path, mut side, mut vertex, mut colour) = (Vec::new(), 1, v, a);
        while let Some(edge) = self.holds[colour as usize][side * self.vertices + vertex] {
            path.push(edge);
            side = 1 - side;
            vertex = self.end(edge, side);
            colour = if colour == a { b } else { a };
        }
        path
    }

    /// The weight added to the two colours by swapping along a path.
    fn added(&self, a: u32, b: u32, path: &[u32]) -> u64 {
        let heaviest = |colour: u32| {
            let edges = path.iter().filter(move |&&edge| self.colours[edge as usize] == colour);
            edges.map(|&edge| self.edges[edge as usize].weight).max().unwrap_or(0)
        };
        let more = |from: u32, to: u32| heaviest(from).saturating_sub(self.weights[to as usize]);
        more(a, b) + more(b, a)
    }

    fn swap(&mut self, a: u32, b: u32, path: &[u32]) {
        for &edge in path {
            let colour = self.colours[edge as usize];
            for side in 0..2 {
                let vertex = self.end(edge, side);
                self.used[side][vertex].remove(colour);
                self.holds[colour as usize][side * self.vertices + vertex] = None;
            }
        }
        for &edge in path {
            let colour = self.colours[edge as usize];
            self.put(edge, if colour == a { b } else { a });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(seed: u64, vertices: u32, count: u32) -> Vec<Edge> {
        let mut word = seed | 1;
        let mut next = |below: u32| {
            word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1_442_695_040_888_963_407);
            ((word >> 33) % u64::from(below)) as u32
        };
        let mut edges: Vec<Edge> = (0..count)
            .map(|_| Edge { ends: [next(vertices), next(vertices)], weight: next(1000).into() })
            .collect();
        edges.sort_by_key(|edge| std::cmp::Reverse(edge.weight));
        edges
    }

    #[test]
    fn no_vertex_has_a_colour_twice_and_colours_are_as_few_as_asked() {
        for seed in 0..300 {
            let (vertices, count) = (1 + seed as u32 % 12, 3 * (seed as u32 % 40));
            let edges = random(seed, vertices, count);
            let least = degree(vertices, &edges);
            for most in [least, least + 2, u32::MAX] {
                let colours = coloured(vertices, &edges, most);
                assert!(colours.iter().all(|&colour| colour < most), "{seed} {most}");
                let mut seen = std::collections::BTreeSet::new();
                for (edge, colour) in edges.iter().zip(colours) {
                    assert!(seen.insert((0, edge.ends[0], colour)), "{seed} {most}");
                    assert!(seen.insert((1, edge.ends[1], colour)), "{seed} {most}");
                }
            }
        }
    }

    #[test]
    fn free_colours_are_found_across_words() {
        let mut colours = Colours::default();
        assert_eq!((first_free(&[&colours]), colours.last_free(130)), (0, Some(129)));
        (0..64).chain(100..130).for_each(|colour| colours.insert(colour));
        assert_eq!((first_free(&[&colours]), colours.last_free(130)), (64, Some(99)));
        assert_eq!(colours.last_free(64), None);
    }
}
