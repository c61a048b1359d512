/// Predicted seconds by the steps model: T = startup x steps + message overhead x messages of a rank +
/// rendezvous x steps with a message above its size + per byte x link bytes + per hop x hops +
/// rearrangement per byte x (rearranged + packed) bytes + per block x such blocks + barrier x (steps - 1).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Time {
    /// Startups, with overheads of messages and rendezvous.
    pub startup: f64,
    /// The part of the startups that is rendezvous.
    pub rendezvous: f64,
    /// Transmission.
    pub transmission: f64,
    /// Propagation.
    pub propagation: f64,
    /// Rearrangement and packing.
    pub rearrangement: f64,
    /// The part of the rearrangement that does not depend on the size of blocks.
    pub block_copies: f64,
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
