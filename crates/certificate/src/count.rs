//! The counts of a schedule.

use crate::Fault;
use crate::certificate::{Certificate, Slots};
use crate::graph::Loads;
use crate::lines::{Busiest, Grid, Lines, Segment};
use crate::machine::Network;
use crate::radix::{Radix, limited};

/// The most blocks moved by representatives, and links visited: some minutes each.
const MOST_WORK: u128 = 1 << 36;

/// A segment of a route, or a link on the way to the nearest vertices, takes as long as visiting this
/// many links.
const SEGMENT: u128 = 16;

/// The most links counted one by one, at 32 bytes each.
const MOST_LINKS: u128 = 1 << 26;

/// The most bytes of all messages, each times the segments of its route.
const MOST_BYTES: u128 = 1 << 120;

/// The most ranks counted one by one.
const MOST_RANKS: u128 = 1 << 24;

/// Counts as `topocoll verify` defines them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Steps in which a message moves.
    pub steps: u128,
    /// Messages of all ranks.
    pub messages: u128,
    /// Sum over steps of the largest message, in bytes; where a rank or node exceeds its ports, of the
    /// bytes of a port: the mean of its ports, or the smallest message times the most of a port.
    pub bytes: u128,
    /// Sum over steps of the largest message or load of a directed link, in bytes.
    pub link_bytes: u128,
    /// Sum over steps of the largest hop count.
    pub hops: u128,
    /// Pairs of a step and a directed link that carries several messages.
    pub link_conflicts: u128,
    /// Most messages on one directed link in one step.
    pub link_contention: u128,
    /// Steps with a link that carries several messages.
    pub contended_steps: u128,
    /// Steps needed when every contended step is split.
    pub contention_free_steps: u128,
    /// Cases of a step, a rank or node, and a direction that exceed the ports.
    pub port_violations: u128,
    /// Steps in which a message crosses between nodes.
    pub inter_node_steps: u128,
}

impl Counts {
    pub(crate) const RULE: &str = "the counts are steps= messages= bytes= link_bytes= hops= \
         link_conflicts= max_link_sharing= contended_steps= contention_free_steps= \
         port_violations= inter_node_steps=";

    /// The counts with their names in a certificate, in order.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u128); 11] {
        [
            ("steps", self.steps),
            ("messages", self.messages),
            ("bytes", self.bytes),
            ("link_bytes", self.link_bytes),
            ("hops", self.hops),
            ("link_conflicts", self.link_conflicts),
            ("max_link_sharing", self.link_contention),
            ("contended_steps", self.contended_steps),
            ("contention_free_steps", self.contention_free_steps),
            ("port_violations", self.port_violations),
            ("inter_node_steps", self.inter_node_steps),
        ]
    }

    /// The counts of a line, in the order of [`named`](Self::named).
    pub(crate) fn parse(text: &str) -> Option<[u128; 11]> {
        let mut words = text.split(' ');
        let mut listed = [0; 11];
        for (count, (name, _)) in listed.iter_mut().zip(Self::default().named()) {
            *count = words.next()?.strip_prefix(name)?.strip_prefix('=')?.parse().ok()?;
        }
        words.next().is_none().then_some(listed)
    }

    pub(crate) fn compare(&self, listed: &[u128; 11]) -> Result<(), Fault> {
        for ((name, found), &listed) in self.named().into_iter().zip(listed) {
            if found != listed {
                return Err(Fault::Count { name, listed, found });
            }
        }
        Ok(())
    }
}

/// The links of a network.
enum Links<'c> {
    None,
    Grid(Lines<'c>),
    Graph(Loads<'c>),
}

impl Links<'_> {
    /// Adds a number of messages between two nodes and returns their hops; `None` if the route does
    /// not end at the second.
    fn add(
        &mut self,
        ends: [u32; 2],
        route: Option<&[Segment]>,
        times: u32,
        bytes: u128,
    ) -> Result<Option<u128>, Fault> {
        match self {
            Self::None => Ok(Some(0)),
            Self::Grid(lines) => Ok(lines.add(ends, route, times, bytes)),
            Self::Graph(loads) => loads.add(ends, route, bytes),
        }
    }

    /// The busiest links. Resets all loads.
    fn busiest(&mut self) -> Busiest {
        match self {
            Self::None => Busiest::default(),
            Self::Grid(lines) => lines.busiest(),
            Self::Graph(loads) => loads.busiest(),
        }
    }
}

