//! Words between ranks, beside the messages of exchanges: who gives up says so to all, and what is to
//! be decided is agreed on first. So no rank waits for one that has failed, nor for one that does
//! another exchange, as in a program whose counts do not agree; who waits looks for words. Who has given
//! up and takes no more messages says that too: what is still on its way there need not be waited for.
//!
//! Exchanges and decisions of a communicator are *turns*, numbered alike by all ranks: they take them
//! in the same order, or the program is wrong. Before a decision the first rank and each other tell
//! each other what it is about, and when all agree the first says so: who hears that others decide
//! in a turn in which it exchanges knows that they do not agree.

use std::ffi::c_int;

use mpi_sys as mpi;

use crate::failed::{Failed, check};

/// Tags from here on are of words; below, of messages.
pub(crate) const WORDS: u32 = (1 << 15) - 1;

/// What ranks are told that do not agree: as if by a message that is longer than another's.
const DISAGREED: Failed = Failed(mpi::MPI_ERR_TRUNCATE as c_int);

/// What a rank says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Word {
    /// It has given up in a turn, by an error code.
    Failed(u64, Failed),
    /// In a turn it decides about something.
    Decides(u64, u64),
    /// In a turn all have said that they decide about the same.
    Agreed(u64),
    /// It takes no more messages.
    Left,
}

type Encoded = [u64; 3];

impl Word {
    fn encoded(self) -> Encoded {
        match self {
            Self::Failed(turn, Failed(code)) => [0, turn, code as u64],
            Self::Decides(turn, about) => [1, turn, about],
            Self::Agreed(turn) => [2, turn, 0],
            Self::Left => [3, 0, 0],
        }
    }

    fn decoded([kind, first, second]: Encoded) -> Self {
        match kind {
            0 => Self::Failed(first, Failed(second as c_int)),
            1 => Self::Decides(first, second),
            2 => Self::Agreed(first),
            _ => Self::Left,
        }
    }
}

/// A rank's words with the others of a communicator of ours.
pub(crate) struct Words {
    comm: mpi::MPI_Comm,
    rank: u32,
    ranks: u32,
    /// Exchanges and decisions begun.
    turn: u64,
    /// Heard from ranks that are further.
    early: Vec<Word>,
    /// Whether another has failed in this turn, so that all have been told.
    told: bool,
    /// The first turn in which one failed that was further than this rank, and how.
    ahead: Option<(u64, Failed)>,
    /// By rank, whether it takes no more messages; empty while all do.
    left: Vec<bool>,
}

impl Words {
    /// On a communicator that is ours alone, and whose errors return.
    pub(crate) fn new(comm: mpi::MPI_Comm, rank: u32, ranks: u32) -> Self {
        Self {
            comm,
            rank,
            ranks,
            turn: 0,
            early: Vec::new(),
            told: false,
            ahead: None,
            left: Vec::new(),
        }
    }

    /// Where they are said.
    pub(crate) fn comm(&self) -> mpi::MPI_Comm {
        self.comm
    }

    /// Begins an exchange.
    pub(crate) fn take_turn(&mut self) {
        self.turn += 1;
    }

    /// Hears what there is, while the rank waits for messages of its turn.
    ///
    /// # Errors
    /// Another has failed, or decides.
    pub(crate) fn look(&mut self) -> Result<(), Failed> {
        self.reaches_failure()?;
        while let Some(word) = self.heard()? {
            match word {
                Word::Failed(_, failed) => return Err(failed),
                Word::Decides(turn, _) if turn > self.turn => self.early.push(word),
                _ => return Err(DISAGREED),
            }
        }
        Ok(())
    }

    /// Waits until all ranks are about to decide about the same, which takes a turn.
    ///
    /// # Errors
    /// They are not, or one has failed.
    pub(crate) fn agree(&mut self, about: u64) -> Result<(), Failed> {
        self.turn += 1;
        self.reaches_failure()?;
        let own = Word::Decides(self.turn, about);
        if self.rank > 0 {
            self.say(0, own)?;
            return self.expect(&[own, Word::Agreed(self.turn)]);
        }
        self.say_to_all(own)?;
        self.expect(&vec![own; self.ranks as usize - 1])?;
        self.say_to_all(Word::Agreed(self.turn))
    }

