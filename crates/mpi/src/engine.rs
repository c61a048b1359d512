//! Drives a rank's exchange over point-to-point messages.

use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;

use crate::symbols as mpi;
use crate::window::Window;
use topocoll::Sync;
use topocoll::exec::{Action, Endpoint, RawBuffers, Token};

use crate::failed::{Failed, check};
use crate::words::{WORDS, Words};

/// The words and the messages of a private communicator, or of the program's.
pub(crate) struct Channel {
    pub(crate) words: Words,
    requests: Requests,
}

/// Messages under way, and their MPI statuses.
#[derive(Default)]
struct Requests {
    open: Vec<mpi::MPI_Request>,
    messages: Vec<Open>,
    ended: Vec<c_int>,
    statuses: Vec<mpi::MPI_Status>,
}

#[derive(Clone, Copy)]
struct Open {
    /// `None` for a message of a barrier.
    token: Option<Token>,
    peer: u32,
    bytes: u64,
    received: bool,
}

/// The tag of barriers, below those of words.
const BARRIER: u32 = WORDS - 1;

/// Tags of steps, below that of barriers: every MPI supports them. Messages between the same two ranks
/// keep their order.
const TAGS: u32 = BARRIER;

/// Tests for completion of all messages between tests for words and for failed messages.
const LOOKS: u32 = 64;

impl Channel {
    pub(crate) fn new(words: Words) -> Self {
        Self { words, requests: Requests::default() }
    }

    /// Runs the exchange that `endpoint` and the words have begun. `rank_of` maps ranks of the
    /// schedule to ranks of the communicator. With a window, messages inside the node pass through it.
    /// All ranks have the same synchronization between steps.
    ///
    /// # Errors
    /// MPI's error code, with which to give up.
    ///
    /// # Safety
    /// The memories have the sizes that the endpoint requires, and nothing else uses them.
    pub(crate) unsafe fn exchange(
        &mut self,
        endpoint: &mut Endpoint,
        buffers: RawBuffers,
        rank_of: impl Fn(u32) -> u32,
        sync: Sync,
        mut window: Option<&mut Window>,
    ) -> Result<(), Failed> {
        let own = window.as_deref_mut();
        // SAFETY: the caller's promise.
        let outcome = unsafe { self.run(endpoint, buffers, rank_of, sync, own) };
        if outcome.is_err() {
            endpoint.cancel();
            window.into_iter().for_each(Window::abandon);
        }
        outcome
    }

    /// # Safety
    /// As [`exchange`](Self::exchange).
    unsafe fn run(
        &mut self,
        endpoint: &mut Endpoint,
        buffers: RawBuffers,
        rank_of: impl Fn(u32) -> u32,
        sync: Sync,
        mut window: Option<&mut Window>,
    ) -> Result<(), Failed> {
        self.words.protocol.look()?;
        loop {
            let Some(action) = endpoint.poll_in_step()? else {
                if sync == Sync::Barrier {
                    self.barrier(endpoint, &rank_of)?;
                }
                continue;
            };
            match action {
                Action::Copy(copy) => endpoint.pieces(copy, |from, to| {
                    // SAFETY: both lie in memories of the sizes that the endpoint requires and belong
                    // to no message under way. `copy` allows them to overlap.
                    unsafe { ptr::copy(buffers.at(from), buffers.at(to), from.bytes as usize) }
                }),
                action @ (Action::Send(message) | Action::Receive(message)) => {
                    let (peer, received) =
                        (rank_of(message.peer.0), matches!(action, Action::Receive(_)));
                    let inside = window.as_deref_mut().and_then(|w| Some((w.local(peer)?, w)));
                    let (at, bytes) = (buffers.at(message.region), message.region.bytes);
                    // SAFETY: the region lies in its memory and stays until the message completes; if
                    // it is received, it belongs to the message until then.
                    unsafe {
                        match inside {
                            None => {
                                let open =
                                    Open { token: Some(message.token), peer, bytes, received };
                                self.post(open, at, message.tag % TAGS)?;
                            }
                            Some((local, window)) => {
                                window.start(local, received, message.token, at, bytes);
                            }
                        }
                    }
                }
                Action::Wait => self.wait(endpoint, window.as_deref_mut())?,
                Action::Done => return Ok(()),
            }
        }
    }

