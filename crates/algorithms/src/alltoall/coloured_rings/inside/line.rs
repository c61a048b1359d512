//! A line of windows: which blocks move in a step, from which window to which.
//!
//! # Hops
//! M windows, M - 1 rounds. Upwards, in round t = 1 .. M - 1, window p sends to the next one what it
//! has for windows J >= M - t above it. What window s has for J leaves in round M - J and moves one
//! window a round, so p has blocks of at most one source for J, of s = p - (t + J - M). These are
//! min(t, M - t) windows where that is most, at the middle of the line, which has a full link in
//! every round; what arrives is from M - 1 - t. Downwards the same, mirrored.
//!
//! # Straight
//! Any two windows, i and j, have one message in one step, so that no window sends twice or receives
//! twice and no link has two messages. M^2/4 messages go over the middle link each way, and the
//! tables have as many steps.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use super::tables;

/// A line of windows.
pub(super) struct Line {
    pub(super) windows: u32,
    pub(super) steps: u32,
    /// The steps of straight messages, by source and then destination.
    table: Option<&'static [u8]>,
}

/// Blocks of a message, by the windows of their destinations, or of sources if they arrive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Digits {
    pub(super) arrived: bool,
    pub(super) windows: Range<u32>,
}

/// The other window, and the blocks, nearest destinations first.
pub(super) type Message = (u32, SmallVec<[Digits; 2]>);

/// Some windows of destinations, if any.
fn leaving(windows: Range<u32>) -> Option<Digits> {
    (!windows.is_empty()).then_some(Digits { arrived: false, windows })
}

/// The blocks of one source that arrive.
fn arriving(source: u32) -> Digits {
    Digits { arrived: true, windows: source..source + 1 }
}

impl Line {
    /// A line on which blocks hop from window to window.
    pub(super) fn hops(windows: u32) -> Self {
        Self { windows, steps: windows - 1, table: None }
    }

    /// A line on which blocks go straight to their window.
    ///
    /// # Panics
    /// There is no table for as many windows.
    pub(super) fn straight(windows: u32) -> Self {
        let (steps, table) = tables::steps(windows).expect("bug: a line without a table");
        Self { windows, steps, table: Some(table) }
    }

    /// What a window sends and what it receives in a step, in a direction if blocks hop.
    pub(super) fn messages(&self, window: u32, step: u32, up: bool) -> [Option<Message>; 2] {
        match self.table {
            Some(table) => self.straight_messages(table, window, step),
            None if step < self.steps => self.hop_messages(window, step + 1, up),
            None => [None, None],
        }
    }

    fn straight_messages(&self, table: &[u8], window: u32, step: u32) -> [Option<Message>; 2] {
        let is_now = |from: u32, to: u32| {
            from != to && u32::from(table[(from * self.windows + to) as usize]) == step
        };
        let to = (0..self.windows).find(|&to| is_now(window, to));
        let from = (0..self.windows).find(|&from| is_now(from, window));
        [
            to.map(|to| (to, leaving(to..to + 1).into_iter().collect())),
            from.map(|from| (from, smallvec![arriving(from)])),
        ]
    }

    fn hop_messages(&self, window: u32, round: u32, up: bool) -> [Option<Message>; 2] {
        let last = self.windows - 1;
        let mirrored = |place: u32| if up { place } else { last - place };
        let range = |places: Range<u32>| match up {
            true => places,
            false => self.windows - places.end..self.windows - places.start,
        };
        let place = mirrored(window);
        let sent = |place: u32| self.sent(place, round);
        let rest = |next: u32, sent: Range<u32>| leaving(range(sent.start.max(next + 1)..sent.end));
        let to = sent(place);
        let send = (!to.is_empty()).then(|| {
            let next = place + 1;
            let near = (to.start == next).then(|| range(next..next + 1)).and_then(leaving);
            (mirrored(next), near.into_iter().chain(rest(next, to)).collect())
        });
        let from = place.checked_sub(1).map(sent).unwrap_or_default();
        let receive = (!from.is_empty()).then(|| {
            let near = (from.start == place).then(|| arriving(mirrored(last - round)));
            (mirrored(place - 1), near.into_iter().chain(rest(place, from)).collect())
        });
        [send, receive]
    }

    /// The windows for which a window has blocks that it sends upwards in a round.
    fn sent(&self, place: u32, round: u32) -> Range<u32> {
        let farthest = self.windows - round;
        (place + 1).max(farthest)..self.windows.min(farthest + place + 1)
    }

    /// The most windows for which one sends blocks in a step.
    pub(super) fn largest(&self, step: u32) -> u32 {
        match self.table {
            _ if step >= self.steps => 0,
            Some(_) => 1,
            None => (step + 1).min(self.windows - step - 1),
        }
    }

    /// The most windows that a message passes in a step.
    pub(super) fn farthest(&self, step: u32) -> u32 {
        let Some(table) = self.table else { return u32::from(step < self.steps) };
        let now = (0..self.windows * self.windows).filter_map(|pair| {
            let (from, to) = (pair / self.windows, pair % self.windows);
            let is_now = from != to && u32::from(table[pair as usize]) == step;
            is_now.then_some(from.abs_diff(to))
        });
        now.max().unwrap_or(0)
    }
}
