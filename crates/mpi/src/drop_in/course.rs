//! The calls until the next decision: who performs them, and which of them are timed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

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
    /// Calls that remain of the first turn, if the library performs them and they are not timed;
    /// otherwise 0. At a fixed address, for `last`.
    free: Box<AtomicU64>,
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

    fn is_free(&self) -> bool {
        self.candidate == 0 && !self.timed
    }
}

impl Course {
    pub(crate) fn new(turns: &[Calls]) -> Self {
        let mut course = Self { turns: VecDeque::new(), free: Box::default(), samples: Vec::new() };
        course.follow(turns);
        course
    }

    /// Follows new turns.
    pub(crate) fn follow(&mut self, turns: &[Calls]) {
        self.turns = turns.iter().copied().collect();
        self.samples.clear();
        self.enter();
    }

    fn enter(&mut self) {
        let free = self.turns.front().filter(|turn| turn.is_free()).map_or(0, |turn| turn.calls);
        self.free.store(free, Ordering::Relaxed);
    }

    /// Whose turn it is; `None` if the ranks must decide.
    pub(crate) fn turn(&mut self) -> Option<Calls> {
        while let Some(&turn) = self.turns.front() {
            let free = self.free.load(Ordering::Relaxed);
            if if turn.is_free() { free } else { turn.calls } > 0 {
                return Some(turn);
            }
            self.turns.pop_front();
            self.enter();
        }
        None
    }

    /// Counts a call of the turn.
    pub(crate) fn count(&mut self) {
        let free = self.free.load(Ordering::Relaxed);
        match self.turns.front_mut() {
            Some(turn) if !turn.is_free() => turn.calls = turn.calls.saturating_sub(1),
            _ => self.free.store(free.saturating_sub(1), Ordering::Relaxed),
        }
    }

    /// Calls that the library performs next and that are not timed. A caller that makes them without a
    /// look-up counts them here.
    pub(crate) fn free(&self) -> *const AtomicU64 {
        &raw const *self.free
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_free_only_while_the_library_performs_them_untimed() {
        let turn = |candidate, calls, timed| Calls { candidate, calls, timed };
        let mut course = Course::new(&[
            turn(0, 2, false),
            turn(0, 1, true),
            turn(1, 1, false),
            turn(0, 1, false),
        ]);
        let mut seen = Vec::new();
        while let Some(turn) = course.turn() {
            // SAFETY: the course's own counter.
            let free = unsafe { &*course.free() };
            seen.push((turn.candidate, free.load(Ordering::Relaxed)));
            course.count();
        }
        assert_eq!(seen, [(0, 2), (0, 1), (0, 0), (1, 0), (0, 1)]);
    }
}
