//! Lower bounds for every schedule.

mod subset;

pub use subset::best_bounds_of_subset;

use topocoll_schedule::{Collective, Demand, Problem};
use topocoll_topology::{Capacity, Graph, Grid, LinkId, Machine, Rank, Shape, Topology as _};

use crate::all_to_all_v;
use crate::tradeoff::{TradeOff, least};

/// The quantity that a lower bound limits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Measure {
    /// C1, steps in which a message moves.
    Steps,
    /// C2, the sum over steps of the largest message, in blocks.
    Blocks,
    /// The sum over steps of the largest message or link load, in blocks.
    LinkBlocks,
    /// The sum over steps of the largest hop count.
    Hops,
    /// The seconds of transmission.
    Seconds,
}

impl Measure {
    /// The name of the count it limits.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Blocks => "blocks",
            Self::LinkBlocks => "link_blocks",
            Self::Hops => "hops",
            Self::Seconds => "time_seconds",
        }
    }
}

/// A lower bound and its source.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct LowerBound {
    /// The quantity it limits.
    pub measure: Measure,
    /// The least value; blocks may be fractional.
    pub value: f64,
    /// The theorem or argument.
    pub theorem: String,
    /// The schedules it holds for; empty for all.
    pub condition: String,
}

/// A lower bound known up to a constant factor, as its theorem states it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AsymptoticBound {
    /// The quantity it limits.
    pub measure: Measure,
    /// The least order, in n ranks, k ports and blocks of b bytes.
    pub order: &'static str,
    /// The theorem.
    pub theorem: &'static str,
    /// The schedules it holds for.
    pub condition: &'static str,
}

/// The strongest bounds that hold for every schedule.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct BestBounds {
    /// Steps, C1.
    pub steps: u64,
    /// Volume, C2: the sum over steps of the largest message, in blocks.
    pub blocks: f64,
    /// Charged volume: the sum over steps of the largest message or link load, in blocks.
    pub link_blocks: f64,
    /// Seconds by the steps model.
    pub seconds: f64,
    /// The trade-off of steps and volume; `None` where none is known: of an all-gather or a demand
    /// matrix.
    pub trade_off: Option<TradeOff>,
}

impl BestBounds {
    /// The least charged volume, in blocks, of a schedule of at most this number of steps that
    /// exceeds no ports; `None` where no trade-off is known, or if no such schedule exists.
    #[must_use]
    pub fn link_blocks_in(&self, steps: u64) -> Option<f64> {
        Some(self.trade_off?.blocks(steps)?.max(self.link_blocks))
    }
}

