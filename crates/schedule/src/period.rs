//! One period of a schedule: the steps of one rank of each class.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use topocoll_topology::{Rank, Route, parallel};

use crate::{Block, Part, RankClasses, Rule, Slot, SlotSet, Step, Transfer};

/// The steps of one rank of each class of equivalent ranks, which repeat over the machine. Peers and the
/// other ends of blocks are displacements: the rank that is there as seen from rank 0
/// ([`RankClasses::displacement`]).
///
/// Readers take it from any rule with [`of`](Self::of). Algorithms write one with a [`PeriodWriter`], and
/// it is their rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Period {
    classes: RankClasses,
    steps: u32,
    /// By class, the steps that are not idle.
    each: Vec<Vec<(u32, Step)>>,
    /// By class, the other ends of the blocks in the slots before the first step and after the last.
    layouts: [Vec<Vec<Option<Rank>>>; 2],
}

impl Period {
    /// The steps of a rule by these classes, which are its own or finer ones, if all of them send at most
    /// `most` messages. The layouts stay with the rule.
    #[must_use]
    pub fn of(rule: &dyn Rule, classes: RankClasses, most: u64) -> Option<Self> {
        let sent = AtomicU64::new(0);
        let share = |class| {
            let mut steps = Vec::new();
            let within =
                classes.each_step(rule, classes.representative(class), &mut |step, does| {
                    let messages = does.sends.len() as u64;
                    steps.push((step, does));
                    sent.fetch_add(messages, Ordering::Relaxed) + messages <= most
                });
            within.then_some(steps)
        };
        let each = parallel::each(0..classes.count()).map(share).collect::<Option<_>>()?;
        Some(Self { classes, steps: rule.steps(), each, layouts: [Vec::new(), Vec::new()] })
    }

    /// The same of some of the steps, for readers of periods that are too large to keep.
    #[must_use]
    pub fn of_steps(rule: &dyn Rule, classes: RankClasses, steps: Range<u32>) -> Self {
        let share = |class| {
            let (rank, mut does) = (classes.representative(class), Step::default());
            let seen = steps.clone().filter_map(|step| {
                rule.step(rank, step, &mut does);
                (!does.is_idle()).then(|| (step, classes.seen(rank, &does)))
            });
            seen.collect()
        };
        let each = parallel::each(0..classes.count()).map(share).collect();
        Self { classes, steps: rule.steps(), each, layouts: [Vec::new(), Vec::new()] }
    }

    /// The classes of ranks.
    #[must_use]
    pub fn classes(&self) -> &RankClasses {
        &self.classes
    }

    /// The steps of a class that are not idle.
    #[must_use]
    pub fn steps_of(&self, class: u32) -> &[(u32, Step)] {
        &self.each[class as usize]
    }

    /// What a class does in a step, if it is not idle.
    #[must_use]
    pub fn step_of(&self, class: u32, step: u32) -> Option<&Step> {
        let steps = self.steps_of(class);
        steps.binary_search_by_key(&step, |&(step, _)| step).ok().map(|place| &steps[place].1)
    }

    /// The receive of message `place` that a class sends in a step, if its peer has one.
    #[must_use]
    pub fn received(&self, class: u32, step: u32, place: usize) -> Option<&Transfer> {
        self.other_end(class, step, place, |does| &does.sends, |does| &does.receives)
    }

    /// The send of message `place` that a class receives in a step, if its peer has one.
    #[must_use]
    pub fn sent(&self, class: u32, step: u32, place: usize) -> Option<&Transfer> {
        self.other_end(class, step, place, |does| &does.receives, |does| &does.sends)
    }

    fn other_end(
        &self,
        class: u32,
        step: u32,
        place: usize,
        own: fn(&Step) -> &[Transfer],
        theirs: fn(&Step) -> &[Transfer],
    ) -> Option<&Transfer> {
        let own = own(self.step_of(class, step)?);
        let peer = own[place].peer;
        let here = self.classes.displacement(peer, Rank(0));
        let theirs = theirs(self.step_of(self.class_at(class, peer), step)?);
        other_end(own, place, here, theirs)
    }

    /// The class of the rank at a displacement from a rank of a class.
    #[must_use]
    pub fn class_at(&self, class: u32, displacement: Rank) -> u32 {
        self.classes.class_of(self.classes.moved(self.classes.representative(class), displacement))
    }

    fn block(&self, end: usize, rank: Rank, slot: Slot) -> Option<Rank> {
        let layout = &self.layouts[end][self.classes.class_of(rank) as usize];
        Some(self.classes.moved(rank, layout[slot as usize]?))
    }
}

/// The other end of message `place` of `own`, the sends or receives of `rank`, among the receives or sends
/// of its peer: the i-th send from one rank to another in a step is its i-th receive.
#[must_use]
pub fn other_end<'m>(
    own: &[Transfer],
    place: usize,
    rank: Rank,
    peers: &'m [Transfer],
) -> Option<&'m Transfer> {
    let peer = own[place].peer;
    let before = own[..place].iter().filter(|message| message.peer == peer).count();
    peers.iter().filter(|message| message.peer == rank).nth(before)
}

