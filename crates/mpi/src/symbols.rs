//! The MPI library's functions and constants, found in the running program by the first intercepted
//! call.
//!
//! The drop-in is loaded before programs that may not use MPI, and the MPI library takes longer to
//! load than such a program to start. So the drop-in does not depend on it. The names are those of
//! `mpi_sys`, whose functions and constants would be such a dependence.

#![allow(non_upper_case_globals, reason = "the names of mpi.h")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io::Write;
use std::sync::{Mutex, Once, OnceLock};

use crate::failed::locked;
pub(crate) use mpi_sys::{
    MPI_Aint, MPI_Comm, MPI_Count, MPI_Datatype, MPI_ERR_ARG, MPI_ERR_BUFFER, MPI_ERR_COUNT,
    MPI_ERR_IN_STATUS, MPI_ERR_INTERN, MPI_ERR_NO_MEM, MPI_ERR_PENDING, MPI_ERR_TRUNCATE,
    MPI_MAX_LIBRARY_VERSION_STRING, MPI_MAX_OBJECT_NAME, MPI_MAX_PROCESSOR_NAME, MPI_Request,
    MPI_SUCCESS, MPI_Status, MPI_Win,
};
use mpi_sys::{
    MPI_Comm_copy_attr_function as Copies, MPI_Comm_delete_attr_function as Deletes,
    MPI_Errhandler as Handler, MPI_Group as Group, MPI_Info as Info, MPI_Op as Op,
};

// Short names for the list below.
type Comm = MPI_Comm;
type From = *const c_void;
type Int = c_int;
type Ints = *const c_int;
type OfStatus = *const MPI_Status;
type Places = *const MPI_Aint;
type Text = *mut c_char;
type To = *mut c_void;
type ToComm = *mut MPI_Comm;
type ToCount = *mut MPI_Count;
type ToGroup = *mut Group;
type ToInt = *mut c_int;
type ToPlace = *mut MPI_Aint;
type ToRequest = *mut MPI_Request;
type ToStatus = *mut MPI_Status;
type ToType = *mut MPI_Datatype;
type Type = MPI_Datatype;
type ToWin = *mut MPI_Win;
type Types = *const MPI_Datatype;
type Win = MPI_Win;
#[cfg(large_counts)]
type Counts = *const MPI_Count;
#[cfg(large_counts)]
type Count = MPI_Count;

/// Finds all functions and constants, unless that has been done. Nothing else of this module may be
/// used before.
#[inline]
pub(crate) fn load() {
    static LOADED: Once = Once::new();
    // SAFETY: no thread reads the variables before this has ended.
    LOADED.call_once(|| unsafe {
        functions();
        constants();
    });
}

