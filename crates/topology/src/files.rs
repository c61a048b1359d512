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
use crate::machine_file::{self, parse_file_in};
use crate::reading::Reading;
use crate::text::{self, line_at, printable};
use crate::{Clusters, ListedGraph, Machine, Shape, Timing, TopologyError, xml};

pub use crate::regular::{create, open, text_of};
pub use place::place;

/// A kind of file that describes a machine.
struct Kind {
    /// What messages call it.
    name: &'static str,
    /// Whether a file that begins like this is of this kind.
    knows: fn(&Beginning<'_>) -> bool,
    /// The only option of a [`Reading`] that applies.
    open: &'static str,
    read: fn(&Source<'_>) -> Result<Machine, SpecError>,
}

impl Kind {
    /// A graph whose attributes may have names of their own.
    const fn of_graph(name: &'static str, knows: fn(&Beginning<'_>) -> bool) -> Self {
        let read = |file: &Source<'_>| graph_file::machine(file.name, file.text, file.reading);
        Self { name, knows, open: "--attributes", read }
    }
}

/// The text of a file, the name of the machine, and how to read them.
struct Source<'a> {
    folder: &'a Path,
    name: &'a str,
    text: &'a str,
    reading: &'a Reading,
}

/// What tells the kind of a file.
struct Beginning<'a> {
    text: &'a str,
    /// The first lines that are neither empty nor comments, without the blanks around them.
    lines: Vec<&'a str>,
    /// The first element of XML.
    root: Option<String>,
}

/// The lines that tell the kind of a file.
const LINES: usize = 20;

/// Every kind. The first that recognizes a file reads it.
const FILES: &[Kind] = &[
    Kind {
        name: "machine file (TOML)",
        knows: |begins| begins.lines.iter().any(|line| machine_file::has_field(line)),
        open: "--attributes",
        read: |file| parse_file_in(file.folder, file.name, file.text, file.reading),
    },
    Kind {
        name: "list of links (CSV)",
        knows: |begins| begins.fields(2) == ["from", "to"] || begins.fields(1) == ["switch"],
        open: "",
        read: |file| graph_file::machine(file.name, file.text, file.reading),
    },
    Kind::of_graph("node-link JSON", |begins| {
        begins.first().starts_with('{') && begins.text.contains("\"nodes\"")
    }),
    Kind::of_graph("GraphML", |begins| begins.root.as_deref() == Some("graphml")),
    Kind::of_graph("GML", |begins| Format::of(begins.text) == Some(Format::Gml)),
    Kind::of_graph("DOT", |begins| Format::of(begins.text) == Some(Format::Dot)),
    Kind::of_graph("list of edges", |begins| Format::of(begins.text) == Some(Format::Edges)),
    Kind {
        name: "SimGrid platform",
        knows: |begins| begins.root.as_deref() == Some("platform"),
        open: "--cores",
        read: |file| simgrid::read(file.name, file.text, file.reading),
    },
    Kind {
        name: "hwloc XML (lstopo)",
        knows: |begins| begins.root.as_deref() == Some("topology"),
        open: "",
        read: |file| hwloc::read(file.name, file.text),
    },
    Kind {
        name: "NCCL's XML of a node",
        knows: |begins| begins.root.as_deref() == Some("system"),
        open: "--nvlink",
        read: |file| nccl::read(file.name, file.text, file.reading),
    },
    Kind {
        name: "rocm-smi --showtopo",
        knows: rocm_smi::knows,
        open: "--nvlink",
        read: |file| rocm_smi::read(file.name, file.text, file.reading),
    },
    Kind {
        name: "nvidia-smi topo -m",
        knows: nvidia_smi::knows,
        open: "--nvlink",
        read: |file| nvidia_smi::read(file.name, file.text, file.reading),
    },
    Kind {
        name: "ibnetdiscover",
        knows: ibnetdiscover::knows,
        open: "",
        read: |file| ibnetdiscover::read(file.name, file.text),
    },
    Kind {
        name: "Slurm's topology.conf",
        knows: slurm::knows,
        open: "--taper",
        read: |file| slurm::read(file.name, file.text, file.reading),
    },
    Kind {
        name: "Slurm's topology.yaml",
        knows: slurm_yaml::knows,
        open: "--taper",
        read: |file| slurm_yaml::read(file.name, file.text, file.reading),
    },
    Kind {
        name: "rankfile of Open MPI",
        knows: rankfile::knows,
        open: "",
        read: |file| rankfile::read(file.name, file.text),
    },
    Kind {
        name: "host file of an MPI",
        knows: hosts::knows,
        open: "",
        read: |file| hosts::read(file.name, file.text),
    },
];

