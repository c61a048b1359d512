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

/// The use of a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Send,
    Receive,
}

/// Asks the library whether it accepts a buffer, by a message to or from `MPI_PROC_NULL`: it checks
/// the arguments and does nothing.
///
/// # Errors
/// The error by which the library refuses it.
pub(crate) fn taken(
    data: *mut c_void,
    count: i64,
    datatype: mpi::MPI_Datatype,
    use_: Use,
    comm: mpi::MPI_Comm,
) -> Result<(), Failed> {
    let count = count.clamp(-1, 1) as c_int;
    // SAFETY: the arguments of a call as the program gives them; a status is plain numbers.
    check(unsafe {
        let no_rank = mpi::RSMPI_PROC_NULL;
        match use_ {
            Use::Send => mpi::PMPI_Send(data, count, datatype, no_rank, 0, comm),
            Use::Receive => {
                let mut status = std::mem::zeroed::<mpi::MPI_Status>();
                mpi::PMPI_Recv(data, count, datatype, no_rank, 0, comm, &raw mut status)
            }
        }
    })
}

/// Whether a datatype is predefined by MPI, and so never freed.
pub(crate) fn is_named(datatype: mpi::MPI_Datatype) -> bool {
    let (mut integers, mut addresses, mut datatypes, mut combiner) = (0, 0, 0, 0);
    // SAFETY: a handle that is not null, as the program gives it to the library, and places for the
    // answers.
    let known = unsafe {
        datatype != mpi::RSMPI_DATATYPE_NULL
            && mpi::PMPI_Type_get_envelope(
                datatype,
                &raw mut integers,
                &raw mut addresses,
                &raw mut datatypes,
                &raw mut combiner,
            ) == 0
    };
    known && (integers, addresses, datatypes) == (0, 0, 0)
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

/// Elements that MPI packs at once, as their number and their bytes are ints.
struct Portion {
    data: *mut u8,
    count: c_int,
    /// Their offset in the packed block.
    at: usize,
    bytes: c_int,
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

    /// Visits a block's elements in order.
    ///
    /// # Errors
    /// An element of 2 GiB or more, or the error of `each`.
    fn portions(
        &self,
        index: u32,
        mut each: impl FnMut(Portion) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        let Blocks { count, bytes, .. } = self.blocks;
        let (size, most) = (bytes / count.max(1), c_int::MAX as u64);
        let at_once = most / size.max(1);
        if at_once == 0 {
            return Err(Failed(mpi::MPI_ERR_COUNT as c_int));
        }
        let mut done = 0;
        while done < count {
            let some = at_once.min(count - done);
            let data = self.block(index).wrapping_offset(self.extent.wrapping_mul(done as isize));
            let (at, bytes) = ((done * size) as usize, (some * size) as c_int);
            each(Portion { data, count: some as c_int, at, bytes })?;
            done += some;
        }
        Ok(())
    }

    /// Packs a block into `to`.
    ///
    /// # Safety
    /// The program's buffer has the block, and `to` has room for `bytes`.
    pub(crate) unsafe fn pack(
        &self,
        index: u32,
        to: *mut u8,
        comm: mpi::MPI_Comm,
    ) -> Result<(), Failed> {
        if self.plain {
            let from = self.block(index);
            // SAFETY: the caller's promise; our memory and the program's do not overlap.
            unsafe { ptr::copy_nonoverlapping(from, to, self.blocks.bytes as usize) };
            return Ok(());
        }
        let datatype = self.blocks.datatype;
        self.portions(index, |Portion { data, count, at, bytes }| {
            let mut end = 0;
            // SAFETY: the caller's promise.
            check(unsafe {
                let (from, to) = (data.cast(), to.add(at).cast());
                mpi::PMPI_Pack(from, count, datatype, to, bytes, &raw mut end, comm)
            })?;
            // The same on all ranks, so that both ends of a message agree on its length.
            if end == bytes { Ok(()) } else { Err(Failed(mpi::MPI_ERR_INTERN as c_int)) }
        })
    }

    /// Unpacks a block from `from`.
    ///
    /// # Safety
    /// The program's buffer has the block, and `from` has `bytes`.
    pub(crate) unsafe fn unpack(
        &self,
        index: u32,
        from: *const u8,
        comm: mpi::MPI_Comm,
    ) -> Result<(), Failed> {
        if self.plain {
            let to = self.block(index);
            // SAFETY: the caller's promise; our memory and the program's do not overlap.
            unsafe { ptr::copy_nonoverlapping(from, to, self.blocks.bytes as usize) };
            return Ok(());
        }
        let datatype = self.blocks.datatype;
        self.portions(index, |Portion { data, count, at, bytes }| {
            let mut end = 0;
            // SAFETY: the caller's promise.
            check(unsafe {
                let (from, to) = (from.add(at).cast(), data.cast());
                mpi::PMPI_Unpack(from, bytes, &raw mut end, to, count, datatype, comm)
            })
        })
    }
}
