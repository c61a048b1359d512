//! Choices are ranked by what they cost on the machine.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod calibrate;
mod decided;
mod equal;
mod free_running;
mod planner;
mod ports;
mod ranking;
mod simulated;
mod steps;
mod sweep;
mod unbeaten;
