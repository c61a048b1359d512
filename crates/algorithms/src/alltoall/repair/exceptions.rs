//! A schedule in which some blocks take other paths: the messages of one rank of each class, and tables of the
//! exceptions.
//!
//! Blocks on other paths have slots of their own, after those of the schedule: at their sources, then at their
//! destinations, then those that pass.

use std::sync::Arc;

use topocoll_schedule::{Block, Part, Rule, Schedule, Slot, SlotRun, SlotSet, Step, Strided};
use topocoll_topology::{Rank, Route};

use super::connections::Connections;
use super::equivalent::{Equivalent, Pattern};
use super::follow::NONE;
use super::paths::Piece;

/// Lists one after the other, and the first place of each.
struct Lists<T> {
    first: Vec<u32>,
    all: Vec<T>,
}

impl<T> Lists<T> {
    /// The values of `lists` lists, ordered by list.
    fn new(lists: usize, ordered: Vec<(u32, T)>) -> Self {
        let mut first = vec![0; lists + 1];
        ordered.iter().for_each(|(list, _)| first[*list as usize + 1] += 1);
        for list in 0..lists {
            first[list + 1] += first[list];
        }
        Self { first, all: ordered.into_iter().map(|(_, value)| value).collect() }
    }

    fn of(&self, list: usize) -> &[T] {
        &self.all[self.first[list] as usize..self.first[list + 1] as usize]
    }
}

/// A piece of a block on another path: its slots at the sender and the receiver, and its number.
struct Moved {
    from: u32,
    to: u32,
    piece: u32,
}

/// A message of the schedule that differs: its number, the first of the places whose blocks it does not carry,
/// and its connection or [`NONE`].
struct Change {
    message: u32,
    removed: u32,
    connection: u32,
}

/// A message that the schedule does not have.
struct Added {
    step: u32,
    from: u32,
    to: u32,
    connection: u32,
}

/// The schedule of the whole machine.
pub(super) struct Whole {
    pub(super) schedule: Schedule,
    pub(super) equivalent: Equivalent,
    /// The pieces of a block.
    pub(super) parts: Vec<Part>,
}

pub(super) struct Exceptions {
    whole: Whole,
    /// By rank of the schedule, its node if it has not failed; by node, that rank.
    nodes: Vec<Option<u32>>,
    places: Vec<Rank>,
    /// By step, that of the schedule if it is one.
    steps: Vec<Option<u32>>,
    /// By message, ascending, and the places of all in turn.
    changes: Vec<Change>,
    removed: Vec<u32>,
    /// By step and sender; and their numbers by step and receiver.
    added: Vec<Added>,
    received: Vec<u32>,
    /// By connection, the pieces on other paths.
    moved: Lists<Moved>,
    /// By connection, those that are no routes of the schedule.
    routes: Vec<(u32, Route)>,
    /// By node, the destinations of its blocks that take other paths, and the sources of those for it.
    starts: Lists<u32>,
    ends: Lists<u32>,
    slots: Slot,
}

impl Exceptions {
    /// `steps` has the steps of the connections that carry messages, `pieces` what takes other paths.
    pub(super) fn new(
        whole: Whole,
        (nodes, places): (Vec<Option<u32>>, Vec<Rank>),
        (connections, steps): (&Connections, &[usize]),
        pieces: &[Piece],
    ) -> Self {
        let mut blocks: Vec<(u32, u32)> =
            pieces.iter().map(|piece| (piece.from, piece.to)).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let mut reversed: Vec<(u32, u32)> = blocks.iter().map(|&(from, to)| (to, from)).collect();
        reversed.sort_unstable();
        let mut made = Self {
            steps: steps.iter().map(|&step| connections.step[step]).collect(),
            changes: Vec::new(),
            removed: Vec::new(),
            added: Vec::new(),
            received: Vec::new(),
            moved: Lists::new(0, Vec::new()),
            routes: Vec::new(),
            starts: Lists::new(places.len(), blocks.clone()),
            ends: Lists::new(places.len(), reversed),
            slots: 0,
            whole,
            nodes,
            places,
        };
        made.move_pieces(connections, pieces);
        let removed = made.removed(&blocks);
        made.change(connections, removed);
        made.add(connections, steps);
        made
    }

