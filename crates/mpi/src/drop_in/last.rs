//! The last forwarded call of each kind, by thread: an equal call is forwarded at once, without a
//! look-up or a lock.

use std::cell::Cell;

use mpi_sys as mpi;

use super::attribute::forgotten;
use super::blocks::is_named;

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

thread_local! {
    static LAST: [Cell<Option<Call>>; 3] = const { [const { Cell::new(None) }; 3] };
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

    /// Whether the thread's last forwarded call of the kind was the same.
    #[inline]
    pub(crate) fn is_last(&self, kind: Kind) -> bool {
        LAST.with(|last| last[kind as usize].get().is_some_and(|last| last == *self))
    }

    /// Remembers a forwarded call if its datatypes are predefined. The handle of a derived datatype
    /// may name another datatype later.
    pub(crate) fn remember(self, kind: Kind) {
        let sent = self.send.filter(|_| !self.in_place);
        if [sent, self.receive].into_iter().flatten().all(|(_, datatype)| is_named(datatype)) {
            LAST.with(|last| last[kind as usize].set(Some(self)));
        }
    }
}
