//! The first call on a communicator: its ranks agree on a state, or find out what it needs.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Arc, Mutex};

use topocoll::Grid;

use super::super::group::{self, Group};
use super::super::library::answer;
use super::super::place::{Known, places};
use super::super::process::settings;
use super::super::splits;
use super::{Communicator, Shared};
use crate::engine::Channel;
use crate::failed::{Failed, check, locked};
use crate::symbols::{self as mpi, keep};
use crate::window::WORD;
use crate::words::{Words, rank_and_ranks};

impl Communicator {
    /// The state of a communicator, called by all its ranks; `None` if the library performs all its
    /// calls.
    pub(crate) fn of(comm: mpi::MPI_Comm) -> Result<Option<Shared>, Failed> {
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
            memory: Default::default(),
            window: None,
            stays: false,
        };
        let nodes = made.nodes()?;
        if rank == 0 {
            let given = settings().machine.as_ref();
            // Processes of other worlds have ranks beyond those of any machine.
            let world: Vec<u32> = made.group.world.iter().map(|&rank| rank as u32).collect();
            let groups = given.and_then(|_| splits::of(&world));
            made.places = places(&Known { nodes: &nodes, grid, world: &world, given, groups });
        }
        Ok(Some(Arc::new(Mutex::new(made))))
    }

    /// By rank, the lowest rank that shares memory with it; only on the first rank.
    fn nodes(&self) -> Result<Vec<u32>, Failed> {
        let (mut own, mut all, comm) = (self.rank, vec![0u32; self.ranks as usize], self.comm());
        // SAFETY: all ranks call it, with room for all; the communicator is freed before the end.
        unsafe {
            let (mut node, byte) = (std::mem::zeroed(), mpi::RSMPI_UINT8_T);
            let (shared, info) = (mpi::RSMPI_COMM_TYPE_SHARED, mpi::RSMPI_INFO_NULL);
            check(mpi::PMPI_Comm_split_type(comm, shared, own as c_int, info, &raw mut node))?;
            check(mpi::PMPI_Bcast((&raw mut own).cast(), WORD, byte, 0, node))?;
            check(mpi::PMPI_Comm_free(&raw mut node))?;
            let (from, to) = ((&raw const own).cast(), all.as_mut_ptr().cast());
            check(mpi::PMPI_Gather(from, WORD, byte, to, WORD, byte, 0, comm))?;
        }
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
