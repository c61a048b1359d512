//! The ranks that are simulated: one of each class, or every rank.

use topocoll_schedule::RankClasses;
use topocoll_topology::{Machine, Rank};

use crate::symmetry::Equivalent;

/// Whether one rank of each class is simulated, or every rank.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ranks {
    /// One rank of each class: translations map the traffic and the machine onto themselves, so
    /// equivalent ranks do the same at the same time.
    Classes,
    /// Every rank.
    Every,
}

impl Ranks {
    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Classes => "classes",
            Self::Every => "every rank",
        }
    }
}

/// The simulated ranks of a machine.
pub(crate) struct Simulated {
    ranks: Equivalent,
    /// Whether each rank is a class of its own.
    every: bool,
    /// Ranks of a class.
    pub(crate) equivalent: u64,
}

impl Simulated {
    /// One rank of each class.
    pub(crate) fn of(ranks: Equivalent, machine: &Machine) -> Self {
        let equivalent = u64::from(machine.ranks() / ranks.classes.count());
        Self { every: equivalent == 1, ranks, equivalent }
    }

    /// The classes, and where they come from.
    pub(crate) fn ranks(&self) -> &Equivalent {
        &self.ranks
    }

    pub(crate) fn classes(&self) -> &RankClasses {
        &self.ranks.classes
    }

    /// The method in reports.
    pub(crate) fn method(&self) -> Ranks {
        if self.every { Ranks::Every } else { Ranks::Classes }
    }

    pub(crate) fn count(&self) -> u32 {
        self.ranks.classes.count()
    }

    /// The number of the class of a rank.
    pub(crate) fn class_of(&self, rank: Rank) -> usize {
        match self.every {
            true => rank.index(),
            false => self.ranks.classes.class_of(rank) as usize,
        }
    }

    /// The simulated rank of a class.
    pub(crate) fn rank(&self, class: u32) -> Rank {
        match self.every {
            true => Rank(class),
            false => self.ranks.classes.representative(class),
        }
    }
}
