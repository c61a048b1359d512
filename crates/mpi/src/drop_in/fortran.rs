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

/// Exports a call under the names of compilers and of the library's modules: arguments as C's.
macro_rules! fortran {
    ($call:ident $arguments:tt: $($export:ident)*) => {$(fortran!(@ $call $arguments $export);)*};
    (@ $call:ident ($($name:ident: $type:ty => $value:expr),*) $export:ident) => {
        /// # Safety
        /// As MPI says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $export($($name: $type,)* error: *mut c_int) {
            mpi::load();
            // SAFETY: Fortran passes the addresses of C's arguments, and Fortran's integers are C's
            // ints; the error is optional.
            unsafe {
                let code = $call($($value),*);
                if let Some(error) = error.as_mut() {
                    *error = code;
                }
            }
        }
    };
}

type Data = *mut c_void;
type Int = *const c_int;

fortran!(MPI_Alltoall(
    sendbuf: Data => buffer(sendbuf), count: Int => *count, of: Int => mpi::PMPI_Type_f2c(*of),
    recvbuf: Data => buffer(recvbuf), room: Int => *room, to: Int => mpi::PMPI_Type_f2c(*to),
    comm: Int => mpi::PMPI_Comm_f2c(*comm)
): mpi_alltoall mpi_alltoall_ mpi_alltoall__ MPI_ALLTOALL ompi_alltoall_f);
fortran!(MPI_Allgather(
    sendbuf: Data => buffer(sendbuf), count: Int => *count, of: Int => mpi::PMPI_Type_f2c(*of),
    recvbuf: Data => buffer(recvbuf), room: Int => *room, to: Int => mpi::PMPI_Type_f2c(*to),
    comm: Int => mpi::PMPI_Comm_f2c(*comm)
): mpi_allgather mpi_allgather_ mpi_allgather__ MPI_ALLGATHER ompi_allgather_f);
fortran!(MPI_Alltoallv(
    sendbuf: Data => buffer(sendbuf), counts: Int => counts, begins: Int => begins,
    of: Int => mpi::PMPI_Type_f2c(*of),
    recvbuf: Data => buffer(recvbuf), rooms: Int => rooms, places: Int => places,
    to: Int => mpi::PMPI_Type_f2c(*to), comm: Int => mpi::PMPI_Comm_f2c(*comm)
): mpi_alltoallv mpi_alltoallv_ mpi_alltoallv__ MPI_ALLTOALLV ompi_alltoallv_f);
fortran!(MPI_Allgatherv(
    sendbuf: Data => buffer(sendbuf), count: Int => *count, of: Int => mpi::PMPI_Type_f2c(*of),
    recvbuf: Data => buffer(recvbuf), rooms: Int => rooms, places: Int => places,
    to: Int => mpi::PMPI_Type_f2c(*to), comm: Int => mpi::PMPI_Comm_f2c(*comm)
): mpi_allgatherv mpi_allgatherv_ mpi_allgatherv__ MPI_ALLGATHERV ompi_allgatherv_f);
fortran!(MPI_Finalize(): mpi_finalize mpi_finalize_ mpi_finalize__ MPI_FINALIZE ompi_finalize_f);
