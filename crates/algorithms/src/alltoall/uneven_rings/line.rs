//! One side: the words of its ring, the paths of blocks along it, and its part of a slot.

use smallvec::SmallVec;
use topocoll_schedule::{Axis, Strided};

pub(super) use crate::layout::translation::Direction;
use Direction::{Down, Up};

/// A rank at which the hops of an odd round end one ring rank too early or too late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Miss {
    Short,
    Over,
}

/// A side of N ranks. Those whose positions are equal mod 2 are a ring of M = N/2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) dimension: usize,
    /// N.
    pub(super) side: u32,
    /// M.
    ring: u32,
    /// R, the most hops of a block.
    pub(super) rounds: u32,
    /// Places at which two neighbouring colours change places, each the first of two.
    swaps: &'static [u32],
}

/// The steps, of six, in which ranks of a ring send upwards.
const WORDS: [u8; 4] = [0b111_000, 0b100_110, 0b010_101, 0b001_011];

/// The steps of one exchange of short offsets.
pub(super) const SHORT_STEPS: u32 = 6;

impl Line {
    /// Whether a side has such a ring. One of 11 ranks has no word of four colours.
    pub(super) fn fits(side: u32) -> bool {
        (12..=1024).contains(&side) && side % 2 == 0 && side != 22
    }

    pub(super) fn new(dimension: usize, side: u32) -> Self {
        let ring = side / 2;
        let swaps: &[u32] = match (ring % 4, ring) {
            (0, _) | (_, ..8) => &[],
            (1, ..16) => &[2, 5, 8],
            (1, _) => &[2, 9, 16],
            (2, 10) => &[1, 4, 6, 9],
            (2, ..22) => &[1, 6, 8, 13],
            (2, _) => &[1, 6, 12, 17],
            _ => &[0, 5, 10],
        };
        Self { dimension, side, ring, rounds: ring / 8, swaps }
    }

    /// Positions after which ranks do the same.
    pub(super) fn period(&self) -> u32 {
        if self.ring % 4 == 0 { 8 } else { self.side }
    }

    /// Whether ranks that send upwards in an even round would also send downwards.
    fn is_apart(&self) -> bool {
        self.ring == 17
    }

    /// Steps of hops.
    pub(super) fn hop_steps(&self) -> u32 {
        4 * self.rounds + if self.is_apart() { 4 } else { 0 }
    }

    /// Steps in which ranks that hops of odd rounds miss correct them: two where a rank would meet
    /// a neighbour on each side.
    pub(super) fn correction_steps(&self) -> u32 {
        match self.ring {
            _ if self.swaps.is_empty() => 0,
            9 | 10 | 13 | 17 => 2,
            _ => 1,
        }
    }