/// The ranks and nodes that are counted for all others.
pub(crate) struct Counted {
    /// If they are as many as the classes, one of each, and else the first ranks.
    ranks: u32,
    nodes: u32,
    /// On a grid, the periods that the nodes fill.
    periods: Vec<u32>,
}

impl Counted {
    /// The ranks and nodes to count. Refuses certificates that would take more than some minutes, or
    /// too much memory, to follow and to count.
    pub(crate) fn of(certificate: &Certificate) -> Result<Self, Fault> {
        let Certificate { machine, radix, .. } = certificate;
        let nodes = machine.network.nodes();
        let all = Self { ranks: radix.ranks(), nodes, periods: Vec::new() };
        let counted = match &machine.network {
            Network::Complete(_) if machine.nodes.is_none() => {
                Self { ranks: radix.classes(), ..all }
            }
            Network::Complete(_) | Network::Graph(_) => all,
            Network::Grid(grid) => {
                let sizes =
                    machine.nodes.as_ref().map_or(Some(None), |nodes| nodes.size().map(Some));
                let folded = sizes.and_then(|size| Self::folded(radix, grid, size));
                folded.unwrap_or_else(|| Self { periods: grid.places.sides.clone(), ..all })
            }
        };
        limited("ranks one by one", counted.ranks.into(), MOST_RANKS)?;
        limit_work(certificate, &counted)?;
        Ok(counted)
    }

    /// The ranks and nodes that the translations of classes leave, where they keep the links of a
    /// grid of nodes of equal sizes.
    fn folded(radix: &Radix, grid: &Grid, size: Option<u32>) -> Option<Self> {
        let (sides, places) = (&radix.sides[..], &grid.places);
        let dimensions = places.sides.len();
        let by_place = sides.strip_prefix(&places.sides[..]);
        if by_place.is_some_and(|inside| inside == size.as_slice())
            && (0..dimensions).all(|u| grid.keeps(u, radix.periods[u]))
            && !radix.is_twisted()
        {
            let periods = radix.periods[..dimensions].to_vec();
            return Some(Self { ranks: radix.classes(), nodes: periods.iter().product(), periods });
        }
        // Translations by whole lines along side 0 keep the order of nodes in a row.
        let line = places.strides[0];
        let shifted = match (sides, size) {
            ([_], _) => line * size.unwrap_or(1),
            ([nodes, ranks], Some(size)) if *nodes == places.ranks() && *ranks == size => line,
            _ => return None,
        };
        let keeps = |lines: &u32| lines * shifted % radix.periods[0] == 0 && grid.keeps(0, *lines);
        let lines = (1..=places.sides[0]).find(keeps).filter(|_| !radix.is_twisted())?;
        let mut periods = places.sides.clone();
        periods[0] = lines;
        let nodes = lines * line;
        Some(Self { ranks: nodes * size.unwrap_or(1), nodes, periods })
    }

    /// The place of a node among those counted.
    fn place(&self, network: &Network, node: u32) -> u32 {
        let Network::Grid(Grid { places, .. }) = network else { return node };
        (0..self.periods.len()).fold(0, |place, u| {
            place * self.periods[u] + places.coordinate(node, u) % self.periods[u]
        })
    }
}

