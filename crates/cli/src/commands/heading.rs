//! What a report is about, and the values that it assumes.

use topocoll::{Machine, PerClass, Problem, Schedule, Shape, Timing};

use super::plural;
use crate::args::Options;
use crate::demand::Named;
use crate::render::{bandwidth, bytes, duration};

/// The title of a picture or a page: the exchange and its timing.
pub(crate) fn title(machine: &Machine, problem: &Problem) -> String {
    title_of(machine, &about(machine, problem))
}

/// What a report is about, with the timing.
pub(super) fn title_of(machine: &Machine, about: &str) -> String {
    format!("{about}, timing {}", machine.timing.name)
}

/// One line that names the exchange: `alltoall of 1 KiB blocks on torus:8x8: 64 ranks, 1 port`.
pub(super) fn about(machine: &Machine, problem: &Problem) -> String {
    about_sizes(machine, problem, &bytes(problem.block_bytes))
}

/// The same for a schedule, which may have message sizes only.
pub(super) fn about_schedule(machine: &Machine, schedule: &Schedule) -> String {
    match schedule.rule().names_blocks() {
        true => about(machine, &schedule.problem),
        false => format!("messages of known sizes {}", on(machine, &schedule.problem)),
    }
}

/// The same for a demand matrix, if there is one.
pub(super) fn about_demand(machine: &Machine, problem: &Problem, sizes: Option<&Named>) -> String {
    match sizes {
        Some(sizes) => about_sizes(machine, problem, &sizes.name),
        None => about(machine, problem),
    }
}

/// The same for a range of block sizes.
pub(super) fn about_sizes(machine: &Machine, problem: &Problem, sizes: &str) -> String {
    format!("{} of {sizes} blocks {}", problem.operation, on(machine, problem))
}

/// The machine: `on torus:8x8: 64 ranks, 1 port`.
fn on(machine: &Machine, problem: &Problem) -> String {
    let topology = machine.topology.short_form();
    // The name of a partial machine begins with its topology.
    let said = topology == machine.name || machine.name.starts_with(&format!("{topology} of "));
    let named = if said { machine.name.clone() } else { format!("{} ({topology})", machine.name) };
    format!(
        "on {named}: {}{} rank{}, {} port{}",
        nodes(machine),
        problem.ranks,
        plural(problem.ranks as usize),
        problem.ports,
        plural(problem.ports as usize),
    )
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

/// The values that a prediction assumes, and how to give others.
pub(super) fn assumed(machine: &Machine) -> String {
    let Timing {
        name, startup, per_byte, per_hop, injection, rearrangement_per_byte, barrier, ..
    } = &machine.timing;
    let links = machine.topology.links() > 0;
    let classes = machine.topology.link_classes();
    let each = |values: &PerClass, show: fn(f64) -> String| by_class(values, &classes, show);
    let mut values = vec![
        format!("startup {}", each(startup, duration)),
        each(per_byte, bandwidth) + if links { " a link" } else { "" },
    ];
    let limits = [(injection.rank, "rank"), (injection.node, "node")].into_iter();
    let limits = limits.filter(|(limit, _)| *limit > 0.0);
    let limits: Vec<_> = limits.map(|(limit, of)| format!("{} a {of}", bandwidth(limit))).collect();
    if !limits.is_empty() {
        values.push(format!("injection {}", limits.join(" and ")));
    }
    if links && per_hop.least() > 0.0 {
        values.push(format!("{} a hop", each(per_hop, duration)));
    }
    if *rearrangement_per_byte > 0.0 {
        values.push(format!("rearrangement at {}", bandwidth(*rearrangement_per_byte)));
    }
    if barrier.seconds(machine.ranks()) > 0.0 {
        values.push(format!("barrier {}", duration(barrier.seconds(machine.ranks()))));
    }
    // A name of a file may have the word too.
    let given = name.rsplit_once(" with ").filter(|(_, given)| given.ends_with(" given"));
    let (name, given) = match given {
        Some((name, given)) => (name, format!("{given}, the rest ")),
        None => (name.as_str(), String::new()),
    };
    let source = match name {
        "generic" => "generic values, not your machine: give --timing or a machine file".to_owned(),
        name => format!("values of {name}"),
    };
    format!("Assumed: {}; {given}{source}.\n", values.join(", "))
}

/// The same, and that one port is the default where a node has more links.
pub(super) fn assumed_by(machine: &Machine, ports: u32, options: &Options) -> String {
    let mut text = assumed(machine);
    let links = machine.topology.most_links_out();
    if options.ports.is_none() && machine.sources.is_empty() && ports == 1 && links > 1 {
        text += &format!(
            "One port is the default. A node has {links} links: --ports {links} uses them at once.\n"
        );
    }
    text
}

/// A value, or the value of each class where they differ.
fn by_class(values: &PerClass, classes: &[String], show: fn(f64) -> String) -> String {
    let each: Vec<_> = (0..classes.len().max(1)).map(|class| show(values.of(class))).collect();
    if each.iter().all(|value| *value == each[0]) {
        return each[0].clone();
    }
    // Inside a node, and on all links of its network.
    let between = &each[1..];
    if classes[0] == "intra-node" && between.iter().all(|value| *value == between[0]) {
        return format!("{} intra-node and {} inter-node", each[0], between[0]);
    }
    let named = each.iter().zip(classes).map(|(value, class)| format!("{value} {class}"));
    named.collect::<Vec<_>>().join(" and ")
}
