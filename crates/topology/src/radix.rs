use crate::{Coordinates, Rank, TopologyError};

/// The most dimensions of a grid. In 32 bits, at most 32 sides can be longer than 1.
pub const MAX_DIMENSIONS: usize = 32;

/// Ranks as numbers in a mixed radix: row-major, the last dimension fastest.
///
/// A side may be *twisted*: a route once around it ends shifted along the longest sides.
///
/// ```
/// use topocoll_topology::{MixedRadix, Rank};
/// let radix = MixedRadix::new(&[2, 4]).unwrap();
/// assert_eq!(radix.coordinates(Rank(6))[..], [1, 2]);
/// assert_eq!(radix.rank(&[1, 2]), Rank(6));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MixedRadix {
    sides: Coordinates,
    strides: Coordinates,
    ranks: u32,
    /// By side, the shift along each of the longest sides after one turn around it; empty without
    /// twists.
    shifts: Coordinates,
}

impl MixedRadix {
    /// The radix with these sides, dimension 0 first.
    ///
    /// # Errors
    /// No side, more than [`MAX_DIMENSIONS`] of them, a side of 0, or more than 2^32 - 1 ranks.
    pub fn new(sides: &[u32]) -> Result<Self, TopologyError> {
        if sides.is_empty() || sides.len() > MAX_DIMENSIONS {
            let (count, most) = (sides.len(), MAX_DIMENSIONS);
            return Err(format!("{count} dimensions: a grid has between 1 and {most}").into());
        }
        if let Some(dimension) = sides.iter().position(|&side| side == 0) {
            let rule = "every side has at least one position";
            return Err(format!("side 0 along dimension {dimension}: {rule}").into());
        }
        let ranks = sides
            .iter()
            .try_fold(1u32, |ranks, &side| ranks.checked_mul(side))
            .ok_or_else(TopologyError::too_many_ranks)?;
        let mut strides = Coordinates::from_elem(1, sides.len());
        for u in (0..sides.len() - 1).rev() {
            strides[u] = strides[u + 1] * sides[u + 1];
        }
        let (sides, shifts) = (Coordinates::from_slice(sides), Coordinates::default());
        Ok(Self { sides, strides, ranks, shifts })
    }

    /// The radix in which one turn around side u adds `shifts[u]` along each of the longest sides.
    ///
    /// # Errors
    /// As [`new`](Self::new); a shift of one of the longest sides, or a shift of at least the
    /// longest side.
    ///
    /// # Panics
    /// `sides` and `shifts` differ in length.
    pub fn twisted(sides: &[u32], shifts: &[u32]) -> Result<Self, TopologyError> {
        assert_eq!(sides.len(), shifts.len(), "one shift per side");
        let radix = Self::new(sides)?;
        let longest = radix.longest();
        for (dimension, (&side, &shift)) in sides.iter().zip(shifts).enumerate() {
            if shift > 0 && (side == longest || shift >= longest) {
                return Err(format!(
                    "side {dimension} of length {side} shifts by {shift}: only sides shorter than the longest \
                     ({longest}) shift, and by less than that"
                )
                .into());
            }
        }
        Ok(Self { shifts: Coordinates::from_slice(shifts), ..radix })
    }

    /// The length of the longest side.
    fn longest(&self) -> u32 {
        self.sides.iter().copied().max().expect("a radix has a side")
    }

    /// By side, the shift along each of the longest sides after one turn around it; empty without
    /// twists.
    #[must_use]
    #[inline]
    pub fn shifts(&self) -> &[u32] {
        &self.shifts
    }

    /// Number of dimensions.
    #[must_use]
    #[inline]
    pub fn dimensions(&self) -> usize {
        self.sides.len()
    }

    /// Number of ranks: the product of the sides.
    #[must_use]
    #[inline]
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The sides, dimension 0 first.
    #[must_use]
    #[inline]
    pub fn sides(&self) -> &[u32] {
        &self.sides
    }

    /// The dimensions whose sides are longer than 1, in order.
    pub fn long_dimensions(&self) -> impl Iterator<Item = usize> {
        (0..self.sides.len()).filter(|&u| self.sides[u] > 1)
    }

