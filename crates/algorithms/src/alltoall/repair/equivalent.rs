//! Schedules in which many ranks do the same: the messages and blocks of one rank of each class stand for all.

use std::collections::BTreeMap;
use std::iter::successors;
use std::ops::Range;

use topocoll_schedule::{Block, Part, Period, RankClasses, Schedule, SlotSet};
use topocoll_topology::{MixedRadix, Rank, Route, Shape, Topology};

use super::follow::{NONE, pieces_of};

/// The most slots of all classes, and the most pieces of their blocks, that are followed.
const MOST_FOLLOWED: u64 = 1 << 22;

/// A message of the ranks of a class. Every one of them sends the same slots along the same route.
pub(super) struct Pattern {
    pub(super) step: u32,
    class: u32,
    /// The receiver, as seen from the sender.
    pub(super) to: Rank,
    pub(super) route: Route,
    pub(super) sent: SlotSet,
    pub(super) received: SlotSet,
    /// The pieces that it carries, and their size.
    pub(super) pieces: u32,
    size: u64,
}

/// A hop of a piece: the pattern of its message, its place in the message, the sender as seen from the source
/// of the piece, and its hop before.
struct Hop {
    pattern: u32,
    place: u32,
    at: Rank,
    before: u32,
}

/// A schedule in which translations map the messages and blocks of each rank onto those of all ranks of its class.
pub(super) struct Equivalent {
    classes: RankClasses,
    pub(super) ranks: u32,
    /// By rank, its number in its class; by class, its ranks.
    numbers: Vec<u32>,
    members: Vec<Vec<Rank>>,
    /// By step, then by class.
    pub(super) patterns: Vec<Pattern>,
    /// By class, the patterns of the messages that its ranks receive, in the order of steps.
    received: Vec<Vec<u32>>,
    hops: Vec<Hop>,
    /// By class of the source, destination as seen from there, and piece: the last hop or [`NONE`].
    last: Vec<u32>,
    /// Pieces of a block.
    pub(super) pieces: usize,
}

/// The translations that map the messages of a schedule onto each other and the machine onto itself.
pub(super) fn translations(schedule: &Schedule, machine: &dyn Topology) -> Option<RankClasses> {
    let classes = schedule.rule().classes();
    match machine.shape() {
        Shape::Grid(grid) => Some(classes.along(grid.radix(), grid.wrap()).keeping_ties(grid)),
        Shape::Graph(graph) => (Some(classes.radix()) == graph.translations()).then_some(classes),
        _ => None,
    }
}

/// Whether the blocks of one rank of each class are few enough to be followed.
pub(super) fn can_follow(schedule: &Schedule, machine: &dyn Topology) -> bool {
    let (rule, ranks) = (schedule.rule(), schedule.problem.ranks);
    let pieces = rule.cuts().len() as u64 + 1;
    translations(schedule, machine).is_some_and(|classes| {
        u64::from(classes.count()) * rule.slots().max(ranks.into()) * pieces <= MOST_FOLLOWED
    })
}

/// A piece in a slot: its place in [`Equivalent::last`], and where it is as seen from its source.
type Held = Option<(u32, Rank)>;

