//! Communicators of the same processes: what they have found out and agreed on is used again.
//!
//! A program may make a communicator, exchange once and free it, again and again. Its ranks keep the
//! state of a freed communicator, with its private communicator, decisions and trials, for the next
//! communicator of the same processes in the same order and grid. In a first call on a communicator
//! all its ranks agree on what all of them have kept, by one reduction.

use std::ffi::c_int;
use std::sync::Mutex;

use crate::symbols as mpi;
use topocoll::Grid;

use super::communicator::Shared;
use crate::failed::{Failed, check, locked};
use crate::words::in_world;

/// The processes of a communicator by rank, and its grid: sides and whether they wrap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Group {
    /// By rank, its rank in `MPI_COMM_WORLD`.
    pub(crate) world: Vec<c_int>,
    grid: Option<(Vec<u32>, Vec<bool>)>,
}

impl Group {
    pub(crate) fn new(
        comm: mpi::MPI_Comm,
        ranks: u32,
        grid: Option<&Grid>,
    ) -> Result<Self, Failed> {
        let world = in_world(comm, ranks)?;
        let grid = grid.map(|grid| (grid.sides().to_vec(), grid.wrap().to_vec()));
        Ok(Self { world, grid })
    }

    /// Whether all processes belong to this world; no other process has these ranks.
    fn is_of_world(&self) -> bool {
        self.world.iter().all(|&rank| rank >= 0)
    }
}

/// The name of a state: the first rank's count of states, which is different for each state of a
/// group, and whether all ranks keep the state when its communicator is freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Name {
    pub(crate) number: i64,
    pub(crate) is_kept: bool,
}

struct Idle {
    group: Group,
    number: i64,
    is_broken: bool,
    state: Shared,
}

/// What the process has kept.
struct Kept {
    /// States of freed communicators.
    idle: Vec<Idle>,
    /// States that are kept when their communicator is freed, idle ones included.
    count: usize,
    /// The states that this process has named.
    named: i64,
}

static KEPT: Mutex<Kept> = Mutex::new(Kept { idle: Vec::new(), count: 0, named: 0 });

/// The most states that a process keeps. Each has a communicator, of which MPI libraries have some thousand.
const MOST: usize = 64;

/// Agrees with all ranks of a communicator on the state of a freed one, or on the name of a new state. Other
/// threads may do so at the same time on theirs, so no lock is held meanwhile.
pub(crate) fn agree(
    comm: mpi::MPI_Comm,
    rank: u32,
    group: &Group,
) -> Result<(Name, Option<Shared>), Failed> {
    let mut kept = locked(&KEPT);
    let is_of_group = |idle: &Idle| idle.group == *group && !idle.is_broken;
    let of_group = kept.idle.iter().enumerate().filter(|(_, idle)| is_of_group(idle));
    let idle = of_group.min_by_key(|(_, idle)| idle.number).map(|(at, _)| at);
    let idle = idle.map(|at| kept.idle.swap_remove(at));
    let has_room = group.is_of_world() && kept.count < MOST;
    kept.count += usize::from(has_room);
    kept.named += 1;
    let name = if rank == 0 { kept.named } else { i64::MAX };
    drop(kept);
    let own = idle.as_ref().map_or(0, |idle| idle.number);
    // The complement of a maximum is a minimum. Signed: MPICH 4.0.2 compares unsigned numbers as signed ones.
    let own = [own, !own, i64::from(has_room), name];
    let mut least = [0i64; 4];
    // SAFETY: all ranks call it, and there is room for the answer.
    let code = unsafe {
        let (from, to) = (own.as_ptr().cast(), least.as_mut_ptr().cast());
        mpi::PMPI_Allreduce(from, to, 4, mpi::RSMPI_INT64_T, mpi::RSMPI_MIN, comm)
    };
    let [least, other, all_have_room, number] = least;
    let is_used = code == 0 && least != 0 && least == !other;
    let is_kept = code == 0 && !is_used && all_have_room != 0;
    let mut kept = locked(&KEPT);
    kept.count -= usize::from(has_room && !is_kept);
    let (used, unused) = if is_used { (idle, None) } else { (None, idle) };
    kept.idle.extend(unused);
    check(code)?;
    Ok((Name { number, is_kept }, used.map(|idle| idle.state)))
}

/// Keeps the state of a freed communicator, if all its ranks keep it. A broken one is not used again.
pub(crate) fn keep(state: Shared) {
    let (group, Name { number, is_kept }, is_broken) = locked(&state).identity();
    let mut kept = locked(&KEPT);
    let is_named = |idle: &Idle| idle.group == group && idle.number == number;
    debug_assert!(!kept.idle.iter().any(is_named), "bug: two states with one name");
    if is_kept {
        kept.idle.push(Idle { group, number, is_broken, state });
    }
}

/// Frees all states, before MPI ends, in the same order on all ranks.
pub(crate) fn finish() {
    let mut idle = std::mem::take(&mut locked(&KEPT).idle);
    idle.sort_by(|a, b| (&a.group, a.number).cmp(&(&b.group, b.number)));
    drop(idle);
}
