//! The coordinates of the nodes of a graph that is a grid or a HyperX network.

use std::sync::Arc;

use crate::{Graph, Grid, MAX_DIMENSIONS, MixedRadix, Topology};

/// A topology, and by rank the node that it is.
pub(super) type Found = (Arc<dyn Topology>, Vec<u32>);

/// One dimension.
struct Side {
    /// By node, its coordinate.
    at: Vec<u32>,
    side: u32,
    form: Form,
    /// The least kind of its links, so that equal graphs have their sides in one order.
    kind: usize,
}

/// A node next to another.
pub(super) struct End {
    pub(super) node: u32,
    /// Of the links there, the least kind, and their number.
    pub(super) kind: usize,
    pub(super) links: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    Line,
    Ring,
    Full,
}

/// The grids that a graph without switches is, given the nodes next to each, ascending: its
/// rings of 4 as such, and as two sides of 2; or the HyperX network that it is. Proved: a list is not empty only
/// if its topologies have the same links.
///
/// Links are along one dimension if they are opposite in a square, or leave a node without being sides of a
/// square, as in the factors of a product of graphs (Imrich and Klavzar, Product Graphs, 2000, section 4).
pub(super) fn found(ends: &[Vec<End>]) -> Vec<Found> {
    sides(ends).map_or(Vec::new(), |sides| shown(ends, sides))
}

fn shown(ends: &[Vec<End>], mut sides: Vec<Side>) -> Vec<Found> {
    let links: usize = ends.iter().flatten().map(|end| end.links).sum();
    sides.sort_by_key(|side| (side.side, side.form, side.kind));
    let is_full = sides.iter().any(|side| side.form == Form::Full);
    let mut all = Vec::new();
    if is_full {
        let lengths: Vec<u32> = sides.iter().map(|side| side.side).collect();
        // A line of 2 and a ring of 3 are fully connected.
        if sides.iter().all(|side| side.form == Form::Full || side.side <= 3)
            && let Ok(graph) = Graph::hyperx(&lengths)
            && graph.links() == links as u64
        {
            all.extend(numbered(Arc::new(graph), &sides, ends.len()));
        }
        return all;
    }
    let joined = joined(&sides);
    for sides in [Some(&sides), joined.as_ref()].into_iter().flatten() {
        let lengths: Vec<u32> = sides.iter().map(|side| side.side).collect();
        let wrap: Vec<bool> = sides.iter().map(|side| side.form == Form::Ring).collect();
        let Ok(grid) = Grid::new(&lengths, &wrap) else { continue };
        if grid.links() == links as u64 {
            all.extend(numbered(Arc::new(grid), sides, ends.len()));
        }
    }
    all
}

/// The same with pairs of sides of 2 joined to rings of 4, if there are any.
fn joined(sides: &[Side]) -> Option<Vec<Side>> {
    let twos = sides.iter().filter(|side| (side.side, side.form) == (2, Form::Line)).count();
    let pair = |pair: &[Side]| {
        let [high, low] = pair else { return None };
        let at = high.at.iter().zip(&low.at).map(|(high, low)| 2 * high + (high ^ low)).collect();
        Some(Side { at, side: 4, form: Form::Ring, kind: high.kind })
    };
    let rest = sides[twos / 2 * 2..].iter();
    let rest = rest.map(|side| Side {
        at: side.at.clone(),
        side: side.side,
        form: side.form,
        kind: side.kind,
    });
    let mut joined: Vec<Side> = sides[..twos].chunks(2).filter_map(pair).chain(rest).collect();
    joined.sort_by_key(|side| (side.side, side.form, side.kind));
    (twos > 1).then_some(joined)
}

/// The nodes as they are numbered by their coordinates, if these are all different.
fn numbered(shown: Arc<dyn Topology>, sides: &[Side], nodes: usize) -> Option<Found> {
    let lengths: Vec<u32> = sides.iter().map(|side| side.side).collect();
    let radix = MixedRadix::new(&lengths).ok().filter(|radix| radix.ranks() as usize == nodes)?;
    let mut to_machine = vec![u32::MAX; nodes];
    for node in 0..nodes {
        let rank: u32 = (0..).zip(sides).map(|(u, side)| side.at[node] * radix.stride(u)).sum();
        to_machine[rank as usize] = node as u32;
    }
    to_machine.iter().all(|&node| node != u32::MAX).then_some((shown, to_machine))
}

