//! Fat trees with D-mod-K routes (Zahavi 2010): k-ary n-trees (Petrini and Vanneschi 1997), and parallel
//! ports generalized fat trees.
//!
//! Levels are counted from the nodes, level 0. An entity on level l, a node or a switch, has a digit for each
//! level of switches, the first one fastest: below l which of the switches above, from l on which of the
//! entities below. Up port c of an entity on level l leads to the switch above it whose digit l is c modulo
//! the switches above, and the first down ports of a switch on level l + 1 to the entity below it whose digit
//! l is 0.

use std::sync::Arc;

use super::graph::{Links, ListedLinks, Routes, check_size};
use crate::number::{fraction, number};
use crate::{Capacity, Graph, Level, LinkId, LinkKind, Takes, Topology, TopologyError};

/// The class of the links between nodes and switches, and of those between switches.
const NODE: u32 = 0;
const INTER_SWITCH: u32 = 1;

/// Up to the lowest switch above both ends, through the port that is the destination over all ports
/// passed, and down the only way, over the parallel link that is the source modulo their number.
///
/// The down ports of a switch come first, then its up ports.
#[derive(Debug)]
pub(crate) struct FatTree {
    /// By level, the entities below a switch.
    pub(crate) down: Vec<u32>,
    /// By level, the switches above an entity.
    pub(crate) up: Vec<u32>,
    /// By level, the parallel links from an entity to each switch above.
    pub(crate) cables: Vec<u32>,
    /// By level, the first vertex; one more entry at the end.
    pub(crate) first: Vec<u32>,
}

impl Graph {
    /// The `arity`-ary tree of `levels` levels of switches, with `arity`^`levels` nodes. Links
    /// between switches have the capacity 1 / `taper`, a fraction of at least 1; a taper of (3, 2)
    /// leaves two thirds.
    ///
    /// # Errors
    /// An arity below 2, no levels, a taper below 1, or more than 2^20 nodes.
    pub fn fat_tree(arity: u32, levels: u32, taper: (u32, u32)) -> Result<Self, TopologyError> {
        let refuse =
            |what: String, rule: &str| Err(format!("a fat tree cannot have {what}: {rule}").into());
        if arity < 2 {
            return refuse(format!("arity {arity}"), "a switch has at least 2 ports down");
        }
        if levels == 0 {
            return refuse("0 levels".to_owned(), "it has at least 1 level of switches");
        }
        let (over, times) = taper;
        if times == 0 || over < times {
            return refuse(format!("taper {over}/{times}"), "it is at least 1");
        }
        if arity.checked_pow(levels).is_none() {
            return refuse(format!("{arity}^{levels} nodes"), "the limit is 1048576");
        }
        let capacity = Capacity::Relative { times, over }.lowest();
        let to_node = LinkKind::of_class(NODE);
        let to_switch = LinkKind { capacity, ..LinkKind::of_class(INTER_SWITCH) };
        let taper = match capacity.relative(1.0) {
            (1, 1) => String::new(),
            (1, whole) => format!(",{whole}"),
            (times, over) => format!(",{over}/{times}"),
        };
        let each = |of: u32| vec![of; levels as usize];
        let (down, mut up, cables, first) = (each(arity), each(arity), each(1), Vec::new());
        // A node is on one switch.
        up[0] = 1;
        let tree = FatTree { down, up, cables, first };
        let form = format!("fat-tree:{arity},{levels}{taper}");
        tree.graph(form, classes(), |level| if level == 0 { to_node } else { to_switch })
    }
}

fn classes() -> Vec<String> {
    vec!["node".to_owned(), "inter-switch".to_owned()]
}

