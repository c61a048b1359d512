use topocoll_topology::{Coordinates, Grid, MixedRadix, Rank, Ties, gcd};

/// Classes of equivalent ranks: the translations that map a rule's communication onto itself.
///
/// Ranks are coordinates in a mixed radix. Two ranks are equivalent if they differ by a multiple of
/// `periods[u]` in every coordinate u, counted around the side. In each step they transfer the same
/// slots along the same routes, their peers differ by the same translation, and they copy equally
/// many bytes. The places of the copies, and layouts, may differ.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RankClasses {
    radix: MixedRadix,
    periods: Coordinates,
}

impl RankClasses {
    /// Every rank in a class of its own.
    ///
    /// # Panics
    /// No ranks.
    #[must_use]
    pub fn distinct(ranks: u32) -> Self {
        let radix = MixedRadix::new(&[ranks]).expect("a machine has ranks");
        Self { radix, periods: Coordinates::from_slice(&[ranks]) }
    }

    /// All ranks equivalent under rank -> rank + 1 (mod ranks).
    ///
    /// # Panics
    /// No ranks.
    #[must_use]
    pub fn cyclic(ranks: u32) -> Self {
        let radix = MixedRadix::new(&[ranks]).expect("a machine has ranks");
        Self { radix, periods: Coordinates::from_slice(&[1]) }
    }

    /// Ranks that differ by multiples of `periods[u]` along each side u of `radix` are equivalent.
    ///
    /// # Panics
    /// A period that does not divide its side.
    #[must_use]
    pub fn translations(radix: MixedRadix, periods: Coordinates) -> Self {
        let divides = radix
            .sides()
            .iter()
            .zip(&periods)
            .all(|(side, period)| *period > 0 && side % period == 0);
        assert!(
            divides && periods.len() == radix.dimensions(),
            "bug: periods {periods:?} of {radix:?}"
        );
        // A turn around a twisted side shifts the coordinates along the longest sides.
        let twisted = radix.shifts().iter().any(|&shift| shift > 0);
        assert!(
            !twisted || periods.iter().all(|&period| period == 1),
            "bug: periods {periods:?} of the twisted {radix:?}"
        );
        Self { radix, periods }
    }

    /// The numbering of the coordinates.
    #[must_use]
    #[inline]
    pub fn radix(&self) -> &MixedRadix {
        &self.radix
    }

    /// The period along each coordinate.
    #[must_use]
    #[inline]
    pub fn periods(&self) -> &[u32] {
        &self.periods
    }

    /// Number of classes.
    #[must_use]
    #[inline]
    pub fn count(&self) -> u32 {
        self.periods.iter().product()
    }

    /// The class of `rank`, from 0.
    #[must_use]
    #[inline]
    pub fn class_of(&self, rank: Rank) -> u32 {
        if self.periods[..] == *self.radix.sides() {
            return rank.0;
        }
        (0..self.periods.len()).fold(0, |class, u| {
            class * self.periods[u] + self.radix.coordinate(rank, u) % self.periods[u]
        })
    }

    /// The representative of a class, its rank with the lowest coordinates.
    #[must_use]
    #[inline]
    pub fn representative(&self, class: u32) -> Rank {
        let (mut rest, mut rank) = (class, 0);
        for (u, period) in self.periods.iter().enumerate().rev() {
            rank += rest % period * self.radix.stride(u);
            rest /= period;
        }
        Rank(rank)
    }

    /// The representatives of all classes, in the order of the classes.
    #[inline]
    pub fn representatives(&self) -> impl Iterator<Item = Rank> {
        (0..self.count()).map(|class| self.representative(class))
    }

    /// `rank` moved by the translation that takes `from` to `to`.
    #[must_use]
    #[inline]
    pub fn translated(&self, rank: Rank, from: Rank, to: Rank) -> Rank {
        (0..self.periods.len()).fold(rank, |rank, u| {
            let hops =
                i64::from(self.radix.coordinate(to, u)) - i64::from(self.radix.coordinate(from, u));
            self.radix.shifted(rank, u, hops)
        })
    }

    /// Those of these translations that go along the sides of a radix that wrap.
    #[must_use]
    pub fn along(&self, radix: &MixedRadix, wrap: &[bool]) -> Self {
        let sides = radix.sides();
        let mut periods = Coordinates::from_slice(sides);
        // A shift of the nodes by whole lines along the slowest side.
        let whole_lines =
            |period: u32, stride: u32| period / gcd(period.into(), stride.into()) as u32;
        match *self.radix.sides() {
            _ if self.radix == *radix => {
                for u in (0..sides.len()).filter(|&u| wrap[u]) {
                    periods[u] = self.periods[u];
                }
            }
            [_] if wrap[0] => periods[0] = whole_lines(self.periods[0], radix.stride(0)),
            // By node, and the rank on it.
            [_, size] if sides.len() > 2 && sides.last() == Some(&size) => {
                periods[sides.len() - 1] = self.periods[1];
                if wrap[0] {
                    periods[0] = whole_lines(self.periods[0], radix.stride(0) / size);
                }
            }
            _ => {}
        }
        Self::translations(radix.clone(), periods)
    }

    /// Those of these translations along the sides of a grid that keep which coordinates are even, if its
    /// routes depend on it. Further coordinates may follow those of the grid.
    #[must_use]
    pub fn keeping_ties(mut self, grid: &Grid) -> Self {
        if grid.ties() != Ties::Up {
            for (period, side) in self.periods.iter_mut().zip(grid.sides()) {
                *period *= if side % 2 == 0 { *period % 2 + 1 } else { 1 };
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn representatives_stand_for_their_classes() {
        let radix = MixedRadix::new(&[8, 4]).unwrap();
        let classes = RankClasses::translations(radix, Coordinates::from_slice(&[4, 2]));
        assert_eq!(classes.count(), 8);
        for class in 0..8 {
            assert_eq!(classes.class_of(classes.representative(class)), class);
        }
        // (5, 3) is (1, 1) moved by (4, 2).
        let (rank, representative) = (Rank(23), Rank(5));
        assert_eq!(classes.class_of(rank), classes.class_of(representative));
        assert_eq!(classes.translated(representative, representative, rank), rank);
        assert_eq!(RankClasses::distinct(5).count(), 5);
        assert_eq!(RankClasses::cyclic(5).count(), 1);
    }

    #[test]
    fn sides_that_are_not_twisted_may_have_periods() {
        let radix = MixedRadix::twisted(&[4, 4], &[0, 0]).unwrap();
        let periods = Coordinates::from_slice(&[2, 2]);
        assert_eq!(RankClasses::translations(radix, periods).count(), 4);
    }

    #[test]
    #[should_panic(expected = "of the twisted")]
    fn twisted_sides_have_no_periods() {
        let radix = MixedRadix::twisted(&[2, 4], &[2, 0]).unwrap();
        let _ = RankClasses::translations(radix, Coordinates::from_slice(&[1, 2]));
    }
}
