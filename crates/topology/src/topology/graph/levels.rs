//! The levels of a tree whose nodes are numbered leaf by leaf.

use super::Graph;
use crate::LinkId;

/// The vertices of a tree at one distance from its nodes. Equally many nodes, with consecutive numbers, are
/// behind each; the links above them are of one kind upwards, and of one kind downwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    /// The vertices.
    pub vertices: u32,
    /// The links from the first vertex up, and down to it.
    pub links: [LinkId; 2],
}

impl Graph {
    /// The levels of a tree, from the nodes to the vertices below the root, if they are those of equivalent
    /// vertices numbered one after the other.
    ///
    /// Computed once, on first use.
    #[must_use]
    pub fn levels(&self) -> Option<&[Level]> {
        self.levels.get_or_init(|| self.find_levels()).as_deref()
    }

    fn find_levels(&self) -> Option<Vec<Level>> {
        if self.lattice.is_some() || self.links.count() != 2 * (self.vertices() as usize - 1) {
            return None;
        }
        let (mut levels, mut found) = (Vec::new(), vec![false; self.vertices() as usize]);
        // By vertex, the last parent that was seen with a link down to it, and this link.
        let mut below = vec![None; self.vertices() as usize];
        let mut is_parent = found.clone();
        let mut vertices: Vec<u32> = (0..self.nodes).collect();
        while vertices.len() > 1 {
            vertices.iter().for_each(|&vertex| found[vertex as usize] = true);
            let (mut parents, mut sizes, mut first) = (Vec::new(), Vec::new(), None);
            for &vertex in &vertices {
                let up = self.leaving(vertex).filter(|&(_, end)| !found[end as usize]);
                let (up, parent) = only(up)?;
                if parents.last() != Some(&parent) {
                    // The vertices behind it have consecutive numbers.
                    if std::mem::replace(&mut is_parent[parent as usize], true) {
                        return None;
                    }
                    for (link, end) in self.leaving(parent).filter(|&(_, end)| found[end as usize])
                    {
                        below[end as usize] = Some((parent, link));
                    }
                    parents.push(parent);
                    sizes.push(0u32);
                }
                *sizes.last_mut()? += 1;
                let (_, down) = below[vertex as usize].filter(|&(from, _)| from == parent)?;
                let kinds =
                    |links: [LinkId; 2]| links.map(|link| self.links.kind_number(link.0 as usize));
                let links = [up, down];
                if kinds(*first.get_or_insert(links)) != kinds(links) {
                    return None;
                }
            }
            levels.push(Level { vertices: vertices.len() as u32, links: first? });
            if sizes.iter().any(|size| *size != sizes[0]) {
                return None;
            }
            vertices = parents;
        }
        let all: u32 = levels.iter().map(|level| level.vertices).sum();
        (all + 1 == self.vertices()).then_some(levels)
    }
}

fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let one = all.next()?;
    all.next().is_none().then_some(one)
}
