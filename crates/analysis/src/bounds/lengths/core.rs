//! The graph between vertices that have a choice of routes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use topocoll_topology::gcd;

use super::{Channel, Flows, LeastLoad, Proof};

/// The greatest length in an exact calculation.
const LONGEST: f64 = (1u64 << 24) as f64;

/// The largest common denominator of capacities. Where theirs is larger, capacities are rounded up
/// to multiples of 1 over this, and the bound is still true.
const DENOMINATOR: u64 = 1 << 32;

/// Parallel links merged.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) from: usize,
    pub(super) to: usize,
    /// In multiples of 1 over the denominator.
    pub(super) capacity: u128,
    /// Links of a class have one length.
    pub(super) class: usize,
}

/// A strongly connected graph, each of its vertices with two neighbours or more.
pub(super) struct Core {
    pub(super) denominator: u128,
    /// The vertices among those of the flows.
    kept: Vec<usize>,
    /// By vertex.
    pub(super) ranks: Vec<u64>,
    /// The vertices with ranks.
    pub(super) sources: Vec<usize>,
    /// Ascending by their ends.
    pub(super) links: Vec<Link>,
    /// By vertex, where the links that leave it begin.
    leaving: Vec<usize>,
    pub(super) classes: usize,
}

impl Core {
    /// `None` if nothing remains after bounds by single vertices.
    pub(super) fn new(flows: &Flows, best: &mut Proof) -> Option<Self> {
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
    pub(super) fn find(&self, link: &Channel) -> Option<usize> {
        let place = |vertex: u32| self.kept.binary_search(&(vertex as usize)).ok();
        let ends = (place(link.from)?, place(link.to)?);
        self.links.binary_search_by_key(&ends, |link| (link.from, link.to)).ok()
    }

    /// The lengths of links by those of their classes.
    pub(super) fn by_link(&self, lengths: &[u64]) -> Vec<u64> {
        self.links.iter().map(|link| lengths[link.class]).collect()
    }

    pub(super) fn leaving(&self, vertex: usize) -> std::ops::Range<usize> {
        self.leaving[vertex]..self.leaving[vertex + 1]
    }

    /// The blocks between two vertices.
    pub(super) fn demand(&self, source: usize, to: usize) -> f64 {
        if source == to { 0.0 } else { self.ranks[source] as f64 * self.ranks[to] as f64 }
    }

    /// The blocks that leave a vertex.
    pub(super) fn sent(&self, source: usize) -> f64 {
        let all: u64 = self.ranks.iter().sum();
        self.ranks[source] as f64 * (all - self.ranks[source]) as f64
    }

    pub(super) fn capacity(&self) -> f64 {
        self.links.iter().map(|link| link.capacity as f64).sum()
    }

    /// By class, its part of the capacity.
    pub(super) fn shares(&self) -> Vec<f64> {
        let mut shares = vec![0.0; self.classes];
        self.links.iter().for_each(|link| shares[link.class] += link.capacity as f64);
        let all = self.capacity();
        shares.iter_mut().for_each(|share| *share /= all);
        shares
    }

    pub(super) fn load(&self, distances: u128, lengths: &[u64]) -> LeastLoad {
        let length = |link: &Link| link.capacity * u128::from(lengths[link.class]);
        LeastLoad {
            // A sum that is too large becomes a smaller one, and the bound is still true.
            distances: distances.saturating_mul(self.denominator),
            lengths: self.links.iter().map(length).sum(),
        }
    }

    /// Bounds by these lengths of classes: as multiples of a small fraction of the longest, and of
    /// a larger fraction to which they come close.
    pub(super) fn look(&self, lengths: &[f64], best: &mut Proof) {
        let longest = lengths.iter().copied().fold(0.0, f64::max);
        let times = |n: f64| lengths.iter().map(move |length| length / longest * n);
        let close = |n: &f64| times(*n).all(|length| (length - length.round()).abs() < 1e-3);
        for n in [Some(LONGEST), (1..=256).map(f64::from).find(close)].into_iter().flatten() {
            let whole: Vec<u64> = times(n).map(|length| length.round() as u64).collect();
            best.raise(self.load(self.distances(&whole), &whole), || self.by_link(&whole));
        }
    }

    /// The sum of the distances of all blocks.
    pub(super) fn distances(&self, lengths: &[u64]) -> u128 {
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
    pub(super) fn hops(&self) -> u128 {
        let mut sum = 0u128;
        for sources in self.sources.chunks(64) {
            let mut seen = vec![0u64; self.ranks.len()];
            let mut next = seen.clone();
            sources.iter().enumerate().for_each(|(bit, &source)| seen[source] |= 1 << bit);
            let mut reached: Vec<(usize, u64)> = sources.iter().map(|&at| (at, seen[at])).collect();
            for hops in 1.. {
                let mut touched = Vec::new();
                for &(at, bits) in &reached {
                    for link in &self.links[self.leaving(at)] {
                        if next[link.to] == 0 {
                            touched.push(link.to);
                        }
                        next[link.to] |= bits;
                    }
                }
                reached.clear();
                for vertex in touched {
                    let bits = std::mem::take(&mut next[vertex]) & !seen[vertex];
                    seen[vertex] |= bits;
                    if bits != 0 {
                        reached.push((vertex, bits));
                        let mut from = bits;
                        let mut ranks = 0;
                        while from != 0 {
                            ranks += self.ranks[sources[from.trailing_zeros() as usize]];
                            from &= from - 1;
                        }
                        let far = blocks(ranks, self.ranks[vertex]).saturating_mul(hops);
                        sum = sum.saturating_add(far);
                    }
                }
                if reached.is_empty() {
                    break;
                }
            }
        }
        sum
    }

    /// The load of the busiest link where all blocks take the fewest links.
    pub(super) fn shortest_routes(&self) -> f64 {
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
    pub(super) fn spread(&self, source: usize, flows: &mut [f64]) -> Vec<u64> {
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

    /// The vertices by hops from one, and the hops to each.
    pub(super) fn nearest(&self, start: usize) -> (Vec<usize>, Vec<u64>) {
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

/// The common denominator of all capacities, and the capacity between any two vertices over it.
fn merged(links: &[Channel]) -> (u128, BTreeMap<(usize, usize), u128>) {
    let common = |known: u64, link: &Channel| {
        let more = u64::from(link.capacity.1);
        let least = known / gcd(known, more) * more;
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

pub(super) fn blocks(from: u64, to: u64) -> u128 {
    u128::from(from) * u128::from(to)
}
