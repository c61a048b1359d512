use std::ops::{Deref, DerefMut};

use smallvec::SmallVec;

/// A number for each dimension, dimension 0 first, such as the position of a rank. It is read and
/// written as a slice.
///
/// ```
/// use topocoll_topology::Coordinates;
/// let mut periods = Coordinates::from_slice(&[4, 4]);
/// periods[1] = 2;
/// assert_eq!(periods.iter().product::<u32>(), 8);
/// ```
#[derive(PartialEq, Eq, Hash, Debug, Default)]
pub struct Coordinates(SmallVec<[u32; 6]>);

/// By a copy of the memory: the clone of a `SmallVec` pushes one by one.
impl Clone for Coordinates {
    #[inline]
    fn clone(&self) -> Self {
        Self::from_slice(self)
    }
}

impl Coordinates {
    /// These numbers.
    #[must_use]
    #[inline]
    pub fn from_slice(values: &[u32]) -> Self {
        Self(SmallVec::from_slice(values))
    }

    /// The same number for each of `dimensions`.
    #[must_use]
    #[inline]
    pub fn from_elem(value: u32, dimensions: usize) -> Self {
        Self(SmallVec::from_elem(value, dimensions))
    }
}

impl Deref for Coordinates {
    type Target = [u32];

    #[inline]
    fn deref(&self) -> &[u32] {
        &self.0
    }
}

impl DerefMut for Coordinates {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u32] {
        &mut self.0
    }
}

impl FromIterator<u32> for Coordinates {
    #[inline]
    fn from_iter<I: IntoIterator<Item = u32>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a Coordinates {
    type Item = &'a u32;
    type IntoIter = std::slice::Iter<'a, u32>;

    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
