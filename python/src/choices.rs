//! Selections and sweeps.

use std::sync::Arc;

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use topocoll::contention::Sync;
use topocoll::{
    Algorithm, BestBounds, Budget, Catalogue, Choice, Collective, Demand, Error, Exchange, Fastest,
    GivenSchedule, Groups, Origin, Parameters, Problem, Rejected, Selection, Sweep,
    check_demand_work,
};
use topocoll_report::names::{Names, Row, SHOWN};
use topocoll_report::number::named;
use topocoll_report::words::rate;

use crate::machine::Machine;
use crate::schedule::{Listed, Schedule};
use crate::watch::watched;
use crate::{dictionary, parameters, refused, same};

/// A machine, a problem, sizes of blocks if they differ, groups that exchange, and own schedules beside the
/// standard algorithms.
#[pyclass(frozen, module = "topocoll._core")]
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) machine: Machine,
    /// Of all ranks.
    pub(crate) problem: Problem,
    /// The lines of a file of a demand matrix, and what they say.
    lines: Option<String>,
    demand: Option<Arc<Demand>>,
    /// The name or the lines of groups, and what they say.
    named: Option<String>,
    groups: Option<Groups>,
    own: Vec<Schedule>,
}

impl Request {
    /// The same without own schedules.
    pub(crate) fn alone(&self) -> Self {
        Self { own: Vec::new(), ..self.clone() }
    }

    /// Calls `work` with the exchange.
    pub(crate) fn exchange<T>(
        &self,
        budget: Budget<'_>,
        work: impl FnOnce(&Exchange<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (machine, mut catalogue) = (&self.machine.own, Catalogue::standard());
        for Schedule { own, .. } in &self.own {
            let name = &own.origin.algorithm;
            catalogue = catalogue.with(GivenSchedule::new(name, own.clone(), machine)?)?;
        }
        let mut exchange = Exchange::new(machine, &self.problem)?;
        if let Some(groups) = &self.groups {
            exchange = exchange.groups(groups)?;
        }
        if let Some(demand) = &self.demand {
            exchange = exchange.demand(demand)?;
        }
        if !self.own.is_empty() {
            exchange = exchange.catalogue(&catalogue);
        }
        work(&exchange.budget(budget))
    }

    /// The demand matrix of all ranks of the machine.
    pub(crate) fn sizes(&self) -> Option<Arc<Demand>> {
        let demand = self.demand.as_ref()?;
        Some(match &self.groups {
            Some(groups) => Arc::new(demand.on_groups(groups)),
            None => Arc::clone(demand),
        })
    }

    /// Refuses groups, for schedules of all ranks.
    fn check_whole(&self) -> PyResult<()> {
        match self.groups {
            Some(_) => Err(refused("groups: own algorithms and schedules are for all ranks")),
            None => Ok(()),
        }
    }
}

#[pymethods]
impl Request {
    /// The mean of listed sizes is the block.
    #[new]
    #[pyo3(signature = (machine, operation, block, lines=None, groups=None, own=vec![]))]
    pub(crate) fn new(
        machine: &Machine,
        operation: &str,
        block: u64,
        lines: Option<String>,
        groups: Option<String>,
        own: Vec<Schedule>,
    ) -> PyResult<Self> {
        let operation: Collective = operation.parse().map_err(refused)?;
        let (ranks, ports) = (machine.own.ranks(), machine.own.ports);
        let mut problem = Problem::new(operation, ranks, ports, block).map_err(refused)?;
        let mut exchange = Exchange::new(&machine.own, &problem).map_err(refused)?;
        let named = groups;
        let groups = named.as_ref().map(|text| Groups::read(text, &machine.own));
        let groups = groups.transpose().map_err(|e| refused(format!("groups: {e}")))?;
        if let Some(groups) = &groups {
            exchange = exchange.groups(groups).map_err(refused)?;
        }
        let read = |lines: &String| Demand::read(exchange.problem(), lines.as_bytes());
        let demand = lines.as_ref().map(read).transpose();
        let demand = demand.map_err(|e| refused(format!("demand: {e}")))?;
        if let Some(demand) = &demand {
            exchange.demand(demand).map_err(refused)?;
        }
        problem.block_bytes = demand.as_ref().map_or(block, Demand::mean);
        let (machine, demand) = (machine.clone(), demand.map(Arc::new));
        Ok(Self { machine, problem, lines, demand, named, groups, own })
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
        let Self { machine, problem, lines, named, own, .. } = slf.get().clone();
        let held = (machine, problem.operation.name(), problem.block_bytes, lines, named, own);
        Ok((slf.get_type(), held.into_pyobject(slf.py())?))
    }

    fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<bool> {
        same(slf, other)
    }

    #[getter]
    fn block_bytes(&self) -> u64 {
        self.problem.block_bytes
    }

    /// The number of groups, and the ranks of the largest.
    #[getter]
    fn groups(&self) -> Option<(u32, u32)> {
        self.groups.as_ref().map(|groups| (groups.count(), groups.sizes().max().unwrap_or(0)))
    }

