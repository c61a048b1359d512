//! The control protocol of a communicator's ranks, as a state machine without MPI: it takes words
//! that arrive and returns words to send. `words` drives it over MPI. The tests below drive it
//! through every order of deliveries.
//!
//! # Turns
//! Every rank takes part in the same calls in the same order, and numbers them. A call has up to
//! three steps: all ranks agree on what to decide about and hear the first rank's decision, they
//! agree that every rank can follow it, and they exchange. A call whose decision is known only
//! exchanges. A turn is a call and the number of its steps that have ended.
//!
//! # Agreement
//! In a step of agreement every rank sends a number to the first rank. The first rank answers every
//! rank by a separate message when it has all numbers, and no rank before. So no rank can leave
//! another in the middle of the decision.
//! The first rank sends its number to all ranks too, so ranks that exchange in that turn learn that
//! they disagree. A number carries a report to the first rank, which decides with all reports.
//!
//! # Failure
//! A rank that fails tells all ranks the turn. A rank that learns of a failure fails when it comes
//! to that turn, and not earlier: the failed rank has done its part in all earlier turns. After a
//! failure a rank exchanges nothing more on this communicator, so no rank can receive a message of
//! the failed call as one of its own.
//!
//! # After a failure
//! A rank may have had its blocks before it heard of the failure. In one of the next calls all ranks
//! ask for the library: a rank that knows of a failure in an earlier call, or hears another ask, ends
//! its exchange and asks too. When all have asked, the library performs that call and all later ones.
//! So any rank may ask in any call, also one whose arguments only the library understands.
//!
//! The library performs some calls without a word, by a decision that counts calls. A rank that fails
//! after it has begun to exchange has counted the call as all others have, so all ranks make the same
//! calls with words. A rank that takes no part in a call, whose arguments are refused or belong to
//! another decision, may count it differently. But no rank ends a call without its blocks. So after
//! such a failure the library performs all later calls at once, also on a rank that hears of it later.
//!
//! # Limits
//! A rank that exchanges only empty blocks of several sizes with a failed rank does not notice that
//! it is missing. It may end later calls while the failed rank waits for it to agree.

use std::collections::BTreeMap;
use std::ffi::c_int;

use serde::{Deserialize, Serialize};

use crate::failed::Failed;
use crate::symbols as mpi;

/// The error of ranks that disagree: that of a message longer than its receive.
pub(crate) const DISAGREED: Failed = Failed(mpi::MPI_ERR_TRUNCATE as c_int);

/// Bytes of an answer in one word, few enough that MPI sends every word eagerly. Reports are shorter.
const PART: usize = 1024;

/// The answer if every rank can follow the decision.
const ALL: &str = "all";

/// Turns of a call.
const STEPS: u64 = 4;

/// The number of a rank that asks for the library, in this call and all later ones.
const LOST: u64 = u64::MAX;

/// A timed call on one rank.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) nanoseconds: u64,
    /// Bytes sent.
    pub(crate) bytes: u64,
}

/// A message of the control protocol.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum Word {
    /// It has failed in a turn, with an error class; whether it or another takes no part in the call.
    Failed(u64, Failed, bool),
    /// Its number in a step of agreement, and its report to the first rank.
    Number(u64, u64, Vec<Sample>),
    /// A part of the first rank's answer in a turn: the number of bytes that remain, and its text.
    Answer(u64, usize, String),
    /// It receives no more messages.
    Left,
}

/// The state of a rank in a call, and its next action.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Stage {
    /// Wait for a word in the first step of a call about a number, or [`LOST`].
    Number(u64),
    /// Decide, and call [`Protocol::decided`]; only for the first rank.
    Decide,
    /// Prepare to follow the decision, and call [`Protocol::planned`].
    Plan(String),
    /// Wait for a word in the second step; whether this rank can follow the decision.
    Serves(bool),
    /// Follow the decision: exchange, and call [`Protocol::look`] before and while messages are under
    /// way, or make the library's call.
    Follow,
    /// Make the library's call.
    Library,
    /// End the call with this error.
    Failed(Failed),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Health {
    Well,
    /// A rank has failed in an earlier call, or asks for the library.
    Broken,
    /// The library performs every call.
    Lost,
}

