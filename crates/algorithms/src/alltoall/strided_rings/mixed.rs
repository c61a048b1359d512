//! Rings of stride 3 along two dimensions with two vertices: the two directions of a matching beside
//! the hops of another class.

use super::line::{Part, StridedLine};
use super::{Sharing, StridedRule};

impl StridedRule {
    /// Whether no class waits: of three classes, along two dimensions, with one edge in the matching.
    pub(super) fn is_mixed(&self) -> bool {
        let shape = (self.share, self.stride, self.lines.len()) == (Sharing::Classes, 3, 2);
        shape && self.lines.iter().all(|line| line.vertices() <= 2)
    }

    /// Steps of a stage: a step of matchings, hops but the one beside matchings, and another step of
    /// matchings.
    pub(super) fn mixed_steps(&self) -> u32 {
        let hops = |line: &StridedLine| line.hop_steps() + line.half_steps() - 1;
        2 + self.lines.iter().map(hops).max().unwrap_or(0)
    }

    /// Along which line a class moves in a step of a stage, and how.
    ///
    /// In the first step the class whose hops are along dimension 1 hops, the next class goes up
    /// along dimension 0, and the one after it down. In the last step the class whose hops are along
    /// dimension 0 hops, and the others go along dimension 1. So all hops of a class along a dimension
    /// are in a row, and none of its matchings along this dimension is between them.
    pub(super) fn mixed_part(&self, class: u32, stage: u32, step: u32) -> Option<(usize, Part)> {
        let own = (class + stage) % 3;
        let hopping = match step {
            0 => 1,
            _ if step == self.mixed_steps() - 1 => 0,
            _ => {
                let line = self.lines.get(own as usize)?;
                let hop = step - 1 + u32::from(step > line.middle_hop());
                let exists = hop < line.hop_steps() + line.half_steps();
                return exists.then(|| (own as usize, line.hop(hop)));
            }
        };
        let (u, turn) =
            if own == hopping { (hopping, 0) } else { (1 - hopping, (own + 3 - hopping) % 3) };
        let line = &self.lines[u as usize];
        let part = match turn {
            0 => line.hop(line.middle_hop()),
            turn => (turn <= line.match_steps()).then(|| line.matched(turn - 1))?,
        };
        Some((u as usize, part))
    }
}
