use std::collections::BTreeSet;
use std::sync::Arc;

use crate::text::line_at;
use crate::{
    Capacity, Endpoint, FullyConnected, Injection, LinkId, LinkKind, PerClass, Ports, Shape,
    Subset, Ties, Timing, Topology,
};

/// A machine: its topology, the ports it grants, and its timing values.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Machine {
    /// What the user called it: a file's name or a short form.
    pub name: String,
    /// Ranks and links.
    pub topology: Arc<dyn Topology>,
    /// Messages of a rank and of a node in one step. Where each rank is a node by itself, both
    /// numbers are equal.
    pub ports: Ports,
    /// The same before they were limited to the messages that ranks and nodes have.
    pub(crate) given_ports: Ports,
    /// Timing values.
    pub timing: Timing,
    /// How ranks hand messages to the network; the steps model leaves it out.
    pub endpoint: Endpoint,
    /// The source of each value that is not assumed, in the order of the file; empty for short forms.
    pub sources: Vec<(String, String)>,
    /// What its file leaves open and was assumed, as a sentence for reports.
    pub assumed: Option<String>,
}

impl Machine {
    /// The machine that a short form names: one port, [`Timing::generic`].
    #[must_use]
    pub fn of(topology: Arc<dyn Topology>) -> Self {
        let machine = Self {
            name: topology.short_form(),
            topology,
            ports: Ports::from(1),
            given_ports: Ports::from(1),
            timing: Timing::generic(),
            endpoint: Endpoint::default(),
            sources: Vec::new(),
            assumed: None,
        };
        machine.with_values_of_links()
    }

    /// The same machine where a class whose links all have a bandwidth, or a latency, of their own has
    /// that of its fastest link: volumes are relative to it. If links are slower by more than 2^32, the
    /// class has the bandwidth of the slowest.
    #[must_use]
    pub fn with_values_of_links(mut self) -> Self {
        let own: Vec<_> = (0..self.topology.link_classes().len())
            .map(|class| self.values_of_links(class))
            .collect();
        let set = |values: &mut PerClass, which: usize, of: fn((f64, f64)) -> f64| {
            if own.iter().any(|own| own[which].is_some()) {
                let each = own.iter().enumerate();
                let each = each.map(|(class, own)| own[which].map_or(values.of(class), of));
                *values = PerClass::each(&each.collect::<Vec<_>>());
            }
        };
        let per_byte = |(least, most): (f64, f64)| {
            if most > least * f64::from(u32::MAX) { most } else { least }
        };
        set(&mut self.timing.per_byte, 0, per_byte);
        set(&mut self.timing.per_hop, 1, |(least, _)| least);
        self
    }

    /// The least and the most seconds of a byte, and of propagation, over the links of a class; `None` of
    /// what some link does not have of its own.
    #[must_use]
    pub fn values_of_links(&self, class: usize) -> [Option<(f64, f64)>; 2] {
        let kinds = || {
            let of_class = |kind: &&LinkKind| self.first_class() + kind.class as usize == class;
            self.topology.link_kinds().iter().filter(of_class)
        };
        let span = |values: Option<Vec<f64>>| {
            let values = values.filter(|values| !values.is_empty())?;
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            Some((least, values.iter().copied().fold(0.0, f64::max)))
        };
        let per_byte = |kind: &LinkKind| match kind.capacity {
            Capacity::BytesPerSecond(bandwidth) => Some(1.0 / bandwidth),
            Capacity::Relative { .. } => None,
        };
        [span(kinds().map(per_byte).collect()), span(kinds().map(|kind| kind.latency).collect())]
    }

    /// Adds to what is assumed.
    pub(crate) fn assume(&mut self, what: &str) {
        let known = self.assumed.take().map(|known| known + "; ");
        self.assumed = Some(known.unwrap_or_default() + what);
    }

    /// The source of a value, such as `ports` or `per_byte`, if there is one.
    #[must_use]
    pub fn source(&self, value: &str) -> Option<&str> {
        self.sources.iter().find(|(known, _)| known == value).map(|(_, source)| &**source)
    }

    /// Sets the source of a value.
    pub fn cite(&mut self, value: &str, source: String) {
        self.sources.retain(|(known, _)| known != value);
        self.sources.push((value.to_owned(), source));
    }

    /// The same, as the lines of a text in which the value stands.
    pub(crate) fn cite_lines(
        &mut self,
        value: &str,
        text: &str,
        places: impl IntoIterator<Item = usize>,
    ) {
        let lines: BTreeSet<_> = places.into_iter().map(|at| line_at(text, at)).collect();
        let lines: Vec<_> = lines.iter().map(usize::to_string).collect();
        match &lines[..] {
            [] => {}
            [line] => self.cite(value, format!("line {line}")),
            lines => self.cite(value, format!("lines {}", lines.join(", "))),
        }
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.topology.ranks()
    }

