//! Failed nodes and links of a lattice, and the nodes they cut off.

use crate::topology::graph::Links;
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

/// What has failed, by the name that users give it: a node, a link, or several links with a word of
/// their own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    kind: Kind,
    name: String,
    /// Ascending.
    faults: Vec<Fault>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Node,
    Link,
    /// All links of one ring of one dimension.
    Line,
    /// The links between cubes of 4x4x4 at one position of one face.
    OpticalSwitch,
}

/// The failures of several links, each with the word before its colon.
const WORDS: [(&str, Kind); 2] = [("line", Kind::Line), ("optical-switch", Kind::OpticalSwitch)];

/// The side of the cubes that optical switches join.
const CUBE: u32 = 4;

impl Fault {
    /// The broken link that leaves `node`, named by its lower end.
    pub(super) fn link(radix: &MixedRadix, node: u32, outgoing: usize) -> Self {
        let node =
            if outgoing % 2 == 0 { node } else { radix.shifted(Rank(node), outgoing / 2, -1).0 };
        Self::Broken { node, dimension: (outgoing / 2) as u32 }
    }

    pub(super) fn named(self, radix: &MixedRadix) -> String {
        match self {
            Self::Absent { node } => place(radix, node),
            Self::Broken { node, dimension } => format!("{}+{dimension}", place(radix, node)),
        }
    }
}

impl Failure {
    /// The failure that `text` names on a grid: a node by its coordinates, such as `0,1`; a link by the
    /// node it leaves, its direction and its dimension, such as `0,1+1`; a line by a node on it and its
    /// dimension, `line:0,1+1`; an optical switch by its position on a face and its dimension,
    /// `optical-switch:0,1,2+0`.
    ///
    /// # Errors
    /// A message that says what is wrong.
    pub(crate) fn parse(text: &str, radix: &MixedRadix, wrap: &[bool]) -> Result<Self, String> {
        let short: String = text.chars().take(40).collect();
        let example = vec!["0"; radix.dimensions()].join(",");
        let (word, rest) =
            text.split_once(':').map_or((None, text), |(word, rest)| (Some(word), rest));
        let several = word.map(|word| {
            let known = WORDS.iter().find(|(known, _)| *known == word);
            known.copied().ok_or_else(|| {
                let words = WORDS.map(|(word, _)| format!("`{word}:{example}+0`")).join(" or ");
                format!("`{short}` is not a failure: several links fail together as {words}")
            })
        });
        let several = several.transpose()?;
        let at = rest.find(['+', '-']).unwrap_or(rest.len());
        let (place, link) = rest.split_at(at);
        let refuse = || match several {
            Some((word, kind)) => {
                format!("`{short}` is not {}: it is named as `{word}:{example}+0`", kind.word())
            }
            None => {
                let what = if link.is_empty() { "node" } else { "link" };
                format!(
                    "`{short}` is not a {what}: a node is named as `{example}`, a link as `{example}+0`"
                )
            }
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
            return match several {
                Some(_) => Err(refuse()),
                None => Ok(Self::one(Fault::Absent { node }, radix)),
            };
        }
        let dimension = number(&link[1..]).ok_or_else(refuse)? as usize;
        if dimension >= radix.dimensions() {
            let last = radix.dimensions() - 1;
            return Err(format!("`{text}`: dimension {dimension}: the last dimension is {last}"));
        }
        let Some((_, kind)) = several else {
            let outgoing = 2 * dimension + usize::from(link.starts_with('-'));
            return match beyond(radix, wrap, node, outgoing) {
                Some(_) => Ok(Self::one(Fault::link(radix, node, outgoing), radix)),
                None => Err(format!("`{text}`: no link leaves that node in this direction")),
            };
        };
        if link.starts_with('-') {
            return Err(refuse());
        }
        if kind == Kind::OpticalSwitch && !has_cubes(radix) {
            return Err(format!(
                "`{text}`: optical switches join cubes of 4x4x4: three sides must be multiples of {CUBE}"
            ));
        }
        let failure = Self::several(kind, node, dimension, radix, wrap);
        match failure.faults.is_empty() {
            true => Err(format!("`{text}`: {} without a link", kind.word())),
            false => Ok(failure),
        }
    }

    fn one(fault: Fault, radix: &MixedRadix) -> Self {
        let kind = match fault {
            Fault::Absent { .. } => Kind::Node,
            Fault::Broken { .. } => Kind::Link,
        };
        Self { kind, name: fault.named(radix), faults: vec![fault] }
    }

