//! Algorithms that a ranking leaves out, and the reasons.

/// An algorithm that does not apply.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Rejected {
    /// The algorithm.
    pub algorithm: String,
    /// The reason.
    pub reason: String,
}

impl Rejected {
    /// An algorithm that does not apply.
    pub(crate) fn new(algorithm: &str, reason: &impl ToString) -> Self {
        Self { algorithm: algorithm.to_owned(), reason: reason.to_string() }
    }
}

/// An algorithm that searches for schedules, some of which the budget leaves out.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Unsearched {
    /// The algorithm.
    pub algorithm: String,
    /// Estimated seconds of one core for the longest of them.
    pub seconds: f64,
}

/// An algorithm of which only some settings were priced.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PartlyPriced {
    /// The algorithm.
    pub algorithm: String,
    /// Settings priced.
    pub priced: usize,
    /// All settings.
    pub settings: usize,
}
