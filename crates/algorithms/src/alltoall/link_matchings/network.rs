//! The links of a machine and the messages of its all-to-all, as lists.

use smallvec::SmallVec;
use topocoll_topology::{Capacity, LinkId, Ports, Rank, Route, Topology};

/// The most links on the routes of all messages.
const MOST_HOPS: u64 = 1 << 26;

/// Rounding of steps.
const ROUNDED: f64 = 1e-9;

/// No route.
const FAR: u16 = u16::MAX;

/// A link, or parallel links of one capacity.
struct Bundle {
    to: u32,
    /// What a link carries, as a fraction of the bandwidth of its class, or of the slowest one in
    /// bytes per second.
    capacity: (u32, u32),
    of_class: bool,
    /// Its links: numbers of `Network::segments`.
    links: SmallVec<[u32; 1]>,
}

impl Bundle {
    /// The messages that its links carry together in a step, one on a link.
    fn capacity(&self) -> f64 {
        let (times, over) = self.capacity;
        (f64::from(times) / f64::from(over)).max(1.0) * self.links.len() as f64
    }
}

/// A machine with numbered links. Message `from * ranks + to` takes a shortest route.
///
/// What messages share is numbered: bundles of links first, then the ports of senders and of
/// receivers, and where nodes hold several ranks those of sending and of receiving nodes.
pub(super) struct Network {
    ranks: usize,
    ports: Ports,
    /// By rank, its node.
    node_of: Vec<u32>,
    /// By node, its ranks.
    sizes: Vec<u32>,
    /// By vertex, its first bundle; one more entry at the end.
    first: Vec<u32>,
    bundles: Vec<Bundle>,
    /// By bundle, the vertex that it leads to.
    to: Vec<u32>,
    /// By link, its hop: dimension, and direction on grids.
    segments: Vec<(u32, i8)>,
    /// Links from each vertex to a node, node by node.
    distances: Vec<u16>,
    /// By message, its first hop among the hops of all messages; one more entry at the end.
    first_hop: Vec<u32>,
}

impl Network {
    /// The network of a machine with numbered links, or `None` if its routes are too long.
    pub(super) fn new(topology: &dyn Topology, ports: Ports) -> Option<Self> {
        let ranks = topology.ranks() as usize;
        let node_of: Vec<u32> =
            (0..ranks as u32).map(|rank| topology.node_of(Rank(rank))).collect();
        let mut sizes = vec![0; topology.nodes() as usize];
        node_of.iter().for_each(|&node| sizes[node as usize] += 1);
        let mut network = Self {
            ranks,
            ports,
            node_of,
            sizes,
            first: vec![0],
            bundles: Vec::new(),
            to: Vec::new(),
            segments: Vec::new(),
            distances: Vec::new(),
            first_hop: Vec::new(),
        };
        network.list_links(topology);
        network.measure();
        let mut hops = 0u64;
        for message in 0..ranks * ranks {
            network.first_hop.push(hops as u32);
            hops += u64::from(network.distance(message));
            if hops > MOST_HOPS {
                return None;
            }
        }
        network.first_hop.push(hops as u32);
        Some(network)
    }

    /// Lists the links of each vertex, parallel ones of one capacity together.
    fn list_links(&mut self, topology: &dyn Topology) {
        let bandwidths = topology.link_kinds().iter().filter_map(|kind| match kind.capacity {
            Capacity::BytesPerSecond(bandwidth) => Some(bandwidth),
            Capacity::Relative { .. } => None,
        });
        let slowest = bandwidths.fold(f64::INFINITY, f64::min);
        let capacity = |link| {
            let kind = topology.link_kinds().get(topology.link_kind(link));
            let capacity = kind.map_or(Capacity::CLASS, |kind| kind.capacity);
            let of_class = matches!(capacity, Capacity::Relative { .. });
            (capacity.relative(1.0 / slowest), of_class)
        };
        let (mut first_link, mut last) = (0, self.sizes.len() as u32 - 1);
        for number in (0..topology.link_numbers()).map(LinkId) {
            let Some(link) = topology.link(number) else { continue };
            last = last.max(link.from).max(link.to);
            while self.first.len() <= link.from as usize {
                self.first.push(self.bundles.len() as u32);
                first_link = self.segments.len();
            }
            let place = (self.segments.len() - first_link) as u32;
            let dimension = if link.direction == 0 { place } else { link.class };
            let own = self.segments.len() as u32;
            self.segments.push((dimension, link.direction as i8));
            let (to, (capacity, of_class)) = (link.to, capacity(number));
            let bundles = &mut self.bundles[self.first[link.from as usize] as usize..];
            let parallel = |other: &&mut Bundle| {
                (other.to, other.capacity, other.of_class) == (to, capacity, of_class)
            };
            match bundles.iter_mut().find(parallel) {
                Some(bundle) => bundle.links.push(own),
                None => {
                    let links = SmallVec::from([own]);
                    self.bundles.push(Bundle { to, capacity, of_class, links });
                }
            }
        }
        self.first.resize(last as usize + 2, self.bundles.len() as u32);
        self.to = self.bundles.iter().map(|bundle| bundle.to).collect();
    }

