//! The channels of a machine: virtual channels of its links, and the ports of its ranks.
//!
//! A message moves at the pace of its slowest channel, and messages share the rate of a channel:
//! that of each link, and where injection is limited also the injection and ejection channels of
//! each rank and node. Shared channels are numbered links first.
//!
//! Virtual channels that serve the same messages form one pool, and the pools of a link are its classes.
//! On a side of a grid that wraps a link has two, before and after the dateline, which is the link from
//! the last position to the first. Other links of grids have one. On a graph, and on a grid for routes that are
//! not in dimension order, a link has the [`ChannelClasses`] of the traffic.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use topocoll_topology::{Grid, LinkId, Machine, Rank, Route, Segment, Shape};

use super::classes::ChannelClasses;
use super::kinds::Kinds;
use super::paces::Paces;
use super::settings::{Dateline, Settings};

/// The pools and their sizes.
pub(crate) struct Channels<'a> {
    machine: &'a Machine,
    /// A grid with datelines.
    grid: Option<&'a Grid>,
    dateline: Dateline,
    /// Without datelines; without these too all messages take class 0.
    classes: Option<Arc<ChannelClasses>>,
    /// The first virtual channel and the size of each class of a link, where a link has several classes, and
    /// where it has one.
    several: SmallVec<[(u32, u32); 4]>,
    single: SmallVec<[(u32, u32); 4]>,
    /// Numbers of links; from `l << shift` on are the pools of link l.
    links: u64,
    shift: u32,
    kinds: Kinds<'a>,
    paces: Paces,
}

/// The size of the pool for messages that stay on their node, which is never full.
const ROOM: u64 = u32::MAX as u64;

impl<'a> Channels<'a> {
    pub(crate) fn new(
        machine: &'a Machine,
        settings: &Settings,
        dateline: Dateline,
        classes: Option<Arc<ChannelClasses>>,
    ) -> Self {
        let grid = match machine.topology.network() {
            Shape::Grid(grid) if classes.is_none() => Some(grid),
            _ => None,
        };
        let vcs = settings.vcs;
        // The most classes: no division finds the link of a pool.
        let shift = match &classes {
            Some(_) => vcs.next_power_of_two().trailing_zeros(),
            None => 1,
        };
        let split = |count: u32| {
            let size = |class: u32| match class < count {
                true => vcs / count + u32::from(class < vcs % count),
                false => 0,
            };
            let sizes = (0..1 << shift).map(size).scan(0, |first, size| {
                let of = (*first, size);
                *first += size;
                Some(of)
            });
            sizes.collect()
        };
        let count = classes.as_ref().map_or(2, |classes| classes.count());
        let links = machine.topology.link_numbers();
        let kinds = Kinds::new(machine);
        let paces = Paces::new(&kinds);
        Self {
            machine,
            grid,
            dateline,
            classes,
            several: split(count.min(vcs)),
            single: split(1),
            links,
            shift,
            kinds,
            paces,
        }
    }

    /// The number of pools of links; those of ports follow.
    fn link_pools(&self) -> u64 {
        self.links << self.shift
    }

    /// The link of a pool, if it is not that of a port.
    #[inline]
    pub(crate) fn link_of(&self, pool: u64) -> Option<u32> {
        (pool < self.link_pools()).then_some((pool >> self.shift) as u32)
    }

    /// The pools of a link: the first virtual channel and the size of each.
    #[inline]
    fn split(&self, link: LinkId) -> &[(u32, u32)] {
        let several = match self.grid {
            Some(grid) => grid.wrap()[self.kinds.of(link)],
            None => self.classes.is_some(),
        };
        if several { &self.several } else { &self.single }
    }

    /// The number of shared channels.
    pub(crate) fn shared(&self) -> u64 {
        let limits = u64::from(self.paces.rank > 0) + u64::from(self.paces.node > 0);
        self.links + 2 * limits * u64::from(self.machine.ranks())
    }

    /// Whether there are injection channels of ranks, and of nodes.
    pub(crate) fn limits(&self) -> [bool; 2] {
        [self.paces.rank > 0, self.paces.node > 0]
    }

    /// Whether a message between two nodes takes ports and links.
    pub(crate) fn leaves(&self, sender: u32, receiver: u32) -> bool {
        let clustered = matches!(self.machine.topology.shape(), Shape::Clustered(_));
        sender != receiver || !(clustered || self.links == 0)
    }