/// One rank's protocol.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Protocol {
    rank: u32,
    ranks: u32,
    turn: u64,
    stage: Stage,
    health: Health,
    /// Whether this rank has announced that it receives no more messages.
    gone: bool,
    /// This rank's report, for its next number.
    report: Vec<Sample>,
    /// By turn and rank, from this turn on: numbers and reports heard.
    numbers: BTreeMap<(u64, u32), (u64, Vec<Sample>)>,
    /// The same for failures, from this call on; and whether a rank takes no part in the call.
    failures: BTreeMap<(u64, u32), (Failed, bool)>,
    /// The received part of this turn's answer, and whether it is complete.
    answer: (String, bool),
    /// By rank, whether it receives no more messages; empty while all receive.
    left: Vec<bool>,
    /// To be sent, by rank.
    out: Vec<(u32, Word)>,
}

impl Protocol {
    pub(crate) fn new(rank: u32, ranks: u32) -> Self {
        Self {
            rank,
            ranks,
            turn: 0,
            stage: Stage::Library,
            health: Health::Well,
            gone: false,
            report: Vec::new(),
            numbers: BTreeMap::new(),
            failures: BTreeMap::new(),
            answer: Default::default(),
            left: Vec::new(),
            out: Vec::new(),
        }
    }

    /// Whether every call is the library's.
    pub(crate) fn is_lost(&self) -> bool {
        self.health == Health::Lost
    }

    /// Whether this rank exchanges nothing more.
    pub(crate) fn is_broken(&self) -> bool {
        self.health != Health::Well
    }

    /// Words to send since the previous call of this function.
    pub(crate) fn take_out(&mut self) -> Vec<(u32, Word)> {
        std::mem::take(&mut self.out)
    }

    /// For the first rank, when it decides: the other ranks' reports, in order of ranks.
    pub(crate) fn reports(&self) -> impl Iterator<Item = &[Sample]> {
        self.numbers.range(..(self.turn + 1, 0)).map(|(_, (_, report))| &report[..])
    }

    /// Begins a call, in which all ranks take part: by an earlier decision ([`Stage::Follow`]); about a number, the
    /// same on all ranks, with this rank's report; with arguments that only the library understands, so that it
    /// performs this call and all later ones ([`Stage::Library`]), or that it refuses by an error.
    pub(crate) fn begin(&mut self, first: Stage, report: Vec<Sample>) {
        self.report = report;
        if !matches!(self.stage, Stage::Failed(_)) {
            let next = (self.turn / STEPS + 1) * STEPS;
            match self.numbers.first_key_value() {
                Some((&(turn, _), _)) if turn < next => self.missed(turn),
                _ => {}
            }
            self.enter_call(next);
        }
        self.stage = Stage::Library;
        match first {
            Stage::Failed(failed) => self.fail(failed),
            _ if self.is_broken() => self.ask_library(),
            Stage::Library => self.ask_library(),
            Stage::Number(number) => self.agree(number, first),
            known => self.stage = known,
        }
    }

    /// The next action in the call.
    pub(crate) fn next(&mut self) -> Stage {
        while matches!(self.stage, Stage::Number(_) | Stage::Serves(_)) && !self.is_lost() {
            match self.agreed() {
                Ok(true) => {}
                Ok(false) => break,
                Err(failed) => self.fail(failed),
            }
        }
        match &self.stage {
            Stage::Failed(failed) => Stage::Failed(*failed),
            _ if self.is_lost() => Stage::Library,
            stage => stage.clone(),
        }
    }

    /// The first rank's decision, as text for all ranks.
    pub(crate) fn decided(&mut self, text: String) {
        self.answer(&text);
        self.stage = Stage::Plan(text);
    }

    /// Whether this rank can follow a decision; `None` if every rank can.
    pub(crate) fn planned(&mut self, serves: Option<bool>) {
        match serves {
            None => self.stage = Stage::Follow,
            Some(serves) => self.agree(u64::from(serves), Stage::Serves(serves)),
        }
    }

