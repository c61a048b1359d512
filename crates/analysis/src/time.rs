/// Predicted seconds by the steps model: T = startup x steps + per byte x link bytes + per hop x
/// hops + rearrangement per byte x (rearranged + packed) bytes + barrier x (steps - 1).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Time {
    /// Startups.
    pub startup: f64,
    /// Transmission.
    pub transmission: f64,
    /// Propagation.
    pub propagation: f64,
    /// Rearrangement and packing.
    pub rearrangement: f64,
    /// Barriers between steps.
    pub barrier: f64,
}

impl Time {
    /// The sum of the terms.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.startup + self.transmission + self.propagation + self.rearrangement + self.barrier
    }
}
