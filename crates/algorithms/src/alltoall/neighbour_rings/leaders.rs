//! Some ranks of each ring as leaders, which forward blocks by several hops.

use smallvec::SmallVec;
use topocoll_schedule::{Axis, Block, RankClasses, Rule, Slot, SlotSet, Step};
use topocoll_topology::{Grid, Rank, Route};

use super::cut::Cut;
use super::ring::{Move, Ring};
use crate::Claims;
use crate::layout::axes::push_axes;
use crate::layout::mixed_radix_layout::Ends;
use crate::layout::translation::classes;

pub(super) struct Leaders {
    grid: Grid,
    rings: SmallVec<[Ring; 3]>,
    cut: Cut,
    /// Slots of a part behind those of all offsets.
    extra: u64,
}

/// A message of every rank that has blocks for it.
#[derive(Clone, Copy)]
struct PartMessage {
    part: usize,
    /// The ring.
    place: usize,
    round: u32,
    down: bool,
}

impl Leaders {
    /// The exchange with these levels of leaders, on rings that serve them. Blocks are cut if `block_bytes`
    /// is given; if not, the torus has at most two sides.
    pub(super) fn new(grid: &Grid, levels: u32, block_bytes: Option<u64>) -> Self {
        let ring = |dimension: usize| {
            let side = grid.sides()[dimension];
            Ring { dimension, side, levels: levels.min(Ring::levels_of(side)) }
        };
        let rings: SmallVec<[Ring; 3]> = grid.radix().long_dimensions().map(ring).collect();
        let cut = Cut::new(block_bytes, rings.len() as u32);
        let mut leaders = Self { grid: grid.clone(), rings, cut, extra: 0 };
        let extra = |place: usize| {
            let others = (0..leaders.rings.len()).filter(|&other| other != place);
            let others = others.map(|other| u64::from(leaders.places_behind(other)));
            u64::from(leaders.rings[place].extra()) * others.product::<u64>()
        };
        leaders.extra = (0..leaders.rings.len()).map(extra).max().unwrap_or(0);
        leaders
    }

    fn dimensions(&self) -> usize {
        self.rings.len()
    }

    /// Places of a ring beside one of those behind another, at most.
    fn places_behind(&self, place: usize) -> u32 {
        let ring = self.rings[place];
        if self.cut.is_cut() { ring.side } else { ring.evens().max(ring.side - ring.evens()) }
    }

    /// The rounds of a phase.
    fn rounds(&self) -> u32 {
        self.rings.iter().map(|ring| ring.rounds()).max().unwrap_or(0)
    }