    /// The pace of a shared channel.
    pub(crate) fn pace(&self, shared: u32) -> u64 {
        match u64::from(shared) {
            link if link < self.links => match self.paces.of_links() {
                Some(pace) => pace,
                None => self.paces.link(self.kinds.of(LinkId(link))),
            },
            limit if self.paces.rank > 0 && limit < self.links + self.per_limit() => {
                self.paces.rank
            }
            _ => self.paces.node,
        }
    }

    /// The kind of a link.
    pub(crate) fn kind(&self, link: LinkId) -> usize {
        self.kinds.of(link)
    }

    /// The paces of the slowest and the fastest channel.
    pub(crate) fn extremes(&self) -> [u64; 2] {
        [self.paces.slowest, self.paces.fastest]
    }

    /// Calls `visit` with the kinds of the links of a route, each with a number of links.
    pub(crate) fn along_kinds(&self, from: Rank, route: &Route, visit: impl FnMut(usize, u64)) {
        self.kinds.along(from, route, visit);
    }

    /// The pace of a message: that of the slowest channel it takes; and its seconds of a byte.
    pub(crate) fn message_pace(&self, from: Rank, to: Rank, route: &Route) -> (u64, f64) {
        let seconds = self.kinds.per_byte(from, to, route);
        (self.paces.of(seconds), seconds)
    }

    /// Shared channels that limit ranks, or nodes.
    fn per_limit(&self) -> u64 {
        2 * u64::from(self.machine.ranks())
    }

    /// The shared channels that a message uses while it holds a channel of `pool`.
    pub(crate) fn shares(&self, pool: u64, from: Rank, to: Rank) -> SmallVec<[u32; 4]> {
        if let Some(link) = self.link_of(pool) {
            return smallvec![link];
        }
        let ranks = u64::from(self.machine.ranks());
        let (of_ranks, port) = (self.links, pool - self.link_pools());
        let of_nodes = of_ranks + if self.paces.rank > 0 { self.per_limit() } else { 0 };
        let mut shares = SmallVec::new();
        if self.paces.rank > 0 {
            let [sends, receives] = [port < ranks || port == 2 * ranks, port >= ranks];
            shares.extend(sends.then_some((of_ranks + u64::from(from.0)) as u32));
            shares.extend(receives.then_some((of_ranks + ranks + u64::from(to.0)) as u32));
        }
        if self.paces.node > 0 && port < 2 * ranks {
            shares.push((of_nodes + port) as u32);
        }
        shares
    }

    pub(crate) fn links(&self) -> usize {
        self.links as usize
    }

    /// Number of pools: of links, of senders' and of receivers' ports, and one for all others.
    pub(crate) fn pools(&self) -> u64 {
        self.link_pools() + 2 * u64::from(self.machine.ranks()) + 1
    }

    /// Channels in a pool.
    #[inline]
    pub(crate) fn size(&self, pool: u64) -> u32 {
        match self.link_of(pool) {
            Some(link) => self.split(LinkId(link.into()))[self.class(pool)].1,
            None if pool == self.pools() - 1 => ROOM as u32,
            None => self.machine.ports.node,
        }
    }

    fn class(&self, pool: u64) -> usize {
        (pool & ((1 << self.shift) - 1)) as usize
    }

    /// The first virtual channel of a pool on its link.
    #[inline]
    pub(crate) fn first(&self, pool: u64) -> u32 {
        self.split(LinkId(pool >> self.shift))[self.class(pool)].0
    }

    /// Calls `visit` with the pools that a message takes, in order, each with the kind of its link.
    pub(crate) fn along(
        &self,
        from: Rank,
        to: Rank,
        route: &Route,
        mut visit: impl FnMut(u64, u32),
    ) {
        let ports = self.link_pools();
        let ranks = u64::from(self.machine.ranks());
        let topology = &self.machine.topology;
        let (sender, receiver) = (topology.node_of(from), topology.node_of(to));
        if !self.leaves(sender, receiver) {
            return visit(self.pools() - 1, 0);
        }
        visit(ports + u64::from(sender), 0);
        if let Some(grid) = self.grid {
            self.along_grid(grid, sender, route, &mut visit);
        } else {
            let mut with = |link: LinkId, class: u32| {
                visit((link.0 << self.shift) + u64::from(class), self.kinds.of(link) as u32);
            };
            match &self.classes {
                Some(classes) => classes.along(self.machine, from, route, with),
                None => topology.for_each_link(from, route, &mut |link| with(link, 0)),
            }
        }
        visit(ports + ranks + u64::from(receiver), 0);
    }

