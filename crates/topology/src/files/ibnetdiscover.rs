//! What `ibnetdiscover` prints: adapters and switches of an InfiniBand network, and the links between
//! their ports.
//!
//! Adapters of one node, by the first word of their names, are one node. A link has the data rate of its
//! width and speed, and goes both ways; both ends may list it. Adapters in switches that aggregate (SHARP)
//! are left out.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Beginning, MAX_NODES, Source, shown, without_effect, wrong};
use crate::error::SpecError;
use crate::graph_file::Listing;
use crate::text::lines;
use crate::{Capacity, Machine};

/// Gbit/s of data of one lane.
const SPEEDS: [(&str, f64); 9] = [
    ("SDR", 2.0),
    ("DDR", 4.0),
    ("QDR", 8.0),
    ("FDR10", 10.0),
    ("FDR", 14.0625 * 64.0 / 66.0),
    ("EDR", 25.0),
    ("HDR", 50.0),
    ("NDR", 100.0),
    ("XDR", 200.0),
];

/// The classes of links to nodes, and between switches.
const CLASSES: [&str; 2] = ["node", "inter-switch"];

/// Part of the name of an adapter within a switch.
const AGGREGATION: &str = "Aggregation Node";

pub(super) fn knows(begins: &Beginning<'_>) -> bool {
    const KEYS: [&str; 3] = ["vendid=", "switchguid=", "caguid="];
    begins.lines.iter().any(|line| KEYS.iter().any(|key| line.starts_with(key)))
}

/// Adapters, switches and routers by their identifiers, which begin with H, S and R.
#[derive(Default)]
struct Network<'a> {
    /// By identifier, a place in `names`.
    numbers: HashMap<&'a str, usize>,
    /// Nodes by name, places in `names`.
    nodes: HashMap<&'a str, usize>,
    names: Vec<Name<'a>>,
}

struct Name<'a> {
    name: &'a str,
    is_switch: bool,
    left_out: bool,
}

impl<'a> Network<'a> {
    /// The number of what has an identifier and a name, which is empty where it is not said.
    fn number(&mut self, id: &'a str, name: &'a str) -> usize {
        let known = self.numbers.get(id).copied();
        let is_switch = !id.starts_with('H');
        // An adapter without a name of its own has that of its model.
        let node =
            name.split_whitespace().next().filter(|_| !name.contains("Mellanox")).unwrap_or(id);
        let number = known.or_else(|| self.nodes.get(node).copied().filter(|_| !is_switch));
        let number = number.unwrap_or_else(|| {
            let name = if is_switch && !name.is_empty() { name } else { node };
            self.names.push(Name { name, is_switch, left_out: false });
            self.names.len() - 1
        });
        if !is_switch {
            self.nodes.entry(node).or_insert(number);
        }
        self.numbers.insert(id, number);
        let of = &mut self.names[number];
        of.left_out |= name.contains(AGGREGATION);
        if is_switch && of.name == id && !name.is_empty() {
            of.name = name;
        }
        number
    }
}

