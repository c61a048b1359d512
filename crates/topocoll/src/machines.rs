//! Machines by name: shipped files, files of the user, short forms.

use std::path::Path;

use include_dir::{Dir, include_dir};
use topocoll_topology::spec::{self, Reading, SpecError};
use topocoll_topology::text::nearest;
use topocoll_topology::{Machine, TOPOLOGIES, files};

use crate::Error;

/// `topologies/`, built in, so that bare names work from any folder.
static SHIPPED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/topologies");

/// The most bytes of a file of any kind.
const MAX_FILE_BYTES: u64 = 1 << 26;

/// Names and texts of the shipped machine files, in alphabetical order.
pub fn shipped() -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut files: Vec<_> = (SHIPPED.files())
        .filter_map(|file| Some((file.path().file_stem()?.to_str()?, file.contents_utf8()?)))
        .collect();
    files.sort_unstable();
    files.into_iter()
}

/// The machine that `text` names: a path to a machine file, a shipped machine, or a short form such
/// as `torus:16x16`. Failed nodes and links may follow the name of a shipped machine, as in
/// `tpu-v5p-8x8x8/0,0,0+0`, and ranks on each node the path to a file, as in `topology.conf*8`.
///
/// # Errors
/// An unknown or invalid machine.
pub fn machine(text: &str) -> Result<Machine, Error> {
    machine_with(text, &Reading::default())
}

/// The machine that `text` names, where the text or a file leaves something open.
///
/// # Errors
/// An unknown or invalid machine, or one that leaves none of it open.
pub fn machine_with(text: &str, reading: &Reading) -> Result<Machine, Error> {
    if text.ends_with(".toml") || Path::new(text).exists() {
        return load_with(Path::new(text), reading);
    }
    // Ranks on each node may follow the name of a file.
    if let Some((path, sizes)) = text.rsplit_once('*')
        && (path.ends_with(".toml") || Path::new(path).exists())
    {
        let machine = load_with(Path::new(path), reading)?;
        return spec::with_ranks_on_nodes(&machine, sizes).map_err(Error::ShortForm);
    }
    let mut parts = text.split('/');
    let name = parts.next().unwrap_or_default();
    if let Some((_, contents)) = shipped().find(|(shipped, _)| *shipped == name) {
        let read = spec::parse_file_in(Path::new(""), name, contents, reading);
        let machine = in_file(read, &format!("topologies/{name}.toml"), contents)?;
        if name == text {
            return Ok(machine);
        }
        let mut machine = spec::with_faults(&machine, parts).map_err(|mut error| {
            error.message = format!("`{text}`: {}", error.message);
            Error::ShortForm(error)
        })?;
        text.clone_into(&mut machine.name);
        return Ok(machine);
    }
    if text.contains(':') {
        let read = spec::parse_short_form_with(text, reading);
        return read.map(Machine::of).map_err(Error::ShortForm);
    }
    Err(Error::UnknownMachine { name: text.chars().take(80).collect(), meant: meant(text) })
}

/// The machines that an unknown name most likely means.
fn meant(text: &str) -> Vec<String> {
    let of_shape = spec::short_forms_of(text);
    if !of_shape.is_empty() {
        return of_shape;
    }
    let kinds = || TOPOLOGIES.iter().map(|form| form.kind);
    // Failed parts may follow the name.
    let given = text.split('/').next().unwrap_or_default();
    let Some(name) = nearest(given, kinds().chain(shipped().map(|(name, _)| name))) else {
        return Vec::new();
    };
    let form = TOPOLOGIES.iter().find(|form| form.kind == name);
    vec![form.map_or(name, |form| form.example).to_owned()]
}

/// The machine in a file, of any kind of [`files`], told by its content. The machine's name is the
/// file's stem.
///
/// # Errors
/// The file is unreadable, not text, or invalid.
pub fn load_file(path: &Path) -> Result<Machine, Error> {
    load_with(path, &Reading::default())
}

fn load_with(path: &Path, reading: &Reading) -> Result<Machine, Error> {
    let shown = path.display().to_string();
    let text = files::text_of(path, MAX_FILE_BYTES, "machine files")
        .map_err(|reason| Error::Unreadable { path: shown.clone(), reason })?;
    in_file(files::read_in(path, &text, reading), &shown, &text)
}

fn in_file(machine: Result<Machine, SpecError>, path: &str, text: &str) -> Result<Machine, Error> {
    machine.map_err(|error| Error::File { path: path.to_owned(), text: text.to_owned(), error })
}
