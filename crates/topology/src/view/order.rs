//! Orders of the nodes of a graph that do not depend on their numbers.

use std::collections::BTreeMap;

/// The links of a graph as (from, to, kind).
pub(super) type Links = [(u32, u32, usize)];

/// A number for each vertex, the same for all orders of vertices and links if vertices that are not told apart
/// are equivalent: colours are refined by those of neighbours, and one vertex of the first colour that several
/// have gets its own, until all are different (McKay, Practical Graph Isomorphism, 1981, without backtracking).
pub(super) fn labels(nodes: u32, vertices: u32, links: &Links) -> Vec<u32> {
    let mut colours: Vec<u32> = (0..vertices).map(|vertex| u32::from(vertex >= nodes)).collect();
    let mut count = 0;
    loop {
        loop {
            let refined = refined(&mut colours, links);
            if std::mem::replace(&mut count, refined) == refined {
                break;
            }
        }
        if count == vertices {
            return colours;
        }
        let mut members = vec![0; vertices as usize];
        colours.iter().for_each(|&colour| members[colour as usize] += 1);
        let first = members.iter().position(|&members| members > 1);
        let first = first.expect("bug: as many colours as vertices") as u32;
        let chosen = colours.iter().position(|&colour| colour == first);
        let chosen = chosen.expect("bug: a colour of no vertex");
        for (vertex, colour) in colours.iter_mut().enumerate() {
            *colour += u32::from(*colour > first || *colour == first && vertex != chosen);
        }
    }
}

/// Tells vertices apart by the colours of their neighbours; the number of colours.
fn refined(colours: &mut [u32], links: &Links) -> u32 {
    let mut around = vec![0u64; colours.len()];
    for &(from, to, kind) in links {
        let [own, other] = [from, to].map(|vertex| u64::from(colours[vertex as usize]));
        let kind = kind as u64 + 1;
        around[from as usize] = around[from as usize].wrapping_add(mixed(other << 20 ^ kind));
        around[to as usize] = around[to as usize].wrapping_add(mixed(own << 20 ^ kind << 52));
    }
    let keys: Vec<(u32, u64)> = colours.iter().copied().zip(around).collect();
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    sorted.dedup();
    for (colour, key) in colours.iter_mut().zip(&keys) {
        *colour = sorted.partition_point(|other| other < key) as u32;
    }
    sorted.len() as u32
}

/// SplitMix64.
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// The nodes in an order that follows no links.
pub(super) fn scattered(nodes: u32, labels: &[u32], seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..nodes).collect();
    order.sort_unstable_by_key(|&node| mixed(seed << 32 | u64::from(labels[node as usize])));
    order
}

/// The links between any two nodes over the shortest way.
pub(super) struct Hops {
    rows: Vec<Vec<u32>>,
}

impl Hops {
    /// Of the first vertices; the hops from each.
    pub(super) fn new(rows: Vec<Vec<u32>>) -> Self {
        Self { rows }
    }

    /// How far two nodes are from each other, and how much this differs for others.
    fn between(&self, one: usize, other: usize) -> (u32, u32) {
        let [a, b] = [one, other].map(|node| &self.rows[node]);
        (a[other], a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).sum())
    }

    /// The nodes from the one of the least label, each after that which is the nearest to the one before: along
    /// a ring, or those of a leaf of a tree, of a group of leaves, one after the other.
    pub(super) fn near(&self, labels: &[u32]) -> Vec<u32> {
        let mut left: Vec<usize> = (0..self.rows.len()).collect();
        left.sort_unstable_by_key(|&node| labels[node]);
        let mut order = Vec::new();
        let mut next = (!left.is_empty()).then_some(0);
        while let Some(place) = next {
            let node = left.remove(place);
            order.push(node as u32);
            next = (0..left.len()).min_by_key(|&place| self.between(node, left[place]));
        }
        order
    }

    /// Nodes in an order, one of each leaf, then the next of each leaf and so on, if leaves have equally many:
    /// nodes of one leaf are as far from every other node.
    pub(super) fn dealt(&self, order: &[u32]) -> Option<Vec<u32>> {
        let mut leaves: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        let is_of = |node: u32, first: u32| {
            let (hops, apart) = self.between(node as usize, first as usize);
            apart == 2 * hops
        };
        let mut firsts: Vec<u32> = Vec::new();
        for &node in order {
            let leaf = firsts.iter().position(|&first| is_of(node, first));
            let leaf = leaf.unwrap_or_else(|| {
                firsts.push(node);
                firsts.len() - 1
            });
            leaves.entry(leaf).or_default().push(node);
        }
        let size = order.len() / firsts.len().max(1);
        let is_even = leaves.values().all(|leaf| leaf.len() == size);
        let dealt = || (0..size).flat_map(|i| leaves.values().map(move |leaf| leaf[i])).collect();
        (is_even && size > 1 && firsts.len() > 1).then(dealt)
    }
}
