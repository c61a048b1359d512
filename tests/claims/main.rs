//! Counts are those that algorithms claim and papers print, and no lower bound is beaten.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod bounds;

mod candidates;
mod catalogue;
mod formulas;
mod fronts;
mod graphs;
mod injection;
mod papers;
mod reached;
mod timing_values;
mod windows;
