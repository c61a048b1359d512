//! Messages between the ranks of a node through a shared window of MPI.
//!
//! Each rank has a mailbox for each other rank of its node: a ring of bytes, which one rank writes and
//! one reads. A message is its length and its bytes, in as many pieces as there is room for, so
//! messages of any size pass. Head and tail are atomic counters of bytes: a writer publishes bytes by
//! its head, a reader frees them by its tail.
//!
//! A window is made when ranks first plan to use it, and freed when MPI is finalized, with the state of its
//! communicator: by all ranks in the same order.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use topocoll::exec::{Endpoint, Token};

use crate::failed::{Failed, check};
use crate::symbols as mpi;

/// The most bytes of a mailbox, and of all mailboxes of a rank.
const MAILBOX: usize = 1 << 16;
const ALL: usize = 1 << 20;
/// The fewest bytes of a mailbox.
const LEAST: usize = 1 << 9;
/// Bytes before those of messages: head and tail, each in a cache line of its own.
const COUNTERS: usize = 128;

/// Bytes of a number that ranks tell each other.
pub(crate) const WORD: c_int = size_of::<u32>() as c_int;

/// This rank's end of a node's mailboxes.
pub(crate) struct Window {
    /// By rank of the communicator, the rank in the node; `None` on other nodes.
    local: Vec<Option<u32>>,
    /// By rank in the node: messages to it, and from it.
    to: Vec<Mailbox>,
    from: Vec<Mailbox>,
    /// Messages under way.
    open: usize,
    window: mpi::MPI_Win,
    node: mpi::MPI_Comm,
}

struct Mailbox {
    at: *mut u8,
    bytes: usize,
    messages: VecDeque<Message>,
}

/// A message under way, of which some bytes are done.
struct Message {
    token: Token,
    data: *mut u8,
    /// Of the memory; of the message once its length is known.
    bytes: u64,
    has_length: bool,
    done: u64,
}

impl Window {
    /// Makes the window, with all ranks of `comm`.
    ///
    /// # Errors
    /// MPI's, or too little shared memory.
    pub(crate) fn new(comm: mpi::MPI_Comm, rank: u32, ranks: u32) -> Result<Self, Failed> {
        let (mut count, mut own) = (0, 0);
        // SAFETY: all ranks call it; places for the answers, and room for a rank of each.
        let (node, window, members) = unsafe {
            let mut node = std::mem::zeroed();
            let (shared, info) = (mpi::RSMPI_COMM_TYPE_SHARED, mpi::RSMPI_INFO_NULL);
            check(mpi::PMPI_Comm_split_type(comm, shared, rank as c_int, info, &raw mut node))?;
            check(mpi::PMPI_Comm_set_errhandler(node, mpi::RSMPI_ERRORS_RETURN))?;
            check(mpi::PMPI_Comm_size(node, &raw mut count))?;
            check(mpi::PMPI_Comm_rank(node, &raw mut own))?;
            let bytes = (count as usize * stride(count)) as mpi::MPI_Aint;
            // The first rank of the node looks for all.
            let mut room = c_int::from(own == 0 && has_room(count as u128 * bytes as u128));
            check(mpi::PMPI_Bcast((&raw mut room).cast(), WORD, mpi::RSMPI_UINT8_T, 0, node))?;
            if room == 0 {
                check(mpi::PMPI_Comm_free(&raw mut node))?;
                return Err(Failed(mpi::MPI_ERR_NO_MEM as c_int));
            }
            let (mut window, mut base) = (std::mem::zeroed(), ptr::null_mut::<u8>());
            let to = (&raw mut base).cast();
            check(mpi::PMPI_Win_allocate_shared(bytes, 1, info, node, to, &raw mut window))?;
            check(mpi::PMPI_Win_set_errhandler(window, mpi::RSMPI_ERRORS_RETURN))?;
            check(mpi::PMPI_Win_lock_all(0, window))?;
            ptr::write_bytes(base, 0, bytes as usize);
            check(mpi::PMPI_Win_sync(window))?;
            // No rank uses a mailbox before it is empty: the all-gather ends when all ranks have called it.
            let (mut members, byte) = (vec![0u32; count as usize], mpi::RSMPI_UINT8_T);
            let (from, to) = ((&raw const rank).cast(), members.as_mut_ptr().cast());
            check(mpi::PMPI_Allgather(from, WORD, byte, to, WORD, byte, node))?;
            check(mpi::PMPI_Win_sync(window))?;
            (node, window, members)
        };
        let base = |member: c_int| {
            let (mut bytes, mut unit, mut base) = (0, 0, ptr::null_mut::<u8>());
            // SAFETY: a rank of the window's communicator, and places for the answers.
            check(unsafe {
                let to = (&raw mut base).cast();
                mpi::PMPI_Win_shared_query(window, member, &raw mut bytes, &raw mut unit, to)
            })?;
            Ok::<_, Failed>(base)
        };
        let mailbox = |to: c_int, from: c_int| {
            let at = base(to)?.wrapping_add(from as usize * stride(count));
            Ok(Mailbox { at, bytes: stride(count) - COUNTERS, messages: VecDeque::new() })
        };
        let to = (0..count).map(|other| mailbox(other, own)).collect::<Result<_, Failed>>()?;
        let from = (0..count).map(|other| mailbox(own, other)).collect::<Result<_, Failed>>()?;
        let mut local = vec![None; ranks as usize];
        for (member, rank) in (0..).zip(members) {
            local[rank as usize] = Some(member);
        }
        Ok(Self { local, to, from, open: 0, window, node })
    }