/// Declares functions, and one that finds them all.
macro_rules! functions {
    ($($(#[$if:meta])* $name:ident($($type:ty),*) $(-> $answer:ty)?;)*) => {
        $(
            $(#[$if])*
            pub(crate) static mut $name: functions!(@type $($type),*; $($answer)?) = {
                unsafe extern "C" fn unknown($(_: $type),*) -> functions!(@answer $($answer)?) {
                    panic!("bug: {} before it is found", stringify!($name))
                }
                unknown
            };
            // The types are those of mpi.h.
            $(#[$if])*
            const _: functions!(@type $($type),*; $($answer)?) = mpi_sys::$name;
        )*

        /// # Safety
        /// No other thread uses these variables.
        unsafe fn functions() {
            $($(#[$if])* {
                let found = found(concat!(stringify!($name), "\0"));
                type Function = functions!(@type $($type),*; $($answer)?);
                // SAFETY: the MPI library's function of this name has this type.
                unsafe { $name = std::mem::transmute::<*mut c_void, Function>(found) }
            })*
        }
    };
    (@type $($type:ty),*; $($answer:ty)?) => {
        unsafe extern "C" fn($($type),*) -> functions!(@answer $($answer)?)
    };
    (@answer $answer:ty) => { $answer };
    (@answer) => { c_int };
}

functions! {
    PMPI_Allgather(From, Int, Type, To, Int, Type, Comm);
    #[cfg(large_counts)]
    PMPI_Allgather_c(From, Count, Type, To, Count, Type, Comm);
    PMPI_Allgatherv(From, Int, Type, To, Ints, Ints, Type, Comm);
    #[cfg(large_counts)]
    PMPI_Allgatherv_c(From, Count, Type, To, Counts, Places, Type, Comm);
    PMPI_Allreduce(From, To, Int, Type, Op, Comm);
    PMPI_Alltoall(From, Int, Type, To, Int, Type, Comm);
    #[cfg(large_counts)]
    PMPI_Alltoall_c(From, Count, Type, To, Count, Type, Comm);
    PMPI_Alltoallv(From, Ints, Ints, Type, To, Ints, Ints, Type, Comm);
    #[cfg(large_counts)]
    PMPI_Alltoallv_c(From, Counts, Places, Type, To, Counts, Places, Type, Comm);
    PMPI_Alltoallw(From, Ints, Ints, Types, To, Ints, Ints, Types, Comm);
    PMPI_Bcast(To, Int, Type, Int, Comm);
    PMPI_Cancel(ToRequest);
    PMPI_Cart_get(Comm, Int, ToInt, ToInt, ToInt);
    PMPI_Cart_sub(Comm, Ints, ToComm);
    PMPI_Cartdim_get(Comm, ToInt);
    PMPI_Comm_call_errhandler(Comm, Int);
    PMPI_Comm_create_keyval(Copies, Deletes, ToInt, To);
    PMPI_Comm_delete_attr(Comm, Int);
    PMPI_Comm_disconnect(ToComm);
    PMPI_Comm_free(ToComm);
    PMPI_Comm_free_keyval(ToInt);
    PMPI_Comm_get_attr(Comm, Int, To, ToInt);
    PMPI_Comm_get_name(Comm, Text, ToInt);
    PMPI_Comm_group(Comm, ToGroup);
    PMPI_Comm_rank(Comm, ToInt);
    PMPI_Comm_set_attr(Comm, Int, To);
    PMPI_Comm_set_errhandler(Comm, Handler);
    PMPI_Comm_size(Comm, ToInt);
    PMPI_Comm_split(Comm, Int, Int, ToComm);
    PMPI_Comm_split_type(Comm, Int, Int, Info, ToComm);
    PMPI_Comm_test_inter(Comm, ToInt);
    PMPI_Error_class(Int, ToInt);
    PMPI_Finalize();
    PMPI_Finalized(ToInt);
    PMPI_Gather(From, Int, Type, To, Int, Type, Int, Comm);
    PMPI_Get_count(OfStatus, Type, ToInt);
    PMPI_Get_elements_x(OfStatus, Type, ToCount);
    PMPI_Get_library_version(Text, ToInt);
    PMPI_Get_processor_name(Text, ToInt);
    PMPI_Group_free(ToGroup);
    PMPI_Group_translate_ranks(Group, Int, Ints, Group, ToInt);
    PMPI_Iallgather(From, Int, Type, To, Int, Type, Comm, ToRequest);
    PMPI_Iallgatherv(From, Int, Type, To, Ints, Ints, Type, Comm, ToRequest);
    PMPI_Ialltoall(From, Int, Type, To, Int, Type, Comm, ToRequest);
    PMPI_Ialltoallv(From, Ints, Ints, Type, To, Ints, Ints, Type, Comm, ToRequest);
    PMPI_Initialized(ToInt);
    PMPI_Iprobe(Int, Int, Comm, ToInt, ToStatus);
    PMPI_Irecv(To, Int, Type, Int, Int, Comm, ToRequest);
    PMPI_Isend(From, Int, Type, Int, Int, Comm, ToRequest);
    PMPI_Pack(From, Int, Type, To, Int, ToInt, Comm);
    PMPI_Recv(To, Int, Type, Int, Int, Comm, ToStatus);
    PMPI_Request_free(ToRequest);
    PMPI_Send(From, Int, Type, Int, Int, Comm);
    PMPI_Testall(Int, ToRequest, ToInt, ToStatus);
    PMPI_Testsome(Int, ToRequest, ToInt, ToInt, ToStatus);
    PMPI_Topo_test(Comm, ToInt);
    PMPI_Type_commit(ToType);
    PMPI_Type_create_hindexed(Int, Ints, Places, Type, ToType);
    PMPI_Type_free(ToType);
    PMPI_Type_get_envelope(Type, ToInt, ToInt, ToInt, ToInt);
    PMPI_Type_get_extent(Type, ToPlace, ToPlace);
    PMPI_Type_size_x(Type, ToCount);
    PMPI_Unpack(From, Int, ToInt, To, Int, Type, Comm);
    PMPI_Win_allocate_shared(MPI_Aint, Int, Info, Comm, To, ToWin);
    PMPI_Win_free(ToWin);
    PMPI_Win_lock_all(Int, Win);
    PMPI_Win_set_errhandler(Win, Handler);
    PMPI_Win_shared_query(Win, Int, ToPlace, ToInt, To);
    PMPI_Win_sync(Win);
    PMPI_Win_unlock_all(Win);
    #[cfg(open_mpi)]
    PMPI_Comm_f2c(Int) -> Comm;
    #[cfg(open_mpi)]
    PMPI_Type_f2c(Int) -> Type;
}

/// Declares constants, and one function that sets them all.
macro_rules! constants {
    ($($name:ident = $of_c:ident: $type:ty;)*) => {
        $(
            // SAFETY: numbers or pointers.
            pub(crate) static mut $name: $type = unsafe { std::mem::zeroed() };
        )*

        unsafe extern "C" {
            $(fn $of_c(find: unsafe extern "C" fn(*const c_char) -> *mut c_void) -> $type;)*
        }

        /// # Safety
        /// No other thread uses these variables.
        unsafe fn constants() {
            // SAFETY: functions of `constants.c`.
            unsafe { $($name = $of_c(address);)* }
        }
    };
}

constants! {
    RSMPI_COMM_WORLD = topocoll_MPI_COMM_WORLD: Comm;
    RSMPI_COMM_NULL = topocoll_MPI_COMM_NULL: Comm;
    RSMPI_DATATYPE_NULL = topocoll_MPI_DATATYPE_NULL: Type;
    RSMPI_UINT8_T = topocoll_MPI_UINT8_T: Type;
    RSMPI_INT64_T = topocoll_MPI_INT64_T: Type;
    RSMPI_ERRORS_RETURN = topocoll_MPI_ERRORS_RETURN: Handler;
    RSMPI_INFO_NULL = topocoll_MPI_INFO_NULL: Info;
    RSMPI_MIN = topocoll_MPI_MIN: Op;
    RSMPI_REQUEST_NULL = topocoll_MPI_REQUEST_NULL: MPI_Request;
    RSMPI_ANY_SOURCE = topocoll_MPI_ANY_SOURCE: c_int;
    RSMPI_CART = topocoll_MPI_CART: c_int;
    RSMPI_COMM_TYPE_SHARED = topocoll_MPI_COMM_TYPE_SHARED: c_int;
    RSMPI_PROC_NULL = topocoll_MPI_PROC_NULL: c_int;
}

/// Functions in place of the library's, by name, at addresses.
static REPLACED: Mutex<Vec<(CString, usize)>> = Mutex::new(Vec::new());

/// Takes a function in place of the library's of this name, before any is found.
pub(crate) fn replace(name: &CStr, function: *mut c_void) {
    locked(&REPLACED).push((name.to_owned(), function as usize));
}

/// The function that was given by this name.
pub(crate) fn replacement(name: &CStr) -> Option<*mut c_void> {
    let replaced = locked(&REPLACED);
    replaced.iter().find(|(own, _)| **own == *name).map(|&(_, address)| address as *mut c_void)
}

/// The address of a symbol whose name ends with a zero byte. The program ends if its MPI library has
/// no such symbol.
fn found(name: &str) -> *mut c_void {
    let name = CStr::from_bytes_until_nul(name.as_bytes()).unwrap_or_default();
    // SAFETY: a name that ends with a zero byte.
    unsafe { address(name.as_ptr()) }
}

/// # Safety
/// A name that ends with a zero byte.
unsafe extern "C" fn address(name: *const c_char) -> *mut c_void {
    // SAFETY: the caller's promise.
    let wanted = unsafe { CStr::from_ptr(name) };
    if let Some(own) = replacement(wanted) {
        return own;
    }
    static SCOPE: OnceLock<usize> = OnceLock::new();
    let scope = *SCOPE.get_or_init(|| scope_of_mpi() as usize);
    // SAFETY: a handle that stays open, and the caller's promise.
    let found = unsafe { libc::dlsym(scope as *mut c_void, name) };
    if found.is_null() {
        refuse(&format!("has no symbol {}", wanted.to_string_lossy()));
    }
    found
}

/// Where `dlsym` looks for the program's MPI library: the global scope, or the first object with MPI's
/// functions if the program opened it for itself.
fn scope_of_mpi() -> *mut c_void {
    let has = |scope: *mut c_void, name: &CStr| {
        // SAFETY: a handle of an open object, and a name that ends with a zero byte.
        !unsafe { libc::dlsym(scope, name.as_ptr()) }.is_null()
    };
    let scopes = std::iter::once(libc::RTLD_DEFAULT).chain(objects());
    let scope = scopes.into_iter().find(|&scope| has(scope, c"PMPI_Alltoall"));
    let scope = scope.unwrap_or_else(|| refuse("is not a shared library"));
    match (has(scope, c"ompi_mpi_comm_world"), cfg!(open_mpi)) {
        (true, false) => refuse("is Open MPI, and the drop-in was built for another"),
        (false, true) => refuse("is not Open MPI, for which the drop-in was built"),
        _ => scope,
    }
}

/// All objects of the process, kept open.
fn objects() -> impl Iterator<Item = *mut c_void> {
    unsafe extern "C" fn each(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        names: *mut c_void,
    ) -> c_int {
        // SAFETY: as `dl_iterate_phdr` calls it, with the names below.
        unsafe {
            let names = &mut *names.cast::<Vec<CString>>();
            names.push(CStr::from_ptr((*info).dlpi_name).to_owned());
        }
        0
    }
    let mut names: Vec<CString> = Vec::new();
    // SAFETY: the function takes these names.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut names).cast()) };
    names.into_iter().filter_map(|name| {
        // SAFETY: a name that ends with a zero byte, of an object that is there already.
        let object = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        (!object.is_null()).then_some(object)
    })
}

/// Ends a program whose MPI library is unusable.
fn refuse(reason: &str) -> ! {
    let text = format!("topocoll: error: the program's MPI library {reason}");
    // A closed standard error is ignored.
    let _ = writeln!(std::io::stderr(), "{text}");
    std::process::exit(1)
}

/// If messages are on the program's communicators: keeps the number of one that is freed.
pub(crate) fn keep() -> Option<unsafe extern "C" fn(MPI_Comm)> {
    let keep = replacement(c"topocoll_keep")?;
    // SAFETY: the component's function of this name.
    Some(unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(MPI_Comm)>(keep) })
}