impl FatTree {
    /// The graph of the tree, of which `first` is still empty; `kind` gives the links above a level.
    pub(crate) fn graph(
        mut self,
        form: String,
        classes: Vec<String>,
        kind: impl Fn(usize) -> LinkKind,
    ) -> Result<Graph, TopologyError> {
        let levels = self.down.len();
        let product = |of: &[u32]| of.iter().fold(1, |all: u128, &n| all.saturating_mul(n.into()));
        let count =
            |level: usize| product(&self.up[..level]).saturating_mul(product(&self.down[level..]));
        let links = (0..levels).map(|level| {
            let each = u128::from(self.up[level]) * u128::from(self.cables[level]);
            count(level).saturating_mul(each).saturating_mul(2)
        });
        let links = links.fold(0, u128::saturating_add);
        let largest = (0..=levels).map(count).max().unwrap_or(0);
        check_size("fat tree", largest, links)?;
        let mut first = vec![0];
        for level in 0..=levels {
            first.push(first[level] + count(level) as u32);
        }
        let nodes = first[1];
        self.first = first;
        let mut listed = ListedLinks::new(self.first[levels + 1] as usize, links as usize);
        for level in 0..=levels {
            for place in 0..self.first[level + 1] - self.first[level] {
                if let Some(below) = level.checked_sub(1) {
                    let (low, unit) = (place % self.above(below), self.above(below));
                    let high = place / self.above(level) * self.down[below];
                    for child in 0..self.down[below] {
                        let to = self.first[below] + low + unit * (child + high);
                        (0..self.cables[below]).for_each(|_| _ = listed.link(to, kind(below)));
                    }
                }
                if level < levels {
                    let (low, unit) = (place % self.above(level), self.above(level));
                    let high = place / unit / self.down[level] * self.up[level];
                    for port in 0..self.ports(level) {
                        let above = port % self.up[level];
                        let to = self.first[level + 1] + low + unit * (above + high);
                        listed.link(to, kind(level));
                    }
                }
                listed.next_vertex();
            }
        }
        Ok(Graph::new(form, nodes, classes, listed.done(), Box::new(self)))
    }

    /// The level of a vertex.
    fn level(&self, vertex: u32) -> usize {
        self.first.partition_point(|&first| first <= vertex) - 1
    }

    /// The links upwards of an entity on a level.
    fn ports(&self, level: usize) -> u32 {
        self.up[level] * self.cables[level]
    }

    /// The unit of digit `level` on that level, after the digits of the levels below.
    fn above(&self, level: usize) -> u32 {
        self.up[..level].iter().product()
    }

    /// The same of a node.
    fn below(&self, level: usize) -> u32 {
        self.down[..level].iter().product()
    }
}

impl Routes for FatTree {
    fn next(&self, _: &Links, at: u32, from: u32, to: u32) -> usize {
        let level = self.level(at);
        let mut passed_down = 0;
        if let Some(below) = level.checked_sub(1) {
            let (down, cables) = (self.down[below], self.cables[below]);
            if (at - self.first[level]) / self.above(level) == to / self.below(level) {
                return (to / self.below(below) % down * cables + from % cables) as usize;
            }
            passed_down = down * cables;
        }
        let passed = (0..level).map(|level| self.ports(level)).fold(1, u32::saturating_mul);
        (passed_down + to / passed % self.ports(level)) as usize
    }

    fn modulus(&self, _: &Links, at: u32, _: u32) -> Option<u32> {
        Some(self.level(at).checked_sub(1).map_or(1, |below| self.cables[below]))
    }

    fn diameter(&self) -> u32 {
        let highest = self.down.iter().rposition(|&down| down > 1);
        highest.map_or(0, |level| 2 * (level as u32 + 1))
    }

    /// If switches above are as many as entities below and digits are renamed one by one, a digit of a
    /// vertex is renamed as that digit of the nodes, one lower if it says which of the switches above: the
    /// way up follows the digits of the destination.
    fn vertex_images(&self, nodes: &[u32]) -> Option<Vec<u32>> {
        let levels = self.down.len();
        let whole = self.up[0] == 1 && self.up[1..] == self.down[..levels - 1];
        if !whole || self.cables.iter().any(|&cables| cables > 1) {
            return None;
        }
        let digit = |number: u32, level: usize| number / self.below(level) % self.down[level];
        let renamed = |number: u32, level: usize| {
            digit(nodes[(number * self.below(level)) as usize], level) * self.below(level)
        };
        let image = |digits: &mut dyn Iterator<Item = (u32, usize)>| -> u32 {
            digits.map(|(number, level)| renamed(number, level)).sum()
        };
        let own = |node: u32| image(&mut (0..levels).map(|level| (digit(node, level), level)));
        if (0..).zip(nodes).any(|(node, &to)| own(node) != to) {
            return None;
        }
        let vertex = |vertex: u32| {
            let level = self.level(vertex);
            let (place, unit) = (vertex - self.first[level], self.above(level));
            // Those above have the digits below `level - 1`, those below the digits from `level` on.
            let mut low = (1..level).map(|i| (place / self.above(i) % self.up[i], i - 1));
            let high = place / unit * self.below(level);
            let low = image(&mut low);
            let high = image(&mut (level..levels).map(|i| (digit(high, i), i)));
            self.first[level] + low + high / self.below(level) * unit
        };
        Some((0..self.first[levels + 1]).map(vertex).collect())
    }

