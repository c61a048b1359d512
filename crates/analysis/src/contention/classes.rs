//! Classes of virtual channels on graphs, chosen so that no traffic deadlocks.
//!
//! A grid has datelines. On a graph every message keeps its route, which is the machine's own or that of
//! its schedule, and the classes are found for these routes. A message takes the first link of its
//! route in class 0. From then on a table gives the class of the next link: by the link that it comes
//! from, the class there, and the link that it goes to. The table is filled route by route, in the order
//! of steps, senders and messages. A new entry gets the lowest class whose dependency closes no cycle
//! among the dependencies of all entries; a class without any dependency is added where none is left. If
//! these are more than a link has, the table is filled again, with the shortest routes first.
//!
//! # Why it does not deadlock
//! A dependency leads from each link and class to the one that a message takes next. Their graph has no
//! cycle, so it gives an order of all links and classes, and every message takes them in ascending order
//! (Dally and Seitz 1987). A message that waits for another one waits for a higher one, and the holder of
//! the highest waits for none.
//!
//! # Why not others
//! - Routes by up*/down* (Schroeder et al. 1991, Autonet) need one class. They are longer, their load
//!   gathers at the root of the tree, and a schedule's own routes are not among them.
//! - One class for the whole route (LASH: Skeie et al. 2002; DFSSSP: Domke et al. 2011) keeps routes too. But a
//!   torus can require more classes then, as no route changes its class at the datelines of its dimensions.
//! - Here a router chooses the class by input, class and output, as switches of `InfiniBand` do (their table
//!   from service level to virtual lane). Torus-2QoS crosses datelines by the same means.
//!
//! `tests/contention/classes_of_channels.rs` builds the graph of dependencies again and looks for cycles.

use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};
use topocoll_topology::{LinkId, Machine, Rank, Route, Shape};

use super::traffic::{Share, Traffic};
use crate::AnalysisError;

/// The classes that the routes of some traffic take on a graph.
#[derive(Debug)]
pub struct ChannelClasses {
    /// By link, class there and next link, the class on the next link.
    next: HashMap<(u32, u32, u32), u32>,
    count: u32,
}

impl ChannelClasses {
    /// The classes for the messages of a traffic; `None` of a machine without a graph between its nodes.
    ///
    /// # Errors
    /// More than `vcs` classes are required.
    pub fn of(
        traffic: &dyn Traffic,
        machine: &Machine,
        vcs: u32,
    ) -> Result<Option<Self>, AnalysisError> {
        if !matches!(machine.topology.network(), Shape::Graph(_)) {
            return Ok(None);
        }
        let (mut found, longest) = Self::decided(traffic, machine, None);
        if found.count > vcs {
            let (near_first, _) = Self::decided(traffic, machine, Some(longest));
            found = if near_first.count < found.count { near_first } else { found };
        }
        match found.count > vcs {
            true => Err(AnalysisError::VirtualChannels {
                topology: machine.topology.short_form(),
                required: found.count,
                vcs,
            }),
            false => Ok(Some(found)),
        }
    }

    /// Bytes of the classes, and of finding them, for routes of `hops` links in all.
    pub(crate) fn memory(machine: &Machine, vcs: u32, hops: u128) -> u128 {
        /// Of a dependency in a table, and of its ends in an order, twice.
        const DEPENDENCY: u128 = 512;
        let Shape::Graph(graph) = machine.topology.network() else { return 0 };
        let links = (0..graph.vertices()).flat_map(|from| graph.leaving(from));
        let pairs: u128 = links.map(|(_, to)| graph.leaving(to).count() as u128).sum();
        DEPENDENCY * hops.min(pairs * u128::from(vcs))
    }

