//! What is simulated, and its result.

use std::fmt;
use std::sync::{Arc, OnceLock};

use topocoll_schedule::Sync;
use topocoll_topology::{LinkId, Machine};

use super::classes::ChannelClasses;
use super::clock::Picoseconds;
use super::latencies::LatencySummary;
use super::load::Load;
use super::models::ContentionModel;
use super::network::{Held, Interval, LinkUse};
use super::ranks::Ranks;
use super::run::{Control, NamedLink, StepTime};
use super::settings::Settings;
use super::timeline::Timeline;
use crate::traffic::Traffic;

/// A request to simulate traffic.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The messages.
    pub traffic: &'a dyn Traffic,
    /// The machine.
    pub machine: &'a Machine,
    /// The model of the network.
    pub model: &'a ContentionModel,
    /// Its parameters.
    pub settings: Settings,
    /// Whether links have more virtual channels than the settings say, if the routes require them.
    pub vcs_as_required: bool,
    /// Keeps the classes of virtual channels for other requests with the same routes.
    pub channels: Option<&'a OnceLock<Arc<ChannelClasses>>>,
    /// The synchronization between steps.
    pub sync: Sync,
    /// The ranks to simulate; `None` takes one of each class where that is exact.
    pub ranks: Option<Ranks>,
    /// The most bytes of memory.
    pub memory: u128,
    /// Whether to record the intervals in which messages hold links, and count the use of every
    /// link. Then every step is simulated.
    pub records: bool,
    /// Whether to record when each rank copies, sends and receives; only without barriers. Then every
    /// step is simulated.
    pub timeline: bool,
    /// Progress and early stop.
    pub control: Control<'a>,
}

impl<'a> Request<'a> {
    /// A request with default parameters, without barriers, records and progress.
    #[must_use]
    pub fn new(
        traffic: &'a dyn Traffic,
        machine: &'a Machine,
        model: &'a ContentionModel,
        memory: u128,
    ) -> Self {
        Self {
            traffic,
            machine,
            model,
            settings: Settings::default(),
            vcs_as_required: false,
            channels: None,
            sync: Sync::Free,
            ranks: None,
            memory,
            records: false,
            timeline: false,
            control: Control::NONE,
        }
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("machine", &self.machine)
            .field("model", &self.model.name)
            .field("settings", &self.settings)
            .field("sync", &self.sync)
            .finish_non_exhaustive()
    }
}

/// The result of a simulation.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Simulation {
    /// The completion time.
    pub time: Picoseconds,
    /// The ranks that were simulated.
    pub ranks: Ranks,
    /// The number of ranks that were simulated.
    pub classes: u32,
    /// Virtual channels of a link.
    pub virtual_channels: u32,
    /// Messages delivered, over all ranks.
    pub messages: u64,
    /// Latencies from entering the network to the last byte delivered.
    pub latencies: Option<LatencySummary>,
    /// The load of traffic at a rate, if all of it was simulated.
    pub load: Option<Load>,
    /// The time from the first message entering the network to the end.
    pub network_time: Picoseconds,
    /// One flit's time on a link.
    pub cycle: Picoseconds,
    /// When each step began and ended; in a partial run of the steps that every rank ended.
    pub steps: Vec<StepTime>,
    /// The use of links by number; empty without numbered links, if steps were not simulated, and
    /// if one rank of each class was.
    pub links: Vec<LinkUse>,
    /// The most bytes on one link, and the link that messages waited for most: the first of equal
    /// ones. `None` without numbered links, and if steps were not simulated.
    pub busiest: Option<(u128, LinkId, Picoseconds)>,
    /// The average fraction of the time simulated that links were busy; `None` without numbered links.
    pub link_utilisation: Option<f64>,
    /// The last links of the critical chain of the run, or with barriers of the longest step.
    pub chain: Vec<NamedLink>,
    /// The number of all links of the chain.
    pub chain_length: usize,
    /// Steps that were not simulated, as no link is shared in them.
    pub closed_steps: u32,
    /// The cycle of messages that wait for each other, in a deadlock.
    pub deadlock: Vec<Held>,
    /// Whether the run was stopped or deadlocked.
    pub partial: bool,
    /// The intervals in which messages held links, if recorded.
    pub intervals: Vec<Interval>,
    /// When each rank copies, sends and receives, if recorded.
    pub timeline: Option<Timeline>,
}
