//! Properties of public types: which pass between threads, and which are errors.

use std::error::Error;
use std::fmt::Debug;

use topocoll::contention::{Control, Pattern, Placed, Request, Scheduled, Settings, Simulation};
use topocoll::exec::{
    Endpoint, ExecError, Layout, Plan, PlanError, PlannedSizes, SeededDriver, ThreadedDriver, Views,
};
use topocoll::formats::ReadError;
use topocoll::spec::SpecError;
use topocoll::tune::{TuneError, Tuning};
use topocoll::units::UnitError;
use topocoll::{
    Algorithm, AnalysisError, Counts, Demand, Front, LinkId, Machine, NotApplicable, Port, Price,
    Problem, Progress, Rank, Recorder, Route, Rule, Schedule, ScheduleError, Selection, SlotSet,
    Step, Subset, Sweep, Topology, TopologyError, Verification, Violation,
};
use topocoll_certificate::{Fault, Proved};

fn between_threads<T: Send + Sync + ?Sized>() {}

fn error<T: Error + Debug + Clone + PartialEq + Send + Sync + 'static>() {}

#[test]
fn public_types_pass_between_threads() {
    // Machines, schedules and algorithms.
    between_threads::<Machine>();
    between_threads::<dyn Topology>();
    between_threads::<(Problem, Demand, Rank, Route, SlotSet, Step)>();
    between_threads::<(Schedule, Recorder)>();
    between_threads::<dyn Rule>();
    between_threads::<&'static dyn Algorithm>();
    // Results.
    between_threads::<(Counts, Verification, Price, Selection, Sweep, Front, Tuning, Proved)>();
    between_threads::<(Settings, Simulation, Pattern<'_>, Placed<'_>, Scheduled<'_>)>();
    between_threads::<(Request<'_>, Control<'_>, Progress<'_>)>();
    // Drivers.
    between_threads::<(Plan, PlannedSizes, Endpoint, Layout, Subset, Views<'_>)>();
    between_threads::<(ThreadedDriver, SeededDriver)>();
}

#[test]
fn errors_implement_the_standard_trait() {
    error::<topocoll::Error>();
    error::<AnalysisError>();
    error::<ExecError>();
    error::<Fault>();
    error::<NotApplicable>();
    error::<PlanError>();
    error::<ReadError>();
    error::<ScheduleError>();
    error::<SpecError>();
    error::<TopologyError>();
    error::<TuneError>();
    error::<UnitError>();
    error::<Violation>();
}

#[test]
fn identifiers_print_as_numbers() {
    let read = [Rank(3).to_string(), Port(3).to_string(), LinkId(3).to_string()];
    assert_eq!(read, ["3"; 3]);
}

#[test]
fn the_oldest_rust_is_the_same_everywhere() {
    let told = format!("Rust {} or later", env!("CARGO_PKG_RUST_VERSION"));
    for text in [include_str!("../../README.md"), include_str!("../run")] {
        assert!(text.contains(&told), "{told}");
    }
}
