use std::fmt;
use std::io::{BufRead, Read};
use std::str::FromStr;
use std::sync::Arc;

use topocoll_topology::{Rank, Subset};

use crate::on_subset::positions;
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
    /// Those of some ranks of a machine: by rank of it, which of them that is.
    OnSubset(Arc<Demand>, Arc<[Option<Rank>]>),
}

/// A size in bytes, also as a floating-point number without a fraction.
fn size_of(text: &str) -> Option<u64> {
    let bytes = text.parse().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        // Whole numbers up to the largest size are exact.
        (number.fract() == 0.0 && (0.0..=MAX_BLOCK_BYTES as f64).contains(&number))
            .then_some(number as u64)
    });
    bytes.filter(|&bytes| bytes <= MAX_BLOCK_BYTES)
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

    /// Reads sizes in bytes, a line for each rank: its blocks for rank 0, rank 1 and so on, separated
    /// by commas, or by blanks in a line without commas. For an all-gather a line has the size of one
    /// block. A size may be written as a whole floating-point number, such as `1.0e+03`, and a comma may
    /// follow the last one. Empty lines, and what follows a `#`, are skipped.
    ///
    /// # Errors
    /// [`ScheduleError::Line`] for a value that is not a size, for a wrong number of lines or
    /// columns, and for a last line without an end, which may have been cut.
    pub fn read(problem: &Problem, mut file: impl BufRead) -> Result<Self, ScheduleError> {
        let (ranks, columns) = (problem.ranks as usize, problem.blocks_at_start() as usize);
        let refuse = |line: usize, message: String| Err(ScheduleError::Line { line, message });
        // The longest line: NumPy writes a size in 25 characters, and a comment may follow.
        let longest = 32 * columns as u64 + 1024;
        let (mut sizes, mut rows, mut text) = (Vec::new(), 0, Vec::new());
        for line in 1.. {
            text.clear();
            let read = file.by_ref().take(longest).read_until(b'\n', &mut text);
            if let Err(error) = read {
                return refuse(line, error.to_string());
            }
            if text.is_empty() && rows == ranks {
                break;
            }
            if text.is_empty() {
                let message = format!(
                    "the file ends after {rows} of {ranks} lines of sizes: each rank has one"
                );
                return refuse(line, message);
            }
            if text.len() as u64 == longest && !text.ends_with(b"\n") {
                return refuse(line, format!("the line is longer than {columns} sizes"));
            }
            let Some(row) = text.strip_suffix(b"\n") else {
                return refuse(line, "no end of line: the file may have been cut here".to_owned());
            };
            let row = String::from_utf8_lossy(row);
            let row = row.split('#').next().unwrap_or_default().trim();
            if row.is_empty() {
                continue;
            }
            rows += 1;
            if rows > ranks {
                return refuse(line, format!("more lines than the {ranks} ranks"));
            }
            let mut found = 0;
            let commas = row.contains(',');
            let row = row.strip_suffix(',').unwrap_or(row);
            let sizes_of_row =
                row.split(|c: char| if commas { c == ',' } else { c.is_whitespace() });
            for size in sizes_of_row.filter(|size| commas || !size.is_empty()) {
                found += 1;
                if found > columns {
                    return refuse(line, format!("column {found}: a line has {columns} sizes"));
                }
                match size_of(size.trim()) {
                    Some(bytes) => sizes.push(bytes),
                    None => {
                        let rule = format!("a size is a whole number from 0 to {MAX_BLOCK_BYTES}");
                        return refuse(line, format!("column {found}: `{}`: {rule}", size.trim()));
                    }
                }
            }
            if found < columns {
                return refuse(line, format!("{found} sizes: a line has {columns}"));
            }
        }
        let sizes = Sizes::Listed(sizes.into());
        Ok(Self { operation: problem.operation, ranks: problem.ranks, sizes })
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
            Sizes::OnSubset(demand, at) => match (at[block.from.index()], at[block.to.index()]) {
                (Some(from), Some(to)) => demand.bytes(Block { from, to }),
                _ => 0,
            },
        }
    }

    /// These sizes on a subset of a machine's ranks: the blocks of its i-th rank are those of rank i
    /// here, and the machine's other ranks have none.
    ///
    /// # Panics
    /// A subset of another number of ranks than the demand's.
    #[must_use]
    pub fn on_subset(&self, subset: &Subset) -> Self {
        let positions = positions(subset, self.ranks).into();
        let sizes = Sizes::OnSubset(Arc::new(self.clone()), positions);
        Self { operation: self.operation, ranks: subset.machine_ranks(), sizes }
    }

    /// The mean bytes of a block, at least 1: of a list rounded up, of a law the given mean, of a
    /// subset that of its own blocks.
    #[must_use]
    pub fn mean(&self) -> u64 {
        match &self.sizes {
            Sizes::Drawn(_, mean) => *mean,
            Sizes::Listed(sizes) => {
                let sum: u128 = sizes.iter().copied().map(u128::from).sum();
                sum.div_ceil(sizes.len().max(1) as u128).max(1) as u64
            }
            Sizes::OnSubset(demand, _) => demand.mean(),
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
        // Two rounds of splitmix64.
        let mixed = |mut word: u64| {
            word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
            word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            word ^ word >> 31
        };
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

/// The distance between the ends of a block on a ring of all ranks.
fn apart(block: Block, ranks: u32) -> u32 {
    let distance = block.from.0.abs_diff(block.to.0) % ranks;
    distance.min(ranks - distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(operation: Collective, ranks: u32, block_bytes: u64) -> Problem {
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

    /// Twenty-four bytes a size, whatever stands around it, and two for the end of the line.
    #[test]
    fn a_line_is_as_long_as_its_sizes_may_be() {
        let read = |bytes: usize| {
            let line = format!("{:>width$}\n", "1,2,3", width = bytes - 1);
            let lines = line.repeat(3);
            Demand::read(&problem(Collective::AllToAll, 3, 1), lines.as_bytes()).map(drop)
        };
        assert_eq!(read(3 * 32 + 1024), Ok(()));
        let message = "the line is longer than 3 sizes".to_owned();
        assert_eq!(read(3 * 32 + 1025), Err(ScheduleError::Line { line: 1, message }));
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

    #[test]
    fn rows_and_columns_are_those_of_the_file() {
        let text = "0, 1,2\n3,4,5\r\n6,7,1099511627776\n";
        let demand = Demand::read(&problem(Collective::AllToAll, 3, 1), text.as_bytes());
        let demand = demand.expect("a good file");
        assert_eq!(demand.row(Rank(1)).collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!(demand.column(Rank(1)).collect::<Vec<_>>(), [1, 4, 7]);
        assert_eq!(demand.mean(), (28 + MAX_BLOCK_BYTES).div_ceil(9));
        let gathered = Demand::read(&problem(Collective::AllGather, 3, 1), "4\n0\n9\n".as_bytes());
        let gathered = gathered.expect("a good file");
        assert_eq!(gathered.row(Rank(2)).collect::<Vec<_>>(), [9]);
        assert_eq!(gathered.column(Rank(2)).collect::<Vec<_>>(), [4, 0, 9]);
    }

    /// However sizes are separated, written and commented, they are the same.
    #[test]
    fn files_of_all_spellings_have_the_same_sizes() {
        let mut random = fastrand::Rng::with_seed(55);
        for _ in 0..500 {
            let ranks = random.usize(1..7);
            let draw = |_| random.u64(0..=MAX_BLOCK_BYTES) >> random.u32(0..41);
            let sizes: Vec<u64> = (0..ranks * ranks).map(draw).collect();
            let mut text = String::new();
            for row in sizes.chunks(ranks) {
                for _ in 0..random.usize(0..3) {
                    text += ["\n", "# 1 2 3\n", "  \t\r\n", " #\n"][random.usize(0..4)];
                }
                let mut spelt = |&size: &u64| match random.u32(0..4) {
                    0 => format!("{size}.0"),
                    1 => {
                        // As NumPy writes them: 18 digits and an exponent of two.
                        let float = format!("{:.18e}", size as f64);
                        let (digits, exponent) = float.split_once('e').expect("an exponent");
                        format!("{digits}e+{exponent:0>2}")
                    }
                    _ => size.to_string(),
                };
                let written: Vec<String> = row.iter().map(&mut spelt).collect();
                let between = [",", ", ", " ", "\t", " , ", "   "][random.usize(0..6)];
                let comma = if between.contains(',') && random.bool() { "," } else { "" };
                let end = ["\n", "\r\n", "  \n", " # of this rank\n"][random.usize(0..4)];
                text += &(written.join(between) + comma + end);
            }
            let demand =
                Demand::read(&problem(Collective::AllToAll, ranks as u32, 1), text.as_bytes());
            let demand = demand.unwrap_or_else(|error| panic!("{error}: {text}"));
            let found: Vec<u64> =
                (0..ranks as u32).flat_map(|rank| demand.row(Rank(rank))).collect();
            assert_eq!(found, sizes, "{text}");
        }
    }

    #[test]
    fn bad_files_are_refused_with_line_and_column() {
        let cases = [
            ("", "line 1: the file ends after 0 of 2 lines of sizes: each rank has one"),
            (
                "# to 0, to 1\n1 2\n\n",
                "line 4: the file ends after 1 of 2 lines of sizes: each rank has one",
            ),
            ("1,2\n3,4", "line 2: no end of line: the file may have been cut here"),
            ("1,2\n3,4\n5,6\n", "line 3: more lines than the 2 ranks"),
            ("1,2\n3\n", "line 2: 1 sizes: a line has 2"),
            ("1,2,3\n", "line 1: column 3: a line has 2 sizes"),
            ("1,-2\n", "line 1: column 2: `-2`: a size is a whole number from 0 to 1099511627776"),
            ("1,2\n,4\n", "line 2: column 1: ``: a size is a whole number from 0 to 1099511627776"),
            ("1,,\n", "line 1: column 2: ``: a size is a whole number from 0 to 1099511627776"),
            ("1 2 3\n", "line 1: column 3: a line has 2 sizes"),
            (
                "1 2, 3\n",
                "line 1: column 1: `1 2`: a size is a whole number from 0 to 1099511627776",
            ),
            (
                "1 2.5e+00\n",
                "line 1: column 2: `2.5e+00`: a size is a whole number from 0 to 1099511627776",
            ),
            (
                "1 nan\n",
                "line 1: column 2: `nan`: a size is a whole number from 0 to 1099511627776",
            ),
            (
                "1 inf\n",
                "line 1: column 2: `inf`: a size is a whole number from 0 to 1099511627776",
            ),
            (
                "1 -1.0\n",
                "line 1: column 2: `-1.0`: a size is a whole number from 0 to 1099511627776",
            ),
            (
                "1,1099511627777\n",
                "line 1: column 2: `1099511627777`: a size is a whole number from 0 to 1099511627776",
            ),
            (
                "99999999999999999999999,1\n",
                "line 1: column 1: `99999999999999999999999`: a size is a whole number from 0 to 1099511627776",
            ),
        ];
        for (text, expected) in cases {
            let error = Demand::read(&problem(Collective::AllToAll, 2, 1), text.as_bytes());
            assert_eq!(error.expect_err(text).to_string(), expected);
        }
        let endless = std::io::BufReader::new(std::io::repeat(b'1'));
        let error = Demand::read(&problem(Collective::AllToAll, 2, 1), endless);
        assert_eq!(
            error.expect_err("endless").to_string(),
            "line 1: the line is longer than 2 sizes"
        );
        for text in ["uniform", "uniform:", "uniform:-1", "zipf:1"] {
            assert!(text.parse::<Drawn>().is_err(), "{text}");
        }
        let most = problem(Collective::AllToAll, 2, MAX_BLOCK_BYTES);
        assert!(Demand::drawn(&most, Drawn { law: Law::Sparse, seed: 1 }).is_err());
    }
}
