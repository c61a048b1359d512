use crate::Fault;

/// Ranks as coordinates, row-major, and the translations that make them equivalent.
///
/// A turn around a twisted side leads along each of the longest sides.
pub(crate) struct Radix {
    pub(crate) sides: Vec<u32>,
    pub(crate) periods: Vec<u32>,
    pub(crate) strides: Vec<u32>,
    /// By side, how far a turn around it leads along each of the longest sides.
    twists: Vec<u32>,
    ranks: u32,
}

impl Radix {
    /// The radix of these sides, twists and periods; `None` if a period does not divide its side,
    /// if sides are twisted by as much as the longest, or are and have periods or the longest are,
    /// or for 0 or more than 2^32 - 1 ranks.
    pub(crate) fn new(sides: Vec<u32>, twists: Vec<u32>, periods: Vec<u32>) -> Option<Self> {
        let divides =
            sides.iter().zip(&periods).all(|(side, period)| *period > 0 && side % period == 0);
        if sides.len() != periods.len() || !divides || sides.contains(&0) {
            return None;
        }
        let longest = *sides.iter().max()?;
        let twisted = || sides.iter().zip(&twists).filter(|(_, twist)| **twist > 0);
        let whole = twisted().all(|(&side, &twist)| side < longest && twist < longest);
        if !whole || twisted().count() > 0 && periods.iter().any(|&period| period > 1) {
            return None;
        }
        let ranks = sides.iter().try_fold(1u32, |ranks, &side| ranks.checked_mul(side))?;
        let mut strides = vec![1; sides.len()];
        for u in (1..sides.len()).rev() {
            strides[u - 1] = strides[u] * sides[u];
        }
        Some(Self { sides, periods, strides, twists, ranks })
    }

    pub(crate) fn ranks(&self) -> u32 {
        self.ranks
    }

    pub(crate) fn is_twisted(&self) -> bool {
        self.twists.iter().any(|&twist| twist > 0)
    }

    pub(crate) fn classes(&self) -> u32 {
        self.periods.iter().product()
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
        let along = |u| Along {
            turn: self.longest(self.twists[u]),
            ..self.along(u, self.coordinate(displacement, u))
        };
        let moves = |u: &usize| self.coordinate(displacement, *u) > 0;
        Shift((0..self.sides.len()).filter(moves).map(along).collect())
    }

    /// A displacement along each of the longest sides.
    fn longest(&self, by: u32) -> Shift {
        let longest = self.sides.iter().copied().max().unwrap_or(1);
        let moves = |u: &usize| by % longest > 0 && self.sides[*u] == longest;
        let along = |u| self.along(u, by % longest);
        Shift((0..self.sides.len()).filter(moves).map(along).collect())
    }

    fn along(&self, u: usize, by: u32) -> Along {
        let (side, stride) = (self.sides[u], self.strides[u]);
        let (up, down) = (by * stride, (side - by) * stride);
        Along { side, stride, passes: side - by, up, down, turn: Shift(Vec::new()) }
    }

    /// The inverse displacement.
    pub(crate) fn back(&self, displacement: u32) -> u32 {
        let moves = || (0..self.sides.len()).filter(|&u| self.coordinate(displacement, u) > 0);
        let rest = |u| (self.sides[u] - self.coordinate(displacement, u)) * self.strides[u];
        let longest = self.sides.iter().map(|&side| u64::from(side)).max().unwrap_or(1);
        let turns = moves().map(|u| u64::from(self.twists[u])).sum::<u64>() % longest;
        self.longest((longest - turns) as u32).apply(moves().map(rest).sum())
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
    /// Where a turn around the side leads.
    turn: Shift,
}

impl Shift {
    pub(crate) fn apply(&self, rank: u32) -> u32 {
        self.0.iter().fold(rank, |rank, along| {
            let at = rank / along.stride % along.side;
            if at < along.passes { rank + along.up } else { along.turn.apply(rank - along.down) }
        })
    }
}

/// Checks that `count` is at most `most`.
pub(crate) fn limited(what: &'static str, count: u128, most: u128) -> Result<(), Fault> {
    if count > most { Err(Fault::TooMuch { what, count, most }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The displacements of a twisted torus form a group, in which a turn around a side is its twist.
    #[test]
    fn twisted_displacements_are_added_and_inverted() {
        for (sides, twists) in [
            (&[2, 4][..], &[2, 0][..]),
            (&[4, 4, 8], &[4, 3, 0]),
            (&[2, 6, 6], &[3, 0, 0]),
            (&[3, 5], &[0, 0]),
            (&[5, 3, 4], &[0, 1, 4]),
        ] {
            let ones = vec![1; sides.len()];
            let radix = Radix::new(sides.to_vec(), twists.to_vec(), ones).expect("a radix");
            for rank in 0..radix.ranks() {
                assert_eq!(radix.sum(rank, radix.back(rank)), 0, "{sides:?} {twists:?} {rank}");
                for other in 0..radix.ranks() {
                    let sum = radix.sum(rank, other);
                    assert_eq!(radix.sum(other, rank), sum, "{sides:?} {twists:?} {rank} {other}");
                    assert_eq!(radix.sum(sum, radix.back(other)), rank);
                }
            }
            for u in 0..sides.len() {
                let turn = (0..sides[u])
                    .fold(0, |rank, _| radix.sum(rank, radix.strides[u] * u32::from(sides[u] > 1)));
                let longest = sides.iter().max().expect("a side");
                let along = (0..sides.len()).filter(|v| sides[*v] == *longest);
                assert_eq!(turn, along.map(|v| twists[u] * radix.strides[v]).sum::<u32>());
            }
        }
        let periods = |twist, period| Radix::new(vec![2, 4], vec![twist, 0], vec![1, period]);
        assert!(periods(1, 1).is_some() && periods(0, 2).is_some());
        assert!(periods(1, 2).is_none() && periods(4, 1).is_none());
        assert!(Radix::new(vec![4, 4], vec![1, 0], vec![1, 1]).is_none());
    }
}