    /// The switches with the same nodes below are one group. On its way up a message chose digits of the switches
    /// above that are those of its destination, which thus gives its link upwards and downwards.
    fn levels(&self, links: &Links) -> Option<Vec<Level>> {
        let all = self.down.len();
        // The digits of a cable are not those of a switch: no level is above it, and it leads to the root.
        let single = |level| self.cables[level] == 1;
        let leads_to_root = |level| level + 1 == all && self.above(all) == 1;
        if (0..all).any(|level| !single(level) && !leads_to_root(level)) {
            return None;
        }
        let nodes = self.first[1];
        let levels = (0..all).map(|level| {
            let first = |vertex: u32| links.leaving(vertex).start as u64;
            let passed_down = level.checked_sub(1).map_or(0, |below| self.down[below]);
            let up = LinkId(first(self.first[level]) + u64::from(passed_down));
            let down = LinkId(first(self.first[level + 1]));
            let parallel = self.above(level) * self.ports(level);
            let back = if single(level) { Takes::Destination } else { Takes::Source };
            Level {
                vertices: nodes / self.below(level),
                links: [(up, parallel), (down, parallel)],
                takes: [Takes::Destination, back],
            }
        });
        // Above the vertex with all nodes below no message passes.
        Some(levels.take_while(|level| level.vertices > 1).collect())
    }

    fn vertex_name(&self, vertex: u32) -> Option<String> {
        let level = self.level(vertex);
        (level > 0).then(|| format!("level {} switch {}", level - 1, vertex - self.first[level]))
    }
}

/// Reads the arity, the number of levels, and the taper, such as `2`, `1.5` or `3/2`; or the numbers of a
/// tree of two levels by name.
pub(crate) fn fat_tree(rest: &str) -> Result<Arc<dyn Topology>, String> {
    let parts: Vec<_> = rest.split(',').collect();
    if rest.contains('=') {
        return two_levels(&parts);
    }
    let (arity, levels, taper) = match parts[..] {
        [arity, levels] => (arity, levels, (1, 1)),
        [arity, levels, given] => (arity, levels, fraction(given)?),
        _ => {
            return Err(format!(
                "a fat tree has an arity, levels, and perhaps a taper, or {BY_NAME}"
            ));
        }
    };
    let (arity, levels) = (number("arity", arity)?, number("number of levels", levels)?);
    Ok(Arc::new(Graph::fat_tree(arity, levels, taper)?))
}

const BY_NAME: &str = "leaves=L,nodes=N,uplinks=U and perhaps spines=S";

