//! Where the bytes of copies and messages lie.

use super::Endpoint;
use crate::places::Places;
use crate::plan::NONE;
use crate::{BlockSizes, Buffer, EndpointMessage, MemoryCopy, Region, Storage, Token};

impl Endpoint {
    /// Bytes of the registers in the workspace, for drivers that keep staged messages and scratch
    /// elsewhere.
    pub(crate) fn register_bytes(&self) -> u64 {
        match &self.block_sizes {
            BlockSizes::Equal(bytes) => self.plan.register_bytes(*bytes) as u64,
            BlockSizes::Planned(planned) => planned.known(&self.plan).register_bytes(),
        }
    }

    /// Does a copy in memory.
    ///
    /// # Panics
    /// Memories that [`check`](Self::check) refuses.
    pub fn copy(&self, copy: MemoryCopy, memory: &mut impl Storage) {
        self.pieces(copy, |from, to| memory.copy(from, to));
    }

    /// Calls `each` with the source and target regions of a copy, in the order in which to copy
    /// them.
    pub fn pieces(&self, copy: MemoryCopy, mut each: impl FnMut(Region, Region)) {
        let step = self.step;
        match copy {
            MemoryCopy::Keep => {
                for &register in &self.plan.kept {
                    let (from, to) = self.copied(register, register, 0, NONE);
                    each(from, to);
                }
                for (i, &aside) in (0..).zip(self.plan.aside.iter().flatten()) {
                    let (ranks, place) = (self.plan.problem.ranks, self.plan.place(aside));
                    let behind = ranks + self.plan.extra + i;
                    let (from, to) = self.copied(place, behind, NONE, NONE);
                    each(from, to);
                }
            }
            MemoryCopy::Local => {
                let Some((_, moves)) = self.plan.moves(step) else { return };
                let pieces = || {
                    let pairs = moves.registers.iter();
                    pairs.map(|&(from, to)| self.copied(from, to, 2 * step, 2 * step))
                };
                if !moves.scratch {
                    return pieces().for_each(|(from, to)| each(from, to));
                }
                let scratch = || {
                    let at = |offset: &mut u64, bytes| {
                        *offset += bytes;
                        Some(Region { buffer: Buffer::Work, offset: *offset - bytes, bytes })
                    };
                    pieces().map(|(from, _)| from.bytes).scan(self.register_bytes(), at)
                };
                pieces().zip(scratch()).for_each(|((from, _), scratch)| each(from, scratch));
                pieces().zip(scratch()).for_each(|((_, to), scratch)| each(scratch, to));
            }
            MemoryCopy::Pack(message) => self.staged(message, each),
            MemoryCopy::Unpack(message) => {
                self.staged(message, |piece, staged| each(staged, piece));
            }
        }
    }

    /// Calls `each` with the regions of a staged message, and their places in staging memory.
    #[inline]
    fn staged(&self, message: EndpointMessage, mut each: impl FnMut(Region, Region)) {
        let mut offset = message.region.offset;
        self.regions(self.number(message.token), |piece| {
            each(piece, Region { buffer: Buffer::Work, offset, ..piece });
            offset += piece.bytes;
        });
    }

    /// A block copied between registers: where it is read and where it is written.
    fn copied(&self, from: u32, to: u32, read: u32, written: u32) -> (Region, Region) {
        match &self.block_sizes {
            BlockSizes::Equal(block_bytes) => {
                let places = Places { plan: &self.plan, block_bytes: *block_bytes };
                let block = |register, time| places.region(register, 0, *block_bytes, time);
                (block(from, read), block(to, NONE))
            }
            BlockSizes::Planned(planned) => {
                let (sizes, bytes) = (planned.known(&self.plan), self.held[to as usize]);
                (sizes.read(from, bytes, read), sizes.write(to, bytes, written))
            }
        }
    }

    /// The regions of a message of this step in order.
    #[inline]
    fn regions(&self, message: u32, each: impl FnMut(Region)) {
        match &self.block_sizes {
            BlockSizes::Equal(block_bytes) => {
                let sends = message < self.first_receive();
                let time = if sends { 2 * self.step + 1 } else { NONE };
                let places = Places { plan: &self.plan, block_bytes: *block_bytes };
                places.regions(message, self.step, time, each);
            }
            BlockSizes::Planned(planned) => {
                planned.known(&self.plan).regions(message, self.step, &self.held, each);
            }
        }
    }

    /// A message of this step, staged at `offset` of the workspace if it is.
    pub(super) fn locate(&self, number: u32, offset: u64) -> EndpointMessage {
        let plan = &*self.plan;
        let row = plan.messages[number as usize];
        let (staged, bytes) = match &self.block_sizes {
            BlockSizes::Equal(block_bytes) if row.slots.is_staged() => {
                (true, plan.message_bytes(number, *block_bytes))
            }
            BlockSizes::Equal(_) => (false, 0),
            BlockSizes::Planned(planned) => planned.known(&self.plan).message(number),
        };
        // Where a message of no bytes is does not matter.
        let mut region = Region { buffer: Buffer::Work, offset, bytes };
        if !staged {
            self.regions(number, |whole| region = whole);
        }
        EndpointMessage {
            token: Token(u64::from(self.exchange) << 32 | u64::from(number)),
            peer: plan.machine_rank(row.peer),
            tag: self.step,
            region,
            staged,
        }
    }
}
