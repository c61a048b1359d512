//! Memory of exchanges beside the program's buffers.

use std::ffi::c_int;

use crate::symbols as mpi;

use crate::failed::Failed;

/// Memory that a communicator may keep, of each kind: 16 MiB.
const KEPT: usize = 1 << 24;

/// Memory for exchanges, kept from one to the next up to [`KEPT`] bytes each.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) input: Room,
    pub(crate) output: Room,
    pub(crate) work: Room,
}

#[derive(Default)]
pub(crate) struct Room(Vec<u8>);

impl Memory {
    /// Frees memory that only large exchanges need.
    pub(crate) fn trim(&mut self) {
        for Room(memory) in [&mut self.input, &mut self.output, &mut self.work] {
            if memory.len() > KEPT {
                *memory = Vec::new();
            }
        }
    }
}

impl Room {
    /// Memory of `bytes`, kept for the next exchange.
    pub(crate) fn of(&mut self, bytes: u128) -> Result<*mut u8, Failed> {
        let refused = Failed(mpi::MPI_ERR_NO_MEM as c_int);
        let bytes = usize::try_from(bytes).map_err(|_| refused)?;
        let Self(memory) = self;
        if memory.len() < bytes {
            memory.try_reserve_exact(bytes - memory.len()).map_err(|_| refused)?;
            memory.resize(bytes, 0);
        }
        Ok(memory.as_mut_ptr())
    }
}
