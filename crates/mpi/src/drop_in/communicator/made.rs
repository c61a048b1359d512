//! The first call on a communicator: its ranks agree on a state, or find out what it needs.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Arc, Mutex};

use topocoll::Grid;

use super::super::group::{self, Group};
use super::super::library::answer;
use super::super::memory::Memory;
use super::super::place::{Known, places};
use super::super::process::{settings, world};
use super::Communicator;
use crate::engine::Channel;
use crate::failed::{Failed, check, locked};
use crate::symbols::{self as mpi, keep};
use crate::words::{Words, rank_and_ranks};

impl Communicator {
    /// The state of a communicator, called by all its ranks; `None` if the library performs all its
    /// calls.
    pub(crate) fn of(comm: mpi::MPI_Comm) -> Result<Option<Arc<Mutex<Self>>>, Failed> {
        // SAFETY: a communicator, because its attribute was readable.
        let Some((rank, ranks @ 2..)) = (unsafe { rank_and_ranks(comm)? }) else {
            return Ok(None);
        };
        // SAFETY: the same, and room for the longest answer.
        let name = |text, length| unsafe { mpi::PMPI_Comm_get_name(comm, text, length) };
        let label = answer(mpi::MPI_MAX_OBJECT_NAME, name)?;
        let label = if label.is_empty() { "a communicator".to_owned() } else { label };
        let grid = grid(comm)?;
        let group = Group::new(comm, ranks, grid.as_ref())?;
        let (name, state) = group::agree(comm, rank, &group)?;
        if let Some(state) = state {
            let mut kept = locked(&state);
            kept.label = label;
            kept.channel.words.go_on(comm);
            drop(kept);
            return Ok(Some(state));
        }
        let mut made = Self {
            channel: Channel::new(Words::new(comm, (rank, ranks), keep().is_none())?),
            rank,
            ranks,
            label,
            group,
            name,
            places: Vec::new(),
            decided: BTreeMap::new(),
            memory: Memory::default(),
            window: None,
            stays: false,
        };
        let (nodes, world) = (made.gathered(made.node()?)?, made.gathered(world().0)?);
        if rank == 0 {
            let given = settings().machine.as_ref();
            made.places = places(&Known { nodes: &nodes, grid, world: &world, given });
        }
        Ok(Some(Arc::new(Mutex::new(made))))
    }

    /// The lowest rank that shares memory with this one.
    fn node(&self) -> Result<u32, Failed> {
        let (own, mut lowest) = (self.rank as c_int, 0);
        // SAFETY: all ranks call it; the communicator is freed before the end.
        unsafe {
            let mut node = mpi::RSMPI_COMM_NULL;
            let (shared, info) = (mpi::RSMPI_COMM_TYPE_SHARED, mpi::RSMPI_INFO_NULL);
            check(mpi::PMPI_Comm_split_type(self.comm(), shared, own, info, &raw mut node))?;
            let (int, least) = (mpi::RSMPI_INT32_T, mpi::RSMPI_MIN);
            let (from, to) = ((&raw const own).cast(), (&raw mut lowest).cast());
            check(mpi::PMPI_Allreduce(from, to, 1, int, least, node))?;
            check(mpi::PMPI_Comm_free(&raw mut node))?;
        }
        Ok(lowest as u32)
    }

    /// The values of all ranks, on the first.
    fn gathered(&self, own: u32) -> Result<Vec<u32>, Failed> {
        let mut all = vec![0u32; if self.rank == 0 { self.ranks as usize } else { 0 }];
        // SAFETY: all ranks call it, and the first has room for all.
        check(unsafe {
            let (from, to) = ((&raw const own).cast(), all.as_mut_ptr().cast());
            let word = mpi::RSMPI_UINT32_T;
            mpi::PMPI_Gather(from, 1, word, to, 1, word, 0, self.comm())
        })?;
        Ok(all)
    }
}

/// The grid of a Cartesian communicator.
fn grid(comm: mpi::MPI_Comm) -> Result<Option<Grid>, Failed> {
    let (mut kind, mut count) = (0, 0);
    // SAFETY: places for the answers, as many as dimensions.
    unsafe {
        check(mpi::PMPI_Topo_test(comm, &raw mut kind))?;
        if kind != mpi::RSMPI_CART {
            return Ok(None);
        }
        check(mpi::PMPI_Cartdim_get(comm, &raw mut count))?;
        let [mut sides, mut wraps, mut own] = [(); 3].map(|()| vec![0; count as usize]);
        let to = (sides.as_mut_ptr(), wraps.as_mut_ptr(), own.as_mut_ptr());
        check(mpi::PMPI_Cart_get(comm, count, to.0, to.1, to.2))?;
        let sides: Vec<u32> = sides.iter().map(|&side: &c_int| side as u32).collect();
        let wraps: Vec<bool> = wraps.iter().map(|&wraps: &c_int| wraps != 0).collect();
        // A grid of more dimensions than supported is ignored.
        Ok(Grid::new(&sides, &wraps).ok())
    }
}