/// Counts the steps of all ranks.
pub(crate) fn count(certificate: &Certificate, counted: &Counted) -> Result<Counts, Fault> {
    let Certificate { machine, radix, .. } = certificate;
    // The ranks and the nodes that one represents, and the ranks on one of these nodes.
    let each = radix.ranks() / counted.ranks;
    let nodes = machine.network.nodes() / counted.nodes;
    let times = each / nodes;
    let mut members = vec![Vec::new(); radix.classes() as usize];
    if counted.ranks == radix.classes() {
        (0..).zip(&mut members).for_each(|(class, of)| of.push(radix.representative(class)));
    } else {
        (0..counted.ranks).for_each(|rank| members[radix.class_of(rank) as usize].push(rank));
    }
    let mut links = match &machine.network {
        Network::Complete(_) => Links::None,
        Network::Grid(grid) => Links::Grid(Lines::new(grid, &counted.periods, nodes.into())),
        Network::Graph(graph) => Links::Graph(Loads::new(graph, MOST_WORK)),
    };
    let mut ports = Ports::new(certificate, counted.nodes);
    let mut counts = Counts::default();
    for step in certificate.in_order() {
        let (mut messages, mut largest, mut hops) = (0, 0, 0);
        for does in step {
            let members = &members[does.class as usize];
            let is = |rule| Fault::Step { step: does.number, class: does.class, rule };
            let bytes = |slots| {
                let bytes = bytes(certificate, slots);
                bytes.ok_or_else(|| is("a run of slots is of several pieces"))
            };
            for send in &does.sends {
                let bytes = bytes(&send.slots)?;
                let route = send.route.as_deref();
                if matches!(links, Links::None) && route.is_some() {
                    return Err(is("a message has a route on a machine without links"));
                }
                let by = radix.shift(send.to);
                for &rank in members {
                    let ends = [rank, by.apply(rank)].map(|rank| machine.node_of(rank));
                    let route = links.add(ends, route, times, bytes)?;
                    hops = route
                        .ok_or_else(|| is("a message's route does not lead to its receiver"))?
                        .max(hops);
                    if machine.nodes.is_some() && ends[0] != ends[1] {
                        let places = ends.map(|node| counted.place(&machine.network, node));
                        ports.send(places, times, bytes);
                    }
                }
                messages += u128::from(each) * members.len() as u128;
                largest = bytes.max(largest);
            }
            let ranks = u128::from(each) * members.len() as u128;
            for slots in [
                does.sends.iter().map(|send| &send.slots).collect::<Vec<_>>(),
                does.receives.iter().map(|(_, slots)| slots).collect(),
            ] {
                let mut load = Load::default();
                for slots in slots {
                    load.add(1, bytes(slots)?);
                }
                ports.count(load, certificate.ports, ranks);
            }
        }
        let Exceeded { violations, crosses, bytes } = ports.counted(nodes);
        if messages == 0 {
            continue;
        }
        let busiest = links.busiest();
        counts.steps += 1;
        counts.messages += messages;
        largest = largest.max(bytes);
        counts.bytes += largest;
        counts.link_bytes += largest.max(busiest.load);
        counts.hops += hops;
        counts.link_conflicts += busiest.shared;
        counts.link_contention = counts.link_contention.max(busiest.messages);
        counts.contended_steps += u128::from(busiest.messages > 1);
        counts.contention_free_steps += busiest.messages.max(1);
        counts.port_violations += violations;
        counts.inter_node_steps += u128::from(crosses);
    }
    Ok(counts)
}

/// Refuses certificates that would take more than some minutes, or too much memory, to follow and
/// to count.
fn limit_work(certificate: &Certificate, counted: &Counted) -> Result<(), Fault> {
    let (mut dimensions, mut hops, mut visited) = (0, 0, 0);
    match &certificate.machine.network {
        Network::Complete(_) => {}
        Network::Grid(Grid { places, .. }) => {
            dimensions = places.sides.len();
            hops = places.sides.iter().map(|&side| u128::from(side)).sum();
        }
        // For the distances of all nodes. Its routes are counted link by link.
        Network::Graph(graph) => {
            let links = (graph.vertices() + graph.ports()) as u128;
            visited = SEGMENT * u128::from(graph.nodes()) * links;
        }
    }
    let links = 2 * dimensions as u128 * u128::from(counted.nodes);
    limited("links", links, MOST_LINKS)?;
    let repeats = u128::from(counted.ranks / certificate.radix.classes());
    let ranks = u128::from(certificate.radix.ranks() / certificate.radix.classes());
    let (mut moved, mut carried) = (0, 0u128);
    for step in certificate.in_order() {
        let mut messages = 0;
        for does in step {
            let copied = does.copies.iter().map(|(from, _)| from);
            moved += copied.map(|slots| u128::from(slots.count())).sum::<u128>();
            for send in &does.sends {
                let slots = u128::from(send.slots.count());
                let segments = send.route.as_ref().map_or(dimensions, Vec::len).max(1) as u128;
                moved += slots;
                messages += repeats;
                visited += repeats * SEGMENT * segments;
                let bytes = slots.saturating_mul(certificate.block.into());
                carried = carried.saturating_add(bytes.saturating_mul(ranks * segments));
            }
        }
        visited += links.min(messages * hops);
    }
    limited("blocks moved", moved, MOST_WORK)?;
    limited("links visited", visited, MOST_WORK)?;
    limited("bytes on links", carried, MOST_BYTES)
}

