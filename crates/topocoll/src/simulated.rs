//! One schedule, simulated without barriers.

use std::sync::{Arc, OnceLock};

use topocoll_analysis::AnalysisError;
use topocoll_analysis::contention::{
    ChannelClasses, ContentionModel, Control, Request, Scheduled, in_seconds, simulate,
};
use topocoll_schedule::Schedule;
use topocoll_topology::Machine;

/// Why a choice is not simulated.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotSimulated {
    /// Its estimated cost exceeds what other choices leave of the budget.
    #[error("the estimate exceeds the budget")]
    Budget,
    /// Its groups take turns at ports that they share, which models of the network do not know.
    #[error("groups share ports, at which they take turns in the steps model only")]
    Ports,
    /// It exceeds the memory, or the limits of one simulation.
    #[error("{0}")]
    Limit(AnalysisError),
    /// Its routes require more virtual channels than a link may have.
    #[error("{0}")]
    Channels(AnalysisError),
    /// Its messages wait for each other.
    #[error("its messages wait for each other in a circle: a deadlock")]
    Deadlock,
}

/// A time without barriers between steps.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct FreeRunning {
    /// Seconds; infinite in a deadlock.
    pub seconds: f64,
    /// Virtual channels of each link: as many as the routes require, at least the default.
    pub virtual_channels: u32,
}

impl FreeRunning {
    /// Messages that wait for each other.
    pub(crate) const DEADLOCK: Self = Self { seconds: f64::INFINITY, virtual_channels: 0 };
}

/// Simulates a schedule without barriers, with as many virtual channels as its routes require. `channels` keeps
/// their classes for other schedules with the same routes.
///
/// # Errors
/// [`simulate`] refuses it, for another reason than memory, work or channels.
pub(crate) fn free_running(
    schedule: &Schedule,
    machine: &Machine,
    model: &ContentionModel,
    memory: u128,
    channels: Option<&OnceLock<Arc<ChannelClasses>>>,
    control: Control<'_>,
) -> Result<Result<FreeRunning, NotSimulated>, AnalysisError> {
    let traffic = Scheduled::new(schedule, machine);
    let mut request = Request::new(&traffic, machine, model, memory);
    (request.control, request.channels, request.vcs_as_required) = (control, channels, true);
    match simulate(&request) {
        Ok(found) if !found.deadlock.is_empty() => Ok(Err(NotSimulated::Deadlock)),
        Ok(found) => {
            let (seconds, virtual_channels) = (in_seconds(found.time), found.virtual_channels);
            Ok(Ok(FreeRunning { seconds, virtual_channels }))
        }
        Err(error @ (AnalysisError::Memory { .. } | AnalysisError::Work { .. })) => {
            Ok(Err(NotSimulated::Limit(error)))
        }
        Err(error @ AnalysisError::VirtualChannels { .. }) => {
            Ok(Err(NotSimulated::Channels(error)))
        }
        Err(error) => Err(error),
    }
}
