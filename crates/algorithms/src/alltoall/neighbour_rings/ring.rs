//! One ring of a side that wraps: the places of its blocks, and the moves of a phase.

use smallvec::SmallVec;

/// A side that wraps.
#[derive(Clone, Copy)]
pub(super) struct Ring {
    pub(super) dimension: usize,
    pub(super) side: u32,
    /// The levels of leaders.
    pub(super) levels: u32,
}

/// Blocks of equal remaining moves, as places before and after a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    /// The first place at the sender.
    pub(super) from: u32,
    /// The first place at the receiver.
    pub(super) to: u32,
    /// Consecutive places.
    pub(super) count: u32,
    /// Whether their distances are odd.
    pub(super) odd: bool,
    /// Whether half of the blocks move in each direction.
    pub(super) halved: bool,
}

pub(super) type Moves = SmallVec<[Move; 16]>;

/// Where the blocks of a direction are, by distance.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Those of the direction.
    Own,
    /// Those of the other direction.
    Other,
    /// Behind them, at the leaders of the second level.
    ExtraOwn,
    ExtraOther,
}

/// Places of quads: blocks of two neighbours that leave a leader with D pairs of hops left.
#[derive(Clone, Copy)]
struct Quads {
    extra: bool,
    /// The distance in quads of these places from those of the blocks.
    shift: i64,
}

const QUADS: Quads = Quads { extra: false, shift: 0 };
const EXTRA: Quads = Quads { extra: true, shift: 0 };

impl Ring {
    /// Even sides that leaders make faster, and multiples of 4 that two levels do.
    pub(super) fn levels_of(side: u32) -> u32 {
        match side {
            24.. if side % 4 == 0 => 2,
            8.. if side % 2 == 0 => 1,
            _ => 0,
        }
    }

    /// The rounds of a phase.
    pub(super) fn rounds(self) -> u32 {
        match self.levels {
            0 => self.side / 2,
            1 => (self.side / 2 - 1) / 2 + 2,
            _ => (self.side / 4 - 1) / 2 + 4,
        }
    }

    /// The hops of all moves in a round.
    pub(super) fn hops(self, round: u32) -> u32 {
        let left = self.rounds() - 1 - round;
        1 << self.levels.min(round).min(left)
    }

    /// Positions after which moves repeat.
    pub(super) fn period(self) -> u32 {
        1 << self.levels
    }

    /// The longest distance less than half a side.
    fn longest(self) -> u32 {
        (self.side - 1) / 2
    }

    /// Places of even distances.
    pub(super) fn evens(self) -> u32 {
        self.longest() / 2 + 1 + self.side / 4
    }

    /// Places at or above `side`, which are empty before and after a phase.
    pub(super) fn extra(self) -> u32 {
        if self.levels == 2 { self.side - 8 } else { 0 }
    }

    /// The places of distances of a parity that are reached upwards, or 0.
    pub(super) fn ups(self, odd: bool) -> (u32, u32) {
        let longest = self.longest();
        if odd { (self.evens(), longest.div_ceil(2)) } else { (0, longest / 2 + 1) }
    }

    /// The signed distance of the blocks at a place before the phases.
    pub(super) fn hops_to(self, place: u32) -> i64 {
        let odd = place >= self.evens();
        let (first, count) = self.ups(odd);
        let number = place - first;
        match number.checked_sub(count) {
            None => i64::from(2 * number + u32::from(odd)),
            Some(number) => -i64::from(2 * number + if odd { 1 } else { 2 }),
        }
    }

    /// The signed distance of the blocks at a place of position x after the phases, from their source.
    pub(super) fn hops_from(self, place: u32, x: u32) -> i64 {
        let hops = self.hops_to(place);
        let crosses = self.levels == 2 && x % 4 == if hops > 0 { 2 } else { 1 };
        match hops.abs() {
            1 if self.side > 2 => -hops,
            2 | 3 if crosses => hops + 2 * hops.signum(),
            4 | 5 if crosses => hops - 2 * hops.signum(),
            _ => hops,
        }
    }

    /// The number of a place.
    fn place(self, place: Place, down: bool, distance: u32) -> u32 {
        let (half, odd) = (distance / 2, distance % 2);
        let quads = (self.side / 4).wrapping_sub(2);
        match (place, down) {
            (Place::ExtraOwn, _) => self.side + odd * quads + half - 2,
            (Place::ExtraOther, _) => self.side + (3 - odd) * quads + half - 3 + odd,
            (Place::Own, false) | (Place::Other, true) if 2 * distance < self.side => {
                self.ups(odd == 1).0 + half
            }
            _ => {
                let (first, count) = self.ups(odd == 1);
                first + count + half - (1 - odd)
            }
        }
    }

    /// The moves of a rank at x in a round, up or down.
    pub(super) fn moves(self, round: u32, down: bool, x: u32) -> Moves {
        let mut out = Moves::new();
        // Downwards all is the mirror image.
        let x = if down { self.side - 1 - x } else { x };
        let to = Moving { ring: self, down, out: &mut out };
        match self.levels {
            0 => to.hop(round + 1),
            _ if round == 0 => to.first(x),
            _ if round + 1 == self.rounds() => to.last(x),
            1 => to.between_pairs(x, round),
            _ => to.between_fours(x, round),
        }
        out
    }
}

/// The moves of a direction, as they are added.
struct Moving<'m> {
    ring: Ring,
    down: bool,
    out: &'m mut Moves,
}

