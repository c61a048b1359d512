//! Renamings of nodes that keep the links of a graph, their kinds, and its routes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Graph;
use crate::{LinkId, MixedRadix, Rank};

/// A renaming of ranks that are numbered in a mixed radix: one coordinate grows, counted around its side.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Translation {
    /// The difference of two ranks that are neighbours along the coordinate.
    pub stride: u32,
    /// The number of its values.
    pub side: u32,
    /// The places by which it grows, at most its side.
    pub by: u32,
}

impl Translation {
    /// The new names of nodes that hold this many ranks each, if the ranks of a node stay together.
    fn of_nodes(self, nodes: u32, size: u32) -> Option<Vec<u32>> {
        let (ranks, below) = (nodes * size, self.stride.checked_mul(self.side)?);
        if ranks % below > 0 {
            return None;
        }
        let radix = MixedRadix::new(&[ranks / below, self.side, self.stride]).ok()?;
        let moved = |rank| radix.shifted(Rank(rank), 1, self.by.into());
        let of_node = |node: u32| {
            let mut ranks = (node * size..(node + 1) * size).map(|rank| moved(rank).0 / size);
            let first = ranks.next()?;
            ranks.all(|node| node == first).then_some(first)
        };
        (0..nodes).map(of_node).collect()
    }
}

/// Equivalent nodes and equivalent links of a graph under translations.
#[derive(PartialEq, Eq, Debug)]
pub struct Orbits {
    /// Of nodes.
    pub nodes: Orbit,
    /// Of links; one that is on no route may be by itself.
    pub links: Orbit,
    /// Whether all links have equivalents, which leave their vertices by the same port.
    pub keep_ports: bool,
}

/// Classes of members that translations take to each other.
#[derive(PartialEq, Eq, Debug)]
pub struct Orbit {
    /// By member, its class.
    pub of: Vec<u32>,
    /// By class, its first member, and how many it has.
    pub classes: Vec<(u32, u32)>,
}

/// No link.
const NONE: u32 = u32::MAX;

/// Where a renaming takes nodes and links.
#[derive(Debug)]
struct Image {
    nodes: Vec<u32>,
    links: Vec<u32>,
}

/// What was found out, by translations and the ranks on each node.
type Known<K, V> = Mutex<HashMap<(K, u32), V>>;

/// What was found out about renamings.
#[derive(Debug, Default)]
pub(crate) struct Symmetries {
    images: Known<Translation, Option<Arc<Image>>>,
    orbits: Known<Vec<Translation>, Arc<Orbits>>,
}

impl Graph {
    /// Whether a translation of ranks, `size` of them on each node, is proved to take links to links of
    /// their kind and the route of any two nodes to the route between their images.
    ///
    /// The first call takes time proportional to the links where routes follow from them, and to the links
    /// of all routes where not; if those are more than some millions, it is not proved.
    pub fn is_kept_by(&self, translation: Translation, size: u32) -> bool {
        self.image(translation, size).is_some()
    }

    /// The orbits of nodes and links under translations of ranks in one numbering, which commute, `size` ranks on
    /// each node; `None` if one of them is not [proved](Self::is_kept_by).
    pub fn orbits(&self, translations: &[Translation], size: u32) -> Option<Arc<Orbits>> {
        let key = (translations.to_vec(), size);
        let known = || self.symmetries.orbits.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(orbits) = known().get(&key) {
            return Some(orbits.clone());
        }
        let images: Vec<_> =
            translations.iter().map(|&of| self.image(of, size)).collect::<Option<_>>()?;
        let nodes: Vec<&[u32]> = images.iter().map(|image| &image.nodes[..]).collect();
        let links: Vec<&[u32]> = images.iter().map(|image| &image.links[..]).collect();
        let orbits = Arc::new(Orbits {
            nodes: Orbit::new(self.nodes as usize, &nodes),
            links: Orbit::new(self.links.count(), &links),
            keep_ports: images.iter().all(|image| self.keeps_ports(&image.links)),
        });
        known().insert(key, orbits.clone());
        Some(orbits)
    }

    /// Where a [proved](Self::is_kept_by) translation, done some times, takes a link that is on a route.
    ///
    /// # Panics
    /// A translation that is not proved, or a link that is on no route.
    #[must_use]
    pub fn moved(&self, link: LinkId, translation: Translation, size: u32, times: u32) -> LinkId {
        if times == 0 {
            return link;
        }
        let image = self.image(translation, size).expect("bug: a translation that is not proved");
        LinkId((0..times).fold(link.0, |link, _| image.links[link as usize].into()))
    }

