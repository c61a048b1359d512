//! The GPUs of a node as a machine: NVLinks between them, an NVSwitch, or PCIe.

use super::{assuming, cluster, network, shown};
use crate::error::SpecError;
use crate::reading::Reading;
use crate::{Capacity, Injection, LinkKind, ListedGraph, Machine, PerClass};

/// Paths over PCIe and between sockets, from near to far, and the bandwidth of the links at which two such
/// paths meet. Bytes a second, assumed: PCIe 4.0 x16, less through a processor and between sockets.
pub(super) const LEVELS: [(&str, f64); 5] =
    [("PIX", 24e9), ("PXB", 24e9), ("PHB", 20e9), ("NODE", 16e9), ("SYS", 10e9)];

/// A direct link between GPUs.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Direct {
    /// What it is called, and its class.
    name: &'static str,
    /// Bytes a second, unless given.
    bandwidth: f64,
    has_switches: bool,
}

pub(super) const NVLINK: Direct = Direct { name: "NVLink", bandwidth: 25e9, has_switches: true };
pub(super) const XGMI: Direct = Direct { name: "XGMI link", bandwidth: 50e9, has_switches: false };

/// The most NVLinks of a GPU, and the most GPUs that are joined without a switch where all are equal.
const MOST_NVLINKS: u32 = 18;
const MOST_DIRECT: usize = 4;

/// The most GPUs of a node.
pub(super) const MOST_GPUS: usize = 256;

/// What is said of interfaces that are not the injection of a node.
pub(super) const NO_INTERFACES: &str = "network interfaces have no effect within a node";

/// How two GPUs are joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Path {
    /// As many NVLinks, at most 18.
    NvLinks(u32),
    /// A place in [`LEVELS`].
    Over(usize),
}

impl Path {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let level = match text {
            "PSB" => "PIX",
            "SOC" => "SYS",
            other => other,
        };
        if let Some(level) = LEVELS.iter().position(|(name, _)| *name == level) {
            return Ok(Self::Over(level));
        }
        let links = text.strip_prefix("NV").and_then(|links| links.parse().ok());
        match links.filter(|links| (1..=MOST_NVLINKS).contains(links)) {
            Some(links) => Ok(Self::NvLinks(links)),
            None => {
                let levels = LEVELS.map(|(name, _)| name).join(", ");
                let text = shown(text);
                Err(format!("`{text}` is not NV1 to NV{MOST_NVLINKS}, nor one of {levels}"))
            }
        }
    }
}

/// The GPUs of a node.
#[derive(Default)]
pub(super) struct Gpus {
    pub(super) link: Direct,
    pub(super) names: Vec<String>,
    /// By GPU, the path to each; the one to itself has no meaning.
    pub(super) paths: Vec<Vec<Path>>,
    /// By GPU, NVLinks to a switch, where these are listed.
    pub(super) to_switch: Vec<u32>,
    /// By GPU, bytes a second of its PCIe slot, where it is listed.
    pub(super) slots: Vec<Option<f64>>,
    /// Bytes a second of all network interfaces, where listed.
    pub(super) network: Option<f64>,
}

impl Gpus {
    /// The machine whose ranks are the GPUs.
    pub(super) fn machine(&self, name: &str, reading: &Reading) -> Result<Machine, SpecError> {
        let Direct { name: link, bandwidth: assumed, has_switches } = self.link;
        let is_other = |from: usize, to: usize| self.paths[from][to] != self.paths[to][from];
        let mut pairs = (0..self.names.len()).flat_map(|to| (0..to).map(move |from| (from, to)));
        if let Some((from, to)) = pairs.find(|(from, to)| is_other(*from, *to)) {
            let [from, to] = [from, to].map(|gpu| &self.names[gpu]);
            let rule = "paths are the same both ways";
            return Err(format!("{from} and {to} have another path back: {rule}").into());
        }
        let bandwidth = reading.nvlink.unwrap_or(assumed);
        if !has_switches && reading.nvlink_switch.is_some() {
            return Err(format!("--nvlink-switch is of NVLinks, and the GPUs have {link}s").into());
        }
        let assume = |mut machine: Machine, what: &str| {
            let each = format!("{} GB/s an {link}", assumed / 1e9);
            let (source, each) = match reading.nvlink {
                Some(_) => ("given: --nvlink".to_owned(), String::new()),
                None => (format!("assumed: {each}"), format!("{each} (--nvlink); ")),
            };
            let sources = ["per_byte", "injection"].map(|key| (key.to_owned(), source.clone()));
            machine.sources.extend(sources);
            assuming(machine, &format!("{each}{what}"))
        };
        if let Some(links) = self.switched(reading.nvlink_switch)? {
            let per_byte = 1.0 / (f64::from(links) * bandwidth);
            let mut machine = cluster(name, &[self.names.len() as u32])?;
            machine.timing.per_byte = PerClass::uniform(per_byte);
            let node = self.network.map_or(0.0, |bandwidth| 1.0 / bandwidth);
            machine.timing.injection = Injection { rank: per_byte, node };
            machine.set_ports(u32::MAX);
            let links = format!("{links} NVLinks of each GPU lead to a switch that does not block");
            return Ok(assume(machine, &links));
        }
        let mut links = Vec::new();
        for (from, paths) in self.paths.iter().enumerate() {
            for (to, path) in paths.iter().enumerate().filter(|(to, _)| *to != from) {
                if let Path::NvLinks(count) = *path {
                    let capacity = Capacity::BytesPerSecond(bandwidth);
                    let kind = LinkKind { capacity, ..LinkKind::of_class(0) };
                    links.extend((0..count).map(|_| (from as u32, to as u32, kind)));
                }
            }
        }
        let mut listed = ListedGraph {
            nodes: self.names.len() as u32,
            names: self.names.clone(),
            classes: vec![link.to_owned()],
            links,
            ..ListedGraph::default()
        };
        let said = match self.joined(&listed) {
            true => format!("{link}s join GPUs directly, PCIe is not used"),
            false => {
                self.add_pcie(&mut listed);
                let levels = LEVELS.map(|(name, of)| format!("{name} {} GB/s", of / 1e9));
                format!("PCIe is a tree of links of {}", levels.join(", "))
            }
        };
        let has_nvlinks = !listed.links.is_empty() && listed.classes[0] == link;
        if !has_nvlinks {
            reading.refuse_but("")?;
        }
        let mut machine = network(name, listed)?;
        machine
            .set_ports(u32::try_from(machine.topology.most_links_out()).unwrap_or(u32::MAX).max(1));
        let said = format!("{said}; a GPU has as many ports as links");
        Ok(if has_nvlinks { assume(machine, &said) } else { assuming(machine, &said) })
    }