    /// Calls `visit` with the pools of the links of a route from a node of a grid, in order, each
    /// with the kind of its link.
    pub(crate) fn along_grid(
        &self,
        grid: &Grid,
        node: u32,
        route: &Route,
        visit: &mut impl FnMut(u64, u32),
    ) {
        let mut at = Rank(node);
        for segment in route.segments() {
            self.along_segment(grid, at, segment, visit);
            at = grid.radix().shifted(at, segment.dimension as usize, segment.hops);
        }
    }

    fn along_segment(
        &self,
        grid: &Grid,
        from: Rank,
        segment: &Segment,
        visit: &mut impl FnMut(u64, u32),
    ) {
        let u = segment.dimension as usize;
        let (side, wraps) = (i64::from(grid.sides()[u]), grid.wrap()[u]);
        let (hops, direction) = (segment.hops.abs(), segment.hops.signum());
        let position = i64::from(grid.radix().coordinate(from, u));
        // The number of links up to the dateline, including it.
        let to_dateline = if direction > 0 { side - position } else { position + 1 };
        let crosses = wraps && hops >= to_dateline;
        let two = wraps && self.several[1].1 > 0;
        let stride = i64::from(grid.radix().stride(u)) * direction;
        let around = stride * side;
        let per_rank = 2 * grid.sides().len() as i64;
        let mut rank = i64::from(from.0);
        for hop in 0..hops {
            let link = rank * per_rank + 2 * u as i64 + i64::from(direction < 0);
            let second = match self.dateline {
                Dateline::Entry => !crosses,
                Dateline::Crossing => hop >= to_dateline,
            };
            visit(2 * link as u64 + u64::from(two && second), segment.dimension);
            rank += stride;
            if hop + 1 == to_dateline {
                rank -= around;
            }
        }
    }

    /// The name of a shared channel for reports.
    pub(crate) fn shared_name(&self, shared: u64) -> String {
        let Some(limit) = shared.checked_sub(self.links) else {
            return self.machine.topology.link_name(LinkId(shared));
        };
        let ranks = u64::from(self.machine.ranks());
        let of = if self.paces.rank > 0 && limit < self.per_limit() { "rank" } else { "node" };
        let direction = if limit / ranks % 2 == 0 { "injection" } else { "ejection" };
        format!("the {direction} of {of} {}", limit % ranks)
    }

