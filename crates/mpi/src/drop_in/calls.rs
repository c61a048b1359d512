//! The intercepted calls.

use std::ffi::{c_int, c_void};
use std::time::Instant;

use crate::symbols as mpi;
use topocoll::Collective;

use super::attribute::{On, State, find, finish, free};
use super::blocks::Blocks;
use super::communicator::{Communicator, Done, FORWARDED};
use super::component::{enter, inside, leave};
use super::splits::made;
use super::vector::Vector;
use crate::failed::{Failed, check, locked};

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

    /// The count for a message to or from `MPI_PROC_NULL`, by which the library checks the arguments and
    /// does nothing.
    fn checked(&self) -> c_int {
        self.count.clamp(-1, 1) as c_int
    }

    /// # Errors
    /// The library refuses to send from it.
    fn sends(&self, kept: &Communicator) -> Result<(), Failed> {
        if self.is_in_place() {
            return Ok(());
        }
        let Self { data, datatype, .. } = *self;
        // SAFETY: the arguments of a call as the program gives them.
        check(unsafe {
            mpi::PMPI_Send(data, self.checked(), datatype, mpi::RSMPI_PROC_NULL, 0, kept.comm())
        })
    }

    /// # Errors
    /// The library refuses to receive in it.
    fn receives(&self, kept: &Communicator) -> Result<(), Failed> {
        if self.is_in_place() {
            return Err(IN_PLACE_RECEIVED);
        }
        let (data, count, datatype) = (self.data.cast_mut(), self.checked(), self.datatype);
        // SAFETY: the arguments of a call as the program gives them; a status is plain numbers.
        check(unsafe {
            let (no_rank, mut status) = (mpi::RSMPI_PROC_NULL, std::mem::zeroed());
            mpi::PMPI_Recv(data, count, datatype, no_rank, 0, kept.comm(), &raw mut status)
        })
    }

    /// # Errors
    /// The library refuses a receive buffer that overlaps this one, `offset` bytes further.
    fn differs(&self, receive: Self, offset: i64) -> Result<(), Failed> {
        let at = receive.data.wrapping_byte_offset(offset as isize);
        let same = (self.data, self.count, self.datatype) == (at, receive.count, receive.datatype);
        if !cfg!(open_mpi) && same && self.count != 0 { Err(ALIASED) } else { Ok(()) }
    }
}

/// Exchanges blocks of one size unless the call is forwarded.
///
/// # Safety
/// The buffers are as the call promises.
unsafe fn equal(
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
        Ok(Done::Library(timed)) => {
            let begin = timed.map(|call| (call, Instant::now()));
            let code = library();
            if let Some((call, begin)) = begin
                && let Ok(Some(kept)) = find(on)
            {
                locked(&kept).performed(call, begin);
            }
            code
        }
        Err(Failed(code)) => {
            if on.module.is_null() {
                // SAFETY: a communicator; the library reports calls on anything else.
                unsafe { mpi::PMPI_Comm_call_errhandler(on.comm, code) };
            }
            code
        }
    }
}

/// The buffer arguments of a call on blocks of several sizes.
struct NamedVector<'a> {
    data: *const c_void,
    datatype: mpi::MPI_Datatype,
    /// By rank, the count and the displacement; `None` if an array is missing.
    block: Option<&'a dyn Fn(u32) -> (i64, isize)>,
}

/// By rank, the count and the displacement; `None` if an array is missing.
///
/// # Safety
/// Arrays that are not null have a value for each rank that is asked for.
unsafe fn arrays<C: Copy + Into<i64>, D: Copy + Into<i64>>(
    counts: *const C,
    displacements: *const D,
) -> Option<impl Fn(u32) -> (i64, isize)> {
    let there = !counts.is_null() && !displacements.is_null();
    there.then_some(move |rank| {
        // SAFETY: the caller's promise.
        let (count, first) =
            unsafe { (*counts.add(rank as usize), *displacements.add(rank as usize)) };
        (count.into(), first.into() as isize)
    })
}

impl<'a> NamedVector<'a> {
    fn new<B: Fn(u32) -> (i64, isize)>(
        data: *const c_void,
        datatype: mpi::MPI_Datatype,
        block: &'a Option<B>,
    ) -> Self {
        Self { data, datatype, block: block.as_ref().map(|block| block as _) }
    }

    fn vector(&self, ranks: u32) -> Option<Vector> {
        let elements = Blocks::new(self.data.cast_mut(), 1, self.datatype)?;
        Vector::new(elements, (0..ranks).map(self.block?))
    }

    /// One block that the library accepts only if it accepts all blocks: of the largest count, or
    /// of a negative count.
    ///
    /// # Errors
    /// An array is missing.
    fn named(&self, ranks: u32) -> Result<Named, Failed> {
        let counts = (0..ranks).map(self.block.ok_or(NO_ARRAY)?).map(|(count, _)| count);
        let count = counts.reduce(|a, b| if a.min(b) < 0 { -1 } else { a.max(b) }).unwrap_or(0);
        Ok(Named { data: self.data, count, datatype: self.datatype })
    }
}

