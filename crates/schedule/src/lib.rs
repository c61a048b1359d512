//! Schedules: which rank sends which slots to which rank in which step.
//!
//! Read [`Step`] first: its documentation defines what a step means. A [`Rule`] gives the steps of
//! any rank as a pure function. A [`Schedule`] is a rule with the [`Problem`] it solves and its
//! [`Origin`]. [`Recorded`] is a rule made of listed messages, as read from a file.
//!
//! ```
//! use topocoll_schedule::{
//!     Collective, Message, Origin, Parameters, Part, Problem, Recorder, Schedule, Step,
//! };
//! use topocoll_topology::Rank;
//!
//! // Two ranks swap a block each.
//! let problem = Problem::new(Collective::AllToAll, 2, 1, 64)?;
//! let mut recorder = Recorder::new(problem);
//! for (from, to) in [(Rank(0), Rank(1)), (Rank(1), Rank(0))] {
//!     let blocks = vec![(problem.wanted(from, to), Part::Whole)];
//!     recorder.push(&Message { step: 0, from, to, route: None, blocks });
//! }
//! let origin = Origin { algorithm: "by hand".to_owned(), parameters: Parameters::new() };
//! let schedule = Schedule::new(problem, origin, recorder.finish());
//!
//! let mut step = Step::default();
//! schedule.rule().step(Rank(0), 0, &mut step);
//! assert_eq!((step.sends[0].peer, step.sends[0].slots.bytes(64)), (Rank(1), 64));
//! # Ok::<(), topocoll_schedule::ScheduleError>(())
//! ```
//!
//! # Panics
//! As in [`topocoll_topology`]: functions take ranks and blocks of the problem only.
#![forbid(unsafe_code)]

mod classes;
mod demand;
mod error;
mod kinds;
mod on_groups;
mod on_view;
mod period;
mod problem;
mod recorded;
mod schedule;
mod slots;
mod step;
mod sync;

pub use classes::RankClasses;
pub use demand::{Demand, Drawn, Law, Routed};
pub use error::ScheduleError;
pub use kinds::Kinds;
pub use period::{Held, Largest, Period, PeriodWriter, other_end};
pub use problem::{Block, Collective, MAX_BLOCK_BYTES, Problem};
pub use recorded::{Message, Recorded, Recorder, SizedMessage};
pub use schedule::{Origin, Parameters, Rule, Schedule, Setting};
pub use slots::{Axis, Part, Slot, SlotRun, SlotSet, Strided};
pub use step::{LocalCopy, Step, Transfer};
pub use sync::Sync;
