//! Lower bounds for every schedule.

mod best;
mod crossing;
mod demand;
mod groups;
mod lengths;
mod links;
mod tradeoff;

pub use best::{BestBounds, Limit};
pub(crate) use crossing::least_link_bytes;
pub use demand::check_demand_work;
pub use groups::best_bounds_of_groups;
pub use lengths::least_load;
pub(crate) use links::lengths_of_links;
pub use tradeoff::TradeOff;

use topocoll_schedule::{Collective, Demand, Problem};
use topocoll_topology::{Machine, Shape};

use best::{Cuts, strongest};
use crossing::{bisection, injection, is_node, least_links, node_ports};
use links::{distances, gathered, routed};
use tradeoff::sent_by_node;

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
/// The time is the least startup times the steps, with the least between nodes for the fewest steps
/// between them, plus the largest volume at the speed of its links, plus a diameter of hops, plus
/// barriers. Of an all-to-all it is the least over all numbers of
/// steps, each with its volume by the [`TradeOff`], and at least that over all numbers of steps between nodes of
/// equal sizes, with what these send to each other.
///
/// With a demand matrix the bounds are those of ports, nodes, startups, and of links: around each node, and of
/// grids across places of each side of at most 256, and along it.
#[must_use]
pub fn best_bounds(problem: &Problem, machine: &Machine, demand: Option<&Demand>) -> BestBounds {
    match demand {
        Some(demand) => demand::bounds(problem, machine, demand),
        None => strongest(problem, machine, Cuts::default()),
    }
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

/// The fewest steps in which nodes send to each other. In the first one the node of the fewest ranks passes its
/// blocks on to at most as many nodes as these ranks have ports. In each further one a node that has some
/// passes them on to at most as many as the largest node does.
fn steps_between(problem: &Problem, machine: &Machine) -> u64 {
    let Shape::Clustered(clusters) = machine.topology.shape() else { return 0 };
    let fewest = clusters.groups().map(|(.., size)| size).min().unwrap_or(0);
    let [first, further] = [fewest, clusters.largest()].map(|size| sent_by_node(problem, size));
    let (nodes, mut reached, mut steps) = (u64::from(clusters.nodes()), 1u64, 0);
    while reached < nodes {
        reached = if steps == 0 { 1 + first } else { reached.saturating_mul(1 + further) };
        steps += 1;
    }
    steps
}

/// The seconds by which the steps of any schedule start longer, in sum, than with the least startup: the fewest
/// steps between nodes start as those between nodes.
#[must_use]
pub fn longer_startups(problem: &Problem, machine: &Machine) -> f64 {
    let longer = machine.least_startup_between() - machine.timing.startup.least();
    steps_between(problem, machine) as f64 * longer
}

/// `log_base n` if it is a whole number.
fn exact_log(n: u64, base: u64) -> Option<u64> {
    let digits = startups(n, base - 1);
    (u32::try_from(digits).ok().and_then(|digits| base.checked_pow(digits)) == Some(n))
        .then_some(digits)
}