    /// # Safety
    /// The message's bytes at `at` stay there until it completes; its peer is a rank of the
    /// communicator.
    unsafe fn post(&mut self, open: Open, at: *mut u8, tag: u32) -> Result<(), Failed> {
        let comm = self.words.comm;
        let (bytes, peer, at, tag) = (open.bytes, open.peer as c_int, at.cast(), tag as c_int);
        // SAFETY: statics of the MPI library; the caller's promise; MPI keeps a freed datatype
        // while its message is under way.
        unsafe {
            let (count, mut datatype) = match c_int::try_from(bytes) {
                Ok(count) => (count, mpi::RSMPI_UINT8_T),
                Err(_) => (1, long(bytes)?),
            };
            let mut request = mpi::RSMPI_REQUEST_NULL;
            let code = if open.received {
                mpi::PMPI_Irecv(at, count, datatype, peer, tag, comm, &raw mut request)
            } else {
                mpi::PMPI_Isend(at, count, datatype, peer, tag, comm, &raw mut request)
            };
            if code == 0 {
                self.requests.open.push(request);
                self.requests.messages.push(open);
            }
            if datatype != mpi::RSMPI_UINT8_T {
                mpi::PMPI_Type_free(&raw mut datatype);
            }
            check(code)
        }
    }

    /// Waits until all ranks are at the begin of the step, by empty messages: `MPI_Barrier` cannot be
    /// left when a rank fails, and `MPI_Ibarrier` takes longer than these.
    fn barrier(
        &mut self,
        endpoint: &mut Endpoint,
        rank_of: impl Fn(u32) -> u32,
    ) -> Result<(), Failed> {
        let plan = Arc::clone(endpoint.plan());
        for (to, from) in plan.barrier_rounds() {
            for (peer, received) in [(from, true), (to, false)] {
                let open = Open { token: None, peer: rank_of(peer.0), bytes: 0, received };
                // SAFETY: a message of no bytes has no memory.
                unsafe { self.post(open, ptr::null_mut(), BARRIER)? };
            }
            self.wait(endpoint, None)?;
        }
        Ok(())
    }

    /// Waits for the messages under way, all of which the step needs, and completes them.
    fn wait(
        &mut self,
        endpoint: &mut Endpoint,
        mut window: Option<&mut Window>,
    ) -> Result<(), Failed> {
        let mut looks = 0;
        loop {
            let mut is_busy = false;
            if let Some(window) = &mut window {
                window.progress(endpoint)?;
                is_busy = window.is_busy();
            }
            if self.requests.open.is_empty() && !is_busy {
                return Ok(());
            }
            looks += 1;
            let is_look = looks % LOOKS == 0;
            self.requests.complete_ended(endpoint, !is_look)?;
            if is_look {
                // MPI makes progress here, and yields the processor if it is told to.
                self.words.listen()?;
                self.words.protocol.look()?;
            }
        }
    }

    /// Ends the messages under way when this rank or another has failed, and tells the others.
    /// Receives are cancelled, or complete if their message has arrived. Then this rank has left.
    /// Sends complete, or are abandoned if their receiver has left. Afterwards the caller may reuse
    /// the memories.
    ///
    /// Returns false if MPI may still read the memory of an abandoned send.
    pub(crate) fn give_up(&mut self, failed: Failed) -> bool {
        let Self { words, requests } = self;
        words.fail(failed);
        requests.retain(is_open);
        let both = requests.open.iter_mut().zip(&requests.messages);
        for (request, _) in both.filter(|(_, message)| message.received) {
            // SAFETY: a handle that MPI gave and has not freed.
            unsafe { mpi::PMPI_Cancel(request) };
        }
        let mut ends = Ok(());
        while ends.is_ok() && requests.messages.iter().any(|message| message.received) {
            ends = requests.end_some(words);
        }
        words.leave();
        let mut all = true;
        while !requests.open.is_empty() {
            ends = ends.and_then(|()| requests.end_some(words));
            requests.retain(|mut request, message| {
                let waits = ends.is_ok() && !words.protocol.has_left(message.peer);
                if !waits {
                    // SAFETY: a handle that MPI gave and has not freed.
                    unsafe { mpi::PMPI_Request_free(&raw mut request) };
                    all = false;
                }
                waits
            });
        }
        all
    }
}

