//! The state of a communicator: its ranks, its decisions, and exchanges that follow them.

mod deciding;
mod made;

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::symbols::{self as mpi, keep};
use topocoll::Collective;

use super::blocks::Blocks;
use super::course::{Calls, Course};
use super::group::{Group, Name};
use super::ours::{Ours, Subject};
use super::place::Place;
use super::process::is_traced;
use super::report;
use super::trial::Trial;
use super::vector::{
    Exchange, Memory, Side, Sizes, Vector, exchange_vector, keeps_input, perform, rank_of,
};
use crate::engine::Channel;
use crate::failed::Failed;
use crate::protocol::{DISAGREED, Sample, Stage};
use crate::window::Window;

/// The state of one communicator of the program.
pub(crate) struct Communicator {
    /// Our messages, on a communicator of the same ranks for them only, or on the program's.
    channel: Channel,
    rank: u32,
    ranks: u32,
    label: String,
    group: Group,
    name: Name,
    /// Only on the first rank, which decides; otherwise empty.
    places: Vec<Place>,
    /// By a subject's number.
    decided: BTreeMap<u64, Decided>,
    memory: Memory,
    /// Made when a schedule is first planned that uses it.
    window: Option<Window>,
    /// Whether words or messages may be under way for ever, so that the number of the program's communicator stays.
    stays: bool,
}

/// The state of a communicator, as its calls share it.
pub(crate) type Shared = Arc<Mutex<Communicator>>;

/// A decision, at first for the library's call: the same on all ranks except the trial.
#[derive(Default)]
struct Decided {
    /// Schedules that may perform calls; candidate 0 is the library.
    schedules: Vec<Exchange>,
    course: Course,
    /// On the first rank, if measurement decides: the trial, and the schedules as told.
    trial: Option<(Trial, Vec<Ours>)>,
}

/// Who performs a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Done {
    /// An exchange of ours has.
    Ours,
    /// The library; with a call whose time matters.
    Library(Option<Timed>),
}

/// A call of the library whose time matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Timed {
    subject: Subject,
    turn: Calls,
    bytes: u64,
}

// SAFETY: handles of MPI, which any thread may use, one at a time, as the mutex ensures.
unsafe impl Send for Communicator {}

impl Drop for Communicator {
    fn drop(&mut self) {
        self.channel.words.free();
    }
}

impl Communicator {
    /// Its processes, its name, and whether it is unusable.
    pub(crate) fn identity(&self) -> (Group, Name, bool) {
        (self.group.clone(), self.name, self.channel.words.protocol.is_broken())
    }

    pub(crate) fn rank(&self) -> u32 {
        self.rank
    }

    pub(crate) fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The shape of the machine; only on the first rank.
    pub(crate) fn shape(&self) -> String {
        self.places.first().map(Place::shape).unwrap_or_default()
    }

    /// Proposes schedules for a subject, as a trial does: how many on all ranks, and which on the first.
    pub(crate) fn propose(&mut self, subject: Subject) -> Result<(usize, Vec<Ours>), Failed> {
        self.agreed(subject, |_| Ok(()), None)?;
        let decided = self.decided.get(&subject.number()).ok_or(UNDECIDED)?;
        let ours = decided.trial.as_ref().map_or_else(Vec::new, |(_, ours)| ours.clone());
        Ok((decided.schedules.len(), ours))
    }

    /// Lets a candidate perform all next calls of a subject; all ranks call it.
    pub(crate) fn perform_by(&mut self, subject: Subject, candidate: usize) -> Result<(), Failed> {
        let decided = self.decided.get_mut(&subject.number()).ok_or(UNDECIDED)?;
        decided.course = Course::new(&[Calls::always(candidate)]);
        Ok(())
    }

    /// The communicator of our messages.
    pub(crate) fn comm(&self) -> mpi::MPI_Comm {
        self.channel.words.comm
    }

