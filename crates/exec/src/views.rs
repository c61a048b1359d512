//! Blocks that lie spread in the caller's arrays: rows, columns, transposed tiles.

use crate::{Buffer, ExecError, Region, Storage};

/// Where the elements of an array of blocks lie in a buffer.
///
/// As `ndarray` has it: the first axis numbers the blocks, the others the elements of a block, in
/// the order in which they travel, the last fastest. An axis may have any stride of elements but a
/// negative one, so a permuted view transposes on its way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Blocks, and bytes from one to the next.
    blocks: (usize, usize),
    /// Axes of a block: counts, and strides in bytes.
    axes: Vec<(usize, usize)>,
    /// Bytes that lie together and travel together.
    run_bytes: usize,
    block_bytes: usize,
    /// Whether no two elements share a place.
    distinct: bool,
    /// Bytes up to the last element's end.
    span: usize,
}

impl Layout {
    /// The layout of an array of `shape`, its `strides` in elements of `element_bytes`.
    ///
    /// # Errors
    /// [`ExecError::Layout`]: no axis, not one stride for each, a negative stride, or more bytes
    /// than can be addressed.
    pub fn new(
        shape: &[usize],
        strides: &[isize],
        element_bytes: usize,
    ) -> Result<Self, ExecError> {
        let refused =
            |rule| ExecError::Layout { shape: shape.into(), strides: strides.into(), rule };
        let (Some((&blocks, counts)), true) = (shape.split_first(), shape.len() == strides.len())
        else {
            return Err(refused("a first axis of blocks, and a stride for every axis"));
        };
        let too_large = || refused("fewer than 2^63 bytes");
        let stride = |&stride: &isize| {
            let elements = usize::try_from(stride).map_err(|_| refused("no negative stride"))?;
            let bytes = elements.checked_mul(element_bytes);
            bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or_else(too_large)
        };
        let strides = strides.iter().map(stride).collect::<Result<Vec<_>, _>>()?;
        let elements = counts.iter().try_fold(1, |n: usize, &count| n.checked_mul(count));
        let bytes = elements.and_then(|elements| elements.checked_mul(element_bytes));
        let block_bytes = bytes.ok_or_else(too_large)?;
        block_bytes.checked_mul(blocks).ok_or_else(too_large)?;

        let all = || shape.iter().copied().zip(strides.iter().copied());
        let empty = shape.contains(&0);
        let reach = all().try_fold(0usize, |reach, (count, stride)| {
            reach.checked_add(count.saturating_sub(1).checked_mul(stride)?)
        });
        let span =
            reach.and_then(|reach| reach.checked_add(element_bytes)).ok_or_else(too_large)?;
        isize::try_from(span).map_err(|_| too_large())?;
        // In order of strides, each axis steps over the bytes of the axes below it.
        let mut rising: Vec<_> = all().filter(|&(count, _)| count > 1).collect();
        rising.sort_unstable_by_key(|&(_, stride)| stride);
        let mut below = element_bytes;
        let distinct = rising.iter().all(|&(count, stride)| {
            let free = stride >= below;
            below += (count - 1) * stride;
            free
        });
        // From the fastest axis on, contiguous axes join into one run, and evenly spaced ones into one.
        let (mut axes, mut run_bytes): (Vec<(usize, usize)>, _) = (Vec::new(), element_bytes);
        let inside = counts.iter().copied().zip(strides[1..].iter().copied());
        for (count, stride) in inside.rev().filter(|&(count, _)| count != 1) {
            match axes.last_mut() {
                None if stride == run_bytes => run_bytes *= count,
                Some(inner) if stride == inner.0 * inner.1 => inner.0 *= count,
                _ => axes.push((count, stride)),
            }
        }
        axes.reverse();
        let span = if empty { 0 } else { span };
        Ok(Self { blocks: (blocks, strides[0]), axes, run_bytes, block_bytes, distinct, span })
    }

    /// Calls `each` with the pieces of bytes `offset..offset + bytes` of the blocks, in order: the
    /// first byte in the buffer, and how many.
    fn pieces(&self, offset: usize, bytes: usize, mut each: impl FnMut(usize, usize)) {
        let (mut at, end) = (offset, offset + bytes);
        assert!(end <= self.blocks.0 * self.block_bytes, "bytes {offset}..{end} of all blocks");
        let (inner, outer) = self.axes.split_last().map_or(((1, 0), &[][..]), |(i, o)| (*i, o));
        while at < end {
            let (block, within) = (at / self.block_bytes, at % self.block_bytes);
            let (run, mut first) = (within / self.run_bytes, within % self.run_bytes);
            let (mut rest, j) = (run / inner.0, run % inner.0);
            let mut row = block * self.blocks.1;
            for &(count, stride) in outer.iter().rev() {
                row += rest % count * stride;
                rest /= count;
            }
            for j in j..inner.0 {
                let length = (self.run_bytes - first).min(end - at);
                each(row + j * inner.1 + first, length);
                at += length;
                first = 0;
                if at == end {
                    return;
                }
            }
        }
    }

