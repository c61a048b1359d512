//! Readers of schedules: they verify, count, bound and simulate them, and write and read files.
//!
//! All readers take a [`Schedule`](topocoll_schedule::Schedule) through its rule; none depends on
//! an algorithm. [`verify()`] proves delivery, [`count()`] gives the counts and the predicted time,
//! [`bounds()`] gives lower bounds for every schedule.
//!
//! ```
//! use topocoll_analysis::{best_bounds, formats, verify};
//! use topocoll_topology::{Machine, spec};
//!
//! let machine = Machine::of(spec::parse_short_form("full:2")?);
//! let text = r#"{"kind":"header","version":1,"operation":"alltoall","algorithm":"by hand","ranks":2,"block_bytes":64,"ports":1,"topology":{"kind":"full"}}
//! {"step":0,"from":0,"to":1,"blocks":[[0,1,0,64]]}
//! {"step":0,"from":1,"to":0,"blocks":[[1,0,0,64]]}
//! "#;
//! let target = formats::Target::new(&machine, 1 << 20);
//! let schedule = formats::jsonl::read(&mut text.as_bytes(), &target)?;
//!
//! let found = verify(&schedule, &machine, None, 1 << 20)?;
//! assert!(found.violation.is_none(), "every block arrives");
//! assert_eq!(found.counts.steps, best_bounds(&schedule.problem, &machine, None).steps);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod all_to_all_v;
mod bounds;
mod certificate;
mod charges;
mod checks;
mod conflicts;
pub mod contention;
mod count_step;
mod counts;
mod error;
pub mod formats;
mod kinds;
mod loads;
mod origin;
mod pairs;
mod paths;
mod progress;
mod replay;
mod route_links;
mod sample;
mod shift;
mod step_count;
mod symmetry;
mod time;
mod totals;
mod traffic;
mod verify;
mod violation;
mod visit;
mod written;

pub use bounds::{
    AsymptoticBound, BestBounds, Limit, LowerBound, Measure, TradeOff, asymptotic_bounds,
    best_bounds, best_bounds_of_groups, bounds, check_demand_work, least_load, longer_startups,
};
pub use certificate::{check_certifiable, write_certificate};
pub use conflicts::{Conflict, ConflictReport, ConflictingMessage, conflicts};
pub use counts::{
    check_counting_work, count, count_steps, count_while, counting_work, largest_messages,
};
pub use error::{AnalysisError, check_memory, check_ranks, check_work};
pub(crate) use error::{check_named, check_of_all};
pub use progress::Progress;
pub use sample::RankSample;
pub use step_count::{Counts, StepCount};
pub use time::Time;
pub use totals::{LinkTotals, link_totals};
pub use verify::{Method, REPLAY_UP_TO, Verification, verify, verify_watched};
pub use violation::Violation;
