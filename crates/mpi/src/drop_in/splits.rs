//! The groups into which all processes were split: their exchanges share the machine's links.
//!
//! Inside Open MPI the component sees the colors that the library gathers for `MPI_Comm_split` and `MPI_Cart_sub`. The
//! preloaded drop-in gathers the first rank of each new communicator itself: 4 bytes a rank, and only where all
//! processes take part. It does so whatever the environment of a process is: ranks that differed in it would wait for
//! each other. Only prices depend on it, so an error is no error of the call.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_int;
use std::sync::{Mutex, OnceLock};

use super::process::world;
use crate::failed::{Failed, check, locked};
use crate::symbols as mpi;
use crate::words::{in_world, rank_and_ranks};

/// By group, its ranks in `MPI_COMM_WORLD`, in ascending order.
type Split = Vec<Vec<u32>>;

/// The last ones first.
static SPLITS: Mutex<VecDeque<Split>> = Mutex::new(VecDeque::new());

/// The splits that are remembered: a program has few.
const MOST: usize = 16;

/// The groups of the last split of all processes that made a communicator of these ones, if others exchange too.
pub(crate) fn of(world: &[u32]) -> Option<Split> {
    let mut own = world.to_vec();
    own.sort_unstable();
    locked(&SPLITS).iter().find(|split| split.contains(&own)).cloned()
}

/// Takes the colors of the ranks of a communicator that is split. No file is read: only the first ranks of
/// communicators do.
pub(crate) fn take(comm: mpi::MPI_Comm, colors: &[c_int]) -> Result<(), Failed> {
    let mut split: BTreeMap<c_int, Vec<u32>> = BTreeMap::new();
    for (rank, &color) in in_world(comm, colors.len() as u32)?.into_iter().zip(colors) {
        split.entry(color).or_default().push(rank as u32);
    }
    // A negative color is a rank without a group.
    if split.len() > 1 && split.keys().all(|&color| color >= 0) {
        split.values_mut().for_each(|ranks| ranks.sort_unstable());
        let split: Split = split.into_values().collect();
        let mut splits = locked(&SPLITS);
        splits.retain(|known| *known != split);
        splits.truncate(MOST - 1);
        splits.push_front(split);
    }
    Ok(())
}

/// Whether the environment gives a machine, whose prices depend on groups.
pub(crate) fn matter() -> bool {
    static MATTER: OnceLock<bool> = OnceLock::new();
    let names = ["TOPOCOLL_MACHINE", "OMPI_MCA_coll_topocoll_machine"];
    *MATTER.get_or_init(|| names.iter().any(|name| std::env::var_os(name).is_some()))
}

/// The ranks of a communicator that has all processes.
pub(crate) fn all_processes(comm: mpi::MPI_Comm) -> Option<usize> {
    // SAFETY: a communicator of the program, on which a call has succeeded.
    let (_, ranks) = unsafe { rank_and_ranks(comm) }.ok()??;
    (ranks == world().1).then_some(ranks as usize)
}

/// Splits a communicator with `call`, and finds out what it has made.
pub(crate) fn made(
    comm: mpi::MPI_Comm,
    new: *const mpi::MPI_Comm,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let code = call();
    if code == mpi::MPI_SUCCESS as c_int
        && let Some(ranks) = all_processes(comm)
    {
        // SAFETY: all ranks of the communicator make the call, which has given `new` a value.
        let _ = unsafe { gathered(comm, *new, ranks) };
    }
    code
}

/// # Safety
/// All ranks of the communicator call it.
unsafe fn gathered(comm: mpi::MPI_Comm, new: mpi::MPI_Comm, ranks: usize) -> Result<(), Failed> {
    // SAFETY: the caller's promise, and room for all.
    unsafe {
        let first = if new == mpi::RSMPI_COMM_NULL { None } else { in_world(new, 1).ok() };
        let (first, mut all) = (first.map_or(-1, |first| first[0]), vec![0 as c_int; ranks]);
        let (from, to, byte) =
            ((&raw const first).cast(), all.as_mut_ptr().cast(), mpi::RSMPI_UINT8_T);
        let bytes = size_of::<c_int>() as c_int;
        check(mpi::PMPI_Allgather(from, bytes, byte, to, bytes, byte, comm))?;
        if matter() { take(comm, &all) } else { Ok(()) }
    }
}
