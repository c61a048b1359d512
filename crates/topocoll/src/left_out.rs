//! What a ranking leaves out, and why.

/// What does not serve.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Rejected {
    /// The algorithm.
    pub algorithm: &'static str,
    /// Whether it is a formula without a schedule.
    pub published: bool,
    /// Why.
    pub reason: String,
}

impl Rejected {
    /// An algorithm that does not serve.
    pub(crate) fn new(algorithm: &'static str, reason: &impl ToString) -> Self {
        Self { algorithm, published: false, reason: reason.to_string() }
    }
}

/// An algorithm of which only some settings were priced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PartlyPriced {
    /// The algorithm.
    pub algorithm: &'static str,
    /// Settings priced.
    pub priced: usize,
    /// Settings that there are.
    pub settings: usize,
}