impl RankClasses {
    /// The place of `to` as seen from `from`: the rank to which the translation that takes `from` to rank 0
    /// takes it.
    #[must_use]
    #[inline]
    pub fn displacement(&self, from: Rank, to: Rank) -> Rank {
        self.translated(Rank(0), from, to)
    }

    /// The rank at a displacement from another.
    #[must_use]
    #[inline]
    pub fn moved(&self, from: Rank, displacement: Rank) -> Rank {
        self.translated(from, Rank(0), displacement)
    }

    /// A message of a rank whose peer is a displacement, with the peer's own number.
    #[must_use]
    pub fn placed(&self, rank: Rank, transfer: &Transfer) -> Transfer {
        Transfer { peer: self.moved(rank, transfer.peer), ..transfer.clone() }
    }

    /// What a rank does, with displacements for peers.
    fn seen(&self, rank: Rank, does: &Step) -> Step {
        let mut seen = does.clone();
        for transfer in seen.sends.iter_mut().chain(&mut seen.receives) {
            transfer.peer = self.displacement(rank, transfer.peer);
        }
        seen
    }

    /// Calls `each` with the steps of a rank that are not idle, with displacements for peers, until it returns
    /// false. Equivalent ranks have equal ones, but for the places of copies.
    pub fn each_step(
        &self,
        rule: &dyn Rule,
        rank: Rank,
        each: &mut dyn FnMut(u32, Step) -> bool,
    ) -> bool {
        let mut goes_on = true;
        rule.each_step(rank, &mut |step, does| {
            goes_on = each(step, self.seen(rank, does));
            if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        goes_on
    }

    /// A member of a class, by number spread over the machine by the golden ratio; number 0 is the last one.
    #[must_use]
    pub fn member(&self, class: u32, number: u32) -> Rank {
        let radix = self.radix();
        (0..radix.dimensions()).fold(self.representative(class), |rank, u| {
            let multiples = radix.sides()[u] / self.periods()[u];
            let part = f64::from(number + 1) * 0.618_033_988_75 * f64::from(u as u32 + 1);
            let multiple = match number {
                0 => multiples - 1,
                _ => (part.fract() * f64::from(multiples)) as u32,
            };
            radix.shifted(rank, u, i64::from(multiple) * i64::from(self.periods()[u]))
        })
    }
}

impl Rule for Period {
    fn steps(&self) -> u32 {
        self.steps
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let Some(does) = self.step_of(self.classes.class_of(rank), step) else { return };
        let placed = |transfer: &Transfer| self.classes.placed(rank, transfer);
        out.sends.extend(does.sends.iter().map(placed));
        out.receives.extend(does.receives.iter().map(placed));
    }

    fn slots(&self) -> u64 {
        self.layouts[0].first().map_or(0, |layout| layout.len() as u64)
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: rank, to: self.block(0, rank, slot)? })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: self.block(1, rank, slot)?, to: rank })
    }

    fn classes(&self) -> RankClasses {
        self.classes.clone()
    }
}

/// A block that a rank holds: the displacements of its source and destination from there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// Where it comes from.
    pub from: Rank,
    /// Where it goes.
    pub to: Rank,
}

/// The largest message of a step, and the farthest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Largest {
    /// Blocks of the largest message.
    pub blocks: u64,
    /// Links of the longest route.
    pub hops: u64,
}

/// Writes the period of an all-to-all from its sends alone: receives, the final layout and the largest
/// messages follow from the blocks that ranks hold.
///
/// ```
/// use topocoll_schedule::{PeriodWriter, RankClasses};
/// use topocoll_topology::{Rank, Route};
///
/// // Every block of a ring goes all its hops in one message.
/// let mut writer = PeriodWriter::new(RankClasses::cyclic(5), |_| (0..5).map(Rank).collect());
/// for hops in 1..5 {
///     let (slot, _) = writer.held(0).find(|(_, held)| held.to == Rank(hops)).unwrap();
///     writer.send(0, Rank(hops), Route::straight(0, hops.into()), &[slot]);
///     writer.end_step();
/// }
/// let (period, largest) = writer.finish();
/// assert_eq!((largest.len(), largest[0].blocks, period.steps_of(0).len()), (4, 1, 4));
/// ```
#[derive(Debug)]
pub struct PeriodWriter {
    period: Period,
    /// By class and slot.
    held: Vec<Vec<Option<Held>>>,
    /// The messages of the step.
    sent: Vec<InFlight>,
    /// By step.
    largest: Vec<Largest>,
}

/// A message that has not arrived.
#[derive(Debug)]
struct InFlight {
    class: u32,
    /// From sender to receiver.
    displacement: Rank,
    blocks: Vec<Held>,
    landing: Vec<Slot>,
}

