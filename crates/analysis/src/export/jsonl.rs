//! JSON lines: a header, then one message a line (see [`topocoll_schedule::jsonl`]).

use std::io::Write;

use topocoll_schedule::jsonl::{Header, Line};
use topocoll_schedule::{Block, Collective, Part, Schedule, Transfer};
use topocoll_topology::{Machine, Rank, Route, Shape, Topology};

use crate::replay::Replay;
use crate::{AnalysisError, Counts};

/// The most bytes that are written.
const LIMIT: u128 = 4 << 30;

/// Bytes of the listing, from its counts: an estimate from above, within a small factor.
#[must_use]
pub fn estimate(schedule: &Schedule, counts: &Counts, one_rank: bool) -> u128 {
    let digits = |value: u64| u128::from(value.max(1).ilog10() + 1);
    let per_block = 2 * digits(schedule.problem.ranks.into()) + digits(schedule.problem.block_bytes) + 7;
    let blocks = counts.bytes / u128::from(schedule.problem.block_bytes);
    let senders = if one_rank { 1 } else { u128::from(schedule.problem.ranks) };
    senders * (blocks * per_block + u128::from(counts.steps) * 80)
}

/// Writes the messages of a schedule, or those that one rank sends, ordered by step, then sender.
///
/// # Errors
/// A listing of more than 4 GiB, known before it starts; too little memory for the replay that
/// finds the blocks; or output that cannot be written.
pub fn write(
    schedule: &Schedule,
    machine: &Machine,
    counts: &Counts,
    only: Option<Rank>,
    memory: u128,
    mut out: impl Write,
) -> Result<(), AnalysisError> {
    let bytes = estimate(schedule, counts, only.is_some());
    if bytes > LIMIT {
        return Err(AnalysisError::Listing { bytes, limit: LIMIT });
    }
    let failed = |e: std::io::Error| AnalysisError::Write(e.to_string());
    let mut replay = Replay::new(schedule, memory)?;
    let header = Header::of(schedule, &*machine.topology);
    line(&mut out, &header).map_err(failed)?;
    // Steps without messages are not numbered, so that readers see no gaps.
    let mut number = 0;
    for step in 0..schedule.rule().steps() {
        replay.look(step);
        // A schedule that breaks its own rules is written as far as it goes.
        if replay.copy(step).is_err() {
            break;
        }
        let mut any = false;
        for (rank, does) in replay.steps.iter().enumerate() {
            let from = Rank(rank as u32);
            any |= !does.sends.is_empty();
            if only.is_none_or(|only| only == from) {
                for send in &does.sends {
                    line(&mut out, &message(&replay, schedule, machine, number, from, send)).map_err(failed)?;
                }
            }
        }
        number += u32::from(any);
        if replay.transfer(step, machine).is_err() {
            break;
        }
    }
    out.flush().map_err(failed)
}

fn line(out: &mut impl Write, value: &impl serde::Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

fn message(
    replay: &Replay<'_>,
    schedule: &Schedule,
    machine: &Machine,
    step: u32,
    from: Rank,
    send: &Transfer,
) -> Line {
    let mut route = Route::default();
    if let Shape::Grid(grid) = machine.topology.shape() {
        if send.route.is_empty() {
            Topology::route(grid, from, send.peer, &mut route);
        } else {
            route = send.route.clone();
        }
    }
    let block_bytes = schedule.problem.block_bytes;
    let listed = |(slot, part): (u64, Part)| {
        let Block { from, to } = replay.block(from, slot, part)?;
        let (first, end) = match part {
            Part::Whole => (0, block_bytes),
            Part::Bytes { first, end } => (first, end),
        };
        Some(match schedule.problem.operation {
            Collective::AllToAll => vec![from.0.into(), to.0.into(), first, end],
            Collective::AllGather => vec![from.0.into(), first, end],
        })
    };
    Line {
        step,
        from: from.0,
        to: send.peer.0,
        route: route.segments().iter().map(|segment| (segment.dimension, segment.hops)).collect(),
        blocks: send.slots.slots().filter_map(listed).collect(),
    }
}
