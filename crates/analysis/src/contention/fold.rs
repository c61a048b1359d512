//! The shared channels of one period of a machine.
//!
//! If translations map all traffic onto itself, equivalent channels carry equal traffic at any time.
//! One of them is kept, and a message of a representative takes it as often as its route takes any of
//! its equivalents. Every rank in a class of its own is the machine itself.

use topocoll_schedule::RankClasses;
use topocoll_topology::{Coordinates, Grid, Machine, Rank, Route, Shape, Topology};

use super::channels::Channels;
use super::settings::{Dateline, Settings};
use crate::symmetry;

pub(crate) struct Fold<'a> {
    machine: &'a Machine,
    pub(crate) channels: Channels<'a>,
    ranks: RankClasses,
    nodes: RankClasses,
    /// Equivalent ranks of a node.
    times: u32,
    /// Links that leave a node; 0 where they are not folded.
    per_node: u64,
    /// Of the positions in a period of a grid.
    strides: Vec<u32>,
    links: u64,
}

impl<'a> Fold<'a> {
    /// The classes must be [`common`](symmetry::common) to the traffic and the topology.
    pub(crate) fn new(machine: &'a Machine, settings: &Settings, ranks: &RankClasses) -> Self {
        let topology = &*machine.topology;
        let channels = Channels::new(machine, settings, Dateline::Entry, None);
        let (nodes, times) = symmetry::of_nodes(ranks, topology);
        let per_node = match topology.network() {
            Shape::Grid(grid) => 2 * grid.sides().len() as u64,
            Shape::Graph(graph) if symmetry::folds(&nodes, graph).is_some() => {
                graph.links() / u64::from(graph.vertices())
            }
            Shape::Complete | Shape::Graph(_) | Shape::Clustered(_) => 0,
        };
        let links = match per_node {
            0 => topology.link_numbers(),
            per_node => per_node * u64::from(nodes.count()),
        };
        let mut strides = vec![1; nodes.periods().len()];
        for u in (1..strides.len()).rev() {
            strides[u - 1] = strides[u] * nodes.periods()[u];
        }
        Self { machine, channels, ranks: ranks.clone(), nodes, times, per_node, strides, links }
    }

    /// The number of links kept; they are numbered first.
    pub(crate) fn links(&self) -> usize {
        self.links as usize
    }

    /// The number of channels kept.
    pub(crate) fn count(&self) -> u64 {
        let [rank, node] = self.channels.limits().map(u64::from);
        let classes = [&self.ranks, &self.nodes].map(|classes| u64::from(classes.count()));
        self.links + 2 * (rank * classes[0] + node * classes[1])
    }

    /// How often a message of a representative takes each link of its route.
    pub(crate) fn times(&self) -> u64 {
        self.times.into()
    }

    /// The links that a kept link stands for.
    pub(crate) fn equivalent(&self) -> u64 {
        match self.per_node {
            0 => 1,
            _ => u64::from(self.machine.topology.nodes() / self.nodes.count()),
        }
    }

    /// The channel of the machine that stands for its equivalents.
    pub(crate) fn representative(&self, kept: u32) -> u64 {
        let kept = u64::from(kept);
        let all = u64::from(self.machine.ranks());
        match (kept.checked_sub(self.links), self.per_node) {
            (None, 0) => kept,
            (None, per_node) => {
                let node = self.nodes.representative((kept / per_node) as u32);
                u64::from(node.0) * per_node + kept % per_node
            }
            (Some(mut limit), _) => {
                let ([rank, _], links) =
                    (self.channels.limits(), self.machine.topology.link_numbers());
                let ranks = 2 * u64::from(self.ranks.count());
                let (mut first, mut classes) = (links, &self.ranks);
                if !rank || limit >= ranks {
                    first += if rank { 2 * all } else { 0 };
                    limit -= if rank { ranks } else { 0 };
                    classes = &self.nodes;
                }
                let count = u64::from(classes.count());
                let of = classes.representative((limit % count) as u32);
                first + limit / count * all + u64::from(of.0)
            }
        }
    }

    /// The channel of the machine that a translation of ranks moves a channel to.
    pub(crate) fn moved(&self, shared: u64, moves: &dyn Fn(Rank) -> Rank) -> u64 {
        let topology = &*self.machine.topology;
        let all = u64::from(self.machine.ranks());
        let size = all / u64::from(topology.nodes());
        let node = |node: u64| {
            let to = moves(Rank((node * size) as u32));
            u64::from(topology.node_of(to))
        };
        let (links, [by_rank, _]) = (topology.link_numbers(), self.channels.limits());
        match (shared.checked_sub(links), self.per_node) {
            (None, 0) => shared,
            (None, per_node) => node(shared / per_node) * per_node + shared % per_node,
            (Some(limit), _) if by_rank && limit < 2 * all => {
                let rank = moves(Rank((limit % all) as u32));
                links + limit / all * all + u64::from(rank.0)
            }
            (Some(limit), _) => links + limit / all * all + node(limit % all),
        }
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
        let [sender, receiver] = [from, to].map(|end| Rank(topology.node_of(end)));
        let outside = self.channels.leaves(sender.0, receiver.0);
        self.limits((from, sender), 0, outside, &mut visit);
        if outside {
            match topology.network() {
                Shape::Grid(grid) => self.along_grid(grid, sender, route, &mut visit),
                _ => topology.for_each_link(from, route, &mut |link| {
                    let kept = match self.per_node {
                        0 => link.0,
                        per_node => {
                            let class = self.nodes.class_of(Rank((link.0 / per_node) as u32));
                            u64::from(class) * per_node + link.0 % per_node
                        }
                    };
                    visit(kept as u32, self.times, link.0);
                }),
            }
        }
        self.limits((to, receiver), 1, outside, &mut visit);
    }

    /// The injection channels of a rank and its node (`end` = 0), or the ejection channels.
    fn limits(
        &self,
        (rank, node): (Rank, Rank),
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
            let class = u64::from(self.nodes.class_of(node));
            let shared = shared + end * all + u64::from(node.0);
            visit((kept + end * count + class) as u32, self.times, shared);
        }
    }

    fn along_grid(
        &self,
        grid: &Grid,
        node: Rank,
        route: &Route,
        visit: &mut impl FnMut(u32, u32, u64),
    ) {
        let (radix, periods) = (grid.radix(), self.nodes.periods());
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
                let times = self.times * (rounds as u32 + u32::from(i < rest));
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
