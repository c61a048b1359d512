//! Schedules in files, written and read.
//!
//! A format is a module here and a line of [`FORMATS`]: its name, a function that writes a
//! [`Source`], one that recognizes the beginning of a file, and one that reads it for a [`Target`].
//! To add one, start from `csv.rs`:
//!
//! 1. **Write.** [`Writer::File`] gets a schedule and an output. Begin with
//!    `Listing::check_messages`, which refuses listings that are too long. `local.rs` gives the
//!    messages that each rank sends in each step; write them one by one and keep none.
//! 2. **Read.** [`Reader::File`] gets the file. Take its lines from `lines.rs`, which limits their
//!    length and counts them. Check ranks, routes and sizes with `messages.rs`, which has the rules
//!    and error texts. Put messages into a [`Recorder`](topocoll_schedule::Recorder), which takes less
//!    than 200 bytes for a message of one block. A format with dependencies instead of steps uses
//!    `order.rs`.
//! 3. **Tests.** `tests/formats/writing.rs` and `tests/formats/reading.rs` test, among others, that
//!    reading a written file gives the same schedule. `tests/schedules` has files of other programs.
//!
//! # What a file can say
//!
//! Delivery can be verified only where a file names blocks, as JSON lines do. GOAL, SimGrid traces
//! and comma-separated values have sizes. The first two also carry the JSON lines of the schedule,
//! in comments or a second file; these are checked message by message against the rest. A file of
//! sizes alone is a schedule whose rule [names no blocks](topocoll_schedule::Rule::names_blocks):
//! it can be counted, priced, simulated, drawn and written, but not verified. Only messages are
//! read: local copies are written in MSCCL's format alone.

mod csv;
mod dot;
mod ends;
mod error;
mod goal;
pub mod jsonl;
mod lines;
mod local;
mod messages;
mod msccl;
mod order;
mod simgrid;

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use topocoll_schedule::{Schedule, Step};
use topocoll_topology::{Machine, Ports, Rank, Topology, files};

use crate::AnalysisError;
use crate::error::failed;

pub use error::ReadError;

/// The most bytes of a listing.
const LIMIT: u128 = 4 << 30;

/// The bytes at the beginning of a file by which its format is recognized.
const HEAD: usize = 1 << 12;

/// A schedule to write.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Source<'a> {
    /// The schedule.
    pub schedule: &'a Schedule,
    /// The machine that it runs on.
    pub machine: &'a Machine,
    /// Write only the messages that this rank sends.
    pub only: Option<Rank>,
    /// The most bytes of memory.
    pub memory: u128,
}

impl<'a> Source<'a> {
    /// All messages of a schedule on a machine, in `memory` bytes.
    #[must_use]
    pub fn new(schedule: &'a Schedule, machine: &'a Machine, memory: u128) -> Self {
        Self { schedule, machine, only: None, memory }
    }
}

/// The machine and the limits for reading a file.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Target<'a> {
    /// The topology of the machine.
    pub topology: &'a dyn Topology,
    /// Messages a rank, and a node, may send, and receive, in a step, if the file does not say.
    pub ports: Ports,
    /// The most bytes of memory.
    pub memory: u128,
    /// Called with the numbers of bytes read.
    pub seen: Seen<'a>,
}

/// A callback for numbers of bytes written or read.
pub type Seen<'a> = &'a dyn Fn(u64);

/// A format.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Format {
    /// The name on the command line.
    pub name: &'static str,
    /// One line that describes it.
    pub about: &'static str,
    /// Whether it can hold the messages of one rank alone.
    pub by_rank: bool,
    /// The function that writes it.
    pub writer: Writer,
    /// Whether a file with this beginning is in this format.
    pub knows: fn(&str) -> bool,
    /// The function that reads it.
    pub reader: Reader,
}

