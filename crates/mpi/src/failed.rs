//! MPI's error codes, and locks that are never poisoned.

use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::symbols as mpi;
use serde::{Deserialize, Serialize};
use topocoll::exec::{ExecError, StepFault};

/// MPI's error code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Failed(pub(crate) c_int);

impl Failed {
    /// Its error class, which means the same on all ranks.
    pub(crate) fn class(self) -> Self {
        let mut class = self.0;
        // SAFETY: a place for the answer.
        unsafe { mpi::PMPI_Error_class(self.0, &raw mut class) };
        Self(class)
    }
}

impl From<ExecError> for Failed {
    fn from(error: ExecError) -> Self {
        Self(match error {
            ExecError::InStep { fault: StepFault::Length { .. }, .. } => {
                mpi::MPI_ERR_TRUNCATE as c_int
            }
            _ => mpi::MPI_ERR_INTERN as c_int,
        })
    }
}

/// MPI's codes as results.
pub(crate) fn check(code: c_int) -> Result<(), Failed> {
    if code == mpi::MPI_SUCCESS as c_int { Ok(()) } else { Err(Failed(code)) }
}

/// The lock of a mutex.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic here aborts the program at the C ABI, so no mutex stays poisoned.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
