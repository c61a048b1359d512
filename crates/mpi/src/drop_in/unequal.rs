//! Blocks of unequal sizes, which every rank knows only of its own.
//!
//! Schedules serve in which no block passes through others: then the rank's own counts tell the
//! length of every message, and nothing need travel before the blocks. Counts differ from rank to
//! rank, so nothing is decided by them.

use std::ffi::c_int;
use std::sync::Arc;

use mpi_sys as mpi;
use topocoll::exec::{Plan, RankMachine, UnequalPlan};

use super::blocks::{Blocks, Placed};
use super::communicator::rank_of;
use super::memory::Memory;
use crate::engine::{Memories, Requests, exchange};
use crate::failed::Failed;

/// Where blocks of one rank lie, by the rank that they are for or from.
pub(crate) struct Vector {
    elements: Placed,
    /// Elements, and the first of them.
    blocks: Vec<(c_int, isize)>,
    bytes: u64,
}

impl Vector {
    /// None for what the library is to refuse.
    pub(crate) fn new(
        elements: Blocks,
        blocks: impl Iterator<Item = (c_int, isize)>,
    ) -> Option<Self> {
        let bytes = elements.bytes;
        let (elements, blocks) = (elements.placed().ok()?, blocks.collect::<Vec<_>>());
        let good = blocks.iter().all(|&(count, _)| count >= 0);
        good.then_some(Self { elements, blocks, bytes })
    }

    fn sizes(&self, rank_of: impl Fn(u32) -> u32) -> Vec<u64> {
        let size = |rank| self.blocks[rank_of(rank) as usize].0 as u64 * self.bytes;
        (0..self.blocks.len() as u32).map(size).collect()
    }

    fn block(&self, rank: u32) -> Placed {
        let (count, first) = self.blocks[rank as usize];
        self.elements.part(first, count)
    }

    /// Whether all blocks lie as they travel, one after the other.
    fn is_dense(&self, offsets: &[u64], rank_of: impl Fn(u32) -> u32) -> bool {
        let begins = |(rank, &offset): (u32, &u64)| {
            let (count, first) = self.blocks[rank_of(rank) as usize];
            count == 0 || first as u64 * self.bytes == offset
        };
        self.elements.plain && (0..self.blocks.len() as u32).zip(offsets).all(begins)
    }
}

/// Whether a schedule's blocks all go straight.
///
/// # Errors
/// Why not.
pub(crate) fn straight(plan: &Arc<Plan>) -> Result<(), topocoll::Error> {
    let ones = vec![1; plan.problem().ranks as usize];
    UnequalPlan::given(plan, &ones, &ones)?;
    Ok(())
}

/// Exchanges blocks by a plan that goes straight; false for what the library is to refuse. `send` is
/// none in place.
///
/// # Safety
/// The buffers have the blocks; `comm` is ours alone, and its errors return.
pub(crate) unsafe fn exchange_unequal(
    plan: &Arc<Plan>,
    order: Option<&[u32]>,
    send: Option<&Vector>,
    receive: &Vector,
    comm: mpi::MPI_Comm,
    memory: &mut Memory,
    requests: &mut Requests,
) -> Result<bool, Failed> {
    let rank_of = rank_of(order);
    let ranks = plan.problem().ranks;
    let from = send.unwrap_or(receive);
    let (row, column) = (from.sizes(rank_of), receive.sizes(rank_of));
    let own = plan.rank().index();
    if row[own] != column[own] {
        return Ok(false);
    }
    // Counts of MPI are ints; who has no larger block cannot know of those of others.
    if row.iter().chain(&column).any(|&bytes| bytes > c_int::MAX as u64) {
        return Err(Failed(mpi::MPI_ERR_COUNT as c_int));
    }
    let unequal = UnequalPlan::given(plan, &row, &column);
    let unequal = Arc::new(unequal.map_err(|_| Failed(mpi::MPI_ERR_INTERN as c_int))?);
    let (begins, ends) = (unequal.input_offsets(), unequal.output_offsets());
    let mut machine = RankMachine::unequal(Arc::clone(&unequal));
    let work = memory.work(machine.workspace_bytes())?;
    let input = if send.is_some() && from.is_dense(begins, rank_of) {
        from.elements.data()
    } else {
        let staged = memory.input(machine.input_bytes())?;
        for rank in 0..ranks {
            // SAFETY: the program's blocks, and room for all of them.
            unsafe {
                let to = staged.add(begins[rank as usize] as usize);
                from.block(rank_of(rank)).pack(0, to, comm)?;
            }
        }
        staged
    };
    let dense = receive.is_dense(ends, rank_of);
    let output =
        if dense { receive.elements.data() } else { memory.output(machine.output_bytes())? };
    let memories = Memories { input, output, work };
    // SAFETY: memories of these sizes, which this call has to itself.
    unsafe { exchange(&mut machine, memories, comm, rank_of, requests)? };
    if !dense {
        for rank in 0..ranks {
            // SAFETY: the program's blocks, and all of them in the output.
            unsafe {
                let block = output.add(ends[rank as usize] as usize);
                receive.block(rank_of(rank)).unpack(0, block, comm)?;
            }
        }
    }
    Ok(true)
}
