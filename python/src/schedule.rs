use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use topocoll::formats::jsonl::{self, MessageLine};
use topocoll::formats::{self, FORMATS, Source, Target, Writer};
use topocoll::{
    Budget, Catalogue, Collective, Counts, Error, Exchange, GivenSchedule, Method, Origin,
    Parameters, Problem, Rank, check_counting_work, count, verify_watched,
};

use topocoll_report::{Asked, PARTS};

use crate::listing;
use crate::machine::Machine;
use crate::simulate::{Options, Run, simulation};
use crate::watch::watched;
use crate::{dictionary, parameters, refused};

/// A schedule with its machine.
#[pyclass(frozen, module = "topocoll._core")]
pub(crate) struct Schedule {
    pub(crate) machine: Arc<topocoll::Machine>,
    pub(crate) own: topocoll::Schedule,
}

/// The most bytes of memory of a reading.
pub(crate) fn memory() -> u128 {
    Budget::default().memory
}

impl Schedule {
    fn both(&self) -> (Arc<topocoll::Machine>, topocoll::Schedule) {
        (Arc::clone(&self.machine), self.own.clone())
    }

    /// The blocks of a layout as an array of ranks and slots; -1 means no block.
    fn layout<'py>(
        &self,
        py: Python<'py>,
        name: impl Fn(Rank, u64) -> Option<u32> + Send + Sync,
    ) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let (ranks, slots) = (self.own.problem.ranks, self.own.rule().slots());
        listing::check("the layout", u128::from(ranks) * u128::from(slots) * 8).map_err(refused)?;
        let layout = py.detach(|| {
            let all = (0..ranks).flat_map(|rank| (0..slots).map(move |slot| (Rank(rank), slot)));
            all.map(|(rank, slot)| name(rank, slot).map_or(-1, i64::from)).collect::<Vec<_>>()
        });
        let shape = [ranks as usize, slots as usize];
        layout.into_pyarray(py).call_method1("reshape", (shape,))?.cast_into().map_err(PyErr::from)
    }
}

#[pymethods]
impl Schedule {
    #[getter]
    fn machine(&self) -> Machine {
        Machine { own: Arc::clone(&self.machine) }
    }

