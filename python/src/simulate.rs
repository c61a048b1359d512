//! Simulations of schedules.

use std::sync::Arc;

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use topocoll::contention::{
    Control, MODELS, Request, Routing, Scheduled, ScheduledSizes, Settings, Simulation, Sync,
    Traffic, in_seconds, simulate,
};
use topocoll::{
    AnalysisError, Counts, Demand, Endpoint, Machine, Parameters, Schedule, check_counting_work,
    count_steps,
};

use crate::refused;
use crate::schedule::memory;
use crate::watch::Watch;

/// How a schedule is simulated.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    model: String,
    barrier: Option<bool>,
    records: bool,
    adaptive: bool,
}

/// What is simulated, and how.
pub(crate) struct Run {
    machine: Machine,
    /// Sizes of blocks, in the steps model.
    demand: Option<Arc<Demand>>,
    /// The place of a contention model; `None` is the steps model.
    model: Option<usize>,
    sync: Sync,
    records: bool,
    settings: Settings,
}

/// What was found.
pub(crate) enum Found {
    Steps { counts: Box<Counts>, steps: Vec<f64> },
    Network { simulation: Box<Simulation>, model: &'static str, sync: Sync, accuracy: &'static str },
}

impl Run {
    pub(crate) fn new(
        machine: &Machine,
        options: Options,
        given: Parameters,
        demand: Option<Arc<Demand>>,
    ) -> PyResult<Self> {
        let Options { model, barrier, records, adaptive } = options;
        let mut machine = machine.clone();
        let by_steps = model == "steps";
        let place = MODELS.iter().position(|known| known.name == model);
        if place.is_none() && !by_steps {
            let known = MODELS.iter().map(|known| known.name).collect::<Vec<_>>().join(", ");
            return Err(refused(format!("model is `{model}`: one of steps, {known}")));
        }
        let barrier = barrier.unwrap_or(by_steps);
        let wrong = |text: &str| Err(refused(format!("the steps model {text}")));
        if by_steps && !barrier {
            return wrong("requires barriers between steps");
        }
        if by_steps && records {
            return wrong("has no records of links");
        }
        if by_steps && (adaptive || !given.is_empty()) {
            return wrong("has no parameters");
        }
        let (endpoint, model): (Parameters, Parameters) =
            given.into_iter().partition(|(name, _)| Endpoint::knows(name));
        for (name, value) in endpoint {
            machine.endpoint.set(&name, &value.to_string()).map_err(refused)?;
        }
        let mut settings = Settings::from_parameters(&model).map_err(refused)?;
        if adaptive {
            settings.routing = Routing::Adaptive;
        }
        let sync = if barrier { Sync::Barrier } else { Sync::Free };
        Ok(Self { machine, demand, model: place, sync, records, settings })
    }

    pub(crate) fn simulate(
        &self,
        schedule: &Schedule,
        watch: &Watch,
    ) -> Result<Found, AnalysisError> {
        let machine = &self.machine;
        let Some(model) = self.model.map(|place| &MODELS[place]) else {
            check_counting_work(schedule, machine)?;
            watch.start(schedule.rule().steps().into());
            let mut steps = Vec::new();
            let counts =
                count_steps(schedule, machine, self.demand.as_deref(), memory(), |_, step| {
                    watch.add(1);
                    steps.push(step.time(machine, schedule.problem.block_bytes).total());
                })?;
            return Ok(Found::Steps { counts: Box::new(counts), steps });
        };
        let demand = self.demand.as_ref();
        let sized = demand.map(|demand| ScheduledSizes::new(schedule, machine, demand, memory()));
        let (sized, equal) = (sized.transpose()?, Scheduled::new(schedule, machine));
        let traffic = sized.as_ref().map_or(&equal as &dyn Traffic, |sized| sized);
        let simulation = watch.progress(|progress| {
            let mut request = Request::new(traffic, machine, model, memory());
            (request.settings, request.sync) = (self.settings, self.sync);
            request.records = self.records;
            let stop = || watch.stopped();
            request.control = Control { progress, stop: &stop };
            simulate(&request)
        })?;
        let accuracy = model.accuracy(machine);
        Ok(Found::Network {
            simulation: Box::new(simulation),
            model: model.name,
            sync: self.sync,
            accuracy,
        })
    }
}

/// The result as plain values and arrays.
pub(crate) fn simulation(py: Python<'_>, found: Found) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    match found {
        Found::Steps { counts, steps } => {
            out.set_item("model", "steps")?;
            out.set_item("barrier", true)?;
            out.set_item("time", counts.time.total())?;
            out.set_item("messages", counts.messages)?;
            let mut now = 0.0;
            let each = counts.time.barrier / counts.steps.saturating_sub(1).max(1) as f64;
            let times = steps.iter().flat_map(|&seconds| {
                let start = now;
                now = start + seconds + each;
                [start, start + seconds]
            });
            out.set_item("steps", times.collect::<Vec<_>>().into_pyarray(py))?;
        }
        Found::Network { simulation, model, sync, accuracy } => {
            out.set_item("model", model)?;
            out.set_item("barrier", sync == Sync::Barrier)?;
            out.set_item("accuracy", accuracy)?;
            let found = *simulation;
            out.set_item("time", in_seconds(found.time))?;
            out.set_item("messages", found.messages)?;
            let times = found.steps.iter().flat_map(|step| [step.start, step.end].map(in_seconds));
            out.set_item("steps", times.collect::<Vec<_>>().into_pyarray(py))?;
            if let Some(latencies) = found.latencies {
                let summary = PyDict::new(py);
                summary.set_item("average", latencies.average * 1e-12)?;
                summary.set_item("max", in_seconds(latencies.max))?;
                summary.set_item("p50", in_seconds(latencies.p50))?;
                summary.set_item("p99", in_seconds(latencies.p99))?;
                out.set_item("latency", summary)?;
            }
            out.set_item("link_utilisation", found.link_utilisation)?;
            let bytes =
                found.links.iter().map(|link| u64::try_from(link.bytes).unwrap_or(u64::MAX));
            out.set_item("link_bytes", bytes.collect::<Vec<_>>().into_pyarray(py))?;
            let waited = found.links.iter().map(|link| in_seconds(link.waited));
            out.set_item("link_waited", waited.collect::<Vec<_>>().into_pyarray(py))?;
            let deadlock = found.deadlock.iter();
            let deadlock = deadlock.map(|held| (held.from.0, held.to.0, held.waits_for.clone()));
            out.set_item("deadlock", deadlock.collect::<Vec<_>>())?;
            let mut records = Vec::with_capacity(found.intervals.len() * 48);
            for held in &found.intervals {
                for field in [held.link.0, held.start, held.end, held.bytes] {
                    records.extend_from_slice(&field.to_ne_bytes());
                }
                for field in [held.step, held.from.0, held.to.0, 0] {
                    records.extend_from_slice(&field.to_ne_bytes());
                }
            }
            out.set_item("intervals", records.into_pyarray(py))?;
        }
    }
    Ok(out)
}