    /// The rank in the node of a rank of the communicator; `None` on another node.
    pub(crate) fn local(&self, rank: u32) -> Option<u32> {
        self.local[rank as usize]
    }

    /// Starts a message to or from a rank of the node.
    ///
    /// # Safety
    /// The bytes belong to the message until it completes or is abandoned.
    pub(crate) unsafe fn start(
        &mut self,
        local: u32,
        received: bool,
        token: Token,
        data: *mut u8,
        bytes: u64,
    ) {
        let message = Message { token, data, bytes, has_length: false, done: 0 };
        self.open += 1;
        let side = if received { &mut self.from } else { &mut self.to };
        let mailbox = &mut side[local as usize];
        mailbox.messages.push_back(message);
        if !received && mailbox.messages.len() == 1 {
            // Only a read fails.
            let _ = mailbox.advance(false);
        }
    }

    /// Whether messages are under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.open > 0
    }

    /// Moves bytes, and completes messages.
    ///
    /// # Errors
    /// A message longer than its memory, or of another length than planned.
    pub(crate) fn progress(&mut self, endpoint: &mut Endpoint) -> Result<(), Failed> {
        for (reads, mailboxes) in [(false, &mut self.to), (true, &mut self.from)] {
            for mailbox in mailboxes {
                while mailbox.advance(reads)? {
                    self.open -= mailbox.complete(endpoint)?;
                }
            }
        }
        Ok(())
    }

    /// Forgets messages under way. No rank uses the window again.
    pub(crate) fn abandon(&mut self) {
        self.to.iter_mut().chain(&mut self.from).for_each(|mailbox| mailbox.messages.clear());
        self.open = 0;
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: ours, and no rank uses them; errors leave them to MPI.
        unsafe {
            mpi::PMPI_Win_unlock_all(self.window);
            mpi::PMPI_Win_free(&raw mut self.window);
            mpi::PMPI_Comm_free(&raw mut self.node);
        }
    }
}

