//! A lower bound on the load of the busiest link in an all-to-all over any routes.
//!
//! Give every link any length. The route of a block is at least as long as the distance between its
//! ends. Hence some link carries, for each unit of its capacity, at least the sum of all distances
//! over the sum of capacity times length. By the duality of linear programs the best lengths give
//! the least load of any routing, minimal or not, blocks split or not (Shahrokhi and Matula 1990).
//!
//! All lengths give a true bound, which is calculated in integers. A search in floating point only
//! finds good ones:
//!
//! - A vertex with one neighbour has no choice of routes. It bounds its own links, and its ranks
//!   move to the neighbour. A fat tree or a dragonfly becomes a graph of its switches.
//! - Cuts: links that leave, or enter, a part have length 1, others 0. Parts are single vertices,
//!   the nearest vertices to each, and the vertices nearer to one end of a link than to the other.
//!   The last are the halves of a torus.
//! - All links have length 1.
//! - Up to about 100 vertices an interior-point method finds the best lengths ([`interior`]).
//! - Up to about 300 a first-order method finds good ones within a limit of work ([`first_order`]).
//!
//! Where all links have equally wide reverses, both directions have one length: the mean of a
//! solution and its reverse is no worse.

mod first_order;
mod grid;
mod interior;

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// The greatest length in an exact calculation.
const LONGEST: f64 = (1u64 << 24) as f64;

/// The largest common denominator of capacities. Where theirs is larger, capacities are rounded up
/// to multiples of 1 over this, and the bound is still true.
const DENOMINATOR: u64 = 1 << 32;

/// The most links.
const LINKS: usize = 1 << 20;

/// The most visits of links while hops are counted a step further.
const HOPS: usize = 1 << 24;

/// The most visits of links while cuts are looked for.
const CUTS: usize = 6_000_000;

/// The relative error of a sum in floating point.
const ROUNDING: f64 = 1e-9;

/// A lower bound on the load of the busiest link, a fraction of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LeastLoad {
    /// The sum of distances over all blocks.
    pub distances: u128,
    /// The sum of lengths, times capacities, over all links.
    pub lengths: u128,
}

impl LeastLoad {
    /// What is known without any lengths.
    pub(crate) const NONE: Self = Self { distances: 0, lengths: 1 };

    /// Whether this fraction is the larger. Both have a denominator above 0.
    pub(crate) fn exceeds(self, other: Self) -> bool {
        let whole = (self.distances / self.lengths).cmp(&(other.distances / other.lengths));
        let rest = |of: Self| of.distances % of.lengths;
        match (whole, rest(self), rest(other)) {
            (Ordering::Equal, 0, _) => false,
            (Ordering::Equal, _, 0) => true,
            // Of two fractions below 1, the one with the smaller reciprocal is larger.
            (Ordering::Equal, mine, theirs) => Self { distances: other.lengths, lengths: theirs }
                .exceeds(Self { distances: self.lengths, lengths: mine }),
            (whole, ..) => whole == Ordering::Greater,
        }
    }

    /// The fraction.
    #[must_use]
    pub fn blocks(self) -> f64 {
        self.distances as f64 / self.lengths as f64
    }
}

/// A lower bound, and lengths of links that give it.
#[derive(Clone, Debug)]
pub(crate) struct Proof {
    pub(crate) load: LeastLoad,
    /// Empty for lengths of 0.
    pub(crate) lengths: Vec<u64>,
}

impl Proof {
    /// What is known without any lengths.
    pub(crate) const NONE: Self = Self { load: LeastLoad::NONE, lengths: Vec::new() };

    /// Takes another bound if it is larger.
    pub(crate) fn raise(&mut self, to: LeastLoad, lengths: impl FnOnce() -> Vec<u64>) {
        if to.lengths > 0 && to.exceeds(self.load) {
            *self = Self { load: to, lengths: lengths() };
        }
    }
}

/// A link from one vertex to another, and its capacity as a fraction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) capacity: (u32, u32),
}

/// An all-to-all between the ranks of a graph's nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flows<'a> {
    pub(crate) vertices: usize,
    /// On each node. Nodes are the first vertices, switches follow.
    pub(crate) ranks: &'a [u32],
    /// In any order. Parallel links are separate.
    pub(crate) links: &'a [Channel],
}

impl Flows<'_> {
    /// The least load, in blocks for each unit of capacity, by lengths of the links listed.
    ///
    /// Vertices that node 0 cannot reach, or that cannot reach it, are left out. More than 2^20
    /// links are not bounded.
    pub(crate) fn least_load(&self) -> Proof {
        if self.links.len() > LINKS {
            return Proof::NONE;
        }
        let mut alone = Proof::NONE;
        let Some(graph) = Graph::new(self, &mut alone) else { return alone };
        let mut best = Proof { load: alone.load, lengths: Vec::new() };
        graph.search(&mut best);
        if best.load == alone.load {
            return alone;
        }
        let length = |link: &Channel| graph.find(link).map_or(0, |link| best.lengths[link]);
        Proof { load: best.load, lengths: self.links.iter().map(length).collect() }
    }
}

