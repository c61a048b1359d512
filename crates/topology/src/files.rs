//! Machines in files, of several kinds: a file here and a line of [`FILES`] each.

mod hosts;
mod hwloc;
mod simgrid;
mod slurm;
mod xml;

use std::sync::Arc;

use crate::spec::{SpecError, parse_file};
use crate::text::printable;
use crate::{Clusters, Machine, TopologyError};

/// A kind of file that describes a machine.
#[derive(Clone, Copy, Debug)]
pub struct MachineFile {
    /// What it is, in a line.
    pub about: &'static str,
    /// Whether a file of this text, and this first line of more than comments, is one.
    knows: fn(&str, &str) -> bool,
    /// Reads the text; the machine gets this name.
    read: fn(&str, &str) -> Result<Machine, SpecError>,
}

/// Every kind, the first that knows a file reads it.
pub const FILES: &[MachineFile] = &[
    MachineFile { about: "SimGrid platform: a torus", knows: simgrid::knows, read: simgrid::read },
    MachineFile {
        about: "hwloc XML, as lstopo writes it: cores in packages",
        knows: hwloc::knows,
        read: hwloc::read,
    },
    MachineFile {
        about: "Slurm topology.conf: nodes under leaf switches",
        knows: slurm::knows,
        read: slurm::read,
    },
    MachineFile { about: "MPI host file: ranks on hosts", knows: hosts::knows, read: hosts::read },
    MachineFile {
        about: "machine file in TOML, every value with its source",
        knows: |_, _| true,
        read: parse_file,
    },
];

/// Nodes, or hosts, of a file: more are taken for a slip.
const MAX_NODES: usize = 1 << 20;

/// Reads a machine from a text of any kind, and calls it `name`.
///
/// # Errors
/// What is wrong and which bytes of `text` it stands in.
pub fn read(name: &str, text: &str) -> Result<Machine, SpecError> {
    let lines = text.lines().map(str::trim);
    let first = lines.clone().find(|line| !line.is_empty() && !line.starts_with('#'));
    let first = first.unwrap_or_default();
    let file = FILES.iter().find(|file| (file.knows)(text, first));
    (file.expect("bug: the last kind knows every file").read)(&printable(name), text)
}

/// The cluster of these nodes, with one port and assumed timing values.
fn cluster(name: &str, sizes: &[u32]) -> Result<Machine, TopologyError> {
    let groups: Vec<_> = sizes.iter().map(|&size| (1, size)).collect();
    let machine = Machine::of(Arc::new(Clusters::new(&groups)?));
    Ok(Machine { name: name.to_owned(), ..machine })
}

/// The lines that say something, without comments, and where they stand.
fn lines(text: &str) -> impl Iterator<Item = (&str, usize)> {
    text.split_inclusive('\n')
        .scan(0, |at, line| {
            let begins = *at;
            *at += line.len();
            let said = line.split('#').next().unwrap_or_default();
            let blank = said.len() - said.trim_start().len();
            Some((said.trim(), begins + blank))
        })
        .filter(|(line, _)| !line.is_empty())
}

/// What is wrong with some words that stand at a place.
fn wrong(at: usize, words: &str, message: String) -> SpecError {
    SpecError { message, span: Some(at..at + words.len()) }
}

/// As much of a text as a message has room for.
fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(40)]
}
