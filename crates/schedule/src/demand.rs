mod file;
mod routed;

pub use routed::Routed;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use topocoll_topology::{Groups, Rank};

use crate::{Block, Collective, MAX_BLOCK_BYTES, Problem, ScheduleError};

/// The distribution of drawn sizes around their mean of b bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Law {
    /// Uniform over the whole numbers from 0 to 2 b.
    Uniform,
    /// b (1 + u) 2^k / 9 bytes, rounded down: u is uniform in 0 to 1, k is at least i with
    /// probability 2^-i and at most 10. The tail has exponent 1 and ends at 227 b.
    PowerLaw,
    /// One block in eight has 8 b bytes, the others none.
    Sparse,
    /// Mixture-of-experts routing: one rank in eight is a hot expert. Blocks to it are uniform from
    /// 0 to 9 b bytes, blocks to others from 0 to b.
    Experts,
    /// Only ranks at most 4 apart on a ring of all n ranks have bytes for each other: uniform from
    /// 0 to 2 b n / 9 bytes, or to 2 b on 9 ranks or fewer.
    Neighbours,
}

impl Law {
    /// Every law by its name on the command line.
    pub const ALL: &[(&'static str, Self)] = &[
        ("uniform", Self::Uniform),
        ("power-law", Self::PowerLaw),
        ("sparse", Self::Sparse),
        ("experts", Self::Experts),
        ("neighbours", Self::Neighbours),
    ];

    /// The most bytes of a block among `ranks` where the mean is `mean`.
    fn most(self, mean: u64, ranks: u32) -> u128 {
        match self {
            Self::Uniform => 2 * u128::from(mean),
            Self::PowerLaw => u128::from(mean) * (2 << DOUBLINGS) / 9,
            Self::Sparse => 8 * u128::from(mean),
            Self::Experts => 9 * u128::from(mean),
            Self::Neighbours => 2 * near_mean(mean, ranks),
        }
    }
}

/// The number of ranks that a rank has bytes for under [`Law::Neighbours`], itself included.
const NEAR: u32 = 9;

/// The mean of their blocks.
fn near_mean(mean: u64, ranks: u32) -> u128 {
    u128::from(mean) * u128::from(ranks) / u128::from(ranks.min(NEAR))
}

/// The most doublings of a power law: with 10 of them the mean of (1 + u) 2^k is 9.
const DOUBLINGS: u32 = 10;

/// A law and its seed, as on the command line: `sparse:7`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Drawn {
    /// The law.
    pub law: Law,
    /// The seed; sizes depend on nothing else.
    pub seed: u64,
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Law::ALL.iter().find(|(_, law)| *law == self.law).map_or("", |(name, _)| name);
        write!(f, "{name}:{}", self.seed)
    }
}

impl FromStr for Drawn {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || ScheduleError::Demand(text.to_owned());
        let (name, seed) = text.split_once(':').ok_or_else(refused)?;
        let &(_, law) = Law::ALL.iter().find(|(known, _)| *known == name).ok_or_else(refused)?;
        Ok(Self { law, seed: seed.parse().map_err(|_| refused())? })
    }
}

/// A demand matrix: the bytes of every block, which may be 0.
///
/// Slots of a schedule hold blocks of any size, so a demand matrix does not change a schedule.
/// Drawn sizes are computed for each pair. Only a list given by the user takes memory of ranks x
/// ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Demand {
    operation: Collective,
    ranks: u32,
    sizes: Sizes,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Sizes {
    Drawn(Drawn, u64),
    /// Row by row of the senders; for an all-gather one size per rank.
    Listed(Arc<[u64]>),
    /// The same of each of some groups of a machine's ranks.
    OnGroups(Arc<Demand>, Groups),
}

impl Demand {
    /// Sizes drawn around a problem's block size.
    ///
    /// # Errors
    /// [`ScheduleError::BlockBytes`] where a block might have more than [`MAX_BLOCK_BYTES`].
    pub fn drawn(problem: &Problem, drawn: Drawn) -> Result<Self, ScheduleError> {
        let most = drawn.law.most(problem.block_bytes, problem.blocks_at_start());
        if most > u128::from(MAX_BLOCK_BYTES) {
            return Err(ScheduleError::BlockBytes(most as u64));
        }
        let sizes = Sizes::Drawn(drawn, problem.block_bytes);
        Ok(Self { operation: problem.operation, ranks: problem.ranks, sizes })
    }

