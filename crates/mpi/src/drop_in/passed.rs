//! Calls that are always the library's. With tracing, the first rank prints the reason once.

use std::ffi::{c_int, c_void};
use std::sync::Once;

use crate::symbols as mpi;

use super::attribute::is_initialized;
use super::calls::export;
use super::process::{is_traced, say, world};

/// A schedule makes progress only inside MPI calls that the drop-in intercepts. A program that
/// computes between start and end, or waits for another request, would wait for messages that no
/// rank sends.
const NONBLOCKING: &str = "forwarded, a schedule does not progress outside its call";

/// Blocks of datatypes that other ranks do not know.
const SEVERAL: &str = "forwarded, a schedule has one datatype for all blocks";

/// Exports a call that is the library's.
macro_rules! pass {
    ($call:ident as $own:ident, $reason:ident: $($name:ident: $type:ty),*) => {
        export!($call as $own($($name: $type),*), library => {
            static SAID: Once = Once::new();
            SAID.call_once(|| {
                if is_initialized() && is_traced(world().0) {
                    say(&format!("{}: {}", stringify!($call), $reason));
                }
            });
            library()
        });
    };
}

/// The same for a call on blocks of one size.
macro_rules! pass_equal {
    ($call:ident as $own:ident: $count:ty) => {
        pass!($call as $own, NONBLOCKING:
            sendbuf: *const c_void, sendcount: $count, sendtype: mpi::MPI_Datatype,
            recvbuf: *mut c_void, recvcount: $count, recvtype: mpi::MPI_Datatype,
            comm: mpi::MPI_Comm, request: *mut mpi::MPI_Request);
    };
}

pass_equal!(MPI_Ialltoall as PMPI_Ialltoall: c_int);
pass_equal!(MPI_Iallgather as PMPI_Iallgather: c_int);
pass!(MPI_Ialltoallv as PMPI_Ialltoallv, NONBLOCKING:
    sendbuf: *const c_void, sendcounts: *const c_int, sdispls: *const c_int,
    sendtype: mpi::MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const c_int,
    rdispls: *const c_int, recvtype: mpi::MPI_Datatype, comm: mpi::MPI_Comm,
    request: *mut mpi::MPI_Request);
pass!(MPI_Iallgatherv as PMPI_Iallgatherv, NONBLOCKING:
    sendbuf: *const c_void, sendcount: c_int, sendtype: mpi::MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, displs: *const c_int, recvtype: mpi::MPI_Datatype,
    comm: mpi::MPI_Comm, request: *mut mpi::MPI_Request);
pass!(MPI_Alltoallw as PMPI_Alltoallw, SEVERAL:
    sendbuf: *const c_void, sendcounts: *const c_int, sdispls: *const c_int,
    sendtypes: *const mpi::MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const c_int,
    rdispls: *const c_int, recvtypes: *const mpi::MPI_Datatype, comm: mpi::MPI_Comm);