/// The most nodes, or hosts, of a file.
const MAX_NODES: usize = 1 << 20;

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
    let read = |kind: &Kind| {
        reading.refuse_but(kind.open)?;
        let source = Source { folder, name: &printable(name), text: rest, reading };
        let mut machine = (kind.read)(&source)?;
        if machine.source("title").is_none() {
            cite(&mut machine, kind.name, &printable(file), rest);
        }
        Ok(machine)
    };
    let kind = FILES.iter().find(|kind| (kind.knows)(&begins));
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
    let ends = lines(text).fold(None, |ends: Option<(usize, usize)>, (line, at)| {
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
        ("startup", timing.startup != generic.startup),
        ("per_byte", timing.per_byte != generic.per_byte),
        ("per_hop", timing.per_hop != generic.per_hop),
        ("injection", timing.injection != generic.injection),
    ];
    machine.sources.push(("title".to_owned(), format!("{file}: {kind}")));
    for (key, _) in values.into_iter().filter(|(_, is_read)| *is_read) {
        let source = match said.iter().find(|(known, _)| known == key) {
            Some((_, line)) if line.starts_with("line ") => format!("{file} {line}"),
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
        Self { text, lines, root: is_xml.then(|| xml::root(text)).flatten() }
    }

    fn first(&self) -> &'a str {
        self.lines.first().copied().unwrap_or_default()
    }

    /// The first `count` values of the first line, divided by commas.
    fn fields(&self, count: usize) -> Vec<&'a str> {
        self.first().split(',').map(|field| field.trim().trim_matches('"')).take(count).collect()
    }
}

/// Refuses a file of no known kind, and says what it most likely is.
fn unknown(begins: &Beginning<'_>) -> SpecError {
    let names: Vec<&str> = FILES.iter().map(|kind| kind.name).collect();
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

/// The machine of a network. Links of a vertex are in the order of where they lead, as those of a machine file.
fn network(name: &str, mut listed: ListedGraph) -> Result<Machine, TopologyError> {
    listed.form = "network".to_owned();
    listed.links.sort_by_key(|(from, to, kind)| (*from, *to, kind.key()));
    let graph = listed.with_shortest_routes()?;
    Ok(Machine { name: name.to_owned(), ..Machine::of(Arc::new(graph)) })
}

/// The machine, of which something more is assumed.
fn assuming(mut machine: Machine, what: &str) -> Machine {
    machine.assume(what);
    machine
}

/// The machine, where words of its file have no effect.
fn without_effect<'a>(
    machine: Machine,
    words: impl IntoIterator<Item = &'a str>,
    of: &str,
) -> Machine {
    let words: Vec<_> = words.into_iter().map(shown).collect();
    match &words[..] {
        [] => machine,
        words => assuming(machine, &format!("{} of {of} have no effect", words.join(", "))),
    }
}

/// The lines that are not empty, without comments, and their offsets.
fn lines(text: &str) -> impl Iterator<Item = (&str, usize)> {
    text::lines(text)
        .map(|(line, at)| (line.split('#').next().unwrap_or_default().trim_end(), at))
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

#[cfg(test)]
mod tests;
