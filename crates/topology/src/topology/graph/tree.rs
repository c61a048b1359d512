//! Routes over the only way between two nodes of a tree.
//!
//! A message takes the fewest links, and of c parallel links number (source + destination) mod c, as by
//! [`Shortest`](super::shortest::Shortest). Memory is proportional to the links, and not to pairs of vertices.

use super::{Links, Routes};

/// The vertices in the order of a walk from vertex 0 that visits all vertices behind a link before the next.
#[derive(Debug)]
pub(crate) struct Tree {
    /// By vertex, its place in the walk.
    entered: Vec<u32>,
    /// By vertex, the last place of the vertices behind it.
    last: Vec<u32>,
    /// By link, the places at its vertex, ascending by the place in the walk of the vertex they lead to.
    ports: Vec<u32>,
    diameter: u32,
    /// Whether no two links are parallel.
    unique: bool,
}

impl Tree {
    /// The routes, if the links are those of a tree, in both directions.
    pub(crate) fn of(links: &Links, nodes: u32) -> Option<Self> {
        let vertices = links.vertices() as usize;
        let (mut entered, mut last) = (vec![u32::MAX; vertices], vec![0; vertices]);
        let mut parents = vec![u32::MAX; vertices];
        let (mut open, mut walked) = (vec![0u32], Vec::with_capacity(vertices));
        while let Some(at) = open.pop() {
            if entered[at as usize] < u32::MAX {
                // A second way to it.
                return None;
            }
            entered[at as usize] = walked.len() as u32;
            walked.push(at);
            let start = open.len();
            let behind = links.ends(links.leaving(at)).iter();
            open.extend(behind.copied().filter(|&end| end != parents[at as usize]));
            open[start..].sort_unstable();
            let mut kept = start;
            for next in start..open.len() {
                if next == start || open[next] != open[kept - 1] {
                    open[kept] = open[next];
                    kept += 1;
                }
            }
            open.truncate(kept);
            for &end in &open[start..] {
                if std::mem::replace(&mut parents[end as usize], at) < u32::MAX || end == 0 {
                    return None;
                }
            }
        }
        if walked.len() < vertices {
            return None;
        }
        for &at in walked.iter().rev() {
            let own = last[at as usize].max(entered[at as usize]);
            last[at as usize] = own;
            if let Some(last) = last.get_mut(parents[at as usize] as usize) {
                *last = own.max(*last);
            }
        }
        let (mut ports, mut unique) = (Vec::with_capacity(links.count()), true);
        for at in 0..vertices as u32 {
            let ends = links.ends(links.leaving(at));
            let start = ports.len();
            ports.extend(0..ends.len() as u32);
            // Stable: parallel links keep their order.
            ports[start..].sort_by_key(|&port| entered[ends[port as usize] as usize]);
            let end = |port: &u32| ends[*port as usize];
            unique &= ports[start..].windows(2).all(|two| end(&two[0]) != end(&two[1]));
            let parent = parents[at as usize];
            if parent < u32::MAX && ports[start..].first().map(end) != Some(parent) {
                // No link back.
                return None;
            }
        }
        // The farthest node of any is one end of a longest route.
        let farthest = |from: u32| {
            let hops = links.hops_from(from);
            (0..nodes).max_by_key(|&node| hops[node as usize]).map(|to| (to, hops[to as usize]))
        };
        let (end, _) = farthest(0)?;
        let (_, diameter) = farthest(end)?;
        Some(Self { entered, last, ports, diameter, unique })
    }

