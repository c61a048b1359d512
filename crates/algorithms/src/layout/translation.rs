//! What all ranks of a grid do alike: moves by the same hops, and classes by periods of sides.

use topocoll_schedule::{RankClasses, SlotSet, Step};
use topocoll_topology::{Coordinates, Grid, Rank, Route};

/// The direction along a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Up,
    Down,
}

impl Direction {
    pub(crate) fn signed(self, hops: u32) -> i64 {
        if self == Self::Up { hops.into() } else { -i64::from(hops) }
    }

    pub(crate) fn other(self) -> Self {
        if self == Self::Up { Self::Down } else { Self::Up }
    }
}

/// Adds the message of some slots by hops along dimensions, in their order, and the one that comes by
/// the same hops.
pub(crate) fn shift(
    grid: &Grid,
    rank: Rank,
    hops: impl IntoIterator<Item = (usize, i64)>,
    slots: SlotSet,
    out: &mut Step,
) {
    let (mut to, mut from, mut route) = (rank, rank, Route::default());
    for (dimension, hops) in hops.into_iter().filter(|&(_, hops)| hops != 0) {
        to = grid.radix().shifted(to, dimension, hops);
        from = grid.radix().shifted(from, dimension, -hops);
        route.push(dimension as u32, hops);
    }
    out.receive(from, slots.clone());
    out.send(to, slots, route);
}

/// The classes of ranks that differ by multiples of the periods of some dimensions, and by anything
/// along the others.
pub(crate) fn classes(grid: &Grid, periods: impl IntoIterator<Item = (usize, u32)>) -> RankClasses {
    let mut all = Coordinates::from_elem(1, grid.radix().dimensions());
    for (dimension, period) in periods {
        all[dimension] = period;
    }
    RankClasses::translations(grid.radix().clone(), all)
}
