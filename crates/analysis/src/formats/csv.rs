//! Comma-separated values: a message a line, ordered by step, then sender.
//!
//! Reading a written file and writing it again gives the same bytes. `packed` and `route` are
//! optional: without them nothing is packed, and routes are the machine's.

use std::io::{BufRead, Write};

use topocoll_schedule::{Schedule, SizedMessage};
use topocoll_topology::Rank;

use super::lines::Lines;
use super::local::Local;
use super::messages::{Sized, beginning, check_step, ends, number, route};
use super::{Listing, ReadError, Source, Target, failed};
use crate::AnalysisError;

/// The columns.
const COLUMNS: [&str; 6] = ["step", "from", "to", "bytes", "packed", "route"];

/// The number of required columns.
const NEEDED: usize = 4;

/// Bytes of a line, about.
const LINE: u128 = 60;

pub(super) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), AnalysisError> {
    Listing::check_messages(source, LINE)?;
    let mut local = Local::new(source);
    writeln!(out, "{}", COLUMNS.join(",")).map_err(failed)?;
    for step in 0..source.schedule.rule().steps() {
        let all = (0..source.schedule.problem.ranks).map(Rank);
        for rank in all.filter(|&rank| source.only.is_none_or(|only| only == rank)) {
            local.look(rank, step);
            for sent in &local.sends {
                // Dimension and signed hops of each segment, in the order travelled.
                let segments = sent.route.segments().iter();
                let route: Vec<String> =
                    segments.map(|s| format!("{}:{:+}", s.dimension, s.hops)).collect();
                let (to, bytes, packed) = (sent.to, sent.bytes, sent.packed);
                let route = route.join(" ");
                writeln!(out, "{step},{rank},{to},{bytes},{packed},{route}").map_err(failed)?;
            }
        }
    }
    out.flush().map_err(failed)
}

pub(super) fn read(input: &mut dyn BufRead, target: &Target<'_>) -> Result<Schedule, ReadError> {
    let mut lines = Lines::new(input, target.seen);
    let columns = columns(lines.next()?.unwrap_or_default());
    let columns = columns.map_err(|message| lines.error(message))?;
    let mut messages = Sized::new(target).map_err(|message| lines.error(message))?;
    let (mut after, mut count) = (0, 0);
    while let Some(line) = lines.next()? {
        let read = message(line, columns, target).and_then(|message| {
            check_step(message.step, after, count)?;
            after = message.step;
            count += 1;
            messages.push(&message)
        });
        read.map_err(|message| lines.error(message))?;
    }
    Ok(messages.schedule("csv"))
}

/// The number of columns of a file.
fn columns(line: &str) -> Result<usize, String> {
    let there = line.split(',').count();
    let known = NEEDED..=COLUMNS.len();
    if known.contains(&there) && COLUMNS[..there].iter().copied().eq(line.split(',')) {
        return Ok(there);
    }
    let (all, needed) = (COLUMNS.join(","), COLUMNS[..NEEDED].join(","));
    Err(format!("the first line must be {all}, or the first of these columns, at least {needed}"))
}

fn message(line: &str, columns: usize, target: &Target<'_>) -> Result<SizedMessage, String> {
    let mut fields = [""; COLUMNS.len()];
    let there = line.split(',').count();
    if there != columns {
        return Err(format!("{there} values for {columns} columns"));
    }
    for (field, text) in fields.iter_mut().zip(line.split(',')) {
        *field = text;
    }
    let [step, from, to, bytes, packed, hops] = fields;
    let ranks = target.topology.ranks();
    let ends = ends(number("from", from)?, number("to", to)?, ranks)?;
    let bytes = number("bytes", bytes)?;
    let packed = match packed {
        "" | "0" => false,
        packed => {
            let packed: u64 = number("packed", packed)?;
            if packed != bytes || bytes < 2 {
                return Err(format!(
                    "packed {packed} of {bytes} bytes: packed is 0 or all bytes, and a message of 1 byte is not packed"
                ));
            }
            true
        }
    };
    let mut segments = Vec::new();
    for segment in hops.split(' ').filter(|_| !hops.is_empty()) {
        let parsed = segment
            .split_once(':')
            .and_then(|(u, hops)| Some((u.parse().ok()?, hops.parse().ok()?)));
        segments.push(parsed.ok_or_else(|| {
            let shown = beginning(segment);
            format!("route `{shown}` is not a dimension and signed hops, such as 0:+2")
        })?);
    }
    Ok(SizedMessage {
        step: number("step", step)?,
        from: ends.0,
        to: ends.1,
        route: match hops {
            "" => None,
            hops => Some(
                route(&segments, ends, target.topology)
                    .map_err(|rule| format!("route {}: {rule}", beginning(hops)))?,
            ),
        },
        bytes,
        packed,
    })
}
