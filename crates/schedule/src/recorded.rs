use hashbrown::HashMap;
use topocoll_topology::{Rank, Route};

use crate::{Block, Collective, Part, Problem, RankClasses, Rule, Slot, SlotSet, Step};

/// A message named by the blocks it carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The step it travels in.
    pub step: u32,
    /// Its sender.
    pub from: Rank,
    /// Its receiver.
    pub to: Rank,
    /// Its way through a grid; empty for the machine's own route.
    pub route: Route,
    /// What it carries, in order.
    pub blocks: Vec<(Block, Part)>,
}

/// The rule that is a list: schedules from files, hand edits, counterexamples.
///
/// Blocks become slots: at every rank the blocks it starts with come first, and each block that
/// passes through gets the next free slot.
#[derive(Debug)]
pub struct Recorded {
    problem: Problem,
    steps: u32,
    slots: u64,
    cuts: Vec<u64>,
    /// The blocks of each rank's slots after those it starts with.
    passing: Vec<Vec<Block>>,
    /// Sorted by step and rank.
    sends: Vec<End>,
    receives: Vec<End>,
}

/// One end of a message.
#[derive(Debug)]
struct End {
    at: (u32, Rank),
    peer: Rank,
    slots: SlotSet,
    route: Route,
}

impl Recorded {
    /// The rule of these messages, whose ranks, blocks and byte ranges lie within `problem`.
    #[must_use]
    pub fn new(problem: Problem, messages: Vec<Message>) -> Self {
        let mut recorded = Self {
            problem,
            steps: messages.iter().map(|message| message.step + 1).max().unwrap_or(0),
            slots: 0,
            cuts: Vec::new(),
            passing: vec![Vec::new(); problem.ranks as usize],
            sends: Vec::with_capacity(messages.len()),
            receives: Vec::with_capacity(messages.len()),
        };
        let mut numbers: Vec<HashMap<Block, Slot>> = vec![HashMap::new(); problem.ranks as usize];
        for message in messages {
            let (mut sent, mut received) = (SlotSet::default(), SlotSet::default());
            for (block, part) in message.blocks {
                sent.push_slot(recorded.slot_of(&mut numbers, message.from, block), part);
                received.push_slot(recorded.slot_of(&mut numbers, message.to, block), part);
                if let Part::Bytes { first, end } = part {
                    recorded.cuts.extend([first, end]);
                }
            }
            let (from, to, step) = (message.from, message.to, message.step);
            recorded.sends.push(End {
                at: (step, from),
                peer: to,
                slots: sent,
                route: message.route,
            });
            recorded.receives.push(End {
                at: (step, to),
                peer: from,
                slots: received,
                route: Route::default(),
            });
        }
        let passing = recorded.passing.iter().map(Vec::len).max().unwrap_or(0);
        recorded.slots = u64::from(problem.blocks_at_start()) + passing as u64;
        recorded.cuts.retain(|&cut| cut > 0 && cut < problem.block_bytes);
        recorded.cuts.sort_unstable();
        recorded.cuts.dedup();
        // Stable, so that the messages between two ranks keep their order.
        recorded.sends.sort_by_key(|end| end.at);
        recorded.receives.sort_by_key(|end| end.at);
        recorded
    }

    fn slot_of(&mut self, numbers: &mut [HashMap<Block, Slot>], rank: Rank, block: Block) -> Slot {
        if block.from == rank {
            return match self.problem.operation {
                Collective::AllToAll => Slot::from(block.to.0),
                Collective::AllGather => 0,
            };
        }
        let passing = &mut self.passing[rank.index()];
        *numbers[rank.index()].entry(block).or_insert_with(|| {
            passing.push(block);
            Slot::from(self.problem.blocks_at_start()) + passing.len() as Slot - 1
        })
    }
}

impl Rule for Recorded {
    fn steps(&self) -> u32 {
        self.steps
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        for send in at(&self.sends, (step, rank)) {
            out.send(send.peer, send.slots.clone(), send.route.clone());
        }
        for receive in at(&self.receives, (step, rank)) {
            out.receive(receive.peer, receive.slots.clone());
        }
    }

    fn slots(&self) -> u64 {
        self.slots
    }

    fn start(&self, rank: Rank, slot: Slot) -> Option<Block> {
        if slot >= Slot::from(self.problem.blocks_at_start()) {
            return None;
        }
        Some(match self.problem.operation {
            Collective::AllToAll => Block { from: rank, to: Rank(slot as u32) },
            Collective::AllGather => Block::of(rank),
        })
    }

    fn finish(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let block = match slot.checked_sub(Slot::from(self.problem.blocks_at_start())) {
            None => self.start(rank, slot),
            Some(i) => self.passing[rank.index()].get(i as usize).copied(),
        };
        block.filter(|block| *block == self.problem.wanted(block.from, rank))
    }

    fn classes(&self) -> RankClasses {
        RankClasses::distinct(self.problem.ranks)
    }

    fn cuts(&self) -> &[u64] {
        &self.cuts
    }
}

fn at(ends: &[End], at: (u32, Rank)) -> &[End] {
    let first = ends.partition_point(|end| end.at < at);
    let count = ends[first..].partition_point(|end| end.at == at);
    &ends[first..first + count]
}