    /// Before and while this rank exchanges.
    ///
    /// # Errors
    /// Another rank has failed, or does not exchange in this turn.
    pub(crate) fn look(&self) -> Result<(), Failed> {
        self.failure()?;
        if self.is_broken() || self.here().next().is_some() { Err(DISAGREED) } else { Ok(()) }
    }

    /// Ends an exchange, or a call without one. If another rank has asked for the library, or failed
    /// in an earlier call, this rank asks too. Otherwise it fails, and tells all ranks, unless they
    /// learn of another failure.
    pub(crate) fn fail(&mut self, failed: Failed) {
        let exchanges = self.stage == Stage::Follow;
        if matches!(self.stage, Stage::Failed(_)) || exchanges && self.is_lost() {
            return;
        }
        if exchanges && self.failure().is_ok() && self.hears_ask() {
            return self.ask_library();
        }
        let begin = self.turn / STEPS * STEPS;
        let apart = !exchanges || self.here().next().is_some();
        let mut heard = self.failures.range((begin, 0)..(self.turn + 1, 0));
        if !heard.any(|(_, &(_, heard))| heard >= apart) {
            self.say_to_all(&Word::Failed(self.turn, failed, apart));
        }
        self.stage = Stage::Failed(failed);
        self.learn(apart);
        // Words about turns before the next call are obsolete.
        self.enter_call(begin + STEPS);
    }

    /// Tells all ranks that this one receives no more messages.
    pub(crate) fn leave(&mut self) {
        if !std::mem::replace(&mut self.gone, true) {
            self.say_to_all(&Word::Left);
        }
    }

    /// Whether a rank has announced that it receives no more messages.
    pub(crate) fn has_left(&self, rank: u32) -> bool {
        self.left.get(rank as usize).is_some_and(|&left| left)
    }

    /// Takes a word that has arrived. Words of two ranks arrive in the order in which they were
    /// sent.
    pub(crate) fn hear(&mut self, from: u32, word: Word) {
        match word {
            Word::Left => {
                self.left.resize(self.ranks as usize, false);
                self.left[from as usize] = true;
            }
            Word::Failed(turn, _, apart) if turn / STEPS < self.turn / STEPS => self.learn(apart),
            Word::Failed(turn, failed, apart) => {
                self.failures.insert((turn, from), (failed, apart));
            }
            Word::Number(turn, number, report) if turn >= self.turn => {
                self.numbers.insert((turn, from), (number, report));
            }
            Word::Answer(turn, remaining, part) if turn == self.turn => {
                self.answer.0 += &part;
                self.answer.1 = remaining == 0;
            }
            // A rank without failures has heard all numbers of its turns of agreement.
            Word::Number(turn, ..) if !self.is_broken() => self.missed(turn),
            // Of a turn in which this rank has failed.
            Word::Number(..) | Word::Answer(..) => {}
        }
    }

    /// After the end of a call in which a rank has failed.
    fn learn(&mut self, apart: bool) {
        self.health = self.health.max(if apart { Health::Lost } else { Health::Broken });
    }

    /// Tells a rank that waits for this rank's number in an ended turn.
    fn missed(&mut self, turn: u64) {
        self.say_to_all(&Word::Failed(turn, DISAGREED, true));
        self.learn(true);
    }

    fn enter_call(&mut self, turn: u64) {
        let later = self.failures.split_off(&(turn, 0));
        let ended = std::mem::replace(&mut self.failures, later);
        ended.into_values().for_each(|(_, apart)| self.learn(apart));
        self.enter(turn);
    }

    fn enter(&mut self, turn: u64) {
        self.turn = turn;
        self.numbers = self.numbers.split_off(&(turn, 0));
        self.answer = Default::default();
    }

    /// Begins a step of agreement.
    fn agree(&mut self, number: u64, stage: Stage) {
        self.stage = stage;
        let word = Word::Number(self.turn, number, std::mem::take(&mut self.report));
        if self.rank == 0 { self.say_to_all(&word) } else { self.out.push((0, word)) }
    }

    /// Asks for the library, and exchanges nothing more.
    fn ask_library(&mut self) {
        self.learn(false);
        self.agree(LOST, Stage::Number(LOST));
        self.leave();
    }

