//! The last forwarded call of each kind, by thread: an equal call is counted and forwarded at once,
//! without a look-up or a lock.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::symbols as mpi;

use super::attribute::forgotten;
use super::blocks::is_named;
use super::communicator::Repeat;

/// Kinds of calls, each with its own decisions.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    AllToAll,
    AllGather,
    /// An all-to-all of blocks of several sizes; the decision depends only on the communicator.
    Vector,
}

/// The arguments on which a decision depends.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Call {
    comm: mpi::MPI_Comm,
    /// The handle of a freed communicator may name another.
    forgotten: u64,
    in_place: bool,
    /// Counts and datatypes of the sent and the received blocks.
    send: Option<(i64, mpi::MPI_Datatype)>,
    receive: Option<(i64, mpi::MPI_Datatype)>,
}

/// A forwarded call, and the number of calls that remain to be forwarded; null for all.
type Last = Option<(Call, *const AtomicU64)>;

thread_local! {
    static LAST: [Cell<Last>; 3] = const { [const { Cell::new(None) }; 3] };
}

impl Call {
    /// A call on blocks of one size, given by counts and datatypes.
    #[inline]
    pub(crate) fn equal(
        comm: mpi::MPI_Comm,
        in_place: bool,
        send: (i64, mpi::MPI_Datatype),
        receive: (i64, mpi::MPI_Datatype),
    ) -> Self {
        let forgotten = forgotten();
        Self { comm, forgotten, in_place, send: Some(send), receive: Some(receive) }
    }

    /// A call whose decision depends only on the communicator.
    #[inline]
    pub(crate) fn on(comm: mpi::MPI_Comm) -> Self {
        Self { comm, forgotten: forgotten(), in_place: false, send: None, receive: None }
    }

    /// Whether the thread's last forwarded call of the kind was the same, and the library performs
    /// this one too.
    #[inline]
    pub(crate) fn is_last(&self, kind: Kind) -> bool {
        let Some((last, left)) = LAST.with(|last| last[kind as usize].get()) else { return false };
        if last != *self {
            return false;
        }
        // SAFETY: of the state of a communicator that was not forgotten.
        let Some(left) = (unsafe { left.as_ref() }) else { return true };
        // Only one thread at a time calls on a communicator.
        let calls = left.load(Ordering::Relaxed);
        left.store(calls.saturating_sub(1), Ordering::Relaxed);
        calls != 0
    }

    /// Remembers a forwarded call if its datatypes are predefined. The handle of a derived datatype
    /// may name another datatype later.
    pub(crate) fn remember(self, kind: Kind, repeat: Repeat) {
        let left = match repeat {
            Repeat::Always => std::ptr::null(),
            Repeat::Counted(left) => left,
            Repeat::Never | Repeat::Timed(_) => return,
        };
        let sent = self.send.filter(|_| !self.in_place);
        if [sent, self.receive].into_iter().flatten().all(|(_, datatype)| is_named(datatype)) {
            LAST.with(|last| last[kind as usize].set(Some((self, left))));
        }
    }
}
