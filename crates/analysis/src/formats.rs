//! Schedules in the languages of other programs, written and read.
//!
//! A format is a file here and a line of [`FORMATS`]: its name, what writes it from a [`Source`],
//! how a file of it begins, and what reads it for a [`Target`]. To add one, take `csv.rs` as the
//! model, which is both in a page:
//!
//! 1. **Write.** [`Writer::File`] gets a schedule and somewhere to write; ask `local.rs` what each
//!    rank sends in each step, write it as it comes, and keep nothing. Begin with
//!    `Listing::check_messages`, which refuses what would be too long.
//! 2. **Read.** [`Reader::File`] gets the file. Take its lines from `lines.rs`, which bounds and
//!    counts them; hand ranks, routes and sizes to `messages.rs`, which has the rules and the words
//!    for them; put messages into a [`Recorder`](topocoll_schedule::Recorder), which takes less than
//!    200 bytes for one of a block. A format that says what waits for what, and not in which step, asks `order.rs`.
//! 3. **Tests.** `tests/formats/writing.rs` and `tests/formats/reading.rs` have the promises, among them that reading
//!    what was written loses nothing, and `tests/schedules` the files of others.
//!
//! # What a file can say
//!
//! Only blocks make a delivery that can be proved. JSON lines name them. GOAL, SimGrid's traces and
//! comma-separated values have sizes: the first two carry the JSON lines of the same schedule, in
//! comments and in a file beside, which are checked message by message against what the other
//! program reads. A file of sizes alone is a schedule all the same, whose rule
//! [names no blocks](topocoll_schedule::Rule::names_blocks): it is counted, priced, simulated, drawn
//! and written; whether it delivers is never guessed. Local work and copies are in no format but
//! MSCCL's: what is read is messages.

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
use topocoll_topology::{Machine, Rank, Topology};

use crate::AnalysisError;
use crate::error::failed;

pub use error::ReadError;

/// The most bytes that are written.
const LIMIT: u128 = 4 << 30;

/// Bytes of a file by which its format is known.
const HEAD: usize = 1 << 12;

/// What is written.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Source<'a> {
    /// The schedule.
    pub schedule: &'a Schedule,
    /// The machine that it runs on.
    pub machine: &'a Machine,
    /// Only what this rank sends.
    pub only: Option<Rank>,
    /// Bytes of memory that may be taken.
    pub memory: u128,
}

impl<'a> Source<'a> {
    /// All of a schedule on a machine, in `memory` bytes.
    #[must_use]
    pub fn new(schedule: &'a Schedule, machine: &'a Machine, memory: u128) -> Self {
        Self { schedule, machine, only: None, memory }
    }
}

/// What a file is read for.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Target<'a> {
    /// The ranks and the links of the machine that it is to run on.
    pub topology: &'a dyn Topology,
    /// Messages a rank may send, and receive, in a step, where the file does not say.
    pub ports: u32,
    /// Bytes of memory that may be taken.
    pub memory: u128,
    /// Told of the bytes read, as they are.
    pub seen: Seen<'a>,
}

/// Told of bytes as they are written or read.
pub type Seen<'a> = &'a dyn Fn(u64);

/// A format.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Format {
    /// As it is asked for.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Whether it can hold what one rank sends, alone.
    pub by_rank: bool,
    /// What writes it.
    pub writer: Writer,
    /// Whether a file that begins so is one.
    pub knows: fn(&str) -> bool,
    /// What reads it.
    pub reader: Reader,
}

/// What writes a format.
#[derive(Clone, Copy, Debug)]
pub enum Writer {
    /// One file.
    File(fn(&Source<'_>, &mut dyn Write) -> Result<(), AnalysisError>),
    /// A folder, which is there and empty; the function is told of the bytes written.
    Folder(fn(&Source<'_>, &Path, Seen<'_>) -> Result<(), AnalysisError>),
}

/// What reads a format.
#[derive(Clone, Copy, Debug)]
pub enum Reader {
    /// One file.
    File(fn(&mut dyn BufRead, &Target<'_>) -> Result<Schedule, ReadError>),
    /// A folder, or the file that lists what is in it.
    Folder(fn(&Path, &Target<'_>) -> Result<Schedule, ReadError>),
    /// Nothing, and why.
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

/// Reads a file, or a folder, of whatever format it is.
///
/// # Errors
/// No such file, none of the formats, or what its reader refuses.
pub fn read(path: &Path, target: &Target<'_>) -> Result<Schedule, ReadError> {
    let refuse = |e: std::io::Error| ReadError::File {
        file: path.display().to_string(),
        reason: e.to_string(),
    };
    let is_folder = std::fs::metadata(path).map_err(refuse)?.is_dir();
    let mut input = BufReader::with_capacity(1 << 16, File::open(path).map_err(refuse)?);
    let mut begins = String::new();
    if !is_folder {
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
    /// A machine's ranks, links and ports, in `memory` bytes; nobody is told of the bytes read.
    #[must_use]
    pub fn new(machine: &'a Machine, memory: u128) -> Self {
        Self { topology: &*machine.topology, ports: machine.ports, memory, seen: &|_| () }
    }

    /// Refuses to take so many bytes of memory.
    fn check_memory(&self, taken: u128) -> Result<(), String> {
        let memory = self.memory;
        if taken > memory {
            return Err(format!(
                "the messages so far take {taken} bytes, and {memory} may be used"
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

/// Messages and blocks that are written.
struct Listing {
    messages: u128,
    blocks: u128,
}

impl Listing {
    /// Of all ranks, one of each class counted, or of one.
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

    /// Refuses to write more than [`LIMIT`], at so many bytes a message.
    fn check_messages(source: &Source<'_>, each: u128) -> Result<(), AnalysisError> {
        check(Self::of(source.schedule, source.only).messages * each)
    }
}

fn check(bytes: u128) -> Result<(), AnalysisError> {
    if bytes > LIMIT { Err(AnalysisError::Listing { bytes, limit: LIMIT }) } else { Ok(()) }
}
