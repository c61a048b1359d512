//! Layouts around a ring phase: which digits own blocks have before it, and landed ones after it.

use smallvec::SmallVec;

use super::residual::Sources;
use super::{Direction, Directions, Landing, LineExchange};

/// Compact digits in arithmetic progression in the digits of a layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Piece {
    pub(in super::super) compact: u64,
    pub(in super::super) count: u64,
    pub(in super::super) digit: u64,
    pub(in super::super) stride: i64,
}

impl Piece {
    /// The compact digit that has this digit, if one does.
    fn compact_of(&self, digit: u64) -> Option<u64> {
        let steps = (digit as i64 - self.digit as i64) / self.stride;
        let place = u64::try_from(steps).ok().filter(|&place| place < self.count)?;
        (self.digit as i64 + steps * self.stride == digit as i64).then_some(self.compact + place)
    }
}

/// A layout's digits, a few pieces.
pub(in super::super) type Pieces = SmallVec<[Piece; 16]>;

impl LineExchange {
    /// Where the digits begin that x keeps of the source `hops` behind, and the step from there to
    /// those of the next.
    fn kept(&self, x: u32, hops: u32, direction: Direction) -> (u64, i64) {
        let place = &self.places[self.at(x)];
        let width = if direction == Direction::Up { place.up.width() } else { place.down.width() };
        match self.directions {
            Directions::Both => {
                (self.region_end(direction) - u64::from(hops) * width, -(width as i64))
            }
            Directions::Nearer | Directions::Once => (self.base(x, hops, direction), width as i64),
        }
    }

    /// The digits that landed pairs have at the end of a ring phase, by compact digit.
    pub(in super::super) fn landed_pieces(&self, x: u32, first: Direction, out: &mut Pieces) {
        let place = &self.places[self.at(x)];
        let ring = self.word.ring(self.colour(x));
        out.clear();
        if self.landing == Landing::Distance {
            return self.landed_far(x, first, out);
        }
        for group in self.groups(x) {
            let Sources::Behind { from, to } = group.sources else { continue };
            let offset = i64::from(group.offset);
            let own = (offset + i64::from(place.own.below)) as u64;
            push(out, Piece { compact: group.first, count: 1, digit: own, stride: 1 });
            // Numbers j of the sources from which this class travels up, then down.
            let border = (1 + self.sources_below(x, offset, first)).clamp(from, to);
            let compact = |j: u32| group.first + 1 + u64::from(j - from);
            if border > from {
                let (kept, step) = self.kept(x, from, Direction::Up);
                let digit = match self.directions {
                    Directions::Both => kept as i64 + i64::from(place.up.above) - offset,
                    _ => kept as i64 + i64::from(place.up.below) + offset,
                } as u64;
                let count = u64::from(border - from);
                push(out, Piece { compact: compact(from), count, digit, stride: step });
            }
            if to > border {
                let (first, step) = self.kept(x, ring - border, Direction::Down);
                let digit = match self.directions {
                    Directions::Both => first + (i64::from(place.down.below) + offset) as u64,
                    _ => first + (i64::from(place.down.above) - offset).max(0) as u64,
                };
                let count = u64::from(to - border);
                push(out, Piece { compact: compact(border), count, digit, stride: -step });
            }
        }
    }

    /// The digits that own blocks have at the start of a ring phase, by compact digit.
    pub(in super::super) fn start_pieces(&self, x: u32, first: Direction, out: &mut Pieces) {
        let above =
            self.places[self.at(x)].own.width() + self.travelling(x, 1, Direction::Up, first);
        let below = self.travelling(x, 1, Direction::Down, first);
        out.clear();
        if self.directions == Directions::Both {
            let own = self.places[self.at(x)].own.width();
            push(out, Piece { compact: 0, count: own, digit: 0, stride: 1 });
            for (first, last, direction) in
                [(own, above, Direction::Up), (above, above + below, Direction::Down)]
            {
                let digit = self.region_end(direction) - 1;
                push(out, Piece { compact: first, count: last - first, digit, stride: -1 });
            }
            return;
        }
        push(out, Piece { compact: 0, count: above, digit: 0, stride: 1 });
        push(out, Piece { compact: above, count: below, digit: self.regions[0], stride: 1 });
    }

    /// The compact digit at the start of a ring phase that has this digit, if any.
    pub(in super::super) fn start_digit(
        &self,
        x: u32,
        digit: u64,
        first: Direction,
    ) -> Option<u64> {
        let mut pieces = Pieces::new();
        self.start_pieces(x, first, &mut pieces);
        pieces.iter().find_map(|piece| piece.compact_of(digit))
    }
}

/// Appends a piece, lengthening the last where it goes on.
pub(super) fn push(out: &mut Pieces, piece: Piece) {
    if piece.count == 0 {
        return;
    }
    if let Some(last) = out.last_mut()
        && last.compact + last.count == piece.compact
    {
        // One digit has any stride.
        let stride = match (last.count, piece.count) {
            (1, 1) => piece.digit as i64 - last.digit as i64,
            (1, _) => piece.stride,
            _ => last.stride,
        };
        if last.digit as i64 + last.count as i64 * stride == piece.digit as i64
            && (piece.count == 1 || piece.stride == stride)
        {
            last.count += piece.count;
            last.stride = stride;
            return;
        }
    }
    out.push(piece);
}
