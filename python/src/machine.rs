use std::fs::read_to_string;
use std::path::Path;
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use topocoll::spec::{Reading, parse_graph};
use topocoll::units::{parse_bytes, parse_ports};
use topocoll::{LinkId, Ports, Rank, files, machine};

use crate::refused;

/// What a machine is made of: a kind, a name, a text, and the ports that were asked for.
type Made = (String, String, String, Option<String>);

/// A machine. A pickle holds what it is made of; machines made of the same are equal.
#[pyclass(frozen, module = "topocoll._core")]
#[derive(Clone)]
pub(crate) struct Machine {
    pub(crate) own: Arc<topocoll::Machine>,
    made: Arc<Made>,
}

impl Machine {
    /// The same with other ports, at most one for each message of a rank or node.
    pub(crate) fn ported(&self, ports: Ports) -> Self {
        let (mut own, mut made) = (topocoll::Machine::clone(&self.own), Made::clone(&self.made));
        own.set_ports(ports);
        made.3 = Some(ports.to_string());
        Self { own: Arc::new(own), made: Arc::new(made) }
    }
}

#[pymethods]
impl Machine {
    /// A machine by the path of its file, its shipped name or short form (`named`), or by the text of a machine
    /// file (`file`), of a machine file at a path (`path`), or of a list of links (`graph`).
    #[new]
    #[pyo3(signature = (kind, name, text="", ports=None))]
    fn new(kind: &str, name: &str, text: &str, ports: Option<&str>) -> PyResult<Self> {
        let path = Path::new(name);
        let own = match kind {
            "file" => files::read(name, text).map_err(|e| format!("{name}: {e}")),
            "path" => {
                let own = files::read_in(path, text, &Reading::default());
                own.map_err(|e| format!("{name}: {e}"))
            }
            "graph" => {
                parse_graph(name, text).map(topocoll::Machine::of).map_err(|e| e.to_string())
            }
            _ => machine(name).map_err(|e| e.to_string()),
        };
        let own = Arc::new(own.map_err(refused)?);
        // The text of a file is kept, as the file may change.
        let links = name.strip_prefix("graph:");
        let (of_text, path) = links.map_or(("path", name), |path| ("graph", path));
        let read = if kind == "named" { read_to_string(path).ok() } else { None };
        let (kind, name, text) = match &read {
            Some(text) => (of_text, path, &**text),
            None => (kind, name, text),
        };
        let made = Arc::new((kind.to_owned(), name.to_owned(), text.to_owned(), None));
        let made = Self { own, made };
        ports.map_or(Ok(made.clone()), |ports| made.with_ports(ports))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, Made) {
        (slf.get_type(), Made::clone(&slf.get().made))
    }

    fn __eq__(&self, other: &Self) -> bool {
        let of = |one: &Self| (one.made.0.clone(), one.made.1.clone(), one.own.ports);
        of(self) == of(other) && self.made.2 == other.made.2
    }

    /// The same with other ports.
    fn with_ports(&self, ports: &str) -> PyResult<Self> {
        let of = parse_ports(ports).map_err(|e| refused(format!("ports is {ports}: {e}")))?;
        Ok(self.ported(of))
    }

    /// Its name, topology and numbers.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (own, out) = (&self.own, PyDict::new(py));
        out.set_item("name", &own.name)?;
        out.set_item("short_form", own.topology.short_form())?;
        out.set_item("ranks", own.ranks())?;
        out.set_item("ports", own.ports.rank)?;
        out.set_item("node_ports", own.ports.node)?;
        out.set_item("nodes", own.topology.nodes())?;
        out.set_item("links", own.topology.links())?;
        Ok(out)
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
        let links = self.link_table().into_iter();
        let last = links.map(|(from, to, ..)| from.max(to) + 1).max().unwrap_or(0);
        (0..last.max(topology.nodes())).map(|vertex| topology.vertex_name(vertex)).collect()
    }

    /// Of each directed link: its ends, the seconds of a byte, and the seconds of its latency.
    fn link_table(&self) -> Vec<(u32, u32, f64, f64)> {
        let row = |number: LinkId| {
            let link = self.own.topology.link(number)?;
            let per_byte = self.own.seconds_per_byte(number);
            Some((link.from, link.to, per_byte, self.own.latency(number)))
        };
        (0..self.own.topology.link_numbers()).map(LinkId).filter_map(row).collect()
    }
}

/// The bytes of a size such as `4KiB`.
#[pyfunction]
pub(crate) fn block_bytes(text: &str) -> PyResult<u64> {
    parse_bytes(text).map_err(|e| refused(format!("block `{text}`: {e}")))
}

/// The names of shipped machines.
#[pyfunction]
pub(crate) fn shipped() -> Vec<&'static str> {
    topocoll::shipped().map(|(name, _)| name).collect()
}
