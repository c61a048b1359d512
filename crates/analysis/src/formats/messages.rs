//! Rules for messages in every format.

use topocoll_schedule::{
    Collective, MAX_BLOCK_BYTES, Origin, Problem, Recorder, Schedule, SizedMessage,
};
use topocoll_topology::{LinkId, Rank, Route, Segment, Shape, Topology};

use super::Target;

/// The most ranks of a schedule that is read.
const MAX_RANKS: u32 = 65_535;

/// The most bytes of all messages of a file, so that sums stay within 64 bits.
const MAX_BYTES: u64 = 1 << 62;

/// Checks that a file has as many ranks as the machine.
pub(super) fn check_ranks(ranks: u32, topology: &dyn Topology) -> Result<(), String> {
    if ranks != topology.ranks() {
        let (name, there) = (topology.short_form(), topology.ranks());
        return Err(format!("{ranks} ranks, but {name} has {there}"));
    }
    if ranks > MAX_RANKS {
        return Err(format!("{ranks} ranks: schedules of at most {MAX_RANKS} are read"));
    }
    Ok(())
}

/// Checks that steps do not decrease, and that few messages do not claim billions of steps.
pub(super) fn check_step(step: u32, after: u32, messages: usize) -> Result<(), String> {
    let most = 64 * (messages + 64);
    if step < after {
        return Err(format!("step {step} after step {after}: steps must not decrease"));
    }
    if step as usize > most {
        return Err(format!(
            "step {step} after {messages} messages: steps are numbered from 0, and are at most {most} here"
        ));
    }
    Ok(())
}

/// A rank below `ranks`.
pub(super) fn rank(name: &str, rank: u64, ranks: u32) -> Result<Rank, String> {
    match u32::try_from(rank) {
        Ok(rank) if rank < ranks => Ok(Rank(rank)),
        _ => Err(format!("{name} is rank {rank}: the last rank is {}", ranks - 1)),
    }
}

/// The ends of a message.
pub(super) fn ends(from: u64, to: u64, ranks: u32) -> Result<(Rank, Rank), String> {
    let (from, to) = (rank("from", from, ranks)?, rank("to", to, ranks)?);
    if from == to {
        return Err(format!("rank {from} sends to itself: local copies are not listed"));
    }
    Ok((from, to))
}

/// The route between two ranks given as dimensions and signed hops; on a graph as numbers of links among
/// those of a vertex, and hops. Refuses a route that does not lead from one to the other.
pub(super) fn route(
    segments: &[(u32, i64)],
    (from, to): (Rank, Rank),
    topology: &dyn Topology,
) -> Result<Route, String> {
    let machine = || topology.short_form();
    if !matches!(topology.network(), Shape::Grid(_) | Shape::Graph(_)) {
        return Err(format!("routes require a grid or a graph, and {} is neither", machine()));
    }
    let (start, end) = (topology.node_of(from), topology.node_of(to));
    if start == end {
        return Err(format!("ranks {from} and {to} are on one node: no route joins them"));
    }
    let mut route = Route::default();
    for &(dimension, hops) in segments {
        if hops == 0 {
            return Err(format!("a segment of 0 hops along dimension {dimension}"));
        }
        route.push(dimension, hops);
    }
    let route_is = if route.is_empty() { "an empty route, which" } else { "it" };
    match topology.follow(from, &route) {
        Ok(last) if last == end => Ok(route),
        Ok(last) => {
            let what = match topology.shape() {
                Shape::Clustered(_) => "node",
                _ => "rank",
            };
            Err(format!("{route_is} leads from {what} {start} to {what} {last}, not to {end}"))
        }
        Err(Segment { dimension, hops }) => {
            Err(format!("it leaves {}: {hops} hops along dimension {dimension}", machine()))
        }
    }
}

/// The route between two ranks over links of a graph. Refuses one that does not lead from one to the
/// other.
pub(super) fn route_over(
    links: &[u64],
    (from, to): (Rank, Rank),
    topology: &dyn Topology,
) -> Result<Route, String> {
    let Shape::Graph(graph) = topology.network() else {
        return Err(format!("links require a graph, and {} is not a graph", topology.short_form()));
    };
    let links: Vec<LinkId> = links.iter().copied().map(LinkId).collect();
    let (start, end) = (topology.node_of(from), topology.node_of(to));
    if start == end {
        return Err(format!("ranks {from} and {to} are on one node: no links join them"));
    }
    let route = graph
        .route_over(Rank(start), &links)
        .map_err(|LinkId(link)| format!("link {link} does not begin where the one before ends"))?;
    match graph.follow(Rank(start), &route) {
        Ok(last) if last == end => Ok(route),
        _ => Err(format!("they do not lead from node {start} to node {end}")),
    }
}

/// Messages by their sizes, taken in the order of their steps.
pub(super) struct Sized<'a> {
    target: &'a Target<'a>,
    recorder: Recorder,
    problem: Problem,
    bytes: u64,
    taken: u128,
}

impl<'a> Sized<'a> {
    /// An empty list of messages between the ranks of the machine.
    pub(super) fn new(target: &'a Target<'a>) -> Result<Self, String> {
        let (ranks, ports) = (target.topology.ranks(), target.ports);
        check_ranks(ranks, target.topology)?;
        // A slot is a byte, of an unknown block.
        let problem = Problem::new(Collective::AllToAll, ranks, ports, 1);
        let problem = problem.map_err(|e| e.to_string())?;
        Ok(Self { target, recorder: Recorder::new(problem), problem, bytes: 0, taken: 0 })
    }

    pub(super) fn push(&mut self, message: &SizedMessage) -> Result<(), String> {
        let bytes = size(message.bytes)?;
        self.bytes = (self.bytes.checked_add(bytes).filter(|&sum| sum <= MAX_BYTES))
            .ok_or_else(|| format!("more than {MAX_BYTES} bytes in all messages"))?;
        self.taken += Recorder::memory(1);
        self.target.check_memory(self.taken)?;
        self.recorder.push_sized(message);
        Ok(())
    }

    /// The schedule; its algorithm is the name of the format.
    pub(super) fn schedule(self, format: &str) -> Schedule {
        let origin = Origin { algorithm: format.to_owned(), parameters: Default::default() };
        Schedule::new(self.problem, origin, self.recorder.finish())
    }
}

/// The bytes of a message.
pub(super) fn size(bytes: u64) -> Result<u64, String> {
    match bytes {
        0 => Err("a message of 0 bytes: a message has at least 1 byte".to_owned()),
        1..=MAX_BLOCK_BYTES => Ok(bytes),
        _ => Err(format!("a message of {bytes} bytes: a message has at most {MAX_BLOCK_BYTES}")),
    }
}

/// The number in a field.
pub(super) fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, String> {
    // No sign and no blanks.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    (text.parse().ok().filter(|_| digits))
        .ok_or_else(|| format!("{name} is `{}`, not a whole number in range", beginning(text)))
}

/// The beginning of a value, short enough for an error.
pub(super) fn beginning(value: &str) -> String {
    value.chars().take(40).collect()
}