    /// Whether the links that leave a vertex go to those of one vertex, in their order.
    fn keeps_ports(&self, images: &[u32]) -> bool {
        (0..self.links.vertices()).all(|from| {
            let images = &images[self.links.leaving(from)];
            images.first().is_none_or(|&first| {
                let is_first = |of: u32| self.links.leaving(of).start == first as usize;
                first != NONE
                    && is_first(self.links.from(first as usize))
                    && images.iter().zip(first..).all(|(&image, next)| image == next)
            })
        })
    }

    fn image(&self, translation: Translation, size: u32) -> Option<Arc<Image>> {
        let known = || self.symmetries.images.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(image) = known().get(&(translation, size)) {
            return image.clone();
        }
        let image = translation.of_nodes(self.nodes, size).and_then(|nodes| {
            let links = self.link_images(&nodes)?;
            Some(Arc::new(Image { nodes, links }))
        });
        known().insert((translation, size), image.clone());
        image
    }

    /// Where a renaming of nodes takes each link on a route, if it is proved to keep links and routes.
    fn link_images(&self, nodes: &[u32]) -> Option<Vec<u32>> {
        let ports = |node: u32| self.links.leaving(node).len();
        if (0..).zip(nodes).any(|(node, &image)| ports(node) != ports(image)) {
            None
        } else if let Some(images) = self.routes.vertex_images(nodes) {
            self.images_of_vertices(&images)
        } else if self.routes.follow_links() {
            self.images_of_vertices(&self.vertex_images(nodes)?)
        } else {
            self.images_of_routes(nodes)
        }
    }

    /// Where a renaming of nodes takes each vertex, if routes are to be kept.
    fn vertex_images(&self, nodes: &[u32]) -> Option<Vec<u32>> {
        let mut images = vec![NONE; self.vertices() as usize];
        images[..nodes.len()].copy_from_slice(nodes);
        let mut open = images.len() - nodes.len();
        // On a tree the routes of one node pass all switches between nodes.
        for (from, to) in (0..self.nodes.min(4)).flat_map(|a| (0..self.nodes).map(move |b| (a, b)))
        {
            for [from, to] in [[from, to], [to, from]] {
                if open == 0 {
                    return Some(images);
                }
                let kept = self.each_pair_of_links([from, to], nodes, |link, image| {
                    let [at, there] = [link, image].map(|link| self.links.to(link));
                    let known = &mut images[at as usize];
                    open -= usize::from(*known == NONE);
                    if *known == NONE {
                        *known = there;
                    }
                    *known == there
                });
                if !kept {
                    return None;
                }
            }
        }
        (open == 0).then_some(images)
    }

    /// Calls `each` with every link of the route between two nodes and the link at the same place of the
    /// route between their images, while it returns true; false if the routes differ in length.
    fn each_pair_of_links(
        &self,
        [from, to]: [u32; 2],
        nodes: &[u32],
        mut each: impl FnMut(usize, usize) -> bool,
    ) -> bool {
        let [from_image, to_image] = [from, to].map(|node| nodes[node as usize]);
        let (mut at, mut there) = (from, from_image);
        while at != to && there != to_image {
            let next = |at: u32, from, to| {
                self.links.leaving(at).start + self.routes.next(&self.links, at, from, to)
            };
            let (link, image) = (next(at, from, to), next(there, from_image, to_image));
            if !each(link, image) {
                return false;
            }
            (at, there) = (self.links.to(link), self.links.to(image));
        }
        at == to && there == to_image
    }

    /// Where a renaming of vertices takes each link, if all links lead to links of their kind.
    fn images_of_vertices(&self, vertices: &[u32]) -> Option<Vec<u32>> {
        let links = &self.links;
        let mut reached = vec![false; vertices.len()];
        let mut images = vec![NONE; links.count()];
        // By vertex, the last vertex whose links were looked at, and the link between them.
        let mut leading = vec![(NONE, NONE); vertices.len()];
        for (vertex, &image) in (0..).zip(vertices) {
            if std::mem::replace(&mut reached[image as usize], true)
                || links.leaving(vertex).len() != links.leaving(image).len()
            {
                return None;
            }
            for link in links.leaving(image).rev() {
                let last = &mut leading[links.to(link) as usize];
                if last.0 == image {
                    // Parallel links: only routes tell which is which.
                    return None;
                }
                *last = (image, link as u32);
            }
            for link in links.leaving(vertex) {
                let (from, there) = leading[vertices[links.to(link) as usize] as usize];
                if from != image || links.kind_number(link) != links.kind_number(there as usize) {
                    return None;
                }
                images[link] = there;
            }
        }
        Some(images)
    }

