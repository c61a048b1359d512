//! Fat trees: k-ary n-trees (Petrini and Vanneschi 1997), with D-mod-K routes (Zahavi 2012).
//!
//! Levels are counted from the nodes, 0 to N-1, and each has K^(N-1) switches. The number of a switch
//! on level l has N-1 digits in base K. Digits l and above are those of the nodes below it, without
//! their last one: node d is below the switches whose number, divided by K^l, is that of d divided
//! by K^(l+1). Up port c of a switch on level l leads to the switch above it whose digit l is c, and
//! down port c of a switch on level l + 1 to the one below it whose digit l is c.

use std::sync::Arc;

use crate::graph::{Links, ListedLinks, Routes, check_size};
use crate::reading::fraction;
use crate::spec::number;
use crate::{Capacity, Graph, LinkKind, Topology, TopologyError};

/// The class of the links between nodes and switches, and of those between switches.
const NODE: u32 = 0;
const INTER_SWITCH: u32 = 1;

/// Up to the lowest switch above both ends, on level l through port `floor(d / K^l) mod K` for
/// destination d, and down the only way.
///
/// The down ports of a switch come first, then its up ports.
#[derive(Debug)]
struct DModK {
    arity: u32,
    levels: u32,
    nodes: u32,
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
        let nodes = arity.checked_pow(levels).map_or(u128::MAX, u128::from);
        if nodes == u128::MAX {
            return refuse(format!("{arity}^{levels} nodes"), "the limit is 1048576");
        }
        check_size("fat tree", nodes, 2 * nodes * u128::from(levels))?;
        let nodes = nodes as u32;
        let tree = DModK { arity, levels, nodes };
        let capacity = Capacity::Relative { times, over }.lowest();
        let to_node = LinkKind::of_class(NODE);
        let to_switch = LinkKind { capacity, ..LinkKind::of_class(INTER_SWITCH) };

        let switches = nodes / arity;
        let vertices = nodes as usize + levels as usize * switches as usize;
        let mut links = ListedLinks::new(vertices, 2 * nodes as usize * levels as usize);
        for node in 0..nodes {
            links.link(tree.switch(0, node / arity), to_node);
            links.next_vertex();
        }
        for level in 0..levels {
            for switch in 0..switches {
                for c in 0..arity {
                    match level.checked_sub(1) {
                        None => links.link(switch * arity + c, to_node),
                        Some(below) => links.link(tree.beside(below, switch, c), to_switch),
                    };
                }
                for c in (0..arity).filter(|_| level + 1 < levels) {
                    let above = tree.beside(level, switch, c) + switches;
                    links.link(above, to_switch);
                }
                links.next_vertex();
            }
        }
        let taper = match capacity.relative(1.0) {
            (1, 1) => String::new(),
            (1, whole) => format!(",{whole}"),
            (times, over) => format!(",{over}/{times}"),
        };
        let form = format!("fat-tree:{arity},{levels}{taper}");
        let classes = vec!["node".to_owned(), "inter-switch".to_owned()];
        Ok(Self::by_rule(form, nodes, classes, links, tree))
    }
}

impl DModK {
    /// The vertex of a switch.
    fn switch(&self, level: u32, number: u32) -> u32 {
        self.nodes + level * (self.nodes / self.arity) + number
    }

    /// The level and number of the switch at a vertex.
    fn place(&self, vertex: u32) -> (u32, u32) {
        let (switch, on_level) = (vertex - self.nodes, self.nodes / self.arity);
        (switch / on_level, switch % on_level)
    }

    /// The vertex of the switch on a level whose number differs in having c as digit `level`.
    fn beside(&self, level: u32, number: u32, c: u32) -> u32 {
        let unit = self.arity.pow(level);
        let digit = number / unit % self.arity;
        self.switch(level, number - digit * unit + c * unit)
    }
}

impl Routes for DModK {
    fn next(&self, _: &Links, at: u32, _: u32, to: u32) -> usize {
        if at < self.nodes {
            return 0;
        }
        let (level, number) = self.place(at);
        let unit = self.arity.pow(level);
        let port = to / unit % self.arity;
        let is_above = number / unit == to / unit / self.arity;
        if is_above { port as usize } else { (self.arity + port) as usize }
    }

    fn modulus(&self, _: &Links, _: u32, _: u32) -> Option<u32> {
        Some(1)
    }

    fn diameter(&self) -> u32 {
        2 * self.levels
    }

    fn vertex_name(&self, vertex: u32) -> Option<String> {
        (vertex >= self.nodes).then(|| {
            let (level, number) = self.place(vertex);
            format!("level {level} switch {number}")
        })
    }
}

/// Reads the arity, the number of levels, and the taper, such as `2`, `1.5` or `3/2`.
pub(crate) fn fat_tree(rest: &str) -> Result<Arc<dyn Topology>, String> {
    let parts: Vec<_> = rest.split(',').collect();
    let (arity, levels, taper) = match parts[..] {
        [arity, levels] => (arity, levels, (1, 1)),
        [arity, levels, given] => (arity, levels, fraction(given)?),
        _ => return Err("a fat tree has an arity, levels, and perhaps a taper".to_owned()),
    };
    let (arity, levels) = (number("arity", arity)?, number("number of levels", levels)?);
    Ok(Arc::new(Graph::fat_tree(arity, levels, taper)?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{LinkId, Rank, Route};

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

    #[test]
    fn impossible_numbers_are_refused_with_the_rule() {
        let refused = |rest: &str| fat_tree(rest).unwrap_err();
        assert_eq!(refused("2,21"), "a fat tree cannot have 2097152 nodes: the limit is 1048576");
        assert_eq!(refused("9,99"), "a fat tree cannot have 9^99 nodes: the limit is 1048576");
        assert_eq!(refused("4,2,2/3"), "a fat tree cannot have taper 2/3: it is at least 1");
        assert_eq!(
            refused("1,3"),
            "a fat tree cannot have arity 1: a switch has at least 2 ports down"
        );
    }
}
