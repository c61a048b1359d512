//! The calls that programs make.

use std::ffi::{c_int, c_void};

use mpi_sys as mpi;
use topocoll::Collective;

use super::attribute::{find, finish, locked};
use super::blocks::Blocks;
use super::last::{Call, Kind};
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
    count: i64,
    datatype: mpi::MPI_Datatype,
}

impl Named {
    fn new(data: *const c_void, count: impl Into<i64>, datatype: mpi::MPI_Datatype) -> Self {
        Self { data, count: count.into(), datatype }
    }

    fn blocks(&self) -> Option<Blocks> {
        Blocks::new(self.data.cast_mut(), self.count, self.datatype)
    }

    /// The block, as one of unequal ones.
    fn vector(&self) -> Option<Vector> {
        let elements = Blocks::new(self.data.cast_mut(), 1, self.datatype)?;
        Vector::new(elements, std::iter::once((self.count, 0)))
    }
}

/// Exchanges, and says the error by the communicator's handler; none if the call is to be forwarded.
///
/// # Safety
/// The buffers are as the call promises.
#[inline]
unsafe fn taken(
    operation: Collective,
    send: Named,
    receive: Named,
    comm: mpi::MPI_Comm,
) -> Option<c_int> {
    let (sent, received) = ((send.count, send.datatype), (receive.count, receive.datatype));
    let call = Call::equal(comm, send.data == in_place(), sent, received);
    let kind = match operation {
        Collective::AllToAll => Kind::AllToAll,
        Collective::AllGather => Kind::AllGather,
    };
    if call.is_last(kind) {
        return None;
    }
    // SAFETY: the caller's promise.
    let outcome = unsafe { exchanged(operation, send, receive, comm) };
    if outcome == Ok(false) {
        call.remember(kind);
    }
    said(outcome, comm)
}

/// Exchanges if that is for us to do.
///
/// # Safety
/// As [`taken`].
unsafe fn exchanged(
    operation: Collective,
    send: Named,
    receive: Named,
    comm: mpi::MPI_Comm,
) -> Result<bool, Failed> {
    let Some(kept) = find(comm)? else { return Ok(false) };
    let Some(to) = receive.blocks() else { return Ok(false) };
    let from = if send.data == in_place() {
        None
    } else {
        match send.blocks() {
            Some(from) if from.bytes == to.bytes => Some(from),
            _ => return Ok(false),
        }
    };
    let mut kept = locked(&kept);
    // SAFETY: the caller's promise.
    unsafe { kept.exchange(operation, from, to) }
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
            (i64::from(count), i64::from(first) as isize)
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
    let call = Call::on(comm);
    if call.is_last(Kind::Unequal) {
        return None;
    }
    // SAFETY: the caller's promise.
    said(unsafe { exchanged_unequal(send, receive, comm, call) }, comm)
}

/// As [`exchanged`], for an all-to-all of blocks of unequal sizes.
///
/// # Safety
/// The same.
unsafe fn exchanged_unequal<C: Copy, D: Copy>(
    send: &Unequal<C, D>,
    receive: &Unequal<C, D>,
    comm: mpi::MPI_Comm,
    call: Call,
) -> Result<bool, Failed>
where
    i64: From<C> + From<D>,
{
    let Some(kept) = find(comm)? else { return Ok(false) };
    let mut kept = locked(&kept);
    if !kept.takes_unequal()? {
        call.remember(Kind::Unequal);
        return Ok(false);
    }
    // SAFETY: the caller's promise.
    unsafe {
        let Some(to) = receive.vector(kept.ranks()) else { return Ok(false) };
        if send.data == in_place() {
            return kept.exchange_unequal(None, to);
        }
        let Some(from) = send.vector(kept.ranks()) else { return Ok(false) };
        kept.exchange_unequal(Some(from), to)
    }
}

/// As [`exchanged`], for an all-gather of blocks of unequal sizes.
///
/// # Safety
/// The same.
unsafe fn gathered_unequal<C: Copy, D: Copy>(
    send: Named,
    receive: &Unequal<C, D>,
    comm: mpi::MPI_Comm,
) -> Result<bool, Failed>
where
    i64: From<C> + From<D>,
{
    let Some(kept) = find(comm)? else { return Ok(false) };
    let mut kept = locked(&kept);
    // SAFETY: the caller's promise.
    unsafe {
        let Some(to) = receive.vector(kept.ranks()) else { return Ok(false) };
        if send.data == in_place() {
            return kept.gather_unequal(None, to);
        }
        let Some(from) = send.vector() else { return Ok(false) };
        kept.gather_unequal(Some(from), to)
    }
}

/// Exports a call of equal blocks, whose counts are of a type.
macro_rules! exchange {
    ($call:ident as $own:ident: $operation:ident, $count:ty) => {
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
            let send = Named::new(sendbuf, sendcount, sendtype);
            let receive = Named::new(recvbuf, recvcount, recvtype);
            // SAFETY: the program's promise.
            unsafe {
                taken(Collective::$operation, send, receive, comm).unwrap_or_else(|| {
                    mpi::$own(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
                })
            }
        }
    };
}

exchange!(MPI_Alltoall as PMPI_Alltoall: AllToAll, c_int);
exchange!(MPI_Allgather as PMPI_Allgather: AllGather, c_int);
#[cfg(large_counts)]
exchange!(MPI_Alltoall_c as PMPI_Alltoall_c: AllToAll, mpi::MPI_Count);
#[cfg(large_counts)]
exchange!(MPI_Allgather_c as PMPI_Allgather_c: AllGather, mpi::MPI_Count);

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

/// Exports an all-gather of unequal blocks, whose counts and displacements are of these types.
macro_rules! gather_unequal {
    ($call:ident as $own:ident: $count:ty, $displacement:ty) => {
        /// # Safety
        /// As MPI says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $call(
            sendbuf: *const c_void,
            sendcount: $count,
            sendtype: mpi::MPI_Datatype,
            recvbuf: *mut c_void,
            recvcounts: *const $count,
            displs: *const $displacement,
            recvtype: mpi::MPI_Datatype,
            comm: mpi::MPI_Comm,
        ) -> c_int {
            let send = Named::new(sendbuf, sendcount, sendtype);
            let (counts, displacements) = (recvcounts, displs);
            let receive =
                Unequal { data: recvbuf.cast_const(), counts, displacements, datatype: recvtype };
            // SAFETY: the program's promise.
            unsafe {
                said(gathered_unequal(send, &receive, comm), comm).unwrap_or_else(|| {
                    mpi::$own(
                        sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
                    )
                })
            }
        }
    };
}

gather_unequal!(MPI_Allgatherv as PMPI_Allgatherv: c_int, c_int);
#[cfg(large_counts)]
gather_unequal!(MPI_Allgatherv_c as PMPI_Allgatherv_c: mpi::MPI_Count, mpi::MPI_Aint);

/// # Safety
/// As MPI says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn MPI_Finalize() -> c_int {
    finish();
    // SAFETY: the program's promise.
    unsafe { mpi::PMPI_Finalize() }
}
