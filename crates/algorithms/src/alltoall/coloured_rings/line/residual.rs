//! The residual exchange of one line: landed blocks go the remaining few positions.

use smallvec::SmallVec;

use super::packing::{self, LineMessage};
use super::rows::Rows;
use super::{Digits, Direction, Directions, Landing, LineExchange, Piece, Pieces, push};

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
    Listed(Box<[u32]>),
}

impl Group {
    pub(in super::super) fn size(&self) -> u64 {
        match &self.sources {
            Sources::Behind { from, to } => 1 + u64::from(to - from),
            Sources::Listed(sources) => sources.len() as u64,
        }
    }

    /// Its compact digits.
    fn digits(&self) -> Digits {
        Digits { first: self.first, count: self.size() }
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
    /// The offset by which it came.
    pub(in super::super) offset: i32,
    pub(in super::super) digits: Digits,
}

/// A position's groups in one step of the residual exchange.
#[derive(Clone, Copy, Default, Debug)]
pub(in super::super) struct Exchange {
    /// The offset of the group that it sends, and its digits.
    pub(in super::super) send: Option<(i32, Digits)>,
    /// The offset of the group that it receives, and its digits.
    pub(in super::super) receive: Option<(i32, Digits)>,
}

impl LineExchange {
    /// Appends the groups after landing at x, by offset.
    pub(super) fn groups_at(&self, x: u32, out: &mut Vec<Group>) {
        if self.landing == Landing::Distance {
            return self.groups_far(x, out);
        }
        let place = &self.places[self.at(x)];
        let ring = self.word.ring(self.colour(x));
        let mut first = 0;
        for offset in -i64::from(place.own.below)..=i64::from(place.own.above) {
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
            out.push(group);
        }
    }

    /// The number of sources j >= 1 whose blocks for x + offset travel up.
    pub(super) fn sources_below(&self, x: u32, offset: i64, first: Direction) -> u32 {
        let ring = self.word.ring(self.colour(x));
        let travels_up = |j: u32| match self.directions {
            Directions::Once => true,
            Directions::Both => j <= self.word.index(x),
            Directions::Nearer if self.landing != Landing::Near => {
                i64::from(j) <= self.half(first == Direction::Up)
            }
            Directions::Nearer => {
                let source = self.along(x, -i64::from(j)).expect("a ring has no end");
                let half = self.reach(0, Direction::Up, first);
                i64::from(x) + offset - source <= half
            }
        };
        // About as many as up to half a ring away, gaps being nearly even.
        let near = match self.directions {
            Directions::Nearer => self.side() / 2 / self.colours,
            Directions::Both => self.word.index(x),
            Directions::Once => ring,
        };
        let mut below = near.min(ring - 1);
        while below > 0 && !travels_up(below) {
            below -= 1;
        }
        while below + 1 < ring && travels_up(below + 1) {
            below += 1;
        }
        below
    }

    pub(in super::super) fn groups(&self, x: u32) -> &[Group] {
        self.groups.row(self.at(x))
    }

    fn arrivals(&self, x: u32) -> &[Arrival] {
        self.arrivals.row(self.at(x))
    }

    /// Number of (source, destination) pairs of the line that land at x.
    pub(in super::super) fn landed(&self, x: u32) -> u64 {
        self.groups(x).last().map_or(0, |group| group.first + group.size())
    }

    /// Packs the groups into steps, and finds a place for each at its destination.
    pub(super) fn plan_residual(&mut self) {
        let mut messages = Vec::with_capacity((self.period * (self.colours + 1)) as usize);
        for from in 0..self.period {
            let groups = self.groups(from).iter().filter(|group| group.offset != 0);
            let message =
                |group: &Group| LineMessage { from, offset: group.offset, size: group.size() };
            messages.extend(groups.map(message));
        }
        let steps = packing::pack(&messages, self.period);
        self.steps = steps.len();
        self.ways_left = vec![[0; 2]; self.steps * self.period as usize];
        for (step, messages) in steps.iter().enumerate() {
            for message in messages {
                let at = |x: u32| x as usize * self.steps + step;
                self.ways_left[at(message.from)][0] = message.offset;
                self.ways_left[at(packing::to(message, self.period))][1] = message.offset;
            }
        }
        self.arrivals = Rows::with_room(self.period, self.colours + 1);
        let mut arrivals = Vec::new();
        for x in 0..self.period {
            self.arrivals_at(x, &mut arrivals);
            let ends = arrivals.iter().map(|arrival| arrival.digits.first + arrival.digits.count);
            let needed = ends.chain([self.landed(x)]).fold(0, u64::max);
            self.residual_digits = self.residual_digits.max(needed);
            self.arrivals.push(arrivals.drain(..));
        }
    }

