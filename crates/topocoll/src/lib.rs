#![doc = include_str!("../../../ARCHITECTURE.md")]
//!
//! # From a machine to its best all-to-all
//!
//! `examples/tour.rs` goes further: from a machine to a runtime that uses its schedule.
//!
//! ```
//! use topocoll::{Exchange, machine};
//!
//! let machine = machine("torus:8x8")?;
//! let exchange = Exchange::all_to_all(&machine)?.block_bytes(1024)?;
//! let selection = exchange.select()?;
//! let best = selection.best().expect("an algorithm applies to a torus");
//! assert_eq!(best.algorithm, "coloured-rings");
//!
//! let schedule = exchange.schedule(&best.algorithm, &best.parameters)?;
//! let proof = exchange.verify(&schedule, None)?;
//! assert!(proof.violation.is_none());
//! assert_eq!((proof.counts.steps, proof.counts.bytes), (28, 108 * 1024));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod calibrate;
mod error;
mod exchange;
mod front;
mod given_schedule;
mod left_out;
mod machines;
mod network;
mod price;
mod published;
mod recount;
mod select;
mod simulated;
mod sweep;
pub mod tune;

pub use calibrate::{Fit, Regret, Sample, fit, fit_processes, measure, regret, samples};
pub use error::Error;
pub use exchange::{Budget, Exchange};
pub use front::Front;
pub use given_schedule::GivenSchedule;
pub use left_out::{PartlyPriced, Rejected};
pub use machines::{load_file, machine, shipped};
pub use network::Network;
pub use price::{Price, Priced};
pub use published::{PUBLISHED, Published, PublishedCounts};
pub use select::{Choice, Crossover, Extremes, Selection};
pub use simulated::SIMULATE_UP_TO;
pub use sweep::{Fastest, Line, Sweep};

pub use topocoll_algorithms::{
    Algorithm, ByLinks, Catalogue, Claims, Domain, Info, NotApplicable, Parameter, Request,
    Solution, StepsOf, Values,
};
pub use topocoll_analysis::*;
pub use topocoll_exec as exec;
pub use topocoll_schedule::*;
pub use topocoll_topology::*;
