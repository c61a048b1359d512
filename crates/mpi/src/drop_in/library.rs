//! The library's own algorithms, as far as they are known.

use std::ffi::{CStr, c_char, c_int};

use crate::symbols as mpi;
use topocoll::Collective;
use topocoll::tune::{LIBRARIES, Library};

use crate::failed::{Failed, check};

/// A text of the library, of at most `most` bytes, which `ask` writes with its length.
///
/// # Errors
/// MPI's.
pub(crate) fn answer(
    most: u32,
    ask: impl FnOnce(*mut c_char, *mut c_int) -> c_int,
) -> Result<String, Failed> {
    let mut text = vec![0u8; most as usize + 1];
    let mut length = 0;
    check(ask(text.as_mut_ptr().cast(), &raw mut length))?;
    let text = CStr::from_bytes_until_nul(&text).unwrap_or_default();
    Ok(text.to_string_lossy().into_owned())
}

/// The first line of the library's version.
pub(crate) fn version() -> String {
    // SAFETY: room for the longest answer.
    let ask = |text, length| unsafe { mpi::PMPI_Get_library_version(text, length) };
    let text = answer(mpi::MPI_MAX_LIBRARY_VERSION_STRING, ask).unwrap_or_default();
    text.trim().lines().next().unwrap_or_default().to_owned()
}

/// The name of this process's node.
pub(crate) fn processor() -> String {
    // SAFETY: room for the longest answer.
    let ask = |text, length| unsafe { mpi::PMPI_Get_processor_name(text, length) };
    answer(mpi::MPI_MAX_PROCESSOR_NAME, ask).unwrap_or_default()
}

/// The loaded library's algorithms and rules, if they are known.
pub(crate) fn loaded() -> Option<&'static Library> {
    let name = match version() {
        // Version 4.1, and versions with the same rules.
        text if text.starts_with("Open MPI v4") => "openmpi",
        text if text.starts_with("MPICH") => "mpich",
        _ => return None,
    };
    LIBRARIES.iter().find(|library| library.name == name)
}

/// Names of the algorithms that a library may use for blocks of `bytes`, with radix 2 if they have
/// one. If several are possible, predictions use the best.
pub(crate) fn uses(
    library: Option<&Library>,
    operation: Collective,
    ranks: u32,
    bytes: u64,
) -> &'static [&'static str] {
    match (operation, library) {
        (Collective::AllToAll, Some(library)) => {
            match library.default(operation, ranks, bytes).name {
                "bruck" | "brucks" => &["bruck"],
                _ => &["direct"],
            }
        }
        (Collective::AllToAll, None) => &["direct", "bruck"],
        (Collective::AllGather, _) => &["recursive-doubling", "concat", "ring"],
    }
}
