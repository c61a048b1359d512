//! The program's blocks, and as the bytes that travel.

use std::ffi::{c_int, c_void};
use std::ptr;

use mpi_sys as mpi;

use crate::communicator::{Failed, check};

/// Blocks of a buffer of the program, one after the other.
#[derive(Clone, Copy)]
pub(crate) struct Blocks {
    data: *mut u8,
    count: c_int,
    datatype: mpi::MPI_Datatype,
    /// From an element to the next.
    extent: isize,
    /// Bytes of a block as it travels.
    pub(crate) bytes: u64,
    /// Whether blocks lie in memory as they travel.
    pub(crate) plain: bool,
}

impl Blocks {
    /// None for what the library is to refuse.
    pub(crate) fn new(
        data: *mut c_void,
        count: c_int,
        datatype: mpi::MPI_Datatype,
    ) -> Option<Self> {
        // MPI_Aint, an integer of this size whatever its name.
        let (mut size, mut lower, mut extent): (_, isize, isize) = (0, 0, 0);
        let (mut integers, mut addresses, mut datatypes, mut combiner) = (0, 0, 0, 0);
        // SAFETY: a handle that is not null, as the library itself would be given it, and places for
        // the answers.
        let known = unsafe {
            count >= 0
                && datatype != mpi::RSMPI_DATATYPE_NULL
                && mpi::PMPI_Type_size(datatype, &raw mut size) == 0
                && mpi::PMPI_Type_get_extent(
                    datatype,
                    (&raw mut lower).cast(),
                    (&raw mut extent).cast(),
                ) == 0
                && mpi::PMPI_Type_get_envelope(
                    datatype,
                    &raw mut integers,
                    &raw mut addresses,
                    &raw mut datatypes,
                    &raw mut combiner,
                ) == 0
        };
        // A size that is no int is said as MPI_UNDEFINED, below 0.
        let bytes = u64::try_from(size).ok()?.checked_mul(u64::try_from(count).ok()?)?;
        // A named type, and no other, is made of nothing.
        let named = (integers, addresses, datatypes) == (0, 0, 0);
        let plain = named && lower == 0 && extent == size as isize;
        let data = data.cast();
        known.then_some(Self { data, count, datatype, extent, bytes, plain })
    }

    /// Where the blocks begin.
    pub(crate) fn data(&self) -> *mut u8 {
        self.data
    }

    fn block(&self, index: u32) -> *mut u8 {
        self.data.wrapping_offset(self.extent * self.count as isize * index as isize)
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
            unsafe { ptr::copy_nonoverlapping(from, to, self.bytes as usize) };
            return Ok(());
        }
        let (room, mut end) = (self.bytes as c_int, 0);
        // SAFETY: the caller's promise.
        let code = unsafe {
            let (from, to) = (from.cast(), to.cast());
            mpi::PMPI_Pack(from, self.count, self.datatype, to, room, &raw mut end, comm)
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
            unsafe { ptr::copy_nonoverlapping(from, to, self.bytes as usize) };
            return Ok(());
        }
        let (size, mut end) = (self.bytes as c_int, 0);
        // SAFETY: the caller's promise.
        check(unsafe {
            let (from, to) = (from.cast(), to.cast());
            mpi::PMPI_Unpack(from, size, &raw mut end, to, self.count, self.datatype, comm)
        })
    }
}
