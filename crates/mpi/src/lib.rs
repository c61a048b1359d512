//! Exchanges over MPI: schedules between the ranks of a communicator ([`Exchange`]), and the drop-in
//! `libtopocoll_mpi.so`, which uses them in unmodified programs (`drop_in`).
//!
//! A rank's share of an exchange is an [`Endpoint`](topocoll::exec::Endpoint), driven over
//! non-blocking sends and receives (`engine`) of a communicator of our own, so that no receive of
//! the program can match them.
//!
//! Without the feature `drop-in` the library is for Rust programs, and defines no `MPI_*` of its own.
//!
//! ```
//! use topocoll::{Collective, Parameters, Problem, machine};
//! use topocoll_mpi::{Exchange, mpi_sys as mpi};
//!
//! let (mut rank, mut ranks) = (0, 0);
//! // SAFETY: MPI is begun once, here, and ended below, after the exchange is dropped.
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
//! // SAFETY: all ranks of the world are here.
//! let mut exchange = unsafe { Exchange::new(world, &schedule)? };
//! let input: Vec<u8> = (0..ranks).flat_map(|to| [rank as u8, to as u8]).collect();
//! let mut output = vec![0; input.len()];
//! exchange.exchange(2, &input, &mut output)?;
//! let expected: Vec<u8> = (0..ranks).flat_map(|from| [from as u8, rank as u8]).collect();
//! assert_eq!(output, expected);
//!
//! drop(exchange);
//! // SAFETY: nothing of MPI's is left.
//! unsafe { mpi::MPI_Finalize() };
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "drop-in")]
mod drop_in;
mod engine;
mod exchange;
mod failed;
mod protocol;
mod words;

pub use exchange::{Exchange, ExchangeError};
/// MPI itself, in the version whose communicators [`Exchange::new`] takes.
pub use mpi_sys;