impl PeriodWriter {
    /// A period without steps; `layout` gives the destinations of the blocks in the slots of a rank of each
    /// class.
    #[must_use]
    pub fn new(classes: RankClasses, layout: impl Fn(u32) -> Vec<Rank>) -> Self {
        let layouts: Vec<Vec<Rank>> = (0..classes.count()).map(layout).collect();
        let held = |to: &Rank| Some(Held { from: Rank(0), to: *to });
        let held = layouts.iter().map(|layout| layout.iter().map(held).collect()).collect();
        let first = layouts.into_iter().map(|layout| layout.into_iter().map(Some).collect());
        let each = vec![Vec::new(); classes.count() as usize];
        let period = Period { classes, steps: 0, each, layouts: [first.collect(), Vec::new()] };
        Self { period, held, sent: Vec::new(), largest: vec![Largest::default()] }
    }

    /// The blocks that a rank of a class holds, by slot, without those that it has sent in the current step.
    pub fn held(&self, class: u32) -> impl Iterator<Item = (Slot, Held)> {
        (0..).zip(&self.held[class as usize]).filter_map(|(slot, held)| Some((slot, (*held)?)))
    }

    /// Adds a message of a class in the current step, with the blocks of these slots. It lands in the slots
    /// that its receiver sends in the step, in their order, then in free ones from the lowest.
    ///
    /// # Panics
    /// A slot that holds no block.
    pub fn send(&mut self, class: u32, displacement: Rank, route: Route, slots: &[Slot]) {
        self.send_into(class, displacement, route, slots, &[]);
    }

    /// The same into other slots of the receiver, which are free then.
    ///
    /// # Panics
    /// A slot that holds no block.
    pub fn send_into(
        &mut self,
        class: u32,
        displacement: Rank,
        route: Route,
        slots: &[Slot],
        landing: &[Slot],
    ) {
        let held = &mut self.held[class as usize];
        let block = |&slot: &Slot| held[slot as usize].take().expect("bug: an empty slot is sent");
        let blocks: Vec<Held> = slots.iter().map(block).collect();
        let step = self.largest.last_mut().expect("bug: no step");
        let (length, hops) = (blocks.len() as u64, route.hops());
        *step = Largest { blocks: step.blocks.max(length), hops: step.hops.max(hops) };
        self.sent.push(InFlight { class, displacement, blocks, landing: landing.to_vec() });
        self.does(class).send(displacement, set(slots), route);
    }

    fn does(&mut self, class: u32) -> &mut Step {
        let (steps, step) = (&mut self.period.each[class as usize], self.period.steps);
        if steps.last().is_none_or(|&(last, _)| last != step) {
            steps.push((step, Step::default()));
        }
        &mut steps.last_mut().expect("bug: no step").1
    }

    /// Ends the step: its messages arrive.
    pub fn end_step(&mut self) {
        for InFlight { class, displacement, blocks, landing } in std::mem::take(&mut self.sent) {
            let to = self.period.class_at(class, displacement);
            let own = self.does(to).sends.iter().flat_map(|send| send.slots.slots());
            let own: Vec<Slot> = own.map(|(slot, _)| slot).collect();
            let mut places = landing.into_iter().chain(own).chain(0..);
            let (classes, held) = (&self.period.classes, &mut self.held[to as usize]);
            let mut landed = Vec::with_capacity(blocks.len());
            for Held { from, to } in blocks {
                let is_free = |&slot: &Slot| held.get(slot as usize).is_none_or(Option::is_none);
                let slot = places.find(is_free).expect("bug: no slot");
                held.resize(held.len().max(slot as usize + 1), None);
                let seen = |end| classes.displacement(displacement, end);
                held[slot as usize] = Some(Held { from: seen(from), to: seen(to) });
                landed.push(slot);
            }
            let from = classes.displacement(displacement, Rank(0));
            self.does(to).receive(from, set(&landed));
        }
        self.period.steps += 1;
        self.largest.push(Largest::default());
    }

    /// The period, and the largest message of each step.
    ///
    /// # Panics
    /// A block that has not arrived.
    #[must_use]
    pub fn finish(mut self) -> (Period, Vec<Largest>) {
        let slots = self.held.iter().map(Vec::len).max().unwrap_or(0);
        let source = |held: Held| {
            assert!(held.to == Rank(0), "bug: a block from {} is {} away", held.from, held.to);
            held.from
        };
        let last = |held: Vec<Option<Held>>| held.into_iter().map(|one| one.map(source)).collect();
        let Period { layouts, .. } = &mut self.period;
        layouts[1] = self.held.into_iter().map(last).collect();
        layouts.iter_mut().flatten().for_each(|layout| layout.resize(slots, None));
        self.largest.pop();
        (self.period, self.largest)
    }
}

/// Slots in order, as few runs.
fn set(slots: &[Slot]) -> SlotSet {
    let mut set = SlotSet::default();
    slots.iter().for_each(|&slot| set.push_slot(slot, Part::Whole));
    set
}