    /// The machine that a subset of its ranks forms; the i-th of the subset becomes rank i.
    ///
    /// Ranks in ascending order that form a box of a grid become a grid of as many dimensions,
    /// whose routes are also valid on the whole grid. A side wraps where the box spans a whole side
    /// that wraps. Ranks of nodes of several ranks, listed node by node, become such nodes, and their
    /// network the part that these nodes form. All others become a complete graph, whose schedules
    /// run on any machine; its links have the timing values of the first class.
    ///
    /// # Panics
    /// A subset of a machine of another number of ranks.
    #[must_use]
    pub fn subset(&self, subset: &Subset) -> Self {
        assert_eq!(subset.machine_ranks(), self.ranks(), "a subset of another machine");
        let ranks = subset.ranks();
        let part: Option<Arc<dyn Topology>> = match self.topology.shape() {
            Shape::Grid(grid) => grid.boxed(ranks).map(|grid| Arc::new(grid) as _),
            Shape::Clustered(clusters) => clusters.part(ranks).map(|part| Arc::new(part) as _),
            Shape::Complete | Shape::Graph(_) => None,
        };
        let topology = part.unwrap_or_else(|| {
            Arc::new(FullyConnected::new(ranks.len() as u32).expect("bug: a subset of no ranks"))
        });
        let name = format!("{} of {}", topology.short_form(), self.name);
        Self { name, ..self.on(topology) }
    }

    /// This machine with another topology. Its ports are those that were given, limited there.
    #[must_use]
    pub fn on(&self, topology: Arc<dyn Topology>) -> Self {
        let mut other = Self { topology, ..self.clone() };
        other.set_ports(self.given_ports);
        other
    }

    /// This machine without its faults, if it has any.
    #[must_use]
    pub fn unbroken(&self) -> Option<Self> {
        let Shape::Graph(graph) = self.topology.shape() else { return None };
        let lattice = graph.lattice()?;
        if lattice.failures().is_empty() {
            return None;
        }
        Some(self.on(lattice.unbroken()))
    }

    /// The injection that limits its ranks and its nodes. Where each rank is a node by itself, both
    /// limit the rank.
    #[must_use]
    pub fn injection(&self) -> Injection {
        match self.topology.shape() {
            Shape::Clustered(_) => self.timing.injection,
            _ => self.timing.injection.of_single_ranks(),
        }
    }

    /// The class of a link's timing values.
    #[must_use]
    pub fn class_of(&self, link: LinkId) -> usize {
        let class = self.topology.link(link).map_or(0, |link| link.class as usize);
        self.first_class() + class
    }

    /// The first class of links between nodes: 1 where nodes hold several ranks, else 0.
    #[must_use]
    pub fn first_class(&self) -> usize {
        usize::from(matches!(self.topology.shape(), Shape::Clustered(_)))
    }

    /// Whether every link has the values of its class.
    #[must_use]
    pub fn links_are_of_class(&self) -> bool {
        let of_class = |k: &LinkKind| k.capacity == Capacity::CLASS && k.latency.is_none();
        self.topology.link_kinds().iter().all(of_class)
    }

    /// Seconds in which the fastest link carries a byte.
    #[must_use]
    pub fn least_per_byte(&self) -> f64 {
        self.least_from(0)
    }

    /// Seconds in which the fastest link between nodes carries a byte.
    #[must_use]
    pub fn least_per_byte_between(&self) -> f64 {
        self.least_from(self.first_class())
    }

    /// Seconds in which the fastest link that leaves a node carries a byte: no message between nodes is
    /// faster.
    #[must_use]
    pub fn least_per_byte_of_nodes(&self) -> f64 {
        let Shape::Graph(graph) = self.topology.network() else {
            return self.least_per_byte_between();
        };
        let kinds = graph.kinds_of_nodes().iter().map(|&kind| &graph.link_kinds()[kind]);
        kinds.map(|kind| self.per_byte_of_kind(kind)).reduce(f64::min).unwrap_or(0.0)
    }

