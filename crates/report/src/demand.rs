//! The demand matrix of the page, as heat.

use serde::Serialize;
use topocoll::{Demand, Problem, Rank};

/// The most rows and columns.
const SIDE: usize = 64;

/// Bytes between pairs of ranks, or of as many consecutive ranks as a row stands for.
#[derive(Serialize)]
pub(crate) struct DemandHeat {
    /// The name of the matrix.
    name: String,
    /// Consecutive ranks of a row, and of a column.
    ranks_each: usize,
    /// By sender, the bytes for each receiver.
    rows: Vec<Vec<u128>>,
}

impl DemandHeat {
    /// The heat of a matrix of all ranks of a machine.
    pub(crate) fn new(name: &str, demand: &Demand, problem: &Problem) -> Self {
        let ranks = demand.ranks() as usize;
        let ranks_each = ranks.div_ceil(SIDE).max(1);
        let side = ranks.div_ceil(ranks_each);
        let mut rows = vec![vec![0; side]; side];
        for (from, row) in (0..demand.ranks()).map(|from| (from, from as usize / ranks_each)) {
            // No network carries what ranks have for themselves.
            for to in (0..demand.ranks()).filter(|&to| to != from) {
                let bytes = demand.bytes(problem.wanted(Rank(from), Rank(to)));
                rows[row][to as usize / ranks_each] += u128::from(bytes);
            }
        }
        Self { name: name.to_owned(), ranks_each, rows }
    }
}
