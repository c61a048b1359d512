//! The charges of steps as integers, by link class. Seconds are computed last.

use smallvec::SmallVec;
use topocoll_topology::{
    Contention, INTRA_NODE, LinkId, LinkKind, MAX_DIMENSIONS, Machine, PerClass, Rank, Shape,
    Timing, Topology,
};

use crate::route_links::RouteLinks;
use crate::time::Time;

/// One amount for each link class.
type ByClass<T> = [T; MAX_DIMENSIONS];

/// The injection of a rank and of a node, beyond the link classes.
const RANK: usize = MAX_DIMENSIONS;
const NODE: usize = MAX_DIMENSIONS + 1;

/// Attoseconds, where no class gives the time of all bytes.
const TIME: usize = MAX_DIMENSIONS + 2;

/// Seconds of an attosecond.
const ATTO: f64 = 1e-18;

/// The largest weight of a link: as many binary digits as a double has.
const LARGEST: f64 = (1u64 << 53) as f64;

/// The timing values of a machine, and integers proportional to the propagation over its links.
///
/// Sums of these integers do not depend on the order of addition, so all readers find the same
/// slowest route.
pub(crate) struct Rates<'a> {
    timing: &'a Timing,
    topology: &'a dyn Topology,
    /// The class of the network's first class.
    first: usize,
    /// Seconds of a byte over the fastest link between nodes.
    between: f64,
    /// By class.
    per_hop: SmallVec<[u64; 4]>,
    /// By kind of links; none if links have the values of their dimensions.
    kinds: Vec<KindRate>,
}

/// What a kind of links costs.
struct KindRate {
    /// The class on the machine.
    class: usize,
    /// Its capacity, as a fraction of its class's.
    times: u32,
    over: u32,
    /// Seconds of a byte.
    per_byte: f64,
    /// The weight of a link, and its picoseconds of propagation unless they are those of the class.
    weight: u64,
    picoseconds: Option<u64>,
}

impl<'a> Rates<'a> {
    pub(crate) fn new(machine: &'a Machine) -> Self {
        let (timing, topology) = (&machine.timing, &*machine.topology);
        let first = machine.first_class();
        let values = timing.per_hop.values();
        let latencies = topology.link_kinds().iter().filter_map(|kind| kind.latency);
        let most = values.iter().copied().chain(latencies).fold(f64::MIN_POSITIVE, f64::max);
        let weight = |value: f64| (value / most * LARGEST) as u64;
        let rate = |kind: &LinkKind| {
            let class = first + kind.class as usize;
            let of_class = timing.per_byte.of(class);
            let (times, over) = kind.capacity.relative(of_class);
            let per_byte = kind.capacity.seconds_per_byte(of_class);
            let latency = kind.latency.unwrap_or_else(|| timing.per_hop.of(class));
            let picoseconds = kind.latency.map(|latency| (latency * 1e12).round() as u64);
            KindRate { class, times, over, per_byte, weight: weight(latency), picoseconds }
        };
        // Those of a grid are classes by dimension.
        let on_grid =
            matches!(topology.network(), Shape::Graph(graph) if graph.on_grid().is_some());
        let listed = if on_grid { &[][..] } else { topology.link_kinds() };
        let kinds = listed.iter().map(rate).collect();
        let per_hop = values.iter().map(|&value| weight(value)).collect();
        let between = machine.least_per_byte_of_nodes();
        Self { timing, topology, first, between, per_hop, kinds }
    }

    /// The class of the network's first class.
    pub(crate) fn first_class(&self) -> usize {
        self.first
    }

    /// Attoseconds of `bytes` within a node, or over the fastest link between nodes.
    pub(crate) fn attoseconds(&self, within: bool, bytes: u128) -> u128 {
        let per_byte = if within { self.timing.per_byte.of(INTRA_NODE) } else { self.between };
        attoseconds(bytes, per_byte)
    }

    /// The weight of `hops` along dimension `class`, to compare routes.
    pub(crate) fn weight(&self, class: usize, hops: u64) -> u128 {
        let each = if self.per_hop.len() == 1 { self.per_hop[0] } else { self.per_hop[class] };
        u128::from(each) * u128::from(hops)
    }

    /// The class of a link on the network of a graph.
    pub(crate) fn class_of(&self, link: LinkId) -> usize {
        self.kinds[self.topology.link_kind(link)].class - self.first
    }

    /// The bytes that a link is charged for carrying `bytes`: over its capacity, as a link of its
    /// class has it, and rounded up to a whole byte. If its bandwidth is not that of the class, also the
    /// attoseconds, which are not rounded to bytes.
    pub(crate) fn over_capacity(
        &self,
        link: impl FnOnce() -> LinkId,
        bytes: u128,
    ) -> (u128, Option<u128>) {
        if self.kinds.is_empty() {
            return (bytes, None);
        }
        let kind = &self.kinds[self.topology.link_kind(link())];
        (kind.charged(bytes), kind.attoseconds(bytes))
    }
}

