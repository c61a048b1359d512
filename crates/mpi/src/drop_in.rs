//! The drop-in `libtopocoll_mpi.so`, which intercepts calls of unmodified programs.
//!
//! Loaded by `LD_PRELOAD`, it defines `MPI_Alltoall`, `MPI_Alltoallv`, `MPI_Allgather` and
//! `MPI_Allgatherv` (`calls`), also for Fortran with Open MPI and for large counts if the library
//! has them. All other calls are the library's; `passed` says why of some. It does not depend on the MPI
//! library, and finds it in the first call (`symbols`). An [`Endpoint`](topocoll::exec::Endpoint) performs
//! a rank's part of an exchange. Its driver (`engine`) uses non-blocking sends and receives of a
//! private communicator, so that no receive of the program can match them; messages inside a node may
//! pass through a shared window (`window`).
//!
//! Open MPI 4.1 loads a component by itself, which calls the same code from inside (`component`).
//!
//! # Who decides
//! The first rank of a communicator decides and tells the others (`communicator/deciding`). No decision depends
//! on values that may differ from rank to rank. Only the first rank reads environment variables and
//! files. It decides for each operation and each power of two of block bytes, on the detected or
//! given machine (`place`), together with the groups that exchange at the same time (`splits`). A model
//! predicts the times of our schedules and of the library's algorithm (`decision`, `library`) and proposes
//! schedules. Then the library's call and these schedules take turns during the program's calls, and the
//! times of all ranks decide (`trial`).
//! Results serve equal communicators of the process and the next run (`learned`). Decisions about
//! blocks of several sizes use the sizes that all ranks know (`vector`).
//!
//! # State
//! Each communicator keeps decisions, plans and some memory (`communicator`) as an attribute, or in the
//! component's module (`attribute`), until it is freed. The next communicator of the same processes takes them over
//! (`group`), until MPI is finalized.
//!
//! # Blocks
//! Messages have the bytes that `PMPI_Pack` writes. Blocks of a named type without holes have the
//! same bytes in memory, and are sent and received in place. Ranks may use different datatypes.
//!
//! # Environment
//! `TOPOCOLL_ALGORITHM`, `TOPOCOLL_MACHINE`, `TOPOCOLL_SYNC`, `TOPOCOLL_TUNE`, `TOPOCOLL_TRACE`: see
//! `settings`. With tracing, `report` prints a table when MPI is finalized.

mod attribute;
mod blocks;
mod calls;
mod communicator;
mod component;
mod course;
mod decision;
#[cfg(open_mpi)]
mod fortran;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod group;
mod learned;
mod library;
mod ours;
mod passed;
mod place;
mod process;
mod proposals;
mod report;
mod settings;
mod splits;
mod trial;
mod vector;

pub use learned::Compared;
pub use proposals::Proposals;
