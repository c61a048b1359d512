//! Link loads of several steps together.

use hashbrown::HashMap;
use topocoll_topology::{Grid, Level};

use super::{Over, Shift, most, tree, turn};
use crate::loads::LineLoads;

/// The bytes on the busiest link over several steps.
pub(crate) enum Totals<'t> {
    Grid(&'t Grid, Vec<TotalsAlong>),
    /// By level and direction.
    Tree(&'t [Level], Vec<LineLoads>),
}

/// Bytes on the links of one dimension, upwards and downwards.
#[derive(Clone, Default)]
pub(crate) struct TotalsAlong {
    /// Bytes on lines of the lowest suffix.
    lowest: [i128; 2],
    /// By suffix, the bytes by which lines from this suffix on carry more.
    more: HashMap<u32, [i128; 2]>,
}

impl<'t> Totals<'t> {
    pub(crate) fn new(over: Over<'t>) -> Self {
        match over {
            Over::Grid(grid) => Self::Grid(grid, vec![TotalsAlong::default(); grid.sides().len()]),
            Over::Tree(levels) => {
                Self::Tree(levels, tree::directions(levels).map(|_| LineLoads::default()).collect())
            }
        }
    }

    /// Adds messages of every node.
    pub(crate) fn add(&mut self, message: Shift) {
        let (shift, bytes) = (message.node, u128::from(message.times) * message.bytes);
        let (grid, along) = match self {
            Self::Grid(grid, along) => (*grid, along),
            Self::Tree(levels, lines) => {
                let each = tree::directions(levels).zip(lines);
                return each.for_each(|(at, line)| tree::enter(levels, at, message, line));
            }
        };
        for (u, along) in along.iter_mut().enumerate() {
            let stride = grid.radix().stride(u);
            let on_lines = |suffix| {
                let most = most(grid, u, turn(grid, u, shift, suffix));
                most.map(|messages| i128::from(messages) * bytes as i128)
            };
            let (below, carrying) = (on_lines(0), stride - shift % stride);
            add(&mut along.lowest, below);
            if carrying < stride {
                let above = on_lines(carrying);
                let more = along.more.entry(carrying).or_default();
                add(more, [0, 1].map(|i| above[i] - below[i]));
            }
        }
    }

    /// Bytes on the busiest link.
    pub(crate) fn max_link_bytes(self) -> u128 {
        let along = match self {
            Self::Grid(_, along) => along,
            Self::Tree(levels, lines) => {
                let mut most = 0;
                for ((level, direction), mut line) in tree::directions(levels).zip(lines) {
                    let each = |_, _, _, bytes: u128| most = bytes.max(most);
                    line.drain(tree::period(level, direction), 1, each);
                }
                return most;
            }
        };
        let along = along.into_iter().map(|TotalsAlong { lowest: mut bytes, more }| {
            let mut more: Vec<_> = more.into_iter().collect();
            more.sort_unstable_by_key(|&(suffix, _)| suffix);
            more.into_iter().fold(bytes[0].max(bytes[1]), |most, (_, more)| {
                add(&mut bytes, more);
                most.max(bytes[0]).max(bytes[1])
            })
        });
        along.max().unwrap_or(0) as u128
    }
}

fn add(sums: &mut [i128; 2], more: [i128; 2]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}