/// Reads the numbers of a tree of two levels, in any order: leaf switches, the nodes on each, and its links
/// upwards, equally many to each spine switch. All links have the same capacity.
fn two_levels(parts: &[&str]) -> Result<Arc<dyn Topology>, String> {
    const NAMES: [&str; 4] = ["leaves", "nodes", "uplinks", "spines"];
    let mut given = [None; 4];
    for part in parts {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let place = NAMES.iter().position(|known| *known == name);
        let place = place.ok_or_else(|| format!("`{part}` is not one of {BY_NAME}"))?;
        if given[place].replace(number(name, value)?).is_some() {
            return Err(format!("{name} is given twice"));
        }
    }
    let need = |place: usize| {
        given[place].ok_or_else(|| format!("{} is missing: {BY_NAME}", NAMES[place]))
    };
    let (leaves, nodes, uplinks) = (need(0)?, need(1)?, need(2)?);
    let spines = given[3].unwrap_or(1);
    if !uplinks.is_multiple_of(spines) {
        let rule = "a leaf has equally many links to each spine";
        return Err(format!("uplinks={uplinks} is not a multiple of spines={spines}: {rule}"));
    }
    let (down, up, cables) = (vec![nodes, leaves], vec![1, spines], vec![1, uplinks / spines]);
    let spines = if spines == 1 { String::new() } else { format!(",spines={spines}") };
    let form = format!("fat-tree:leaves={leaves},nodes={nodes},uplinks={uplinks}{spines}");
    let kind = |level| LinkKind::of_class(if level == 0 { NODE } else { INTER_SWITCH });
    let tree = FatTree { down, up, cables, first: Vec::new() };
    Ok(Arc::new(tree.graph(form, classes(), kind)?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Rank, Route};

    /// The digits of a number, the last first.
    fn digits(mut number: u32, base: u32, count: u32) -> Vec<u32> {
        let mut next = || {
            let digit = number % base;
            number /= base;
            digit
        };
        (0..count).map(|_| next()).collect()
    }

    /// The vertices of a route: digit by digit.
    fn route_of(k: u32, n: u32, from: u32, to: u32) -> Vec<u32> {
        let (source, destination) = (digits(from, k, n), digits(to, k, n));
        let Some(top) = (0..n as usize).rev().find(|&i| source[i] != destination[i]) else {
            return vec![from];
        };
        let vertex = |level: usize, digits: &[u32]| {
            let number = digits.iter().rev().fold(0, |number, digit| number * k + digit);
            k.pow(n) + level as u32 * k.pow(n - 1) + number
        };
        let mut switch = source[1..].to_vec();
        let mut vertices = vec![from, vertex(0, &switch)];
        for level in 0..top {
            switch[level] = destination[level];
            vertices.push(vertex(level + 1, &switch));
        }
        for level in (0..top).rev() {
            switch[level] = destination[level + 1];
            vertices.push(vertex(level, &switch));
        }
        vertices.push(to);
        vertices
    }

    #[test]
    fn routes_go_up_by_the_digits_of_the_destination_and_down_the_only_way() {
        for (k, n) in [(2, 1), (5, 1), (2, 2), (3, 2), (2, 4), (4, 3), (3, 3)] {
            let tree = Graph::fat_tree(k, n, (1, 1)).unwrap();
            let (nodes, switches) = (k.pow(n), n * k.pow(n - 1));
            assert_eq!((tree.ranks(), tree.vertices()), (nodes, nodes + switches));
            let links: Vec<_> =
                (0..tree.links()).map(|link| tree.link(LinkId(link)).unwrap()).collect();
            let of = |class| links.iter().filter(|link| link.class == class).count() as u32;
            assert_eq!((of(NODE), of(INTER_SWITCH)), (2 * nodes, 2 * (n - 1) * nodes));
            let ends: BTreeSet<_> = links.iter().map(|link| (link.from, link.to)).collect();
            assert_eq!(ends.len(), links.len());
            assert!(ends.iter().all(|&(from, to)| ends.contains(&(to, from))));

            let mut route = Route::default();
            for (from, to) in (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))) {
                tree.route(Rank(from), Rank(to), &mut route);
                let mut vertices = vec![from];
                tree.for_each_link(Rank(from), &route, &mut |link| {
                    vertices.push(tree.link(link).unwrap().to);
                });
                assert_eq!(vertices, route_of(k, n, from, to), "{k}-ary {n}-tree");
                // Up port floor(d / K^l) mod K at level l: the down ports come first.
                let up = (route.segments().len() / 2).saturating_sub(1) as u32;
                for (level, segment) in (0..up).zip(&route.segments()[1.min(vertices.len() - 1)..])
                {
                    assert_eq!(segment.dimension, k + to / k.pow(level) % k);
                }
            }
            let distances = (0..nodes).map(|to| tree.distance(Rank(0), Rank(to)));
            assert_eq!(distances.max(), Some(tree.diameter()));
        }
    }

    #[test]
    fn a_taper_divides_the_capacity_between_switches_once() {
        for (given, capacity) in [("1", (1, 1)), ("2", (1, 2)), ("1.5", (2, 3)), ("6/4", (2, 3))] {
            let tree = fat_tree(&format!("2,4,{given}")).unwrap();
            for link in (0..tree.links()).map(LinkId) {
                let kind = &tree.link_kinds()[tree.link_kind(link)];
                let expected = if kind.class == NODE { (1, 1) } else { capacity };
                assert_eq!(kind.capacity.relative(1e-9), expected);
            }
        }
        let tree = fat_tree("2,3").unwrap();
        assert_eq!(
            [0, 8, 15].map(|v| tree.vertex_name(v)),
            ["0", "level 0 switch 0", "level 1 switch 3"]
        );
    }

    /// Each leaf has its nodes and its links to the spines, and routes are balanced over these.
    #[test]
    fn trees_of_two_levels_have_the_named_numbers() {
        let mut random = fastrand::Rng::with_seed(55);
        for _ in 0..100 {
            let [leaves, nodes, spines, each] = [5, 9, 4, 4].map(|most| random.u32(1..most));
            let uplinks = spines * each;
            let spelt = if spines > 1 { format!(",spines={spines}") } else { String::new() };
            let rest = format!("leaves={leaves},nodes={nodes},uplinks={uplinks}{spelt}");
            let tree = fat_tree(&rest).unwrap();
            assert_eq!(tree.short_form(), format!("fat-tree:{rest}"));
            assert_eq!(tree.ranks(), leaves * nodes);
            let mut ups = std::collections::BTreeMap::new();
            for link in (0..tree.links()).map(|link| tree.link(LinkId(link)).unwrap()) {
                let (leaf, spine) = (tree.ranks(), tree.ranks() + leaves);
                if link.from < leaf {
                    // Nodes are numbered leaf by leaf.
                    assert_eq!((link.to, link.class), (leaf + link.from / nodes, NODE));
                } else if link.to >= spine {
                    assert_eq!(link.class, INTER_SWITCH);
                    *ups.entry((link.from, link.to)).or_insert(0) += 1;
                }
            }
            assert_eq!(ups.len() as u32, leaves * spines, "{rest}");
            assert!(ups.values().all(|&count| count == each), "{rest}");
            let (mut route, mut load) = (Route::default(), vec![0; tree.links() as usize]);
            for (from, to) in (0..tree.ranks()).flat_map(|a| (0..tree.ranks()).map(move |b| (a, b)))
            {
                tree.route(Rank(from), Rank(to), &mut route);
                assert_eq!(tree.follow(Rank(from), &route), Ok(to));
                let hops = if from == to {
                    0
                } else if from / nodes == to / nodes {
                    2
                } else {
                    4
                };
                assert_eq!(route.hops(), hops, "{rest}: {from} to {to}");
                tree.for_each_link(Rank(from), &route, &mut |link| load[link.0 as usize] += 1);
            }
            // All nodes send to all: where the uplinks divide the nodes of a leaf, they share equally.
            if nodes % uplinks == 0 {
                let pairs = nodes * nodes * (leaves - 1);
                for link in (0..tree.links()).map(LinkId) {
                    let ends = tree.link(link).unwrap();
                    if ends.to >= tree.ranks() + leaves {
                        assert_eq!(load[link.0 as usize], pairs / uplinks, "{rest}");
                    }
                }
            }
        }
    }

    #[test]
    fn impossible_numbers_are_refused_with_the_rule() {
        let refused = |rest: &str| fat_tree(rest).unwrap_err();
        for (rest, rule) in [
            ("leaves=2,nodes=16", "uplinks is missing: "),
            ("leaves=2,nodes=16,uplinks=8,spines=3", "uplinks=8 is not a multiple of spines=3: "),
            ("leaves=2,nodes=16,uplinks=0", "uplinks is `0`, not a whole number from 1"),
            ("leaves=2,nodes=16,leaves=2,uplinks=8", "leaves is given twice"),
            ("leafs=2,nodes=16,uplinks=8", "`leafs=2` is not one of leaves=L,"),
            ("leaves=2,nodes=16,8", "`8` is not one of leaves=L,"),
            (
                "leaves=2048,nodes=1024,uplinks=1",
                "a fat tree cannot have 2097152 nodes: the limit is",
            ),
            ("leaves=1,nodes=1,uplinks=99999999", "a fat tree cannot have"),
            ("4294967295", "a fat tree has an arity, levels, and perhaps a taper, or leaves=L,"),
        ] {
            assert!(refused(rest).starts_with(rule), "{}", refused(rest));
        }
        assert_eq!(refused("2,21"), "a fat tree cannot have 2097152 nodes: the limit is 1048576");
        assert_eq!(refused("9,99"), "a fat tree cannot have 9^99 nodes: the limit is 1048576");
        assert_eq!(refused("4,2,2/3"), "a fat tree cannot have taper 2/3: it is at least 1");
        assert_eq!(
            refused("1,3"),
            "a fat tree cannot have arity 1: a switch has at least 2 ports down"
        );
    }
}