/// All lower bounds for a problem on a machine.
#[must_use]
pub fn bounds(problem: &Problem, machine: &Machine) -> Vec<LowerBound> {
    let (n, k, b) = (u64::from(problem.ranks), u64::from(problem.ports), problem.block_bytes);
    let gathers = problem.operation == Collective::AllGather;
    let proposition = |index, concatenation| {
        format!("Bruck et al. 1997, Proposition {}", if gathers { concatenation } else { index })
    };
    let mut bounds = Vec::new();
    let mut add = |measure, value, theorem: String, condition: String| {
        bounds.push(LowerBound { measure, value, theorem, condition });
    };
    add(
        Measure::Steps,
        startups(n, k) as f64,
        format!("{} (startups)", proposition("2.3", "2.1")),
        String::new(),
    );
    let injected = (u128::from(b) * u128::from(n - 1)).div_ceil(k.into());
    add(
        Measure::Blocks,
        injected as f64 / b as f64,
        format!("{} (injection)", proposition("2.4", "2.2")),
        String::new(),
    );
    if !gathers && n > 1 {
        if let Some(digits) = exact_log(n, k + 1) {
            let value = u128::from(n) * u128::from(digits);
            let condition = format!("schedules of exactly {digits} steps");
            add(
                Measure::Blocks,
                value as f64 / (k + 1) as f64,
                "Bruck et al. 1997, Theorem 2.5".to_owned(),
                condition,
            );
        }
        if (n - 1) % k == 0 {
            let condition = format!("schedules of exactly {} blocks", (n - 1) / k);
            add(
                Measure::Steps,
                ((n - 1) / k) as f64,
                "Bruck et al. 1997, Theorem 2.6".to_owned(),
                condition,
            );
        }
    }
    for (seconds, what) in injection(problem, machine) {
        if seconds > 0.0 {
            add(
                Measure::Seconds,
                seconds,
                format!("injection bandwidth of a {what}"),
                String::new(),
            );
        }
    }
    if least_startups(problem, machine) > startups(n, k) {
        let value = least_startups(problem, machine) as f64;
        let theorem = "Bruck et al. 1997, Proposition 2.1, between nodes (startups)";
        add(Measure::Steps, value, theorem.to_owned(), String::new());
    }
    if let Some(value) = node_ports(problem, machine) {
        add(Measure::Blocks, value, "ports of a node into the others".to_owned(), String::new());
    }
    if let Some([value, _]) =
        gathered(problem, machine).filter(|[value, _]| *value > injected as f64 / b as f64)
    {
        let what = if is_node(machine) { "rank" } else { "node" };
        let theorem = format!("links into a {what} with the least capacity");
        add(Measure::LinkBlocks, value, theorem, String::new());
    } else if let Some(value) = least_links(problem, machine) {
        let what = if is_node(machine) { "rank" } else { "node" };
        let theorem = format!("links of a {what} with the fewest");
        add(Measure::LinkBlocks, value, theorem, String::new());
    }
    match machine.topology.network() {
        Shape::Complete | Shape::Clustered(_) => {}
        Shape::Grid(grid) => {
            let mut diameter = 0;
            for u in 0..grid.sides().len() {
                diameter += u64::from(grid.diameter_along(u));
                if let Some(value) = bisection(problem, machine, u) {
                    let theorem =
                        format!("bisection across dimension {u} (side {})", grid.sides()[u]);
                    add(Measure::LinkBlocks, value, theorem, String::new());
                }
            }
            add(Measure::Hops, diameter as f64, "diameter".to_owned(), String::new());
        }
        Shape::Graph(graph) => {
            if let Some([least, _]) = distances(problem, machine) {
                let how = match (graph.lattice(), machine.topology.shape()) {
                    (Some(lattice), Shape::Graph(_)) if lattice.is_whole() => {
                        "dimension by dimension"
                    }
                    _ => "link by link",
                };
                let theorem = format!("distances over lengths of all links, chosen {how}");
                add(Measure::LinkBlocks, least, theorem, String::new());
            }
            if let Some(farthest) = graph.farthest() {
                add(Measure::Hops, farthest.into(), "diameter".to_owned(), String::new());
            }
        }
    }
    if let Some(load) = routed(problem, machine) {
        let condition = "blocks sent straight by the machine's routes";
        let theorem = "busiest link of the machine's routes".to_owned();
        add(Measure::LinkBlocks, load, theorem, condition.to_owned());
    }
    bounds
}

/// The lower bounds without a value, known up to a constant factor.
#[must_use]
pub fn asymptotic_bounds(problem: &Problem) -> Vec<AsymptoticBound> {
    let mut bounds = Vec::new();
    if problem.operation != Collective::AllToAll || problem.ranks < 2 {
        return bounds;
    }
    bounds.push(AsymptoticBound {
        measure: Measure::Blocks,
        order: "C2 = Omega(b n / (k + 1) log_(k+1) n) bytes",
        theorem: "Bruck et al. 1997, Theorem 2.7",
        condition: "schedules of exactly C1 = ceil(log_(k+1) n) steps",
    });
    if problem.ports == 1 {
        bounds.push(AsymptoticBound {
            measure: Measure::Blocks,
            order: "C2 = Omega(b n log n) bytes",
            theorem: "Bruck et al. 1997, Theorem 2.9",
            condition: "schedules of C1 = O(log n) steps on one port",
        });
    }
    bounds
}

/// The strongest bounds that hold for every schedule, and a lower bound on its time.
///
/// The time is the least startup times the steps, plus the largest volume at the speed of its links,
/// plus a diameter of hops, plus barriers. Of an all-to-all it is the least over all numbers of
/// steps, each with its volume by the [`TradeOff`].
///
/// With a demand matrix the bounds are those of ports, nodes and startups.
#[must_use]
pub fn best_bounds(problem: &Problem, machine: &Machine, demand: Option<&Demand>) -> BestBounds {
    match demand {
        Some(demand) => all_to_all_v::bounds(problem, machine, demand),
        None => strongest(problem, machine, Cuts::default()),
    }
}

/// Loads of links that are known beside the bounds of a machine.
#[derive(Clone, Copy, Default)]
struct Cuts {
    /// In blocks over the capacity of a link's class.
    link_blocks: f64,
    /// In seconds for each byte of a block.
    seconds_per_byte: f64,
}

