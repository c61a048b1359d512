//! All-gather: every rank has one block for all others.

pub(crate) mod bucket;
pub(crate) mod concat;
pub(crate) mod gather_broadcast;
pub(crate) mod gossip;
pub(crate) mod neighbour_gather;
pub(crate) mod node_gather;
pub(crate) mod recursive_doubling;
pub(crate) mod ring;
