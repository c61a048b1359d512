//! Writers: each algorithm turns a problem and a topology into a schedule.
//!
//! One file per algorithm, one line each in the table of the standard [`Catalogue`]. Nothing here
//! reads a schedule: verification, pricing and execution know only its rule.
//!
//! ```
//! use topocoll_algorithms::{Catalogue, Request};
//! use topocoll_schedule::{Collective, Parameters, Problem, Setting};
//! use topocoll_topology::FullyConnected;
//!
//! let machine = FullyConnected::new(9)?;
//! let problem = Problem::new(Collective::AllToAll, 9, 1, 64)?;
//! let radix = Parameters::from([("radix".to_owned(), Setting::Integer(3))]);
//!
//! // Two digits of radix 3, two steps each; three of the nine blocks in every message. Then every
//! // rank puts its blocks in order.
//! let catalogue = Catalogue::standard();
//! let solution = Request::new(&problem, &machine).solve(catalogue.find("bruck")?, &radix)?;
//! assert_eq!((solution.claims.steps, solution.claims.bytes), (4, 4 * 3 * 64));
//! assert_eq!(solution.schedule.rule().steps(), 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod algorithm;
mod allgather;
mod alltoall;
mod claims;
mod drawn;
mod error;
mod factor;
mod front;
mod hierarchical;
mod hops;
mod layout;
mod offsets;
mod parameters;
mod planner;
mod removed;

pub use algorithm::{Algorithm, Request, Search, Solution};
pub use alltoall::demand_matchings::Matchings;
pub use claims::{ByLinks, Claims, StepsOf};
pub use error::NotApplicable;
pub use parameters::{
    COMMON, Domain, FEWER_PORTS, Info, Parameter, STEPS, VIEW, Values, of_every_algorithm,
};
pub use planner::{Catalogue, Planner};

/// Every algorithm, in the order in which lists show them.
const ALGORITHMS: &[&dyn Algorithm] = &[
    &alltoall::direct::Direct,
    &alltoall::pairwise_xor::PairwiseXor,
    &alltoall::one_factor::OneFactor,
    &alltoall::bruck::Bruck,
    &alltoall::suh_shin::SuhShin,
    &alltoall::coloured_rings::ColouredRings,
    &alltoall::strided_rings::StridedRings,
    &alltoall::neighbour_rings::NeighbourRings,
    &alltoall::direct_rings::DirectRings,
    &alltoall::product::ProductExchange,
    &alltoall::tabled::Tabled,
    &alltoall::direct_offsets::DirectOffsets,
    &alltoall::direct_spread::DirectSpread,
    &alltoall::link_matchings::LinkMatchings,
    &alltoall::repair::Repair,
    &alltoall::store_and_forward::StoreAndForward,
    &alltoall::binary_exchange::BinaryExchange,
    &alltoall::quadrant_exchange::QuadrantExchange,
    &alltoall::cyclic_exchange::CyclicExchange,
    &alltoall::tseng_gupta_panda::TsengGuptaPanda,
    &alltoall::minimum_startup::MinimumStartup,
    &alltoall::clustered_factor::ClusteredFactor,
    &alltoall::clustered_matchings::ClusteredMatchings,
    &alltoall::node_aware::NodeAware,
    &alltoall::node_radix::NodeRadix,
    &alltoall::demand_matchings::DemandMatchings,
    &alltoall::node_matchings::NodeMatchings,
    &allgather::concat::Concat,
    &allgather::gather_broadcast::GatherBroadcast,
    &allgather::recursive_doubling::RecursiveDoubling,
    &allgather::ring::Ring,
    &allgather::node_gather::NodeGather,
    &allgather::bucket::Bucket,
    &allgather::neighbour_gather::NeighbourGather,
    &allgather::gossip::Gossip,
];
