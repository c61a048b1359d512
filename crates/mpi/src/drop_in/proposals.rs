//! The schedules that the drop-in would try, for a program that measures them beside the library's calls.

use topocoll::{Collective, tune};

use super::blocks::Blocks;
use super::communicator::{Communicator, Shared};
use super::learned::{Compared, Learned};
use super::library::{loaded, version};
use super::ours::{Ours, Subject};
use super::process::run;
use super::trial::Kept;
use super::vector::Sizes;
use crate::exchange::ExchangeError;
use crate::failed::locked;
use crate::symbols as mpi;

/// Schedules between the ranks of a communicator, proposed and performed as in the drop-in.
pub struct Proposals {
    kept: Shared,
    subject: Subject,
    /// On the first rank, the schedules of the subject.
    schedules: Vec<Ours>,
    learned: Learned,
}

impl std::fmt::Debug for Proposals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proposals").field("schedules", &self.schedules).finish_non_exhaustive()
    }
}

impl Proposals {
    /// All ranks of the communicator call it.
    ///
    /// # Errors
    /// An inter-communicator or one rank, or MPI's error.
    ///
    /// # Safety
    /// MPI is initialized, and not finalized before this is dropped; `comm` is a communicator, freed after this.
    pub unsafe fn new(comm: mpi::MPI_Comm) -> Result<Self, ExchangeError> {
        mpi::load();
        let kept = Communicator::of(comm)?.ok_or(ExchangeError::Inter)?;
        let subject = of(Collective::AllToAll, 0, 2);
        Ok(Self { kept, subject, schedules: Vec::new(), learned: Learned::default() })
    }

    /// The library that is loaded, and its version.
    #[must_use]
    pub fn library(&self) -> (Option<&'static tune::Library>, String) {
        (loaded(), version())
    }

    /// The machine that the first rank has found.
    #[must_use]
    pub fn machine(&self) -> String {
        locked(&self.kept).shape()
    }

    /// Proposes schedules for blocks of a size: how many on all ranks; on the first, which, and the environment variables
    /// that force them.
    ///
    /// # Errors
    /// MPI's error.
    pub fn propose(
        &mut self,
        operation: Collective,
        block_bytes: u64,
    ) -> Result<(usize, Vec<(String, String)>), ExchangeError> {
        let mut kept = locked(&self.kept);
        self.subject = of(operation, block_bytes, kept.ranks());
        let (count, schedules) = kept.propose(self.subject)?;
        self.schedules = schedules;
        let both = |ours: &Ours| (ours.to_string(), ours.force(operation));
        Ok((count, self.schedules.iter().map(both).collect()))
    }

    /// Exchanges blocks of the size by the `i`-th of the proposed schedules.
    ///
    /// # Errors
    /// MPI's error.
    ///
    /// # Panics
    /// Buffers of other sizes.
    pub fn exchange(
        &mut self,
        i: usize,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), ExchangeError> {
        let mut kept = locked(&self.kept);
        let Subject { operation, .. } = self.subject;
        let bytes = output.len() / kept.ranks() as usize;
        let sent = if operation == Collective::AllToAll { output.len() } else { bytes };
        assert_eq!(input.len(), sent, "an input of another size");
        // SAFETY: a constant.
        let byte = unsafe { mpi::RSMPI_UINT8_T };
        let blocks = |data: *const u8| Blocks::new(data.cast_mut().cast(), bytes as i64, byte);
        let (from, to) = (blocks(input.as_ptr()), blocks(output.as_mut_ptr()));
        kept.perform_by(self.subject, i + 1)?;
        // SAFETY: the buffers have a block for each rank, or one to send.
        unsafe { kept.exchange(operation, (from.map(Some), to), |_| Ok(())) }?;
        Ok(())
    }

    /// Takes the nanoseconds of the library's call, and those of the `i`-th schedule if it is faster.
    pub fn learn(&mut self, library: u64, faster: Option<(usize, u64)>) {
        let (candidate, own) = faster.map_or((0, library), |(i, own)| (i + 1, own));
        let (subject, kept) = (self.subject, Kept { candidate, library, own });
        let (shape, calls) = (self.machine(), subject.to_string());
        self.learned.learn(&shape, subject.number(), &calls, &self.schedules, kept);
    }

    /// Writes a file that `TOPOCOLL_TUNE` may name, and the times of all.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub fn write(&mut self, path: &str, compared: Vec<Compared>) -> Result<(), String> {
        self.learned.writes_to(path, run(), compared);
        self.learned.write()
    }
}

/// The subject of blocks of one size.
fn of(operation: Collective, block_bytes: u64, ranks: u32) -> Subject {
    Subject { operation, vector: false, sizes: Sizes::equal(block_bytes, ranks) }
}