    /// Exchanges blocks if the decision is ours. `taken` tells whether the library accepts the
    /// arguments.
    ///
    /// # Errors
    /// MPI's error code.
    ///
    /// # Safety
    /// If the library accepts the arguments, the buffers have the blocks: one for each rank, and in
    /// an all-gather one to send. In place, there are no blocks to send. Blocks whose size the
    /// arguments do not give are `None`.
    pub(crate) unsafe fn exchange(
        &mut self,
        operation: Collective,
        (send, receive): (Option<Option<Blocks>>, Option<Blocks>),
        taken: impl FnOnce(&Self) -> Result<(), Failed>,
    ) -> Result<Done, Failed> {
        let blocks = send.zip(receive);
        let odd = odd(blocks.map(|(send, receive)| (send.map(|send| send.bytes), receive.bytes)));
        let sizes = [receive, send.flatten()].into_iter().flatten();
        let sizes = sizes.map(|blocks| Sizes::equal(blocks.bytes, self.ranks));
        let subject = self.subject(operation, false, sizes);
        let sent = if operation == Collective::AllToAll { self.ranks } else { 1 };
        let bytes = receive.map_or(0, |receive| receive.bytes.saturating_mul(u64::from(sent)));
        self.performed_by(subject, bytes, taken, odd, |own, turn| {
            let (send, receive) = blocks.ok_or(UNDECIDED)?;
            // SAFETY: the caller's promise.
            unsafe { own.exchange_equal(subject, turn, send, receive) }
        })
    }

    /// Agrees on who performs a call, and exchanges with `exchange` if it is a schedule of ours.
    fn performed_by(
        &mut self,
        subject: Subject,
        bytes: u64,
        taken: impl FnOnce(&Self) -> Result<(), Failed>,
        odd: Option<Stage>,
        exchange: impl FnOnce(&mut Self, Calls) -> Result<(), Failed>,
    ) -> Result<Done, Failed> {
        let Some(turn) = self.agreed(subject, taken, odd)? else { return Ok(FORWARDED) };
        let timed = (turn.timed || is_traced(self.rank)).then_some(Timed { subject, turn, bytes });
        if turn.candidate == 0 {
            return Ok(Done::Library(timed));
        }
        let begin = Instant::now();
        let outcome = exchange(self, turn);
        if self.ended(outcome)?.is_none() {
            return Ok(FORWARDED);
        }
        timed.into_iter().for_each(|call| self.performed(call, begin));
        Ok(Done::Ours)
    }

    /// The subject of blocks of one of these sizes: they differ if arguments are wrong, and other ranks
    /// have decided about theirs.
    fn subject(
        &self,
        operation: Collective,
        vector: bool,
        mut sizes: impl Iterator<Item = Sizes> + Clone,
    ) -> Subject {
        let subject = |sizes| Subject { operation, vector, sizes };
        let is_decided = |&sizes: &Sizes| self.decided.contains_key(&subject(sizes).number());
        let sizes = sizes.clone().find(is_decided).or_else(|| sizes.next());
        subject(sizes.unwrap_or(Sizes::Unknown))
    }

    /// # Safety
    /// The buffers have the blocks.
    unsafe fn exchange_equal(
        &mut self,
        subject: Subject,
        turn: Calls,
        send: Option<Blocks>,
        receive: Blocks,
    ) -> Result<(), Failed> {
        let (bytes, operation) = (receive.bytes, subject.operation);
        let planned = schedule(&mut self.decided, subject, turn)?;
        let Exchange { endpoint, order, window, sync } = planned;
        let window = self.window.as_mut().filter(|_| *window);
        let receive = receive.placed()?;
        let from = send.map_or(Ok(receive), Blocks::placed)?;
        endpoint.begin(bytes);
        let (rank_of, begin) =
            (rank_of(order.as_deref()), |i: u32| (u64::from(i) * bytes) as usize);
        let first = match operation {
            Collective::AllGather if send.is_none() => self.rank,
            _ => 0,
        };
        let direct = order.is_none() || operation == Collective::AllGather;
        let row = (from.plain && send.is_some() && direct).then(|| from.data());
        let block = |i| (from, first + if direct { i } else { rank_of(i) }, begin(i));
        let input = Side { row, block };
        let in_row = receive.plain && order.is_none() && !keeps_input(operation, send.is_none());
        let block = |i| (receive, rank_of(i), begin(i));
        let output = Side { row: in_row.then(|| receive.data()), block };
        let kept = (&mut self.channel, &mut self.memory);
        // SAFETY: the caller's promise.
        unsafe { perform(endpoint, &input, &output, kept, rank_of, *sync, window) }
    }

