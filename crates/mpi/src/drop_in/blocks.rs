//! The program's blocks, and as the bytes that travel.

use std::ffi::{c_int, c_void};
use std::ptr;

use mpi_sys as mpi;

use crate::failed::{Failed, check};

/// Blocks of a buffer of the program, one after the other.
#[derive(Clone, Copy)]
pub(crate) struct Blocks {
    data: *mut u8,
    count: c_int,
    datatype: mpi::MPI_Datatype,
    /// Bytes of a block as it travels.
    pub(crate) bytes: u64,
}

impl Blocks {
    /// None for what the library is to refuse.
    pub(crate) fn new(
        data: *mut c_void,
        count: c_int,
        datatype: mpi::MPI_Datatype,
    ) -> Option<Self> {
        let mut size = 0;
        // SAFETY: a handle that is not null, as the library itself would be given it, and a place
        // for the answer.
        let known = unsafe {
            count >= 0
                && datatype != mpi::RSMPI_DATATYPE_NULL
                && mpi::PMPI_Type_size(datatype, &raw mut size) == 0
        };
        // A size that is no int is said as MPI_UNDEFINED, below 0.
        let bytes = u64::try_from(size).ok()?.checked_mul(u64::try_from(count).ok()?)?;
        known.then_some(Self { data: data.cast(), count, datatype, bytes })
    }

    /// The blocks, and how they lie in memory.
    ///
    /// # Errors
    /// MPI's error code.
    pub(crate) fn placed(self) -> Result<Placed, Failed> {
        // MPI_Aint, an integer of this size whatever its name.
        let (mut lower, mut extent) = (0isize, 0isize);
        let (mut integers, mut addresses, mut datatypes, mut combiner) = (0, 0, 0, 0);
        // SAFETY: a datatype whose size is known, and places for the answers.
        unsafe {
            check(mpi::PMPI_Type_get_extent(
                self.datatype,
                (&raw mut lower).cast(),
                (&raw mut extent).cast(),
            ))?;
            check(mpi::PMPI_Type_get_envelope(
                self.datatype,
                &raw mut integers,
                &raw mut addresses,
                &raw mut datatypes,
                &raw mut combiner,
            ))?;
        }
        // A named type, and no other, is made of nothing.
        let named = (integers, addresses, datatypes) == (0, 0, 0);
        let stride = extent * self.count as isize;
        let plain = named && lower == 0 && stride as u64 == self.bytes;
        Ok(Placed { blocks: self, stride, plain })
    }
}

/// Blocks as they lie in memory.
#[derive(Clone, Copy)]
pub(crate) struct Placed {
    blocks: Blocks,
    /// From a block to the next.
    stride: isize,
    /// Whether they lie in memory as they travel.
    pub(crate) plain: bool,
}

impl Placed {
    /// Where the blocks begin.
    pub(crate) fn data(&self) -> *mut u8 {
        self.blocks.data
    }

    /// Of single elements, the block of `count` of them from the `first` on.
    pub(crate) fn part(&self, first: isize, count: c_int) -> Self {
        let data = self.blocks.data.wrapping_offset(first.wrapping_mul(self.stride));
        let bytes = self.blocks.bytes * count as u64;
        Self { blocks: Blocks { data, count, bytes, ..self.blocks }, ..*self }
    }

    fn block(&self, index: u32) -> *mut u8 {
        self.blocks.data.wrapping_offset(self.stride * index as isize)
    }

    /// Writes a block to `to` as it travels.
    ///
    /// # Safety
    /// The program's buffer has the block, and `to` has room for `bytes`.
    pub(crate) unsafe fn pack(
        &self,
        index: u32,
        to: *mut u8,
        comm: mpi::MPI_Comm,
    ) -> Result<(), Failed> {
        let from = self.block(index);
        if self.plain {
            // SAFETY: the caller's promise; our memory and the program's are apart.
            unsafe { ptr::copy_nonoverlapping(from, to, self.blocks.bytes as usize) };
            return Ok(());
        }
        let (room, mut end) = (self.blocks.bytes as c_int, 0);
        // SAFETY: the caller's promise.
        let code = unsafe {
            let (from, to) = (from.cast(), to.cast());
            mpi::PMPI_Pack(
                from,
                self.blocks.count,
                self.blocks.datatype,
                to,
                room,
                &raw mut end,
                comm,
            )
        };
        check(code)?;
        // The same on all ranks, or messages would have different lengths.
        if end == room { Ok(()) } else { Err(Failed(mpi::MPI_ERR_INTERN as c_int)) }
    }

    /// Reads a block from `from` as it has travelled.
    ///
    /// # Safety
    /// The program's buffer has the block, and `from` has `bytes`.
    pub(crate) unsafe fn unpack(
        &self,
        index: u32,
        from: *const u8,
        comm: mpi::MPI_Comm,
    ) -> Result<(), Failed> {
        let to = self.block(index);
        if self.plain {
            // SAFETY: the caller's promise; our memory and the program's are apart.
            unsafe { ptr::copy_nonoverlapping(from, to, self.blocks.bytes as usize) };
            return Ok(());
        }
        let (size, mut end) = (self.blocks.bytes as c_int, 0);
        // SAFETY: the caller's promise.
        check(unsafe {
            let (from, to) = (from.cast(), to.cast());
            mpi::PMPI_Unpack(
                from,
                size,
                &raw mut end,
                to,
                self.blocks.count,
                self.blocks.datatype,
                comm,
            )
        })
    }
}