pub(super) fn read(file: &Source<'_>) -> Result<Machine, SpecError> {
    let text = file.text;
    let (mut network, mut links) = (Network::default(), Vec::new());
    let (mut seen, mut ignored) = (HashSet::new(), BTreeSet::new());
    // The identifier of what has the ports that follow.
    let mut open = None;
    for (line, at) in lines(text).filter(|(line, _)| !line.starts_with('#')) {
        let refuse = |message: String| wrong(at, line, message);
        let (said, comment) = line.split_once('#').unwrap_or((line, ""));
        if let Some(rest) = said.strip_prefix('[') {
            let row =
                || format!("`{}` is not a port such as [1] \"S-..\"[2] # .. 4xHDR", shown(line));
            let (Some(from), Some((port, rest))) = (open, rest.split_once(']')) else {
                return Err(refuse(format!("{}, below a Switch or a Ca", row())));
            };
            let mut parts = rest.split('"');
            let (Some(to), Some(rest)) = (parts.nth(1), parts.next()) else {
                return Err(refuse(row()));
            };
            let other = rest.split_once(']').and_then(|(other, _)| other.strip_prefix('['));
            let other = other.ok_or_else(|| refuse(row()))?;
            let rate = comment.split_whitespace().last().unwrap_or_default();
            let bandwidth = rate_of(rate).map_err(refuse)?;
            // Below an adapter the name of the switch is said after its own.
            let name = comment.split('"').nth(1).unwrap_or_default();
            let to_number = network.number(to, name);
            let from_number: usize = network.number(from, "");
            let ends = [(from, port), (to, other)];
            let ends = if ends[0] <= ends[1] { ends } else { [ends[1], ends[0]] };
            if from_number == to_number {
                return Err(refuse("a link from a node to itself".to_owned()));
            }
            if seen.insert(ends) {
                links.push((from_number, to_number, bandwidth, at));
            }
            continue;
        }
        let mut words = said.split_whitespace();
        match words.next().unwrap_or_default() {
            "Switch" | "Ca" | "Rt" => {
                let id = said.split('"').nth(1).filter(|id| id.contains('-'));
                let id =
                    id.ok_or_else(|| refuse("no identifier such as \"S-0002c9\"".to_owned()))?;
                if network.names.len() == MAX_NODES {
                    return Err(refuse(format!("more than {MAX_NODES} adapters and switches")));
                }
                network.number(id, comment.split('"').nth(1).unwrap_or_default());
                open = Some(id);
            }
            word if word.contains('=') => {
                open = None;
                ignored.extend(word.split('=').next());
            }
            word => return Err(refuse(format!("`{}` is not Switch, Ca or Rt", shown(word)))),
        }
    }
    Ok(without_effect(graph(file, &network, links)?, ignored, "adapters and switches"))
}

/// The machine of all nodes and switches that links join.
fn graph(
    file: &Source<'_>,
    network: &Network<'_>,
    links: Vec<(usize, usize, f64, usize)>,
) -> Result<Machine, SpecError> {
    let names = &network.names;
    let is_used = |number: usize| !names[number].left_out;
    let mut linked = vec![false; names.len()];
    for (from, to, ..) in links.iter().filter(|(from, to, ..)| is_used(*from) && is_used(*to)) {
        (linked[*from], linked[*to]) = (true, true);
    }
    let (mut listing, mut places) = (Listing::new(true).with_classes(CLASSES), Vec::new());
    for (Name { name, is_switch, .. }, linked) in names.iter().zip(&linked) {
        places.push(linked.then(|| listing.vertex((*name).to_owned(), *is_switch, 0..0)));
    }
    for (from, to, bandwidth, at) in links {
        let (Some(one), Some(other)) = (places[from], places[to]) else { continue };
        let class = CLASSES[usize::from(names[from].is_switch && names[to].is_switch)];
        let values = (Capacity::BytesPerSecond(bandwidth), None);
        listing.add([one, other], class, values, 1, Some(at))?;
    }
    let mut machine = listing.machine(file.name, file.text)?;
    let left_out = names.iter().filter(|of| of.left_out).count();
    let alone = linked.iter().filter(|linked| !**linked).count() - left_out;
    for (count, what) in [(left_out, AGGREGATION), (alone, "adapters or switches without links")] {
        if count > 0 {
            machine.assume(&format!("left out: {what} ({count})"));
        }
    }
    Ok(machine)
}

/// Bytes a second of a rate such as `4xHDR`.
fn rate_of(rate: &str) -> Result<f64, String> {
    let known = || {
        let speeds = SPEEDS.map(|(name, _)| name).join(", ");
        format!("`{}` is not a rate such as 4xHDR; speeds are {speeds}", shown(rate))
    };
    let (width, speed) = rate.split_once('x').ok_or_else(known)?;
    let width: u32 = width.parse().map_err(|_| known())?;
    let (_, lane) = SPEEDS.iter().find(|(name, _)| *name == speed).ok_or_else(known)?;
    match width {
        1 | 2 | 4 | 8 | 12 => Ok(f64::from(width) * lane * 1e9 / 8.0),
        _ => Err(known()),
    }
}