    /// Exchanges blocks of several sizes if the decision is ours. An all-to-all uses the rank's own
    /// counts; an all-gather uses counts that all ranks know.
    ///
    /// # Errors
    /// MPI's error code.
    ///
    /// # Safety
    /// As [`Communicator::exchange`].
    pub(crate) unsafe fn exchange_vector(
        &mut self,
        operation: Collective,
        (send, receive): (Option<Option<Vector>>, Option<Vector>),
        taken: impl FnOnce(&Self) -> Result<(), Failed>,
    ) -> Result<Done, Failed> {
        let rank = self.rank as usize;
        let own = if operation == Collective::AllToAll { rank } else { 0 };
        let odd = odd(send
            .as_ref()
            .zip(receive.as_ref())
            .map(|(send, receive)| (send.as_ref().map(|send| send.size(own)), receive.size(rank))));
        let sizes = match operation {
            Collective::AllToAll => [Some(Sizes::Own), None],
            Collective::AllGather => [&receive, send.as_ref().unwrap_or(&None)]
                .map(|blocks| Some(Sizes::known(&blocks.as_ref()?.sizes()))),
        };
        let likely = if odd.is_none() { 1 } else { 2 };
        let subject = self.subject(operation, true, sizes.into_iter().flatten().take(likely));
        let blocks = send.zip(receive);
        let bytes = match &blocks {
            Some((Some(send), _)) => send.all_bytes(),
            Some((None, receive)) => receive.all_bytes(),
            None => 0,
        };
        self.performed_by(subject, bytes, taken, odd, |own, turn| {
            let (send, receive) = blocks.ok_or(UNDECIDED)?;
            let exchange = schedule(&mut own.decided, subject, turn)?;
            let window = own.window.as_mut().filter(|_| exchange.window);
            let kept = (&mut own.channel, &mut own.memory);
            // SAFETY: the caller's promise.
            unsafe { exchange_vector(exchange, send, receive, kept, window) }
        })
    }

    /// Whether the library performs an all-to-all of blocks of several sizes, and its time does not
    /// matter: then the call is counted, and its blocks need no look.
    pub(crate) fn forwards_vector(&mut self) -> bool {
        let (operation, vector, sizes) = (Collective::AllToAll, true, Sizes::Own);
        if self.channel.words.protocol.is_lost() {
            return true;
        }
        let number = Subject { operation, vector, sizes }.number();
        let Some(Decided { course, .. }) = self.decided.get_mut(&number) else { return false };
        let forwards = course.turn().is_some_and(|turn| turn.candidate == 0 && !turn.timed)
            && !is_traced(self.rank);
        if forwards {
            course.count();
        }
        forwards
    }

    /// Takes the time of a call that has ended.
    pub(crate) fn performed(&mut self, call: Timed, begin: Instant) {
        let Timed { subject, turn, bytes } = call;
        let nanoseconds = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let sample = Sample { nanoseconds, bytes };
        if turn.timed
            && let Some(decided) = self.decided.get_mut(&subject.number())
        {
            decided.course.time(sample);
        }
        if is_traced(self.rank) {
            report::count(&self.shape(), &subject.to_string(), turn, sample);
        }
    }