/// The strongest of [`bounds`] and these loads.
fn strongest(problem: &Problem, machine: &Machine, cuts: Cuts) -> BestBounds {
    let all = bounds(problem, machine);
    let unconditional = |measure: Measure| {
        all.iter().filter(move |bound| bound.measure == measure && bound.condition.is_empty())
    };
    let most = |measure| unconditional(measure).map(|bound| bound.value).fold(0.0, f64::max);
    let steps = most(Measure::Steps) as u64;
    let blocks = most(Measure::Blocks);
    let link_blocks = most(Measure::LinkBlocks).max(blocks).max(cuts.link_blocks);

    let timing = &machine.timing;
    let block_bytes = problem.block_bytes as f64;
    let injected = f64::from(problem.ranks - 1) / f64::from(problem.ports);
    let fastest = machine.least_per_byte();
    let mut volume = block_bytes * (injected * fastest).max(cuts.seconds_per_byte);
    let mut propagation = 0.0;
    let first = machine.first_class();
    let through = node_ports(problem, machine).into_iter().chain(least_links(problem, machine));
    let through = through.fold(0.0, f64::max);
    volume = volume.max(through * block_bytes * machine.least_per_byte_between());
    match machine.topology.network() {
        Shape::Complete | Shape::Clustered(_) => {}
        Shape::Grid(grid) => {
            for u in 0..grid.sides().len() {
                let blocks = bisection(problem, machine, u).unwrap_or(0.0);
                volume = volume.max(blocks * block_bytes * timing.per_byte.of(first + u));
                propagation += f64::from(grid.diameter_along(u)) * timing.per_hop.of(first + u);
            }
        }
        Shape::Graph(graph) => {
            let least = distances(problem, machine).or_else(|| gathered(problem, machine));
            if let Some([_, seconds_per_byte]) = least {
                volume = volume.max(seconds_per_byte * block_bytes);
            }
            let latencies = machine.topology.link_kinds().iter().map(|kind| {
                kind.latency.unwrap_or_else(|| timing.per_hop.of(first + kind.class as usize))
            });
            let shortest = latencies.fold(f64::INFINITY, f64::min);
            propagation = f64::from(graph.farthest().unwrap_or(0)) * shortest.min(f64::MAX);
        }
    }
    volume = volume.max(most(Measure::Seconds));
    let barrier = timing.barrier.seconds(problem.ranks);
    let at = |steps: u64, volume: f64| {
        steps as f64 * timing.startup.least()
            + volume
            + propagation
            + barrier * steps.saturating_sub(1) as f64
    };
    let trade_off = TradeOff::of(problem);
    let seconds = match trade_off {
        Some(of) => {
            let blocks = |steps| of.blocks(steps).expect("bug: fewer steps than any schedule");
            let volume = |steps| volume.max(blocks(steps) * block_bytes * fastest);
            least((steps, of.last().max(steps)), volume, at)
        }
        None => at(steps, volume),
    };
    BestBounds { steps, blocks, link_blocks, seconds, trade_off }
}

/// `ceil(log_(k+1) n)`.
pub(crate) fn startups(n: u64, k: u64) -> u64 {
    let (mut reached, mut steps) = (1u64, 0);
    while reached < n {
        reached = reached.saturating_mul(k + 1);
        steps += 1;
    }
    steps
}

/// The least steps of a schedule: each multiplies the ranks that have a block by at most the ports
/// of a rank and 1, and the nodes where a rank has it by at most the ports of a node and 1.
pub(crate) fn least_startups(problem: &Problem, machine: &Machine) -> u64 {
    let between = match machine.topology.shape() {
        Shape::Clustered(clusters) => startups(clusters.nodes().into(), problem.node_ports.into()),
        _ => 0,
    };
    startups(problem.ranks.into(), problem.ports.into()).max(between)
}

/// `log_base n` if it is a whole number.
fn exact_log(n: u64, base: u64) -> Option<u64> {
    let digits = startups(n, base - 1);
    (u32::try_from(digits).ok().and_then(|digits| base.checked_pow(digits)) == Some(n))
        .then_some(digits)
}

/// Whether each rank is a node by itself.
fn is_node(machine: &Machine) -> bool {
    !matches!(machine.topology.shape(), Shape::Clustered(_))
}

