//! All-to-all and all-gather for machines with a shape: which schedule is best, what it costs, the
//! proof that it delivers, and state machines that carry it out over your own transport.
//!
//! To depend on it, clone the repository beside your program, and write
//! `topocoll = { path = "../topocoll" }` into the dependencies of your `Cargo.toml`.
//!
//! # A tour
//!
//! 1. A [`Machine`] has ranks, links, ports and timing. [`machine()`] takes a short form such as
//!    `torus:8x8`, a shipped name or a machine file.
//! 2. An [`Exchange`] is what you ask: a machine, an operation, a block size; if need be a [`Subset`]
//!    of the ranks, a [`Demand`] matrix, a [`Budget`], a [`Catalogue`] with algorithms of your own.
//! 3. [`Exchange::select`] ranks every algorithm and setting by predicted time, with lower bounds.
//! 4. [`Exchange::schedule`] gives a [`Schedule`]: a [`Rule`] that says what each rank does in each
//!    step, in closed form. [`Exchange::verify`] proves it, [`Exchange::count`] prices it,
//!    [`contention::simulate`] lets its messages meet, [`formats`] write it and read it.
//! 5. A [`Plan`](exec::Plan) is one rank's share of it. An [`Endpoint`](exec::Endpoint) carries the
//!    plan out: it owns no memory, thread or clock, and says what to send, receive and copy.
//! 6. A driver does what endpoints say: [`Driver`](exec::Driver) over your
//!    [`Transport`](exec::Transport), [`ThreadedDriver`](exec::ThreadedDriver) in one process,
//!    [`SeededDriver`](exec::SeededDriver) in tests.
//!
//! ```
//! use topocoll::{Exchange, machine};
//!
//! let machine = machine("torus:8x8")?;
//! let exchange = Exchange::all_to_all(&machine)?.block_bytes(1024)?;
//! let selection = exchange.select()?;
//! let best = selection.best().expect("an algorithm applies to a torus");
//! assert_eq!(best.algorithm, "strided-rings");
//!
//! let schedule = exchange.schedule(&best.algorithm, &best.parameters)?;
//! let proof = exchange.verify(&schedule, None)?;
//! assert!(proof.violation.is_none());
//! assert_eq!((proof.counts.steps, proof.counts.bytes), (14, 112 * 1024));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/tour.rs` goes on to a runtime that sends messages over channels, and
//! `examples/own_algorithm` adds an algorithm. Every function that can fail returns an [`Error`], or
//! the error of its crate, that names the value and the rule. `ARCHITECTURE.md` is for maintainers.
#![forbid(unsafe_code)]

/// The example of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

mod calibrate;
mod choice;
mod envelope;
mod error;
mod exchange;
mod free_running;
mod front;
mod given_schedule;
mod grouped;
mod left_out;
mod machines;
mod measured;
mod network;
mod pool;
mod price;
mod published;
mod recount;
mod select;
mod simulated;
mod simulations;
mod solve;
mod sweep;
mod trace;
mod transform;
pub mod tune;

pub use calibrate::{
    Fit, Regret, Sample, fit, fit_processes, injection_of, measure, measured_file, regret, samples,
};
pub use choice::{Choice, Fastest};
pub use error::Error;
pub use exchange::{Budget, Exchange};
pub use front::Front;
pub use given_schedule::GivenSchedule;
pub use left_out::{PartlyPriced, Rejected, Unsearched};
pub use machines::{load_file, machine, machine_with, shipped};
pub use measured::{Measured, Scaling};
pub use network::Network;
pub use price::{Price, Priced};
pub use published::{PUBLISHED, Published, PublishedCounts};
pub use select::{Extremes, InStep, Selection, WithoutBarriers};
pub use simulated::{FreeRunning, NotSimulated};
pub use simulations::Simulations;
pub use sweep::{Line, Sweep};
pub use trace::{Trace, TraceChoice, TraceTimes};
pub use transform::{Among, Distribution, Transform, Transposition};

pub use topocoll_algorithms::{
    Algorithm, ByLinks, COMMON, Catalogue, Claims, Domain, Info, Matchings, NotApplicable,
    Parameter, Planner, Request, STEPS, Solution, StepsOf, Values,
};
pub use topocoll_analysis::{
    AnalysisError, AsymptoticBound, BestBounds, Conflict, ConflictReport, ConflictingMessage,
    Counts, Limit, LinkTotals, LowerBound, Measure, Method, Progress, REPLAY_UP_TO, RankSample,
    StepCount, Time, TradeOff, Verification, Violation, asymptotic_bounds, best_bounds, bounds,
    check_certifiable, check_counting_work, check_demand_work, check_memory, check_ranks,
    check_work, conflicts, contention, count, count_steps, count_while, counting_work, formats,
    least_load, link_totals, verify, verify_watched, write_certificate,
};
pub use topocoll_exec as exec;
pub use topocoll_schedule::{
    Axis, Block, Collective, Demand, Drawn, Held, Kinds, Largest, Law, LocalCopy, MAX_BLOCK_BYTES,
    Message, Origin, Parameters, Part, Period, PeriodWriter, Problem, RankClasses, Recorded,
    Recorder, Routed, Rule, Schedule, ScheduleError, Setting, SizedMessage, Slot, SlotRun, SlotSet,
    Step, Strided, Sync, Transfer,
};
pub use topocoll_topology::{
    Along, Barrier, Capacity, Clusters, Contention, Coordinates, ENDPOINT_PARAMETERS, Endpoint,
    EndpointParameter, Failure, Fault, FullyConnected, Graph, Grid, Groups, INTER_NODE, INTRA_NODE,
    Injection, Lattice, Link, LinkId, LinkKind, ListedGraph, MAX_DIMENSIONS, Machine, MixedRadix,
    Order, Pattern, PerClass, Port, Ports, Rank, Rendezvous, Route, Segment, Shape, Subset,
    TOPOLOGIES, Ties, Timing, Topology, TopologyError, View, files, spec, text, units,
};
