//! Crates depend on each other as ARCHITECTURE.md says, and their types hold what users rely on.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod api;
mod budget;
mod circles;
mod dependencies;