/// How a format is written.
#[derive(Clone, Copy, Debug)]
pub enum Writer {
    /// One file.
    File(fn(&Source<'_>, &mut dyn Write) -> Result<(), AnalysisError>),
    /// An empty folder that exists. The function reports the bytes written.
    Folder(fn(&Source<'_>, &Path, Seen<'_>) -> Result<(), AnalysisError>),
}

/// How a format is read.
#[derive(Clone, Copy, Debug)]
pub enum Reader {
    /// One file.
    File(fn(&mut dyn BufRead, &Target<'_>) -> Result<Schedule, ReadError>),
    /// A folder, or the file that lists its contents.
    Folder(fn(&Path, &Target<'_>) -> Result<Schedule, ReadError>),
    /// The format cannot be read, for this reason.
    None(&'static str),
}

/// Every format.
#[rustfmt::skip]
pub const FORMATS: &[Format] = &[
    Format { name: "jsonl", about: "a message a line, its blocks named", by_rank: true, writer: Writer::File(jsonl::write), knows: |head| head.starts_with('{'), reader: Reader::File(jsonl::read) },
    Format { name: "csv", about: "a message a line: step, from, to, bytes, packed bytes, route", by_rank: true, writer: Writer::File(csv::write), knows: |head| head.starts_with("step,"), reader: Reader::File(csv::read) },
    Format { name: "goal", about: "GOAL text, for LogGOPSim", by_rank: false, writer: Writer::File(goal::write), knows: |head| ["num_ranks", "//", "/*"].iter().any(|begins| head.starts_with(begins)), reader: Reader::File(goal::read) },
    Format { name: "msccl", about: "MSCCL XML: an all-to-all among GPUs, a block a chunk", by_rank: false, writer: Writer::File(msccl::write), knows: |head| head.starts_with("<algo"), reader: Reader::None(msccl::WHY) },
    Format { name: "dot", about: "Graphviz: ranks and messages, an edge each", by_rank: false, writer: Writer::File(dot::write), knows: |head| head.starts_with("digraph"), reader: Reader::None("a picture has no ports and no bytes of its own") },
    Format { name: "simgrid", about: "SimGrid: platform, hosts and time-independent traces, in a folder", by_rank: false, writer: Writer::Folder(simgrid::write), knows: simgrid::knows, reader: Reader::Folder(simgrid::read) },
];

/// Reads a file or folder in any format.
///
/// # Errors
/// No such file, an unknown format, or an error of its reader.
pub fn read(path: &Path, target: &Target<'_>) -> Result<Schedule, ReadError> {
    let refuse = |e: std::io::Error| ReadError::File {
        file: path.display().to_string(),
        reason: e.to_string(),
    };
    let is_folder = std::fs::metadata(path).map_err(refuse)?.is_dir();
    let file = if is_folder { File::open(path) } else { files::open(path) };
    let mut input = BufReader::with_capacity(1 << 16, file.map_err(refuse)?);
    let mut begins = String::new();
    if !is_folder {
        if input.fill_buf().map_err(refuse)?.starts_with("\u{feff}".as_bytes()) {
            input.consume("\u{feff}".len());
        }
        let head = input.fill_buf().map_err(refuse)?;
        begins = String::from_utf8_lossy(&head[..head.len().min(HEAD)]).trim_start().to_owned();
    }
    let of_folder = |format: &&Format| matches!(format.reader, Reader::Folder(_));
    let found = FORMATS.iter().find(|format| match is_folder {
        true => of_folder(format),
        false => (format.knows)(&begins),
    });
    match found.map(|format| (format.name, format.reader)) {
        Some((_, Reader::File(read))) => read(&mut input, target),
        Some((_, Reader::Folder(read))) => read(path, target),
        Some((format, Reader::None(reason))) => Err(ReadError::Unreadable { format, reason }),
        None => {
            let readable = |format: &&Format| !matches!(format.reader, Reader::None(_));
            let known = FORMATS.iter().filter(readable).map(|format| format.name).collect();
            let begins = begins.lines().next().unwrap_or_default().chars().take(40).collect();
            Err(ReadError::Unknown { begins, known })
        }
    }
}

impl<'a> Target<'a> {
    /// The topology and ports of a machine, in `memory` bytes; bytes read are not reported.
    #[must_use]
    pub fn new(machine: &'a Machine, memory: u128) -> Self {
        Self { topology: &*machine.topology, ports: machine.ports, memory, seen: &|_| () }
    }

    /// Checks that `taken` bytes of memory are within the limit.
    fn check_memory(&self, taken: u128) -> Result<(), String> {
        let memory = self.memory;
        if taken > memory {
            return Err(format!(
                "the messages so far take {taken} bytes, but the limit is {memory}"
            ));
        }
        Ok(())
    }
}

impl fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("topology", &self.topology)
            .field("ports", &self.ports)
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}

/// The numbers of messages and blocks in a listing.
struct Listing {
    messages: u128,
    blocks: u128,
}

impl Listing {
    /// Those of all ranks, by one rank of each class, or of one rank.
    fn of(schedule: &Schedule, only: Option<Rank>) -> Self {
        let classes = schedule.rule().classes();
        let (ranks, alike): (Vec<Rank>, u32) = match only {
            Some(rank) => (vec![rank], 1),
            None => {
                let representatives = (0..classes.count()).map(|c| classes.representative(c));
                (representatives.collect(), schedule.problem.ranks / classes.count())
            }
        };
        let (mut listing, mut does) = (Self { messages: 0, blocks: 0 }, Step::default());
        for step in 0..schedule.rule().steps() {
            for &rank in &ranks {
                schedule.rule().step(rank, step, &mut does);
                listing.messages += u128::from(alike) * does.sends.len() as u128;
                let blocks: u64 = does.sends.iter().map(|send| send.slots.len()).sum();
                listing.blocks += u128::from(alike) * u128::from(blocks);
            }
        }
        listing
    }

    /// Refuses to write more than [`LIMIT`] bytes, at `each` bytes a message.
    fn check_messages(source: &Source<'_>, each: u128) -> Result<(), AnalysisError> {
        check(Self::of(source.schedule, source.only).messages * each)
    }
}

fn check(bytes: u128) -> Result<(), AnalysisError> {
    if bytes > LIMIT { Err(AnalysisError::Listing { bytes, limit: LIMIT }) } else { Ok(()) }
}