    /// The name of a pool for reports.
    pub(crate) fn name(&self, pool: u64) -> String {
        let ranks = u64::from(self.machine.ranks());
        match pool.checked_sub(self.link_pools()) {
            None => {
                let link = LinkId(pool >> self.shift);
                let several = self.split(link).iter().filter(|(_, size)| *size > 0).count() > 1;
                let class = match several {
                    true => format!(" class {}", self.class(pool)),
                    false => String::new(),
                };
                format!("{}{class}", self.machine.topology.link_name(link))
            }
            Some(port) if port < ranks => format!("a sending port of {port}"),
            Some(port) => format!("a receiving port of {}", port - ranks),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn machine(wrap: [bool; 2]) -> Machine {
        let mut machine = Machine::of(Arc::new(Grid::new(&[4, 3], &wrap).unwrap()));
        machine.set_ports(5);
        machine
    }

    fn channels(machine: &Machine, vcs: u32) -> Channels<'_> {
        let settings = Settings { vcs, ..Settings::default() };
        Channels::new(machine, &settings, Dateline::Crossing, None)
    }

    /// Four links of each of twelve ranks, two pools each; a port out, a port in, and one for the rest.
    #[test]
    fn links_share_their_channels_among_two_pools_where_they_wrap() {
        for (wrap, vcs, sizes) in
            [(true, 3, [2, 1]), (true, 4, [2, 2]), (true, 1, [1, 0]), (false, 3, [3, 0])]
        {
            let machine = machine([wrap; 2]);
            let channels = channels(&machine, vcs);
            assert_eq!((channels.links(), channels.pools()), (48, 96 + 24 + 1));
            for link in 0..48 {
                assert_eq!([2 * link, 2 * link + 1].map(|pool| channels.size(pool)), sizes);
                let first = [2 * link, 2 * link + 1].map(|pool| channels.first(pool));
                assert_eq!(first, [0, sizes[0]]);
                assert_eq!(channels.kinds.of(LinkId(link)), (link as usize / 2) % 2);
            }
            assert!((96..120).all(|pool| channels.size(pool) == 5));
            assert_eq!(u64::from(channels.size(120)), ROOM);
        }
    }

    #[test]
    fn only_sides_that_wrap_have_two_pools_a_link() {
        let mixed = machine([true, false]);
        let channels = channels(&mixed, 3);
        for link in 0..48 {
            let sizes = if channels.kinds.of(LinkId(link)) == 0 { [2, 1] } else { [3, 0] };
            assert_eq!([2 * link, 2 * link + 1].map(|pool| channels.size(pool)), sizes, "{link}");
        }
    }

    /// The shared channels of a message within a node and of one between nodes.
    #[test]
    fn ranks_and_nodes_share_their_injection() {
        let clusters = topocoll_topology::Clusters::new(&[(1, 2), (1, 3)]).unwrap();
        let mut machine = Machine::of(Arc::new(clusters));
        let shares = |machine: &Machine, from, to| {
            let channels = channels(machine, 1);
            let mut all = Vec::new();
            channels.along(Rank(from), Rank(to), &Route::default(), |pool, _| {
                all.extend(channels.shares(pool, Rank(from), Rank(to)));
            });
            let names: Vec<_> =
                all.iter().map(|&shared| channels.shared_name(shared.into())).collect();
            assert!(all.iter().all(|&shared| u64::from(shared) < channels.shared()));
            names.join(", ")
        };
        assert_eq!(shares(&machine, 0, 4), "");
        machine.timing.injection.node = 1e-9;
        assert_eq!(shares(&machine, 0, 1), "");
        assert_eq!(shares(&machine, 0, 4), "the injection of node 0, the ejection of node 1");
        machine.timing.injection.rank = 2e-9;
        assert_eq!(shares(&machine, 3, 4), "the injection of rank 3, the ejection of rank 4");
        assert_eq!(
            shares(&machine, 3, 0),
            "the injection of rank 3, the injection of node 1, the ejection of rank 0, the ejection of node 0"
        );
        assert_eq!(channels(&machine, 1).shared(), 20);
        assert_eq!([0, 9, 10, 19].map(|shared| channels(&machine, 1).pace(shared)), [2, 2, 1, 1]);
        let grid = self::machine([true; 2]);
        assert_eq!([0, 3, 47].map(|shared| channels(&grid, 1).pace(shared)), [1; 3]);
        assert_eq!(channels(&grid, 1).shares(7, Rank(0), Rank(1)).as_slice(), [3]);
    }

    #[test]
    fn channels_are_named_by_link_class_and_port() {
        let machine = machine([true; 2]);
        let named = |vcs, pool| channels(&machine, vcs).name(pool);
        assert_eq!(
            [named(2, 0), named(2, 1), named(1, 0)].join("; "),
            "(0,0)+0 class 0; (0,0)+0 class 1; (0,0)+0"
        );
        assert_eq!([named(2, 92), named(2, 95)].join("; "), "(3,2)+1 class 0; (3,2)-1 class 1");
        let ports = [named(2, 96), named(2, 107), named(2, 108), named(2, 119)];
        let expected = [
            "a sending port of 0",
            "a sending port of 11",
            "a receiving port of 0",
            "a receiving port of 11",
        ];
        assert_eq!(ports, expected);
    }

    /// The pools of a message around a ring of four, upwards and downwards, and whether it needs none.
    #[test]
    fn a_message_changes_its_pool_where_it_crosses_the_dateline() {
        let ring = Machine::of(Arc::new(Grid::torus(&[4]).unwrap()));
        let settings = Settings { vcs: 2, ..Settings::default() };
        let pools = |dateline, from: u32, hops: i64| {
            let mut seen = Vec::new();
            let to = Rank((i64::from(from) + hops).rem_euclid(4) as u32);
            let channels = Channels::new(&ring, &settings, dateline, None);
            channels.along(Rank(from), to, &Route::straight(0, hops), |pool, _| seen.push(pool));
            seen
        };
        let (out, arrive) = (16, 20);
        // Links 2r upwards, 2r + 1 downwards; pools 2l, 2l + 1.
        let crossing = Dateline::Crossing;
        assert_eq!(pools(crossing, 0, 2), [out, 0, 4, arrive + 2]);
        assert_eq!(pools(crossing, 2, 3), [out + 2, 8, 12, 1, arrive + 1]);
        assert_eq!(pools(crossing, 1, -3), [out + 1, 6, 2, 15, arrive + 2]);
        assert_eq!(pools(Dateline::Entry, 0, 2), [out, 1, 5, arrive + 2]);
        assert_eq!(pools(Dateline::Entry, 2, 3), [out + 2, 8, 12, 0, arrive + 1]);
        assert_eq!(pools(Dateline::Entry, 1, -3), [out + 1, 6, 2, 14, arrive + 2]);
    }
}
