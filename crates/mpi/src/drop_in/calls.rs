//! The intercepted calls.

use std::ffi::{c_int, c_void};
use std::time::Instant;

use crate::symbols as mpi;
use topocoll::Collective;

use super::attribute::{On, State, find, finish, free};
use super::blocks::{Blocks, Use, taken};
use super::communicator::{Communicator, Done, FORWARDED, Repeat};
use super::component::{enter, inside, leave};
use super::last::{Call, Kind};
use super::vector::Vector;
use crate::failed::{Failed, locked};

/// `MPI_IN_PLACE`, a cast that the bindings do not have.
pub(crate) fn in_place() -> *const c_void {
    std::ptr::without_provenance(if cfg!(open_mpi) { 1 } else { usize::MAX })
}

/// The error of `MPI_IN_PLACE` as the buffer to receive in, as the library returns it.
const IN_PLACE_RECEIVED: Failed =
    Failed(if cfg!(open_mpi) { mpi::MPI_ERR_ARG } else { mpi::MPI_ERR_BUFFER } as c_int);

/// The error of arrays of counts or displacements that are missing.
const NO_ARRAY: Failed = Failed(mpi::MPI_ERR_ARG as c_int);

/// MPICH's error if the send buffer is the receive buffer.
const ALIASED: Failed = Failed(mpi::MPI_ERR_BUFFER as c_int);

/// The buffer arguments of a call.
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

    fn is_in_place(&self) -> bool {
        self.data == in_place()
    }

    fn blocks(&self) -> Option<Blocks> {
        Blocks::new(self.data.cast_mut(), self.count, self.datatype)
    }

    /// The block, as a vector of one block.
    fn vector(&self) -> Option<Vector> {
        let elements = Blocks::new(self.data.cast_mut(), 1, self.datatype)?;
        Vector::new(elements, std::iter::once((self.count, 0)))
    }

    /// # Errors
    /// The library refuses to send from it.
    fn sends(&self, kept: &Communicator) -> Result<(), Failed> {
        match self.is_in_place() {
            true => Ok(()),
            false => taken(self.data.cast_mut(), self.count, self.datatype, Use::Send, kept.comm()),
        }
    }

    /// # Errors
    /// The library refuses to receive in it.
    fn receives(&self, kept: &Communicator) -> Result<(), Failed> {
        if self.is_in_place() {
            return Err(IN_PLACE_RECEIVED);
        }
        taken(self.data.cast_mut(), self.count, self.datatype, Use::Receive, kept.comm())
    }

    /// # Errors
    /// The library refuses a receive buffer that overlaps this one, `offset` bytes further.
    fn differs(&self, receive: Self, offset: i64) -> Result<(), Failed> {
        let at = receive.data.wrapping_byte_offset(offset as isize);
        let same = (self.data, self.count, self.datatype) == (at, receive.count, receive.datatype);
        if !cfg!(open_mpi) && same && self.count != 0 { Err(ALIASED) } else { Ok(()) }
    }
}

/// Exchanges, or makes the library's call, and reports errors to the communicator's handler.
///
/// # Safety
/// The buffers are as the call promises.
#[inline]
unsafe fn equal(
    operation: Collective,
    send: Named,
    receive: Named,
    on: On,
    library: impl FnOnce() -> c_int,
) -> c_int {
    let (sent, received) = ((send.count, send.datatype), (receive.count, receive.datatype));
    let call = Call::equal(on.comm, send.is_in_place(), sent, received);
    let kind = match operation {
        Collective::AllToAll => Kind::AllToAll,
        Collective::AllGather => Kind::AllGather,
    };
    if call.is_last(kind) {
        return library();
    }
    // SAFETY: the caller's promise.
    let outcome = unsafe { exchanged(operation, send, receive, on) };
    if let Ok(Done::Library(repeat)) = outcome {
        call.remember(kind, repeat);
    }
    ended(outcome, on, library)
}

