use smallvec::SmallVec;

use crate::{Rank, TopologyError};

/// The most dimensions a grid may have; beyond it every further side of a legal grid is 1.
pub const MAX_DIMENSIONS: usize = 32;

/// Coordinates of one rank, dimension 0 first.
pub type Coordinates = SmallVec<[u32; 6]>;

/// Ranks as numbers in a mixed radix: row-major, the last dimension fastest.
///
/// ```
/// use topocoll_topology::{MixedRadix, Rank};
/// let radix = MixedRadix::new(&[2, 4]).unwrap();
/// assert_eq!(radix.coordinates(Rank(6)).as_slice(), [1, 2]);
/// assert_eq!(radix.rank(&[1, 2]), Rank(6));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MixedRadix {
    sides: SmallVec<[u32; 6]>,
    strides: SmallVec<[u32; 6]>,
    ranks: u32,
}

impl MixedRadix {
    /// The radix with these sides, dimension 0 first.
    ///
    /// # Errors
    /// No side, more than [`MAX_DIMENSIONS`] of them, a side of 0, or more than 2^32 - 1 ranks.
    pub fn new(sides: &[u32]) -> Result<Self, TopologyError> {
        if sides.is_empty() || sides.len() > MAX_DIMENSIONS {
            return Err(TopologyError::Dimensions(sides.len()));
        }
        if let Some(dimension) = sides.iter().position(|&side| side == 0) {
            return Err(TopologyError::ZeroSide { dimension });
        }
        let ranks = sides
            .iter()
            .try_fold(1u32, |ranks, &side| ranks.checked_mul(side))
            .ok_or(TopologyError::TooManyRanks)?;
        let mut strides = SmallVec::from_elem(1, sides.len());
        for u in (0..sides.len() - 1).rev() {
            strides[u] = strides[u + 1] * sides[u + 1];
        }
        Ok(Self { sides: SmallVec::from_slice(sides), strides, ranks })
    }

    /// Number of dimensions.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.sides.len()
    }

    /// Number of ranks: the product of the sides.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The sides, dimension 0 first.
    #[must_use]
    pub fn sides(&self) -> &[u32] {
        &self.sides
    }

    /// How far apart in rank two neighbours along `dimension` are.
    #[must_use]
    pub fn stride(&self, dimension: usize) -> u32 {
        self.strides[dimension]
    }

    /// The coordinate of `rank` along `dimension`.
    #[must_use]
    pub fn coordinate(&self, rank: Rank, dimension: usize) -> u32 {
        rank.0 / self.strides[dimension] % self.sides[dimension]
    }

    /// All coordinates of `rank`.
    #[must_use]
    pub fn coordinates(&self, rank: Rank) -> Coordinates {
        let mut rest = rank.0;
        let mut out = Coordinates::new();
        for &stride in &self.strides {
            out.push(rest / stride);
            rest %= stride;
        }
        out
    }

    /// The rank at `coordinates`, each below its side.
    #[must_use]
    pub fn rank(&self, coordinates: &[u32]) -> Rank {
        Rank(coordinates.iter().zip(&self.strides).map(|(c, stride)| c * stride).sum())
    }

    /// The rank `hops` further along `dimension`, counted around the side.
    #[must_use]
    pub fn shifted(&self, rank: Rank, dimension: usize, hops: i64) -> Rank {
        let side = self.sides[dimension];
        let from = self.coordinate(rank, dimension);
        // Below 2^33 in absolute value, and the remainder below `side`.
        let to = (i64::from(from) + hops % i64::from(side)).rem_euclid(i64::from(side)) as u32;
        Rank(rank.0 - from * self.strides[dimension] + to * self.strides[dimension])
    }
}
