//! The event queue: a calendar of short days, so that the cost of an event does not depend on the
//! number of events waiting.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::clock::Picoseconds;

/// The number of coming days, today included; later events wait in one heap.
const DAYS: usize = 64 * 64;

/// No event.
const NONE: u32 = u32::MAX;

/// Events in order of time; events of equal time in the order added.
pub(crate) struct Calendar<T> {
    /// A day is `2^shift` picoseconds.
    shift: u32,
    today: u64,
    days: Box<[Day; DAYS]>,
    /// A bit for each day with an event, and one for each word of them that is not 0.
    marks: [u64; DAYS / 64],
    marked: u64,
    /// The events of all days, and the first unused place, which leads to the others.
    events: Vec<Entry<T>>,
    unused: u32,
    /// Later events, numbered in the order added. They move to their day when it is among the coming
    /// days, before any other event is added there.
    later: BinaryHeap<Reverse<(Picoseconds, u64, T)>>,
    added: u64,
}

/// The first and the last event of a day, which are in order.
#[derive(Clone, Copy)]
struct Day {
    first: u32,
    last: u32,
}

struct Entry<T> {
    time: Picoseconds,
    what: T,
    next: u32,
}

impl<T: Ord + Copy> Calendar<T> {
    /// A calendar for events that lie about `apart` picoseconds ahead, most within 16 times as far,
    /// `many` at a time.
    pub(crate) fn new(apart: Picoseconds, many: usize) -> Self {
        let day = (apart.saturating_mul(16) / many.max(1) as u64).max(apart / 64).max(1);
        Self {
            shift: day.ilog2(),
            today: 0,
            days: Box::new([Day { first: NONE, last: NONE }; DAYS]),
            marks: [0; DAYS / 64],
            marked: 0,
            events: Vec::new(),
            unused: NONE,
            later: BinaryHeap::new(),
            added: 0,
        }
    }

    /// Adds an event, not before the last one taken.
    #[inline(always)]
    pub(crate) fn add(&mut self, time: Picoseconds, what: T) {
        // Today may be a later day, if no event is left before.
        let day = (time >> self.shift).max(self.today);
        if day - self.today < DAYS as u64 {
            self.insert(day, time, what);
        } else {
            self.add_later(time, what);
        }
    }

    /// Adds an event beyond the coming days.
    #[cold]
    fn add_later(&mut self, time: Picoseconds, what: T) {
        self.added += 1;
        self.later.push(Reverse((time, self.added, what)));
    }

    /// Adds an event to one of the coming days.
    #[inline(always)]
    fn insert(&mut self, day: u64, time: Picoseconds, what: T) {
        let event = self.unused;
        let entry = Entry { time, what, next: NONE };
        let event = match self.events.get_mut(event as usize) {
            Some(place) => {
                self.unused = place.next;
                *place = entry;
                event
            }
            None => {
                self.events.push(entry);
                self.events.len() as u32 - 1
            }
        };
        let place = day as usize % DAYS;
        let day = &mut self.days[place];
        if day.first == NONE {
            *day = Day { first: event, last: event };
            self.marks[place / 64] |= 1 << (place % 64);
            self.marked |= 1 << (place / 64);
            return;
        }
        let last = &mut self.events[day.last as usize];
        if last.time <= time {
            last.next = event;
            day.last = event;
        } else {
            self.insert_before_last(place, event);
        }
    }

    /// Inserts an event that is not the last of its day.
    fn insert_before_last(&mut self, place: usize, event: u32) {
        let time = self.events[event as usize].time;
        let (mut before, mut at) = (NONE, self.days[place].first);
        while self.events[at as usize].time <= time {
            (before, at) = (at, self.events[at as usize].next);
        }
        self.events[event as usize].next = at;
        match before {
            NONE => self.days[place].first = event,
            before => self.events[before as usize].next = event,
        }
    }

    /// The time of the next event.
    #[inline(always)]
    pub(crate) fn first(&mut self) -> Option<Picoseconds> {
        let first = self.days[self.today as usize % DAYS].first;
        if first != NONE {
            return Some(self.events[first as usize].time);
        }
        self.turn().then(|| self.events[self.days[self.today as usize % DAYS].first as usize].time)
    }

    /// Takes the next event.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<(Picoseconds, T)> {
        self.first()?;
        let place = self.today as usize % DAYS;
        let day = &mut self.days[place];
        let event = day.first;
        let entry = &mut self.events[event as usize];
        let taken = (entry.time, entry.what);
        day.first = std::mem::replace(&mut entry.next, self.unused);
        self.unused = event;
        if day.first == NONE {
            self.marks[place / 64] &= !(1 << (place % 64));
            if self.marks[place / 64] == 0 {
                self.marked &= !(1 << (place / 64));
            }
        }
        Some(taken)
    }

    /// Goes to the next day that has an event. Returns whether there is one.
    #[inline(never)]
    fn turn(&mut self) -> bool {
        match self.next_marked() {
            Some(day) => self.today = day,
            None => match self.later.peek() {
                Some(Reverse(event)) => self.today = event.0 >> self.shift,
                None => return false,
            },
        }
        while let Some(&Reverse((time, _, what))) = self.later.peek()
            && (time >> self.shift) - self.today < DAYS as u64
        {
            self.later.pop();
            self.insert(time >> self.shift, time, what);
        }
        true
    }
}

impl<T> Calendar<T> {
    /// The first day after today that has an event.
    fn next_marked(&self) -> Option<u64> {
        let start = (self.today as usize + 1) % DAYS;
        let (word, bit) = (start / 64, start % 64);
        let rest = self.marks[word] >> bit << bit;
        let word = if rest != 0 {
            word
        } else if self.marked != 0 {
            // The words after this one, then those around up to this one.
            (word + 1 + self.marked.rotate_right(word as u32 + 1).trailing_zeros() as usize) % 64
        } else {
            return None;
        };
        let marks = if rest != 0 { rest } else { self.marks[word] };
        let place = word * 64 + marks.trailing_zeros() as usize;
        Some(self.today + 1 + ((place + DAYS - start) % DAYS) as u64)
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