    fn listed(problem: &Problem, sizes: Vec<u64>) -> Self {
        let sizes = Sizes::Listed(sizes.into());
        Self { operation: problem.operation, ranks: problem.ranks, sizes }
    }

    /// The ranks whose blocks these are.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Bytes of a block.
    #[must_use]
    #[inline]
    pub fn bytes(&self, block: Block) -> u64 {
        match &self.sizes {
            Sizes::Drawn(drawn, mean) => match self.operation {
                Collective::AllToAll => drawn.bytes(*mean, self.ranks, block),
                Collective::AllGather => drawn.bytes(*mean, 1, block),
            },
            Sizes::Listed(sizes) => match self.operation {
                Collective::AllToAll => {
                    sizes[block.from.index() * self.ranks as usize + block.to.index()]
                }
                Collective::AllGather => sizes[block.from.index()],
            },
            Sizes::OnGroups(demand, groups) => {
                match (groups.place(block.from), groups.place(block.to)) {
                    (Some((group, from)), Some((other, to))) if group == other => {
                        demand.bytes(Block { from, to })
                    }
                    _ => 0,
                }
            }
        }
    }

    /// These sizes on groups of a machine's ranks: the blocks of the i-th rank of a group are those of rank i
    /// here. Ranks have no blocks for those of other groups.
    ///
    /// # Panics
    /// A group of another number of ranks than the demand's.
    #[must_use]
    pub fn on_groups(&self, groups: &Groups) -> Self {
        assert!(groups.sizes().all(|size| size == self.ranks), "groups of as many ranks");
        let sizes = Sizes::OnGroups(Arc::new(self.clone()), groups.clone());
        Self { operation: self.operation, ranks: groups.machine_ranks(), sizes }
    }

    /// The mean bytes of a block, at least 1: of a list rounded up, of a law the given mean, of a
    /// group that of its own blocks.
    #[must_use]
    pub fn mean(&self) -> u64 {
        match &self.sizes {
            Sizes::Drawn(_, mean) => *mean,
            Sizes::Listed(sizes) => {
                let sum: u128 = sizes.iter().copied().map(u128::from).sum();
                sum.div_ceil(sizes.len().max(1) as u128).max(1) as u64
            }
            Sizes::OnGroups(demand, _) => demand.mean(),
        }
    }

    /// Bytes of the blocks that a rank has at the start, in order of destinations.
    pub fn row(&self, rank: Rank) -> impl Iterator<Item = u64> + '_ {
        let blocks = match self.operation {
            Collective::AllToAll => 0..self.ranks,
            Collective::AllGather => rank.0..rank.0 + 1,
        };
        blocks.map(move |to| self.bytes(Block { from: rank, to: Rank(to) }))
    }

    /// Bytes of the blocks that a rank has at the end, in order of sources.
    pub fn column(&self, rank: Rank) -> impl Iterator<Item = u64> + '_ {
        (0..self.ranks).map(move |from| {
            let to = if self.operation == Collective::AllToAll { rank } else { Rank(from) };
            self.bytes(Block { from: Rank(from), to })
        })
    }
}

impl Drawn {
    /// Bytes of a block among `ranks`, which is 1 for an all-gather.
    fn bytes(self, mean: u64, ranks: u32, block: Block) -> u64 {
        let pair = u64::from(block.from.0) << 32 | u64::from(block.to.0);
        let word = mixed(mixed(self.seed) ^ pair);
        // A fraction of 32 bits, and 32 independent bits.
        let (fraction, bits) = (u128::from(word >> 32), word as u32);
        let mean = u128::from(mean);
        let up_to = |most: u128| ((most + 1) * fraction) >> 32;
        let bytes = match self.law {
            Law::Uniform => up_to(2 * mean),
            Law::PowerLaw => {
                let doublings = bits.trailing_zeros().min(DOUBLINGS);
                (mean << doublings) * ((1 << 32) + fraction) / (9 << 32)
            }
            Law::Sparse if bits % 8 == 0 => 8 * mean,
            Law::Experts if mixed(mixed(!self.seed) ^ u64::from(block.to.0)) % 8 == 0 => {
                up_to(9 * mean)
            }
            Law::Experts => up_to(mean),
            Law::Neighbours if apart(block, ranks) <= NEAR / 2 => {
                up_to(2 * near_mean(mean as u64, ranks))
            }
            Law::Sparse | Law::Neighbours => 0,
        };
        bytes as u64
    }
}

