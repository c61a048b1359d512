//! One side of the grid: its colours, the rings that they form, where blocks land on them, and the
//! residual exchange. Everything is relative to a position; the lines of a dimension are equal.

mod distance;
mod far_first;
mod packing;
mod pieces;
mod residual;
mod rows;
mod word;

use self::pieces::push;
pub(super) use self::pieces::{Piece, Pieces};
use self::residual::{Arrival, Group};
use self::rows::Rows;
use self::word::Word;
pub(super) use crate::layout::translation::Direction;

/// How blocks travel along a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Directions {
    /// Around a ring in the shorter direction.
    Nearer,
    /// Up and down a line that does not wrap.
    Both,
    /// Around by + alone; from the last rank of a line to its first over the links that lead back.
    Once,
}

/// The rank at which blocks that travel around a ring land.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Landing {
    /// At the rank nearest to their destination.
    Near,
    /// In the aligned window that holds their destination; the colours divide the side.
    Windows,
    /// As many hops further as the distance of their destination says, the same from every rank.
    Distance,
}

/// A range of digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Digits {
    pub(super) first: u64,
    pub(super) count: u64,
}

/// Destinations that land at a position, as distances below and above it.
#[derive(Clone, Copy, Debug)]
struct Catch {
    below: u32,
    above: u32,
}

impl Catch {
    fn width(self) -> u64 {
        u64::from(self.below) + u64::from(self.above) + 1
    }
}

/// Where travellers land: around a ring at the nearest rank of their colour, at the first of two
/// as near; on a line, cut into windows of one rank of each colour, at the one in the window.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Destinations of blocks from below.
    up: Catch,
    /// Destinations of blocks from above.
    down: Catch,
    /// Its own destinations that it need not send along the ring.
    own: Catch,
}

/// One side of the grid.
pub(super) struct LineExchange {
    word: Word,
    colours: u32,
    directions: Directions,
    /// Where blocks land.
    landing: Landing,
    /// Up and down, the farthest destination by hops, where that is the same from every rank.
    ends: [Vec<u32>; 2],
    /// Positions that differ by a multiple of it are equivalent.
    period: u32,
    /// By colour, where gaps change.
    turns: Vec<Vec<u32>>,
    places: Vec<Place>,
    /// By class, the most hops that a block travels up, and down.
    rounds: [[u32; 2]; 2],
    /// By position: the groups after landing, by offset.
    groups: Rows<Group>,
    /// By position: the groups that the residual exchange brings, by offset.
    arrivals: Rows<Arrival>,
    /// By position, then step of the residual exchange: the offsets of the groups sent and
    /// received, or 0.
    ways_left: Vec<[i32; 2]>,
    /// Steps of the residual exchange.
    steps: usize,
    /// Digits kept for blocks that travel up, and own ones; then those that travel down.
    regions: [u64; 2],
    /// Digits needed while a residual exchange goes on.
    residual_digits: u64,
}

impl LineExchange {
    pub(super) fn new(side: u32, colours: u32, directions: Directions, landing: Landing) -> Self {
        let word = match directions {
            Directions::Nearer => Word::around(side, colours),
            Directions::Both | Directions::Once => Word::Repeated { side, colours },
        };
        let repeats = directions == Directions::Nearer && side % colours == 0;
        let mut line = Self {
            turns: (0..colours).map(|colour| word.turns(colour)).collect(),
            word,
            colours,
            directions,
            landing,
            ends: Default::default(),
            period: if repeats { colours } else { side },
            places: Vec::new(),
            rounds: [[0; 2]; 2],
            groups: Rows::with_room(0, 0),
            arrivals: Rows::with_room(0, 0),
            ways_left: Vec::new(),
            steps: 0,
            regions: [0; 2],
            residual_digits: 0,
        };
        if landing == Landing::Distance {
            line.ends = distance::ends(side, colours);
        }
        line.places = (0..line.period).map(|x| line.place(x, colours)).collect();
        line.groups = Rows::with_room(line.period, colours + 1);
        let mut groups = Vec::new();
        for x in 0..line.period {
            line.groups_at(x, &mut groups);
            line.groups.push(groups.drain(..));
        }
        for (class, &first) in line.classes().iter().enumerate() {
            line.rounds[class] = [Direction::Up, Direction::Down]
                .map(|direction| line.rounds_needed(direction, first));
        }
        line.regions = line.regions_needed();
        match landing {
            Landing::Near | Landing::Distance => line.plan_residual(),
            Landing::Windows => line.residual_digits = side.into(),
        }
        line
    }

