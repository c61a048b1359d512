use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};
use topocoll::formats::jsonl::{self, MessageLine};
use topocoll::formats::{self, FORMATS, Format, Reader, Source, Target, Writer};
use topocoll::{
    AnalysisError, Budget, Catalogue, Collective, Counts, Error, Exchange, GivenSchedule, Method,
    Origin, Parameters, Problem, Rank, check_counting_work, count, files, verify_watched,
};

use topocoll_report::Asked;

use crate::choices::Request;
use crate::listing;
use crate::machine::Machine;
use crate::simulate::{Options, Run, simulation};
use crate::watch::watched;
use crate::{dictionary, parameters, refused, same};

/// A schedule with the question that it answers.
#[pyclass(frozen, from_py_object, module = "topocoll._core")]
#[derive(Clone)]
pub(crate) struct Schedule {
    pub(crate) request: Request,
    pub(crate) own: topocoll::Schedule,
    /// Whether the request and the origin make it again: it comes from a standard algorithm.
    pub(crate) by_name: bool,
}

/// The most bytes of memory of a reading.
pub(crate) fn memory() -> u128 {
    Budget::default().memory
}

impl Schedule {
    fn both(&self) -> (Arc<topocoll::Machine>, topocoll::Schedule) {
        (Arc::clone(&self.request.machine.own), self.own.clone())
    }

    /// All messages: JSON lines, or comma-separated values if no blocks are known.
    fn lines(&self) -> Result<Vec<u8>, String> {
        let (machine, mut out) = (&self.request.machine.own, Vec::new());
        check_counting_work(&self.own, machine).map_err(|e| e.to_string())?;
        let format = if self.own.rule().names_blocks() { "jsonl" } else { "csv" };
        if let Writer::File(write) = format_of(format)?.writer {
            let source = Source::new(&self.own, machine, memory());
            write(&source, &mut out).map_err(|e| e.to_string())?;
        }
        Ok(out)
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
    /// The schedule of an algorithm, standard or own, or of all its messages.
    #[new]
    #[pyo3(signature = (request, name, given, tick=None, lines=None))]
    fn new(
        py: Python<'_>,
        request: &Request,
        name: String,
        given: &Bound<'_, PyDict>,
        tick: Option<&Bound<'_, PyAny>>,
        lines: Option<Vec<u8>>,
    ) -> PyResult<Self> {
        let (of, given) = (request.clone(), parameters(given)?);
        let (own, by_name) = watched(py, tick, move |_| {
            let Some(lines) = lines else {
                let made = |exchange: &Exchange<'_>| {
                    Ok(exchange.placed(&exchange.schedule(&name, &given)?)?.into_owned())
                };
                let own = of.exchange(Budget::default(), made).map_err(|e| e.to_string())?;
                return Ok((own, Catalogue::standard().find(&name).is_ok()));
            };
            let target = Target::new(&of.machine.own, memory());
            let format = if lines.starts_with(b"{") { "jsonl" } else { "csv" };
            let Reader::File(read) = format_of(format)?.reader else { return Err(name) };
            let mut own = read(&mut &*lines, &target).map_err(|e| e.to_string())?;
            own.origin = Origin { algorithm: name, parameters: given };
            Ok::<_, String>((own, false))
        })?;
        Ok(Self { request: request.alone(), own, by_name })
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
        let (py, Self { request, own, by_name }) = (slf.py(), slf.get());
        let lines = if *by_name { None } else { Some(slf.get().lines().map_err(refused)?) };
        let lines = lines.map(|lines| PyBytes::new(py, &lines));
        let (name, given) = (&own.origin.algorithm, dictionary(py, &own.origin.parameters)?);
        let held = (request.clone(), name, given, py.None(), lines);
        Ok((slf.get_type(), held.into_pyobject(py)?))
    }

    fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<bool> {
        same(slf, other)
    }

    #[getter]
    fn machine(&self) -> Machine {
        self.request.machine.clone()
    }

