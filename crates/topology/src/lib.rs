//! The machine: ranks, ports, links and routes.
//!
//! Start with [`Topology`], the questions that every machine answers, and [`Shape`], the facts that
//! algorithms may rely on. A [`Machine`] adds ports and [`Timing`] values. [`spec`] reads machines
//! from text; [`files`] also reads the files of other programs.
//!
//! ```
//! use topocoll_topology::{Rank, Route, Shape, spec};
//!
//! let torus = spec::parse_short_form("torus:4x6")?;
//! assert!(matches!(torus.shape(), Shape::Grid(grid) if grid.sides() == [4, 6]));
//!
//! // From (0, 0) to (3, 2): one hop back around the first side, two along the second.
//! let mut route = Route::default();
//! torus.route(Rank(0), Rank(20), &mut route);
//! assert_eq!((route.hops(), route.segments()[0].hops), (3, -1));
//! assert_eq!(torus.follow(Rank(0), &route), Ok(20));
//! # Ok::<(), topocoll_topology::spec::SpecError>(())
//! ```
//!
//! # Panics
//! Ranks, dimensions, nodes and link classes are numbers. Functions that take them panic, or return
//! a meaningless value, for numbers that the machine does not have.
#![forbid(unsafe_code)]

mod coordinates;
mod endpoint;
mod error;
pub mod files;
mod graph_file;
mod groups;
mod ids;
mod machine;
mod machine_file;
mod number;
pub mod parallel;
mod ports;
mod radix;
mod reading;
mod regular;
mod route;
pub mod spec;
mod subset;
pub mod text;
mod timing;
mod topology;
pub mod units;
mod view;
mod xml;

pub use coordinates::Coordinates;
pub use endpoint::{ENDPOINT_PARAMETERS, Endpoint, EndpointParameter, Order};
pub use error::TopologyError;
pub use groups::{Along, Groups, Pattern};
pub use ids::{Link, LinkId, Port, Rank};
pub use machine::Machine;
pub use ports::Ports;
pub use radix::{MAX_DIMENSIONS, MixedRadix, coprime, gcd};
pub use route::{Route, Segment};
pub use subset::Subset;
pub use timing::{Barrier, Contention, Injection, PerClass, Rendezvous, Timing};
pub use topology::clusters::{Clusters, INTER_NODE, INTRA_NODE};
pub use topology::complete::FullyConnected;
pub use topology::graph::{
    Capacity, Graph, Level, LinkKind, ListedGraph, Orbit, Orbits, Takes, Translation,
};
pub use topology::grid::{Grid, Ties};
pub use topology::lattice::placed::OnGrid;
pub use topology::lattice::{Failure, Fault, Lattice};
pub use topology::{Shape, Topology};
pub use view::View;

use topology::{clusters, complete, dragonfly, fat_tree, grid, hypercube, hyperx, lattice};

/// The short forms of every topology, in the order in which help lists them.
pub const TOPOLOGIES: &[spec::ShortForm] = &[
    spec::ShortForm { kind: "full", example: "full:64", parse: complete::full },
    spec::ShortForm { kind: "torus", example: "torus:16x16", parse: grid::torus },
    spec::ShortForm { kind: "mesh", example: "mesh:8x8x8", parse: grid::mesh },
    spec::ShortForm { kind: "grid", example: "grid:16~x8", parse: grid::grid },
    spec::ShortForm { kind: "tofu", example: "tofu:4x4x2", parse: grid::tofu },
    spec::ShortForm {
        kind: "twisted-torus",
        example: "twisted-torus:4x4x8",
        parse: lattice::twisted_torus,
    },
    spec::ShortForm { kind: "hypercube", example: "hypercube:6", parse: hypercube::hypercube },
    spec::ShortForm { kind: "hyperx", example: "hyperx:4x4x4", parse: hyperx::hyperx },
    spec::ShortForm { kind: "fat-tree", example: "fat-tree:4,3", parse: fat_tree::fat_tree },
    spec::ShortForm { kind: "dragonfly", example: "dragonfly:2,4,2", parse: dragonfly::dragonfly },
    spec::ShortForm {
        kind: "graph",
        example: "graph:links.csv",
        parse: |path| graph_file::graph(path, None),
    },
    spec::ShortForm { kind: "cluster", example: "cluster:4,4,2", parse: clusters::cluster },
];
