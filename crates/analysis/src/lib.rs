//! Readers that compute: verify, count, bound, simulate, write and read formats.
//!
//! Nothing here knows an algorithm; everything reads a
//! [`Schedule`](topocoll_schedule::Schedule) through its rule. [`verify()`] proves delivery,
//! [`count()`] gives the counts and the predicted time, [`bounds()`] what no schedule can beat.
#![forbid(unsafe_code)]

mod bounds;
mod boxes;
mod certificate;
mod checks;
mod conflicts;
pub mod contention;
mod counts;
mod error;
pub mod formats;
mod loads;
mod origin;
mod paths;
mod progress;
mod replay;
mod shift;
mod simulate;
mod symmetry;
mod unequal;
mod verify;
mod violation;
mod written;

pub use bounds::{
    AsymptoticBound, BestBounds, LowerBound, Measure, asymptotic_bounds, best_bounds, bounds,
};
pub use certificate::write_certificate;
pub use conflicts::{Conflict, ConflictReport, ConflictingMessage, conflict_work, conflicts};
pub use counts::{Counts, StepCount, Time, check_counting_work, count, count_steps, counting_work};
pub use error::AnalysisError;
pub use progress::Progress;
pub use simulate::{LinkTotals, link_totals};
pub use unequal::{count_unequal, unequal_bounds, unequal_work};
pub(crate) use verify::check_named;
pub use verify::{Method, REPLAY_UP_TO, Verification, verify, verify_watched};
pub use violation::Violation;
