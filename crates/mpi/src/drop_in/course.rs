//! The calls until the next decision: who performs them, and which of them are timed.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Calls of one candidate: 0 is the library.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Calls {
    pub(crate) candidate: usize,
    pub(crate) calls: u64,
    pub(crate) timed: bool,
}

/// The calls until the next decision; the same on all ranks except the samples.
pub(crate) struct Course {
    turns: VecDeque<Calls>,
    samples: Vec<Sample>,
}

/// A timed call on one rank: nanoseconds, and bytes sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sample {
    pub(crate) nanoseconds: u64,
    pub(crate) bytes: u64,
}

impl Calls {
    /// All calls.
    pub(crate) fn always(candidate: usize) -> Self {
        Self { candidate, calls: u64::MAX, timed: false }
    }
}

impl Course {
    pub(crate) fn new(turns: &[Calls]) -> Self {
        Self { turns: turns.iter().copied().collect(), samples: Vec::new() }
    }

    /// Whose turn it is; `None` if the ranks must decide.
    pub(crate) fn turn(&mut self) -> Option<Calls> {
        while self.turns.front().is_some_and(|turn| turn.calls == 0) {
            self.turns.pop_front();
        }
        self.turns.front().copied()
    }

    /// Counts a call of the turn.
    pub(crate) fn count(&mut self) {
        if let Some(turn) = self.turns.front_mut() {
            turn.calls = turn.calls.saturating_sub(1);
        }
    }

    pub(crate) fn time(&mut self, sample: Sample) {
        self.samples.push(sample);
    }

    /// This rank's samples, as bytes for the first rank.
    pub(crate) fn report(&self) -> Vec<u8> {
        let words = self.samples.iter().flat_map(|sample| [sample.nanoseconds, sample.bytes]);
        words.flat_map(u64::to_le_bytes).collect()
    }
}
