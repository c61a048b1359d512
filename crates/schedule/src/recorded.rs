use std::hash::Hash;

use hashbrown::HashMap;
use topocoll_topology::{Rank, Route};

use crate::{Block, Collective, Part, Problem, RankClasses, Rule, Slot, SlotSet, Step, Strided};

/// A message named by the blocks it carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The step it travels in.
    pub step: u32,
    /// Its sender.
    pub from: Rank,
    /// Its receiver.
    pub to: Rank,
    /// Its route through a grid, of at least one hop; `None` for the machine's own.
    pub route: Option<Route>,
    /// Its blocks, in order.
    pub blocks: Vec<(Block, Part)>,
}

/// A message of which only the size is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SizedMessage {
    /// The step it travels in.
    pub step: u32,
    /// Its sender.
    pub from: Rank,
    /// Its receiver.
    pub to: Rank,
    /// Its route through a grid, of at least one hop; `None` for the machine's own.
    pub route: Option<Route>,
    /// Its bytes, at least 1.
    pub bytes: u64,
    /// Whether they come from two places at the sender and are packed; then there are at least 2.
    pub packed: bool,
}

/// A rule made of listed messages: schedules from files, hand edits, counterexamples.
///
/// Blocks become slots: at every rank the blocks it starts with come first, and each block that
/// passes through gets the next free slot. If messages have only sizes, a slot is a byte, and the
/// layouts are empty.
#[derive(Debug)]
pub struct Recorded {
    problem: Problem,
    named: bool,
    steps: u32,
    slots: u64,
    cuts: Vec<u64>,
    /// The blocks of each rank's slots after those it starts with.
    passing: Vec<Vec<Block>>,
    /// Sorted by step and rank.
    sends: Vec<RecordedEnd>,
    receives: Vec<RecordedEnd>,
    pieces: Vec<SlotRange>,
    parts: Vec<Part>,
    routes: Vec<Route>,
}

/// One end of a message. Slots, parts and routes are numbered, as millions of messages share few.
#[derive(Debug)]
struct RecordedEnd {
    at: (u32, Rank),
    peer: Rank,
    /// The number of the message.
    message: u32,
    route: u32,
    /// The pieces of its slots.
    first: usize,
    count: u32,
}

/// Consecutive slots with the same part.
#[derive(Clone, Copy, Debug)]
struct SlotRange {
    first: Slot,
    count: u64,
    part: u32,
}

/// Takes messages in the order of their steps and makes a rule of them.
///
/// Either all messages have blocks, or none has.
#[derive(Debug)]
pub struct Recorder {
    recorded: Recorded,
    numbers: Vec<HashMap<Block, Slot>>,
    parts: HashMap<Part, u32>,
    routes: HashMap<Route, u32>,
    /// By rank, the last step in which it receives bytes, and the first free slot in that step.
    free: Vec<(u32, Slot)>,
}

impl Recorder {
    /// A rule of no messages for `problem`.
    #[must_use]
    pub fn new(problem: Problem) -> Self {
        let ranks = problem.ranks as usize;
        let recorded = Recorded {
            problem,
            named: true,
            steps: 0,
            slots: problem.blocks_at_start().into(),
            cuts: Vec::new(),
            passing: vec![Vec::new(); ranks],
            sends: Vec::new(),
            receives: Vec::new(),
            pieces: Vec::new(),
            parts: Vec::new(),
            routes: Vec::new(),
        };
        Self {
            recorded,
            numbers: vec![HashMap::new(); ranks],
            parts: HashMap::new(),
            routes: HashMap::new(),
            free: vec![(0, 0); ranks],
        }
    }

    /// The most bytes that a message of `blocks` blocks takes while the rule is made.
    #[must_use]
    pub fn memory(blocks: usize) -> u128 {
        // The capacity of vectors is up to twice their length, that of tables a little more.
        let block = 4 * size_of::<SlotRange>() + 4 * size_of::<(Block, Slot)>();
        (4 * size_of::<RecordedEnd>() + blocks * block) as u128
    }

    /// Adds a message whose ranks, blocks and byte ranges lie within the problem.
    ///
    /// # Panics
    /// A rank that the problem does not have, the step 2^32 - 1, or a route of no hops.
    pub fn push(&mut self, message: &Message) {
        let &Message { step, from, to, .. } = message;
        self.check(step, from, to);
        let route = self.route(message.route.as_ref());
        for (at, peer, sends) in [(from, to, true), (to, from, false)] {
            let first = self.recorded.pieces.len();
            for &(block, part) in &message.blocks {
                let slot = self.slot_of(at, block);
                let part = number(&part, &mut self.parts, &mut self.recorded.parts);
                let pieces = &mut self.recorded.pieces;
                match pieces[first..].last_mut() {
                    Some(last) if last.part == part && last.first + last.count == slot => {
                        last.count += 1;
                    }
                    _ => pieces.push(SlotRange { first: slot, count: 1, part }),
                }
            }
            self.end(sends, (step, at), peer, route, first);
        }
    }

