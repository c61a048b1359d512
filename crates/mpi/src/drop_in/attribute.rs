//! The state of a communicator, kept as its attribute, or by its module of Open MPI.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::symbols as mpi;

use super::communicator::{Communicator, Shared};
use super::{group, process};
use crate::failed::{Failed, check, locked};

static KEY: OnceLock<Result<c_int, Failed>> = OnceLock::new();
static FINISHED: AtomicBool = AtomicBool::new(false);
static LIVE: Mutex<Vec<On>> = Mutex::new(Vec::new());

thread_local! {
    /// The communicators that the thread frees: attributes' callbacks may call on them.
    static FREED: RefCell<Vec<mpi::MPI_Comm>> = const { RefCell::new(Vec::new()) };
}

/// The state of a communicator, which its attribute or its module keeps. It is null before the first call, and where
/// the library performs all calls.
pub(crate) type State = *const Mutex<Communicator>;

/// A communicator of the program, freed at the latest when MPI is finalized.
#[derive(Clone, Copy)]
pub(crate) struct On {
    pub(crate) comm: mpi::MPI_Comm,
    /// The state in its module of Open MPI, which makes the call and reports its error; null for an attribute.
    pub(crate) module: *mut State,
}

// SAFETY: a handle that any thread may use.
unsafe impl Send for On {}

/// The state of a communicator, made by all its ranks in their first call; `None` if the library
/// performs all its calls.
pub(crate) fn find(on: On) -> Result<Option<Shared>, Failed> {
    // SAFETY: the module of a communicator in use, on which no other thread calls.
    let kept = match unsafe { on.module.as_mut() } {
        Some(kept) => {
            if kept.is_null() && !FINISHED.load(Ordering::Relaxed) {
                *kept = new_state(on)?;
            }
            *kept
        }
        None => attribute(on)?,
    };
    if kept.is_null() {
        return Ok(None);
    }
    // SAFETY: from `new_state`, and kept until the communicator, now in use, is freed.
    unsafe {
        Arc::increment_strong_count(kept);
        Ok(Some(Arc::from_raw(kept)))
    }
}

/// The attribute of a communicator, null if the library performs all its calls.
fn attribute(on: On) -> Result<State, Failed> {
    let comm = on.comm;
    // SAFETY: a constant.
    let is_null = comm == unsafe { mpi::RSMPI_COMM_NULL };
    let is_freed = || FREED.with_borrow(|freed| freed.contains(&comm));
    let (mut kept, mut there): (State, c_int) = (std::ptr::null(), 0);
    if is_null || FINISHED.load(Ordering::Relaxed) || is_freed() {
        return Ok(kept);
    }
    let key = match KEY.get() {
        Some(key) => (*key)?,
        None if !is_initialized() => return Ok(kept),
        None => (*KEY.get_or_init(new_key))?,
    };
    // SAFETY: a handle that the program vouches for, our key, and places for the answers.
    check(unsafe { mpi::PMPI_Comm_get_attr(comm, key, (&raw mut kept).cast(), &raw mut there) })?;
    if there == 0 {
        kept = new_state(on)?;
        // SAFETY: our key; `forget` takes the pointer back.
        check(unsafe { mpi::PMPI_Comm_set_attr(comm, key, kept.cast_mut().cast()) })?;
    }
    Ok(kept)
}

/// The state of a communicator that has none.
fn new_state(on: On) -> Result<State, Failed> {
    let kept = Communicator::of(on.comm)?.map_or(std::ptr::null(), Arc::into_raw);
    locked(&LIVE).push(on);
    Ok(kept)
}

/// Forgets a module's state, when its communicator is freed or MPI ends.
pub(crate) fn forget_module(module: &mut State) {
    let kept = std::mem::replace(module, std::ptr::null());
    let module: *mut State = module;
    forget_state(|live| live.module == module, kept);
}

fn forget_state(is_it: impl Fn(&On) -> bool, kept: State) {
    locked(&LIVE).retain(|live| !is_it(live));
    if !kept.is_null() {
        // SAFETY: from `new_state`, and given back once.
        group::keep(unsafe { Arc::from_raw(kept) });
    }
}

pub(crate) fn is_initialized() -> bool {
    let (mut begun, mut ended) = (0, 0);
    // SAFETY: allowed at any time.
    unsafe {
        mpi::PMPI_Initialized(&raw mut begun);
        mpi::PMPI_Finalized(&raw mut ended);
    }
    begun != 0 && ended == 0
}

fn new_key() -> Result<c_int, Failed> {
    let mut key = 0;
    // SAFETY: functions of the types that MPI asks for.
    check(unsafe {
        mpi::PMPI_Comm_create_keyval(
            Some(leave_behind),
            Some(forget),
            &raw mut key,
            std::ptr::null_mut(),
        )
    })?;
    Ok(key)
}

/// A duplicate starts without state.
unsafe extern "C" fn leave_behind(
    _comm: mpi::MPI_Comm,
    _key: c_int,
    _extra: *mut c_void,
    _kept: *mut c_void,
    _copy: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: MPI gives a place for the answer.
    unsafe { flag.write(0) };
    mpi::MPI_SUCCESS as c_int
}

/// Called when a communicator is freed.
unsafe extern "C" fn forget(
    comm: mpi::MPI_Comm,
    _key: c_int,
    kept: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    forget_state(|live| live.comm == comm, kept.cast());
    mpi::MPI_SUCCESS as c_int
}

/// Frees a communicator. Meanwhile the library performs all calls on it, on all ranks: it may have lost
/// its state, and a state that is made now would not be freed.
pub(crate) fn free(comm: *mut mpi::MPI_Comm, free: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: the program's communicator, if any.
    let Some(&comm) = (unsafe { comm.as_ref() }) else { return free() };
    FREED.with_borrow_mut(|freed| freed.push(comm));
    let code = free();
    FREED.with_borrow_mut(Vec::pop);
    code
}

/// Ends the work on all communicators, before MPI ends with `end`.
pub(crate) fn finish(end: impl FnOnce() -> c_int) -> c_int {
    forget_all();
    end()
}

fn forget_all() {
    FINISHED.store(true, Ordering::Relaxed);
    process::finish();
    let live = std::mem::take(&mut *locked(&LIVE));
    let key = KEY.get().and_then(|key| key.ok());
    // SAFETY: communicators that the program has not freed; a freed one is forgotten.
    unsafe {
        for On { comm, module } in live {
            match (module.as_mut(), key) {
                (Some(kept), _) => forget_module(kept),
                (None, Some(key)) => drop(mpi::PMPI_Comm_delete_attr(comm, key)),
                (None, None) => {}
            }
        }
        if let Some(mut key) = key {
            mpi::PMPI_Comm_free_keyval(&raw mut key);
        }
    }
    group::finish();
}
