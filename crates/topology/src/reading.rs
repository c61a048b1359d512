use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::Rank;
use crate::error::SpecError;
use crate::graph_file::{Attributes, NOT_JSON};
use crate::number::fraction;

/// How to read what the text of a machine leaves open. What is given for a machine that leaves it not
/// open is refused.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Reading {
    /// Names of the attributes in a graph of node-link JSON, GraphML, GML or DOT, or a list of edges.
    pub attributes: Option<Attributes>,
    /// The taper of links between switches whose bandwidth Slurm's `topology.conf` leaves open: they are
    /// not blocking unless given.
    pub taper: Option<Taper>,
    /// Bytes a second of an NVLink, or of an XGMI link, which files that list GPUs do not say; 25 and 50 GB/s
    /// unless given.
    pub nvlink: Option<f64>,
    /// Whether a switch joins the NVLinks of GPUs that all have equally many to each other: unless given,
    /// of more than four GPUs, or where direct links would be more than a GPU has.
    pub nvlink_switch: Option<bool>,
    /// Whether each core of a host of a SimGrid platform is a rank; otherwise each host is.
    pub cores: bool,
    /// The ranks that exchange, where only some do: all are in one tree, if Slurm's file has several.
    pub ranks: Option<Vec<Rank>>,
}

/// The text of a file, the name of the machine, and how to read them. Files that it names are in `folder`.
pub(crate) struct Source<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
    pub(crate) reading: &'a Reading,
}

/// What the hosts below a switch can send over what its links upwards carry: a fraction of at least 1.
///
/// Its text form is `2`, `1.5` or `3/2`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taper {
    pub(crate) over: u32,
    pub(crate) times: u32,
}

impl Taper {
    /// Links upwards carry all that hosts can send.
    pub(crate) const NONE: Self = Self { over: 1, times: 1 };
}

impl FromStr for Taper {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (over, times) = fraction(text)?;
        if times == 0 || over < times {
            return Err(format!("taper {over}/{times}: it is at least 1"));
        }
        Ok(Self { over, times })
    }
}

impl fmt::Display for Taper {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.times {
            1 => write!(out, "{}", self.over),
            times => write!(out, "{}/{times}", self.over),
        }
    }
}

impl Reading {
    /// Refuses what is given, but for one option, the only one that applies to a machine.
    pub(crate) fn refuse_but(&self, open: &str) -> Result<(), SpecError> {
        let given = [
            ("--attributes", self.attributes.is_some(), NOT_JSON),
            ("--taper", self.taper.is_some(), NOT_OPEN),
            ("--nvlink", self.nvlink.is_some() || self.nvlink_switch.is_some(), NO_NVLINKS),
            ("--cores", self.cores, NO_CORES),
        ];
        match given.iter().find(|(option, given, _)| *given && *option != open) {
            Some((.., message)) => Err((*message).into()),
            None => Ok(()),
        }
    }
}

/// Why a taper is refused.
const NOT_OPEN: &str = "--taper is of links between switches that have no LinkSpeed in Slurm's \
     topology.conf, and the machine has no such links";

/// Why what is said of NVLinks is refused.
const NO_NVLINKS: &str = "--nvlink and --nvlink-switch are of links between GPUs in the output of `nvidia-smi \
     topo -m` or `rocm-smi --showtopo` or in XML of NCCL or lstopo, and the machine has none";

/// Why ranks by cores are refused.
const NO_CORES: &str = "--cores is of hosts in a SimGrid platform, and the machine is no such file";
