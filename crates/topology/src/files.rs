//! Machine files of several kinds. Each kind is a module here and a line of `FILES`.

mod gpus;
mod guesses;
mod hostlist;
mod hosts;
mod hwloc;
mod ibnetdiscover;
mod nccl;
mod nvidia_smi;
mod place;
mod rankfile;
mod rocm_smi;
mod simgrid;
mod slurm;
mod slurm_yaml;

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use crate::error::SpecError;
use crate::graph_file::{self, Format};
use crate::machine_file;
use crate::reading::{Reading, Source};
use crate::text::{line_at, printable, uncommented};
use crate::{Clusters, Machine, Shape, Timing, TopologyError, xml};

pub use crate::regular::{create, open, text_of};
pub use place::place;

/// A kind of file that describes a machine: what messages call it, the only option of a [`Reading`] that applies,
/// whether a file that begins like this is of this kind, and its reader.
type Kind = (&'static str, &'static str, fn(&Beginning<'_>) -> bool, Read);
type Read = fn(&Source<'_>) -> Result<Machine, SpecError>;

/// What tells the kind of a file.
struct Beginning<'a> {
    text: &'a str,
    /// The first lines that are neither empty nor comments, without the blanks around them.
    lines: Vec<&'a str>,
    /// The first element of XML, or nothing.
    root: String,
}

/// The lines that tell the kind of a file.
const LINES: usize = 20;

/// Options of readers.
const ATTRIBUTES: &str = "--attributes";
const NVLINK: &str = "--nvlink";
const TAPER: &str = "--taper";

/// Every kind. The first that recognizes a file reads it.
const FILES: &[Kind] = &[
    ("machine file (TOML)", ATTRIBUTES, is_machine_file, machine_file::read),
    ("list of links (CSV)", "", is_list_of_links, graph_file::machine),
    ("node-link JSON", ATTRIBUTES, |begins| begins.is(Format::Json), graph_file::machine),
    ("GraphML", ATTRIBUTES, |begins| begins.is(Format::GraphMl), graph_file::machine),
    ("GML", ATTRIBUTES, |begins| begins.is(Format::Gml), graph_file::machine),
    ("DOT", ATTRIBUTES, |begins| begins.is(Format::Dot), graph_file::machine),
    ("list of edges", ATTRIBUTES, |begins| begins.is(Format::Edges), graph_file::machine),
    ("SimGrid platform", "--cores", |begins| begins.root == "platform", simgrid::read),
    ("hwloc XML (lstopo)", NVLINK, |begins| begins.root == "topology", hwloc::read),
    ("NCCL's XML of a node", NVLINK, |begins| begins.root == "system", nccl::read),
    ("rocm-smi --showtopo", NVLINK, rocm_smi::knows, rocm_smi::read),
    ("nvidia-smi topo -m", NVLINK, nvidia_smi::knows, nvidia_smi::read),
    ("ibnetdiscover", "", ibnetdiscover::knows, ibnetdiscover::read),
    ("Slurm's topology.conf", TAPER, slurm::knows, slurm::read),
    ("Slurm's topology.yaml", TAPER, slurm_yaml::knows, slurm_yaml::read),
    ("rankfile of Open MPI", "", rankfile::knows, rankfile::read),
    ("host file of an MPI", "", hosts::knows, hosts::read),
];

fn is_machine_file(begins: &Beginning<'_>) -> bool {
    begins.lines.iter().any(|line| machine_file::has_field(line))
}

fn is_list_of_links(begins: &Beginning<'_>) -> bool {
    let mut fields = begins.first().split(',').map(|field| field.trim().trim_matches('"'));
    match fields.next() {
        Some("from") => fields.next() == Some("to"),
        first => first == Some("switch"),
    }
}

/// The most nodes, or hosts, of a file.
const MAX_NODES: usize = 1 << 20;

/// The hosts of a list as Slurm writes it, such as `n[1-4],login`.
///
/// # Errors
/// No such list, or more hosts than a machine has.
pub fn host_list(list: &str) -> Result<Vec<String>, SpecError> {
    Ok(hostlist::expand(list, MAX_NODES)?)
}

/// Reads a machine named `name` from a text of any kind. Files that it names are relative to the
/// current folder.
///
/// # Errors
/// What is wrong, and the bytes of `text` that are.
pub fn read(name: &str, text: &str) -> Result<Machine, SpecError> {
    read_as(Path::new(""), name, name, text, &Reading::default())
}

/// Reads a machine from the text of a file, whose stem becomes the name of the machine. Files that it
/// names are relative to its folder, and the text or they may leave something open. The kind of the text
/// is told by its content alone; it may begin with a byte order mark.
///
/// # Errors
/// What is wrong, and the bytes of `text` that are.
pub fn read_in(file: &Path, text: &str, reading: &Reading) -> Result<Machine, SpecError> {
    let part = |part: Option<&OsStr>| {
        part.map_or_else(|| file.display().to_string(), |part| part.to_string_lossy().into_owned())
    };
    let folder = file.parent().unwrap_or(Path::new(""));
    read_as(folder, &part(file.file_stem()), &part(file.file_name()), text, reading)
}

fn read_as(
    folder: &Path,
    name: &str,
    file: &str,
    text: &str,
    reading: &Reading,
) -> Result<Machine, SpecError> {
    let rest = text.trim_start_matches('\u{feff}');
    let begins = Beginning::of(rest);
    let read = |&(kind, open, _, read): &Kind| {
        reading.refuse_but(open)?;
        let source = Source { folder, name: &printable(name), text: rest, reading };
        let mut machine = read(&source)?;
        if machine.source("title").is_none() {
            cite(&mut machine, kind, &printable(file), rest);
        }
        Ok(machine)
    };
    let kind = FILES.iter().find(|(_, _, knows, _)| knows(&begins));
    kind.map_or_else(|| Err(unknown(&begins)), read).map_err(|mut error| {
        let mark = text.len() - rest.len();
        error.span = error.span.map(|span| span.start + mark..span.end + mark);
        error
    })
}

/// Adds the sources of values: what the reader says, after the name of the file where that is a line, and
/// otherwise the lines of the file for all that differs from what is assumed of short forms.
fn cite(machine: &mut Machine, kind: &str, file: &str, text: &str) {
    let said = std::mem::take(&mut machine.sources);
    let ends = uncommented(text).fold(None, |ends: Option<(usize, usize)>, (line, at)| {
        Some((ends.map_or(at, |(first, _)| first), at + line.len()))
    });
    let (first, last) = ends.unwrap_or_default();
    let of_file = match (line_at(text, first), line_at(text, last)) {
        (first, last) if first == last => format!("{file} line {first}"),
        (first, last) => format!("{file} lines {first} to {last}"),
    };
    let (timing, generic) = (&machine.timing, Timing::generic());
    let values = [
        ("shape", true),
        ("network", matches!(machine.topology.network(), Shape::Graph(_))),
        ("placement", machine.topology.shape().is_placed()),
        ("startup", timing.startup != generic.startup),
        ("per_byte", timing.per_byte != generic.per_byte),
        ("per_hop", timing.per_hop != generic.per_hop),
        ("injection", timing.injection != generic.injection),
    ];
    machine.sources.push(("title".to_owned(), format!("{file}: {kind}")));
    for (key, _) in values.into_iter().filter(|(_, is_read)| *is_read) {
        let source = match said.iter().find(|(known, _)| known == key) {
            Some((_, line)) if line.starts_with("line") => format!("{file} {line}"),
            Some((_, source)) => source.clone(),
            None => of_file.clone(),
        };
        machine.sources.push((key.to_owned(), source));
    }
}

impl<'a> Beginning<'a> {
    fn of(text: &'a str) -> Self {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let lines: Vec<_> = lines.take(LINES).collect();
        let is_xml = lines.first().is_some_and(|line| line.starts_with('<'));
        let root = is_xml.then(|| xml::root(text)).flatten().unwrap_or_default();
        Self { text, lines, root }
    }

    fn first(&self) -> &'a str {
        self.lines.first().copied().unwrap_or_default()
    }

    /// Whether it is a graph in a format; JSON may be anything else.
    fn is(&self, format: Format) -> bool {
        let is_json = || format != Format::Json || self.text.contains("\"nodes\"");
        Format::of(self.text) == Some(format) && is_json()
    }
}

/// Refuses a file of no known kind, and says what it most likely is.
fn unknown(begins: &Beginning<'_>) -> SpecError {
    let names: Vec<&str> = FILES.iter().map(|(name, ..)| *name).collect();
    let guess = guesses::of(begins).map_or(String::new(), |guess| format!("; {guess}"));
    let message =
        format!("not a known kind of machine file; known are {}{guess}", names.join(", "));
    let first = begins.first();
    wrong(begins.text.find(first).unwrap_or(0), first, message)
}

/// The cluster of these nodes, with one port and assumed timing values.
fn cluster(name: &str, sizes: &[u32]) -> Result<Machine, TopologyError> {
    let groups: Vec<_> = sizes.iter().map(|&size| (1, size)).collect();
    let machine = Machine::of(Arc::new(Clusters::new(&groups)?));
    Ok(Machine { name: name.to_owned(), ..machine })
}

/// The machine, where words of its file have no effect.
fn without_effect<'a>(
    mut machine: Machine,
    words: impl IntoIterator<Item = &'a str>,
    of: &str,
) -> Machine {
    let words: Vec<_> = words.into_iter().map(shown).collect();
    if !words.is_empty() {
        machine.assume(&format!("{} of {of} have no effect", words.join(", ")));
    }
    machine
}

/// An error about `words` at the offset `at`.
fn wrong(at: usize, words: &str, message: String) -> SpecError {
    SpecError { message, span: Some(at..at + words.len()) }
}

/// The beginning of a text, short enough for a message.
fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(40)]
}

#[cfg(test)]
mod tests;
