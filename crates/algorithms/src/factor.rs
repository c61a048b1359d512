//! Messages assigned to steps: factors of the complete graph, and matchings by edge colouring.

pub(crate) mod colouring;
pub(crate) mod direct_exchange;
pub(crate) mod node_rounds;
