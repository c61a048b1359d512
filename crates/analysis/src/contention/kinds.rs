//! The timing values of links, by kind, and of messages.
//!
//! On a grid the kind of a link is its dimension. A graph numbers the kinds of its links.

use topocoll_topology::{LinkId, LinkKind, Machine, Rank, Route, Shape};

/// Seconds of a link: the startup of a message, a byte, and the propagation.
#[derive(Clone, Copy)]
pub(crate) struct Values {
    pub(crate) startup: f64,
    pub(crate) per_byte: f64,
    pub(crate) latency: f64,
}

pub(crate) struct Kinds<'a> {
    pub(crate) machine: &'a Machine,
    /// By kind; empty where links are not numbered.
    values: Vec<Values>,
    /// Dimensions of the grid between the nodes; 0 if it is not a grid.
    dimensions: u64,
}

impl<'a> Kinds<'a> {
    pub(crate) fn new(machine: &'a Machine) -> Self {
        let (timing, first) = (&machine.timing, machine.first_class());
        let of_class = |class: usize| Values {
            startup: timing.startup.of(class),
            per_byte: timing.per_byte.of(class),
            latency: timing.per_hop.of(class),
        };
        let of_kind = |kind: &LinkKind| {
            let values = of_class(first + kind.class as usize);
            Values {
                per_byte: kind.capacity.seconds_per_byte(values.per_byte),
                latency: kind.latency.unwrap_or(values.latency),
                ..values
            }
        };
        let (values, dimensions) = match machine.topology.network() {
            Shape::Grid(grid) => {
                let dimensions = grid.sides().len();
                ((0..dimensions).map(|u| of_class(first + u)).collect(), dimensions as u64)
            }
            Shape::Graph(_) => (machine.topology.link_kinds().iter().map(of_kind).collect(), 0),
            Shape::Complete | Shape::Clustered(_) => (Vec::new(), 0),
        };
        Self { machine, values, dimensions }
    }

    /// The values by kind.
    pub(crate) fn values(&self) -> &[Values] {
        &self.values
    }

    /// Seconds of a byte on the fastest links; on all classes where links are not numbered.
    pub(crate) fn fastest(&self) -> f64 {
        let values = self.values.iter().map(|values| values.per_byte);
        values.reduce(f64::min).unwrap_or_else(|| self.machine.timing.per_byte.least())
    }

    /// The kind of a link.
    pub(crate) fn of(&self, link: LinkId) -> usize {
        match self.dimensions {
            0 => self.machine.topology.link_kind(link),
            dimensions => (link.0 % (2 * dimensions) / 2) as usize,
        }
    }

    /// Calls `visit` with the kinds of the links of a route, each with a number of links.
    pub(crate) fn along(&self, from: Rank, route: &Route, mut visit: impl FnMut(usize, u64)) {
        if self.dimensions > 0 {
            route.segments().iter().for_each(|segment| {
                visit(segment.dimension as usize, segment.hops.unsigned_abs());
            });
        } else {
            let topology = &self.machine.topology;
            topology.for_each_link(from, route, &mut |link| visit(topology.link_kind(link), 1));
        }
    }

    /// Seconds of the startup of a message: that of the slowest class on its route.
    pub(crate) fn startup(&self, from: Rank, to: Rank, route: &Route) -> f64 {
        self.slowest(from, route, |values| values.startup).unwrap_or_else(|| {
            self.machine.timing.startup.of(self.machine.topology.link_class(from, to))
        })
    }

    /// Seconds of a byte of a message on the slowest channel that it takes: a link, or the injection
    /// of its rank or node.
    pub(crate) fn per_byte(&self, from: Rank, to: Rank, route: &Route) -> f64 {
        let (topology, limits) = (&self.machine.topology, self.machine.injection());
        let links = self.slowest(from, route, |values| values.per_byte);
        let links =
            links.unwrap_or_else(|| self.machine.timing.per_byte.of(topology.link_class(from, to)));
        let leaves = topology.node_of(from) != topology.node_of(to);
        links.max(limits.rank).max(if leaves { limits.node } else { 0.0 })
    }

    /// The largest value on a route; `None` without links.
    fn slowest(&self, from: Rank, route: &Route, value: fn(&Values) -> f64) -> Option<f64> {
        let mut most: Option<f64> = None;
        self.along(from, route, |kind, _| {
            let value = value(&self.values[kind]);
            most = Some(most.map_or(value, |most| most.max(value)));
        });
        most
    }
}
