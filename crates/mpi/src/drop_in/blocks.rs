//! Blocks in the program's buffers, and their packed bytes.

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::symbols as mpi;

use crate::failed::{Failed, check};

/// Blocks of a buffer of the program, one after the other.
#[derive(Clone, Copy)]
pub(crate) struct Blocks {
    data: *mut u8,
    count: u64,
    datatype: mpi::MPI_Datatype,
    /// Bytes of a packed block.
    pub(crate) bytes: u64,
}

impl Blocks {
    /// None for arguments that the library must refuse.
    pub(crate) fn new(data: *mut c_void, count: i64, datatype: mpi::MPI_Datatype) -> Option<Self> {
        let mut size: mpi::MPI_Count = 0;
        // SAFETY: a handle that is not null, as the program gives it to the library, and a place
        // for the answer.
        let known = unsafe {
            datatype != mpi::RSMPI_DATATYPE_NULL
                && mpi::PMPI_Type_size_x(datatype, &raw mut size) == 0
        };
        let count = u64::try_from(count).ok()?;
        let bytes = u64::try_from(size).ok()?.checked_mul(count)?;
        known.then_some(Self { data: data.cast(), count, datatype, bytes })
    }

    /// The blocks, and their layout in memory.
    ///
    /// # Errors
    /// MPI's error code.
    pub(crate) fn placed(self) -> Result<Placed, Failed> {
        // MPI_Aint is an integer of this size.
        let (mut lower, mut extent) = (0isize, 0isize);
        // SAFETY: a datatype whose size is known, and places for the answers.
        check(unsafe {
            let (lower, extent) = ((&raw mut lower).cast(), (&raw mut extent).cast());
            mpi::PMPI_Type_get_extent(self.datatype, lower, extent)
        })?;
        let dense = extent.wrapping_mul(self.count as isize) as u64 == self.bytes;
        let plain = lower == 0 && dense && is_named(self.datatype);
        Ok(Placed { blocks: self, extent, plain })
    }
}

/// Whether a datatype whose size is known is predefined by MPI.
fn is_named(datatype: mpi::MPI_Datatype) -> bool {
    let [mut integers, mut addresses, mut datatypes, mut combiner] = [0; 4];
    let (to, combiner) =
        ((&raw mut integers, &raw mut addresses, &raw mut datatypes), &raw mut combiner);
    // SAFETY: a datatype, and places for the answers.
    let code = unsafe { mpi::PMPI_Type_get_envelope(datatype, to.0, to.1, to.2, combiner) };
    code == 0 && (integers, addresses, datatypes) == (0, 0, 0)
}

/// The layout of blocks in memory.
#[derive(Clone, Copy)]
pub(crate) struct Placed {
    blocks: Blocks,
    /// Bytes from an element to the next.
    extent: isize,
    /// Whether their bytes in memory are the packed bytes.
    pub(crate) plain: bool,
}

impl Placed {
    /// The first byte of the blocks.
    pub(crate) fn data(&self) -> *mut u8 {
        self.blocks.data
    }

    /// If blocks are single elements: the block of `count` elements from the `first` on.
    pub(crate) fn part(&self, first: isize, count: u64) -> Self {
        let data = self.blocks.data.wrapping_offset(first.wrapping_mul(self.extent));
        let bytes = self.blocks.bytes.saturating_mul(count);
        Self { blocks: Blocks { data, count, bytes, ..self.blocks }, ..*self }
    }

    fn block(&self, index: u32) -> *mut u8 {
        let stride = self.extent.wrapping_mul(self.blocks.count as isize);
        self.blocks.data.wrapping_offset(stride.wrapping_mul(index as isize))
    }

    /// Packs a block into the `packed` bytes, or unpacks it.
    ///
    /// # Errors
    /// An element of 2 GiB or more, or MPI's error.
    ///
    /// # Safety
    /// The program's buffer has the block, and `packed` has its bytes.
    pub(crate) unsafe fn copy(
        &self,
        index: u32,
        packed: *mut u8,
        packs: bool,
        comm: mpi::MPI_Comm,
    ) -> Result<(), Failed> {
        let Blocks { count, bytes, datatype, .. } = self.blocks;
        let block = self.block(index);
        if self.plain {
            let (from, to) = if packs { (block, packed) } else { (packed, block) };
            // SAFETY: the caller's promise; our memory and the program's do not overlap.
            unsafe { ptr::copy_nonoverlapping(from, to, bytes as usize) };
            return Ok(());
        }
        // MPI packs as many elements at once as have a number and bytes that are ints.
        let size = bytes / count.max(1);
        let at_once = c_int::MAX as u64 / size.max(1);
        if at_once == 0 {
            return Err(Failed(mpi::MPI_ERR_COUNT as c_int));
        }
        let mut done = 0;
        while done < count {
            let some = at_once.min(count - done);
            let (number, room, mut end) = (some as c_int, (some * size) as c_int, 0);
            let data = block.wrapping_offset(self.extent.wrapping_mul(done as isize)).cast();
            // SAFETY: the caller's promise.
            check(unsafe {
                let at = packed.add((done * size) as usize).cast();
                if packs {
                    mpi::PMPI_Pack(data, number, datatype, at, room, &raw mut end, comm)
                } else {
                    mpi::PMPI_Unpack(at, room, &raw mut end, data, number, datatype, comm)
                }
            })?;
            // The same on all ranks, so that both ends of a message agree on its length.
            if packs && end != room {
                return Err(Failed(mpi::MPI_ERR_INTERN as c_int));
            }
            done += some;
        }
        Ok(())
    }
}
