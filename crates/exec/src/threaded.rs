mod lane;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder};
use topocoll_schedule::Sync;

use crate::endpoint::begin_all;
use crate::queue::Queue;
use crate::turn::Turn;
use crate::{
    Action, BlockSizes, Buffer, Endpoint, EndpointMessage, ExecError, Memory, Plan, StepFault,
};

use lane::{Desk, Envelope, Lane, Payload, keep};

/// Many ranks on few threads.
///
/// A rank runs in one thread at a time until it waits. A message goes to its receiver's inbox and
/// wakes the receiver. Blocks of the input, which is only read, are lent to the receiver and copied
/// once, to their place; a packed message passes through a buffer of its own.
///
/// # Memory
/// Buffers exist only while their messages are under way. Ranks in lower steps go first, and of
/// those the one that was sent to last, so that in an exchange along rings or between pairs few
/// messages are under way at once. With [`Sync::Barrier`] no more than those of one step are.
#[derive(Debug)]
pub struct ThreadedDriver {
    endpoints: Vec<Endpoint>,
    /// Registers behind each rank's output.
    work: Vec<Vec<u8>>,
    desks: Vec<Desk>,
    /// Shared by the threads; kept between exchanges for their memory.
    inboxes: Vec<Mutex<Vec<Envelope>>>,
    turns: Vec<Turn>,
    roll: Mutex<Roll>,
    /// Buffers of each thread for packed messages to come.
    spares: Vec<Mutex<Vec<Vec<u8>>>>,
    /// The threads beside the caller's, which sleep between exchanges; started by the first that
    /// wants them, and in another process again.
    others: Option<(u32, ThreadPool)>,
    sync: Sync,
}

/// Bytes of blocks that keep a thread busy for longer than it takes to wake it and to pass it
/// messages: `cargo bench --bench exec` shows where two threads overtake one.
const THREAD_BYTES: u128 = 2 << 20;

/// The number of threads that speeds up an exchange of `bytes`, the blocks of all ranks together.
#[must_use]
pub fn worthwhile_threads(bytes: u128) -> usize {
    usize::try_from(bytes / THREAD_BYTES).unwrap_or(usize::MAX).max(1)
}

/// How long an exchange took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Timed {
    /// From its start to its end; the threads that it takes are there before.
    pub elapsed: Duration,
    /// The most bytes of messages under way at once.
    pub most_under_way: u64,
}

/// Ranks that may run, and threads that run them.
#[derive(Debug, Default)]
struct Roll {
    queue: Queue,
    running: usize,
    /// Threads that wait for a rank to run: only they need a call to wake.
    waiting: usize,
    done: usize,
    /// Under barriers, ranks at the begin of a step that others have not come to, with the step.
    at_barrier: Vec<(usize, usize)>,
    failed: Option<ExecError>,
}

struct Shared<'m> {
    lanes: Vec<Mutex<Lane<'m>>>,
    inboxes: &'m [Mutex<Vec<Envelope>>],
    turns: &'m [Turn],
    roll: &'m Mutex<Roll>,
    sync: Sync,
    changed: Condvar,
    inputs: Vec<&'m [u8]>,
    /// Bytes of packed messages that have been sent and are not yet unpacked, and the most so far.
    under_way: AtomicU64,
    most_under_way: AtomicU64,
}