    /// The difference in rank of two neighbours along `dimension`.
    #[must_use]
    #[inline]
    pub fn stride(&self, dimension: usize) -> u32 {
        self.strides[dimension]
    }

    /// The coordinate of `rank` along `dimension`.
    #[must_use]
    #[inline]
    pub fn coordinate(&self, rank: Rank, dimension: usize) -> u32 {
        rank.0 / self.strides[dimension] % self.sides[dimension]
    }

    /// All coordinates of `rank`.
    #[must_use]
    #[inline]
    pub fn coordinates(&self, rank: Rank) -> Coordinates {
        let (mut rest, mut coordinates) = (rank.0, self.strides.clone());
        for coordinate in coordinates.iter_mut() {
            let stride = *coordinate;
            *coordinate = rest / stride;
            rest %= stride;
        }
        coordinates
    }

    /// The coordinates of `rank`, such as `(0,1)`.
    pub(crate) fn name(&self, rank: Rank) -> String {
        let coordinates: Vec<_> = self.coordinates(rank).iter().map(ToString::to_string).collect();
        format!("({})", coordinates.join(","))
    }

    /// The rank at `coordinates`, each below its side.
    #[must_use]
    #[inline]
    pub fn rank(&self, coordinates: &[u32]) -> Rank {
        Rank(coordinates.iter().zip(&self.strides).map(|(c, stride)| c * stride).sum())
    }

    /// The rank `hops` further along `dimension`, around the side, shifted where it is twisted.
    #[must_use]
    #[inline]
    pub fn shifted(&self, rank: Rank, dimension: usize, hops: i64) -> Rank {
        let side = self.sides[dimension];
        let from = self.coordinate(rank, dimension);
        // The sum is below 2^33 in absolute value.
        let to = (i64::from(from) + hops % i64::from(side)).rem_euclid(i64::from(side)) as u32;
        let there = Rank(rank.0 - from * self.strides[dimension] + to * self.strides[dimension]);
        match self.shifts.get(dimension) {
            None | Some(0) => there,
            Some(&shift) => {
                let gone = i128::from(from) + i128::from(hops) - i128::from(to);
                self.carried(there, gone / i128::from(side) * i128::from(shift))
            }
        }
    }

    /// The rank that is `carry` further along each of the longest sides.
    fn carried(&self, rank: Rank, carry: i128) -> Rank {
        let longest = self.longest();
        let hops = carry.rem_euclid(i128::from(longest)) as i64;
        let along = (0..self.sides.len()).filter(|&v| self.sides[v] == longest);
        along.fold(rank, |rank, v| self.shifted(rank, v, hops))
    }
}

/// The least number from `least`, at least 1, that has no divisor in common with `all`. Multiples of it, counted
/// around `all`, visit every number.
#[must_use]
pub fn coprime(least: u64, all: u64) -> u64 {
    (least.max(1)..).find(|&number| gcd(number, all) == 1).unwrap_or(1)
}

/// The greatest common divisor.
#[must_use]
pub fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_around_a_twisted_side_ends_shifted() {
        let radix = MixedRadix::twisted(&[4, 4, 8], &[4, 3, 0]).unwrap();
        let from = radix.rank(&[3, 0, 6]);
        assert_eq!(radix.shifted(from, 0, 1), radix.rank(&[0, 0, 2]));
        assert_eq!(radix.shifted(from, 1, -1), radix.rank(&[3, 3, 3]));
        assert_eq!(radix.shifted(from, 0, 8), from);
        assert_eq!(radix.shifted(from, 1, 32), from);
        for hops in [-9, -4, -1, 0, 1, 5, 17] {
            for u in 0..3 {
                assert_eq!(radix.shifted(radix.shifted(from, u, hops), u, -hops), from);
            }
        }
        let two = MixedRadix::twisted(&[2, 8, 8], &[3, 0, 0]).unwrap();
        assert_eq!(two.shifted(Rank(0), 0, 2), two.rank(&[0, 3, 3]));
        for (sides, shifts) in [([4, 8], [8, 0]), ([4, 8], [0, 1]), ([8, 8], [4, 0])] {
            assert!(MixedRadix::twisted(&sides, &shifts).is_err(), "{sides:?} {shifts:?}");
        }
    }
}
