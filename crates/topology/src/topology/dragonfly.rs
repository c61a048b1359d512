//! Dragonflies with minimal routes (Kim, Dally, Scott and Abts 2008), and those of a Cray XC (Faanes et al.
//! 2012).
//!
//! P nodes on each router, A routers in each group, H global links on each router, and room for
//! M = A H + 1 groups. The routers of a group are fully connected. The global ports of group g are
//! numbered router by router, 0 to A H - 1. Port j joins group (g + j + 1) mod M, at its port
//! A H - 1 - j, and is unused if that group is absent.
//!
//! On a Cray XC a group has chassis of blades. The routers of a chassis are fully connected, and so are
//! those at the same place in all chassis of a group. A global link joins router j in chassis 0 of group i
//! with router i in chassis 0 of group j.

use std::sync::Arc;

use super::graph::{Links, ListedLinks, Routes, check_size};
use crate::number::number;
use crate::{Graph, LinkKind, Topology, TopologyError};

/// The classes of links: of nodes, within groups, between groups.
const CLASSES: [&str; 3] = ["node", "local", "global"];

/// Over one global link at most: within the chassis and then across them to the router that has it, over
/// it, and in the same way to the router of the destination.
///
/// The ports of a router are ordered: its nodes, the other routers of its chassis, those of other chassis,
/// its global links.
#[derive(Debug)]
pub(crate) struct Dragonfly {
    pub(crate) groups: u32,
    /// Chassis of a group.
    pub(crate) chassis: u32,
    /// Routers of a chassis.
    pub(crate) blades: u32,
    /// Nodes of a router.
    pub(crate) nodes: u32,
    /// Global ports of a router, `None` for the wiring of a Cray XC.
    pub(crate) global: Option<u32>,
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
        let given = if groups == most { String::new() } else { format!(",{groups}") };
        let form = format!("dragonfly:{nodes},{routers},{global}{given}");
        // Too many groups are refused with their nodes.
        check_size("dragonfly", groups * u128::from(routers) * u128::from(nodes), 0)?;
        let (groups, global) = (groups as u32, Some(global));
        let fly = Dragonfly { groups, chassis: 1, blades: routers, nodes, global };
        let [node, local, between] = [0, 1, 2].map(LinkKind::of_class);
        fly.graph(form, CLASSES.map(str::to_owned).to_vec(), [node, local, local, between])
    }
}

impl Dragonfly {
    /// The graph; `kinds` are those of links to nodes, within a chassis, across chassis and between groups.
    pub(crate) fn graph(
        self,
        form: String,
        classes: Vec<String>,
        kinds: [LinkKind; 4],
    ) -> Result<Graph, TopologyError> {
        let Self { groups, chassis, blades, nodes, .. } = self;
        let [groups_of_all, of_chassis, of_blades] = [groups, chassis, blades].map(u128::from);
        let routers = groups_of_all * of_chassis * of_blades;
        let nodes_of_all = routers * u128::from(nodes);
        check_size("dragonfly", nodes_of_all, 0)?;
        let local = routers * (of_chassis - 1 + of_blades - 1);
        let links = 2 * nodes_of_all + local + groups_of_all * (groups_of_all - 1);
        check_size("dragonfly", nodes_of_all, links)?;

        let [to_node, within, across, between] = kinds;
        let mut listed = ListedLinks::new((nodes_of_all + routers) as usize, links as usize);
        for node in 0..self.all_nodes() {
            listed.link(self.all_nodes() + node / nodes, to_node);
            listed.next_vertex();
        }
        for router in 0..routers as u32 {
            let (group, own_chassis, own_blade) = self.place(router);
            for node in router * nodes..(router + 1) * nodes {
                listed.link(node, to_node);
            }
            for blade in (0..blades).filter(|&blade| blade != own_blade) {
                listed.link(self.vertex(group, own_chassis * blades + blade), within);
            }
            for other in (0..chassis).filter(|&other| other != own_chassis) {
                listed.link(self.vertex(group, other * blades + own_blade), across);
            }
            self.global_links(group, router % self.routers(), |other, entry| {
                listed.link(self.vertex(other, entry), between);
            });
            listed.next_vertex();
        }
        Ok(Graph::new(form, self.all_nodes(), classes, listed.done(), Box::new(self)))
    }