    #[getter]
    fn algorithm(&self) -> &str {
        &self.own.origin.algorithm
    }

    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        dictionary(py, &self.own.origin.parameters)
    }

    #[getter]
    fn operation(&self) -> &'static str {
        self.own.problem.operation.name()
    }

    #[getter]
    fn ranks(&self) -> u32 {
        self.own.problem.ranks
    }

    #[getter]
    fn ports(&self) -> u32 {
        self.own.problem.ports
    }

    #[getter]
    fn node_ports(&self) -> u32 {
        let problem = &self.own.problem;
        problem.own_node_ports(&*self.machine.topology).unwrap_or(problem.ports)
    }

    #[getter]
    fn block_bytes(&self) -> u64 {
        self.own.problem.block_bytes
    }

    #[getter]
    fn steps(&self) -> u32 {
        self.own.rule().steps()
    }

    #[getter]
    fn slots(&self) -> u64 {
        self.own.rule().slots()
    }

    #[getter]
    fn names_blocks(&self) -> bool {
        self.own.rule().names_blocks()
    }

    /// The bytes at which blocks are split.
    #[getter]
    fn cuts(&self) -> Vec<u64> {
        self.own.rule().cuts().to_vec()
    }

    fn counts<'py>(
        &self,
        py: Python<'py>,
        tick: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (machine, schedule) = self.both();
        let counts = watched(py, tick, move |_| {
            check_counting_work(&schedule, &machine)?;
            count(&schedule, &machine, None, memory())
        })?;
        counted(py, &counts)
    }

    fn verify<'py>(
        &self,
        py: Python<'py>,
        method: Option<&str>,
        tick: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let method = match method {
            None => None,
            Some("replay") => Some(Method::Replay),
            Some("classes") => Some(Method::Classes),
            Some(other) => {
                return Err(refused(format!("method is `{other}`: one of replay, classes")));
            }
        };
        let (machine, schedule) = self.both();
        let found = watched(py, tick, move |watch| {
            watch.progress(|progress| {
                verify_watched(&schedule, &machine, method, memory(), &progress)
            })
        })?;
        let out = PyDict::new(py);
        out.set_item("method", found.method.name())?;
        out.set_item("classes", found.classes)?;
        out.set_item("violation", found.violation.map(|violation| violation.to_string()))?;
        out.set_item("resent_blocks", found.resent_blocks)?;
        out.set_item("counts", counted(py, &found.counts)?)?;
        Ok(out)
    }

    /// The records of all messages, one after the other.
    fn messages<'py>(
        &self,
        py: Python<'py>,
        tick: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let (machine, schedule) = self.both();
        let records =
            watched(py, tick, move |watch| listing::messages(&schedule, &machine, watch))?;
        Ok(records.into_pyarray(py))
    }

    /// The slots of all messages and copies; see `listing::Program`.
    fn program<'py>(
        &self,
        py: Python<'py>,
        tick: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (_, schedule) = self.both();
        let program = watched(py, tick, move |watch| listing::program(&schedule, watch))?;
        let out = PyDict::new(py);
        out.set_item("messages", program.messages.into_pyarray(py))?;
        out.set_item("sent", program.sent.into_pyarray(py))?;
        out.set_item("received", program.received.into_pyarray(py))?;
        out.set_item("copies", program.copies.into_pyarray(py))?;
        out.set_item("copied_from", program.copied_from.into_pyarray(py))?;
        out.set_item("copied_to", program.copied_to.into_pyarray(py))?;
        Ok(out)
    }

    /// The destination of the block of every rank and slot before the first step; in an all-gather
    /// its source. -1 means no block.
    fn initial<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        self.layout(py, |rank, slot| Some(self.own.rule().initial_block(rank, slot)?.to.0))
    }

    /// The source of the block of every rank and slot after the last step; -1 means no block.
    fn last<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        self.layout(py, |rank, slot| Some(self.own.rule().final_block(rank, slot)?.from.0))
    }

    fn simulate<'py>(
        &self,
        py: Python<'py>,
        options: Options,
        given: &Bound<'py, PyDict>,
        tick: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let run = Run::new(&self.machine, options, parameters(given)?)?;
        let schedule = self.own.clone();
        let found = watched(py, tick, move |watch| run.simulate(&schedule, watch))?;
        simulation(py, found)
    }

    /// The page of the exchange as HTML; it opens with this schedule.
    fn report(
        &self,
        py: Python<'_>,
        command: String,
        tick: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let (machine, schedule) = self.both();
        watched(py, tick, move |watch| {
            let (name, parameters) = (&schedule.origin.algorithm, &schedule.origin.parameters);
            let mut catalogue = Catalogue::standard();
            let own = catalogue.find(name).is_err();
            if own {
                catalogue =
                    catalogue.with(GivenSchedule::new(name, schedule.clone(), &machine)?)?;
            }
            // A given schedule is ranked without parameters.
            let none = Parameters::new();
            let asked = Some((name.as_str(), if own { &none } else { parameters }));
            let exchange = Exchange::new(&machine, &schedule.problem)?.catalogue(&catalogue);
            watch.start(PARTS);
            let asked = Asked { algorithm: asked, model: None, command, memory: memory() };
            let page = topocoll_report::report(&exchange, &asked, &|| watch.add(1));
            Ok::<_, Error>(page?.html)
        })
    }

    /// Writes a file, or files into an empty folder.
    fn save(
        &self,
        py: Python<'_>,
        path: PathBuf,
        format: &str,
        tick: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let known = || FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(", ");
        let Some(format) = FORMATS.iter().find(|known| known.name == format) else {
            return Err(refused(format!("format is `{format}`: one of {}", known())));
        };
        let (machine, schedule) = self.both();
        let writer = format.writer;
        watched(py, tick, move |watch| {
            let source = Source::new(&schedule, &machine, memory());
            write(&source, writer, &path, &|bytes| watch.add(bytes))
        })
    }
}

fn write(
    source: &Source<'_>,
    writer: Writer,
    path: &Path,
    seen: &dyn Fn(u64),
) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("cannot write `{}`: {e}", path.display());
    check_counting_work(source.schedule, source.machine).map_err(|e| e.to_string())?;
    match writer {
        Writer::Folder(write) => write(source, path, seen).map_err(|e| e.to_string()),
        Writer::File(write) => {
            let file = File::create(path).map_err(failed)?;
            let mut out = BufWriter::new(Seen { file, seen });
            write(source, &mut out).map_err(|e| e.to_string())?;
            out.flush().map_err(failed)
        }
    }
}

/// A file that reports the bytes written.
struct Seen<'s> {
    file: File,
    seen: &'s dyn Fn(u64),
}

