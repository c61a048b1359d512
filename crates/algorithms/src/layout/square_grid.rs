//! Common parts of the exchanges on 2^d x 2^d grids: the check of the shape, coordinates, and slots
//! that number the bits still to be corrected.

use topocoll_schedule::{Slot, SlotSet, Strided};
use topocoll_topology::{Grid, Rank};

use crate::error::check_sides;
use crate::{NotApplicable, Request};

/// A grid of 2^d rows and 2^d columns; other sides are 1.
#[derive(Clone)]
pub(crate) struct SquareGrid {
    pub(crate) grid: Grid,
    /// The dimensions of rows and columns.
    dimensions: [usize; 2],
    /// d.
    pub(crate) d: u32,
}

/// Which coordinate changes: along a row the column does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Along {
    Row,
    Column,
}

impl SquareGrid {
    /// The square that a topology is, its sides wrapping or not as asked; either if not.
    pub(crate) fn of(request: &Request<'_>, wraps: Option<bool>) -> Result<Self, NotApplicable> {
        let needs = match wraps {
            Some(true) => "a torus of two sides",
            Some(false) => "a mesh of two sides",
            None => "a torus or mesh of two sides",
        };
        let grid = request.grid(needs)?;
        let long: Vec<usize> = grid.radix().long_dimensions().collect();
        let &[rows, columns] = &long[..] else { return Err(request.requires(needs)) };
        let equal = grid.wrap()[rows] == grid.wrap()[columns];
        if !equal || wraps.is_some_and(|wraps| grid.wrap()[rows] != wraps) {
            return Err(request.requires(needs));
        }
        let side = grid.sides()[rows];
        let breaks = side != grid.sides()[columns] || !side.is_power_of_two();
        check_sides(grid, "two equal sides, a power of two", |u| breaks && grid.sides()[u] > 1)?;
        Ok(Self { grid: grid.clone(), dimensions: [rows, columns], d: side.ilog2() })
    }

    pub(crate) fn wraps(&self) -> bool {
        self.grid.wrap()[self.dimensions[0]]
    }

    pub(crate) fn ranks(&self) -> u64 {
        1 << (2 * self.d)
    }

    /// The dimension of the coordinate that changes.
    pub(crate) fn dimension(&self, along: Along) -> usize {
        self.dimensions[usize::from(along == Along::Row)]
    }

    /// Row and column of a rank.
    pub(crate) fn at(&self, rank: Rank) -> (u32, u32) {
        (rank.0 >> self.d, rank.0 & ((1 << self.d) - 1))
    }

    pub(crate) fn rank(&self, (r, c): (u32, u32)) -> Rank {
        Rank(r << self.d | c)
    }

    /// The bits of row and column that a slot numbers: bit k of the column has weight 4^k, that of
    /// the row twice as much.
    pub(crate) fn bits(&self, slot: Slot) -> (u32, u32) {
        (0..self.d).fold((0, 0), |(r, c), k| {
            let (row, column) = ((slot >> (2 * k + 1) & 1) as u32, (slot >> (2 * k) & 1) as u32);
            (r | row << k, c | column << k)
        })
    }

    /// The slots in which bit k of the coordinate that changes is set.
    pub(crate) fn set(&self, along: Along, k: u32) -> SlotSet {
        let weight = 1 << (2 * k + u32::from(along == Along::Column));
        let runs = self.ranks() / (2 * weight);
        SlotSet::of(Strided::runs(weight, runs, 2 * weight, weight))
    }
}