/// Exchanges unless the call is forwarded.
///
/// # Safety
/// As [`equal`].
unsafe fn exchanged(
    operation: Collective,
    send: Named,
    receive: Named,
    on: On,
) -> Result<Done, Failed> {
    let Some(kept) = find(on)? else { return Ok(FORWARDED) };
    let from = if send.is_in_place() { Some(None) } else { send.blocks().map(Some) };
    let to = receive.blocks();
    let taken = |kept: &Communicator| {
        send.sends(kept)?;
        receive.receives(kept)?;
        let bytes = to.map_or(0, |to| to.bytes);
        let own = if operation == Collective::AllGather { kept.rank() } else { 0 };
        send.differs(receive, bytes.wrapping_mul(own.into()) as i64)
    };
    let mut kept = locked(&kept);
    // SAFETY: the caller's promise.
    unsafe { kept.exchange(operation, (from, to), taken) }
}

/// Ends a call: makes the library's call, or reports an error to the communicator's handler.
fn ended(outcome: Result<Done, Failed>, on: On, library: impl FnOnce() -> c_int) -> c_int {
    match outcome {
        Ok(Done::Ours) => mpi::MPI_SUCCESS as c_int,
        Ok(Done::Library(Repeat::Timed(timed))) => {
            let begin = Instant::now();
            let code = library();
            if let Ok(Some(kept)) = find(on) {
                locked(&kept).performed(timed, Some(begin));
            }
            code
        }
        Ok(Done::Library(_)) => library(),
        Err(Failed(code)) => {
            if on.module.is_null() {
                // SAFETY: a communicator; the library reports calls on anything else.
                unsafe { mpi::PMPI_Comm_call_errhandler(on.comm, code) };
            }
            code
        }
    }
}

/// The buffer arguments of a call on blocks of several sizes: counts and displacements by rank.
struct NamedVector<C, D> {
    data: *const c_void,
    counts: *const C,
    displacements: *const D,
    datatype: mpi::MPI_Datatype,
}

impl<C: Copy, D: Copy> NamedVector<C, D>
where
    i64: From<C> + From<D>,
{
    fn new(
        data: *const c_void,
        counts: *const C,
        displacements: *const D,
        datatype: mpi::MPI_Datatype,
    ) -> Self {
        Self { data, counts, displacements, datatype }
    }

    /// The count and the displacement of each rank; `None` without arrays.
    ///
    /// # Safety
    /// Arrays that are not null have a value for each of `ranks`.
    unsafe fn blocks(&self, ranks: u32) -> Option<impl Iterator<Item = (i64, isize)>> {
        let (counts, displacements) = (self.counts, self.displacements);
        let there = !counts.is_null() && !displacements.is_null();
        there.then_some((0..ranks as usize).map(move |rank| {
            // SAFETY: the caller's promise.
            let (count, first) = unsafe { (*counts.add(rank), *displacements.add(rank)) };
            (i64::from(count), i64::from(first) as isize)
        }))
    }

    /// # Safety
    /// As [`NamedVector::blocks`].
    unsafe fn vector(&self, ranks: u32) -> Option<Vector> {
        let elements = Blocks::new(self.data.cast_mut(), 1, self.datatype)?;
        // SAFETY: the caller's promise.
        Vector::new(elements, unsafe { self.blocks(ranks)? })
    }

    /// One block that the library accepts only if it accepts all blocks: of the largest count, or
    /// of a negative count.
    ///
    /// # Errors
    /// An array is missing.
    ///
    /// # Safety
    /// As [`NamedVector::blocks`].
    unsafe fn named(&self, ranks: u32) -> Result<Named, Failed> {
        // SAFETY: the caller's promise.
        let counts = unsafe { self.blocks(ranks) }.ok_or(NO_ARRAY)?.map(|(count, _)| count);
        let count = counts.reduce(|a, b| if a.min(b) < 0 { -1 } else { a.max(b) }).unwrap_or(0);
        Ok(Named { data: self.data, count, datatype: self.datatype })
    }
}

/// As [`equal`], for an all-to-all of blocks of several sizes.
///
/// # Safety
/// The same.
unsafe fn vector<C: Copy, D: Copy>(
    send: &NamedVector<C, D>,
    receive: &NamedVector<C, D>,
    on: On,
    library: impl FnOnce() -> c_int,
) -> c_int
where
    i64: From<C> + From<D>,
{
    let call = Call::on(on.comm);
    if call.is_last(Kind::Vector) {
        return library();
    }
    // SAFETY: the caller's promise.
    let outcome = unsafe { exchanged_vector(send, receive, on) };
    if let Ok(Done::Library(repeat)) = outcome {
        call.remember(Kind::Vector, repeat);
    }
    ended(outcome, on, library)
}

