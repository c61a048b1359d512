//! Calls from inside Open MPI, by its component `coll_topocoll` (`component/coll_topocoll.c`): the library
//! has checked their arguments, keeps the state of each communicator in a module, and says when it is
//! freed and when MPI ends. The component sends and receives on the program's communicators.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};

use super::attribute::{State, finish, forget_module, is_initialized};
use super::splits::{all_processes, matter, take};
use crate::symbols as mpi;

thread_local! {
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Begins a call; false if the module below performs it. The library's own calls are such: before MPI is
/// initialized, and those of which an exchange or the library's collective consists.
#[inline]
pub(super) fn enter(kept: State) -> bool {
    let enters = !IS_INSIDE.get() && (!kept.is_null() || is_initialized());
    if enters {
        IS_INSIDE.set(true);
    }
    enters
}

/// Ends a call that has begun.
#[inline]
pub(super) fn leave() {
    IS_INSIDE.set(false);
}

/// Exports a call that Open MPI makes in its module, which `$library` forwards to the module below.
macro_rules! inside {
    ($call:ident($($name:ident: $type:ty),*), $comm:ident, $library:ident => $body:expr) => {
        /// # Safety
        /// As MPI says; the module's state, and a function of the module below.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $call(
            $($name: $type,)*
            module: *mut State,
            below: unsafe extern "C" fn($($type,)* *mut c_void) -> c_int,
            of_below: *mut c_void,
        ) -> c_int {
            mpi::load();
            // SAFETY: the component's promise.
            unsafe {
                let $library = || below($($name,)* of_below);
                let $comm = On { comm: $comm, module };
                if !enter(*module) {
                    return $library();
                }
                let code = $body;
                leave();
                code
            }
        }
    };
}
pub(super) use inside;

/// Takes a function in place of the library's of this name.
///
/// # Safety
/// The name ends with a zero byte; the function has its type.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn topocoll_replace(name: *const c_char, function: *mut c_void) {
    // SAFETY: the caller's promise.
    mpi::replace(unsafe { CStr::from_ptr(name) }, function);
}

/// Takes two numbers of each rank, the first of which is its color if the library splits the communicator.
///
/// # Safety
/// A communicator, and two numbers for each of its ranks.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn topocoll_split(comm: mpi::MPI_Comm, pairs: *const [c_int; 2]) {
    mpi::load();
    if matter()
        && let Some(ranks) = all_processes(comm)
    {
        // SAFETY: the caller's promise.
        let pairs = unsafe { std::slice::from_raw_parts(pairs, ranks) };
        // Only prices depend on it.
        let _ = take(comm, &pairs.iter().map(|pair| pair[0]).collect::<Vec<_>>());
    }
}

/// Forgets the state of a communicator that is freed.
///
/// # Safety
/// The state of a module, which no thread uses.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn topocoll_forget(module: *mut State) {
    // SAFETY: the caller's promise.
    forget_module(unsafe { &mut *module });
}

/// Ends the work on all communicators, before MPI ends.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn topocoll_finish() {
    mpi::load();
    finish(|| 0);
}
