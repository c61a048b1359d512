//! Simulation of messages that contend for links: one driver, several network models.
//!
//! [`Traffic`] gives the messages of each node and step, a network model the time of each delivery,
//! and the driver in `run.rs` advances every node. A model is a module here and a line of
//! [`MODELS`].
//!
//! The numbering of nodes affects the wormhole and flit models: a dateline has a fixed place on a
//! side, and simultaneous requests are served in the order in which they are processed. It does not
//! affect the fluid model, which simulates one rank of each class ([`Ranks::Classes`]).

mod all_to_all;
mod calendar;
mod chain;
mod channels;
mod classes;
mod clock;
mod closed;
mod estimate;
mod flit;
mod fluid;
mod fold;
mod kinds;
mod latencies;
mod load;
mod models;
mod network;
mod paces;
mod patterns;
mod placement;
mod ranks;
mod run;
mod settings;
mod simulate;
mod simulation;
mod survey;
mod timeline;
mod total;
mod trace;
mod wormhole;

pub use all_to_all::AllToAll;
pub use chain::ChainLink;
pub use classes::ChannelClasses;
pub(crate) use clock::Clock;
pub use clock::{Picoseconds, in_seconds};
pub use estimate::{Estimate, estimate};
pub use latencies::LatencySummary;
pub use load::Load;
pub use models::{ContentionModel, MODELS, check_model};
pub use network::{Held, Interval, LinkUse};
pub use patterns::Pattern;
pub use placement::{Job, Placed, PlacedRoutes};
pub use ranks::Ranks;
pub use run::{Control, NamedLink, StepTime};
pub use settings::{Dateline, MAX_VCS, MODEL_PARAMETERS, ModelParameter, Routing, Settings};
pub use simulate::simulate;
pub use simulation::{Request, Simulation};
pub use timeline::{RankStep, Timeline, steps_timeline};
pub use trace::{write_links, write_trace};

pub use crate::all_to_all_v::ScheduledSizes;
pub use crate::counts::steps_model;
pub use crate::traffic::{Posted, Scheduled, Share, Traffic};
pub use topocoll_schedule::Sync;