    /// Adds a message of which only the size is known.
    ///
    /// # Panics
    /// As [`push`](Self::push).
    pub fn push_sized(&mut self, message: &SizedMessage) {
        let &SizedMessage { step, from, to, bytes, packed, .. } = message;
        self.check(step, from, to);
        self.recorded.named = false;
        let route = self.route(message.route.as_ref());
        let part = number(&Part::Whole, &mut self.parts, &mut self.recorded.parts);
        let first = self.recorded.pieces.len();
        let apart = if packed { bytes / 2 } else { 0 };
        let pieces = &mut self.recorded.pieces;
        if packed {
            pieces.push(SlotRange { first: 0, count: apart, part });
        }
        pieces.push(SlotRange { first: apart + u64::from(packed), count: bytes - apart, part });
        self.end(true, (step, from), to, route, first);
        // Messages that arrive in one step are placed side by side.
        let (last, free) = &mut self.free[to.index()];
        if *last != step {
            (*last, *free) = (step, 0);
        }
        let place = *free;
        *free += bytes;
        self.recorded.slots = self.recorded.slots.max(*free).max(bytes + u64::from(packed));
        let first = self.recorded.pieces.len();
        self.recorded.pieces.push(SlotRange { first: place, count: bytes, part });
        self.end(false, (step, to), from, route, first);
    }

    /// The rule of all messages added.
    #[must_use]
    pub fn finish(self) -> Recorded {
        let mut recorded = self.recorded;
        if recorded.named {
            let passing = recorded.passing.iter().map(Vec::len).max().unwrap_or(0);
            recorded.slots += passing as u64;
        }
        for part in &recorded.parts {
            if let &Part::Bytes { first, end } = part {
                recorded.cuts.extend([first, end]);
            }
        }
        let block_bytes = recorded.problem.block_bytes;
        recorded.cuts.retain(|&cut| cut > 0 && cut < block_bytes);
        recorded.cuts.sort_unstable();
        recorded.cuts.dedup();
        // Stable, so that the messages between two ranks keep their order.
        recorded.sends.sort_by_key(|end| end.at);
        recorded.receives.sort_by_key(|end| end.at);
        recorded
    }

    fn check(&self, step: u32, from: Rank, to: Rank) {
        let ranks = self.recorded.problem.ranks;
        assert!(
            from.0 < ranks && to.0 < ranks,
            "a message from rank {from} to rank {to} among {ranks} ranks"
        );
        assert!(step < u32::MAX, "steps 0 to 2^32 - 2");
    }

    /// The number of a route; an empty one stands for the machine's own.
    fn route(&mut self, given: Option<&Route>) -> u32 {
        assert!(given.is_none_or(|route| !route.is_empty()), "a route of no hops");
        let own = Route::default();
        number(given.unwrap_or(&own), &mut self.routes, &mut self.recorded.routes)
    }

    fn end(&mut self, sends: bool, at: (u32, Rank), peer: Rank, route: u32, first: usize) {
        let recorded = &mut self.recorded;
        recorded.steps = recorded.steps.max(at.0 + 1);
        let count = (recorded.pieces.len() - first) as u32;
        let ends = if sends { &mut recorded.sends } else { &mut recorded.receives };
        let message = ends.len() as u32;
        ends.push(RecordedEnd { at, peer, message, route, first, count });
    }

    fn slot_of(&mut self, rank: Rank, block: Block) -> Slot {
        let problem = self.recorded.problem;
        if block.from == rank {
            return match problem.operation {
                Collective::AllToAll => Slot::from(block.to.0),
                Collective::AllGather => 0,
            };
        }
        let passing = &mut self.recorded.passing[rank.index()];
        *self.numbers[rank.index()].entry(block).or_insert_with(|| {
            passing.push(block);
            Slot::from(problem.blocks_at_start()) + passing.len() as Slot - 1
        })
    }
}

/// The number of a value; a new value gets the next number.
fn number<T: Clone + Eq + Hash>(value: &T, numbers: &mut HashMap<T, u32>, all: &mut Vec<T>) -> u32 {
    *numbers.entry_ref(value).or_insert_with(|| {
        all.push(value.clone());
        all.len() as u32 - 1
    })
}

impl Recorded {
    fn slots_of(&self, end: &RecordedEnd) -> SlotSet {
        let mut set = SlotSet::default();
        for piece in &self.pieces[end.first..][..end.count as usize] {
            let slots = Strided::contiguous(piece.first, piece.count);
            set.push_part(slots, self.parts[piece.part as usize]);
        }
        set
    }

    /// The block that a slot is for.
    fn block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        match slot.checked_sub(Slot::from(self.problem.blocks_at_start())) {
            None => self.initial_block(rank, slot),
            Some(i) => self.passing[rank.index()].get(i as usize).copied(),
        }
    }
}

impl Rule for Recorded {
    fn steps(&self) -> u32 {
        self.steps
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        for send in at(&self.sends, (step, rank)) {
            let route = self.routes[send.route as usize].clone();
            out.send(send.peer, self.slots_of(send), route);
        }
        for receive in at(&self.receives, (step, rank)) {
            out.receive(receive.peer, self.slots_of(receive));
        }
    }

