//! The event queue: a calendar of short days, so that an event costs about the same whatever the
//! number of events waiting.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::clock::Picoseconds;

/// Days that are kept apart; what lies beyond waits in one heap.
const DAYS: usize = 4096;

/// An event: when, in which order among those at the same time, and what.
type Event<T> = (Picoseconds, u64, T);

/// Events in order of time; those of one time in the order in which they were added.
pub(crate) struct Calendar<T> {
    /// A day is `2^shift` picoseconds.
    shift: u32,
    today: u64,
    now: BinaryHeap<Reverse<Event<T>>>,
    days: Vec<Vec<Event<T>>>,
    /// Events in `days`.
    waiting: usize,
    later: BinaryHeap<Reverse<Event<T>>>,
    added: u64,
}

impl<T: Ord + Copy> Calendar<T> {
    /// A calendar that expects events to lie about `apart` picoseconds ahead, `many` at a time.
    pub(crate) fn new(apart: Picoseconds, many: usize) -> Self {
        let day = (apart.saturating_mul(4) / many.max(1) as u64).max(1);
        Self {
            shift: day.ilog2(),
            today: 0,
            now: BinaryHeap::new(),
            days: (0..DAYS).map(|_| Vec::new()).collect(),
            waiting: 0,
            later: BinaryHeap::new(),
            added: 0,
        }
    }

    /// Adds an event, not before the last one taken.
    pub(crate) fn add(&mut self, time: Picoseconds, what: T) {
        self.added += 1;
        let event = (time, self.added, what);
        let day = time >> self.shift;
        if day <= self.today {
            self.now.push(Reverse(event));
        } else if day - self.today < DAYS as u64 {
            self.days[day as usize % DAYS].push(event);
            self.waiting += 1;
        } else {
            self.later.push(Reverse(event));
        }
    }

    /// Takes the next event.
    pub(crate) fn next(&mut self) -> Option<(Picoseconds, T)> {
        while self.now.is_empty() {
            self.turn()?;
        }
        self.now.pop().map(|Reverse((time, _, what))| (time, what))
    }

    /// Goes to the next day that has an event.
    fn turn(&mut self) -> Option<()> {
        let first_later = self.later.peek().map(|Reverse(event)| event.0 >> self.shift);
        if self.waiting > 0 {
            let end = self.today + DAYS as u64;
            self.today = (self.today + 1..end)
                .find(|&day| {
                    !self.days[day as usize % DAYS].is_empty()
                        || first_later.is_some_and(|later| later <= day)
                })
                .expect("bug: a waiting event lies within the year");
        } else {
            self.today = first_later?;
        }
        let day = &mut self.days[self.today as usize % DAYS];
        self.waiting -= day.len();
        let mut events = std::mem::take(&mut self.now).into_vec();
        events.extend(day.drain(..).map(Reverse));
        self.now = events.into();
        while self.later.peek().is_some_and(|Reverse(event)| event.0 >> self.shift <= self.today) {
            self.now.extend(self.later.pop());
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_order_of_time_then_of_addition() {
        let mut calendar = Calendar::new(100, 10);
        let mut expected = Vec::new();
        let mut state = 1u64;
        let mut now = 0;
        let mut taken = Vec::new();
        for i in 0..20_000u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let ahead = if i % 50 == 0 { state >> 40 } else { (state >> 33) % 500 };
            calendar.add(now + ahead, i);
            expected.push((now + ahead, i));
            if i % 3 == 0 {
                let event = calendar.next().unwrap();
                now = event.0;
                taken.push(event);
            }
        }
        taken.extend(std::iter::from_fn(|| calendar.next()));
        expected.sort_unstable();
        assert_eq!(taken, expected);
    }
}
