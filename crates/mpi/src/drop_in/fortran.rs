//! Fortran's calls with Open MPI, whose Fortran library bypasses the C calls: all names of
//! `use mpi`, `mpif.h` and `use mpi_f08`.

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

use crate::symbols as mpi;

use super::calls::{
    MPI_Allgather, MPI_Allgatherv, MPI_Alltoall, MPI_Alltoallv, MPI_Finalize, in_place,
};

/// A Fortran constant of the library, identified by its address.
struct Address(OnceLock<usize>);

static IN_PLACE: Address = Address(OnceLock::new());
static BOTTOM: Address = Address(OnceLock::new());

impl Address {
    fn of(&self, name: &CStr) -> usize {
        // SAFETY: a name that ends with a zero byte.
        *self.0.get_or_init(|| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) } as usize)
    }
}

/// A buffer argument as in C.
fn buffer(data: *mut c_void) -> *mut c_void {
    if data.addr() == IN_PLACE.of(c"mpi_fortran_in_place_") {
        in_place().cast_mut()
    } else if data.addr() == BOTTOM.of(c"mpi_fortran_bottom_") {
        std::ptr::null_mut()
    } else {
        data
    }
}

/// Exports a call under the names of compilers and of the library's modules.
macro_rules! exchange {
    ($call:ident: $($name:ident)*) => {$(
        /// # Safety
        /// As MPI says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            sendbuf: *mut c_void,
            sendcount: *const c_int,
            sendtype: *const c_int,
            recvbuf: *mut c_void,
            recvcount: *const c_int,
            recvtype: *const c_int,
            comm: *const c_int,
            error: *mut c_int,
        ) {
            mpi::load();
            // SAFETY: Fortran passes the addresses of C's arguments; the error is optional.
            unsafe {
                let code = $call(
                    buffer(sendbuf),
                    *sendcount,
                    mpi::PMPI_Type_f2c(*sendtype),
                    buffer(recvbuf),
                    *recvcount,
                    mpi::PMPI_Type_f2c(*recvtype),
                    mpi::PMPI_Comm_f2c(*comm),
                );
                if let Some(error) = error.as_mut() {
                    *error = code;
                }
            }
        }
    )*};
}

macro_rules! exchange_vector {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As MPI says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            sendbuf: *mut c_void,
            sendcounts: *const c_int,
            sdispls: *const c_int,
            sendtype: *const c_int,
            recvbuf: *mut c_void,
            recvcounts: *const c_int,
            rdispls: *const c_int,
            recvtype: *const c_int,
            comm: *const c_int,
            error: *mut c_int,
        ) {
            mpi::load();
            // SAFETY: Fortran passes the addresses of C's arguments, and Fortran's integers are C's
            // ints; the error is optional.
            unsafe {
                let code = MPI_Alltoallv(
                    buffer(sendbuf),
                    sendcounts,
                    sdispls,
                    mpi::PMPI_Type_f2c(*sendtype),
                    buffer(recvbuf),
                    recvcounts,
                    rdispls,
                    mpi::PMPI_Type_f2c(*recvtype),
                    mpi::PMPI_Comm_f2c(*comm),
                );
                if let Some(error) = error.as_mut() {
                    *error = code;
                }
            }
        }
    )*};
}

macro_rules! gather_vector {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As MPI says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            sendbuf: *mut c_void,
            sendcount: *const c_int,
            sendtype: *const c_int,
            recvbuf: *mut c_void,
            recvcounts: *const c_int,
            displs: *const c_int,
            recvtype: *const c_int,
            comm: *const c_int,
            error: *mut c_int,
        ) {
            mpi::load();
            // SAFETY: the same.
            unsafe {
                let code = MPI_Allgatherv(
                    buffer(sendbuf),
                    *sendcount,
                    mpi::PMPI_Type_f2c(*sendtype),
                    buffer(recvbuf),
                    recvcounts,
                    displs,
                    mpi::PMPI_Type_f2c(*recvtype),
                    mpi::PMPI_Comm_f2c(*comm),
                );
                if let Some(error) = error.as_mut() {
                    *error = code;
                }
            }
        }
    )*};
}

macro_rules! finalize {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As MPI says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(error: *mut c_int) {
            // SAFETY: the same; the error is optional.
            unsafe {
                let code = MPI_Finalize();
                if let Some(error) = error.as_mut() {
                    *error = code;
                }
            }
        }
    )*};
}

exchange!(MPI_Alltoall: mpi_alltoall mpi_alltoall_ mpi_alltoall__ MPI_ALLTOALL ompi_alltoall_f);
exchange!(MPI_Allgather: mpi_allgather mpi_allgather_ mpi_allgather__ MPI_ALLGATHER ompi_allgather_f);
exchange_vector!(mpi_alltoallv mpi_alltoallv_ mpi_alltoallv__ MPI_ALLTOALLV ompi_alltoallv_f);
gather_vector!(
    mpi_allgatherv mpi_allgatherv_ mpi_allgatherv__ MPI_ALLGATHERV ompi_allgatherv_f
);
finalize!(mpi_finalize mpi_finalize_ mpi_finalize__ MPI_FINALIZE ompi_finalize_f);