impl Equivalent {
    /// `None` if too many ranks differ, or if ranks copy blocks between slots. `sizes` are those of the parts.
    pub(super) fn new(
        schedule: &Schedule,
        machine: &dyn Topology,
        parts: &[Part],
        sizes: &[u64],
    ) -> Option<Self> {
        let (rule, ranks) = (schedule.rule(), schedule.problem.ranks);
        if !can_follow(schedule, machine) {
            return None;
        }
        let (classes, pieces) = (translations(schedule, machine)?, parts.len());
        let (mut numbers, mut members) = (Vec::new(), vec![Vec::new(); classes.count() as usize]);
        for rank in (0..ranks).map(Rank) {
            let members = &mut members[classes.class_of(rank) as usize];
            numbers.push(members.len() as u32);
            members.push(rank);
        }
        let period = Period::of(rule, classes.clone(), u64::MAX)?;
        let mut made = Self {
            patterns: Vec::new(),
            received: vec![Vec::new(); members.len()],
            hops: Vec::new(),
            last: vec![NONE; members.len() * ranks as usize * pieces],
            classes,
            ranks,
            numbers,
            members,
            pieces,
        };
        let (mut held, mut moved) = (made.start(schedule)?, Vec::new());
        for step in 0..rule.steps() {
            let first = made.patterns.len();
            for class in 0..made.classes.count() {
                let Some(does) = period.step_of(class, step) else { continue };
                if !does.copies.is_empty() {
                    return None;
                }
                for (place, send) in does.sends.iter().enumerate() {
                    let received = period
                        .received(class, step, place)
                        .expect("bug: a message that is not received");
                    let (from, mut route) =
                        (made.classes.representative(class), send.route.clone());
                    if route.is_empty() {
                        machine.route(from, made.classes.moved(from, send.peer), &mut route);
                    }
                    let to = period.class_at(class, send.peer) as usize;
                    let pattern = made.patterns.len() as u32;
                    let (mut count, mut size) = (0, 0);
                    let slots = send.slots.slots().zip(received.slots.slots());
                    for (place, ((slot, part), (landing, _))) in (0..).zip(slots) {
                        for piece in pieces_of(parts, part) {
                            let slot = slot as usize * pieces + piece;
                            let Some((block, at)) = held[class as usize][slot].take() else {
                                continue;
                            };
                            let last = &mut made.last[block as usize];
                            let before = std::mem::replace(last, made.hops.len() as u32);
                            made.hops.push(Hop { pattern, place, at, before });
                            let next = made.classes.moved(at, send.peer);
                            moved.push((to, landing as usize * pieces + piece, (block, next)));
                            (count, size) = (count + 1, size + sizes[piece]);
                        }
                    }
                    let (sent, received) = (send.slots.clone(), received.slots.clone());
                    let (to, pieces) = (send.peer, count);
                    made.patterns.push(Pattern {
                        step,
                        class,
                        to,
                        route,
                        sent,
                        received,
                        pieces,
                        size,
                    });
                }
            }
            moved.drain(..).for_each(|(class, slot, piece)| held[class][slot] = Some(piece));
            made.receive(&period, step, first);
        }
        Some(made)
    }

    /// Lists the patterns of the messages that ranks receive in a step, of which the first is given.
    fn receive(&mut self, period: &Period, step: u32, first: usize) {
        for class in 0..self.classes.count() {
            let receives = period.step_of(class, step).map_or(&[][..], |does| &does.receives[..]);
            for (place, receive) in receives.iter().enumerate() {
                let before = receives[..place].iter().filter(|one| one.peer == receive.peer);
                let from = period.class_at(class, receive.peer);
                let here = self.classes.displacement(receive.peer, Rank(0));
                let sent = (first..).zip(&self.patterns[first..]);
                let mut sent = sent.filter(|(_, one)| (one.class, one.to) == (from, here));
                let (pattern, _) =
                    sent.nth(before.count()).expect("bug: a message that is not sent");
                self.received[class as usize].push(pattern as u32);
            }
        }
    }

    /// What the ranks of each class hold before the first step, by slot and piece; `None` if layouts of a class
    /// are no translations of each other.
    fn start(&self, schedule: &Schedule) -> Option<Vec<Vec<Held>>> {
        let (rule, ranks) = (schedule.rule(), self.ranks as usize);
        let (mut first, mut other, mut all) = (Vec::new(), Vec::new(), Vec::new());
        // By translation, where it moves each rank.
        let mut moved: BTreeMap<Rank, Vec<Rank>> = BTreeMap::new();
        for (class, members) in self.members.iter().enumerate() {
            let (representative, others) = members.split_first()?;
            rule.initial_layout(*representative, &mut first);
            let mut expected = first.clone();
            for (&before, &rank) in members.iter().zip(others) {
                let by = self.classes.displacement(before, rank);
                let moved = moved.entry(by).or_insert_with(|| {
                    (0..self.ranks).map(|from| self.classes.moved(Rank(from), by)).collect()
                });
                for Block { from, to } in expected.iter_mut().flatten() {
                    (*from, *to) = (moved[from.index()], moved[to.index()]);
                }
                rule.initial_layout(rank, &mut other);
                if other != expected {
                    return None;
                }
            }
            let held = first.iter().flat_map(|block| {
                let to = block.map(|block| self.classes.displacement(*representative, block.to));
                let block = to.map(|to| (class * ranks + to.index()) * self.pieces);
                (0..self.pieces).map(move |piece| Some(((block? + piece) as u32, Rank(0))))
            });
            all.push(held.collect());
        }
        Some(all)
    }

    /// The numbering of a torus on which all ranks do the same hop by hop.
    pub(super) fn hop_by_hop(&self) -> Option<&MixedRadix> {
        let is_hop = |pattern: &Pattern| pattern.route.hops() == 1;
        let all = self.members.len() == 1 && self.patterns.iter().all(is_hop);
        all.then_some(self.classes.radix())
    }

    /// A rank moved by the translation that takes `from` to `to`.
    pub(super) fn translated(&self, rank: Rank, from: Rank, to: Rank) -> Rank {
        self.classes.translated(rank, from, to)
    }

