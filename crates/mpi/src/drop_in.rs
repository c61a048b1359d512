//! The drop-in: `libtopocoll_mpi.so`, which stands before the calls of programs that exist.
//!
//! Loaded by `LD_PRELOAD`, it takes `MPI_Alltoall`, `MPI_Alltoallv`, `MPI_Allgather` and
//! `MPI_Allgatherv` (`calls`; Fortran's forms with Open MPI, large counts where the library has them)
//! and forwards every other call by not having it. A rank's share of an exchange is an
//! [`Endpoint`](topocoll::exec::Endpoint), driven over non-blocking sends and receives
//! (`engine`) of a communicator of our own, so that no receive of the program can match them.
//!
//! # Who decides
//! The first rank of a communicator, and the others are told: nothing hangs on values that might
//! differ from rank to rank, and environment variables and machine files are read by that rank
//! alone. It decides once for each operation and each power of two of bytes of a block
//! (`decision`), on the machine that it finds or is given (`place`): ours where the model predicts a
//! gain over what the library does by itself (`library`), else the library's call. Decisions about blocks of several
//! sizes use what all ranks know of the sizes (`vector`). A thread that repeats a
//! forwarded call looks nothing up (`last`).
//!
//! # What is kept
//! With each communicator (`communicator`), as an attribute of it (`attribute`): decisions, plans
//! and some memory. They go when it is freed, or when MPI is finalized.
//!
//! # Blocks
//! Bytes travel as `PMPI_Pack` writes them; blocks of a named type without holes lie in memory as
//! they travel, and are sent from there and received there. Ranks may use different datatypes.
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