    /// Where a renaming of nodes takes each link on a route, if all routes are kept, link by link.
    fn images_of_routes(&self, nodes: &[u32]) -> Option<Vec<u32>> {
        /// The most links of all routes: part of a second.
        const VISITED: u64 = 1 << 25;
        let pairs = u64::from(self.nodes).pow(2);
        if pairs.saturating_mul(self.diameter().into()) > VISITED {
            return None;
        }
        let mut images = vec![NONE; self.links.count()];
        let mut origins = images.clone();
        for (from, to) in (0..self.nodes).flat_map(|a| (0..self.nodes).map(move |b| (a, b))) {
            let kept = self.each_pair_of_links([from, to], nodes, |link, image| {
                let kinds = [link, image].map(|link| self.links.kind_number(link));
                let known = [&mut images[link], &mut origins[image]];
                let same = known.into_iter().zip([image, link]).all(|(known, other)| {
                    if *known == NONE {
                        *known = other as u32;
                    }
                    *known == other as u32
                });
                same && kinds[0] == kinds[1]
            });
            if !kept {
                return None;
            }
        }
        Some(images)
    }
}

impl Orbit {
    /// The orbits of members under permutations that commute; one that a permutation does not take anywhere is by
    /// itself.
    fn new(members: usize, images: &[&[u32]]) -> Self {
        /// The first member that is known to be in the class of another.
        fn first(known: &mut [u32], mut of: u32) -> u32 {
            while known[of as usize] != of {
                let next = known[known[of as usize] as usize];
                of = std::mem::replace(&mut known[of as usize], next);
            }
            of
        }
        let mut known: Vec<u32> = (0..members as u32).collect();
        let mut firsts = known.clone();
        for images in images {
            // A permutation takes whole orbits of those before to such orbits, so the first members tell where.
            for &member in firsts.iter().filter(|&&member| images[member as usize] != NONE) {
                let ends = [member, images[member as usize]].map(|of| first(&mut known, of));
                known[ends[0].max(ends[1]) as usize] = ends[0].min(ends[1]);
            }
            firsts.retain(|&member| known[member as usize] == member);
        }
        let (mut of, mut classes): (Vec<u32>, Vec<(u32, u32)>) = (vec![NONE; members], Vec::new());
        for member in 0..members as u32 {
            let first = first(&mut known, member);
            if first == member {
                of[member as usize] = classes.len() as u32;
                classes.push((member, 0));
            }
            let class = of[first as usize];
            of[member as usize] = class;
            classes[class as usize].1 += 1;
        }
        Self { of, classes }
    }

    /// The class of a member.
    #[must_use]
    #[inline]
    pub fn class_of(&self, member: usize) -> usize {
        self.of[member] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinkKind, ListedGraph};

    /// Leaves of `size` nodes under one switch or several; further links join two vertices.
    fn tree(leaves: u32, size: u32, spines: u32, more: &[(u32, u32, u32)]) -> Graph {
        let nodes = leaves * size;
        let up = (0..nodes).map(|node| (node, nodes + node / size, 0));
        let leaf = (0..leaves).flat_map(|leaf| {
            (0..spines).map(move |spine| (nodes + leaf, nodes + leaves + spine, 1))
        });
        let both = up.chain(leaf).chain(more.iter().copied()).flat_map(|(from, to, class)| {
            [(from, to), (to, from)].map(|(from, to)| (from, to, LinkKind::of_class(class)))
        });
        let listed = ListedGraph {
            nodes,
            switches: leaves + spines,
            classes: vec!["near".to_owned(), "far".to_owned()],
            links: both.collect(),
            ..ListedGraph::default()
        };
        listed.with_shortest_routes().unwrap()
    }

    fn cyclic(graph: &Graph, by: u32) -> bool {
        graph.is_kept_by(Translation { stride: 1, side: graph.nodes, by }, 1)
    }

    #[test]
    fn whole_leaves_move_and_nothing_else() {
        let whole = tree(4, 3, 1, &[]);
        assert_eq!([1, 2, 3, 6].map(|by| cyclic(&whole, by)), [false, false, true, true]);
        // The nodes of every leaf, and two of them at a time.
        assert!(whole.is_kept_by(Translation { stride: 1, side: 3, by: 1 }, 1));
        let orbits = whole.orbits(&[Translation { stride: 1, side: 12, by: 3 }], 1).unwrap();
        assert_eq!(orbits.nodes.classes, [(0, 4), (1, 4), (2, 4)]);
        // With several ranks on a node they move with it.
        assert!(whole.is_kept_by(Translation { stride: 1, side: 24, by: 6 }, 2));
        assert!(!whole.is_kept_by(Translation { stride: 1, side: 24, by: 3 }, 2));
    }

