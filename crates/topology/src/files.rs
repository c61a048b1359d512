//! Machine files of several kinds. Each kind is a module here and a line of `FILES`.

mod hostlist;
mod hosts;
mod hwloc;
mod simgrid;
mod slurm;
mod xml;

use std::path::Path;
use std::sync::Arc;

use crate::error::SpecError;
use crate::machine_file::parse_file_in;
use crate::reading::Reading;
use crate::text::printable;
use crate::{Clusters, Machine, TopologyError};

pub use crate::regular::{create, open, text_of};

/// A kind of file that describes a machine.
struct MachineFile {
    /// Whether a file with this text, and this first line that is not a comment, is of this kind.
    knows: fn(&str, &str) -> bool,
    read: Read,
}

/// Reads a text; the first argument is the name of the machine.
enum Read {
    Whole(fn(&str, &str) -> Result<Machine, SpecError>),
    /// The bandwidth of links may be left open.
    Tapered(fn(&str, &str, &Reading) -> Result<Machine, SpecError>),
}

/// Every kind of other programs. The first that recognizes a file reads it; others are TOML.
const FILES: &[MachineFile] = &[
    MachineFile { knows: simgrid::knows, read: Read::Whole(simgrid::read) },
    MachineFile { knows: hwloc::knows, read: Read::Whole(hwloc::read) },
    MachineFile { knows: slurm::knows, read: Read::Tapered(slurm::read) },
    MachineFile { knows: hosts::knows, read: Read::Whole(hosts::read) },
];

/// The most nodes, or hosts, of a file.
const MAX_NODES: usize = 1 << 20;

/// Reads a machine named `name` from a text of any kind. Files that it names are relative to the
/// current folder.
///
/// # Errors
/// What is wrong, and the bytes of `text` that are.
pub fn read(name: &str, text: &str) -> Result<Machine, SpecError> {
    read_in(Path::new(""), name, text, &Reading::default())
}

/// Reads a machine as [`read`]. Files that it names are relative to `folder`, and the text or they may
/// leave something open.
///
/// # Errors
/// What is wrong, and the bytes of `text` that are.
pub fn read_in(
    folder: &Path,
    name: &str,
    text: &str,
    reading: &Reading,
) -> Result<Machine, SpecError> {
    let lines = text.lines().map(str::trim);
    let first = lines.clone().find(|line| !line.is_empty() && !line.starts_with('#'));
    let first = first.unwrap_or_default();
    match FILES.iter().find(|file| (file.knows)(text, first)) {
        Some(file) => {
            reading.refuse_attributes()?;
            let name = printable(name);
            match file.read {
                Read::Whole(read) => reading.refuse_taper().and_then(|()| read(&name, text)),
                Read::Tapered(read) => read(&name, text, reading),
            }
        }
        None => parse_file_in(folder, name, text, reading),
    }
}

/// The cluster of these nodes, with one port and assumed timing values.
fn cluster(name: &str, sizes: &[u32]) -> Result<Machine, TopologyError> {
    let groups: Vec<_> = sizes.iter().map(|&size| (1, size)).collect();
    let machine = Machine::of(Arc::new(Clusters::new(&groups)?));
    Ok(Machine { name: name.to_owned(), ..machine })
}

/// The lines that are not empty, without comments, and their offsets.
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

/// An error about `words` at the offset `at`.
fn wrong(at: usize, words: &str, message: String) -> SpecError {
    SpecError { message, span: Some(at..at + words.len()) }
}

/// The beginning of a text, short enough for a message.
fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(40)]
}
