//! What an exchange costs on a machine where messages meet: one driver, several networks.
//!
//! [`Traffic`] says who sends what in which step, a network model when it arrives, and the driver
//! in `run.rs` lets every node go on. A model is a file here and a line of [`MODELS`].
//!
//! The numbers of nodes matter to the wormhole and flit models: a dateline stays where it is when a
//! schedule moves along a side, and requests of one instant are served in the order in which they are
//! processed.

mod calendar;
mod chain;
mod channels;
mod clock;
mod flit;
mod fluid;
mod latencies;
mod network;
mod patterns;
mod placement;
mod run;
mod settings;
mod simulate;
mod steps;
mod survey;
mod trace;
mod traffic;
mod wormhole;

pub use chain::ChainLink;
pub use channels::link_name;
pub(crate) use clock::Clock;
pub use clock::{Picoseconds, in_seconds};
pub use latencies::LatencySummary;
pub use network::{Held, Interval, LinkUse};
pub use patterns::Pattern;
pub use placement::{Job, Placed, PlacedRoutes, read_nodes};
pub use run::{Control, NamedLink, StepTime};
pub use settings::{Dateline, MODEL_PARAMETERS, ModelParameter, Settings};
pub use simulate::{ContentionModel, MODELS, Request, Simulation, Sync, simulate};
pub use steps::{StepsModel, steps_model};
pub use trace::{write_links, write_trace};
pub use traffic::{Posted, Scheduled, Share, Traffic};