    /// The numbers of this turn.
    fn here(&self) -> impl Iterator<Item = u64> {
        self.numbers.range(..(self.turn + 1, 0)).map(|(_, &(number, _))| number)
    }

    /// Whether all ranks will ask for the library.
    fn hears_ask(&self) -> bool {
        self.is_broken() || self.here().any(|number| number == LOST)
    }

    /// Ends a step of agreement if possible; returns whether the stage is another.
    fn agreed(&mut self) -> Result<bool, Failed> {
        if !self.answer.1 {
            self.failure()?;
            if matches!(self.stage, Stage::Number(own) if own != LOST) && self.hears_ask() {
                self.ask_library();
                return Ok(true);
            }
        }
        if self.rank == 0 {
            if !self.has_numbers()? {
                return Ok(false);
            }
            match self.stage {
                // The others hear that this rank asks, and ask too.
                Stage::Number(LOST) if self.here().any(|number| number != LOST) => {
                    return Ok(false);
                }
                Stage::Number(LOST) => {
                    self.answer("");
                    self.health = Health::Lost;
                }
                Stage::Number(own) if self.here().any(|number| number != own) => {
                    return Err(DISAGREED);
                }
                Stage::Number(_) => self.stage = Stage::Decide,
                _ => {
                    let all =
                        self.stage == Stage::Serves(true) && self.here().all(|number| number == 1);
                    self.answer(if all { ALL } else { "" });
                    self.stage = if all { Stage::Follow } else { Stage::Library };
                }
            }
            return Ok(true);
        }
        if !self.answer.1 {
            return if self.is_ahead(0) { Err(DISAGREED) } else { Ok(false) };
        }
        let text = std::mem::take(&mut self.answer.0);
        self.enter(self.turn + 1);
        match self.stage {
            Stage::Number(LOST) => self.health = Health::Lost,
            Stage::Number(_) => self.stage = Stage::Plan(text),
            _ if text == ALL => self.stage = Stage::Follow,
            _ => self.stage = Stage::Library,
        }
        Ok(true)
    }

    /// Whether all numbers have arrived.
    ///
    /// # Errors
    /// A rank has ended the turn without a number.
    fn has_numbers(&self) -> Result<bool, Failed> {
        let ahead = (self.turn + 1, 0);
        if self.numbers.range(ahead..).next().is_none()
            && self.failures.range(ahead..).next().is_none()
        {
            return Ok(self.numbers.len() as u32 == self.ranks - 1);
        }
        let missing = |rank: &u32| !self.numbers.contains_key(&(self.turn, *rank));
        let mut missing = (1..self.ranks).filter(missing).peekable();
        let all = missing.peek().is_none();
        if missing.any(|rank| self.is_ahead(rank)) { Err(DISAGREED) } else { Ok(all) }
    }

    /// Whether a word of a later turn shows that a rank has ended this turn.
    fn is_ahead(&self, rank: u32) -> bool {
        let ahead = (self.turn + 1, 0);
        self.numbers.range(ahead..).any(|(&(_, from), _)| from == rank)
            || self.failures.range(ahead..).any(|(&(_, from), _)| from == rank)
    }

    /// # Errors
    /// A rank has failed in this turn, or before in this call.
    fn failure(&self) -> Result<(), Failed> {
        match self.failures.first_key_value() {
            Some((&(turn, _), &(failed, _))) if turn <= self.turn => Err(failed),
            _ => Ok(()),
        }
    }

    /// The first rank's answer, which ends the step.
    fn answer(&mut self, mut text: &str) {
        loop {
            let (part, rest) = text.split_at(text.floor_char_boundary(PART));
            self.say_to_all(&Word::Answer(self.turn, rest.len(), part.to_owned()));
            text = rest;
            if text.is_empty() {
                break;
            }
        }
        self.enter(self.turn + 1);
    }

    fn say_to_all(&mut self, word: &Word) {
        let others = (0..self.ranks).filter(|&rank| rank != self.rank);
        self.out.extend(others.map(|rank| (rank, word.clone())));
    }
}

#[cfg(test)]
mod tests;
