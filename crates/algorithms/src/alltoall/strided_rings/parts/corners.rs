//! The last moves, of at most a hop along each dimension, in groups that share no link.

use smallvec::SmallVec;

use super::side::Side;

/// A move in {0, 1, -1}^n: bit 2u for a hop upwards along dimension u, bit 2u + 1 for one downwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Corner(u32);

/// Moves of one step, of which no two have a bit in common.
pub(super) type Group = SmallVec<[Corner; 4]>;

impl Corner {
    /// The signed hop along a dimension.
    pub(super) fn hop(self, u: usize) -> i64 {
        i64::from(self.0 >> (2 * u) & 1) - i64::from(self.0 >> (2 * u + 1) & 1)
    }

    pub(super) fn hops(self) -> u32 {
        self.0.count_ones()
    }
}

/// Groups of at most n moves, each of moves of equally many hops, each as large as possible.
pub(super) fn groups(sides: &[Side]) -> Vec<Group> {
    let mut moves = vec![0];
    for (u, side) in sides.iter().enumerate() {
        let bits = side.hops_left().iter().map(|&hop| 1 << (2 * u + usize::from(hop < 0)));
        let bits: SmallVec<[u32; 3]> = [0].into_iter().chain(bits).collect();
        moves = moves.iter().flat_map(|&before| bits.iter().map(move |bit| before | bit)).collect();
    }
    let mut groups = Vec::new();
    for hops in 1..=sides.len() {
        let of = |moved: &u32| moved.count_ones() as usize == hops;
        let mut left: Vec<u32> = moves.iter().copied().filter(of).collect();
        let most = sides.len().min(2 * sides.len() / hops);
        while !left.is_empty() {
            let mut best = SmallVec::new();
            fill(&left, most, &mut SmallVec::new(), &mut best);
            left.retain(|moved| !best.contains(&Corner(*moved)));
            groups.push(best);
        }
    }
    groups
}

/// Looks for a largest group with the first of the moves, or one of `most`.
fn fill(moves: &[u32], most: usize, chosen: &mut Group, best: &mut Group) {
    let used = chosen.iter().fold(0, |used, moved| used | moved.0);
    for (number, &moved) in moves.iter().enumerate() {
        if best.len() == most || (chosen.is_empty() && number > 0) {
            return;
        }
        if moved & used == 0 {
            chosen.push(Corner(moved));
            if chosen.len() > best.len() {
                best.clone_from(chosen);
            }
            fill(&moves[number + 1..], most, chosen, best);
            chosen.pop();
        }
    }
}
