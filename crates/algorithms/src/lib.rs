//! Writers: each algorithm turns a problem and a topology into a schedule.
//!
//! One file per algorithm, one line each in [`ALGORITHMS`]. Nothing here reads a schedule: who
//! verifies, prices or runs one knows only its rule.
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
mod catalogue;
mod claims;
mod colouring;
mod digits;
mod error;
mod nodes;
mod parameters;
mod places;
mod rounds;
mod squares;

pub use algorithm::{Algorithm, Info, Request, Solution};
pub use catalogue::Catalogue;
pub use claims::{ByLinks, Claims, StepsOf};
pub use error::NotApplicable;
pub use parameters::{Domain, Parameter, Values};

// The algorithms, one file each, and the table that everything else reads.
mod binary_exchange;
mod bruck_concat;
mod bruck_index;
mod bucket;
mod clustered;
mod clustered_matchings;
mod coloured_rings;
mod cyclic_exchange;
mod demand_matchings;
mod direct;
mod direct_offsets;
mod direct_rings;
mod gather_broadcast;
mod link_matchings;
mod minimum_startup;
mod neighbour_gather;
mod neighbour_rings;
mod node_aware;
mod node_gather;
mod node_radix;
mod one_factor;
mod pairwise_xor;
mod quadrant_exchange;
mod recursive_doubling;
mod ring;
mod suh_shin;
mod tseng_gupta_panda;
/// Every algorithm, in the order in which lists show them.
const ALGORITHMS: &[&dyn Algorithm] = &[
    &direct::Direct,
    &pairwise_xor::PairwiseXor,
    &one_factor::OneFactor,
    &bruck_index::BruckIndex,
    &suh_shin::SuhShin,
    &coloured_rings::ColouredRings,
    &neighbour_rings::NeighbourRings,
    &direct_rings::DirectRings,
    &direct_offsets::DirectOffsets,
    &link_matchings::LinkMatchings,
    &binary_exchange::BinaryExchange,
    &quadrant_exchange::QuadrantExchange,
    &cyclic_exchange::CyclicExchange,
    &tseng_gupta_panda::TsengGuptaPanda,
    &minimum_startup::MinimumStartup,
    &clustered::ClusteredFactor,
    &clustered_matchings::ClusteredMatchings,
    &node_aware::NodeAware,
    &node_radix::NodeRadix,
    &demand_matchings::DemandMatchings,
    &bruck_concat::BruckConcat,
    &gather_broadcast::GatherBroadcast,
    &recursive_doubling::RecursiveDoubling,
    &ring::Ring,
    &node_gather::NodeGather,
    &bucket::Bucket,
    &neighbour_gather::NeighbourGather,
];