    /// Seconds of startup that a message between two nodes has at least.
    #[must_use]
    pub fn least_startup_between(&self) -> f64 {
        let classes = self.timing.startup.values();
        let between = if classes.len() == 1 { classes } else { &classes[self.first_class()..] };
        between.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Bytes that the fastest link between nodes carries in the time of a startup there, rounded.
    #[must_use]
    pub fn startup_bytes(&self) -> u64 {
        (self.least_startup_between() / self.least_per_byte_between()).round() as u64
    }

    /// Seconds of propagation that a message between two nodes has at least.
    #[must_use]
    pub fn least_latency(&self) -> f64 {
        let per_hop = &self.timing.per_hop;
        let Shape::Graph(graph) = self.topology.network() else {
            let linked = self.topology.links() > 0;
            return if linked { per_hop.least() } else { 0.0 };
        };
        let class = |kind: &LinkKind| per_hop.of(self.first_class() + kind.class as usize);
        let of_kind = |kind: &LinkKind| kind.latency.unwrap_or_else(|| class(kind));
        let latencies = graph.link_kinds().iter().map(of_kind);
        f64::from(graph.least_distance()) * latencies.reduce(f64::min).unwrap_or(0.0)
    }

    fn least_from(&self, first: usize) -> f64 {
        let kinds = self.topology.link_kinds().iter().map(|kind| self.per_byte_of_kind(kind));
        let classes = self.timing.per_byte.values();
        let from = if classes.len() == 1 { classes } else { &classes[first..] };
        kinds.chain(from.iter().copied()).fold(f64::INFINITY, f64::min)
    }

    fn per_byte_of_kind(&self, kind: &LinkKind) -> f64 {
        let class = self.first_class() + kind.class as usize;
        kind.capacity.seconds_per_byte(self.timing.per_byte.of(class))
    }

    /// Seconds in which a link carries a byte.
    #[must_use]
    pub fn seconds_per_byte(&self, link: LinkId) -> f64 {
        let per_byte = self.timing.per_byte.of(self.class_of(link));
        let kind = self.topology.link_kinds().get(self.topology.link_kind(link));
        kind.map_or(per_byte, |kind| kind.capacity.seconds_per_byte(per_byte))
    }

    /// Seconds of propagation over a link.
    #[must_use]
    pub fn latency(&self, link: LinkId) -> f64 {
        let kind = self.topology.link_kinds().get(self.topology.link_kind(link));
        let own = kind.and_then(|kind| kind.latency);
        own.unwrap_or_else(|| self.timing.per_hop.of(self.class_of(link)))
    }

    /// Sets the directions of routes at exactly half a ring. Returns whether the network between the
    /// nodes is a grid; any other has no such directions.
    pub fn set_ties(&mut self, ties: Ties) -> bool {
        let Shape::Grid(grid) = self.topology.network() else { return false };
        let grid = Arc::new(grid.clone().with_ties(ties));
        let topology: Arc<dyn Topology> = match self.topology.shape() {
            Shape::Clustered(clusters) => Arc::new(clusters.on_other(grid)),
            _ => grid,
        };
        self.topology = topology;
        true
    }

    /// The ports of a node, where they are not as many as those of a rank.
    #[must_use]
    pub fn own_node_ports(&self) -> Option<u32> {
        (self.ports.node != self.ports.rank).then_some(self.ports.node)
    }

    /// Sets the ports of a rank, limited to between 1 and `ranks - 1`, and of a node, limited to
    /// between 1 and the most messages that its ranks have for others. Where each rank is a node by
    /// itself, both limit the rank.
    pub fn set_ports(&mut self, ports: impl Into<Ports>) {
        self.given_ports = ports.into();
        let Ports { rank, node } = self.given_ports;
        let ranks = self.ranks();
        let rank = rank.min(ranks - 1).max(1);
        self.ports = match self.topology.shape() {
            Shape::Clustered(clusters) if clusters.nodes() > 1 && clusters.largest() > 1 => {
                let outside =
                    |(.., size): (u32, u32, u32)| u64::from(size) * u64::from(ranks - size);
                let most = clusters.groups().map(outside).max().unwrap_or(1);
                let most = u32::try_from(most).unwrap_or(u32::MAX);
                Ports { rank, node: node.min(most).max(1) }
            }
            Shape::Clustered(clusters) if clusters.nodes() == 1 => Ports::from(rank),
            _ => Ports::from(rank.min(node).max(1)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clusters, FullyConnected, Rank, Route};

    #[test]
    fn ports_are_between_one_and_the_number_of_other_ranks() {
        for (ranks, ports, granted) in [(5, 3, 3), (5, 4, 4), (5, 9, 4), (5, 0, 1), (1, 9, 1)] {
            let mut machine = Machine::of(Arc::new(FullyConnected::new(ranks).unwrap()));
            machine.set_ports(ports);
            assert_eq!(machine.ports, Ports::from(granted), "{ports} of {ranks} ranks");
        }
    }

    #[test]
    fn ports_of_a_node_are_at_most_its_messages() {
        for (sizes, given, rank, node) in [
            (&[(2, 4)][..], Ports::from(16), 7, 16),
            (&[(2, 4)], Ports::ALL, 7, 16),
            (&[(1, 4), (1, 1)], Ports::ALL, 4, 4),
            (&[(2, 4)], Ports { rank: 1, node: 9 }, 1, 9),
            (&[(2, 4)], Ports { rank: 9, node: 1 }, 7, 1),
            (&[(1, 4)], Ports { rank: 2, node: 9 }, 2, 2),
        ] {
            let mut machine = Machine::of(Arc::new(Clusters::new(sizes).unwrap()));
            machine.set_ports(given);
            assert_eq!(machine.ports, Ports { rank, node }, "{given:?} of {sizes:?}");
        }
        let mut machine = Machine::of(Arc::new(FullyConnected::new(5).unwrap()));
        machine.set_ports(Ports { rank: 3, node: 2 });
        assert_eq!(machine.ports, Ports::from(2));
    }

    #[test]
    fn a_complete_graph_has_empty_routes() {
        let mut route = Route::straight(0, 3);
        FullyConnected::new(5).unwrap().route(Rank(0), Rank(1), &mut route);
        assert_eq!(route, Route::default());
    }
}
