//! Exchanges over MPI: schedules between the ranks of a communicator ([`Exchange`]), and the
//! drop-in `libtopocoll_mpi.so`, which uses them in unmodified programs (`drop_in`).
//!
//! An [`Endpoint`](topocoll::exec::Endpoint) performs a rank's part of an exchange. Its driver
//! (`engine`) uses non-blocking sends and receives of a private communicator, so that no receive of
//! the program can match them.
//!
//! Without the feature `drop-in`, the library is for Rust programs and defines no `MPI_*` symbols.
//!
//! ```
//! use topocoll::{Collective, Parameters, Problem, machine};
//! use topocoll_mpi::{Exchange, mpi_sys as mpi};
//!
//! let (mut rank, mut ranks) = (0, 0);
//! // SAFETY: MPI is initialized once, here, and finalized below, after the exchange is dropped.
//! let world = unsafe {
//!     mpi::MPI_Init(std::ptr::null_mut(), std::ptr::null_mut());
//!     mpi::MPI_Comm_rank(mpi::RSMPI_COMM_WORLD, &mut rank);
//!     mpi::MPI_Comm_size(mpi::RSMPI_COMM_WORLD, &mut ranks);
//!     mpi::RSMPI_COMM_WORLD
//! };
//! let machine = machine(&format!("full:{ranks}"))?;
//! let problem = Problem::new(Collective::AllToAll, machine.ranks(), 1, 2)?;
//! let schedule = topocoll::Exchange::new(&machine, &problem)?.schedule("bruck", &Parameters::new())?;
//!
//! // SAFETY: all ranks of the world call this.
//! let mut exchange = unsafe { Exchange::new(world, &schedule)? };
//! let input: Vec<u8> = (0..ranks).flat_map(|to| [rank as u8, to as u8]).collect();
//! let mut output = vec![0; input.len()];
//! exchange.exchange(2, &input, &mut output)?;
//! let expected: Vec<u8> = (0..ranks).flat_map(|from| [from as u8, rank as u8]).collect();
//! assert_eq!(output, expected);
//!
//! drop(exchange);
//! // SAFETY: MPI is not used afterwards.
//! unsafe { mpi::MPI_Finalize() };
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "drop-in")]
mod drop_in;
mod engine;
mod exchange;
mod failed;
mod protocol;
#[cfg(feature = "drop-in")]
mod symbols;
mod window;
mod words;

#[cfg(any(test, feature = "fuzz"))]
pub use drop_in::fuzz;
#[cfg(feature = "drop-in")]
pub use drop_in::{Compared, Proposals};
pub use exchange::{Exchange, ExchangeError};
#[cfg(not(feature = "drop-in"))]
use mpi_sys as symbols;

/// MPI itself, in the version whose communicators [`Exchange::new`] takes.
pub use mpi_sys;
