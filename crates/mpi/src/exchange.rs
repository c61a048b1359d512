//! Exchanges of Rust programs.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::symbols as mpi;
use topocoll::exec::{Endpoint, Plan, PlanError, RawBuffers};
use topocoll::{Rank, Schedule, Sync};

use crate::engine::Channel;
use crate::failed::Failed;
use crate::protocol::Stage;
use crate::words::{Words, rank_and_ranks};

/// One rank's part of a schedule, between the ranks of a communicator.
pub struct Exchange {
    /// A communicator of the same ranks, for these messages only.
    channel: Channel,
    endpoint: Endpoint,
    work: Vec<u8>,
    sync: Sync,
    /// Stays in the thread that made it: MPI may allow only one thread.
    thread: PhantomData<*mut ()>,
}

/// Why an exchange fails.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// A schedule for other ranks.
    #[error("the schedule is for {schedule} ranks, and the communicator has {communicator}")]
    Ranks {
        /// Its ranks.
        schedule: u32,
        /// The communicator's.
        communicator: u32,
    },
    /// An inter-communicator, whose ranks are two groups.
    #[error("an inter-communicator has two groups of ranks; a schedule has one")]
    Inter,
    /// A schedule that cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A buffer of another size than the schedule's.
    #[error("{what} has {given} bytes, and {needed} are needed")]
    Buffer {
        /// Input or output.
        what: &'static str,
        /// Its bytes.
        given: u64,
        /// Bytes of all blocks.
        needed: u128,
    },
    /// An exchange after one that failed.
    #[error("an earlier exchange failed, and other ranks may have left")]
    Broken,
    /// MPI's error.
    #[error("MPI's error {code}")]
    Mpi {
        /// Its code.
        code: i32,
    },
}

impl From<Failed> for ExchangeError {
    fn from(Failed(code): Failed) -> Self {
        Self::Mpi { code }
    }
}

impl Exchange {
    /// Plans this rank's part; rank i of the schedule is rank i of the communicator. All ranks of
    /// the communicator call it, with the same schedule.
    ///
    /// # Errors
    /// A schedule for other ranks or that cannot be planned, an inter-communicator, or MPI's error.
    ///
    /// # Safety
    /// MPI is initialized, and not finalized before this is dropped; `comm` is a communicator. If
    /// an exchange ends with MPI's error, its buffers stay allocated until MPI is finalized: MPI
    /// may still read an abandoned message.
    pub unsafe fn new(comm: mpi::MPI_Comm, schedule: &Schedule) -> Result<Self, ExchangeError> {
        #[cfg(feature = "drop-in")]
        mpi::load();
        // SAFETY: the caller's promise.
        let Some((rank, ranks)) = (unsafe { rank_and_ranks(comm)? }) else {
            return Err(ExchangeError::Inter);
        };
        if schedule.problem.ranks != ranks {
            let (schedule, communicator) = (schedule.problem.ranks, ranks);
            return Err(ExchangeError::Ranks { schedule, communicator });
        }
        let plan = Plan::new(schedule, Rank(rank))?;
        let channel = Channel::new(Words::new(comm, (rank, ranks), true)?);
        let endpoint = Endpoint::new(Arc::new(plan), 0u64);
        let (work, sync) = (Vec::new(), Sync::Free);
        Ok(Self { channel, endpoint, work, sync, thread: PhantomData })
    }

    /// Sets the synchronization between steps of the next exchanges, which is [`Sync::Free`] unless
    /// set. All ranks set the same. A barrier is an empty message to and from each of log2(ranks)
    /// others, so that no rank waits in it for one that has failed.
    pub fn set_sync(&mut self, sync: Sync) {
        self.sync = sync;
    }

    /// Exchanges blocks of `block_bytes`. Input and output have the blocks of all ranks one after
    /// the other; the input of an all-gather has the rank's own.
    ///
    /// # Errors
    /// Buffers of other sizes, or MPI's error, after which this exchange is unusable. The error is
    /// returned when every receiver of a message has received it or failed too, so no rank
    /// receives later contents of the buffers.
    pub fn exchange(
        &mut self,
        block_bytes: u64,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), ExchangeError> {
        if self.channel.words.protocol.is_broken() {
            return Err(ExchangeError::Broken);
        }
        self.endpoint.begin(block_bytes);
        let sizes = [
            ("the input", input.len() as u64, self.endpoint.input_bytes()),
            ("the output", output.len() as u64, self.endpoint.output_bytes()),
        ];
        for (what, given, needed) in sizes {
            if u128::from(given) != needed {
                self.endpoint.cancel();
                return Err(ExchangeError::Buffer { what, given, needed });
            }
        }
        self.channel.words.protocol.begin(Stage::Follow, Vec::new());
        self.work.resize(self.endpoint.workspace_bytes() as usize, 0);
        let (input, output) = (input.as_ptr(), output.as_mut_ptr());
        let buffers = RawBuffers { input, output, work: self.work.as_mut_ptr() };
        // SAFETY: memories of the sizes that the endpoint requires, which only this call uses.
        let outcome = unsafe {
            self.channel.exchange(&mut self.endpoint, buffers, |rank| rank, self.sync, None)
        };
        if let Err(failed) = outcome
            && !self.channel.give_up(failed)
        {
            std::mem::forget(std::mem::take(&mut self.work));
        }
        Ok(outcome?)
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.channel.words.free();
    }
}
