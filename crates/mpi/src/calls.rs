//! The calls that programs make.

use std::ffi::{c_int, c_void};

use mpi_sys as mpi;
use topocoll::Collective;

use crate::blocks::Blocks;
use crate::communicator::{Failed, find, finish};

/// `MPI_IN_PLACE`, a cast that the bindings do not have.
pub(crate) fn in_place() -> *const c_void {
    std::ptr::without_provenance(if cfg!(open_mpi) { 1 } else { usize::MAX })
}

/// A buffer as a call names it.
#[derive(Clone, Copy)]
struct Named {
    data: *const c_void,
    count: c_int,
    datatype: mpi::MPI_Datatype,
}

/// Exchanges, and says the error by the communicator's handler; none if the call is to be forwarded.
///
/// # Safety
/// The buffers are as the call promises.
unsafe fn taken(
    operation: Collective,
    send: Named,
    receive: Named,
    comm: mpi::MPI_Comm,
) -> Option<c_int> {
    let outcome = find(comm).and_then(|kept| {
        let Some(kept) = kept else { return Ok(false) };
        let blocks = |named: Named| Blocks::new(named.data.cast_mut(), named.count, named.datatype);
        let Some(to) = blocks(receive) else { return Ok(false) };
        let from = if send.data == in_place() {
            None
        } else {
            match blocks(send) {
                Some(from) if from.bytes == to.bytes => Some(from),
                _ => return Ok(false),
            }
        };
        let mut kept = kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // SAFETY: the caller's promise.
        unsafe { kept.exchange(operation, from, to) }
    });
    match outcome {
        Ok(true) => Some(mpi::MPI_SUCCESS as c_int),
        Ok(false) => None,
        Err(Failed(code)) => {
            // SAFETY: a communicator, or the failure would be the library's to say.
            unsafe { mpi::PMPI_Comm_call_errhandler(comm, code) };
            Some(code)
        }
    }
}

/// # Safety
/// As MPI says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn MPI_Alltoall(
    sendbuf: *const c_void,
    sendcount: c_int,
    sendtype: mpi::MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: c_int,
    recvtype: mpi::MPI_Datatype,
    comm: mpi::MPI_Comm,
) -> c_int {
    let send = Named { data: sendbuf, count: sendcount, datatype: sendtype };
    let receive = Named { data: recvbuf, count: recvcount, datatype: recvtype };
    // SAFETY: the program's promise.
    unsafe {
        taken(Collective::AllToAll, send, receive, comm).unwrap_or_else(|| {
            mpi::PMPI_Alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
        })
    }
}

/// # Safety
/// As MPI says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn MPI_Allgather(
    sendbuf: *const c_void,
    sendcount: c_int,
    sendtype: mpi::MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: c_int,
    recvtype: mpi::MPI_Datatype,
    comm: mpi::MPI_Comm,
) -> c_int {
    let send = Named { data: sendbuf, count: sendcount, datatype: sendtype };
    let receive = Named { data: recvbuf, count: recvcount, datatype: recvtype };
    // SAFETY: the program's promise.
    unsafe {
        taken(Collective::AllGather, send, receive, comm).unwrap_or_else(|| {
            mpi::PMPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
        })
    }
}

/// Counts that are ints; others, or with them blocks of 2 GiB, are the library's.
#[cfg(large_counts)]
fn small(count: mpi::MPI_Count) -> c_int {
    c_int::try_from(count).unwrap_or(-1)
}

/// # Safety
/// As MPI says.
#[cfg(large_counts)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn MPI_Alltoall_c(
    sendbuf: *const c_void,
    sendcount: mpi::MPI_Count,
    sendtype: mpi::MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: mpi::MPI_Count,
    recvtype: mpi::MPI_Datatype,
    comm: mpi::MPI_Comm,
) -> c_int {
    let send = Named { data: sendbuf, count: small(sendcount), datatype: sendtype };
    let receive = Named { data: recvbuf, count: small(recvcount), datatype: recvtype };
    // SAFETY: the program's promise.
    unsafe {
        taken(Collective::AllToAll, send, receive, comm).unwrap_or_else(|| {
            mpi::PMPI_Alltoall_c(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
        })
    }
}

/// # Safety
/// As MPI says.
#[cfg(large_counts)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn MPI_Allgather_c(
    sendbuf: *const c_void,
    sendcount: mpi::MPI_Count,
    sendtype: mpi::MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: mpi::MPI_Count,
    recvtype: mpi::MPI_Datatype,
    comm: mpi::MPI_Comm,
) -> c_int {
    let send = Named { data: sendbuf, count: small(sendcount), datatype: sendtype };
    let receive = Named { data: recvbuf, count: small(recvcount), datatype: recvtype };
    // SAFETY: the program's promise.
    unsafe {
        taken(Collective::AllGather, send, receive, comm).unwrap_or_else(|| {
            mpi::PMPI_Allgather_c(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
        })
    }
}

/// # Safety
/// As MPI says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn MPI_Finalize() -> c_int {
    finish();
    // SAFETY: the program's promise.
    unsafe { mpi::PMPI_Finalize() }
}