    /// The same with an own schedule.
    fn with_own(&self, schedule: &Schedule) -> PyResult<Self> {
        self.check_whole()?;
        let mut request = self.clone();
        request.own.push(schedule.clone());
        Ok(request)
    }

    /// The ranking of all algorithms and settings.
    fn select<'py>(
        &self,
        py: Python<'py>,
        barrier: bool,
        tick: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let sync = if barrier { Sync::Barrier } else { Sync::Free };
        let (request, sized) = (self.clone(), self.demand.is_none());
        if let Some(demand) = &self.demand {
            let mut problem = self.problem;
            problem.ranks = demand.ranks();
            check_demand_work(&problem).map_err(|e| refused(format!("demand: {e}")))?;
        }
        // Schedules by name are of the ranking without barriers and own algorithms.
        let resolves = !barrier && request.own.is_empty();
        let (found, problem) = watched(py, tick, move |watch| {
            watch.progress(|progress| {
                let mut budget = Budget::default();
                budget.progress = progress;
                request.exchange(budget, |exchange| {
                    Ok((exchange.clone().sync(sync).select()?, *exchange.problem()))
                })
            })
        })?;
        // Bandwidths are of blocks of one size.
        selection(py, sized.then_some(&problem), &found, resolves)
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

    /// The schedule of listed messages.
    fn listed(
        &self,
        py: Python<'_>,
        name: String,
        given: &Bound<'_, PyDict>,
        messages: Listed<'_>,
    ) -> PyResult<Schedule> {
        self.check_whole()?;
        let origin = Origin { algorithm: name, parameters: parameters(given)? };
        let own = messages.schedule(py, &self.machine.own, self.problem, origin)?;
        Ok(Schedule { request: self.alone(), own, by_name: false })
    }
}

fn selection<'py>(
    py: Python<'py>,
    sized: Option<&Problem>,
    found: &Selection,
    resolves: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    // The names of the program's text.
    let catalogue = Catalogue::standard();
    let timed = found.choices.iter().map(|choice| (choice, choice.ranked_seconds()));
    let rows = Row::all(timed).into_iter().take(SHOWN).collect::<Vec<_>>();
    let names = Names::of_rows(&catalogue, found, &rows, []);
    let names = if resolves { names.resolved_by(found) } else { names };
    let choices = found.choices.iter().map(|choice| entry(py, choice, names.of(choice)));
    out.set_item("choices", choices.collect::<PyResult<Vec<_>>>()?)?;
    let time = found.best().map(Choice::ranked_seconds).filter(|time| time.is_finite());
    let sized = sized.zip(time);
    let [algorithm, bus] =
        sized.map_or([None; 2], |(problem, time)| problem.bandwidth(time).map(Some));
    out.set_item("algorithm_bandwidth", algorithm)?;
    out.set_item("bus_bandwidth", bus)?;
    out.set_item("rate", sized.map(|(problem, time)| rate(problem, &found.bound, time)))?;
    out.set_item("undecided", found.undecided().len())?;
    out.set_item("free_running_model", found.without_barriers.as_ref().map(|one| one.model))?;
    out.set_item("all_at_once", found.all_at_once)?;
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

fn entry<'py>(py: Python<'py>, choice: &Choice, named: String) -> PyResult<Bound<'py, PyDict>> {
    let (price, out) = (&choice.price, PyDict::new(py));
    out.set_item("named", named)?;
    out.set_item("algorithm", &choice.algorithm)?;
    out.set_item("parameters", dictionary(py, &choice.parameters)?)?;
    out.set_item("time", price.time.total())?;
    out.set_item("free_running", choice.free_running.map(|run| run.seconds))?;
    out.set_item("ranked", choice.ranked_seconds())?;
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
    out.set_item("transmission", bound.transmission)?;
    out.set_item("limited_by", bound.limit.name())?;
    Ok(out)
}

fn lines<'py>(py: Python<'py>, found: Sweep) -> PyResult<Bound<'py, PyDict>> {
    let (out, lines) = (PyDict::new(py), PyList::empty(py));
    let catalogue = Catalogue::standard();
    let names = Names::new(&catalogue, []);
    for line in &found.lines {
        let points = line.points.iter().map(|choice| {
            let (name, setting) = (&choice.algorithm, &choice.parameters);
            entry(py, choice, named(name, &names.complete(name, setting)))
        });
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

/// All algorithms: names, operations, lines for lists, sources and parameters.
#[pyfunction]
pub(crate) fn algorithms(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let each = |algorithm: &dyn Algorithm| {
        let (info, out, parameters) = (algorithm.info(), PyDict::new(py), PyDict::new(py));
        for parameter in info.parameters {
            parameters.set_item(parameter.name, parameter.to_string())?;
        }
        out.set_item("name", &info.name)?;
        out.set_item("operation", info.operation.name())?;
        out.set_item("summary", &info.summary)?;
        out.set_item("source", &info.source)?;
        out.set_item("parameters", parameters)?;
        Ok(out)
    };
    Catalogue::standard().iter().map(each).collect()
}
