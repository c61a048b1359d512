//! Messages as records, and the slots that they move.

use std::collections::{HashMap, VecDeque};

use topocoll::{
    AnalysisError, Machine, Part, Rank, Route, Schedule, SlotSet, Step, check_counting_work,
    check_memory, count,
};

use crate::schedule::memory;
use crate::watch::Watch;

/// Bytes of the record of a message, as `schedule.py` names its fields.
const RECORD: usize = 40;

/// Checks that an array fits in memory.
pub(crate) fn check(what: &'static str, bytes: u128) -> Result<(), AnalysisError> {
    check_memory(what, bytes, memory())
}

/// The records of all messages between ranks, by step, then sender, then port.
pub(crate) fn messages(
    schedule: &Schedule,
    machine: &Machine,
    watch: &Watch,
) -> Result<Vec<u8>, AnalysisError> {
    check_counting_work(schedule, machine)?;
    let all = count(schedule, machine, None, memory())?.messages;
    check("the array of messages", all * RECORD as u128)?;
    let (rule, block_bytes) = (schedule.rule(), schedule.problem.block_bytes);
    let mut records = Vec::with_capacity(all as usize * RECORD);
    let (mut does, mut own) = (Step::default(), Route::default());
    watch.start(rule.steps().into());
    for step in 0..rule.steps() {
        for from in (0..schedule.problem.ranks).map(Rank) {
            rule.step(from, step, &mut does);
            for send in &does.sends {
                let bytes = u64::try_from(send.slots.bytes(block_bytes)).unwrap_or(u64::MAX);
                let packed = if send.slots.is_contiguous(block_bytes) { 0 } else { bytes };
                let route = send.route_from(from, &*machine.topology, &mut own);
                for field in [step, from.0, send.peer.0, send.port.0] {
                    records.extend_from_slice(&field.to_ne_bytes());
                }
                for field in [bytes, packed] {
                    records.extend_from_slice(&field.to_ne_bytes());
                }
                for field in [route.hops(), send.slots.len()] {
                    let field = u32::try_from(field).unwrap_or(u32::MAX);
                    records.extend_from_slice(&field.to_ne_bytes());
                }
            }
        }
        watch.add(1);
    }
    Ok(records)
}

/// The moves of a schedule in pieces: a slot has a piece more than blocks have cuts, and the pieces of slot s
/// follow those of slot s - 1.
#[derive(Default)]
pub(crate) struct Program {
    /// Step, sender, receiver and number of pieces of each message, four numbers each; in the order of
    /// [`messages`].
    pub(crate) messages: Vec<u32>,
    /// The pieces sent by all messages, and the pieces that they land in.
    pub(crate) sent: Vec<i64>,
    pub(crate) received: Vec<i64>,
    /// Step, rank and number of pieces of each rearrangement, three numbers each.
    pub(crate) copies: Vec<u32>,
    pub(crate) copied_from: Vec<i64>,
    pub(crate) copied_to: Vec<i64>,
}

pub(crate) fn program(schedule: &Schedule, watch: &Watch) -> Result<Program, String> {
    let (rule, mut program) = (schedule.rule(), Program::default());
    if !rule.names_blocks() {
        return Err("the schedule has message sizes but no blocks: it cannot be carried out".into());
    }
    let pieces = Pieces { cuts: rule.cuts(), block_bytes: schedule.problem.block_bytes };
    let ranks = schedule.problem.ranks as usize;
    let mut steps = vec![Step::default(); ranks];
    watch.start(rule.steps().into());
    for step in 0..rule.steps() {
        let mut landing: HashMap<(Rank, Rank), VecDeque<&SlotSet>> = HashMap::new();
        for (rank, does) in (0..).zip(&mut steps) {
            rule.step(Rank(rank), step, does);
        }
        for (rank, does) in (0..).zip(&steps) {
            for receive in &does.receives {
                landing.entry((receive.peer, Rank(rank))).or_default().push_back(&receive.slots);
            }
            for copy in &does.copies {
                let first = program.copied_from.len();
                pieces.list(&copy.from, &mut program.copied_from);
                pieces.list(&copy.to, &mut program.copied_to);
                program.copies.extend([step, rank, (program.copied_from.len() - first) as u32]);
            }
        }
        for (rank, does) in (0..).zip(&steps) {
            for send in &does.sends {
                let slots = landing.get_mut(&(Rank(rank), send.peer)).and_then(VecDeque::pop_front);
                let slots = slots.ok_or_else(|| {
                    let to = send.peer;
                    format!("step {step}: rank {to} does not receive the message of rank {rank}")
                })?;
                let first = program.sent.len();
                pieces.list(&send.slots, &mut program.sent);
                pieces.list(slots, &mut program.received);
                let moved = (program.sent.len() - first) as u32;
                program.messages.extend([step, rank, send.peer.0, moved]);
            }
        }
        let taken = program.sent.len() + program.copied_from.len();
        check("the slots of all messages", taken as u128 * 16).map_err(|e| e.to_string())?;
        watch.add(1);
    }
    Ok(program)
}

/// The pieces of blocks.
struct Pieces<'r> {
    cuts: &'r [u64],
    block_bytes: u64,
}

impl Pieces<'_> {
    fn list(&self, slots: &SlotSet, out: &mut Vec<i64>) {
        let each = self.cuts.len() as u64 + 1;
        for (slot, part) in slots.slots() {
            let (first, end) = match part {
                Part::Whole => (0, self.block_bytes),
                Part::Bytes { first, end } => (first, end),
            };
            let piece = |byte: u64| self.cuts.partition_point(|&cut| cut <= byte) as u64;
            let last = piece(end - 1);
            out.extend((piece(first)..=last).map(|piece| (slot * each + piece) as i64));
        }
    }
}
