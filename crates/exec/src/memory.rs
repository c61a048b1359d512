use std::ops::Range;

/// The three memories of an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Buffer {
    /// The caller's blocks, in order of destinations: only read, and never after the last send.
    Input,
    /// The blocks received, in order of sources. Before the end it may hold other blocks; in place,
    /// the caller's blocks at first.
    Output,
    /// [`workspace_bytes`](crate::Plan::workspace_bytes) of no meaning before or after.
    Work,
}

/// Consecutive bytes of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Region {
    /// Of which.
    pub buffer: Buffer,
    /// The first byte.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
}

impl Region {
    /// # Panics
    /// A copy to the input, or to a region of another length.
    pub(crate) fn check_copy(self, to: Self) {
        assert_ne!(to.buffer, Buffer::Input, "the input of an exchange is only read");
        assert_eq!(self.bytes, to.bytes, "a copy is as long as what is copied");
    }

    pub(crate) fn range(self) -> Range<usize> {
        self.offset as usize..(self.offset + self.bytes) as usize
    }
}

/// A rank's memories as an exchange uses them: rows of blocks ([`Memory`]), or blocks spread in
/// arrays ([`Views`](crate::Views)). Offsets of regions count the bytes of blocks in order, wherever
/// they lie. Made for these two: methods may be added.
pub trait Storage {
    /// Bytes of a buffer's blocks, or of the workspace.
    fn bytes(&self, buffer: Buffer) -> u128;

    /// Bytes of a block of a buffer, if it has but one size.
    fn block_bytes(&self, _buffer: Buffer) -> Option<u64> {
        None
    }

    /// Copies a region to another, of the same length and not of the input.
    ///
    /// # Panics
    /// Regions outside their buffers, of different lengths, or a copy to the input.
    fn copy(&mut self, from: Region, to: Region);

    /// Calls `with` with the bytes of a region.
    ///
    /// # Panics
    /// A region outside its buffer.
    fn read<R>(&mut self, region: Region, with: impl FnOnce(&[u8]) -> R) -> R;

    /// Writes the bytes of a region.
    ///
    /// # Panics
    /// A region outside its buffer, of another length, or of the input.
    fn write(&mut self, region: Region, bytes: &[u8]);

    /// Calls `with` to write a region. Storage whose regions do not lie in a row copies.
    ///
    /// # Panics
    /// A region outside its buffer, or of the input.
    fn fill<R>(&mut self, region: Region, with: impl FnOnce(&mut [u8]) -> R) -> R {
        let mut bytes = vec![0; region.bytes as usize];
        let outcome = with(&mut bytes);
        self.write(region, &bytes);
        outcome
    }
}

impl Storage for Memory<'_> {
    fn bytes(&self, buffer: Buffer) -> u128 {
        match buffer {
            Buffer::Input => self.input.len() as u128,
            Buffer::Output => self.output.len() as u128,
            Buffer::Work => self.work.len() as u128,
        }
    }

    fn copy(&mut self, from: Region, to: Region) {
        from.check_copy(to);
        let at = to.offset as usize;
        match (from.buffer, to.buffer) {
            (Buffer::Output, Buffer::Output) => self.output.copy_within(from.range(), at),
            (Buffer::Work, Buffer::Work) => self.work.copy_within(from.range(), at),
            (Buffer::Work, _) => {
                self.output[to.range()].copy_from_slice(&self.work[from.range()]);
            }
            (Buffer::Output, _) => {
                self.work[to.range()].copy_from_slice(&self.output[from.range()]);
            }
            (Buffer::Input, _) => {
                let input = &self.input[from.range()];
                self.bytes_mut(to).copy_from_slice(input);
            }
        }
    }

    fn read<R>(&mut self, region: Region, with: impl FnOnce(&[u8]) -> R) -> R {
        with(Memory::bytes(self, region))
    }

    fn write(&mut self, region: Region, bytes: &[u8]) {
        self.bytes_mut(region).copy_from_slice(bytes);
    }

    fn fill<R>(&mut self, region: Region, with: impl FnOnce(&mut [u8]) -> R) -> R {
        with(self.bytes_mut(region))
    }
}

/// A rank's memories, lent for one call.
#[derive(Debug)]
pub struct Memory<'a> {
    /// `[blocks, block_bytes]` bytes, row i for rank i; of an all-gather one block, in place none.
    pub input: &'a [u8],
    /// `[ranks, block_bytes]` bytes, row i from rank i.
    pub output: &'a mut [u8],
    /// The workspace.
    pub work: &'a mut [u8],
}

impl Memory<'_> {
    /// The bytes of a region.
    ///
    /// # Panics
    /// A region outside its buffer.
    pub(crate) fn bytes(&self, region: Region) -> &[u8] {
        match region.buffer {
            Buffer::Input => &self.input[region.range()],
            Buffer::Output => &self.output[region.range()],
            Buffer::Work => &self.work[region.range()],
        }
    }

    /// The bytes of a region, to be written.
    ///
    /// # Panics
    /// A region outside its buffer, or of the input.
    pub(crate) fn bytes_mut(&mut self, region: Region) -> &mut [u8] {
        match region.buffer {
            Buffer::Input => panic!("the input of an exchange is only read"),
            Buffer::Output => &mut self.output[region.range()],
            Buffer::Work => &mut self.work[region.range()],
        }
    }
}

/// A rank's memories as pointers, for drivers that cannot hold slices: while one region is copied, a
/// transport may write another of the same buffer. The driver vouches for the pointers.
#[derive(Clone, Copy, Debug)]
pub struct RawBuffers {
    /// The first byte of the input, which is only read.
    pub input: *const u8,
    /// The first byte of the output.
    pub output: *mut u8,
    /// The first byte of the workspace.
    pub work: *mut u8,
}

impl RawBuffers {
    /// The first byte of a region. It may be accessed where the buffer has the region.
    #[must_use]
    pub fn at(self, region: Region) -> *mut u8 {
        let first = match region.buffer {
            Buffer::Input => self.input.cast_mut(),
            Buffer::Output => self.output,
            Buffer::Work => self.work,
        };
        first.wrapping_add(region.offset as usize)
    }
}