    /// Copies bytes of the blocks, from `offset` on, out of the buffer.
    ///
    /// # Panics
    /// Bytes past the blocks or the buffer.
    fn gather(&self, buffer: &[u8], offset: usize, out: &mut [u8]) {
        let mut done = 0;
        self.pieces(offset, out.len(), |at, bytes| {
            out[done..done + bytes].copy_from_slice(&buffer[at..at + bytes]);
            done += bytes;
        });
    }

    /// Copies bytes of the blocks, from `offset` on, into the buffer.
    ///
    /// # Panics
    /// Bytes past the blocks or the buffer.
    fn scatter(&self, bytes: &[u8], offset: usize, buffer: &mut [u8]) {
        let mut done = 0;
        self.pieces(offset, bytes.len(), |at, count| {
            buffer[at..at + count].copy_from_slice(&bytes[done..done + count]);
            done += count;
        });
    }
}

/// A rank's memories where blocks are not rows: messages and packed pieces are gathered from the
/// views and scattered into them.
///
/// Beside the workspace it takes the bytes of the largest message, and of one block.
#[derive(Debug)]
pub struct Views<'a> {
    input: (&'a [u8], Option<Layout>),
    output: (&'a mut [u8], Layout),
    work: &'a mut [u8],
    message: Vec<u8>,
}

impl<'a> Views<'a> {
    /// The memories of an exchange from one view to another.
    ///
    /// # Errors
    /// [`ExecError::View`] for a layout that reaches beyond its buffer, or an output of which two
    /// elements share a place.
    pub fn new(
        input: (&'a [u8], Layout),
        output: (&'a mut [u8], Layout),
        work: &'a mut [u8],
    ) -> Result<Self, ExecError> {
        check("input", input.0.len(), &input.1, false)?;
        check("output", output.0.len(), &output.1, true)?;
        let input = (input.0, Some(input.1));
        Ok(Self { input, output, work, message: Vec::new() })
    }

    /// The memories of an exchange in place.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn in_place(output: (&'a mut [u8], Layout), work: &'a mut [u8]) -> Result<Self, ExecError> {
        check("output", output.0.len(), &output.1, true)?;
        Ok(Self { input: (&[], None), output, work, message: Vec::new() })
    }

    /// Gathers a region into `message`.
    fn gather(&mut self, region: Region) {
        self.message.resize(region.bytes as usize, 0);
        match region.buffer {
            Buffer::Work => self.message.copy_from_slice(&self.work[region.range()]),
            _ => gather(&self.input, (&*self.output.0, &self.output.1), region, &mut self.message),
        }
    }
}

/// Copies a region of the input or the output out of its buffer.
fn gather(
    input: &(&[u8], Option<Layout>),
    output: (&[u8], &Layout),
    region: Region,
    out: &mut [u8],
) {
    let (buffer, layout) = match (region.buffer, &input.1) {
        (Buffer::Input, layout) => {
            (input.0, layout.as_ref().expect("bug: an exchange in place has no input"))
        }
        _ => output,
    };
    layout.gather(buffer, region.offset as usize, out);
}

fn check(
    buffer: &'static str,
    bytes: usize,
    layout: &Layout,
    written: bool,
) -> Result<(), ExecError> {
    let rule = match () {
        () if layout.span > bytes => "to end within its buffer",
        () if written && !layout.distinct => "no two elements in one place",
        () => return Ok(()),
    };
    Err(ExecError::View { buffer, span: layout.span, bytes, rule })
}

impl Storage for Views<'_> {
    fn bytes(&self, buffer: Buffer) -> u128 {
        let all = |layout: &Layout| layout.blocks.0 as u128 * layout.block_bytes as u128;
        match buffer {
            Buffer::Input => self.input.1.as_ref().map_or(0, all),
            Buffer::Output => all(&self.output.1),
            Buffer::Work => self.work.len() as u128,
        }
    }

    fn block_bytes(&self, buffer: Buffer) -> Option<u64> {
        match buffer {
            Buffer::Input => self.input.1.as_ref().map(|layout| layout.block_bytes as u64),
            Buffer::Output => Some(self.output.1.block_bytes as u64),
            Buffer::Work => None,
        }
    }

    fn copy(&mut self, from: Region, to: Region) {
        from.check_copy(to);
        let (at, output) = (to.offset as usize, (&*self.output.0, &self.output.1));
        match (from.buffer, to.buffer) {
            (Buffer::Work, Buffer::Work) => self.work.copy_within(from.range(), at),
            (_, Buffer::Work) => gather(&self.input, output, from, &mut self.work[to.range()]),
            (Buffer::Work, _) => {
                self.output.1.scatter(&self.work[from.range()], at, self.output.0);
            }
            _ => {
                self.gather(from);
                self.output.1.scatter(&self.message, at, self.output.0);
            }
        }
    }

    fn read<R>(&mut self, region: Region, with: impl FnOnce(&[u8]) -> R) -> R {
        self.gather(region);
        with(&self.message)
    }

    fn write(&mut self, region: Region, bytes: &[u8]) {
        match region.buffer {
            Buffer::Input => panic!("the input of an exchange is only read"),
            Buffer::Output => self.output.1.scatter(bytes, region.offset as usize, self.output.0),
            Buffer::Work => self.work[region.range()].copy_from_slice(bytes),
        }
    }
}