    /// The directions that a step of corrections is for.
    pub(super) fn corrected(&self, step: u32) -> &'static [Direction] {
        match (self.correction_steps(), step) {
            (1, 0) => &[Up, Down],
            (2, 0) => &[Up],
            (2, 1) => &[Down],
            _ => &[],
        }
    }

    /// Places around the ring.
    pub(super) fn around(&self, place: u32, hops: i64) -> u32 {
        (i64::from(place) + hops).rem_euclid(self.ring.into()) as u32
    }

    pub(super) fn places(&self) -> std::ops::Range<u32> {
        0..self.ring
    }

    /// The colour of a place in the word of hops.
    fn colour(&self, place: u32) -> u32 {
        let mut order = [0, 1, 2, 3];
        for &swap in self.swaps.iter().filter(|&&swap| swap <= place) {
            order.swap(swap as usize % 4, swap as usize % 4 + 1);
        }
        order[place as usize % 4]
    }

    /// Ring hops to the next place of the colour.
    fn gap(&self, place: u32) -> u32 {
        let swapped = |back: i64| self.swaps.contains(&self.around(place, back));
        if swapped(4) {
            5
        } else if swapped(3) {
            3
        } else {
            4
        }
    }

    /// Ring hops from the previous place of the colour.
    fn gap_before(&self, place: u32) -> u32 {
        if self.swaps.contains(&place) {
            3
        } else if self.swaps.contains(&self.around(place, -1)) {
            5
        } else {
            4
        }
    }

    /// The round of a step of hops, from 1, and the step in it.
    pub(super) fn round(&self, step: u32) -> (u32, u32) {
        if self.is_apart() && step >= 4 { (2, step - 4) } else { (step / 4 + 1, step % 4) }
    }

    /// The place whose colour tells whether a place sends in a direction in a round.
    fn told_by(&self, round: u32, direction: Direction, place: u32) -> u32 {
        let shift = if round % 2 == 0 { 4 } else { 0 };
        self.around(place, if direction == Up { -shift } else { shift - 2 })
    }

    /// The direction in which a place hops in a step of hops, if it does.
    pub(super) fn hops_in(&self, step: u32, place: u32) -> Option<Direction> {
        let (round, step) = self.round(step);
        let sends = |direction: Direction| {
            let used = !self.is_apart() || round == 1 || (direction == Down) == (step >= 4);
            used && self.colour(self.told_by(round, direction, place)) == step % 4
        };
        [Up, Down].into_iter().find(|&direction| sends(direction))
    }

    /// The ring hops of a place's message in a round, and those of the message that it receives.
    pub(super) fn hop(&self, round: u32, direction: Direction, place: u32) -> [u32; 2] {
        let told = self.told_by(round, direction, place);
        let [up, down] = [self.gap(told), self.gap_before(told)];
        if direction == Up { [up, down] } else { [down, up] }
    }

    /// Whether a place is missed in odd rounds.
    pub(super) fn miss(&self, place: u32, direction: Direction) -> Option<Miss> {
        let [short, over] = if direction == Up { [0, -1] } else { [1, 2] };
        let swapped = |back: i64| self.swaps.contains(&self.around(place, back));
        if swapped(short) { Some(Miss::Short) } else { swapped(over).then_some(Miss::Over) }
    }

    /// The other place of a pair that corrects.
    pub(super) fn partner(&self, place: u32, direction: Direction, miss: Miss) -> u32 {
        let ahead = if miss == Miss::Short { direction } else { direction.other() };
        self.around(place, ahead.signed(1))
    }

    fn word(&self, place: u32) -> u8 {
        let threes = (4 - self.ring % 4) % 4;
        let fours = self.ring - 3 * threes;
        WORDS[if place < fours { place % 4 } else { (place - fours) % 3 } as usize]
    }

    /// The direction in which a place sends in a step of short offsets.
    pub(super) fn short_direction(&self, step: u32, place: u32) -> Direction {
        if self.word(place) >> step & 1 == 1 { Up } else { Down }
    }

    /// The ring hops, 1 to 3, of a place's message in a step of short offsets, and those of the
    /// message that it receives.
    pub(super) fn short(&self, step: u32, place: u32) -> [u32; 2] {
        let own = self.short_direction(step, place);
        [own, own.other()].map(|ahead| {
            let there = |&hops: &u32| {
                self.short_direction(step, self.around(place, ahead.signed(hops))) == own
            };
            (1..3).find(there).unwrap_or(3)
        })
    }

    /// The number, 1 to 3, of a step among those in which a place sends in the same direction.
    pub(super) fn track(&self, step: u32, place: u32) -> u32 {
        let own = self.short_direction(step, place);
        (0..=step).filter(|&step| self.short_direction(step, place) == own).count() as u32
    }

    /// The step of a track.
    fn step_of(&self, track: u32, place: u32, direction: Direction) -> u32 {
        let own = |step: &u32| self.short_direction(*step, place) == direction;
        (0..SHORT_STEPS).filter(own).nth(track as usize - 1).unwrap_or(0)
    }

    /// The track of a place along which blocks move three ring hops.
    pub(super) fn longest_track(&self, place: u32, direction: Direction) -> u32 {
        let longest =
            |track: &u32| self.short(self.step_of(*track, place, direction), place)[0] == 3;
        (1..3).find(longest).unwrap_or(3)
    }

    // A digit e < M is of blocks that move upwards, M of those of N / 2 hops, a larger one
    // of blocks that move down, as N - e upwards. A digit is
    // twice 4 t + i, plus the hop that is left at the end, if any. The block makes t hops and then goes along
    // track i or, in the last group, i ring hops.

    /// The first digit of the last group, upwards.
    fn last(&self) -> u32 {
        8 * self.rounds
    }

    /// The digits that move by ring hops of the last group, which other slots receive.
    fn moved(&self) -> std::ops::Range<u32> {
        let first = self.last() + 2;
        if first < self.ring + 1 { first..self.side - first + 1 } else { 0..0 }
    }

    /// Digits of slots.
    pub(super) fn digits(&self) -> u32 {
        self.side + self.moved().len() as u32
    }

    /// The digits in use, before the stage of this side or after it.
    pub(super) fn used(&self, after: bool) -> std::ops::Range<u32> {
        let first = if after { self.moved().len() as u32 } else { 0 };
        first..first + self.side
    }

    /// The used digits of no or one last hop.
    pub(super) fn of_parity(&self, after: bool, odd: bool) -> Strided {
        let first = self.used(after).start;
        let base = first + (first + u32::from(odd)) % 2;
        strided(base.into(), u64::from(self.side / 2), 2)
    }

    /// The digit of e, before or after.
    fn place_of(&self, e: u32, after: bool) -> u32 {
        let moved = self.moved();
        let digit = (e + self.side - moved.start) % self.side;
        if after && moved.contains(&e) { digit + self.side } else { digit }
    }

    /// e, of a digit that is used.
    pub(super) fn value(&self, digit: u32, after: bool) -> Option<u32> {
        let start = self.moved().start;
        self.used(after).contains(&digit).then(|| (digit + start) % self.side)
    }

    /// Digits from one e on, up to a last, some apart.
    fn range(&self, [first, last]: [u32; 2], apart: u32, after: bool) -> SmallVec<[Strided; 2]> {
        let moved = self.moved();
        let seam = if after { moved.end } else { moved.start };
        let mut out = SmallVec::new();
        if first > last {
            return out;
        }
        let mut push = |first: u32, end: u32| {
            if first < end {
                let count = (end - first).div_ceil(apart);
                out.push(strided(self.place_of(first, after).into(), count.into(), apart.into()));
            }
        };
        if (first + 1..=last).contains(&seam) {
            push(first, seam);
            push(seam + (apart - (seam - first) % apart) % apart, last + 1);
        } else {
            push(first, last + 1);
        }
        out
    }

    /// The digits of a direction from the distance `least` on, without that of N / 2.
    pub(super) fn at_least(&self, least: u32, direction: Direction) -> SmallVec<[Strided; 2]> {
        let ends = match direction {
            Up => [least, self.ring - 1],
            Down => [self.ring + 1, self.side - least],
        };
        if least < self.ring { self.range(ends, 1, false) } else { SmallVec::new() }
    }

    /// The digit of N / 2.
    pub(super) fn half(&self, after: bool) -> Strided {
        Strided::contiguous(self.place_of(self.ring, after).into(), 1)
    }

    /// The digits of a track, or of 0 for those that are in place, in groups of some rounds: all but
    /// the last, or the odd ones.
    pub(super) fn along(&self, track: u32, direction: Direction, odd: bool) -> Option<Strided> {
        let (first, apart) = if odd { (8 + 2 * track, 16) } else { (2 * track, 8) };
        let count = if odd { self.rounds / 2 } else { self.rounds };
        let farthest = first + apart * count.checked_sub(1)?;
        let e = if direction == Up { first } else { self.side - farthest - 1 };
        let base = self.place_of(e, false);
        Some(Strided::runs(base.into(), count.into(), apart.into(), 2))
    }

    /// Of the last group, the digits of some ring hops; and whether that of N / 2 is one of them.
    pub(super) fn of_last(
        &self,
        hops: u32,
        direction: Direction,
        after: bool,
    ) -> (SmallVec<[Strided; 2]>, bool) {
        let first = self.last() + 2 * hops;
        let last = (first + 1).min(self.ring - 1);
        let ends = match direction {
            Up => [first, last],
            Down => [self.side - last, self.side - first],
        };
        let out = if first <= last { self.range(ends, 1, after) } else { SmallVec::new() };
        (out, (first..first + 2).contains(&self.ring))
    }

    /// All of the last group but that of N / 2, if its blocks make an odd number of hops.
    pub(super) fn whole_last(&self, direction: Direction) -> Option<SmallVec<[Strided; 2]>> {
        (self.rounds % 2 == 1).then(|| self.at_least(self.last(), direction))
    }

    /// Whether blocks of N / 2 hops have a last hop.
    pub(super) fn half_is_odd(&self) -> bool {
        self.ring % 2 == 1
    }

    /// The digits with a last hop in a direction, with or without N / 2.
    pub(super) fn odd(&self, direction: Direction, half: bool) -> SmallVec<[Strided; 2]> {
        let ends = match (direction, half) {
            (Up, true) => [1, self.ring],
            (Up, false) => [1, self.ring - 1],
            (Down, true) => [self.ring, self.side - 1],
            (Down, false) => [self.ring + 1 + self.ring % 2, self.side - 1],
        };
        self.range(ends, 2, true)
    }

    /// The direction of e, the ring hops as a digit, and the last hops.
    fn parts(&self, e: u32, half: Direction) -> (Direction, u32, u32) {
        let (direction, distance) = match e.cmp(&self.ring) {
            std::cmp::Ordering::Less => (Up, e),
            std::cmp::Ordering::Equal => (half, e),
            std::cmp::Ordering::Greater => (Down, self.side - e),
        };
        (direction, distance / 2, distance % 2)
    }

    /// Ring hops that a block makes, of those before the short ones at a place: a block of no short
    /// hop at a rank that was missed, or of the longest where it was passed, came there by a
    /// correction.
    fn hops(&self, group: u32, short: u32, place: u32, direction: Direction) -> u32 {
        let miss = if group % 2 == 1 { self.miss(place, direction) } else { None };
        match miss {
            Some(Miss::Short) if short > 0 => 4 * group - 1,
            Some(Miss::Over) if short < 3 => 4 * group + 1,
            _ => 4 * group,
        }
    }

    /// Where the block of e at a position goes. Blocks of N / 2 hops go in a direction.
    pub(super) fn to(&self, at: u32, e: u32, half: Direction) -> u32 {
        let (direction, number, rest) = self.parts(e, half);
        let (group, track) = (number / 4, number % 4);
        let hops = if group == self.rounds {
            number
        } else {
            self.ring_hops(at / 2, group, track, direction)
        };
        self.shifted(at, direction.signed(2 * hops + rest))
    }

    /// The ring hops of a block along a track from its source.
    fn ring_hops(&self, source: u32, group: u32, track: u32, direction: Direction) -> u32 {
        let aim = self.around(source, direction.signed(4 * group));
        let Some(missed) = self.miss(aim, direction).filter(|_| group % 2 == 1) else {
            let step = (track > 0).then(|| self.step_of(track, aim, direction));
            return 4 * group + step.map_or(0, |step| self.short(step, aim)[0]);
        };
        // Hops that aim at one of a pair reach the other.
        let place = self.partner(aim, direction, missed);
        let short = match track {
            0 => 0,
            _ => self.short(self.step_of(track, place, direction), place)[0],
        };
        match self.miss(place, direction) {
            Some(Miss::Short) if short == 0 => 4 * group + 3,
            Some(Miss::Short) => 4 * group - 1 + short,
            _ if short == 3 => 4 * group,
            _ => 4 * group + 1 + short,
        }
    }

    /// Where the block of e at a position came from.
    pub(super) fn from(&self, at: u32, e: u32, half: Direction) -> u32 {
        let (direction, number, rest) = self.parts(e, half);
        let at = self.shifted(at, -direction.signed(rest));
        let (group, track, place) = (number / 4, number % 4, at / 2);
        let hops = if group == self.rounds {
            number
        } else {
            let short = match track {
                0 => 0,
                _ => self.short(self.step_of(track, place, direction), place)[1],
            };
            let before = self.around(place, -direction.signed(short));
            self.hops(group, short, before, direction) + short
        };
        self.shifted(at, -direction.signed(2 * hops))
    }

    fn shifted(&self, at: u32, hops: i64) -> u32 {
        (i64::from(at) + hops).rem_euclid(self.side.into()) as u32
    }
}

