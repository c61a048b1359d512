use std::io::Write;

use rayon::prelude::*;
use topocoll_schedule::{Block, Collective, Part, Schedule, Slot, Step, Transfer};
use topocoll_topology::{LinkId, Machine, Rank, Route, Shape, parallel};

use super::{Header, MessageLine};
use crate::error::failed;
use crate::formats::{Listing, Source, check};
use crate::origin::Origin;
use crate::replay::Replay;
use crate::{AnalysisError, REPLAY_UP_TO, Violation, check_named};

/// The most steps back to trace the blocks of one rank: a minute or two.
const TRACE_LIMIT: u128 = 1_000_000_000;

impl Listing {
    /// An upper estimate of its bytes, within a small factor.
    fn bytes(&self, schedule: &Schedule) -> u128 {
        let digits = |value: u64| u128::from(value.max(1).ilog10() + 1);
        let problem = &schedule.problem;
        let block = 2 * digits(problem.ranks.into()) + 2 * digits(problem.block_bytes) + 6;
        self.blocks * block + self.messages * 80
    }
}

/// Writes the messages of a schedule, or of one sender, ordered by step, then sender.
///
/// Blocks are found by replay. For one rank of more than [`REPLAY_UP_TO`], each of its blocks is
/// traced back.
///
/// # Errors
/// A listing of more than 4 GiB, too little memory, or too much work, all before anything is
/// written; or output that cannot be written.
pub fn write(source: &Source<'_>, mut out: &mut dyn Write) -> Result<(), AnalysisError> {
    let &Source { schedule, machine, only, memory } = source;
    check_named(schedule)?;
    let listing = Listing::of(schedule, only);
    check(listing.bytes(schedule))?;
    match only {
        Some(rank) if schedule.problem.ranks > REPLAY_UP_TO => {
            trace(schedule, machine, &listing, rank, &mut out)
        }
        _ => replay(schedule, machine, only, memory, &mut out),
    }?;
    out.flush().map_err(failed)
}

fn replay(
    schedule: &Schedule,
    machine: &Machine,
    only: Option<Rank>,
    memory: u128,
    out: &mut impl Write,
) -> Result<(), AnalysisError> {
    let mut replay = Replay::new(schedule, memory)?;
    header(schedule, machine, out)?;
    // Steps without messages are not numbered, so that files have no gaps.
    let mut number = 0;
    for step in 0..schedule.rule().steps() {
        replay.look(step);
        replay.copy(step).map_err(AnalysisError::Broken)?;
        let mut any = false;
        for (rank, does) in replay.steps.iter().enumerate() {
            let from = Rank(rank as u32);
            any |= !does.sends.is_empty();
            if only.is_none_or(|only| only == from) {
                for send in &does.sends {
                    let listed = send
                        .slots
                        .slots()
                        .map(|(slot, part)| (replay.block(from, slot, part), part));
                    line(out, &message(schedule, machine, number, from, send, listed))?;
                }
            }
        }
        number += u32::from(any);
        let broken =
            |violation: Violation| AnalysisError::Broken(violation.in_list(schedule.rule()));
        replay.transfer(step, machine).map_err(broken)?;
    }
    Ok(())
}

fn trace(
    schedule: &Schedule,
    machine: &Machine,
    listing: &Listing,
    rank: Rank,
    out: &mut impl Write,
) -> Result<(), AnalysisError> {
    if let Some(&cut) = schedule.rule().cuts().first() {
        return Err(AnalysisError::Split { cut });
    }
    let needed = listing.blocks * u128::from(schedule.rule().steps());
    if needed > TRACE_LIMIT {
        return Err(AnalysisError::Tracing { needed, limit: TRACE_LIMIT });
    }
    header(schedule, machine, out)?;
    let mut does = Step::default();
    for step in 0..schedule.rule().steps() {
        schedule.rule().step(rank, step, &mut does);
        for send in &does.sends {
            let slots: Vec<(Slot, Part)> = send.slots.slots().collect();
            let listed: Vec<_> = parallel::each(slots)
                .map_init(
                    || Origin::new(schedule),
                    |origin, (slot, part)| (origin.block(rank, slot, step), part),
                )
                .collect();
            line(out, &message(schedule, machine, step, rank, send, listed.into_iter()))?;
        }
    }
    Ok(())
}

fn header(
    schedule: &Schedule,
    machine: &Machine,
    out: &mut impl Write,
) -> Result<(), AnalysisError> {
    line(out, &Header::of(schedule, machine))
}

fn line(out: &mut impl Write, value: &impl serde::Serialize) -> Result<(), AnalysisError> {
    serde_json::to_writer(&mut *out, value).map_err(failed)?;
    out.write_all(b"\n").map_err(failed)
}

fn message(
    schedule: &Schedule,
    machine: &Machine,
    step: u32,
    from: Rank,
    send: &Transfer,
    listed: impl Iterator<Item = (Option<Block>, Part)>,
) -> MessageLine {
    let mut own = Route::default();
    let topology = &*machine.topology;
    let given = send.route_from(from, topology, &mut own);
    let (mut route, mut links) = (None, None);
    match topology.network() {
        _ if given.is_empty() => {}
        Shape::Graph(_) => {
            let numbers = links.insert(Vec::new());
            topology.for_each_link(from, given, &mut |LinkId(link)| numbers.push(link));
        }
        _ => {
            let segments = given.segments().iter();
            route = Some(segments.map(|segment| (segment.dimension, segment.hops)).collect());
        }
    }
    let block_bytes = schedule.problem.block_bytes;
    let numbers = |(block, part): (Option<Block>, Part)| {
        let Block { from, to } = block?;
        let (first, end) = match part {
            Part::Whole => (0, block_bytes),
            Part::Bytes { first, end } => (first, end),
        };
        Some(match schedule.problem.operation {
            Collective::AllToAll => vec![from.0.into(), to.0.into(), first, end],
            Collective::AllGather => vec![from.0.into(), first, end],
        })
    };
    MessageLine {
        step,
        from: from.0,
        to: send.peer.0,
        route,
        links,
        blocks: listed.filter_map(numbers).collect(),
    }
}