    /// Says to all others that this rank has failed, unless it did so as another has.
    pub(crate) fn fail(&mut self, failed: Failed) {
        if !self.told && self.reaches_failure().is_ok() {
            self.told = true;
            // Nothing more can be done for who cannot be reached.
            let _ = self.say_to_all(Word::Failed(self.turn, failed));
        }
    }

    /// Says to all others that this rank takes no more messages.
    pub(crate) fn leave(&self) {
        // Nothing more can be done for who cannot be reached.
        let _ = self.say_to_all(Word::Left);
    }

    /// Hears what there is, after this rank has given up: whom it need not wait for.
    pub(crate) fn listen(&mut self) -> Result<(), Failed> {
        while self.heard()?.is_some() {}
        Ok(())
    }

    /// Whether a rank has said that it takes no more messages.
    pub(crate) fn has_left(&self, rank: u32) -> bool {
        self.left.get(rank as usize).is_some_and(|&left| left)
    }

    /// Waits for these words, and no others of this turn.
    fn expect(&mut self, words: &[Word]) -> Result<(), Failed> {
        let mut early = std::mem::take(&mut self.early).into_iter();
        for expected in words {
            let mut word = early.next();
            while word.is_none() {
                word = self.heard()?;
            }
            match word {
                Some(Word::Failed(_, failed)) => return Err(failed),
                word if word == Some(*expected) => {}
                _ => return Err(DISAGREED),
            }
        }
        self.early.extend(early);
        Ok(())
    }

    /// # Errors
    /// Another has failed in this turn, and was ahead then.
    fn reaches_failure(&self) -> Result<(), Failed> {
        match self.ahead {
            Some((turn, failed)) if turn <= self.turn => Err(failed),
            _ => Ok(()),
        }
    }

    /// The next word that matters in this turn, if there is one.
    fn heard(&mut self) -> Result<Option<Word>, Failed> {
        while let Some((word, from)) = self.received()? {
            match word {
                Word::Left => {
                    self.left.resize(self.ranks as usize, false);
                    self.left[from as usize] = true;
                }
                // That rank has had what it needs in this turn and has done its part, so all can end
                // it; who left now would fail others in it.
                Word::Failed(turn, failed) if turn > self.turn => {
                    if self.ahead.is_none_or(|(first, _)| turn < first) {
                        self.ahead = Some((turn, failed));
                    }
                }
                Word::Failed(..) => {
                    self.told = true;
                    return Ok(Some(word));
                }
                Word::Decides(..) | Word::Agreed(_) => return Ok(Some(word)),
            }
        }
        Ok(None)
    }

    /// The next word, if there is one, and the rank whose it is.
    fn received(&self) -> Result<Option<(Word, c_int)>, Failed> {
        let (mut there, mut word): (c_int, Encoded) = (0, [0; 3]);
        let (tag, count) = (WORDS as c_int, word.len() as c_int);
        // SAFETY: a status is plain numbers; places for the answers, and for the word.
        unsafe {
            let (any, mut status) = (mpi::RSMPI_ANY_SOURCE, std::mem::zeroed::<mpi::MPI_Status>());
            check(mpi::PMPI_Iprobe(any, tag, self.comm, &raw mut there, &raw mut status))?;
            if there == 0 {
                return Ok(None);
            }
            let (at, from) = ((&raw mut word).cast(), status.MPI_SOURCE);
            let kind = mpi::RSMPI_UINT64_T;
            check(mpi::PMPI_Recv(at, count, kind, from, tag, self.comm, &raw mut status))?;
            Ok(Some((Word::decoded(word), from)))
        }
    }

    fn say_to_all(&self, word: Word) -> Result<(), Failed> {
        let others = (0..self.ranks).filter(|&rank| rank != self.rank);
        others.map(|rank| self.say(rank, word)).fold(Ok(()), Result::and)
    }

    fn say(&self, to: u32, word: Word) -> Result<(), Failed> {
        let word = word.encoded();
        let (at, count) = ((&raw const word).cast(), word.len() as c_int);
        // SAFETY: a word, which MPI has taken when the call returns.
        check(unsafe {
            let (kind, tag) = (mpi::RSMPI_UINT64_T, WORDS as c_int);
            mpi::PMPI_Send(at, count, kind, to as c_int, tag, self.comm)
        })
    }
}
