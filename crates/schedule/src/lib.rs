//! The plan: what is to be exchanged, and who sends which slots to whom in which step.
//!
//! Read [`Step`] first; its documentation is the one place that says what a step means. A
//! [`Rule`] gives the steps of any rank as a pure function; a [`Schedule`] is a rule with the
//! [`Problem`] it solves and the name of who wrote it. [`Recorded`] is the rule that is a list,
//! read from a file.
#![forbid(unsafe_code)]

mod classes;
mod demand;
mod error;
mod placed;
mod problem;
mod recorded;
mod schedule;
mod slots;
mod step;

pub use classes::RankClasses;
pub use demand::{Demand, Drawn, Law};
pub use error::ScheduleError;
pub use problem::{Block, Collective, MAX_BLOCK_BYTES, Problem};
pub use recorded::{Message, Recorded, Recorder, SizedMessage};
pub use schedule::{Origin, Parameters, Rule, Schedule, Setting};
pub use slots::{Axis, Part, Run, Slot, SlotSet, Strided};
pub use step::{LocalCopy, Step, Transfer};