    /// The places of the links that lead nearer to another vertex.
    fn nearer(&self, links: &Links, at: u32, to: u32) -> &[u32] {
        let leaving = links.leaving(at);
        let (ends, ports) = (links.ends(leaving.clone()), &self.ports[leaving]);
        if let [_] = ports {
            return ports;
        }
        let (own, wanted) = (self.entered[at as usize], self.entered[to as usize]);
        let entered = |port: &u32| self.entered[ends[*port as usize] as usize];
        if wanted < own || wanted > self.last[at as usize] {
            let up =
                if self.unique { 1 } else { ports.partition_point(|port| entered(port) < own) };
            return &ports[..up];
        }
        let end = ports.partition_point(|port| entered(port) <= wanted);
        let first = entered(&ports[end - 1]);
        let count = ports[..end].iter().rev().take_while(|port| entered(port) == first).count();
        &ports[end - count..end]
    }
}

impl Routes for Tree {
    fn next(&self, links: &Links, at: u32, from: u32, to: u32) -> usize {
        let ports = self.nearer(links, at, to);
        let taken = match ports.len() as u64 {
            1 => 0,
            count => (u64::from(from) + u64::from(to)) % count,
        };
        ports[taken as usize] as usize
    }

    fn modulus(&self, links: &Links, at: u32, to: u32) -> Option<u32> {
        Some(self.nearer(links, at, to).len() as u32)
    }

    fn diameter(&self) -> u32 {
        self.diameter
    }

    fn are_of_links(&self) -> bool {
        true
    }

    fn are_shortest(&self) -> bool {
        true
    }

    fn follow_links(&self) -> bool {
        self.unique
    }
}

#[cfg(test)]
mod tests {
    use super::super::shortest::Shortest;
    use super::super::{LinkKind, ListedLinks};
    use super::*;

    fn links(vertices: u32, pairs: &[(u32, u32)]) -> Links {
        let mut listed = ListedLinks::new(vertices as usize, pairs.len());
        for vertex in 0..vertices {
            for &(_, to) in pairs.iter().filter(|(from, _)| *from == vertex) {
                assert!(listed.link(to, LinkKind::of_class(0)));
            }
            listed.next_vertex();
        }
        listed.done()
    }

    /// Trees with parallel links, and the same with a link more or one less: routes are the shortest ones.
    #[test]
    fn routes_are_the_shortest() {
        let mut random = fastrand::Rng::with_seed(5);
        for round in 0..200 {
            let vertices = random.u32(2..30);
            let nodes = random.u32(1..=vertices);
            let mut pairs = Vec::new();
            for vertex in 1..vertices {
                let other = random.u32(0..vertex);
                for _ in 0..random.u32(1..3) {
                    pairs.extend([(vertex, other), (other, vertex)]);
                }
            }
            random.shuffle(&mut pairs);
            match round % 5 {
                0 => {
                    let [from, to] = [(); 2].map(|()| random.u32(0..vertices));
                    if from != to && !pairs.contains(&(from, to)) {
                        pairs.push((from, to));
                    }
                }
                1 => drop(pairs.pop()),
                _ => {}
            }
            let links = links(vertices, &pairs);
            let has_way_back = pairs.iter().all(|&(from, to)| pairs.contains(&(to, from)));
            let mut ways: Vec<_> = pairs.iter().map(|&(a, b)| (a.min(b), a.max(b))).collect();
            ways.sort_unstable();
            ways.dedup();
            let is_tree = has_way_back && ways.len() + 1 == vertices as usize;
            let tree = Tree::of(&links, nodes);
            assert_eq!(tree.is_some(), is_tree, "{pairs:?}");
            let Some(tree) = tree else { continue };
            let shortest = Shortest::new(&links, nodes).unwrap();
            assert_eq!(tree.diameter(), shortest.diameter());
            assert_eq!(tree.follow_links(), shortest.follow_links());
            for (at, to) in (0..vertices).flat_map(|at| (0..nodes).map(move |to| (at, to))) {
                if at == to {
                    continue;
                }
                assert_eq!(tree.modulus(&links, at, to), shortest.modulus(&links, at, to));
                for from in 0..nodes {
                    let next = |routes: &dyn Routes| routes.next(&links, at, from, to);
                    assert_eq!(next(&tree), next(&shortest), "{pairs:?} {at} {from} {to}");
                }
            }
        }
    }
}
