//! The blocks that each message of a schedule carries.

use topocoll_schedule::{Block, Part, Schedule, SlotSet, Step};
use topocoll_topology::{Rank, Route};

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
}

/// No piece.
const NONE: u32 = u32::MAX;

impl Followed {
    /// Follows every piece from slot to slot.
    pub(super) fn new(schedule: &Schedule) -> Self {
        let (rule, problem) = (schedule.rule(), schedule.problem);
        let ranks = problem.ranks as usize;
        let ends = [&[0], rule.cuts(), &[problem.block_bytes]].concat();
        let parts: Vec<Part> = match rule.cuts() {
            [] => vec![Part::Whole],
            _ => ends.windows(2).map(|ends| Part::Bytes { first: ends[0], end: ends[1] }).collect(),
        };
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
                let moved = match part {
                    Part::Whole => 0..pieces,
                    Part::Bytes { first, end } => {
                        let place =
                            |byte| ends.binary_search(&byte).expect("bug: a cut not listed");
                        place(first)..place(end)
                    }
                };
                let first = (rank.index() * slots + slot as usize) * pieces;
                out.extend(moved.map(|part| first + part));
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
        let sizes = match &parts[..] {
            [_] => vec![1],
            _ => parts.iter().map(|part| part.bytes(problem.block_bytes)).collect(),
        };
        Self { ranks, parts, sizes, steps: rule.steps(), sent, paths }
    }

    /// The messages that carry each piece: the block's source and destination, the number of the part, and
    /// the messages. A rank's own block has none.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (usize, usize, usize, &[u32])> {
        self.paths.iter().enumerate().map(|(piece, path)| {
            let (block, part) = (piece / self.parts.len(), piece % self.parts.len());
            (block / self.ranks, block % self.ranks, part, &path[..])
        })
    }
}
