//! Drives the [`Protocol`] over MPI, on a private communicator.

use std::ffi::c_int;

use crate::failed::{Failed, check};
use crate::protocol::{Protocol, Stage, Word};
use crate::symbols as mpi;

/// Tags of words start here; tags of messages are below.
pub(crate) const WORDS: u32 = (1 << 15) - 1;

/// A rank's words on a private communicator, or on the program's.
pub(crate) struct Words {
    pub(crate) comm: mpi::MPI_Comm,
    is_private: bool,
    pub(crate) protocol: Protocol,
}

/// The rank in a communicator, and its ranks; `None` if it is an inter-communicator.
///
/// # Safety
/// It is a communicator.
pub(crate) unsafe fn rank_and_ranks(comm: mpi::MPI_Comm) -> Result<Option<(u32, u32)>, Failed> {
    let (mut inter, mut rank, mut ranks) = (0, 0, 0);
    // SAFETY: the caller's promise, and places for the answers.
    unsafe {
        check(mpi::PMPI_Comm_test_inter(comm, &raw mut inter))?;
        check(mpi::PMPI_Comm_rank(comm, &raw mut rank))?;
        check(mpi::PMPI_Comm_size(comm, &raw mut ranks))?;
    }
    Ok((inter == 0).then_some((rank as u32, ranks as u32)))
}

/// The first ranks of a communicator, by their ranks in `MPI_COMM_WORLD`.
pub(crate) fn in_world(comm: mpi::MPI_Comm, ranks: u32) -> Result<Vec<c_int>, Failed> {
    let mut world = vec![0; ranks as usize];
    // SAFETY: a communicator of `ranks`; places for the answers; groups are freed.
    unsafe {
        let [mut own, mut all] = [std::mem::zeroed(); 2];
        check(mpi::PMPI_Comm_group(comm, &raw mut own))?;
        check(mpi::PMPI_Comm_group(mpi::RSMPI_COMM_WORLD, &raw mut all))?;
        let every: Vec<c_int> = (0..ranks as c_int).collect();
        let (from, to) = (every.as_ptr(), world.as_mut_ptr());
        check(mpi::PMPI_Group_translate_ranks(own, ranks as c_int, from, all, to))?;
        check(mpi::PMPI_Group_free(&raw mut own))?;
        check(mpi::PMPI_Group_free(&raw mut all))?;
    }
    Ok(world)
}

impl Words {
    /// On a private communicator of the same ranks, whose errors return: all ranks call it. Or on the
    /// program's, on which no message of the program has their tags.
    pub(crate) fn new(
        mut comm: mpi::MPI_Comm,
        (rank, ranks): (u32, u32),
        is_private: bool,
    ) -> Result<Self, Failed> {
        if is_private {
            // SAFETY: all ranks of the communicator make the same calls; `free` frees the new one.
            unsafe {
                check(mpi::PMPI_Comm_split(comm, 0, rank as c_int, &raw mut comm))?;
                check(mpi::PMPI_Comm_set_errhandler(comm, mpi::RSMPI_ERRORS_RETURN))?;
            }
        }
        Ok(Self { comm, is_private, protocol: Protocol::new(rank, ranks) })
    }

    /// Goes on on the next communicator of the same ranks, unless they have a private one.
    #[cfg(feature = "drop-in")]
    pub(crate) fn go_on(&mut self, comm: mpi::MPI_Comm) {
        if !self.is_private {
            self.comm = comm;
        }
    }

    /// Frees a private communicator if no message can be under way in it: a later communicator may reuse
    /// its number and would receive the message. Otherwise hears the words that have arrived.
    pub(crate) fn free(&mut self) {
        if !self.is_private {
            // `keep` has kept its number, if that must be.
        } else if self.protocol.is_broken() {
            // Words that do not arrive are ignored.
            let _ = self.listen();
        } else {
            // SAFETY: ours, and freed once, before MPI is finalized.
            unsafe { mpi::PMPI_Comm_free(&raw mut self.comm) };
        }
    }

    /// This rank's next action in the call, after it has heard what that depends on.
    ///
    /// # Errors
    /// This rank or another fails.
    pub(crate) fn next(&mut self) -> Result<Stage, Failed> {
        loop {
            let next = self.protocol.next();
            self.say()?;
            match next {
                Stage::Number(_) | Stage::Serves(_) => while !self.heard()? {},
                Stage::Failed(failed) => return Err(failed),
                next => return Ok(next),
            }
        }
    }

    /// Tells all other ranks that this rank has failed, unless they know that another has, or that it
    /// asks for the library.
    pub(crate) fn fail(&mut self, failed: Failed) {
        self.protocol.fail(failed.class());
        // A rank that cannot be reached is ignored.
        let _ = self.say();
    }

    /// Tells all other ranks that this rank receives no more messages.
    pub(crate) fn leave(&mut self) {
        self.protocol.leave();
        // A rank that cannot be reached is ignored.
        let _ = self.say();
    }

    /// Hears the words that have arrived.
    ///
    /// # Errors
    /// MPI's.
    pub(crate) fn listen(&mut self) -> Result<(), Failed> {
        while self.heard()? {}
        Ok(())
    }

    /// Hears the next word, if there is one.
    fn heard(&mut self) -> Result<bool, Failed> {
        let (mut there, tag) = (0, WORDS as c_int);
        // SAFETY: a status is plain numbers; places for the answers, and room for the word.
        let (bytes, from) = unsafe {
            let (any, mut status) = (mpi::RSMPI_ANY_SOURCE, std::mem::zeroed::<mpi::MPI_Status>());
            check(mpi::PMPI_Iprobe(any, tag, self.comm, &raw mut there, &raw mut status))?;
            if there == 0 {
                return Ok(false);
            }
            let (mut count, kind) = (0, mpi::RSMPI_UINT8_T);
            check(mpi::PMPI_Get_count(&raw const status, kind, &raw mut count))?;
            let mut bytes = vec![0u8; count.max(0) as usize];
            let (at, from) = (bytes.as_mut_ptr().cast(), status.MPI_SOURCE);
            check(mpi::PMPI_Recv(at, count, kind, from, tag, self.comm, &raw mut status))?;
            (bytes, from)
        };
        let word = serde_json::from_slice(&bytes);
        let word = word.map_err(|_| Failed(mpi::MPI_ERR_INTERN as c_int))?;
        self.protocol.hear(from as u32, word);
        Ok(true)
    }

    /// Sends all words, even after one that cannot be sent.
    fn say(&mut self) -> Result<(), Failed> {
        let words = self.protocol.take_out();
        words.iter().map(|(to, word)| self.send(*to, word)).fold(Ok(()), Result::and)
    }

    fn send(&self, to: u32, word: &Word) -> Result<(), Failed> {
        let word = serde_json::to_vec(word).expect("bug: a word that is not text");
        let (at, count) = (word.as_ptr().cast(), word.len() as c_int);
        // SAFETY: a word, which MPI no longer reads when the call returns.
        check(unsafe {
            let (kind, tag) = (mpi::RSMPI_UINT8_T, WORDS as c_int);
            mpi::PMPI_Send(at, count, kind, to as c_int, tag, self.comm)
        })
    }
}
