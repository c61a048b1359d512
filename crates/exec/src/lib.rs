//! Readers that move bytes.
//!
//! A [`Plan`] is one rank's share of a schedule, made once and kept; a [`RankMachine`] walks
//! through it and says what to copy, send and receive next. Neither has a socket, a thread or a
//! clock, and neither holds the caller's memory: an [`Action`] names regions of it. Drivers do what
//! the machines say: [`RoundRobin`] in one thread and a seeded order, [`Crew`] with many ranks on
//! few threads, [`drive`] over a [`Transport`] of one's own.
#![forbid(unsafe_code)]

/// What [`turn`] races with: the tests that try every interleaving put their own in its place.
mod atomic {
    pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
}
mod compile;
mod crew;
mod error;
mod in_place;
mod machine;
mod members;
mod memory;
pub mod pattern;
mod plan;
mod queue;
mod round_robin;
mod transport;
mod turn;
mod unequal;
mod views;

pub use crew::{Crew, Timed, worthwhile_threads};
pub use error::{ExecError, PlanError};
pub use machine::{Action, Copy, Message, RankMachine, Token};
pub use members::Members;
pub use memory::{Buffer, Memory, Region, Storage};
pub use plan::{Plan, plan_all};
pub use round_robin::RoundRobin;
pub use transport::{Arrival, Transport, drive};
pub use unequal::{UnequalPlan, unequal_all};
pub use views::{Layout, Views};
