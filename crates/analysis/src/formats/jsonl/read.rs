use std::io::BufRead;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use topocoll_schedule::{Block, Collective, Message, Origin, Part, Problem, Recorder, Schedule};
use topocoll_topology::{Groups, Rank, Topology};

use super::{Header, MessageLine};
use crate::formats::lines::Lines;
use crate::formats::messages::{beginning, check_ranks, check_step, ends, rank, route, route_over};
use crate::formats::{ReadError, Target};

/// Reads the topology that a schedule was written for from its first line.
///
/// # Errors
/// A line that is not a header, or describes no topology.
pub fn read_topology(input: &mut dyn BufRead) -> Result<Arc<dyn Topology>, ReadError> {
    let mut lines = Lines::new(input, &|_| ());
    let read = |text: &str| {
        let header = Header::parse(text)?;
        header.topology.topology(header.ranks)
    };
    let topology = read(lines.next()?.unwrap_or_default());
    topology.map_err(|message| lines.error(message))
}

/// Reads a schedule written for the topology of `target`; its ports are those of the header.
///
/// # Errors
/// A line that is not valid, contradicts the topology or the header, or decreases the step; more
/// messages than fit in memory.
pub fn read(input: &mut dyn BufRead, target: &Target<'_>) -> Result<Schedule, ReadError> {
    read_each(input, target, &mut |_| ())
}

/// As [`read`], and calls `each` with every message.
pub(in crate::formats) fn read_each(
    input: &mut dyn BufRead,
    target: &Target<'_>,
    each: &mut dyn FnMut(Listed),
) -> Result<Schedule, ReadError> {
    let mut lines = Lines::new(input, target.seen);
    let list = match lines.next()? {
        Some(text) => List::new(text, target),
        None => Err("the file is empty: its first line must be the header".to_owned()),
    };
    let mut list = list.map_err(|message| lines.error(message))?;
    while let Some(text) = lines.next()? {
        let pushed = list.push(text);
        each(pushed.map_err(|message| lines.error(message))?);
    }
    Ok(list.schedule())
}

/// A message without its blocks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::formats) struct Listed {
    pub(in crate::formats) step: u32,
    pub(in crate::formats) from: Rank,
    pub(in crate::formats) to: Rank,
    pub(in crate::formats) bytes: u64,
}

/// A reader of JSON lines, from their own file or from within another.
pub(in crate::formats) struct List<'a> {
    messages: Messages<'a>,
    origin: Origin,
}

/// Messages with their blocks, checked one by one.
struct Messages<'a> {
    target: &'a Target<'a>,
    problem: Problem,
    groups: Option<Groups>,
    recorder: Recorder,
    /// The last step, and the number of messages so far.
    last: (u32, usize),
    taken: u128,
}

/// The schedule of messages that a program lists, by the rules for messages in files: steps do not
/// decrease, and every message has blocks.
///
/// # Errors
/// The number of the first message that is not valid, from 0, or more messages than fit in memory.
pub fn schedule(
    problem: Problem,
    origin: Origin,
    messages: impl IntoIterator<Item = MessageLine>,
    target: &Target<'_>,
) -> Result<Schedule, ReadError> {
    let message = |number, message| ReadError::Message { number, message };
    check_ranks(problem.ranks, target.topology).map_err(|error| message(0, error))?;
    let mut list = Messages::new(problem, None, target);
    for (number, line) in messages.into_iter().enumerate() {
        list.push(&line).map_err(|error| message(number, error))?;
    }
    Ok(Schedule::new(problem, origin, list.recorder.finish()))
}

impl<'a> List<'a> {
    /// Reads the header.
    pub(in crate::formats) fn new(text: &str, target: &'a Target<'a>) -> Result<Self, String> {
        let header = Header::parse(text)?;
        let (problem, groups) = (header.problem(target.topology)?, header.groups()?);
        let origin = Origin { algorithm: header.algorithm, parameters: header.parameters };
        Ok(Self { messages: Messages::new(problem, groups, target), origin })
    }

    /// Reads a message.
    pub(in crate::formats) fn push(&mut self, text: &str) -> Result<Listed, String> {
        self.messages.push(&parsed(text, "message")?)
    }

    pub(in crate::formats) fn schedule(self) -> Schedule {
        let Messages { problem, groups, recorder, .. } = self.messages;
        let schedule = Schedule::new(problem, self.origin, recorder.finish());
        match groups {
            Some(groups) => schedule.within(&groups),
            None => schedule,
        }
    }
}