/// Parallel links merged.
#[derive(Debug)]
struct Link {
    from: usize,
    to: usize,
    /// In multiples of 1 over the denominator.
    capacity: u128,
    /// Links of a class have one length.
    class: usize,
}

/// A strongly connected graph, each of its vertices with two neighbours or more.
struct Graph {
    denominator: u128,
    /// The vertices among those of the flows.
    kept: Vec<usize>,
    /// By vertex.
    ranks: Vec<u64>,
    /// The vertices with ranks.
    sources: Vec<usize>,
    /// Ascending by their ends.
    links: Vec<Link>,
    /// By vertex, where the links that leave it begin.
    leaving: Vec<usize>,
    classes: usize,
}

impl Graph {
    /// `None` if nothing remains after bounds by single vertices.
    fn new(flows: &Flows, best: &mut Proof) -> Option<Self> {
        let (denominator, mut capacities) = merged(flows.links);
        let mut ranks = vec![0; flows.vertices];
        ranks.iter_mut().zip(flows.ranks).for_each(|(ranks, &there)| *ranks = u64::from(there));
        let mut neighbours = vec![BTreeSet::new(); flows.vertices];
        for &(from, to) in capacities.keys() {
            neighbours[from].insert(to);
            neighbours[to].insert(from);
        }
        let reached = reached(&capacities, flows.vertices, |(from, to)| (from, to));
        let reaching = self::reached(&capacities, flows.vertices, |(from, to)| (to, from));
        for vertex in (0..flows.vertices).filter(|&v| !(reached[v] && reaching[v])) {
            ranks[vertex] = 0;
            for there in std::mem::take(&mut neighbours[vertex]) {
                neighbours[there].remove(&vertex);
                capacities.remove(&(vertex, there));
                capacities.remove(&(there, vertex));
            }
        }
        let all = ranks.iter().sum::<u64>();
        let mut alone: Vec<usize> = (0..flows.vertices).collect();
        while let Some(vertex) = alone.pop() {
            if neighbours[vertex].len() != 1 {
                continue;
            }
            let Some(there) = neighbours[vertex].pop_first() else { continue };
            let leave = blocks(ranks[vertex], all - ranks[vertex]).saturating_mul(denominator);
            for ends in [(vertex, there), (there, vertex)] {
                let lengths = capacities.remove(&ends).unwrap_or(0);
                best.raise(LeastLoad { distances: leave, lengths }, || {
                    let all = flows.links.iter();
                    let joins = |link: &Channel| (link.from as usize, link.to as usize) == ends;
                    all.map(|link| u64::from(joins(link))).collect()
                });
            }
            ranks[there] += std::mem::take(&mut ranks[vertex]);
            neighbours[there].remove(&vertex);
            alone.push(there);
        }
        let kept = (0..flows.vertices).filter(|&vertex| !neighbours[vertex].is_empty());
        let kept: Vec<usize> = kept.collect();
        let place =
            |vertex: usize| kept.binary_search(&vertex).expect("bug: a link that leads out");
        let links = capacities.iter().map(|(&(from, to), &capacity)| Link {
            from: place(from),
            to: place(to),
            capacity,
            class: 0,
        });
        let mut links: Vec<Link> = links.collect();
        let ranks: Vec<u64> = kept.iter().map(|&vertex| ranks[vertex]).collect();
        let classes = classify(&mut links);
        let leaving =
            (0..=kept.len()).map(|vertex| links.partition_point(|link| link.from < vertex));
        let leaving = leaving.collect();
        let sources: Vec<usize> = (0..ranks.len()).filter(|&vertex| ranks[vertex] > 0).collect();
        let several = sources.len() > 1;
        several.then_some(Self { denominator, kept, ranks, sources, links, leaving, classes })
    }

    /// The link that a link of the flows is part of.
    fn find(&self, link: &Channel) -> Option<usize> {
        let place = |vertex: u32| self.kept.binary_search(&(vertex as usize)).ok();
        let ends = (place(link.from)?, place(link.to)?);
        self.links.binary_search_by_key(&ends, |link| (link.from, link.to)).ok()
    }