fn strided(base: u64, count: u64, apart: u64) -> Strided {
    let inner = Axis { count, stride: apart as i64 };
    Strided { base, outer: Axis::POINT, inner }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> impl Iterator<Item = Line> {
        (12..=1024).filter(|&side| Line::fits(side)).map(|side| Line::new(0, side))
    }

    #[test]
    fn a_place_sends_by_each_short_distance_once_in_each_direction() {
        for line in lines() {
            for place in line.places() {
                for direction in [Up, Down] {
                    let own = |step: &u32| line.short_direction(*step, place) == direction;
                    let steps: Vec<u32> = (0..SHORT_STEPS).filter(own).collect();
                    for end in 0..2 {
                        let hops = steps.iter().map(|&step| line.short(step, place)[end]);
                        let mut hops: Vec<u32> = hops.collect();
                        hops.sort_unstable();
                        assert_eq!(hops, [1, 2, 3], "{place} of {line:?}");
                    }
                }
            }
        }
    }

    /// In each round each place hops once in each direction, to a place of the same step.
    #[test]
    fn colours_fill_the_ring() {
        for line in lines() {
            let mut hopped = vec![[0; 2]; (line.rounds * line.ring) as usize];
            for step in 0..line.hop_steps() {
                let (round, _) = line.round(step);
                for place in line.places() {
                    let Some(direction) = line.hops_in(step, place) else { continue };
                    let [to, from] = line.hop(round, direction, place);
                    let next = line.around(place, direction.signed(to));
                    assert_eq!(line.hops_in(step, next), Some(direction), "{place} of {line:?}");
                    assert_eq!(line.hop(round, direction, next)[1], to, "{place} of {line:?}");
                    assert!((3..=5).contains(&to) && (3..=5).contains(&from));
                    hopped[((round - 1) * line.ring + place) as usize][direction as usize] += 1;
                }
            }
            assert!(hopped.iter().all(|times| *times == [1, 1]), "{line:?}");
        }
    }
}