/// Whether the node has twice this much shared memory left. With too little, some ranks wait for ever in
/// Open MPI 4.1.4.
fn has_room(bytes: u128) -> bool {
    // SAFETY: plain numbers; a path that ends with zero, and a place for the answer.
    unsafe {
        let mut memory = std::mem::zeroed::<libc::statvfs>();
        let known = libc::statvfs(c"/dev/shm".as_ptr(), &raw mut memory) == 0;
        known && u128::from(memory.f_bavail) * u128::from(memory.f_frsize) >= 2 * bytes
    }
}

/// Bytes of a mailbox in a node of `ranks`, and of its counters.
fn stride(ranks: c_int) -> usize {
    COUNTERS + (ALL / ranks as usize).clamp(LEAST, MAILBOX) / 64 * 64
}

impl Mailbox {
    fn head(&self) -> &AtomicU64 {
        // SAFETY: the first counter, aligned to eight bytes.
        unsafe { AtomicU64::from_ptr(self.at.cast()) }
    }

    fn tail(&self) -> &AtomicU64 {
        // SAFETY: the second counter, in the next cache line.
        unsafe { AtomicU64::from_ptr(self.at.add(COUNTERS / 2).cast()) }
    }

    /// The bytes at a count, up to the end of the ring: where, and the most there.
    fn place(&self, count: u64) -> (*mut u8, u64) {
        let at = (count % self.bytes as u64) as usize;
        // SAFETY: in the ring.
        (unsafe { self.at.add(COUNTERS + at) }, (self.bytes - at) as u64)
    }

    /// Writes or reads bytes of the first message; returns whether it is done.
    ///
    /// # Errors
    /// It is read, and longer than its memory.
    fn advance(&mut self, reads: bool) -> Result<bool, Failed> {
        let Some(message) = self.messages.front() else { return Ok(false) };
        let Message { data, mut bytes, mut has_length, mut done, .. } = *message;
        let (own, other) =
            if reads { (self.tail(), self.head()) } else { (self.head(), self.tail()) };
        let (mut at, other) = (own.load(Ordering::Relaxed), other.load(Ordering::Acquire));
        // Published bytes, or room. The end of a message may be rounded up beyond the room.
        let mut left =
            if reads { other - at } else { (self.bytes as u64).saturating_sub(at - other) };
        if !has_length && left >= LENGTH {
            let (place, _) = self.place(at);
            // SAFETY: room in the ring, which only this rank writes, or bytes that the other rank has
            // published.
            unsafe {
                if reads {
                    let length = place.cast::<u64>().read();
                    if length > bytes {
                        return Err(Failed(mpi::MPI_ERR_TRUNCATE as c_int));
                    }
                    bytes = length;
                } else {
                    place.cast::<u64>().write(bytes);
                }
            }
            (has_length, at, left) = (true, at + LENGTH, left - LENGTH);
        }
        while has_length && done < bytes && left > 0 {
            let (place, most) = self.place(at);
            let some = most.min(left).min(bytes - done);
            // SAFETY: the message's memory, and the same part of the ring.
            unsafe {
                let memory = data.add(done as usize);
                let (from, to) = if reads { (place, memory) } else { (memory, place) };
                ptr::copy_nonoverlapping(from, to, some as usize);
            }
            (done, at, left) = (done + some, at + some, left - some);
        }
        let is_done = has_length && done == bytes;
        if is_done {
            // The next length begins at a multiple, and does not wrap around the end.
            at = at.next_multiple_of(LENGTH);
        }
        own.store(at, Ordering::Release);
        if let Some(message) = self.messages.front_mut() {
            (message.has_length, message.bytes, message.done) = (has_length, bytes, done);
        }
        Ok(is_done)
    }

    /// Completes the first message; returns their number.
    fn complete(&mut self, endpoint: &mut Endpoint) -> Result<usize, Failed> {
        let Some(message) = self.messages.pop_front() else { return Ok(0) };
        endpoint.complete(message.token, message.bytes)?;
        Ok(1)
    }
}

/// Bytes of a length.
const LENGTH: u64 = 8;