    /// Its origin, problem and rule.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (problem, out) = (&self.own.problem, PyDict::new(py));
        let node_ports = problem.own_node_ports(&*self.request.machine.own.topology);
        out.set_item("algorithm", &self.own.origin.algorithm)?;
        out.set_item("parameters", dictionary(py, &self.own.origin.parameters)?)?;
        out.set_item("operation", problem.operation.name())?;
        out.set_item("ranks", problem.ranks)?;
        out.set_item("ports", problem.ports)?;
        out.set_item("node_ports", node_ports.unwrap_or(problem.ports))?;
        out.set_item("block_bytes", problem.block_bytes)?;
        out.set_item("steps", self.own.rule().steps())?;
        let groups = self.own.groups().map(|groups| {
            let ranks = |group| groups.group(group).ranks().iter().map(|rank| rank.0).collect();
            (0..groups.count()).map(ranks).collect::<Vec<Vec<u32>>>()
        });
        out.set_item("groups", groups)?;
        Ok(out)
    }

    fn counts<'py>(
        &self,
        py: Python<'py>,
        tick: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (machine, schedule) = self.both();
        let demand = self.request.sizes();
        let counts = watched(py, tick, move |_| {
            check_counting_work(&schedule, &machine)?;
            count(&schedule, &machine, demand.as_deref(), memory())
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
        let demand = self.request.sizes();
        let found = watched(py, tick, move |watch| {
            let verified = watch.progress(|progress| {
                verify_watched(&schedule, &machine, method, memory(), &progress)
            });
            let mut found = verified?;
            if demand.is_some() {
                found.counts = count(&schedule, &machine, demand.as_deref(), memory())?;
                found.exceeded = found.exceeded.min(found.counts.port_violations);
            }
            Ok::<_, AnalysisError>(found)
        })?;
        let out = PyDict::new(py);
        out.set_item("method", found.method.name())?;
        out.set_item("classes", found.classes)?;
        out.set_item("violation", found.violation.map(|violation| violation.to_string()))?;
        out.set_item("resent_blocks", found.resent_blocks)?;
        out.set_item("exceeded", found.exceeded)?;
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
        let (rule, out) = (self.own.rule(), PyDict::new(py));
        out.set_item("slots", rule.slots())?;
        // The bytes at which blocks are split.
        out.set_item("cuts", rule.cuts().to_vec())?;
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
        let demand = self.request.sizes();
        let run = Run::new(&self.request.machine.own, options, parameters(given)?, demand)?;
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
            let mut exchange = Exchange::new(&machine, &schedule.problem)?;
            if let Some(groups) = schedule.groups() {
                exchange = exchange.groups(groups)?;
            }
            let exchange = exchange.catalogue(&catalogue);
            let asked = Asked {
                catalogue: &catalogue,
                demand: None,
                algorithm: asked,
                model: None,
                against: None,
                command,
                memory: memory(),
            };
            let page = watch.progress(|progress| {
                let mut budget = Budget::default();
                budget.progress = progress;
                topocoll_report::report(&exchange.budget(budget), &asked, &progress)
            });
            Ok::<_, Error>(page?.html)
        })
    }

    /// Writes a file, which errors call `shown`, or files into an empty folder.
    fn save(
        &self,
        py: Python<'_>,
        path: PathBuf,
        shown: String,
        format: &str,
        tick: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let writer = format_of(format).map_err(refused)?.writer;
        let (machine, schedule) = self.both();
        watched(py, tick, move |watch| {
            let source = Source::new(&schedule, &machine, memory());
            write(&source, writer, &path, &shown, &|bytes| watch.add(bytes))
        })
    }
}

/// The format of a name.
fn format_of(name: &str) -> Result<&'static Format, String> {
    FORMATS.iter().find(|known| known.name == name).ok_or_else(|| {
        let known: Vec<_> = FORMATS.iter().map(|format| format.name).collect();
        format!("format is `{name}`: one of {}", known.join(", "))
    })
}

fn write(
    source: &Source<'_>,
    writer: Writer,
    path: &Path,
    shown: &str,
    seen: &dyn Fn(u64),
) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("cannot write `{shown}`: {e}");
    check_counting_work(source.schedule, source.machine).map_err(|e| e.to_string())?;
    match writer {
        Writer::Folder(write) => write(source, path, seen).map_err(|e| e.to_string()),
        Writer::File(write) => {
            let file = files::create(path).map_err(failed)?;
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
    ) -> PyResult<topocoll::Schedule> {
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
        own.map_err(refused)
    }
}

/// The schedule in a file, in any format that can be read. A header may raise the ports of a short form, but not
/// those of a machine file.
#[pyfunction]
pub(crate) fn read(
    py: Python<'_>,
    machine: &Machine,
    path: PathBuf,
    lines: Option<String>,
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
    let Problem { operation, block_bytes, .. } = own.problem;
    let request =
        Request::new(&machine.ported(ports), operation.name(), block_bytes, lines, None, vec![])?;
    Ok(Schedule { request, own, by_name: false })
}