impl Moving<'_> {
    /// Adds the blocks of every other distance. Their places are of distances `shift` more.
    fn every_other(&mut self, low: u32, high: u32, [from, to]: [(Place, i64); 2]) {
        if low > high {
            return;
        }
        let Self { ring, down, .. } = *self;
        let mut add = |first: u32, count: u32| {
            let at = |(place, shift): (Place, i64)| {
                ring.place(place, down, (i64::from(first) + shift) as u32)
            };
            if count > 0 {
                let odd = first % 2 == 1;
                self.out.push(Move { from: at(from), to: at(to), count, odd, halved: false });
            }
        };
        let last = high - (high - low) % 2;
        // Half a side has one place for both directions, which continues those of one only.
        let alone = u32::from(2 * last == ring.side);
        add(low, (last - low) / 2 + 1 - alone);
        add(last, alone);
    }

    /// Adds the blocks of all distances in a range.
    fn all(&mut self, low: u32, high: u32, from: Place, to: Place) {
        for low in [low, low + 1] {
            self.every_other(low, high, [(from, 0), (to, 0)]);
        }
    }

    /// Adds quads. Those that arrive are put where their distance ends.
    fn quads(&mut self, low: u32, high: u32, [from, to]: [Quads; 2], arrive: bool) {
        let half = self.ring.side / 2;
        let place = |quads: Quads, own: bool| match (quads.extra, own) {
            (false, true) => (Place::Own, 2 * quads.shift),
            (false, false) => (Place::Other, 2 * quads.shift),
            (true, true) => (Place::ExtraOwn, 2 * quads.shift),
            (true, false) => (Place::ExtraOther, 2 * quads.shift),
        };
        // Of each quad, by distance from their sources: whether from the leader, and where they arrive.
        for (added, own, ends_own) in
            [(0, true, true), (1, true, false), (1, false, true), (2, false, false)]
        {
            let most = if own { half - 1 } else { half };
            let ends = place(to, if arrive { ends_own } else { own });
            if 2 * low + added <= most {
                let high = (2 * high + added).min(most);
                self.every_other(2 * low + added, high, [place(from, own), ends]);
            }
        }
    }

    /// Hop by hop: the blocks at a distance of at least `round`, from 1.
    fn hop(mut self, round: u32) {
        let Ring { side, .. } = self.ring;
        let longest = self.ring.longest();
        if round == 1 && longest > 0 {
            self.all(1, 1, Place::Own, Place::Other);
        }
        self.all(round.max(2), longest, Place::Own, Place::Own);
        if side % 2 == 0 {
            let before = self.out.len();
            self.all(side / 2, side / 2, Place::Own, Place::Own);
            self.out[before..].iter_mut().for_each(|own| own.halved = true);
        }
    }

    /// To the leader next to the source.
    fn first(mut self, x: u32) {
        if x % 2 == 1 {
            self.all(2, self.ring.side / 2, Place::Own, Place::Other);
        } else {
            self.all(1, 1, Place::Own, Place::Other);
        }
    }

    /// From the leader next to the destination.
    fn last(mut self, x: u32) {
        if x % 2 == 1 {
            return self.all(1, 1, Place::Own, Place::Other);
        }
        let half = self.ring.side / 2;
        let most = half - half % 2;
        let crossed = self.crossed(x);
        if crossed {
            for (distance, shift) in [(3, 2), (4, 2), (5, -2), (6, -2)] {
                self.every_other(distance, distance, [(Place::Other, shift), (Place::Own, 0)]);
            }
            self.all(2, 2, Place::Other, Place::Own);
        }
        self.all(if crossed { 7 } else { 2 }, most, Place::Other, Place::Own);
    }

    /// Whether the quads 1 and 2 are in each other's places at x, after the first of them moved.
    fn crossed(&self, x: u32) -> bool {
        self.ring.levels == 2 && x % 4 == 2
    }

    /// By two hops, from leader to leader.
    fn between_pairs(mut self, x: u32, round: u32) {
        if x % 2 == 1 {
            return;
        }
        let most = self.ring.side / 4;
        let at = |quad: u32, crossed: bool| match quad {
            1 if crossed => Quads { shift: 1, ..QUADS },
            2 if crossed => Quads { shift: -1, ..QUADS },
            _ => QUADS,
        };
        let (before, after) = (self.crossed(x) && round > 1, self.crossed(x + 2));
        for quad in round..=2.max(round) {
            self.quads(quad, quad, [at(quad, before), at(quad, after)], quad == round);
        }
        self.quads(3.max(round + 1), most, [QUADS; 2], false);
    }

    /// The same with leaders among the leaders, and by four hops from one of these to the next.
    fn between_fours(mut self, x: u32, round: u32) {
        let most = self.ring.side / 4 - 1;
        let crossed = |shift| Quads { shift, ..QUADS };
        match (x % 4, round) {
            (1 | 3, _) => {}
            (2, 1) => self.quads(2, most, [QUADS, EXTRA], false),
            (0, 1) => self.quads(1, 1, [QUADS, crossed(1)], true),
            (2, _) if round + 2 == self.ring.rounds() => self.quads(1, 1, [QUADS; 2], true),
            (0, _) if round + 2 == self.ring.rounds() => {
                self.quads(2, 2, [EXTRA, crossed(-1)], true);
                self.quads(3, most, [EXTRA, QUADS], true);
            }
            (0, _) => {
                let quad = 2 * (round - 1);
                self.quads(quad, quad, [QUADS; 2], true);
                self.quads(quad + 2, most, [QUADS; 2], false);
                if quad < most {
                    self.quads(quad + 1, quad + 1, [QUADS, EXTRA], false);
                    self.quads(quad + 1, quad + 1, [EXTRA, QUADS], true);
                    self.quads(quad + 2, most, [EXTRA; 2], false);
                }
            }
            _ => {}
        }
    }
}
