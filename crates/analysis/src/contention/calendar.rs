//! The event queue: a calendar of short days, so that the cost of an event does not depend on the
//! number of events waiting.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::clock::Picoseconds;

/// The number of days; later events wait in one heap.
const DAYS: usize = 1024;

/// Events in order of time; events of equal time in the order added.
pub(crate) struct Calendar<T> {
    /// A day is `2^shift` picoseconds.
    shift: u32,
    today: u64,
    /// Today's events in order, and the number of them taken.
    now: Vec<(Picoseconds, T)>,
    taken: usize,
    /// Events of the coming days, in the order added.
    days: Vec<Vec<(Picoseconds, T)>>,
    /// Empty days, whose memory is reused.
    spare: Vec<Vec<(Picoseconds, T)>>,
    /// A bit for each day with an event.
    marks: Vec<u64>,
    /// The number of events.
    waiting: usize,
    /// Later events, numbered in the order added.
    later: BinaryHeap<Reverse<(Picoseconds, u64, T)>>,
    added: u64,
}

impl<T: Ord + Copy> Calendar<T> {
    /// A calendar for events that lie about `apart` picoseconds ahead, most within 16 times as far,
    /// `many` at a time.
    pub(crate) fn new(apart: Picoseconds, many: usize) -> Self {
        let day = (apart.saturating_mul(64) / many.max(1) as u64).max(apart / 64).max(1);
        Self {
            shift: day.ilog2(),
            today: 0,
            now: Vec::new(),
            taken: 0,
            days: (0..DAYS).map(|_| Vec::new()).collect(),
            spare: Vec::new(),
            marks: vec![0; DAYS / 64],
            waiting: 0,
            later: BinaryHeap::new(),
            added: 0,
        }
    }

    /// Adds an event, not before the last one taken.
    pub(crate) fn add(&mut self, time: Picoseconds, what: T) {
        let day = time >> self.shift;
        if day <= self.today {
            let after = self.now[self.taken..].partition_point(|event| event.0 <= time);
            self.now.insert(self.taken + after, (time, what));
        } else if day - self.today < DAYS as u64 {
            let place = day as usize % DAYS;
            let day = &mut self.days[place];
            if day.capacity() == 0 {
                *day = self.spare.pop().unwrap_or_default();
            }
            day.push((time, what));
            self.marks[place / 64] |= 1 << (place % 64);
            self.waiting += 1;
        } else {
            self.added += 1;
            self.later.push(Reverse((time, self.added, what)));
        }
    }

    /// The time of the next event.
    pub(crate) fn first(&mut self) -> Option<Picoseconds> {
        while self.taken == self.now.len() {
            self.turn()?;
        }
        Some(self.now[self.taken].0)
    }

    /// Takes the next event.
    pub(crate) fn next(&mut self) -> Option<(Picoseconds, T)> {
        self.first()?;
        self.taken += 1;
        Some(self.now[self.taken - 1])
    }

    /// Goes to the next day that has an event.
    fn turn(&mut self) -> Option<()> {
        let first_later = self.later.peek().map(|Reverse(event)| event.0 >> self.shift);
        if self.waiting > 0 {
            let next = self.next_marked();
            self.today = first_later.map_or(next, |later| next.min(later.max(self.today)));
        } else {
            self.today = first_later?;
        }
        self.now.clear();
        self.taken = 0;
        // Later events were added before all events in the year of their day, so they come first.
        while let Some(&Reverse((time, _, what))) = self.later.peek()
            && time >> self.shift <= self.today
        {
            self.now.push((time, what));
            self.later.pop();
        }
        let place = self.today as usize % DAYS;
        let day = &mut self.days[place];
        self.waiting -= day.len();
        self.now.append(day);
        if day.capacity() > 0 {
            self.spare.push(std::mem::take(day));
        }
        self.marks[place / 64] &= !(1 << (place % 64));
        if self.now.len() > 1 {
            self.now.sort_by_key(|event| event.0);
        }
        Some(())
    }
}

impl<T> Calendar<T> {
    /// The first day after today that has an event.
    fn next_marked(&self) -> u64 {
        let first = self.today + 1;
        let start = first as usize % DAYS;
        // The rest of the first word, the other words around, and the first word once more.
        let mut word = self.marks[start / 64] >> (start % 64) << (start % 64);
        let mut at = start / 64;
        for _ in 0..=self.marks.len() {
            if word != 0 {
                let place = at * 64 + word.trailing_zeros() as usize;
                return first + ((place + DAYS - start) % DAYS) as u64;
            }
            at = (at + 1) % self.marks.len();
            word = self.marks[at];
        }
        unreachable!("bug: no day has the events that wait")
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
        // Within the year, and beyond it.
        for ahead in [1000, 1 << 40] {
            let both = [(now + ahead, 7), (now + ahead, 3)];
            both.iter().for_each(|&(time, what)| calendar.add(time, what));
            assert_eq!([calendar.next(), calendar.next()], both.map(Some));
            now += ahead;
        }
    }
}
