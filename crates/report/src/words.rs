//! What reports say about an exchange and the choices for it.

use topocoll::tune::{Library, Release};
use topocoll::{BestBounds, Choice, Collective, Machine, Priced, Problem, Selection, Shape};

use crate::number::{bandwidth, blocks, bytes, named, seconds};

/// The title of a picture or a page: the exchange and its timing.
#[must_use]
pub fn title(machine: &Machine, problem: &Problem) -> String {
    title_of(machine, &about(machine, problem))
}

/// What a report is about, with the timing.
#[must_use]
pub fn title_of(machine: &Machine, about: &str) -> String {
    format!("{about}, timing {}", machine.timing.name)
}

/// One line that names the exchange: `alltoall of 1 KiB blocks on torus:8x8: 64 ranks, 1 port`.
#[must_use]
pub fn about(machine: &Machine, problem: &Problem) -> String {
    about_sizes(machine, problem, &bytes(problem.block_bytes))
}

/// The same for a range of block sizes.
#[must_use]
pub fn about_sizes(machine: &Machine, problem: &Problem, sizes: &str) -> String {
    format!("{} of {sizes} blocks {}", problem.operation, on(machine, problem))
}

/// The machine: `on torus:8x8: 64 ranks, 1 port`.
#[must_use]
pub fn on(machine: &Machine, problem: &Problem) -> String {
    let topology = machine.topology.short_form();
    // The name of a partial machine begins with its topology.
    let said = topology == machine.name || machine.name.starts_with(&format!("{topology} of "));
    let named = if said { machine.name.clone() } else { format!("{} ({topology})", machine.name) };
    format!(
        "on {named}: {}{} rank{}, {}",
        nodes(machine),
        problem.ranks,
        plural(problem.ranks as usize),
        ports_of(problem.ports, problem.own_node_ports(&*machine.topology)),
    )
}

/// The algorithm bandwidth of an exchange that takes this many seconds, and its share of what the limiting
/// resource allows: `382.8 MB/s a rank, 80 % of what the bisection allows`.
#[must_use]
pub fn rate(problem: &Problem, bound: &BestBounds, seconds: f64) -> String {
    let [rate, _] = problem.bandwidth(seconds);
    let share = 100.0 * bound.transmission / seconds;
    format!("{} a rank, {share:.0} % of {}", bandwidth(1.0 / rate), allowed(bound))
}

/// `what the bisection allows`.
pub(crate) fn allowed(bound: &BestBounds) -> String {
    let limit = bound.limit.name();
    let allow = if limit.contains("ports") || limit.contains("links") { "allow" } else { "allows" };
    format!("what the {limit} {allow}")
}

/// What limits a comparison with an MPI library.
#[must_use]
pub fn not_compared(
    library: &Library,
    release: &Release,
    operation: Collective,
    machine: &Machine,
) -> String {
    let mut notes = String::new();
    if library.name == "openmpi" && machine.ports.rank < machine.ranks() - 1 {
        notes += &format!(
            "Its linear algorithms are priced with as many messages at once as a rank has ports, {}; --ports all posts all at once.\n",
            machine.ports.rank
        );
    }
    let (title, of_nodes) = (library.title, machine.topology.shape());
    if let Some((of, component)) = release.ahead
        && operation == of
        && !matches!(of_nodes, Shape::Clustered(nodes) if nodes.nodes() == 1)
    {
        notes += &format!(
            "Between nodes its component {component} comes before them for {operation}; --mca coll ^{component} turns it off.\n"
        );
    }
    if let Shape::Clustered(nodes) = of_nodes
        && nodes.nodes() > 1
        && machine.ports.node < nodes.largest()
    {
        notes += &format!(
            "{title} ignores nodes: where their ranks send more messages than a node has ports, messages queue, and simulate refuses the schedule.\n"
        );
    }
    notes
}

/// `2 ports`, or `7 ports a rank and 16 a node` where a node's differ.
pub fn ports_of<N: Copy + Into<u64>>(ports: N, of_node: Option<N>) -> String {
    let (ports, of_node) = (ports.into(), of_node.map(Into::into));
    let word = if ports == 1 { "port" } else { "ports" };
    match of_node {
        None => format!("{ports} {word}"),
        Some(of_node) => format!("{ports} {word} a rank and {of_node} a node"),
    }
}

/// The nodes of a cluster: `20 nodes: 19 x 48 + 1 x 47 = `.
fn nodes(machine: &Machine) -> String {
    /// Most groups of equal nodes that are listed.
    const LISTED: usize = 4;
    let Shape::Clustered(clusters) = machine.topology.shape() else { return String::new() };
    let mut groups: Vec<(u32, u32)> = Vec::new();
    for (_, count, size) in clusters.groups() {
        match groups.iter_mut().find(|(_, known)| *known == size) {
            Some((nodes, _)) => *nodes += count,
            None => groups.push((count, size)),
        }
    }
    let nodes = clusters.nodes();
    let named: Vec<_> = groups.iter().map(|(count, size)| format!("{count} x {size}")).collect();
    match named.len() {
        0..=LISTED => format!("{nodes} node{}: {} = ", plural(nodes as usize), named.join(" + ")),
        sizes => format!("{nodes} nodes of {sizes} sizes, "),
    }
}

