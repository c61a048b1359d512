use hashbrown::HashMap;

/// Kinds of positions along the sides of a grid.
///
/// ```
/// let mut kinds = topocoll_schedule::Kinds::default();
/// kinds.reset(&[2, 6]);
/// kinds.split(1, |x| u64::from(x % 3));
/// assert_eq!((kinds.along(0), kinds.along(1)), (&[0, 0][..], &[0, 1, 2, 0, 1, 2][..]));
/// assert_eq!(kinds.count(1), 3);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    /// By side and position.
    kinds: Vec<Vec<u32>>,
    counts: Vec<u32>,
    /// The kinds of the present split, by the kind before it and the value.
    numbers: HashMap<(u32, u64), u32>,
}

impl Kinds {
    /// Makes all positions along each of these sides of one kind.
    pub fn reset(&mut self, sides: &[u32]) {
        self.kinds.resize_with(sides.len(), Vec::new);
        self.counts.clear();
        self.counts.resize(sides.len(), 1);
        for (kinds, &side) in self.kinds.iter_mut().zip(sides) {
            kinds.clear();
            kinds.resize(side as usize, 0);
        }
    }

    /// Splits the kinds along side u: positions with different values are of different kinds.
    pub fn split(&mut self, u: usize, mut value: impl FnMut(u32) -> u64) {
        self.numbers.clear();
        for (x, kind) in (0..).zip(&mut self.kinds[u]) {
            let next = self.numbers.len() as u32;
            *kind = *self.numbers.entry((*kind, value(x))).or_insert(next);
        }
        self.counts[u] = self.numbers.len() as u32;
    }

    /// The lengths of the sides.
    pub fn sides(&self) -> impl Iterator<Item = u32> {
        self.kinds.iter().map(|kinds| kinds.len() as u32)
    }

    /// The kind of each position along side u, numbered from 0 in the order of their first positions.
    #[must_use]
    pub fn along(&self, u: usize) -> &[u32] {
        &self.kinds[u]
    }

    /// The number of kinds along side u.
    #[must_use]
    pub fn count(&self, u: usize) -> u32 {
        self.counts[u]
    }
}
