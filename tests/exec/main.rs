//! Plans move the right bytes, whatever the driver.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod all_to_all_v;
mod barriers;
mod embedded;
mod examples;
mod execution;
mod groups;
mod subsets;
mod transforms;
mod views;