/// Bytes of a message; `None` if a run spans several pieces.
fn bytes(certificate: &Certificate, slots: &Slots) -> Option<u128> {
    if let [block] = certificate.pieces[..] {
        return Some(u128::from(slots.count()) * u128::from(block));
    }
    slots.0.iter().try_fold(0, |sum, run| {
        let (low, high) = run.span();
        let piece = low as usize / certificate.slots as usize;
        let one = high as usize / certificate.slots as usize == piece;
        one.then(|| sum + u128::from(run.count()) * u128::from(certificate.pieces[piece]))
    })
}

/// Counts messages against ports: by rank, and where nodes hold several ranks by node to and from
/// other nodes.
struct Ports {
    of_node: u64,
    exceeded: Exceeded,
    /// By node counted, messages out and in; empty if each rank is a node.
    crossing: Vec<[Load; 2]>,
    /// The nodes with messages.
    used: Vec<u32>,
}

/// How a step exceeds ports.
#[derive(Default)]
struct Exceeded {
    violations: u128,
    /// Whether a message crosses between nodes.
    crosses: bool,
    /// Of the most loaded port.
    bytes: u128,
}

/// Messages of a rank or node in one direction.
#[derive(Clone, Copy, Default)]
struct Load {
    messages: u64,
    bytes: u128,
    smallest: u128,
}

impl Load {
    fn add(&mut self, times: u32, bytes: u128) {
        self.smallest = if self.messages == 0 { bytes } else { self.smallest.min(bytes) };
        self.messages += u64::from(times);
        self.bytes += u128::from(times) * bytes;
    }
}

impl Ports {
    fn new(certificate: &Certificate, nodes: u32) -> Self {
        let counted = if certificate.machine.nodes.is_some() { nodes } else { 0 };
        let crossing = vec![<[Load; 2]>::default(); counted as usize];
        let (of_node, exceeded) = (certificate.node_ports, Exceeded::default());
        Self { of_node, exceeded, crossing, used: Vec::new() }
    }

    /// Adds a number of messages from one node to another, at their places among those counted.
    fn send(&mut self, [from, to]: [u32; 2], times: u32, bytes: u128) {
        for node in [from, to] {
            if self.crossing[node as usize].iter().all(|load| load.messages == 0) {
                self.used.push(node);
            }
        }
        self.crossing[from as usize][0].add(times, bytes);
        self.crossing[to as usize][1].add(times, bytes);
    }

    /// Adds the messages of a rank or a node, and of others like it.
    fn count(&mut self, load: Load, ports: u64, number: u128) {
        if load.messages > ports {
            let whole = u128::from(load.messages.div_ceil(ports)) * load.smallest;
            let mean = load.bytes.div_ceil(ports.into());
            self.exceeded.violations += number;
            self.exceeded.bytes = self.exceeded.bytes.max(whole).max(mean);
        }
    }

    /// How the step exceeds ports, if each node counted represents some nodes. Resets all counters.
    fn counted(&mut self, nodes: u32) -> Exceeded {
        self.exceeded.crosses = !self.used.is_empty();
        while let Some(node) = self.used.pop() {
            for load in std::mem::take(&mut self.crossing[node as usize]) {
                self.count(load, self.of_node, nodes.into());
            }
        }
        std::mem::take(&mut self.exceeded)
    }
}
