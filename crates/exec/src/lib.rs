//! Plans, endpoints and drivers: readers that move bytes.
//!
//! A [`Plan`] is one rank's share of a schedule, made once and kept; an [`Endpoint`] walks
//! through it and returns what to copy, send and receive next. Neither has a socket, a thread or a
//! clock, and neither holds the caller's memory: an [`Action`] names regions of it. Drivers perform
//! the actions: [`ThreadedDriver`] with many ranks on few threads, [`SeededDriver`] in one
//! thread and a seeded order, [`Driver`] over the caller's [`Transport`].
//!
//! ```
//! use topocoll_exec::{SeededDriver, plan_all};
//! # use topocoll_schedule::{
//! #     Collective, Message, Origin, Parameters, Part, Problem, Recorder, Schedule,
//! # };
//! # use topocoll_topology::Rank;
//! # let problem = Problem::new(Collective::AllToAll, 2, 1, 4)?;
//! # let mut recorder = Recorder::new(problem);
//! # for (from, to) in [(Rank(0), Rank(1)), (Rank(1), Rank(0))] {
//! #     let blocks = vec![(problem.wanted(from, to), Part::Whole)];
//! #     recorder.push(&Message { step: 0, from, to, route: None, blocks });
//! # }
//! # let origin = Origin { algorithm: "by hand".to_owned(), parameters: Parameters::new() };
//! # let schedule = Schedule::new(problem, origin, recorder.finish());
//!
//! // Two ranks have a block of four bytes for each other, and one for themselves.
//! let plans = plan_all(&schedule)?;
//! let mut output = [0; 16];
//! let seed = 7;
//! SeededDriver::new(&plans).exchange(4u64, b"0to00to11to01to1", &mut output, seed)?;
//! assert_eq!(&output, b"0to01to00to11to1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

/// The atomics of [`turn`]; the tests of every interleaving replace them.
mod atomic {
    pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
}
mod action;
mod compile;
mod endpoint;
mod error;
mod in_place;
mod memory;
pub mod pattern;
mod places;
mod plan;
mod queue;
mod seeded;
mod sizes;
mod threaded;
mod transport;
mod turn;
mod views;

pub use action::{Action, EndpointMessage, MemoryCopy, Token};
pub use compile::{plan_all, plan_subset};
pub use endpoint::Endpoint;
pub use error::{ExecError, PlanError, StepFault};
pub use memory::{Buffer, Memory, RawBuffers, Region, Storage};
pub use plan::Plan;
pub use seeded::SeededDriver;
pub use sizes::{BlockSizes, PlannedSizes};
pub use threaded::{ThreadedDriver, Timed, worthwhile_threads};
pub use transport::{Arrival, Driver, Transport};
pub use views::{Layout, Views};