/// As [`exchanged`], for an all-to-all of blocks of several sizes.
///
/// # Safety
/// The same.
unsafe fn exchanged_vector<C: Copy, D: Copy>(
    send: &NamedVector<C, D>,
    receive: &NamedVector<C, D>,
    on: On,
) -> Result<Done, Failed>
where
    i64: From<C> + From<D>,
{
    let Some(kept) = find(on)? else { return Ok(FORWARDED) };
    let mut kept = locked(&kept);
    if let Some(repeat) = kept.forwards_vector() {
        return Ok(Done::Library(repeat));
    }
    let (ranks, in_place) = (kept.ranks(), send.data == in_place());
    // SAFETY: the caller's promise.
    unsafe {
        let from = if in_place { Some(None) } else { send.vector(ranks).map(Some) };
        let to = receive.vector(ranks);
        let taken = |kept: &Communicator| {
            if !in_place {
                send.named(ranks)?.sends(kept)?;
            }
            receive.named(ranks)?.receives(kept)
        };
        kept.exchange_vector(Collective::AllToAll, (from, to), taken)
    }
}

/// As [`exchanged`], for an all-gather of blocks of several sizes.
///
/// # Safety
/// The same.
unsafe fn gathered_vector<C: Copy, D: Copy>(
    send: Named,
    receive: &NamedVector<C, D>,
    on: On,
) -> Result<Done, Failed>
where
    i64: From<C> + From<D>,
{
    let Some(kept) = find(on)? else { return Ok(FORWARDED) };
    let mut kept = locked(&kept);
    let (ranks, rank) = (kept.ranks(), kept.rank() as usize);
    // SAFETY: the caller's promise.
    unsafe {
        let to = receive.vector(ranks);
        let from = if send.is_in_place() { Some(None) } else { send.vector().map(Some) };
        let taken = |kept: &Communicator| {
            send.sends(kept)?;
            let mut all = receive.named(ranks)?;
            let own = receive.blocks(ranks).and_then(|mut blocks| blocks.nth(rank));
            let (count, first) = own.ok_or(NO_ARRAY)?;
            // Open MPI accepts a negative count of another rank.
            if cfg!(open_mpi) && count >= 0 {
                all.count = all.count.abs();
            }
            all.receives(kept)?;
            let bytes = Blocks::new(receive.data.cast_mut(), 1, receive.datatype);
            let offset = bytes.map_or(0, |one| (first as i64).wrapping_mul(one.bytes as i64));
            send.differs(Named { count, ..all }, offset)
        };
        kept.exchange_vector(Collective::AllGather, (from, to), taken)
    }
}

/// Exports a call, which `$library` forwards; with the name of its communicator also the call from inside Open MPI.
macro_rules! export {
    ($call:ident as $own:ident $arguments:tt $(or $inside:ident)?, $comm:ident, $library:ident => $body:expr) => {
        export!($call as $own $arguments, $library => {
            let $comm = On { comm: $comm, module: std::ptr::null_mut() };
            $body
        });
        $(inside!($inside $arguments, $comm, $library => $body);)?
    };
    ($call:ident as $own:ident($($name:ident: $type:ty),*), $library:ident => $call_of_ours:expr) => {
        /// # Safety
        /// As MPI says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $call($($name: $type),*) -> c_int {
            mpi::load();
            // SAFETY: the program's promise.
            unsafe {
                let $library = || mpi::$own($($name),*);
                $call_of_ours
            }
        }
    };
}
pub(super) use export;

/// Exports a call of equal blocks, whose counts are of a type.
macro_rules! exchange {
    ($call:ident as $own:ident $(or $inside:ident)?: $operation:ident, $count:ty) => {
        export!($call as $own(
            sendbuf: *const c_void, sendcount: $count, sendtype: mpi::MPI_Datatype,
            recvbuf: *mut c_void, recvcount: $count, recvtype: mpi::MPI_Datatype,
            comm: mpi::MPI_Comm
        ) $(or $inside)?, comm, library => {
            let send = Named::new(sendbuf, sendcount, sendtype);
            let receive = Named::new(recvbuf, recvcount, recvtype);
            equal(Collective::$operation, send, receive, comm, library)
        });
    };
}