    /// Finds the distances to all nodes.
    fn measure(&mut self) {
        let vertices = self.vertices();
        let mut entering = vec![SmallVec::<[u32; 4]>::new(); vertices];
        for vertex in 0..vertices {
            for bundle in self.leaving(vertex) {
                entering[self.to[bundle] as usize].push(vertex as u32);
            }
        }
        self.distances = vec![FAR; self.sizes.len() * vertices];
        let mut open = Vec::new();
        for (to, row) in self.distances.chunks_mut(vertices).enumerate() {
            row[to] = 0;
            open.clear();
            open.push(to as u32);
            let mut next = 0;
            while let Some(&at) = open.get(next).filter(|_| open.len() < vertices) {
                next += 1;
                for &before in &entering[at as usize] {
                    if row[before as usize] == FAR {
                        row[before as usize] = row[at as usize] + 1;
                        open.push(before);
                    }
                }
            }
        }
    }

    fn vertices(&self) -> usize {
        self.first.len() - 1
    }

    fn leaving(&self, vertex: usize) -> std::ops::Range<usize> {
        self.first[vertex] as usize..self.first[vertex + 1] as usize
    }

    pub(super) fn ranks(&self) -> usize {
        self.ranks
    }

    /// The messages between different ranks, in order.
    pub(super) fn messages(&self) -> impl Iterator<Item = usize> + use<> {
        let ranks = self.ranks;
        (0..ranks * ranks).filter(move |message| message / ranks != message % ranks)
    }

    /// The hops of all messages.
    pub(super) fn hops(&self) -> usize {
        self.first_hop[self.ranks * self.ranks] as usize
    }

    /// The hops of a message, among those of all.
    pub(super) fn hops_of(&self, message: usize) -> std::ops::Range<usize> {
        self.first_hop[message] as usize..self.first_hop[message + 1] as usize
    }

    /// The links on the route of a message.
    pub(super) fn distance(&self, message: usize) -> u16 {
        let [from, to] = self.ends(message);
        self.distances[to * self.vertices() + from]
    }

    /// The nodes of a message.
    fn ends(&self, message: usize) -> [usize; 2] {
        let of = |rank: usize| self.node_of[rank] as usize;
        [of(message / self.ranks), of(message % self.ranks)]
    }

    /// The ports that a message takes.
    pub(super) fn ports_of(&self, message: usize) -> SmallVec<[usize; 4]> {
        let (from, to) = (message / self.ranks, message % self.ranks);
        let (senders, receivers) = (self.bundles.len(), self.bundles.len() + self.ranks);
        let mut ports = SmallVec::from_slice(&[senders + from, receivers + to]);
        let [sender, receiver] = self.ends(message);
        if self.several() && sender != receiver {
            let of_nodes = receivers + self.ranks;
            ports.extend([of_nodes + sender, of_nodes + self.sizes.len() + receiver]);
        }
        ports
    }

    /// Whether a node holds several ranks.
    fn several(&self) -> bool {
        self.sizes.len() < self.ranks
    }

    /// The number of bundles and ports.
    pub(super) fn shared(&self) -> usize {
        let of_nodes = if self.several() { self.sizes.len() } else { 0 };
        self.bundles.len() + 2 * (self.ranks + of_nodes)
    }

    /// The links on all shortest routes of a message, on average over some.
    pub(super) fn links_of_message(&self) -> f64 {
        const SOME: usize = 256;
        let all = self.ranks * self.ranks;
        let mut onward = Onward::default();
        let links = |i: usize| {
            onward.find(self, (2 * i + 1) * all / (2 * SOME), 0);
            onward.hops.len()
        };
        (0..SOME).map(links).sum::<usize>() as f64 / SOME as f64
    }

