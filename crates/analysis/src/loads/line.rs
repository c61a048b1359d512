//! Loads along one dimension of a grid in one direction, kept where they change.

/// Loads along one dimension in one direction, kept where they change.
#[derive(Default)]
pub(crate) struct LineLoads {
    pub(super) used: bool,
    /// By position, the messages that begin there minus those that end.
    messages: Vec<i64>,
    /// Bytes of the first message.
    bytes: i128,
    /// By position, the bytes of the others beyond that; empty until some differ.
    more: Vec<i128>,
    /// The positions entered, as bits.
    entered: Vec<u64>,
    /// By line, the load behind the last change.
    running: Vec<Running>,
}

#[derive(Clone, Copy, Default)]
struct Running {
    since: u32,
    messages: i64,
    more: i128,
}

impl LineLoads {
    /// The bytes of this many positions.
    pub(crate) fn memory(positions: u64) -> u128 {
        u128::from(positions) * (size_of::<i64>() + size_of::<i128>()) as u128
    }

    /// Prepares it for a first message.
    pub(crate) fn open(&mut self, positions: usize, bytes: i128) {
        if self.messages.is_empty() {
            self.messages = vec![0; positions];
            self.entered = vec![0; positions.div_ceil(64)];
        }
        if !self.used {
            (self.used, self.bytes) = (true, bytes);
        }
    }

    fn enter(&mut self, position: usize, messages: i64, more: i128) {
        self.messages[position] += messages;
        self.entered[position / 64] |= 1 << (position % 64);
        if more != 0 {
            self.more.resize(self.messages.len(), 0);
            self.more[position] += more;
        }
    }

    /// Enters `hops` links from position `first` of a period, `times` messages of `bytes` on each.
    /// Its positions are at `base` and every `stride` after.
    pub(crate) fn add_range(
        &mut self,
        (base, stride, period): (usize, usize, usize),
        first: usize,
        hops: u64,
        (times, bytes): (i64, i128),
    ) {
        let more = bytes - self.bytes;
        let mut enter = |position, rounds| {
            let times = rounds * times;
            let more = if more == 0 { 0 } else { i128::from(times) * more };
            self.enter(base + position * stride, times, more);
        };
        let (rounds, rest) = match hops < period as u64 {
            true => (0, hops as usize),
            false => ((hops / period as u64) as i64, (hops % period as u64) as usize),
        };
        if rounds > 0 {
            enter(0, rounds);
        }
        if rest > 0 {
            let end = first + rest;
            enter(first, 1);
            if end > period {
                enter(0, 1);
                enter(end - period, -1);
            } else if end < period {
                enter(end, -1);
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        if !other.used {
            return;
        }
        self.open(other.messages.len(), other.bytes);
        let beyond = other.bytes - self.bytes;
        each_bit(&other.entered, |position| {
            let messages = other.messages[position];
            let more = other.more.get(position).copied().unwrap_or(0);
            self.enter(position, messages, more + i128::from(messages) * beyond);
        });
    }

    /// Calls `each` with the first position, the length, the messages and the bytes of every run of
    /// equal loads on lines of `period` positions, `stride` apart. Resets all loads.
    pub(crate) fn drain(
        &mut self,
        period: u32,
        stride: u32,
        mut each: impl FnMut(usize, u32, u64, u128),
    ) {
        let Self { used, messages, bytes, more, entered, running } = self;
        *used = false;
        running.resize(stride as usize, Running::default());
        // Lines lie side by side in blocks.
        let length = period as usize * stride as usize;
        let mut block = 0;
        let mut run = |block: usize, line: usize, of: Running, end: u32| {
            if of.messages > 0 && of.since < end {
                let first = block + line + of.since as usize * stride as usize;
                let carried = i128::from(of.messages) * *bytes + of.more;
                each(first, end - of.since, of.messages as u64, carried as u128);
            }
        };
        let end_of =
            |block, running: &mut [Running], run: &mut dyn FnMut(usize, usize, Running, u32)| {
                for (line, of) in running.iter_mut().enumerate() {
                    run(block, line, std::mem::take(of), period);
                }
            };
        each_bit(entered, |position| {
            if position >= block + length {
                end_of(block, running, &mut run);
                block = position / length * length;
            }
            let within = (position - block) as u32;
            let (at, line) = (within / stride, (within % stride) as usize);
            let begun = std::mem::take(&mut messages[position]);
            let more = more.get_mut(position).map_or(0, std::mem::take);
            if (begun, more) != (0, 0) {
                let of = &mut running[line];
                run(block, line, *of, at);
                *of = Running { since: at, messages: of.messages + begun, more: of.more + more };
            }
        });
        end_of(block, running, &mut run);
        entered.fill(0);
    }
}

/// Calls `each` with the places of all bits that are set, in order.
fn each_bit(words: &[u64], mut each: impl FnMut(usize)) {
    for (i, &word) in words.iter().enumerate() {
        let mut rest = word;
        while rest != 0 {
            each(64 * i + rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    }
}
