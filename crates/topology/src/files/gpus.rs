//! The GPUs of a node as a machine: NVLinks between them, an NVSwitch, or PCIe.

use super::{cluster, shown};
use crate::error::SpecError;
use crate::graph_file::Listing;
use crate::reading::Reading;
use crate::{Capacity, Injection, Machine, PerClass};

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
    /// What says the bandwidth.
    source: &'static str,
    has_switches: bool,
}

const ASSUMED: &str = "assumed";
pub(super) const NVLINK: Direct = Direct::nvlink(25e9, ASSUMED);
pub(super) const XGMI: Direct =
    Direct { name: "XGMI link", bandwidth: 50e9, source: ASSUMED, has_switches: false };

impl Direct {
    /// An NVLink, by its bytes a second and what says them.
    pub(super) const fn nvlink(bandwidth: f64, source: &'static str) -> Self {
        Self { name: "NVLink", bandwidth, source, has_switches: true }
    }
}

/// The most NVLinks of a GPU, and the most GPUs that are joined without a switch where all are equal.
const MOST_NVLINKS: u32 = 18;
const MOST_DIRECT: usize = 4;

/// The most GPUs of a node.
pub(super) const MOST_GPUS: usize = 256;

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
        let Direct { name: link, bandwidth: own, source, has_switches } = self.link;
        let bandwidth = reading.nvlink.unwrap_or(own);
        if let Some((from, to, _)) =
            self.pairs().find(|&(from, to, path)| self.paths[to][from] != path)
        {
            let [from, to] = [from, to].map(|gpu| &self.names[gpu]);
            let rule = "paths are the same both ways";
            return Err(format!("{from} and {to} have another path back: {rule}").into());
        }
        if !has_switches && reading.nvlink_switch.is_some() {
            return Err(format!("--nvlink-switch is of NVLinks, and the GPUs have {link}s").into());
        }
        let assume = |machine: &mut Machine, what: &str| {
            let each = format!("{} GB/s an {link}", own / 1e9);
            let source = reading.nvlink.map_or(source, |_| "given");
            let (source, each) = match source {
                "given" => ("given: --nvlink".to_owned(), String::new()),
                ASSUMED => (format!("{source}: {each}"), format!("{each} (--nvlink); ")),
                _ => (format!("{source}: {each}"), String::new()),
            };
            machine.cite("injection", source.clone());
            machine.cite("per_byte", source);
            machine.assume(&format!("{each}{what}"));
        };
        if let Some(links) = self.switched(reading.nvlink_switch)? {
            let per_byte = 1.0 / (f64::from(links) * bandwidth);
            let mut machine = cluster(name, &[self.names.len() as u32])?;
            machine.timing.per_byte = PerClass::uniform(per_byte);
            let node = self.network.map_or(0.0, |bandwidth| 1.0 / bandwidth);
            machine.timing.injection = Injection { rank: per_byte, node };
            machine.set_ports(u32::MAX);
            let links = format!("{links} NVLinks of each GPU lead to a switch that does not block");
            assume(&mut machine, &links);
            return Ok(machine);
        }
        let mut listing = Listing::new(true);
        for own in &self.names {
            listing.vertex(own.clone(), false, 0..0);
        }
        let mut has_nvlinks = false;
        for (from, to, path) in self.pairs().filter(|(from, to, _)| from < to) {
            let Path::NvLinks(count) = path else { continue };
            has_nvlinks = true;
            let values = (Capacity::BytesPerSecond(bandwidth), None);
            listing.add([from as u32, to as u32], link, values, count, None)?;
        }
        let mut parts: Vec<u32> = (0..self.names.len() as u32).collect();
        self.join(&mut parts, |path| matches!(path, Path::NvLinks(_)));
        let said = match parts.iter().all(|part| *part == 0) {
            true => format!("{link}s join GPUs directly, PCIe is not used"),
            false => {
                self.add_pcie(&mut listing)?;
                let levels = LEVELS.map(|(name, of)| format!("{name} {} GB/s", of / 1e9));
                format!("PCIe is a tree of links of {}", levels.join(", "))
            }
        };
        let mut machine = listing.machine(name, "")?;
        let ports = u32::try_from(machine.topology.most_links_out()).unwrap_or(u32::MAX);
        machine.set_ports(ports.max(1));
        let said = format!("{said}; a GPU has as many ports as links");
        if has_nvlinks {
            assume(&mut machine, &said);
        } else {
            reading.refuse_but("")?;
            machine.assume(&said);
        }
        if self.network.is_some() {
            machine.assume("network interfaces have no effect within a node");
        }
        Ok(machine)
    }

    /// All pairs of different GPUs, and the path from the first to the second.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize, Path)> {
        let paths = |(from, paths): (usize, &'_ Vec<Path>)| {
            let paths = paths.iter().enumerate().filter(move |(to, _)| *to != from);
            paths.map(move |(to, path)| (from, to, *path)).collect::<Vec<_>>()
        };
        self.paths.iter().enumerate().flat_map(paths)
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
        let mut paths = self.pairs().map(|(.., path)| path);
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

    /// Makes the parts of GPUs one that such a path joins; a part is called as its first GPU.
    fn join(&self, parts: &mut [u32], is: impl Fn(Path) -> bool) {
        for (from, to, _) in self.pairs().filter(|(.., path)| is(*path)) {
            let (one, other) = (parts[from], parts[to]);
            let (first, last) = (one.min(other), one.max(other));
            parts.iter_mut().filter(|part| **part == last).for_each(|part| *part = first);
        }
    }

    /// Adds the tree of PCIe: on each level, a switch above those parts that paths of the level join.
    fn add_pcie(&self, listing: &mut Listing) -> Result<(), String> {
        let nodes = self.names.len() as u32;
        // By GPU its part; by part, the vertex at its top.
        let mut parts: Vec<u32> = (0..nodes).collect();
        let mut tops = parts.clone();
        for (level, (class, bandwidth)) in LEVELS.into_iter().enumerate() {
            let before = parts.clone();
            self.join(&mut parts, |path| path == Path::Over(level));
            if parts == before {
                continue;
            }
            for part in (0..nodes).filter(|part| parts[*part as usize] == *part) {
                let is_below =
                    |gpu: &u32| parts[*gpu as usize] == part && before[*gpu as usize] == *gpu;
                let below: Vec<u32> = (0..nodes).filter(is_below).collect();
                if below.len() < 2 {
                    continue;
                }
                let name = format!("{class} {}", self.names[part as usize]);
                let switch = listing.vertex(name, true, 0..0);
                for top in below.into_iter().map(|old| tops[old as usize]) {
                    let slot = self.slots.get(top as usize).copied().flatten();
                    let capacity = Capacity::BytesPerSecond(slot.unwrap_or(bandwidth));
                    listing.add([top, switch], class, (capacity, None), 1, None)?;
                }
                tops[part as usize] = switch;
            }
        }
        Ok(())
    }
}
