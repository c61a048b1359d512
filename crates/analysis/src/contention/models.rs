//! The models of the network.

use std::sync::Arc;

use topocoll_topology::{Endpoint, Machine, Shape};

use super::classes::ChannelClasses;
use super::clock::Clock;
use super::flit::{self, Flits};
use super::fluid::{self, Fluid};
use super::network::{Contents, Network};
use super::settings::{Dateline, Routing, Settings};
use super::wormhole::{self, Wormhole};
use crate::AnalysisError;
use crate::symmetry::Equivalent;

/// The constructor of a network model.
pub(super) type Make =
    for<'a> fn(&'a Machine, &Settings, &Clock<'_>, Of<'_>) -> Box<dyn Network + 'a>;

/// Bytes of the network of a machine for these contents.
pub(super) type Memory = fn(&Machine, &Settings, &Equivalent, &Contents) -> u128;

/// The traffic that a network model is made for.
pub(super) struct Of<'c> {
    pub(super) dateline: Dateline,
    pub(super) channels: Option<Arc<ChannelClasses>>,
    pub(super) ranks: &'c Equivalent,
    pub(super) records: bool,
}

/// A model of the network.
#[derive(Clone, Copy, Debug)]
pub struct ContentionModel {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// Whether a message without contention takes startup + transmission + propagation, so that
    /// steps without shared links need no simulation.
    pub(super) closed_form: bool,
    /// Whether it is a model of routers, so that messages need numbered links.
    pub(super) needs_links: bool,
    /// Whether messages take virtual channels.
    pub(super) virtual_channels: bool,
    /// Whether one rank of each class gives the exact result: translations keep every part of the
    /// model. In the other models virtual channels change at a dateline, which has a fixed place,
    /// and simultaneous requests are served in the order in which they are processed.
    pub(super) folds: bool,
    pub(super) cost: Cost,
    /// The packets of endpoints.
    packets: Packets,
    /// What was validated, on machines with numbered links and on all others.
    accuracy: [&'static str; 2],
    /// Checks that it has adaptive routes on a machine.
    adaptive: fn(&Machine, &Settings) -> Result<(), AnalysisError>,
    pub(super) make: Make,
    pub(super) memory: Memory,
}

impl ContentionModel {
    /// Whether it is fast enough to simulate every choice of a ranking: it follows messages, not flits.
    #[must_use]
    pub fn simulates_schedules(&self) -> bool {
        !self.cost.flits
    }

    /// How near the model was to measured figures, on machines of this kind: the chapter "Validation" of
    /// the book has each of them.
    #[must_use]
    pub fn accuracy(&self, machine: &Machine) -> &'static str {
        self.accuracy[usize::from(machine.topology.links() == 0)]
    }
}

/// How a model knows the packets of endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Packets {
    /// A message is not divided.
    None,
    /// They are sent one by one.
    OneByOne,
    /// Their overheads limit the injection of a rank.
    AsRates,
}

/// The models, in the order in which help lists them.
pub const MODELS: &[ContentionModel] = &[
    ContentionModel {
        name: "wormhole",
        summary: "headers take channels one by one and hold them until the tail has passed",
        closed_form: true,
        needs_links: false,
        virtual_channels: true,
        folds: false,
        cost: Cost { each: 0.0, link: 2e-7, flits: false },
        packets: Packets::None,
        accuracy: ["within 10 % of 2 of 2 latencies of BookSim; no machine was measured"; 2],
        adaptive: |_, _| {
            Err(AnalysisError::Routing {
                rule: "the wormhole model has no adaptive routing: use the flit or fluid model"
                    .to_owned(),
            })
        },
        make: |machine, settings, clock, Of { dateline, channels, records, .. }| {
            Box::new(Wormhole::new(machine, settings, clock, (dateline, channels), records))
        },
        memory: |machine, settings, _, contents| wormhole::memory(machine, settings, contents),
    },
    ContentionModel {
        name: "flit",
        summary: "virtual-channel routers with credits, cycle by cycle",
        closed_form: false,
        needs_links: true,
        virtual_channels: true,
        folds: false,
        cost: Cost { each: 0.0, link: 5e-8, flits: true },
        packets: Packets::OneByOne,
        accuracy: ["within 10 % of 12 of 12 latencies of BookSim; no machine was measured"; 2],
        adaptive: flit::check_adaptive,
        make: |machine, settings, clock, Of { dateline, channels, records, .. }| {
            Box::new(Flits::new(machine, settings, clock, (dateline, channels), records))
        },
        memory: |machine, settings, _, contents| flit::memory(machine, settings, contents),
    },
    ContentionModel {
        name: "fluid",
        summary: "messages flow at max-min fair rates",
        closed_form: true,
        needs_links: false,
        virtual_channels: false,
        folds: true,
        cost: Cost { each: 2e-6, link: 2.5e-7, flits: false },
        packets: Packets::AsRates,
        accuracy: [
            "within 10 % of 5 of 6 figures predicted for TPU slices and a ring of Blackhole chips",
            "within 10 % of 8 of 9 figures predicted for GPUs behind NVSwitch and InfiniBand clusters",
        ],
        adaptive: |_, _| Ok(()),
        make: |machine, settings, clock, Of { ranks, records, .. }| {
            Box::new(Fluid::new(machine, settings, clock, ranks, records))
        },
        memory: fluid::memory,
    },
];

/// The machine with the injection that the overheads of packets leave, where the model sends whole
/// messages.
pub(super) fn limited(model: &ContentionModel, machine: &Machine) -> Machine {
    let mut machine = machine.clone();
    if model.packets == Packets::AsRates {
        let injection = &mut machine.timing.injection.rank;
        *injection = injection.max(machine.endpoint.overhead_per_byte());
    }
    machine
}

/// Checks that a model supports a machine.
///
/// # Errors
/// A model of routers on a machine without links, or with too many virtual channels into a router.
/// A model without packets on a machine whose endpoints have them, or without its adaptive routes.
pub fn check_model(
    model: &ContentionModel,
    machine: &Machine,
    settings: &Settings,
) -> Result<(), AnalysisError> {
    if model.packets == Packets::None {
        let Endpoint { packet_bytes, packet_overhead, interleave, .. } = machine.endpoint;
        let given = [
            ("packet_bytes", packet_bytes.is_some()),
            ("packet_overhead", packet_overhead > 0.0),
            ("interleave=off", !interleave),
        ];
        if let Some((name, _)) = given.iter().find(|(_, given)| *given) {
            return Err(AnalysisError::Packets { model: model.name, name });
        }
    }
    if settings.routing == Routing::Adaptive {
        (model.adaptive)(machine, settings)?;
    }
    if !model.needs_links {
        return Ok(());
    }
    if !matches!(machine.topology.network(), Shape::Grid(_) | Shape::Graph(_)) {
        return Err(AnalysisError::NeedsLinks {
            model: model.name,
            topology: machine.topology.short_form(),
        });
    }
    let inputs = flit::most_inputs(machine) * u64::from(settings.vcs);
    if inputs > flit::MAX_INPUTS {
        return Err(AnalysisError::Inputs { inputs, most: flit::MAX_INPUTS });
    }
    Ok(())
}

/// Seconds of one core that a model takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Of each message, or in the flit model of each flit,
    pub(super) each: f64,
    /// and of each link on its route.
    pub(super) link: f64,
    /// Whether it counts flits.
    pub(super) flits: bool,
}
