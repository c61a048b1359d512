//! How a message goes from its sender to its receiver.

use topocoll_topology::{LinkId, Rank, Route, Topology};

/// The links of a message.
#[derive(Clone, Copy)]
pub(crate) enum RouteLinks<'w> {
    /// A link without a number: within a node, or between any two nodes.
    Unnumbered,
    Route(&'w Route),
    /// The machine's own route on a graph.
    Links(&'w [LinkId]),
}

impl RouteLinks<'_> {
    pub(crate) fn hops(&self) -> u64 {
        match self {
            RouteLinks::Unnumbered => 0,
            RouteLinks::Route(route) => route.hops(),
            RouteLinks::Links(links) => links.len() as u64,
        }
    }

    /// Calls `each` with all links of a message from a rank.
    pub(crate) fn each_link(
        &self,
        topology: &dyn Topology,
        from: Rank,
        each: &mut dyn FnMut(LinkId),
    ) {
        match self {
            RouteLinks::Unnumbered => {}
            RouteLinks::Route(route) => topology.for_each_link(from, route, each),
            RouteLinks::Links(links) => links.iter().copied().for_each(each),
        }
    }
}
