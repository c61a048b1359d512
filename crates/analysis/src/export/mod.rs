//! Schedules written out for others to read. A format is a file here and a line of [`FORMATS`].

mod csv;
mod dot;
mod goal;
pub mod jsonl;
mod local;
mod msccl;
mod simgrid;

use std::io::Write;
use std::path::Path;

use topocoll_schedule::{Schedule, Step};
use topocoll_topology::{Machine, Rank};

use crate::AnalysisError;

/// The most bytes that are written.
const LIMIT: u128 = 4 << 30;

/// What is written.
#[derive(Clone, Copy)]
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

/// A format that others read.
#[derive(Clone, Copy)]
pub struct Format {
    /// As it is asked for.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Whether it can hold what one rank sends, alone.
    pub by_rank: bool,
    /// What writes it.
    pub writer: Writer,
}

/// What writes a format.
#[derive(Clone, Copy)]
pub enum Writer {
    /// One file.
    File(fn(&Source<'_>, &mut dyn Write) -> Result<(), AnalysisError>),
    /// A folder, which is there and empty.
    Folder(fn(&Source<'_>, &Path) -> Result<(), AnalysisError>),
}

/// Every format.
#[rustfmt::skip]
pub const FORMATS: [Format; 6] = [
    Format { name: "jsonl", about: "a message a line, its blocks named: what --schedule reads", by_rank: true, writer: Writer::File(jsonl::write) },
    Format { name: "csv", about: "a message a line: step, from, to, bytes, packed bytes, route", by_rank: true, writer: Writer::File(csv::write) },
    Format { name: "goal", about: "GOAL text, for LogGOPSim", by_rank: false, writer: Writer::File(goal::write) },
    Format { name: "msccl", about: "MSCCL XML: an all-to-all among GPUs, a block a chunk", by_rank: false, writer: Writer::File(msccl::write) },
    Format { name: "dot", about: "Graphviz: ranks and messages, an edge each", by_rank: false, writer: Writer::File(dot::write) },
    Format { name: "simgrid", about: "SimGrid: platform, hosts and time-independent traces, in a folder", by_rank: false, writer: Writer::Folder(simgrid::write) },
];

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

fn failed(error: impl std::fmt::Display) -> AnalysisError {
    AnalysisError::Write(error.to_string())
}