    /// Agrees with all ranks on who performs a call, if that is not decided: the turn, or `None` if the
    /// library performs it and its time does not matter. `odd` is the reason why this rank cannot
    /// exchange, even if the library accepts the arguments.
    fn agreed(
        &mut self,
        subject: Subject,
        taken: impl FnOnce(&Self) -> Result<(), Failed>,
        odd: Option<Stage>,
    ) -> Result<Option<Calls>, Failed> {
        if self.channel.words.protocol.is_lost() {
            return Ok(None);
        }
        let number = subject.number();
        // Counted even if the call fails: all ranks count the same calls.
        let turn = self.turn(number);
        if turn.is_some_and(|turn| turn.candidate == 0) {
            return Ok(turn);
        }
        // If the library performs all calls, other ranks are in its call already.
        if subject.sizes == Sizes::Unknown && self.is_at_library() {
            return Ok(None);
        }
        let ask = match (taken(self), odd) {
            (Err(failed), _) => Stage::Failed(failed.class()),
            (Ok(()), Some(odd)) => odd,
            (Ok(()), None) if turn.is_some() => Stage::Follow,
            (Ok(()), None) => Stage::Number(number),
        };
        let settled = self.decided.get(&number).filter(|_| turn.is_none());
        let report = settled.map_or_else(Vec::new, |decided| decided.course.samples().to_vec());
        self.channel.words.protocol.begin(ask, report);
        let follows = self.follows(subject);
        self.ended(follows)?;
        if self.channel.words.protocol.is_lost() {
            return Ok(None);
        }
        if turn.is_some() {
            return Ok(turn);
        }
        self.turn(number).map(Some).ok_or(UNDECIDED)
    }

    /// The turn of a call, which is counted; `None` if the ranks must decide.
    fn turn(&mut self, number: u64) -> Option<Calls> {
        let course = &mut self.decided.get_mut(&number)?.course;
        course.turn().inspect(|_| course.count())
    }

    /// Whether the library performs the next calls of all decided subjects.
    fn is_at_library(&mut self) -> bool {
        let mut turns = self.decided.values_mut().map(|decided| decided.course.turn()).peekable();
        turns.peek().is_some() && turns.all(|turn| turn.is_some_and(|turn| turn.candidate == 0))
    }

    /// After an error, tells all other ranks, and abandons the messages under way. `None` if the library
    /// performs the call after all.
    fn ended<T>(&mut self, outcome: Result<T, Failed>) -> Result<Option<T>, Failed> {
        let ended = outcome.map(Some).or_else(|failed| {
            if !self.channel.give_up(failed) {
                std::mem::forget(std::mem::take(&mut self.memory));
            }
            self.channel.words.next().map(|_| None).map_err(|_| failed)
        });
        self.memory.trim();
        if self.channel.words.protocol.is_broken() && !std::mem::replace(&mut self.stays, true) {
            // The state may stay until MPI is finalized.
            self.memory = Memory::default();
            if let Some(keep) = keep() {
                // SAFETY: the communicator of the call.
                unsafe { keep(self.comm()) };
            }
        }
        ended
    }
}

/// Why a rank cannot exchange, by the bytes of its own block: sent, unless it is in place, and
/// received; `None` for arguments that the library must refuse. It may accept different ones, or hang.
fn odd(own: Option<(Option<u64>, u64)>) -> Option<Stage> {
    let Some((sent, received)) = own else { return Some(Stage::Library) };
    sent.filter(|&sent| sent != received).map(|_| Stage::Failed(DISAGREED))
}

/// Agreement on a subject decides it.
const UNDECIDED: Failed = Failed(mpi::MPI_ERR_INTERN as c_int);

/// The library performs a call whose time does not matter.
pub(crate) const FORWARDED: Done = Done::Library(None);

/// The schedule of a turn.
fn schedule(
    decided: &mut BTreeMap<u64, Decided>,
    subject: Subject,
    turn: Calls,
) -> Result<&mut Exchange, Failed> {
    let decided = decided.get_mut(&subject.number()).ok_or(UNDECIDED)?;
    decided.schedules.get_mut(turn.candidate.wrapping_sub(1)).ok_or(UNDECIDED)
}
