//! Edge colourings of bipartite multigraphs: messages assigned to matchings.
//!
//! As many colours suffice as the busiest vertex has edges (Koenig 1916): an edge whose ends have
//! no free colour in common gets one by swapping two colours along a path. Here edges have weights,
//! a colour has the weight of its heaviest edge, and each colour costs as much as a given weight in
//! addition. The edges come by falling weight: one that fits into an existing colour costs nothing;
//! else a new colour costs its weight and what each colour costs, and a swap costs the weight that
//! it adds to the lighter of the two colours. One new colour serves many later edges, so it is opened
//! where the swaps since the last one cost a quarter of it.

/// An edge, from a vertex of one side to a vertex of the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) ends: [u32; 2],
    pub(crate) weight: u64,
}

/// A new colour is opened where swaps have cost this part of it.
const PART: u64 = 4;

/// A colouring that costs more than 21 / 20 of the bound is compared with one of the fewest colours.
const GOOD: u64 = 20;

const NONE: u32 = u32::MAX;

/// Colours by number, as bits, for each vertex.
#[derive(Default, Debug)]
pub(crate) struct Used {
    words: usize,
    bits: Vec<u64>,
}

impl Used {
    /// No colours, and room for as many of each vertex.
    pub(crate) fn clear(&mut self, vertices: usize, colours: usize) {
        self.words = colours.div_ceil(64);
        self.bits.clear();
        self.bits.resize(vertices * self.words, 0);
    }

    pub(crate) fn of(&self, vertex: u32) -> &[u64] {
        &self.bits[vertex as usize * self.words..][..self.words]
    }

    pub(crate) fn insert(&mut self, vertex: u32, colour: u32) {
        self.bits[vertex as usize * self.words + colour as usize / 64] |= 1 << (colour % 64);
    }

    fn remove(&mut self, vertex: u32, colour: u32) {
        self.bits[vertex as usize * self.words + colour as usize / 64] &= !(1 << (colour % 64));
    }

    /// The last colour below `colours` that a vertex does not have.
    fn last_free(&self, vertex: u32, colours: u32) -> Option<u32> {
        let used = self.of(vertex);
        (0..colours.div_ceil(64)).rev().find_map(|word| {
            let below = (colours - 64 * word).min(64);
            let free = !used[word as usize] & (u64::MAX >> (64 - below));
            free.checked_ilog2().map(|bit| 64 * word + bit)
        })
    }
}

/// The first colour that is in none of these sets, which have room for it.
pub(crate) fn first_free<const N: usize>(sets: [&[u64]; N]) -> u32 {
    let words = sets.iter().map(|set| set.len()).min().unwrap_or(0);
    let free = |word: usize| !sets.iter().fold(0, |used, set| used | set[word]);
    let found = (0..words).find(|&word| free(word) != 0).expect("bug: room for a free colour");
    found as u32 * 64 + free(found).trailing_zeros()
}

/// The colour of each edge, and the weight of each colour.
#[derive(Default, Debug)]
pub(crate) struct Colours {
    pub(crate) of: Vec<u32>,
    pub(crate) weights: Vec<u64>,
}

impl Colours {
    fn cost(&self, each: u64) -> u128 {
        self.weights.iter().map(|&weight| u128::from(weight) + u128::from(each)).sum()
    }
}

/// Colours the edges of one graph after the other in the same memory.
#[derive(Default, Debug)]
pub(crate) struct Colouring {
    /// By falling weight.
    pub(crate) edges: Vec<Edge>,
    pub(crate) colours: Colours,
    /// For each number of edges that a vertex has, the largest weight of a last one.
    pub(crate) floor: Vec<u64>,
    vertices: usize,
    /// By side.
    used: [Used; 2],
    /// By colour, then side and vertex, the edge that has it there.
    holds: Vec<u32>,
    path: Vec<u32>,
    /// The weight that swaps have added since the last new colour.
    spent: u64,
    other: Colours,
}

impl Colouring {
    /// Colours the edges where each colour costs as much as a weight of `each` in addition. There are at most
    /// twice as many colours as the busiest vertex has edges.
    pub(crate) fn colour(&mut self, vertices: usize, each: u64) {
        self.vertices = vertices;
        self.bound();
        self.attempt(each);
        let bound = self.floor.iter().map(|&weight| u128::from(weight) + u128::from(each));
        let (cost, bound) = (self.colours.cost(each), bound.sum::<u128>());
        if (cost - bound) * u128::from(GOOD) > bound {
            std::mem::swap(&mut self.colours, &mut self.other);
            self.attempt(u64::MAX);
            if cost <= self.colours.cost(each) {
                std::mem::swap(&mut self.colours, &mut self.other);
            }
        }
    }

    /// No colouring has fewer colours, or less weight than these together: the edges of a vertex have as many
    /// colours.
    fn bound(&mut self) {
        self.floor.clear();
        // The degrees so far.
        self.other.of.clear();
        self.other.of.resize(2 * self.vertices, 0);
        for edge in &self.edges {
            for (side, &vertex) in edge.ends.iter().enumerate() {
                let degree = &mut self.other.of[side * self.vertices + vertex as usize];
                if *degree as usize == self.floor.len() {
                    self.floor.push(edge.weight);
                }
                *degree += 1;
            }
        }
    }

