use crate::Fault;

/// Ranks as coordinates, row-major, and the translations under which they act alike.
pub(crate) struct Radix {
    pub(crate) sides: Vec<u32>,
    pub(crate) periods: Vec<u32>,
    strides: Vec<u32>,
    ranks: u32,
}

impl Radix {
    /// The radix of these sides and periods; none where a period does not divide its side, or there
    /// are no ranks or more than 2^32 - 1.
    pub(crate) fn new(sides: Vec<u32>, periods: Vec<u32>) -> Option<Self> {
        let divides =
            sides.iter().zip(&periods).all(|(side, period)| *period > 0 && side % period == 0);
        if sides.is_empty() || sides.len() != periods.len() || !divides || sides.contains(&0) {
            return None;
        }
        let ranks = sides.iter().try_fold(1u32, |ranks, &side| ranks.checked_mul(side))?;
        let mut strides = vec![1; sides.len()];
        for u in (1..sides.len()).rev() {
            strides[u - 1] = strides[u] * sides[u];
        }
        Some(Self { sides, periods, strides, ranks })
    }

    pub(crate) fn ranks(&self) -> u32 {
        self.ranks
    }

    pub(crate) fn classes(&self) -> u32 {
        self.periods.iter().product()
    }

    /// The members of a class.
    pub(crate) fn members(&self) -> u32 {
        self.ranks / self.classes()
    }

    fn coordinate(&self, rank: u32, u: usize) -> u32 {
        rank / self.strides[u] % self.sides[u]
    }

    pub(crate) fn coordinates(&self, rank: u32) -> Vec<u32> {
        (0..self.sides.len()).map(|u| self.coordinate(rank, u)).collect()
    }

    pub(crate) fn rank(&self, coordinates: &[u32]) -> u32 {
        coordinates.iter().zip(&self.strides).map(|(at, stride)| at * stride).sum()
    }

    /// The sum of two displacements, or of a rank and a displacement.
    pub(crate) fn sum(&self, a: u32, b: u32) -> u32 {
        self.shift(b).apply(self, a)
    }

    /// A displacement, coordinate by coordinate, where it is not 0.
    pub(crate) fn shift(&self, displacement: u32) -> Shift {
        let by = (0..self.sides.len()).map(|u| (u, self.coordinate(displacement, u)));
        Shift(by.filter(|(_, by)| *by > 0).collect())
    }

    /// The displacement back.
    pub(crate) fn back(&self, displacement: u32) -> u32 {
        let back = |u| (self.sides[u] - self.coordinate(displacement, u)) % self.sides[u];
        (0..self.sides.len()).map(|u| back(u) * self.strides[u]).sum()
    }

    pub(crate) fn class_of(&self, rank: u32) -> u32 {
        (0..self.sides.len()).fold(0, |class, u| {
            class * self.periods[u] + self.coordinate(rank, u) % self.periods[u]
        })
    }

    /// The member of a class with the lowest coordinates.
    pub(crate) fn representative(&self, class: u32) -> u32 {
        let (mut rest, mut rank) = (class, 0);
        for u in (0..self.sides.len()).rev() {
            rank += rest % self.periods[u] * self.strides[u];
            rest /= self.periods[u];
        }
        rank
    }
}

/// A displacement, ready to be added many times.
pub(crate) struct Shift(Vec<(usize, u32)>);

impl Shift {
    pub(crate) fn apply(&self, radix: &Radix, rank: u32) -> u32 {
        let mut rank = rank;
        for &(u, by) in &self.0 {
            let (side, stride) = (radix.sides[u], radix.strides[u]);
            // The sum may pass 2^32 before it is brought back around the side.
            let (at, by) = (u64::from(rank / stride % side), u64::from(by));
            let to = if at + by < side.into() { at + by } else { at + by - u64::from(side) };
            rank = rank - at as u32 * stride + to as u32 * stride;
        }
        rank
    }
}

/// The product of sides, or what is wrong with it.
pub(crate) fn limited(what: &'static str, count: u128, most: u128) -> Result<(), Fault> {
    if count > most { Err(Fault::TooMuch { what, count, most }) } else { Ok(()) }
}
