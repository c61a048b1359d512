//! Where registers are, and the regions of messages.

use crate::plan::{NONE, Plan};
use crate::{Buffer, Region};

/// Where registers are, for blocks of one size.
#[derive(Clone, Copy)]
pub(crate) struct Places<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) block_bytes: u64,
}

impl Places<'_> {
    /// Bytes `first..end` of a register's block, where they are read at `time`, or if that is
    /// [`NONE`] where they are written.
    pub(crate) fn region(self, register: u32, first: u64, end: u64, time: u32) -> Region {
        let (plan, b) = (self.plan, self.block_bytes);
        let at = |buffer, block: u32| Region {
            buffer,
            offset: u64::from(block) * b + first,
            bytes: end - first,
        };
        if time != NONE && plan.untouched(register, time) {
            let block = plan.origin[register as usize];
            let Some(aside) = &plan.aside else { return at(Buffer::Input, block) };
            return match aside.binary_search(&block) {
                Ok(i) => at(Buffer::Work, plan.extra + i as u32),
                Err(_) => at(Buffer::Output, plan.place(block)),
            };
        }
        match register.checked_sub(plan.problem.ranks) {
            None => at(Buffer::Output, register),
            Some(behind) => at(Buffer::Work, behind),
        }
    }

    /// The regions of a message in order, those that touch joined.
    #[inline]
    pub(crate) fn regions(self, message: u32, step: u32, time: u32, each: impl FnMut(Region)) {
        let mut joined = Joined { last: None, each };
        self.plan.pieces(message, step, self.block_bytes, |register, first, end| {
            joined.push(self.region(register, first, end, time));
        });
        joined.end();
    }
}

impl Plan {
    /// Whether the bytes of a message lie in one piece of one buffer; read at `time`, or written
    /// if that is [`NONE`].
    pub(crate) fn in_one_piece(&self, message: u32, step: u32, time: u32) -> bool {
        let mut regions = 0;
        let places = Places { plan: self, block_bytes: self.problem.block_bytes };
        places.regions(message, step, time, |_| regions += 1);
        regions <= 1
    }
}

/// Regions in order, of which those that touch are given to `each` as one.
pub(crate) struct Joined<F> {
    pub(crate) last: Option<Region>,
    pub(crate) each: F,
}

impl<F: FnMut(Region)> Joined<F> {
    #[inline]
    pub(crate) fn push(&mut self, next: Region) {
        match &mut self.last {
            Some(last) if (last.buffer, last.offset + last.bytes) == (next.buffer, next.offset) => {
                last.bytes += next.bytes;
            }
            last => last.replace(next).into_iter().for_each(&mut self.each),
        }
    }

    #[inline]
    pub(crate) fn end(self) {
        self.last.into_iter().for_each(self.each);
    }
}