/// A datatype of more bytes than an int counts.
fn long(bytes: u64) -> Result<mpi::MPI_Datatype, Failed> {
    const PIECE: u64 = 1 << 30;
    let begins = || (0..bytes).step_by(PIECE as usize);
    let lengths: Vec<c_int> = begins().map(|at| PIECE.min(bytes - at) as c_int).collect();
    let places: Vec<mpi::MPI_Aint> = begins().map(|at| at as mpi::MPI_Aint).collect();
    // SAFETY: equally many lengths and places, and a place for the answer.
    unsafe {
        let mut datatype = mpi::RSMPI_DATATYPE_NULL;
        let (count, byte) = (lengths.len() as c_int, mpi::RSMPI_UINT8_T);
        let (lengths, places) = (lengths.as_ptr(), places.as_ptr());
        check(mpi::PMPI_Type_create_hindexed(count, lengths, places, byte, &raw mut datatype))?;
        check(mpi::PMPI_Type_commit(&raw mut datatype))?;
        Ok(datatype)
    }
}

impl Requests {
    /// Completes the messages that have ended; with `all` only if all have.
    fn complete_ended(&mut self, endpoint: &mut Endpoint, all: bool) -> Result<(), Failed> {
        if self.open.is_empty() {
            return Ok(());
        }
        let (code, ended) = self.ended(all);
        self.checked(code, ended)?;
        for i in 0..ended {
            self.complete(endpoint, self.ended[i] as usize, i)?;
        }
        if ended > 0 {
            self.retain(is_open);
        }
        Ok(())
    }

    /// Asks MPI which messages have ended, or whether all have: its code, and how many.
    fn ended(&mut self, all: bool) -> (c_int, usize) {
        let (count, mut some) = (self.open.len(), 0);
        self.ended.resize(count, 0);
        // SAFETY: a status is plain numbers; then three arrays of `count`.
        let code = unsafe {
            self.statuses.resize(count, std::mem::zeroed());
            let (open, ended) = (self.open.as_mut_ptr(), self.ended.as_mut_ptr());
            let (count, statuses) = (count as c_int, self.statuses.as_mut_ptr());
            if all {
                mpi::PMPI_Testall(count, open, &raw mut some, statuses)
            } else {
                mpi::PMPI_Testsome(count, open, &raw mut some, ended, statuses)
            }
        };
        if all && (some != 0 || code != 0) {
            (0..).zip(&mut self.ended).for_each(|(i, ended)| *ended = i);
            some = count as c_int;
        }
        (code, some.max(0) as usize)
    }

    /// Forgets all other messages.
    fn retain(&mut self, mut is_kept: impl FnMut(mpi::MPI_Request, Open) -> bool) {
        let mut kept = 0;
        for i in 0..self.open.len() {
            if is_kept(self.open[i], self.messages[i]) {
                self.open.swap(kept, i);
                self.messages.swap(kept, i);
                kept += 1;
            }
        }
        self.open.truncate(kept);
        self.messages.truncate(kept);
    }

    /// The error in a call's code, or in one of its statuses.
    fn checked(&self, code: c_int, statuses: usize) -> Result<(), Failed> {
        if code == mpi::MPI_ERR_IN_STATUS as c_int {
            let pending = mpi::MPI_ERR_PENDING as c_int;
            let mut codes = self.statuses[..statuses].iter().map(|status| status.MPI_ERROR);
            let failed = codes.find(|&code| code != 0 && code != pending);
            return Err(Failed(failed.unwrap_or(code)));
        }
        check(code)
    }

    /// Completes a message that has ended, by its status.
    fn complete(
        &self,
        endpoint: &mut Endpoint,
        message: usize,
        status: usize,
    ) -> Result<(), Failed> {
        let open = self.messages[message];
        let Some(token) = open.token else { return Ok(()) };
        let mut bytes = open.bytes;
        if open.received {
            let mut count = 0;
            // SAFETY: MPI has written the status.
            check(unsafe {
                let status = &raw const self.statuses[status];
                mpi::PMPI_Get_elements_x(status, mpi::RSMPI_UINT8_T, &raw mut count)
            })?;
            bytes = count as u64;
        }
        endpoint.complete(token, bytes).map_err(Failed::from)
    }

    /// Forgets messages that have succeeded or failed, and hears words.
    fn end_some(&mut self, words: &mut Words) -> Result<(), Failed> {
        let (code, ended) = self.ended(false);
        if code != mpi::MPI_ERR_IN_STATUS as c_int {
            check(code)?;
        }
        for &message in &self.ended[..ended] {
            // SAFETY: a constant.
            self.open[message as usize] = unsafe { mpi::RSMPI_REQUEST_NULL };
        }
        self.retain(is_open);
        words.listen()
    }
}

/// Whether MPI has not freed a request.
fn is_open(request: mpi::MPI_Request, _: Open) -> bool {
    // SAFETY: a constant.
    request != unsafe { mpi::RSMPI_REQUEST_NULL }
}
