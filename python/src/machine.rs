use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use topocoll::units::parse_bytes;
use topocoll::units::parse_ports;
use topocoll::{LinkId, Rank, files, spec};

use crate::refused;

/// A machine.
#[pyclass(frozen, module = "topocoll._core")]
pub(crate) struct Machine {
    pub(crate) own: Arc<topocoll::Machine>,
}

impl Machine {
    fn of(machine: topocoll::Machine) -> Self {
        Self { own: Arc::new(machine) }
    }
}

#[pymethods]
impl Machine {
    /// A machine by its file, shipped name or short form.
    #[staticmethod]
    fn named(text: &str) -> PyResult<Self> {
        topocoll::machine(text).map(Self::of).map_err(refused)
    }

    /// A machine by the text of a machine file.
    #[staticmethod]
    fn of_file(name: &str, text: &str) -> PyResult<Self> {
        files::read(name, text).map(Self::of).map_err(|e| refused(format!("{name}: {e}")))
    }

    /// A machine by the text of node-link JSON.
    #[staticmethod]
    fn of_graph(name: &str, text: &str) -> PyResult<Self> {
        let topology = spec::parse_graph(name, text).map_err(refused)?;
        Ok(Self::of(topocoll::Machine::of(topology)))
    }

    /// The same with other ports, at most one for each message of a rank or node.
    fn with_ports(&self, ports: &str) -> PyResult<Self> {
        let ports = parse_ports(ports).map_err(|e| refused(format!("ports is {ports}: {e}")))?;
        let mut machine = topocoll::Machine::clone(&self.own);
        machine.set_ports(ports);
        Ok(Self::of(machine))
    }

    #[getter]
    fn name(&self) -> &str {
        &self.own.name
    }

    #[getter]
    fn short_form(&self) -> String {
        self.own.topology.short_form()
    }

    #[getter]
    fn ranks(&self) -> u32 {
        self.own.ranks()
    }

    #[getter]
    fn ports(&self) -> u32 {
        self.own.ports.rank
    }

    #[getter]
    fn node_ports(&self) -> u32 {
        self.own.ports.node
    }

    #[getter]
    fn nodes(&self) -> u32 {
        self.own.topology.nodes()
    }

    #[getter]
    fn links(&self) -> u64 {
        self.own.topology.links()
    }

    /// The timing values, and the sources of values in machine files.
    fn timing<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (timing, out) = (&self.own.timing, PyDict::new(py));
        out.set_item("name", &timing.name)?;
        out.set_item("startup", timing.startup.values().to_vec())?;
        out.set_item("per_byte", timing.per_byte.values().to_vec())?;
        out.set_item("per_hop", timing.per_hop.values().to_vec())?;
        out.set_item("rearrangement_per_byte", timing.rearrangement_per_byte)?;
        out.set_item("barrier", timing.barrier.seconds(self.own.ranks()))?;
        out.set_item("sources", self.own.sources.clone())?;
        Ok(out)
    }

    /// The node of each rank.
    fn node_of_ranks<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        let ranks = (0..self.own.ranks()).map(Rank);
        ranks.map(|rank| self.own.topology.node_of(rank)).collect::<Vec<_>>().into_pyarray(py)
    }

    /// The names of nodes and switches, numbered as the ends of links.
    fn vertices(&self) -> Vec<String> {
        let topology = &self.own.topology;
        let ends = self.link_numbers().filter_map(|link| topology.link(link));
        let last = ends.map(|link| link.from.max(link.to) + 1).max().unwrap_or(0);
        (0..last.max(topology.nodes())).map(|vertex| topology.vertex_name(vertex)).collect()
    }

    /// Of each directed link: its ends, the seconds of a byte, and the seconds of its latency.
    #[expect(clippy::type_complexity, reason = "four columns")]
    fn link_table<'py>(
        &self,
        py: Python<'py>,
    ) -> (
        Bound<'py, PyArray1<u32>>,
        Bound<'py, PyArray1<u32>>,
        Bound<'py, PyArray1<f64>>,
        Bound<'py, PyArray1<f64>>,
    ) {
        let (mut from, mut to, mut per_byte, mut latency) = (vec![], vec![], vec![], vec![]);
        for number in self.link_numbers() {
            let Some(link) = self.own.topology.link(number) else { continue };
            from.push(link.from);
            to.push(link.to);
            per_byte.push(self.own.seconds_per_byte(number));
            latency.push(self.own.latency(number));
        }
        (
            from.into_pyarray(py),
            to.into_pyarray(py),
            per_byte.into_pyarray(py),
            latency.into_pyarray(py),
        )
    }
}

impl Machine {
    fn link_numbers(&self) -> impl Iterator<Item = LinkId> {
        (0..self.own.topology.link_numbers()).map(LinkId)
    }
}

/// The bytes of a size such as `4KiB`.
#[pyfunction]
pub(crate) fn block_bytes(text: &str) -> PyResult<u64> {
    parse_bytes(text).map_err(|e| refused(format!("block `{text}`: {e}")))
}