/// A poisoned lock is taken: the panic of its thread ends the exchange.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ThreadedDriver {
    /// The driver of these plans, that of rank i at i, or those of the ranks of several groups, group after group,
    /// on at most `threads` threads, the caller's included. Its exchanges are free-running.
    #[must_use]
    pub fn new(plans: Vec<Arc<Plan>>, threads: usize) -> Self {
        let endpoints: Vec<_> = plans.into_iter().map(|plan| Endpoint::new(plan, 0u64)).collect();
        let ranks = endpoints.len();
        let threads = threads.clamp(1, ranks.max(1));
        Self {
            endpoints,
            work: vec![Vec::new(); ranks],
            desks: (0..ranks).map(|_| Desk::default()).collect(),
            inboxes: (0..ranks).map(|_| Mutex::default()).collect(),
            turns: (0..ranks).map(|_| Turn::queued()).collect(),
            roll: Mutex::default(),
            spares: (0..threads).map(|_| Mutex::default()).collect(),
            others: None,
            sync: Sync::Free,
        }
    }

    /// Sets the synchronization between steps of the next exchanges: with barriers no rank begins a
    /// step before all have ended the last one.
    pub fn set_sync(&mut self, sync: Sync) {
        self.sync = sync;
    }

    /// The threads used.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.spares.len()
    }

    /// One exchange: the blocks of each rank follow those of the one before, in the order of the plans, in `input`,
    /// and become the same of `output`.
    ///
    /// # Errors
    /// Buffers of other sizes than the ranks' together, sizes that were planned for other plans, a
    /// schedule whose ends do not agree, or threads that cannot be started.
    pub fn exchange(
        &mut self,
        sizes: impl Into<BlockSizes>,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<Timed, ExecError> {
        self.start_others()?;
        let start = Instant::now();
        begin_all(&mut self.endpoints, sizes)?;
        let Some(first) = self.endpoints.first() else {
            return Ok(Timed { elapsed: start.elapsed(), most_under_way: 0 });
        };
        let endpoints = || self.endpoints.iter();
        let tags = endpoints().map(|endpoint| endpoint.plan().tags()).max().unwrap_or(0);
        for (buffer, bytes, needed) in [
            ("input", input.len(), endpoints().map(Endpoint::input_bytes).sum::<u128>()),
            ("output", output.len(), endpoints().map(Endpoint::output_bytes).sum()),
        ] {
            let bytes = bytes as u128;
            if bytes != needed {
                return Err(ExecError::Buffer { rank: first.rank(), buffer, bytes, needed });
            }
        }
        let mut inputs = Vec::with_capacity(self.endpoints.len());
        let mut lanes = Vec::with_capacity(self.endpoints.len());
        let (mut rest, mut rest_output) = (input, output);
        let parts = self.endpoints.iter_mut().zip(&mut self.work).zip(&mut self.desks);
        for ((endpoint, work), desk) in parts {
            work.resize(endpoint.register_bytes() as usize, 0);
            let (input, output);
            (input, rest) = rest.split_at(endpoint.input_bytes() as usize);
            (output, rest_output) = rest_output.split_at_mut(endpoint.output_bytes() as usize);
            inputs.push(input);
            desk.clear();
            let memory = Memory { input, output, work };
            lanes.push(Mutex::new(Lane { own: lanes.len(), endpoint, memory, desk }));
        }
        lock(&self.roll).open(lanes.len(), tags as usize);
        for (turn, inbox) in self.turns.iter().zip(&self.inboxes) {
            turn.yielded();
            lock(inbox).clear();
        }
        let shared = Shared {
            lanes,
            inboxes: &self.inboxes,
            turns: &self.turns,
            roll: &self.roll,
            sync: self.sync,
            changed: Condvar::new(),
            inputs,
            under_way: AtomicU64::new(0),
            most_under_way: AtomicU64::new(0),
        };
        match &self.others {
            None => shared.work(&self.spares[0]),
            Some((_, others)) => others.in_place_scope(|scope| {
                for spare in &self.spares[1..] {
                    scope.spawn(|_| shared.work(spare));
                }
                shared.work(&self.spares[0]);
            }),
        }
        if let Some(failed) = &lock(shared.roll).failed {
            return Err(failed.clone());
        }
        let most_under_way = shared.most_under_way.load(Ordering::Relaxed);
        Ok(Timed { elapsed: start.elapsed(), most_under_way })
    }

    /// Copies `from` to `to` with the same threads, each a consecutive part: the bandwidth of the
    /// memory.
    ///
    /// # Errors
    /// Threads that cannot be started.
    ///
    /// # Panics
    /// Buffers of different lengths.
    pub fn plain_copy(&mut self, from: &[u8], to: &mut [u8]) -> Result<Duration, ExecError> {
        assert_eq!(from.len(), to.len(), "a plain copy is of equal buffers");
        self.start_others()?;
        let start = Instant::now();
        let Some((_, others)) = &self.others else {
            to.copy_from_slice(from);
            return Ok(start.elapsed());
        };
        let each = from.len().div_ceil(self.threads()).max(1);
        others.in_place_scope(|scope| {
            let mut parts = to.chunks_mut(each).zip(from.chunks(each));
            let own = parts.next();
            for (to, from) in parts {
                scope.spawn(|_| to.copy_from_slice(from));
            }
            if let Some((to, from)) = own {
                to.copy_from_slice(from);
            }
        });
        Ok(start.elapsed())
    }

    /// Starts the threads beside the caller's, if there are to be any and none is there.
    fn start_others(&mut self) -> Result<(), ExecError> {
        let (others, here) = (self.threads() - 1, std::process::id());
        // A child process has no threads of its parent.
        if let Some((_, gone)) = self.others.take_if(|(process, _)| *process != here) {
            std::mem::forget(gone);
        }
        if others > 0 && self.others.is_none() {
            let pool = ThreadPoolBuilder::new()
                .num_threads(others)
                .thread_name(|number| format!("topocoll {number}"));
            let pool = pool.build().map_err(|error| ExecError::Threads {
                threads: others,
                reason: error.to_string(),
            })?;
            self.others = Some((here, pool));
        }
        Ok(())
    }
}