impl std::io::Write for Seen<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.file.write(bytes)?;
        (self.seen)(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

fn counted<'py>(py: Python<'py>, counts: &Counts) -> PyResult<Bound<'py, PyDict>> {
    let (out, in_blocks) = (PyDict::new(py), |bytes| counts.in_blocks(bytes));
    out.set_item("steps", counts.steps)?;
    out.set_item("messages", counts.messages)?;
    out.set_item("bytes", counts.bytes)?;
    out.set_item("blocks", in_blocks(counts.bytes))?;
    out.set_item("link_blocks", in_blocks(counts.link_bytes))?;
    out.set_item("hops", counts.hops)?;
    out.set_item("rearrangements", counts.rearrangements)?;
    out.set_item("rearranged_blocks", in_blocks(counts.rearranged_bytes))?;
    out.set_item("packed_blocks", in_blocks(counts.packed_bytes))?;
    out.set_item("link_conflicts", counts.link_conflicts)?;
    out.set_item("max_link_sharing", counts.link_contention)?;
    out.set_item("contended_steps", counts.contended_steps)?;
    out.set_item("contention_free_steps", counts.contention_free_steps)?;
    out.set_item("port_violations", counts.port_violations)?;
    out.set_item("inter_node_steps", counts.inter_node_steps)?;
    out.set_item("time", counts.time.total())?;
    Ok(out)
}

/// Messages with the blocks they carry.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Listed<'py> {
    /// Step, sender and receiver of each message.
    messages: PyReadonlyArray2<'py, u32>,
    /// Its number of blocks.
    counts: PyReadonlyArray1<'py, u64>,
    /// A source, a destination, the first byte and the end byte of each block.
    blocks: PyReadonlyArray2<'py, u64>,
    /// The number of segments of its route; 0 for the machine's own.
    route_counts: PyReadonlyArray1<'py, u64>,
    /// A dimension and signed hops of each segment.
    routes: PyReadonlyArray2<'py, i64>,
}

impl Listed<'_> {
    pub(crate) fn schedule(
        self,
        py: Python<'_>,
        machine: &Arc<topocoll::Machine>,
        problem: Problem,
        origin: Origin,
    ) -> PyResult<Schedule> {
        let (blocks, routes) = (self.blocks.as_array(), self.routes.as_array());
        let (messages, counts) = (self.messages.as_array(), self.counts.as_array());
        let route_counts = self.route_counts.as_array();
        let (mut block_at, mut route_at) = (0, 0);
        let all = messages.rows().into_iter().zip(counts.iter().zip(route_counts));
        let lines = all.map(|(message, (&blocks_of, &route_of))| {
            let (first, begins) = (block_at, route_at);
            (block_at, route_at) = (first + blocks_of as usize, begins + route_of as usize);
            let route = (begins..route_at).map(|i| (routes[[i, 0]] as u32, routes[[i, 1]]));
            let blocks = (first..block_at).map(|i| {
                let row = [0, 1, 2, 3].map(|column| blocks[[i, column]]);
                match problem.operation {
                    Collective::AllToAll => row.to_vec(),
                    Collective::AllGather => vec![row[0], row[2], row[3]],
                }
            });
            MessageLine {
                step: message[0],
                from: message[1],
                to: message[2],
                route: (route_of > 0).then(|| route.collect()),
                links: None,
                blocks: blocks.collect(),
            }
        });
        let own =
            py.detach(|| jsonl::schedule(problem, origin, lines, &Target::new(machine, memory())));
        Ok(Schedule { machine: Arc::clone(machine), own: own.map_err(refused)? })
    }
}

/// The schedule in a file, in any format that can be read. A header may raise the ports of a short form, but not
/// those of a machine file.
#[pyfunction]
pub(crate) fn read(
    py: Python<'_>,
    machine: &Machine,
    path: PathBuf,
    tick: Option<&Bound<'_, PyAny>>,
) -> PyResult<Schedule> {
    let own = Arc::clone(&machine.own);
    let (own, ports) = watched(py, tick, move |watch| {
        let seen = |bytes| watch.add(bytes);
        let mut target = Target::new(&own, memory());
        target.seen = &seen;
        let schedule = formats::read(&path, &target)
            .map_err(|e| format!("{}: {}", path.display(), Error::from(e)))?;
        let (ports, granted) = (schedule.problem.both_ports(), own.ports);
        if !ports.within(granted) && !own.sources.is_empty() {
            return Err(format!("the schedule uses {ports} ports, and {} has {granted}", own.name));
        }
        Ok((schedule, ports))
    })?;
    let mut machine = topocoll::Machine::clone(&machine.own);
    machine.set_ports(ports);
    Ok(Schedule { machine: Arc::new(machine), own })
}
