//! The calls that programs make.

use std::ffi::{c_int, c_void};

use mpi_sys as mpi;
use topocoll::Collective;

use super::attribute::{find, finish, locked};
use super::blocks::Blocks;
use super::unequal::Vector;
use crate::failed::Failed;

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
        let mut kept = locked(&kept);
        // SAFETY: the caller's promise.
        unsafe { kept.exchange(operation, from, to) }
    });
    said(outcome, comm)
}

/// The code of a call, its error said by the communicator's handler; none if it is to be forwarded.
fn said(outcome: Result<bool, Failed>, comm: mpi::MPI_Comm) -> Option<c_int> {
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

/// A buffer of blocks of unequal sizes as a call names it: counts and displacements by rank.
struct Unequal<C, D> {
    data: *const c_void,
    counts: *const C,
    displacements: *const D,
    datatype: mpi::MPI_Datatype,
}

impl<C: Copy, D: Copy> Unequal<C, D>
where
    i64: From<C> + From<D>,
{
    /// # Safety
    /// There are as many counts and displacements as `ranks`.
    unsafe fn vector(&self, ranks: u32) -> Option<Vector> {
        let block = |rank: u32| {
            // SAFETY: the caller's promise.
            let (count, first) = unsafe {
                let rank = rank as usize;
                (*self.counts.add(rank), *self.displacements.add(rank))
            };
            (c_int::try_from(i64::from(count)).unwrap_or(-1), i64::from(first) as isize)
        };
        let elements = Blocks::new(self.data.cast_mut(), 1, self.datatype)?;
        Vector::new(elements, (0..ranks).map(block))
    }
}

/// As `taken`, for an all-to-all of blocks of unequal sizes.
///
/// # Safety
/// The same.
unsafe fn taken_unequal<C: Copy, D: Copy>(
    send: &Unequal<C, D>,
    receive: &Unequal<C, D>,
    comm: mpi::MPI_Comm,
) -> Option<c_int>
where
    i64: From<C> + From<D>,
{
    let outcome = find(comm).and_then(|kept| {
        let Some(kept) = kept else { return Ok(false) };
        let mut kept = locked(&kept);
        if !kept.takes_unequal()? {
            return Ok(false);
        }
        // SAFETY: the caller's promise.
        unsafe {
            let Some(to) = receive.vector(kept.ranks()) else { return Ok(false) };
            if send.data == in_place() {
                return kept.exchange_unequal(None, &to);
            }
            let Some(from) = send.vector(kept.ranks()) else { return Ok(false) };
            kept.exchange_unequal(Some(&from), &to)
        }
    });
    said(outcome, comm)
}

/// Exports a call of equal blocks, whose counts are of a type and fit into ints by a function.
macro_rules! exchange {
    ($call:ident as $own:ident: $operation:ident, $count:ty, $small:expr) => {
        /// # Safety
        /// As MPI says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $call(
            sendbuf: *const c_void,
            sendcount: $count,
            sendtype: mpi::MPI_Datatype,
            recvbuf: *mut c_void,
            recvcount: $count,
            recvtype: mpi::MPI_Datatype,
            comm: mpi::MPI_Comm,
        ) -> c_int {
            let send = Named { data: sendbuf, count: $small(sendcount), datatype: sendtype };
            let receive = Named { data: recvbuf, count: $small(recvcount), datatype: recvtype };
            // SAFETY: the program's promise.
            unsafe {
                taken(Collective::$operation, send, receive, comm).unwrap_or_else(|| {
                    mpi::$own(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
                })
            }
        }
    };
}

exchange!(MPI_Alltoall as PMPI_Alltoall: AllToAll, c_int, std::convert::identity);
exchange!(MPI_Allgather as PMPI_Allgather: AllGather, c_int, std::convert::identity);
#[cfg(large_counts)]
exchange!(MPI_Alltoall_c as PMPI_Alltoall_c: AllToAll, mpi::MPI_Count, small);
#[cfg(large_counts)]
exchange!(MPI_Allgather_c as PMPI_Allgather_c: AllGather, mpi::MPI_Count, small);

/// Exports a call of unequal blocks, whose counts and displacements are of these types.
macro_rules! exchange_unequal {
    ($call:ident as $own:ident: $count:ty, $displacement:ty) => {
        /// # Safety
        /// As MPI says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $call(
            sendbuf: *const c_void,
            sendcounts: *const $count,
            sdispls: *const $displacement,
            sendtype: mpi::MPI_Datatype,
            recvbuf: *mut c_void,
            recvcounts: *const $count,
            rdispls: *const $displacement,
            recvtype: mpi::MPI_Datatype,
            comm: mpi::MPI_Comm,
        ) -> c_int {
            let (counts, displacements) = (sendcounts, sdispls);
            let send = Unequal { data: sendbuf, counts, displacements, datatype: sendtype };
            let (counts, displacements) = (recvcounts, rdispls);
            let receive =
                Unequal { data: recvbuf.cast_const(), counts, displacements, datatype: recvtype };
            // SAFETY: the program's promise.
            unsafe {
                taken_unequal(&send, &receive, comm).unwrap_or_else(|| {
                    mpi::$own(
                        sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                        recvtype, comm,
                    )
                })
            }
        }
    };
}

exchange_unequal!(MPI_Alltoallv as PMPI_Alltoallv: c_int, c_int);
#[cfg(large_counts)]
exchange_unequal!(MPI_Alltoallv_c as PMPI_Alltoallv_c: mpi::MPI_Count, mpi::MPI_Aint);

/// Counts that are ints; others, or with them blocks of 2 GiB, are the library's.
#[cfg(large_counts)]
fn small(count: mpi::MPI_Count) -> c_int {
    c_int::try_from(count).unwrap_or(-1)
}

/// # Safety
/// As MPI says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn MPI_Finalize() -> c_int {
    finish();
    // SAFETY: the program's promise.
    unsafe { mpi::PMPI_Finalize() }
}
