//! Dragonflies (Kim, Dally, Scott and Abts 2008) with minimal routes.
//!
//! P nodes on each router, A routers in each group, H global links on each router, and room for
//! M = A H + 1 groups. The routers of a group are fully connected. The global ports of group g are
//! numbered router by router, 0 to A H - 1. Port j joins group (g + j + 1) mod M, at its port
//! A H - 1 - j, and is unused if that group is absent.

use std::sync::Arc;

use crate::graph::{Links, ListedLinks, Routes, check_size};
use crate::spec::number;
use crate::{Graph, LinkKind, Topology, TopologyError};

/// The classes of links: of nodes, within groups, between groups.
const CLASSES: [&str; 3] = ["node", "local", "global"];

/// Over one global link at most: to the router that has it, over it, and to the router of the
/// destination.
///
/// The ports of a router are ordered: its nodes, the other routers of its group, its global links.
#[derive(Debug)]
struct Minimal {
    /// Nodes of a router.
    nodes: u32,
    /// Routers of a group.
    routers: u32,
    /// Global ports of a router.
    global: u32,
    groups: u32,
}

impl Graph {
    /// `nodes` on each router, `routers` in each group, `global` links on each router that lead to
    /// other groups, and `groups`: as many as can be joined unless given.
    ///
    /// # Errors
    /// A number of 0, more groups than routers * global + 1, more than 2^20 nodes, or more than 2^26
    /// directed links.
    pub fn dragonfly(
        nodes: u32,
        routers: u32,
        global: u32,
        groups: Option<u32>,
    ) -> Result<Self, TopologyError> {
        let most = u128::from(routers) * u128::from(global) + 1;
        let groups = groups.map_or(most, u128::from);
        let refuse = |what: String, rule: String| {
            Err(format!("a dragonfly cannot have {what}: {rule}").into())
        };
        let numbers = [
            ("nodes on each router", nodes),
            ("routers in each group", routers),
            ("global links on each router", global),
        ];
        if let Some((what, _)) = numbers.iter().find(|(_, number)| *number == 0) {
            return refuse(format!("0 {what}"), "it has at least 1".to_owned());
        }
        if !(1..=most).contains(&groups) {
            let rule = format!("{routers} routers of {global} global links join 1 to {most}");
            return refuse(format!("{groups} groups"), rule);
        }
        let switches = groups * u128::from(routers);
        let nodes_of_all = switches * u128::from(nodes);
        check_size("dragonfly", nodes_of_all, 0)?;
        let local = switches * u128::from(routers - 1);
        let all = 2 * nodes_of_all + local + groups * (groups - 1);
        check_size("dragonfly", nodes_of_all, all)?;

        let fly = Minimal { nodes, routers, global, groups: groups as u32 };
        let nodes = nodes_of_all as u32;
        let mut links = ListedLinks::new((nodes_of_all + switches) as usize, all as usize);
        let [node_kind, local_kind, global_kind] = [0, 1, 2].map(LinkKind::of_class);
        for node in 0..nodes {
            links.link(nodes + node / fly.nodes, node_kind);
            links.next_vertex();
        }
        for group in 0..fly.groups {
            for router in 0..routers {
                let first = (group * routers + router) * fly.nodes;
                for node in first..first + fly.nodes {
                    links.link(node, node_kind);
                }
                for other in (0..routers).filter(|&other| other != router) {
                    links.link(fly.vertex(group, other), local_kind);
                }
                let mut port = fly.first_port(router);
                while port < fly.first_port(router + 1) {
                    let other = fly.joined(group, port);
                    if other < groups as u64 {
                        let entry = (fly.room() - 2 - port) / u64::from(global);
                        links.link(fly.vertex(other as u32, entry as u32), global_kind);
                        port += 1;
                    } else {
                        // The next that joins group 0.
                        port += fly.room() - other;
                    }
                }
                links.next_vertex();
            }
        }
        let given = if groups == most { String::new() } else { format!(",{groups}") };
        let form = format!("dragonfly:{},{routers},{global}{given}", fly.nodes);
        let classes = CLASSES.map(str::to_owned).to_vec();
        Ok(Self::new(form, nodes, classes, links.done(), fly))
    }
}

impl Minimal {
    fn all_nodes(&self) -> u32 {
        self.groups * self.routers * self.nodes
    }