exchange!(MPI_Alltoall as PMPI_Alltoall or topocoll_alltoall: AllToAll, c_int);
exchange!(MPI_Allgather as PMPI_Allgather or topocoll_allgather: AllGather, c_int);
#[cfg(large_counts)]
exchange!(MPI_Alltoall_c as PMPI_Alltoall_c: AllToAll, mpi::MPI_Count);
#[cfg(large_counts)]
exchange!(MPI_Allgather_c as PMPI_Allgather_c: AllGather, mpi::MPI_Count);

/// Exports a call of blocks of several sizes, whose counts and displacements are of these types.
macro_rules! exchange_vector {
    ($call:ident as $own:ident $(or $inside:ident)?: $count:ty, $displacement:ty) => {
        export!($call as $own(
            sendbuf: *const c_void, sendcounts: *const $count, sdispls: *const $displacement,
            sendtype: mpi::MPI_Datatype,
            recvbuf: *mut c_void, recvcounts: *const $count, rdispls: *const $displacement,
            recvtype: mpi::MPI_Datatype, comm: mpi::MPI_Comm
        ) $(or $inside)?, comm, library => {
            let send = NamedVector::new(sendbuf, sendcounts, sdispls, sendtype);
            let receive = NamedVector::new(recvbuf, recvcounts, rdispls, recvtype);
            vector(&send, &receive, comm, library)
        });
    };
}

exchange_vector!(MPI_Alltoallv as PMPI_Alltoallv or topocoll_alltoallv: c_int, c_int);
#[cfg(large_counts)]
exchange_vector!(MPI_Alltoallv_c as PMPI_Alltoallv_c: mpi::MPI_Count, mpi::MPI_Aint);

/// Exports an all-gather of blocks of several sizes, whose counts and displacements are of these
/// types.
macro_rules! gather_vector {
    ($call:ident as $own:ident $(or $inside:ident)?: $count:ty, $displacement:ty) => {
        export!($call as $own(
            sendbuf: *const c_void, sendcount: $count, sendtype: mpi::MPI_Datatype,
            recvbuf: *mut c_void, recvcounts: *const $count, displs: *const $displacement,
            recvtype: mpi::MPI_Datatype, comm: mpi::MPI_Comm
        ) $(or $inside)?, comm, library => {
            let send = Named::new(sendbuf, sendcount, sendtype);
            let receive = NamedVector::new(recvbuf, recvcounts, displs, recvtype);
            ended(gathered_vector(send, &receive, comm), comm, library)
        });
    };
}

gather_vector!(MPI_Allgatherv as PMPI_Allgatherv or topocoll_allgatherv: c_int, c_int);
#[cfg(large_counts)]
gather_vector!(MPI_Allgatherv_c as PMPI_Allgatherv_c: mpi::MPI_Count, mpi::MPI_Aint);

/// Exports a call that goes on to the next library that has it: a tool that was preloaded after the drop-in
/// sees it too.
macro_rules! pass_on {
    ($call:ident as $own:ident($($name:ident: $type:ty)?), $within:expr) => {
        /// # Safety
        /// As MPI says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $call($($name: $type)?) -> c_int {
            mpi::load();
            // SAFETY: the function of this name, by the program's promise.
            let call = || unsafe {
                let name = concat!(stringify!($call), "\0").as_ptr();
                let next = libc::dlsym(libc::RTLD_NEXT, name.cast());
                let next = std::mem::transmute::<
                    *mut c_void,
                    Option<unsafe extern "C" fn($($type)?) -> c_int>,
                >(next);
                next.unwrap_or(mpi::$own)($($name)?)
            };
            $within($($name,)? call)
        }
    };
}

pass_on!(MPI_Comm_disconnect as PMPI_Comm_disconnect(comm: *mut mpi::MPI_Comm), free);
pass_on!(MPI_Comm_free as PMPI_Comm_free(comm: *mut mpi::MPI_Comm), free);
// A tool prints its results.
pass_on!(MPI_Finalize as PMPI_Finalize(), finish);