impl KindRate {
    fn charged(&self, bytes: u128) -> u128 {
        if self.times == self.over {
            return bytes;
        }
        bytes.saturating_mul(self.over.into()).div_ceil(self.times.into())
    }

    /// The time of `bytes`, unless it is that of the class.
    fn attoseconds(&self, bytes: u128) -> Option<u128> {
        (self.times != self.over).then(|| attoseconds(bytes, self.per_byte))
    }
}

fn attoseconds(bytes: u128, per_byte: f64) -> u128 {
    (bytes as f64 * per_byte / ATTO).round() as u128
}

/// A route to compare with others: its weight, the picoseconds of links with a latency of their
/// own, and its other hops by class.
type Weighed = (u128, u64, ByClass<u64>);

/// The charges of one step.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Charges {
    /// The class whose startup is charged, if there is a message.
    startup: Option<usize>,
    /// All classes in use are below this one.
    classes: usize,
    /// The class and bytes whose transmission is charged.
    transmission: (usize, u128),
    /// Most bytes on a link of each class, where these add up.
    loads: ByClass<u128>,
    /// The route whose propagation is charged.
    route: Weighed,
    /// Bytes on all links of a class, summed over links.
    carried: ByClass<u128>,
    /// Attoseconds of links with a bandwidth of their own, summed over links.
    busy: u128,
}

impl Charges {
    /// Adds a link of `class` that carries `bytes` in total.
    ///
    /// Between equal startups the higher class is charged. Between equal transmissions the larger
    /// value is charged, then more bytes, then the higher class.
    pub(crate) fn link(&mut self, rates: &Rates<'_>, class: usize, bytes: u128) {
        let startup = &rates.timing.startup;
        let slower = |other: usize| startup.slower(other.min(class), other.max(class));
        self.startup = Some(self.startup.map_or(class, slower));
        self.classes = self.classes.max(class + 1);
        self.loads[class] = self.loads[class].max(bytes);
        self.transmit(rates, class, bytes);
    }

    /// Adds the largest message together with the loads of link classes beyond it, which add up as the machine
    /// says.
    pub(crate) fn contend(&mut self, rates: &Rates<'_>, message: u128, several: bool) {
        let Contention { alone, several: others } = rates.timing.contention;
        let (p, per_byte) = (if several { others } else { alone }, &rates.timing.per_byte);
        let loads = || (0..).zip(&self.loads[..self.classes]);
        if p == f64::INFINITY || loads().filter(|(_, load)| **load > message).count() < 2 {
            return;
        }
        let seconds = |class: usize, bytes: u128| bytes as f64 * per_byte.of(class);
        let largest = loads().map(|(class, load)| seconds(class, message.min(*load)));
        let beyond = loads().map(|(class, load)| seconds(class, load.saturating_sub(message)));
        let sum = largest.fold(0.0, f64::max) + Contention::norm(p, beyond);
        self.during(rates, attoseconds(1, sum));
    }

    /// Adds a rank that sends, or receives, `bytes` in total; `is_node` if it is a node by itself.
    pub(crate) fn rank(&mut self, rates: &Rates<'_>, bytes: u128, is_node: bool) {
        if rates.timing.injection.rank > 0.0 {
            self.transmit(rates, RANK, bytes);
        }
        if is_node {
            self.node(rates, bytes);
        }
    }

    /// Adds a node that sends to other nodes, or receives from them, `bytes` in total.
    pub(crate) fn node(&mut self, rates: &Rates<'_>, bytes: u128) {
        if rates.timing.injection.node > 0.0 {
            self.transmit(rates, NODE, bytes);
        }
    }

    /// Adds a port, or a link with a bandwidth of its own, that carries messages for this time.
    pub(crate) fn during(&mut self, rates: &Rates<'_>, attoseconds: u128) {
        self.transmit(rates, TIME, attoseconds);
    }

    fn transmit(&mut self, rates: &Rates<'_>, class: usize, bytes: u128) {
        let key = |(class, bytes): (usize, u128)| {
            let value = per_byte(rates.timing, class);
            (bytes as f64 * value, value, bytes, class)
        };
        if key((class, bytes)) > key(self.transmission) {
            self.transmission = (class, bytes);
        }
    }

    /// Adds `times` messages of `bytes` from the node of `from`.
    pub(crate) fn route_links(
        &mut self,
        rates: &Rates<'_>,
        from: Rank,
        route_links: &RouteLinks<'_>,
        times: u64,
        bytes: u128,
    ) {
        let all = bytes.saturating_mul(times.into());
        if let (true, RouteLinks::Route(route)) = (rates.kinds.is_empty(), route_links) {
            let parts = || {
                let segments = route.segments().iter();
                segments.map(|s| (rates.first + s.dimension as usize, s.hops.unsigned_abs()))
            };
            let weight = parts().map(|(class, hops)| rates.weight(class, hops)).sum();
            self.longest(weight, parts());
            parts().for_each(|(class, hops)| self.carry(class, all.saturating_mul(hops.into())));
            return;
        }
        let mut weighed = Weighed::default();
        route_links.each_link(rates.topology, from, &mut |link| {
            self.pass(rates, &mut weighed, link, (times, bytes));
        });
        self.route = self.route.max(weighed);
    }