    /// The vertex of a router.
    fn vertex(&self, group: u32, router: u32) -> u32 {
        self.all_nodes() + group * self.routers + router
    }

    /// The group and router, within it, of a number of all routers.
    fn place(&self, router: u32) -> (u32, u32) {
        (router / self.routers, router % self.routers)
    }

    /// Room for groups.
    fn room(&self) -> u64 {
        u64::from(self.routers) * u64::from(self.global) + 1
    }

    /// The first global port of a router.
    fn first_port(&self, router: u32) -> u64 {
        u64::from(router) * u64::from(self.global)
    }

    /// The group, perhaps absent, that a global port of a group joins.
    fn joined(&self, group: u32, port: u64) -> u64 {
        (u64::from(group) + port + 1) % self.room()
    }

    /// The used global ports of a router before one of them.
    fn used_before(&self, group: u32, router: u32, port: u64) -> u32 {
        // Ports join consecutive groups, around the room.
        let present = |groups: u64| {
            let (turns, rest) = (groups / self.room(), groups % self.room());
            turns * u64::from(self.groups) + rest.min(self.groups.into())
        };
        let joins = |port: u64| u64::from(group) + port + 1;
        (present(joins(port)) - present(joins(self.first_port(router)))) as u32
    }
}

impl Routes for Minimal {
    fn next(&self, _: &Links, at: u32, _: u32, to: u32) -> usize {
        let Some(router) = at.checked_sub(self.all_nodes()) else { return 0 };
        let ((group, router), (its_group, its_router)) =
            (self.place(router), self.place(to / self.nodes));
        // The router to reach within this group, and the global port there.
        let (exit, port) = if group == its_group {
            (its_router, None)
        } else {
            let up = u64::from(its_group) + self.room() - u64::from(group);
            let port = up % self.room() - 1;
            ((port / u64::from(self.global)) as u32, Some(port))
        };
        let port = match port {
            _ if exit != router => self.nodes + exit - u32::from(exit > router),
            Some(port) => self.nodes + self.routers - 1 + self.used_before(group, router, port),
            None => to % self.nodes,
        };
        port as usize
    }

    fn diameter(&self) -> u32 {
        let local = u32::from(self.routers > 1);
        let between_routers = if self.groups > 1 { 2 * local + 1 } else { local };
        if self.all_nodes() > 1 { 2 + between_routers } else { 0 }
    }

    fn vertex_name(&self, vertex: u32) -> Option<String> {
        let (group, router) = self.place(vertex.checked_sub(self.all_nodes())?);
        Some(format!("group {group} router {router}"))
    }
}

