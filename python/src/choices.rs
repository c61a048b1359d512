//! Selections and sweeps.

use std::sync::Arc;

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use topocoll::{
    BestBounds, Budget, Catalogue, Choice, Collective, Error, Exchange, Fastest, GivenSchedule,
    Origin, Parameters, Problem, Rejected, Selection, Sweep,
};

use crate::machine::Machine;
use crate::schedule::{Listed, Schedule};
use crate::watch::watched;
use crate::{dictionary, parameters, refused};

/// A machine, a problem, and own schedules beside the standard algorithms.
#[pyclass(frozen, module = "topocoll._core")]
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) machine: Arc<topocoll::Machine>,
    pub(crate) problem: Problem,
    own: Vec<topocoll::Schedule>,
}

impl Request {
    /// Calls `work` with the exchange.
    fn exchange<T>(
        &self,
        budget: Budget<'_>,
        work: impl FnOnce(&Exchange<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut catalogue = Catalogue::standard();
        for schedule in &self.own {
            let name = &schedule.origin.algorithm;
            catalogue =
                catalogue.with(GivenSchedule::new(name, schedule.clone(), &self.machine)?)?;
        }
        let exchange = Exchange::new(&self.machine, &self.problem)?;
        work(&exchange.catalogue(&catalogue).budget(budget))
    }
}

#[pymethods]
impl Request {
    #[new]
    fn new(machine: &Machine, operation: &str, block: u64) -> PyResult<Self> {
        let operation: Collective = operation.parse().map_err(refused)?;
        let (ranks, ports) = (machine.own.ranks(), machine.own.ports);
        let problem = Problem::new(operation, ranks, ports, block).map_err(refused)?;
        Ok(Self { machine: Arc::clone(&machine.own), problem, own: Vec::new() })
    }

    /// The same with an own schedule.
    fn with_own(&self, schedule: &Schedule) -> Self {
        let mut request = self.clone();
        request.own.push(schedule.own.clone());
        request
    }

    /// The ranking of all algorithms and settings.
    fn select<'py>(
        &self,
        py: Python<'py>,
        tick: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let request = self.clone();
        #[expect(clippy::redundant_closure_for_method_calls, reason = "for all lifetimes")]
        let found = watched(py, tick, move |watch| {
            watch.progress(|progress| {
                let mut budget = Budget::default();
                budget.progress = progress;
                request.exchange(budget, |exchange| exchange.select())
            })
        })?;
        selection(py, &found)
    }

    /// Predicted times over ascending block sizes, of all algorithms or those named.
    fn sweep<'py>(
        &self,
        py: Python<'py>,
        blocks: Vec<u64>,
        named: Vec<(String, Bound<'py, PyDict>)>,
        tick: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let request = self.clone();
        let Problem { operation, ranks, .. } = request.problem;
        let ports = request.problem.both_ports();
        for &block in &blocks {
            Problem::new(operation, ranks, ports, block).map_err(refused)?;
        }
        let named = named.into_iter().map(|(name, given)| Ok((name, parameters(&given)?)));
        let named = named.collect::<PyResult<Vec<(String, Parameters)>>>()?;
        let found = watched(py, tick, move |_| {
            request.exchange(Budget::default(), |exchange| exchange.sweep(&blocks, &named))
        })?;
        lines(py, found)
    }

    /// The schedule of an algorithm, standard or own.
    fn schedule(
        &self,
        py: Python<'_>,
        name: String,
        given: &Bound<'_, PyDict>,
        tick: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Schedule> {
        let (request, given) = (self.clone(), parameters(given)?);
        let own = watched(py, tick, move |_| {
            request.exchange(Budget::default(), |exchange| exchange.schedule(&name, &given))
        })?;
        Ok(Schedule { machine: Arc::clone(&self.machine), own })
    }

    /// The schedule of listed messages.
    fn listed(
        &self,
        py: Python<'_>,
        name: String,
        given: &Bound<'_, PyDict>,
        messages: Listed<'_>,
    ) -> PyResult<Schedule> {
        let origin = Origin { algorithm: name, parameters: parameters(given)? };
        messages.schedule(py, &self.machine, self.problem, origin)
    }
}

fn selection<'py>(py: Python<'py>, found: &Selection) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let choices = found.choices.iter().map(|choice| entry(py, choice));
    out.set_item("choices", choices.collect::<PyResult<Vec<_>>>()?)?;
    out.set_item("undecided", found.undecided().len())?;
    out.set_item("rejected", rejected(&found.rejected))?;
    out.set_item("bound", bound(py, &found.bound)?)?;
    // A setting that splits blocks may not accept this size.
    let place = |one: &Fastest| {
        let is = |choice: &Choice| {
            (&choice.algorithm, &choice.parameters) == (&one.algorithm, &one.parameters)
        };
        Some((one.block_bytes, found.choices.iter().position(is)?))
    };
    let crossovers: Vec<_> = found.crossovers.iter().filter_map(place).collect();
    out.set_item("crossovers", crossovers)?;
    Ok(out)
}

fn entry<'py>(py: Python<'py>, choice: &Choice) -> PyResult<Bound<'py, PyDict>> {
    let (price, out) = (&choice.price, PyDict::new(py));
    out.set_item("algorithm", &choice.algorithm)?;
    out.set_item("parameters", dictionary(py, &choice.parameters)?)?;
    out.set_item("time", price.time.total())?;
    out.set_item("startup", price.time.startup)?;
    out.set_item("transmission", price.time.transmission)?;
    out.set_item("propagation", price.time.propagation)?;
    out.set_item("rearrangement", price.time.rearrangement)?;
    out.set_item("barrier", price.time.barrier)?;
    out.set_item("steps", price.steps)?;
    out.set_item("blocks", price.blocks)?;
    out.set_item("link_blocks", price.link_blocks)?;
    out.set_item("max_link_sharing", price.link_contention)?;
    out.set_item("bound_ratio", choice.bound_ratio)?;
    out.set_item("tradeoff_ratio", choice.tradeoff_ratio)?;
    out.set_item("priced", price.priced.name())?;
    Ok(out)
}

fn rejected(rejected: &[Rejected]) -> Vec<(String, String)> {
    let each = |rejected: &Rejected| (rejected.algorithm.clone(), rejected.reason.clone());
    rejected.iter().map(each).collect()
}

fn bound<'py>(py: Python<'py>, bound: &BestBounds) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("time", bound.seconds)?;
    out.set_item("steps", bound.steps)?;
    out.set_item("blocks", bound.blocks)?;
    out.set_item("link_blocks", bound.link_blocks)?;
    Ok(out)
}

fn lines<'py>(py: Python<'py>, found: Sweep) -> PyResult<Bound<'py, PyDict>> {
    let (out, lines) = (PyDict::new(py), PyList::empty(py));
    for line in &found.lines {
        let points = line.points.iter().map(|choice| entry(py, choice));
        lines.append((&line.algorithm, points.collect::<PyResult<Vec<_>>>()?))?;
    }
    out.set_item("lines", lines)?;
    out.set_item("rejected", rejected(&found.rejected))?;
    let fastest = found.crossovers.iter();
    let fastest =
        fastest.map(|f| Ok((f.block_bytes, f.algorithm.clone(), dictionary(py, &f.parameters)?)));
    out.set_item("crossovers", fastest.collect::<PyResult<Vec<_>>>()?)?;
    let bounds: Vec<f64> = found.bounds.iter().map(|bound| bound.seconds).collect();
    out.set_item("bounds", bounds.into_pyarray(py))?;
    out.set_item("blocks", found.block_sizes.into_pyarray(py))?;
    Ok(out)
}