    /// Bounds by all lengths that are tried.
    fn search(&self, best: &mut Proof) {
        self.cuts(best);
        if self.sources.len().div_ceil(64) * self.links.len() <= HOPS {
            let lengths = vec![1; self.classes];
            best.raise(self.load(self.hops(), &lengths), || self.by_link(&lengths));
        }
        let quick = interior::is_quick(self);
        if quick || first_order::is_useful(self) {
            // Where a routing reaches the bound, no lengths are better.
            if self.shortest_routes() <= best.load.blocks() * (1.0 + ROUNDING) {
                return;
            }
            let search = if quick { interior::search } else { first_order::search };
            search(self, &mut |lengths| self.look(lengths, best));
        }
    }

    /// The lengths of links by those of their classes.
    fn by_link(&self, lengths: &[u64]) -> Vec<u64> {
        self.links.iter().map(|link| lengths[link.class]).collect()
    }

    fn leaving(&self, vertex: usize) -> std::ops::Range<usize> {
        self.leaving[vertex]..self.leaving[vertex + 1]
    }

    /// The blocks between two vertices.
    fn demand(&self, source: usize, to: usize) -> f64 {
        if source == to { 0.0 } else { self.ranks[source] as f64 * self.ranks[to] as f64 }
    }

    /// The blocks that leave a vertex.
    fn sent(&self, source: usize) -> f64 {
        let all: u64 = self.ranks.iter().sum();
        self.ranks[source] as f64 * (all - self.ranks[source]) as f64
    }

    fn capacity(&self) -> f64 {
        self.links.iter().map(|link| link.capacity as f64).sum()
    }

    /// By class, its part of the capacity.
    fn shares(&self) -> Vec<f64> {
        let mut shares = vec![0.0; self.classes];
        self.links.iter().for_each(|link| shares[link.class] += link.capacity as f64);
        let all = self.capacity();
        shares.iter_mut().for_each(|share| *share /= all);
        shares
    }

    fn load(&self, distances: u128, lengths: &[u64]) -> LeastLoad {
        let length = |link: &Link| link.capacity * u128::from(lengths[link.class]);
        LeastLoad {
            // A sum that is too large becomes a smaller one, and the bound is still true.
            distances: distances.saturating_mul(self.denominator),
            lengths: self.links.iter().map(length).sum(),
        }
    }

    /// Bounds by these lengths of classes: as multiples of a small fraction of the longest, and of
    /// a larger fraction to which they come close.
    fn look(&self, lengths: &[f64], best: &mut Proof) {
        let longest = lengths.iter().copied().fold(0.0, f64::max);
        let times = |n: f64| lengths.iter().map(move |length| length / longest * n);
        let close = |n: &f64| times(*n).all(|length| (length - length.round()).abs() < 1e-3);
        for n in [Some(LONGEST), (1..=256).map(f64::from).find(close)].into_iter().flatten() {
            let whole: Vec<u64> = times(n).map(|length| length.round() as u64).collect();
            best.raise(self.load(self.distances(&whole), &whole), || self.by_link(&whole));
        }
    }

    /// The sum of the distances of all blocks.
    fn distances(&self, lengths: &[u64]) -> u128 {
        let mut sum = 0u128;
        let mut found = Vec::new();
        for &source in &self.sources {
            self.distances_from(source, lengths, &mut found);
            let far = self.sources.iter().map(|&to| {
                blocks(self.ranks[source], self.ranks[to]).saturating_mul(found[to].into())
            });
            sum = far.fold(sum, u128::saturating_add);
        }
        sum
    }

    fn distances_from(&self, source: usize, lengths: &[u64], found: &mut Vec<u64>) {
        found.clear();
        found.resize(self.ranks.len(), u64::MAX);
        found[source] = 0;
        let mut open = BinaryHeap::from([Reverse((0, source))]);
        while let Some(Reverse((length, at))) = open.pop() {
            if length > found[at] {
                continue;
            }
            for link in &self.links[self.leaving(at)] {
                let length = length + lengths[link.class];
                if length < found[link.to] {
                    found[link.to] = length;
                    open.push(Reverse((length, link.to)));
                }
            }
        }
    }

    /// The sum of distances where all links have length 1, from 64 sources at a time.
    fn hops(&self) -> u128 {
        let mut sum = 0u128;
        for sources in self.sources.chunks(64) {
            let mut seen = vec![0u64; self.ranks.len()];
            sources.iter().enumerate().for_each(|(bit, &source)| seen[source] |= 1 << bit);
            let mut now = seen.clone();
            let mut hops = 0;
            while now.iter().any(|&bits| bits != 0) {
                hops += 1;
                let mut next = vec![0; seen.len()];
                self.links.iter().for_each(|link| next[link.to] |= now[link.from]);
                for (vertex, bits) in next.iter_mut().enumerate() {
                    *bits &= !seen[vertex];
                    seen[vertex] |= *bits;
                    if *bits != 0 && self.ranks[vertex] > 0 {
                        let from =
                            sources.iter().enumerate().filter(|(bit, _)| *bits >> bit & 1 == 1);
                        let ranks = from.map(|(_, &source)| self.ranks[source]).sum();
                        let far = blocks(ranks, self.ranks[vertex]).saturating_mul(hops);
                        sum = sum.saturating_add(far);
                    }
                }
                now = next;
            }
        }
        sum
    }

