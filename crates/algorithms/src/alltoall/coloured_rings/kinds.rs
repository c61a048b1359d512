//! Which positions of a line make ranks do the same in a step.
//!
//! A rank's messages are products over dimensions of what its positions say: the digits that move
//! along one of them, and those that the others hold. Few values occur.

use topocoll_schedule::Kinds;

use super::line::{Digits, LineExchange, Pieces};
use super::{ColouredRule, Direction, Phase, Residual};

impl ColouredRule {
    /// Writes the kinds of positions in a step.
    pub(super) fn kinds_of(&self, step: u32, kinds: &mut Kinds) {
        let (phase, in_phase) = self.phase(step);
        kinds.reset(self.grid.sides());
        for (v, line) in self.lines.iter().enumerate() {
            let mut split = |value: &dyn Fn(u32) -> u64| kinds.split(self.long[v], value);
            // The class, and the digits held along another dimension.
            split(&|x| line.colour(x).into());
            split(&|x| line.landed(x));
            if in_phase == 0
                && let Some(before) = self.phase_before(phase)
            {
                for own in self.own_directions() {
                    split(&|x| rearranged(line, x, own, before));
                }
            }
            match (phase, &self.residual) {
                (Phase::Ring(_), _) => {
                    for own in self.own_directions() {
                        let (round, direction) = self.round(in_phase, own);
                        split(&|x| line.received(x, round, direction, own).count);
                        split(&|x| line.sent(x, round, direction, own).count);
                        split(&|x| match line.next(x, direction) {
                            Some((_, hops)) if line.sent(x, round, direction, own).count > 0 => {
                                hops as u64
                            }
                            _ => 0,
                        });
                    }
                }
                (Phase::Residual(u), Residual::Axis) if u != v => {}
                (Phase::Residual(_), Residual::Axis) => {
                    split(&|x| moved(line.exchange(x, in_phase).send));
                    split(&|x| moved(line.exchange(x, in_phase).receive));
                }
                (Phase::Residual(_), Residual::Windows(_)) => {
                    split(&|x| (x % self.colours).into());
                }
            }
        }
    }
}

/// The digits that a rearrangement after a phase moves along a line, and before the next.
fn rearranged(line: &LineExchange, x: u32, own: Direction, before: Phase) -> u64 {
    let mut pieces = Pieces::new();
    match before {
        Phase::Ring(_) => line.landed_pieces(x, own, &mut pieces),
        Phase::Residual(_) => line.arrived_pieces(x, &mut pieces),
    }
    let ends: u64 = pieces.iter().map(|piece| piece.count).sum();
    line.start_pieces(x, own, &mut pieces);
    let starts: u64 = pieces.iter().map(|piece| piece.count).sum();
    ends << 32 | starts
}

/// An offset and a number of digits as one number.
fn moved(way: Option<(i32, Digits)>) -> u64 {
    way.map_or(0, |(offset, digits)| digits.count << 32 | u64::from(offset as u32))
}