/// Blocks that each link across the middle of a side of length a must carry. In each direction
/// floor(a^2/4) (N/a)^2 pairs of the N nodes cross, each with a block for all ranks of both, in an
/// all-to-all, and at least N/a ceil(a/2) nodes in an all-gather, over 2 N/a links if the side wraps
/// and N/a if not.
fn bisection(problem: &Problem, machine: &Machine, u: usize) -> Option<f64> {
    narrowest(problem, machine, u).map(|(crossing, links)| crossing as f64 / links as f64)
}

/// The blocks that cross the middle of side u, and the links they cross.
fn narrowest(problem: &Problem, machine: &Machine, u: usize) -> Option<(u128, u128)> {
    let Shape::Grid(grid) = machine.topology.network() else { return None };
    let a = u128::from(grid.sides()[u]);
    if a == 1 {
        return None;
    }
    let (nodes, ranks) = (u128::from(machine.topology.nodes()), u128::from(problem.ranks));
    let lines = nodes / a;
    // The ranks of the lower half.
    let below = match machine.topology.shape() {
        Shape::Clustered(clusters) if clusters.equal_size().is_none() => {
            let at = |node| u128::from(grid.radix().coordinate(Rank(node), u));
            let sizes = (0..).zip(clusters.sizes()).filter(|(node, _)| at(*node) < a / 2);
            sizes.map(|(_, size)| u128::from(size)).sum()
        }
        _ => a / 2 * lines * (ranks / nodes),
    };
    let crossing = match problem.operation {
        Collective::AllToAll => below * (ranks - below),
        // The larger part sends all its blocks to the smaller one.
        Collective::AllGather => below.max(ranks - below),
    };
    Some((crossing, lines * if grid.wrap()[u] { 2 } else { 1 }))
}

/// Blocks that each link of a node must carry, if a node has fewer links than ports.
fn least_links(problem: &Problem, machine: &Machine) -> Option<f64> {
    let links = fewest_links(problem, machine)?;
    Some(leaving(problem, machine)? as f64 / f64::from(links))
}

/// The fewest links of a node, if fewer than ports. A corner of a grid has one for each side and two
/// for each side that wraps. Where nodes hold unequal numbers of ranks, the most links of a node.
fn fewest_links(problem: &Problem, machine: &Machine) -> Option<u32> {
    let topology = &*machine.topology;
    let links: u32 = match (topology.shape(), topology.network()) {
        (Shape::Clustered(clusters), Shape::Grid(_)) if clusters.equal_size().is_none() => {
            topology.most_links_out() as u32
        }
        (_, Shape::Grid(grid)) => {
            grid.radix().long_dimensions().map(|u| if grid.wrap()[u] { 2 } else { 1 }).sum()
        }
        (_, Shape::Graph(graph)) if graph.lattice().is_some() && is_node(machine) => {
            graph.fewest_links()
        }
        _ => return None,
    };
    let ports = if is_node(machine) { problem.ports } else { problem.node_ports };
    (0 < links && links < ports).then_some(links)
}

/// The least load of the busiest link of a graph in an all-to-all: in blocks over the capacity of
/// its class, and in seconds for each byte of a block.
fn distances(problem: &Problem, machine: &Machine) -> Option<[f64; 2]> {
    let (graph, ranks, times) = flows(problem, machine)?;
    let [blocks, seconds] =
        loads(machine, |capacities| graph.least_load_of(capacities, &ranks).blocks() * times);
    let far_apart = by_lengths(graph, &ranks, machine);
    Some([blocks, far_apart.map_or(seconds, |seconds| seconds * times)])
}

/// The least seconds for each byte of a block on the busiest link, where the rates of links are so far
/// apart that no fraction has both: lengths that are good for capacities relative to the slowest link
/// give a bound for the true ones.
fn by_lengths(graph: &Graph, ranks: &[u32], machine: &Machine) -> Option<f64> {
    let (fastest, own) = (machine.least_per_byte_between(), seconds_of_links(machine));
    let slowest = own.iter().copied().fold(0.0, f64::max);
    if fastest == 0.0 || slowest <= fastest * f64::from(u32::MAX) {
        return None;
    }
    let near = |own: &f64| Capacity::near(slowest / own).relative(slowest);
    let near: Vec<_> = own.iter().map(near).collect();
    let (mut charged, mut seconds) = (0.0, 0.0);
    for (link, length) in (0..).zip(graph.least_load_lengths(&near, ranks)) {
        let kind = graph.link_kind(LinkId(link));
        let (of, over) = near[kind];
        charged += length as f64 * f64::from(of) / f64::from(over);
        seconds += length as f64 / own[kind];
    }
    let distances = graph.least_load_of(&near, ranks).blocks() * charged;
    Some(if seconds > 0.0 { distances / seconds * NEAR } else { 0.0 })
}

