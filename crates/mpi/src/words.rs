//! Drives the [`Protocol`] over MPI, on a private communicator.

use std::ffi::c_int;

use crate::symbols as mpi;

use crate::failed::{Failed, check};
use crate::protocol::{Ask, Next, Protocol, Word};

/// Tags of words start here; tags of messages are below.
pub(crate) const WORDS: u32 = (1 << 15) - 1;

/// A rank's words on a private communicator, or on the program's.
pub(crate) struct Words {
    comm: mpi::MPI_Comm,
    is_private: bool,
    protocol: Protocol,
}

/// Prepares and decides in a call.
pub(crate) trait Decides {
    /// The first rank's decision, as text, with the reports of all ranks.
    fn decide(&mut self, reports: &[&[u8]]) -> String;
    /// Prepares to follow a decision: whether this rank can, or `None` if every rank can.
    ///
    /// # Errors
    /// Text that is not a decision.
    fn plan(&mut self, text: &[u8]) -> Result<Option<bool>, Failed>;
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

impl Words {
    /// On a private communicator of the same ranks, whose errors return. All ranks call it.
    pub(crate) fn new(comm: mpi::MPI_Comm, rank: u32, ranks: u32) -> Result<Self, Failed> {
        // SAFETY: all ranks of the communicator make the same calls; `free` frees the new one.
        unsafe {
            let mut private = mpi::RSMPI_COMM_NULL;
            check(mpi::PMPI_Comm_split(comm, 0, rank as c_int, &raw mut private))?;
            check(mpi::PMPI_Comm_set_errhandler(private, mpi::RSMPI_ERRORS_RETURN))?;
            Ok(Self { comm: private, is_private: true, protocol: Protocol::new(rank, ranks) })
        }
    }

    /// On the program's communicator, on which no message of the program has their tags.
    #[cfg(feature = "drop-in")]
    pub(crate) fn inside(comm: mpi::MPI_Comm, rank: u32, ranks: u32) -> Self {
        Self { comm, is_private: false, protocol: Protocol::new(rank, ranks) }
    }

    /// Goes on on the next communicator of the same ranks, unless they have a private one.
    #[cfg(feature = "drop-in")]
    pub(crate) fn go_on(&mut self, comm: mpi::MPI_Comm) {
        if !self.is_private {
            self.comm = comm;
        }
    }

    /// Where they are said.
    pub(crate) fn comm(&self) -> mpi::MPI_Comm {
        self.comm
    }

    /// Whether this rank exchanges nothing more.
    pub(crate) fn is_broken(&self) -> bool {
        self.protocol.is_broken()
    }

    /// Whether the library performs every call.
    pub(crate) fn is_lost(&self) -> bool {
        self.protocol.is_lost()
    }

    /// Frees a private communicator if no message can be under way in it: a later communicator may reuse
    /// its number and would receive the message. Otherwise hears the words that have arrived.
    pub(crate) fn free(&mut self) {
        if !self.is_private {
            // `keep` has kept its number, if that must be.
        } else if self.is_broken() {
            // Words that do not arrive are ignored.
            let _ = self.listen();
        } else {
            // SAFETY: ours, and freed once, before MPI is finalized.
            unsafe { mpi::PMPI_Comm_free(&raw mut self.comm) };
        }
    }

    /// Begins an exchange that needs no decision.
    pub(crate) fn begin(&mut self) {
        self.protocol.begin(Ask::Known);
    }

    /// Begins a call, and agrees with all ranks on whether they follow the decision; else the library
    /// performs it. The first rank hears each rank's report if it decides.
    ///
    /// # Errors
    /// This rank or another fails.
    pub(crate) fn call(
        &mut self,
        ask: Ask,
        report: &[u8],
        decides: &mut impl Decides,
    ) -> Result<bool, Failed> {
        let ask = match ask {
            Ask::Refused(failed) => Ask::Refused(failed.class()),
            ask => ask,
        };
        self.protocol.report(report.to_vec());
        self.protocol.begin(ask);
        loop {
            let next = self.protocol.next();
            self.say()?;
            match next {
                Next::Hear => while !self.heard()? {},
                Next::Decide => {
                    let others = self.protocol.reports();
                    let reports: Vec<&[u8]> = std::iter::once(report).chain(others).collect();
                    let text = decides.decide(&reports);
                    self.protocol.decided(text.as_bytes());
                }
                Next::Plan(text) => {
                    let serves = decides.plan(&text)?;
                    self.protocol.planned(serves);
                }
                Next::Follow => return Ok(true),
                Next::Library => return Ok(false),
                Next::Fail(failed) => return Err(failed),
            }
        }
    }

    /// Ends a call that was given up: the library performs it if all ranks ask for that.
    ///
    /// # Errors
    /// This rank or another fails.
    pub(crate) fn given_up(&mut self) -> Result<(), Failed> {
        loop {
            let next = self.protocol.next();
            self.say()?;
            match next {
                Next::Hear => while !self.heard()? {},
                Next::Fail(failed) => return Err(failed),
                _ => return Ok(()),
            }
        }
    }

    /// Whether what this rank has heard allows an exchange.
    ///
    /// # Errors
    /// Another has failed, or does not exchange.
    pub(crate) fn check(&self) -> Result<(), Failed> {
        self.protocol.look()
    }

    /// Hears the words that have arrived, while this rank waits for messages.
    ///
    /// # Errors
    /// Another has failed, or does not exchange.
    pub(crate) fn look(&mut self) -> Result<(), Failed> {
        self.listen()?;
        self.protocol.look()
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

    /// Whether a rank has announced that it receives no more messages.
    pub(crate) fn has_left(&self, rank: u32) -> bool {
        self.protocol.has_left(rank)
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
        let word = Word::decoded(&bytes).ok_or(Failed(mpi::MPI_ERR_INTERN as c_int))?;
        self.protocol.hear(from as u32, word);
        Ok(true)
    }

    /// Sends all words, even after one that cannot be sent.
    fn say(&mut self) -> Result<(), Failed> {
        let words = self.protocol.take_out();
        words.iter().map(|(to, word)| self.send(*to, word)).fold(Ok(()), Result::and)
    }

    fn send(&self, to: u32, word: &Word) -> Result<(), Failed> {
        let word = word.encoded();
        let (at, count) = (word.as_ptr().cast(), word.len() as c_int);
        // SAFETY: a word, which MPI no longer reads when the call returns.
        check(unsafe {
            let (kind, tag) = (mpi::RSMPI_UINT8_T, WORDS as c_int);
            mpi::PMPI_Send(at, count, kind, to as c_int, tag, self.comm)
        })
    }
}
