//! Classes of virtual channels for any routes, chosen so that no traffic deadlocks.
//!
//! A grid has datelines, which serve routes in dimension order. On a graph, and on a grid with other routes,
//! every message keeps its route, which is the machine's own or that of its schedule, and the classes are
//! found for these routes. A message takes the first link of its
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

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use topocoll_topology::{LinkId, Machine, Rank, Route, Shape};

use crate::AnalysisError;
use crate::traffic::{Share, Traffic};

/// The classes that the routes of some traffic take.
#[derive(Debug)]
pub struct ChannelClasses {
    /// By link, class there and next link, the class on the next link.
    next: HashMap<(u32, u32, u32), u32>,
    count: u32,
}

impl ChannelClasses {
    /// The classes for the messages of a traffic.
    ///
    /// # Errors
    /// More than `vcs` classes are required.
    pub fn of(traffic: &dyn Traffic, machine: &Machine, vcs: u32) -> Result<Self, AnalysisError> {
        let found = Self::fewest(traffic, machine, vcs);
        match found.count > vcs {
            true => Err(Self::too_many(machine, found.count, vcs)),
            false => Ok(found),
        }
    }

    /// The classes in the order of the traffic, or where these are more than `vcs` the fewer ones.
    pub(crate) fn fewest(traffic: &dyn Traffic, machine: &Machine, vcs: u32) -> Self {
        let mut shares = Vec::new();
        let nodes = || (0..traffic.nodes()).map(Rank);
        let found = Self::decided(
            traffic,
            machine,
            (0..traffic.steps()).flat_map(|step| nodes().map(move |node| (None, step, node))),
            |length, step, node| shares.push((length, step, node)),
        );
        if found.count <= vcs {
            return found;
        }
        shares.sort_unstable();
        shares.dedup();
        let near_first = shares.into_iter().map(|(length, step, node)| (Some(length), step, node));
        let near_first = Self::decided(traffic, machine, near_first, |_, _, _| ());
        if near_first.count < found.count { near_first } else { found }
    }

    pub(crate) fn too_many(machine: &Machine, required: u32, vcs: u32) -> AnalysisError {
        AnalysisError::VirtualChannels { topology: machine.topology.short_form(), required, vcs }
    }

    /// Bytes of the classes, and of finding them, for `messages` over routes of `hops` links in all.
    pub(crate) fn memory(machine: &Machine, vcs: u32, messages: u128, hops: u128) -> u128 {
        /// Of a dependency in a table, and of its ends in an order, twice.
        const DEPENDENCY: u128 = 512;
        const MESSAGE: u128 = size_of::<(u64, u32, Rank)>() as u128;
        let pairs: u128 = match machine.topology.network() {
            Shape::Graph(graph) => {
                let links = (0..graph.vertices()).flat_map(|from| graph.leaving(from));
                links.map(|(_, to)| graph.leaving(to).len() as u128).sum()
            }
            Shape::Grid(grid) => {
                u128::from(machine.topology.links()) * 2 * grid.sides().len() as u128
            }
            Shape::Complete | Shape::Clustered(_) => 0,
        };
        DEPENDENCY * hops.min(pairs * u128::from(vcs)) + MESSAGE * messages
    }

    /// The classes decided in the order of these shares, of the messages over as many links, if that is given.
    /// Calls `has` with the links of every message, and its step and node.
    fn decided(
        traffic: &dyn Traffic,
        machine: &Machine,
        shares: impl Iterator<Item = (Option<u64>, u32, Rank)>,
        mut has: impl FnMut(u64, u32, Rank),
    ) -> Self {
        let mut classes = Self { next: HashMap::new(), count: 1 };
        let (mut order, mut share) = (Order::default(), Share::default());
        for (length, step, node) in shares {
            traffic.share(node, step, &mut share);
            for send in &share.sends {
                let hops = send.route.hops();
                if length.is_some_and(|length| hops != length) {
                    continue;
                }
                has(hops, step, node);
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
        classes
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
    /// By vertex, the last search that reached it.
    seen: Vec<u32>,
    searches: u32,
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
            self.seen.push(0);
        }
        vertex
    }

    /// Adds an edge, unless it closes a cycle. Returns whether it is added.
    fn add(&mut self, from: (u32, u32), to: (u32, u32)) -> bool {
        let [from, to] = [from, to].map(|of| self.vertex(of));
        let [first, last] = [to, from].map(|vertex| self.place[vertex as usize]);
        if first <= last {
            let Some([mut after, mut moved]) = self.between(to, from, first..=last) else {
                return false;
            };
            // All that leads to the edge moves before all that it leads to, within their places.
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

    /// The vertices of some places that edges lead to from `first`, and those that lead to `last`; `None` where an
    /// edge leads from the former to the latter. The fewer ones are followed, so that these are found soon.
    fn between(
        &mut self,
        first: u32,
        last: u32,
        places: std::ops::RangeInclusive<u32>,
    ) -> Option<[Vec<u32>; 2]> {
        let (mut found, mut next) = ([vec![first], vec![last]], [0, 0]);
        self.searches += 2;
        let number = [self.searches - 1, self.searches];
        self.seen[first as usize] = number[0];
        if self.seen[last as usize] == number[0] {
            return None;
        }
        self.seen[last as usize] = number[1];
        loop {
            let open = [0, 1].into_iter().filter(|&side| next[side] < found[side].len());
            let Some(side) = open.min_by_key(|&side| found[side].len()) else { return Some(found) };
            let at = found[side][next[side]] as usize;
            next[side] += 1;
            let edges = if side == 0 { &self.after[at] } else { &self.before[at] };
            for &to in edges.iter().filter(|&&to| places.contains(&self.place[to as usize])) {
                let seen = &mut self.seen[to as usize];
                if *seen == number[1 - side] {
                    return None;
                }
                if std::mem::replace(seen, number[side]) != number[side] {
                    found[side].push(to);
                }
            }
        }
    }
}
