#![doc = include_str!("../../../ARCHITECTURE.md")]
//!
//! # From a machine to its best all-to-all
//!
//! `examples/tour.rs` goes further: from a machine to a runtime that uses its schedule.
//!
//! ```
//! use topocoll::{Collective, Problem, machine, select, verify};
//!
//! let machine = machine("torus:8x8")?;
//! let problem = Problem::new(Collective::AllToAll, machine.ranks(), machine.ports, 1024)?;
//! let selection = select(&machine, &problem);
//! let best = selection.best().expect("an algorithm serves a torus");
//! assert_eq!(best.algorithm, "coloured-rings");
//!
//! let schedule = topocoll::plan(&machine, &problem, best.algorithm, &best.parameters)?;
//! let proof = verify(&schedule, &machine, None, 1 << 30)?;
//! assert!(proof.violation.is_none());
//! assert_eq!((proof.counts.steps, proof.counts.bytes), (28, 108 * 1024));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod among;
mod calibrate;
mod error;
mod front;
mod left_out;
mod machines;
mod network;
mod plan;
mod price;
mod select;
mod simulated;
mod sweep;
pub mod tune;
mod unequal;

pub use among::{count_among, select_among, select_unequal_among};
pub use calibrate::{Fit, Regret, Sample, fit, fit_processes, measure, regret, samples};
pub use error::Error;
pub use front::{Front, front};
pub use left_out::{PartlyPriced, Rejected};
pub use machines::{load_file, machine, shipped};
pub use network::Network;
pub use plan::{cheapest, claims, plan, plan_unequal};
pub use price::{Price, Priced, published_price};
pub use select::{Budget, Choice, Crossover, Extremes, Selection, select, select_within};
pub use simulated::{SIMULATE_UP_TO, check_simulation, simulate_choices};
pub use sweep::{Fastest, Line, Sweep, sweep};
pub use unequal::select_unequal;

pub use topocoll_algorithms::{
    ALGORITHMS, Algorithm, ByLinks, Claims, NotApplicable, PUBLISHED, Parameter, Published,
    PublishedCounts, StepsOf, find,
};
pub use topocoll_analysis::*;
pub use topocoll_exec as exec;
pub use topocoll_schedule::*;
pub use topocoll_topology::*;