    /// The messages that a bundle or port takes in a step with `link_messages` on a link.
    pub(super) fn room(&self, shared: usize, link_messages: u32) -> u32 {
        let Some(Bundle { capacity: (times, over), links, .. }) = self.bundles.get(shared) else {
            let of_rank = shared < self.bundles.len() + 2 * self.ranks;
            return if of_rank { self.ports.rank } else { self.ports.node };
        };
        let each = u64::from(link_messages) * u64::from(*times) / u64::from(*over);
        let all = each.max(1).saturating_mul(links.len() as u64);
        u32::try_from(all).unwrap_or(u32::MAX)
    }

    /// The most messages that bundles and ports can have in a step: all ports need not find room on
    /// links.
    pub(super) fn most_held(&self, link_messages: u32) -> Vec<u32> {
        let mut most: Vec<u32> =
            (0..self.bundles.len()).map(|bundle| self.room(bundle, link_messages)).collect();
        let mut through = [vec![0u32; self.vertices()], vec![0u32; self.vertices()]];
        for vertex in 0..self.vertices() {
            for bundle in self.leaving(vertex) {
                for (of, end) in [vertex, self.to[bundle] as usize].into_iter().enumerate() {
                    through[of][end] = through[of][end].saturating_add(most[bundle]);
                }
            }
        }
        for through in &through {
            most.extend(self.node_of.iter().map(|&node| {
                let within = self.sizes[node as usize] - 1;
                self.ports.rank.min(through[node as usize].saturating_add(within))
            }));
        }
        if self.several() {
            for through in &through {
                most.extend(
                    through[..self.sizes.len()].iter().map(|&most| most.min(self.ports.node)),
                );
            }
        }
        most
    }

    /// A lower bound on the steps with `link_messages` on a link.
    pub(super) fn least_steps(&self, link_messages: u32) -> u32 {
        let (ranks, several) = (self.ranks as u64, self.several());
        let of_nodes = self.sizes.iter().map(|&size| u64::from(size) * (ranks - u64::from(size)));
        let of_nodes = of_nodes.max().filter(|_| several).unwrap_or(0);
        let of_rank = (ranks - 1).div_ceil(self.ports.rank.into());
        let by_ports = of_nodes.div_ceil(self.ports.node.into()).max(of_rank);
        let by_links = (self.least_volume() / f64::from(link_messages)).ceil() as u64;
        by_ports.max(by_links) as u32
    }

    /// The fewest messages on a link with which ports, not links, limit the steps.
    pub(super) fn fewest_link_messages(&self) -> u32 {
        let by_ports = self.least_steps(u32::MAX).max(1);
        ((self.least_volume() / f64::from(by_ports)).ceil() as u32).max(1)
    }

    /// A lower bound on the sum over steps of the messages on a link.
    pub(super) fn least_volume(&self) -> f64 {
        let all = self.capacity();
        let mut entering = vec![0.0; self.vertices()];
        self.bundles.iter().for_each(|bundle| entering[bundle.to as usize] += bundle.capacity());
        let of_node = |(node, &size): (usize, &u32)| {
            let leaving: f64 = self.bundles[self.leaving(node)].iter().map(Bundle::capacity).sum();
            let messages = f64::from(size) * (self.ranks as f64 - f64::from(size));
            if messages > 0.0 { messages / leaving.min(entering[node]) } else { 0.0 }
        };
        let of_nodes = self.sizes.iter().enumerate().map(of_node).fold(0.0, f64::max);
        if all > 0.0 { of_nodes.max(self.hops() as f64 / all) } else { 0.0 }
    }

    /// A lower bound on the sum over steps of the most hops. Ports and links limit the messages of a step, so
    /// that the messages of at least h hops take some steps. The sum is at least that of these steps over all h.
    pub(super) fn least_hops(&self, link_messages: u32) -> u64 {
        let mut by_hops: Vec<u64> = Vec::new();
        for message in self.messages() {
            let hops = usize::from(self.distance(message));
            by_hops.resize(by_hops.len().max(hops + 1), 0);
            by_hops[hops] += 1;
        }
        let by_hops: Vec<(u64, u64)> = (0..).zip(by_hops).skip(1).collect();
        let links = self.capacity() * f64::from(link_messages);
        let ports = self.ranks as f64 * f64::from(self.ports.rank);
        let (mut messages, mut carried, mut least) = (0, 0, 0);
        for (hops, count) in by_hops.into_iter().rev() {
            messages += count;
            carried += hops * count;
            let steps = (messages as f64 / ports).max(carried as f64 / links);
            least += (steps - ROUNDED).ceil() as u64;
        }
        least
    }

