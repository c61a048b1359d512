//! The shared channels of one period of a machine.
//!
//! If translations map all traffic onto itself, equivalent channels carry equal traffic at any time.
//! One of them is kept, and a message of a representative takes it as often as its route takes any of
//! its equivalents. Every rank in a class of its own is the machine itself.
//!
//! # Why it is exact
//! Translations of ranks form a group G, which takes channels to channels of their pace, and messages to
//! messages of their bytes over the images of their channels. It leaves no rank in its place, so a message of
//! a representative has |G| equivalents. A channel that s translations leave in its place has |G| / s.
//! Suppose that equivalent messages have been posted at equal times.
//! - The rates of progressive filling are a function of the capacities, and of the channels of each flow,
//!   whatever they are called. So a translation, which renames both, leaves all rates as they are: equivalent
//!   flows have equal rates.
//! - For each channel on the route of a representative's message, the |G| equivalents of the message take an
//!   equivalent of the channel: each of the |G| / s channels s times. So a kept channel that counts the message
//!   s times has the flows of the machine's channel, and the same levels.
//! - So equivalent messages are delivered at equal times, and equivalent ranks go on at equal times. By
//!   induction over the deliveries this holds for the whole run.
//!
//! Rounded rates and whole picoseconds are functions of the same numbers, so no bit differs. On a grid and on a
//! graph with a numbering for its translations, the orbits of links are those of ports. On other graphs they
//! are those of translations that are [proved](topocoll_topology::Graph::is_kept_by) to keep links and routes.

use topocoll_schedule::RankClasses;
use topocoll_topology::{
    Coordinates, Grid, LinkId, Machine, Rank, Route, Shape, Topology, Translation,
};

use super::channels::Channels;
use super::settings::{Dateline, Settings};
use crate::symmetry::{Equivalent, NodeClasses, folds};

pub(crate) struct Fold<'a> {
    machine: &'a Machine,
    pub(crate) channels: Channels<'a>,
    ranks: RankClasses,
    nodes: NodeClasses,
    /// Links that leave a node, by whose port they are folded; 0 elsewhere.
    per_node: u64,
    /// Of the positions in a period of a grid.
    strides: Vec<u32>,
    links: u64,
}

impl<'a> Fold<'a> {
    pub(crate) fn new(machine: &'a Machine, settings: &Settings, ranks: &Equivalent) -> Self {
        let topology = &*machine.topology;
        let channels = Channels::new(machine, settings, Dateline::Entry, None);
        let nodes = NodeClasses::new(ranks, topology);
        let mut strides = Vec::new();
        let per_node = match (topology.network(), &nodes) {
            (Shape::Grid(grid), NodeClasses::Translations(classes, _)) => {
                strides = vec![1; classes.periods().len()];
                for u in (1..strides.len()).rev() {
                    strides[u - 1] = strides[u] * classes.periods()[u];
                }
                2 * grid.sides().len() as u64
            }
            (Shape::Graph(graph), NodeClasses::Translations(classes, _))
                if folds(classes, graph).is_some() =>
            {
                graph.links() / u64::from(graph.vertices())
            }
            _ => 0,
        };
        let links = match &nodes {
            NodeClasses::Orbits(orbits, _) => orbits.links.classes.len() as u64,
            _ if per_node == 0 => topology.link_numbers(),
            _ => per_node * u64::from(nodes.count()),
        };
        Self { machine, channels, ranks: ranks.classes.clone(), nodes, per_node, strides, links }
    }

    /// The number of links kept; they are numbered first.
    pub(crate) fn links(&self) -> usize {
        self.links as usize
    }

    /// The number of channels kept.
    pub(crate) fn count(&self) -> u64 {
        let [rank, node] = self.channels.limits().map(u64::from);
        let classes = [self.ranks.count(), self.nodes.count()].map(u64::from);
        self.links + 2 * (rank * classes[0] + node * classes[1])
    }