/// As [`equal`], for an all-to-all of blocks of several sizes.
///
/// # Safety
/// The same.
unsafe fn vector(send: &NamedVector, receive: &NamedVector, on: On) -> Result<Done, Failed> {
    let Some(kept) = find(on)? else { return Ok(FORWARDED) };
    let mut kept = locked(&kept);
    if kept.forwards_vector() {
        return Ok(FORWARDED);
    }
    let (ranks, in_place) = (kept.ranks(), send.data == in_place());
    let from = if in_place { Some(None) } else { send.vector(ranks).map(Some) };
    let to = receive.vector(ranks);
    let taken = |kept: &Communicator| {
        if !in_place {
            send.named(ranks)?.sends(kept)?;
        }
        receive.named(ranks)?.receives(kept)
    };
    // SAFETY: the caller's promise.
    unsafe { kept.exchange_vector(Collective::AllToAll, (from, to), taken) }
}

/// As [`equal`], for an all-gather of blocks of several sizes.
///
/// # Safety
/// The same.
unsafe fn gathered(send: Named, receive: &NamedVector, on: On) -> Result<Done, Failed> {
    let Some(kept) = find(on)? else { return Ok(FORWARDED) };
    let mut kept = locked(&kept);
    let (ranks, rank) = (kept.ranks(), kept.rank());
    let to = receive.vector(ranks);
    let from = if send.is_in_place() { Some(None) } else { send.vector().map(Some) };
    let taken = |kept: &Communicator| {
        send.sends(kept)?;
        let mut all = receive.named(ranks)?;
        let (count, first) = receive.block.ok_or(NO_ARRAY)?(rank);
        // Open MPI accepts a negative count of another rank.
        if cfg!(open_mpi) && count >= 0 {
            all.count = all.count.abs();
        }
        all.receives(kept)?;
        let bytes = Blocks::new(receive.data.cast_mut(), 1, receive.datatype);
        let offset = bytes.map_or(0, |one| (first as i64).wrapping_mul(one.bytes as i64));
        send.differs(Named { count, ..all }, offset)
    };
    // SAFETY: the caller's promise.
    unsafe { kept.exchange_vector(Collective::AllGather, (from, to), taken) }
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
            ended(equal(Collective::$operation, send, receive, comm), comm, library)
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
            let (sent, received) = (arrays(sendcounts, sdispls), arrays(recvcounts, rdispls));
            let send = NamedVector::new(sendbuf, sendtype, &sent);
            let receive = NamedVector::new(recvbuf, recvtype, &received);
            ended(vector(&send, &receive, comm), comm, library)
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
            let received = arrays(recvcounts, displs);
            let receive = NamedVector::new(recvbuf, recvtype, &received);
            ended(gathered(send, &receive, comm), comm, library)
        });
    };
}

gather_vector!(MPI_Allgatherv as PMPI_Allgatherv or topocoll_allgatherv: c_int, c_int);
#[cfg(large_counts)]
gather_vector!(MPI_Allgatherv_c as PMPI_Allgatherv_c: mpi::MPI_Count, mpi::MPI_Aint);

/// Exports a call that goes on to the next library that has it: a tool that was preloaded after the drop-in
/// sees it too.
macro_rules! pass_on {
    ($call:ident as $own:ident($($name:ident: $type:ty),*), $within:expr) => {
        /// # Safety
        /// As MPI says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $call($($name: $type),*) -> c_int {
            mpi::load();
            // SAFETY: the function of this name, by the program's promise.
            let call = || unsafe {
                let name = concat!(stringify!($call), "\0").as_ptr();
                let next = libc::dlsym(libc::RTLD_NEXT, name.cast());
                let next = std::mem::transmute::<
                    *mut c_void,
                    Option<unsafe extern "C" fn($($type),*) -> c_int>,
                >(next);
                next.unwrap_or(mpi::$own)($($name),*)
            };
            $within($($name,)* call)
        }
    };
}

pass_on!(MPI_Comm_disconnect as PMPI_Comm_disconnect(comm: *mut mpi::MPI_Comm), free);
pass_on!(MPI_Comm_free as PMPI_Comm_free(comm: *mut mpi::MPI_Comm), free);
pass_on!(MPI_Comm_split as PMPI_Comm_split(
    comm: mpi::MPI_Comm, color: c_int, key: c_int, new: *mut mpi::MPI_Comm
), |comm, _, _, new, call| made(comm, new, call));
pass_on!(MPI_Cart_sub as PMPI_Cart_sub(
    comm: mpi::MPI_Comm, remains: *const c_int, new: *mut mpi::MPI_Comm
), |comm, _, new, call| made(comm, new, call));
// A tool prints its results.
pass_on!(MPI_Finalize as PMPI_Finalize(), finish);