    pub(super) fn side(&self) -> u32 {
        self.word.side()
    }

    pub(super) fn period(&self) -> u32 {
        self.period
    }

    pub(super) fn colour(&self, x: u32) -> u32 {
        self.word.colour(x)
    }

    /// Steps of the residual exchange.
    pub(super) fn residual_steps(&self) -> u32 {
        self.steps as u32
    }

    /// Digits needed by any layout.
    pub(super) fn digits(&self) -> u64 {
        (self.regions[0] + self.regions[1]).max(self.residual_digits)
    }

    /// Whether it is the same as another.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (self.side(), self.directions) == (other.side(), other.directions)
    }

    fn at(&self, x: u32) -> usize {
        (if x < self.period { x } else { x % self.period }) as usize
    }

    /// The position `hops` further on the ring of x, counted on where the ring closes.
    fn along(&self, x: u32, hops: i64) -> Option<i64> {
        let ring = i64::from(self.word.ring(self.colour(x)));
        let i = i64::from(self.word.index(x)) + hops;
        if self.directions == Directions::Both && !(0..ring).contains(&i) {
            return None;
        }
        let (around, i) = around(i, ring);
        let position = self.word.position(self.colour(x), i as u32);
        Some(i64::from(position) + around * i64::from(self.side()))
    }

    fn wrapped(&self, position: i64) -> u32 {
        around(position, self.side().into()).1 as u32
    }

    /// The next position on the ring of x, and the hops to it.
    pub(super) fn next(&self, x: u32, direction: Direction) -> Option<(u32, i64)> {
        let position = self.along(x, direction.signed(1))?;
        let next = self.wrapped(position);
        let hops = match self.directions {
            Directions::Nearer | Directions::Both => position - i64::from(x),
            Directions::Once => i64::from(next) - i64::from(x),
        };
        Some((next, hops))
    }

    /// The position from which a message comes that travels in `direction`.
    pub(super) fn before(&self, x: u32, direction: Direction) -> Option<u32> {
        Some(self.wrapped(self.along(x, -direction.signed(1))?))
    }

    fn place(&self, x: u32, colours: u32) -> Place {
        let side = self.side();
        if self.landing == Landing::Distance {
            let window = Catch { below: self.ends[1][0], above: self.ends[0][0] };
            return Place { up: window, down: window, own: window };
        }
        if self.directions != Directions::Nearer || self.landing == Landing::Windows {
            // The last window includes the rest of the line.
            let last = side - x <= colours;
            let above = if last { side - 1 - x } else { colours - 1 - x % colours };
            let window = Catch { below: x % colours, above };
            return Place { up: window, down: window, own: window };
        }
        let gap = |hops| {
            let near = self.along(x, hops).expect("a ring has no end");
            (near - i64::from(x)).unsigned_abs() as u32
        };
        let (below, above) = (gap(-1), gap(1));
        let up = Catch { below: below.div_ceil(2) - 1, above: above / 2 };
        // The only rank of its colour has the destinations half a ring away above.
        let alone = self.word.ring(self.colour(x)) == 1;
        let below = if alone { up.below } else { below / 2 };
        let down = Catch { below, above: above.div_ceil(2) - 1 };
        Place { up, down, own: Catch { below, above: up.above } }
    }

    /// The farthest destination of x that travels in `direction`, for a class whose own direction
    /// is `first`: the direction at exactly half a ring.
    fn reach(&self, x: u32, direction: Direction, first: Direction) -> i64 {
        let (x_at, side) = (i64::from(x), i64::from(self.side()));
        let own = self.places[self.at(x)].own;
        match (self.directions, direction) {
            (Directions::Nearer, _) if self.landing != Landing::Near => {
                let hops = self.half(direction == first) * i64::from(self.colours);
                match direction {
                    Direction::Up => x_at + i64::from(own.above) + hops,
                    Direction::Down => x_at - i64::from(own.below) - hops,
                }
            }
            (Directions::Nearer, _) => {
                let half = if direction == first { side / 2 } else { (side - 1) / 2 };
                x_at + direction.signed(1) * half
            }
            (Directions::Both, Direction::Up) => side - 1,
            (Directions::Both, Direction::Down) => 0,
            (Directions::Once, Direction::Up) => x_at + side - 1 - i64::from(own.below),
            (Directions::Once, Direction::Down) => x_at - i64::from(own.below),
        }
    }

    /// The hops to the farthest window of a ring by its first direction, or the other.
    fn half(&self, first: bool) -> i64 {
        let ring = i64::from(self.side() / self.colours);
        if first { ring / 2 } else { (ring - 1) / 2 }
    }

    /// Blocks of the source at x that travel `hops` or more in `direction`.
    pub(super) fn travelling(
        &self,
        x: u32,
        hops: u32,
        direction: Direction,
        first: Direction,
    ) -> u64 {
        if self.directions == Directions::Once && direction == Direction::Down {
            return 0;
        }
        if self.landing == Landing::Distance {
            return self.travelling_far(x, hops, direction, first);
        }
        let Some(stop) = self.along(x, direction.signed(hops)) else { return 0 };
        let place = &self.places[self.at(self.wrapped(stop))];
        let reach = self.reach(x, direction, first);
        match direction {
            Direction::Up => (reach - (stop - i64::from(place.up.below)) + 1).max(0) as u64,
            Direction::Down => {
                let count = (stop + i64::from(place.down.above) - reach + 1).max(0) as u64;
                // Destinations half a ring away land as travellers up do.
                let half = self.directions == Directions::Nearer
                    && self.landing == Landing::Near
                    && first == Direction::Down
                    && self.side() % 2 == 0
                    && self.word.ring(self.colour(x)) > 1;
                let lands = reach <= stop + i64::from(place.up.above);
                if count == 0 && half && lands { 1 } else { count }
            }
        }
    }

    /// Positions among which, for every colour and direction, is one that sends most in a round, and
    /// one that sends farthest: few, between which what is sent grows or falls steadily or stays. On
    /// a line they are as far apart on their ring as any; around a ring one of them, or where it
    /// comes from or goes to so many hops away, is where gaps change.
    pub(super) fn largest_senders(&self, round: u32) -> Vec<u32> {
        if self.period < self.side() {
            return (0..self.period).collect();
        }
        let t = i64::from(round);
        let mut positions = Vec::new();
        for colour in 0..self.colours {
            let ring = i64::from(self.word.ring(colour));
            let mut push = |index: i64| positions.push(self.word.position(colour, index as u32));
            if self.directions == Directions::Nearer {
                let turns = &self.turns[colour as usize];
                let near = [-t, 1 - t, 2 - t, -1, 0, 1, t - 2, t - 1, t];
                if (turns.len() * near.len()) as i64 >= ring {
                    (0..ring).for_each(push);
                    continue;
                }
                push(0);
                let near = turns.iter().flat_map(|&turn| near.map(|away| i64::from(turn) + away));
                near.for_each(|index| push(index.rem_euclid(ring)));
                continue;
            }
            let turns = [0, t - 2, t - 1, t, ring - t - 2, ring - t - 1, ring - t, ring - 2];
            for index in turns.into_iter().flat_map(|number| [number, ring - 1 - number]) {
                if (0..ring).contains(&index) {
                    push(index);
                }
            }
        }
        positions
    }

    /// The directions of classes, one where both are equivalent: where nothing goes half around a
    /// ring.
    fn classes(&self) -> &'static [Direction] {
        let odd = self.landing == Landing::Near && self.side() % 2 == 1;
        let one_direction = self.directions != Directions::Nearer || odd;
        if one_direction { &[Direction::Up] } else { &[Direction::Up, Direction::Down] }
    }

    /// The most hops that a block travels in `direction`.
    pub(super) fn rounds(&self, direction: Direction, first: Direction) -> u32 {
        let class = self.classes().iter().position(|&class| class == first).unwrap_or(0);
        self.rounds[class][usize::from(direction == Direction::Down)]
    }

    fn rounds_needed(&self, direction: Direction, first: Direction) -> u32 {
        (0..self.period).fold(0, |most, x| {
            let travels = |hops| self.travelling(x, hops, direction, first) > 0;
            let (mut low, mut high) = (most, self.word.ring(self.colour(x)));
            if high <= low || !travels(low + 1) {
                return most;
            }
            while low < high {
                let middle = (low + high).div_ceil(2);
                if travels(middle) {
                    low = middle;
                } else {
                    high = middle - 1;
                }
            }
            low
        })
    }

    /// Where the digits begin into which x receives in a round.
    fn base(&self, x: u32, round: u32, direction: Direction) -> u64 {
        let place = &self.places[self.at(x)];
        match direction {
            Direction::Up => place.own.width() + u64::from(round - 1) * place.up.width(),
            Direction::Down => self.regions[0] + u64::from(round - 1) * place.down.width(),
        }
    }

    /// The digits that x sends in a round: the digits received in the round before, less those that
    /// stay.
    pub(super) fn sent(
        &self,
        x: u32,
        round: u32,
        direction: Direction,
        first: Direction,
    ) -> Digits {
        if self.directions == Directions::Both {
            return self.sent_far_first(x, round, direction);
        }
        if self.landing == Landing::Distance {
            return self.exchanged_far(x, round, direction, first);
        }
        let none = Digits { first: 0, count: 0 };
        let behind = -direction.signed(round - 1);
        let Some(source) = self.along(x, behind).map(|source| self.wrapped(source)) else {
            return none;
        };
        let count = self.travelling(source, round, direction, first);
        match (round, count) {
            (_, 0) => none,
            (1, _) => Digits { first: self.base(x, 1, direction), count },
            _ => {
                let received = self.travelling(source, round - 1, direction, first);
                Digits { first: self.base(x, round - 1, direction) + received - count, count }
            }
        }
    }

    /// The digits into which x receives in a round.
    pub(super) fn received(
        &self,
        x: u32,
        round: u32,
        direction: Direction,
        first: Direction,
    ) -> Digits {
        if self.directions == Directions::Both {
            return self.received_far_first(x, round, direction);
        }
        if self.landing == Landing::Distance {
            return self.exchanged_far(x, round, direction, first);
        }
        let behind = -direction.signed(round);
        let count = self
            .along(x, behind)
            .map_or(0, |source| self.travelling(self.wrapped(source), round, direction, first));
        Digits { first: self.base(x, round, direction), count }
    }

    /// The digits that travellers up, with own blocks, and travellers down need at most.
    fn regions_needed(&self) -> [u64; 2] {
        if self.directions == Directions::Both {
            let largest = |of: &dyn Fn(u32) -> u64| (0..self.period).map(of).max().unwrap_or(0);
            let own = largest(&|x| self.places[self.at(x)].own.width());
            let up = largest(&|x| self.room_far_first(x, Direction::Up));
            return [own + up, largest(&|x| self.room_far_first(x, Direction::Down))];
        }
        if self.landing == Landing::Distance {
            return self.regions_far();
        }
        // A rank keeps as much of every source, and a round moves on by a gap. Where no two gaps of
        // a ring differ by more than 1, one of the two is never less than the other, and what is
        // needed grows from round to round or falls: the ends tell all.
        let ends_tell =
            matches!(self.word, Word::Repeated { .. }) || self.word.is_even(self.colours);
        let mut needed = [0; 2];
        for &first in self.classes() {
            for (region, direction) in [(0, Direction::Up), (1, Direction::Down)] {
                let rounds = self.rounds(direction, first);
                let step = if ends_tell { rounds.max(2) - 1 } else { 1 };
                for x in 0..self.period {
                    let own = if region == 0 { self.places[self.at(x)].own.width() } else { 0 };
                    needed[region] =
                        needed[region].max(own + self.travelling(x, 1, direction, first));
                    for round in (1..=rounds).step_by(step as usize) {
                        let Digits { first, count } = self.received(x, round, direction, first);
                        needed[region] = needed[region].max(first + count);
                    }
                }
            }
        }
        needed
    }

    /// The destination of an own block by compact digit: those that stay, then those that travel
    /// up and down, each by distance.
    pub(super) fn destination(&self, x: u32, compact: u64, first: Direction) -> u32 {
        let own = self.places[self.at(x)].own;
        let up = own.width() + self.travelling(x, 1, Direction::Up, first);
        let position = if compact < up {
            i64::from(x) - i64::from(own.below) + compact as i64
        } else {
            i64::from(x) - i64::from(own.below) - 1 - (compact - up) as i64
        };
        self.wrapped(position)
    }

    /// The end of the digits kept for blocks that travel in a direction.
    fn region_end(&self, direction: Direction) -> u64 {
        match direction {
            Direction::Up => self.regions[0],
            Direction::Down => self.regions[0] + self.regions[1],
        }
    }

    /// Blocks for a window that is not the last of a line.
    fn colours(&self) -> u64 {
        self.colours.into()
    }
}

/// How often a place lies around a ring, and where on it: few are around at all, and division is slow.
fn around(place: i64, ring: i64) -> (i64, i64) {
    match place {
        _ if (0..ring).contains(&place) => (0, place),
        _ if (-ring..0).contains(&place) => (-1, place + ring),
        _ => (place.div_euclid(ring), place.rem_euclid(ring)),
    }
}
