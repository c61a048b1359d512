//! The event queue: a calendar of short days, so that the cost of an event does not depend on the
//! number of events waiting.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::clock::Picoseconds;

/// The number of coming days, today included; later events wait in one heap.
const DAYS: usize = 64 * 64;

/// The number of an event that waits.
pub(crate) type Number = u32;

/// No event.
pub(crate) const NONE: Number = u32::MAX;

/// Stands for the event before one that was removed while it was later than all days.
const REMOVED: Number = u32::MAX - 1;

/// Events in order of time; events of equal time in the order added.
pub(crate) struct Calendar<T> {
    /// A day is `2^shift` picoseconds.
    shift: u32,
    today: u64,
    days: Box<[Day; DAYS]>,
    /// A bit for each day with an event, and one for each word of them that is not 0.
    marks: [u64; DAYS / 64],
    marked: u64,
    /// All events by number, and the first unused number, which leads to the others.
    events: Vec<Entry<T>>,
    unused: Number,
    /// Later events, in the order added. They move to their day when it is among the coming days,
    /// before any other event is added there.
    later: BinaryHeap<Reverse<(Picoseconds, u64, Number)>>,
    added: u64,
}

/// The first and the last event of a day; each leads to the next and to the one before.
#[derive(Clone, Copy)]
struct Day {
    first: Number,
    last: Number,
}

struct Entry<T> {
    time: Picoseconds,
    what: T,
    before: Number,
    next: Number,
}

impl<T: Copy> Calendar<T> {
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
    pub(crate) fn add(&mut self, time: Picoseconds, what: T) -> Number {
        let event = self.unused;
        let entry = Entry { time, what, before: NONE, next: NONE };
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
        if self.day(time) - self.today < DAYS as u64 {
            self.insert(time, event);
        } else {
            self.add_later(time, event);
        }
        event
    }

    /// Adds an event beyond the coming days.
    #[cold]
    fn add_later(&mut self, time: Picoseconds, event: Number) {
        self.added += 1;
        self.later.push(Reverse((time, self.added, event)));
    }

    /// The day of a time: today if no event was left before.
    #[inline(always)]
    fn day(&self, time: Picoseconds) -> u64 {
        (time >> self.shift).max(self.today)
    }

    /// Adds an event to one of the coming days.
    #[inline(always)]
    fn insert(&mut self, time: Picoseconds, event: Number) {
        let place = self.day(time) as usize % DAYS;
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
            self.events[event as usize].before = std::mem::replace(&mut day.last, event);
        } else {
            self.insert_before_last(place, event);
        }
    }

    /// Adds an event that is not the last of its day.
    fn insert_before_last(&mut self, place: usize, event: Number) {
        let time = self.events[event as usize].time;
        let mut next = self.days[place].last;
        let before = loop {
            let before = self.events[next as usize].before;
            if before == NONE || self.events[before as usize].time <= time {
                break before;
            }
            next = before;
        };
        let entry = &mut self.events[event as usize];
        (entry.before, entry.next) = (before, next);
        self.events[next as usize].before = event;
        match before {
            NONE => self.days[place].first = event,
            before => self.events[before as usize].next = event,
        }
    }

    /// Removes an event that was not taken.
    #[inline]
    pub(crate) fn remove(&mut self, event: Number) {
        let &Entry { time, before, next, .. } = &self.events[event as usize];
        let day = self.day(time);
        if day - self.today >= DAYS as u64 {
            self.events[event as usize].before = REMOVED;
            return;
        }
        let place = day as usize % DAYS;
        match before {
            NONE => self.days[place].first = next,
            before => self.events[before as usize].next = next,
        }
        match next {
            NONE => self.days[place].last = before,
            next => self.events[next as usize].before = before,
        }
        self.forget(event);
        self.unmark(place);
    }

    /// Makes the number of an event unused.
    #[inline(always)]
    fn forget(&mut self, event: Number) {
        self.events[event as usize].next = std::mem::replace(&mut self.unused, event);
    }

    /// Takes the mark of a day that may have become empty.
    #[inline(always)]
    fn unmark(&mut self, place: usize) {
        if self.days[place].first == NONE {
            let marks = &mut self.marks[place / 64];
            *marks &= !(1 << (place % 64));
            if *marks == 0 {
                self.marked &= !(1 << (place / 64));
            }
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
        let event = self.days[place].first;
        let &Entry { time, what, next, .. } = &self.events[event as usize];
        self.days[place].first = next;
        match next {
            NONE => self.unmark(place),
            next => self.events[next as usize].before = NONE,
        }
        self.forget(event);
        Some((time, what))
    }

    /// Goes to the next day that has an event. Returns whether there is one.
    #[inline(never)]
    fn turn(&mut self) -> bool {
        match self.next_marked().or_else(|| self.first_later()) {
            Some(day) => self.today = day,
            None => return false,
        }
        while let Some(&Reverse((time, _, event))) = self.later.peek()
            && (time >> self.shift) - self.today < DAYS as u64
        {
            self.later.pop();
            match self.events[event as usize].before {
                REMOVED => self.forget(event),
                _ => self.insert(time, event),
            }
        }
        true
    }

    /// The day of the first event beyond the coming days.
    fn first_later(&mut self) -> Option<u64> {
        while let Some(&Reverse((time, _, event))) = self.later.peek() {
            if self.events[event as usize].before != REMOVED {
                return Some(time >> self.shift);
            }
            self.later.pop();
            self.forget(event);
        }
        None
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
    fn events_that_stay_come_in_order_of_time_then_of_addition() {
        let mut calendar = Calendar::new(100, 10);
        let mut expected = Vec::new();
        let mut state = 1u64;
        let mut now = 0;
        let mut taken = Vec::new();
        for i in 0..20_000u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let ahead = if i % 50 == 0 { state >> 40 } else { (state >> 33) % 500 };
            let event = calendar.add(now + ahead, i);
            if i % 7 == 3 {
                calendar.remove(event);
            } else {
                expected.push((now + ahead, i));
            }
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
            both.iter().for_each(|&(time, what)| _ = calendar.add(time, what));
            assert_eq!([calendar.next(), calendar.next()], both.map(Some));
            now += ahead;
        }
    }
}
