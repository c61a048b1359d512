//! Failed nodes and links of a lattice, and the nodes they cut off.

use crate::graph::Links;
use crate::{MixedRadix, Rank, TopologyError};

/// The most nodes and links that an error names.
const NAMED: usize = 8;

/// A failed node or link of a lattice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// An absent node.
    Absent {
        /// Its number on the grid.
        node: u32,
    },
    /// A link that is broken in both directions.
    Broken {
        /// The node at its lower end.
        node: u32,
        /// The dimension that it runs along.
        dimension: u32,
    },
}

impl Fault {
    /// The broken link that leaves `node`, named by its lower end.
    pub(super) fn link(radix: &MixedRadix, node: u32, outgoing: usize) -> Self {
        let node =
            if outgoing % 2 == 0 { node } else { radix.shifted(Rank(node), outgoing / 2, -1).0 };
        Self::Broken { node, dimension: (outgoing / 2) as u32 }
    }

    /// The fault that `text` names on a grid: a node by its coordinates, such as `0,1`, or a link
    /// by the node it leaves, its direction and its dimension, such as `0,1+1`.
    ///
    /// # Errors
    /// A message that says what is wrong.
    pub(crate) fn parse(text: &str, radix: &MixedRadix, wrap: &[bool]) -> Result<Self, String> {
        let at = text.find(['+', '-']).unwrap_or(text.len());
        let (place, link) = text.split_at(at);
        let refuse = || {
            let (what, example) = (if link.is_empty() { "node" } else { "link" }, example(radix));
            let short: String = text.chars().take(40).collect();
            format!(
                "`{short}` is not a {what}: a node is named as `{example}`, a link as `{example}+0`"
            )
        };
        let number = |text: &str| -> Option<u32> {
            text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let coordinates: Option<Vec<u32>> = place.split(',').map(number).collect();
        let coordinates =
            coordinates.filter(|c| c.len() == radix.dimensions()).ok_or_else(refuse)?;
        for (u, (&coordinate, &side)) in coordinates.iter().zip(radix.sides()).enumerate() {
            if coordinate >= side {
                return Err(format!(
                    "`{text}`: coordinate {coordinate} along dimension {u}: the side has length {side}"
                ));
            }
        }
        let node = radix.rank(&coordinates).0;
        if link.is_empty() {
            return Ok(Self::Absent { node });
        }
        let dimension = number(&link[1..]).ok_or_else(refuse)? as usize;
        if dimension >= radix.dimensions() {
            let last = radix.dimensions() - 1;
            return Err(format!("`{text}`: dimension {dimension}: the last dimension is {last}"));
        }
        let outgoing = 2 * dimension + usize::from(link.starts_with('-'));
        match beyond(radix, wrap, node, outgoing) {
            Some(_) => Ok(Self::link(radix, node, outgoing)),
            None => Err(format!("`{text}`: no link leaves that node in this direction")),
        }
    }

    /// The name that [`parse`](Self::parse) reads.
    pub(super) fn named(self, radix: &MixedRadix) -> String {
        let place = |node: u32| {
            let coordinates = radix.coordinates(Rank(node));
            coordinates.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        };
        match self {
            Self::Absent { node } => place(node),
            Self::Broken { node, dimension } => format!("{}+{dimension}", place(node)),
        }
    }
}

fn example(radix: &MixedRadix) -> String {
    vec!["0"; radix.dimensions()].join(",")
}

/// The node that a link of the grid leads to.
pub(super) fn beyond(radix: &MixedRadix, wrap: &[bool], node: u32, outgoing: usize) -> Option<u32> {
    let (u, direction) = (outgoing / 2, if outgoing % 2 == 0 { 1 } else { -1 });
    let to = i64::from(radix.coordinate(Rank(node), u)) + direction;
    if !wrap[u] && !(0..i64::from(radix.sides()[u])).contains(&to) {
        return None;
    }
    Some(radix.shifted(Rank(node), u, direction).0).filter(|&to| to != node)
}

/// Checks that every rank has a route to every other.
pub(super) fn check_connected(
    radix: &MixedRadix,
    wrap: &[bool],
    nodes: &[u32],
    links: &Links,
) -> Result<(), TopologyError> {
    let parts = parts(links);
    let count = parts.iter().max().map_or(0, |last| last + 1);
    if count < 2 {
        return Ok(());
    }
    let mut sizes = vec![0u32; count];
    for &part in &parts {
        sizes[part] += 1;
    }
    let small = (0..count).min_by_key(|&part| sizes[part]).expect("there are parts");
    let inside: Vec<u32> = nodes
        .iter()
        .zip(&parts)
        .filter(|(_, part)| **part == small)
        .map(|(&node, _)| node)
        .collect();
    let (mut broken, mut absent) = (Vec::new(), Vec::new());
    for &node in &inside {
        for outgoing in 0..2 * radix.dimensions() {
            let Some(to) = beyond(radix, wrap, node, outgoing) else { continue };
            if inside.binary_search(&to).is_ok() {
                continue;
            }
            if nodes.binary_search(&to).is_ok() {
                broken.push(Fault::link(radix, node, outgoing));
            } else {
                absent.push(Fault::Absent { node: to });
            }
        }
    }
    let list = |mut faults: Vec<Fault>| {
        faults.sort_unstable();
        faults.dedup();
        let more = faults.len().saturating_sub(NAMED);
        let named: Vec<_> = faults.iter().take(NAMED).map(|fault| fault.named(radix)).collect();
        named.join(" ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
    };
    let mut cut = Vec::new();
    for (what, faults) in [("failed", broken), ("missing", absent)] {
        if !faults.is_empty() {
            cut.push(format!("{what} between them: {}", list(faults)));
        }
    }
    let part = match inside.len() {
        1 => "node ".to_owned(),
        more => format!("{more} nodes "),
    } + &list(inside.iter().map(|&node| Fault::Absent { node }).collect());
    let others = nodes.len() as u32 - sizes[small];
    Err(TopologyError::Cut { part, others, cut: cut.join("; ") })
}

/// The connected component of each node, numbered from 0.
fn parts(links: &Links) -> Vec<usize> {
    let mut parts = vec![usize::MAX; links.vertices() as usize];
    let mut count = 0;
    for first in 0..parts.len() {
        if parts[first] != usize::MAX {
            continue;
        }
        parts[first] = count;
        let mut open = vec![first];
        while let Some(at) = open.pop() {
            for &to in links.ends(links.leaving(at as u32)) {
                if std::mem::replace(&mut parts[to as usize], count) == usize::MAX {
                    open.push(to as usize);
                }
            }
        }
        count += 1;
    }
    parts
}
