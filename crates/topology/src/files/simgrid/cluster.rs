//! Clusters that are a torus, a fat tree or a dragonfly.
//!
//! A link has the cluster's bandwidth and latency. The first dimension of a torus is the fastest, and so our
//! last, but routes take it first.

use std::sync::Arc;

use super::super::shown;
use super::quantities::{bandwidth, radical, seconds};
use crate::number::number;
use crate::topology::dragonfly::Dragonfly;
use crate::topology::fat_tree::FatTree;
use crate::topology::lattice::placed::{SIMGRID, on_axes};
use crate::xml::Element;
use crate::{Capacity, Graph, Grid, LinkKind, MAX_DIMENSIONS, Machine, PerClass, Timing, Topology};

/// The machine of a `<cluster>`, or `None` if it is a flat one.
pub(super) fn read(name: &str, cluster: &Element) -> Result<Option<Machine>, String> {
    let given = |name: &str| cluster.given(name);
    let parameters = || given("topo_parameters");
    let hosts = radical(given("radical")?)?.len();
    let network: Arc<dyn Topology> = match cluster.get("topology").unwrap_or("FLAT") {
        "FLAT" => return Ok(None),
        "TORUS" => on_axes(Arc::new(torus(parameters()?)?), SIMGRID)?,
        "FAT_TREE" => Arc::new(fat_tree(parameters()?)?),
        "DRAGONFLY" => Arc::new(dragonfly(parameters()?)?),
        other => {
            return Err(format!(
                "topology {other} is not supported: use FLAT, TORUS, FAT_TREE or DRAGONFLY"
            ));
        }
    };
    let policy = cluster.get("sharing_policy").unwrap_or("SPLITDUPLEX");
    if policy != "SPLITDUPLEX" {
        return Err(format!(
            "sharing_policy {policy} is not supported in a {}: use SPLITDUPLEX, a link in each direction",
            network.short_form()
        ));
    }
    if hosts != network.ranks() as usize {
        let (form, has) = (network.short_form(), network.ranks());
        return Err(format!("radical names {hosts} hosts, but {form} has {has}"));
    }
    let timing = timing(name, bandwidth(given("bw")?)?, seconds(given("lat")?)?);
    Ok(Some(Machine { name: name.to_owned(), timing, ..Machine::of(network) }))
}

/// Links of one bandwidth and latency; startup, rearrangement and barriers take no time.
pub(super) fn timing(name: &str, bandwidth: f64, latency: f64) -> Timing {
    Timing {
        name: name.to_owned(),
        startup: PerClass::uniform(0.0),
        per_byte: PerClass::uniform(1.0 / bandwidth),
        per_hop: PerClass::uniform(latency),
        rearrangement_per_byte: 0.0,
        ..Timing::generic()
    }
}

fn torus(parameters: &str) -> Result<Grid, String> {
    let mut sides = Vec::new();
    for side in parameters.split(',').take(MAX_DIMENSIONS + 1) {
        let side = side.trim();
        sides.push(side.parse().map_err(|_| format!("side `{side}` is not a whole number"))?);
    }
    sides.reverse();
    Ok(Grid::torus(&sides)?)
}

/// The number of levels and, for each level from the hosts up, the entities below a switch, the switches
/// above an entity, and the parallel links between the two.
fn fat_tree(parameters: &str) -> Result<Graph, String> {
    let [levels, down, up, cables] = lists(parameters, [1, 0, 0, 0])?;
    let levels = levels[0] as usize;
    if [&down, &up, &cables].iter().any(|list| list.len() != levels) {
        return Err(format!("topo_parameters `{parameters}` do not have {levels} values a list"));
    }
    let tree = FatTree { down, up, cables, first: Vec::new() };
    let classes = vec!["link".to_owned()];
    Ok(tree.graph("network".to_owned(), classes, |_| LinkKind::of_class(0))?)
}

/// Groups and their links, chassis of a group and theirs, blades of a chassis and theirs, nodes of a blade.
fn dragonfly(parameters: &str) -> Result<Graph, String> {
    let numbers = lists(parameters, [2, 2, 2, 1])?.concat();
    let [groups, blue, chassis, black, blades, green, nodes] = numbers[..] else {
        unreachable!("bug: other lists")
    };
    if groups > 1 && groups > blades {
        return Err(format!(
            "{groups} groups of {blades} blades a chassis: router j of a chassis leads to group j, so \
             there are at least as many blades as groups"
        ));
    }
    let kinds = [1, green, black, blue].map(|times| {
        let capacity = Capacity::Relative { times, over: 1 };
        LinkKind { capacity, ..LinkKind::of_class(0) }
    });
    let fly = Dragonfly { groups, chassis, blades, nodes, global: None };
    Ok(fly.graph("network".to_owned(), vec!["link".to_owned()], kinds)?)
}

/// The lists of `4,2;3,1;2,1;2`, each of a given length unless that is 0.
fn lists(parameters: &str, lengths: [usize; 4]) -> Result<[Vec<u32>; 4], String> {
    let wrong = || format!("topo_parameters `{}` are not those of the topology", shown(parameters));
    let lists: Vec<&str> = parameters.split(';').take(lengths.len() + 1).collect();
    if lists.len() != lengths.len() {
        return Err(wrong());
    }
    let mut out = [const { Vec::new() }; 4];
    for ((list, length), numbers) in lists.iter().zip(lengths).zip(&mut out) {
        for text in list.split(',').take(MAX_DIMENSIONS + 1) {
            numbers.push(number("a value of topo_parameters", text.trim())?);
        }
        if numbers.len() > MAX_DIMENSIONS || length > 0 && numbers.len() != length {
            return Err(wrong());
        }
    }
    Ok(out)
}
