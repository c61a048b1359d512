//! The levels of a tree whose nodes are numbered leaf by leaf.

use super::Graph;
use crate::LinkId;

/// The vertices of a tree at one distance from its nodes, or in a fat tree the groups of switches there with the
/// same nodes below. Equally many nodes, with consecutive numbers, are behind each; the links above them are of one
/// kind upwards, and of one kind downwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    /// The vertices, or groups.
    pub vertices: u32,
    /// The links from the first vertex up, and down to it: the first of them, and how many are parallel.
    pub links: [(LinkId, u32); 2],
    /// Which of them a message takes, upwards and downwards.
    pub takes: [Takes; 2],
}

/// The number of the link that a message takes, of c parallel ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// (source + destination) mod c.
    Sum,
    /// source mod c.
    Source,
    /// destination mod c.
    Destination,
}

impl Graph {
    /// The levels of a tree or fat tree, from the nodes to the vertices below the root, if they are those of
    /// equivalent vertices numbered one after the other.
    ///
    /// Computed once, on first use.
    #[must_use]
    pub fn levels(&self) -> Option<&[Level]> {
        let find = || self.routes.levels(&self.links).or_else(|| self.find_levels());
        self.levels.get_or_init(find).as_deref()
    }

    fn find_levels(&self) -> Option<Vec<Level>> {
        if self.lattice.is_some() || self.links.count() < 2 * (self.vertices() as usize - 1) {
            return None;
        }
        let kind = |(link, _): (LinkId, u32)| self.links.kind_number(link.0 as usize);
        // One more link between a vertex and the only other, beside those of its kind.
        let join = |known: &mut Option<(u32, (LinkId, u32))>, other: u32, link: LinkId| {
            let (end, links) = known.get_or_insert((other, (link, 0)));
            links.1 += 1;
            (*end == other && kind(*links) == kind((link, 1))).then_some(())
        };
        let (mut levels, mut found) = (Vec::new(), vec![false; self.vertices() as usize]);
        // By vertex, the parent that was seen with links down to it, and these links.
        let mut below = vec![None; self.vertices() as usize];
        let mut is_parent = found.clone();
        let mut vertices: Vec<u32> = (0..self.nodes).collect();
        while vertices.len() > 1 {
            vertices.iter().for_each(|&vertex| found[vertex as usize] = true);
            let (mut parents, mut sizes, mut first) = (Vec::new(), Vec::new(), None);
            for &vertex in &vertices {
                let mut above = None;
                for (link, end) in self.leaving(vertex).filter(|&(_, end)| !found[end as usize]) {
                    join(&mut above, end, link)?;
                }
                let (parent, up) = above?;
                if parents.last() != Some(&parent) {
                    // The vertices behind it have consecutive numbers.
                    if std::mem::replace(&mut is_parent[parent as usize], true) {
                        return None;
                    }
                    for (link, end) in self.leaving(parent).filter(|&(_, end)| found[end as usize])
                    {
                        join(&mut below[end as usize], parent, link)?;
                    }
                    parents.push(parent);
                    sizes.push(0u32);
                }
                *sizes.last_mut()? += 1;
                let (_, down) = below[vertex as usize].filter(|&(from, _)| from == parent)?;
                let are = |links: [(LinkId, u32); 2]| links.map(|links| (kind(links), links.1));
                let links = [up, down];
                if are(*first.get_or_insert(links)) != are(links) {
                    return None;
                }
            }
            let (links, takes) = (first?, [Takes::Sum; 2]);
            levels.push(Level { vertices: vertices.len() as u32, links, takes });
            if sizes.iter().any(|size| *size != sizes[0]) {
                return None;
            }
            vertices = parents;
        }
        let all: u32 = levels.iter().map(|level| level.vertices).sum();
        let links = |level: &Level| u64::from(level.vertices) * u64::from(level.parallel());
        let links: u64 = levels.iter().map(links).sum();
        let whole = all + 1 == self.vertices() && links == self.links.count() as u64;
        // Of parallel links other rules may take others.
        let known = self.routes.are_of_links() || levels.iter().all(|level| level.parallel() == 2);
        (whole && known).then_some(levels)
    }
}

impl Level {
    /// The links between a vertex and the one above it, in both directions.
    fn parallel(&self) -> u32 {
        self.links.iter().map(|(_, parallel)| parallel).sum()
    }
}
