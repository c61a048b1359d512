//! Bad input is refused by name, within bounded time and memory.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod estimates;
mod fork;
mod fuzz;
mod limits;
mod planner;
mod removed;
mod requests;
