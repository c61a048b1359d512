//! SimGrid: a platform, a host file, and time-independent traces that `smpirun -replay` reads.
//!
//! The platform lists the links of every pair with a message, so SimGrid chooses no routes: its own
//! torus has other routes at half a ring, and its first dimension is the fastest. Links have the
//! machine's bandwidth and propagation. On fully connected machines each rank has a link out and a
//! link in; on clusters each node also has both, for inter-node messages. Copies, packing and
//! startup are computation on a host of 1 Gflop/s, so a flop is a nanosecond. Tags are steps. The
//! folder also has the JSON lines of the schedule, which are read back.
//!
//! In folders of other programs, `traces.txt`, or the file given, names the traces of the ranks.
//! Sends and receives match by ranks and tag in the order written. Steps follow from blocking sends
//! and receives, `wait`, `waitall` and `barrier`. `compute` and `sleep` are ignored. Counts are in
//! the datatypes of the trace, by default bytes, and may be written as `1e6`. Collective operations are refused, as they name no
//! messages. Routes are the machine's.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use hashbrown::HashMap;
use topocoll_schedule::Schedule;
use topocoll_topology::{INTER_NODE, INTRA_NODE, LinkId, Rank, Route, Shape, files};

use super::ends::{Ends, MessageEnd, Named};
use super::jsonl;
use super::lines::Lines;
use super::local::Local;
use super::messages::{beginning, check_ranks, ends, number, rank};
use super::order::{self, Order, Point};
use super::{Listing, ReadError, Seen, Source, Target, failed};
use crate::AnalysisError;
use crate::error::check_work;

/// The file that names the traces of the ranks.
const TRACES: &str = "traces.txt";

/// The file with the blocks.
const BLOCKS: &str = "schedule.jsonl";

/// Bytes of the lines of a message at both ends, about.
const MESSAGE: u128 = 60;

/// The most pairs: SimGrid reads their routes in some seconds.
const PAIRS: u128 = 1 << 21;

type Routes = BTreeMap<(Rank, Rank), Route>;

pub(super) fn write(
    source: &Source<'_>,
    folder: &Path,
    written: Seen<'_>,
) -> Result<(), AnalysisError> {
    Listing::check_messages(source, MESSAGE)?;
    let routes = routes(source)?;
    let fill = |name: &str, fill: &dyn Fn(&mut dyn Write) -> Result<(), AnalysisError>| {
        let mut file = BufWriter::new(files::create(&folder.join(name)).map_err(failed)?);
        fill(&mut file)?;
        file.flush().map_err(failed)?;
        written(file.get_ref().metadata().map_err(failed)?.len());
        Ok(())
    };
    if source.schedule.rule().names_blocks() {
        fill(BLOCKS, &|out| jsonl::write(source, out))?;
    }
    fill("platform.xml", &|out| platform(source, &routes, out).map_err(failed))?;
    let ranks = || (0..source.schedule.problem.ranks).map(Rank);
    let each = |out: &mut dyn Write, line: &dyn Fn(Rank) -> String| {
        ranks().try_for_each(|rank| writeln!(out, "{}", line(rank))).map_err(failed)
    };
    fill("hostfile", &|out| each(out, &|rank| format!("n{rank}")))?;
    fill(TRACES, &|out| each(out, &|rank| format!("rank-{rank}.txt")))?;
    ranks().try_for_each(|rank| {
        fill(&format!("rank-{rank}.txt"), &|out| trace(source, rank, out).map_err(failed))
    })
}

/// The routes between pairs, one each.
fn routes(source: &Source<'_>) -> Result<Routes, AnalysisError> {
    let (mut routes, mut local) = (Routes::new(), Local::new(source));
    for step in 0..source.schedule.rule().steps() {
        for rank in (0..source.schedule.problem.ranks).map(Rank) {
            local.look(rank, step);
            for sent in local.sends.drain(..) {
                let known = routes.entry((rank, sent.to)).or_insert_with(|| sent.route.clone());
                if *known != sent.route {
                    return Err(AnalysisError::TwoRoutes { from: rank, to: sent.to, step });
                }
            }
            check_work("the routes between all pairs", routes.len() as u128, PAIRS)?;
        }
    }
    Ok(routes)
}

