//! Files are written and read without loss, and broken ones are refused.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod machine_files;
mod ports;
mod reading;
mod refusing;
mod unchanged;
mod writing;