    /// How often messages equivalent to one take each link that a kept link stands for, for each of them on
    /// its route.
    pub(crate) fn times(&self, kept: u32) -> u32 {
        match &self.nodes {
            NodeClasses::Translations(_, times) => *times,
            NodeClasses::Orbits(orbits, all) => all / orbits.links.classes[kept as usize].1,
        }
    }

    /// The links that a kept link stands for.
    pub(crate) fn equivalent(&self, kept: u32) -> u64 {
        match &self.nodes {
            NodeClasses::Orbits(orbits, _) => orbits.links.classes[kept as usize].1.into(),
            NodeClasses::Translations(..) if self.per_node == 0 => 1,
            NodeClasses::Translations(..) => {
                u64::from(self.machine.topology.nodes() / self.nodes.count())
            }
        }
    }

    /// The channel of the machine that stands for its equivalents.
    pub(crate) fn representative(&self, kept: u32) -> u64 {
        let number = u64::from(kept);
        let Some(mut limit) = number.checked_sub(self.links) else {
            return match (&self.nodes, self.per_node) {
                (NodeClasses::Orbits(orbits, _), _) => orbits.links.classes[kept as usize].0.into(),
                (_, 0) => number,
                (nodes, per_node) => {
                    let node = nodes.representative((number / per_node) as u32);
                    u64::from(node) * per_node + number % per_node
                }
            };
        };
        let all = u64::from(self.machine.ranks());
        let (by_rank, first) = (self.channels.limits()[0], self.machine.topology.link_numbers());
        let [ranks, nodes] = [self.ranks.count(), self.nodes.count()].map(u64::from);
        if by_rank && limit < 2 * ranks {
            let rank = self.ranks.representative((limit % ranks) as u32);
            return first + limit / ranks * all + u64::from(rank.0);
        }
        limit -= if by_rank { 2 * ranks } else { 0 };
        let node = self.nodes.representative((limit % nodes) as u32);
        let first = first + if by_rank { 2 * all } else { 0 };
        first + limit / nodes * all + u64::from(node)
    }

    /// The channel of the machine that a translation of ranks moves a channel to.
    pub(crate) fn moved(&self, shared: u64, moves: &dyn Fn(Rank) -> Rank) -> u64 {
        let topology = &*self.machine.topology;
        let all = u64::from(self.machine.ranks());
        let node = |node: u64| {
            let first = match topology.shape() {
                Shape::Clustered(clusters) => clusters.first_rank(node as u32),
                _ => Rank(node as u32),
            };
            u64::from(topology.node_of(moves(first)))
        };
        let (links, [by_rank, _]) = (topology.link_numbers(), self.channels.limits());
        match (shared.checked_sub(links), &self.nodes, self.per_node) {
            (None, NodeClasses::Orbits(..), _) => self.moved_link(shared, moves(Rank(0))),
            (None, _, 0) => shared,
            (None, _, per_node) => node(shared / per_node) * per_node + shared % per_node,
            (Some(limit), ..) if by_rank && limit < 2 * all => {
                let rank = moves(Rank((limit % all) as u32));
                links + limit / all * all + u64::from(rank.0)
            }
            (Some(limit), ..) => links + limit / all * all + node(limit % all),
        }
    }

    /// The link to which the translation that takes rank 0 to another rank moves a link.
    fn moved_link(&self, link: u64, to: Rank) -> u64 {
        let topology = &*self.machine.topology;
        let Shape::Graph(graph) = topology.network() else { return link };
        let (radix, size) = (self.ranks.radix(), topology.ranks() / topology.nodes());
        self.ranks.periods().iter().enumerate().fold(link, |link, (u, &by)| {
            let translation = Translation { stride: radix.stride(u), side: radix.sides()[u], by };
            let times = radix.coordinate(to, u) / by;
            graph.moved(LinkId(link), translation, size, times).0
        })
    }

