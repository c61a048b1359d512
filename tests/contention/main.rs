//! Models of the network agree with each other, with bounds and with other simulators.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod adaptive;
mod barriers;
mod booksim;
mod channels;
mod classes;
mod classes_of_channels;
mod conflicts;
mod endpoints;
mod estimates;
mod injection;
mod loads;
mod models;
mod packets;
mod simulations;
mod timelines;