    /// All messages, by number: their patterns and their senders.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Pattern, Rank)> {
        let senders = |pattern: &Pattern| self.members[pattern.class as usize].iter().copied();
        self.patterns.iter().flat_map(move |one| senders(one).map(move |from| (one, from)))
    }

    /// The receiver of a message.
    pub(super) fn receiver(&self, pattern: &Pattern, from: Rank) -> Rank {
        self.classes.moved(from, pattern.to)
    }

    /// The number of a message among all of all ranks.
    pub(super) fn number(&self, pattern: u32, from: Rank) -> u32 {
        pattern * self.members[0].len() as u32 + self.numbers[from.index()]
    }

    /// The pattern of a message.
    pub(super) fn pattern(&self, message: u32) -> &Pattern {
        &self.patterns[message as usize / self.members[0].len()]
    }

    /// The size of a message.
    pub(super) fn size(&self, message: u32) -> u64 {
        self.pattern(message).size
    }

    /// The patterns of what a rank sends in a step.
    pub(super) fn sent(&self, rank: Rank, step: u32) -> Range<u32> {
        let class = self.classes.class_of(rank);
        let before = |end| self.patterns.partition_point(|one| (one.step, one.class) < end) as u32;
        before((step, class))..before((step, class + 1))
    }

    /// The patterns of what a rank receives in a step, and the senders.
    pub(super) fn received(&self, rank: Rank, step: u32) -> impl Iterator<Item = (u32, Rank)> + '_ {
        let all = &self.received[self.classes.class_of(rank) as usize];
        let step_of = |pattern: u32| self.patterns[pattern as usize].step;
        let first = all.partition_point(|&pattern| step_of(pattern) < step);
        let all = all[first..].iter().copied().take_while(move |&one| step_of(one) == step);
        all.map(move |pattern| {
            let to = self.patterns[pattern as usize].to;
            (pattern, self.classes.translated(Rank(0), to, rank))
        })
    }

    /// The source and the destination of all blocks in some messages, which ascend, with repetitions; at most
    /// `most`.
    pub(super) fn blocks(&self, messages: &[u32], most: usize) -> Option<Vec<[Rank; 2]>> {
        let members = self.members[0].len() as u32;
        let carries = messages.iter().map(|&message| self.pattern(message).pieces as usize);
        if carries.sum::<usize>() > most {
            return None;
        }
        let mut senders: Vec<&[u32]> = vec![&[]; self.patterns.len()];
        for messages in messages.chunk_by(|a, b| a / members == b / members) {
            senders[(messages[0] / members) as usize] = messages;
        }
        let mut blocks = Vec::new();
        for (place, &last) in self.last.iter().enumerate() {
            let to = Rank((place / self.pieces % self.ranks as usize) as u32);
            for Hop { pattern, at, .. } in self.hops_to(last) {
                let class = self.patterns[*pattern as usize].class as usize;
                blocks.extend(senders[*pattern as usize].iter().map(|message| {
                    let sender = self.members[class][(message % members) as usize];
                    let from = self.translated(Rank(0), *at, sender);
                    [from, self.classes.moved(from, to)]
                }));
            }
        }
        Some(blocks)
    }

    /// The blocks whose source or destination has failed, each once. `nodes` has those that have not.
    pub(super) fn failed(&self, nodes: &[Option<u32>]) -> Vec<[Rank; 2]> {
        let ranks = || (0..self.ranks).map(Rank);
        let mut blocks = Vec::new();
        for failed in ranks().filter(|rank| nodes[rank.index()].is_none()) {
            blocks.extend(ranks().map(|to| [failed, to]));
            let others = ranks().filter(|other| nodes[other.index()].is_some());
            blocks.extend(others.map(|from| [from, failed]));
        }
        blocks
    }

    /// The last hop of some and those before.
    fn hops_to(&self, last: u32) -> impl Iterator<Item = &Hop> {
        successors(self.hops.get(last as usize), |hop| self.hops.get(hop.before as usize))
    }

    /// The numbers of the messages that carry a piece of a block, and its places in them, the last first.
    pub(super) fn messages(
        &self,
        [from, to]: [Rank; 2],
        piece: usize,
    ) -> impl Iterator<Item = (u32, u32)> + '_ {
        let (class, to) = (self.classes.class_of(from), self.classes.displacement(from, to));
        let block = class as usize * self.ranks as usize + to.index();
        self.hops_to(self.last[block * self.pieces + piece])
            .map(move |hop| (self.number(hop.pattern, self.classes.moved(from, hop.at)), hop.place))
    }
}