    /// The numbers of messages, and the places in them of blocks that take other paths, or whose source or
    /// destination has failed.
    fn removed(&self, blocks: &[(u32, u32)]) -> Vec<(u32, u32)> {
        let Whole { equivalent, .. } = &self.whole;
        let place = |node: u32| self.places[node as usize];
        let mut removed = Vec::new();
        let others = blocks.iter().map(|&(from, to)| [place(from), place(to)]);
        for block in others.chain(equivalent.failed(&self.nodes)) {
            (0..equivalent.pieces)
                .for_each(|piece| removed.extend(equivalent.messages(block, piece)));
        }
        removed.sort_unstable();
        removed.dedup();
        removed
    }

    /// Gives the pieces slots along their paths.
    fn move_pieces(&mut self, connections: &Connections, pieces: &[Piece]) {
        let mut hops: Vec<(u32, u32)> = Vec::new();
        for (number, piece) in (0..).zip(pieces) {
            hops.extend(piece.path.iter().map(|&connection| (connection, number)));
        }
        hops.sort_unstable();
        let mut slots: Vec<Slot> =
            pieces.iter().map(|piece| self.start(piece.from, piece.to)).collect();
        let first = |node: u32| self.passing(node);
        // By node, the next slot that was never used, and those that are free again.
        let mut next: Vec<Slot> = (0..self.places.len() as u32).map(first).collect();
        let mut free = vec![Vec::new(); next.len()];
        let (mut left, mut moved) = (Vec::new(), Vec::with_capacity(hops.len()));
        for hops in hops.chunk_by(|a, b| connections.step_of(a.0) == connections.step_of(b.0)) {
            for &(connection, number) in hops {
                let (piece, one) =
                    (&pieces[number as usize], &connections.all[connection as usize]);
                let slot = if one.to == piece.to {
                    self.end(piece.from, piece.to)
                } else {
                    free[one.to as usize].pop().unwrap_or_else(|| {
                        next[one.to as usize] += 1;
                        next[one.to as usize] - 1
                    })
                };
                let from = std::mem::replace(&mut slots[number as usize], slot);
                if from >= first(one.from) {
                    left.push((one.from, from));
                }
                let (from, to, piece) = (from as u32, slot as u32, piece.part as u32);
                moved.push((connection, Moved { from, to, piece }));
            }
            left.drain(..).for_each(|(node, slot)| free[node as usize].push(slot));
        }
        self.slots = next.into_iter().max().unwrap_or(0);
        self.moved = Lists::new(connections.all.len(), moved);
    }

    /// Lists the messages of the schedule that differ.
    fn change(&mut self, connections: &Connections, removed: Vec<(u32, u32)>) {
        let mut messages: Vec<u32> = removed.iter().map(|&(message, _)| message).collect();
        for (number, one) in (0u32..).zip(&connections.all) {
            let Some(message) = one.message else { continue };
            let pattern = self.whole.equivalent.pattern(message);
            let other = one.route != pattern.route;
            if other {
                self.routes.push((number, one.route.clone()));
            }
            if other || !self.moved.of(number as usize).is_empty() {
                messages.push(message);
            }
        }
        messages.sort_unstable();
        messages.dedup();
        self.changes = messages
            .into_iter()
            .map(|message| {
                let before = removed.partition_point(|&(other, _)| other < message) as u32;
                let connection = connections.of_message[message as usize];
                Change { message, removed: before, connection }
            })
            .collect();
        self.removed = removed.into_iter().map(|(_, place)| place).collect();
    }