    /// The load of the busiest link where all blocks take the fewest links.
    fn shortest_routes(&self) -> f64 {
        let mut carried = vec![0.0; self.links.len()];
        let mut flows = carried.clone();
        for &source in &self.sources {
            self.spread(source, &mut flows);
            carried.iter_mut().zip(&flows).for_each(|(carried, flow)| *carried += flow);
        }
        let load = |(link, carried): (&Link, f64)| carried / link.capacity as f64;
        let most = self.links.iter().zip(carried).map(load).fold(0.0, f64::max);
        most * self.denominator as f64
    }

    /// Writes the blocks of a source on each link where they split equally over all routes of the
    /// fewest links (Brandes 2001). Returns the hops to each vertex.
    fn spread(&self, source: usize, flows: &mut [f64]) -> Vec<u64> {
        let (order, hops) = self.nearest(source);
        let mut routes = vec![0.0; hops.len()];
        routes[source] = 1.0;
        for &from in &order {
            for link in &self.links[self.leaving(from)] {
                if hops[link.to] == hops[from] + 1 {
                    routes[link.to] += routes[from];
                }
            }
        }
        let mut blocks: Vec<f64> = (0..hops.len()).map(|to| self.demand(source, to)).collect();
        for &from in order.iter().rev() {
            for link in self.leaving(from) {
                let to = self.links[link].to;
                let onward = hops[to] == hops[from] + 1;
                flows[link] = if onward { blocks[to] * routes[from] / routes[to] } else { 0.0 };
                blocks[from] += flows[link];
            }
        }
        hops
    }

    /// Cuts around each vertex and, within a limit of work, around those near each vertex, and
    /// those nearer to one end of a link than to the other.
    fn cuts(&self, best: &mut Proof) {
        let mut sweep = Sweep::new(self);
        (0..self.ranks.len()).for_each(|vertex| sweep.tightest(&[vertex], best));
        let sweeps = CUTS / (self.links.len() + self.ranks.len());
        let every = |all: usize| (0..all).step_by(all.div_ceil(sweeps.max(1)));
        for start in every(self.ranks.len()) {
            sweep.tightest(&self.nearest(start).0, best);
        }
        for link in every(self.links.len()) {
            let Link { from, to, .. } = self.links[link];
            let (mut order, near) = self.nearest(from);
            let (_, far) = self.nearest(to);
            order.sort_by_key(|&vertex| near[vertex] as i64 - far[vertex] as i64);
            sweep.tightest(&order, best);
        }
    }

    /// The vertices by hops from one, and the hops to each.
    fn nearest(&self, start: usize) -> (Vec<usize>, Vec<u64>) {
        let mut hops = vec![u64::MAX; self.ranks.len()];
        hops[start] = 0;
        let mut order = vec![start];
        let mut next = 0;
        while let Some(&from) = order.get(next) {
            for link in &self.links[self.leaving(from)] {
                if hops[link.to] == u64::MAX {
                    hops[link.to] = hops[from] + 1;
                    order.push(link.to);
                }
            }
            next += 1;
        }
        (order, hops)
    }
}

/// Cuts around more and more vertices.
struct Sweep<'a> {
    graph: &'a Graph,
    /// By vertex, the links that lead to it.
    entering: Vec<Vec<usize>>,
    inside: Vec<bool>,
    all: u64,
}

impl<'a> Sweep<'a> {
    fn new(graph: &'a Graph) -> Self {
        let mut entering = vec![Vec::new(); graph.ranks.len()];
        graph.links.iter().enumerate().for_each(|(i, link)| entering[link.to].push(i));
        let inside = vec![false; graph.ranks.len()];
        Self { graph, entering, inside, all: graph.ranks.iter().sum() }
    }