/// The dimensions of a graph that may be such a network.
fn sides(ends: &[Vec<End>]) -> Option<Vec<Side>> {
    let most = ends.iter().map(Vec::len).max().filter(|&most| most > 0)?;
    // Only the ends of lines have fewer links.
    if ends.iter().any(|ends| 2 * ends.len() < most) {
        return None;
    }
    let first: Vec<usize> = ends
        .iter()
        .scan(0, |sum, ends| {
            *sum += ends.len();
            Some(*sum - ends.len())
        })
        .collect();
    let place =
        |from: u32, to: u32| ends[from as usize].binary_search_by_key(&to, |end| end.node).ok();
    let link = |from: u32, to: u32| place(from, to).map(|place| first[from as usize] + place);
    let mut along = Sets::new(first.last()? + ends.last()?.len());
    for (from, leaving) in (0..).zip(ends) {
        for (place, &End { node: a, .. }) in leaving.iter().enumerate() {
            along.join(link(from, a)?, link(a, from)?);
            for &End { node: b, .. } in &leaving[..place] {
                let [to_a, to_b] = [link(from, a)?, link(from, b)?];
                let others = ends[a as usize].iter().map(|end| end.node);
                let mut others = others.filter(|&end| end != from && link(end, b).is_some());
                match (link(a, b), others.next(), others.next()) {
                    (Some(_), ..) | (None, None, _) => along.join(to_a, to_b),
                    (None, Some(corner), None) if link(from, corner).is_none() => {
                        along.join(to_a, link(corner, b)?);
                        along.join(to_b, link(corner, a)?);
                    }
                    _ => return None,
                }
            }
        }
    }
    let classes = along.roots();
    if classes.len() > MAX_DIMENSIONS {
        return None;
    }
    classes.iter().map(|&class| side(ends, &first, &mut along, class)).collect()
}

/// One dimension, if its nodes are a line, a ring or fully connected.
fn side(ends: &[Vec<End>], first: &[usize], along: &mut Sets, class: usize) -> Option<Side> {
    let (mut same, mut steps, mut kind) = (Sets::new(ends.len()), Vec::new(), usize::MAX);
    // A ring of 2 has two links.
    let mut links = 1;
    for (from, leaving) in ends.iter().enumerate() {
        for (place, end) in leaving.iter().enumerate() {
            if along.root(first[from] + place) == class {
                steps.push((from, end.node as usize));
                kind = kind.min(end.kind);
                links = links.max(end.links);
            } else {
                same.join(from, end.node as usize);
            }
        }
    }
    let roots = same.roots();
    let side = roots.len();
    let mut number = vec![0; ends.len()];
    (0..).zip(&roots).for_each(|(coordinate, &root)| number[root] = coordinate);
    let of: Vec<usize> = (0..ends.len()).map(|node| number[same.root(node)]).collect();
    let mut next = vec![Vec::new(); side];
    for (from, to) in steps {
        let (from, to) = (of[from], of[to]);
        if !next[from].contains(&to) {
            if next[from].len() > MOST_FULL {
                return None;
            }
            next[from].push(to);
        }
    }
    let joined: usize = next.iter().map(Vec::len).sum();
    let most = next.iter().map(Vec::len).max()?;
    let form = match () {
        () if (side, links) == (2, 2) => Form::Ring,
        () if most <= 2 && joined == 2 * side => Form::Ring,
        () if most <= 2 => Form::Line,
        () if joined == side * (side - 1) => Form::Full,
        () => return None,
    };
    let mut position: Vec<u32> = (0..side as u32).collect();
    if form != Form::Full {
        let mut at = next.iter().position(|next| next.len() == 1).unwrap_or(0);
        let mut seen = vec![false; side];
        for i in 0..side as u32 {
            position[at] = i;
            seen[at] = true;
            match next[at].iter().find(|to| !seen[**to]) {
                Some(&to) => at = to,
                None if i + 1 == side as u32 => {}
                None => return None,
            }
        }
    }
    let at = of.iter().map(|&coordinate| position[coordinate]).collect();
    Some(Side { at, side: side as u32, form, kind })
}

/// The most links of a node along one dimension of a HyperX network.
const MOST_FULL: usize = 128;

/// Disjoint sets of numbers.
struct Sets(Vec<usize>);

impl Sets {
    fn new(members: usize) -> Self {
        Self((0..members).collect())
    }

    fn root(&mut self, mut of: usize) -> usize {
        while self.0[of] != of {
            self.0[of] = self.0[self.0[of]];
            of = self.0[of];
        }
        of
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.0[one.max(other)] = one.min(other);
    }

    fn roots(&mut self) -> Vec<usize> {
        (0..self.0.len()).filter(|&member| self.0[member] == member).collect()
    }
}
