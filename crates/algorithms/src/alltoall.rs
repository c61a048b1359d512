//! All-to-all: every rank has a block for every other.

pub(crate) mod binary_exchange;
pub(crate) mod bruck;
pub(crate) mod clustered_factor;
pub(crate) mod clustered_matchings;
pub(crate) mod coloured_rings;
pub(crate) mod cyclic_exchange;
pub(crate) mod demand_matchings;
pub(crate) mod direct;
pub(crate) mod direct_offsets;
pub(crate) mod direct_rings;
pub(crate) mod direct_spread;
pub(crate) mod link_matchings;
pub(crate) mod minimum_startup;
pub(crate) mod neighbour_rings;
pub(crate) mod node_aware;
pub(crate) mod node_radix;
pub(crate) mod one_factor;
pub(crate) mod pairwise_xor;
pub(crate) mod product;
pub(crate) mod quadrant_exchange;
pub(crate) mod repair;
pub(crate) mod store_and_forward;
pub(crate) mod strided_rings;
pub(crate) mod suh_shin;
pub(crate) mod tabled;
pub(crate) mod tseng_gupta_panda;