/// Sentences about what the machine's name does not say: ranks of a node, missing nodes and failed links.
#[must_use]
pub fn particulars(machine: &Machine) -> Vec<String> {
    /// Most failures that are listed.
    const LISTED: usize = 6;
    let topology = &*machine.topology;
    let mut out = Vec::new();
    if let Shape::Clustered(clusters) = topology.shape() {
        let nodes = clusters.nodes();
        let sizes: Vec<_> = clusters.groups().map(|(_, _, size)| size).collect();
        let (least, most) = (sizes.iter().min(), sizes.iter().max());
        let (Some(&least), Some(&most)) = (least, most) else { return out };
        let each = if least == most { format!("{most}") } else { format!("{least} to {most}") };
        out.push(format!(
            "{nodes} node{} of {each} rank{}",
            plural(nodes as usize),
            plural(most as usize)
        ));
    }
    let Shape::Graph(graph) = topology.network() else { return out };
    let Some(lattice) = graph.lattice() else { return out };
    let (nodes, links): (Vec<_>, Vec<_>) =
        lattice.failures().iter().partition(|failure| failure.is_node());
    for (failures, one, several) in [
        (nodes, "node is missing", "nodes are missing"),
        (links, "link has failed, in both directions", "links have failed, in both directions"),
    ] {
        let listed: Vec<_> = failures.iter().take(LISTED).map(|failure| failure.name()).collect();
        let listed = listed.join(" ");
        let more = match failures.len().saturating_sub(LISTED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        match failures.iter().map(|failure| failure.faults().len()).sum() {
            0_usize => {}
            1 => out.push(format!("1 {one}: {listed}")),
            count => out.push(format!("{count} {several}: {listed}{more}")),
        }
    }
    out
}

/// An algorithm with all its parameters.
#[must_use]
pub fn in_full(choice: &Choice) -> String {
    named(&choice.algorithm, &choice.parameters)
}

/// One sentence: why the winner wins over the best of the other algorithms.
#[must_use]
pub fn reason(selection: &Selection, named: impl Fn(&Choice) -> String) -> String {
    let Some(best) = selection.best() else {
        return "no algorithm serves this exchange".to_owned();
    };
    if best.price.priced == Priced::AtLeast {
        return format!(
            "{} has the lowest minimum cost; no algorithm can be priced exactly on a machine of this size",
            named(best)
        );
    }
    let mut behind = selection.choices.iter().skip(selection.undecided().len());
    let Some(next) = behind.find(|choice| choice.algorithm != best.algorithm) else {
        return format!("{} wins: no other algorithm serves this exchange", named(best));
    };
    let (a, b) = (&best.price, &next.price);
    if b.time.total() < a.time.total() {
        let time = |choice: &Choice| match choice.ranked_seconds() {
            time if time.is_finite() => format!("takes {}", seconds(time)),
            _ => "deadlocks".to_owned(),
        };
        return format!(
            "{} wins over {}, which is faster in step and {} without barriers",
            named(best),
            named(next),
            time(next)
        );
    }
    let steps = if a.steps == b.steps {
        "equal steps over faster links".to_owned()
    } else {
        format!("{} against {} steps", a.steps, b.steps)
    };
    let terms = [
        ("startup", b.time.startup - a.time.startup, steps.clone()),
        (
            "transmission",
            b.time.transmission - a.time.transmission,
            format!(
                "{} against {} blocks over the busiest links",
                blocks(a.link_blocks),
                blocks(b.link_blocks)
            ),
        ),
        ("propagation", b.time.propagation - a.time.propagation, "fewer hops".to_owned()),
        (
            "rearrangement",
            b.time.rearrangement - a.time.rearrangement,
            "fewer blocks copied".to_owned(),
        ),
        ("barriers", b.time.barrier - a.time.barrier, steps.clone()),
    ];
    let against = match b.priced == Priced::AtLeast {
        true => format!("the minimum cost of {}", named(next)),
        false => named(next),
    };
    let Some((term, saved, how)) =
        terms.iter().max_by(|x, y| x.1.total_cmp(&y.1)).filter(|term| term.1 > 0.0)
    else {
        return format!("{} and {against} are a tie: both cost the same", named(best));
    };
    // Net loss over the other terms.
    let lost: f64 = saved - terms.iter().map(|term| term.1).sum::<f64>();
    let lost = if lost > 0.0 {
        format!(", more than the {} it loses elsewhere", seconds(lost))
    } else {
        String::new()
    };
    format!(
        "{} wins over {against}: it saves {} of {term} ({how}){lost}",
        named(best),
        seconds(*saved)
    )
}

/// The ending of a noun.
pub(crate) fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_by_links_and_named_by_words() {
        let machine = topocoll::machine("torus:4x4/1,1/0,0+0/line:0,3+0").unwrap();
        assert_eq!(
            particulars(&machine),
            ["1 node is missing: 1,1", "5 links have failed, in both directions: 0,0+0 line:0,3+0"]
        );
    }
}