    /// Bounds by the best cut around the first vertices, however many.
    fn tightest(&mut self, order: &[usize], best: &mut Proof) {
        let Self { graph, entering, inside, all } = self;
        let (mut ranks, mut out, mut into) = (0, 0u128, 0u128);
        let mut tightest = (0.0, LeastLoad::NONE, 0, true);
        for (&vertex, count) in order.iter().zip(1..) {
            inside[vertex] = true;
            ranks += graph.ranks[vertex];
            for link in &graph.links[graph.leaving(vertex)] {
                if inside[link.to] { into -= link.capacity } else { out += link.capacity }
            }
            for &link in &entering[vertex] {
                let link = &graph.links[link];
                if inside[link.from] { out -= link.capacity } else { into += link.capacity }
            }
            let (blocks, lengths) = (blocks(ranks, *all - ranks), out.min(into));
            let load = blocks as f64 / lengths as f64;
            if load.is_finite() && load > tightest.0 {
                let distances = blocks.saturating_mul(graph.denominator);
                tightest = (load, LeastLoad { distances, lengths }, count, out <= into);
            }
        }
        order.iter().for_each(|&vertex| inside[vertex] = false);
        let (_, load, count, leaves) = tightest;
        best.raise(load, || {
            let part = &order[..count];
            part.iter().for_each(|&vertex| inside[vertex] = true);
            let crosses = |link: &Link| {
                let ends = [link.from, link.to].map(|vertex| inside[vertex]);
                u64::from(ends == [leaves, !leaves])
            };
            let lengths = graph.links.iter().map(crosses).collect();
            part.iter().for_each(|&vertex| inside[vertex] = false);
            lengths
        });
    }
}

/// The common denominator of all capacities, and the capacity between any two vertices over it.
fn merged(links: &[Channel]) -> (u128, BTreeMap<(usize, usize), u128>) {
    let common = |known: u64, link: &Channel| {
        let more = u64::from(link.capacity.1);
        let least = known / divisor(known, more) * more;
        (least <= DENOMINATOR).then_some(least)
    };
    let denominator: u128 = links.iter().try_fold(1, common).unwrap_or(DENOMINATOR).into();
    let mut merged = BTreeMap::new();
    for &Channel { from, to, capacity: (over, under) } in links {
        if from != to && over > 0 {
            let capacity = (u128::from(over) * denominator).div_ceil(under.into());
            *merged.entry((from as usize, to as usize)).or_default() += capacity;
        }
    }
    (denominator, merged)
}

/// The greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// Whether vertex 0 reaches each vertex over links from the first end to the second.
fn reached(
    links: &BTreeMap<(usize, usize), u128>,
    vertices: usize,
    ends: impl Fn((usize, usize)) -> (usize, usize),
) -> Vec<bool> {
    let mut next = vec![Vec::new(); vertices];
    links.keys().for_each(|&link| next[ends(link).0].push(ends(link).1));
    let mut reached = vec![false; vertices];
    let mut open: Vec<usize> = (0..vertices.min(1)).collect();
    while let Some(vertex) = open.pop() {
        if !std::mem::replace(&mut reached[vertex], true) {
            open.extend_from_slice(&next[vertex]);
        }
    }
    reached
}

/// Gives classes to links that ascend by their ends: both directions have one class if all links
/// have reverses of their capacity. Returns the number of classes.
fn classify(links: &mut [Link]) -> usize {
    let ends = |link: &Link| (link.from, link.to);
    let reverse = |link: &Link| {
        let reverse = links.binary_search_by_key(&(link.to, link.from), ends).ok()?;
        (links[reverse].capacity == link.capacity).then_some(reverse)
    };
    let Some(reverses) = links.iter().map(reverse).collect::<Option<Vec<_>>>() else {
        (0..).zip(&mut *links).for_each(|(class, link)| link.class = class);
        return links.len();
    };
    let mut classes = 0;
    for (i, reverse) in reverses.into_iter().enumerate() {
        links[i].class = if reverse < i { links[reverse].class } else { classes };
        classes += usize::from(reverse > i);
    }
    classes
}

