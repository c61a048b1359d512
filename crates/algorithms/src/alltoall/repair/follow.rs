//! The blocks that each message of a schedule carries.

use std::ops::Range;

use topocoll_schedule::{Block, Part, Schedule, SlotSet, Step};
use topocoll_topology::{Rank, Route, Topology};

use super::equivalent::Equivalent;

/// A message; an empty route stands for the machine's own.
pub(super) struct Sent {
    pub(super) step: u32,
    pub(super) from: Rank,
    pub(super) to: Rank,
    pub(super) route: Route,
}

/// A schedule by its messages. Blocks that are split anywhere are split everywhere, into pieces.
pub(super) struct Followed {
    ranks: usize,
    /// The pieces of a block, and their sizes in bytes; 1 if blocks are not split.
    pub(super) parts: Vec<Part>,
    pub(super) sizes: Vec<u64>,
    pub(super) steps: u32,
    /// In the order of steps.
    pub(super) sent: Vec<Sent>,
    /// By block, source by source, and piece: the messages that carry it, in order.
    paths: Vec<Vec<u32>>,
    /// Those of one rank of each class instead.
    pub(super) equivalent: Option<Equivalent>,
}

/// No piece, link or connection.
pub(super) const NONE: u32 = u32::MAX;

impl Followed {
    /// The messages of one rank of each class stand for all; `None` if [`Equivalent`] does not serve them.
    pub(super) fn equivalent(schedule: &Schedule, machine: &dyn Topology) -> Option<Self> {
        let parts = parts(schedule);
        let mut followed = Self::of(schedule, parts, Vec::new());
        let made = Equivalent::new(schedule, machine, &followed.parts, &followed.sizes)?;
        let sent = made.all().map(|(pattern, from)| {
            let (step, to) = (pattern.step, made.receiver(pattern, from));
            Sent { step, from, to, route: pattern.route.clone() }
        });
        followed.sent = sent.collect();
        followed.equivalent = Some(made);
        Some(followed)
    }

    fn of(schedule: &Schedule, parts: Vec<Part>, sent: Vec<Sent>) -> Self {
        let problem = schedule.problem;
        let sizes = match &parts[..] {
            [_] => vec![1],
            _ => parts.iter().map(|part| part.bytes(problem.block_bytes)).collect(),
        };
        let (ranks, steps) = (problem.ranks as usize, schedule.rule().steps());
        Self { ranks, parts, sizes, steps, sent, paths: Vec::new(), equivalent: None }
    }

