//! The residual exchange of one line: blocks that have landed go the few positions that are left.

use smallvec::SmallVec;

use super::packing::{self, Message};
use super::{Digits, Direction, Landing, Line, Piece, Pieces, Ways, push};

/// Blocks of one position that still go `offset` along the line, in the order of their sources.
#[derive(Clone, Debug)]
pub(in super::super) struct Group {
    pub(in super::super) offset: i32,
    pub(super) sources: Sources,
    /// The first compact digit.
    pub(in super::super) first: u64,
}

/// The sources of a group, numbered j = 0, 1, .. hops behind the position on its ring.
#[derive(Clone, Debug)]
pub(super) enum Sources {
    /// j = 0 and `from <= j < to`.
    Behind { from: u32, to: u32 },
    /// These j.
    Listed(Vec<u32>),
}

impl Group {
    pub(in super::super) fn size(&self) -> u64 {
        match &self.sources {
            Sources::Behind { from, to } => 1 + u64::from(to - from),
            Sources::Listed(sources) => sources.len() as u64,
        }
    }

    /// The number j of the source at a place in the group.
    fn source(&self, place: u64) -> u32 {
        match &self.sources {
            Sources::Behind { .. } if place == 0 => 0,
            Sources::Behind { from, .. } => from + (place - 1) as u32,
            Sources::Listed(sources) => sources[place as usize],
        }
    }
}

/// A group at its destination.
#[derive(Clone, Debug)]
pub(in super::super) struct Arrival {
    /// The way it came.
    pub(in super::super) offset: i32,
    pub(in super::super) digits: Digits,
    /// The first digit once compact.
    first: u64,
}

/// What a position does in one step of the residual exchange.
#[derive(Clone, Copy, Default, Debug)]
pub(in super::super) struct Exchange {
    /// The way of the group that it sends, and where that lies.
    pub(in super::super) send: Option<(i32, Digits)>,
    /// The way of the group that it receives, and where that goes.
    pub(in super::super) receive: Option<(i32, Digits)>,
}

impl Line {
    pub(super) fn groups_at(&self, x: u32) -> SmallVec<[Group; 6]> {
        if self.landing == Landing::Distance {
            return self.groups_far(x);
        }
        let place = &self.places[self.at(x)];
        let ring = self.word.ring(self.colour(x));
        let mut first = 0;
        (-i64::from(place.own.below)..=i64::from(place.own.above))
            .map(|offset| {
                let from_below =
                    (-i64::from(place.up.below)..=i64::from(place.up.above)).contains(&offset);
                let from_above =
                    (-i64::from(place.down.below)..=i64::from(place.down.above)).contains(&offset);
                // Half a ring away lands as those do that come from below.
                let below = || 1 + self.sources_below(x, offset, Direction::Up);
                let (from, to) = match (from_below, from_above) {
                    (true, true) => (1, ring),
                    (true, false) => (1, below()),
                    _ => (below(), ring),
                };
                let sources = Sources::Behind { from, to };
                let group = Group { offset: offset as i32, sources, first };
                first += group.size();
                group
            })
            .collect()
    }