fn blocks(from: u64, to: u64) -> u128 {
    u128::from(from) * u128::from(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use microlp::{ComparisonOp, OptimizationDirection, Problem};

    /// A graph of its own vectors.
    #[derive(Debug)]
    struct Drawn {
        vertices: usize,
        ranks: Vec<u32>,
        links: Vec<Channel>,
    }

    impl Drawn {
        fn new(vertices: usize, ranks: &[u32]) -> Self {
            Self { vertices, ranks: ranks.to_vec(), links: Vec::new() }
        }

        fn one_way(&mut self, from: usize, to: usize, capacity: (u32, u32)) {
            self.links.push(Channel { from: from as u32, to: to as u32, capacity });
        }

        fn join(&mut self, a: usize, b: usize, capacity: (u32, u32)) {
            self.one_way(a, b, capacity);
            self.one_way(b, a, capacity);
        }

        fn flows(&self) -> Flows<'_> {
            Flows { vertices: self.vertices, ranks: &self.ranks, links: &self.links }
        }

        fn least_load(&self) -> LeastLoad {
            self.flows().least_load().load
        }

        fn graph(&self, best: &mut Proof) -> Option<Graph> {
            Graph::new(&self.flows(), best)
        }

        /// By a linear program over the flow of each node on each link.
        fn exact(&self) -> f64 {
            let mut program = Problem::new(OptimizationDirection::Minimize);
            let any = (0.0, f64::INFINITY);
            let most = program.add_var(1.0, any);
            let mut carried = vec![Vec::new(); self.links.len()];
            let ranks = |at: usize| self.ranks.get(at).copied().map_or(0.0, f64::from);
            let all: f64 = (0..self.vertices).map(ranks).sum();
            for source in 0..self.ranks.len() {
                let flows: Vec<_> = self.links.iter().map(|_| program.add_var(0.0, any)).collect();
                for at in 0..self.vertices {
                    let mut terms = Vec::new();
                    for (link, &flow) in self.links.iter().zip(&flows) {
                        let sign = f64::from(u8::from(link.to as usize == at))
                            - f64::from(u8::from(link.from as usize == at));
                        if sign != 0.0 {
                            terms.push((flow, sign));
                        }
                    }
                    let stays = ranks(at) - if at == source { all } else { 0.0 };
                    program.add_constraint(&terms[..], ComparisonOp::Eq, ranks(source) * stays);
                }
                carried
                    .iter_mut()
                    .zip(&flows)
                    .for_each(|(carried, &flow)| carried.push((flow, 1.0)));
            }
            for (mut terms, link) in carried.into_iter().zip(&self.links) {
                terms.push((most, -f64::from(link.capacity.0) / f64::from(link.capacity.1)));
                program.add_constraint(&terms[..], ComparisonOp::Le, 0.0);
            }
            program.solve().unwrap().into_solution().unwrap().objective()
        }
    }

    /// A connected graph, with switches, unequal capacities and ranks, and parallel links; some
    /// with links of one direction only.
    fn random(rng: &mut fastrand::Rng, most: usize) -> Drawn {
        let nodes = rng.usize(2..=most);
        let vertices = nodes + if rng.bool() { rng.usize(0..=nodes / 2) } else { 0 };
        let equal = rng.bool();
        let ranks = (0..nodes).map(|_| if equal { 1 } else { rng.u32(1..9) }).collect::<Vec<_>>();
        let mut graph = Drawn::new(vertices, &ranks);
        let (wide, both) = (rng.bool(), rng.u8(0..4) > 0);
        for vertex in 1..vertices + rng.usize(0..=2 * vertices) {
            let (a, b) = match vertex < vertices {
                true => (rng.usize(0..vertex), vertex),
                false => (rng.usize(0..vertices), rng.usize(0..vertices)),
            };
            let capacity = if wide { (rng.u32(1..9), rng.u32(1..5)) } else { (1, 1) };
            if a != b && (both || vertex < vertices) {
                graph.join(a, b, capacity);
            } else if a != b {
                graph.one_way(a, b, capacity);
            }
        }
        graph
    }

    #[test]
    fn the_bound_of_a_random_graph_is_nearly_exact() {
        let mut rng = fastrand::Rng::with_seed(28);
        for case in 0..100 {
            let graph = random(&mut rng, 24);
            let (found, exact) = (graph.least_load().blocks(), graph.exact());
            let place = format!("{case}: {found}, and {exact} exactly: {graph:?}");
            assert!(found <= exact * (1.0 + 1e-9), "{place}");
            assert!(found >= exact * (1.0 - 1e-6), "{place}");
        }
    }

    /// The bound by one search alone.
    fn by(search: impl Fn(&Graph, &mut dyn FnMut(&[f64])), drawn: &Drawn) -> Option<f64> {
        let mut best = Proof::NONE;
        let graph = drawn.graph(&mut best)?;
        search(&graph, &mut |lengths| graph.look(lengths, &mut best));
        Some(best.load.blocks())
    }

    #[test]
    fn both_searches_come_to_the_same_bound() {
        let mut rng = fastrand::Rng::with_seed(7);
        for case in 0..20 {
            let graph = random(&mut rng, 24);
            let Some(exact) = by(interior::search, &graph) else { continue };
            let found = by(first_order::search, &graph).unwrap();
            assert!((found / exact - 1.0).abs() < 1e-3, "{case}: {found} and {exact}: {graph:?}");
        }
    }

    /// A torus without its first link.
    fn torus(sides: &[usize]) -> Drawn {
        let nodes = sides.iter().product();
        let mut graph = Drawn::new(nodes, &vec![1; nodes]);
        let mut stride = 1;
        for side in sides {
            for node in 0..nodes {
                let at = node / stride % side;
                graph.join(node, node - at * stride + (at + 1) % side * stride, (1, 1));
            }
            stride *= side;
        }
        graph.links.drain(..2);
        graph
    }

    /// Groups of switches that are connected to each other, one link between any two groups, two
    /// nodes on each switch.
    fn dragonfly(switches: usize, global: (u32, u32)) -> Drawn {
        let (each, groups) = (switches / 2, switches * switches / 2 + 1);
        let nodes = 2 * groups * switches;
        let mut graph = Drawn::new(nodes + nodes / 2, &vec![1; nodes]);
        for node in 0..nodes {
            graph.join(node, nodes + node / 2, (1, 1));
        }
        let switch = |group, at: usize| nodes + group * switches + at;
        for group in 0..groups {
            for a in 0..switches {
                (0..a).for_each(|b| graph.join(switch(group, a), switch(group, b), (1, 1)));
            }
            for other in group + 1..groups {
                let (there, back) = (other - group - 1, groups - 1 - (other - group));
                graph.join(switch(group, there / each), switch(other, back / each), global);
            }
        }
        graph
    }

    /// Leaf switches of four nodes, each with a link to each of four spine switches.
    fn fat_tree(leaves: usize, taper: u32) -> Drawn {
        let nodes = 4 * leaves;
        let mut graph = Drawn::new(nodes + leaves + 4, &vec![1; nodes]);
        for leaf in 0..leaves {
            (0..4).for_each(|node| graph.join(4 * leaf + node, nodes + leaf, (1, 1)));
            (0..4).for_each(|spine| graph.join(nodes + leaf, nodes + leaves + spine, (1, taper)));
        }
        graph
    }

    #[test]
    fn machines_with_switches_reach_their_narrowest_cut() {
        // The link of a node; the links of a leaf; those of a group.
        for (graph, exact) in [
            (fat_tree(4, 1), 15.0),
            (fat_tree(4, 2), 4.0 * 12.0 / 2.0),
            (fat_tree(64, 4), 4.0 * 252.0),
            (dragonfly(4, (1, 1)), 71.0),
            (dragonfly(4, (1, 2)), 8.0 * 64.0 / 4.0),
            (dragonfly(8, (1, 4)), 16.0 * 16.0 * 4.0),
        ] {
            assert_eq!(graph.least_load().blocks(), exact);
        }
    }

    #[test]
    fn large_graphs_are_bounded_by_halves_or_hops() {
        // Half of a side that wraps, across a failed link.
        for sides in [&[4, 4, 4][..], &[16, 16], &[8, 8, 8], &[16, 16, 16]] {
            let nodes: usize = sides.iter().product();
            let across = 2 * nodes / sides[0] - 1;
            let exact = (nodes * nodes / 4) as f64 / across as f64;
            assert_eq!(torus(sides).least_load().blocks(), exact, "{sides:?}");
        }
        // Each node next to all others within 300: no link is far from the mean.
        let mut ring = Drawn::new(1200, &[1; 1200]);
        for node in 0..1200 {
            (1..=20).for_each(|step| ring.join(node, (node + step * step) % 1200, (1, 1)));
        }
        let graph = ring.graph(&mut { Proof::NONE }).unwrap();
        assert!(!interior::is_quick(&graph) && !first_order::is_useful(&graph));
        let hops = graph.load(graph.hops(), &vec![1; graph.classes]);
        assert!(!hops.exceeds(ring.least_load()));
    }

    #[test]
    fn hops_are_distances_over_links_of_length_one() {
        let mut rng = fastrand::Rng::with_seed(3);
        for nodes in [5, 24, 64, 65, 130] {
            let drawn = random(&mut rng, nodes);
            if let Some(graph) = drawn.graph(&mut { Proof::NONE }) {
                assert_eq!(graph.hops(), graph.distances(&vec![1; graph.classes]), "{drawn:?}");
            }
        }
    }

    #[test]
    fn routes_of_the_fewest_links_carry_all_blocks() {
        let mut rng = fastrand::Rng::with_seed(4);
        for _ in 0..20 {
            let drawn = random(&mut rng, 24);
            let mut alone = Proof::NONE;
            let Some(graph) = drawn.graph(&mut alone) else { continue };
            let mut flows = vec![0.0; graph.links.len()];
            for &source in &graph.sources {
                graph.spread(source, &mut flows);
                for at in (0..graph.ranks.len()).filter(|&at| at != source) {
                    let sum = |end: fn(&Link) -> usize| -> f64 {
                        let links = graph.links.iter().zip(&flows);
                        links.filter(|(link, _)| end(link) == at).map(|(_, flow)| flow).sum()
                    };
                    let stays = sum(|link| link.to) - sum(|link| link.from);
                    assert!((stays - graph.demand(source, at)).abs() < 1e-6, "{drawn:?}");
                }
            }
            let most = graph.shortest_routes().max(alone.load.blocks());
            assert!(most >= drawn.exact() * (1.0 - 1e-9), "{drawn:?}");
        }
    }

    /// The distances over the lengths of all links, calculated on the graph itself.
    fn by_lengths(drawn: &Drawn, lengths: &[u64]) -> f64 {
        let ranks = |at: usize| drawn.ranks.get(at).copied().map_or(0.0, f64::from);
        let mut travelled = 0.0;
        for from in 0..drawn.vertices {
            let mut far = vec![f64::INFINITY; drawn.vertices];
            far[from] = 0.0;
            for _ in 0..drawn.vertices {
                for (link, &length) in drawn.links.iter().zip(lengths) {
                    let through = far[link.from as usize] + length as f64;
                    let known = &mut far[link.to as usize];
                    *known = known.min(through);
                }
            }
            let blocks = |to: usize| ranks(from) * ranks(to);
            travelled += (0..far.len())
                .filter(|&to| far[to].is_finite())
                .map(|to| far[to] * blocks(to))
                .sum::<f64>();
        }
        let capacity = |link: &Channel| f64::from(link.capacity.0) / f64::from(link.capacity.1);
        let all: f64 = drawn
            .links
            .iter()
            .zip(lengths)
            .map(|(link, &length)| capacity(link) * length as f64)
            .sum();
        travelled / all
    }

    #[test]
    fn lengths_give_the_bound() {
        let mut rng = fastrand::Rng::with_seed(6);
        for case in 0..100 {
            let drawn = random(&mut rng, 24);
            let Proof { load, lengths } = drawn.flows().least_load();
            let (found, bound) = (by_lengths(&drawn, &lengths), load.blocks());
            // Around a part that is not connected, distances are longer than the cut says.
            assert!(found >= bound * (1.0 - 1e-9), "{case}: {found} and {bound}: {drawn:?}");
            let exact = drawn.exact();
            assert!(found <= exact * (1.0 + 1e-9), "{case}: {found} and {exact}: {drawn:?}");
        }
        for graph in [torus(&[4, 4, 4]), torus(&[16, 16]), dragonfly(4, (1, 2)), fat_tree(4, 2)] {
            let Proof { load, lengths } = graph.flows().least_load();
            assert_eq!(by_lengths(&graph, &lengths), load.blocks());
        }
    }

    #[test]
    fn fractions_compare_exactly() {
        let mut rng = fastrand::Rng::with_seed(5);
        let wide = u128::MAX;
        for _ in 0..1000 {
            let bits = rng.u32(1..60);
            let mut draw = |least| rng.u128(least..1 << bits);
            let (a, b, c, d) = (draw(0), draw(1), draw(0), draw(1));
            let load = |distances, lengths| LeastLoad { distances, lengths };
            assert_eq!(load(a, b).exceeds(load(c, d)), a * d > c * b, "{a}/{b} {c}/{d}");
        }
        let load = |distances, lengths| LeastLoad { distances, lengths };
        assert!(load(wide, wide - 1).exceeds(load(wide - 1, wide)));
        assert!(load(wide - 1, wide - 2).exceeds(load(wide, wide - 1)));
        assert!(!load(wide, wide).exceeds(load(1, 1)));
    }

    #[test]
    fn bounds_of_extreme_graphs_are_true() {
        // Coprime denominators: capacities are rounded up, never down.
        let mut graph = Drawn::new(4, &[1; 4]);
        for (node, capacity) in
            [(1, 65_521), (7, 65_519), (9, 65_497), (3, 65_479)].iter().enumerate()
        {
            graph.join(node, (node + 1) % 4, *capacity);
        }
        let (found, exact) = (graph.least_load().blocks(), graph.exact());
        assert!(found <= exact * (1.0 + 1e-12) && found > exact * (1.0 - 1e-3));
        // As many ranks as there are numbers, and the narrowest links.
        for capacity in [(1, u32::MAX), (u32::MAX, 1)] {
            let mut graph = Drawn::new(3, &[u32::MAX; 3]);
            (0..3).for_each(|node| graph.join(node, (node + 1) % 3, capacity));
            // From each node to the other two, over two links each way.
            let ranks = f64::from(u32::MAX);
            let exact = ranks * ranks / f64::from(capacity.0) * f64::from(capacity.1);
            let found = graph.least_load().blocks();
            assert!(found <= exact * (1.0 + 1e-9), "{found} is above {exact}");
        }
        // Nothing to bound, and nothing that could be sent.
        let mut apart = Drawn::new(4, &[1; 4]);
        assert_eq!(apart.least_load(), LeastLoad::NONE);
        apart.one_way(0, 1, (1, 1));
        apart.join(2, 3, (1, 1));
        apart.join(0, 0, (1, 1));
        apart.join(0, 2, (0, 1));
        assert_eq!(apart.least_load(), LeastLoad::NONE);
        assert_eq!(Drawn::new(0, &[]).least_load(), LeastLoad::NONE);
    }
}
