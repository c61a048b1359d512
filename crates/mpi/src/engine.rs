//! Drives a rank's exchange over point-to-point messages.

use std::ffi::c_int;
use std::ptr;

use mpi_sys as mpi;
use topocoll::exec::{Action, Buffer, Message, RankMachine, Region, Token};

use crate::failed::{Failed, check};

/// The memories of an exchange.
#[derive(Clone, Copy)]
pub(crate) struct Memories {
    pub(crate) input: *const u8,
    pub(crate) output: *mut u8,
    pub(crate) work: *mut u8,
}

impl Memories {
    /// # Safety
    /// The region lies in its buffer.
    unsafe fn at(self, region: Region) -> *mut u8 {
        let first = match region.buffer {
            Buffer::Input => self.input.cast_mut(),
            Buffer::Output => self.output,
            Buffer::Work => self.work,
        };
        // SAFETY: the caller's promise.
        unsafe { first.add(region.offset as usize) }
    }
}

/// Messages that are under way, and what `MPI_Waitall` says of them.
#[derive(Default)]
pub(crate) struct Requests {
    open: Vec<mpi::MPI_Request>,
    messages: Vec<Open>,
    statuses: Vec<mpi::MPI_Status>,
}

#[derive(Clone, Copy)]
struct Open {
    token: Token,
    bytes: u64,
    received: bool,
}

/// Tags that every MPI has; messages between the same two ranks keep their order.
const TAGS: u32 = 1 << 15;

/// Runs the exchange that `machine` has begun; `rank_of` numbers the schedule's ranks in `comm`.
///
/// # Errors
/// MPI's error code. What is under way then is withdrawn where MPI can.
///
/// # Safety
/// The memories have the sizes that the machine asks for, and nobody else uses them; `comm` is ours
/// alone, and its errors return.
pub(crate) unsafe fn exchange(
    machine: &mut RankMachine,
    memories: Memories,
    comm: mpi::MPI_Comm,
    rank_of: impl Fn(u32) -> u32,
    requests: &mut Requests,
) -> Result<(), Failed> {
    // SAFETY: the caller's promise.
    let outcome = unsafe { run(machine, memories, comm, rank_of, requests) };
    if outcome.is_err() {
        machine.cancel();
        requests.withdraw();
    }
    outcome
}

/// # Safety
/// As [`exchange`].
unsafe fn run(
    machine: &mut RankMachine,
    memories: Memories,
    comm: mpi::MPI_Comm,
    rank_of: impl Fn(u32) -> u32,
    requests: &mut Requests,
) -> Result<(), Failed> {
    loop {
        match machine.poll().map_err(Failed::from)? {
            Action::Copy(copy) => machine.pieces(copy, |from, to| {
                // SAFETY: both lie in memories of the sizes that the machine asks for and belong to
                // no message under way. `copy` allows them to overlap.
                unsafe { ptr::copy(memories.at(from), memories.at(to), from.bytes as usize) }
            }),
            Action::Send(message) => {
                let peer = rank_of(message.peer.0);
                // SAFETY: the region lies in its memory and stays until the message completes.
                unsafe { requests.start(message, false, memories, peer, comm)? }
            }
            Action::Receive(message) => {
                let peer = rank_of(message.peer.0);
                // SAFETY: the same, and the region belongs to the message until then.
                unsafe { requests.start(message, true, memories, peer, comm)? }
            }
            Action::Wait => requests.wait(machine)?,
            Action::Done => return Ok(()),
        }
    }
}

impl Requests {
    /// # Safety
    /// The message's region lies in its memory and stays there until it completes; `peer` is a rank
    /// of `comm`.
    unsafe fn start(
        &mut self,
        message: Message,
        received: bool,
        memories: Memories,
        peer: u32,
        comm: mpi::MPI_Comm,
    ) -> Result<(), Failed> {
        let bytes = message.region.bytes;
        let count = c_int::try_from(bytes).expect("bug: a message of 2 GiB");
        let (peer, tag) = (peer as c_int, (message.tag % TAGS) as c_int);
        // SAFETY: statics that MPI's own compiler has written; the caller's promise.
        let code = unsafe {
            let mut request = mpi::RSMPI_REQUEST_NULL;
            let (at, byte) = (memories.at(message.region).cast(), mpi::RSMPI_UINT8_T);
            let code = if received {
                mpi::PMPI_Irecv(at, count, byte, peer, tag, comm, &raw mut request)
            } else {
                mpi::PMPI_Isend(at, count, byte, peer, tag, comm, &raw mut request)
            };
            if code == 0 {
                self.open.push(request);
                self.messages.push(Open { token: message.token, bytes, received });
            }
            code
        };
        check(code)
    }

    /// Waits for the messages that are under way, all of which the step needs, and completes them.
    fn wait(&mut self, machine: &mut RankMachine) -> Result<(), Failed> {
        let count = self.open.len();
        // SAFETY: a status is plain numbers.
        self.statuses.resize(count, unsafe { std::mem::zeroed() });
        let (open, statuses) = (self.open.as_mut_ptr(), self.statuses.as_mut_ptr());
        // SAFETY: two arrays of `count`.
        let code = unsafe { mpi::PMPI_Waitall(count as c_int, open, statuses) };
        if code == mpi::MPI_ERR_IN_STATUS as c_int {
            let pending = mpi::MPI_ERR_PENDING as c_int;
            let mut codes = self.statuses.iter().map(|status| status.MPI_ERROR);
            return Err(Failed(codes.find(|&code| code != 0 && code != pending).unwrap_or(code)));
        }
        check(code)?;
        for (open, status) in self.messages.drain(..).zip(&self.statuses) {
            let mut bytes = open.bytes;
            if open.received {
                let mut count = 0;
                // SAFETY: a status that MPI has written.
                check(unsafe { mpi::PMPI_Get_count(status, mpi::RSMPI_UINT8_T, &raw mut count) })?;
                bytes = count as u64;
            }
            machine.complete(open.token, bytes).map_err(Failed::from)?;
        }
        self.open.clear();
        Ok(())
    }

    /// Cancels receives and lets go of sends, whose memory MPI may still read.
    fn withdraw(&mut self) {
        for (request, message) in self.open.iter_mut().zip(&self.messages) {
            // SAFETY: handles that MPI gave; those it has freed it has set to null.
            unsafe {
                if *request == mpi::RSMPI_REQUEST_NULL {
                    continue;
                }
                if message.received {
                    mpi::PMPI_Cancel(request);
                }
                mpi::PMPI_Request_free(request);
            }
        }
        self.open.clear();
        self.messages.clear();
    }
}