    fn all_nodes(&self) -> u32 {
        self.groups * self.routers() * self.nodes
    }

    /// Routers of a group.
    fn routers(&self) -> u32 {
        self.chassis * self.blades
    }

    /// The vertex of a router of a group.
    fn vertex(&self, group: u32, router: u32) -> u32 {
        self.all_nodes() + group * self.routers() + router
    }

    /// The group, chassis and blade of a number of all routers.
    fn place(&self, router: u32) -> (u32, u32, u32) {
        let chassis = router / self.blades;
        (chassis / self.chassis, chassis % self.chassis, router % self.blades)
    }

    /// Calls `each` with the groups that the global links of a router lead to, and the routers there, in the
    /// order of its ports.
    fn global_links(&self, group: u32, router: u32, mut each: impl FnMut(u32, u32)) {
        let Some(global) = self.global else {
            if router < self.blades.min(self.groups) && router != group {
                each(router, group);
            }
            return;
        };
        let room = self.room(global);
        let mut port = first_port(router, global);
        while port < first_port(router + 1, global) {
            let other = (u64::from(group) + port + 1) % room;
            if other < u64::from(self.groups) {
                each(other as u32, ((room - 2 - port) / u64::from(global)) as u32);
                port += 1;
            } else {
                // The next that joins group 0.
                port += room - other;
            }
        }
    }

    /// The router with the global link to another group, and its place among those of this router.
    fn exit(&self, group: u32, other: u32) -> (u32, u32) {
        let Some(global) = self.global else { return (other, 0) };
        let room = self.room(global);
        let port = (u64::from(other) + room - u64::from(group)) % room - 1;
        let router = (port / u64::from(global)) as u32;
        // Ports join consecutive groups, around the room; those before are used if their groups are present.
        let present = |groups: u64| {
            let (turns, rest) = (groups / room, groups % room);
            turns * u64::from(self.groups) + rest.min(self.groups.into())
        };
        let joins = |port: u64| u64::from(group) + port + 1;
        let used = present(joins(port)) - present(joins(first_port(router, global)));
        (router, used as u32)
    }

    /// Room for groups.
    fn room(&self, global: u32) -> u64 {
        u64::from(self.routers()) * u64::from(global) + 1
    }
}

/// The first global port of a router.
fn first_port(router: u32, global: u32) -> u64 {
    u64::from(router) * u64::from(global)
}

impl Routes for Dragonfly {
    fn next(&self, _: &Links, at: u32, _: u32, to: u32) -> usize {
        let Some(router) = at.checked_sub(self.all_nodes()) else { return 0 };
        let (group, chassis, blade) = self.place(router);
        let (its_group, its_chassis, its_blade) = self.place(to / self.nodes);
        // The router to reach within this group, and the port there.
        let local = self.nodes + self.blades - 1;
        let (to_chassis, to_blade, last) = if group == its_group {
            (its_chassis, its_blade, to % self.nodes)
        } else {
            let (exit, place) = self.exit(group, its_group);
            (exit / self.blades, exit % self.blades, local + self.chassis - 1 + place)
        };
        let other = |to: u32, own: u32| to - u32::from(to > own);
        let port = match () {
            () if blade != to_blade => self.nodes + other(to_blade, blade),
            () if chassis != to_chassis => local + other(to_chassis, chassis),
            () => last,
        };
        port as usize
    }

    fn diameter(&self) -> u32 {
        let within = u32::from(self.blades > 1) + u32::from(self.chassis > 1);
        let between_routers = if self.groups > 1 { 2 * within + 1 } else { within };
        if self.all_nodes() > 1 { 2 + between_routers } else { 0 }
    }

    /// Groups are what local links join, and one global link joins two of them.
    fn follow_links(&self) -> bool {
        self.chassis == 1
    }

    fn groups(&self) -> Option<[u32; 3]> {
        Some([self.groups, self.chassis * self.blades, self.nodes])
    }

    fn vertex_name(&self, vertex: u32) -> Option<String> {
        let (group, chassis, blade) = self.place(vertex.checked_sub(self.all_nodes())?);
        Some(match self.global {
            Some(_) => format!("group {group} router {blade}"),
            None => format!("group {group} chassis {chassis} blade {blade}"),
        })
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