    /// The NVLinks of each GPU to a switch, if all lead to one, as is said or most likely.
    fn switched(&self, said: Option<bool>) -> Result<Option<u32>, String> {
        let count = self.names.len();
        if let Some(&links) = self.to_switch.iter().find(|links| **links > 0) {
            if said == Some(false) {
                return Err("--nvlink-switch no: the file lists NVLinks to a switch".to_owned());
            }
            return match self.to_switch.iter().position(|own| *own != links) {
                None => Ok(Some(links)),
                Some(other) => Err(format!(
                    "{} has {} NVLinks to switches, and others {links}: all GPUs have equally many",
                    self.names[other], self.to_switch[other]
                )),
            };
        }
        let mut paths = (0..count).flat_map(|from| {
            (0..count).filter(move |to| *to != from).map(move |to| self.paths[from][to])
        });
        let first = match paths.next() {
            Some(Path::NvLinks(links)) if paths.all(|path| path == Path::NvLinks(links)) => links,
            _ if said == Some(true) => {
                let rule = "all pairs of GPUs have equally many NVLinks to a switch";
                return Err(format!("--nvlink-switch yes: {rule}, and these have not"));
            }
            _ => return Ok(None),
        };
        let too_many = first * (count as u32 - 1) > MOST_NVLINKS;
        let likely = self.link.has_switches && (count > MOST_DIRECT || too_many);
        Ok(said.unwrap_or(likely).then_some(first))
    }

    /// Whether the links listed so far join all GPUs.
    fn joined(&self, listed: &ListedGraph) -> bool {
        let mut parts: Vec<u32> = (0..listed.nodes).collect();
        for &(from, to, _) in &listed.links {
            merge(&mut parts, from, to);
        }
        parts.iter().all(|part| *part == parts[0])
    }

    /// Adds the tree of PCIe: on each level, a switch above those parts that paths of the level join.
    fn add_pcie(&self, listed: &mut ListedGraph) {
        let nodes = listed.nodes;
        let mut parts: Vec<u32> = (0..nodes).collect();
        // By part, the vertex at its top.
        let mut tops: Vec<u32> = (0..nodes).collect();
        if listed.links.is_empty() {
            listed.classes.clear();
        }
        for (level, (class, bandwidth)) in LEVELS.iter().enumerate() {
            let before = parts.clone();
            for (from, paths) in self.paths.iter().enumerate() {
                for (to, _) in paths
                    .iter()
                    .enumerate()
                    .filter(|(to, path)| *to != from && **path == Path::Over(level))
                {
                    merge(&mut parts, from as u32, to as u32);
                }
            }
            if parts == before {
                continue;
            }
            let class = {
                listed.classes.push((*class).to_owned());
                listed.classes.len() as u32 - 1
            };
            for part in (0..nodes).filter(|part| parts[*part as usize] == *part) {
                let of_part =
                    |gpu: &u32| parts[*gpu as usize] == part && before[*gpu as usize] == *gpu;
                let below: Vec<u32> = (0..nodes).filter(of_part).collect();
                if below.len() < 2 {
                    continue;
                }
                let switch = nodes + listed.switches;
                listed.switches += 1;
                listed.names.push(format!(
                    "{} {}",
                    listed.classes[class as usize], self.names[part as usize]
                ));
                for old in below {
                    let top = tops[old as usize];
                    let slot = self.slots.get(top as usize).copied().flatten();
                    let capacity = Capacity::BytesPerSecond(slot.unwrap_or(*bandwidth));
                    let kind = LinkKind { capacity, ..LinkKind::of_class(class) };
                    listed.links.extend([(top, switch, kind), (switch, top, kind)]);
                }
                tops[part as usize] = switch;
            }
        }
    }
}

/// Makes the parts of two GPUs one, which is called as its first GPU.
fn merge(parts: &mut [u32], one: u32, other: u32) {
    let (one, other) = (parts[one as usize], parts[other as usize]);
    if one != other {
        let (first, last) = (one.min(other), one.max(other));
        parts.iter_mut().filter(|part| **part == last).for_each(|part| *part = first);
    }
}