    /// The messages on all links in a step, one on each.
    fn capacity(&self) -> f64 {
        self.bundles.iter().map(Bundle::capacity).sum()
    }

    /// The link of the next message of a bundle that carries some.
    pub(super) fn link(&self, bundle: usize, carried: u32) -> u32 {
        let links = &self.bundles[bundle].links;
        links[carried as usize % links.len()]
    }

    /// The most messages on a link of a bundle that carries some, and these over its capacity, as a
    /// fraction; 0 if only timing values tell.
    pub(super) fn load(&self, bundle: usize, carried: u32) -> (u32, (u64, u32)) {
        let Bundle { capacity: (times, over), of_class, links, .. } = &self.bundles[bundle];
        let most = carried.div_ceil(links.len() as u32);
        (most, if *of_class { (u64::from(most) * u64::from(*over), *times) } else { (0, 1) })
    }

    /// The route over some links.
    pub(super) fn route(&self, links: &[u32]) -> Route {
        let mut route = Route::default();
        let hop = |link: &u32| self.segments[*link as usize];
        // On a grid hops in one direction are one segment.
        for part in links.chunk_by(|a, b| hop(a).1 != 0 && hop(a) == hop(b)) {
            let ((dimension, direction), hops) = (hop(&part[0]), part.len() as i64);
            route.push(dimension, if direction < 0 { -hops } else { hops });
        }
        route
    }
}

/// A bundle on a shortest route, between places of [`Onward`]'s vertices.
#[derive(Clone, Copy)]
pub(super) struct Hop {
    pub(super) from: usize,
    pub(super) bundle: usize,
    pub(super) to: usize,
}

/// All shortest routes of a message.
#[derive(Default)]
pub(super) struct Onward {
    /// The vertices on them: its node first, its destination's last.
    vertices: Vec<u32>,
    /// Those nearer to the first vertex come first.
    pub(super) hops: Vec<Hop>,
    /// By vertex, the search that reached it and its place.
    reached: Vec<(u32, u32)>,
    search: u32,
}

impl Onward {
    /// Overwrites this with the routes of a message. The links that leave a vertex are listed from
    /// the one at `turn` on, cyclically.
    pub(super) fn find(&mut self, network: &Network, message: usize, turn: usize) {
        let [from, to] = network.ends(message);
        let vertices = network.vertices();
        let distances = &network.distances[to * vertices..][..vertices];
        self.search += 1;
        self.reached.resize(vertices, (0, 0));
        self.hops.clear();
        self.vertices.clear();
        self.vertices.push(from as u32);
        let mut from = 0;
        while let Some(nearer) = distances[self.vertices[from] as usize].checked_sub(1) {
            let leaving = network.leaving(self.vertices[from] as usize);
            // A division of few bits is faster.
            let first = leaving.start + (turn as u32 % leaving.len() as u32) as usize;
            for bundles in [first..leaving.end, leaving.start..first] {
                for (bundle, &next) in bundles.clone().zip(&network.to[bundles]) {
                    if distances[next as usize] != nearer {
                        continue;
                    }
                    let (search, place) = &mut self.reached[next as usize];
                    if *search != self.search {
                        (*search, *place) = (self.search, self.vertices.len() as u32);
                        self.vertices.push(next);
                    }
                    self.hops.push(Hop { from, bundle, to: *place as usize });
                }
            }
            from += 1;
        }
    }

    /// The number of vertices.
    pub(super) fn places(&self) -> usize {
        self.vertices.len()
    }

    /// Overwrites `route` with the bundles of a route, by those that may be taken.
    pub(super) fn take(&self, mut may: impl FnMut(&Hop) -> bool, route: &mut [u32]) {
        let mut left = route.len();
        let mut at = self.places() - 1;
        for hop in self.hops.iter().rev() {
            if hop.to == at && may(hop) {
                left -= 1;
                route[left] = hop.bundle as u32;
                at = hop.from;
            }
        }
        assert!(left == 0 && at == 0, "bug: no route");
    }
}