/// A round of splitmix64.
fn mixed(mut word: u64) -> u64 {
    word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// The distance between the ends of a block on a ring of all ranks.
fn apart(block: Block, ranks: u32) -> u32 {
    let distance = block.from.0.abs_diff(block.to.0) % ranks;
    distance.min(ranks - distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn problem(operation: Collective, ranks: u32, block_bytes: u64) -> Problem {
        Problem::new(operation, ranks, 1, block_bytes).expect("a good problem")
    }

    /// The largest mean of each law, and the block that one byte more might make.
    #[test]
    fn drawn_blocks_have_at_most_the_largest_size() {
        const MOST: u64 = MAX_BLOCK_BYTES;
        for (law, mean, longer) in [
            ("uniform", MOST / 2, MOST + 2),
            // The longest is 2^11 ninths of the mean.
            ("power-law", 4_831_838_208, 1_099_511_628_003),
            ("sparse", MOST / 8, MOST + 8),
            ("experts", MOST / 9, MOST - MOST % 9 + 9),
        ] {
            let drawn = |mean| {
                let law = format!("{law}:1").parse().expect("a law");
                Demand::drawn(&problem(Collective::AllToAll, 9, mean), law).map(drop)
            };
            assert_eq!(drawn(mean), Ok(()), "{law}");
            assert_eq!(drawn(mean + 1), Err(ScheduleError::BlockBytes(longer)), "{law}");
        }
    }

    #[test]
    fn drawn_sizes_keep_their_law() {
        let problem = problem(Collective::AllToAll, 300, 1000);
        for &(name, law) in Law::ALL {
            let drawn: Drawn = format!("{name}:5").parse().expect("a law");
            assert_eq!((drawn.law, drawn.to_string()), (law, format!("{name}:5")));
            let demand = Demand::drawn(&problem, drawn).expect("small blocks");
            let sizes: Vec<u64> = (0..300).flat_map(|rank| demand.row(Rank(rank))).collect();
            let mean = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
            // Which experts are hot is drawn once for all blocks to them.
            let off = if law == Law::Experts { 0.2 } else { 0.04 };
            assert!((mean / 1000.0 - 1.0).abs() < off, "{name}: mean {mean}");
            let largest = *sizes.iter().max().expect("some");
            assert!(u128::from(largest) <= law.most(1000, 300), "{name}: {largest}");
            let share = |least: u64| {
                sizes.iter().filter(|&&bytes| bytes >= least).count() as f64 / sizes.len() as f64
            };
            match law {
                Law::Uniform => assert!((share(500) - 0.75).abs() < 0.01),
                Law::PowerLaw => {
                    for doublings in 1..5 {
                        let (least, expected) =
                            (1000 * (1 << doublings) / 9, 0.5f64.powi(doublings));
                        assert!((share(least) / expected - 1.0).abs() < 0.1, "{doublings}");
                    }
                }
                Law::Sparse => assert!((share(1) * 8.0 - 1.0).abs() < 0.05),
                Law::Experts => {
                    let received = |rank| demand.column(Rank(rank)).sum::<u64>();
                    let hot = (0..300).filter(|&rank| received(rank) > 300 * 2000).count();
                    let cold = (0..300).filter(|&rank| received(rank) < 300 * 600).count();
                    assert_eq!(hot + cold, 300);
                    assert!((25..50).contains(&hot), "{hot}");
                }
                Law::Neighbours => {
                    let far = demand.row(Rank(2)).enumerate().filter(|&(_, bytes)| bytes > 0);
                    let far: Vec<usize> = far.map(|(rank, _)| rank).collect();
                    assert_eq!(far, [0, 1, 2, 3, 4, 5, 6, 298, 299]);
                }
            }
        }
    }
}
