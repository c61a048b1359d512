//! Ranks on those nodes of a machine that a host file or a rankfile names.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::hosts::Hosts;
use super::{Beginning, hosts, rankfile, shown, wrong};
use crate::error::SpecError;
use crate::graph_file::Listing;
use crate::spec::with_network;
use crate::{Graph, LinkKind, Machine, Shape, Topology};

/// The machine of these hosts, in this order, each with as many ranks as it has slots, on the network of a
/// machine whose nodes have names. Nodes that are not listed hold no ranks; those that no route between
/// hosts can pass are left out.
///
/// # Errors
/// A host that is no node of the machine, or has more slots than the machine's node has ranks where it has
/// several; a file that is no host file; a machine whose routes are not those of a list of links. The bytes of
/// `text` that are wrong.
pub fn place(machine: &Machine, text: &str) -> Result<Machine, SpecError> {
    let Shape::Graph(graph) = machine.topology.network() else {
        let rule = "--hosts is for a network whose nodes have names";
        return Err(format!("{rule}, and {} has none", machine.topology.short_form()).into());
    };
    if !graph.routes.are_of_links() {
        let rule = "--hosts is for routes that links alone give";
        return Err(format!("{rule}: {} has its own", machine.name).into());
    }
    let (listed, ignored) = match rankfile::knows(&Beginning::of(text)) {
        true => (rankfile::listed(text)?, ["slot"].into()),
        false => hosts::listed(text)?,
    };
    let nodes = nodes(machine, graph, &listed)?;
    let sizes: Vec<u32> = listed.sizes.iter().map(|(_, size, _)| *size).collect();
    let mut placed = with_network(machine, Arc::new(part(graph, &nodes)?), &sizes)?;
    let unused = graph.nodes as usize - nodes.len();
    if unused > 0 {
        placed.assume(&format!("{unused} nodes hold no ranks"));
    }
    let mut placed = listed.placed(placed, ignored)?;
    ["shape", "placement"].iter().for_each(|key| placed.cite(key, "--hosts".to_owned()));
    Ok(placed)
}

/// The nodes of the hosts, in order.
fn nodes(machine: &Machine, graph: &Graph, hosts: &Hosts<'_>) -> Result<Vec<u32>, SpecError> {
    let mut numbers: HashMap<String, Vec<u32>> = HashMap::new();
    for node in 0..graph.nodes {
        numbers.entry(graph.vertex_name(node)).or_default().push(node);
    }
    let node = |&(host, slots, at): &(&str, u32, usize)| {
        let refuse = |message| wrong(at, host, message);
        let name = &machine.name;
        let node = match numbers.get(host).map_or(&[][..], |nodes| nodes) {
            [] => return Err(refuse(format!("{} is not a node of {name}", shown(host)))),
            [node] => *node,
            all => {
                let count = all.len();
                return Err(refuse(format!("{count} nodes of {name} are called {}", shown(host))));
            }
        };
        match machine.topology.shape() {
            Shape::Clustered(of) if of.size(node) < slots => {
                let (host, size) = (shown(host), of.size(node));
                Err(refuse(format!("{host} has {slots} slots, and {size} ranks in {name}")))
            }
            _ => Ok(node),
        }
    };
    match hosts.sizes.is_empty() {
        true => Err("no hosts".into()),
        false => hosts.sizes.iter().map(node).collect(),
    }
}

/// The network in which only these nodes hold ranks, without the ends of it that lead to none of them.
fn part(graph: &Graph, nodes: &[u32]) -> Result<Graph, SpecError> {
    let used: HashSet<u32> = nodes.iter().copied().collect();
    let mut beside: Vec<HashSet<u32>> = vec![HashSet::new(); graph.vertices() as usize];
    for (from, (_, to)) in
        (0..graph.vertices()).flat_map(|from| graph.leaving(from).map(move |link| (from, link)))
    {
        beside[from as usize].insert(to);
        beside[to as usize].insert(from);
    }
    let is_end = |beside: &[HashSet<u32>], vertex: u32| {
        !used.contains(&vertex) && beside[vertex as usize].len() < 2
    };
    let mut kept = vec![true; beside.len()];
    let mut ends: Vec<u32> =
        (0..graph.vertices()).filter(|&vertex| is_end(&beside, vertex)).collect();
    while let Some(end) = ends.pop() {
        kept[end as usize] = false;
        for other in std::mem::take(&mut beside[end as usize]) {
            beside[other as usize].remove(&end);
            if kept[other as usize] && is_end(&beside, other) {
                ends.push(other);
            }
        }
    }
    let others =
        (0..graph.vertices()).filter(|vertex| kept[*vertex as usize] && !used.contains(vertex));
    let order: Vec<u32> = nodes.iter().copied().chain(others).collect();
    let mut listing = Listing::new(false).with_classes(&graph.classes);
    let mut places = vec![None; beside.len()];
    for &vertex in &order {
        let is_switch = !used.contains(&vertex);
        let place = listing.vertex(graph.vertex_name(vertex), is_switch, 0..0);
        places[vertex as usize] = Some(place);
    }
    for &from in &order {
        for (link, to) in graph.leaving(from) {
            let (Some(from), Some(to)) = (places[from as usize], places[to as usize]) else {
                continue;
            };
            let LinkKind { class, capacity, latency, .. } = *graph.links.kind(link.0 as usize);
            let class = &graph.classes[class as usize];
            listing.add([from, to], class, (capacity, latency), 1, None)?;
        }
    }
    listing.graph("network".to_owned())
}
