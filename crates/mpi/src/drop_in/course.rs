//! The calls until the next decision: who performs them, and which of them are timed.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::protocol::Sample;

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

impl Calls {
    /// All calls.
    pub(crate) fn always(candidate: usize) -> Self {
        Self { candidate, calls: u64::MAX, timed: false }
    }
}

impl Default for Course {
    fn default() -> Self {
        Self::new(&[Calls::always(0)])
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

    /// This rank's samples, for the first rank.
    pub(crate) fn samples(&self) -> &[Sample] {
        &self.samples
    }
}