/// A load of the busiest link in blocks over the capacity of its class, and in seconds for each byte
/// of a block, from the load by capacities.
fn loads(machine: &Machine, least: impl Fn(&[(u32, u32)]) -> f64) -> [f64; 2] {
    let fastest = machine.least_per_byte_between();
    let relative = capacities(machine, |per_byte, capacity| capacity.relative(per_byte));
    let in_seconds = capacities(machine, |per_byte, capacity| {
        let own = capacity.seconds_per_byte(per_byte);
        if fastest > 0.0 { Capacity::near(fastest / own).relative(per_byte) } else { (1, 1) }
    });
    // Fractions are near the quotients of seconds.
    let exact = if in_seconds.iter().all(|of| *of == (1, 1)) { 1.0 } else { NEAR };
    let blocks = least(&relative);
    let in_fastest = if in_seconds == relative { blocks } else { least(&in_seconds) };
    [blocks, in_fastest * fastest * exact]
}

/// What a bound keeps where fractions are near their values.
const NEAR: f64 = 1.0 - 1e-8;

/// By kind of links, the seconds of a byte.
fn seconds_of_links(machine: &Machine) -> Vec<f64> {
    let per_byte = |class: u32| machine.timing.per_byte.of(machine.first_class() + class as usize);
    let kinds = machine.topology.link_kinds().iter();
    kinds.map(|kind| kind.capacity.seconds_per_byte(per_byte(kind.class))).collect()
}

/// What an all-gather brings to a node of a graph over its links: in blocks over the capacity of their
/// class, and in seconds for each byte of a block.
fn gathered(problem: &Problem, machine: &Machine) -> Option<[f64; 2]> {
    let Shape::Graph(graph) = machine.topology.network() else { return None };
    if problem.operation != Collective::AllGather || graph.ranks() < 2 {
        return None;
    }
    let relative = capacities(machine, |per_byte, capacity| capacity.relative(per_byte));
    let own = seconds_of_links(machine);
    let mut into = vec![[0.0, 0.0]; graph.vertices() as usize];
    for link in (0..graph.links()).map(LinkId) {
        let kind = graph.link_kind(link);
        let (times, over) = relative[kind];
        let [capacity, bandwidth] = &mut into[graph.link(link)?.to as usize];
        *capacity += f64::from(times) / f64::from(over);
        *bandwidth += 1.0 / own[kind];
    }
    let exact = if relative.iter().all(|of| *of == (1, 1)) { 1.0 } else { NEAR };
    let sizes: Vec<u32> = match machine.topology.shape() {
        Shape::Clustered(clusters) => clusters.sizes().collect(),
        _ => vec![1; graph.ranks() as usize],
    };
    let blocks = sizes.iter().map(|size| f64::from(problem.ranks - size) * exact);
    let each = blocks.zip(&into).map(|(blocks, into)| into.map(|into| blocks / into));
    each.reduce(|a, b| [a[0].max(b[0]), a[1].max(b[1])])
}

/// The load of the busiest link of the machine's routes in an all-to-all, over its capacity.
fn routed(problem: &Problem, machine: &Machine) -> Option<f64> {
    if let Shape::Grid(grid) = machine.topology.network() {
        return routed_on_grid(problem, machine, grid);
    }
    let (graph, ranks, times) = flows(problem, machine)?;
    let relative = capacities(machine, |per_byte, capacity| capacity.relative(per_byte));
    Some(graph.routed_load(&relative, &ranks)? * times)
}

/// The same on a grid whose nodes hold equally many ranks.
fn routed_on_grid(problem: &Problem, machine: &Machine, grid: &Grid) -> Option<f64> {
    let size = match machine.topology.shape() {
        Shape::Clustered(clusters) => clusters.equal_size()?,
        _ => 1,
    };
    let all_to_all = problem.operation == Collective::AllToAll;
    let along = (0..grid.sides().len()).map(|u| grid.routed_load(u));
    let busiest = along.max().filter(|&load| all_to_all && load > 0)?;
    Some(busiest as f64 * f64::from(size).powi(2))
}

