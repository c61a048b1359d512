//! The drop-in `libtopocoll_mpi.so`, which intercepts calls of unmodified programs.
//!
//! Loaded by `LD_PRELOAD`, it takes `MPI_Alltoall`, `MPI_Alltoallv`, `MPI_Allgather` and
//! `MPI_Allgatherv` (`calls`; Fortran's forms with Open MPI, large counts where the library has them)
//! and defines no other call, so the library serves all others. A rank's share of an exchange is an
//! [`Endpoint`](topocoll::exec::Endpoint), driven over non-blocking sends and receives
//! (`engine`) of a communicator of our own, so that no receive of the program can match them.
//!
//! # Who decides
//! The first rank of a communicator decides and tells the others: no decision depends on values that
//! may differ from rank to rank, and only that rank reads environment variables and machine files. It decides once for each operation and each power of two of bytes of a block
//! (`decision`), on the machine that it finds or is given (`place`): our schedule where the model
//! predicts a gain over the library's algorithm (`library`), else the library's call. Decisions about blocks of several
//! sizes use what all ranks know of the sizes (`vector`). A thread that repeats a
//! forwarded call needs no look-up (`last`).
//!
//! # State
//! Each communicator keeps decisions, plans and some memory (`communicator`) as an attribute
//! (`attribute`), until it is freed or MPI is finalized.
//!
//! # Blocks
//! Bytes travel as `PMPI_Pack` writes them; blocks of a named type without holes lie in memory as
//! they travel, and are sent and received in place. Ranks may use different datatypes.
//!
//! # Environment
//! `TOPOCOLL_ALGORITHM`, `TOPOCOLL_MACHINE`, `TOPOCOLL_TRACE`: see `settings`.

mod attribute;
mod blocks;
mod calls;
mod communicator;
mod decision;
#[cfg(open_mpi)]
mod fortran;
mod last;
mod library;
mod memory;
mod place;
mod settings;
mod vector;
