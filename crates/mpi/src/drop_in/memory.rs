//! Memory of exchanges beside the program's buffers.

use std::ffi::c_int;

use crate::symbols as mpi;

use crate::failed::Failed;

/// Memory that a communicator may keep, of each kind: 16 MiB.
const KEPT: usize = 1 << 24;

/// Memory for exchanges, kept from one to the next up to [`KEPT`] bytes each.
#[derive(Default)]
pub(crate) struct Memory {
    input: Vec<u8>,
    output: Vec<u8>,
    work: Vec<u8>,
}

impl Memory {
    pub(crate) fn input(&mut self, bytes: u128) -> Result<*mut u8, Failed> {
        room(&mut self.input, bytes)
    }

    pub(crate) fn output(&mut self, bytes: u128) -> Result<*mut u8, Failed> {
        room(&mut self.output, bytes)
    }

    pub(crate) fn work(&mut self, bytes: u128) -> Result<*mut u8, Failed> {
        room(&mut self.work, bytes)
    }

    /// Frees memory that only large exchanges need.
    pub(crate) fn trim(&mut self) {
        for memory in [&mut self.input, &mut self.output, &mut self.work] {
            if memory.len() > KEPT {
                *memory = Vec::new();
            }
        }
    }
}

/// Memory of `bytes`, kept for the next exchange.
fn room(memory: &mut Vec<u8>, bytes: u128) -> Result<*mut u8, Failed> {
    let refused = Failed(mpi::MPI_ERR_NO_MEM as c_int);
    let bytes = usize::try_from(bytes).map_err(|_| refused)?;
    if memory.len() < bytes {
        memory.try_reserve_exact(bytes - memory.len()).map_err(|_| refused)?;
        memory.resize(bytes, 0);
    }
    Ok(memory.as_mut_ptr())
}