    fn attempt(&mut self, each: u64) {
        let most = 2 * self.floor.len();
        for used in &mut self.used {
            used.clear(self.vertices, most);
        }
        self.holds.clear();
        self.holds.reserve(most * 2 * self.vertices);
        self.spent = 0;
        self.colours.weights.clear();
        self.colours.of.clear();
        self.colours.of.resize(self.edges.len(), NONE);
        for edge in 0..self.edges.len() as u32 {
            self.add(edge, each);
        }
        // Swaps may have taken the heaviest edge.
        let Colours { of, weights } = &mut self.colours;
        weights.fill(0);
        for (edge, &colour) in self.edges.iter().zip(&*of) {
            let weight = &mut weights[colour as usize];
            *weight = edge.weight.max(*weight);
        }
    }

    fn open(&self) -> u32 {
        self.colours.weights.len() as u32
    }

    fn held(&mut self, edge: u32, side: usize, colour: u32) -> &mut u32 {
        let vertex = self.edges[edge as usize].ends[side] as usize;
        &mut self.holds[(2 * colour as usize + side) * self.vertices + vertex]
    }

    fn add(&mut self, edge: u32, each: u64) {
        let Edge { ends: [u, v], weight } = self.edges[edge as usize];
        let (open, [sent, received]) = (self.open(), &self.used);
        let free = first_free([sent.of(u), received.of(v)]);
        if free < open {
            return self.put(edge, free);
        }
        if let Some((a, b)) = sent.last_free(u, open).zip(received.last_free(v, open)) {
            let added = self.spent.saturating_add(self.follow(v, a, b));
            if added.saturating_mul(PART) <= weight.saturating_add(each) {
                self.spent = added;
                self.swap(a, b);
                return self.put(edge, a);
            }
        }
        self.spent = 0;
        self.holds.resize(self.holds.len() + 2 * self.vertices, NONE);
        self.colours.weights.push(weight);
        self.put(edge, open);
    }

    fn put(&mut self, edge: u32, colour: u32) {
        self.colours.of[edge as usize] = colour;
        let weight = &mut self.colours.weights[colour as usize];
        *weight = (*weight).max(self.edges[edge as usize].weight);
        for side in 0..2 {
            self.used[side].insert(self.edges[edge as usize].ends[side], colour);
            *self.held(edge, side, colour) = edge;
        }
    }

    /// Finds the path of colours a and b in turn from the receiving vertex v, which has no edge of b: it
    /// never meets a sending vertex without a. Gives the weight that swapping along it adds to the two.
    fn follow(&mut self, v: u32, a: u32, b: u32) -> u64 {
        self.path.clear();
        let (mut side, mut vertex, mut colours) = (1, v, [a, b]);
        // Of the edges of the colour that comes next, and of the other one.
        let mut heaviest = [0; 2];
        loop {
            let place = (2 * colours[0] as usize + side) * self.vertices + vertex as usize;
            let edge = self.holds[place];
            if edge == NONE {
                break;
            }
            self.path.push(edge);
            let Edge { ends, weight } = self.edges[edge as usize];
            heaviest[0] = weight.max(heaviest[0]);
            side = 1 - side;
            vertex = ends[side];
            colours.swap(0, 1);
            heaviest.swap(0, 1);
        }
        let weight = |colour: u32| self.colours.weights[colour as usize];
        heaviest[0].saturating_sub(weight(colours[1]))
            + heaviest[1].saturating_sub(weight(colours[0]))
    }

    /// Swaps two colours along the path.
    fn swap(&mut self, a: u32, b: u32) {
        let path = std::mem::take(&mut self.path);
        for &edge in &path {
            let colour = self.colours.of[edge as usize];
            for side in 0..2 {
                self.used[side].remove(self.edges[edge as usize].ends[side], colour);
                *self.held(edge, side, colour) = NONE;
            }
        }
        for &edge in &path {
            let colour = self.colours.of[edge as usize];
            self.put(edge, if colour == a { b } else { a });
        }
        self.path = path;
    }
}

/// Gives each matching its step, by falling weight, `ports` of them in a step, and lists them in this order. Returns the
/// steps in which something moves, and the sum of their heaviest.
pub(crate) fn in_steps(
    weights: &[u64],
    ports: usize,
    falling: &mut Vec<u32>,
    step_of: &mut Vec<u32>,
) -> (u64, u128) {
    falling.clear();
    falling.extend(0..weights.len() as u32);
    let weight = |&matching: &u32| weights[matching as usize];
    falling.sort_unstable_by_key(|matching| (std::cmp::Reverse(weight(matching)), *matching));
    step_of.clear();
    step_of.resize(weights.len(), 0);
    for (place, &matching) in falling.iter().enumerate() {
        step_of[matching as usize] = (place / ports) as u32;
    }
    // The heaviest matching of a step is its first; nothing moves in steps of empty blocks.
    let largest = falling.iter().step_by(ports).map(weight);
    let moving = largest.filter(|&weight| weight > 0);
    moving.fold((0, 0), |(steps, bytes), weight| (steps + 1, bytes + u128::from(weight)))
}