    /// The messages of a step.
    fn messages(&self, step: u32) -> impl Iterator<Item = PartMessage> + '_ {
        let (phase, round) = ((step / self.rounds()) as usize, step % self.rounds());
        let n = self.dimensions();
        (0..2 * n).filter_map(move |number| {
            let (part, down) = (number / 2, number % 2 == 1);
            let place = (part + phase) % n;
            let message = PartMessage { part, place, round, down };
            (round < self.rings[place].rounds()).then_some(message)
        })
    }

    /// The hops of a message.
    fn hops(&self, message: PartMessage) -> i64 {
        let hops = i64::from(self.rings[message.place].hops(message.round));
        if message.down { -hops } else { hops }
    }

    /// The slots that the rank at x sends in a message, and those into which they are received.
    fn slots_of(&self, message: PartMessage, x: u32) -> [SlotSet; 2] {
        let PartMessage { part, place, round, down } = message;
        let mut slots = [SlotSet::default(), SlotSet::default()];
        for moved in self.rings[place].moves(round, down, x) {
            let ends = [moved.from, moved.to];
            for (first, out) in ends.into_iter().zip(&mut slots) {
                if moved.halved && self.cut.is_cut() {
                    for odd in [false, true] {
                        self.push(message, first, moved, Some(odd), out);
                    }
                } else {
                    let odd = (part % 2 == 1) != moved.odd;
                    let odd = (!self.cut.is_cut() && self.dimensions() > 1).then_some(odd);
                    self.push(message, first, moved, odd, out);
                }
            }
        }
        slots
    }

    /// Appends the slots of a move from a place on. Along the next ring they are of distances of a
    /// parity, if it matters.
    fn push(
        &self,
        message: PartMessage,
        first: u32,
        moved: Move,
        odd: Option<bool>,
        out: &mut SlotSet,
    ) {
        let place = message.place;
        let ring = self.rings[place];
        let next = (place + 1) % self.dimensions();
        let extra = first >= ring.side;
        let mut axes: SmallVec<[Axis; 8]> = SmallVec::new();
        let (mut base, mut weight) = (0, 1);
        for (number, other) in self.rings.iter().enumerate().rev() {
            let (side, evens) = (other.side, other.evens());
            let (low, count, places) = if number == place {
                let low = if extra { first - side } else { first };
                (low, moved.count, if extra { other.extra() } else { side })
            } else if number == next
                && let Some(odd) = odd
            {
                let (low, count) = if odd { (evens, side - evens) } else { (0, evens) };
                let ups = other.ups(odd).1;
                let (low, count) = match (moved.halved, message.down) {
                    (false, _) => (low, count),
                    (true, false) => (low, ups),
                    (true, true) => (low + ups, count - ups),
                };
                if extra && !self.cut.is_cut() {
                    (0, count, self.places_behind(number))
                } else {
                    (low, count, side)
                }
            } else {
                (0, side, side)
            };
            base += u64::from(low) * weight;
            axes.insert(0, Axis { count: count.into(), stride: weight as i64 });
            weight *= u64::from(places);
        }
        if axes.iter().any(|axis| axis.count == 0) {
            return;
        }
        if extra {
            base += u64::from(self.grid.radix().ranks());
            base += if self.cut.is_cut() { 0 } else { message.part as u64 * self.extra };
        }
        let mut slots = SlotSet::default();
        push_axes(base, &axes, &mut slots);
        let part = self.cut.part(message.part);
        slots.runs().iter().for_each(|run| out.push_part(run.slots, part));
    }

    pub(super) fn claims(&self, block_bytes: u64) -> Claims {
        let (mut steps, mut bytes, mut hops) = (0, 0u128, 0u128);
        for step in 0..self.steps() {
            let (mut most, mut far) = (0, 0);
            for message in self.messages(step) {
                let ring = self.rings[message.place];
                for x in 0..ring.period() {
                    let sent = self.slots_of(message, x)[0].bytes(block_bytes);
                    most = most.max(sent);
                    far = far.max(if sent > 0 { self.hops(message).unsigned_abs() } else { 0 });
                }
            }
            steps += u64::from(far > 0);
            bytes += most;
            hops += u128::from(far);
        }
        Claims {
            hops: Some(hops),
            hops_floor: hops,
            rearrangements: Some(0),
            contention_free: true,
            ..Claims::new(steps, bytes)
        }
    }

    /// The rank at the other end of the block at a slot, before the first step or after the last.
    fn end(&self, rank: Rank, slot: Slot, after: bool) -> Option<Rank> {
        let radix = self.grid.radix();
        let mut rest = slot;
        let end = self.rings.iter().rev().fold(rank, |end, ring| {
            let place = (rest % u64::from(ring.side)) as u32;
            rest /= u64::from(ring.side);
            let x = radix.coordinate(rank, ring.dimension);
            let hops = if after { -ring.hops_from(place, x) } else { ring.hops_to(place) };
            radix.shifted(end, ring.dimension, hops)
        });
        (rest == 0).then_some(end)
    }

    /// Overwrites `out` with the blocks of all slots, by their other ends.
    fn layout(
        &self,
        rank: Rank,
        after: bool,
        out: &mut Vec<Option<Block>>,
        block: impl Fn(Rank) -> Block,
    ) {
        let radix = self.grid.radix();
        let mut ends = Ends::new(radix.ranks().into());
        for ring in self.rings.iter().rev() {
            let x = radix.coordinate(rank, ring.dimension);
            ends.prepend(ring.side, |place| {
                let hops = if after { -ring.hops_from(place, x) } else { ring.hops_to(place) };
                let at = (i64::from(x) + hops).rem_euclid(ring.side.into());
                at as u32 * radix.stride(ring.dimension)
            });
        }
        out.clear();
        out.extend(ends.iter().map(|end| Some(block(end))));
        out.resize(self.slots() as usize, None);
    }
}

impl Rule for Leaders {
    fn steps(&self) -> u32 {
        self.dimensions() as u32 * self.rounds()
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let radix = self.grid.radix();
        for message in self.messages(step) {
            let Ring { dimension, side, .. } = self.rings[message.place];
            let (x, hops) = (radix.coordinate(rank, dimension), self.hops(message));
            let before = (i64::from(x) - hops).rem_euclid(side.into()) as u32;
            let [_, into] = self.slots_of(message, before);
            out.receive(radix.shifted(rank, dimension, -hops), into);
            let [sent, _] = self.slots_of(message, x);
            let route = Route::straight(dimension as u32, hops);
            out.send(radix.shifted(rank, dimension, hops), sent, route);
        }
    }

    fn slots(&self) -> u64 {
        let parts = if self.cut.is_cut() { 1 } else { self.dimensions() as u64 };
        u64::from(self.grid.radix().ranks()) + parts * self.extra
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.end(rank, slot, false).map(|to| Block { from: rank, to })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.end(rank, slot, true).map(|from| Block { from, to: rank })
    }

    fn initial_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        self.layout(rank, false, out, |to| Block { from: rank, to });
    }

    fn final_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        self.layout(rank, true, out, |from| Block { from, to: rank });
    }

    fn classes(&self) -> RankClasses {
        classes(&self.grid, self.rings.iter().map(|ring| (ring.dimension, ring.period())))
    }

    fn cuts(&self) -> &[u64] {
        self.cut.inside()
    }
}