    /// Calls `visit` with the kept channels of a message, in order: each with the number of times that
    /// the message takes one of its equivalents, and the first of these by its number on the machine.
    pub(crate) fn along(
        &self,
        from: Rank,
        to: Rank,
        route: &Route,
        mut visit: impl FnMut(u32, u32, u64),
    ) {
        let topology = &*self.machine.topology;
        let [sender, receiver] = [from, to].map(|end| topology.node_of(end));
        let outside = self.channels.leaves(sender, receiver);
        self.limits((from, sender), 0, outside, &mut visit);
        if outside {
            match (topology.network(), &self.nodes) {
                (Shape::Grid(grid), NodeClasses::Translations(nodes, times)) => {
                    self.along_grid((grid, nodes, *times), Rank(sender), route, &mut visit);
                }
                (_, nodes) => topology.for_each_link(from, route, &mut |link| {
                    let kept = match (nodes, self.per_node) {
                        (NodeClasses::Orbits(orbits, _), _) => {
                            orbits.links.of[link.0 as usize].into()
                        }
                        (_, 0) => link.0,
                        (_, per_node) => {
                            let (class, _) = nodes.of((link.0 / per_node) as u32);
                            class as u64 * per_node + link.0 % per_node
                        }
                    };
                    visit(kept as u32, self.times(kept as u32), link.0);
                }),
            }
        }
        self.limits((to, receiver), 1, outside, &mut visit);
    }

    /// The injection channels of a rank and its node (`end` = 0), or the ejection channels.
    fn limits(
        &self,
        (rank, node): (Rank, u32),
        end: u64,
        outside: bool,
        visit: &mut impl FnMut(u32, u32, u64),
    ) {
        let [by_rank, by_node] = self.channels.limits();
        let all = u64::from(self.machine.ranks());
        let (mut kept, mut shared) = (self.links, self.machine.topology.link_numbers());
        if by_rank {
            let count = u64::from(self.ranks.count());
            let class = u64::from(self.ranks.class_of(rank));
            visit((kept + end * count + class) as u32, 1, shared + end * all + u64::from(rank.0));
            (kept, shared) = (kept + 2 * count, shared + 2 * all);
        }
        if by_node && outside {
            let count = u64::from(self.nodes.count());
            let (class, times) = self.nodes.of(node);
            let shared = shared + end * all + u64::from(node);
            visit((kept + end * count + class as u64) as u32, times, shared);
        }
    }

    fn along_grid(
        &self,
        (grid, nodes, equivalent): (&Grid, &RankClasses, u32),
        node: Rank,
        route: &Route,
        visit: &mut impl FnMut(u32, u32, u64),
    ) {
        let (radix, periods) = (grid.radix(), nodes.periods());
        let mut at: Coordinates = radix.coordinates(node);
        for segment in route.segments() {
            let u = segment.dimension as usize;
            let (side, period) = (grid.sides()[u], periods[u]);
            let (down, hops) = (segment.hops < 0, segment.hops.unsigned_abs());
            let (rounds, rest) = (hops / u64::from(period), hops % u64::from(period));
            let (mut class, mut other) = (0, 0);
            for v in (0..at.len()).filter(|&v| v != u) {
                class += at[v] % periods[v] * self.strides[v];
                other += at[v] * radix.stride(v);
            }
            let (mut position, mut kept) = (at[u], at[u] % period);
            for i in 0..hops.min(period.into()) {
                let link =
                    |node: u32| u64::from(node) * self.per_node + 2 * u as u64 + u64::from(down);
                let times = equivalent * (rounds as u32 + u32::from(i < rest));
                let shared = link(other + position * radix.stride(u));
                visit(link(class + kept * self.strides[u]) as u32, times, shared);
                let next = |at: u32, of: u32| match down {
                    true => {
                        if at == 0 {
                            of - 1
                        } else {
                            at - 1
                        }
                    }
                    false => {
                        if at + 1 == of {
                            0
                        } else {
                            at + 1
                        }
                    }
                };
                (position, kept) = (next(position, side), next(kept, period));
            }
            at[u] = (i64::from(at[u]) + segment.hops).rem_euclid(side.into()) as u32;
        }
    }
}