    fn slots(&self) -> u64 {
        self.slots
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        if !self.named || slot >= Slot::from(self.problem.blocks_at_start()) {
            return None;
        }
        Some(match self.problem.operation {
            Collective::AllToAll => Block { from: rank, to: Rank(slot as u32) },
            Collective::AllGather => Block::of(rank),
        })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.block(rank, slot).filter(|block| *block == self.problem.wanted(block.from, rank))
    }

    fn classes(&self) -> RankClasses {
        RankClasses::distinct(self.problem.ranks)
    }

    fn cuts(&self) -> &[u64] {
        &self.cuts
    }

    fn names_blocks(&self) -> bool {
        self.named
    }

    fn listed(&self, step: u32, rank: Rank, slot: Slot, sends: bool) -> Option<(u32, Block)> {
        let ends = at(if sends { &self.sends } else { &self.receives }, (step, rank));
        let moves = |end: &&RecordedEnd| self.slots_of(end).slots().any(|(moved, _)| moved == slot);
        Some((ends.iter().rfind(moves)?.message, self.block(rank, slot)?))
    }
}

fn at(ends: &[RecordedEnd], at: (u32, Rank)) -> &[RecordedEnd] {
    let first = ends.partition_point(|end| end.at < at);
    let count = ends[first..].partition_point(|end| end.at == at);
    &ends[first..first + count]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorder(ranks: u32) -> Recorder {
        Recorder::new(Problem::new(Collective::AllToAll, ranks, 1, 9).unwrap())
    }

    fn step(recorded: &Recorded, rank: u32, step: u32) -> Step {
        let mut does = Step::default();
        recorded.step(Rank(rank), step, &mut does);
        does
    }

    /// An end takes 32 bytes, a range of slots 24, and the number of a slot 16.
    #[test]
    fn memory_is_that_of_messages_and_blocks() {
        let (message, block) = (Recorder::memory(0), Recorder::memory(1) - Recorder::memory(0));
        assert_eq!((message, block), (4 * 32, 4 * 24 + 4 * 16));
        assert_eq!(Recorder::memory(7), message + 7 * block);
    }

    #[test]
    #[should_panic(expected = "a route of no hops")]
    fn an_empty_route_is_refused() {
        let (from, to, route) = (Rank(0), Rank(1), Some(Route::straight(0, 0)));
        recorder(6).push(&Message { step: 0, from, to, route, blocks: Vec::new() });
    }

    #[test]
    fn consecutive_blocks_are_one_run_and_parts_of_blocks_make_cuts() {
        let mut recorder = recorder(6);
        let block = |to: u32, part| (Block { from: Rank(0), to: Rank(to) }, part);
        let thirds = [(0, 3), (3, 6), (6, 9)].map(|(first, end)| Part::Bytes { first, end });
        let whole = [2, 3, 4].map(|to| block(to, Part::Whole)).to_vec();
        let parts = thirds.map(|part| block(5, part)).to_vec();
        for (step, blocks) in [(0, whole), (1, parts)] {
            let (from, to) = (Rank(0), Rank(1));
            recorder.push(&Message { step, from, to, route: None, blocks });
        }
        let recorded = recorder.finish();
        assert_eq!(recorded.cuts(), [3, 6]);
        let runs = |number| step(&recorded, 0, number).sends[0].slots.runs().len();
        assert_eq!([runs(0), runs(1)], [1, 3]);
    }

    #[test]
    fn messages_of_sizes_leave_one_place_or_two_and_land_side_by_side() {
        let mut recorder = recorder(4);
        for (step, from, bytes, packed) in
            [(0, 1, 5, false), (0, 2, 4, true), (0, 3, 7, true), (1, 1, 3, true), (1, 2, 2, false)]
        {
            let (from, to) = (Rank(from), Rank(0));
            recorder.push_sized(&SizedMessage { step, from, to, route: None, bytes, packed });
        }
        let recorded = recorder.finish();
        let slots = |set: &SlotSet| set.slots().map(|(slot, _)| slot).collect::<Vec<_>>();
        let sent = |rank, number| slots(&step(&recorded, rank, number).sends[0].slots);
        assert_eq!([sent(1, 0), sent(2, 0)], [vec![0, 1, 2, 3, 4], vec![0, 1, 3, 4]]);
        assert_eq!([sent(3, 0), sent(1, 1)], [vec![0, 1, 2, 4, 5, 6, 7], vec![0, 2, 3]]);
        let landed = |number| {
            let does = step(&recorded, 0, number);
            does.receives.iter().flat_map(|receive| slots(&receive.slots)).collect::<Vec<_>>()
        };
        assert_eq!([landed(0), landed(1)], [(0..16).collect::<Vec<_>>(), (0..5).collect()]);
        assert_eq!(recorded.slots(), 16);
        // A packed message takes one slot more than it has bytes.
        let mut alone = self::recorder(4);
        let (from, to, route) = (Rank(1), Rank(0), None);
        alone.push_sized(&SizedMessage { step: 0, from, to, route, bytes: 4, packed: true });
        assert_eq!(alone.finish().slots(), 5);
    }
}