impl<'a> Messages<'a> {
    fn new(problem: Problem, groups: Option<Groups>, target: &'a Target<'a>) -> Self {
        Self { target, problem, groups, recorder: Recorder::new(problem), last: (0, 0), taken: 0 }
    }

    fn push(&mut self, line: &MessageLine) -> Result<Listed, String> {
        let (after, messages) = self.last;
        check_step(line.step, after, messages)?;
        let message = line.message(self.problem, self.target.topology)?;
        if let Some(groups) = &self.groups {
            let apart = |(block, _): &&(Block, Part)| !groups.joins(block.from, block.to);
            if let Some((block, _)) = message.blocks.iter().find(apart) {
                return Err(format!("block {block} is not of ranks of one group"));
            }
        }
        self.taken += Recorder::memory(message.blocks.len());
        self.target.check_memory(self.taken)?;
        self.recorder.push(&message);
        self.last = (line.step, messages + 1);
        let Message { step, from, to, .. } = message;
        let block_bytes = self.problem.block_bytes;
        let parts = message.blocks.iter().map(|(_, part)| part.bytes(block_bytes));
        // Check the memory before the blocks are expanded.
        let bytes = parts.fold(0, u64::saturating_add);
        Ok(Listed { step, from, to, bytes })
    }
}

pub(super) fn parsed<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, String> {
    if text.trim().is_empty() {
        return Err(format!("an empty line, expected a {what}"));
    }
    // The error of the JSON parser without its line number and the names of its types.
    serde_json::from_str(text).map_err(|e| {
        let told = e.to_string().replace(" at line 1 column", ", column");
        let told = told.replace("expected u32", "expected a whole number below 2^32");
        let told = told.replace("expected u64", "expected a whole number below 2^64");
        format!("not a {what}: {}", told.replace("a sequence", "a list"))
    })
}

impl MessageLine {
    fn message(&self, problem: Problem, topology: &dyn Topology) -> Result<Message, String> {
        let ranks = problem.ranks;
        let (from, to) = ends(self.from.into(), self.to.into(), ranks)?;
        let shown = |numbers: String| beginning(&numbers).to_owned();
        let route = match (&self.route, &self.links) {
            (None, None) => None,
            (Some(_), Some(_)) => return Err("a message with a route and with links".to_owned()),
            (Some(segments), None) => {
                Some(route(segments, (from, to), topology).map_err(|rule| {
                    let numbers = serde_json::to_string(segments);
                    let shown = shown(numbers.expect("bug: numbers cannot be written"));
                    format!("route {shown}: {rule}")
                })?)
            }
            (None, Some(links)) => {
                Some(route_over(links, (from, to), topology).map_err(|rule| {
                    let numbers = serde_json::to_string(links);
                    let shown = shown(numbers.expect("bug: numbers cannot be written"));
                    format!("links {shown}: {rule}")
                })?)
            }
        };
        if self.blocks.is_empty() {
            return Err("a message without blocks".to_owned());
        }
        let blocks = self.blocks.iter().enumerate().map(|(number, listed)| {
            block(listed, problem).map_err(|rule| {
                let numbers = serde_json::to_string(listed);
                let shown = shown(numbers.expect("bug: numbers cannot be written"));
                format!("blocks[{number}] {shown}: {rule}")
            })
        });
        let blocks = blocks.collect::<Result<_, _>>()?;
        Ok(Message { step: self.step, from, to, route, blocks })
    }
}

/// A block, or a part of one.
fn block(listed: &[u64], problem: Problem) -> Result<(Block, Part), String> {
    let Problem { operation, ranks, block_bytes, .. } = problem;
    let (block, first, end) = match (operation, listed) {
        (Collective::AllToAll, &[source, destination, first, end]) => {
            let (from, to) =
                (rank("source", source, ranks)?, rank("destination", destination, ranks)?);
            (Block { from, to }, first, end)
        }
        (Collective::AllGather, &[source, first, end]) => {
            (Block::of(rank("source", source, ranks)?), first, end)
        }
        (Collective::AllToAll, _) => {
            return Err("alltoall requires [source, destination, first byte, end byte]".to_owned());
        }
        (Collective::AllGather, _) => {
            return Err("allgather requires [source, first byte, end byte]".to_owned());
        }
    };
    if first >= end {
        return Err(format!("first byte {first} is not below end byte {end}"));
    }
    if end > block_bytes {
        return Err(format!("end byte {end} is above block_bytes of the header, {block_bytes}"));
    }
    let whole = first == 0 && end == block_bytes;
    Ok((block, if whole { Part::Whole } else { Part::Bytes { first, end } }))
}