/// Tells the other threads if this one panics, so that none waits for it.
struct Alarm<'s, 'm>(&'s Shared<'m>);

impl Drop for Alarm<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (rank, fault) = (topocoll_topology::Rank(0), StepFault::Stopped);
            let stopped = ExecError::InStep { rank, step: 0, fault };
            lock(self.0.roll).failed.get_or_insert(stopped);
            self.0.changed.notify_all();
        }
    }
}

impl Shared<'_> {
    fn work(&self, spare: &Mutex<Vec<Vec<u8>>>) {
        let _alarm = Alarm(self);
        let mut spare = lock(spare);
        let mut next = self.next(lock(self.roll));
        while let Some(rank) = next {
            let outcome = self.run(rank, &mut spare);
            let mut roll = lock(self.roll);
            roll.running -= 1;
            match outcome {
                Ok(Outcome::Waits) => {}
                Ok(Outcome::Yields(step)) => {
                    self.turns[rank].yielded();
                    roll.queue.push(step, rank);
                }
                Ok(Outcome::Ends(step)) => {
                    self.turns[rank].yielded();
                    roll.at_barrier.push((step, rank));
                }
                Ok(Outcome::Done) => roll.done += 1,
                Err(error) => {
                    roll.failed.get_or_insert(error);
                }
            }
            if roll.passes_barrier(self.lanes.len()) && roll.waiting > 0 {
                self.changed.notify_all();
            }
            next = self.next(roll);
        }
        self.changed.notify_all();
    }

    /// The next rank to run; none when all is over.
    fn next(&self, mut roll: MutexGuard<'_, Roll>) -> Option<usize> {
        loop {
            if roll.failed.is_some() || roll.done == self.lanes.len() {
                return None;
            }
            if let Some(rank) = roll.queue.pop() {
                self.turns[rank].take();
                roll.running += 1;
                return Some(rank);
            }
            if roll.running == 0 {
                roll.failed = Some(self.stalled());
                return None;
            }
            roll.waiting += 1;
            roll = self.changed.wait(roll).unwrap_or_else(PoisonError::into_inner);
            roll.waiting -= 1;
        }
    }

    /// The error when no rank can run and some rank waits.
    fn stalled(&self) -> ExecError {
        let waiting = self.lanes.iter().find_map(|lane| {
            let lane = lock(lane);
            let peer = lane.desk.posted.front()?.peer;
            Some(lane.endpoint.error(StepFault::Stalled { peer }))
        });
        waiting.expect("bug: ranks that wait for nobody")
    }

    /// Runs a rank until it waits, or is at the begin of a step and another that may run is in an
    /// earlier one, or may be under barriers.
    fn run(&self, rank: usize, spare: &mut Vec<Vec<u8>>) -> Result<Outcome, ExecError> {
        let mut lane = lock(&self.lanes[rank]);
        let lane = &mut *lane;
        loop {
            let Some(action) = lane.endpoint.poll_in_step()? else {
                let step = lane.endpoint.step() as usize;
                if self.sync == Sync::Barrier {
                    return Ok(Outcome::Ends(step));
                }
                if lock(self.roll).queue.lowest() < step {
                    return Ok(Outcome::Yields(step));
                }
                continue;
            };
            match action {
                Action::Copy(copy) => lane.copy(copy, self, spare),
                Action::Send(message) => self.send(rank, lane, message, spare)?,
                Action::Receive(message) => lane.desk.posted.push_back(message),
                Action::Wait => {
                    lane.desk.early.extend(lock(&self.inboxes[rank]).drain(..));
                    let step = lane.endpoint.step();
                    if !lane.receive(self, spare)? && self.turns[rank].rest(step) {
                        return Ok(Outcome::Waits);
                    }
                }
                Action::Done => return Ok(Outcome::Done),
            }
        }
    }

    fn send(
        &self,
        rank: usize,
        lane: &mut Lane<'_>,
        message: EndpointMessage,
        spare: &mut Vec<Vec<u8>>,
    ) -> Result<(), ExecError> {
        let payload = if message.staged {
            lane.take_held(message.token)
        } else if message.region.buffer == Buffer::Input {
            Payload::Lent(rank, message.region)
        } else {
            let mut packed = spare.pop().unwrap_or_default();
            packed.extend_from_slice(lane.memory.bytes(message.region));
            Payload::Packed(packed)
        };
        if let Payload::Packed(bytes) = &payload {
            let before = self.under_way.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            self.most_under_way.fetch_max(before + bytes.len() as u64, Ordering::Relaxed);
        }
        let peer = lane.endpoint.plan().place_of(message.peer, rank);
        lock(&self.inboxes[peer]).push(Envelope { from: rank, tag: message.tag, payload });
        lane.endpoint.complete(message.token, message.region.bytes)?;
        if self.turns[peer].notify(message.tag) {
            let mut roll = lock(self.roll);
            roll.queue.push(message.tag as usize, peer);
            if roll.waiting > 0 {
                self.changed.notify_one();
            }
        }
        Ok(())
    }

    fn bytes<'p>(&'p self, payload: &'p Payload) -> &'p [u8] {
        match payload {
            Payload::Lent(rank, region) => &self.inputs[*rank][region.range()],
            Payload::Packed(bytes) => bytes,
        }
    }

    /// Keeps the buffer of a delivered message for the next.
    fn arrived(&self, payload: Payload, spare: &mut Vec<Vec<u8>>) {
        if let Payload::Packed(bytes) = payload {
            self.under_way.fetch_sub(bytes.len() as u64, Ordering::Relaxed);
            keep(bytes, spare);
        }
    }
}

impl Roll {
    fn open(&mut self, ranks: usize, steps: usize) {
        self.queue.reset(ranks, steps);
        self.at_barrier.clear();
        (self.running, self.waiting, self.done, self.failed) = (0, 0, 0, None);
    }

    /// Whether there are ranks at a barrier and no others, except those that are done: then they are
    /// queued.
    fn passes_barrier(&mut self, ranks: usize) -> bool {
        if self.at_barrier.is_empty() || self.at_barrier.len() + self.done < ranks {
            return false;
        }
        while let Some((step, rank)) = self.at_barrier.pop() {
            self.queue.push(step, rank);
        }
        true
    }
}

enum Outcome {
    Waits,
    /// To be queued in this step.
    Yields(usize),
    /// At the barrier before this step.
    Ends(usize),
    Done,
}
