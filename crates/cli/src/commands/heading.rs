//! What a report is about, and the values that it assumes.

use topocoll::{Contention, Machine, PerClass, Ports, Problem, Schedule, Shape, Timing};
use topocoll_report::words::on;
pub(super) use topocoll_report::words::{about, about_sizes, title, title_of};

use super::plural;
use super::request::Sized;
use crate::args::Options;
use crate::demand::Named;
use crate::render::{bandwidth, bytes, duration};

/// The exchange of a schedule, which may have message sizes only.
pub(super) fn about_schedule(machine: &Machine, schedule: &Schedule) -> String {
    match schedule.rule().names_blocks() {
        true => in_groups(machine, schedule, &bytes(schedule.problem.block_bytes)),
        false => format!("messages of known sizes {}", on(machine, &schedule.problem)),
    }
}

/// The same for blocks of given sizes.
pub(super) fn about_sized(machine: &Machine, schedule: &Schedule, sizes: Option<&Sized>) -> String {
    match sizes {
        Some(sizes) => in_groups(machine, schedule, &sizes.name),
        None => about_schedule(machine, schedule),
    }
}

/// `alltoall of 1 KiB blocks in 4 groups of 4 ranks on torus:4x4: 16 ranks, 1 port`, or of the ranks of one group.
fn in_groups(machine: &Machine, schedule: &Schedule, sizes: &str) -> String {
    let (mut problem, mut sizes) = (schedule.problem, format!("{sizes} blocks"));
    match schedule.groups() {
        Some(groups) if groups.count() > 1 => {
            let [least, most] =
                [groups.sizes().min(), groups.sizes().max()].map(Option::unwrap_or_default);
            let least = if least < most { format!("{least} to ") } else { String::new() };
            let count = groups.count();
            sizes += &format!(" in {count} groups of {least}{most} rank{}", plural(most as usize));
        }
        _ => problem.ranks = schedule.participants(),
    }
    format!("{} of {sizes} {}", problem.operation, on(machine, &problem))
}

/// The same for a demand matrix, if there is one.
pub(super) fn about_demand(machine: &Machine, problem: &Problem, sizes: Option<&Named>) -> String {
    match sizes {
        Some(sizes) => about_sizes(machine, problem, &sizes.name),
        None => about(machine, problem),
    }
}

/// The values that a prediction assumes, and how to give others.
pub(super) fn assumed(machine: &Machine) -> String {
    let Timing {
        name,
        startup,
        per_byte,
        per_hop,
        injection,
        rearrangement_per_byte,
        per_block,
        barrier,
        rendezvous,
        contention,
        ..
    } = &machine.timing;
    let links = machine.topology.links() > 0;
    let classes = machine.topology.link_classes();
    let each = |values: &PerClass, show: fn(f64) -> String| {
        by_class(&classes, |class| show(values.of(class)))
    };
    // What links have of their own is in a range.
    let of_links = |values: &PerClass, which: usize, show: fn(f64) -> String| {
        by_class(&classes, |class| match machine.values_of_links(class)[which] {
            None => show(values.of(class)),
            Some((least, most)) => match (show(most), show(least)) {
                (slowest, fastest) if slowest == fastest => fastest,
                (one, other) if which == 0 => format!("{one} to {other}"),
                (one, other) => format!("{other} to {one}"),
            },
        })
    };
    let mut values = vec![
        format!("startup {}", each(startup, duration)),
        of_links(per_byte, 0, bandwidth) + if links { " a link" } else { "" },
    ];
    let limits = [(injection.rank, "rank"), (injection.node, "node")].into_iter();
    let limits = limits.filter(|(limit, _)| *limit > 0.0);
    let limits: Vec<_> = limits.map(|(limit, of)| format!("{} a {of}", bandwidth(limit))).collect();
    if !limits.is_empty() {
        values.push(format!("injection {}", limits.join(" and ")));
    }
    if links && per_hop.least() > 0.0 {
        values.push(format!("{} a hop", of_links(per_hop, 1, duration)));
    }
    if *rearrangement_per_byte > 0.0 {
        values.push(format!("rearrangement at {}", bandwidth(*rearrangement_per_byte)));
    }
    if *per_block > 0.0 {
        values.push(format!("{} a block copied", duration(*per_block)));
    }
    if rendezvous.time > 0.0 {
        let above = bytes(rendezvous.above);
        values.push(format!("rendezvous {} above {above}", duration(rendezvous.time)));
    }
    if machine.endpoint.message_overhead > 0.0 {
        values.push(format!("overhead {} a message", duration(machine.endpoint.message_overhead)));
    }
    if *contention != Contention::default() {
        let Contention { alone, several } = contention;
        values.push(format!(
            "loads of axes add up with exponent {alone}, of several messages {several}"
        ));
    }
    if barrier.seconds(machine.ranks()) > 0.0 {
        values.push(format!("barrier {}", duration(barrier.seconds(machine.ranks()))));
    }
    // A name of a file may have the word too.
    let given = name.rsplit_once(" with ").filter(|(_, given)| given.ends_with(" given"));
    let of_links = (0..classes.len()).any(|class| machine.values_of_links(class) != [None; 2]);
    let listed = if of_links { "links as listed, " } else { "" };
    let (name, given) = match given {
        Some((name, given)) => (name, format!("{listed}{given}, the rest ")),
        None if of_links => (name.as_str(), format!("{listed}the rest ")),
        None => (name.as_str(), String::new()),
    };
    let source = match name {
        "generic" => "generic values, not your machine: give --timing or a machine file".to_owned(),
        name => format!("values of {name}"),
    };
    let also =
        machine.assumed.as_ref().map_or(String::new(), |also| format!("Also assumed: {also}.\n"));
    format!("Assumed: {}; {given}{source}.\n{also}", values.join(", "))
}

/// The same, and that one port is the default where a node has more links, or that the ranks of a
/// node share its ports.
pub(super) fn assumed_by(machine: &Machine, ports: Ports, options: &Options) -> String {
    let mut text = assumed(machine);
    let links = machine.topology.most_links_out();
    let is_default = options.ports.is_none() && machine.source("ports").is_none();
    match machine.topology.shape() {
        Shape::Clustered(nodes) if nodes.nodes() > 1 => {
            let (ranks, Ports { rank, node }) = (nodes.largest(), ports);
            let unlimited = machine.timing.injection.is_unlimited();
            if options.ports.is_some() && rank > 1 && unlimited {
                text += "Injection is unlimited: --injection RANK,NODE limits what all ports carry at once.\n";
            }
            if options.ports.is_none() && node < ranks {
                let plural = if node == 1 { "" } else { "s" };
                let injection = if unlimited { " --injection RANK,NODE" } else { "" };
                text += &format!(
                    "{ranks} ranks share {node} port{plural} of their node; if they send at once: --ports {rank},all{injection}.\n"
                );
            }
        }
        _ if is_default && ports.rank == 1 && links > 1 => {
            text += &format!(
                "One port is the default. A node has {links} links: --ports {links} uses them at once.\n"
            );
        }
        _ => {}
    }
    text
}

/// A value, or the value of each class where they differ.
fn by_class(classes: &[String], show: impl Fn(usize) -> String) -> String {
    let each: Vec<_> = (0..classes.len().max(1)).map(show).collect();
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