    /// The line, or the optical switch, of a dimension at a node.
    fn several(kind: Kind, node: u32, u: usize, radix: &MixedRadix, wrap: &[bool]) -> Self {
        let mut first = radix.coordinates(Rank(node));
        let mut lower_ends = Vec::new();
        if kind == Kind::OpticalSwitch {
            first.iter_mut().for_each(|coordinate| *coordinate %= CUBE);
            first[u] = 0;
            let joins = |place: u32| {
                radix
                    .coordinates(Rank(place))
                    .iter()
                    .zip(&first)
                    .enumerate()
                    .all(|(v, (at, first))| at % CUBE == if v == u { CUBE - 1 } else { *first })
            };
            lower_ends.extend((0..radix.ranks()).filter(|&place| joins(place)));
            lower_ends.retain(|&place| beyond(radix, wrap, place, 2 * u).is_some());
        } else {
            first[u] = if wrap[u] { first[u] } else { 0 };
            let start = radix.rank(&first).0;
            let mut at = start;
            while let Some(to) = beyond(radix, wrap, at, 2 * u) {
                lower_ends.push(at);
                at = to;
                if at == start {
                    break;
                }
            }
            lower_ends.sort_unstable();
            first = radix.coordinates(Rank(*lower_ends.first().unwrap_or(&start)));
        }
        let (word, _) =
            WORDS.iter().find(|(_, of)| *of == kind).expect("bug: a kind without a word");
        let name = format!("{word}:{}+{u}", place(radix, radix.rank(&first).0));
        let dimension = u as u32;
        let faults = lower_ends.into_iter().map(|node| Fault::Broken { node, dimension });
        Self { kind, name, faults: faults.collect() }
    }

    /// All that has failed, in the fewest words: a line or an optical switch where all of its links have
    /// failed, if it has two or more. The faults must ascend.
    pub(super) fn all(faults: &[Fault], radix: &MixedRadix, wrap: &[bool]) -> Vec<Self> {
        let mut several: Vec<Self> = Vec::new();
        let within = |failures: &[Self], fault: &Fault| {
            failures.iter().any(|failure| failure.faults.binary_search(fault).is_ok())
        };
        for kind in [Kind::Line, Kind::OpticalSwitch] {
            if kind == Kind::OpticalSwitch && !has_cubes(radix) {
                continue;
            }
            for fault in faults {
                let Fault::Broken { node, dimension } = *fault else { continue };
                let joins = radix.coordinate(Rank(node), dimension as usize) % CUBE == CUBE - 1;
                // The links of an optical switch that are not those of lines.
                if within(&several, fault) || kind == Kind::OpticalSwitch && !joins {
                    continue;
                }
                let whole = Self::several(kind, node, dimension as usize, radix, wrap);
                let failed = |fault: &Fault| faults.binary_search(fault).is_ok();
                if whole.faults.len() > 1 && whole.faults.iter().all(failed) {
                    several.push(whole);
                }
            }
        }
        let single = faults.iter().filter(|fault| !within(&several, fault));
        let single: Vec<_> = single.map(|&fault| Self::one(fault, radix)).collect();
        single.into_iter().chain(several).collect()
    }

    /// The name that a machine file and a short form use.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The word for it: `a node`, `a link`, `a line` or `an optical switch`.
    pub(crate) fn word(&self) -> &'static str {
        self.kind.word()
    }

    /// Its node or its links, ascending.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Whether it is a node.
    #[must_use]
    pub fn is_node(&self) -> bool {
        self.kind == Kind::Node
    }

    /// Whether all that fails here fails in `other`.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        self.faults.iter().all(|fault| other.faults.binary_search(fault).is_ok())
    }
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Node => "a node",
            Self::Link => "a link",
            Self::Line => "a line",
            Self::OpticalSwitch => "an optical switch",
        }
    }
}

/// Whether optical switches may join cubes of a grid.
fn has_cubes(radix: &MixedRadix) -> bool {
    radix.dimensions() == 3 && radix.sides().iter().all(|side| side % CUBE == 0)
}

/// The coordinates of a node, such as `0,1`.
fn place(radix: &MixedRadix, node: u32) -> String {
    let coordinates = radix.coordinates(Rank(node));
    coordinates.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
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
    (nodes, links): (&[u32], &Links),
    failures: &[Failure],
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
    let list = |names: Vec<String>| {
        let more = names.len().saturating_sub(NAMED);
        let named = names[..names.len() - more].join(" ");
        named + &if more > 0 { format!(" and {more} more") } else { String::new() }
    };
    let between = |mut faults: Vec<Fault>| {
        faults.sort_unstable();
        let mut names: Vec<String> = Vec::new();
        for fault in faults {
            let failure = failures.iter().find(|failure| failure.faults.contains(&fault));
            let name = failure.map_or_else(|| fault.named(radix), |failure| failure.name.clone());
            if !names.contains(&name) {
                names.push(name);
            }
        }
        list(names)
    };
    let mut cut = Vec::new();
    for (what, faults) in [("failed", broken), ("missing", absent)] {
        if !faults.is_empty() {
            cut.push(format!("{what} between them: {}", between(faults)));
        }
    }
    let part = match inside.len() {
        1 => "node ".to_owned(),
        more => format!("{more} nodes "),
    } + &list(inside.iter().map(|&node| place(radix, node)).collect());
    let others = nodes.len() as u32 - sizes[small];
    let cut = cut.join("; ");
    Err(format!("not connected: {part} cannot reach the other {others} nodes; {cut}").into())
}

/// The connected component of each node, numbered from 0.
fn parts(links: &Links) -> Vec<usize> {
    let mut parts = vec![usize::MAX; links.vertices() as usize];
    let mut count = 0;
    for first in 0..parts.len() {
        if parts[first] != usize::MAX {
            continue;
        }
        for (part, hops) in parts.iter_mut().zip(links.hops_from(first as u32)) {
            if hops != u32::MAX {
                *part = count;
            }
        }
        count += 1;
    }
    parts
}