fn platform(source: &Source<'_>, routes: &Routes, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "<?xml version='1.0'?>")?;
    writeln!(out, r#"<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">"#)?;
    writeln!(out, "<platform version=\"4.1\">\n<zone id=\"machine\" routing=\"Full\">")?;
    for rank in 0..source.schedule.problem.ranks {
        writeln!(out, r#"<host id="n{rank}" speed="1Gf"/>"#)?;
    }
    let machine = source.machine;
    let topology = &*machine.topology;
    let clustered = matches!(topology.shape(), Shape::Clustered(_));
    let numbered = topology.link_numbers() > 0;
    let mut link = |id: String, per_byte: f64, latency: f64| {
        // Values are bytes per second, and seconds.
        let bandwidth = (1.0 / per_byte.max(f64::MIN_POSITIVE)).min(1e18);
        writeln!(out, r#"<link id="{id}" bandwidth="{bandwidth}Bps" latency="{latency}s"/>"#)
    };
    // Meshes have no links that would leave them.
    let numbers = (0..topology.link_numbers()).map(LinkId);
    for number in numbers.filter(|&number| topology.link(number).is_some()) {
        link(format!("l{number}"), machine.seconds_per_byte(number), machine.latency(number))?;
    }
    let per_byte = |class| machine.timing.per_byte.of(class);
    if clustered || !numbered {
        for rank in 0..source.schedule.problem.ranks {
            link(format!("out{rank}"), per_byte(INTRA_NODE), 0.0)?;
            link(format!("in{rank}"), per_byte(INTRA_NODE), 0.0)?;
        }
    }
    if clustered && !numbered {
        for node in 0..topology.nodes() {
            link(format!("node-out{node}"), per_byte(INTER_NODE), 0.0)?;
            link(format!("node-in{node}"), per_byte(INTER_NODE), 0.0)?;
        }
    }
    for (&(from, to), route) in routes {
        write!(out, r#"<route src="n{from}" dst="n{to}" symmetrical="NO">"#)?;
        let mut taken = Vec::new();
        let [a, b] = [from, to].map(|rank| topology.node_of(rank));
        if clustered && a == b || !clustered && !numbered {
            taken = vec![format!("out{from}"), format!("in{to}")];
        } else if numbered {
            let take = &mut |link: LinkId| taken.push(format!("l{}", link.0));
            topology.for_each_link(from, route, take);
        } else {
            taken = vec![format!("node-out{a}"), format!("node-in{b}")];
        }
        for id in taken {
            write!(out, r#"<link_ctn id="{id}"/>"#)?;
        }
        writeln!(out, "</route>")?;
    }
    writeln!(out, "</zone>\n</platform>")
}

fn trace(source: &Source<'_>, rank: Rank, out: &mut dyn Write) -> std::io::Result<()> {
    let mut local = Local::new(source);
    writeln!(out, "{rank} init")?;
    for step in 0..source.schedule.rule().steps() {
        local.look(rank, step);
        for (from, bytes) in &local.receives {
            writeln!(out, "{rank} irecv {from} {step} {bytes}")?;
        }
        let mut now = 0;
        let mut work = |out: &mut dyn Write, until: u64| {
            let picoseconds = until - std::mem::replace(&mut now, until);
            match picoseconds {
                0 => Ok(()),
                _ => writeln!(out, "{rank} compute {}", picoseconds as f64 / 1e3),
            }
        };
        for sent in &local.sends {
            work(out, sent.begins)?;
            writeln!(out, "{rank} isend {} {step} {}", sent.to, sent.bytes)?;
        }
        if local.sends.is_empty() {
            work(out, local.copies)?;
        }
        if !local.sends.is_empty() || !local.receives.is_empty() {
            writeln!(out, "{rank} waitall")?;
        }
    }
    writeln!(out, "{rank} finalize")
}

/// A list begins with the name of a file.
pub(super) fn knows(head: &str) -> bool {
    let first = head.lines().next().unwrap_or_default().trim();
    first.contains('.')
        && !first.contains(|c: char| c.is_whitespace() || c.is_control() || c == ',')
}

pub(super) fn read(path: &Path, target: &Target<'_>) -> Result<Schedule, ReadError> {
    let list_name = path.file_name().filter(|_| path.is_file()).map(|name| name.to_string_lossy());
    let folder = list_name.as_ref().and_then(|_| path.parent()).unwrap_or(path);
    let list_name = list_name.as_deref().unwrap_or(TRACES);
    let named = match std::fs::metadata(folder.join(BLOCKS)) {
        Ok(_) => {
            let mut messages = Vec::new();
            let mut each = |message| messages.push(message);
            let schedule =
                opened(folder, BLOCKS, |input| jsonl::read_each(input, target, &mut each))?;
            Some(Named { schedule, messages })
        }
        Err(_) => None,
    };
    let names = opened(folder, list_name, |input| list(input, target))?;
    let mut order = Order::default();
    let mut barriers = Vec::new();
    let mut ends = Ends::new(target);
    for (own, name) in (0..).map(Rank).zip(&names) {
        opened(folder, name, |input| {
            let mut lines = Lines::new(input, target.seen);
            let mut program = Program::new(own, target, named.is_none(), &mut order);
            while let Some(text) = lines.next()? {
                program.line += 1;
                let read = program.read_line(text, &mut order, &mut barriers, &mut ends);
                read.map_err(|message| lines.error(message))?;
            }
            Ok(())
        })?;
    }
    ends.schedule("simgrid", order, named).map_err(|(rank, line, message)| {
        let file = Some(names[rank.index()].clone());
        ReadError::Line { file, line, message }
    })
}

/// Reads one file of the folder; errors name it.
fn opened<T>(
    folder: &Path,
    name: &str,
    read: impl FnOnce(&mut BufReader<File>) -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    let path = folder.join(name);
    let refuse = |reason: String| ReadError::File { file: path.display().to_string(), reason };
    let file = files::open(&path).map_err(|e| refuse(e.to_string()))?;
    read(&mut BufReader::with_capacity(1 << 16, file)).map_err(|error| match error {
        ReadError::Line { line, message, .. } => {
            ReadError::Line { file: Some(name.to_owned()), line, message }
        }
        other => other,
    })
}

/// The names of the traces, one for each rank.
fn list(input: &mut BufReader<File>, target: &Target<'_>) -> Result<Vec<String>, ReadError> {
    let mut lines = Lines::new(input, target.seen);
    let ranks = target.topology.ranks();
    let mut names = Vec::new();
    while let Some(name) = lines.next()? {
        let name = name.trim();
        if !name.is_empty() {
            names.push(name.to_owned());
        }
        if names.len() as u64 > u64::from(ranks) {
            return Err(lines.error(format!("more traces than the {ranks} ranks of the machine")));
        }
    }
    let checked = check_ranks(names.len() as u32, target.topology);
    checked.map_err(|message| lines.error(message)).map(|()| names)
}

/// A count, which SMPI also writes as `1e6`.
fn whole(text: &str) -> Option<u64> {
    let text = Some(text).filter(|text| text.starts_with(|c: char| c.is_ascii_digit()))?;
    text.parse().ok().or_else(|| {
        let value = text.parse().ok().filter(|value: &f64| value.fract() == 0.0)?;
        (value <= MOST_EXACT).then_some(value as u64)
    })
}

/// The largest number up to which all whole numbers are exact.
const MOST_EXACT: f64 = (1u64 << 53) as f64;

/// The state of the reader of one trace.
struct Program {
    own: Rank,
    ranks: u32,
    line: usize,
    /// Whether dependencies are recorded.
    ordered: bool,
    /// Bytes of a count without a datatype.
    unit: u64,
    now: Point,
    /// Operations not waited for yet, by whether they send, peer and tag.
    pending: HashMap<(bool, Rank, u32), VecDeque<Point>>,
    barriers: usize,
}

impl Program {
    fn new(own: Rank, target: &Target<'_>, ordered: bool, order: &mut Order) -> Self {
        let (ranks, now) = (target.topology.ranks(), order.point());
        Self { own, ranks, line: 0, ordered, unit: 1, now, pending: HashMap::new(), barriers: 0 }
    }

    fn read_line(
        &mut self,
        text: &str,
        order: &mut Order,
        barriers: &mut Vec<Point>,
        ends: &mut Ends<'_>,
    ) -> Result<(), String> {
        let fields: Vec<&str> = text.split_whitespace().take(8).collect();
        let Some((&own, rest)) = fields.split_first().filter(|(own, _)| !own.starts_with('#'))
        else {
            return Ok(());
        };
        let own: u32 = number("rank", own)?;
        if own != self.own.0 {
            return Err(format!("rank {own} in the trace of rank {}", self.own));
        }
        ends.take(order::MEMORY)?;
        match *rest {
            ["init"] => self.unit = 1,
            // As in traces of the profiler TAU: doubles.
            ["init", _] => self.unit = 8,
            ["finalize"] | ["compute" | "sleep", _] => {}
            ["send" | "isend", peer, tag, count, ref kind @ ..] => {
                let blocks = rest[0] == "send";
                self.message(true, blocks, [peer, tag, count], kind, order, ends)?;
            }
            ["recv" | "irecv", peer, tag, count, ref kind @ ..] => {
                let blocks = rest[0] == "recv";
                self.message(false, blocks, [peer, tag, count], kind, order, ends)?;
            }
            ["wait", from, to, tag] => {
                let (from, to): (u64, u64) = (number("source", from)?, number("destination", to)?);
                let (from, to) = super::messages::ends(from, to, self.ranks)?;
                let sends = from == self.own;
                let tag: u32 = number("tag", tag)?;
                let pending = self.pending.get_mut(&(sends, if sends { to } else { from }, tag));
                let Some(ended) = pending.and_then(VecDeque::pop_front) else {
                    return Err(format!(
                        "no operation from rank {from} to rank {to} with tag {tag} is pending"
                    ));
                };
                self.wait(&[ended], order);
            }
            ["waitall", ..] => {
                let ended: Vec<Point> = self.pending.drain().flat_map(|(_, ended)| ended).collect();
                self.wait(&ended, order);
            }
            ["barrier"] => {
                if self.barriers == barriers.len() {
                    barriers.push(order.point());
                }
                let all = barriers[self.barriers];
                self.barriers += 1;
                if self.ordered {
                    order.after(all, self.now);
                }
                self.wait(&[all], order);
            }
            _ => {
                let shown: String = rest.join(" ").chars().take(40).collect();
                return Err(format!(
                    "`{shown}` is not one of the supported actions: init, finalize, compute, sleep, send, isend, recv, irecv, wait, waitall, barrier"
                ));
            }
        }
        Ok(())
    }

    fn message(
        &mut self,
        sends: bool,
        blocks: bool,
        [peer, tag, count]: [&str; 3],
        kind: &[&str],
        order: &mut Order,
        all: &mut Ends<'_>,
    ) -> Result<(), String> {
        /// Bytes of the datatypes by number: double, int, char, short, long, float, byte.
        const DATATYPES: [u64; 7] = [8, 4, 1, 2, 8, 4, 1];
        let peer = rank(if sends { "to" } else { "from" }, number("peer", peer)?, self.ranks)?;
        let (from, to) = if sends { (self.own, peer) } else { (peer, self.own) };
        let (from, to) = ends(from.0.into(), to.0.into(), self.ranks)?;
        let tag = number("tag", tag)?;
        let count = whole(count).ok_or_else(|| {
            format!("count is `{}`, not a whole number in range", beginning(count))
        })?;
        let each = match *kind {
            [] => Some(self.unit),
            [kind] => DATATYPES.get(number::<usize>("datatype", kind)?).copied(),
            _ => None,
        };
        let each =
            each.ok_or_else(|| format!("datatype `{}` is not one of 0 to 6", kind.join(" ")))?;
        let bytes = count.checked_mul(each).ok_or("too many bytes")?;
        let after = order.point();
        let between = (self.now, after);
        if self.ordered {
            order.after(after, self.now);
        }
        all.push(sends, MessageEnd { from, to, tag, bytes, line: self.line, between })?;
        if blocks {
            self.wait(&[after], order);
        } else {
            self.pending.entry((sends, peer, tag)).or_default().push_back(after);
        }
        Ok(())
    }

    /// Waits for these to end.
    fn wait(&mut self, ended: &[Point], order: &mut Order) {
        if self.ordered {
            let next = order.point();
            order.after(next, self.now);
            ended.iter().for_each(|&ended| order.after(next, ended));
            self.now = next;
        }
    }
}
