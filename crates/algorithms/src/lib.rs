//! Writers: each algorithm turns a problem and a topology into a schedule.
//!
//! One file per algorithm, one line each in [`ALGORITHMS`]. Nothing here reads a schedule: who
//! verifies, prices or runs one knows only its rule.
//!
//! ```
//! use topocoll_algorithms::find;
//! use topocoll_schedule::{Collective, Parameters, Problem, Setting};
//! use topocoll_topology::FullyConnected;
//!
//! let machine = FullyConnected::new(9)?;
//! let problem = Problem::new(Collective::AllToAll, 9, 1, 64)?;
//! let radix = Parameters::from([("radix".to_owned(), Setting::Integer(3))]);
//!
//! // Two digits of radix 3, two steps each; three of the nine blocks in every message. Then every
//! // rank puts its blocks in order.
//! let bruck = find("bruck")?;
//! let schedule = bruck.plan(&problem, &machine, &radix)?;
//! let claims = bruck.claims(&problem, &machine, &radix)?;
//! assert_eq!((claims.steps, claims.bytes), (4, 4 * 3 * 64));
//! assert_eq!(schedule.rule().steps(), 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod algorithm;
mod colouring;
mod digits;
mod error;
mod nodes;
mod parameters;
mod places;
mod published;
mod rounds;
mod squares;

pub use algorithm::{Algorithm, ByLinks, Claims, StepsOf};
pub use error::NotApplicable;
pub use parameters::Parameter;
pub use published::{Published, PublishedCounts};

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
pub const ALGORITHMS: &[&dyn Algorithm] = &[
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

/// Every formula without a schedule, in the order in which lists show them.
pub const PUBLISHED: &[Published] =
    &[published::MINIMUM_STARTUP, published::DIRECT_TORUS, published::DIRECT_MESH];

/// The algorithm called `name`.
///
/// # Errors
/// [`NotApplicable::Published`] if a formula alone has that name, else
/// [`NotApplicable::Unknown`], with the nearest name.
pub fn find(name: &str) -> Result<&'static dyn Algorithm, NotApplicable> {
    ALGORITHMS.iter().copied().find(|algorithm| algorithm.name() == name).ok_or_else(|| {
        if let Some(row) = PUBLISHED.iter().find(|row| row.name == name) {
            return NotApplicable::Published { name: row.name, paper: row.source };
        }
        let names = ALGORITHMS.iter().map(|algorithm| algorithm.name());
        NotApplicable::Unknown { name: name.to_owned(), nearest: parameters::nearest(name, names) }
    })
}