    /// Lists the messages that the schedule does not have.
    fn add(&mut self, connections: &Connections, steps: &[usize]) {
        for (step, &of) in (0..).zip(steps) {
            for number in connections.of_step(of) {
                let one = &connections.all[number];
                if one.message.is_none() && !self.moved.of(number).is_empty() {
                    let (from, to, connection) = (one.from, one.to, number as u32);
                    self.routes.push((connection, one.route.clone()));
                    self.added.push(Added { step, from, to, connection });
                }
            }
        }
        self.routes.sort_by_key(|(connection, _)| *connection);
        self.added.sort_by_key(|one| (one.step, one.from));
        self.received = (0..self.added.len() as u32).collect();
        self.received.sort_by_key(|&number| {
            let Added { step, to, connection, .. } = self.added[number as usize];
            (step, to, connection)
        });
    }

    /// The slots of the two ends of a block's path, and the first slot for others.
    fn start(&self, from: u32, to: u32) -> Slot {
        let place = self.starts.of(from as usize).partition_point(|&other| other < to);
        self.whole.schedule.rule().slots() + place as Slot
    }

    fn end(&self, from: u32, to: u32) -> Slot {
        let starts = self.starts.of(to as usize).len();
        let place = self.ends.of(to as usize).partition_point(|&other| other < from);
        self.whole.schedule.rule().slots() + (starts + place) as Slot
    }

    fn passing(&self, node: u32) -> Slot {
        let ends = self.starts.of(node as usize).len() + self.ends.of(node as usize).len();
        self.whole.schedule.rule().slots() + ends as Slot
    }

    /// A block of the schedule on the machine with failures, if it keeps its path.
    fn kept(&self, Block { from, to }: Block) -> Option<Block> {
        let (from, to) = (self.nodes[from.index()]?, self.nodes[to.index()]?);
        let moves = self.starts.of(from as usize).binary_search(&to).is_ok();
        (!moves).then_some(Block { from: Rank(from), to: Rank(to) })
    }

    /// The block on another path that begins or ends in a slot.
    fn other(&self, rank: Rank, slot: Slot, ends: bool) -> Option<Block> {
        let place = slot.checked_sub(self.whole.schedule.rule().slots())? as usize;
        let starts = self.starts.of(rank.index());
        if ends {
            let place = place.checked_sub(starts.len())?;
            self.ends.of(rank.index()).get(place).map(|&from| Block { from: Rank(from), to: rank })
        } else {
            starts.get(place).map(|&to| Block { from: rank, to: Rank(to) })
        }
    }

    /// Overwrites a layout of the schedule with that of a rank.
    fn layout(&self, rank: Rank, ends: bool, out: &mut Vec<Option<Block>>) {
        out.iter_mut().for_each(|block| *block = block.and_then(|block| self.kept(block)));
        let others = out.len() as Slot..self.slots;
        out.extend(others.map(|slot| self.other(rank, slot, ends)));
    }

    fn route(&self, connection: u32) -> Option<&Route> {
        let place = self.routes.binary_search_by_key(&connection, |(number, _)| *number).ok()?;
        Some(&self.routes[place].1)
    }

    /// The slots of a message's sender or receiver, and its route.
    fn message(&self, pattern: u32, from: Rank, sends: bool) -> (SlotSet, Route) {
        let number = self.whole.equivalent.number(pattern, from);
        let Pattern { sent, received, route, .. } = self.whole.equivalent.pattern(number);
        let all = if sends { sent } else { received };
        let Ok(place) = self.changes.binary_search_by_key(&number, |change| change.message) else {
            return (all.clone(), route.clone());
        };
        let Change { removed: first, connection, .. } = self.changes[place];
        let end = self.changes.get(place + 1).map(|next| next.removed as usize);
        let removed = &self.removed[first as usize..end.unwrap_or(self.removed.len())];
        let mut slots = without(all, removed);
        if connection == NONE {
            return (slots, route.clone());
        }
        self.push(connection, sends, &mut slots);
        (slots, self.route(connection).unwrap_or(route).clone())
    }

