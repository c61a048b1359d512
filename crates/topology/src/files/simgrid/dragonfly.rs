//! DRAGONFLY clusters: groups of chassis of blades, as on a Cray XC (Faanes et al. 2012).
//!
//! The routers of a chassis are fully connected by green links, those at the same place in the
//! chassis of a group by black links. A blue link joins router j in chassis 0 of group i with router
//! i in chassis 0 of group j. Messages take green links before black ones, to the router with the
//! blue link and on from it.

use crate::graph::{Links, ListedLinks, Routes, check_size};
use crate::{Capacity, Graph, LinkKind};

#[derive(Debug)]
struct Dragonfly {
    chassis: u32,
    blades: u32,
    nodes: u32,
    all_nodes: u32,
    diameter: u32,
}

/// The graph of `topo_parameters`: groups and blue links, chassis of a group and black links,
/// blades of a chassis and green links, nodes of a blade.
pub(super) fn dragonfly(parameters: &str) -> Result<Graph, String> {
    let numbers = super::lists(parameters, [2, 2, 2, 1])?.concat();
    let [groups, blue, chassis, black, blades, green, nodes] = numbers[..] else {
        unreachable!("bug: other lists")
    };
    if groups > 1 && groups > blades {
        return Err(format!(
            "{groups} groups of {blades} blades a chassis: router j of a chassis leads to group j, so \
             there are at least as many blades as groups"
        ));
    }
    let routers = [groups, chassis, blades].iter().map(|&n| u128::from(n)).product::<u128>();
    let all_nodes = routers * u128::from(nodes);
    check_size("dragonfly", all_nodes, 0)?;
    let local = routers * u128::from(chassis - 1 + blades - 1);
    let links = 2 * all_nodes + local + u128::from(groups) * u128::from(groups - 1);
    check_size("dragonfly", all_nodes, links)?;

    let within = u32::from(blades > 1) + u32::from(chassis > 1);
    let across = if groups > 1 { 2 * within + 1 } else { within };
    let all_nodes = all_nodes as u32;
    let diameter = if all_nodes > 1 { 2 + across } else { 0 };
    let fly = Dragonfly { chassis, blades, nodes, all_nodes, diameter };
    let kind = |times| {
        let capacity = Capacity::Relative { times, over: 1 };
        LinkKind { capacity, ..LinkKind::of_class(0) }
    };
    let mut listed = ListedLinks::new((all_nodes + routers as u32) as usize, links as usize);
    for node in 0..all_nodes {
        listed.link(all_nodes + node / nodes, kind(1));
        listed.next_vertex();
    }
    for router in 0..routers as u32 {
        let (group, own_chassis, own_blade) = fly.place(router);
        for node in router * nodes..(router + 1) * nodes {
            listed.link(node, kind(1));
        }
        for blade in (0..blades).filter(|&blade| blade != own_blade) {
            listed.link(fly.vertex(group, own_chassis, blade), kind(green));
        }
        for other in (0..chassis).filter(|&other| other != own_chassis) {
            listed.link(fly.vertex(group, other, own_blade), kind(black));
        }
        if own_chassis == 0 && own_blade < groups && own_blade != group {
            listed.link(fly.vertex(own_blade, 0, group), kind(blue));
        }
        listed.next_vertex();
    }
    let classes = vec!["link".to_owned()];
    Ok(Graph::new("network".to_owned(), all_nodes, classes, listed.done(), fly))
}

impl Dragonfly {
    fn vertex(&self, group: u32, chassis: u32, blade: u32) -> u32 {
        self.all_nodes + (group * self.chassis + chassis) * self.blades + blade
    }

    /// The group, chassis and blade of a router.
    fn place(&self, router: u32) -> (u32, u32, u32) {
        let chassis = router / self.blades;
        (chassis / self.chassis, chassis % self.chassis, router % self.blades)
    }
}

impl Routes for Dragonfly {
    fn next(&self, _: &Links, at: u32, _: u32, to: u32) -> usize {
        let Some(router) = at.checked_sub(self.all_nodes) else { return 0 };
        let (group, chassis, blade) = self.place(router);
        let (its_group, its_chassis, its_blade) = self.place(to / self.nodes);
        // The router with the blue link, or the one of the destination.
        let (to_chassis, to_blade) =
            if group == its_group { (its_chassis, its_blade) } else { (0, its_group) };
        let other = |to: u32, own: u32| to - u32::from(to > own);
        let port = if blade != to_blade {
            self.nodes + other(to_blade, blade)
        } else if chassis != to_chassis {
            self.nodes + self.blades - 1 + other(to_chassis, chassis)
        } else if group != its_group {
            self.nodes + self.blades - 1 + self.chassis - 1
        } else {
            to % self.nodes
        };
        port as usize
    }

    fn diameter(&self) -> u32 {
        self.diameter
    }

    fn vertex_name(&self, vertex: u32) -> Option<String> {
        let (group, chassis, blade) = self.place(vertex.checked_sub(self.all_nodes)?);
        Some(format!("group {group} chassis {chassis} blade {blade}"))
    }
}