    /// The classes decided in the order of the traffic, or with the shortest routes first if the links of
    /// the longest are given. Also returns the links of the longest route.
    fn decided(traffic: &dyn Traffic, machine: &Machine, longest: Option<u64>) -> (Self, u64) {
        let mut classes = Self { next: HashMap::new(), count: 1 };
        let mut order = Order::default();
        let (mut share, mut most) = (Share::default(), 0);
        for length in longest.map_or(0..=0, |longest| 1..=longest) {
            for step in 0..traffic.steps() {
                for node in (0..traffic.nodes()).map(Rank) {
                    traffic.share(node, step, &mut share);
                    for send in &share.sends {
                        let hops = send.route.hops();
                        most = most.max(hops);
                        if longest.is_some() && hops != length {
                            continue;
                        }
                        let mut last = None;
                        machine.topology.for_each_link(node, &send.route, &mut |LinkId(link)| {
                            let link = link as u32;
                            let class = last.map_or(0, |(before, class)| {
                                classes.decide((before, class, link), &mut order)
                            });
                            last = Some((link, class));
                        });
                    }
                }
            }
        }
        (classes, most)
    }

    /// The class of a next link, which is decided here if it is new.
    fn decide(&mut self, key: (u32, u32, u32), order: &mut Order) -> u32 {
        let (before, class, link) = key;
        let Entry::Vacant(entry) = self.next.entry(key) else { return self.next[&key] };
        // No dependency leads from a class that is added here.
        let mut classes = 0..=self.count;
        let next = classes.find(|&next| order.add((before, class), (link, next)));
        let next = next.expect("bug: a class without dependencies closes a cycle");
        self.count = self.count.max(next + 1);
        *entry.insert(next)
    }

    /// The number of classes.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Calls `visit` with each link of a route of the traffic, and its class.
    pub fn along(
        &self,
        machine: &Machine,
        from: Rank,
        route: &Route,
        mut visit: impl FnMut(LinkId, u32),
    ) {
        let mut last = None;
        machine.topology.for_each_link(from, route, &mut |link| {
            let number = link.0 as u32;
            let class = last.map_or(0, |(before, class)| self.next[&(before, class, number)]);
            last = Some((number, class));
            visit(link, class);
        });
    }
}

/// A graph without cycles of links and classes, and an order of these that agrees with it (Pearce and
/// Kelly 2006).
#[derive(Default)]
struct Order {
    vertices: HashMap<(u32, u32), u32>,
    after: Vec<Vec<u32>>,
    before: Vec<Vec<u32>>,
    /// By vertex, its place in the order.
    place: Vec<u32>,
}

impl Order {
    /// The vertex of a link and class; a new one is the last in the order.
    fn vertex(&mut self, of: (u32, u32)) -> u32 {
        let next = self.place.len() as u32;
        let vertex = *self.vertices.entry(of).or_insert(next);
        if vertex == next {
            self.after.push(Vec::new());
            self.before.push(Vec::new());
            self.place.push(next);
        }
        vertex
    }

    /// Adds an edge, unless it closes a cycle. Returns whether it is added.
    fn add(&mut self, from: (u32, u32), to: (u32, u32)) -> bool {
        let [from, to] = [from, to].map(|of| self.vertex(of));
        let [first, last] = [to, from].map(|vertex| self.place[vertex as usize]);
        if first <= last {
            let mut after = self.reached(to, &self.after, |place| place <= last);
            if after.contains(&from) {
                return false;
            }
            // All that leads to the edge moves before all that it leads to, within their places.
            let mut moved = self.reached(from, &self.before, |place| place >= first);
            let by_place = |&vertex: &u32| self.place[vertex as usize];
            moved.sort_unstable_by_key(by_place);
            after.sort_unstable_by_key(by_place);
            moved.append(&mut after);
            let mut places: Vec<u32> = moved.iter().map(by_place).collect();
            places.sort_unstable();
            for (vertex, place) in moved.into_iter().zip(places) {
                self.place[vertex as usize] = place;
            }
        }
        self.after[from as usize].push(to);
        self.before[to as usize].push(from);
        true
    }

    /// The vertices that edges lead to, within some places.
    fn reached(&self, from: u32, edges: &[Vec<u32>], within: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut found = vec![from];
        let mut seen = HashSet::<u32>::from_iter([from]);
        let mut next = 0;
        while let Some(&at) = found.get(next) {
            next += 1;
            for &to in &edges[at as usize] {
                if within(self.place[to as usize]) && seen.insert(to) {
                    found.push(to);
                }
            }
        }
        found
    }
}