/// Reads the nodes of a router, the routers of a group, the global links of a router, and perhaps
/// the number of groups.
pub(crate) fn dragonfly(rest: &str) -> Result<Arc<dyn Topology>, String> {
    const NUMBERS: [&str; 4] =
        ["nodes on each router", "routers in each group", "global links on each router", "groups"];
    let numbers = rest.split(',').take(5).enumerate();
    let numbers = numbers.map(|(i, text)| number(NUMBERS.get(i).unwrap_or(&"number"), text));
    let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
    let (nodes, routers, global, groups) = match numbers[..] {
        [nodes, routers, global] => (nodes, routers, global, None),
        [nodes, routers, global, groups] => (nodes, routers, global, Some(groups)),
        _ => {
            return Err(format!(
                "a dragonfly has {}, and perhaps {}",
                NUMBERS[..3].join(", "),
                NUMBERS[3]
            ));
        }
    };
    Ok(Arc::new(Graph::dragonfly(nodes, routers, global, groups)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinkId, Rank, Route};

    /// The vertices that a message passes, and the classes of its links.
    fn passed(graph: &Graph, from: u32, to: u32) -> (Vec<u32>, Vec<u32>) {
        let mut route = Route::default();
        graph.route(Rank(from), Rank(to), &mut route);
        assert_eq!(graph.follow(Rank(from), &route), Ok(to));
        let (mut vertices, mut classes) = (vec![from], Vec::new());
        graph.for_each_link(Rank(from), &route, &mut |link| {
            let link = graph.link(link).unwrap();
            vertices.push(link.to);
            classes.push(link.class);
        });
        (vertices, classes)
    }

    #[test]
    fn wiring_and_routes_are_those_of_the_definition() {
        for (p, a, h, g) in [
            (2, 4, 2, 9),
            (1, 2, 1, 3),
            (2, 4, 2, 5),
            (3, 3, 4, 2),
            (2, 1, 3, 4),
            (1, 1, 2, 1),
            (2, 5, 1, 1),
            (1, 3, 2, 6),
        ] {
            let fly = Graph::dragonfly(p, a, h, Some(g)).unwrap();
            let (nodes, m) = (p * a * g, a * h + 1);
            let vertex = |group: u32, router: u32| nodes + group * a + router;
            assert_eq!((fly.ranks(), fly.vertices()), (nodes, nodes + a * g));
            assert_eq!(fly.links(), u64::from(2 * nodes + g * a * (a - 1) + g * (g - 1)));
            let links: Vec<_> =
                (0..fly.links()).map(|link| fly.link(LinkId(link)).unwrap()).collect();
            let has = |from, to, class| {
                links.iter().filter(|l| (l.from, l.to, l.class) == (from, to, class)).count()
            };
            for node in 0..nodes {
                let router = nodes + node / p;
                assert_eq!((has(node, router, 0), has(router, node, 0)), (1, 1));
            }
            let mut global = 0;
            for group in 0..g {
                for (one, other) in (0..a).flat_map(|one| (0..a).map(move |other| (one, other))) {
                    let expected = usize::from(one != other);
                    assert_eq!(has(vertex(group, one), vertex(group, other), 1), expected);
                }
                for j in 0..a * h {
                    let (to, port) = ((group + j + 1) % m, a * h - 1 - j);
                    assert_ne!(to, group);
                    // And back.
                    assert_eq!(((to + port + 1) % m, a * h - 1 - port), (group, j));
                    if to < g {
                        assert_eq!(has(vertex(group, j / h), vertex(to, port / h), 2), 1);
                        global += 1;
                    }
                }
            }
            assert_eq!(links.iter().filter(|link| link.class == 2).count(), global);

            let mut longest = 0;
            for (from, to) in (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))) {
                let router = |node: u32| nodes + node / p;
                let group = |node: u32| node / (p * a);
                // The only link between the groups, if they differ.
                let across = links.iter().find(|link| {
                    link.class == 2
                        && (link.from - nodes) / a == group(from)
                        && (link.to - nodes) / a == group(to)
                });
                let mut expected = vec![from, router(from)];
                if let Some(link) = across {
                    expected.extend([link.from, link.to]);
                }
                expected.extend([router(to), to]);
                expected.dedup();
                if from == to {
                    expected = vec![from];
                }
                let (vertices, classes) = passed(&fly, from, to);
                assert_eq!(vertices, expected, "{} {from} {to}", fly.short_form());
                assert!(classes.iter().filter(|class| **class == 2).count() <= 1);
                assert_eq!(across.is_some(), group(from) != group(to));
                longest = longest.max(classes.len() as u32);
            }
            assert_eq!(fly.diameter(), longest, "{}", fly.short_form());
        }
    }

    #[test]
    fn unused_ports_take_no_time_and_no_memory() {
        let fly = Graph::dragonfly(1, 2, u32::MAX, Some(2)).unwrap();
        assert_eq!((fly.ranks(), fly.links()), (4, 8 + 4 + 2));
        // Port 0 of group 0 is on its first router, and joins the last port of group 1.
        assert_eq!(passed(&fly, 0, 3).0, [0, 4, 7, 3]);
        assert_eq!(passed(&fly, 1, 2).0, [1, 5, 4, 7, 6, 2]);
        assert_eq!(fly.vertex_name(7), "group 1 router 1");
    }

    #[test]
    fn impossible_numbers_are_refused_with_the_rule() {
        let refused = |rest: &str| dragonfly(rest).unwrap_err();
        assert_eq!(
            refused("2,4,2,10"),
            "a dragonfly cannot have 10 groups: 4 routers of 2 global links join 1 to 9"
        );
        assert_eq!(
            refused("1024,32,33"),
            "a dragonfly cannot have 34635776 nodes: the limit is 1048576"
        );
        assert_eq!(
            refused("1,16384,1,1"),
            "a dragonfly cannot have 268451840 directed links: the limit is 67108864"
        );
    }
}
