use crate::Fault;

/// Ranks as coordinates, row-major, and the translations that make them equivalent.
pub(crate) struct Radix {
    pub(crate) sides: Vec<u32>,
    pub(crate) periods: Vec<u32>,
    pub(crate) strides: Vec<u32>,
    ranks: u32,
}

impl Radix {
    /// The radix of these sides and periods; `None` if a period does not divide its side, or for 0
    /// or more than 2^32 - 1 ranks.
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

    pub(crate) fn coordinate(&self, rank: u32, u: usize) -> u32 {
        rank / self.strides[u] % self.sides[u]
    }

    /// The sum of two displacements, or of a rank and a displacement.
    pub(crate) fn sum(&self, a: u32, b: u32) -> u32 {
        self.shift(b).apply(a)
    }

    /// The coordinates of a displacement that are not 0.
    pub(crate) fn shift(&self, displacement: u32) -> Shift {
        let along = |u| {
            let (side, stride, by) =
                (self.sides[u], self.strides[u], self.coordinate(displacement, u));
            let (up, down) = (by * stride, (side - by) * stride);
            (by > 0).then_some(Along { side, stride, passes: side - by, up, down })
        };
        Shift((0..self.sides.len()).filter_map(along).collect())
    }

    /// The inverse displacement.
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

/// A displacement, prepared to be added many times.
pub(crate) struct Shift(Vec<Along>);

/// The part of a displacement along one side.
struct Along {
    side: u32,
    stride: u32,
    /// From this coordinate on the sum passes the end of the side and is reduced.
    passes: u32,
    up: u32,
    down: u32,
}

impl Shift {
    pub(crate) fn apply(&self, rank: u32) -> u32 {
        self.0.iter().fold(rank, |rank, along| {
            let at = rank / along.stride % along.side;
            if at < along.passes { rank + along.up } else { rank - along.down }
        })
    }
}

/// Checks that `count` is at most `most`.
pub(crate) fn limited(what: &'static str, count: u128, most: u128) -> Result<(), Fault> {
    if count > most { Err(Fault::TooMuch { what, count, most }) } else { Ok(()) }
}
