//! Link loads of several steps together.

use hashbrown::HashMap;
use topocoll_topology::{Grid, Level};

use super::{Over, Shift, most, tree, turn};

/// The bytes on the busiest link over several steps.
pub(crate) enum Totals<'t> {
    Grid(&'t Grid, Vec<TotalsAlong>),
    /// By level and direction, the bytes on each link that is counted.
    Tree(&'t [Level], Vec<[Vec<u128>; 2]>),
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
                let none =
                    |of: &Level| [0, 1].map(|direction| vec![0; tree::counted(of, direction)]);
                Self::Tree(levels, levels.iter().map(none).collect())
            }
        }
    }

    /// Adds messages of every node.
    pub(crate) fn add(&mut self, message: Shift) {
        let (shift, bytes) = (message.node, u128::from(message.times) * message.bytes);
        let (grid, along) = match self {
            Self::Grid(grid, along) => (*grid, along),
            Self::Tree(levels, sums) => {
                for (level, sums) in levels.iter().zip(sums) {
                    for (direction, sums) in sums.iter_mut().enumerate() {
                        tree::passing(levels, level, direction, shift, &mut |place, messages| {
                            sums[place] += u128::from(messages) * bytes;
                        });
                    }
                }
                return;
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
            Self::Tree(_, sums) => {
                return sums.into_iter().flatten().flatten().max().unwrap_or(0);
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
