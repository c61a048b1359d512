//! HyperX networks without switches of their own: every dimension is fully connected (Ahn et al.
//! 2009, section 2).

use std::sync::Arc;

use super::graph::{Links, ListedLinks, Routes, check_size};
use crate::number::number;
use crate::{Graph, LinkKind, MAX_DIMENSIONS, MixedRadix, Rank, Topology, TopologyError};

/// Routes that correct dimension 0 first, each dimension over one link.
///
/// The ports of a node are ordered by dimension, then by how far up the coordinate they lead, so
/// that translations keep them.
#[derive(Debug)]
struct DimensionOrder {
    radix: MixedRadix,
}

impl Graph {
    /// Nodes at the coordinates of a grid with these sides. A link each way joins nodes that differ
    /// in one coordinate.
    ///
    /// # Errors
    /// As [`MixedRadix::new`]; more than 2^20 nodes or 2^26 directed links.
    pub fn hyperx(sides: &[u32]) -> Result<Self, TopologyError> {
        let radix = MixedRadix::new(sides)?;
        let nodes = radix.ranks();
        let others: u128 = sides.iter().map(|side| u128::from(side - 1)).sum();
        check_size("HyperX", nodes.into(), u128::from(nodes) * others)?;
        let mut links = ListedLinks::new(nodes as usize, nodes as usize * others as usize);
        for node in (0..nodes).map(Rank) {
            for (u, &side) in sides.iter().enumerate() {
                for up in 1..i64::from(side) {
                    links.link(radix.shifted(node, u, up).0, LinkKind::of_class(u as u32));
                }
            }
            links.next_vertex();
        }
        let sides: Vec<_> = sides.iter().map(ToString::to_string).collect();
        let classes = (0..sides.len()).map(|u| format!("dimension {u}")).collect();
        let form = format!("hyperx:{}", sides.join("x"));
        let routes = DimensionOrder { radix: radix.clone() };
        let graph = Self::new(form, nodes, classes, links.done(), Box::new(routes));
        Ok(Self { translations: Some(radix), ..graph })
    }
}

impl Routes for DimensionOrder {
    fn next(&self, _: &Links, at: u32, _: u32, to: u32) -> usize {
        let Self { radix } = self;
        let mut ports = 0;
        for (u, &side) in radix.sides().iter().enumerate() {
            let (from, to) = (radix.coordinate(Rank(at), u), radix.coordinate(Rank(to), u));
            if from != to {
                let up = if to > from { to - from } else { to + (side - from) };
                return ports + up as usize - 1;
            }
            ports += side as usize - 1;
        }
        unreachable!("bug: a message that goes on from its destination")
    }

    fn diameter(&self) -> u32 {
        self.radix.long_dimensions().count() as u32
    }

    /// A renaming that keeps the dimension of every link renames each coordinate by itself.
    fn follow_links(&self) -> bool {
        true
    }

    fn vertex_name(&self, vertex: u32) -> Option<String> {
        Some(self.radix.name(Rank(vertex)))
    }
}

/// Reads sides separated by `x`.
pub(crate) fn hyperx(rest: &str) -> Result<Arc<dyn Topology>, String> {
    let sides = rest.split('x').take(MAX_DIMENSIONS + 1).enumerate();
    let sides = sides.map(|(u, side)| number(&format!("side {u}"), side));
    let sides = sides.collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(Graph::hyperx(&sides)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinkId, Route};

    #[test]
    fn every_dimension_is_fully_connected_and_corrected_by_one_link() {
        for sides in [&[4, 3][..], &[2, 1, 5], &[7], &[1], &[2, 2, 2]] {
            let graph = Graph::hyperx(sides).unwrap();
            let radix = MixedRadix::new(sides).unwrap();
            let at = |node: u32| radix.coordinates(Rank(node));
            let differ = |a: u32, b: u32| -> Vec<usize> {
                (0..sides.len()).filter(|&u| at(a)[u] != at(b)[u]).collect()
            };
            let mut ends = Vec::new();
            for link in (0..graph.links()).map(|link| graph.link(LinkId(link)).unwrap()) {
                assert_eq!(differ(link.from, link.to), [link.class as usize]);
                ends.push((link.from, link.to));
            }
            ends.sort_unstable();
            let pairs = (0..graph.ranks()).flat_map(|a| (0..graph.ranks()).map(move |b| (a, b)));
            let expected: Vec<_> =
                pairs.clone().filter(|&(a, b)| differ(a, b).len() == 1).collect();
            assert_eq!(ends, expected);

            let mut route = Route::default();
            for (from, to) in pairs {
                graph.route(Rank(from), Rank(to), &mut route);
                let mut classes = Vec::new();
                let mut last = from;
                graph.for_each_link(Rank(from), &route, &mut |link| {
                    let link = graph.link(link).unwrap();
                    classes.push(link.class as usize);
                    last = link.to;
                });
                assert_eq!((last, &classes), (to, &differ(from, to)));
                assert!(classes.len() as u32 <= graph.diameter());
            }
            assert_eq!(graph.distance(Rank(0), Rank(graph.ranks() - 1)), graph.diameter());
        }
    }

    #[test]
    fn translations_keep_links_by_port_and_routes() {
        let graph = Graph::hyperx(&[4, 3, 2]).unwrap();
        let radix = graph.translations().unwrap();
        let moved = |node: Rank, by: &[i64]| {
            by.iter().enumerate().fold(node, |node, (u, &by)| radix.shifted(node, u, by))
        };
        let (mut one, mut other) = (Route::default(), Route::default());
        for by in [[1, 0, 0], [0, 2, 0], [3, 1, 1]] {
            for from in (0..24).map(Rank) {
                for ((_, to), (_, there)) in
                    graph.leaving(from.0).zip(graph.leaving(moved(from, &by).0))
                {
                    assert_eq!(moved(Rank(to), &by), Rank(there));
                }
                for to in (0..24).map(Rank) {
                    graph.route(from, to, &mut one);
                    graph.route(moved(from, &by), moved(to, &by), &mut other);
                    assert_eq!(one, other);
                }
            }
        }
    }

    #[test]
    fn networks_that_are_too_large_are_refused_before_memory_is_taken() {
        let refused = |rest: &str| hyperx(rest).unwrap_err();
        assert_eq!(
            refused("1024x1024"),
            "a HyperX cannot have 2145386496 directed links: the limit is 67108864"
        );
        assert_eq!(
            refused("2048x1024"),
            "a HyperX cannot have 2097152 nodes: the limit is 1048576"
        );
    }
}