    /// Adds the links of a route, each with the messages of `bytes` that pass it and its equivalents.
    pub(crate) fn links_of(
        &mut self,
        rates: &Rates<'_>,
        links: impl Iterator<Item = (LinkId, u64)>,
        bytes: u128,
    ) {
        let mut weighed = Weighed::default();
        links.for_each(|(link, times)| self.pass(rates, &mut weighed, link, (times, bytes)));
        self.route = self.route.max(weighed);
    }

    /// Adds a link of a route for `times` messages of `bytes`.
    fn pass(
        &mut self,
        rates: &Rates<'_>,
        weighed: &mut Weighed,
        link: LinkId,
        (times, bytes): (u64, u128),
    ) {
        let kind = &rates.kinds[rates.topology.link_kind(link)];
        weighed.0 += u128::from(kind.weight);
        match kind.picoseconds {
            Some(picoseconds) => weighed.1 = weighed.1.saturating_add(picoseconds),
            None => weighed.2[kind.class] += 1,
        }
        match kind.attoseconds(bytes).map(|busy| busy.saturating_mul(times.into())) {
            Some(busy) => self.busy = self.busy.saturating_add(busy),
            None => self.carry(kind.class, bytes.saturating_mul(times.into())),
        }
    }

    /// Adds a message with these hops of each class. Between equal weights the larger hops by class
    /// are charged.
    pub(crate) fn longest(&mut self, weight: u128, hops: impl Iterator<Item = (usize, u64)>) {
        if weight >= self.route.0 {
            let mut by_class = [0u64; MAX_DIMENSIONS];
            hops.for_each(|(class, hops)| by_class[class] = by_class[class].saturating_add(hops));
            let route = (weight, 0, by_class);
            if route > self.route {
                self.route = route;
            }
        }
    }

    /// Adds links of `class` that carry `bytes` in total.
    pub(crate) fn carry(&mut self, class: usize, bytes: u128) {
        self.carried[class] = self.carried[class].saturating_add(bytes);
    }
}

/// The sum of the charges of several steps, added in any order.
#[derive(Clone, Copy, Default)]
pub(crate) struct Charged {
    startups: ByClass<u128>,
    bytes: ByClass<u128>,
    /// Bytes of steps that a rank's, or a node's, injection limits, and attoseconds.
    others: [u128; 3],
    hops: ByClass<u128>,
    /// Of links with a latency of their own.
    picoseconds: u128,
    carried: ByClass<u128>,
    busy: u128,
}

impl Charged {
    /// Adds a step; `moves` if it has messages.
    pub(crate) fn add(&mut self, step: &Charges, moves: bool) {
        self.startups[step.startup.unwrap_or(0)] += u128::from(moves);
        match step.transmission {
            (class @ (RANK | NODE | TIME), amount) => self.others[class - RANK] += amount,
            (class, bytes) => self.bytes[class] += bytes,
        }
        let (_, picoseconds, hops) = &step.route;
        self.picoseconds += u128::from(*picoseconds);
        let hops = &hops[..step.classes];
        self.hops.iter_mut().zip(hops).for_each(|(sum, &hops)| *sum += u128::from(hops));
        add(&mut self.carried, &step.carried[..step.classes]);
        self.busy = self.busy.saturating_add(step.busy);
    }

    /// Seconds of startup, transmission and propagation.
    pub(crate) fn time(&self, timing: &Timing) -> Time {
        let others = [RANK, NODE, TIME].into_iter().zip(self.others);
        let others = others.map(|(class, amount)| amount as f64 * per_byte(timing, class));
        Time {
            startup: timing.startup.sum(&self.startups),
            transmission: timing.per_byte.sum(&self.bytes) + others.sum::<f64>(),
            propagation: timing.per_hop.sum(&self.hops) + self.picoseconds as f64 * 1e-12,
            ..Time::default()
        }
    }

    /// Seconds that links are busy, summed over links.
    pub(crate) fn link_seconds(&self, per_byte: &PerClass) -> f64 {
        per_byte.sum(&self.carried) + self.busy as f64 * ATTO
    }
}

/// Seconds of a byte on a link of a class, or of the injection of a rank or a node; of an attosecond.
fn per_byte(timing: &Timing, class: usize) -> f64 {
    match class {
        TIME => ATTO,
        RANK => timing.injection.rank,
        NODE => timing.injection.node,
        class => timing.per_byte.of(class),
    }
}

fn add(sums: &mut [u128], more: &[u128]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
}
