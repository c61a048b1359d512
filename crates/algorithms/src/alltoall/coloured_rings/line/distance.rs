//! Hops by distance alone, on a ring whose colours do not come out even.
//!
//! There the gaps of a ring differ, and ranks that land their blocks at the nearest rank of their
//! colour do not all send or receive equally much. If the distance of its destination gives a
//! block's hops, all ranks send equally much in every round, and as many pairs land at every rank
//! as the line has positions. The residual offset depends on the gaps passed, which are nearly m.
//!
//! Of m colours, blocks for up to m/2 positions away stay, those for m more make one hop, and so
//! on. Rings are so short on sides below 2m that all stay. A block's digit is its distance, and a
//! round receives into the digits that it sends. Blocks half a ring away land as those that travel
//! up do, in either direction.

use std::collections::BTreeMap;

use super::residual::{Group, Sources};
use super::{Digits, Direction, LineExchange, Piece, Pieces, push};

/// By hops, the farthest destination up, and down.
pub(super) fn ends(side: u32, colours: u32) -> [Vec<u32>; 2] {
    [side / 2, (side - 1) / 2].map(|farthest| {
        let first = if side < 2 * colours { farthest } else { farthest.min(colours / 2) };
        let hops = (farthest - first).div_ceil(colours);
        (0..=hops).map(|hops| farthest.min(first + hops * colours)).collect()
    })
}

impl LineExchange {
    /// The farthest destination that takes `hops` hops at most.
    fn end_far(&self, direction: Direction, hops: u32) -> u32 {
        let ends = &self.ends[usize::from(direction == Direction::Down)];
        ends[(hops as usize).min(ends.len() - 1)]
    }

    /// Whether a class has blocks that go half around the ring down.
    fn half_down(&self, first: Direction) -> bool {
        let travels = self.ends[0].len() > 1;
        first == Direction::Down && self.side() % 2 == 0 && travels
    }

    /// Blocks that travel `hops` or more.
    pub(super) fn travelling_far(
        &self,
        x: u32,
        hops: u32,
        direction: Direction,
        first: Direction,
    ) -> u64 {
        let half = self.half_down(first);
        let [up, down] = self.ends.each_ref().map(|ends| ends[ends.len() - 1]);
        let farthest = if direction == Direction::Up && !half { up } else { down };
        let count = farthest.saturating_sub(self.end_far(direction, hops - 1));
        // Half a ring away down is as many hops short of the ring as it is up.
        let hops_up = self.ends[0].len() as u32 - 1;
        let around = direction == Direction::Down
            && half
            && hops <= self.word.ring(self.colour(x)) - hops_up;
        u64::from(count + u32::from(around))
    }

    /// The digits that are sent and received in a round.
    pub(super) fn exchanged_far(
        &self,
        x: u32,
        round: u32,
        direction: Direction,
        first: Direction,
    ) -> Digits {
        let count = self.travelling_far(x, round, direction, first);
        let distance = self.end_far(direction, round - 1) + 1;
        Digits { first: self.digit_far(distance, direction), count }
    }

    /// The digit of a block by its distance.
    fn digit_far(&self, distance: u32, direction: Direction) -> u64 {
        let before = if direction == Direction::Up { self.ends[1][0] } else { self.side() / 2 };
        u64::from(before + distance)
    }

    /// The digits of blocks that travel up, with own ones, and of those that travel down.
    pub(super) fn regions_far(&self) -> [u64; 2] {
        let half = self.side() / 2;
        [self.ends[1][0] + 1 + half, half - self.ends[1][0]].map(u64::from)
    }

    /// Appends the groups after landing at x, by offset.
    pub(super) fn groups_far(&self, x: u32, out: &mut Vec<Group>) {
        let ring = self.word.ring(self.colour(x));
        let mut sources: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
        for direction in [Direction::Up, Direction::Down] {
            let ends = &self.ends[usize::from(direction == Direction::Down)];
            for hops in 0..ends.len() as u32 {
                let behind = self.along(x, -direction.signed(hops));
                let behind = behind.expect("a ring has no end") - i64::from(x);
                // Blocks that stay are counted once.
                let nearest = match (hops, direction) {
                    (0, Direction::Up) => 0,
                    (0, Direction::Down) => 1,
                    _ => ends[hops as usize - 1] + 1,
                };
                let number = if direction == Direction::Up { hops } else { (ring - hops) % ring };
                for distance in nearest..=ends[hops as usize] {
                    let offset = behind + direction.signed(distance);
                    sources.entry(offset).or_default().push(number);
                }
            }
        }
        let mut first = 0;
        let group = |(offset, mut sources): (i64, Vec<u32>)| {
            sources.sort_unstable();
            let count = sources.len() as u64;
            let group =
                Group { offset: offset as i32, sources: Sources::Listed(sources.into()), first };
            first += count;
            group
        };
        out.extend(sources.into_iter().map(group));
    }

    /// The digits that landed pairs have, by compact digit.
    pub(super) fn landed_far(&self, x: u32, first: Direction, out: &mut Pieces) {
        let (side, below) = (i64::from(self.side()), i64::from(self.ends[1][0]));
        let farthest = if self.half_down(first) { (side - 1) / 2 } else { side / 2 };
        for group in self.groups(x) {
            let Sources::Listed(sources) = &group.sources else { continue };
            for (compact, &hops) in (group.first..).zip(sources) {
                let source = i64::from(self.source_behind(x, hops));
                let up = (i64::from(x) + i64::from(group.offset) - source).rem_euclid(side);
                let digit = match up {
                    _ if up <= farthest => (below + up) as u64,
                    _ if side - up <= below => (below + up - side) as u64,
                    _ => self.digit_far((side - up) as u32, Direction::Down),
                };
                push(out, Piece { compact, count: 1, digit, stride: 1 });
            }
        }
    }
}