    #[test]
    fn a_false_symmetry_is_refused() {
        // A link between two nodes, a wider link between two leaves, and a link of another class.
        for more in [(0, 5, 0), (12, 13, 1), (0, 12, 1)] {
            let broken = tree(4, 3, 1, &[more]);
            assert!((1..12).all(|by| !cyclic(&broken, by)), "{more:?}");
        }
        // Of two spines messages take that of the parity of both ends, which a turn past an odd number of
        // nodes changes.
        assert!(cyclic(&tree(4, 3, 2, &[]), 3));
        assert!(!cyclic(&tree(3, 3, 2, &[]), 3));
    }

    /// Of two parallel links messages between two nodes take the second.
    #[test]
    fn links_on_no_route_have_no_equivalents() {
        for (parallel, keep_ports) in [(1, true), (2, false)] {
            let link = |from| (from, 1 - from, LinkKind::of_class(0));
            let links = [0, 1].into_iter().flat_map(|from| vec![link(from); parallel]);
            let listed = ListedGraph {
                nodes: 2,
                classes: vec!["link".to_owned()],
                links: links.collect(),
                ..ListedGraph::default()
            };
            let graph = listed.with_shortest_routes().unwrap();
            let swap = Translation { stride: 1, side: 2, by: 1 };
            assert_eq!(graph.orbits(&[swap], 1).unwrap().keep_ports, keep_ports);
            let taken = LinkId(parallel as u64 - 1);
            let from = |times| graph.links.from(graph.moved(taken, swap, 1, times).0 as usize);
            assert_eq!([0, 1, 2].map(from), [0, 1, 0]);
        }
    }

    /// What is proved without following routes is true on the routes of families, whatever is translated.
    #[test]
    fn families_and_routes_agree() {
        let graphs = [
            (Graph::fat_tree(3, 3, (1, 1)), [9, 3, 1]),
            (Graph::fat_tree(4, 2, (2, 1)), [4, 2, 1]),
            (Graph::dragonfly(2, 3, 1, None), [6, 2, 1]),
            (Graph::hyperx(&[4, 2, 3]), [6, 3, 1]),
        ];
        for (graph, strides) in graphs {
            let graph = graph.unwrap();
            let mut proved = 0;
            let strides =
                (0..3).map(|i| (strides[i], if i == 0 { graph.nodes } else { strides[i - 1] }));
            for (stride, above) in strides.chain([(1, graph.nodes)]) {
                for by in 1..above / stride {
                    let translation = Translation { stride, side: above / stride, by };
                    let nodes = translation.of_nodes(graph.nodes, 1).unwrap();
                    let (routes, found) =
                        (graph.images_of_routes(&nodes), graph.link_images(&nodes));
                    assert_eq!(
                        found.is_some(),
                        routes.is_some(),
                        "{}, {translation:?}",
                        graph.form
                    );
                    let both = found.iter().flatten().zip(routes.iter().flatten());
                    both.for_each(|(link, by_route)| assert!([*link, NONE].contains(by_route)));
                    proved += u32::from(found.is_some());
                }
            }
            assert!(proved > 2, "{}: {proved}", graph.form);
        }
    }

    /// What is proved by links alone is true route by route, with the same links.
    #[test]
    fn links_and_routes_agree() {
        let mut random = fastrand::Rng::with_seed(55);
        let mut proved = 0;
        for _ in 0..200 {
            let [leaves, size] = [random.u32(1..5), random.u32(1..4)];
            let vertices = leaves * (size + 1) + 1;
            let more = (random.u32(0..vertices), random.u32(0..vertices), random.u32(0..2));
            let more = if random.bool() && more.0 != more.1 { vec![more] } else { Vec::new() };
            let graph = tree(leaves, size, 1, &more);
            for by in 1..graph.nodes {
                let translation = Translation { stride: 1, side: graph.nodes, by };
                let nodes = translation.of_nodes(graph.nodes, 1).unwrap();
                let routes = graph.images_of_routes(&nodes);
                if graph.routes.follow_links() {
                    let links = graph.link_images(&nodes);
                    assert!(links.is_none() || routes.is_some(), "{more:?}, {translation:?}");
                    let both = links.iter().flatten().zip(routes.iter().flatten());
                    both.for_each(|(link, by_route)| assert!([*link, NONE].contains(by_route)));
                    proved += u32::from(links.is_some());
                }
            }
        }
        assert!(proved > 100, "{proved}");
    }
}