    /// The number of sources j >= 1 whose blocks for x + offset travel up.
    pub(super) fn sources_below(&self, x: u32, offset: i64, first: Direction) -> u32 {
        let ring = self.word.ring(self.colour(x));
        let travels_up = |j: u32| match self.ways {
            Ways::Once => true,
            Ways::Both => j <= self.word.index(x),
            Ways::Nearer if self.landing != Landing::Near => {
                i64::from(j) <= self.half(first == Direction::Up)
            }
            Ways::Nearer => {
                let source = self.along(x, -i64::from(j)).expect("a ring has no end");
                let half = self.reach(0, Direction::Up, first);
                i64::from(x) + offset - source <= half
            }
        };
        let (mut low, mut high) = (0, ring - 1);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if travels_up(middle) { low = middle } else { high = middle - 1 }
        }
        low
    }

    pub(in super::super) fn groups(&self, x: u32) -> &[Group] {
        &self.groups[self.at(x)]
    }

    /// Number of (source, destination) pairs of the line that land at x.
    pub(in super::super) fn landed(&self, x: u32) -> u64 {
        self.groups(x).last().map_or(0, |group| group.first + group.size())
    }

    /// Packs the groups into steps, and finds a place for each at its destination.
    pub(super) fn plan_residual(&mut self) {
        let messages = (0..self.period).flat_map(|x| {
            self.groups(x).iter().filter(|group| group.offset != 0).map(move |group| Message {
                from: x,
                offset: group.offset,
                size: group.size(),
            })
        });
        let steps = packing::pack(&messages.collect::<Vec<_>>(), self.period);
        self.exchanges = vec![vec![Exchange::default(); steps.len()]; self.period as usize];
        for (step, messages) in steps.iter().enumerate() {
            for message in messages {
                let group = (self.groups(message.from).iter())
                    .find(|group| group.offset == message.offset)
                    .expect("a message is a group");
                let digits = Digits { first: group.first, count: group.size() };
                self.exchanges[message.from as usize][step].send = Some((message.offset, digits));
                let to = packing::to(message, self.period) as usize;
                self.exchanges[to][step].receive = Some((message.offset, digits));
            }
        }
        for x in 0..self.period {
            let arrivals = self.arrivals_at(x);
            self.arrivals.push(arrivals);
        }
        self.residual_digits = (0..self.period)
            .flat_map(|x| {
                let arrivals = self.arrivals[x as usize].iter().map(|arrival| arrival.digits);
                arrivals.map(|d| d.first + d.count).chain([self.landed(x)])
            })
            .max()
            .expect("a side has a position");
    }

    /// Gives every group that x receives the lowest digits that are free from then on.
    fn arrivals_at(&mut self, x: u32) -> SmallVec<[Arrival; 6]> {
        let mut arrivals = SmallVec::<[Arrival; 6]>::new();
        let mut taken: SmallVec<[(u32, Digits); 8]> = SmallVec::new();
        for group in &self.groups[x as usize] {
            let digits = Digits { first: group.first, count: group.size() };
            let sent = (self.exchanges[x as usize].iter()).position(|exchange| {
                exchange.send.is_some_and(|(offset, _)| offset == group.offset)
            });
            taken.push((sent.map_or(u32::MAX, |step| step as u32), digits));
            if sent.is_none() {
                arrivals.push(Arrival { offset: 0, digits, first: 0 });
            }
        }
        for (step, exchange) in self.exchanges[x as usize].iter_mut().enumerate() {
            let Some((offset, digits)) = &mut exchange.receive else { continue };
            taken.retain(|(until, _)| *until > step as u32);
            let free = |first: u64| {
                let end = first + digits.count;
                taken.iter().all(|(_, t)| end <= t.first || t.first + t.count <= first)
            };
            let ends = taken.iter().map(|(_, taken)| taken.first + taken.count).chain([0]);
            digits.first = ends.filter(|&first| free(first)).min().expect("the last end is free");
            taken.push((u32::MAX, *digits));
            arrivals.push(Arrival { offset: *offset, digits: *digits, first: 0 });
        }
        arrivals.sort_by_key(|arrival| arrival.offset);
        let mut first = 0;
        for arrival in &mut arrivals {
            arrival.first = first;
            first += arrival.digits.count;
        }
        arrivals
    }

    /// What x does in a step of the residual exchange.
    pub(in super::super) fn exchange(&self, x: u32, step: u32) -> Exchange {
        self.exchanges[self.at(x)][step as usize]
    }

    /// The same in slot 0, in which all stay, and the steps after it.
    pub(in super::super) fn part(&self, x: u32, slot: u32) -> Exchange {
        let Some(step) = slot.checked_sub(1) else {
            let stays = self.groups(x).iter().find(|group| group.offset == 0);
            let stays = stays.map(|group| (0, Digits { first: group.first, count: group.size() }));
            return Exchange { send: stays, receive: stays };
        };
        self.exchange(x, step)
    }

    /// The digits that arrived blocks have at the end of the residual exchange, by compact digit.
    pub(in super::super) fn arrived_pieces(&self, x: u32, out: &mut Pieces) {
        out.clear();
        for Arrival { digits, first, .. } in &self.arrivals[self.at(x)] {
            let Digits { first: digit, count } = *digits;
            push(out, Piece { compact: *first, count, digit, stride: 1 });
        }
    }

    /// The source of a block at its destination x by compact digit.
    pub(in super::super) fn source(&self, x: u32, compact: u64) -> u32 {
        let arrivals = &self.arrivals[self.at(x)];
        let arrival = &arrivals[arrivals.partition_point(|a| a.first <= compact) - 1];
        self.source_of(x, arrival, compact - arrival.first)
    }

    /// The source of a block at its destination x by digit at the end, if there is one.
    pub(in super::super) fn source_at(&self, x: u32, digit: u64) -> Option<u32> {
        let holds =
            |a: &&Arrival| (a.digits.first..a.digits.first + a.digits.count).contains(&digit);
        let arrival = self.arrivals[self.at(x)].iter().find(holds)?;
        Some(self.source_of(x, arrival, digit - arrival.digits.first))
    }

    fn source_of(&self, x: u32, arrival: &Arrival, place: u64) -> u32 {
        let landing = self.wrapped(i64::from(x) - i64::from(arrival.offset));
        let group = (self.groups(landing).iter())
            .find(|group| group.offset == arrival.offset)
            .expect("what arrives was a group");
        self.source_behind(landing, group.source(place))
    }

    /// Where a block landed that is at x by the offset with this number.
    pub(in super::super) fn landed_around(&self, x: u32, number: u32) -> u32 {
        let below = i64::from(self.places[self.at(x)].own.below);
        self.wrapped(i64::from(x) + below - i64::from(number))
    }

    /// The position `hops` behind x on its ring.
    pub(in super::super) fn source_behind(&self, x: u32, hops: u32) -> u32 {
        self.wrapped(self.cyclic(x, -i64::from(hops)))
    }

    /// As [`along`](Self::along), around the end of a line too.
    fn cyclic(&self, x: u32, hops: i64) -> i64 {
        let ring = i64::from(self.word.ring(self.colour(x)));
        let i = (i64::from(self.word.index(x)) + hops).rem_euclid(ring);
        self.word.position(self.colour(x), i as u32).into()
    }
}
