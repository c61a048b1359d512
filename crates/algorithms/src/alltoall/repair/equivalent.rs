//! Schedules whose ranks all do the same: the messages and blocks of rank 0 stand for all.

use std::ops::Range;

use topocoll_schedule::{Part, Period, RankClasses, Schedule, SlotSet};
use topocoll_topology::{MixedRadix, Rank, Route, Shape, Topology};

use super::follow::pieces_of;

/// A message of rank 0. Every rank sends the same slots along the same route.
pub(super) struct Pattern {
    pub(super) step: u32,
    pub(super) to: Rank,
    pub(super) route: Route,
    pub(super) sent: SlotSet,
    pub(super) received: SlotSet,
}

/// A hop of a block of rank 0: the message of rank 0 whose translation carries it, its place in the
/// message, and the rank that sends it.
#[derive(Clone)]
struct Hop {
    message: u32,
    place: u32,
    at: Rank,
}

/// A schedule in which translations map each rank's messages and blocks onto those of every other.
pub(super) struct Equivalent {
    classes: RankClasses,
    pub(super) ranks: u32,
    /// Those of rank 0, in the order of steps.
    pub(super) patterns: Vec<Pattern>,
    /// By destination of rank 0's blocks, and piece.
    hops: Vec<Vec<Hop>>,
    /// By message of rank 0, the pieces that it carries: the destination of rank 0's block whose translation it
    /// is, the rank that this block has reached, and the piece.
    pub(super) carried: Vec<Vec<(Rank, Rank, usize)>>,
    /// Pieces of a block.
    pub(super) pieces: usize,
}

/// The translations of a torus, if they map the messages of each rank of a schedule onto those of every other.
pub(super) fn translations(schedule: &Schedule, machine: &dyn Topology) -> Option<RankClasses> {
    let radix = match machine.shape() {
        Shape::Grid(grid) => grid.wrap().iter().all(|&wraps| wraps).then_some(grid.radix())?,
        Shape::Graph(graph) => graph.translations()?,
        _ => return None,
    };
    let classes = schedule.rule().classes();
    (classes.count() == 1 && classes.radix() == radix).then_some(classes)
}

/// The block that a slot of rank 0 holds: by its destination when rank 0 sent it, and the rank that it has
/// reached.
type Held = Option<(Rank, Rank)>;

impl Equivalent {
    /// `None` if ranks differ, copy blocks between slots, or send over several hops.
    pub(super) fn new(schedule: &Schedule, machine: &dyn Topology, parts: &[Part]) -> Option<Self> {
        let (rule, ranks) = (schedule.rule(), schedule.problem.ranks);
        let classes = translations(schedule, machine)?;
        let mut equivalent = Self {
            classes,
            ranks,
            patterns: Vec::new(),
            hops: vec![Vec::new(); ranks as usize * parts.len()],
            carried: Vec::new(),
            pieces: parts.len(),
        };
        let mut held = equivalent.start(schedule)?;
        let period = Period::of(rule, equivalent.classes.clone(), u64::MAX)?;
        let mut moved = Vec::new();
        for &(step, ref does) in period.steps_of(0) {
            if !does.copies.is_empty() {
                return None;
            }
            for (place, send) in does.sends.iter().enumerate() {
                let received =
                    period.received(0, step, place).expect("bug: a message that is not received");
                let mut route = send.route.clone();
                if route.is_empty() {
                    machine.route(Rank(0), send.peer, &mut route);
                }
                if route.hops() != 1 {
                    return None;
                }
                let message = equivalent.patterns.len() as u32;
                let mut carried = Vec::new();
                for (place, ((slot, part), (to, _))) in
                    (0..).zip(send.slots.slots().zip(received.slots.slots()))
                {
                    for piece in pieces_of(parts, part) {
                        let from = slot as usize * parts.len() + piece;
                        let Some((block, at)) = held[from].take() else { continue };
                        let hops = &mut equivalent.hops[block.index() * parts.len() + piece];
                        hops.push(Hop { message, place, at });
                        carried.push((block, at, piece));
                        let next = equivalent.translated(at, Rank(0), send.peer);
                        moved.push((to as usize * parts.len() + piece, (block, next)));
                    }
                }
                equivalent.carried.push(carried);
                let (sent, received) = (send.slots.clone(), received.slots.clone());
                equivalent.patterns.push(Pattern { step, to: send.peer, route, sent, received });
            }
            moved.drain(..).for_each(|(slot, block)| held[slot] = Some(block));
        }
        Some(equivalent)
    }

    /// What rank 0 holds before the first step, by slot and part; `None` if the layouts of other ranks are no
    /// translations of its own.
    fn start(&self, schedule: &Schedule) -> Option<Vec<Held>> {
        let rule = schedule.rule();
        let (mut first, mut other) = (Vec::new(), Vec::new());
        rule.initial_layout(Rank(0), &mut first);
        let mut translated = vec![Rank(0); self.ranks as usize];
        for rank in (0..self.ranks).map(Rank) {
            rule.initial_layout(rank, &mut other);
            self.translation(rank, &mut translated);
            let same = first.iter().zip(&other).all(|(first, other)| match (first, other) {
                (None, None) => true,
                (Some(first), Some(other)) => {
                    other.from == rank && other.to == translated[first.to.index()]
                }
                _ => false,
            });
            if !same {
                return None;
            }
        }
        let held = first.iter().flat_map(|block| {
            let held = block.map(|block| (block.to, Rank(0)));
            std::iter::repeat_n(held, self.pieces)
        });
        Some(held.collect())
    }

    pub(super) fn radix(&self) -> &MixedRadix {
        self.classes.radix()
    }

    /// A rank moved by the translation that takes `from` to `to`.
    pub(super) fn translated(&self, rank: Rank, from: Rank, to: Rank) -> Rank {
        self.classes.translated(rank, from, to)
    }

    /// The source and the destination of all blocks in a message of a rank, with repetitions.
    pub(super) fn blocks(&self, message: usize, at: Rank) -> impl Iterator<Item = [Rank; 2]> + '_ {
        self.carried[message].iter().map(move |&(to, reached, _)| {
            let from = self.translated(Rank(0), reached, at);
            [from, self.translated(to, Rank(0), from)]
        })
    }

    /// The size of a message of a rank, by the sizes of pieces.
    pub(super) fn size(&self, message: usize, sizes: &[u64]) -> u64 {
        self.carried[message].iter().map(|&(.., piece)| sizes[piece]).sum()
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

    /// The messages of a block: their numbers among all messages of all ranks, and its places in them.
    pub(super) fn messages(
        &self,
        [from, to]: [Rank; 2],
        piece: usize,
    ) -> impl Iterator<Item = (u32, u32)> + '_ {
        let to = self.translated(to, from, Rank(0));
        self.hops[to.index() * self.pieces + piece].iter().map(move |hop| {
            (self.number(hop.message, self.translated(hop.at, Rank(0), from)), hop.place)
        })
    }

    /// Overwrites `translated` with all ranks moved by the translation that takes rank 0 to `to`.
    fn translation(&self, to: Rank, translated: &mut [Rank]) {
        for (rank, moved) in (0..).map(Rank).zip(translated) {
            *moved = self.translated(rank, Rank(0), to);
        }
    }

    /// The messages of a step.
    pub(super) fn of_step(&self, step: u32) -> Range<usize> {
        let before = |step| self.patterns.partition_point(|pattern| pattern.step < step);
        before(step)..before(step + 1)
    }

    /// The number of the message that a rank sends, among all messages of all ranks.
    pub(super) fn number(&self, message: u32, from: Rank) -> u32 {
        message * self.ranks + from.0
    }
}