    /// Appends the pieces on other paths.
    fn push(&self, connection: u32, sends: bool, slots: &mut SlotSet) {
        for moved in self.moved.of(connection as usize) {
            let slot = if sends { moved.from } else { moved.to };
            slots.push_slot(slot.into(), self.whole.parts[moved.piece as usize]);
        }
    }
}

/// The slots of a set without those at some places, which ascend.
fn without(set: &SlotSet, places: &[u32]) -> SlotSet {
    let (mut left, mut place, mut places) = (SlotSet::default(), 0, places.iter().peekable());
    for SlotRun { slots, part } in set.runs() {
        let end = place + slots.len();
        if places.peek().is_none_or(|&&next| u64::from(next) >= end) {
            left.push_part(*slots, *part);
            place = end;
            continue;
        }
        for (first, length) in slots.contiguous_runs() {
            let (end, mut begin) = (place + length, place);
            while let Some(&next) = places.next_if(|&&next| u64::from(next) < end) {
                let next = u64::from(next);
                left.push_part(Strided::contiguous(first + begin - place, next - begin), *part);
                begin = next + 1;
            }
            left.push_part(Strided::contiguous(first + begin - place, end - begin), *part);
            place = end;
        }
    }
    left
}

/// The schedule with its exceptions.
pub(super) struct Excepted(pub(super) Arc<Exceptions>);

impl Rule for Excepted {
    fn steps(&self) -> u32 {
        self.0.steps.len() as u32
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let Exceptions { whole: Whole { equivalent, .. }, nodes, added, received, .. } = &*self.0;
        let at = self.0.places[rank.index()];
        let of = self.0.steps[step as usize];
        if let Some(of) = of {
            for pattern in equivalent.sent(at, of) {
                let to = equivalent.receiver(&equivalent.patterns[pattern as usize], at);
                if let Some(to) = nodes[to.index()] {
                    let (slots, route) = self.0.message(pattern, at, true);
                    out.send(Rank(to), slots, route);
                }
            }
            for (pattern, from) in equivalent.received(at, of) {
                if let Some(node) = nodes[from.index()] {
                    out.receive(Rank(node), self.0.message(pattern, from, false).0);
                }
            }
        }
        let first = added.partition_point(|one| (one.step, one.from) < (step, rank.0));
        let sent = added[first..].iter().take_while(|one| (one.step, one.from) == (step, rank.0));
        for one in sent {
            let (mut slots, route) = (SlotSet::default(), self.0.route(one.connection));
            self.0.push(one.connection, true, &mut slots);
            out.send(Rank(one.to), slots, route.cloned().unwrap_or_default());
        }
        let ended = |number: &u32| {
            let Added { step, to, .. } = added[*number as usize];
            (step, to)
        };
        let first = received.partition_point(|number| ended(number) < (step, rank.0));
        for number in received[first..].iter().take_while(|number| ended(number) == (step, rank.0))
        {
            let (one, mut slots) = (&added[*number as usize], SlotSet::default());
            self.0.push(one.connection, false, &mut slots);
            out.receive(Rank(one.from), slots);
        }
    }

    fn slots(&self) -> Slot {
        self.0.slots
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let rule = self.0.whole.schedule.rule();
        if slot >= rule.slots() {
            return self.0.other(rank, slot, false);
        }
        self.0.kept(rule.initial_block(self.0.places[rank.index()], slot)?)
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let rule = self.0.whole.schedule.rule();
        if slot >= rule.slots() {
            return self.0.other(rank, slot, true);
        }
        self.0.kept(rule.final_block(self.0.places[rank.index()], slot)?)
    }

    fn initial_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        self.0.whole.schedule.rule().initial_layout(self.0.places[rank.index()], out);
        self.0.layout(rank, false, out);
    }

    fn final_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        self.0.whole.schedule.rule().final_layout(self.0.places[rank.index()], out);
        self.0.layout(rank, true, out);
    }

    fn cuts(&self) -> &[u64] {
        self.0.whole.schedule.rule().cuts()
    }
}
