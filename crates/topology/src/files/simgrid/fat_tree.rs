//! FAT_TREE clusters: parallel ports generalized fat trees with D-mod-K routes (Zahavi 2010).
//!
//! `topo_parameters` are the number of levels and, for each level from the hosts up, the entities
//! below a switch, the switches above an entity, and the parallel links between the two. An entity
//! on level l (hosts: 0) has a digit for each level, the first one fastest: below l which of the
//! switches above, from l on which of the entities below.

use crate::graph::{Links, ListedLinks, Routes, check_size};
use crate::{Graph, LinkKind, TopologyError};

#[derive(Debug)]
pub(super) struct FatTree {
    /// By level, the entities below a switch.
    down: Vec<u32>,
    /// By level, the switches above an entity.
    up: Vec<u32>,
    /// By level, the parallel links from an entity to each switch above.
    cables: Vec<u32>,
    /// By level, the first vertex; one more entry at the end.
    first: Vec<u32>,
}

/// The graph of `topo_parameters`.
pub(super) fn fat_tree(parameters: &str) -> Result<Graph, String> {
    let lists = super::lists(parameters, [1, 0, 0, 0])?;
    let [levels, down, up, cables] = &lists[..] else { unreachable!("bug: other lists") };
    let levels = levels[0] as usize;
    if [down, up, cables].iter().any(|list| list.len() != levels) {
        return Err(format!("topo_parameters `{parameters}` do not have {levels} values a list"));
    }
    Ok(FatTree::graph(down.clone(), up.clone(), cables.clone())?)
}

impl FatTree {
    fn graph(down: Vec<u32>, up: Vec<u32>, cables: Vec<u32>) -> Result<Graph, TopologyError> {
        let levels = down.len();
        let product = |of: &[u32]| of.iter().fold(1, |all: u128, &n| all.saturating_mul(n.into()));
        let count = |level: usize| product(&up[..level]).saturating_mul(product(&down[level..]));
        let links = (0..levels).map(|level| {
            let each = u128::from(up[level]) * u128::from(cables[level]);
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
        let tree = Self { down, up, cables, first };
        let vertices = *tree.first.last().expect("an entry for each level");
        let mut listed = ListedLinks::new(vertices as usize, links as usize);
        let kind = LinkKind::of_class(0);
        for level in 0..=levels {
            for place in 0..tree.first[level + 1] - tree.first[level] {
                if let Some(below) = level.checked_sub(1) {
                    for child in 0..tree.down[below] {
                        let to =
                            tree.vertex(below, tree.with_digit(level, place, below, below, child));
                        for _ in 0..tree.cables[below] {
                            listed.link(to, kind);
                        }
                    }
                }
                if level < levels {
                    for port in 0..tree.up[level] * tree.cables[level] {
                        let above = port % tree.up[level];
                        let place = tree.with_digit(level, place, level + 1, level, above);
                        listed.link(tree.vertex(level + 1, place), kind);
                    }
                }
                listed.next_vertex();
            }
        }
        let classes = vec!["link".to_owned()];
        Ok(Graph::by_rule("network".to_owned(), nodes, classes, listed, tree))
    }

    fn vertex(&self, level: usize, place: u32) -> u32 {
        self.first[level] + place
    }

    /// The values of a digit on a level.
    fn radix(&self, level: usize, digit: usize) -> u32 {
        if digit < level { self.up[digit] } else { self.down[digit] }
    }

    fn digit(&self, level: usize, place: u32, digit: usize) -> u32 {
        let unit: u32 = (0..digit).map(|below| self.radix(level, below)).product();
        place / unit % self.radix(level, digit)
    }

    /// The place on level `to` with the digits of a place on another level, but for one of them.
    fn with_digit(&self, from: usize, place: u32, to: usize, changed: usize, value: u32) -> u32 {
        let (mut unit, mut there) = (1, 0);
        for digit in 0..self.down.len() {
            let own = self.digit(from, place, digit);
            there += unit * if digit == changed { value } else { own };
            unit *= self.radix(to, digit);
        }
        there
    }
}

impl Routes for FatTree {
    fn next(&self, _: &Links, at: u32, from: u32, to: u32) -> usize {
        let level = self.first.partition_point(|&first| first <= at) - 1;
        let place = at - self.first[level];
        let digit = |digit| self.digit(0, to, digit);
        let is_above =
            level > 0 && (level..self.down.len()).all(|u| self.digit(level, place, u) == digit(u));
        if is_above {
            let cables = self.cables[level - 1];
            return (digit(level - 1) * cables + from % cables) as usize;
        }
        let ports = |level: usize| self.up[level] * self.cables[level];
        let passed: u32 = (0..level).map(ports).fold(1, u32::saturating_mul);
        let below = if level == 0 { 0 } else { self.down[level - 1] * self.cables[level - 1] };
        (below + to / passed % ports(level)) as usize
    }

    fn modulus(&self, _: &Links, at: u32, _: u32) -> Option<u32> {
        let level = self.first.partition_point(|&first| first <= at) - 1;
        Some(if level == 0 { 1 } else { self.cables[level - 1] })
    }

    fn diameter(&self) -> u32 {
        let highest = self.down.iter().rposition(|&down| down > 1);
        highest.map_or(0, |level| 2 * (level as u32 + 1))
    }

    fn vertex_name(&self, vertex: u32) -> Option<String> {
        let level = self.first.partition_point(|&first| first <= vertex) - 1;
        (level > 0).then(|| format!("level {} switch {}", level - 1, vertex - self.first[level]))
    }
}
