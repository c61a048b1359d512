//! The exchange on the ranks of one colour of a line that does not wrap, at the bound of its middle
//! link.
//!
//! Let a direction number the m ranks of a colour 0 .. m-1. In round t rank i sends its blocks for
//! the window of rank m-t, the farthest first, and from then on they move on in every round; so rank
//! x sends in round t what (i, j) with i + j = m + x - t, i <= x < j, still has to pass. These are
//! min(x + 1, t) windows where x + t < m and min(m - t, m - 1 - x) elsewhere, at most min(t, m - t)
//! anywhere, and over the m - 1 rounds floor(m^2/4), which is what the middle link must carry.
//!
//! A rank keeps its own blocks by falling distance, so that the nearest are at the end of a region.
//! Its message ends with those of round t; the received message ends there too, in the slots just
//! sent. Once its own have gone, the last window received in each round stays, and the next message
//! ends before it.

use super::{Digits, Direction, LineExchange};

impl LineExchange {
    /// The number of position x of its colour in a direction, and of all of them.
    fn numbered(&self, x: u32, direction: Direction) -> (i64, i64) {
        let ring = i64::from(self.word.ring(self.colour(x)));
        let index = i64::from(self.word.index(x));
        (if direction == Direction::Up { index } else { ring - 1 - index }, ring)
    }

    /// Blocks for the window of a rank and for that of the last of its colour.
    fn widths(&self, x: u32, direction: Direction) -> (u64, u64) {
        let colour = self.colour(x);
        let far = if direction == Direction::Up { self.word.ring(colour) - 1 } else { 0 };
        let width = |x| self.places[self.at(x)].own.width();
        (width(x), width(self.word.position(colour, far)))
    }

    /// Blocks that the rank numbered `number`, of x's colour, sends in a round.
    fn passing(&self, x: u32, number: i64, round: u32, direction: Direction) -> u64 {
        let (_, ring) = self.numbered(x, direction);
        let t = i64::from(round);
        let (low, high) = ((number - t + 1).max(0), number.min(ring - t - 1));
        if number < 0 || high < low {
            return 0;
        }
        let (_, far) = self.widths(x, direction);
        let windows = (high - low + 1) as u64 * self.colours();
        // The farthest window, which alone may differ, is that of the lowest source.
        if number + 1 >= t { windows - self.colours() + far } else { windows }
    }

    /// Where a round's messages end, both that sent and that received.
    fn end(&self, x: u32, round: u32, direction: Direction) -> u64 {
        let (number, ring) = self.numbered(x, direction);
        let own_left = ring - 1 - number - i64::from(round);
        let windows = if own_left >= 0 { own_left } else { -own_left - 1 } as u64;
        let width = if own_left >= 0 { self.colours() } else { self.widths(x, direction).0 };
        self.region_end(direction) - windows * width
    }

    /// The digits that x sends in a round.
    pub(super) fn sent_far_first(&self, x: u32, round: u32, direction: Direction) -> Digits {
        let (number, _) = self.numbered(x, direction);
        let count = self.passing(x, number, round, direction);
        self.ending(x, round, direction, count)
    }

    /// The digits into which x receives in a round.
    pub(super) fn received_far_first(&self, x: u32, round: u32, direction: Direction) -> Digits {
        let (number, _) = self.numbered(x, direction);
        let count = self.passing(x, number - 1, round, direction);
        self.ending(x, round, direction, count)
    }

    fn ending(&self, x: u32, round: u32, direction: Direction, count: u64) -> Digits {
        if count == 0 {
            return Digits { first: 0, count };
        }
        Digits { first: self.end(x, round, direction) - count, count }
    }

    /// The digits that blocks need at x that travel in a direction.
    pub(super) fn room_far_first(&self, x: u32, direction: Direction) -> u64 {
        let (number, _) = self.numbered(x, direction);
        let (own, far) = self.widths(x, direction);
        let received = number as u64 * own;
        let passing = if number > 0 { far.saturating_sub(self.colours()) } else { 0 };
        self.travelling(x, 1, direction, direction).max(received + passing)
    }
}