/// A graph with an all-to-all, and the ranks on each node, none for one; loads are to be multiplied.
fn flows<'m>(problem: &Problem, machine: &'m Machine) -> Option<(&'m Graph, Vec<u32>, f64)> {
    let Shape::Graph(graph) = machine.topology.network() else { return None };
    if problem.operation != Collective::AllToAll {
        return None;
    }
    Some(match machine.topology.shape() {
        Shape::Clustered(clusters) => match clusters.equal_size() {
            Some(size) => (graph, Vec::new(), f64::from(size).powi(2)),
            None => (graph, clusters.sizes().collect(), 1.0),
        },
        _ => (graph, Vec::new(), 1.0),
    })
}

/// A capacity for each kind of links, on a grid for each dimension, from the seconds of a byte of its
/// class.
fn capacities(machine: &Machine, of: impl Fn(f64, Capacity) -> (u32, u32)) -> Vec<(u32, u32)> {
    let per_byte = |class: u32| machine.timing.per_byte.of(machine.first_class() + class as usize);
    if let Shape::Grid(grid) = machine.topology.network() {
        let dimensions = 0..grid.sides().len() as u32;
        return dimensions.map(|u| of(per_byte(u), Capacity::CLASS)).collect();
    }
    let kinds = machine.topology.link_kinds().iter();
    kinds.map(|kind| of(per_byte(kind.class), kind.capacity)).collect()
}

/// Blocks that a port of a node of several ranks must carry: with s ranks it sends s (p - s) blocks
/// to the others.
fn node_ports(problem: &Problem, machine: &Machine) -> Option<f64> {
    let blocks = leaving(problem, machine).filter(|_| !is_node(machine))?;
    Some(blocks as f64 / f64::from(problem.node_ports))
}

/// Seconds in which a rank, and a node, send or receive the bytes that they must.
fn injection(problem: &Problem, machine: &Machine) -> [(f64, &'static str); 2] {
    let (limits, block_bytes) = (machine.injection(), problem.block_bytes as f64);
    let rank = f64::from(problem.ranks - 1) * block_bytes * limits.rank;
    let left = leaving(problem, machine).filter(|_| !is_node(machine));
    let node = left.map_or(0.0, |blocks| blocks as f64 * block_bytes);
    [(rank, "rank"), (node * limits.node, "node")]
}

/// The most blocks that leave, or must enter, a node.
fn leaving(problem: &Problem, machine: &Machine) -> Option<u128> {
    if machine.topology.nodes() < 2 {
        return None;
    }
    let p = u128::from(problem.ranks);
    let crossing = |size: u32| match problem.operation {
        Collective::AllToAll => u128::from(size) * (p - u128::from(size)),
        // It must receive the blocks of all other nodes.
        Collective::AllGather => p - u128::from(size),
    };
    match machine.topology.shape() {
        Shape::Clustered(clusters) => clusters.groups().map(|(_, _, size)| crossing(size)).max(),
        _ => Some(crossing(1)),
    }
}

/// Lengths of the links of a graph that bound the load of the busiest link in an all-to-all; empty
/// if none are known.
pub(crate) fn lengths_of_links(problem: &Problem, machine: &Machine) -> Vec<u64> {
    let Some((graph, ranks, _)) = flows(problem, machine) else { return Vec::new() };
    let relative = capacities(machine, |per_byte, capacity| capacity.relative(per_byte));
    graph.least_load_lengths(&relative, &ranks)
}

/// The strongest bound on the sum over steps of the largest message or link load, in whole bytes,
/// without the bounds of links listed one by one.
pub(crate) fn least_link_bytes(problem: &Problem, machine: &Machine) -> u128 {
    let (b, k) = (u128::from(problem.block_bytes), u128::from(problem.ports));
    let injected = (b * u128::from(problem.ranks - 1)).div_ceil(k);
    let doors = fewest_links(problem, machine).map(u128::from);
    let of_node = (!is_node(machine)).then_some(problem.node_ports.into());
    let doors = doors.into_iter().chain(of_node);
    let left = leaving(problem, machine).unwrap_or(0) * b;
    let dimensions = match machine.topology.network() {
        Shape::Grid(grid) => grid.sides().len(),
        Shape::Complete | Shape::Graph(_) | Shape::Clustered(_) => 0,
    };
    let across = (0..dimensions).filter_map(|u| narrowest(problem, machine, u));
    let across = across.map(|(crossing, links)| (crossing * b).div_ceil(links));
    across.chain(doors.map(|doors| left.div_ceil(doors))).fold(injected, u128::max)
}
