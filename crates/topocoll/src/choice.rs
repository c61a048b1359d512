use topocoll_analysis::BestBounds;
use topocoll_schedule::Parameters;

use crate::FreeRunning;
use crate::price::{Price, Priced};

/// An algorithm with a setting, and its price.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Choice {
    /// The algorithm.
    pub algorithm: String,
    /// The setting.
    pub parameters: Parameters,
    /// Its cost.
    pub price: Price,
    /// Predicted time divided by the lower bound.
    pub bound_ratio: f64,
    /// Its charged volume divided by the least of any schedule of as many steps; `None` where that is
    /// not known, or the price is a floor.
    pub tradeoff_ratio: Option<f64>,
    /// Its time without barriers, if it was simulated.
    pub free_running: Option<FreeRunning>,
}

impl Choice {
    /// A choice not yet compared with the bound.
    pub(crate) fn new(algorithm: &str, parameters: Parameters, price: Price) -> Self {
        let (algorithm, bound_ratio) = (algorithm.to_owned(), f64::NAN);
        let (tradeoff_ratio, free_running) = (None, None);
        Self { algorithm, parameters, price, bound_ratio, tradeoff_ratio, free_running }
    }

    /// The time by which it is ranked: the larger of those in step and without barriers.
    #[must_use]
    pub fn ranked_seconds(&self) -> f64 {
        let free = self.free_running.map_or(0.0, |run| run.seconds);
        self.price.time.total().max(free)
    }

    /// The same, compared with a bound.
    pub(crate) fn over(mut self, bound: &BestBounds) -> Self {
        let time = self.price.time.total();
        self.bound_ratio = if bound.seconds > 0.0 { time / bound.seconds } else { 1.0 };
        let Price { steps, link_blocks, priced, .. } = self.price;
        self.tradeoff_ratio = (bound.link_blocks_in(steps))
            .filter(|&least| least > 0.0 && priced == Priced::Exactly)
            .map(|least| link_blocks / least);
        self
    }
}

/// From this block size on, up to the next, a setting is the fastest.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Fastest {
    /// The first block size, in bytes.
    pub block_bytes: u64,
    /// The last one, where it is undecided which schedule is the fastest beyond.
    pub to_bytes: Option<u64>,
    /// The algorithm.
    pub algorithm: String,
    /// Its setting.
    pub parameters: Parameters,
    /// Its predicted seconds at the first block size.
    pub seconds: f64,
    /// Whether it is a formula without a schedule.
    pub published: bool,
    /// Powers of 2 at which another choice is the best [without barriers](Choice::free_running), of those
    /// that a selection looks at.
    pub changes: Vec<u64>,
}