    /// Follows every piece from slot to slot.
    pub(super) fn listed(schedule: &Schedule) -> Self {
        let (rule, ranks) = (schedule.rule(), schedule.problem.ranks as usize);
        let parts = parts(schedule);
        let (pieces, slots) = (parts.len(), rule.slots() as usize);
        let mut held = vec![NONE; ranks * slots * pieces];
        let mut at = vec![NONE; ranks * ranks * pieces];
        let mut layout = Vec::new();
        for rank in 0..ranks {
            rule.initial_layout(Rank(rank as u32), &mut layout);
            for (slot, block) in layout.iter().enumerate() {
                let Some(Block { from, to }) = *block else { continue };
                for part in 0..pieces {
                    let piece = (from.index() * ranks + to.index()) * pieces + part;
                    held[(rank * slots + slot) * pieces + part] = piece as u32;
                    at[piece] = rank as u32;
                }
            }
        }
        // The places of the pieces of some slots, in order.
        let places = |rank: Rank, set: &SlotSet, out: &mut Vec<usize>| {
            out.clear();
            for (slot, part) in set.slots() {
                let first = (rank.index() * slots + slot as usize) * pieces;
                out.extend(pieces_of(&parts, part).map(|piece| first + piece));
            }
        };
        let (mut sent, mut paths) = (Vec::new(), vec![Vec::new(); at.len()]);
        let mut does = vec![Step::default(); ranks];
        let (mut reads, mut writes, mut moved) = (Vec::new(), Vec::new(), Vec::new());
        for step in 0..rule.steps() {
            for (rank, does) in (0..).map(Rank).zip(&mut does) {
                rule.step(rank, step, does);
                moved.clear();
                for copy in &does.copies {
                    places(rank, &copy.from, &mut reads);
                    places(rank, &copy.to, &mut writes);
                    moved.extend(writes.iter().zip(&reads).map(|(&to, &from)| (to, held[from])));
                }
                moved.iter().for_each(|&(to, piece)| held[to] = piece);
            }
            moved.clear();
            for (from, own) in (0..).map(Rank).zip(&does) {
                for (place, send) in own.sends.iter().enumerate() {
                    // The sends and receives of two ranks pair in order.
                    let before =
                        own.sends[..place].iter().filter(|one| one.peer == send.peer).count();
                    let mut receives = does[send.peer.index()].receives.iter();
                    let receive = receives.by_ref().filter(|one| one.peer == from).nth(before);
                    let receive = receive.expect("bug: a message that is not received");
                    places(from, &send.slots, &mut reads);
                    places(send.peer, &receive.slots, &mut writes);
                    for (&read, &write) in reads.iter().zip(&writes) {
                        let piece = held[read];
                        moved.push((write, piece));
                        if piece != NONE && at[piece as usize] == from.0 {
                            paths[piece as usize].push(sent.len() as u32);
                        }
                    }
                    sent.push(Sent { step, from, to: send.peer, route: send.route.clone() });
                }
            }
            for &(place, piece) in &moved {
                held[place] = piece;
                if piece != NONE {
                    at[piece as usize] = (place / (slots * pieces)) as u32;
                }
            }
        }
        Self { paths, ..Self::of(schedule, parts, sent) }
    }

    /// The source and the destination of every block, and by piece the messages that carry it. A rank's own block
    /// has none.
    pub(super) fn blocks(&self) -> impl Iterator<Item = ([usize; 2], &[Vec<u32>])> {
        let blocks = self.paths.chunks(self.parts.len()).enumerate();
        blocks.map(|(block, paths)| ([block / self.ranks, block % self.ranks], paths))
    }

    /// By message, the pieces that it carries of blocks whose source and destination have not failed.
    pub(super) fn pieces(&self, nodes: &[Option<u32>]) -> Vec<u32> {
        let mut pieces = vec![0; self.sent.len()];
        let is_kept = |ends: [usize; 2]| ends.iter().all(|&rank| nodes[rank].is_some());
        let Some(equivalent) = &self.equivalent else {
            for (_, paths) in self.blocks().filter(|(ends, _)| is_kept(*ends)) {
                paths.iter().flatten().for_each(|&message| pieces[message as usize] += 1);
            }
            return pieces;
        };
        for ((pattern, _), pieces) in equivalent.all().zip(&mut pieces) {
            *pieces = pattern.pieces;
        }
        for block in equivalent.failed(nodes) {
            for piece in 0..equivalent.pieces {
                equivalent
                    .messages(block, piece)
                    .for_each(|(message, _)| pieces[message as usize] -= 1);
            }
        }
        pieces
    }
}

/// The numbers of the pieces in a part of a block.
pub(super) fn pieces_of(parts: &[Part], part: Part) -> Range<usize> {
    let begin = |part: &Part| match *part {
        Part::Whole => 0,
        Part::Bytes { first, .. } => first,
    };
    match part {
        Part::Whole => 0..parts.len(),
        Part::Bytes { end, .. } => {
            let before = |byte| parts.partition_point(|piece| begin(piece) < byte);
            before(begin(&part))..before(end)
        }
    }
}

/// The pieces of a block.
pub(super) fn parts(schedule: &Schedule) -> Vec<Part> {
    let cuts = schedule.rule().cuts();
    let ends = [&[0], cuts, &[schedule.problem.block_bytes]].concat();
    match cuts {
        [] => vec![Part::Whole],
        _ => ends.windows(2).map(|ends| Part::Bytes { first: ends[0], end: ends[1] }).collect(),
    }
}