    /// By step, the offsets of the groups that x sends and receives.
    fn ways_at(&self, x: u32) -> &[[i32; 2]] {
        &self.ways_left[self.at(x) * self.steps..][..self.steps]
    }

    /// Gives every group that x receives the lowest digits that are free from then on.
    fn arrivals_at(&self, x: u32, arrivals: &mut Vec<Arrival>) {
        let mut taken: SmallVec<[(usize, Digits); 8]> = SmallVec::new();
        for group in self.groups(x) {
            let sent = self
                .ways_at(x)
                .iter()
                .position(|[send, _]| group.offset != 0 && *send == group.offset);
            taken.push((sent.unwrap_or(usize::MAX), group.digits()));
            if sent.is_none() {
                arrivals.push(Arrival { offset: 0, digits: group.digits() });
            }
        }
        for (step, &[_, offset]) in self.ways_at(x).iter().enumerate() {
            if offset == 0 {
                continue;
            }
            taken.retain(|(until, _)| *until > step);
            let count = self.group(self.landed_from(x, offset), offset).size();
            let free = |first: u64| {
                let end = first + count;
                taken.iter().all(|(_, t)| end <= t.first || t.first + t.count <= first)
            };
            let ends = taken.iter().map(|(_, taken)| taken.first + taken.count).chain([0]);
            let first = ends.filter(|&first| free(first)).min().expect("the last end is free");
            let digits = Digits { first, count };
            taken.push((usize::MAX, digits));
            arrivals.push(Arrival { offset, digits });
        }
        arrivals.sort_by_key(|arrival| arrival.offset);
    }

    /// Where a group landed that came to x by `offset`.
    fn landed_from(&self, x: u32, offset: i32) -> u32 {
        self.wrapped(i64::from(x) - i64::from(offset))
    }

    /// The group of x that goes `offset`.
    fn group(&self, x: u32, offset: i32) -> &Group {
        let group = self.groups(x).iter().find(|group| group.offset == offset);
        group.expect("what is sent is a group")
    }

    /// The groups of x in a step of the residual exchange.
    pub(in super::super) fn exchange(&self, x: u32, step: u32) -> Exchange {
        let [send, receive] = self.ways_at(x)[step as usize];
        let received = |offset| {
            let arrival = self.arrivals(x).iter().find(|a| a.offset == offset);
            (offset, arrival.expect("what is received arrives").digits)
        };
        let sent = |offset| (offset, self.group(x, offset).digits());
        Exchange {
            send: (send != 0).then(|| sent(send)),
            receive: (receive != 0).then(|| received(receive)),
        }
    }

    /// The digits that arrived blocks have at the end of the residual exchange, by compact digit.
    pub(in super::super) fn arrived_pieces(&self, x: u32, out: &mut Pieces) {
        out.clear();
        let mut compact = 0;
        for Arrival { digits: Digits { first: digit, count }, .. } in self.arrivals(x) {
            push(out, Piece { compact, count: *count, digit: *digit, stride: 1 });
            compact += count;
        }
    }

    /// The source of a block at its destination x by compact digit.
    pub(in super::super) fn source(&self, x: u32, compact: u64) -> u32 {
        let mut place = compact;
        let arrival = self.arrivals(x).iter().find(|arrival| {
            let found = place < arrival.digits.count;
            place -= if found { 0 } else { arrival.digits.count };
            found
        });
        self.source_of(x, arrival.expect("a compact digit of what arrives"), place)
    }

    /// The source of a block at its destination x by digit at the end, if there is one.
    pub(in super::super) fn source_at(&self, x: u32, digit: u64) -> Option<u32> {
        let holds =
            |a: &&Arrival| (a.digits.first..a.digits.first + a.digits.count).contains(&digit);
        let arrival = self.arrivals(x).iter().find(holds)?;
        Some(self.source_of(x, arrival, digit - arrival.digits.first))
    }

    fn source_of(&self, x: u32, arrival: &Arrival, place: u64) -> u32 {
        let landing = self.landed_from(x, arrival.offset);
        self.source_behind(landing, self.group(landing, arrival.offset).source(place))
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
